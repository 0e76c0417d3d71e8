"""Probabilities of binomial counts and of sums of fair signs, in floats, with stated relative errors.

    P[Bin(N, p) = c] = √(N/2πc(N−c)) e^(r(N) − r(c) − r(N−c)) e^(−d),   r(n) = log n! − log(√2πn (n/e)ⁿ),
    d = Np φ((c−Np)/Np) + Nq φ(−(c−Np)/Nq),   φ(y) = (1+y) log(1+y) − y;   for p = 1/2: d = N f(x), x = (2c−N)/N,
    f(x) = x artanh x + log(1−x²)/2.

Each factor is taken by itself, so that the error grows with the deviance d, which is what the masses are e^(−d) of, and not
with log N!. Source: [Loa00].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray

_SMALL = 16
_TABLE = np.array(
    [0.0, *(math.log(math.factorial(n)) - 0.5 * math.log(2.0 * math.pi * n) - n * math.log(n) + n for n in range(1, _SMALL))]
)
_TERMS = 24
REACH = 100.0
"""What is left out of a window has a probability of about e^(−REACH) at most; its bound is returned."""


def _stirling(n: FloatArray) -> FloatArray:
    """r(n): a table below 16, six terms of Stirling's series above. Absolute error: 40 UNIT."""
    large = np.maximum(n, float(_SMALL))
    inverse = 1.0 / (large * large)
    series = 1 / 1260 + inverse * (-1 / 1680 + inverse * (1 / 1188 - inverse * (691 / 360360)))
    rest = (1 / 12 + inverse * (-1 / 360 + inverse * series)) / large
    return np.where(n < _SMALL, _TABLE[np.minimum(n, _SMALL - 1).astype(np.intp)], rest)


def _front(whole: FloatArray, part: FloatArray) -> FloatArray:
    """√(N/2πc(N−c)) e^(r(N) − r(c) − r(N−c)) for 0 < c < N, and 1 at the ends."""
    inside = (part > 0.0) & (part < whole)
    share = np.where(inside, part, 1.0)
    rest = np.where(inside, whole - part, 1.0)
    root = np.sqrt(whole / (2.0 * math.pi) / share / rest)
    return np.where(inside, root * np.exp(_stirling(whole) - _stirling(share) - _stirling(rest)), 1.0)


def sign_masses(count: FloatArray, ups: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P[`ups` of `count` fair signs are +], elementwise, and bounds of the relative errors; 0 outside 0 … count."""
    inside = (ups >= 0.0) & (ups <= count)
    part = np.where(inside, ups, count)
    x = np.abs(2.0 * part - count) / count
    near = np.minimum(x, 0.5)
    small = 0.5 * near * np.log1p(2.0 * near / (1.0 - near)) + 0.5 * np.log1p(-near * near)
    far = np.minimum(1.0 - x, 0.5)  # exact by Sterbenz's lemma where x is at least 1/2
    logarithm = np.log(np.where(far > 0.0, far, 1.0))
    large = 0.5 * ((1.0 + x) * np.log1p(np.maximum(x, 0.5)) + far * logarithm)
    deviance = count * np.where(x < 0.5, small, large)
    mass = np.where(inside, _front(count, part) * np.exp(-deviance), 0.0)
    return mass, UNIT * (200.0 + 48.0 * deviance)


def binomial_window(trials: int, share: float, rest: float) -> tuple[int, FloatArray, FloatArray, float]:
    """Return the first count of a window of Bin(trials, share), its masses, their relative errors and the mass outside.

    Needs   share + rest = 1, each within 16 UNIT of its own size.
    Rounds  The mass outside: up.
    """
    if trials == 0 or share == 0.0:
        return 0, np.ones(1), np.full(1, UNIT), 0.0
    if rest == 0.0:
        return trials, np.ones(1), np.full(1, UNIT), 0.0
    variance = trials * share * rest
    width = math.sqrt(2.0 * REACH * variance) + REACH  # Bernstein: e^(−w²/(2 var + 2w/3)), with room
    low = max(0, math.floor(trials * share - width))
    high = min(trials, math.ceil(trials * share + width))
    counts = np.arange(low, high + 1, dtype=np.float64)
    n = float(trials)
    gap = counts - n * share if share <= rest else n * rest - (n - counts)
    ends = (counts == 0.0) | (counts == n)
    with np.errstate(over="ignore", invalid="ignore"):  # shares near the smallest float: masses there are nothing
        middle = n * share * _phi(gap / (n * share)) + n * rest * _phi(-gap / (n * rest))
    middle = np.where(np.isnan(middle), np.inf, middle)
    deviance = np.where(ends, -n * np.where(counts == 0.0, _log(rest, share), _log(share, rest)), middle)
    masses = _front(np.full_like(counts, n), counts) * np.exp(-deviance)
    heavy = np.flatnonzero(masses >= math.exp(-1.05 * REACH))  # a run: the masses rise to the mode and fall
    kept = slice(int(heavy[0]), int(heavy[-1]) + 1)
    low, high = low + kept.start, low + kept.stop - 1
    masses, deviance, gap = masses[kept], deviance[kept], gap[kept]
    errors = UNIT * (240.0 + 48.0 * deviance + 48.0 * np.abs(gap))
    outside = _outside(n, share, rest, low, float(masses[0])) + _outside(n, rest, share, trials - high, float(masses[-1]))
    return low, masses, errors, outside


def _log(part: float, other: float) -> float:
    """log(part) where part + other = 1, from the one that keeps its digits."""
    return math.log1p(-other) if other < 0.5 else math.log(part)


def _outside(trials: float, share: float, rest: float, first: int, mass: float) -> float:
    """The probability below the first count, by a geometric series: the ratios of neighbours fall away from the mode."""
    if first == 0:
        return 0.0
    below = (trials + 1.0) * share - first  # of the mode, give or take one: above 0 as a window holds the mode
    return 1.01 * mass * first * rest / below if below > 0.0 else 1.0


def _phi(y: FloatArray) -> FloatArray:
    """(1 + y) log(1 + y) − y for y ≥ −1, by its series near 0: Σ_{j≥2} (−y)^j/(j(j−1)). Relative error: 48 UNIT."""
    near = np.abs(y) < 0.15
    z = np.where(near, y, 0.0)
    series = np.zeros_like(z)
    for j in range(_TERMS, 1, -1):
        series = (1.0 / (j * (j - 1))) - z * series
    safe = np.where(y > -1.0, y, 0.0)
    direct = np.where(y > -1.0, (1.0 + safe) * np.log1p(safe) - safe, 1.0)
    return np.where(near, z * z * series, direct)
