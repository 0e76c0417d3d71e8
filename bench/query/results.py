"""What one run found: times by size and case, things done once, peers' times, errors."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

OURS = "curador"


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds of every round of one case, or the reason why there are none."""

    seconds: tuple[float, ...] = ()
    cpu: float | None = None
    peak_mb: float | None = None
    reason: str = ""
    more: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def best(self) -> float:
        """The quickest round."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.seconds)


@dataclass(slots=True)
class Results:
    """Everything, by size and name."""

    ours: dict[tuple[int, str], Times] = field(default_factory=dict[tuple[int, str], Times])
    once: dict[tuple[int, str], dict[str, float]] = field(default_factory=dict[tuple[int, str], dict[str, float]])
    peers: dict[tuple[int, str, str], Times] = field(default_factory=dict[tuple[int, str, str], Times])
    errors: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict[tuple[str, str], dict[str, float]])
    coverage: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    absent: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, str] = field(default_factory=dict[str, str])
    loads: list[float] = field(default_factory=list[float])

    def add_case(self, line: dict[str, Any]) -> None:
        """Take a line of `ours.py`; a second pass adds its rounds."""
        key = line["rows"], line["case"]
        before = self.ours.get(key, Times())
        if "reason" in line:
            self.ours[key] = Times(reason=line["reason"])
        elif not before.reason:
            cpu = min(line["cpu_seconds"], before.cpu or line["cpu_seconds"])
            self.ours[key] = Times((*before.seconds, *line["seconds"]), cpu)

    def add_peer(self, peer: str, line: dict[str, Any]) -> None:
        """Take a line of a peer's script."""
        if "versions" in line:
            self.versions |= {
                name: number for name, number in line["versions"].items() if name not in {"python", "numpy", "scipy"}
            }
        elif line["case"] == "error":
            self.errors[peer, line["budget"]] = line["errors"]
        else:
            more = {name: line[name] for name in ("building", "running") if name in line}
            times = Times(tuple(line["seconds"]), peak_mb=line.get("peak_mb"), more=more)
            self.peers[line["rows"], peer, line["question"]] = times

    def time(self, rows: int, case: str) -> float | None:
        """Return the best time of a case of ours, if it has one."""
        found = self.ours.get((rows, case))
        return found.best if found and found.seconds else None

    def ratio(self, rows: int, case: str, to: str) -> float | None:
        """Return best over best of two cases."""
        above, below = self.time(rows, case), self.time(rows, to)
        return None if above is None or below is None else above / below

    def by_hand(self, rows: int, prefix: str) -> tuple[str, float] | None:
        """Return the fastest of the cases that begin with this, and its time."""
        found = [
            (name, times.best)
            for (size, name), times in self.ours.items()
            if size == rows and name.startswith(prefix) and times.seconds
        ]
        return min(found, key=lambda one: one[1], default=None)

    def opendp(self, rows: int, question: str) -> tuple[str, float] | None:
        """Return opendp's fastest form and its time."""
        found = [
            (name, times.best)
            for (size, name, asked), times in self.peers.items()
            if (size, asked) == (rows, question) and name.startswith("opendp") and times.seconds
        ]
        return min(found, key=lambda one: one[1], default=None)
