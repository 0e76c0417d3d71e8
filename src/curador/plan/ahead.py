"""The ± of a column before there are data, for `accuracy=`: a bound over all data that a group of so many rows can hold.

column                                its ±
count, sum, any form of them          of every group
mean, ratio by counts, percentage,    of a group in which every divisor was released as so many rows, at the numerators
sums and products of them, variance   where it is longest
deviation                             the same, at the deviation 0, where a root is steepest
quantile                              no bound: what so many rows give that are spread evenly between the bounds

Divisors must be made of counts: how large another one is only data can tell.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.mechanisms.bracket import AIM, QuantileNoise
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.numerics.rounding import float_up
from curador.plan import smooth
from curador.plan.aggregates import Linear, Point, linear_reach
from curador.plan.error import own_reach, ratio_law
from curador.plan.model import measurements_of
from curador.plan.parts import Quotient, RatioSum, Smooth, jet_of, part_of
from curador.plan.ratio_sums import ReleasedRatio, ratio_sum_reach
from curador.query.tree import Call, Estimated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.plan.model import BlockPlan, Measurement
    from curador.plan.price import Noise
    from curador.query.tree import Node

_COUNTS = frozenset({"rows", "units", "distinct"})


def is_sized(node: Node, block: BlockPlan) -> bool:
    """Whether its ± depends on how many rows a group has."""
    return not isinstance(part_of(node, block), Linear)


def reach_ahead(block: BlockPlan, node: Node, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float | None:
    """Return the ± of an expression in a group of so many rows; None where only data can tell.

    Claim   No interval of this confidence is longer than twice that, whatever the data, if every divisor was released as
            `rows`; but of a quantile, for which it is what rows spread evenly would give.
    Rounds  Up.
    """
    if isinstance(node, Call) and node.function == "sqrt":
        inner = reach_ahead(block, node.arguments[0], noises, rows, confidence)
        return None if inner is None else float_up(Fraction(math.sqrt(2 * inner) / 2 * (1 + 1e-12)))
    part = part_of(node, block)
    with np.errstate(all="ignore"):
        match part:
            case Linear():
                found = linear_reach(part, noises, confidence)
            case Quotient():
                found = _quotient(part, block, noises, rows, confidence)
            case RatioSum():
                found = _ratio_sum(part, block, noises, rows, 1 - confidence)
                if found is None:
                    found = _smooth(part.node, block, noises, rows, 1 - confidence)
            case Smooth():
                found = _smooth(part.node, block, noises, rows, 1 - confidence)
            case Estimated():
                estimate = block.estimates[part.index]
                if isinstance(estimate, Point):
                    return _evenly(estimate, noises, rows, confidence)
                found = estimate.reach_at(noises, rows, confidence)
            case None:
                return None
    return found if found is not None and math.isfinite(found) else None


def each_row(block: BlockPlan, one: Measurement) -> tuple[int, int]:
    """What one row adds to a measurement, at least and at most; a row that does not count adds 0."""
    low = high = 0
    for place, coefficient in one.combination:
        tally = block.tallies[place]
        if tally.kind in _COUNTS or tally.grid is None:
            most = 1
        elif tally.kind == "squares":
            most = max(tally.centre, tally.grid.steps - tally.centre) ** 2 >> tally.shift
        else:
            most = tally.grid.steps
        fixed = tally.kind == "rows" and len(one.combination) > 1  # beside steps: the same rows
        low += coefficient if fixed else min(coefficient * most, 0)
        high += coefficient if fixed else max(coefficient * most, 0)
    return min(low, 0), max(high, 0)


def _divisor(form: Linear, block: BlockPlan, rows: int) -> Fraction | None:
    """A divisor that is made of counts, all of them `rows`; None of another, or where it is not above 0."""
    counted = all(
        block.tallies[place].kind in _COUNTS for index, _ in form.terms for place, _ in block.measurements[index].combination
    )
    value = form.constant + sum((c for _, c in form.terms), Fraction(0)) * rows
    return value if counted and value > 0 else None


def _range(form: Linear, block: BlockPlan, rows: int, exact: set[int]) -> tuple[float, float]:
    """What a form can be: measurements that are `exact` are `rows`, others what at most so many rows add up to."""
    low = high = form.constant
    for index, c in form.terms:
        ends = (1, 1) if index in exact else each_row(block, block.measurements[index])
        low, high = low + min(c * end for end in ends) * rows, high + max(c * end for end in ends) * rows
    return float(low), float(high)


def _quotient(one: Quotient, block: BlockPlan, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float | None:
    """At both ends of what the ratio can be, as the reach of a ratio is convex in it."""
    below = _divisor(one.below, block, rows)
    law = ratio_law(one.above.terms, one.below.terms, noises, confidence)
    if below is None or law is None:
        return None
    ends = np.array(_range(one.above, block, rows, set(one.below.measurements))) / float(below)
    low, high = law.ends(ends, ends * float(below), np.full(2, float(below)))
    return float(np.max(high - low)) / 2


def _ratio_sum(part: RatioSum, block: BlockPlan, noises: Sequence[Noise], rows: int, miss: Fraction) -> float | None:
    forms = [part.rest, *(form for ratio in part.ratios for form in (ratio.above, ratio.below))]
    held = sorted({index for form in forms for index in form.measurements})
    laws = [noise for noise in (noises[index] for index in held) if isinstance(noise, DiscreteGaussian)]
    if len(laws) < len(held):
        return None
    found: list[ReleasedRatio] = []
    each = smooth.BOX_SHARE * miss / (2 * len(part.ratios))
    for ratio in part.ratios:
        below = _divisor(ratio.below, block, rows)
        law = ratio_law(ratio.above.terms, ratio.below.terms, noises, 1 - each)
        if below is None or law is None:
            return None
        divisor = float(below)
        ends = np.array(_range(ratio.above, block, rows, set(ratio.below.measurements))) / divisor
        low, high = law.ends(ends, ends * divisor, np.full(2, divisor))  # a ratio's own interval may leave its range
        above, beneath = (
            np.array([float(dict(form.terms).get(index, 0)) for index in held]) for form in (ratio.above, ratio.below)
        )
        found.append(ReleasedRatio(above, beneath, np.array([divisor]), (low[:1], high[1:])))
    rest = np.array([float(dict(part.rest.terms).get(index, 0)) for index in held])
    return float(ratio_sum_reach(found, rest, laws, (1 - 2 * smooth.BOX_SHARE) * miss, each)[0])


def _smooth(node: Node, block: BlockPlan, noises: Sequence[Noise], rows: int, miss: Fraction) -> float | None:
    """By slopes and bends over everything that the measurements can be; counts are `rows`, within reach of their noise."""
    held = sorted(measurements_of(block, node))
    reaches: dict[int, float] = {}
    box: dict[int, smooth.Jet] = {}
    for index in held:
        noise = noises[index]
        if isinstance(noise, QuantileNoise):
            return None
        reaches[index] = float(own_reach(noise, smooth.BOX_SHARE * miss / len(held)))
        measurement = block.measurements[index]
        counted = all(block.tallies[place].kind in _COUNTS for place, _ in measurement.combination)
        low, high = (rows, rows) if counted else (end * rows for end in each_row(block, measurement))
        middle = np.array([(low + high) / 2])
        box[index] = smooth.variable(index, middle, (high - low) / 2 + reaches[index])
    jet = jet_of(node, block, box, 1)
    return float(smooth.half_width(jet, reaches, noises, (1 - 2 * smooth.BOX_SHARE) * miss)[0])


def _evenly(point: Point, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float | None:
    """As many rows, spread evenly between the bounds: where the last test is aimed at, in the column's own unit."""
    noise = noises[point.measurement]
    if not isinstance(noise, QuantileNoise) or not noise.tests or confidence > 1 - noise.miss:
        return None
    rank = Fraction(AIM) * noise.reaches[-1] / noise.point.q.denominator
    return float_up(min(rank / rows, Fraction(1, 2)) * (point.upper - point.lower))
