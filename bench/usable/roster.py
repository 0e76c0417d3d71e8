"""Who else finds caps and bounds by itself: a script, and its environment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PEERS_HOME = Path(__file__).resolve().parent / "peers"
LEFT_OUT = "left out: large; PEERS=all measures it"


@dataclass(frozen=True, slots=True)
class Peer:
    """One tool."""

    name: str
    environment: str
    script: Path
    always: bool = True


PEERS = (
    Peer("Google's library", "pipelinedp", PEERS_HOME / "measure_pipelinedp.py"),
    Peer("Tumult Analytics", "tmlt", PEERS_HOME / "measure_tmlt.py", always=False),
)
