"""Who is measured beside curador: a script, its environment, the form it is asked in, and up to which size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from query import tasks

PEERS_HOME = Path(__file__).resolve().parent / "peers"
LEFT_OUT = "left out: large; PEERS=all measures it"


@dataclass(frozen=True, slots=True)
class Peer:
    """One way of asking one tool."""

    name: str
    environment: str
    script: Path
    form: str = ""
    most: int = tasks.SIZES[-1]  # rows; a larger table would take many minutes
    always: bool = True


def _peer(
    name: str, environment: str, script: str, form: str = "-", most: int = tasks.SIZES[-1], *, always: bool = True
) -> Peer:
    return Peer(name, environment, PEERS_HOME / f"measure_{script}.py", form, most, always)


PEERS = (
    _peer(tasks.OPENDP_INTEGERS, "opendp-polars", "opendp", "integers"),
    _peer(tasks.OPENDP_FLOATS, "opendp-polars", "opendp", "floats"),
    _peer(tasks.OPENDP_CENTRED, "opendp-polars", "opendp", "centred", tasks.SIZES[0]),
    _peer(tasks.SMARTNOISE, "smartnoise", "smartnoise", most=tasks.SIZES[0], always=False),
    _peer(tasks.PIPELINEDP, "pipelinedp", "pipelinedp", most=tasks.SIZES[0], always=False),
    _peer(tasks.TMLT, "tmlt", "tmlt", most=tasks.SIZES[0], always=False),
)
