"""Where sums of ratios of released numbers lie, of one row or of several: by whichever law is the narrowest.

one divisor   the sum is one ratio: Fieller's set, of any noise
two           of ratios that have no noise in common: where divisors are small, Fieller's set in two dimensions
              under other noise than Gaussian, by stairs of their own sets: `stair_bars.py`
others        by the angle that the divisors' noise can turn
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, cast

import numpy as np

from curador.answers.stair_bars import IndependentRatio, stair_ends
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.numerics.rounding import float_down, float_up
from curador.plan import enclosure as on
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import FAR, ratio_law
from curador.plan.ratio_pairs import NoisyRatio, ratio_pair_ends, where_small
from curador.plan.ratio_sums import ReleasedRatio, are_apart, ratio_sum_reach
from curador.plan.smooth import BOX_SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.numerics.rounding import FloatArray
    from curador.plan.error import Additive, Combination
    from curador.plan.price import Noise


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRatio:
    """One ratio in every row: its terms by the places of noises, what was released, and bounds that hold in any data."""

    above: Combination
    below: Combination
    numerator: FloatArray
    divisor: FloatArray
    within: tuple[Fraction, Fraction] | None = None


def ratio_interval(one: MeasuredRatio, noises: Sequence[Noise], confidence: Fraction) -> ColumnEnclosure | None:
    """Return Fieller's set of a ratio in every row, within its bounds; None where the noises allow none."""
    law = ratio_law(one.above, one.below, noises, confidence)
    if law is None:
        return None
    none = one.divisor <= 0
    low, high = law.ends(one.numerator / np.where(none, 1.0, one.divisor), one.numerator, one.divisor)
    open_ = np.isinf(low)
    if one.within is not None:
        bounds = float_down(one.within[0]), float_up(one.within[1])
        low, high = np.clip(low, *bounds), np.clip(high, *bounds)
    return ColumnEnclosure(low, high, open_)


def ratio_sum_interval(
    ratios: Sequence[MeasuredRatio],
    rest: Combination,
    added: FloatArray,
    noises: Sequence[Noise],
    miss: Fraction,
    rough: ColumnEnclosure,
) -> ColumnEnclosure | None:
    """Return where the sum of the ratios and of a form lies, whose terms are `rest` and whose released value is `added`.

    Claim   In each row it is missed with probability at most `miss`, of which the single ratios and `rough` have BOX_SHARE
            each. None where noises are not Gaussian and some are in two ratios. Which law is used where two have one is
            by `where_small`.
    Needs   `rough` misses with at most BOX_SHARE · miss; noises are independent; bounds hold in any data.
    Rounds  Outward.
    """
    if len(ratios) == 1 and not rest:
        where = ratio_interval(ratios[0], noises, 1 - (1 - BOX_SHARE) * miss)
        return None if where is None else _both(_shift(where, added), rough)
    held = sorted({index for terms in (rest, *(t for one in ratios for t in (one.above, one.below))) for index, _ in terms})
    laws = [noises[index] for index in held]
    each, main = BOX_SHARE * miss / (2 * len(ratios)), (1 - 2 * BOX_SHARE) * miss
    enclosed = [ratio_interval(one, noises, 1 - each) for one in ratios]
    if any(where is None for where in enclosed):
        return None
    along = [(_along(one.above, held), _along(one.below, held)) for one in ratios]
    ends = [(where.low, where.high) for where in enclosed if where is not None]
    apart = are_apart(along, _along(rest, held))
    if not all(isinstance(law, DiscreteGaussian) for law in laws):
        if len(ratios) != 2 or rest or not apart or len({type(law) for law in laws}) > 1:
            return None
        parts = [
            IndependentRatio(*terms, ratio.numerator, ratio.divisor, end, _bounds(ratio))
            for terms, ratio, end in zip(along, ratios, ends, strict=True)
        ]
        found = stair_ends((parts[0], parts[1]), cast("list[Additive]", laws), main, each)
        return None if found is None else _both(_shift(ColumnEnclosure(*found, rough.null), added), rough)
    gaussians = cast("list[DiscreteGaussian]", laws)
    main -= Fraction(FAR)  # for `where_small`
    released = [ReleasedRatio(*one, ratio.divisor, end) for one, ratio, end in zip(along, ratios, ends, strict=True)]
    value, size = added, np.abs(added)
    for ratio in ratios:
        value, size = value + ratio.numerator / ratio.divisor, size + np.abs(ratio.numerator / ratio.divisor)
    half = ratio_sum_reach(released, _along(rest, held), gaussians, main, each) + 1e-14 * size
    turned = _within(value, half, rough)
    if len(ratios) != 2 or rest or not apart:
        return turned
    pair = [
        NoisyRatio(*terms, gaussians, ratio.numerator, ratio.divisor, end)
        for terms, ratio, end in zip(along, ratios, ends, strict=True)
    ]
    paired, by_turn = where_small((pair[0], pair[1]))
    found = ratio_pair_ends((pair[0], pair[1]), main, paired)
    if found is None:
        return turned
    own = _both(_shift(ColumnEnclosure(*found, np.zeros(len(value), np.bool_)), added), rough)
    low = np.minimum(np.where(paired, own.low, np.inf), np.where(by_turn, turned.low, np.inf))
    high = np.maximum(np.where(paired, own.high, -np.inf), np.where(by_turn, turned.high, -np.inf))
    return ColumnEnclosure(low, high, (paired & own.null) | (by_turn & turned.null))


def _bounds(one: MeasuredRatio) -> tuple[float, float]:
    return (-np.inf, np.inf) if one.within is None else (float_down(one.within[0]), float_up(one.within[1]))


def _along(terms: Combination, held: Sequence[int]) -> FloatArray:
    by_place = dict(terms)
    return np.array([float(by_place.get(index, 0)) for index in held])


def _shift(where: ColumnEnclosure, move: FloatArray) -> ColumnEnclosure:
    return on.round_outward(where.low + move, where.high + move, where.null, ulps=2 if np.any(move) else 0)


def _within(value: FloatArray, half: FloatArray, rough: ColumnEnclosure) -> ColumnEnclosure:
    """value ± half inside another interval of the same number; that one where there is no half."""
    sure = np.isfinite(value) & np.isfinite(half)
    low, high = np.maximum(value - half, rough.low), np.minimum(value + half, rough.high)
    sure &= low <= high
    return ColumnEnclosure(np.where(sure, low, rough.low), np.where(sure, high, rough.high), rough.null & ~sure)


def _both(one: ColumnEnclosure, rough: ColumnEnclosure) -> ColumnEnclosure:
    """What two intervals of the same number have in common; the second where that is nothing."""
    low, high = np.maximum(one.low, rough.low), np.minimum(one.high, rough.high)
    sure = low <= high
    null = rough.null & ~(np.isfinite(one.low) & np.isfinite(one.high) & sure)
    return ColumnEnclosure(np.where(sure, low, rough.low), np.where(sure, high, rough.high), null)
