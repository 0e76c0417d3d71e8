"""Who is measured on what: each job is one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from learn import tasks

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Job:
    """A script with its arguments, and the environment it runs in."""

    tool: str
    environment: str
    script: Path
    arguments: tuple[str, ...]

    @property
    def said(self) -> str:
        """What is shown while it runs."""
        return " ".join(dict.fromkeys([self.tool, self.script.stem.partition("_")[2], *self.arguments]))


def _ours(script: str, *arguments: str) -> Job:
    return Job(tasks.CURADOR, tasks.CURADOR, HERE / f"ours_{script}.py", arguments)


def _peer(tool: str, environment: str, what: str) -> Job:
    return Job(tool, environment, HERE / "peers" / f"measure_{tool}.py", (what,))


def together(*, long: bool) -> list[Job]:
    """Return what may run two at a time, the longest first: only errors are read off it."""
    sizes = (*tasks.SLOPE_RECORDS, tasks.SLOPE_LONG) if long else tasks.SLOPE_RECORDS
    return [
        _ours("bilinear", "slope", *(str(one) for one in sizes)),
        _peer(tasks.DIFFPRIVLIB, "diffprivlib", "pca"),
        _peer(tasks.OPENDP, "opendp-sklearn", "pca"),
        _ours("bilinear", "solvers"),
        _ours("components", "largest"),
        _ours("components", "some"),
        _peer(tasks.OPENDP, "opendp-sklearn", "models"),
        _peer(tasks.DIFFPRIVLIB, "diffprivlib", "models"),
        _ours("ratings", "ratings"),
        _ours("ratings", "films"),
        _ours("models"),
    ]


def alone(*, long: bool) -> list[Job]:
    """Return what is timed, and so has the machine to itself."""
    return [_ours("ratings", "million", str(one)) for one in (tasks.MILLIONS if long else tasks.MILLIONS[:1])]
