"""Error bars of sums of ratios with different divisors, as differences of means: by the angle that divisors' noise can turn.

Let f = Σ a_i/b_i + r with a_i, b_i and r sums of measurements, and let μ_i = a_i/b_i before noise. What is released is off by

    f(x̃) − f(x) = Σ (noise of a_i − μ_i · noise of b_i)/b̃_i + noise of r = v(b̃) · Z

without any rest: Z are independent normal noises of variance 1 (coupled to the integer ones, `plan/error.py`), and v(b̃) is
known but for μ. Were b̃ not random, |v(b̃) · Z| ≤ z ‖v(b̃)‖ would hold with the probability of z. It is; it stretches v,
which does not matter, and turns it. With ω the angle between v(b̃) and v(b), Z₀ the part of Z along v(b), and Z₁ that across
it within the span of all v, which has a dimension for each ratio and one for r,

    |v(b̃) · Z| ≤ ‖v(b̃)‖ (|Z₀| + sin ω ‖Z₁‖),   Z₀ and Z₁ independent,

and of the right side the law is known for every bound of sin ω.

Where ratios have no noise in common, as means of different rows, less turns. Of the noise of b_i only the part along q_i, the
noise of a_i − μ_i b_i, is random once the rest g_i = b_i + (the part across q_i) is known; and that says nothing of any q, as
normal noises that are orthogonal are independent. So v(g) takes the place of v(b): a mean near the middle of its bounds,
whose q has little of its count's noise, hardly turns at all.
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

_MOST_SINE = 0.9
_EDGES = 400

Enclosed: TypeAlias = "tuple[FloatArray, FloatArray]"


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedRatio:
    """One ratio of the sum, in every row.

    above, below  coefficients of the measurements in it
    divisor       what was released of the divisor
    ratio         where the ratio before noise lies
    """

    above: FloatArray
    below: FloatArray
    divisor: FloatArray
    ratio: Enclosed


def ratio_sum_reach(
    ratios: Sequence[ReleasedRatio], rest: FloatArray, noises: Sequence[DiscreteGaussian], miss: Fraction, each: Fraction
) -> FloatArray:
    """Return how far the released sum lies from the one before noise, in every row; infinite where a divisor may be near 0.

    Claim   In each row it lies further with probability at most `miss`, and `each` for each ratio, and where a ratio is
            outside its enclosure. `each` is what a normal noise that belongs to a ratio has beyond c: that of its divisor,
            or, where no noise is in two of them, the one along q_i. Within it sin ω is at most a number that is not random.
    Needs   Independent noises of one kind, Gaussian; one coefficient for each.
    Rounds  Up.
    """
    from scipy.special import ndtri

    sigmas = np.array([float(spread(noise)) for noise in noises])
    slack = np.array([lattice_slack(noise) for noise in noises])
    parts = [_noise_between(one, sigmas) for one in ratios]
    own = rest * sigmas
    still = bool(np.any(own != 0))
    exactly = _combine(parts, [(1 / one.divisor, 1 / one.divisor) for one in ratios], own)
    largest = np.maximum(np.abs(exactly[0]), np.abs(exactly[1])) * ROUND_OFF
    length = np.sqrt(np.sum(largest**2, axis=-1))
    turning = len(ratios) + still - 1
    sine, furthest = np.zeros(len(length)), 0.0
    if turning:
        c = -float(ndtri(float(each) / 2)) * ROUND_OFF
        sizes = [(float(np.linalg.norm(one.below * sigmas)), float(np.abs(one.below) @ slack)) for one in ratios]
        if are_apart([(one.above, one.below) for one in ratios], rest):
            sine, furthest = _sine_apart(ratios, sigmas, [(c * size, c * slip) for size, slip in sizes], still=still), c
        else:
            sine = _sine(ratios, parts, own, [c * size + slip for size, slip in sizes], still=still)
    left = float(miss) * (1 - 1e-9) - len(noises) * FAR
    return (_critical(sine, turning, left, furthest) * length + (largest / sigmas) @ slack) * ROUND_OFF


def are_apart(ratios: Sequence[tuple[FloatArray, FloatArray]], rest: FloatArray) -> bool:
    """Whether no noise is in two ratios, or in one and in the rest; a ratio is its coefficients above and below."""
    used = [(above != 0) | (below != 0) for above, below in ratios]
    return bool(np.all(np.sum([*used, rest != 0], axis=0) <= 1))


def _sine_apart(
    ratios: Sequence[ReleasedRatio], sigmas: FloatArray, reaches: Sequence[tuple[float, float]], *, still: bool
) -> FloatArray:
    """A bound of sin ω for ratios that have no noise in common, NaN or above 1 where there is none.

    Claim   With k the cosine of the angle between the noise of b_i and q_i, both have b̃_i = g_i + k · (noise of the length of
            that of b_i, along q_i), so |b̃_i/g_i − 1| ≤ e = |k| reach/g_i, and the slack of the lattice is added. In the
            plane of b_i's noise and q_i(μ) the angle grows with μ, so |k| is largest at an end of μ's enclosure; g_i ≥ b̃_i
            − |k| reach. v(b̃) is v(g) with its coordinates, which are orthogonal, multiplied by g_i/b̃_i between 1/(1 + e)
            and 1/(1 − e) and that of r by 1. If no factor is more than κ times another, sin ω ≤ (κ − 1)/(κ + 1).
            Noises along q that are at most a part ρ/c of their reaches c turn by at most that part of the bound: for two e
            the bound is (e + e′)ρ/(2c − |e − e′|ρ), which over ρ grows with ρ. The slack is taken c times, so for ρ ≥ 1 as
            well.
    Source  Kantorovich's inequality: Σ d x² Σ x²/d ≤ ((√κ + 1/√κ)/2)² (Σ x²)², with √d x for x, so cos ω ≥ 2√κ/(κ + 1).
    Rounds  Up.
    """
    parts = [np.zeros(len(ratios[0].divisor))] if still else []
    for ratio, (reach, slack) in zip(ratios, reaches, strict=True):
        beside = np.maximum(*(_cosine(ratio, end, sigmas) for end in ratio.ratio))
        moved = beside * reach + slack
        near = ratio.divisor - moved
        part = np.where(near > moved, moved / np.where(near > moved, near, 1.0), np.nan) * ROUND_OFF
        parts.append(part)
    return turn_of_parts(parts)


def _cosine(one: ReleasedRatio, end: FloatArray, sigmas: FloatArray) -> FloatArray:
    """The cosine of the angle between the noise of the divisor and that of a − μb, without its sign; 1 where μ has no end."""
    known = np.isfinite(end)
    below = one.below * sigmas
    noise = one.above * sigmas - np.where(known, end, 0.0)[:, None] * below
    size = np.linalg.norm(below) * np.linalg.norm(noise, axis=-1)
    found = np.abs(noise @ below) / np.where(size > 0, size, 1.0) * ROUND_OFF
    return np.where(known & (size > 0), np.minimum(found, 1.0), 1.0)


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


def _sine(
    ratios: Sequence[ReleasedRatio],
    parts: Sequence[Enclosed],
    own: FloatArray,
    far: Sequence[float],
    *,
    still: bool,
) -> FloatArray:
    """A bound of sin ω, NaN or above 1 where there is none; `far`: how far the divisors' noises go.

    Claim   One number for all b̃ within reach of b: v(b̃) differs from κ v(b) by Σ (b_i/b̃_i − κ) q_i/b_i, where q_i is the
            noise of one ratio, and sin ω is at most the length of that over ‖v(b̃)‖; κ is the middle of all b_i/b̃_i, or 1
            where r has noise. What is computed is that number or more: the divisors before noise are within reach of the
            released ones, so all is taken over twice the reach of these.
    """
    near = [np.where(one.divisor > 2 * reach, one.divisor - reach, np.nan) for one, reach in zip(ratios, far, strict=True)]
    turned = np.stack([reach / (low - reach) for reach, low in zip(far, near, strict=True)])
    if not still:
        first, second = np.sort(turned, axis=0)[-1], np.sort(turned, axis=0)[-2]
        turned = np.broadcast_to((first + second) / 2, turned.shape)
    sizes = np.stack([np.sqrt(np.sum(np.maximum(*map(np.abs, part)) ** 2, axis=-1)) for part in parts])
    moved = np.sum(turned * sizes / np.stack(near), axis=0)
    wide = [(1 / (one.divisor + 2 * reach), 1 / (low - reach)) for one, reach, low in zip(ratios, far, near, strict=True)]
    low, high = _combine(parts, wide, own)
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return moved / np.sqrt(np.sum(least**2, axis=-1)) * ROUND_OFF


def turned_reach(
    noises: Sequence[DiscreteGaussian], coefficients: FloatArray, parts: Sequence[FloatArray], miss: Fraction
) -> FloatArray:
    """Return the reach of a sum of forms without a common noise, each over a divisor of its own that was released.

    parts   by divisor: of what part of itself its noise can be, in every row; NaN where of all of it

    Claim   It is exceeded with probability at most `miss`, and where a divisor's noise is larger. As of ratios: b/b̃ is
            between 1/(1 + e) and 1/(1 − e), so if no factor is more than κ times another, sin ω ≤ (κ − 1)/(κ + 1).
    Needs   Independent noises; `coefficients` are the largest that are possible, each over its released divisor.
    Rounds  Up.
    """
    sine = turn_of_parts(parts)
    sigmas = np.array([float(spread(noise)) for noise in noises])
    slack = np.array([lattice_slack(noise) for noise in noises])
    left = float(miss) * (1 - 1e-9) - len(noises) * FAR
    length = np.sqrt(np.sum((coefficients * sigmas) ** 2, axis=-1))
    return (_critical(sine, len(parts) - 1, left, 0.0) * length + coefficients @ slack) * ROUND_OFF


def turn_of_parts(parts: Sequence[FloatArray]) -> FloatArray:
    """Return (κ − 1)/(κ + 1), κ being what two factors between 1/(1 + e) and 1/(1 − e) can differ by; NaN: no bound."""
    found = np.zeros(len(parts[0]))
    for place, part in enumerate(parts):
        for other in (*parts[:place], *parts[place + 1 :]):
            low, high = 1 / (1 + other), 1 / (1 - part)
            found = np.maximum(found, (high - low) / (high + low) * ROUND_OFF)  # NaN stays
    return found


def _critical(sine: FloatArray, turning: int, miss: float, furthest: float) -> FloatArray:
    """For each row the critical value of its sine; infinite where that has no useful bound."""
    known = np.isfinite(sine) & (sine <= _MOST_SINE)
    fine = FINENESS // 8 if furthest else FINENESS
    steps = np.where(known, np.ceil(np.where(known, sine, 0.0) * fine) * (FINENESS // fine), -1).astype(np.int64)
    found = {
        step: critical_value(step, turning, miss, furthest) if step >= 0 else np.inf for step in np.unique(steps).tolist()
    }
    return np.array([found[step] for step in steps.tolist()])


@lru_cache(maxsize=1024)
def critical_value(step: int, turning: int, miss: float, furthest: float = 0.0) -> float:
    """Return c with P[|Z₀| + s ‖Z₁‖ > c] ≤ miss, ‖Z₁‖ of the law χ with so many degrees of freedom, and s = step/FINENESS.

    furthest   if not 0, s is multiplied by max(‖(Z₀, Z₁)‖, 1)/furthest, where that is below 1: near noise turns less

    Claim   ‖Z₁‖ is taken at the upper edge of each of some hundred cells, so that the probability is overestimated; the left
            side grows with |Z₀|, so what is missed of a cell lies beyond one |Z₀|, which is taken from below.
    Rounds  Up.
    """
    from scipy.special import gammainc, ndtr, ndtri

    sine = step / FINENESS
    if not step or not turning:
        return float(-ndtri(miss / 2)) * ROUND_OFF
    edges = np.linspace(0.0, 9.0 + turning, _EDGES + 1)
    below = gammainc(turning / 2, edges**2 / 2)
    masses, beyond, edges = np.diff(below) * ROUND_OFF, (1 - below[-1]) + 1e-14, edges[1:]
    low, high = 0.0, 40.0 + 10 * sine * (9.0 + turning)
    for _ in range(48):
        middle = (low + high) / 2
        missed = float(masses @ np.minimum(2 * ndtr(-_least_along(middle, sine, edges, furthest)), 1.0)) + beyond
        low, high = (low, middle) if missed <= miss else (middle, high)
    return high * ROUND_OFF


def _least_along(c: float, sine: float, across: FloatArray, furthest: float) -> FloatArray:
    """The least |Z₀| at which |Z₀| + s ‖Z₁‖ reaches c, for each ‖Z₁‖, or less."""
    if not furthest:
        return np.maximum(c - sine * across, 0.0)
    low, high = np.zeros_like(across), np.full_like(across, c)
    for _ in range(24):
        middle = (low + high) / 2
        turned = sine * np.minimum(np.maximum(np.hypot(middle, across), 1.0) / furthest, 1.0)
        short = middle + turned * across < c
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return low
