"""The rounds of one run, pooled over its passes."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Series:
    """One case: the seconds a call of every round, or the reason why there are none."""

    part: str
    tool: str
    law: str
    kind: str
    scale: float
    draws: int
    statement: str
    seconds: tuple[float, ...] = ()
    reason: str = ""

    @property
    def best(self) -> float:
        """The quickest round's seconds a call."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The middle round's seconds a call."""
        return statistics.median(self.seconds)

    @property
    def each(self) -> float:
        """The best seconds a draw."""
        return self.best / self.draws


@dataclass(slots=True)
class Results:
    """Every series, and why a tool has none."""

    series: list[Series] = field(default_factory=list[Series])
    versions: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    absent: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, part: str) -> list[Series]:
        """Return the series of one part, in the order measured."""
        return [one for one in self.series if one.part == part]

    def found(self, part: str, tool: str, law: str, **where: Any) -> Series | None:
        """Return the series that was measured, if it was: `where` tells kind, scale or draws."""
        for one in self.of(part):
            if (one.tool, one.law) == (tool, law) and all(getattr(one, name) == value for name, value in where.items()):
                return one if one.seconds else None
        return None

    def reason(self, part: str, tool: str, law: str) -> str:
        """Return why that tool has nothing, or not everything, of that law in that part."""
        reasons = [one.reason for one in self.of(part) if (one.tool, one.law) == (tool, law) and one.reason]
        return (reasons or [self.absent.get(tool.partition(",")[0], "not run")])[0]


def pooled(lines: Iterable[dict[str, Any]]) -> list[Series]:
    """Return one series a case from the lines of all passes; a pass that failed leaves its reason."""
    rounds: dict[tuple[Any, ...], list[float]] = {}
    reasons: dict[tuple[Any, ...], str] = {}
    for line in lines:
        key = tuple(line[name] for name in ("part", "tool", "law", "kind", "scale", "draws", "statement"))
        rounds.setdefault(key, []).extend(line.get("seconds", ()))
        if "reason" in line:
            reasons[key] = line["reason"]
    return [
        Series(*key, seconds=() if key in reasons else tuple(seconds), reason=reasons.get(key, ""))
        for key, seconds in rounds.items()
    ]
