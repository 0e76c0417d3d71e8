"""What a person wrote, read as a value of a declared type. Nothing is converted that could mean two things."""

from __future__ import annotations

import datetime as dt
import difflib
import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.errors import InvalidParameter
from curador.numerics.exact import rational
from curador.study.spelling import LONGEST_NUMBER, writable
from curador.study.values import Type, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST = {Type.INTEGER: 2**62, Type.DECIMAL: 10**38, Type.FLOAT: 10**300}
"""How far from 0 a bound or a declared value may lie."""

RANGES = {Type.INTEGER: "-2^62 and 2^62", Type.DECIMAL: "-1e38 and 1e38", Type.FLOAT: "-1e300 and 1e300"}

NOUNS = {
    Type.BOOLEAN: "booleans",
    Type.INTEGER: "whole numbers",
    Type.DECIMAL: "numbers",
    Type.FLOAT: "numbers",
    Type.STRING: "strings",
    Type.DATE: "dates",
    Type.TIMESTAMP: "timestamps",
}

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?")
_SYNONYMS = {
    Type.BOOLEAN: ("bool", "logical"),
    Type.INTEGER: ("int", "int32", "int64", "bigint", "smallint", "tinyint", "hugeint", "long", "number"),
    Type.DECIMAL: ("numeric", "money", "fixed"),
    Type.FLOAT: ("double", "real", "float32", "float64"),
    Type.STRING: ("str", "text", "varchar", "char", "category", "enum", "uuid"),
    Type.DATE: ("day",),
    Type.TIMESTAMP: ("datetime", "time", "timestamptz", "timestamp with time zone"),
}


def near(word: str, words: Iterable[str]) -> str | None:
    """Return the known word that was probably meant."""
    known = {one.lower(): one for one in words}
    found = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return known[found[0]] if found else None


def near_type(word: str) -> Type | None:
    """Return the type that another system's word means."""
    spoken = {synonym: kind for kind, synonyms in _SYNONYMS.items() for synonym in synonyms}
    found = spoken.get(word.lower()) or near(word, list(Type))
    return Type(found) if found else None


def as_value(value: object, kind: Type) -> Value | None:
    """Return the value in the Python type that `values` lists for the declared type, None if it is of another type.

    A number declared as text is not its spelling, a text declared as integer is not its number. Decimals may be
    written as text ("0.1"), dates and timestamps as ISO text; a zone is read and the time turned into UTC.
    """
    if kind is Type.BOOLEAN:
        return bool(value) if type(value).__name__ in {"bool", "bool_"} else None  # NumPy's too
    if kind is Type.STRING:
        return str(value) if isinstance(value, str) else None
    if kind is Type.DATE:
        return _date(value)
    if kind is Type.TIMESTAMP:
        return _timestamp(value)
    if kind is not Type.INTEGER:
        return _number(value)
    if type(value) is int:
        return value
    exact = None if isinstance(value, str) else _number(value)
    return int(exact) if exact is not None and exact.denominator == 1 else None


def range_rule(value: Value, kind: Type) -> str | None:
    """Return the rule that a number breaks which an engine cannot hold, or which cannot be written down."""
    if kind not in LARGEST or not isinstance(value, (int, Fraction)):
        return None
    if abs(value) > LARGEST[kind]:
        return f"between {RANGES[kind]}"
    return None if writable(Fraction(value)) else f"a number of at most {LONGEST_NUMBER} characters"


def _number(value: object) -> Fraction | None:
    if not isinstance(value, (numbers.Real, Decimal, str)):
        return None
    try:
        return rational(value, "")
    except InvalidParameter:
        return None


def _date(value: object) -> dt.date | None:
    if isinstance(value, dt.datetime):
        return None
    if isinstance(value, dt.date):
        return dt.date(value.year, value.month, value.day)
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            return None
    return None


def _timestamp(value: object) -> dt.datetime | None:
    try:
        if isinstance(value, str) and _TIMESTAMP.fullmatch(value):
            value = dt.datetime.fromisoformat(value)
        if isinstance(value, dt.datetime):
            plain = dt.datetime.combine(dt.date(value.year, value.month, value.day), value.time(), value.tzinfo)
            return plain if plain.tzinfo is None else plain.astimezone(dt.UTC).replace(tzinfo=None)
        if isinstance(value, dt.date):
            return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 -- no zone is the study's UTC
    except (TypeError, ValueError, OverflowError):  # TypeError: pandas' NaT says it is a datetime
        return None
    return None
