"""Released integers to estimates with their error bars, a column at a time.

estimate    value                                   interval
Linear      exact sum of integers, one division     ± the reach of its noises
Mean        centre + step · total/count, clamped    Fieller's set, clamped to the bounds
Variance    second moment − squared mean, clamped   both moments', each with its share of the miss
Point       the point drawn                         the two ends drawn; beyond 95 %, the bounds

An interval covers the number before noise: after caps, clamps and dropped rows, whether the row is shown or not.

An expression that is a sum of measurements, or a ratio of two such sums, has an exact law of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.computed import Vector, numbers
from curador.answers.release import Ends, ReleasedBlock
from curador.numerics.rounding import FloatArray, float_down, float_up
from curador.plan.enclosure import ColumnEnclosure, round_outward, unknown
from curador.plan.error import linear_reach, mean_law, ratio_law, second_moment_law
from curador.plan.model import Linear, Mean, Point, Variance
from curador.plan.price import END_MISSES
from curador.query.tree import Call, Estimated, Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.plan.error import Combination, RatioLaw
    from curador.plan.model import BlockPlan, Estimate
    from curador.plan.price import Noise
    from curador.query.tree import Node


# ---- affine ----------------------------------------------------------------------------------------------------------------


_LARGEST = 1 << 500
"""Beyond this, an expression's value and interval are computed in doubles, step by step, and may overflow to NULL."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """One form over another that has noise."""

    above: Linear
    below: Linear


def _form(terms: dict[int, Fraction], constant: Fraction) -> Linear:
    """A form: no coefficient is 0, by place."""
    return Linear(tuple(sorted((index, c) for index, c in terms.items() if c)), constant)


def _times(form: Linear, factor: Fraction) -> Linear:
    return _form({index: factor * c for index, c in form.terms}, factor * form.constant)


def _plus(one: Linear, other: Linear) -> Linear:
    """The sum of two forms; the same measurement is the same noise."""
    found = dict(one.terms)
    for index, coefficient in other.terms:
        found[index] = found.get(index, Fraction(0)) + coefficient
    return _form(found, one.constant + other.constant)


def affine_form(node: Node, block: BlockPlan) -> Linear | None:
    """Return the expression as a form; None where it is none, or one of numbers that doubles cannot hold."""
    found = _affine(node, block)
    return found if found is not None and _moderate(found) else None


def _moderate(form: Linear) -> bool:
    numbers = [form.constant, *(c for _, c in form.terms)]
    return all(abs(one) < _LARGEST and one.denominator < _LARGEST for one in numbers)


def _affine(node: Node, block: BlockPlan) -> Linear | None:
    match node:
        case Literal(value=bool()):
            return None
        case Literal(value=int() | Fraction() as value):
            return Linear((), Fraction(value))
        case Estimated():
            estimate = block.estimates[node.index]
            return _form(_added(estimate.terms), estimate.constant) if isinstance(estimate, Linear) else None
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL):
            inner = node.arguments[0]
            return affine_form(inner, block) if inner.type is not None and inner.type.numeric else None
        case Call(function="+" | "-" | "*" | "/" | "neg"):
            return _computed(node.function, [affine_form(one, block) for one in node.arguments])
        case _:
            return None


def _added(terms: Combination) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for index, coefficient in terms:
        found[index] = found.get(index, Fraction(0)) + coefficient
    return found


def _computed(function: str, held: list[Linear | None]) -> Linear | None:
    match function, held:
        case "neg", [Linear() as one]:
            return _times(one, Fraction(-1))
        case "+", [Linear() as one, Linear() as other]:
            return _plus(one, other)
        case "-", [Linear() as one, Linear() as other]:
            return _plus(one, _times(other, Fraction(-1)))
        case "*", [Linear() as one, Linear(terms=()) as other]:
            return _times(one, other.constant)
        case "*", [Linear(terms=()) as one, Linear() as other]:
            return _times(other, one.constant)
        case "/", [Linear() as one, Linear(terms=()) as other] if other.constant:
            return _times(one, 1 / other.constant)
        case _:
            return None


def quotient_of_forms(node: Node, block: BlockPlan) -> Quotient | None:
    """Return the expression as a ratio of two forms, also one that is multiplied by a number or has one added."""
    found = _quotient(node, block)
    return found if found is not None and _moderate(found.above) and _moderate(found.below) else None


def _quotient(node: Node, block: BlockPlan) -> Quotient | None:
    match node:
        case Call(function="/"):
            above, below = affine_form(node.arguments[0], block), affine_form(_bare(node.arguments[1]), block)
            if above is not None and below is not None and below.terms:
                return Quotient(above, below)
            inner = quotient_of_forms(node.arguments[0], block)
            if inner is not None and below is not None and not below.terms and below.constant:
                return Quotient(_times(inner.above, 1 / below.constant), inner.below)
            return None
        case Call(function="neg"):
            inner = quotient_of_forms(node.arguments[0], block)
            return None if inner is None else Quotient(_times(inner.above, Fraction(-1)), inner.below)
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL):
            return quotient_of_forms(node.arguments[0], block)
        case Call(function="+" | "-" | "*"):
            return _shifted(node, block)
        case _:
            return None


def _shifted(node: Call, block: BlockPlan) -> Quotient | None:
    for place in (0, 1):
        inner, other = quotient_of_forms(node.arguments[place], block), affine_form(node.arguments[1 - place], block)
        if inner is None or other is None or other.terms:
            continue
        if node.function == "*":
            return Quotient(_times(inner.above, other.constant), inner.below)
        turned = _times(inner.above, Fraction(-1)) if node.function == "-" and place == 1 else inner.above
        added = -other.constant if node.function == "-" and place == 0 else other.constant
        return Quotient(_plus(turned, _times(inner.below, added)), inner.below)
    return None


def _bare(divisor: Node) -> Node:
    """NULLIF(x, 0) divides as x does, whose quotient is NULL there anyway."""
    match divisor:
        case Call(function="nullif", arguments=(inner, Literal(value=0 | Fraction()) as zero)) if not zero.value:
            return inner
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL, arguments=(inner,)):
            return _bare(inner)
        case _:
            return divisor


# ---- intervals -------------------------------------------------------------------------------------------------------------


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
            estimate_interval(estimate, noises, released, confidence),
            whole_value(estimate, released) if isinstance(estimate, Linear) and estimate.whole else None,
        )
        for estimate in block.estimates
    ]


# ---- values --------------------------------------------------------------------------------------------------------


def estimate_value(estimate: Estimate, released: ReleasedBlock) -> Vector:
    """Return the estimate in every row; NULL where a released count is not above 0."""
    match estimate:
        case Linear():
            value = form_value(estimate, released)
            return numbers(value, np.zeros(released.rows, np.bool_))
        case Mean():
            ratio, none = _ratio(estimate.step, estimate.total, estimate.count, released)
            value = np.clip(float(estimate.centre) + ratio, float(estimate.lower), float(estimate.upper))
            return numbers(value, none)
        case Variance():
            return _variance(estimate, released)
        case Point():
            return numbers(_clip(_ends(released, estimate).point, estimate), np.zeros(released.rows, np.bool_))


def form_value(form: Linear, released: ReleasedBlock) -> FloatArray:
    """Return constant + Σ coefficient · measurement, rounded once. Exact integers before the one division."""
    above, below = _exact(form, released)
    return (above / below).astype(np.float64)


def whole_value(linear: Linear, released: ReleasedBlock) -> NDArray[Any]:
    """Return a count as integers."""
    above, below = _exact(linear, released)
    return above // below


def _exact(form: Linear, released: ReleasedBlock) -> tuple[NDArray[Any], int]:
    """The form as integers over one denominator."""
    below = math.lcm(form.constant.denominator, *(c.denominator for _, c in form.terms))
    above = np.full(released.rows, int(form.constant * below), object)
    for index, coefficient in form.terms:
        above = above + _integers(released, index).astype(object) * int(coefficient * below)
    return above, below


def _integers(released: ReleasedBlock, index: int) -> NDArray[Any]:
    values = released.values[index]
    if isinstance(values, Ends):
        raise TypeError("a quantile is no integer")
    return values


def _ends(released: ReleasedBlock, point: Point) -> Ends:
    values = released.values[point.measurement]
    if not isinstance(values, Ends):
        raise TypeError("an integer is no quantile")
    return values


def _clip(values: FloatArray, point: Point) -> FloatArray:
    return np.clip(values, float(point.lower), float(point.upper))


def _floats(released: ReleasedBlock, index: int) -> FloatArray:
    return _integers(released, index).astype(np.float64)


def _ratio(step: Fraction, above: int, below: int, released: ReleasedBlock) -> tuple[FloatArray, NDArray[np.bool_]]:
    """step · above/below, and where the released denominator is not above 0."""
    count = _floats(released, below)
    none = count <= 0
    return float(step) * _floats(released, above) / np.where(none, 1.0, count), none


def _variance(estimate: Variance, released: ReleasedBlock) -> Vector:
    mean, none = _ratio(estimate.step, estimate.total, estimate.count, released)
    square, _ = _ratio(estimate.square_step, estimate.squares, estimate.count, released)
    value = np.clip(square + float(estimate.square_step * estimate.square_centre) - mean**2, 0.0, float(estimate.most))
    if estimate.sample:
        count = _floats(released, estimate.count)
        none = none | (count <= 1)
        value = value * (count / np.where(none, 1.0, count - 1))
    return numbers(value, none)


# ---- intervals -----------------------------------------------------------------------------------------------------


def estimate_interval(
    estimate: Estimate, noises: Sequence[Noise], released: ReleasedBlock, confidence: Fraction
) -> ColumnEnclosure:
    """Return where the number before noise lies, in every row.

    Claim   In each row the interval holds it with at least this probability.
    Needs   Of a quantile: the two ends were priced to miss with END_MISSES each.
    Rounds  Outward.
    """
    match estimate:
        case Linear():
            return form_interval(estimate, noises, released, confidence)
        case Mean():
            law = mean_law(estimate, noises, confidence)
            low, high, none = _ratio_ends(law, estimate.step, estimate.total, estimate.count, released)
            centre, bounds = float(estimate.centre), (float_down(estimate.lower), float_up(estimate.upper))
            slip = 2 * math.ulp(max(abs(centre), abs(bounds[0]), abs(bounds[1])))  # of the addition
            return round_outward(np.clip(centre + low - slip, *bounds), np.clip(centre + high + slip, *bounds), none, ulps=0)
        case Variance():
            return _variance_interval(estimate, noises, released, confidence)
        case Point():
            return _point_interval(estimate, released, confidence)


def form_interval(form: Linear, noises: Sequence[Noise], released: ReleasedBlock, confidence: Fraction) -> ColumnEnclosure:
    """Return the interval of a sum of measurements: its value ± the reach of its noises."""
    reach = linear_reach(form, noises, confidence)
    value = form_value(form, released)
    return round_outward(value - reach, value + reach, np.zeros(released.rows, np.bool_), ulps=2)


def quotient_interval(
    one: Quotient, noises: Sequence[Noise], released: ReleasedBlock, confidence: Fraction
) -> ColumnEnclosure | None:
    """Return the interval of a ratio of two sums; None where their noises allow none."""
    law = ratio_law(one.above.terms, one.below.terms, noises, confidence) if one.above.terms else None
    if law is None:
        return None
    above, below = form_value(one.above, released), form_value(one.below, released)
    none = below <= 0
    low, high = law.ends(above / np.where(none, 1.0, below), above, below)
    return ColumnEnclosure(low, high, np.isinf(low))


def _ratio_ends(
    law: RatioLaw | None, step: Fraction, above: int, below: int, released: ReleasedBlock
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """The ends of step · above/below, infinite where the denominator may be 0; and where that is."""
    ratio, _ = _ratio(step, above, below, released)
    if law is None:
        nowhere = unknown(released.rows)
        return nowhere.low, nowhere.high, nowhere.null
    low, high = law.ends(ratio, float(step) * _floats(released, above), _floats(released, below))
    return low, high, np.isinf(low)


def _variance_interval(
    estimate: Variance, noises: Sequence[Noise], released: ReleasedBlock, confidence: Fraction
) -> ColumnEnclosure:
    """Second moment − squared mean by interval arithmetic, each with its share of the miss; a sample's count has one too."""
    level = 1 - (1 - confidence) / (3 if estimate.sample else 2)
    centred = Mean(estimate.total, estimate.count, estimate.step, Fraction(0), Fraction(0), Fraction(0))
    means = _ratio_ends(mean_law(centred, noises, level), estimate.step, estimate.total, estimate.count, released)
    law = second_moment_law(estimate, noises, level)
    squares = _ratio_ends(law, estimate.square_step, estimate.squares, estimate.count, released)
    most = float_up(estimate.most)
    furthest = (math.sqrt(most) + float(estimate.step)) * (1 + 1e-12)  # how far a value on the grid lies from the centre
    low, high = np.clip(means[0], -furthest, furthest), np.clip(means[1], -furthest, furthest)
    larger = np.maximum(np.abs(low), np.abs(high)) ** 2
    smaller = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)) ** 2)
    centre = float(estimate.square_step * estimate.square_centre)
    first, last = np.maximum(centre + squares[0], 0.0), np.minimum(centre + squares[1], furthest**2)
    rounding = 1e-14 * furthest**2
    low, high = np.clip(first - larger - rounding, 0.0, most), np.clip(last - smaller + rounding, 0.0, most)
    found = np.minimum(low, high), np.maximum(low, high)  # noise so large that no data fit: outside what is claimed
    null = means[2] | squares[2]
    if not estimate.sample:
        return round_outward(*found, null, ulps=0)
    reach = linear_reach(Linear(((estimate.count, Fraction(1)),)), noises, level)
    count = _floats(released, estimate.count)
    fewest, highest = np.maximum(count - reach, 2.0), count + reach
    factor = np.where(highest >= 2, highest / np.maximum(highest - 1, 1.0), 1.0), fewest / (fewest - 1)
    ends = found[0] * factor[0] * (1 - 1e-15), np.minimum(found[1] * factor[1] * (1 + 1e-15), 2 * most)
    return round_outward(*ends, null | (count - reach <= 1), ulps=0)


def _point_interval(estimate: Point, released: ReleasedBlock, confidence: Fraction) -> ColumnEnclosure:
    """The two ends drawn, which miss with END_MISSES each; wider where they cross or leave the point out."""
    drawn = _ends(released, estimate)
    rows = released.rows
    if confidence > 1 - 2 * END_MISSES:
        bounds = float_down(estimate.lower), float_up(estimate.upper)
        return ColumnEnclosure(np.full(rows, bounds[0]), np.full(rows, bounds[1]), np.ones(rows, np.bool_))
    low = np.minimum(np.minimum(drawn.low, drawn.high), drawn.point)
    high = np.maximum(np.maximum(drawn.low, drawn.high), drawn.point)
    return ColumnEnclosure(_clip(low, estimate), _clip(high, estimate), np.ones(rows, np.bool_))
