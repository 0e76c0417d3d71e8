"""Physical types: which family a column of a file belongs to, and which declared types a family can carry."""

from __future__ import annotations

import enum
import re
from types import MappingProxyType

from curador.study.values import Type

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_MOST_DIGITS = 18
"""Digits that every 64-bit integer column can hold."""


class Family(enum.StrEnum):
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
    "BOOLEAN": Family.BOOLEAN,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), Family.INTEGER),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), Family.WIDE),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Family.FLOAT),
    **dict.fromkeys(("VARCHAR", "UUID", "JSON", '"NULL"'), Family.TEXT),
    "DATE": Family.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Family.TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "TIMESTAMPTZ_NS"), Family.ZONED),
}

_NATURAL = {
    Family.BOOLEAN: Type.BOOLEAN,
    Family.INTEGER: Type.INTEGER,
    Family.WIDE: Type.INTEGER,
    Family.DECIMAL: Type.DECIMAL,
    Family.FLOAT: Type.FLOAT,
    Family.TEXT: Type.STRING,
    Family.DATE: Type.DATE,
    Family.TIMESTAMP: Type.TIMESTAMP,
    Family.ZONED: Type.TIMESTAMP,
}

_NUMBERS = frozenset({Family.BOOLEAN, Family.INTEGER, Family.WIDE, Family.DECIMAL, Family.FLOAT, Family.TEXT})
_TIMES = frozenset({Family.DATE, Family.TIMESTAMP, Family.ZONED, Family.TEXT})

CARRIERS = MappingProxyType(
    {
        Type.BOOLEAN: frozenset({Family.BOOLEAN, Family.INTEGER, Family.WIDE, Family.TEXT}),
        Type.INTEGER: _NUMBERS,
        Type.DECIMAL: _NUMBERS,
        Type.FLOAT: _NUMBERS,
        Type.STRING: frozenset(Family),
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


def family(physical: str) -> Family | None:
    """Return the family of a physical type; None for what cannot be selected (lists, structs, maps, blobs, …)."""
    if physical.endswith("]"):
        return None
    if physical.startswith("ENUM("):
        return Family.TEXT
    decimal = _DECIMAL.fullmatch(physical)
    if decimal:
        digits, places = int(decimal[1]), int(decimal[2])
        whole = Family.INTEGER if digits <= _MOST_DIGITS else Family.WIDE
        return Family.DECIMAL if places else whole
    return _BY_NAME.get(physical)


def natural(physical: str) -> Type | None:
    """Return the type of a column that nobody declared; None if it cannot be selected."""
    found = family(physical)
    return None if found is None else _NATURAL[found]


def shown(physical: str) -> str:
    """Return the physical type as it may be shown: the labels of an ENUM are data, the inside of a struct is noise."""
    return physical.partition("(")[0] if physical.startswith(("ENUM(", "STRUCT(", "MAP(", "UNION(")) else physical
