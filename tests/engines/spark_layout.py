"""Spark for tests: Sail in this process, or real Spark where it is asked for; and a DuckDB version's tables brought over."""

import contextlib
import functools
import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow.parquet as pq
import pytest

from curador.engines.duckdb.versions import unit_key
from curador.engines.lower.dialect_duckdb import DuckDB
from curador.engines.lower.dialect_spark import Spark
from curador.engines.spark.engine import SparkEngine
from curador.engines.spark.server import connect, main_with_a_file
from curador.study.model import EngineSettings

NAMED = "CURADOR_TEST_SPARK"
"""The address of a Spark Connect server that tests run on instead of Sail; `make test-spark` sets it."""


KEYS = "CURADOR_TEST_SPARK_KEYS"
"""A file to which `make test-spark` has rank keys written, to search the server's events for them."""


def own_sail(port=0):
    """Start a Sail in this process; a missing package is a skip with its name."""
    with main_with_a_file():
        pytest.importorskip("pyspark.sql.connect.client", reason="pyspark-client is not installed")
    made = pytest.importorskip("pysail.spark", reason="pysail is not installed").SparkConnectServer("127.0.0.1", port)
    made.start(background=True)
    return made


@functools.cache
def sail():
    """The Sail of all tests of this process; it ends with it."""
    return own_sail()


def address():
    return os.environ.get(NAMED) or f"sc://127.0.0.1:{sail().listening_address[1]}"


def settings_of(folder, usual=None, **changes):
    usual = usual or EngineSettings(worker="inline", memory=500_000_000)
    return replace(usual, kind="spark", url=address(), store=str(Path(folder) / "store"), **changes)


def on_spark(study, **changes):
    """The study on the server."""
    return replace(study, engine=settings_of(study.folder, study.engine, **changes))


def opened(study, **changes):
    """An engine whose version 1 is prepared on the server."""
    engine = SparkEngine(on_spark(study, **changes), 1)
    engine.prepare(1)
    if KEYS in os.environ:
        with Path(os.environ[KEYS]).open("a", encoding="ascii") as file:
            print(unit_key(engine._folder), file=file)  # noqa: SLF001
    return engine


# ---- one and the same prepared relation ----------------------------------------------------------------------------------


class _Portable:
    """Hashes that both engines have: of the values' texts. What is drawn by a hash is then the same on both."""

    texts = "VARCHAR"
    bits = MappingProxyType({"__h": "CAST(CAST(__h AS BIT) AS BIGINT)"})  # without a sign there

    def hash(self, values):
        texts = ", ".join(f"coalesce(CAST({self.bits.get(value, value)} AS {self.texts}), '-')" for value in values)
        return f"md5(concat_ws('|', {texts}))"


class PortableDuckDB(_Portable, DuckDB):
    """DuckDB with hashes that both have."""


class PortableSpark(_Portable, Spark):
    """Spark with hashes that both have."""

    texts = "STRING"
    bits = MappingProxyType({})


@contextlib.contextmanager
def brought_over(connection, folder):
    """A session of the server with the tables t0 … of a prepared DuckDB version, as they are; and the server's dialect."""
    server = connect(settings_of(folder))
    session = server.open_session()
    own = "database_name = current_database() AND NOT internal"
    named = f"SELECT table_name FROM duckdb_tables() WHERE {own} UNION SELECT view_name FROM duckdb_views() WHERE {own}"
    try:
        for (name,) in connection.execute(named).fetchall():
            if name.startswith("t") and name[1:].isdigit():
                _bring(connection, name, session, Path(folder))
        yield session, PortableSpark(server.dialect.engine)
    finally:
        session.stop()


def _bring(connection, name, session, folder):
    described = connection.execute(f"DESCRIBE {name}").fetchall()
    columns = []
    for column, kind, *_ in described:
        if kind == "UBIGINT":  # Spark has no such type: the same bits
            columns.append(f"CAST(CAST({column} AS BIT) AS BIGINT) AS {column}")
        elif kind in {"UTINYINT", "USMALLINT", "UINTEGER"}:
            columns.append(f"CAST({column} AS INTEGER) AS {column}")
        else:
            columns.append(column)
    path = folder / f"{name}.over.parquet"
    pq.write_table(connection.sql(f"SELECT {', '.join(columns)} FROM {name}").to_arrow_table(), path)
    session.read.parquet(str(path)).createOrReplaceTempView(name)


def integers(tallied):
    """A block's integers as something that two engines can be compared by."""
    keys = [tuple(key) for key in zip(*tallied.keys, strict=True)] if tallied.keys else [()]
    groups = {
        key: tuple(int(tallied.tallies[place][number]) for place in sorted(tallied.tallies))
        for number, key in enumerate(keys)
    }
    assert len(groups) == len(keys)
    cells = {
        (place, keys[group], int(cell)): int(count)
        for place, held in tallied.cells.items()
        for group, cell, count in zip(held.groups, held.cells, held.counts, strict=True)
    }
    chosen = None
    if tallied.selection is not None:
        columns, units = tallied.selection
        chosen = dict(zip(zip(*columns, strict=True), map(int, units), strict=True))
    return groups, cells, chosen
