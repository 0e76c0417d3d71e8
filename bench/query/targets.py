"""What curador promises about questions, checked on one run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from accounting.targets import FAIL, PASS, UNKNOWN, Check
from query import tasks
from query.results import OURS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from query.results import Results

TIMES_PLAIN = 2.0  # and one fsync
TIMES_OPENDP = {tasks.WHOLE: 30, tasks.FILTERED: 10}
TIMES_PLAIN_FILTERED = {1_000_000: 12.0, 10_000_000: 2.2}  # fixed costs are more than plain takes on a million rows
CAPPED = ("ask, groups capped", "ask, default caps", "ask, default caps, units", "ask, private keys")
TIMES_BY_HAND = 1.3
TIMES_ROW, TIMES_ROW_NEVER = 1.3, 2.2
TIMES_MEMORY = 1.5
SMALL_SECONDS = 0.05
CHANCE = (
    1.05  # two estimates of one number from 200 redraws of 50 groups differ by less than this, but for one run in a thousand
)


def checks(results: Results) -> list[Check]:
    """Return every promise with what was measured."""
    found = [check for rows in tasks.SIZES for check in _of_size(results, rows)]
    small = results.time(tasks.SMALL, "ask")
    promise = f"a warm question on {tasks.SMALL:,} rows takes less than {SMALL_SECONDS * 1000:.0f} ms"
    found.append(_below(promise, small, SMALL_SECONDS, unit="ms", scale=1000))
    return found + [_accuracy(results, budget) for budget in tasks.BUDGETS]


def _of_size(results: Results, rows: int) -> Iterator[Check]:
    size = f"{rows:,} rows"
    yield _against_plain(results, rows, size)
    if rows == tasks.SIZES[-1]:
        for case in CAPPED:
            yield _against_plain(results, rows, size, case)
    yield _against_opendp(results, rows, tasks.WHOLE, "ask", f"{size}: prepared ask")
    filtered = results.ratio(rows, "ask, filtered", "plain, filtered")
    most = TIMES_PLAIN_FILTERED[rows]
    yield _below(f"{size}: filtered ask at most {most:g} times plain", filtered, most)
    yield _against_opendp(results, rows, tasks.FILTERED, "ask, filtered", f"{size}: filtered ask")
    for case, prefix, words in (
        ("ask, filtered", "by hand, filtered", "filtered"),
        ("ask, never prepared", "by hand, Parquet", "never prepared"),
    ):
        yield _against_hand(results, rows, case, prefix, f"{size}: inline bounding, {words}")
    for case, plain, limit, words in (
        ("ask, unit row", "plain, prepared by row", TIMES_ROW, "stored grid"),
        ("ask, unit row, never prepared", "plain, Parquet", TIMES_ROW_NEVER, "grid computed inline"),
    ):
        promise = f"{size}: unit = row, {words}, at most {limit:g} times plain"
        yield _with_tally(results, rows, promise, case, plain, limit)
    for question in tasks.QUESTIONS:
        yield _memory(results, rows, question, size)


def _against_plain(results: Results, rows: int, size: str, case: str = "ask") -> Check:
    promise = f"{size}: prepared {case} at most {TIMES_PLAIN:g} times plain and one fsync"
    ours, plain, sync = (results.time(rows, one) for one in (case, "plain, prepared", "fsync"))
    if ours is None or plain is None or sync is None:
        return Check(promise, "no answer", FAIL)
    limit = TIMES_PLAIN * plain + sync
    said = f"{ours * 1000:.1f} ms against {limit * 1000:.1f}; {ours / plain:.2f} times"
    return Check(promise, said, PASS if ours <= limit else FAIL)


def _against_opendp(results: Results, rows: int, question: str, case: str, words: str) -> Check:
    wanted = TIMES_OPENDP[question]
    promise = f"{words} at least {wanted} times faster than opendp's fastest form"
    peer, ours = results.opendp(rows, question), results.time(rows, case)
    if ours is None:
        return Check(promise, "no answer", FAIL)
    if peer is None:
        return Check(promise, results.absent.get(tasks.OPENDP_INTEGERS, "not run"), UNKNOWN)
    times = peer[1] / ours
    return Check(promise, f"{times:.0f} times", PASS if times >= wanted else FAIL)


def _against_hand(results: Results, rows: int, case: str, prefix: str, words: str) -> Check:
    promise = f"{words}, at most {TIMES_BY_HAND:g} times the best SQL by hand"
    best, ours = results.by_hand(rows, prefix), results.time(rows, case)
    if best is None or ours is None:
        return Check(promise, "no answer", FAIL)
    return Check(promise, f"{ours / best[1]:.2f} times", PASS if ours <= TIMES_BY_HAND * best[1] else FAIL)


def _with_tally(results: Results, rows: int, promise: str, case: str, plain: str, limit: float) -> Check:
    """The whole question decides; what its tally takes is said beside it."""
    check = _below(promise, results.ratio(rows, case, plain), limit)
    tally = results.ratio(rows, case.replace("ask", "of which the tally", 1), plain)
    return check if tally is None else replace(check, measured=f"{check.measured}; the tally alone {tally:.2f}")


def _memory(results: Results, rows: int, question: str, size: str) -> Check:
    promise = f"{size}: the worker's peak memory, {question}, at most {TIMES_MEMORY:g} times plain's"
    ours, plain = results.once.get((rows, f"ask {question}")), results.once.get((rows, f"plain {question}"))
    if not ours or not plain:
        return Check(promise, "no answer", FAIL)
    return _below(promise, ours["worker_mb"] / plain["peak_mb"], TIMES_MEMORY)


def _below(promise: str, value: float | None, limit: float, *, unit: str = "times", scale: float = 1.0) -> Check:
    if value is None:  # curador without an answer has not kept its promise
        return Check(promise, "no answer", FAIL)
    return Check(promise, f"{value * scale:.2f} {unit}", PASS if value <= limit else FAIL)


def _accuracy(results: Results, budget: str) -> Check:
    promise = f"{tasks.BUDGETS[budget]}: errors of count, sum and mean not above any peer's, but for chance"
    ours = results.errors.get((OURS, budget))
    peers = {peer: found for (peer, under), found in results.errors.items() if under == budget and peer != OURS}
    if ours is None:
        return Check(promise, "no answer", FAIL)
    if not peers:
        return Check(promise, "no peer was run", UNKNOWN)
    worst = max(ours[name] / found[name] for found in peers.values() for name in tasks.COLUMNS)
    return Check(promise, f"at most {worst:.3f} of {len(peers)} peers' errors", PASS if worst <= CHANCE else FAIL)
