"""The adversary's game in plain numbers: he sees the output and guesses which of two neighbours it came from.

What he can gain (posterior, advantage, true positives, tails) is rounded up; what he must lose (false
negatives) is rounded down. A rate is a number, which means the decimal that it shows, or an array of floats.

guarantee          best true positive rate at a false positive rate x      least false negative rate
(ε, δ)             `true_positive_bound`                                   `tradeoff_approximate`
μ-GDP              `gaussian_true_positive`                                `tradeoff_gaussian`
Laplace noise      1 − `tradeoff_laplace`                                  `tradeoff_laplace`
Rényi curve        `renyi_true_positive`, `gaussian_renyi_true_positive`

Normal tails are ½ erfcx(x/√2) e^(−x²/2) with the square split in two parts, so that the relative error is a
few ulps at every x. Normal quantiles are guessed, then moved until such a tail proves their side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, overload

import numpy as np

from curador.errors import InvalidParameter, require
from curador.numerics.exact import (
    Number,
    at_least_zero,
    open_probability,
    positive,
    probability,
    rational,
    whole,
)
from curador.numerics.rounding import LIBM_ULPS, FloatArray, down, float_down, float_up, up, ups

Floats: TypeAlias = Sequence[float] | FloatArray
Rates: TypeAlias = Number | FloatArray
Curve: TypeAlias = Callable[[FloatArray], FloatArray]
Bound: TypeAlias = float | FloatArray

HALF = Fraction(1, 2)

TENFOLD = Fraction(1054, 10_000)
"""A loss exceeds ε by more than this with probability at most 10 δ: 1/(1 − e^−t) is just below 10."""

_TAIL_ULPS = 32.0
"""erfcx, two exponentials, their arguments, three products: 15 units of 2⁻⁵², twice as many ulps."""

_BEYOND = 100.0
"""P[N > 100] is below every float."""


def posterior_bounds(epsilon: Number, *, prior: Number = HALF) -> tuple[float, float]:
    """Return between what bounds any output leaves the adversary's belief in one of the two databases.

    Claim   The posterior lies in [π/(π + (1−π)e^ε), π e^ε/(π e^ε + 1 − π)].
    Needs   Pure ε-differential privacy; with δ > 0 no such bounds hold for every output.
    Rounds  Outward.
    Source  [DMNS06]
    """
    exact, belief = at_least_zero(epsilon, "epsilon"), open_probability(prior, "prior")
    against = (1 - belief) / belief
    lower = down(1.0 / up(1.0 + up(float_up(against) * _exp_up(exact))))
    upper = up(1.0 / down(1.0 + down(float_down(against) * _exp_down(-exact))))
    return max(lower, 0.0), min(upper, 1.0)


def advantage(epsilon: Number, delta: Number = 0) -> float:
    """Return the largest difference of true and false positive rate.

    Claim   TPR − FPR ≤ (e^ε − 1 + 2δ)/(e^ε + 1) = tanh(ε/2) + 2δ e^−ε/(1 + e^−ε) under (ε, δ).
    Rounds  Up.
    Source  [KOV15]
    """
    exact, failure = at_least_zero(epsilon, "epsilon"), probability(delta, "delta")
    ratio_part = up(math.tanh(float_up(exact / 2)), LIBM_ULPS) if exact else 0.0
    # x/(1 + x) grows with x, so the weight of δ is bounded at an upper bound of e^−ε.
    weight = min(_exp_up(-exact), 1.0)
    failure_part = up(float_up(2 * failure) * up(weight / down(1.0 + weight))) if failure else 0.0
    total = up(ratio_part + failure_part) if failure else ratio_part
    return min(total, 1.0)


def accuracy(epsilon: Number, delta: Number = 0) -> float:
    """Return how often he can guess right when both databases were equally likely.

    Claim   At most (e^ε + δ)/(1 + e^ε) = (1 + advantage)/2.
    Rounds  Up.
    Source  [KOV15]
    """
    return min(up(0.5 + 0.5 * advantage(epsilon, delta)), 1.0)


def gaussian_advantage(mu: Number) -> float:
    """Return the largest difference of true and false positive rate under μ-GDP.

    Claim   2Φ(μ/2) − 1 = erf(μ/√8).
    Rounds  Up; erf is held to LIBM_ULPS like the functions of its list.
    Source  [DRS19]
    """
    exact = at_least_zero(mu, "mu")
    if exact == 0:
        return 0.0
    return min(up(math.erf(up(float_up(exact) * up(math.sqrt(0.125)))), LIBM_ULPS), 1.0)


def gaussian_posterior_tail(mu: Number, *, threshold: Number) -> float:
    """Return how often the belief in the true database passes the threshold, from an even prior.

    Claim   P[posterior > t] = Φ(μ/2 − logit(t)/μ), because the log odds are N(μ²/2, μ²).
    Needs   Gaussian noise itself; what is only dominated by it may have more mass above one threshold.
    Rounds  Up.
    Source  [DRS19]
    """
    exact, level = at_least_zero(mu, "mu"), open_probability(threshold, "threshold")
    if exact == 0:
        return 1.0 if level < HALF else 0.0
    place = float_up(exact / 2 - _logit_down(level) / exact)
    return float(_tail_up(np.array([-place]))[0])


def renyi_odds_tail(*, alpha: Number, zeta: Number, factor: Number) -> float:
    """Return how often the odds of the true database can grow by more than the factor under (α, ζ)-Rényi DP.

    Claim   P[posterior odds > b · prior odds] ≤ (e^ζ/b)^(α−1).
    Rounds  Up.
    Source  Markov's inequality; [Mir17, Sec. VII] has it with a wrong exponent
    """
    order, bound, growth = rational(alpha, "alpha"), at_least_zero(zeta, "zeta"), positive(factor, "factor")
    require(order > 1, "alpha", "above 1", alpha)
    if growth <= 1:
        return 1.0
    exponent = (order - 1) * (bound - Fraction(down(math.log(float_down(growth)), LIBM_ULPS)))
    return 1.0 if exponent >= 0 else min(_exp_up(exponent), 1.0)


def loss_tail(delta: Number, *, t: Number) -> float:
    """Return how often the privacy loss can exceed ε + t where δ(ε) = delta.

    Claim   P[L > ε + t] ≤ δ/(1 − e^−t); P[L > ε] itself may be anything up to 1.
    Rounds  Up.
    Source  [CKS20], δ(ε) = E[(1 − e^(ε−L))₊], and (1 − e^(ε−L))₊ ≥ 1 − e^−t where L > ε + t
    """
    failure, excess = probability(delta, "delta"), positive(t, "t")
    if failure == 0:
        return 0.0
    share = down(-math.expm1(-float_down(excess)), LIBM_ULPS)
    return min(up(float_up(failure) / share), 1.0) if share > 0 else 1.0


def belief_after(
    epsilon: Number, delta: Number = 0, *, prior: Number = HALF, beyond: Number = TENFOLD
) -> tuple[float, float]:
    """Return how sure of the true database he can become, and how often at most he becomes surer than that.

    Claim   P[posterior > π e^(ε+t)/(π e^(ε+t) + 1 − π)] ≤ δ/(1 − e^−t) under (ε, δ), whichever is true, at t = beyond.
            Where δ = 0 the posterior never exceeds π e^ε/(π e^ε + 1 − π). At t = 0 nothing of the kind holds.
    Rounds  Up, both.
    Source  [DMNS06] where the loss is at most ε + t, and `loss_tail`
    """
    exact, failure, excess = at_least_zero(epsilon, "epsilon"), probability(delta, "delta"), positive(beyond, "beyond")
    if failure == 0:
        return posterior_bounds(exact, prior=prior)[1], 0.0
    return posterior_bounds(exact + excess, prior=prior)[1], loss_tail(failure, t=excess)


@overload
def true_positive_bound(fpr: Number, *, epsilon: Number, delta: Number = 0) -> float: ...
@overload
def true_positive_bound(fpr: FloatArray, *, epsilon: Number, delta: Number = 0) -> FloatArray: ...
def true_positive_bound(fpr: Rates, *, epsilon: Number, delta: Number = 0) -> Bound:
    """Return the largest true positive rate of any test under (ε, δ).

    Claim   TPR ≤ min(1, e^ε x + δ, 1 − e^−ε(1 − δ − x)).
    Rounds  Up.
    Source  [KOV15], [WZ10]
    """
    rate, exact, failure = _rate(fpr), at_least_zero(epsilon, "epsilon"), probability(delta, "delta")
    grown = ups(_product(_exp_up(exact), rate.upper))
    first = ups(grown + float_up(failure)) if failure else grown
    second = ups(1.0 - _downs(_exp_down(-exact) * np.maximum(rate.rest(failure), 0.0)))
    bound = np.minimum(first, second)
    return _answer(fpr, np.where(rate.upper == 0, float_up(failure), bound))


@overload
def gaussian_true_positive(fpr: Number, *, mu: Number) -> float: ...
@overload
def gaussian_true_positive(fpr: FloatArray, *, mu: Number) -> FloatArray: ...
def gaussian_true_positive(fpr: Rates, *, mu: Number) -> Bound:
    """Return the largest true positive rate of any test under μ-GDP.

    Claim   TPR ≤ Φ(Φ⁻¹(x) + μ).
    Rounds  Up.
    Source  [DRS19]
    """
    rate = _rate(fpr)
    bound = _tail_up(_gaussian_place(rate, mu))
    return _answer(fpr, np.where(rate.upper == 0, 0.0, bound))


@overload
def renyi_true_positive(fpr: Number, *, orders: Floats, divergences: Floats) -> float: ...
@overload
def renyi_true_positive(fpr: FloatArray, *, orders: Floats, divergences: Floats) -> FloatArray: ...
def renyi_true_positive(fpr: Rates, *, orders: Floats, divergences: Floats) -> Bound:
    """Return the largest true positive rate that a Rényi curve allows.

    Claim   TPR ≤ (e^ζ(α) x)^(1 − 1/α) at every order α in (1, ∞], so at the best of them.
    Needs   Each divergence is an upper bound at its order; +∞ says that nothing is known there.
    Rounds  Up.
    Source  [Mir17, Prop. 10]
    """
    rate = _rate(fpr)
    best = np.ones_like(rate.upper)
    for order, divergence in _curve(orders, divergences):
        total = ups(divergence + rate.log_up())
        power = down((order - 1.0) / order, 2.0) if math.isfinite(order) else 1.0
        best = np.minimum(best, _exps_up(ups(power * np.minimum(total, 0.0))))
    return _answer(fpr, np.where(rate.upper == 0, 0.0, best))


@overload
def gaussian_renyi_true_positive(fpr: Number, *, mu: Number) -> float: ...
@overload
def gaussian_renyi_true_positive(fpr: FloatArray, *, mu: Number) -> FloatArray: ...
def gaussian_renyi_true_positive(fpr: Rates, *, mu: Number) -> Bound:
    """Return what the whole Rényi curve α μ²/2 allows: weaker than `gaussian_true_positive`, in closed form.

    Claim   min over α of (e^(α μ²/2) x)^(1 − 1/α) = exp(−(√(2 ln 1/x) − μ)²/2), at α = √(2 ln 1/x)/μ;
            1 where that is no order above 1.
    Rounds  Up.
    Source  [Mir17, Prop. 10], optimised
    """
    rate, shift = _rate(fpr), float_up(at_least_zero(mu, "mu"))
    reach = _downs(np.sqrt(np.maximum(_downs(-2.0 * rate.log_up()), 0.0)))
    gap = np.maximum(_downs(reach - shift), 0.0)
    bound = _exps_up(-np.maximum(_downs(0.5 * gap * gap, 2.0), 0.0))
    return _answer(fpr, np.where(rate.upper == 0, 0.0, bound))


def roc(bound: Curve, points: int | FloatArray = 201) -> tuple[FloatArray, FloatArray]:
    """Return (false positive rates, bounds of the true positive rate) of a curve to draw.

    A number of points is spread over [0, 1], both ends included and denser there; an array is used as it is.
    """
    if isinstance(points, np.ndarray):
        rates = _rate(points).upper
    else:
        number = whole(points, "points", least=2)
        rates = np.sin(np.linspace(0.0, 0.5 * math.pi, number)) ** 2
        rates[-1] = 1.0
    return rates, np.asarray(bound(rates), dtype=np.float64)


@overload
def tradeoff_approximate(fpr: Number, *, epsilon: Number, delta: Number = 0) -> float: ...
@overload
def tradeoff_approximate(fpr: FloatArray, *, epsilon: Number, delta: Number = 0) -> FloatArray: ...
def tradeoff_approximate(fpr: Rates, *, epsilon: Number, delta: Number = 0) -> Bound:
    """Return the least false negative rate of any test under (ε, δ).

    Claim   FNR ≥ max(0, 1 − δ − e^ε x, e^−ε(1 − δ − x)).
    Rounds  Down.
    Source  [WZ10], [DRS19]
    """
    rate, exact, failure = _rate(fpr), at_least_zero(epsilon, "epsilon"), probability(delta, "delta")
    kept = float_down(1 - failure)
    first = _downs(kept - ups(_product(_exp_up(exact), rate.upper)))
    second = _downs(_exp_down(-exact) * np.maximum(rate.rest(failure), 0.0))
    bound = np.maximum(first, second)
    return _answer(fpr, np.where(rate.upper == 0, kept, bound))


@overload
def tradeoff_gaussian(fpr: Number, *, mu: Number) -> float: ...
@overload
def tradeoff_gaussian(fpr: FloatArray, *, mu: Number) -> FloatArray: ...
def tradeoff_gaussian(fpr: Rates, *, mu: Number) -> Bound:
    """Return the least false negative rate of any test under μ-GDP.

    Claim   FNR ≥ Φ(Φ⁻¹(1 − x) − μ).
    Rounds  Down.
    Source  [DRS19]
    """
    rate = _rate(fpr)
    bound = _tail_down(-_gaussian_place(rate, mu))
    return _answer(fpr, np.where(rate.upper == 0, 1.0, bound))


@overload
def tradeoff_laplace(fpr: Number, *, epsilon: Number) -> float: ...
@overload
def tradeoff_laplace(fpr: FloatArray, *, epsilon: Number) -> FloatArray: ...
def tradeoff_laplace(fpr: Rates, *, epsilon: Number) -> Bound:
    """Return the least false negative rate of any test of Laplace noise of scale sensitivity/ε.

    Claim   1 − e^ε x up to x = e^−ε/2, e^−ε/(4x) up to x = 1/2, e^−ε(1 − x) beyond.
    Rounds  Down. The lines are tangents of the hyperbola, so a break an ulp off matters in second order only.
    Source  [DRS19]
    """
    rate, exact = _rate(fpr), at_least_zero(epsilon, "epsilon")
    x, shrink = rate.upper, max(_exp_down(-exact), 0.0)
    line = _downs(1.0 - ups(_product(_exp_up(exact), x)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        curve = _downs(shrink / (4.0 * x))
    end = _downs(shrink * np.maximum(rate.rest(), 0.0))
    bound = np.where(x >= 0.5, end, np.where(x <= 0.5 * shrink, line, curve))
    return _answer(fpr, np.where(x == 0, 1.0, bound))


@dataclass(frozen=True, slots=True)
class _Rate:
    """False positive rates, rounded up: every bound here grows with them."""

    exact: Fraction | None
    upper: FloatArray

    def rest(self, failure: Fraction = Fraction(0)) -> FloatArray:
        """1 − x − δ, which a float close to 1 no longer knows. Rounds: down."""
        if self.exact is not None:
            return np.array([float_down(1 - self.exact - failure)])
        # Above one half the difference is exact.
        kept = np.where(self.upper >= 0.5, 1.0 - self.upper, _downs(1.0 - self.upper))
        return _downs(kept - float_up(failure)) if failure else kept

    def log_up(self) -> FloatArray:
        """Log x, from whichever side keeps its digits. Rounds: up."""
        with np.errstate(divide="ignore"):
            near_one = ups(np.log1p(-np.minimum(np.maximum(self.rest(), 0.0), 0.5)), LIBM_ULPS)
            near_zero = ups(np.log(np.maximum(self.upper, math.ulp(0.0))), LIBM_ULPS)  # x = 0 is told apart
        return np.minimum(np.where(self.upper > 0.5, near_one, near_zero), 0.0)


def _rate(fpr: Rates) -> _Rate:
    if isinstance(fpr, np.ndarray):
        require(fpr.dtype.kind in "fiu", "fpr", "an array of numbers", fpr.dtype)
        values = fpr.astype(np.float64)
        inside = bool(np.all((values >= 0.0) & (values <= 1.0)))  # NaN is not inside
        require(inside, "every fpr", "at least 0 and at most 1", fpr)
        return _Rate(None, values)
    exact = rational(fpr, "fpr")
    require(0 <= exact <= 1, "fpr", "at least 0 and at most 1", fpr)
    return _Rate(exact, np.array([float_up(exact)]))


def _answer(fpr: Rates, values: FloatArray) -> Bound:
    clipped = np.clip(values, 0.0, 1.0)
    return clipped if isinstance(fpr, np.ndarray) else float(clipped[0])


def _curve(orders: Floats, divergences: Floats) -> list[tuple[float, float]]:
    """Return the orders with their divergences, those left out where nothing is known."""
    alphas, bounds = _floats(orders, "orders"), _floats(divergences, "divergences")
    lengths = (len(alphas), len(bounds))
    require(lengths[0] == lengths[1] > 0, "the numbers of orders and divergences", "equal, not 0", lengths)
    require(bool(np.all(alphas > 1.0)), "every order", "above 1", orders)
    require(bool(np.all(bounds >= 0.0)), "every divergence", "at least 0", divergences)
    return [(float(a), float(z)) for a, z in zip(alphas, bounds, strict=True) if math.isfinite(z)]


def _floats(values: Floats, name: str) -> FloatArray:
    try:
        array = np.asarray(values)
        require(array.ndim == 1 and array.dtype.kind in "fiu", name, "a list of numbers", values)
        return array.astype(np.float64)
    except ValueError as error:
        raise InvalidParameter.must_be(name, "a list of numbers", values) from error


def _gaussian_place(rate: _Rate, mu: Number) -> FloatArray:
    """Return Φ⁻¹(1 − x) − μ. Rounds: down; doubt is −∞, where the adversary is always right."""
    shift = float_up(at_least_zero(mu, "mu"))
    return _downs(_quantile_down(rate) - shift)


def _quantile_down(rate: _Rate) -> FloatArray:
    """Return a lower bound of the q with P[N > q] = x, proved by the tail at the point returned."""
    from scipy.special import ndtri

    x, rest = rate.upper, np.maximum(rate.rest(), 0.0)
    inner = (x > 0.0) & (rest > 0.0)
    low, high = np.where(inner, x, 0.5), np.where(inner, rest, 0.5)
    start = np.where(low <= 0.5, -ndtri(low), ndtri(high))
    step = np.spacing(1.0 + np.abs(start))
    proved = np.zeros_like(inner)
    for _ in range(64):
        place = start - step
        proved = np.where(place >= 0.0, _tail_down(place) >= low, _tail_up(-place) <= high)
        if bool(np.all(proved)):
            break
        step = np.where(proved, step, 2.0 * step)
    return np.where(inner & proved, start - step, -np.inf)


def _near_tail(x: FloatArray) -> FloatArray:
    """Return P[N > x] for x ≥ 0 within _TAIL_ULPS."""
    from scipy.special import erfcx

    place = np.minimum(x, _BEYOND)
    head = place.astype(np.float32).astype(np.float64)  # 24 bits: its square is exact
    remainder = (place - head) * (place + head)
    with np.errstate(under="ignore"):
        return 0.5 * erfcx(place * math.sqrt(0.5)) * np.exp(-0.5 * head * head) * np.exp(-0.5 * remainder)


def _tail_up(x: FloatArray) -> FloatArray:
    """Return P[N > x]. Rounds: up."""
    near = _near_tail(np.abs(x))
    return np.minimum(np.where(x >= 0.0, ups(near, _TAIL_ULPS), ups(1.0 - _downs(near, _TAIL_ULPS))), 1.0)


def _tail_down(x: FloatArray) -> FloatArray:
    """Return P[N > x]. Rounds: down."""
    near = _near_tail(np.abs(x))
    return np.maximum(np.where(x >= 0.0, _downs(near, _TAIL_ULPS), _downs(1.0 - ups(near, _TAIL_ULPS))), 0.0)


def _downs(x: FloatArray, ulps: float = 1.0) -> FloatArray:
    return -ups(-x, ulps)


def _product(factor: float, x: FloatArray) -> FloatArray:
    """Return factor · x, where ∞ · 0 is 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(x == 0.0, 0.0, factor * x)


def _exps_up(x: FloatArray) -> FloatArray:
    with np.errstate(under="ignore", over="ignore"):
        return ups(np.exp(x), LIBM_ULPS)


def _exp_up(exact: Fraction) -> float:
    return 1.0 if exact == 0 else float(_exps_up(np.array([float_up(exact)]))[0])


def _exp_down(exact: Fraction) -> float:
    if exact == 0:
        return 1.0
    with np.errstate(under="ignore", over="ignore"):
        return max(float(_downs(np.exp(np.array([float_down(exact)])), LIBM_ULPS)[0]), 0.0)


def _logit_down(level: Fraction) -> Fraction:
    """Return a lower bound of log(t/(1 − t)), from an exact ratio so that t near 1/2 keeps its digits."""
    if level >= HALF:
        ratio = float_down((2 * level - 1) / (1 - level))
        return Fraction(max(down(math.log1p(ratio), LIBM_ULPS), 0.0))
    return -Fraction(up(math.log1p(float_up((1 - 2 * level) / level)), LIBM_ULPS))
