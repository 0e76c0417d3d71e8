"""Released integers to estimates with their error bars: where the number before noise lies, of an expression too.

An interval covers the number before noise: after caps, clamps and dropped rows, whether the row is shown or not. What an
estimate is and where it lies, each says of itself in `plan/aggregates.py`. Parts of an expression that are sums of
measurements, ratios of two such sums, smooth functions of several estimates, or single estimates have a law of their own. If
there are k different ones, each gets an interval that misses with (1 − confidence)/k, so that all hold at once with the
confidence asked for; the functions above them map these intervals to all that can come out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from curador.answers.computed import ReleasedFrame, Vector, evaluate, numbers, settle_types
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.numerics.rounding import float_down, float_up
from curador.plan import enclosure as on
from curador.plan.aggregates import Ends, Linear
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import ratio_law
from curador.plan.functions import ENCLOSURES, TRUTHS
from curador.plan.model import estimates_of, measurements_of
from curador.plan.parts import PartWithLaw, Quotient, RatioSum, Smooth, jet_of, part_of, parts_of
from curador.plan.ratio_pairs import NoisyRatio, is_small, ratio_pair_ends
from curador.plan.ratio_sums import ReleasedRatio, are_apart, ratio_sum_reach
from curador.plan.smooth import BOX_SHARE, smooth_interval
from curador.query.tree import Call, Estimated
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from curador.answers.release import ReleasedBlock
    from curador.numerics.rounding import FloatArray
    from curador.plan.aggregates import PlannedEstimate
    from curador.plan.enclosure import Truth
    from curador.plan.model import BlockPlan
    from curador.plan.price import Noise
    from curador.query.tree import Node


# ---- one estimate


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """An estimate in every row: its value, where the number before noise lies, and the integers of a count."""

    value: Vector
    where: ColumnEnclosure
    whole: NDArray[Any] | None = None


def estimate_values(block: BlockPlan, noises: Sequence[Noise], released: ReleasedBlock, confidence: Fraction) -> list[Bars]:
    """Return every estimate of a block with its interval."""
    return [
        Bars(
            estimate_value(estimate, released),
            estimate.interval(noises, released, confidence),
            estimate.integers(released) if isinstance(estimate, Linear) and estimate.whole else None,
        )
        for estimate in block.estimates
    ]


def estimate_value(estimate: PlannedEstimate, released: ReleasedBlock) -> Vector:
    """Return the estimate in every row; NULL where a released count is not above 0."""
    return numbers(*estimate.value(released))


# ---- ratios of sums of measurements


def quotient_interval(
    one: Quotient, noises: Sequence[Noise], released: ReleasedBlock, confidence: Fraction
) -> ColumnEnclosure | None:
    """Return the interval of a ratio of two sums; None where their noises allow none."""
    law = ratio_law(one.above.terms, one.below.terms, noises, confidence) if one.above.terms else None
    if law is None:
        return None
    above, below = one.above.value(released)[0], one.below.value(released)[0]
    none = below <= 0
    low, high = law.ends(above / np.where(none, 1.0, below), above, below)
    open_ = np.isinf(low)
    if one.within is not None:
        bounds = float_down(one.within[0]), float_up(one.within[1])
        low, high = np.clip(low, *bounds), np.clip(high, *bounds)
    return ColumnEnclosure(low, high, open_)


# ---- expressions


@dataclass(frozen=True, slots=True, eq=False)
class Sight(ReleasedFrame):
    """All that intervals are computed from: keys and values of the rows, the plan, its noises, and what was released.

    laws      where the parts of one expression lie that have a law of their own: from them it goes upward
    in_parts  smooth expressions are taken in their parts
    """

    block: BlockPlan
    noises: Sequence[Noise]
    released: ReleasedBlock
    laws: Mapping[PartWithLaw, ColumnEnclosure] = field(default_factory=dict["PartWithLaw", "ColumnEnclosure"], kw_only=True)
    in_parts: bool = field(default=False, kw_only=True)

    def number(self, node: Node) -> ColumnEnclosure:
        """Where a number can lie; a whole one that is computed has 64 bits or is NULL."""
        if not (node.type is None or node.type.numeric):
            return on.unknown(self.rows)
        if not estimates_of(node):
            known = evaluate(node, self)
            return on.exactly(known.values, known.null)
        part = part_of(node, self.block, smooth=not self.in_parts)
        if not isinstance(node, Call):
            return on.unknown(self.rows) if part is None else self.laws[part]
        found = ENCLOSURES[node.function](node, self) if part is None else self.laws[part]
        return on.fit_integers(found) if node.type is Type.INTEGER else found

    def truth(self, node: Node) -> Truth:
        """What a condition can come to."""
        if not estimates_of(node):
            known = evaluate(node, self, Type.BOOLEAN)
            return on.certain(known.values, known.null)
        return TRUTHS[node.function](node, self) if isinstance(node, Call) else on.doubtful(self.rows)


def enclose(node: Node, sight: Sight, confidence: Fraction) -> ColumnEnclosure:
    """Return where the number before noise lies, in every row.

    Claim   In each row, with at least this probability, the expression of the numbers before noise is in the enclosure, or is
            NULL and the enclosure says so. Needs: an expression of a number. Rounds: outward.
    """
    node = settle_types(node, sight)
    parts = parts_of(node, sight.block)
    level = 1 - (1 - confidence) / max(len(parts), 1)
    own = replace(sight, laws={part: _law(part, sight, level) for part in parts})
    with np.errstate(all="ignore"):
        return own.number(node)


def _law(part: PartWithLaw, sight: Sight, level: Fraction) -> ColumnEnclosure:
    match part:
        case Linear():
            return part.interval(sight.noises, sight.released, level)
        case Quotient():
            with np.errstate(all="ignore"):
                return quotient_interval(part, sight.noises, sight.released, level) or on.unknown(sight.rows)
        case Estimated():
            return sight.block.estimates[part.index].interval(sight.noises, sight.released, level)
        case Smooth():
            with np.errstate(all="ignore"):
                return _smooth_law(part.node, sight, 1 - level)
        case RatioSum():
            with np.errstate(all="ignore"):
                return _ratio_sum_law(part, sight, 1 - level) or _smooth_law(part.node, sight, 1 - level)


def _ratio_sum_law(part: RatioSum, sight: Sight, miss: Fraction) -> ColumnEnclosure | None:
    """By the law of its noise, within what its parts allow; None where that is known of Gaussian noises only.

    one divisor   it is one ratio: Fieller's set, of any noise
    two           of ratios that have no noise in common: Fieller's set in two dimensions
    more          by the turn of the noise

    Of the miss the parts and the ratios may take a part each, and the sum has the rest.
    """
    ratios, rest = part.ratios, part.rest
    rough = _by_parts(part.node, sight, miss)
    if len(ratios) == 1 and not rest.terms:
        where = quotient_interval(ratios[0], sight.noises, sight.released, 1 - (1 - BOX_SHARE) * miss)
        return None if where is None else _both(_shift(where, float(rest.constant)), rough)
    held = sorted({index for form in (rest, *(f for r in ratios for f in (r.above, r.below))) for index in form.measurements})
    laws = [sight.noises[index] for index in held]
    if not all(isinstance(law, DiscreteGaussian) for law in laws):
        return None
    noises, each, main = cast("list[DiscreteGaussian]", laws), BOX_SHARE * miss / (2 * len(ratios)), (1 - 2 * BOX_SHARE) * miss
    enclosed = [quotient_interval(one, sight.noises, sight.released, 1 - each) for one in ratios]
    if any(where is None for where in enclosed):
        return None
    values = [(one.above.value(sight.released)[0], one.below.value(sight.released)[0]) for one in ratios]
    along = [(_along(one.above, held), _along(one.below, held)) for one in ratios]
    ends = [(where.low, where.high) for where in enclosed if where is not None]
    released = [ReleasedRatio(*one, value[1], end) for one, value, end in zip(along, values, ends, strict=True)]
    value: FloatArray = rest.value(sight.released)[0]
    size: FloatArray = np.abs(value)
    for above, below in values:
        value, size = value + above / below, size + np.abs(above / below)
    half = ratio_sum_reach(released, _along(rest, held), noises, main, each) + 1e-14 * size
    turned = _within(value, half, rough)
    if len(ratios) != 2 or rest.terms or not are_apart(along, _along(rest, held)):  # noqa: PLR2004 -- a pair
        return turned
    pair = [NoisyRatio(*one, noises, *value, end) for one, value, end in zip(along, values, ends, strict=True)]
    small = is_small(pair[0]) | is_small(pair[1])
    found = ratio_pair_ends((pair[0], pair[1]), main, small)
    if found is None:
        return turned
    own = _both(_shift(ColumnEnclosure(*found, np.zeros(sight.rows, np.bool_)), float(rest.constant)), rough)
    return ColumnEnclosure(*(np.where(small, getattr(own, name), getattr(turned, name)) for name in ("low", "high", "null")))


def _shift(where: ColumnEnclosure, move: float) -> ColumnEnclosure:
    return on.round_outward(where.low + move, where.high + move, where.null, ulps=2 if move else 0)


def _both(one: ColumnEnclosure, rough: ColumnEnclosure) -> ColumnEnclosure:
    """What two intervals of the same number have in common; the second where that is nothing."""
    low, high = np.maximum(one.low, rough.low), np.minimum(one.high, rough.high)
    sure = low <= high
    null = rough.null & ~(np.isfinite(one.low) & np.isfinite(one.high) & sure)
    return ColumnEnclosure(np.where(sure, low, rough.low), np.where(sure, high, rough.high), null)


def _along(form: Linear, held: Sequence[int]) -> FloatArray:
    terms = dict(form.terms)
    return np.array([float(terms.get(index, 0)) for index in held])


def _within(value: FloatArray, half: FloatArray, rough: ColumnEnclosure) -> ColumnEnclosure:
    """value ± half inside another interval of the same number; that one where there is no half."""
    sure = np.isfinite(value) & np.isfinite(half)
    low, high = np.maximum(value - half, rough.low), np.minimum(value + half, rough.high)
    sure &= low <= high
    return ColumnEnclosure(np.where(sure, low, rough.low), np.where(sure, high, rough.high), rough.null & ~sure)


def _by_parts(node: Node, sight: Sight, miss: Fraction) -> ColumnEnclosure:
    """Return what the parts of a smooth expression allow, which takes its part of the miss."""
    parts = parts_of(node, sight.block, smooth=False)
    level = 1 - BOX_SHARE * miss / len(parts)
    return replace(sight, laws={part: _law(part, sight, level) for part in parts}, in_parts=True).number(node)


def _smooth_law(node: Node, sight: Sight, miss: Fraction) -> ColumnEnclosure:
    """By its slopes; where it has none, as where a divisor may be 0, by its parts."""
    rough = _by_parts(node, sight, miss)
    measured = {index: _floats(sight.released, index) for index in measurements_of(sight.block, node)}
    return smooth_interval(lambda box: jet_of(node, sight.block, box, sight.rows), measured, sight.noises, miss, rough)


def _floats(released: ReleasedBlock, index: int) -> FloatArray:
    values = released.values[index]
    if isinstance(values, Ends):
        raise TypeError("a quantile is no integer")
    return values.astype(np.float64)
