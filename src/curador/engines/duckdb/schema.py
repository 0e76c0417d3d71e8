"""The schema of a study: every column and its type, read from footers, headers and catalogues. No row is read.

Whose row it is: one type of unit over all private tables, and the tables in the order in which owners are found.

A unit is a whole number or a text. Its canonical bytes are a tag and its decimal digits or its UTF-8: '01', ' 1' and 1 are
three people, and nothing is ever compared through a cast or a collation.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb import sources
from curador.engines.duckdb.connection import look
from curador.engines.duckdb.facts import SourceFacts
from curador.engines.duckdb.spelling import CARRIERS, TypeFamily, family_of, natural_type, shown_type
from curador.study.frames import is_frame
from curador.study.model import Field, Schema, TableSchema, UnitColumn, UnitPath, UnitRow
from curador.study.rules import Where, broken_rule, did_you_mean, dotted_path, is_name
from curador.study.values import Plain, Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from curador.engines.duckdb.sources import SourceColumn
    from curador.study.formats import FileFormat
    from curador.study.model import Column, Study, Table


# ---- units -----------------------------------------------------------------------------------------------------------------


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
            first = dotted_path((schema.table.name, unit.column)), own.type
        elif own.type is not first[1]:
            where = ("tables", schema.table.name, "columns", unit.column, "type")
            raise broken_rule(where, f"{first[1]}, the type of {first[0]}", Plain(own.type), "one study has one type of unit")


def _check_reference(schema: TableSchema, unit: UnitPath, own: Field, other: TableSchema) -> None:
    key = unit.key if unit.key is not None else getattr(other.table.unit, "column", None)
    if key is None or other.index(key) is None:
        names = [field.name for field in other.fields]
        where = ("tables", schema.table.name, "unit", "references")
        raise broken_rule(
            where, f"a column of {dotted_path((other.table.name,))}", key or other.table.name, did_you_mean(key, names)
        )
    there = _comparable(other, key, "key")
    if there.type is not own.type:
        where = ("tables", schema.table.name, "columns", own.name, "type")
        hint = "declare one type for both: nothing is compared through a cast"
        raise broken_rule(where, f"{there.type}, the type of {dotted_path((other.table.name, key))}", Plain(own.type), hint)


def _comparable(schema: TableSchema, column: str, word: str) -> Field:
    place = schema.index(column)
    if place is None:
        raise broken_rule(("tables", schema.table.name, word), "a column that can be selected", column)
    field = schema.fields[place]
    if field.type not in UNIT_TYPES:
        where = ("tables", schema.table.name, "columns", column, "type")
        hint = 'who somebody is must be exact: declare type = "integer" or "string"'
        raise broken_rule(where, f"a type that can name a {word}", Plain(field.type), hint)
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


# ---- schema ----------------------------------------------------------------------------------------------------------------


def describe(study: Study, *, frames: Mapping[str, Any] | None = None) -> Schema:
    """Return the study with all columns of its sources. Raises InvalidStudy for what is visible without rows.

    frames  tables given from Python, instead of the study's own
    """
    if frames is not None:
        study = dataclasses.replace(study, frames=frames)
    connection = look()
    try:
        tables: list[TableSchema] = []
        for place, table in enumerate(study.tables):
            source = sources.find(study, table, f"source{place}")
            sources.bind(connection, source)
            tables.append(TableSchema(table, fields(table, sources.columns(connection, source))))
    finally:
        connection.close()
    check_units(tables)
    return Schema(study, tuple(tables), SourceFacts(study, tuple(tables)))


def physical_types(
    source: Any, *, folder: Path | None = None, how: FileFormat | None = None
) -> list[tuple[str, str, Type | None]]:
    """Return name, physical type and type of every column of a path or frame; no type: it cannot be selected.

    Of what is no source nothing is returned: the study is refused for it, in its own sentence.
    """
    if isinstance(source, (str, os.PathLike)):
        from pathlib import Path

        found = sources.from_path(os.fspath(source), folder or Path(), "source", how=how)
    elif is_frame(source):
        found = sources.from_frame(source, "source")
    else:
        return []
    connection = look()
    try:
        sources.bind(connection, found)
        return [
            (column.name, shown_type(column.physical), natural_type(column.physical))
            for column in sources.columns(connection, found)
        ]
    finally:
        connection.close()


def fields(table: Table, columns: Sequence[SourceColumn]) -> tuple[Field, ...]:
    """Return the table's columns that can be selected, in the source's order."""
    by_name = {column.name: column for column in columns}
    where: Where = ("tables", table.name)
    for declared in table.columns:
        _check_declared((*where, "columns", declared.name), declared, by_name)
    for name in table.key:
        if name not in by_name:
            raise broken_rule((*where, "key"), "columns of the source", name, did_you_mean(name, list(by_name)))
    owner = None if table.unit is None or isinstance(table.unit, UnitRow) else table.unit.column
    if owner is not None:
        _check_owner(where, table, owner, by_name)
    found = [_field(table, column, owner) for column in columns if is_name(column.name)]
    return tuple(field for field in found if field is not None)


def _field(table: Table, column: SourceColumn, owner: str | None) -> Field | None:
    declared = table.column(column.name)
    kind = natural_type(column.physical) if declared is None else declared.type
    if kind is None:
        return None
    # A row whose unit is NULL, or whose key leads to nobody, is dropped.
    nullable = column.name != owner and (declared is None or declared.nullable)
    return Field(column.name, kind, nullable, declared)


def _check_declared(where: Where, declared: Column, columns: Mapping[str, SourceColumn]) -> None:
    column = columns.get(declared.name)
    if column is None:
        raise broken_rule(where, "a column of the source", declared.name, did_you_mean(declared.name, list(columns)))
    if family_of(column.physical) not in CARRIERS[declared.type]:
        rule = f"stored in a physical type that can be read as {declared.type}"
        kind = natural_type(column.physical)
        hint = f'declare type = "{kind}"' if kind else "lists, structs, maps and blobs cannot be selected: leave it out"
        raise broken_rule(where, rule, Plain(shown_type(column.physical)), hint)


def _check_owner(where: Where, table: Table, owner: str, columns: Mapping[str, SourceColumn]) -> None:
    column = columns.get(owner)
    if column is None:
        raise broken_rule((*where, "unit"), "a column of the source", owner, did_you_mean(owner, list(columns)))
    if natural_type(column.physical) is None:
        raise broken_rule((*where, "unit"), "a column of a type that can name a unit", Plain(shown_type(column.physical)))
    undeclared = table.column(owner) is None
    if undeclared and family_of(column.physical) is TypeFamily.WIDE:
        rule = "declared, as its integers may be longer than 64 bits"
        hint = f'declare {owner} = {{ type = "string" }}, or "integer" if none is beyond 2^63'
        raise broken_rule((*where, "columns", owner), rule, Plain(shown_type(column.physical)), hint)
    if undeclared and isinstance(table.unit, UnitPath) and not is_name(owner):
        raise broken_rule((*where, "unit"), "a column of the source", owner)
