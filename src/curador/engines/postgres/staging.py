# ruff: noqa: S608 -- names are quoted, the rest is ours
"""Rows between the server and files: a snapshot of the sources as Parquet, and prepared tables into a schema of ours.

    tables ─► Parquet, one transaction ─► prepared by DuckDB ─► a version's schema ─► files removed

The server's rows are prepared by the code that prepares files (`engines/duckdb/prepare.py`): cleaned, hashed under the rank
key, ranked and numbered alike. So what a version keeps of equal rows is the same bit for bit, wherever they come from, and
neither the key nor anything that is made with it but its results is ever given to the server.

What was chosen is stored: `__u`, `__h`, `__r`, `__d…`, `__f…` are columns of the version, and no later preparation, server
or release of it computes them anew.

Both ways are COPY with values as texts: doubles in the digits that read back, times of years 1 to 9999.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from curador.engines.lower.dialect_postgres import FUNCTIONS, TYPES
from curador.engines.postgres.catalogue import find_table
from curador.engines.postgres.server import identifier, literal
from curador.study.model import EngineSettings, Schema, TableSchema
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from curador.engines.postgres.catalogue import ServerTable
    from curador.engines.postgres.server import Cursor
    from curador.study.model import Study

_BLOCK = 1 << 20
_BATCH = 1 << 16
_WORDS = {"true_values": ["t"], "false_values": ["f"]}


# ---- from the server -------------------------------------------------------------------------------------------------------


class _CopiedBlocks(io.RawIOBase):
    """What COPY gives, as a file."""

    def __init__(self, blocks: Iterator[Any]) -> None:
        self._blocks = blocks
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._left = bytes(block)
        many = min(len(buffer), len(self._left))
        buffer[:many], self._left = self._left[:many], self._left[many:]
        return many


def copy_rows(cursor: Cursor, query: str, types: Mapping[str, Any], keep: Callable[[Any], None]) -> Any:
    """Give every batch of a query's rows to `keep`, as Arrow; return Arrow's schema. types: of each column, by its name."""
    import pyarrow as pa
    from pyarrow import csv

    schema = pa.schema(list(types.items()))
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)") as copy:
        rows = io.BufferedReader(_CopiedBlocks(iter(copy)), _BLOCK)
        if not rows.peek(1):  # what has no row has no block
            return schema
        read = csv.ReadOptions(column_names=list(types), block_size=_BLOCK * 8, use_threads=False)
        parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)  # NULL in a column that is alone
        convert = csv.ConvertOptions(
            column_types=dict(types), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False, **_WORDS
        )
        reader = csv.open_csv(rows, read, parse, convert)
        for batch in reader:
            keep(batch)
    return schema


def read_rows(cursor: Cursor, query: str, types: Mapping[str, Any]) -> Any:
    """Return a query's rows as an Arrow table."""
    import pyarrow as pa

    batches: list[Any] = []
    schema = copy_rows(cursor, query, types, batches.append)
    return pa.Table.from_batches(batches, schema)


def read_table(cursor: Cursor, found: ServerTable) -> Any:
    """Return a whole table of the server: a public one."""
    return read_rows(cursor, found.select, {column.name: column.arrow for column in found.columns})


def stage(cursor: Cursor, schema: Schema, folder: Path, tell: Callable[[str], None]) -> Schema:
    """Write every table of the study as a file, from the one snapshot of the cursor; return the schema over the files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables: list[TableSchema] = []
    for place, table in enumerate(schema.tables):
        tell(f"reading {table.table.name} from the server")
        found = find_table(cursor, schema.study, table.table)
        types = {column.name: column.arrow for column in found.columns}
        file = folder / f"source{place}.parquet"
        with pq.ParquetWriter(str(file), pa.schema(list(types.items())), compression="lz4") as writer:
            copy_rows(cursor, found.select, types, writer.write_batch)
        tables.append(replace(table, table=replace(table.table, source=str(file))))
    return Schema(local_study(schema.study, tuple(one.table for one in tables)), tuple(tables), schema.public)


def local_study(study: Study, tables: Sequence[Any]) -> Study:
    """Return a study over other sources, which the embedded engine reads."""
    engine = replace(study.engine, kind=EngineSettings().kind, url="")
    return replace(study, tables=tuple(tables), engine=engine)


# ---- to the server ---------------------------------------------------------------------------------------------------------


_SIGNED = (
    "CAST(CASE WHEN {0} >= 9223372036854775808 THEN {0}::HUGEINT - 18446744073709551616 ELSE {0}::HUGEINT END AS BIGINT)"
)
_END = b"\n\\."
"""What ends COPY before version 18, also inside quotes. Rows beside it go another way."""

_OWN = {"__u": "BIGINT", "__h": "BIGINT", "__r": "INTEGER", "__p": "BIGINT", "__d": "SMALLINT", "__f": "BOOLEAN"}
_KEPT = "autovacuum_enabled = false, toast.autovacuum_enabled = false"
"""Nothing is ever changed in a version. Statistics of its columns would be facts of rows that decide how questions run."""


def create_schema(cursor: Cursor, name: str, owner: str) -> None:
    """Make a schema that nobody but its owner can enter, with the functions that statements call; an old one goes."""
    cursor.execute(f"DROP SCHEMA IF EXISTS {identifier(name)} CASCADE")
    cursor.execute(f"CREATE SCHEMA {identifier(name)} AUTHORIZATION {identifier(owner)}")
    cursor.execute(f"REVOKE ALL ON SCHEMA {identifier(name)} FROM PUBLIC")
    cursor.execute(f"SET LOCAL search_path = {identifier(name)}, pg_catalog, pg_temp")
    for function in FUNCTIONS:
        cursor.execute(function)


def columns_of(connection: duckdb.DuckDBPyConnection, schema: Schema, place: int) -> dict[str, tuple[str, str]]:
    """Return each column of a prepared table: how it is read from the file, and its type on the server."""
    table = schema.tables[place]
    found: dict[str, tuple[str, str]] = {}
    for name, *_ in connection.execute(f"DESCRIBE t{place}").fetchall():
        if name == "__b":
            continue  # for ways that this engine does not go
        if name == "__h":
            found[name] = _SIGNED.format(name), _OWN[name]
        elif name.startswith("__"):
            found[name] = name, _OWN[name[:3]]
        elif name.startswith("g"):
            found[name] = name, "BIGINT"
        else:
            kind = table.fields[int(name[1:])].type
            found[name] = name, TYPES[kind] + (' COLLATE "C"' if kind is Type.STRING else "")
    return found


def create_table(cursor: Cursor, place: int, columns: Mapping[str, tuple[str, str]]) -> None:
    """Make a prepared table, empty, in the schema of the search path."""
    defined = ", ".join(f"{name} {kind}" for name, (_, kind) in columns.items())
    cursor.execute(f"CREATE TABLE t{place} ({defined}) WITH ({_KEPT})")
    for name in columns:
        cursor.execute(f"ALTER TABLE t{place} ALTER COLUMN {name} SET STATISTICS 0")


def fill_table(
    cursor: Cursor, connection: duckdb.DuckDBPyConnection, place: int, columns: Mapping[str, tuple[str, str]]
) -> None:
    """Give the server the rows of a prepared table, in the order in which they lie."""
    from pyarrow import csv

    read = ", ".join(f"{expression} AS {name}" for name, (expression, _) in columns.items())
    batches = connection.sql(f"SELECT {read} FROM t{place}").to_arrow_reader(_BATCH)
    options, odd = csv.WriteOptions(include_header=False), []
    with cursor.copy(f"COPY t{place} ({', '.join(columns)}) FROM STDIN (FORMAT csv, FREEZE true)") as copy:
        for batch in batches:
            sink = io.BytesIO()
            csv.write_csv(batch, sink, options)
            if _END in sink.getvalue():
                odd.append(batch)
                continue
            copy.write(sink.getvalue())
    given = ", ".join("%s" for _ in columns)
    for batch in odd:
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        cursor.executemany(f"INSERT INTO t{place} ({', '.join(columns)}) VALUES ({given})", list(rows))


def grant_reader(cursor: Cursor, name: str, reader: str) -> None:
    """Let the reader's role read the tables of a schema and call its functions, and nobody else."""
    schema, role = identifier(name), identifier(reader)
    cursor.execute(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC")
    cursor.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC")
    cursor.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    cursor.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    cursor.execute(f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}")


def write_about(cursor: Cursor, token: str) -> None:
    """Write down what tells this schema from any other."""
    cursor.execute(f"CREATE TABLE __about (token) WITH ({_KEPT}) AS SELECT {literal(token)}")


# ---- made up ---------------------------------------------------------------------------------------------------------------


def give_rows(cursor: Cursor, schema: str, name: str, rows: Any) -> None:
    """Make a table of made-up rows, given as Arrow, in place of one of this name."""
    import pyarrow as pa
    from pyarrow import csv

    kinds = {
        pa.bool_(): "BOOLEAN",
        pa.int64(): "BIGINT",
        pa.float64(): "DOUBLE PRECISION",
        pa.string(): "TEXT",
        pa.date32(): "DATE",
        pa.timestamp("us"): "TIMESTAMP",
    }
    table = f"{identifier(schema)}.{identifier(name)}"
    defined = ", ".join(f"{identifier(field.name)} {kinds[field.type]}" for field in rows.schema)
    cursor.execute(f"DROP TABLE IF EXISTS {table}")
    cursor.execute(f"CREATE TABLE {table} ({defined})")
    sink = io.BytesIO()
    csv.write_csv(rows, sink, csv.WriteOptions(include_header=False))
    with cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
        copy.write(sink.getvalue())
