"""Types of columns, the values that bounds, declared values and literals may have, and how a study file spells them.

type        Python value of a bound, a declared value or a literal
boolean     bool
integer     int
decimal     Fraction
float       Fraction (finite; the engine computes in doubles)
string      str
date        datetime.date
timestamp   datetime.datetime without zone (read as UTC)

Spelling. How numbers, values and names are written in a study file; every spelling reads back as the same value.

Amounts. Sizes ("4GB"), durations ("60s") and shares ("20%"): read exactly, written so that they read back as the same.

Reading. What a person wrote, read as a value of a declared type. Nothing is converted that could mean two things.
"""

from __future__ import annotations

import datetime as dt
import enum
import numbers
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, cast

from curador.errors import InvalidParameter
from curador.numerics.exact import rational
from curador.text import nearest_names

if TYPE_CHECKING:
    from collections.abc import Iterable


# ---- values ----------------------------------------------------------------------------------------------------------------


Value: TypeAlias = bool | int | Fraction | str | dt.date | dt.datetime
"""A value that is known without data."""


class Type(enum.StrEnum):
    """What stands in a column."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def numeric(self) -> bool:
        """Whether arithmetic is defined."""
        return self in {Type.INTEGER, Type.DECIMAL, Type.FLOAT}

    @property
    def temporal(self) -> bool:
        """Whether it is a point in time."""
        return self in {Type.DATE, Type.TIMESTAMP}


# ---- spelling --------------------------------------------------------------------------------------------------------------


LONGEST_NUMBER = 400
"""Characters of a number's text: what the reader accepts (`numerics.exact`)."""

_MOST_BITS = 13_000  # 3,914 digits: Python writes no longer integer than 4,300
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def number_text(value: Fraction | int) -> str | None:
    """Return the exact decimal, else the ratio; None if neither can be written in LONGEST_NUMBER characters.

    Claim   `rational(number_text(x))` equals x.
    Rounds  Exact.
    """
    exact = Fraction(value)
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MOST_BITS:
        return None
    twos, rest = _multiplicity(exact.denominator, 2)
    fives, rest = _multiplicity(rest, 5)
    places = max(twos, fives)
    if rest == 1 and places <= 2 * LONGEST_NUMBER:
        text = _decimal_text(exact.numerator * 10**places // exact.denominator, -places)
        if len(text) <= LONGEST_NUMBER:
            return text
    text = f"{exact.numerator}/{exact.denominator}"
    return text if len(text) <= LONGEST_NUMBER else None


def is_writable(value: Fraction) -> bool:
    """Whether `number_text` has a spelling for the value."""
    short = max(value.numerator.bit_length(), value.denominator.bit_length()) <= 600  # a ratio of at most 363 characters
    return short or number_text(value) is not None


def _multiplicity(number: int, prime: int) -> tuple[int, int]:
    count = 0
    while number % prime == 0:
        number, count = number // prime, count + 1
    return count, number


def _decimal_text(whole: int, exponent: int) -> str:
    if whole == 0:
        return "0"
    zeros, whole = _multiplicity(whole, 10)
    exponent += zeros
    sign, digits = ("-" if whole < 0 else ""), str(abs(whole))
    first = len(digits) - 1 + exponent  # the power of ten of the first digit
    if exponent >= 0 and first < 16:
        return f"{sign}{digits}{'0' * exponent}"
    if exponent < 0 <= first:
        return f"{sign}{digits[: first + 1]}.{digits[first + 1 :]}"
    if -5 < first < 0:
        return f"{sign}0.{'0' * (-first - 1)}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{first}"


def key_text(name: str) -> str:
    """Return the name as a TOML key."""
    return name if _BARE.fullmatch(name) else string_text(name)


def string_text(text: str) -> str:
    """Return the text as a TOML string on one line."""
    return '"' + "".join(_escape(character) for character in text) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if code < 32 or 127 <= code < 160 or code in {0x2028, 0x2029} or 0xD800 <= code <= 0xDFFF:
        return f"\\u{code:04X}"  # also what other programs take for the end of a line
    return character


def value_text(value: object) -> str:
    """Return the value as TOML: a scalar, an array or an inline table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, (int, Fraction)):
        plain = isinstance(value, int) and value.bit_length() <= 128
        text = str(value) if plain else number_text(value)
        if text is None:
            return "a very long number"  # only ever part of a refusal: no study holds one
        return string_text(text) if "/" in text else text
    if isinstance(value, Decimal):
        return str(value).lower().replace("infinity", "inf")
    if isinstance(value, (dt.date, dt.datetime)):
        return string_text(value.isoformat())
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return "{ " + ", ".join(f"{key_text(str(key))} = {value_text(item)}" for key, item in pairs) + " }" if pairs else "{}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(value_text(item) for item in cast("Sequence[object]", value)) + "]"
    return str(value)


class Plain:
    """Words that stand for a value in a sentence, without quotes: nothing, none."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


NOTHING = Plain("nothing")


class Verbatim:
    """A value that a sentence shows as its writer wrote it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __str__(self) -> str:
        if isinstance(self.value, (list, tuple)) and len(cast("Sequence[object]", self.value)) > 20:
            return f"a list of {len(cast('Sequence[object]', self.value)):,}"
        return value_text(self.value)


# ---- amounts ---------------------------------------------------------------------------------------------------------------


SIZE = 'a size such as "4GB"'
DURATION = 'a duration such as "60s"'
TICK = 'a duration such as "2s", or "off"'
SHARE = 'a share above 0 % and at most 100 %, such as "20%"'
LEAST = 'a share from 0 % to 100 %, such as "0.01%"'

_SIZES = {
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "b": 1,
}
_DURATIONS = {
    "min": Fraction(60),
    "us": Fraction(1, 1_000_000),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "h": Fraction(3600),
}


def read_size(value: object) -> int | None:
    """Return the number of bytes, None if the value is no size. A bare whole number is bytes."""
    exact = Fraction(value) if type(value) is int else _read_amount(value, _SIZES)
    return int(exact) if exact is not None and exact.denominator == 1 and 1 <= exact <= 2**62 else None


def size_text(size: int) -> str:
    """Return the size in the largest decimal unit in which it is whole."""
    unit = next(name for name in ("tb", "gb", "mb", "kb", "b") if size % _SIZES[name] == 0)
    return f"{size // _SIZES[unit]}{unit.upper()}"


def read_duration(value: object) -> Fraction | None:
    """Return the number of seconds, None if the value is no duration. A bare number is seconds."""
    exact = _read_amount(value, _DURATIONS) if isinstance(value, str) else _read_number(value)
    return exact if exact is not None and exact > 0 and is_writable(exact) else None


def read_tick(value: object) -> Fraction | None:
    """Return the number of seconds, 0 for "off", None if the value is neither."""
    off = value == "off" or (type(value) in {int, Fraction} and value == 0)
    return Fraction(0) if off else read_duration(value)


def tick_text(seconds: Fraction) -> str:
    """Return the duration in seconds, "off" for none."""
    return duration_text(seconds) if seconds else "off"


def duration_text(seconds: Fraction) -> str:
    """Return the duration in seconds."""
    return f"{number_text(seconds)}s"


def read_share(value: object) -> Fraction | None:
    """Return the part of the whole, None if the value is no percentage in (0, 100]."""
    percent = _read_amount(value, {"%": Fraction(1)})
    return percent / 100 if percent is not None and 0 < percent <= 100 else None


def read_least(value: object) -> Fraction | None:
    """Return the part of the whole, None if the value is no percentage from 0 to 100."""
    percent = Fraction(0) if type(value) is int and value == 0 else _read_amount(value, {"%": Fraction(1)})
    return percent / 100 if percent is not None and 0 <= percent <= 100 else None


def share_text(share: Fraction) -> str:
    """Return the share as a percentage."""
    return f"{number_text(100 * share)}%"


def _read_amount(value: object, units: dict[str, int] | dict[str, Fraction]) -> Fraction | None:
    """Return number times unit; the units are tried in their order, longer endings first."""
    text = value.strip().lower() if isinstance(value, str) else ""
    for unit, factor in units.items():
        if text.endswith(unit):
            number = _read_number(text[: -len(unit)].strip())
            return None if number is None else number * factor
    return None


def _read_number(value: object) -> Fraction | None:
    try:
        return rational(value, "")
    except InvalidParameter:
        return None


# ---- typed -----------------------------------------------------------------------------------------------------------------


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


def nearest_word(word: str, words: Iterable[str]) -> str | None:
    """Return the known word that was probably meant."""
    return next(iter(nearest_names(word, words)), None)


def nearest_type(word: str) -> Type | None:
    """Return the type that another system's word means."""
    spoken = {synonym: kind for kind, synonyms in _SYNONYMS.items() for synonym in synonyms}
    found = spoken.get(word.lower()) or nearest_word(word, list(Type))
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
    return None if is_writable(Fraction(value)) else f"a number of at most {LONGEST_NUMBER} characters"


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


def is_address(ledger: object) -> bool:
    """Whether a ledger's place is the address of a server, and no file."""
    return isinstance(ledger, str) and ledger.startswith(("postgresql://", "postgres://"))
