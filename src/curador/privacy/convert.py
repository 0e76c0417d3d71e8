"""From Rényi and concentrated privacy to (epsilon, delta), and from pure to concentrated. Everything rounds up.

One order, (alpha, zeta), with b = alpha/(alpha − 1):

    mironov    delta = e^((alpha−1)(zeta−eps))
    cks        delta = e^((alpha−1)(zeta−eps)) b^(1−alpha)/alpha, and never more than √(1 − e^−zeta)
    optimal    the least delta that (alpha, zeta) alone implies, within rounding (see below)

A curve is minimised over its orders; every order is valid, so that the search is plain floating point and only the
values found are rounded. Parameters count as known within half an ulp.

The best (epsilon, delta) that one Rényi order implies is the dual of a convex program: every point of it is a proof.

Let x = dP/dQ, so that E_Q[x] = 1 and E_Q[x^α] ≤ M = e^((α−1)ζ), and b = α/(α−1). For y > 0 and v put s = 1/(e^y − 1),
x0 = e^−v. The convex function

    h(x) = λ x^α − s x + d,    λ = s/(α x0^(α−1)),    d = s x0/b

touches 0 at x0. At x1 = x0 e^(y/(α−1)) it has slope 1, and there it is x1 − e^ε if

    ε = log((e^(by) − 1)/(e^y − 1)/b) − v;                                                             (1)

for a larger ε it is above. Then h(x) ≥ (x − e^ε)₊ for all x ≥ 0, and

    δ ≤ E_Q[h] ≤ (s/α) x0^(1−α) (M − 1 + k(v)),    k(v) = 1 − α x0^(α−1) + (α−1) x0^α.                 (2)

At the border x0 = 0 the slope of h at 0 may be positive: h(x) = λ x^α + c x with 0 ≤ c < 1 touches x − e^ε too, and the
best c gives, where ε ≤ ζ − log b (which is δ ≥ 1/α),

    δ ≤ 1 − e^(ε−ζ).                                                                                   (3)

The least over the free parameter is max p − e^ε q over binary pairs within the moment, which no bound can beat
[ALCKS20]; v → ∞ is the bound of [CKS20, Prop. 12]. The search may be careless, the values are rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from curador.errors import InvalidParameter, require
from curador.numerics.exact import Number, at_least_zero, open_probability, probability, rational
from curador.numerics.logspace import expm1_minus
from curador.numerics.rounding import UNIT, FloatArray, down, float_down, float_up, log_of, near_float, up, ups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# ---- the best of one order -------------------------------------------------------------------------------------------------


def _majorant_epsilon(alpha: float, less: float, zeta: float, log_delta: float) -> float:
    """Return the least epsilon that (alpha, zeta) implies at delta; less is alpha − 1, by itself to keep its digits.

    Claim   For every v, the y that makes (2) equal to delta gives an epsilon by (1).
    Needs   alpha > 1, zeta > 0, each within half an ulp; log_delta is at most that of delta.
    Rounds  Up.
    Source  [ALCKS20]
    """

    def bound(log_v: FloatArray) -> FloatArray:
        v = np.exp(log_v)
        log_moment, doubt = _log_moment(v, less, zeta)
        size = less * v + np.abs(log_moment) + math.log(alpha) - log_delta + 1.0
        level = less * v + log_moment - math.log(alpha) - log_delta + doubt + 8 * UNIT * size
        y = np.maximum(np.maximum(level, 0.0) + np.log1p(np.exp(-np.abs(level))), 1e-290) * (1 + 16 * UNIT)
        log_ratio, error = _log_ratio(y, less)
        return log_ratio - v + error + 8 * UNIT * (log_ratio + v)

    found = _search_least(bound, np.linspace(-44.0, 5.0, 71), rounds=6)[0]
    if log_delta >= -math.log(alpha) * (1 - 16 * UNIT) and log_delta < 0.0:
        # log δ is below the truth by a few ulps, so 1 − δ is above it.
        rest = math.log(-math.expm1(log_delta))
        found = min(found, up(zeta + rest, 8, of=zeta - rest))
    return max(0.0, found)


def _majorant_delta(alpha: float, less: float, zeta: float, epsilon: float) -> float:
    """Return the logarithm of the least delta that (alpha, zeta) implies at epsilon.

    Claim   For every y, (2) holds with each v that is at least the one of (1).
    Needs   alpha > 1, zeta > 0, epsilon ≥ 0, each within half an ulp; less = alpha − 1.
    Rounds  Up: v is raised by its error, and the factor x0^(1−α) pays for it.
    Source  [ALCKS20]
    """
    log_b = math.log1p(1.0 / less)
    start = _kink(less, epsilon)

    def bound(log_step: FloatArray) -> FloatArray:
        y = start + np.exp(log_step)
        log_ratio, error = _log_ratio(y, less)
        error = error + 4 * UNIT * (log_ratio + epsilon)
        v = log_ratio - epsilon
        raised = np.maximum(v, 0.0) + error
        log_moment, doubt = _log_moment(raised, less, zeta)
        upper, lower = _log1mexp(y * (1.0 + 1.0 / less)), _log1mexp(y)
        # (α−1) v − log(e^y − 1) with y cancelled by hand, and what v was raised by.
        scale = less * (upper - lower) - lower - less * (epsilon + log_b) + less * (raised - v)
        size = less * (epsilon + log_b) + math.log(alpha) + np.abs(log_moment) - lower + 2.0
        return scale - math.log(alpha) + log_moment + doubt + 2.0 * less * error + 32 * UNIT * size

    found = _search_least(bound, np.linspace(-36.0, 16.0, 71), rounds=6)[0]
    gap = zeta - epsilon
    doubt = 8 * UNIT * (zeta + epsilon + log_b)
    if gap - log_b >= doubt:
        value = math.log(-math.expm1(-gap - doubt))
        found = min(found, value + 8 * UNIT * (1.0 - value))
    return min(found, 0.0)


def _log_ratio(y: FloatArray, less: float) -> tuple[FloatArray, FloatArray]:
    """Return log((e^(by) − 1)/(e^y − 1)/b) and a bound of its error; its slope is between 1/2 and 1 of 1/(α−1)."""
    upper, lower = _log1mexp(y * (1.0 + 1.0 / less)), _log1mexp(y)
    log_b = math.log1p(1.0 / less)
    near = np.exp(-y) * (1.0 + y)  # times an ulp, what an ulp of y moves either logarithm by
    error = UNIT * (32 * near + 16 * (np.abs(upper) + np.abs(lower)) + 8 * (y / less + log_b))
    return np.maximum(y / less + upper - lower - log_b, 0.0), error


def _log_moment(v: FloatArray, less: float, zeta: float) -> tuple[FloatArray, FloatArray]:
    """Return log(M − 1 + k(v)) and a bound of its error.

    With u = (α−1) v and E(t) = e^t − 1 − t, k = e^−u (E(u) + (α−1) E(−v)): positive terms only, at most 1.
    """
    exponent = less * zeta
    if exponent > 40.0:
        return np.full_like(v, exponent), np.full_like(v, 8 * UNIT * exponent)
    u = less * v
    decay = np.exp(-u)
    first = np.where(u < 1.0, decay * expm1_minus(np.minimum(u, 1.0)), 1.0 - decay * (1.0 + u))
    value = np.log(math.expm1(exponent) + np.minimum(first + decay * less * expm1_minus(-v), 1.0))
    return value, UNIT * (96 + 8 * np.abs(value) + 8 * exponent)


def _log1mexp(x: FloatArray) -> FloatArray:
    small = x < math.log(2.0)
    below, above = np.where(small, x, 1.0), np.where(small, 1.0, x)
    return np.where(small, np.log(-np.expm1(-below)), np.log1p(-np.exp(-above)))


def _kink(less: float, epsilon: float) -> float:
    """Return roughly the y at which (1) gives v = 0; the best y is beyond it."""
    if epsilon == 0.0:
        return 0.0
    low, high = less * epsilon, 2.0 * less * epsilon
    for _ in range(9):  # 17 points a round: 36 halvings
        points = np.linspace(low, high, 17)
        index = int(np.searchsorted(_log_ratio(points, less)[0], epsilon))
        low, high = float(points[max(index - 1, 0)]), float(points[min(index, 16)])
    return low


def _search_least(function: Callable[[FloatArray], FloatArray], points: FloatArray, *, rounds: int) -> tuple[float, float]:
    """Return the least value met and its place: a grid, then 17 points between the neighbours of the best, and again.

    Any point is as valid as any other, so nothing is assumed of the function; NaN is never the least.
    """
    lowest, place = math.inf, float(points[0])
    for _ in range(rounds + 1):
        values = function(points)
        values = np.where(np.isnan(values), np.inf, values)
        best = int(np.argmin(values))
        if values[best] < lowest:
            lowest, place = float(values[best]), float(points[best])
        points = np.linspace(points[max(best - 1, 0)], points[min(best + 1, points.size - 1)], 17)
    return lowest, place


# ---- conversions -----------------------------------------------------------------------------------------------------------


Method = Literal["optimal", "cks", "mironov"]

ORDERS_MIRONOV = (1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 16.0, 32.0, 64.0, math.inf)
"""The grid of [Mir17, Section VI]; it costs up to 5 % because 16, 32, 64 are too far apart."""

ORDERS = (
    *(1.01, 1.02, 1.03, 1.05, 1.075, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9),
    *(order / 4 for order in range(8, 24)),
    *(float(order) for order in range(6, 65)),
    *(float(round(64 * 1.12**step)) for step in range(1, 86)),
    1e6,
    math.inf,
)
"""Orders close enough that the best of them is within 1 % of the best of all."""

_LOG_HUGE = 700.0  # e^x is a finite float up to here


# ---- one order -------------------------------------------------------------------------------------------------------


def renyi_to_epsilon(alpha: Number, zeta: Number, *, delta: Number, method: Method = "optimal") -> float:
    """Return an epsilon such that (alpha, zeta)-Rényi privacy implies (epsilon, delta)-privacy.

    Claim   mironov: zeta + log(1/delta)/(alpha−1). cks: zeta − log b − (log delta + log alpha)/(alpha−1), or 0 if
            √(1 − e^−zeta) ≤ delta. optimal: the least epsilon that the one order implies, within rounding.
            alpha = ∞ is zeta-DP, which `optimal` reads at delta: log(e^zeta − delta (1 + e^zeta)).
    Needs   Order above 1; the divergence holds in both directions.
    Rounds  Up; never below 0; ∞ at delta = 0 for a finite order.
    Source  [Mir17, Prop. 3]; [CKS20, Prop. 12]; [ALCKS20]; [KOV15] for alpha = ∞
    """
    order, budget, target = _order(alpha), at_least_zero(zeta, "zeta"), probability(delta, "delta")
    _check_method(method)
    if budget == 0:
        return 0.0
    if order is None:
        return _pure_epsilon(budget, target) if method == "optimal" else float_up(budget)
    if target == 0:
        return math.inf
    log_delta, doubt = log_of(target)
    a, less, z = near_float(order), near_float(order - 1), near_float(budget)
    if method == "mironov":
        return up((doubt - log_delta) / less + z, 6)
    if method == "cks":
        if kl_to_delta(budget) <= target:
            return 0.0
        return max(0.0, float(_cks_epsilon(np.array([a]), np.array([less]), np.array([z]), log_delta - doubt)[0]))
    return _majorant_epsilon(a, less, z, log_delta - doubt)


def renyi_to_delta(alpha: Number, zeta: Number, *, epsilon: Number, method: Method = "optimal") -> float:
    """Return a delta such that (alpha, zeta)-Rényi privacy implies (epsilon, delta)-privacy.

    Claim   As `renyi_to_epsilon`, solved for delta; at most 1. alpha = ∞ is zeta-DP, which `optimal` reads as
            (e^zeta − e^epsilon)/(1 + e^zeta), the others as 0 from epsilon = zeta on.
    Needs   Order above 1; the divergence holds in both directions; epsilon ≥ 0.
    Rounds  Up; 0 only at zeta = 0, or at alpha = ∞ and epsilon ≥ zeta.
    Source  [Mir17, Prop. 3]; [CKS20, Prop. 12]; [ALCKS20]; [KOV15] for alpha = ∞
    """
    order, budget, threshold = _order(alpha), at_least_zero(zeta, "zeta"), at_least_zero(epsilon, "epsilon")
    _check_method(method)
    if budget == 0 or (order is None and threshold >= budget):
        return 0.0
    if order is None:
        return _pure_delta(budget, threshold) if method == "optimal" else 1.0
    a, less, z, e = near_float(order), near_float(order - 1), near_float(budget), near_float(threshold)
    if method == "mironov":
        return _exp_up(up(less * (z - e), 8, of=less * (z + e)))
    if method == "cks":
        log_delta = _cks_log_delta(np.array([a]), np.array([less]), np.array([z]), e)[0]
        return min(_exp_up(log_delta), kl_to_delta(budget))
    if order == 2 and z - math.log(2.0) < e < _LOG_HUGE:  # before, the optimum is at a border
        moment, rest = math.expm1(z), math.expm1(e)
        relative = 24 + 2 * (z + e)  # ulps: the exponentials turn half an ulp of z and e into z and e halves
        return min(1.0, up(0.5 * moment / (math.hypot(rest, math.sqrt(moment)) + rest), relative))
    return _exp_up(_majorant_delta(a, less, z, e))


def kl_to_delta(zeta: Number) -> float:
    """Return the delta that a Kullback-Leibler divergence of zeta implies at every epsilon ≥ 0.

    Claim   delta(epsilon) ≤ delta(0) = total variation ≤ √(1 − e^−zeta). Any Rényi order above 1 bounds it too.
    Needs   zeta ≥ 0 bounds the divergence of order 1 or more.
    Rounds  Up.
    Source  [BH79]
    """
    return min(1.0, up(math.sqrt(-math.expm1(-near_float(at_least_zero(zeta, "zeta")))), 6))


def _pure_epsilon(zeta: Fraction, delta: Fraction) -> float:
    if delta == 0:
        return float_up(zeta)
    z = near_float(zeta)
    share = down(float(delta) * (1.0 + math.exp(-z)), 8)
    if share >= 1.0:
        return 0.0
    change = math.log1p(-share)
    return max(0.0, up(z + change, 8, of=z - change))


def _pure_delta(zeta: Fraction, epsilon: Fraction) -> float:
    gap = near_float(zeta - epsilon)
    return min(1.0, up(-math.expm1(-gap) / (1.0 + math.exp(-near_float(zeta))), 12))


# ---- a curve ---------------------------------------------------------------------------------------------------------


def curve_to_epsilon(
    curve: Callable[[FloatArray], FloatArray], *, delta: Number, orders: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return (epsilon, order): the least epsilon at delta over the orders of a Rényi curve, and the order it is from.

    Claim   Every order gives a valid epsilon by cks, so the least does. Without `orders`, ORDERS are tried and the
            best is then refined between its neighbours, at fractional orders; with `orders`, exactly those.
    Needs   curve(alpha) bounds the divergences of orders alpha in both directions; NaN counts as ∞.
    Rounds  Up.
    Source  [CKS20, Prop. 12]; [BH79]
    """
    target = probability(delta, "delta")
    log_delta = log_of(target)[0] - log_of(target)[1] if target > 0 else -math.inf

    def bound(alpha: FloatArray) -> FloatArray:
        zeta = _values(curve, alpha)
        epsilon = _cks_epsilon(alpha, alpha - 1.0, zeta, log_delta)
        return np.maximum(np.where(_kl_log_delta(zeta) <= log_delta, 0.0, epsilon), 0.0)

    return _best_order(bound, orders)


def curve_to_delta(
    curve: Callable[[FloatArray], FloatArray], *, epsilon: Number, orders: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return (delta, order): the least delta at epsilon over the orders of a Rényi curve, and the order it is from.

    Claim   As `curve_to_epsilon`, solved for delta; at most 1.
    Needs   curve(alpha) bounds the divergences of orders alpha in both directions; NaN counts as ∞.
    Rounds  Up.
    Source  [CKS20, Prop. 12]; [BH79]
    """
    threshold = near_float(at_least_zero(epsilon, "epsilon"))

    def bound(alpha: FloatArray) -> FloatArray:
        zeta = _values(curve, alpha)
        return np.minimum(_cks_log_delta(alpha, alpha - 1.0, zeta, threshold), _kl_log_delta(zeta))

    log_delta, order = _best_order(bound, orders)
    return _exp_up(log_delta), order


def _cks_epsilon(a: FloatArray, less: FloatArray, zeta: FloatArray, log_delta: float) -> FloatArray:
    """ζ − log b − (log δ + log α)/(α−1); at α = ∞, ζ. Rounds: up."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_b, share = np.log1p(1.0 / less), (log_delta + np.log(a)) / less
        value = ups(zeta - log_b - share, 8, of=zeta + log_b + (np.log(a) - log_delta) / less)
    return np.where(np.isinf(a), zeta, value)


def _cks_log_delta(a: FloatArray, less: FloatArray, zeta: FloatArray, epsilon: float) -> FloatArray:
    """(α−1)(ζ − ε − log b) − log α; at α = ∞, −∞ from ε = ζ on and 0 before. Rounds: up."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_b, log_a = np.log1p(1.0 / less), np.log(a)
        value = ups(less * (zeta - epsilon - log_b) - log_a, 8, of=less * (zeta + epsilon + log_b) + log_a)
    return np.where(np.isinf(a), np.where(zeta <= epsilon, -np.inf, 0.0), np.minimum(value, 0.0))


def _kl_log_delta(zeta: FloatArray) -> FloatArray:
    """log √(1 − e^−ζ). Rounds: up."""
    safe = np.where(zeta > 0.0, zeta, 1.0)
    value = 0.5 * np.log(-np.expm1(-safe))
    return np.where(zeta > 0.0, value + UNIT * (8 + 8 * np.abs(value)), -np.inf)


def _values(curve: Callable[[FloatArray], FloatArray], alpha: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        zeta = np.asarray(curve(alpha), dtype=np.float64)
    if zeta.shape != alpha.shape:
        raise InvalidParameter.must_be("curve", f"a function that keeps the shape {alpha.shape}", zeta.shape)
    return np.where(zeta >= 0.0, zeta, np.inf)  # NaN and negative values are doubt


def _best_order(bound: Callable[[FloatArray], FloatArray], orders: Sequence[float] | None) -> tuple[float, float]:
    alpha = np.array(ORDERS if orders is None else sorted(orders), dtype=np.float64)
    require(alpha.size > 0 and bool(np.all(alpha > 1.0)), "orders", "orders above 1", orders)
    values = bound(alpha)
    best = int(np.argmin(values))
    found = (float(values[best]), float(alpha[best]))
    if orders is not None or math.isinf(found[1]) or not math.isfinite(found[0]):
        return found
    around = np.log(alpha[max(best - 1, 0) : best + 2] - 1.0)
    if best == 0:
        around = np.concatenate([np.linspace(-20.0, around[0], 20)[:-1], around])
    elif best == alpha.size - 2:
        around = np.concatenate([around[:-1], np.linspace(around[1], 40.0, 30)[1:]])
    value, log_less = _search_least(lambda points: bound(1.0 + np.exp(points)), around, rounds=5)
    return (value, 1.0 + math.exp(log_less)) if value < found[0] else found


# ---- concentrated privacy ----------------------------------------------------------------------------------------


def rho_to_epsilon(rho: Number, *, delta: Number, method: Literal["cks", "bs16"] = "cks") -> float:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta)-privacy.

    Claim   bs16: rho + 2 √(rho log(1/delta)). cks: the least of rho α − log b − (log delta + log α)/(α−1) over all
            orders, which is where rho (α−1)² = log(1/(delta α)); 0 if √(1 − e^−rho) ≤ delta.
    Needs   rho ≥ 0, 0 ≤ delta < 1.
    Rounds  Up; ∞ at delta = 0 unless rho = 0.
    Source  [BS16, Prop. 1.3]; [CKS20, Prop. 12]
    """
    exact, target = at_least_zero(rho, "rho"), probability(delta, "delta")
    if method not in ("cks", "bs16"):
        raise InvalidParameter.must_be("method", '"cks" or "bs16"', method)
    if exact == 0 or target == 0:
        return math.inf if exact > 0 else 0.0
    log_delta, doubt = log_of(target)
    if method == "bs16":
        r = near_float(exact)
        return up(r + 2.0 * math.sqrt(r * (doubt - log_delta)), 8)
    if kl_to_delta(exact) <= target:
        return 0.0
    return max(0.0, _rho_epsilon(near_float(exact), log_delta - doubt)[0])


def rho_to_delta(rho: Number, *, epsilon: Number) -> float:
    """Return a delta such that rho-zCDP implies (epsilon, delta)-privacy.

    Claim   The least of e^((α−1)(rho α − epsilon)) b^(1−α)/α over all orders, which is where
            (2α − 1) rho − epsilon = log b; never more than √(1 − e^−rho).
    Needs   rho ≥ 0, epsilon ≥ 0.
    Rounds  Up; 0 only at rho = 0.
    Source  [CKS20, Prop. 12]; [BH79]
    """
    exact, threshold = at_least_zero(rho, "rho"), near_float(at_least_zero(epsilon, "epsilon"))
    if exact == 0:
        return 0.0
    r = max(near_float(exact), 1e-290)
    less = max(0.5 * (threshold / r - 1.0), math.sqrt(0.5 / r), 0.25)
    for _ in range(50):  # concave and increasing in α − 1: monotone from the left after the first step
        excess = (2.0 * less + 1.0) * r - threshold - math.log1p(1.0 / less)
        following = max(less - excess / (2.0 * r + 1.0 / (less * (less + 1.0))), less / 16.0)
        done = abs(following - less) <= 1e-9 * less
        less = min(following, 1e150)
        if done:
            break
    order = np.array([1.0 + less])
    log_delta = _cks_log_delta(order, np.array([less]), r * order * (1 + 4 * UNIT), threshold)[0]
    return min(_exp_up(log_delta), kl_to_delta(exact))


def rho_for(*, epsilon: Number, delta: Number) -> Fraction:
    """Return the largest rho whose zCDP implies (epsilon, delta)-privacy, as a dyadic rational.

    Claim   rho_to_epsilon(result, delta=delta) ≤ epsilon.
    Needs   epsilon ≥ 0, 0 < delta < 1.
    Rounds  Down.
    Source  [CKS20, Prop. 12]
    """
    budget, target = at_least_zero(epsilon, "epsilon"), open_probability(delta, "delta")
    log_delta, doubt = log_of(target)
    log_delta -= doubt
    limit = float_down(budget)
    # √(1 − e^−rho) ≤ delta needs no epsilon at all; rho + 2 √(rho log(1/delta)) ≤ epsilon is a start from below.
    free = down(-math.log1p(-math.exp(2.0 * log_delta)), 16)
    rho = (limit / (math.sqrt(limit - log_delta) + math.sqrt(-log_delta))) ** 2 * (1 - 64 * UNIT)
    rho = max(rho, free, 1e-290)
    for _ in range(40):  # epsilon is concave in rho with slope α, so that Newton's steps from below stay below
        value, order = _rho_epsilon(rho, log_delta)
        step = (limit - value) / order
        rho += step
        if not step > 4 * UNIT * rho:
            break
    for power in range(50):
        if _rho_epsilon(rho, log_delta)[0] <= limit:
            return Fraction(max(rho, free, 0.0))
        rho *= 1.0 - math.ldexp(UNIT, power + 1)
    return Fraction(max(free, 0.0))


def pure_to_rho(epsilon: Number) -> Fraction:
    """Return the rho of epsilon-DP: epsilon tanh(epsilon/2), the least that holds for every such mechanism.

    Claim   Randomised response, which dominates, has (α−1) D_α = log cosh(s ε) − log cosh(ε/2), s = α − 1/2, concave
            in s²; its tangent at s² = 1/4 is α (α−1) ε tanh(ε/2).
    Needs   epsilon ≥ 0.
    Rounds  Up, to a dyadic rational; never above epsilon²/2.
    Source  [BS16] for epsilon²/2; the tangent for the constant
    """
    exact = at_least_zero(epsilon, "epsilon")
    near = near_float(exact)
    return min(Fraction(up(near * math.tanh(0.5 * near), 8)), exact * exact / 2)


def laplace_to_rho(epsilon: Number) -> Fraction:
    """Return the rho of Laplace noise with sensitivity/scale = epsilon: epsilon − 1 + e^−epsilon.

    Claim   (α−1) D_α is the logarithm of an entire function of (α − 1/2)² of order 1/2 with negative zeros, hence
            concave in it; the tangent at α = 1 is α (α−1) times the divergence of order 1.
    Needs   epsilon ≥ 0.
    Rounds  Up, to a dyadic rational; never above epsilon²/2.
    Source  [Mir17, Prop. 6] for the divergence
    """
    exact = at_least_zero(epsilon, "epsilon")
    near = near_float(exact)
    return min(Fraction(up(float(expm1_minus(np.array(-near))), 12)), exact * exact / 2)


def bounded_range_to_rho(epsilon: Number) -> Fraction:
    """Return the rho of a mechanism of bounded range epsilon: epsilon²/8, exactly.

    Claim   An epsilon-bounded-range mechanism, such as the exponential one, is epsilon²/8-zCDP.
    Needs   The range of the privacy loss over outputs is at most epsilon.
    Rounds  Exact.
    Source  [CR21]
    """
    return at_least_zero(epsilon, "epsilon") ** 2 / 8


def _rho_epsilon(rho: float, log_delta: float) -> tuple[float, float]:
    """Return (epsilon rounded up, order) of the best order; below 0 for a large delta."""
    less = math.sqrt(-log_delta / rho)
    for _ in range(30):  # rho t² + log(1 + t) + log delta is increasing; the start is to the right of its root
        excess = rho * less * less + math.log1p(less) + log_delta
        following = max(less - excess / (2.0 * rho * less + 1.0 / (1.0 + less)), less / 16.0)
        done = abs(following - less) <= 1e-9 * less
        less = following
        if done:
            break
    order, log_b, log_a = 1.0 + less, math.log1p(1.0 / less), math.log1p(less)
    value = rho * order - log_b - (log_delta + log_a) / less
    return up(value, 12, of=rho * order + log_b + (log_a - log_delta) / less), order


# ---- parameters --------------------------------------------------------------------------------------------------


def _order(alpha: object) -> Fraction | None:
    """Return the order, or None for infinity."""
    if alpha in (math.inf, "inf"):
        return None
    exact = rational(alpha, "alpha")
    require(exact > 1, "alpha", "above 1", alpha)
    return exact


def _check_method(method: str) -> None:
    if method not in ("optimal", "cks", "mironov"):
        raise InvalidParameter.must_be("method", '"optimal", "cks" or "mironov"', method)


def _exp_up(log_delta: float) -> float:
    return min(1.0, up(math.exp(min(log_delta, 1.0)), 5)) if log_delta > -math.inf else 0.0
