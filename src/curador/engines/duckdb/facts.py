# ruff: noqa: S608 -- names pass through `quoting`, the rest is ours
"""What a plan may know of public tables: how many rows agree in some columns, and the values of a column."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb import reading, sources
from curador.engines.duckdb.connection import look
from curador.engines.duckdb.spelling import commas
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from curador.study.model import Study, TableSchema
    from curador.study.values import Value


class _Facts(ABC):
    """Facts of public tables, each read once."""

    def __init__(self, tables: tuple[TableSchema, ...]) -> None:
        self._tables = tables
        self._known: dict[str, list[tuple[Any, ...]]] = {}
        self._lock = threading.Lock()

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows that agree in these columns, NULL agreeing with NULL (no columns: all rows)."""
        place = self._place(table)
        names = commas(f"c{self._tables[place].index(column)}" for column in columns)
        counts = f"SELECT count(*) AS n FROM t{place}" + (f" GROUP BY {names}" if columns else "")
        found = self._ask(place, f"SELECT coalesce(max(n), 0) FROM ({counts})")
        return int(found[0][0])

    def distinct(self, table: str, column: str, most: int) -> tuple[Value | None, ...] | None:
        """Return the values of a column, sorted, NULL as None and last; None if they are more than `most`, or not finite."""
        place = self._place(table)
        index = self._tables[place].index(column)
        if index is None:
            return None
        found = self._ask(place, f"SELECT DISTINCT c{index} FROM t{place} ORDER BY 1 NULLS LAST LIMIT {int(most) + 1}")
        kind = self._tables[place].fields[index].type
        infinite = any(isinstance(row[0], float) and math.isinf(row[0]) for row in found)
        return None if len(found) > most or infinite else tuple(_value(row[0], kind) for row in found)

    def longest(self, table: str, column: str) -> int:
        """Return how many bytes the longest text of a column has."""
        place = self._place(table)
        name = f"c{self._tables[place].index(column)}"
        return int(self._ask(place, f"SELECT coalesce(max(strlen({name})), 0) FROM t{place}")[0][0])

    def _place(self, table: str) -> int:
        place = next(place for place, one in enumerate(self._tables) if one.table.name == table)
        if not self._tables[place].table.public:
            raise AssertionError(table)  # nothing is known of a private table
        return place

    def _ask(self, place: int, statement: str) -> list[tuple[Any, ...]]:
        with self._lock:
            if statement not in self._known:
                connection = self._open(place)
                try:
                    self._known[statement] = connection.execute(statement).fetchall()
                finally:
                    connection.close()
            return self._known[statement]

    @abstractmethod
    def _open(self, place: int) -> duckdb.DuckDBPyConnection:
        """Return a connection on which the public table t<place> can be read."""


class SourceFacts(_Facts):
    """Facts read from the sources themselves: for a study that has no data version yet."""

    def __init__(self, study: Study, tables: tuple[TableSchema, ...]) -> None:
        super().__init__(tables)
        self._study = study

    def _open(self, place: int) -> duckdb.DuckDBPyConnection:
        schema = self._tables[place]
        connection = look()
        source = sources.find(self._study, schema.table, f"source{place}")
        sources.bind(connection, source)
        cleaned = reading.select_cleaned(connection, source, schema)
        connection.execute(f"CREATE TEMP VIEW t{place} AS {cleaned}").fetchall()
        return connection


class VersionFacts(_Facts):
    """Facts of the data version that questions are answered from."""

    def __init__(self, tables: tuple[TableSchema, ...], opened: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        super().__init__(tables)
        self._opened = opened

    def _open(self, place: int) -> duckdb.DuckDBPyConnection:
        del place
        return self._opened()


def _value(value: Any, kind: Type) -> Value | None:
    return Fraction(value) if kind in {Type.DECIMAL, Type.FLOAT} and value is not None else value
