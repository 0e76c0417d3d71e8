"""Where questions run: on connections of the reader's role, each in one read-only snapshot that ends by the deadline.

At the deadline the server ends the statement by itself (`statement_timeout`); a server that does not answer any more is told
to cancel, and left. A connection that was in the middle of anything is not used again. As many questions run at once as the
study says; who finds no place waits, and its deadline runs.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb.worker import BrokenError
from curador.engines.lower.expression import Type
from curador.engines.postgres.server import READER, identifier, leave, transaction
from curador.engines.postgres.staging import read_rows
from curador.engines.postgres.versions import ISOLATED, without_rows

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    import psycopg

    from curador.engines.postgres.server import DatabaseServer

Question = tuple[str, str, "Mapping[str, Type]"]
"""A result's name, its statement, and the type of each of its columns."""


class ServerRunner:
    """A few connections to one prepared schema."""

    def __init__(self, server: DatabaseServer, schema: str, places: int) -> None:
        self._server = server
        self._schema = schema
        self._places = threading.BoundedSemaphore(places)
        self._many = places
        self._idle: list[psycopg.Connection[Any]] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._closed = False

    def run(self, questions: Sequence[Question], seconds: float, *, empty: bool = False) -> Mapping[str, Any]:
        """Return the Arrow tables by name, or raise BrokenError. `empty`: of the same tables without rows."""
        self._renew_after_fork()
        until = time.monotonic() + seconds
        if seconds <= 0 or not self._places.acquire(timeout=seconds):
            raise BrokenError("The deadline passed before the question began.")
        try:
            return self._run(questions, until, without_rows(self._schema) if empty else self._schema)
        except BrokenError:
            raise
        except Exception as problem:  # noqa: BLE001 -- the engine decides what anybody may know of it
            raise BrokenError(f"{type(problem).__name__}: {problem}") from None
        finally:
            self._places.release()

    def _run(self, questions: Sequence[Question], until: float, schema: str) -> Mapping[str, Any]:
        with self._connection(until) as connection, transaction(connection, ISOLATED, until) as cursor:
            cursor.execute(f"SET LOCAL search_path = {identifier(schema)}, pg_catalog, pg_temp")
            return {name: read_rows(cursor, text, arrow_types(types)) for name, text, types in questions}

    def close(self) -> None:
        """Close the connections, also those of questions that run: nobody waits for them any more."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._owner == os.getpid():
            for connection in idle:
                leave(connection)

    @contextlib.contextmanager
    def _connection(self, until: float) -> Generator[psycopg.Connection[Any]]:
        """A connection for one question. One that idled may have died: nothing was asked of it, so another is made."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None and not _is_alive(connection, until):
            leave(connection)
            connection = None
        if connection is None:
            connection = self._server.connect(READER, until)
        try:
            yield connection
        finally:
            with self._lock:
                kept = not connection.closed and not self._closed and connection.info.transaction_status.name == "IDLE"
                if kept:
                    self._idle.append(connection)
            if not kept:
                leave(connection)

    def _renew_after_fork(self) -> None:
        """A fork has its parent's sockets, which it must neither use nor close in the parent's name."""
        if self._owner != os.getpid():
            _CARRIED.extend(self._idle)
            self._idle, self._lock, self._owner = [], threading.Lock(), os.getpid()
            self._places = threading.BoundedSemaphore(self._many)


_CARRIED: list[object] = []


def _is_alive(connection: psycopg.Connection[Any], until: float) -> bool:
    """Whether a connection that was idle still has its server."""
    import psycopg

    bounded: Any = connection
    bounded.until = until
    try:
        connection.execute("")
    except (psycopg.Error, OSError):
        return False
    finally:
        bounded.until = float("inf")
    return not connection.closed


def arrow_types(types: Mapping[str, Type]) -> dict[str, Any]:
    """Return Arrow's types of columns."""
    import pyarrow as pa

    known = {
        Type.BOOLEAN: pa.bool_(),
        Type.INTEGER: pa.int64(),
        Type.DECIMAL: pa.float64(),
        Type.FLOAT: pa.float64(),
        Type.STRING: pa.string(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }
    return {name: known[type_] for name, type_ in types.items()}
