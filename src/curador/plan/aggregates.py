"""Every aggregate, from what is tallied to what is estimated, before data and after the release.

aggregate            measurements                                    estimate
COUNT(*), COUNT(x)   rows                                            itself
COUNT(DISTINCT u)    units                                           itself
COUNT(DISTINCT x)    different values, at most `groups` of a unit    itself
SUM(x)               Σ x; or Σ (x − c) where the count is measured   Σ (x − c) + c · count
AVG(x)               Σ (x − c), count                                c + ratio
VAR(x)               Σ (x − c)² − d, Σ (x − c), count                moments
quantiles            a histogram                                     a cell's value

An estimate says of itself which measurements it is of, how far noise moves it before there are data, and after the release
its value and its interval. A count is shared by aggregates of equal filter and NULL pattern.

estimate    value                                   interval
Linear      exact sum of integers, one division     ± the reach of its noises
Mean        centre + step · total/count, clamped    Fieller's set, clamped to the bounds
Variance    second moment − squared mean, clamped   ± what both moments leave open (`plan/moments.py`)
Point       the point drawn                         the two ends found for it; beyond their level, the bounds

An interval covers the number before noise: after caps, clamps and dropped rows, whether the row is shown or not.

`query/functions.py` has an entry for each name of the table at the end, and the other way round: a test holds both to it.
Sensitivities come from `plan/sensitivity.py`, nowhere else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np

from curador.errors import InvalidQuery, NotPrivate
from curador.mechanisms.bracket import QuantileNoise
from curador.numerics.rounding import FloatArray, float_down, float_up
from curador.plan import smooth as jets
from curador.plan.enclosure import ColumnEnclosure, round_outward, unknown
from curador.plan.error import RatioLaw, ratio_law, sum_reach, weighted_noises
from curador.plan.model import CELL_STEPS, Measurement, Range, Tally, both_ends, grid_between
from curador.plan.moments import MOMENTS_SHARE, variance_reaches
from curador.plan.sensitivity import moves, presence_moves
from curador.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from curador.plan.model import Cap, Contribution, Grid
    from curador.plan.price import Noise
    from curador.plan.smooth import Box, Jet
    from curador.query.tree import Aggregate, Expression
    from curador.randomness.entropy import BoolArray
    from curador.study.model import Caps

_SQUARE_BITS = 30

_EXACT = 2.0**53
"""Whole numbers up to it are doubles."""


# ---- what an estimate says of itself -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """A released quantile of each row: the point, and an end on either side of it."""

    point: FloatArray
    low: FloatArray
    high: FloatArray


class Released(Protocol):
    """A block's released numbers, one row for each group."""

    @property
    def rows(self) -> int:
        """How many groups there are."""
        ...

    @property
    def values(self) -> Sequence[NDArray[Any] | Ends]:
        """By measurement: noisy integers, or the three draws of a quantile."""
        ...


class PlannedEstimate(ABC):
    """What is computed from measurements in place of one aggregate.

    smooth   it has slopes, as a function of its measurements
    """

    __slots__ = ()

    smooth: ClassVar[bool] = True

    @property
    @abstractmethod
    def measurements(self) -> tuple[int, ...]:
        """The places of the measurements it is computed from."""

    @abstractmethod
    def reach_at(self, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float | None:
        """Return the ± in a group of so many rows; None where only data can tell. Rounds: up."""

    @abstractmethod
    def value(self, released: Released) -> tuple[FloatArray, BoolArray]:
        """Return the estimate in every row, and where it is NULL."""

    def jet(self, box: Box, rows: int) -> Jet:  # noqa: ARG002 -- for those that are smooth
        """Return the estimate as a function of its measurements, without its clamps. Needs: it is smooth."""
        raise TypeError(f"{type(self).__name__} has no slopes")

    @abstractmethod
    def interval(self, noises: Sequence[Noise], released: Released, confidence: Fraction) -> ColumnEnclosure:
        """Return where the number before noise lies, in every row.

        Claim   In each row the interval holds it with at least this probability.
        Rounds  Outward.
        """


# ---- sums of measurements ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Linear(PlannedEstimate):
    """constant + Σ coefficient · measurement. `whole`: a count, released as an integer."""

    terms: tuple[tuple[int, Fraction], ...]
    constant: Fraction = Fraction(0)
    whole: bool = False

    @property
    def measurements(self) -> tuple[int, ...]:
        return tuple(index for index, _ in self.terms)

    def reach_at(self, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float:  # noqa: ARG002 -- of any size
        return linear_reach(self, noises, confidence)

    def value(self, released: Released) -> tuple[FloatArray, BoolArray]:
        above, below = self._exact(released)
        return (above / below).astype(np.float64), np.zeros(released.rows, np.bool_)

    def integers(self, released: Released) -> NDArray[Any]:
        """Return a count as integers."""
        above, below = self._exact(released)
        return above // below

    def interval(self, noises: Sequence[Noise], released: Released, confidence: Fraction) -> ColumnEnclosure:
        """± the reach; of whole numbers, the outermost ones that lie within it.

        Claim   The number before noise differs from the released one by a multiple of the coefficients' greatest common
                divisor, as measurements are integers. If that is whole, the ends are whole numbers, exact below 2⁵³.
        """
        reach = linear_reach(self, noises, confidence)
        value, nowhere = self.value(released)
        apart = self._apart
        if apart is None or not math.isfinite(reach):
            return round_outward(value - reach, value + reach, nowhere, ulps=2)
        whole, _ = self._exact(released)
        most = apart * (Fraction(reach) // apart)
        low, high = (whole - most).astype(np.float64), (whole + most).astype(np.float64)
        far = max(float(np.max(np.abs(low), initial=0.0)), float(np.max(np.abs(high), initial=0.0))) >= _EXACT
        return round_outward(low, high, nowhere, ulps=int(far))

    @property
    def _apart(self) -> int | None:
        """How far two values of the form are apart at least, where all of them are whole; None where they need not be."""
        if self.constant.denominator != 1 or any(c.denominator != 1 for _, c in self.terms):
            return None
        return math.gcd(*(c.numerator for _, c in self.terms)) or None

    def jet(self, box: Box, rows: int) -> Jet:
        found = jets.constant(self.constant, rows)
        for index, coefficient in self.terms:
            found = jets.plus(found, jets.times(jets.constant(coefficient, rows), box[index]))
        return found

    def _exact(self, released: Released) -> tuple[NDArray[Any], int]:
        """The form as integers over one denominator: exact before the one division."""
        below = math.lcm(self.constant.denominator, *(c.denominator for _, c in self.terms))
        above = np.full(released.rows, int(self.constant * below), object)
        for index, coefficient in self.terms:
            above = above + _integers(released, index).astype(object) * int(coefficient * below)
        return above, below


def linear_reach(linear: Linear, noises: Sequence[Noise], confidence: Fraction) -> float:
    """Return the half-width of the error bar of constant + Σ coefficient · measurement, in the estimate's own unit.

    Claim   |released − exact| ≤ the half-width with at least this probability, in every group.
    Needs   Measurements have independent noises.
    Rounds  Up.
    Source  sum_reach.
    """
    return sum_reach(weighted_noises(linear.terms, noises), confidence)


def _integers(released: Released, index: int) -> NDArray[Any]:
    values = released.values[index]
    if isinstance(values, Ends):
        raise TypeError("a quantile is no integer")
    return values


def _floats(released: Released, index: int) -> FloatArray:
    return _integers(released, index).astype(np.float64)


# ---- means ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mean(PlannedEstimate):
    """centre + step · total/count, clamped to [lower, upper]; NULL where the released count is not above 0."""

    total: int
    count: int
    step: Fraction
    centre: Fraction
    lower: Fraction
    upper: Fraction

    @property
    def measurements(self) -> tuple[int, ...]:
        return self.total, self.count

    def reach_at(self, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float:
        return mean_reach_at(self, noises, rows, confidence)

    def value(self, released: Released) -> tuple[FloatArray, BoolArray]:
        ratio, none = _ratio(self.step, self.total, self.count, released)
        return np.clip(float(self.centre) + ratio, float(self.lower), float(self.upper)), none

    def jet(self, box: Box, rows: int) -> Jet:
        ratio = jets.over(jets.times(jets.constant(self.step, rows), box[self.total]), box[self.count])
        return jets.plus(jets.constant(self.centre, rows), ratio)

    def interval(self, noises: Sequence[Noise], released: Released, confidence: Fraction) -> ColumnEnclosure:
        law = mean_law(self, noises, confidence)
        low, high, none = _ratio_ends(law, self.step, self.total, self.count, released)
        centre, bounds = float(self.centre), (float_down(self.lower), float_up(self.upper))
        slip = 2 * math.ulp(max(abs(centre), abs(bounds[0]), abs(bounds[1])))  # of the addition
        return round_outward(np.clip(centre + low - slip, *bounds), np.clip(centre + high + slip, *bounds), none, ulps=0)


def mean_law(mean: Mean, noises: Sequence[Noise], confidence: Fraction) -> RatioLaw | None:
    """Return the law of step · total/count."""
    return ratio_law(((mean.total, mean.step),), ((mean.count, Fraction(1)),), noises, confidence)


def mean_reach_at(mean: Mean, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float:
    """Return half the length of a mean's interval if the released count is `rows`, at the mean where it is longest.

    Claim   No mean between the bounds has a longer interval at that count, since the reach t(θ) grows with |θ|.
    Rounds  Up; at most half of the bounds' distance, as intervals end at the bounds.
    """
    furthest = max(mean.upper - mean.centre, mean.centre - mean.lower, key=abs)
    return _half(mean_law(mean, noises, confidence), furthest, rows, (mean.upper - mean.lower) / 2)


def _half(law: RatioLaw | None, ratio: Fraction, rows: int, most: Fraction) -> float:
    if law is None:
        return float_up(most)
    value, count = np.array([float(ratio)]), np.array([float(rows)])
    low, high = law.ends(value, value * count, count)
    return min(float(high[0] - low[0]) / 2, float_up(most))


def _ratio(step: Fraction, above: int, below: int, released: Released) -> tuple[FloatArray, BoolArray]:
    """step · above/below, and where the released denominator is not above 0."""
    count = _floats(released, below)
    none = count <= 0
    return float(step) * _floats(released, above) / np.where(none, 1.0, count), none


def _ratio_ends(
    law: RatioLaw | None, step: Fraction, above: int, below: int, released: Released
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The ends of step · above/below, infinite where the denominator may be 0; and where that is."""
    ratio, _ = _ratio(step, above, below, released)
    if law is None:
        nowhere = unknown(released.rows)
        return nowhere.low, nowhere.high, nowhere.null
    low, high = law.ends(ratio, float(step) * _floats(released, above), _floats(released, below))
    return low, high, np.isinf(low)


# ---- variances -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variance(PlannedEstimate):
    """square_step · (squares/count + square_centre) − (step · total/count)², clamped to [0, range²/4].

    total is of v − centre, squares of ((v − centre)² >> shift) − square_centre. sample: times n/(n − 1).
    """

    total: int
    squares: int
    count: int
    step: Fraction
    square_step: Fraction
    square_centre: int
    most: Fraction
    sample: bool

    @property
    def measurements(self) -> tuple[int, ...]:
        return self.total, self.squares, self.count

    def reach_at(self, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float:
        return variance_reach_at(self, noises, rows, confidence)

    def value(self, released: Released) -> tuple[FloatArray, BoolArray]:
        _, none = _ratio(self.step, self.total, self.count, released)
        value = np.clip(self._unclamped(released), 0.0, float(self.most))
        if self.sample:
            count = _floats(released, self.count)
            none = none | (count <= 1)
            value = value * (count / np.where(none, 1.0, count - 1))
        return value, none

    def jet(self, box: Box, rows: int) -> Jet:
        count, one = box[self.count], jets.constant(Fraction(1), rows)
        each = jets.reciprocal(count)
        mean = jets.times(jets.times(jets.constant(self.step, rows), box[self.total]), each)
        second = jets.times(jets.times(jets.constant(self.square_step, rows), box[self.squares]), each)
        centre = jets.constant(self.square_step * self.square_centre, rows)
        found = jets.minus(jets.plus(second, centre), jets.times(mean, mean))
        if not self.sample:
            return found
        return jets.times(found, jets.plus(one, jets.reciprocal(jets.minus(count, one))))

    def interval(self, noises: Sequence[Noise], released: Released, confidence: Fraction) -> ColumnEnclosure:
        """The released value ± what its moments leave open, within what they allow by themselves; `plan/moments.py`.

        Of a sample by the factors n/(n − 1) that its count allows, which share the miss of the moments.
        """
        miss = 1 - confidence
        level = 1 - MOMENTS_SHARE * miss / (3 if self.sample else 2)
        means = _ratio_ends(mean_law(self._mean, noises, level), self.step, self.total, self.count, released)
        squares = _ratio_ends(second_moment_law(self, noises, level), self.square_step, self.squares, self.count, released)
        most, count = float_up(self.most), _floats(released, self.count)
        furthest = (math.sqrt(most) + float(self.step)) * (1 + 1e-12)  # how far a value on the grid lies from the centre
        low, high = np.clip(means[0], -furthest, furthest), np.clip(means[1], -furthest, furthest)
        larger = np.maximum(np.abs(low), np.abs(high)) ** 2
        smaller = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)) ** 2)
        centre = float(self.square_step * self.square_centre)
        first, last = np.maximum(centre + squares[0], 0.0), np.minimum(centre + squares[1], furthest**2)
        moments = (low, high), (first - centre, last - centre)
        steps = float(self.square_step), float(self.step)
        with np.errstate(all="ignore"):
            places = self.squares, self.total, self.count
            less, more = variance_reaches(places, steps, count, moments, noises, miss)
            value = self._unclamped(released)
            less, more = (np.where(np.isfinite(one), one, np.inf) for one in (less, more))
            low, high = np.maximum(first - larger, value - less), np.minimum(last - smaller, value + more)
        rounding = 1e-14 * furthest**2
        low, high = np.clip(low - rounding, 0.0, most), np.clip(high + rounding, 0.0, most)
        found = np.minimum(low, high), np.maximum(low, high)  # noise so large that no data fit: outside what is claimed
        null = means[2] | squares[2]
        if not self.sample:
            return round_outward(*found, null, ulps=0)
        reach = linear_reach(Linear(((self.count, Fraction(1)),)), noises, level)
        fewest, highest = np.maximum(count - reach, 2.0), count + reach
        factor = np.where(highest >= 2, highest / np.maximum(highest - 1, 1.0), 1.0), fewest / (fewest - 1)
        ends = found[0] * factor[0] * (1 - 1e-15), np.minimum(found[1] * factor[1] * (1 + 1e-15), 2 * most)
        return round_outward(*ends, null | (count - reach <= 1), ulps=0)

    def _unclamped(self, released: Released) -> FloatArray:
        mean, _ = _ratio(self.step, self.total, self.count, released)
        square, _ = _ratio(self.square_step, self.squares, self.count, released)
        return square + float(self.square_step * self.square_centre) - mean**2

    @property
    def _mean(self) -> Mean:
        """The mean from the middle, without bounds."""
        return Mean(self.total, self.count, self.step, Fraction(0), Fraction(0), Fraction(0))


def second_moment_law(variance: Variance, noises: Sequence[Noise], confidence: Fraction) -> RatioLaw | None:
    """Return the law of square_step · squares/count."""
    return ratio_law(((variance.squares, variance.square_step),), ((variance.count, Fraction(1)),), noises, confidence)


def variance_reach_at(variance: Variance, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float:
    """Return half the length of a variance's interval if the released count is `rows`, at moments where it is longest.

    Claim   No values between the bounds have a longer interval at that count: its reaches grow as the moments may lie
            further apart, and here they may lie anywhere. Rounds: up; at most half of what a variance can be.
    """
    furthest = _root_up(variance.most) + float(variance.step)
    centre = float(variance.square_step * variance.square_centre)
    moments = (np.array([-furthest]), np.array([furthest])), (np.array([-centre]), np.array([furthest**2 - centre]))
    places, steps = (variance.squares, variance.total, variance.count), (float(variance.square_step), float(variance.step))
    less, more = variance_reaches(places, steps, np.array([float(rows)]), moments, noises, 1 - confidence)
    factor = Fraction(1)
    if variance.sample:
        level = 1 - MOMENTS_SHARE * (1 - confidence) / 3
        fewest = max(rows - linear_reach(Linear(((variance.count, Fraction(1)),)), noises, level), 2.0)
        factor = Fraction(fewest) / (Fraction(fewest) - 1)
    half = Fraction(float(less[0] + more[0]) / 2 * (1 + 1e-12))
    return float_up(min(half, variance.most / 2) * factor)


def _root_up(value: Fraction) -> float:
    return float(np.nextafter(np.sqrt(float_up(value)), np.inf))


# ---- quantiles -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point(PlannedEstimate):
    """A quantile: the value of a grid cell. `measurement` gives the point; its priced noise also brings both ends."""

    measurement: int
    lower: Fraction
    upper: Fraction

    smooth = False

    @property
    def measurements(self) -> tuple[int, ...]:
        return (self.measurement,)

    def reach_at(self, noises: Sequence[Noise], rows: int, confidence: Fraction) -> None:  # noqa: ARG002 -- data alone tell
        return None

    def value(self, released: Released) -> tuple[FloatArray, BoolArray]:
        return self._clip(self._ends(released).point), np.zeros(released.rows, np.bool_)

    def interval(self, noises: Sequence[Noise], released: Released, confidence: Fraction) -> ColumnEnclosure:
        """The two ends, which were made to miss together with what their noise says; the bounds where less may be missed."""
        drawn, rows = self._ends(released), released.rows
        noise = noises[self.measurement]
        if not isinstance(noise, QuantileNoise) or confidence > 1 - noise.miss:
            bounds = float_down(self.lower), float_up(self.upper)
            return ColumnEnclosure(np.full(rows, bounds[0]), np.full(rows, bounds[1]), np.ones(rows, np.bool_))
        low = np.minimum(np.minimum(drawn.low, drawn.high), drawn.point)
        high = np.maximum(np.maximum(drawn.low, drawn.high), drawn.point)
        return ColumnEnclosure(self._clip(low), self._clip(high), np.ones(rows, np.bool_))

    def _ends(self, released: Released) -> Ends:
        values = released.values[self.measurement]
        if not isinstance(values, Ends):
            raise TypeError("an integer is no quantile")
        return values

    def _clip(self, values: FloatArray) -> FloatArray:
        return np.clip(values, float(self.lower), float(self.upper))


# ---- from an aggregate to its estimate -----------------------------------------------------------------------------


class Measuring(Protocol):
    """What an aggregate is planned with: the block's builder, which keeps every tally and measurement once."""

    counted: set[Tally]
    cap: Cap
    caps: Caps
    contribution: Contribution

    @property
    def adjacency(self) -> Adjacency:
        """Who is a neighbour of whom."""
        ...

    @property
    def unit_name(self) -> str:
        """What the study calls a unit."""
        ...

    def tally(self, tally: Tally) -> int:
        """Return the place of a tally."""
        ...

    def measured(self, measurement: Measurement) -> int:
        """Return the place of a measurement."""
        ...

    def pattern(self, one: Aggregate) -> Tally:
        """Return the tally of the rows an aggregate speaks of: of its filter, where its argument is not NULL."""
        ...

    def outer(self, argument: Expression) -> bool:
        """Whether a column comes from the side of a join that need not match."""
        ...

    def bounded_argument(self, one: Aggregate) -> tuple[Expression, Range]:
        """Return what an aggregate is of, with both ends of its range; refuse it where one is not known."""
        ...

    def grid(self, known: Range) -> Grid:
        """Return the grid of a range, on which sums fit."""
        ...

    def words(self, name: str, argument: Expression | None, pattern: Tally) -> str:
        """Return a measurement of a pattern's rows in words."""
        ...

    def name_of(self, expression: Expression) -> str:
        """Return an expression in words."""
        ...


def measure_count(plan: Measuring, pattern: Tally) -> int:
    """Return the place of the count of a pattern's rows."""
    tally = plan.tally(pattern)
    one, two = moves(plan.contribution, 0, 1, plan.adjacency)
    text = plan.words("COUNT", pattern.argument, pattern)
    return plan.measured(Measurement("count", "noise", ((tally, 1),), one, two, text=text))


def _count(plan: Measuring, one: Aggregate) -> Linear:
    return Linear(((measure_count(plan, plan.pattern(one)), Fraction(1)),), whole=True)


def _units(plan: Measuring, one: Aggregate) -> Linear:
    argument = one.argument
    present = argument if argument is not None and plan.outer(argument) else None
    tally = plan.tally(Tally("units", present, one.filter))
    first, second = presence_moves(plan.contribution, 1, plan.adjacency)
    text = f"number of {plan.unit_name}s"
    counted = plan.measured(Measurement("units", "noise", ((tally, 1),), first, second, text=text))
    return Linear(((counted, Fraction(1)),), whole=True)


def _distinct(plan: Measuring, one: Aggregate) -> Linear:
    if one.argument is None:
        raise InvalidQuery("COUNT(DISTINCT …) needs a column.", place=one.place)
    most = min(plan.caps.most_groups, plan.cap.rows)
    tally = plan.tally(Tally("distinct", one.argument, one.filter, most=most))
    first, second = presence_moves(plan.contribution, most, plan.adjacency)
    text = f"different values of {plan.name_of(one.argument)}, at most {most} of one {plan.unit_name}"
    counted = plan.measured(Measurement("distinct", "noise", ((tally, 1),), first, second, text=text))
    return Linear(((counted, Fraction(1)),), whole=True)


def _sum(plan: Measuring, one: Aggregate) -> Linear:
    argument, known = plan.bounded_argument(one)
    grid = plan.grid(known)
    pattern = plan.pattern(one)
    if pattern in plan.counted:
        centre, total = _centred(plan, argument, pattern, grid)
        count = measure_count(plan, pattern)
        return Linear(((total, grid.step), (count, grid.value(centre))))
    steps = plan.tally(Tally("steps", argument, pattern.filter, grid))
    rows = plan.tally(Tally("rows", argument, pattern.filter))
    first, second = moves(plan.contribution, grid.start, grid.start + grid.steps, plan.adjacency)
    combination = ((steps, 1), (rows, grid.start)) if grid.start else ((steps, 1),)
    text = plan.words("SUM", argument, pattern)
    total = plan.measured(Measurement("sum", "noise", combination, first, second, grid=grid, text=text))
    return Linear(((total, grid.step),))


def _mean(plan: Measuring, one: Aggregate) -> Mean:
    argument, known = plan.bounded_argument(one)
    grid = plan.grid(known)
    pattern = plan.pattern(one)
    centre, total = _centred(plan, argument, pattern, grid)
    count = measure_count(plan, pattern)
    return Mean(total, count, grid.step, grid.value(centre), *both_ends(known))


def _variance(plan: Measuring, one: Aggregate) -> Variance:
    argument, known = plan.bounded_argument(one)
    grid = plan.grid(known)
    pattern = plan.pattern(one)
    centre, total = _centred(plan, argument, pattern, grid)
    count = measure_count(plan, pattern)
    furthest = max(centre, grid.steps - centre) ** 2
    shift = max(furthest.bit_length() - _SQUARE_BITS, 0)
    highest = furthest >> shift
    middle = highest // 2
    squares = plan.tally(Tally("squares", argument, pattern.filter, grid, centre, shift))
    rows = plan.tally(Tally("rows", argument, pattern.filter))
    first, second = moves(plan.contribution, -middle, highest - middle, plan.adjacency)
    combination = ((squares, 1), (rows, -middle)) if middle else ((squares, 1),)
    text = plan.words("squares from the middle", argument, pattern)
    measured = plan.measured(Measurement("squares", "noise", combination, first, second, text=text))
    lower, upper = both_ends(known)
    square_step = grid.step * grid.step * (1 << shift)
    most = (upper - lower) ** 2 / 4
    sample = one.function == "var_samp"
    return Variance(total, measured, count, grid.step, square_step, middle, most, sample)


def _quantile(plan: Measuring, one: Aggregate) -> Point:
    argument, known = plan.bounded_argument(one)
    lower, upper = both_ends(known)
    if lower == upper:
        name = plan.name_of(argument)
        raise NotPrivate(f"a quantile needs a range of values; {name} has one value.", place=one.place)
    grid = grid_between(lower, upper, integer=known.integer, most=CELL_STEPS)
    cells = plan.tally(Tally("cells", argument, one.filter, grid))
    twice = plan.contribution.keyed and plan.adjacency is Adjacency.REPLACE_ONE
    weight = plan.contribution.rows * (2 if twice else 1)
    text = f"quantile {float(one.q or 0):g} of {plan.name_of(argument)} on {grid.steps + 1:,} cells"
    measured = Measurement("quantile", "quantile", ((cells, 1),), 0, 0, one.q, grid, weight, text)
    return Point(plan.measured(measured), lower, upper)


def _centred(plan: Measuring, argument: Expression, pattern: Tally, grid: Grid) -> tuple[int, int]:
    """Σ (v − centre): half the sensitivity of Σ v."""
    centre = grid.steps // 2
    steps = plan.tally(Tally("steps", argument, pattern.filter, grid))
    rows = plan.tally(Tally("rows", argument, pattern.filter))
    first, second = moves(plan.contribution, -centre, grid.steps - centre, plan.adjacency)
    combination = ((steps, 1), (rows, -centre)) if centre else ((steps, 1),)
    text = plan.words("SUM from the middle", argument, pattern)
    return centre, plan.measured(Measurement("centred", "noise", combination, first, second, grid=grid, text=text))


# ---- exact, inside one unit ----------------------------------------------------------------------------------------


def _few(_: Range, rows: int) -> Range:
    return Range(Fraction(0), Fraction(rows), integer=True, why=_why(rows))


def _total(argument: Range, rows: int) -> Range:
    lower = None if argument.lower is None else rows * min(argument.lower, Fraction(0))
    upper = None if argument.upper is None else rows * max(argument.upper, Fraction(0))
    return Range(lower, upper, argument.integer, f"{_why(rows)}, {argument.why}")


def _spread(part: int) -> RangeInside:
    def spread(argument: Range, _: int) -> Range:
        width = None
        if argument.lower is not None and argument.upper is not None:
            width = (argument.upper - argument.lower) ** 2 / part
        return Range(Fraction(0), width, why=argument.why)

    return spread


def _between(argument: Range, _: int) -> Range:
    return replace(argument, integer=False)


def _one_of(argument: Range, _: int) -> Range:
    return argument


def _why(rows: int) -> str:
    return f"at most {rows} rows a unit"


# ---- the table -----------------------------------------------------------------------------------------------------

RangeInside: TypeAlias = "Callable[[Range, int], Range]"
"""Where it lies if its argument does and the unit has at most so many rows."""


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """How one aggregate is planned.

    estimate  over all rows: what the builder keeps of tallies and measurements, and what is computed; None: no such form
    inside    what its exact value inside one unit is clamped to, as if the unit had at most so many rows; None: no such form
    counted   it measures the count of its pattern's rows, which a sum beside it then shares
    """

    estimate: Callable[[Measuring, Aggregate], PlannedEstimate] | None
    inside: RangeInside | None
    counted: bool = False


PLANNED: dict[str, AggregatePlan] = {
    "count": AggregatePlan(_count, _few, counted=True),
    "count_units": AggregatePlan(_units, _few),
    "count_distinct": AggregatePlan(_distinct, _few),
    "sum": AggregatePlan(_sum, _total),
    "avg": AggregatePlan(_mean, _between, counted=True),
    "var_pop": AggregatePlan(_variance, _spread(4), counted=True),
    "var_samp": AggregatePlan(_variance, _spread(2), counted=True),
    "quantile": AggregatePlan(_quantile, _between),
    **dict.fromkeys(("min", "max", "bool_and", "bool_or"), AggregatePlan(None, _one_of)),
}
"""By the name in the catalogue of `query/functions.py`."""
