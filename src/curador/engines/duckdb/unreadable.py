# ruff: noqa: S608 -- names pass through `quoting`, the rest is ours
"""Rows that DuckDB's own scan stops at: read by another way where there is one, else told to the owner, by column.

Never an analyst's error: everything is read when a version is taken.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from curador.engines.duckdb import reading, sources
from curador.engines.duckdb.quoting import identifier, listed
from curador.engines.duckdb.total import cut_times, total_batches
from curador.study.rules import broken
from curador.study.spelling import Plain

if TYPE_CHECKING:
    import duckdb

    from curador.engines.duckdb.sources import Source
    from curador.study.rules import BrokenRule
    from curador.study.schema import TableSchema


def reread(connection: duckdb.DuckDBPyConnection, source: Source, schema: TableSchema) -> Source | None:
    """Return a bound source with the same rows, to be read once, in which nothing stops a scan; None if there is none.

    Claim   Rows that the first way reads have the same values by the second one.
    Needs   A column of the same physical type by both ways has the same values; others are not read this way.
    """
    import pyarrow as pa

    if source.kind != "parquet":
        return None
    names = [field.name for field in schema.fields]
    try:
        stream = total_batches(source.files, names)
    except (pa.ArrowException, OSError, KeyError):
        return None
    alias = f"{source.alias}_again"
    again = dataclasses.replace(source, kind="frame", alias=alias, scan=identifier(alias), frame=stream)
    sources.bind(connection, again)
    first, second = ({column.name: column.physical for column in sources.columns(connection, one)} for one in (source, again))
    return again if all(first[name] == second[name] for name in names) else None


def read_all(connection: duckdb.DuckDBPyConnection, rows: str, schema: TableSchema) -> None:
    """Read every value of cleaned rows, and keep nothing of them."""
    _read(connection, rows, reading.column_names(schema))


def refusal(
    connection: duckdb.DuckDBPyConnection, rows: str, source: Source, schema: TableSchema, hint: str | None = None
) -> BrokenRule | None:
    """Return what the owner is told of a source whose cleaned rows cannot be read; None if every column can by itself."""
    names = [field.name for field in schema.fields]
    found = [name for place, name in enumerate(names) if not _is_readable(connection, rows, f"c{place}")]
    if not found:
        return None
    name = found[0]
    if source.kind == "parquet" and len(found) == len(names):  # a time in the footer stops the scan of every column
        name = _cut_times(source, names) or name
    where = ("tables", schema.table.name, "columns", name)
    return broken(where, "a column whose every value can be read", Plain("one that cannot"), hint)


def _cut_times(source: Source, names: list[str]) -> str | None:
    import pyarrow as pa

    try:
        return cut_times(source.files, names)
    except (pa.ArrowException, OSError):
        return None


def _is_readable(connection: duckdb.DuckDBPyConnection, rows: str, name: str) -> bool:
    import duckdb

    try:
        _read(connection, rows, [name])
    except duckdb.Error:
        return False
    return True


def _read(connection: duckdb.DuckDBPyConnection, rows: str, names: list[str]) -> None:
    """A hash needs the value itself: counts and extremes are known from a file's footer."""
    connection.execute(f"SELECT {listed(f'bit_xor(hash({name}))' for name in names)} FROM {rows}").fetchall()
