"""Values on the wire: of answers, as text and as bytes, and of parameters, as literals of our own tree.

type of ours   PostgreSQL's         text             bytes
boolean        bool       16        t, f             one byte
integer        int8       20        digits           eight bytes
decimal        numeric    1700      exact decimal    groups of four digits
float          float8     701       shortest         eight bytes
string         text       25        itself           UTF-8
date           date       1082      ISO              days since 2000
timestamp      timestamp  1114      ISO              microseconds since 2000
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.answers.computed import LEAST, MOST
from curador.door.problems import SqlProblem
from curador.study.values import Type, number_text

if TYPE_CHECKING:
    from collections.abc import Callable

OIDS = {
    Type.BOOLEAN: (16, 1),
    Type.INTEGER: (20, 8),
    Type.DECIMAL: (1700, -1),
    Type.FLOAT: (701, 8),
    Type.STRING: (25, -1),
    Type.DATE: (1082, 4),
    Type.TIMESTAMP: (1114, 8),
}
"""PostgreSQL's type of each of ours, and its size; -1: it varies."""

TEXT = 25

TYPE_NAMES = {
    Type.BOOLEAN: "boolean",
    Type.INTEGER: "bigint",
    Type.DECIMAL: "numeric",
    Type.FLOAT: "double precision",
    Type.STRING: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp without time zone",
}
"""What PostgreSQL calls each, for the shadow's columns."""

_DAY0 = dt.date(2000, 1, 1)
_MOMENT0 = dt.datetime(2000, 1, 1)  # noqa: DTZ001 -- timestamps have no zone here


# ---- of answers ------------------------------------------------------------------------------------------------------------


def write(value: Any, kind: Type, form: int) -> bytes | None:
    """Return a value as text (0) or as bytes (1); None: NULL."""
    if value is None:
        return None
    return (_AS_BYTES if form else _AS_TEXT)[kind](value)


def _number(value: Any) -> Decimal:
    """Return a decimal number exactly, one that has no end as the nearest double."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, Fraction):
        text = number_text(value)
        return Decimal(repr(float(value)) if text is None or "/" in text else text)
    return Decimal(repr(value) if isinstance(value, float) else str(value))


def _whole(value: Any) -> int:
    if not LEAST <= value <= MOST:
        raise SqlProblem("22003", "a whole number of the answer must fit into 64 bits.")
    return int(value)


def _decimal_text(value: Any) -> bytes:
    number = _number(value)
    return b"NaN" if number.is_nan() else format(number, "f").encode()


def _float_text(value: Any) -> bytes:
    number = float(value)
    if math.isnan(number):
        return b"NaN"
    if math.isinf(number):
        return b"Infinity" if number > 0 else b"-Infinity"
    return repr(number).removesuffix(".0").encode()


def _decimal_bytes(value: Any) -> bytes:
    number = _number(value)
    if number.is_nan():
        return struct.pack("!HhHH", 0, 0, 0xC000, 0)
    whole, _, part = format(abs(number), "f").partition(".")
    scale = len(part)
    whole, part = whole.zfill(-(-len(whole) // 4) * 4), part.ljust(-(-len(part) // 4) * 4, "0")
    digits = [int((whole + part)[place : place + 4]) for place in range(0, len(whole) + len(part), 4)]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits, weight = digits[1:], weight - 1
    while digits and digits[-1] == 0:
        digits.pop()
    sign = 0x4000 if number < 0 else 0
    return struct.pack(f"!HhHH{len(digits)}H", len(digits), weight if digits else 0, sign, scale, *digits)


def _timestamp_bytes(value: dt.datetime) -> bytes:
    return struct.pack("!q", (value - _MOMENT0) // dt.timedelta(microseconds=1))


def _text(value: Any) -> bytes:
    return str(value).encode("utf-8", "replace").replace(b"\0", b"")


_AS_TEXT: dict[Type, Callable[[Any], bytes]] = {
    Type.BOOLEAN: lambda value: b"t" if value else b"f",
    Type.INTEGER: lambda value: str(_whole(value)).encode(),
    Type.DECIMAL: _decimal_text,
    Type.FLOAT: _float_text,
    Type.STRING: _text,
    Type.DATE: lambda value: value.isoformat().encode(),
    Type.TIMESTAMP: lambda value: value.isoformat(sep=" ").encode(),
}

_AS_BYTES: dict[Type, Callable[[Any], bytes]] = {
    Type.BOOLEAN: lambda value: b"\1" if value else b"\0",
    Type.INTEGER: lambda value: struct.pack("!q", _whole(value)),
    Type.DECIMAL: _decimal_bytes,
    Type.FLOAT: lambda value: struct.pack("!d", float(value)),
    Type.STRING: _text,
    Type.DATE: lambda value: struct.pack("!i", (value - _DAY0).days),
    Type.TIMESTAMP: _timestamp_bytes,
}


# ---- of parameters ---------------------------------------------------------------------------------------------------------


Parameter = bool | int | Decimal | str | dt.date | dt.datetime | None
"""What a parameter is here; a timestamp has no zone, None is NULL."""

INTEGERS, FLOATS, TEXTS = {20: 8, 21: 2, 23: 4}, {700: 4, 701: 8}, frozenset({0, 19, 25, 705, 1042, 1043})
BOOL, NUMERIC, DATE, TIMESTAMP, TIMESTAMP_UTC = 16, 1700, 1082, 1114, 1184
KNOWN_TYPES = frozenset({*INTEGERS, *FLOATS, *TEXTS, BOOL, NUMERIC, DATE, TIMESTAMP, TIMESTAMP_UTC})

SAMPLES: dict[int, Parameter] = {
    **dict.fromkeys(INTEGERS, 1),
    **dict.fromkeys(FLOATS, Decimal("1.5")),
    NUMERIC: Decimal("1.5"),
    BOOL: True,
    DATE: _DAY0,
    TIMESTAMP: _MOMENT0,
    TIMESTAMP_UTC: _MOMENT0,
}
"""A value of each type, by which a statement is described before its values come; of a text it is a text."""

_MOST_DIGITS = 400
_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "on", "1"}), frozenset({"f", "false", "n", "no", "off", "0"})
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_DECIMAL = re.compile(r"\s*[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,3})?\s*")


def read_parameter(number: int, oid: int, form: int, sent: bytes | None) -> Parameter:
    """Return the value of the parameter $number, of PostgreSQL's type `oid`, sent as text (0) or as bytes (1)."""
    if sent is None:
        return None
    if oid not in KNOWN_TYPES:
        raise SqlProblem("0A000", f"${number} must be a number, a text, a boolean, a date or a timestamp.")
    try:
        return _from_bytes(oid, sent) if form and oid not in TEXTS else _from_text(oid, sent.decode())
    except UnicodeDecodeError:
        raise SqlProblem("22021", f"${number} must be in UTF-8.") from None
    except (ValueError, OverflowError, ArithmeticError, struct.error, LookupError):
        raise SqlProblem("22P02", f"${number} must be a finite value of its type.") from None


def _from_text(oid: int, text: str) -> Parameter:
    if oid in TEXTS:
        if "\0" in text:
            raise ValueError
        return text
    if oid in INTEGERS:
        _require(_WHOLE.fullmatch(text) is not None)
        return _in_range(int(text), INTEGERS[oid])
    if oid in FLOATS or oid == NUMERIC:
        _require(_DECIMAL.fullmatch(text) is not None)
        number = Decimal(text.strip())
        _require(abs(number.adjusted()) <= _MOST_DIGITS)
        return number
    word = text.strip()
    if oid == BOOL:
        _require(word.lower() in _TRUE | _FALSE)
        return word.lower() in _TRUE
    if oid == DATE:
        return dt.date.fromisoformat(word)
    return _without_zone(dt.datetime.fromisoformat(word))


def _from_bytes(oid: int, sent: bytes) -> Parameter:
    if oid in INTEGERS:
        _require(len(sent) == INTEGERS[oid])
        return int.from_bytes(sent, "big", signed=True)
    if oid in FLOATS:
        (value,) = struct.unpack("!d" if oid == 701 else "!f", sent)
        _require(math.isfinite(value))
        return Decimal(repr(value)) if oid == 701 else Decimal(repr(float(f"{value:.9g}")))
    if oid == BOOL:
        _require(sent in {b"\0", b"\1"})
        return sent == b"\1"
    if oid == NUMERIC:
        return _numeric_from_bytes(sent)
    if oid == DATE:
        return _DAY0 + dt.timedelta(days=struct.unpack("!i", sent)[0])
    return _MOMENT0 + dt.timedelta(microseconds=struct.unpack("!q", sent)[0])


def _numeric_from_bytes(sent: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack("!HhHH", sent[:8])
    digits = struct.unpack(f"!{count}H", sent[8:])
    _require(sign in {0, 0x4000} and all(digit < 10_000 for digit in digits))
    _require(count <= 200 and abs(weight) <= 100 and scale <= 400)
    whole = 0
    for digit in digits:
        whole = whole * 10_000 + digit
    value = Fraction(whole) * Fraction(10_000) ** (weight - count + 1)
    text = number_text(-value if sign else value)
    return Decimal(text or "")


def _without_zone(moment: dt.datetime) -> dt.datetime:
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


def _in_range(value: int, size: int) -> int:
    _require(-(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1))
    return value


def _require(holds: bool) -> None:  # noqa: FBT001
    if not holds:
        raise ValueError
