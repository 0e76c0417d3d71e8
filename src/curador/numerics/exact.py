"""Exact rationals at the border.

A number that a person writes is the decimal that he or she sees: the float 0.1 means 1/10, not
3602879701896397/36028797018963968. NaN, infinities, booleans and words are refused here, so that no
function behind the border has to think of them.
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, cast

from curador.errors import InvalidParameter, require, sentence

if TYPE_CHECKING:
    from collections.abc import Iterable

Number: TypeAlias = int | float | str | Decimal | Fraction

_LONGEST = 400  # characters of a number's text; 1e400 would already be a denial of service as a rational


def rational(value: object, name: str) -> Fraction:
    """Return the exact rational that the value stands for.

    Claim   The result equals the decimal or ratio that `repr` shows for the value.
    Rounds  Exact.
    """
    kind = type(value)  # the usual kinds first: a mixture of a thousand mechanisms parses thousands of numbers
    if kind is Fraction:
        return cast("Fraction", value)
    if kind is int:
        return Fraction(cast("int", value))
    if isinstance(value, float) and math.isfinite(value):  # NumPy's doubles too
        return Fraction(*Decimal(repr(float(value))).as_integer_ratio())
    if isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}:
        raise InvalidParameter(sentence(name, "a number", value))
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, numbers.Real) and not isinstance(value, Decimal):
        as_float = float(value)
        require(math.isfinite(as_float), name, "a finite number", value)
        return Fraction(repr(as_float))
    return _rational_of_text(value, name)


def _rational_of_text(value: object, name: str) -> Fraction:
    text = str(value) if isinstance(value, (str, Decimal)) else ""
    mantissa, _, exponent = text.lower().partition("e")
    usable = 0 < len(text) <= _LONGEST and len(exponent.lstrip("+-0")) <= 4 and mantissa != ""
    if usable:
        try:
            return Fraction(text.strip())
        except (ValueError, ZeroDivisionError):
            pass
    raise InvalidParameter(sentence(name, "a number", value, 'write 0.1, "1e-6", "1/3" or a Fraction'))


def positive(value: object, name: str) -> Fraction:
    """Return the rational, refused unless it is above 0."""
    exact = rational(value, name)
    if exact.numerator <= 0:
        raise InvalidParameter(sentence(name, "positive", value))
    return exact


def at_least_zero(value: object, name: str) -> Fraction:
    """Return the rational, refused if it is negative."""
    exact = rational(value, name)
    if exact.numerator < 0:
        raise InvalidParameter(sentence(name, "at least 0", value))
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


def whole(value: object, name: str, *, least: int = 1) -> int:
    """Return the integer, refused if it is not whole or below `least`."""
    if type(value) is int and value >= least:
        return value
    exact = rational(value, name)
    require(exact.denominator == 1 and exact >= least, name, f"a whole number of at least {least}", value)
    return int(exact)


def exact_sum(terms: Iterable[Fraction]) -> Fraction:
    """Return the exact sum, by halves: the denominators of thousands of terms then grow in the last few additions only."""
    parts = list(terms)
    while len(parts) > 1:
        halved = [first + second for first, second in zip(parts[::2], parts[1::2], strict=False)]
        parts = halved + parts[2 * len(halved) :]
    return parts[0] if parts else Fraction(0)
