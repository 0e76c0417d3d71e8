"""DuckDB as a calculator: one statement over one or two tables that are handed in, where there is nothing else to reach.

What is computed from released values is computed here, by the same lowered SQL as over rows. A connection is a database of
its own in memory: without data, files, extensions or settings that could be changed. Connections are kept and lent to one
caller at a time; a forked process makes its own.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb.connection import close_doors, connect
from curador.engines.lower.sql import GeneratedSQL
from curador.errors import Failed

if TYPE_CHECKING:
    import duckdb

TABLE, OTHER = "released", "other"
"""The names of the tables that a statement reads."""

_CLOSED = {"threads": 1, "memory_limit": "1GiB", "temp_directory": "", "max_temp_directory_size": "0KiB"}
"""One thread, so that rows come in the order in which they went in; no folder to spill to."""


class Calculators:
    """Connections of this process that nobody uses at the moment.

    `made` holds all of them, so that none of a parent's is ever ended in a fork: its locks may be held by threads that the
    fork does not have.
    """

    def __init__(self) -> None:
        self.idle: deque[duckdb.DuckDBPyConnection] = deque()
        self.made: list[duckdb.DuckDBPyConnection] = []

    def taken(self) -> duckdb.DuckDBPyConnection:
        """Return one that nobody else has."""
        try:
            return self.idle.pop()
        except IndexError:
            connection = connect(":memory:", _CLOSED)
            close_doors(connection)
            self.made.append(connection)
            return connection

    def forget(self) -> None:
        """Start anew, in a fork."""
        self.idle = deque()


CALCULATORS = Calculators()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CALCULATORS.forget)


def calculate(statement: GeneratedSQL, table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement over an Arrow table, in its order, as Python's own values; or over several, by name."""
    if type(statement) is not GeneratedSQL:
        raise Failed.must_be("a statement", "made by the lowering", type(statement).__name__)
    connection = CALCULATORS.taken()
    finished = False
    try:
        tables: dict[str, Any] = table if isinstance(table, dict) else {TABLE: table}
        for name, held in tables.items():
            connection.register(name, held)
        found: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
        for name in tables:
            connection.unregister(name)
        finished = True
    finally:
        if finished:
            CALCULATORS.idle.append(connection)
        else:  # interrupted, or failed: what it does now is unknown
            CALCULATORS.made.remove(connection)
            connection.close()
    return found
