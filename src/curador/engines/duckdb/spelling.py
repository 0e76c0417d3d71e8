"""DuckDB's own spelling: names and values as its SQL writes them, and its physical types.

Everything that enters a statement of ours passes through the first. Of types: which family a column of a file belongs to, and
which declared types a family can carry.
"""

from __future__ import annotations

import datetime as dt
import enum
import re
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING

from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from curador.study.values import Value


DISORDER = "rows were met in another order than that of their places"
"""What a statement stops with that counted on the order of rows; another one is run then (`engines/lower/relation.py`)."""

UNIT_PARTS = 16
"""Parts into which units are cut by the first bits of `__h`: `__b` is the number of a row's part, stored in a byte."""


# ---- quoting ---------------------------------------------------------------------------------------------------------------


def identifier(name: str) -> str:
    """Return the name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return the text as a literal."""
    return "'" + value.replace("'", "''") + "'"


def double(value: float | Fraction) -> str:
    """Return the number as a double literal; a plain 0.1 would be a DECIMAL."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def literal(value: Value) -> str:
    """Return a declared value as a literal of the type in which its column is kept."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Fraction):
        return double(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return f"DATE '{value.isoformat()}'"


def commas(parts: Iterable[str]) -> str:
    """Return the parts with commas between them."""
    return ", ".join(parts)


# ---- physical --------------------------------------------------------------------------------------------------------------


_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_MOST_DIGITS = 18
"""Digits that every 64-bit integer column can hold."""


class TypeFamily(enum.StrEnum):
    """What is stored, as far as reading it is concerned."""

    BOOLEAN = "boolean"
    INTEGER = "integer"  # fits 64 bits
    WIDE = "wide integer"  # may not fit 64 bits
    DECIMAL = "decimal"
    FLOAT = "float"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    ZONED = "timestamp with time zone"


_BY_NAME = {
    "BOOLEAN": TypeFamily.BOOLEAN,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), TypeFamily.INTEGER),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), TypeFamily.WIDE),
    **dict.fromkeys(("FLOAT", "DOUBLE"), TypeFamily.FLOAT),
    **dict.fromkeys(("VARCHAR", "UUID", "JSON", '"NULL"'), TypeFamily.TEXT),
    "DATE": TypeFamily.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), TypeFamily.TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "TIMESTAMPTZ_NS"), TypeFamily.ZONED),
}

_NATURAL = {
    TypeFamily.BOOLEAN: Type.BOOLEAN,
    TypeFamily.INTEGER: Type.INTEGER,
    TypeFamily.WIDE: Type.INTEGER,
    TypeFamily.DECIMAL: Type.DECIMAL,
    TypeFamily.FLOAT: Type.FLOAT,
    TypeFamily.TEXT: Type.STRING,
    TypeFamily.DATE: Type.DATE,
    TypeFamily.TIMESTAMP: Type.TIMESTAMP,
    TypeFamily.ZONED: Type.TIMESTAMP,
}

_NUMBERS = frozenset(
    {TypeFamily.BOOLEAN, TypeFamily.INTEGER, TypeFamily.WIDE, TypeFamily.DECIMAL, TypeFamily.FLOAT, TypeFamily.TEXT}
)
_TIMES = frozenset({TypeFamily.DATE, TypeFamily.TIMESTAMP, TypeFamily.ZONED, TypeFamily.TEXT})

CARRIERS = MappingProxyType(
    {
        Type.BOOLEAN: frozenset({TypeFamily.BOOLEAN, TypeFamily.INTEGER, TypeFamily.WIDE, TypeFamily.TEXT}),
        Type.INTEGER: _NUMBERS,
        Type.DECIMAL: _NUMBERS,
        Type.FLOAT: _NUMBERS,
        Type.STRING: frozenset(TypeFamily),
        Type.DATE: _TIMES,
        Type.TIMESTAMP: _TIMES,
    }
)
"""Which families can carry a declared type."""

KEPT_AS = MappingProxyType(
    {
        Type.BOOLEAN: "BOOLEAN",
        Type.INTEGER: "BIGINT",
        Type.DECIMAL: "DOUBLE",
        Type.FLOAT: "DOUBLE",
        Type.STRING: "VARCHAR",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "TIMESTAMP",
    }
)
"""The type in which a cleaned column is kept."""


def family_of(physical: str) -> TypeFamily | None:
    """Return the family of a physical type; None for what cannot be selected (lists, structs, maps, blobs, …)."""
    if physical.endswith("]"):
        return None
    if physical.startswith("ENUM("):
        return TypeFamily.TEXT
    decimal = _DECIMAL.fullmatch(physical)
    if decimal:
        digits, places = int(decimal[1]), int(decimal[2])
        whole = TypeFamily.INTEGER if digits <= _MOST_DIGITS else TypeFamily.WIDE
        return TypeFamily.DECIMAL if places else whole
    return _BY_NAME.get(physical)


def natural_type(physical: str) -> Type | None:
    """Return the type of a column that nobody declared; None if it cannot be selected."""
    found = family_of(physical)
    return None if found is None else _NATURAL[found]


def shown_type(physical: str) -> str:
    """Return the physical type as it may be shown: the labels of an ENUM are data, the inside of a struct is noise."""
    return physical.partition("(")[0] if physical.startswith(("ENUM(", "STRUCT(", "MAP(", "UNION(")) else physical
