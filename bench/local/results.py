"""The outcomes of one run, and what is read off them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field, fields
from typing import Any

from local import tasks


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one tool gave in one case: numbers, or the reason why there are none."""

    part: str
    protocol: str
    tool: str
    epsilon: float
    histogram: str = ""
    form: str = ""
    variant: str = ""
    values: tuple[float, ...] = ()
    people: int = 0
    measured: float | None = None
    once: float | None = None
    client: float | None = None
    peak_mb: float | None = None
    reason: str = ""

    @property
    def mean(self) -> float:
        """The mean over runs."""
        return statistics.fmean(self.values)

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 of a single run."""
        return statistics.stdev(self.values) / math.sqrt(len(self.values)) if len(self.values) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Ratio:
    """Our mean over another's, with its standard error."""

    ours: Outcome
    theirs: Outcome

    @property
    def value(self) -> float:
        """The ratio itself."""
        return self.ours.mean / self.theirs.mean

    @property
    def error(self) -> float:
        """Its standard error, both sides' together."""
        return self.value * math.hypot(self.ours.error / self.ours.mean, self.theirs.error / self.theirs.mean)


@dataclass(slots=True)
class Results:
    """Every outcome, the versions, and why a tool has none."""

    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    versions: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    absent: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, line: dict[str, Any]) -> None:
        """Add a line that a script printed."""
        known = {one.name for one in fields(Outcome)}
        kept = {name: value for name, value in line.items() if name in known}
        self.outcomes.append(Outcome(**kept | {"values": tuple(line["values"])}))

    def of(self, part: str, **where: Any) -> list[Outcome]:
        """Return the outcomes of a part that are as told, in the order measured."""
        wanted = {"part": part} | where
        return [one for one in self.outcomes if all(getattr(one, name) == value for name, value in wanted.items())]

    def found(self, part: str, **where: Any) -> Outcome | None:
        """Return the outcome that is as told and has numbers; of our times, taken before and after, the longer."""
        some = [one for one in self.of(part, **where) if one.values]
        return max(some, key=lambda one: one.mean) if some else None

    def variants(self, part: str, protocol: str, tool: str) -> list[str]:
        """Return the names of what a tool has of that protocol; one empty name where it has one thing only."""
        return list(dict.fromkeys(one.variant for one in self.of(part, protocol=protocol, tool=tool)))

    def peers(self, part: str, protocol: str) -> list[tuple[str, str]]:
        """Return every peer's tool and variant of a protocol."""
        return [(tool, variant) for tool in tasks.PEERS for variant in self.variants(part, protocol, tool)]
