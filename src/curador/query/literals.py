"""Values written in a question: numbers, dates, and arithmetic that can be done before anything is asked."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.query.messages import invalid, quoted
from curador.query.terms import Term, literal
from curador.query.tree import Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.query.tree import Place
    from curador.study.values import Value

MOST_DIGITS = 100
MOST_EXPONENT = 400
LARGEST = Fraction(2**1024 - 2**970)
"""The largest double: what is beyond it is no number an engine could compare with."""

_SHORT = 18
"""Digits of an integer that fits 64 bits whatever they are."""

_FINEST = 600
"""Bits of a denominator beyond which arithmetic is left to the engine."""

_NUMBER = re.compile(r"(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?\s*(?:Z|UTC|([+-])(\d{2}):?(\d{2})?)?)?"
)


def number(text: str, place: Place | None) -> Term:
    """Return the number a text spells: an integer, a decimal where it has a point, a float where it has an exponent."""
    if text.isdecimal() and text.isascii() and len(text) <= _SHORT:
        return literal(int(text), Type.INTEGER, place)
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        raise invalid(place, f"{quoted(text)} must be a number in decimal digits")
    whole, part, exponent = match.groups()
    if len(whole) + len(part or "") > MOST_DIGITS:
        raise invalid(place, f"a number must have at most {MOST_DIGITS} digits")
    power = int(exponent or 0)
    if abs(power) > MOST_EXPONENT:
        raise invalid(place, "a number must lie within the range of a double, ±1.8e308")
    digits = int((whole + (part or "")) or "0")
    value = Fraction(digits) * Fraction(10) ** (power - len(part or ""))
    if exponent is not None:
        return checked(value, Type.FLOAT, place)
    if part is not None:
        return checked(value, Type.DECIMAL, place)
    return checked(value, Type.INTEGER, place)


def checked(value: Fraction, type_: Type, place: Place | None) -> Term:
    """Return the number as a literal; an integer beyond 64 bits becomes a decimal, a number beyond doubles is refused."""
    if abs(value) > LARGEST:
        raise invalid(place, "a number must lie within the range of a double, ±1.8e308")
    if type_ is Type.INTEGER:
        if -(2**63) <= value < 2**63:
            return literal(int(value), Type.INTEGER, place)
        return literal(value, Type.DECIMAL, place)
    return literal(value, type_, place)


def date(text: str, place: Place | None) -> dt.date:
    """Return the date a string spells as YYYY-MM-DD."""
    match = _DATE.fullmatch(text.strip())
    try:
        if match is not None:
            return dt.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        pass
    raise invalid(place, f"{quoted(text)} must be a date", "write it as DATE '2024-12-31'.")


def timestamp(text: str, place: Place | None) -> dt.datetime:
    """Return the point in time a string spells as YYYY-MM-DD[ HH:MM[:SS[.ffffff]]][zone], in UTC."""
    match = _TIMESTAMP.fullmatch(text.strip())
    try:
        if match is not None:
            year, month, day, hour, minute, second, part, sign, hours, minutes = match.groups()
            micro = int((part or "").ljust(6, "0"))
            clock = (int(hour or 0), int(minute or 0), int(second or 0), micro)
            value = dt.datetime(int(year), int(month), int(day), *clock)  # noqa: DTZ001 -- values have no zone: all are UTC
            shift = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
            return value - shift if sign == "+" else value + shift
    except (ValueError, OverflowError):
        pass
    raise invalid(place, f"{quoted(text)} must be a point in time", "write it as TIMESTAMP '2024-12-31 23:59:00'.")


def value_of(term: Term) -> Value | None:
    """Return the value of a literal; None for anything else, and for NULL."""
    return term.node.value if isinstance(term.node, Literal) else None


def fraction_of(term: Term) -> Fraction | None:
    """Return the number of a literal as an exact one; None for anything else."""
    value = value_of(term)
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    return Fraction(value)


def folded(function: str, left: Term, right: Term, place: Place | None) -> Term | None:
    """Return + − × ÷ // % of two literals as one literal, exact; None where one is not."""
    first, second = fraction_of(left), fraction_of(right)
    if first is None or second is None:
        return None
    if max(first.denominator, second.denominator).bit_length() > _FINEST:
        return None
    if function in {"/", "//", "%"} and second == 0:
        raise invalid(place, "a division by zero is written here")
    integers = left.type is right.type is Type.INTEGER
    exact = Type.FLOAT if Type.FLOAT in {left.type, right.type} else Type.DECIMAL
    match function:
        case "+":
            value = first + second
        case "-":
            value = first - second
        case "*":
            value = first * second
        case "/":
            return checked(first / second, Type.FLOAT, place)
        case _:
            quotient = Fraction(int(first / second))  # towards zero
            value = quotient if function == "//" else first - quotient * second
    return checked(value, Type.INTEGER if integers else exact, place)


def shifted(moment: dt.date, count: int, unit: str, place: Place | None) -> dt.date:
    """Return a date or a point in time moved by a number of units; the day is cut to the month's last."""
    try:
        if unit in {"year", "quarter", "month"}:
            months = count * {"year": 12, "quarter": 3, "month": 1}[unit]
            year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
            day = min(moment.day, calendar.monthrange(year, month + 1)[1])
            return moment.replace(year=year, month=month + 1, day=day)
        return moment + dt.timedelta(**{f"{unit}s": count})
    except (ValueError, OverflowError, calendar.IllegalMonthError) as problem:
        raise invalid(place, "a date must lie in the years 1 to 9999") from problem
