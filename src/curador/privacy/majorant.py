"""The best (epsilon, delta) that one Rényi order implies, as the dual of a convex program: every point of it is a proof.

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
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.logspace import expm1_minus
from curador.numerics.rounding import UNIT, FloatArray, up

if TYPE_CHECKING:
    from collections.abc import Callable


def majorant_epsilon(alpha: float, less: float, zeta: float, log_delta: float) -> float:
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

    found = least(bound, np.linspace(-44.0, 5.0, 71), rounds=6)[0]
    if log_delta >= -math.log(alpha) * (1 - 16 * UNIT) and log_delta < 0.0:
        # log δ is below the truth by a few ulps, so 1 − δ is above it.
        rest = math.log(-math.expm1(log_delta))
        found = min(found, up(zeta + rest, 8, of=zeta - rest))
    return max(0.0, found)


def majorant_delta(alpha: float, less: float, zeta: float, epsilon: float) -> float:
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

    found = least(bound, np.linspace(-36.0, 16.0, 71), rounds=6)[0]
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


def least(function: Callable[[FloatArray], FloatArray], points: FloatArray, *, rounds: int) -> tuple[float, float]:
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
