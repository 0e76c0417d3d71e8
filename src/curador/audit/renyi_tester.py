"""A lower bound of the Rényi divergence of two worlds, of any order from 1 to ∞, by bets on means.

The means.   Bounds of a mean of few known values by one bet, valid for every sample size.

Somebody bets the same share against "the mean is m" on every sample. If the mean is m the expected capital stays 1, so that
by Markov's inequality it reaches 1/α with probability at most α, whatever the law. The bound is the last m that it refutes.
The bet may be anything fixed beforehand; a good one is learned on other samples, and the bound is then as narrow as a
Chernoff bound made for the law itself.

The divergence.

By Hölder's inequality every guess r of the likelihood ratio gives a lower bound, and the right one the divergence itself:

    D_α(P‖Q) ≥ α/(α − 1) · log E_P[r^(α−1)] − log E_Q[r^α],     α > 1,
    D_1(P‖Q) ≥ E_P[log r] − log E_Q[r].

The guess is a step function learned on a part of the samples; both means are then bounded on the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.audit.bounds import lower_bound
from curador.audit.hockey_stick import CONFIDENCE, error_of
from curador.audit.partition import Parted, Partition, part_scores, partition
from curador.errors import require
from curador.numerics.exact import Number, at_least_zero
from curador.numerics.rounding import float_up
from curador.privacy.loss import Loss
from curador.privacy.renyi import order_of

if TYPE_CHECKING:
    from curador.audit.bounds import IntArray
    from curador.numerics.rounding import FloatArray


# ---- means -----------------------------------------------------------------------------------------------------------------


_SLACK = 1e-6
"""Added to the logarithm of the capital that refutes: dominates the error of a sum of a thousand logarithms times counts."""

_STEPS = 60
_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99])
_FACTORS = np.array([0.7, 0.85, 1.0, 1.2, 1.4])


def mean_at_least(values: FloatArray, counts: IntArray, *, bet: float, error: float) -> float:
    """Return a lower bound of the mean of values seen so many times each.

    Claim   Above the mean with probability at most `error`.
    Needs   Independent samples of one law, each one of `values`; a bet above 0 that does not depend on them.
    Rounds  Down.
    Source  [WR24] with one bet: where the mean is μ < min + 1/bet, E[1 + bet (X − μ)] = 1 and every factor is positive, so
            P[∏ (1 + bet (X − μ)) ≥ 1/error] ≤ error; the product falls with μ, and the bound is where it is 1/error, at most
            min + 1/bet, and at least min.
    """
    return float(_lowest(np.asarray(values, np.float64), np.asarray(counts, np.float64), np.array([bet]), error)[0])


def mean_at_most(values: FloatArray, counts: IntArray, *, bet: float, error: float) -> float:
    """Return an upper bound of the mean, as `mean_at_least` of the negatives. Rounds: up."""
    return -mean_at_least(-np.asarray(values, np.float64), counts, bet=bet, error=error)


def good_bet(values: FloatArray, shares: FloatArray, size: float, *, error: float) -> tuple[float, float]:
    """Return the bet, and the bound, that would prove most from below if the values had these shares of `size` samples."""
    mean = float(values @ shares)
    variance = max(float((values - mean) ** 2 @ shares), 1e-300)
    reach = mean - float(values.min())
    if reach <= 0.0:  # one value only
        return 1.0, float(values.min())
    usual = math.sqrt(2.0 * math.log(1.0 / error) / (size * variance))
    bets = np.concatenate([_SHARES / reach, np.minimum(_FACTORS * usual, 0.999 / reach)])
    bounds = _lowest(values, shares * size, bets, error)
    best = int(np.argmax(bounds))
    return float(bets[best]), float(bounds[best])


def _lowest(values: FloatArray, counts: FloatArray, bets: FloatArray, error: float) -> FloatArray:
    """For every bet, the largest mean that it refutes: the product falls in the mean, so by bisection from below."""
    least, goal = float(values.min()), math.log(1.0 / error) + _SLACK
    scale = max(float(np.abs(values).max()), 1e-300)
    low = np.full(len(bets), least)
    high = np.minimum(least + 1.0 / bets, float(values.max()) + 1e-9 * scale)
    seen = counts > 0
    places, weights = values[seen], counts[seen]

    def refuted(mean: FloatArray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            capital = np.log1p(bets[:, None] * (places - mean[:, None])) @ weights
        return capital >= goal  # NaN and −∞ refute nothing

    some = refuted(low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        lower = refuted(middle)
        low, high = np.where(lower, middle, low), np.where(lower, high, middle)
    return np.where(some, np.maximum(low - 1e-12 * scale, least), least)


# ---- renyi tester ----------------------------------------------------------------------------------------------------------


CELLS = (2, 4, 16, 64, 256)
"""How many steps a guess of the likelihood ratio may have: few are learned well, many are sharp."""

CAPS = 8
"""At how many heights the guess is tried with its top cut off: a rare large value costs more certainty than it brings."""

DOUBTS = (0.0, 1.0, 2.0)
"""By how many deviations a guessed ratio is moved towards 1."""

_CAUTION = 2e-3
_ROUND = 1e-12
"""Of a logarithm. Powers of the guess that are not 0 have exponents below 745, so that their relative error, and with it the
difference between the two powers of one ratio, is below 4e-13; the operations on the bounds of the means add a few ulps."""


@dataclass(frozen=True, slots=True)
class RenyiBound:
    """What the samples prove: with the confidence asked, no divergence of order `alpha` below `divergence` is true.

    `test` says in words what proves it, `likelier` which world is the first argument of the divergence.
    """

    alpha: float
    divergence: float
    confidence: float
    test: str
    likelier: int

    def claimed(self, claim: Loss | Number) -> float:
        """Return the divergence that a loss claims at this order; a number is its own claim."""
        return float(claim.renyi(self.alpha)) if isinstance(claim, Loss) else float_up(at_least_zero(claim, "claim"))

    def refutes(self, claim: Loss | Number) -> bool:
        """Whether a claim, a divergence or a loss that has one at this order, is refuted."""
        return self.divergence > self.claimed(claim)

    def verdict(self, claim: Loss | Number) -> str:
        """Return one sentence: refuted or not, by what, and how surely."""
        said = f"the claim of a Rényi divergence of {self.claimed(claim):.4g} at order {self.alpha:g}"
        if not self.refutes(claim):
            return f"{said} is not refuted: the samples prove no more than {self.divergence:.4g}"
        return f"{said} is refuted: at least {self.divergence:.4g} with confidence {self.confidence:.12g}, by {self.test}"


def renyi(samples0: object, samples1: object, *, alpha: Number, confidence: Number = CONFIDENCE) -> RenyiBound:
    """Return a lower bound of the larger of D_α(P‖Q) and D_α(Q‖P) from samples of a mechanism in two neighbouring worlds.

    Claim   The bound exceeds the divergence with probability at most 1 − confidence. A step function r of the score, a
            direction and two bets are learned on the first quarter of each world's samples; on the rest E_P[r^(α−1)] is
            bounded from below and E_Q[r^α] from above (`means`), at half of the error each. With f = dP/dQ Hölder's
            inequality gives E_P[r^(α−1)] = E_Q[f r^(α−1)] ≤ E_Q[f^α]^(1/α) E_Q[r^α]^((α−1)/α), which is the bound; at α = 1
            log E_Q[r] ≥ E_P[log(r/f)] by Jensen's. The same at a lower order serves too, D_α being no smaller. α = ∞ is ε
            itself: `lower_bound` at δ = 0.
    Needs   In each world independent samples of one law, in the order in which they were drawn: numbers, or rows
            of numbers, for which a score is learned on the same quarter.
    Rounds  Down.
    Source  [BDK+21] for the form with two logarithms, [DV83] for α = 1, both proved above; [EH14] for lower orders; [WR24]
            for the means.
    """
    order, error = order_of(alpha), error_of(confidence)
    return renyi_bound(part_scores(samples0, samples1), order, error)


def renyi_bound(scores: Parted, alpha: float, error: float) -> RenyiBound:
    """Return what `renyi` does, of scores that are parted already."""
    require(alpha >= 1.0, "alpha", "at least 1", alpha)
    confidence = float(1.0 - error)
    if math.isinf(alpha):
        one, other = (np.concatenate(pair) for pair in zip(scores.chosen, scores.tested, strict=True))
        pure = lower_bound(one, other, alpha=error)
        counts = pure.counts
        likelier = int(counts.hits1 / counts.size1 > counts.hits0 / counts.size0)
        return RenyiBound(alpha, pure.epsilon, confidence, f"the event {pure.event!r}", likelier)
    guess = _learn_guess(scores, alpha, error)
    chosen, tested = (tuple(guess.cells.counts(world) for world in part) for part in (scores.chosen, scores.tested))
    more, less = guess.likelier, 1 - guess.likelier
    bet, _ = good_bet(guess.first, chosen[more] / chosen[more].sum(), int(tested[more].sum()), error=error / 2)
    first = mean_at_least(guess.first, tested[more], bet=bet, error=error / 2)
    bet, _ = good_bet(-guess.second, chosen[less] / chosen[less].sum(), int(tested[less].sum()), error=error / 2)
    second = mean_at_most(guess.second, tested[less], bet=bet, error=error / 2)
    return RenyiBound(alpha, max(guess.divergence(first, second), 0.0), confidence, guess.words(alpha), guess.likelier)


@dataclass(frozen=True, slots=True)
class _Guess:
    """The logarithm of the ratio on cells, at most 0 (a factor changes nothing), and the order that it is used at."""

    order: float
    cells: Partition
    logs: FloatArray
    top: float
    likelier: int

    @property
    def first(self) -> FloatArray:
        """What is averaged over the world that is likelier: r^(α−1), or log r at α = 1."""
        return self.logs if self.order == 1.0 else np.exp((self.order - 1.0) * self.logs)

    @property
    def second(self) -> FloatArray:
        """What is averaged over the other: r^α."""
        return np.exp(self.order * self.logs)

    def divergence(self, first: float, second: float) -> float:
        """Return the bound of the divergence by bounds of the two means. Rounds: down."""
        if self.order == 1.0:
            return first - math.log(second) - _ROUND * (1.0 + abs(first))
        if first <= 0.0:
            return 0.0
        weight = self.order / (self.order - 1.0)
        return weight * math.log(first) - math.log(second) - _ROUND * weight * (1.0 + abs(math.log(first)))

    def words(self, alpha: float) -> str:
        """Return what the test is."""
        least, most = math.exp(float(self.logs.min()) + self.top), math.exp(self.top)
        lower = "" if self.order == alpha else f", at order {self.order:g}"
        return f"a likelihood ratio of {self.cells.size} steps, {least:.3g} to {most:.3g}{lower}"


def _guesses(cells: Partition, counts: tuple[IntArray, ...], alpha: float) -> list[_Guess]:
    """The ratio of the counts both ways, with less or more doubt, its top cut off at several heights, at several orders.

    Doubt moves a ratio towards 1 by so many of its deviations: one that is too large costs far more than it brings.
    """
    found: list[_Guess] = []
    for likelier in (0, 1):
        more, less = counts[likelier] + 0.5, counts[1 - likelier] + 0.5
        seen = np.log(more / more.sum()) - np.log(less / less.sum())
        deviation = np.sqrt(1.0 / more + 1.0 / less)
        for doubt in DOUBTS:
            logs = np.sign(seen) * np.maximum(np.abs(seen) - doubt * deviation, 0.0)
            for top in np.linspace(0.0, float(logs.max()), CAPS + 1)[1:]:
                cut = np.minimum(logs, top) - top
                found.extend(_Guess(order, cells, cut, float(top), likelier) for order in _orders(alpha))
    return found


def _orders(alpha: float) -> list[float]:
    """The order asked, and lower ones, whose divergence is no larger [EH14] and whose means are easier to bound."""
    lower = [alpha / 2**power for power in (1, 2, 3) if alpha / 2**power > 1.0]
    return [alpha, *lower, *([1.0] if alpha > 1.0 else [])]


def _learn_guess(scores: Parted, alpha: float, error: float) -> _Guess:
    """The guess that should prove most: made on the first part, compared on the second; then made again on both.

    Compared by what the second part would prove itself, with little confidence: of many guesses the luckiest is not the best.
    Where none would prove anything, by what the same shares of the third part would.
    """
    sizes = tuple(len(world) for world in scores.compared)
    rest = tuple(len(world) for world in scores.tested)
    cuts = {number: partition(*scores.learned, number) for number in CELLS}
    found: list[tuple[float, float, int, int]] = []
    for number, cut in cuts.items():
        counts = tuple(cut.counts(world) for world in scores.compared)
        for place, guess in enumerate(_guesses(cut, tuple(cut.counts(world) for world in scores.learned), alpha)):
            first, second = _moments(guess, counts)
            cautious = _expected_proof(guess, first, second, sizes, max(error, _CAUTION))
            found.append((cautious, _expected_proof(guess, first, second, rest, error), number, place))
    cautious = max(found)
    _, _, number, place = cautious if cautious[0] > 0.0 else max(found, key=lambda item: item[1])
    cut = cuts[number]
    return _guesses(cut, tuple(cut.counts(world) for world in scores.chosen), alpha)[place]


@dataclass(frozen=True, slots=True)
class _Moments:
    """Mean and variance of a value, and how far it can be from the mean on the side that its bound is not on."""

    mean: float
    variance: float
    reach: float

    def off(self, size: int, error: float) -> float:
        """By how much the mean of so many samples may be off, by Bernstein: a quick guess of what a bet bounds."""
        effort = math.log(2.0 / error) / size
        return math.sqrt(2.0 * self.variance * effort) + self.reach * effort / 3.0


def _moments(guess: _Guess, counts: tuple[IntArray, ...]) -> tuple[_Moments, _Moments]:
    """Of what is averaged over either world, by the shares of these counts.

    A cell where the other world was not seen may still hold some of it: two samples are added to each.
    """
    one, other = counts[guess.likelier], counts[1 - guess.likelier] + 2.0
    first, second = guess.first, guess.second
    mean, bar = float(first @ one) / float(one.sum()), float(second @ other) / float(other.sum())
    below = _Moments(mean, float((first - mean) ** 2 @ one) / float(one.sum()), mean - float(first.min()))
    above = _Moments(bar, float((second - bar) ** 2 @ other) / float(other.sum()), float(second.max()) - bar)
    return below, above


def _expected_proof(guess: _Guess, first: _Moments, second: _Moments, sizes: tuple[int, ...], error: float) -> float:
    """About what so many samples prove."""
    low = first.mean - first.off(sizes[guess.likelier], error)
    return guess.divergence(low, second.mean + second.off(sizes[1 - guess.likelier], error))
