"""Auditing with a single run: many canaries, each in or out by a coin of its own, and guesses of which were in.

How many guesses can be right in one run with canaries follows by its trade-off function: of a point (ε, δ), or of a
whole loss.

Let V of at most r guesses on m canaries be right, P_c = P[V ≥ c], and f the least rate of misses at a rate of false alarms,
in either order. Fix a canary i, a side s and all other coins, and look at the event A that i is guessed to be s and at least
c − 1 of the other guesses are right. If i's coin is s, A has a probability p; if it is not, then at least f(1 − p). Over all
canaries, sides and coins the first is on average h = Σ_{j ≥ c} (j/m) P[V = j], because A with a right guess means V ≥ c; the
second at most w = Σ_{j ≥ c−1} ((r − j)/m) P[V = j]. f is convex, so w ≥ f(1 − h).

With a = (P_c + P_{c+1} + …)/m this reads h = a + (c − 1) P_c/m and w = (r − c + 1) P_{c−1}/m − a, hence

    P_{c−1} ≥ m/(r − c + 1) · (f(1 − h) + a).

Everything on the right grows with every P, so P_v ≥ τ forces each P_c for c < v to be at least what the recursion from
P_v = τ, P_{v+1} = 0 gives. If that exceeds 1, P[V ≥ v] < τ. The inequality is that of [MMC24]; the proof is the one above.

Why not P[W ≥ v] + 2mδ · max_i P[v − i ≤ W < v]/i, W ~ Binomial(r, e^ε/(1 + e^ε)), which is in use for (ε, δ)? It does not
hold for all r, v and δ. Three canaries, all guessed: let guesses with k ≥ 1 right places have probability 7^(k−1)/73 each,
and those with none 0. That is (log 7, 1/73)-private and always has a right guess, P[V ≥ 1] = 1; the formula says 0.9982.

One release of many numbers, one trained model or one whole session is enough: the canaries are its repetitions. Theorems of
[SNJ23] and [MMC24] bound how many guesses can be right, and what exceeds the bound refutes ε.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from curador.errors import InvalidParameter, require
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, open_probability, probability, whole
from curador.numerics.rounding import LIBM_ULPS, float_down, float_up, up
from curador.privacy.loss import Loss
from curador.randomness.choice import bernoulli

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import Entropy

    Run = Callable[[NDArray[np.bool_]], ArrayLike]

# ---- one run curve ---------------------------------------------------------------------------------------------------------


_FINE = 64
_OCTAVES = 44
_SLACK = 1e-6  # dominates the rounding of a hundred thousand steps
_LARGEST_MU = 64.0


class Misses(Protocol):
    """A lower bound of f(1 − h), as a function of h."""

    def at(self, h: float) -> float:
        """Return the bound at h in [0, 1]."""
        ...


@dataclass(frozen=True, slots=True)
class PointMisses:
    """f of one (ε, δ): f(1 − h) = max(0, 1 − δ − e^ε (1 − h), e^−ε (h − δ)). Rounds: down."""

    epsilon: float
    delta: float

    def at(self, h: float) -> float:
        """Return the bound at h."""
        grown = 1.0 - self.delta - math.exp(self.epsilon) * (1.0 - h) * (1 + 1e-12)
        return max(0.0, max(grown, math.exp(-self.epsilon) * (h - self.delta)) * (1 - 1e-12) - 1e-15)


@dataclass(frozen=True, slots=True, eq=False)
class CurveMisses:
    """f(1 − h) on a grid of h, constant between its points."""

    places: list[float]
    values: list[float]

    def at(self, h: float) -> float:
        """Return the bound at the next place below."""
        return self.values[bisect_right(self.places, h) - 1]


def curve_of(tradeoff: Callable[[FloatArray], FloatArray]) -> CurveMisses:
    """Return the curve of a trade-off function. Rounds: down, since f(1 − h) grows with h."""
    places = np.concatenate([[0.0], np.exp2(np.arange(-_OCTAVES * _FINE, 1) / _FINE)])
    rates = np.minimum(np.nextafter(1.0 - places, 2.0), 1.0)
    values = np.maximum(np.asarray(tradeoff(rates), np.float64), 0.0)
    return CurveMisses(places.tolist(), values.tolist())


def exceeds(misses: Misses, correct: int, *, guesses: int, canaries: int, alpha: float) -> bool:
    """Return whether so many right guesses have a probability below alpha wherever the trade-off function is at least f.

    Claim   The recursion above from P[V ≥ correct] = alpha leads above 1.
    Needs   Fair, independent coins; at most `guesses` guesses.
    """
    tail, before = alpha, alpha / canaries
    for place in range(correct, 0, -1):
        h = before + (place - 1) * tail / canaries
        tail = max(tail, canaries / (guesses - place + 1) * (misses.at(min(h, 1.0)) + before))
        if tail > 1.0 + _SLACK:
            return True
        before += tail / canaries
    return False


def refutes(loss: Loss, counts: list[tuple[int, int]], canaries: int, alpha: float) -> bool:
    """Return whether any of (right guesses, guesses) refutes the loss, false with probability at most alpha in all."""
    curve = curve_of(lambda rates: np.asarray(loss.tradeoff(rates)))
    return any(exceeds(curve, v, guesses=r, canaries=canaries, alpha=alpha / len(counts)) for v, r in counts)


def one_run_mu(correct: int, *, guesses: int, canaries: int, confidence: Number = "0.95") -> float:
    """Return the μ below which no run with so many right guesses is μ-Gaussian-DP.

    Claim   If the run is μ-GDP the bound exceeds μ with probability at most 1 − confidence.
    Needs   Fair, independent coins; a number of guesses fixed before the run.
    Rounds  Down.
    Source  [MMC24], [DRS19]
    """
    from curador.privacy.odds import tradeoff_gaussian

    v, r, m = whole(correct, "correct", least=0), whole(guesses, "guesses"), whole(canaries, "canaries")
    alpha = float_down(1 - open_probability(confidence, "confidence"))

    def false(mu: float) -> bool:
        curve = curve_of(lambda rates: np.asarray(tradeoff_gaussian(rates, mu=mu)))
        return exceeds(curve, v, guesses=r, canaries=m, alpha=alpha)

    low, high = 0.0, _LARGEST_MU
    if not false(0.0):
        return 0.0
    while high - low > 1e-4 * high:
        middle = (low + high) / 2 if low == 0.0 else math.sqrt(low * high)
        low, high = (middle, high) if false(middle) else (low, middle)
    return low


# ---- one run ---------------------------------------------------------------------------------------------------------------


MOST = 100_000
"""Canaries of one run, at most."""

_OUTWARD = 1 + 2.0**-30  # dominates the error of binomial tails; the tests compare them with 50 digits
_FEWEST = 8
_LARGEST = 64.0


@dataclass(frozen=True, slots=True)
class OneRun:
    """What one run proves: with the confidence, no ε below `epsilon` is true at `delta`.

    claim    the ε that is proved for what was run, at delta, where it is known
    beyond   whether so many right guesses are beyond the whole trade-off function of what is proved
    """

    epsilon: float
    delta: float
    confidence: float
    canaries: int
    guesses: int
    correct: int
    claim: float | None = None
    beyond: bool = False

    @property
    def accuracy(self) -> float:
        """The share of guesses that were right."""
        return self.correct / self.guesses if self.guesses else 0.0

    @property
    def refuted(self) -> bool:
        """Whether what is proved cannot be true: the bound is above the claim, or the guesses are beyond the curve."""
        return self.beyond or (self.claim is not None and self.epsilon > self.claim)

    def __str__(self) -> str:
        proved = "" if self.claim is None else f", proved at most {self.claim:.4g}: {'REFUTED' if self.refuted else 'stands'}"
        return (
            f"{self.canaries:,} canaries, {self.correct:,} of {self.guesses:,} guesses right: "
            f"ε ≥ {self.epsilon:.4g} at δ = {self.delta:.3g} with confidence {self.confidence:.6g}{proved}"
        )


def p_value(correct: int, *, guesses: int, canaries: int, epsilon: float, delta: Number = 0) -> float:
    """Return how likely an (ε, δ)-private run lets so many guesses be right, at most.

    Claim   δ = 0: P[V ≥ v] ≤ P[W ≥ v], W ~ Binomial(r, e^ε/(1 + e^ε)), where V of r guesses on m canaries are right; given
            the output, even if r was chosen after seeing it. δ > 0: the largest probability that the recursion of
            one_run_curve allows. Both grow with ε.
    Needs   Coins that are fair, independent and unseen but through the run; for δ > 0, at most r guesses, r fixed before it.
    Rounds  Up.
    Source  [SNJ23] for δ = 0, [MMC24] for δ > 0.
    """
    r, m, v = _numbers(correct, guesses, canaries)
    require(epsilon >= 0.0, "epsilon", "at least 0", epsilon)
    failure = float_up(probability(delta, "delta"))
    if v == 0:
        return 1.0
    if failure == 0.0:
        return _tail(v, r, epsilon)
    point = PointMisses(epsilon, failure)
    low, high = -800.0, 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        refuted = exceeds(point, v, guesses=r, canaries=m, alpha=math.exp(middle))
        low, high = (low, middle) if refuted else (middle, high)
    return min(1.0, math.exp(high) * (1 + 1e-12))


def _numbers(correct: int, guesses: int, canaries: int) -> tuple[int, int, int]:
    r, m, v = whole(guesses, "guesses", least=0), whole(canaries, "canaries"), whole(correct, "correct", least=0)
    require(v <= r <= m <= MOST, "correct", f"at most guesses, at most canaries, at most {MOST}", (v, r, m))
    return r, m, v


def _tail(correct: int, guesses: int, epsilon: float) -> float:
    """P[Binomial(guesses, e^ε/(1 + e^ε)) ≥ correct]. Rounds: up."""
    from scipy.special import betainc

    chance = up(1.0 / (1.0 + math.exp(-epsilon)), 2.0 * LIBM_ULPS)
    if chance >= 1.0 or correct == 0:
        return 1.0
    return min(1.0, float(betainc(correct, guesses - correct + 1, chance)) * _OUTWARD)


def one_run_bound(correct: int, *, guesses: int, canaries: int, delta: Number = 0, confidence: Number = "0.95") -> float:
    """Return the ε below which no claim at δ is true, after so many of the guesses on so many canaries were right.

    Claim   If the run is (ε, δ)-private the bound exceeds ε with probability at most 1 − confidence: the p-value grows with
            ε, and at the bound it was seen to be at most 1 − confidence.
    Needs   See p_value.
    Rounds  Down.
    Source  [SNJ23], [MMC24]
    """
    r, m, v = _numbers(correct, guesses, canaries)
    alpha = float_down(1 - open_probability(confidence, "confidence"))
    return _invert_tail(v, r, m, float_up(probability(delta, "delta")), alpha)


def _invert_tail(correct: int, guesses: int, number: int, delta: float, alpha: float) -> float:
    def false(epsilon: float) -> bool:
        if correct == 0:
            return False
        if delta == 0.0:
            return _tail(correct, guesses, epsilon) <= alpha
        return exceeds(PointMisses(epsilon, delta), correct, guesses=guesses, canaries=number, alpha=alpha)

    if not false(0.0):
        return 0.0
    low, high = 0.0, _LARGEST
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if false(middle) else (low, middle)
    return low


def one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: Number = 0,
    confidence: Number = "0.95",
    guesses: int | str | None = None,
    loss: Loss | None = None,
) -> OneRun:
    """Return what one run proves about its ε, from a score of each canary and whether it was in.

    scores     the larger, the likelier the canary was in; computed from what was released alone
    guesses    how many canaries to guess, fixed before the run: those furthest from the middle of all scores, *in* above it
               and *out* below. None: all canaries, half of them, a quarter and so on, the error probability shared among
               these. "sign": the scores are the guesses, above 0 *in*, below 0 *out*, 0 no guess
    loss       what is proved of what was run, to be compared with: half of the error probability then goes to comparing the
               guesses with its whole trade-off function

    Claim   As one_run_bound; a true loss is refuted with probability at most 1 − confidence. Guesses may depend on everything
            that was released, and for δ = 0 so may their number: given the output, each canary's coin is guessed right with
            probability at most e^ε/(1 + e^ε), whatever the others showed.
    Needs   `included` are fair, independent coins, and the scores do not depend on them but through the run. Neighbours are
            runs that differ in one canary being in or out.
    Source  [SNJ23]; [MMC24] and curador.audit.one_run for δ > 0 and for the whole function.
    """
    marks, coins = _marks(scores), _coins(included)
    require(len(marks) == len(coins), "scores", "one a canary", f"{len(marks)} for {len(coins)} canaries")
    failure, level, claim = _read_options(len(coins), delta, confidence, guesses, loss)
    counts = _counts(marks, coins, guesses, failure)
    alpha = float_down(1 - level) / (1 if loss is None else 2)
    share = alpha / len(counts) * (1 - 1e-15)
    found = [(_invert_tail(v, r, len(coins), float_up(failure), share), v, r) for v, r in counts]
    epsilon, correct, made = max(found)
    if (
        guesses == "sign"
    ):  # the curve's theorem needs a number from before the run: there are as many guesses as canaries at most
        counts = [(correct, len(coins))]
    beyond = loss is not None and refutes(loss, counts, len(coins), alpha)
    return OneRun(epsilon, float_up(failure), float_up(level), len(coins), made, correct, claim, beyond)


@dataclass(frozen=True, slots=True)
class _Coins:
    """Fair coins: which canaries are in. Nobody's data."""

    def draw(self, value: int, source: Entropy, size: int | None = None) -> NDArray[np.bool_]:
        """Throw so many coins."""
        thrown = bernoulli(Fraction(1, 2), value * (1 if size is None else size), source)
        return thrown if size is None else thrown.reshape(size, value)

    def within(self, one: int, other: int) -> bool:
        """Whether as many are thrown."""
        return one == other


def canaries(
    run: Run,
    *,
    canaries: int,
    delta: Number = 0,
    confidence: Number = "0.95",
    guesses: int | str | None = None,
    loss: Loss | None = None,
) -> OneRun:
    """Throw a fair coin a canary, call `run(included)` once, and audit by the scores that it returns.

    `run` puts those canaries in that are True, releases, and returns a score a canary from what was released; it must not
    look at `included` otherwise. See one_run for the rest.
    """
    count = whole(canaries, "canaries")
    require(count <= MOST, "canaries", f"at most {MOST}", canaries)
    _read_options(count, delta, confidence, guesses, loss)  # refused before anything is run
    included: NDArray[np.bool_] = perform(_Coins(), count)
    scores = run(included.copy())
    return one_run(scores, included, delta=delta, confidence=confidence, guesses=guesses, loss=loss)


def histogram_run(mechanism: Any) -> Run:
    """Return a run for `canaries`: everybody has a cell of a histogram alone, and all cells are released with noise at once.

    The mechanism must be for a sensitivity of at least 1, which is what one canary moves: DiscreteLaplace, or one of the
    others that add noise, with a dimension. The score of a canary is its noisy count.
    """
    moves = getattr(mechanism, "sensitivity_squared", None)
    squared = getattr(mechanism, "sensitivity", 0) ** 2 if moves is None else moves
    require(squared >= 1, "mechanism", "noise for a sensitivity of at least 1", mechanism)

    def run(included: NDArray[np.bool_]) -> NDArray[Any]:
        return np.asarray(mechanism.release(included.astype(np.int64)), np.float64)

    return run


def fit_run(
    fit: Callable[[FloatArray], Any], records: ArrayLike, marked: ArrayLike, score: Callable[[Any, FloatArray], Any]
) -> Run:
    """Return a run for `canaries`: fit on the records and those of the marked ones that are in, then score each marked one.

    fit       a private estimator of rows: what it returns is what is released
    score     (what fit returned, marked records) → one number a marked record
    """
    kept, extra = np.asarray(records, np.float64), np.asarray(marked, np.float64)
    require(kept.shape[1:] == extra.shape[1:], "marked", "records of the same shape", extra.shape)

    def run(included: NDArray[np.bool_]) -> ArrayLike:
        require(len(included) == len(extra), "canaries", f"{len(extra)}, as many as are marked", len(included))
        return cast("ArrayLike", score(fit(np.concatenate([kept, extra[included]])), extra))

    return run


# ---- reading --------------------------------------------------------------------------------------------------------


def _marks(scores: ArrayLike) -> FloatArray:
    marks = np.asarray(scores, np.float64)
    require(marks.ndim == 1 and 0 < len(marks) <= MOST, "scores", f"1 to {MOST} numbers", marks.shape)
    require(not bool(np.isnan(marks).any()), "scores", "without NaN", "a NaN")
    return marks


def _coins(included: ArrayLike) -> NDArray[np.bool_]:
    coins = np.asarray(included)
    if coins.dtype != np.bool_ or coins.ndim != 1:
        raise InvalidParameter.must_be("included", "booleans, one a canary", f"an array of {coins.dtype}")
    return cast("NDArray[np.bool_]", coins)


def _read_options(
    count: int, delta: Number, confidence: Number, guesses: object, loss: object
) -> tuple[Fraction, Fraction, float | None]:
    """δ, the confidence and the claim, if what is asked can be answered for so many canaries."""
    failure, level = probability(delta, "delta"), open_probability(confidence, "confidence")
    if isinstance(guesses, str):
        require(guesses == "sign", "guesses", 'a number, "sign" or None', guesses)
    elif guesses is not None:
        require(whole(guesses, "guesses") <= count, "guesses", f"at most {count}, one a canary", guesses)
    if loss is None:
        return failure, level, None
    if not isinstance(loss, Loss):
        raise InvalidParameter.must_be("loss", "a loss", loss)
    return failure, level, loss.epsilon(failure)


def _counts(marks: FloatArray, coins: NDArray[np.bool_], guesses: object, delta: Fraction) -> list[tuple[int, int]]:
    """Right guesses, and guesses, for each number of guesses that is tried."""
    if isinstance(guesses, str):
        made = marks != 0
        hint = "the theorem needs their number to be fixed before the run: give a number, and guess every canary by its score"
        require(
            delta == 0 or bool(made.all()),
            "guesses",
            'a number where delta is above 0 and "sign" leaves some out',
            guesses,
            hint,
        )
        return [(int(np.sum((marks > 0)[made] == coins[made])), int(made.sum()))]
    if guesses is None:
        sizes = [len(marks)]
        while sizes[-1] // 2 >= _FEWEST:
            sizes.append(sizes[-1] // 2)
    else:
        sizes = [whole(guesses, "guesses")]
    middle = _middle(marks)
    right = (marks > middle) == coins
    surest = np.argsort(-np.abs(marks - middle), kind="stable")
    return [(int(np.sum(right[surest[:size]])), size) for size in sizes]


def _middle(marks: FloatArray) -> float:
    """Between canaries that seem in and out: the mean, a twentieth at both ends cut. A function of the scores alone."""
    low, high = np.quantile(marks, [0.05, 0.95], method="nearest")
    middle = float(np.clip(marks, low, high).mean()) if np.isfinite([low, high]).all() else 0.0
    return middle if low < middle < high else float(low + high) / 2 if np.isfinite([low, high]).all() else 0.0
