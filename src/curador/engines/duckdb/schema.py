"""The schema of a study: every column and its type, read from footers, headers and catalogues. No row is read."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb import sources
from curador.engines.duckdb.connection import look
from curador.engines.duckdb.facts import SourceFacts
from curador.engines.duckdb.physical import CARRIERS, Family, family, natural, shown
from curador.engines.duckdb.units import check_units
from curador.study.model import UnitPath, UnitRow
from curador.study.rules import Where, broken, did_you_mean, is_name
from curador.study.schema import Field, Schema, TableSchema
from curador.study.spelling import Plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from curador.engines.duckdb.sources import SourceColumn
    from curador.study.model import Column, Study, Table
    from curador.study.values import Type


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


def physical(source: Any, *, folder: Path | None = None) -> list[tuple[str, str, Type | None]]:
    """Return name, physical type and type of every column of a path or frame; no type: it cannot be selected."""
    if isinstance(source, (str, os.PathLike)):
        from pathlib import Path

        found = sources.from_path(os.fspath(source), folder or Path(), "source")
    else:
        found = sources.from_frame(source, "source")
    connection = look()
    try:
        sources.bind(connection, found)
        return [(one.name, shown(one.physical), natural(one.physical)) for one in sources.columns(connection, found)]
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
            raise broken((*where, "key"), "columns of the source", name, did_you_mean(name, list(by_name)))
    owner = None if table.unit is None or isinstance(table.unit, UnitRow) else table.unit.column
    if owner is not None:
        _check_owner(where, table, owner, by_name)
    found = [_field(table, column, owner) for column in columns if is_name(column.name)]
    return tuple(field for field in found if field is not None)


def _field(table: Table, column: SourceColumn, owner: str | None) -> Field | None:
    declared = table.column(column.name)
    kind = natural(column.physical) if declared is None else declared.type
    if kind is None:
        return None
    # A row whose unit is NULL, or whose key leads to nobody, is dropped.
    nullable = column.name != owner and (declared is None or declared.nullable)
    return Field(column.name, kind, nullable, declared)


def _check_declared(where: Where, declared: Column, columns: Mapping[str, SourceColumn]) -> None:
    column = columns.get(declared.name)
    if column is None:
        raise broken(where, "a column of the source", declared.name, did_you_mean(declared.name, list(columns)))
    if family(column.physical) not in CARRIERS[declared.type]:
        rule = f"stored in a physical type that can be read as {declared.type}"
        kind = natural(column.physical)
        hint = f'declare type = "{kind}"' if kind else "lists, structs, maps and blobs cannot be selected: leave it out"
        raise broken(where, rule, Plain(shown(column.physical)), hint)


def _check_owner(where: Where, table: Table, owner: str, columns: Mapping[str, SourceColumn]) -> None:
    column = columns.get(owner)
    if column is None:
        raise broken((*where, "unit"), "a column of the source", owner, did_you_mean(owner, list(columns)))
    if natural(column.physical) is None:
        raise broken((*where, "unit"), "a column of a type that can name a unit", Plain(shown(column.physical)))
    undeclared = table.column(owner) is None
    if undeclared and family(column.physical) is Family.WIDE:
        rule = "declared, as its integers may be longer than 64 bits"
        hint = f'declare {owner} = {{ type = "string" }}, or "integer" if none is beyond 2^63'
        raise broken((*where, "columns", owner), rule, Plain(shown(column.physical)), hint)
    if undeclared and isinstance(table.unit, UnitPath) and not is_name(owner):
        raise broken((*where, "unit"), "a column of the source", owner)
