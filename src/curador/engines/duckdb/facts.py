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
from curador.engines.duckdb.images import compute_images
from curador.engines.duckdb.spelling import commas
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from curador.plan.listing import Listing, PublicRows
    from curador.study.model import Study, TableSchema
    from curador.study.values import Value


_MOST_IMAGES = 64
"""Lists of keys that are kept."""


class TableFacts(ABC):
    """Facts of public tables, each read once."""

    def __init__(self, tables: tuple[TableSchema, ...]) -> None:
        self._tables = tables
        self._known: dict[str, list[tuple[Any, ...]]] = {}
        self._images: dict[tuple[Listing, int], tuple[tuple[Value | None, ...], ...] | None] = {}
        self._read: dict[tuple[PublicRows, int], Any] = {}
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

    def images(self, listing: Listing, most: int) -> tuple[tuple[Value | None, ...], ...] | None:
        """Return all tuples of a listing, each once; None if more than `most` rows are to be looked at. Computed once."""
        key = listing, most
        with self._lock:
            if key in self._images:
                return self._images[key]
        found = compute_images(listing, most, self._rows)
        with self._lock:
            self._images = {**dict(list(self._images.items())[1 - _MOST_IMAGES :]), key: found}
        return found

    def _rows(self, source: PublicRows, most: int) -> Any:
        """The different rows of a public table, in some columns; None if there are more than `most`."""
        place = self._place(source.table)
        key = source, most
        with self._lock:
            if key not in self._read:
                names = commas(f"c{column} AS c{number}" for number, column in enumerate(source.columns)) or "1 AS c0"
                connection = self._open(place)
                try:
                    statement = f"SELECT DISTINCT {names} FROM t{place} LIMIT {int(most) + 1}"
                    found = connection.sql(statement).to_arrow_table()
                finally:
                    connection.close()
                self._read[key] = None if found.num_rows > most else found
            return self._read[key]

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


class SourceFacts(TableFacts):
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


class VersionFacts(TableFacts):
    """Facts of the data version that questions are answered from."""

    def __init__(self, tables: tuple[TableSchema, ...], opened: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        super().__init__(tables)
        self._opened = opened

    def _open(self, place: int) -> duckdb.DuckDBPyConnection:
        del place
        return self._opened()


def _value(value: Any, kind: Type) -> Value | None:
    return Fraction(value) if kind in {Type.DECIMAL, Type.FLOAT} and value is not None else value
