"""What every measured script says, in every environment: one JSON line a case, after one with the versions.

Promise: a case that fails is a line with the reason; a peer stops after its CPU seconds, and the runs done by then count.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import stopwatch
from environments import last_words
from local import data, tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of a table."""

    part: str
    protocol: str
    tool: str
    epsilon: float
    histogram: str = ""
    form: str = ""  # unbiased or consistent; or whatever else tells it from the tool's other cases
    variant: str = ""  # the tool's own name of what it does, where it has several


def say(case: Case, **found: Any) -> None:
    """Print the line of a case."""
    print(json.dumps(asdict(case) | found), flush=True)


def introduce(distributions: Sequence[str]) -> None:
    """Print the line with the versions."""
    print(json.dumps({"versions": stopwatch.versions(distributions)}), flush=True)


def reason(error: Exception) -> str:
    """Return the error in one line."""
    return f"{type(error).__name__}: {last_words(str(error), '')}"


def errors(case: Case, once: Callable[[np.ndarray], Mapping[str, np.ndarray]], runs: int, limit: float | None = None) -> None:
    """Estimate the histogram again and again; print the mean squared error of every run, a line a form."""
    counts = data.histogram(case.histogram)
    values = data.people(counts)
    found: dict[str, list[float]] = {}
    begun = time.process_time()
    try:
        for done in range(runs):
            if limit is not None and done and time.process_time() - begun > limit:
                break
            for form, estimate in once(values).items():
                found.setdefault(form, []).append(float(np.mean((np.asarray(estimate, float) - counts) ** 2)))
    except Exception as error:
        say(case, values=[], reason=reason(error))
        return
    for form, many in found.items():
        record = asdict(case) | {"form": form}
        say(Case(**record), values=many)


def speed(case: Case, each: Callable[[Sequence[int]], float], fixed: Callable[[], float]) -> None:
    """Print how long a million people take a peer, all told.

    `each` takes so many people through client and aggregation and returns its seconds, which grow in proportion to the
    people; `fixed` returns those of what is done once. All people are measured where that is quick; else a part, scaled.
    """
    counts = data.histogram(tasks.ZIPF, tasks.MANY_PEOPLE, tasks.MANY_VALUES)
    values = data.people(counts).tolist()
    try:
        each(values[:200])  # the first call may compile
        few = min(each(values[:1000]) for _ in range(tasks.PEER_TIMES)) / 1000
        number = tasks.MANY_PEOPLE
        if few * number > tasks.WHOLE_SECONDS:
            number = max(500, min(tasks.PART_PEOPLE, int(tasks.PART_SECONDS / few)))
        seconds = min(each(values[:number]) for _ in range(tasks.PEER_TIMES))
        once = fixed()
    except Exception as error:
        say(case, values=[], reason=reason(error))
        return
    total = seconds * tasks.MANY_PEOPLE / number + once
    say(case, values=[total], people=number, measured=seconds, once=once, peak_mb=stopwatch.peak_mb())
