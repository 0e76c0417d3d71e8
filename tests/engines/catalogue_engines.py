"""Engines that the catalogue of functions is run on: each loads edge values into a table and computes texts of SQL over it.

A new dialect is a class here with the members of `OnDuckDB`, and a line in ENGINES. What an engine says that it lacks must be
refused; numbers beyond 2^±1000 are outside the catalogue's promise: NULL or 0 there, and nothing raises anywhere.
"""

import contextlib
import math
import secrets
import tempfile
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_studies import ARROW
from lower_layout import connect
from lower_shapes import loaded, same
from postgres_catalogue import OnPostgres
from spark_layout import address, settings_of

from curador.engines.lower.dialect_duckdb import DUCKDB
from curador.engines.lower.expression import lower_text
from curador.engines.spark.server import connect as connect_to
from curador.engines.spark.server import fetch
from curador.errors import InvalidQuery

FARTHEST = 2.0**1000


class OnDuckDB:
    """The embedded engine."""

    name = "DuckDB"
    dialect = DUCKDB

    def __init__(self):
        self.con = connect()

    def load(self, types, rows):
        """Put the rows into a table `edges` with columns i, from 1, and c0 …."""
        loaded(self.con, types, rows)

    def rows(self, texts):
        """Return i and the texts' values for each row, as the reference's types."""
        return self.con.execute(f"SELECT i, {', '.join(texts)} FROM edges").fetchall()

    def close(self):
        self.con.close()


class OnSpark:
    """Sail in this process, or the server of real Spark that the environment names."""

    def __init__(self):
        address()  # skips where there is no server
        self.folder = tempfile.TemporaryDirectory()
        self.server = connect_to(settings_of(self.folder.name))
        self.session = self.server.open_session()
        self.dialect, self.name = self.server.dialect, self.server.dialect.engine

    def load(self, types, rows):
        columns = [pa.array(range(1, len(rows) + 1), pa.int64())]
        columns += [pa.array(held, ARROW[kind]) for kind, held in zip(types, zip(*rows, strict=True), strict=True)]
        path = f"{self.folder.name}/{'-'.join(types)}-{len(rows)}-{secrets.token_hex(4)}.parquet"
        pq.write_table(pa.table(columns, names=["i", *(f"c{place}" for place in range(len(types)))]), path)
        self.session.read.parquet(path).createOrReplaceTempView("edges")

    def rows(self, texts):
        named = ", ".join(["i", *(f"{text} AS r{place}" for place, text in enumerate(texts))])  # all may be refused
        found = fetch(self.session, f"SELECT {named} FROM edges", time.monotonic() + 120)
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def rows_of_all(self, texts):
        """Return the texts' values over all rows, behind a 0."""
        named = ", ".join(f"{text} AS r{place}" for place, text in enumerate(texts))
        found = fetch(self.session, f"SELECT 0 AS i, {named} FROM edges", time.monotonic() + 120)
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def close(self):
        self.session.stop()
        self.folder.cleanup()


ENGINES = {"duckdb": OnDuckDB, "postgres": OnPostgres, "spark": OnSpark}
"""By name: what makes one; a missing program or package is a named skip inside."""


@contextlib.contextmanager
def opened(name):
    """Open an engine of the table above."""
    engine = ENGINES[name]()
    try:
        yield engine
    finally:
        engine.close()


def text_of(expression, types, dialect):
    return lower_text(expression, [f"c{place}" for place in range(len(types))], dialect)


def lowered(shapes, types, engine):
    """The shapes that the engine has, each with its text; what it lacks is refused, with its name."""
    found = []
    for name, expression in shapes:
        if engine.dialect.missing(name, [one.type for one in expression.arguments], expression.type) is None:
            found.append((name, expression, text_of(expression, types, engine.dialect)))
            continue
        with pytest.raises(InvalidQuery, match=engine.name):
            text_of(expression, types, engine.dialect)
    return found


def promised(*numbers):
    """Whether the catalogue promises something of these: no finite number among them is beyond 2^±1000."""
    return not any(
        isinstance(one, float) and math.isfinite(one) and one and not 1 / FARTHEST <= abs(one) <= FARTHEST for one in numbers
    )


def agrees(found, wanted, function, row, dialect):
    """Whether a value is what the reference says; DuckDB keeps more than is promised."""
    return same(found, wanted, function) or (
        dialect is not DUCKDB and not promised(*row, wanted) and (found is None or found == 0)
    )
