"""Where a function of two independent numbers lies, as a difference of means or of deviations: by stairs of intervals.

two ratios   sums of them, as a difference of means under Laplace noise
two numbers  of any kind, whose intervals are not known to miss above as often as below: both sides at once

Two ratios. Each has Fieller's set at every level, whose two ends miss half as often each; `plan/stairs.py` says which pairs
of upper ends hold at once, so that the largest sum of such a pair is an upper end of the sum, and likewise below. The form of
a stair should suit how long one part is beside the other. That must not be read off noisy numbers, so it is the form for the
true lengths, which are among those that are possible: the ends are the outermost of all forms that may be the right one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import ROUND_OFF, deviation, ratio_laws, sum_reach, weighted_noises
from curador.plan.stairs import rungs, stair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.numerics.rounding import FloatArray
    from curador.plan.error import Additive
    from curador.randomness.entropy import BoolArray, IntArray

_FORMS = ((50.0, 0.1), (25.0, 0.3), (0.0, float("inf")))
"""By how often the smaller divisor has its deviation at least, for how far around its own ratio of lengths a form is made."""

_FEW = {True: 500.0, False: 1000.0}
_BAND = {True: 8.0, False: 20.0}
"""For Gaussian noise and for other: below how many deviations of a count stairs are used, and where a noise is below FAR."""

_STEP = 0.2
_OUTERMOST = 24
"""Ratios of lengths are divided into so fine steps of their logarithm, so many of them on each side of 1."""


@dataclass(frozen=True, slots=True, eq=False)
class IndependentRatio:
    """One ratio in every row: coefficients of the noises above and below, what was released, where it lies, and its bounds.

    ends    where the ratio before noise lies; it may be missed
    bounds  between which it lies in any data
    """

    above: FloatArray
    below: FloatArray
    numerator: FloatArray
    divisor: FloatArray
    ends: tuple[FloatArray, FloatArray]
    bounds: tuple[float, float]


def stair_ends(
    ratios: tuple[IndependentRatio, IndependentRatio], laws: Sequence[Additive], miss: Fraction, each: Fraction
) -> tuple[FloatArray, FloatArray] | None:
    """Return the ends of the sum of two ratios in every row; None where a ratio has no set.

    Claim   In each row the sum before noise is missed with probability at most `miss`, and where a ratio or a divisor lies
            outside of what is said of it; divisors do with `each`. The class of the smaller true divisor, and the step of the
            true ratio of lengths, are not random, and neither is the stair that belongs to them: it misses with miss/2 above
            and below. It is among those that are looked at, and the ends are the outermost of theirs.
    Needs   Independent noises, none of them in both ratios.
    Rounds  Outward.
    """
    kind = laws[0]
    _, levels = rungs(kind)
    ladders = [_ladder(one, laws, levels) for one in ratios]
    if ladders[0] is None or ladders[1] is None:
        return None
    (low1, high1), (low2, high2) = ladders[0], ladders[1]
    rows = len(ratios[0].divisor)
    low, high = np.full(rows, np.inf), np.full(rows, -np.inf)
    for (about, step), at in _possible_forms(ratios, laws, each):
        steps = stair(kind, miss / 2, step, about, sides=1)
        if steps is None:
            low[at], high[at] = -np.inf, np.inf
            continue
        first, second = (np.array(one)[:, None] for one in (steps.first, steps.second))
        low[at] = np.minimum(low[at], np.min(low1[first, at] + low2[second, at], axis=0))
        high[at] = np.maximum(high[at], np.max(high1[first, at] + high2[second, at], axis=0))
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


def _ladder(one: IndependentRatio, laws: Sequence[Additive], levels: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Both ends of a ratio at every level, by rung and row: at the first the released ratio itself, within its bounds."""
    held = [place for place in range(len(laws)) if one.above[place] or one.below[place]]
    found = ratio_laws(
        tuple(one.above[held].tolist()),
        tuple(one.below[held].tolist()),
        tuple(laws[place] for place in held),
        tuple((2 * levels[1:]).tolist()),
    )
    if found is None:
        return None
    none = ~(one.divisor > 0)
    ratio = one.numerator / np.where(none, 1.0, one.divisor)
    ends = [law.ends(ratio, one.numerator, one.divisor) for law in found]
    first = [np.where(none, way * np.inf, np.nextafter(ratio, way * np.inf)) for way in (-1, 1)]
    low, high = np.stack([first[0], *(end[0] for end in ends)]), np.stack([first[1], *(end[1] for end in ends)])
    low, high = np.where(none, -np.inf, np.minimum.accumulate(low)), np.where(none, np.inf, np.maximum.accumulate(high))
    return np.clip(low, *one.bounds), np.clip(high, *one.bounds)


def _possible_forms(
    ratios: tuple[IndependentRatio, IndependentRatio], laws: Sequence[Additive], each: Fraction
) -> list[tuple[tuple[float, float], IntArray]]:
    """Which forms may be the right one, each with the rows where it may be: (how far around, logarithm of the ratio).

    Claim   It is where both divisors are within their reaches, which each is missed with `each`, and both ratios within
            their ends. The length of a part is the deviation of the noise of a − θb over b.
    """
    deviations = np.array([deviation(law) for law in laws])
    divisors, noises, sizes = [], [], []
    for ratio in ratios:
        terms = tuple((place, Fraction(c)) for place, c in enumerate(ratio.below.tolist()) if c)
        reach = sum_reach(weighted_noises(terms, laws), 1 - each)
        divisors.append((ratio.divisor - reach, ratio.divisor + reach))
        noises.append(_noise_between(ratio, deviations))
        sizes.append(float(np.linalg.norm(ratio.below * deviations)))
    found: list[tuple[tuple[float, float], IntArray]] = []
    largest = np.minimum(*(ends[1] / size for ends, size in zip(divisors, sizes, strict=True)))
    smallest = np.minimum(*(ends[0] / size for ends, size in zip(divisors, sizes, strict=True)))
    most = np.inf
    for least, about in _FORMS:
        able = (largest * ROUND_OFF >= least) & (smallest <= most * ROUND_OFF) | np.isnan(largest + smallest)
        most = least
        if not least:
            found.append(((about, 0.0), np.flatnonzero(able)))
            continue
        lengths = []
        for (lower, far), (quiet, loud), size in zip(divisors, noises, sizes, strict=True):
            near = np.maximum(lower, least * size)  # as it is in this class
            with np.errstate(all="ignore"):
                lengths.append((np.log(quiet / np.maximum(far, near)), np.log(loud / near)))
        first = _step_at(lengths[1][0] - lengths[0][1], -1)
        last = _step_at(lengths[1][1] - lengths[0][0], 1)
        for step in range(int(first[able].min(initial=0)), int(last[able].max(initial=-1)) + 1):
            at = np.flatnonzero(able & (first <= step) & (step <= last))
            if len(at):
                form = (about + _STEP / 2, (step + 0.5) * _STEP) if abs(step) < _OUTERMOST else (float("inf"), 0.0)
                found.append((form, at))
    return found


def _step_at(logarithm: FloatArray, way: int) -> FloatArray:
    """The step of a logarithm, rounded outward; the outermost where it is none."""
    step = np.floor(logarithm / _STEP + way * 1e-9)
    return np.clip(np.where(np.isnan(step), way * np.inf, step), -_OUTERMOST, _OUTERMOST)


def _noise_between(one: IndependentRatio, deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest deviation of the noise of a − θb, for θ between the ends of the ratio."""
    above, below = one.above * deviations, one.below * deviations
    low, high = one.ends
    middle = float(above @ below) / float(below @ below)
    nearest = np.clip(middle, low, high)
    sizes = [np.linalg.norm(above - end[:, None] * below, axis=-1) for end in (low, high)]
    return np.linalg.norm(above - nearest[:, None] * below, axis=-1) / ROUND_OFF, np.maximum(*sizes) * ROUND_OFF


# ---- two numbers ----------------------------------------------------------------------------------------------------


def stair_image(
    parts: tuple[Callable[[Fraction], ColumnEnclosure], Callable[[Fraction], ColumnEnclosure]],
    image: Callable[[ColumnEnclosure, ColumnEnclosure], ColumnEnclosure],
    kind: Additive,
    miss: Fraction,
) -> ColumnEnclosure | None:
    """Return where a function of two independent numbers lies; None where no stair is made for so small a miss.

    parts  the interval of each number that misses with at most so much; image: what the function can be over two intervals

    Claim   It is missed with probability at most `miss`: the intervals at smaller misses are widened until each lies in the
            next, so the stair holds.
    Needs   What was released of one number is independent of what was released of the other.
    """
    _, levels = rungs(kind)
    steps = stair(kind, miss, 0.0, float("inf"), sides=2)
    if steps is None:
        return None
    first = _nested(parts[0], levels, steps.first)
    second = _nested(parts[1], levels, tuple(reversed(steps.second)))[::-1]
    found = [image(one, other) for one, other in zip(first, second, strict=True)]
    return _hull(found)


def where_few(sizes: Sequence[tuple[FloatArray, Additive]]) -> tuple[BoolArray, BoolArray]:
    """Return in which rows stairs are to be used, and in which the law of slopes; in some both are.

    sizes  what was released of counts, with their noises

    Claim   If the interval is all that either allows where both are used, it misses no more often than one of them alone,
            but for FAR, as in `where_small` of `plan/ratio_pairs.py`: which one is right is decided by the smallest of the
            counts before noise over their deviations; the other is used alone only where a noise is beyond its band.
    """
    gaussian = all(isinstance(noise, DiscreteGaussian) for _, noise in sizes)
    size = np.minimum.reduce([count / deviation(noise) for count, noise in sizes])
    return size < _FEW[gaussian] + _BAND[gaussian], ~(size < _FEW[gaussian] - _BAND[gaussian])


def _nested(part: Callable[[Fraction], ColumnEnclosure], levels: FloatArray, at: tuple[int, ...]) -> list[ColumnEnclosure]:
    """The intervals of a number at some rungs, from the shortest on; each holds the one before."""
    found: list[ColumnEnclosure] = []
    for rung in at:
        own = part(Fraction(2 * float(levels[rung])) if rung else Fraction(1, 2))
        found.append(_hull([*found[-1:], own]))
    return found


def _hull(held: Sequence[ColumnEnclosure]) -> ColumnEnclosure:
    low, high = np.minimum.reduce([one.low for one in held]), np.maximum.reduce([one.high for one in held])
    return ColumnEnclosure(low, high, np.logical_or.reduce([one.null for one in held]))
