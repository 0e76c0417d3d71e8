"""Released integers to estimates with their error bars, a column at a time.

estimate    value                                   interval
Linear      exact sum of integers, one division     ± the reach of its noises
Mean        centre + step · total/count, clamped    Fieller's set, clamped to the bounds
Variance    second moment − squared mean, clamped   both moments', each with its share of the miss
Point       the point drawn                         the two ends drawn; beyond 95 %, the bounds

An interval covers the number before noise: after caps, clamps and dropped rows, whether the row is shown or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.curator.affine import Form, Quotient
from curador.curator.computed import Vector, numbers
from curador.curator.release import Ends, Released
from curador.numerics.rounding import FloatArray, float_down, float_up
from curador.plan.enclosure import Enclosure, made, unknown
from curador.plan.error import linear_reach, mean_law, ratio_law, second_moment_law
from curador.plan.model import Linear, Mean, Point, Variance
from curador.plan.price import END_MISSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.plan.model import BlockPlan, Estimate
    from curador.plan.price import Noise
    from curador.plan.ratio import RatioLaw


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """An estimate in every row: its value, where the number before noise lies, and the integers of a count."""

    value: Vector
    where: Enclosure
    whole: NDArray[Any] | None = None


def estimate_values(block: BlockPlan, noises: Sequence[Noise], released: Released, confidence: Fraction) -> list[Bars]:
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


def estimate_value(estimate: Estimate, released: Released) -> Vector:
    """Return the estimate in every row; NULL where a released count is not above 0."""
    match estimate:
        case Linear():
            value = form_value(Form(estimate.terms, estimate.constant), released)
            return numbers(value, np.zeros(released.rows, np.bool_))
        case Mean():
            ratio, none = _ratio(estimate.step, estimate.total, estimate.count, released)
            value = np.clip(float(estimate.centre) + ratio, float(estimate.lower), float(estimate.upper))
            return numbers(value, none)
        case Variance():
            return _variance(estimate, released)
        case Point():
            return numbers(_clipped(_ends(released, estimate).point, estimate), np.zeros(released.rows, np.bool_))


def form_value(form: Form, released: Released) -> FloatArray:
    """Return constant + Σ coefficient · measurement, rounded once. Exact integers before the one division."""
    above, below = _exact(form, released)
    return (above / below).astype(np.float64)


def whole_value(linear: Linear, released: Released) -> NDArray[Any]:
    """Return a count as integers."""
    above, below = _exact(Form(linear.terms, linear.constant), released)
    return above // below


def _exact(form: Form, released: Released) -> tuple[NDArray[Any], int]:
    """The form as integers over one denominator."""
    below = math.lcm(form.constant.denominator, *(c.denominator for _, c in form.terms))
    above = np.full(released.rows, int(form.constant * below), object)
    for index, coefficient in form.terms:
        above = above + _integers(released, index).astype(object) * int(coefficient * below)
    return above, below


def _integers(released: Released, index: int) -> NDArray[Any]:
    values = released.values[index]
    if isinstance(values, Ends):
        raise TypeError("a quantile is no integer")
    return values


def _ends(released: Released, point: Point) -> Ends:
    values = released.values[point.measurement]
    if not isinstance(values, Ends):
        raise TypeError("an integer is no quantile")
    return values


def _clipped(values: FloatArray, point: Point) -> FloatArray:
    return np.clip(values, float(point.lower), float(point.upper))


def _floats(released: Released, index: int) -> FloatArray:
    return _integers(released, index).astype(np.float64)


def _ratio(step: Fraction, above: int, below: int, released: Released) -> tuple[FloatArray, NDArray[np.bool_]]:
    """step · above/below, and where the released denominator is not above 0."""
    count = _floats(released, below)
    none = count <= 0
    return float(step) * _floats(released, above) / np.where(none, 1.0, count), none


def _variance(estimate: Variance, released: Released) -> Vector:
    mean, none = _ratio(estimate.step, estimate.total, estimate.count, released)
    square, _ = _ratio(estimate.square_step, estimate.squares, estimate.count, released)
    value = np.clip(square + float(estimate.square_step * estimate.square_centre) - mean**2, 0.0, float(estimate.most))
    if estimate.sample:
        count = _floats(released, estimate.count)
        none = none | (count <= 1)
        value = value * (count / np.where(none, 1.0, count - 1))
    return numbers(value, none)


# ---- intervals -----------------------------------------------------------------------------------------------------


def estimate_interval(estimate: Estimate, noises: Sequence[Noise], released: Released, confidence: Fraction) -> Enclosure:
    """Return where the number before noise lies, in every row.

    Claim   In each row the interval holds it with at least this probability.
    Needs   Of a quantile: the two ends were priced to miss with END_MISSES each.
    Rounds  Outward.
    """
    match estimate:
        case Linear():
            return form_interval(Form(estimate.terms, estimate.constant), noises, released, confidence)
        case Mean():
            law = mean_law(estimate, noises, confidence)
            low, high, none = _ratio_ends(law, estimate.step, estimate.total, estimate.count, released)
            centre, bounds = float(estimate.centre), (float_down(estimate.lower), float_up(estimate.upper))
            slip = 2 * math.ulp(max(abs(centre), abs(bounds[0]), abs(bounds[1])))  # of the addition
            return made(np.clip(centre + low - slip, *bounds), np.clip(centre + high + slip, *bounds), none, ulps=0)
        case Variance():
            return _variance_interval(estimate, noises, released, confidence)
        case Point():
            return _point_interval(estimate, released, confidence)


def form_interval(form: Form, noises: Sequence[Noise], released: Released, confidence: Fraction) -> Enclosure:
    """Return the interval of a sum of measurements: its value ± the reach of its noises."""
    reach = linear_reach(Linear(form.terms), noises, confidence)
    value = form_value(form, released)
    return made(value - reach, value + reach, np.zeros(released.rows, np.bool_), ulps=2)


def quotient_interval(one: Quotient, noises: Sequence[Noise], released: Released, confidence: Fraction) -> Enclosure | None:
    """Return the interval of a ratio of two sums; None where their noises allow none."""
    law = ratio_law(one.above.terms, one.below.terms, noises, confidence) if one.above.terms else None
    if law is None:
        return None
    above, below = form_value(one.above, released), form_value(one.below, released)
    none = below <= 0
    low, high = law.ends(above / np.where(none, 1.0, below), above, below)
    return Enclosure(low, high, np.isinf(low))


def _ratio_ends(
    law: RatioLaw | None, step: Fraction, above: int, below: int, released: Released
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """The ends of step · above/below, infinite where the denominator may be 0; and where that is."""
    ratio, _ = _ratio(step, above, below, released)
    if law is None:
        nowhere = unknown(released.rows)
        return nowhere.low, nowhere.high, nowhere.null
    low, high = law.ends(ratio, float(step) * _floats(released, above), _floats(released, below))
    return low, high, np.isinf(low)


def _variance_interval(estimate: Variance, noises: Sequence[Noise], released: Released, confidence: Fraction) -> Enclosure:
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
        return made(*found, null, ulps=0)
    reach = linear_reach(Linear(((estimate.count, Fraction(1)),)), noises, level)
    count = _floats(released, estimate.count)
    fewest, highest = np.maximum(count - reach, 2.0), count + reach
    factor = np.where(highest >= 2, highest / np.maximum(highest - 1, 1.0), 1.0), fewest / (fewest - 1)
    ends = found[0] * factor[0] * (1 - 1e-15), np.minimum(found[1] * factor[1] * (1 + 1e-15), 2 * most)
    return made(*ends, null | (count - reach <= 1), ulps=0)


def _point_interval(estimate: Point, released: Released, confidence: Fraction) -> Enclosure:
    """The two ends drawn, which miss with END_MISSES each; wider where they cross or leave the point out."""
    drawn = _ends(released, estimate)
    rows = released.rows
    if confidence > 1 - 2 * END_MISSES:
        bounds = float_down(estimate.lower), float_up(estimate.upper)
        return Enclosure(np.full(rows, bounds[0]), np.full(rows, bounds[1]), np.ones(rows, np.bool_))
    low = np.minimum(np.minimum(drawn.low, drawn.high), drawn.point)
    high = np.maximum(np.maximum(drawn.low, drawn.high), drawn.point)
    return Enclosure(_clipped(low, estimate), _clipped(high, estimate), np.ones(rows, np.bool_))
