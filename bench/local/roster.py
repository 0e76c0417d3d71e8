"""Who is measured on what: each job is one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from local import tasks

HERE = Path(__file__).resolve().parent
PROTOCOLS = {
    tasks.PURE_LDP: (tasks.HASHING, tasks.HADAMARD, tasks.OPTIMAL, tasks.SYMMETRIC, tasks.DIRECT),
    tasks.MULTI_FREQ: (tasks.HASHING, tasks.RAPPOR, tasks.SUBSET, tasks.OPTIMAL, tasks.SYMMETRIC, tasks.DIRECT),
}


@dataclass(frozen=True, slots=True)
class Job:
    """A script with its arguments, and the environment it runs in."""

    tool: str
    script: Path
    arguments: tuple[str, ...]

    @property
    def said(self) -> str:
        """What is shown while it runs."""
        return " ".join([self.tool, *self.arguments])


def _ours(*arguments: str) -> Job:
    return Job(tasks.CURADOR, HERE / "ours.py", arguments)


def _peer(tool: str, *arguments: str) -> Job:
    return Job(tool, HERE / "peers" / f"measure_{tool.replace('-', '_')}.py", arguments)


def together() -> list[Job]:
    """Return what may run two at a time, the longest first: only errors are read off it."""
    theirs = [_peer(tool, "errors", protocol) for tool, protocols in PROTOCOLS.items() for protocol in protocols]
    return [*theirs, *(_ours("errors", protocol) for protocol in reversed(tasks.PROTOCOLS))]


def alone() -> list[Job]:
    """Return what is timed, and so has the machine to itself: of each protocol curador, the peers, curador again."""
    jobs: list[Job] = []
    for protocol in tasks.PROTOCOLS:
        theirs = [_peer(tool, "speed", protocol) for tool, protocols in PROTOCOLS.items() if protocol in protocols]
        jobs += [_ours("speed", protocol), *theirs, _ours("speed", protocol)]
    return [*jobs, _ours("stream"), *(_ours("other", what) for what in tasks.OTHERS)]
