"""What curador promises about sampling, checked on the rounds of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounting.targets import FAIL, PASS, UNKNOWN, Check
from sampling import tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sampling.results import Results

TIMES_NUMPY = {tasks.QUICK: 1.0, tasks.LEVEL: 4.0}  # of NumPy's time for a vector, at every scale
TIMES_OPENDP = 500  # its throughput, at every scale
SHORT_TIMES_NUMPY = 3.0  # of NumPy's time for a short vector as releases draw it, at every scale
POOL_SECONDS = 1e-6
CHOICE_SECONDS = 0.1
PEERS = {tasks.NUMPY, tasks.OPENDP, tasks.DIFFPRIVLIB, tasks.TMLT}


def checks(results: Results) -> list[Check]:
    """Return every promise with what was measured; the five numbers of a line are those of the five scales."""
    found = [_complete(results)]
    found += [check for law in tasks.LAWS for check in _of_law(results, law)]
    return found + [_choice(results, law) for law in tasks.SELECTIONS]


def _complete(results: Results) -> Check:
    ours = [one for one in results.series if one.tool not in PEERS]
    missing = [one for one in ours if not one.seconds]
    said = f"{len(ours) - len(missing)} of {len(ours)}"
    if missing:
        said += f"; {missing[0].tool}, {missing[0].law}: {missing[0].reason}"
    elif not ours:
        said = results.absent.get("curador", "not run")
    return Check("curador answers every case", said, PASS if ours and not missing else FAIL)


def _of_law(results: Results, law: str) -> Iterator[Check]:
    for tool, limit in TIMES_NUMPY.items():
        ratios = [against_numpy(results, tool, law, scale) for scale in tasks.SCALES]
        promise = f"{law}: {tool}, vector, at most {limit:g} times NumPy's time at each scale"
        yield _all(promise, ratios, [r is not None and r <= limit for r in ratios], results.reason(tasks.VECTORS, tool, law))
    yield _short(results, law)
    times = [against_opendp(results, law, scale) for scale in tasks.SCALES]
    promise = f"{law}: {tasks.QUICK}, vector, at least {TIMES_OPENDP} times opendp's draws a second at each scale"
    ours = all(results.found(tasks.VECTORS, tasks.QUICK, law, scale=scale) for scale in tasks.SCALES)
    if ours and None in times:
        yield Check(promise, results.reason(tasks.VECTORS, tasks.OPENDP, law), UNKNOWN)
    else:
        kept = [r is not None and r >= TIMES_OPENDP for r in times]
        yield _all(promise, times, kept, results.reason(tasks.VECTORS, tasks.QUICK, law))
    each = [results.found(tasks.SCALARS, tasks.POOL, law, scale=scale) for scale in tasks.SCALES]
    micro = [None if one is None else one.best * 1e6 for one in each]
    promise = f"{law}: {tasks.POOL}, scalar, below {POOL_SECONDS * 1e6:g} µs at each scale"
    kept = [one is not None and one.best < POOL_SECONDS for one in each]
    yield _all(promise, micro, kept, results.reason(tasks.SCALARS, tasks.POOL, law))


def _short(results: Results, law: str) -> Check:
    promise = (
        f"{law}: {tasks.AHEAD}, 10 to 1,000 numbers, at most {SHORT_TIMES_NUMPY:g} times NumPy's time; worst of the scales"
    )
    worst: list[float | None] = []
    for size in tasks.SHORT_LIST:
        where = [{"scale": scale, "draws": size} for scale in tasks.SCALES]
        pairs = [[results.found(tasks.SHORT, tool, law, **one) for tool in (tasks.AHEAD, tasks.NUMPY)] for one in where]
        ratios = [ours.best / numpy.best if ours and numpy else None for ours, numpy in pairs]
        worst.append(None if None in ratios else max(one for one in ratios if one is not None))
    kept = [one is not None and one <= SHORT_TIMES_NUMPY for one in worst]
    return _all(promise, worst, kept, results.reason(tasks.SHORT, tasks.AHEAD, law))


def _all(promise: str, numbers: list[float | None], kept: list[bool], reason: str) -> Check:
    if None in numbers:  # curador without an answer has not kept its promise
        return Check(promise, reason, FAIL)
    measured = ", ".join(f"{number:.0f}" if number >= 100 else f"{number:.2f}" for number in numbers if number is not None)
    return Check(promise, measured, PASS if all(kept) else FAIL)


def _choice(results: Results, law: str) -> Check:
    promise = f"{law} over {tasks.CANDIDATES:,} candidates below {CHOICE_SECONDS:g} s"
    one = results.found(tasks.CHOICES, tasks.RELEASE, law)
    if one is None:
        return Check(promise, results.reason(tasks.CHOICES, tasks.RELEASE, law), FAIL)
    return Check(promise, f"{one.best:.3f} s", PASS if one.best < CHOICE_SECONDS else FAIL)


def against_numpy(results: Results, tool: str, law: str, scale: float, *, median: bool = False) -> float | None:
    """Return the tool's time for a vector over NumPy's, best over best or median over median."""
    ours = results.found(tasks.VECTORS, tool, law, scale=scale)
    numpy = results.found(tasks.VECTORS, tasks.NUMPY, law, scale=scale)
    if ours is None or numpy is None:
        return None
    return ours.median / numpy.median if median else ours.best / numpy.best


def against_opendp(results: Results, law: str, scale: float) -> float | None:
    """Return how many times more integers a second curador draws than opendp, both in vectors."""
    ours = results.found(tasks.VECTORS, tasks.QUICK, law, scale=scale)
    peer = results.found(tasks.VECTORS, tasks.OPENDP, law, kind=tasks.INTEGERS, scale=scale)
    return None if ours is None or peer is None else peer.each / ours.each
