# ruff: noqa: S608 -- names pass through `quoting`, the rest is ours

"""Before a version is taken: that what was declared can be read at all. What is found here is told to the owner only.

A column is stopped at if something stands in some of its cells and none of them can be read as it is declared, or if it is
declared without NULL and nothing stands in it; a text file, if there are lines in it and none can be decoded, or if newlines
may stand inside quotes and quotes are not balanced. Nothing else of rows is looked at: a single readable value is enough,
and is mostly in the first.

Whether a version is taken therefore depends on rows, as it does for keys that repeat. Taking one is the owner's act: nothing
is charged, the version before stays, and who asks is told one sentence that is always the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from curador.engines.duckdb import reading, sources
from curador.engines.duckdb.connection import look
from curador.engines.duckdb.spelling import commas
from curador.engines.duckdb.streams import open_bytes
from curador.errors import InvalidStudy, UnreadableData
from curador.study.rules import dotted_path
from curador.study.values import Type, value_text

if TYPE_CHECKING:
    import duckdb

    from curador.engines.duckdb.sources import TableSource
    from curador.study.model import Field, Schema, Study, TableSchema

_FIRST = 10_000
"""Rows that are looked at before all are."""


def require_readable(schema: Schema) -> None:
    """Refuse, to the owner, sources of which something declared cannot be read at all."""
    import duckdb

    for place, table in enumerate(schema.tables):
        source = sources.find(schema.study, table.table, f"source{place}")
        connection = look()
        try:
            _require_balanced(connection, source, table)
            _require_lines(connection, source, table)
            _require_columns(connection, source, table, schema.study)
        except duckdb.Error:  # what stops a scan is read in another way, or told, when the version is taken
            continue
        finally:
            connection.close()


def _unreadable(schema: TableSchema, column: str | None, rule: str, got: str, hint: str) -> UnreadableData:
    where = ("tables", schema.table.name, *(("source",) if column is None else ("columns", column)))
    return UnreadableData(subject=dotted_path(where), rule=f"must be {rule}", got=got, hint=hint, path=where)


def _require_balanced(connection: duckdb.DuckDBPyConnection, source: TableSource, table: TableSchema) -> None:
    if source.stream is None or table.table.format is None or not table.table.format.newlines:
        return
    try:
        for _ in source.stream.open():
            pass
    except InvalidStudy as problem:
        raise _unreadable(table, None, problem.rule.removeprefix("must be "), problem.got, problem.hint or "") from None
    del connection


def _require_lines(connection: duckdb.DuckDBPyConnection, source: TableSource, table: TableSchema) -> None:
    """A file of which no line can be decoded would be an empty table."""
    if source.kind != "text":
        return
    sources.bind(connection, source)
    if connection.execute(f"SELECT 1 FROM {source.scan} LIMIT 1").fetchone() is None and has_lines(source):
        hint = f'below {_header(table)} write format = {{ encoding = "windows-1252" }}, or "latin-1", "utf-16"'
        raise _unreadable(table, None, "text in UTF-8", "a file of which no line is", hint)


def has_lines(source: TableSource) -> bool:
    """Whether anything stands behind the first line of a text."""
    for file in source.files:
        with open_bytes(file) as lines:
            lines.readline()
            if any(line.strip() for line in lines):
                return True
    return False


def _require_columns(connection: duckdb.DuckDBPyConnection, source: TableSource, table: TableSchema, study: Study) -> None:
    table = _without_values(table)
    sources.bind(connection, source)
    physical = {column.name: column.physical for column in sources.columns(connection, source)}
    without_null = {
        place for place, field in enumerate(table.fields) if field.declared is not None and not field.declared.nullable
    }
    doubtful = {
        place: field
        for place, field in enumerate(table.fields)
        if reading.can_lose(physical[field.name], field) or place in without_null
    }
    for rows in (f" LIMIT {_FIRST}", ""):
        doubtful = _never_read(connection, source, table, doubtful, rows)
    if not doubtful:
        return
    sources.bind(connection, source)
    filled = reading.select_filled(connection, source, table)
    names = commas(f"bool_or(f{place})" for place in doubtful)
    found = connection.execute(f"SELECT count(*), {names} FROM ({filled})").fetchone()
    rows_there, *stands = found or (0,)
    for (place, field), something in zip(doubtful.items(), stands, strict=True):
        if something:
            raise _refusal(source, table, field, study)
        if rows_there and place in without_null:
            hint = "leave nullable = false away, or mend the source"
            raise _unreadable(table, table.fields[place].name, "a column without NULL", "one that is all NULL", hint)


def _without_values(table: TableSchema) -> TableSchema:
    """The table without its lists of values: a value that is not in one can be read all the same."""
    fields = (
        field
        if field.declared is None or field.declared.values is None
        else replace(field, declared=replace(field.declared, values=None, nullable=True))
        for field in table.fields
    )
    return replace(table, fields=tuple(fields))


def _never_read(
    connection: duckdb.DuckDBPyConnection, source: TableSource, table: TableSchema, doubtful: dict[int, Field], rows: str
) -> dict[int, Field]:
    """Return those columns of which no value among these rows can be read."""
    if not doubtful:
        return {}
    sources.bind(connection, source)  # a stream is read once
    cleaned = reading.select_cleaned(connection, source, table)
    names = commas(f"bool_or(c{place} IS NOT NULL)" for place in doubtful)
    found = connection.execute(f"SELECT {names} FROM (SELECT * FROM ({cleaned}){rows})").fetchone() or ()
    return {place: field for (place, field), read in zip(doubtful.items(), found, strict=True) if not read}


def _refusal(source: TableSource, table: TableSchema, field: Field, study: Study) -> UnreadableData:
    rule = f"a column of which some value can be read as {field.type}"
    return _unreadable(table, field.name, rule, "one of which none can", readable_hint(source, table, field, study))


def readable_hint(source: TableSource, table: TableSchema, field: Field, study: Study) -> str:
    """Return which line would help: the one by which nearly all values can be read, if there is one."""
    from curador.engines.duckdb.looking import look_at

    if source.files:
        try:
            looked = look_at(table.table.source, study.folder)
        except InvalidStudy:
            looked = None
        seen = Type.STRING if looked is None else looked.types.get(field.name, Type.STRING)
        if looked is not None and _is_alike(seen, field.type) and looked.format.said():
            return f"below {_header(table)} write format = {value_text(looked.format.said())}"
    example = 'dates = "%d/%m/%Y"' if field.type.temporal else 'decimal = ",", thousands = "."'
    return f'below {_header(table)} say how it is written, such as format = {{ {example} }}; or declare type = "string"'


def _is_alike(seen: Type, declared: Type) -> bool:
    return seen is declared or (seen.numeric and declared.numeric) or (seen.temporal and declared.temporal)


def _header(table: TableSchema) -> str:
    return f"[{dotted_path(('tables', table.table.name))}]"
