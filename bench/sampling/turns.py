"""Time statements by turns, in every environment: standard library only.

Promise: the cases of a group are timed in turn, round by round, so that whatever else the machine does falls on
all of them alike; a round lasts at least a fiftieth of a second, so that short calls are timed in thousands and
what they refill now and then is counted; a first stretch that finds out how many calls that takes is the warm-up;
a case that fails is a line with the reason. One JSON line a case, with the seconds a call of every round.
"""

from __future__ import annotations

import json
import timeit
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROUND_SECONDS = 0.02
SLOW_SECONDS, VERY_SLOW_SECONDS = 0.15, 0.5  # a call; above, one round; above, not even a second call to warm up
ROUNDS = 3  # in one process; the room runs several by turns


@dataclass(frozen=True, slots=True)
class Case:
    """One statement to time, the names it uses, and where it belongs in the tables."""

    part: str
    tool: str
    law: str
    kind: str
    scale: float
    draws: int  # in one execution of the statement
    statement: str
    prepare: Callable[[], dict[str, Any]]

    def line(self) -> dict[str, Any]:
        """Return what identifies the case, for its line."""
        names = ("part", "tool", "law", "kind", "scale", "draws", "statement")
        return {name: getattr(self, name) for name in names}


def main(groups: Iterable[Sequence[Case]], distributions: Sequence[str]) -> None:
    """Time every group and print its lines, after a line with the versions."""
    print(json.dumps({"versions": stopwatch.versions(distributions)}))
    for group in groups:
        for line in by_turns(group):
            print(json.dumps(line), flush=True)


def by_turns(group: Sequence[Case]) -> list[dict[str, Any]]:
    """Return one line a case: the seconds a call of each round, or the reason why there are none."""
    lines = [case.line() for case in group]
    ready: list[tuple[dict[str, Any], timeit.Timer, int]] = []
    slowest = 0.0
    for case, line in zip(group, lines, strict=True):
        try:
            timer = timeit.Timer(case.statement, globals=case.prepare())
            calls, seconds = _calls(timer)
        except Exception as error:
            line["reason"] = _said(error)
        else:
            line["seconds"] = []
            ready.append((line, timer, calls))
            slowest = max(slowest, seconds)
    for _ in range(ROUNDS if slowest < SLOW_SECONDS else 1):
        for line, timer, calls in ready:
            line["seconds"].append(timer.timeit(calls) / calls)
    return lines


def _said(error: Exception) -> str:
    """Return the error in one line, without the place of the file that an ImportError names at its end."""
    return f"{type(error).__name__}: {error}".splitlines()[0].partition(" (/")[0]


def _calls(timer: timeit.Timer) -> tuple[int, float]:
    """Return how many calls fill a round, and the seconds of one."""
    first = timer.timeit(1)  # loads modules, makes tables
    if first >= VERY_SLOW_SECONDS:
        return 1, first
    calls = 1
    while True:
        taken = timer.timeit(calls)
        if taken >= ROUND_SECONDS / 4:
            return max(1, round(calls * ROUND_SECONDS / taken)), taken / calls
        calls *= 4
