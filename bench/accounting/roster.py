"""Who is measured on what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from accounting.tasks import TASKS

HERE = Path(__file__).resolve().parent
OURS = "curador"
PLD = "dp_accounting PLD"


@dataclass(frozen=True, slots=True)
class Tool:
    """One row of the tables: a script, the name it knows the tool by, and the tasks it can do."""

    name: str
    environment: str
    script: Path
    key: str
    tasks: frozenset[str]
    always: bool = True  # False: large, installed only when every peer is asked for


def _peer(name: str, environment: str, module: str, key: str, tasks: str, *, always: bool = True) -> Tool:
    script = HERE / "peers" / f"measure_{module}.py"
    return Tool(name, environment, script, key, frozenset(tasks.split()), always)


CURADOR = Tool(OURS, OURS, HERE / "ours.py", OURS, frozenset(TASKS))

PEERS: tuple[Tool, ...] = (
    _peer(PLD, "dpacc", "dp_accounting", "pld", "A1 A2 A3 A4 A5"),
    _peer("dp_accounting RDP", "dpacc", "dp_accounting", "rdp", "A1 A2 A3 A4 A5"),
    _peer("prv_accountant, error 0.1", "prv", "prv_accountant", "0.1", "A1 A2 A3 A4 A5"),
    # A4 at this error takes the better part of a minute a call
    _peer("prv_accountant, error 0.01", "prv", "prv_accountant", "0.01", "A1 A2 A3 A5"),
    _peer("autodp RDP", "autodp", "autodp", "rdp", "A1 A2 A3 A4 A5"),
    _peer("opendp zCDP", "opendp", "opendp", "zcdp", "A1"),
    _peer("opacus RDP", "opacus", "opacus", "rdp", "A1 A2 A5", always=False),
    _peer("opacus PRV", "opacus", "opacus", "prv", "A1 A2 A5", always=False),
    _peer("tmlt.core zCDP", "tmlt", "tmlt", "zcdp", "A1", always=False),
)


def peers(*, everyone: bool) -> tuple[Tool, ...]:
    """Return the peers to measure."""
    return tuple(peer for peer in PEERS if everyone or peer.always)
