"""The worker: a process that holds the data version and runs the statements it is sent. It reads frames from standard input.

A frame is eight bytes of length and so many bytes. First comes the specification of the connection, to which the
worker answers when it is ready; then one question a frame: JSON, [whether it is for tables without rows, [[name, statement],
…]]. The answer to a question is a frame of JSON, {"ok": true, "names": […]}, and one frame of Arrow for each name; or
{"ok": false, "names": [], "detail": "…"}. When standard input ends, so does the worker, whatever it is doing: it does not
outlive its parent. Nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import struct
import sys
import threading
from typing import IO, TYPE_CHECKING, Any

from curador.engines.duckdb.connection import close_doors, connect, run_in_order
from curador.engines.duckdb.spelling import commas, identifier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

LENGTH = struct.Struct(">Q")
_HEADROOM = 8 << 30
"""Bytes of addresses beyond twice DuckDB's own limit: programs, stacks, results."""


def open_connection(specification: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Return the connection that questions run on: one version, read only, closed to everything else."""
    database = specification["database"]
    connection = connect(database, specification["config"], read_only=database != ":memory:")
    try:
        for statement in specification["setup"]:
            connection.execute(statement).fetchall()
        run_in_order(connection)
        close_doors(connection, specification["allowed"])
    except BaseException:
        connection.close()
        raise
    return connection


class Connections:
    """The connection that questions run on, and beside it one to the same tables without rows, made when first asked for."""

    def __init__(self, specification: Mapping[str, Any]) -> None:
        self._specification = specification
        self._data = open_connection(specification)
        self._empty: duckdb.DuckDBPyConnection | None = None

    def cursor(self, *, empty: bool) -> duckdb.DuckDBPyConnection:
        """Return a cursor for one question."""
        if not empty:
            return self._data.cursor()
        if self._empty is None:
            self._empty = self._without_rows()
        return self._empty.cursor()

    def close(self) -> None:
        """Close what is open."""
        self._data.close()
        if self._empty is not None:
            self._empty.close()

    def _without_rows(self) -> duckdb.DuckDBPyConnection:
        """A database whose tables have the columns and types of the version's, from its catalogue: no row is read."""
        own = "NOT internal AND database_name = current_database()"  # not the files that views read
        named = "SELECT table_name, column_name, data_type FROM duckdb_columns()"
        tables: dict[str, list[str]] = {}
        for table, column, kind in (
            self._data.cursor().execute(f"{named} WHERE {own} ORDER BY table_name, column_index").fetchall()
        ):
            tables.setdefault(table, []).append(f"{identifier(column)} {kind}")
        config = {**self._specification["config"], "threads": 1}
        connection = connect(":memory:", config)
        try:
            for table, held in tables.items():
                connection.execute(f"CREATE TABLE {identifier(table)} ({commas(held)})").fetchall()
            close_doors(connection, [])
        except BaseException:
            connection.close()
            raise
        return connection


def answer(cursor: duckdb.DuckDBPyConnection, statements: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the Arrow table of every statement: one transaction, so one snapshot. The cursor is this question's alone."""
    try:
        cursor.execute("BEGIN TRANSACTION READ ONLY").fetchall()
        return {name: cursor.sql(statement).to_arrow_table() for name, statement in statements}
    finally:
        cursor.close()


def main() -> None:
    """Serve the parent until it goes away."""
    os.umask(0o077)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not enter the frames
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, requests), daemon=True).start()
    specification = json.loads(requests.get())
    _limit(specification["memory"])
    connections = Connections(specification)
    write_frame(out, b"ready")
    while True:
        empty, statements = json.loads(requests.get())
        _serve(connections, statements, out, empty=empty)


def _listen(source: IO[bytes], requests: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while (frame := read_frame(source)) is not None:
            requests.put(frame)
    os._exit(0)


def _serve(connections: Connections, statements: list[tuple[str, str]], out: IO[bytes], *, empty: bool) -> None:
    try:
        tables = {name: _stream(table) for name, table in answer(connections.cursor(empty=empty), statements).items()}
    except Exception as problem:  # noqa: BLE001 -- the parent decides what anybody may know of it
        write_frame(out, json.dumps({"ok": False, "names": [], "detail": f"{type(problem).__name__}: {problem}"}).encode())
        return
    write_frame(out, json.dumps({"ok": True, "names": list(tables)}).encode())
    for content in tables.values():
        write_frame(out, content)


def _stream(table: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def read_frame(source: IO[bytes]) -> bytes | None:
    """Return the next frame; None at the end."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    content = source.read(length)
    return content if len(content) == length else None


def write_frame(out: IO[bytes], content: bytes) -> None:
    """Write one frame."""
    out.write(LENGTH.pack(len(content)) + content)
    out.flush()


def _limit(memory: int) -> None:
    """No core dump, which would hold rows; and an end to addresses for what escapes DuckDB's own limit."""
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (2 * memory + _HEADROOM, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
