"""Small studies on every kind of source, and ways to look into what was prepared."""

import contextlib
import dataclasses
import os
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from curador.engines.duckdb.connection import connect
from curador.engines.duckdb.engine import DuckDBEngine
from curador.engines.duckdb.schema import describe
from curador.engines.duckdb.versions import Folder, prepared_folder, specification, take_version
from curador.engines.duckdb.worker import open_connection
from curador.study.model import Budget, Column, EngineSettings, Study, Table, UnitColumn
from curador.study.values import Type

KEY = bytes(range(32))
VISITS = (
    Column("spent", Type.FLOAT, bounds=(Fraction(0), Fraction(500))),
    Column("city", Type.STRING),
)


def settings(**changes):
    return EngineSettings(**{"worker": "inline", "memory": 500_000_000, "deadline": Fraction(20), **changes})


def study_of(folder, *tables, frames=None, **engine):
    return Study(
        "study",
        tables,
        Budget(epsilon=1),
        Path("study.ledger"),
        folder=Path(folder),
        engine=settings(**engine),
        frames=frames or {},
    )


def write(folder, kind, table, name="visits"):
    """Write an Arrow table as a source of this kind; return what the study says and the frames."""
    folder = Path(folder)
    if kind == "parquet":
        pq.write_table(table, folder / f"{name}.parquet")
        return f"{name}.parquet", {}
    if kind == "csv":
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")
        return f"{name}.csv", {}
    if kind == "database":
        file = folder / f"{name}.duckdb"
        file.unlink(missing_ok=True)
        with contextlib.closing(connect(str(file), {})) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE rows AS SELECT * FROM given").fetchall()
        return f"{name}.duckdb#rows", {}
    frames = {"arrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: _polars(table)}
    return "frame", {name: frames[kind]()}


def _polars(table):
    import polars as pl

    return pl.from_arrow(table)


def visits_table(folder, table, kind="parquet", *, unit=None, columns=VISITS, **changes):
    """A study of one table of visits."""
    source, frames = write(folder, kind, table)
    engine = {name: changes.pop(name) for name in list(changes) if name in {"threads", "prepare", "memory", "worker"}}
    visits = Table("visits", source, unit or UnitColumn("user"), columns, **changes)
    return study_of(folder, visits, frames=frames, **engine)


def folder_of(study, key=KEY):
    """The prepared folder, with a key that is the same in every test."""
    folder = Folder(prepared_folder(study))
    folder.path.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(folder.path / "key", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(handle, key)
    os.close(handle)
    folder.make()
    return folder


def prepared(study, version=1, key=KEY):
    """Prepare the study under a fixed key; return its schema and folder."""
    schema, folder = describe(study), folder_of(study, key)
    take_version(schema, folder, version)
    return schema, folder


def rows(study, place=0, columns="*", version=1, key=KEY, *, again=True):
    """The rows of t<place> after preparation."""
    if again:
        prepared(study, version, key)
    with looking_into(study, version) as connection:
        return connection.execute(f"SELECT {columns} FROM t{place}").fetchall()


@contextlib.contextmanager
def looking_into(study, version=1):
    """A connection like that of a question, to a version that is there."""
    found = specification(describe(study), Folder(prepared_folder(study)), version)
    with contextlib.closing(open_connection(found)) as connection:
        yield connection


def engine_of(study, **changes):
    """An engine that is ready to be asked."""
    study = dataclasses.replace(study, engine=dataclasses.replace(study.engine, **changes))
    engine = DuckDBEngine(study, 1)
    engine.prepare(1)
    return engine


def a_table(**columns):
    return pa.table(columns)
