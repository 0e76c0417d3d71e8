"""Exact rationals at the border.

A number that a person writes is the decimal that he or she sees: the float 0.1 means 1/10, not
3602879701896397/36028797018963968. NaN, infinities, booleans, words, digits of other scripts and numbers too long to be
written out again are refused here, so that no function behind the border has to think of them.

Fields of frozen classes read what a person writes by the same checks, each under the name that he used:

    epsilon0: Fraction = field(alias="epsilon", converter=AT_LEAST_ZERO)

makes `epsilon=-1` say *epsilon must be at least 0; got -1.*
"""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from attrs import Converter

from curador.errors import InvalidParameter, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Number: TypeAlias = int | float | str | Decimal | Fraction
Kept = TypeVar("Kept")

_LONGEST = 400  # characters of a number's text
_FURTHEST = 400  # and its exponent: beyond every double in both directions, and short enough to be written out
_LEAST_MISS = Fraction(1, 10**300)
_MOST_BITS = 8192  # of a numerator or denominator that is given as one
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\s*/\s*\d+|(?:\d+\.?\d*|\.\d+)(?:e([+-]?\d+))?)\s*", re.ASCII | re.IGNORECASE)
_WRITABLE = f"of at most {_LONGEST} digits, with an exponent within ±{_FURTHEST}"


def rational(value: object, name: str) -> Fraction:
    """Return the exact rational that the value stands for.

    Claim   The result equals the decimal or ratio that `repr` shows for the value.
    Rounds  Exact.
    """
    if type(value) is Fraction:  # the usual kinds first: a mixture of a thousand mechanisms parses thousands of numbers
        return _short(value, name)
    if isinstance(value, float) and math.isfinite(value):  # NumPy's doubles too
        return coprime(*Decimal(repr(float(value))).as_integer_ratio())
    if type(value) is int:
        return _short(coprime(value, 1), name)
    if isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}:
        raise InvalidParameter.must_be(name, "a number", value)
    if isinstance(value, numbers.Integral):
        return _short(Fraction(int(value)), name)
    if isinstance(value, numbers.Real) and not isinstance(value, Decimal):
        as_float = float(value)
        require(math.isfinite(as_float), name, "a finite number", value)
        return Fraction(repr(as_float))
    return _rational_of_text(value, name)


def coprime(top: int, bottom: int) -> Fraction:
    """Return top/bottom where no number above 1 divides both and bottom is above 0: `Fraction` would search for one.

    Claim   Equal to Fraction(top, bottom), in a quarter of its time.
    """
    found: Any = object.__new__(Fraction)
    found._numerator, found._denominator = top, bottom  # noqa: SLF001 -- the same two slots since 2.6; no public way skips the search
    return found


def square(value: Fraction) -> Fraction:
    """Return value². Exact: squares of coprime numbers are coprime."""
    top, bottom = value.as_integer_ratio()
    return coprime(top * top, bottom * bottom)


def _rational_of_text(value: object, name: str) -> Fraction:
    text = str(value) if isinstance(value, (str, Decimal)) else ""
    found = _NUMBER.fullmatch(text)
    if found is not None and not (len(text) <= _LONGEST and _near(found[1] or "0")):
        raise InvalidParameter.must_be(name, _WRITABLE, value)
    try:
        return Fraction(text.strip() if found is not None else "")
    except (ValueError, ZeroDivisionError):
        raise InvalidParameter.must_be(name, "a number", value, 'write 0.1, "1e-6", "1/3" or a Fraction') from None


def _near(exponent: str) -> bool:
    return len(exponent) < 10 and abs(int(exponent)) <= _FURTHEST


def _short(exact: Fraction, name: str) -> Fraction:
    """Refuse a rational that nobody could write: what is printed, stored or charged later is made of it."""
    top, bottom = exact.as_integer_ratio()
    if top.bit_length() > _MOST_BITS or bottom.bit_length() > _MOST_BITS:
        raise InvalidParameter(subject=str(name), rule=f"must be {_WRITABLE}", got="a longer one")
    return exact


def positive(value: object, name: str) -> Fraction:
    """Return the rational, refused unless it is above 0."""
    exact = rational(value, name)
    if exact.numerator <= 0:
        raise InvalidParameter.must_be(name, "positive", value)
    return exact


def at_least_zero(value: object, name: str) -> Fraction:
    """Return the rational, refused if it is negative."""
    exact = rational(value, name)
    if exact.numerator < 0:
        raise InvalidParameter.must_be(name, "at least 0", value)
    return exact


def probability(value: object, name: str) -> Fraction:
    """Return the rational, refused outside [0, 1)."""
    exact = rational(value, name)
    require(0 <= exact < 1, name, "at least 0 and below 1", value)
    return exact


def open_probability(value: object, name: str) -> Fraction:
    """Return the rational, refused outside (0, 1)."""
    exact = rational(value, name)
    require(0 < exact < 1, name, "strictly between 0 and 1", value)
    return exact


def confidence_level(value: object) -> Fraction:
    """Return the confidence of an interval, refused outside (0, 1) and so close to 1 that no double holds the miss."""
    exact = open_probability(value, "confidence")
    require(1 - exact >= _LEAST_MISS, "confidence", "at most 1 − 1e-300", value)
    return exact


def whole(value: object, name: str, *, least: int = 1) -> int:
    """Return the integer, refused if it is not whole or below `least`."""
    if type(value) is int and value >= least:
        return value
    exact = rational(value, name)
    require(exact.denominator == 1 and exact >= least, name, f"a whole number of at least {least}", value)
    return int(exact)


def whole_root_up(square: int, over: int = 1) -> int:
    """Return the least whole number whose square is at least square/over, for square ≥ 0 and over ≥ 1. Rounds: up."""
    ceiling = -(-square // over)
    return math.isqrt(ceiling - 1) + 1 if ceiling > 0 else 0


def root_up(square: Fraction, digits: int) -> Fraction:
    """Return √square in parts of 1/digits. Rounds: up."""
    return Fraction(whole_root_up(square.numerator * digits**2, square.denominator), digits)


def root_down(square: Fraction, digits: int) -> Fraction:
    """Return √square in parts of 1/digits. Rounds: down."""
    return Fraction(math.isqrt(square.numerator * digits**2 // square.denominator), digits)


def exact_sum(terms: Iterable[Fraction]) -> Fraction:
    """Return the exact sum, by halves: the denominators of thousands of terms then grow in the last few additions only."""
    parts = list(terms)
    while len(parts) > 1:
        halved = [first + second for first, second in zip(parts[::2], parts[1::2], strict=False)]
        parts = halved + parts[2 * len(halved) :]
    return parts[0] if parts else Fraction(0)


# ---- fields ----------------------------------------------------------------------------------------------------------------


def reads(check: Callable[[Any, str], Kept]) -> Callable[[Number], Kept]:
    """Return the converter of a field that has to pass the check; the check is told the argument's name."""

    def convert(value: Number, place: Any) -> Kept:
        return check(value, place.alias)

    # attrs hands over the field as well; who checks types must see a function of what is given to the constructor
    return cast("Any", Converter(convert, takes_field=True))


def reads_maybe(check: Callable[[Any, str], Kept]) -> Callable[[Number | None], Kept | None]:
    """Return the converter of a field that may be absent."""

    def convert(value: Number | None, place: Any) -> Kept | None:
        return None if value is None else check(value, place.alias)

    return cast("Any", Converter(convert, takes_field=True))


def read_flag(value: object, name: str) -> bool:
    """Return the truth value, refused if it is anything else: monotone="no" would be true."""
    require(isinstance(value, bool), name, "True or False", value)
    return value is True


def _flag(value: bool, place: Any) -> bool:  # noqa: FBT001 -- attrs gives the constructor its type
    return read_flag(value, place.alias)


FLAG: Callable[[bool], bool] = cast("Any", Converter(_flag, takes_field=True))


def whole_from(least: int) -> Callable[[Number], int]:
    """Return the converter of a whole number of at least `least`."""

    def convert(value: Number, place: Any) -> int:  # most are given as they should be: mixtures have thousands of records
        return value if type(value) is int and value >= least else whole(value, place.alias, least=least)

    return cast("Any", Converter(convert, takes_field=True))


RATIONAL = reads(rational)
POSITIVE = reads(positive)
AT_LEAST_ZERO = reads(at_least_zero)
PROBABILITY = reads(probability)
OPEN_PROBABILITY = reads(open_probability)
WHOLE = whole_from(1)
"""A whole number of at least 1."""
