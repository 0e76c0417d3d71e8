"""The outcomes of one run: every fit's number, and what is read off them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field, fields
from typing import Any

from learn import tasks


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one tool gave in one case: a number a run, or the reason why there is none."""

    part: str
    data: str
    tool: str
    epsilon: float
    delta: float
    adjacency: str
    form: str = ""
    measure: str = ""
    values: tuple[float, ...] = ()
    seconds: float | None = None
    asked: int = 0
    reason: str = ""

    @property
    def mean(self) -> float:
        """The mean over runs."""
        return statistics.fmean(self.values)

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 of a single run."""
        return statistics.stdev(self.values) / math.sqrt(len(self.values)) if len(self.values) > 1 else 0.0


@dataclass(slots=True)
class Results:
    """Every outcome, the versions, why a tool has none, and which tables were not there."""

    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    versions: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    absent: dict[str, str] = field(default_factory=dict[str, str])
    missing: list[str] = field(default_factory=list[str])

    def add(self, line: dict[str, Any]) -> None:
        """Add a line that a script printed."""
        known = {one.name for one in fields(Outcome)}
        kept = {name: value for name, value in line.items() if name in known}
        self.outcomes.append(Outcome(**kept | {"values": tuple(line["values"])}))

    def of(self, part: str, **where: Any) -> list[Outcome]:
        """Return the outcomes of a part, in the order measured, that are as told."""
        wanted = {"part": part} | where
        return [one for one in self.outcomes if all(getattr(one, name) == value for name, value in wanted.items())]

    def found(self, part: str, measure: str, **where: Any) -> Outcome | None:
        """Return the best of the outcomes that are as told and have numbers: a tool of several forms shows its best."""
        some = [one for one in self.of(part, measure=measure, **where) if one.values]
        if not some:
            return None
        return (max if measure in tasks.HIGHER_IS_BETTER else min)(some, key=lambda one: one.mean)

    def reason(self, part: str, **where: Any) -> str:
        """Return why there is nothing."""
        reasons = [one.reason for one in self.of(part, **where) if one.reason]
        return (reasons or [self.absent.get(str(where.get("tool", "")), "not run")])[0]

    def sets(self, part: str) -> list[str]:
        """Return the data of a part, in the order measured by curador."""
        return list(dict.fromkeys(one.data for one in self.of(part, tool=tasks.CURADOR)))


def power_law(results: Results) -> tuple[float, float] | None:
    """Return the exponent of the excess in the number of records, by least squares on logarithms of means, and half the width
    of its 95 % interval: the errors of the means are carried through the fit.
    """  # noqa: D205 -- one sentence
    points = [one for one in results.of(tasks.SLOPE, measure=tasks.EXCESS) if one.values and one.mean > 0]
    if len(points) < 2:
        return None
    across = [math.log(float(one.data.removeprefix("n=").replace(",", ""))) for one in points]
    heights = [math.log(one.mean) for one in points]
    middle = statistics.fmean(across)
    spread = sum((one - middle) ** 2 for one in across)
    weights = [(one - middle) / spread for one in across]
    slope = sum(weight * height for weight, height in zip(weights, heights, strict=True))
    chance = math.sqrt(sum((weight * one.error / one.mean) ** 2 for weight, one in zip(weights, points, strict=True)))
    return slope, 1.96 * chance
