"""The exact privacy curve of k pure mechanisms together: k randomised responses, a binomial sum.

Under the worst pair the total loss is (2i − k) ε0 with i ~ Binomial(k, p), p = e^ε0/(1 + e^ε0), so that

    δ(ε) = Σ_{i : (2i−k) ε0 > ε} C(k, i) p^i (1−p)^(k−i) (1 − e^(ε − (2i−k) ε0)).

All terms are positive. Only a window around the largest is summed; the rest decays at least geometrically and is
bounded by the last ratio. Log probabilities are Stirling's with the deviance of each count taken by itself, so that
their error grows with the distance from the mean, not with log k!. The first loss above ε is found in exact rationals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT, FloatArray, float_down, float_up

_SMALL = 16
_TABLE = np.array([0.0, *(math.log(math.factorial(j)) - j * math.log(j) + j for j in range(1, _SMALL))])
_WIDEST = 20_000_000


@dataclass(frozen=True, slots=True)
class LogBounds:
    """lower ≤ log δ ≤ upper, and the slope −∂ log δ/∂ε (approximate)."""

    lower: float
    upper: float
    slope: float


NOTHING = LogBounds(-math.inf, -math.inf, math.inf)


def log_delta(epsilon0: Fraction, count: int, epsilon: Fraction) -> LogBounds:
    """Return bounds of log delta(epsilon) of `count` epsilon0-DP mechanisms, the exact optimum.

    Claim   lower ≤ log of the sum above ≤ upper; both −∞ from epsilon = count · epsilon0 on.
    Needs   epsilon0 > 0, count ≥ 1, epsilon ≥ 0.
    Rounds  Outward.
    Source  [KOV15, Thm. 3.3]
    """
    first = math.floor((epsilon / epsilon0 + count) / 2) + 1
    if first > count:
        return NOTHING
    step = 2.0 * float(epsilon0)
    nearest = float((2 * first - count) * epsilon0 - epsilon)  # > 0, exact before this rounding
    start, stop = _window(float(epsilon0), count, first)
    index = np.arange(start, stop + 1, dtype=np.float64)
    log_mass, error = _log_masses(index, float(count), float(epsilon0))
    above = nearest + step * (index - first)
    top = float(log_mass.max())
    mass = np.exp(log_mass - top)
    terms = mass * -np.expm1(-above)
    total = float(terms.sum())
    if not total > 0.0:
        raise NumericalFailure(f"the composition of {count} mechanisms is out of reach at this epsilon")
    relative = float((terms * (error + 4 * UNIT * (top - log_mass))).sum()) / total + 64 * UNIT
    tail = _beyond(float(mass[-1]), stop, count, step) + _before(float(mass[0]), start, first, count, step)
    value = top + math.log(total)
    rounding = 4 * UNIT * (abs(top) + abs(value) + 2.0)
    slope = max(float((mass * np.exp(-above)).sum()) / total, 1e-300)
    return LogBounds(value - relative - rounding, value + math.log1p(tail / total) + relative + rounding, slope)


def least_epsilon(epsilon0: Fraction, count: int, low_goal: float, high_goal: float) -> tuple[float, float]:
    """Return bounds of the least epsilon ≥ 0 at which log delta is at most a goal known to be in [low_goal, high_goal].

    Claim   log delta at the upper end is at most low_goal, or that end is count · epsilon0; at the lower end it is at
            least high_goal, or that end is 0.
    Needs   epsilon0 > 0, count ≥ 1, goals below 0.
    Rounds  Outward.
    """
    most = count * epsilon0
    if log_delta(epsilon0, count, Fraction(0)).upper <= low_goal:
        return 0.0, 0.0
    epsilon, width = _root(epsilon0, count, 0.5 * (low_goal + high_goal), float(most))
    lower, upper = math.nan, math.nan
    for power in range(100):
        step = math.ldexp(width, power)
        if math.isnan(upper):
            at = epsilon + step
            if at >= most:
                upper = float_up(most)
            elif log_delta(epsilon0, count, Fraction(at)).upper <= low_goal:
                upper = at
        if math.isnan(lower):
            at = max(0.0, min(epsilon - step, float_down(most)))
            if at == 0.0 or log_delta(epsilon0, count, Fraction(at)).lower >= high_goal:
                lower = at
        if lower <= upper:
            return lower, upper
    raise NumericalFailure(f"no bound near epsilon = {epsilon:g} could be certified")


def _root(epsilon0: Fraction, count: int, goal: float, most: float) -> tuple[float, float]:
    """Return roughly where log delta is the goal, and the width of the doubt about it: Newton inside a bracket."""
    low, high = 0.0, most
    step = float(epsilon0)  # the start is the closed form k ε0 tanh(ε0/2) + ε0 √(2k log(1/δ)), above the root
    epsilon = min(most * (1.0 - 1e-9), step * (count * math.tanh(0.5 * step) + math.sqrt(-2.0 * count * goal)))
    doubt = 0.0
    for _ in range(60):
        bounds = log_delta(epsilon0, count, Fraction(epsilon))
        if bounds is NOTHING:
            high, epsilon = epsilon, 0.5 * (low + epsilon)
            continue
        value = 0.5 * (bounds.lower + bounds.upper)
        doubt = (bounds.upper - bounds.lower) / bounds.slope
        following = epsilon + (value - goal) / bounds.slope
        if abs(following - epsilon) <= 0.1 * doubt + math.ulp(epsilon):
            break
        low, high = (epsilon, high) if value > goal else (low, epsilon)
        epsilon = following if low < following < high else 0.5 * (low + high)
    return epsilon, doubt + 4 * math.ulp(epsilon)


def _window(epsilon0: float, count: int, first: int) -> tuple[int, int]:
    """Ten standard deviations around the mode, from the first term on."""
    share = 1.0 / (1.0 + math.exp(-epsilon0))
    mode = round(count * share)
    width = int(10.0 * math.sqrt(count * share * math.exp(-epsilon0) * share)) + 60
    if width > _WIDEST:
        raise NumericalFailure(f"count is too large to sum: {count}")
    start = max(first, mode - width)
    return start, min(count, max(start, mode) + width)


def _beyond(mass: float, stop: int, count: int, step: float) -> float:
    """The probability above the window, by a geometric series: the ratios of neighbours decrease."""
    if stop == count:
        return 0.0
    ratio = (count - stop) / (stop + 1) * math.exp(0.5 * step)
    return 1.01 * mass * ratio / (1.0 - ratio) if ratio < 0.99 else math.inf


def _before(mass: float, start: int, first: int, count: int, step: float) -> float:
    """The probability between the first loss above epsilon and the window."""
    if start == first:
        return 0.0
    ratio = start / (count - start + 1) * math.exp(-0.5 * step)
    return 1.01 * mass * ratio / (1.0 - ratio) if ratio < 0.99 else math.inf


def _log_masses(index: FloatArray, count: float, epsilon0: float) -> tuple[FloatArray, FloatArray]:
    """Return log C(k, i) p^i (1−p)^(k−i) and bounds of the absolute errors."""
    softplus = math.log1p(math.exp(-epsilon0))
    success, first_error = _deviance(index, math.log(count) - softplus, count / (1.0 + math.exp(-epsilon0)))
    failure, second_error = _deviance(
        count - index, math.log(count) - softplus - epsilon0, count * math.exp(-epsilon0 - softplus)
    )
    whole = _stirling_rest(np.array([count]))[0]
    value = whole - _stirling_rest(index) - _stirling_rest(count - index) - success - failure
    # Half an ulp of ε0 moves p, and the logarithm by ε0 |i − kp| halves.
    doubt = 2.0 * epsilon0 * np.abs(index - count / (1.0 + math.exp(-epsilon0)))
    return value, UNIT * (128.0 + 8.0 * (first_error + second_error) + doubt)


def _deviance(x: FloatArray, log_mean: float, mean: float) -> tuple[FloatArray, FloatArray]:
    """Return x log(x/m) − x + m, and the size that its rounding errors are proportional to."""
    gap = x - mean
    near = np.abs(gap) < 0.5 * mean
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithm = np.where(near, np.log1p(np.where(near, gap, 0.0) / max(mean, 1e-300)), np.log(x) - log_mean)
        scaled = np.where(x > 0.0, x * logarithm, 0.0)
        far = np.where(x > 0.0, x * (np.abs(np.log(x)) + abs(log_mean)), 0.0)
    return scaled - gap, np.where(near, np.abs(scaled) + np.abs(gap), far + np.abs(gap))


def _stirling_rest(n: FloatArray) -> FloatArray:
    """Return log n! − n log n + n: a table below 16, six terms of Stirling's series above."""
    large = np.maximum(n, float(_SMALL))
    inverse = 1.0 / (large * large)
    series = 1 / 1260 + inverse * (-1 / 1680 + inverse * (1 / 1188 - inverse * (691 / 360360)))
    rest = (1 / 12 + inverse * (-1 / 360 + inverse * series)) / large
    stirling = 0.5 * np.log(2.0 * math.pi * large) + rest
    return np.where(n < _SMALL, _TABLE[np.minimum(n, _SMALL - 1).astype(np.intp)], stirling)
