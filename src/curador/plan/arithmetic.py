"""Interval arithmetic on exact rationals: what a function can give if its arguments lie in given ranges.

None is an end that does not exist. Irrational ends are rounded outwards. A range speaks of values that are not NULL.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.plan.model import Range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

End = Fraction | None
EVERYTHING = Range(None, None)
_FINE = 1 << 40
_FARTHEST = 1 << 1000
_LONGEST = 1024
_MOST_POWER = Fraction(700)  # e to it is a double with room to spare


def tame(one: Range) -> Range:
    """Return the range with ends that stay small: beyond 2¹⁰⁰⁰ there is none, and a long fraction is rounded outwards."""
    return Range(_short(one.lower, up=False), _short(one.upper, up=True), one.integer, one.why)


def _short(end: End, *, up: bool) -> End:
    if end is None or abs(end) > _FARTHEST:
        return None
    if end.denominator.bit_length() <= _LONGEST:
        return end
    scaled = end * (1 << _LONGEST)
    return Fraction(math.ceil(scaled) if up else math.floor(scaled), 1 << _LONGEST)


def add(one: Range, other: Range) -> Range:
    """Return the range of a sum."""
    return Range(_plus(one.lower, other.lower), _plus(one.upper, other.upper), one.integer and other.integer)


def negate(one: Range) -> Range:
    """Return the range of the opposite."""
    lower = None if one.upper is None else -one.upper
    return Range(lower, None if one.lower is None else -one.lower, one.integer)


def multiply(one: Range, other: Range) -> Range:
    """Return the range of a product; unbounded ends are known only where the other factor is 0."""
    integer = one.integer and other.integer
    for first, second in ((one, other), (other, one)):
        if first.lower == first.upper == 0:
            return Range(Fraction(0), Fraction(0), second.integer and integer)
    ends = _corners(one, other)
    if ends is None:
        return Range(None, None, integer)
    return Range(min(ends), max(ends), integer)


def _corners(one: Range, other: Range) -> list[Fraction] | None:
    if one.lower is None or one.upper is None or other.lower is None or other.upper is None:
        return None
    return [a * b for a in (one.lower, one.upper) for b in (other.lower, other.upper)]


def divide(one: Range, other: Range) -> Range:
    """Return the range of a quotient: no ends where the divisor can be 0 or as near to it as one likes."""
    if other.lower is None or other.upper is None or other.lower <= 0 <= other.upper:
        return EVERYTHING
    inverse = Range(1 / other.upper, 1 / other.lower)
    exact = multiply(Range(one.lower, one.upper), inverse)
    return Range(exact.lower, exact.upper)


def whole_quotient(one: Range, other: Range) -> Range:
    """Return the range of a quotient rounded towards 0."""
    exact = divide(one, other)
    return Range(_ends(exact.lower, math.trunc), _ends(exact.upper, math.trunc), integer=True)


def remainder(one: Range, other: Range) -> Range:
    """Return the range of a remainder, which has the sign of the dividend and is smaller than the divisor."""
    if other.lower is None or other.upper is None:
        return Range(None, None, one.integer and other.integer)
    size = max(abs(other.lower), abs(other.upper))
    lower = Fraction(0) if one.lower is not None and one.lower >= 0 else -size
    upper = Fraction(0) if one.upper is not None and one.upper <= 0 else size
    return Range(lower, upper, one.integer and other.integer)


def magnitude(one: Range) -> Range:
    """Return the range of the absolute value."""
    if one.lower is None or one.upper is None:
        return Range(Fraction(0), None, one.integer)
    lower = Fraction(0) if one.lower <= 0 <= one.upper else min(abs(one.lower), abs(one.upper))
    return Range(lower, max(abs(one.lower), abs(one.upper)), one.integer)


def rounded(one: Range, digits: int) -> Range:
    """Return the range of a value rounded to decimal digits."""
    unit = Fraction(10) ** -digits

    def nearest(end: Fraction) -> Fraction:
        return math.floor(abs(end) / unit + Fraction(1, 2)) * unit * (1 if end >= 0 else -1)

    return Range(_ends(one.lower, nearest), _ends(one.upper, nearest), one.integer or digits <= 0)


def monotone(one: Range, function: Callable[[Fraction], Fraction], *, integer: bool = False) -> Range:
    """Return the range of an increasing function."""
    return Range(_ends(one.lower, function), _ends(one.upper, function), integer)


def root(one: Range) -> Range:
    """Return the range of a square root; negative values have none."""
    lower = Fraction(0) if one.lower is None or one.lower < 0 else _root(one.lower, up=False)
    return Range(lower, None if one.upper is None else _root(max(one.upper, Fraction(0)), up=True))


def logarithm(one: Range, base: float) -> Range:
    """Return the range of a logarithm: no lower end where values can come close to 0."""
    lower = None if one.lower is None or one.lower <= 0 else _outward(_log(one.lower) / base, up=False)
    upper = None if one.upper is None or one.upper <= 0 else _outward(_log(one.upper) / base, up=True)
    return Range(lower, upper)


def exponential(one: Range) -> Range:
    """Return the range of e^x."""
    lower = Fraction(0) if one.lower is None else _exp(min(one.lower, _MOST_POWER), up=False)
    return Range(lower, None if one.upper is None or one.upper > _MOST_POWER else _exp(one.upper, up=True))


def power(one: Range, exponent: Fraction) -> Range:
    """Return the range of a power with a known exponent; only whole exponents and non-negative bases have ends."""
    if exponent == 0:
        return Range(Fraction(1), Fraction(1), integer=True)
    if exponent.denominator == 1 and 0 < exponent <= 64 and one.lower is not None and one.upper is not None:
        ends = [one.lower ** int(exponent), one.upper ** int(exponent)]
        if int(exponent) % 2 == 0 and one.lower <= 0 <= one.upper:
            ends.append(Fraction(0))
        return Range(min(ends), max(ends), one.integer)
    if 0 < exponent <= 64 and one.lower is not None and one.upper is not None and one.lower >= 0:
        top = max(one.upper, Fraction(1)) ** math.ceil(exponent)
        return Range(Fraction(0), top)
    return EVERYTHING


def hull(ranges: Sequence[Range]) -> Range:
    """Return the smallest range that holds all of them."""
    if not ranges:
        return EVERYTHING
    lowers, uppers = [one.lower for one in ranges], [one.upper for one in ranges]
    lower = None if None in lowers else min(end for end in lowers if end is not None)
    upper = None if None in uppers else max(end for end in uppers if end is not None)
    return Range(lower, upper, all(one.integer for one in ranges))


def meet(one: Range, other: Range) -> Range:
    """Return what lies in both; where nothing does, a single point, since no value does either."""
    lower = one.lower if other.lower is None else other.lower if one.lower is None else max(one.lower, other.lower)
    upper = one.upper if other.upper is None else other.upper if one.upper is None else min(one.upper, other.upper)
    if lower is not None and upper is not None and lower > upper:
        upper = lower
    return Range(lower, upper, one.integer, one.why)


def _plus(one: End, other: End) -> End:
    return None if one is None or other is None else one + other


def _ends(end: End, function: Callable[[Fraction], Fraction | int]) -> End:
    return None if end is None else Fraction(function(end))


def _root(value: Fraction, *, up: bool) -> Fraction:
    scaled = math.isqrt(math.floor(value * _FINE * _FINE))
    return Fraction(scaled + 2 if up else scaled, _FINE)


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _exp(value: Fraction, *, up: bool) -> Fraction:
    if value < -_MOST_POWER:
        return Fraction(1, _FINE) if up else Fraction(0)
    return _outward(math.exp(value), up=up)


def _outward(value: float, *, up: bool) -> Fraction:
    margin = Fraction(abs(value)) / _FINE + Fraction(1, _FINE)
    return Fraction(value) + margin if up else Fraction(value) - margin
