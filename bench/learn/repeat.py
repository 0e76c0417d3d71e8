"""Fit a model several times and print one line a measure: standard library only, for every environment.

Promise: a case that fails is a line with the reason; one that takes too many CPU seconds is stopped, and the fits that were
done by then count, with their number.
"""

from __future__ import annotations

import json
import signal
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import stopwatch
from environments import last_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of a table."""

    part: str
    data: str
    tool: str
    epsilon: float
    delta: float
    adjacency: str
    form: str = ""  # the method, or whatever else tells it from the tool's other cases


class TimeUpError(Exception):
    """The case has taken as long as it may."""


class _Clock:
    """Stops a case that has used up its CPU seconds: raises wherever the program is, and remembers that it did."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.late = False

    def __enter__(self) -> Self:
        if self.limit is not None:
            signal.signal(signal.SIGPROF, self._stop)
            signal.setitimer(signal.ITIMER_PROF, self.limit, 1.0)  # again each second: a foreign frame may swallow the first
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _stop(self, *_: object) -> None:
        self.late = True
        raise TimeUpError


def repeated(case: Case, once: Callable[[], Mapping[str, float]], runs: int, limit: float | None = None) -> None:
    """Call `once`, which fits and judges, that many times or until the time is up; print what it returned."""
    values: dict[str, list[float]] = {}
    seconds: list[float] = []
    reason = ""
    clock = _Clock(limit)
    try:
        with clock:
            for _ in range(runs):
                begun = time.perf_counter()
                found = once()
                seconds.append(time.perf_counter() - begun)
                for name, value in found.items():
                    values.setdefault(name, []).append(float(value))
    except Exception as error:
        reason = _said(error)
        if clock.late:
            reason = "" if seconds else f"no fit within {limit:g} s"
    line: dict[str, Any] = asdict(case) | {"asked": runs}
    if reason:
        print(json.dumps(line | {"measure": "", "values": [], "reason": reason}), flush=True)
        return
    for name, many in values.items():
        print(json.dumps(line | {"measure": name, "values": many, "seconds": statistics.median(seconds)}), flush=True)


def _said(error: Exception) -> str:
    """Return the error in one line."""
    text = f"{type(error).__name__}: {last_words(str(error), '').partition(' (/')[0]}"
    return text if len(text) <= 160 else text[:157] + "..."


def introduce(distributions: Sequence[str]) -> None:
    """Print the line with the versions."""
    print(json.dumps({"versions": stopwatch.versions(distributions)}), flush=True)
