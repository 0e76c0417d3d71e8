"""Error bars of sums of ratios with different divisors, as differences of means: by the angle that divisors' noise can turn.

Let f = Σ a_i/b_i + r with a_i, b_i and r sums of measurements, and let μ_i = a_i/b_i before noise. What is released is off by

    f(x̃) − f(x) = Σ (noise of a_i − μ_i · noise of b_i)/b̃_i + noise of r = v(b̃) · Z

without any rest: Z are independent normal noises of variance 1 (coupled to the integer ones, `plan/error.py`), and v(b̃) is
known but for μ. Were b̃ not random, |v(b̃) · Z| ≤ z ‖v(b̃)‖ would hold with the probability of z. It is; it stretches v,
which does not matter, and turns it. With ω the angle between v(b̃) and v(b), Z₀ the part of Z along v(b), and Z₁ that across
it within the span of all v, which has a dimension for each ratio and one for r,

    |v(b̃) · Z| ≤ ‖v(b̃)‖ (|Z₀| + sin ω ‖Z₁‖),   Z₀ and Z₁ independent,

and of the right side the law is known for every bound of sin ω.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.plan.error import FAR, ROUND_OFF, lattice_slack, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.mechanisms.gaussian import DiscreteGaussian
    from curador.numerics.rounding import FloatArray

FINENESS = 512
"""Sines are rounded up to so many parts of 1."""

_MOST_SINE = 0.5
_EDGES = 400

Enclosed: TypeAlias = "tuple[FloatArray, FloatArray]"


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedRatio:
    """One ratio of the sum, in every row.

    above, below  coefficients of the measurements in it
    divisor       what was released of the divisor
    reach         how far its noise goes, but for its part of the miss
    ratio         where the ratio before noise lies
    """

    above: FloatArray
    below: FloatArray
    divisor: FloatArray
    reach: float
    ratio: Enclosed


def ratio_sum_reach(
    ratios: Sequence[ReleasedRatio], rest: FloatArray, noises: Sequence[DiscreteGaussian], miss: Fraction
) -> FloatArray:
    """Return how far the released sum lies from the one before noise, in every row; infinite where a divisor may be near 0.

    Claim   In each row it lies further with probability at most `miss`, and where a divisor's noise is beyond its reach or a
            ratio outside its enclosure. The turn is bounded by one number for all b̃ within reach of b: v(b̃) differs from
            κ v(b) by Σ (b_i/b̃_i − κ) q_i/b_i, where q_i is the noise of one ratio, and sin ω is at most the length of that
            over ‖v(b̃)‖; κ is the middle of all b_i/b̃_i, or 1 where r has noise. What is computed is that number or more:
            the divisors before noise are within reach of the released ones, so all is taken over twice the reach of these.
    Needs   Independent noises of one kind, Gaussian; one coefficient for each.
    Rounds  Up.
    """
    sigmas = np.array([float(spread(noise)) for noise in noises])
    slack = np.array([lattice_slack(noise) for noise in noises])
    parts = [_noise_between(one, sigmas) for one in ratios]
    own = rest * sigmas
    still = bool(np.any(own != 0))
    exactly = _combine(parts, [(1 / one.divisor, 1 / one.divisor) for one in ratios], own)
    largest = np.maximum(np.abs(exactly[0]), np.abs(exactly[1])) * ROUND_OFF
    length = np.sqrt(np.sum(largest**2, axis=-1))
    turning = len(ratios) + still - 1
    sine = _sine(ratios, parts, own, still=still) if turning else np.zeros(len(length))
    left = float(miss) * (1 - 1e-9) - len(noises) * FAR
    return (_critical(sine, turning, left) * length + (largest / sigmas) @ slack) * ROUND_OFF


def _noise_between(one: ReleasedRatio, sigmas: FloatArray) -> Enclosed:
    """q_i: for each row and measurement, over all ratios that are possible."""
    ends = [(one.above[None, :] - end[:, None] * one.below[None, :]) * sigmas for end in one.ratio]
    return np.minimum(*ends), np.maximum(*ends)


def _combine(parts: Sequence[Enclosed], divided: Sequence[Enclosed], own: FloatArray) -> Enclosed:
    """v: Σ q_i/b_i + r, for divisors whose inverses lie between two ends that are above 0."""
    low, high = np.zeros_like(parts[0][0]) + own, np.zeros_like(parts[0][0]) + own
    for (least, most), (small, large) in zip(parts, divided, strict=True):
        low = low + np.minimum(least * small[:, None], least * large[:, None])
        high = high + np.maximum(most * small[:, None], most * large[:, None])
    return low, high


def _sine(ratios: Sequence[ReleasedRatio], parts: Sequence[Enclosed], own: FloatArray, *, still: bool) -> FloatArray:
    """A bound of sin ω, NaN or above 1 where there is none."""
    near = [np.where(one.divisor > 2 * one.reach, one.divisor - one.reach, np.nan) for one in ratios]
    turned = np.stack([one.reach / (low - one.reach) for one, low in zip(ratios, near, strict=True)])
    if not still:
        first, second = np.sort(turned, axis=0)[-1], np.sort(turned, axis=0)[-2]
        turned = np.broadcast_to((first + second) / 2, turned.shape)
    sizes = np.stack([np.sqrt(np.sum(np.maximum(*map(np.abs, part)) ** 2, axis=-1)) for part in parts])
    moved = np.sum(turned * sizes / np.stack(near), axis=0)
    wide = [(1 / (one.divisor + 2 * one.reach), 1 / (low - one.reach)) for one, low in zip(ratios, near, strict=True)]
    low, high = _combine(parts, wide, own)
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return moved / np.sqrt(np.sum(least**2, axis=-1)) * ROUND_OFF


def _critical(sine: FloatArray, turning: int, miss: float) -> FloatArray:
    """For each row c with P[|Z₀| + sine · ‖Z₁‖ > c] ≤ miss; infinite where the sine has no useful bound."""
    known = np.isfinite(sine) & (sine <= _MOST_SINE)
    steps = np.where(known, np.ceil(np.where(known, sine, 0.0) * FINENESS), -1).astype(np.int64)
    found = {step: critical_value(step, turning, miss) if step >= 0 else np.inf for step in np.unique(steps).tolist()}
    return np.array([found[step] for step in steps.tolist()])


@lru_cache(maxsize=1024)
def critical_value(step: int, turning: int, miss: float) -> float:
    """Return c with P[|Z₀| + step/FINENESS · ‖Z₁‖ > c] ≤ miss, ‖Z₁‖ of the law χ with so many degrees of freedom.

    Claim   ‖Z₁‖ is taken at the upper edge of each of some hundred cells, so that the probability is overestimated.
    Rounds  Up.
    """
    from scipy.special import gammainc, ndtr, ndtri

    sine = step / FINENESS
    if not step or not turning:
        return float(-ndtri(miss / 2)) * ROUND_OFF
    edges = np.linspace(0.0, 9.0 + turning, _EDGES + 1)
    below = gammainc(turning / 2, edges**2 / 2)
    masses, beyond = np.diff(below) * ROUND_OFF, (1 - below[-1]) + 1e-14
    low, high = 0.0, 40.0 + 10 * sine * (9.0 + turning)
    for _ in range(60):
        middle = (low + high) / 2
        missed = float(masses @ np.minimum(2 * ndtr(sine * edges[1:] - middle), 1.0)) + beyond
        low, high = (low, middle) if missed <= miss else (middle, high)
    return high * ROUND_OFF
