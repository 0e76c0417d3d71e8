"""What curador promises against its peers, checked on the rows of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounting import tasks
from accounting.roster import PLD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accounting.results import Results
    from subprocesses import Row

TIMES_FASTER = {"A1": 100, "A3": 120, "A4": 100, "A2": 30, "A5": 30}  # than dp_accounting's PLD accountant
WIDTH = 1e-6
TIMES_NARROWER = 1000  # than prv_accountant's narrowest interval
PEAK_MB = 300

PASS, FAIL, UNKNOWN = "PASS", "FAIL", "not measured"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the closing section."""

    promise: str
    measured: str
    verdict: str


def checks(results: Results) -> list[Check]:
    """Return every promise with what was measured, in the order of the tasks."""
    return [check for task in results.measured for check in _of_task(results, task)]


def _of_task(results: Results, task: str) -> Iterator[Check]:
    ours = results.ours(task)
    if ours is None:
        yield Check(f"{task}: curador answers", results.our_reason(task), FAIL)
        return
    yield _speed(results, task)
    if task == "A5":
        yield from _calibration(results, ours)
    else:
        yield _width(ours)
        yield from _against_prv(results, ours)
    memory = max(row.peak_mb or 0 for row in results.our_rows(task))
    verdict = PASS if 0 < memory < PEAK_MB else UNKNOWN if memory == 0 else FAIL
    yield Check(f"{task}: peak memory below {PEAK_MB} MB", f"{memory:.0f} MB", verdict)


def _speed(results: Results, task: str) -> Check:
    wanted = TIMES_FASTER[task]
    promise = f"{task}: at least {wanted} times faster than {PLD}"
    peer = results.peer(task, PLD)
    ratio = results.ratio(peer) if peer else None
    if ratio is None:
        return Check(promise, peer.reason if peer else "", UNKNOWN)
    return Check(promise, f"{ratio:.0f} times", PASS if ratio >= wanted else FAIL)


def _width(ours: Row) -> Check:
    promise = f"{ours.task}: certified interval at most {WIDTH:g} wide, relative"
    if ours.width is None:
        return Check(promise, "no lower end", FAIL)
    return Check(promise, f"{ours.width:.1e}", PASS if 0 <= ours.width <= WIDTH else FAIL)


def _against_prv(results: Results, ours: Row) -> Iterator[Check]:
    promise = f"{ours.task}: interval at least {TIMES_NARROWER} times narrower than prv_accountant's"
    intervals = [row for row in results.peers(ours.task) if "prv_accountant" in row.tool and row.width]
    narrowest = min(intervals, key=lambda row: row.width or 0, default=None)
    if narrowest is None or not narrowest.width or narrowest.lower is None or narrowest.value is None:
        yield Check(promise, "it gave no interval", UNKNOWN)
        return
    if ours.width is None or ours.lower is None or ours.value is None:
        yield Check(promise, "no lower end", FAIL)
        return
    times = narrowest.width / ours.width if ours.width > 0 else float("inf")
    yield Check(promise, f"{times:.2g} times", PASS if times >= TIMES_NARROWER else FAIL)
    inside = narrowest.lower <= ours.lower <= ours.value <= narrowest.value
    both = f"[{narrowest.lower:.6g}, {narrowest.value:.6g}]"
    yield Check(f"{ours.task}: inside prv_accountant's interval", both, PASS if inside else FAIL)


def _calibration(results: Results, ours: Row) -> Iterator[Check]:
    promise = f"A5: the sigma spends at most epsilon {tasks.A5_EPSILON:g}"
    if ours.spent_upper is None:
        yield Check(promise, "not certified", FAIL)
    else:
        kept = ours.spent_upper <= tasks.A5_EPSILON
        yield Check(promise, f"{ours.spent_upper:.9f}", PASS if kept else FAIL)
    peer = results.peer("A5", PLD)
    promise = f"A5: the sigma is not above that of {PLD}"
    if peer is None or peer.value is None or ours.value is None:
        yield Check(promise, "", UNKNOWN)
    else:
        smaller = ours.value <= peer.value
        yield Check(promise, f"{ours.value:.6f} and {peer.value:.6f}", PASS if smaller else FAIL)
