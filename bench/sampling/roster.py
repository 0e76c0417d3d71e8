"""Who is measured. NumPy is measured in curador's own process, by turns with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sampling import tasks

HERE = Path(__file__).resolve().parent
OURS = "curador"
LEFT_OUT = "left out: large; PEERS=all measures it"


@dataclass(frozen=True, slots=True)
class Tool:
    """A script that prints one line a case, and the environment it runs in."""

    name: str
    environment: str
    script: Path
    always: bool = True  # False: large, installed only when every peer is asked for


def _peer(name: str, environment: str, *, always: bool = True) -> Tool:
    return Tool(name, environment, HERE / "peers" / f"measure_{environment}.py", always)


CURADOR = Tool(OURS, OURS, HERE / "ours.py")

PEERS: tuple[Tool, ...] = (
    _peer(tasks.OPENDP, "opendp"),
    _peer(tasks.DIFFPRIVLIB, "diffprivlib"),
    _peer(tasks.TMLT, "tmlt", always=False),  # brings Spark
)
