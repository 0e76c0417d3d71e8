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
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.computed import ReleasedFrame, Vector, evaluate, numbers, settle_types
from curador.answers.ratio_bars import MeasuredRatio, ratio_interval, ratio_sum_interval
from curador.answers.stair_bars import stair_image, where_few
from curador.plan import enclosure as on
from curador.plan.aggregates import Ends, Linear, Mean, Variance
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import FAR
from curador.plan.functions import ENCLOSURES, TRUTHS
from curador.plan.model import estimates_of, measurements_of
from curador.plan.moment_forms import moments_interval, of_moments
from curador.plan.parts import PartWithLaw, Quotient, RatioSum, Smooth, jet_of, part_of, parts_of
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
    if not one.above.terms:
        return None
    above, below = one.above.value(released)[0], one.below.value(released)[0]
    return ratio_interval(MeasuredRatio(one.above.terms, one.below.terms, above, below, one.within), noises, confidence)


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
    return _number(settle_types(node, sight), sight, confidence)


def _number(node: Node, sight: Sight, confidence: Fraction) -> ColumnEnclosure:
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
    """By the law of its noise, within what its parts allow; None where that is known of Gaussian noises only."""
    rough = _by_parts(part.node, sight, miss)
    ratios = [
        MeasuredRatio(
            ratio.above.terms,
            ratio.below.terms,
            ratio.above.value(sight.released)[0],
            ratio.below.value(sight.released)[0],
            ratio.within,
        )
        for ratio in part.ratios
    ]
    return ratio_sum_interval(ratios, part.rest.terms, part.rest.value(sight.released)[0], sight.noises, miss, rough)


def _by_parts(node: Node, sight: Sight, miss: Fraction) -> ColumnEnclosure:
    """Return what the parts of a smooth expression allow, which takes its part of the miss."""
    parts = parts_of(node, sight.block, smooth=False)
    level = 1 - BOX_SHARE * miss / len(parts)
    return replace(sight, laws={part: _law(part, sight, level) for part in parts}, in_parts=True).number(node)


def _smooth_law(node: Node, sight: Sight, miss: Fraction) -> ColumnEnclosure:
    """By its slopes, in moments where it is of such; where it has none, as where a divisor may be 0, by its parts.

    A sum or a difference of two numbers that have no noise in common, over counts that are small: by stairs of their own
    intervals. Which law that is, is decided by the true counts (`where_few`).
    """
    rough = _by_parts(node, sight, miss)
    sides = _sides_apart(node, sight.block)
    counts = {
        e.count for e in (sight.block.estimates[index] for index in estimates_of(node)) if isinstance(e, Mean | Variance)
    }
    if sides is None or not counts:
        return _by_slopes(node, sight, miss, rough)
    left = miss - Fraction(FAR)
    few, many = where_few([(_floats(sight.released, one), sight.noises[one]) for one in sorted(counts)])  # type: ignore[misc]
    stairs = _by_stairs(sides, sight, left, rough) if few.any() else None
    if stairs is None:
        return _by_slopes(node, sight, miss, rough)
    slopes = _by_slopes(node, sight, left, rough) if many.any() else stairs
    low = np.minimum(np.where(few, stairs.low, np.inf), np.where(many, slopes.low, np.inf))
    high = np.maximum(np.where(few, stairs.high, -np.inf), np.where(many, slopes.high, -np.inf))
    return ColumnEnclosure(low, high, (few & stairs.null) | (many & slopes.null))


def _by_slopes(node: Node, sight: Sight, miss: Fraction, rough: ColumnEnclosure) -> ColumnEnclosure:
    measured = {index: _floats(sight.released, index) for index in measurements_of(sight.block, node)}
    moments = of_moments(node, sight.block)
    found = None if moments is None else moments_interval(moments, sight.block, measured, sight.noises, miss, rough)
    if found is not None:
        return found
    return smooth_interval(lambda box: jet_of(node, sight.block, box, sight.rows), measured, sight.noises, miss, rough)


def _sides_apart(node: Node, block: BlockPlan) -> tuple[Call, Node, Node] | None:
    """Both sides of a sum or a difference if they have no measurement in common."""
    if not (isinstance(node, Call) and node.function in {"+", "-"} and len(node.arguments) == 2):
        return None
    one, other = node.arguments
    used = [set(measurements_of(block, side)) for side in (one, other)]
    return (node, one, other) if used[0] and used[1] and not used[0] & used[1] else None


def _by_stairs(
    sides: tuple[Call, Node, Node], sight: Sight, miss: Fraction, rough: ColumnEnclosure
) -> ColumnEnclosure | None:
    """Within `rough`, which has BOX_SHARE of the miss; None where there is no stair."""
    node, one, other = sides
    kind = sight.noises[min(measurements_of(sight.block, one))]
    found = stair_image(
        (lambda own: _number(one, sight, 1 - own), lambda own: _number(other, sight, 1 - own)),
        on.add if node.function == "+" else on.subtract,
        kind,  # type: ignore[arg-type]
        (1 - BOX_SHARE) * miss,
    )
    if found is None:
        return None
    low, high = np.maximum(found.low, rough.low), np.minimum(found.high, rough.high)
    sure = low <= high
    return ColumnEnclosure(np.where(sure, low, rough.low), np.where(sure, high, rough.high), rough.null)


def _floats(released: ReleasedBlock, index: int) -> FloatArray:
    values = released.values[index]
    if isinstance(values, Ends):
        raise TypeError("a quantile is no integer")
    return values.astype(np.float64)
