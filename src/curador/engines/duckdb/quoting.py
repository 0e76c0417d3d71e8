"""Names and values as DuckDB's SQL writes them. Everything that enters a statement of ours passes through here."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from curador.study.values import Value


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


def listed(parts: Iterable[str]) -> str:
    """Return the parts with commas between them."""
    return ", ".join(parts)
