"""Interval arithmetic over columns: every value that a function can take on intervals, NULL included. Rounds outward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import BoolArray


_EXACT, _FURTHEST = 2.0**53, 2.0**63
"""Whole numbers up to the first are doubles; below the second they have 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnEnclosure:
    """Where numbers can lie: [low, high], and whether they can be NULL. Nothing but NULL where low is above high."""

    low: FloatArray
    high: FloatArray
    null: BoolArray

    @property
    def empty(self) -> BoolArray:
        """Where it can be nothing but NULL."""
        return self.low > self.high


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Which truth values are possible."""

    true: BoolArray
    false: BoolArray
    null: BoolArray


def unknown(rows: int) -> ColumnEnclosure:
    """Return the enclosure of any number, or NULL."""
    return ColumnEnclosure(np.full(rows, -np.inf), np.full(rows, np.inf), np.ones(rows, np.bool_))


def doubtful(rows: int) -> Truth:
    """Return the truth of which nothing is known."""
    possible = np.ones(rows, np.bool_)
    return Truth(possible, possible, possible)


def exactly(values: NDArray[Any], null: BoolArray) -> ColumnEnclosure:
    """Return the enclosure of numbers that are known; arithmetic with an infinite one is NULL, so nothing is known of that.

    Whole numbers that doubles cannot hold lie between two of them: they are compared as they are, and computed with as one.
    """
    near = values.astype(np.float64)
    whole = values.dtype == np.int64
    slack = np.where(np.abs(near) >= _EXACT, np.spacing(near), 0.0) if whole else np.where(np.isinf(near), np.inf, 0.0)
    low, high = (np.where(np.isinf(slack), way * np.inf, near + way * np.abs(slack)) for way in (-1, 1))
    return ColumnEnclosure(np.where(null, np.inf, low), np.where(null, -np.inf, high), null | np.isinf(slack))


def certain(values: BoolArray, null: BoolArray) -> Truth:
    """Return the truths that are known."""
    return Truth(values & ~null, ~values & ~null, null)


def round_outward(
    low: FloatArray, high: FloatArray, null: BoolArray, parts: Sequence[ColumnEnclosure] = (), ulps: int = 1
) -> ColumnEnclosure:
    """Return ends rounded outward, empty where a part is; an end that is no number is infinite.

    A 0 stays: it comes from a 0 or a difference of equals, which floats get right, or from numbers below 1e-300.
    """
    for _ in range(ulps):
        low = np.where(low == 0, low, np.nextafter(low, -np.inf))
        high = np.where(high == 0, high, np.nextafter(high, np.inf))
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    for part in parts:
        low, high = np.where(part.empty, np.inf, low), np.where(part.empty, -np.inf, high)
        null = null | part.null
    return ColumnEnclosure(low, high, null)


# ---- arithmetic ----------------------------------------------------------------------------------------------------


def add(one: ColumnEnclosure, other: ColumnEnclosure) -> ColumnEnclosure:
    """Return a + b."""
    return round_outward(one.low + other.low, one.high + other.high, one.null, (one, other))


def subtract(one: ColumnEnclosure, other: ColumnEnclosure) -> ColumnEnclosure:
    """Return a − b."""
    return add(one, negative(other))


def negative(one: ColumnEnclosure) -> ColumnEnclosure:
    """Return −a."""
    return ColumnEnclosure(-one.high, -one.low, one.null)


def multiply(one: ColumnEnclosure, other: ColumnEnclosure) -> ColumnEnclosure:
    """Return a · b: the extremes are among the products of the ends, where 0 times anything is 0."""
    corners = [np.where((a == 0) | (b == 0), 0.0, a * b) for a in (one.low, one.high) for b in (other.low, other.high)]
    return round_outward(np.minimum.reduce(corners), np.maximum.reduce(corners), one.null, (one, other))


def divide(one: ColumnEnclosure, other: ColumnEnclosure) -> ColumnEnclosure:
    """Return a / b: anything where b may be 0."""
    zero = (other.low <= 0) & (other.high >= 0)
    below = ColumnEnclosure(np.where(zero, 1.0, 1 / other.high), np.where(zero, 1.0, 1 / other.low), other.null)
    found = multiply(one, round_outward(below.low, below.high, other.null, (other,)))
    inside = zero & ~one.empty & ~other.empty
    return ColumnEnclosure(np.where(inside, -np.inf, found.low), np.where(inside, np.inf, found.high), found.null | zero)


def above_zero(quotient: ColumnEnclosure, divisor: ColumnEnclosure) -> ColumnEnclosure:
    """Return a quotient by a released divisor: NULL where that is not above 0."""
    none = divisor.high <= 0
    null = quotient.null | (divisor.low <= 0)
    return ColumnEnclosure(np.where(none, np.inf, quotient.low), np.where(none, -np.inf, quotient.high), null)


def quotient(one: ColumnEnclosure, other: ColumnEnclosure) -> ColumnEnclosure:
    """Return a / b rounded towards 0."""
    return monotone(np.trunc)(divide(one, other))


def remainder(one: ColumnEnclosure, other: ColumnEnclosure) -> ColumnEnclosure:
    """Return the remainder of a / b, of the sign of a: exact where the whole quotient is known."""
    most = np.maximum(np.abs(other.low), np.abs(other.high))
    low = np.where(one.low < 0, np.maximum(-most, one.low), 0.0)
    high = np.where(one.high > 0, np.minimum(most, one.high), 0.0)
    divisor = np.where(other.low == 0, 1.0, other.low)
    ends = np.fmod(one.low, divisor), np.fmod(one.high, divisor)  # exact, unlike a quotient, which may be rounded up
    first, last = np.rint((one.low - ends[0]) / divisor), np.rint((one.high - ends[1]) / divisor)
    known = (other.low == other.high) & (first == last) & np.isfinite(first) & (np.sign(one.low) * np.sign(one.high) >= 0)
    low, high = np.where(known, ends[0], low), np.where(known, ends[1], high)
    return round_outward(low, high, one.null | ((other.low <= 0) & (other.high >= 0)), (one, other))


# ---- functions of one number ---------------------------------------------------------------------------------------


def monotone(function: Callable[[Any], Any], ulps: int = 0) -> Callable[[ColumnEnclosure], ColumnEnclosure]:
    """Return the image under a function that never falls."""

    def image(one: ColumnEnclosure) -> ColumnEnclosure:
        return round_outward(function(one.low), function(one.high), one.null, (one,), ulps)

    return image


def absolute(one: ColumnEnclosure) -> ColumnEnclosure:
    """Return |a|."""
    larger = np.maximum(np.abs(one.low), np.abs(one.high))
    smaller = np.where((one.low <= 0) & (one.high >= 0), 0.0, np.minimum(np.abs(one.low), np.abs(one.high)))
    return round_outward(smaller, larger, one.null, (one,), 0)


def round_to_whole(values: FloatArray) -> FloatArray:
    """Return doubles rounded to whole ones, halves away from 0: exactly, as what is after the point has no rounding."""
    whole = np.trunc(values)
    beyond = np.abs(values - whole) >= 0.5
    return np.where(np.isfinite(values) & beyond, whole + np.copysign(1.0, values), whole)


def round_digits(one: ColumnEnclosure, digits: int) -> ColumnEnclosure:
    """Return a rounded to decimal digits, negative ones before the point; NULL where a · 10^digits is not finite."""
    scale = float(10 ** abs(digits))
    if digits == 0:
        return monotone(round_to_whole)(one)
    if digits < 0:
        return monotone(lambda end: round_to_whole(end / scale) * scale)(one)
    image = monotone(lambda end: round_to_whole(end * scale) / scale)(one)
    return ColumnEnclosure(image.low, image.high, image.null | np.isinf(one.low * scale) | np.isinf(one.high * scale))


def fit_integers(one: ColumnEnclosure) -> ColumnEnclosure:
    """Return a whole number: NULL where it is outside 64 bits."""
    return ColumnEnclosure(one.low, one.high, one.null | (one.low < -_FURTHEST) | (one.high >= _FURTHEST))


def root(one: ColumnEnclosure) -> ColumnEnclosure:
    """Return √a, NULL below 0."""
    return _from(one, 0.0, np.sqrt, closed=True)


def logarithm(function: Callable[[Any], Any]) -> Callable[[ColumnEnclosure], ColumnEnclosure]:
    """Return log a, NULL at and below 0."""
    return lambda one: _from(one, 0.0, function, closed=False)


def _from(one: ColumnEnclosure, least: float, function: Callable[[Any], Any], *, closed: bool) -> ColumnEnclosure:
    outside = one.low < least if closed else one.low <= least
    gone = (one.high < least if closed else one.high <= least) | one.empty
    image = round_outward(
        function(np.maximum(one.low, least)), function(np.maximum(one.high, least)), one.null | outside, (one,), 4
    )
    return ColumnEnclosure(np.where(gone, np.inf, image.low), np.where(gone, -np.inf, image.high), image.null)


def exponential(one: ColumnEnclosure) -> ColumnEnclosure:
    """Return e^a; a result that is not finite is NULL."""
    image = monotone(np.exp, 4)(one)
    return ColumnEnclosure(np.maximum(image.low, 0.0), image.high, image.null | np.isinf(np.exp(one.high)))


def power(one: ColumnEnclosure, exponent: float) -> ColumnEnclosure:
    """Return a^p for a known p, NULL where that is not finite."""
    whole = exponent == np.floor(exponent)
    if not whole:
        positive = ColumnEnclosure(np.maximum(one.low, 0.0), one.high, one.null | (one.low < 0))
        gone = (one.high < 0) | one.empty
        image = _powers(positive, exponent)
        return ColumnEnclosure(np.where(gone, np.inf, image.low), np.where(gone, -np.inf, image.high), image.null)
    return _powers(absolute(one) if exponent % 2 == 0 else one, exponent)


def _powers(one: ColumnEnclosure, exponent: float) -> ColumnEnclosure:
    """a^p where it is monotone on either side of 0, and on the whole line if p is positive."""
    low, high = np.power(one.low, exponent), np.power(one.high, exponent)
    if exponent >= 0:
        return round_outward(low, high, one.null | np.isinf(low) | np.isinf(high), (one,), 4)
    around = (one.low <= 0) & (one.high >= 0) & ~one.empty
    image = round_outward(high, low, one.null | around, (one,), 4)
    return ColumnEnclosure(np.where(around, -np.inf, image.low), np.where(around, np.inf, image.high), image.null)


# ---- choices -------------------------------------------------------------------------------------------------------


def hull(one: ColumnEnclosure, other: ColumnEnclosure, where: BoolArray) -> ColumnEnclosure:
    """Return the first, widened by the second where that is possible."""
    return ColumnEnclosure(
        np.where(where, np.minimum(one.low, other.low), one.low),
        np.where(where, np.maximum(one.high, other.high), one.high),
        one.null | (where & (other.null | other.empty)),
    )


def nothing(rows: int) -> ColumnEnclosure:
    """Return what no value is in yet."""
    return ColumnEnclosure(np.full(rows, np.inf), np.full(rows, -np.inf), np.zeros(rows, np.bool_))


def greatest(held: Sequence[ColumnEnclosure]) -> ColumnEnclosure:
    """Return the largest of those that are not NULL."""
    sure = [np.where(one.null | one.empty, -np.inf, one.low) for one in held]
    maybe = [np.where(one.empty, np.inf, one.low) for one in held]
    certainly = np.maximum.reduce(sure)
    low = np.where(np.isneginf(certainly), np.minimum.reduce(maybe), certainly)
    high = np.maximum.reduce([one.high for one in held])
    null = np.logical_and.reduce([one.null | one.empty for one in held])
    return ColumnEnclosure(low, high, null)


def least(held: Sequence[ColumnEnclosure]) -> ColumnEnclosure:
    """Return the smallest of those that are not NULL."""
    return negative(greatest([negative(one) for one in held]))


# ---- comparisons ---------------------------------------------------------------------------------------------------


def compare(name: str, one: ColumnEnclosure, other: ColumnEnclosure) -> Truth:
    """Return what a comparison can come to."""
    if name in {">", ">="}:
        return compare("<" if name == ">" else "<=", other, one)
    if name == "<>":
        return reverse(compare("=", one, other))
    some = ~one.empty & ~other.empty
    null = one.null | other.null | ~some
    if name == "=":
        true = (one.low <= other.high) & (other.low <= one.high)
        false = ~((one.low == one.high) & (other.low == other.high) & (one.low == other.low))
    elif name == "<":
        true, false = one.low < other.high, one.high >= other.low
    else:
        true, false = one.low <= other.high, one.high > other.low
    return Truth(true & some, false & some, null)


def every(held: Sequence[Truth]) -> Truth:
    """Return what AND can come to."""
    return Truth(
        np.logical_and.reduce([one.true for one in held]),
        np.logical_or.reduce([one.false for one in held]),
        np.logical_or.reduce([one.null for one in held]),
    )


def some(held: Sequence[Truth]) -> Truth:
    """Return what OR can come to."""
    return reverse(every([reverse(one) for one in held]))


def reverse(one: Truth) -> Truth:
    """Return what NOT can come to."""
    return Truth(one.false, one.true, one.null)
