"""Whose row it is: one type of unit over all private tables, and the tables in the order in which owners are found.

A unit is a whole number or a text. Its canonical bytes are a tag and its decimal digits or its UTF-8: '01', ' 1' and 1 are
three people, and nothing is ever compared through a cast or a collation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.study.model import UnitColumn, UnitPath, UnitRow
from curador.study.rules import broken, did_you_mean, dotted
from curador.study.spelling import Plain
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.study.model import Study, Table
    from curador.study.schema import Field, TableSchema

UNIT_TYPES = frozenset({Type.INTEGER, Type.STRING})
TAGS = {Type.INTEGER: "i", Type.STRING: "s"}


def check_units(tables: Sequence[TableSchema]) -> None:
    """Refuse units, and keys that lead to them, which are not of one type that can be compared exactly."""
    by_name = {schema.table.name: schema for schema in tables}
    first: tuple[str, Type] | None = None
    for schema in tables:
        unit = schema.table.unit
        if unit is None or isinstance(unit, UnitRow):
            continue
        own = _comparable(schema, unit.column, "unit")
        if isinstance(unit, UnitPath):
            _check_reference(schema, unit, own, by_name[unit.table])
            continue
        if first is None:
            first = dotted((schema.table.name, unit.column)), own.type
        elif own.type is not first[1]:
            where = ("tables", schema.table.name, "columns", unit.column, "type")
            raise broken(where, f"{first[1]}, the type of {first[0]}", Plain(own.type), "one study has one type of unit")


def _check_reference(schema: TableSchema, unit: UnitPath, own: Field, other: TableSchema) -> None:
    key = unit.key if unit.key is not None else getattr(other.table.unit, "column", None)
    if key is None or other.index(key) is None:
        names = [field.name for field in other.fields]
        where = ("tables", schema.table.name, "unit", "references")
        raise broken(where, f"a column of {dotted((other.table.name,))}", key or other.table.name, did_you_mean(key, names))
    there = _comparable(other, key, "key")
    if there.type is not own.type:
        where = ("tables", schema.table.name, "columns", own.name, "type")
        hint = "declare one type for both: nothing is compared through a cast"
        raise broken(where, f"{there.type}, the type of {dotted((other.table.name, key))}", Plain(own.type), hint)


def _comparable(schema: TableSchema, column: str, word: str) -> Field:
    place = schema.index(column)
    if place is None:
        raise broken(("tables", schema.table.name, word), "a column that can be selected", column)
    field = schema.fields[place]
    if field.type not in UNIT_TYPES:
        where = ("tables", schema.table.name, "columns", column, "type")
        hint = 'who somebody is must be exact: declare type = "integer" or "string"'
        raise broken(where, f"a type that can name a {word}", Plain(field.type), hint)
    return field


def unit_type(tables: Sequence[TableSchema]) -> Type | None:
    """Return the type of the units that stand in columns; None where every row is its own."""
    for schema in tables:
        if isinstance(schema.table.unit, UnitColumn):
            place = schema.index(schema.table.unit.column)
            return None if place is None else schema.fields[place].type
    return None


def owners_first(study: Study) -> list[int]:
    """Return the places of the private tables, each after the one that its unit is found through."""
    places = {table.name: place for place, table in enumerate(study.tables)}
    ordered: list[int] = []

    def visit(table: Table) -> None:
        place = places[table.name]
        if place in ordered or table.unit is None:
            return
        if isinstance(table.unit, UnitPath):
            visit(study.tables[places[table.unit.table]])
        ordered.append(place)

    for table in study.tables:
        visit(table)
    return ordered


def verified_keys(study: Study) -> list[tuple[int, str]]:
    """Return (place of a table, column) of every key that a unit is found through: UNIQUE NOT NULL, to be verified."""
    places = {table.name: place for place, table in enumerate(study.tables)}
    paths = [table.unit for table in study.tables if isinstance(table.unit, UnitPath)]
    return sorted({(places[path.table], path.key) for path in paths if path.key is not None})
