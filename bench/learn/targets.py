"""What curador promises about learning, checked on the outcomes of one run."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

from accounting.targets import FAIL, PASS, UNKNOWN, Check
from learn import tasks
from learn.results import power_law

if TYPE_CHECKING:
    from collections.abc import Iterator

    from learn.results import Outcome, Results

DIGITS_LIMITS = (
    (tasks.DIGITS, tasks.ADD_REMOVE, 0.001),
    (tasks.DIGITS_CENTRED, tasks.ADD_REMOVE, 0.015),
    (tasks.DIGITS_CENTRED, tasks.REPLACE_ONE, 0.03),
)
LARGEST_LIMIT = 3e-4
EXCESS_LIMITS = ((10_000, 1e-3), (100_000, 3e-5))
SLOPE_RANGE = (-1.1, -0.9)
RATINGS_LIMITS = ((4.0, 0.89), (10.0, 0.875))
ERRORS_BELOW = 3  # standard errors by which the recommender is below the others, run by run
FILMS_PAY = ((tasks.FILMS, 4.0), (tasks.FILMS, 10.0), (tasks.FILMS_SMALL, 10.0))  # where components pay
TWEETS_WORSE = 1.01  # times the error of biases alone
MILLION_SECONDS = 60
CHANCE = 3  # standard errors of a difference that are called chance: there are many differences
FEWEST = 5  # fits of a peer that are worth a comparison
COMPARED = (
    (tasks.PCA, tasks.LOST, "first component"),
    (tasks.REGRESSION, tasks.R2, "least squares, R²"),
    (tasks.LOGISTIC, tasks.ACCURACY, "logistic regression, accuracy"),
    (tasks.LOGISTIC, tasks.LOG_LOSS, "logistic regression, log loss"),
    (tasks.CLUSTERS, tasks.INERTIA, "k-means, inertia"),
)


def checks(results: Results) -> list[Check]:
    """Return every promise with what was measured."""
    found = [_complete(results)]
    found += _components(results)
    found += _bilinear(results)
    found += _ratings(results)
    for part, measure, said in COMPARED:
        found += [_against(results, part, measure, said, peer) for peer in (tasks.DIFFPRIVLIB, tasks.OPENDP)]
    return [one for one in found if one is not None]


def _complete(results: Results) -> Check:
    ours = [one for one in results.outcomes if one.tool == tasks.CURADOR]
    missing = [one for one in ours if not one.values]
    said = f"{len(ours) - len(missing)} of {len(ours)}"
    if missing:
        said += f"; {missing[0].part}, {missing[0].data}, {missing[0].form}: {missing[0].reason}"
    whole = not missing and {one.part for one in ours} == set(tasks.PARTS)
    return Check("curador answers every case", said, PASS if whole else FAIL)


def _at_most(promise: str, one: Outcome | None, limit: float) -> Check:
    if one is None:
        return Check(promise, "no answer", FAIL)
    return Check(promise, shown(one), PASS if one.mean <= limit else FAIL)


def shown(one: Outcome) -> str:
    """Return the mean, its standard error and the number of runs."""
    if len(one.values) == 1:
        return f"{one.mean:.3g}"
    return f"{one.mean:.3g} ± {one.error:.1g} ({len(one.values)})"


def _components(results: Results) -> Iterator[Check]:
    budget: dict[str, Any] = {"tool": tasks.CURADOR, "epsilon": 1.0, "delta": tasks.DELTA, "form": "auto"}
    for name, adjacency, limit in DIGITS_LIMITS:
        one = results.found(tasks.PCA, tasks.LOST, data=name, adjacency=adjacency, **budget)
        yield _at_most(f"(1, 1e-6), first component, {name}, {adjacency}: loses at most {limit:g}", one, limit)
    one = results.found(tasks.PCA, tasks.LOST, data=tasks.LARGEST.name, adjacency=tasks.ADD_REMOVE, **budget)
    yield _at_most(f"(1, 1e-6), first component, {tasks.LARGEST.name}: loses at most {LARGEST_LIMIT:g}", one, LARGEST_LIMIT)


def _bilinear(results: Results) -> Iterator[Check]:
    for count, limit in EXCESS_LIMITS:
        budget: dict[str, Any] = {"epsilon": 1.0, "delta": tasks.DELTA, "form": "pgd"}
        one = results.found(tasks.BILINEAR, tasks.EXCESS, data=f"n={count:,}", tool=tasks.CURADOR, **budget)
        yield _at_most(f"(1, 1e-6), 20 × 20, {count:,} records, by defaults: excess at most {limit:g}", one, limit)
    low, high = SLOPE_RANGE
    promise = (
        f"({tasks.SLOPE_EPSILON:g}, 1e-6), one pass with correlated noise: excess falls by a power in [{low:g}, {high:g}]"
    )
    law = power_law(results)
    if law is None:
        yield Check(promise, "no answer", FAIL)
    else:
        yield Check(promise, f"{law[0]:.3f} ± {law[1]:.3f}", PASS if low <= law[0] <= high else FAIL)


def _ratings(results: Results) -> Iterator[Check]:
    def one(name: str, epsilon: float, method: str) -> Outcome | None:
        return results.found(tasks.RATINGS, tasks.RMSE, data=name, tool=tasks.CURADOR, epsilon=epsilon, form=method)

    for epsilon, limit in RATINGS_LIMITS:
        ours = one(tasks.SYNTHETIC, epsilon, "spectral")
        yield _at_most(f"({epsilon:g}, 1e-6), recommender, {tasks.SYNTHETIC}: RMSE at most {limit:g}", ours, limit)
        for other in ("bias", "als"):
            promise = f"({epsilon:g}, 1e-6), recommender: below private {other} by more than {ERRORS_BELOW} standard errors"
            yield _below(promise, ours, one(tasks.SYNTHETIC, epsilon, other))
    for name in (tasks.FILMS, tasks.FILMS_SMALL):
        for epsilon in tasks.RATINGS_EPSILONS:
            pays = (name, epsilon) in FILMS_PAY
            said = (
                f"below private bias by more than {ERRORS_BELOW} standard errors"
                if pays
                else "not above private bias, but for chance"
            )
            found = one(name, epsilon, "spectral"), one(name, epsilon, "bias")
            promise = f"({epsilon:g}, 1e-6), recommender, {name}: {said}"
            yield _below(promise, *found) if pays else _not_above(promise, *found)
    for epsilon in tasks.RATINGS_EPSILONS:
        promise = f"({epsilon:g}, 1e-6), recommender, {tasks.TWEETS}: at most 1 % above private biases"
        if tasks.TWEETS in results.missing:
            yield Check(promise, "the table is not here", UNKNOWN)
            continue
        ours, bias = one(tasks.TWEETS, epsilon, "spectral"), one(tasks.TWEETS, epsilon, "bias")
        if ours is None or bias is None:
            yield Check(promise, "no answer", FAIL)
        else:
            ratio = ours.mean / bias.mean
            yield Check(promise, f"{100 * (ratio - 1):+.2f} %", PASS if ratio <= TWEETS_WORSE else FAIL)
    times = [one for one in results.of(tasks.MILLION, measure=tasks.SECONDS) if one.values]
    promise = f"recommender, 1,000,000 ratings, fitted in less than {MILLION_SECONDS} s"
    yield _at_most(promise, times[0] if times else None, MILLION_SECONDS)


def _below(promise: str, ours: Outcome | None, other: Outcome | None) -> Check:
    if ours is None or other is None:
        return Check(promise, "no answer", FAIL)
    apart, error = _apart(ours, other)
    return Check(promise, f"{apart:.4f} ± {error:.1g}", PASS if apart > ERRORS_BELOW * error else FAIL)


def _not_above(promise: str, ours: Outcome | None, other: Outcome | None) -> Check:
    if ours is None or other is None:
        return Check(promise, "no answer", FAIL)
    apart, error = _apart(ours, other)
    return Check(promise, f"{-apart:+.4f} ± {error:.1g}", PASS if apart > -CHANCE * error else FAIL)


def _apart(ours: Outcome, other: Outcome) -> tuple[float, float]:
    """By how much ours is below the other, on the same ratings run by run, and the standard error of that."""
    apart = [b - a for a, b in zip(ours.values, other.values, strict=True)]
    return statistics.fmean(apart), statistics.stdev(apart) / math.sqrt(len(apart))


def _against(results: Results, part: str, measure: str, said: str, peer: str) -> Check | None:
    """Whether curador's error is nowhere above the peer's but for chance, at the same ε and δ = 0."""
    promise = f"pure ε, {said}: not worse than {peer} on any set, but for chance"
    pairs: list[tuple[Outcome, Outcome]] = []
    silent = 0
    for name in results.sets(part):
        for epsilon in tasks.EPSILONS:
            same: dict[str, Any] = {"data": name, "epsilon": epsilon, "delta": tasks.PURE}
            theirs = results.found(part, measure, tool=peer, **same)
            ours = results.found(part, measure, tool=tasks.CURADOR, **same)
            if theirs is not None and ours is not None and len(theirs.values) >= FEWEST:
                pairs.append((ours, theirs))
            elif results.of(part, tool=peer, **same):
                silent += 1
    if not results.of(part, tool=peer) and peer not in results.absent:
        return None  # it has nothing of the kind
    if not pairs:
        return Check(promise, results.reason(part, tool=peer), UNKNOWN)
    worse = [f"{ours.data}, ε = {ours.epsilon:g}" for ours, theirs in pairs if _worse(ours, theirs)]
    measured = f"{len(pairs) - len(worse)} of {len(pairs)}"
    measured += f"; {silent} more where it made fewer than {FEWEST} fits" if silent else ""
    measured += f"; not on {'; '.join(worse)}" if worse else ""
    return Check(promise, measured, FAIL if worse else PASS)


def _worse(ours: Outcome, theirs: Outcome) -> bool:
    above = ours.mean - theirs.mean
    if ours.measure in tasks.HIGHER_IS_BETTER:
        above = -above
    return above > CHANCE * math.hypot(ours.error, theirs.error)
