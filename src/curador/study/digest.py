"""The fingerprint of a study: SHA-256 of canonical JSON of what gives an answer its meaning.

In it     name, word for the unit, adjacency, budget, max_units, and of every table its name, source as declared, unit,
          caps and highest caps, uniqueness, keys and columns.
Not in it the engine's settings, the folder and the ledger's place (the same study on another machine is the same),
          data frames (their contents are a data version), analysts and the least spend (who may ask, and for how little,
          does not change what an answer means), the order in which tables, columns and values were written.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.canonical import canonical_digest
from curador.study.model import UnitColumn, UnitPath, UnitRow

if TYPE_CHECKING:
    from curador.study.model import Caps, Column, Study, Table, Unit
    from curador.study.values import Value

VERSION = 1


def digest(study: Study) -> str:
    """Return the fingerprint as 64 hexadecimal digits."""
    return canonical_digest(meaning(study))


def meaning(study: Study) -> dict[str, object]:
    """Return what the fingerprint is taken of, as JSON values. Numbers are exact texts."""
    budget = study.budget
    return {
        "version": VERSION,
        "name": study.name,
        "unit": study.unit_name,
        "adjacency": str(study.adjacency),
        "budget": [_exact(one) for one in (budget.epsilon, budget.delta, budget.delta_keys)],
        "max_units": str(study.max_units),
        "tables": {table.name: _table(table) for table in study.tables},
    }


def _table(table: Table) -> dict[str, object]:
    return {
        "source": table.source,
        "unit": _unit(table.unit),
        "unique": table.unique,
        "caps": _caps(table.caps),
        "caps_max": None if table.caps_max is None else _caps(table.caps_max),
        "key": sorted(table.key),
        "columns": {column.name: _column(column) for column in table.columns},
    }


def _unit(unit: Unit | None) -> dict[str, object]:
    """Return kind and fields: the kinds must differ although a path without a key looks like a column."""
    match unit:
        case None:
            return {"kind": "NoneType"}  # what a public table has been written as from the first day
        case UnitRow():
            return {"kind": "UnitRow"}
        case UnitColumn():
            return {"kind": "UnitColumn", "column": unit.column}
        case UnitPath():
            return {"kind": "UnitPath", "column": unit.column, "table": unit.table, "key": unit.key}


def _caps(caps: Caps) -> list[int | None]:
    return [caps.rows, caps.groups, caps.rows_per_group]


def _column(column: Column) -> dict[str, object]:
    return {
        "type": str(column.type),
        "bounds": None if column.bounds is None else [_exact(one) for one in column.bounds],
        "values": None if column.values is None else sorted(_exact(one) or "" for one in column.values),
        "nullable": column.nullable,
        "length": column.length,
    }


def _exact(value: Value | None) -> str | None:
    """Return the one spelling of a value; the column's type, which stands beside it, says how to read it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, Fraction)):
        return str(value)
    return value.isoformat() if isinstance(value, dt.datetime) else dt.date.isoformat(value)
