"""A place on an engine's server for made-up tables, made and removed by whoever checks it; nothing else is read there.

By the scheme of an address: the kind of engine, and how it is given rows. A kind without a server is checked by
`check_engine` alone.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from curador.engines.base import engine_kind
from curador.errors import InvalidParameter
from curador.study.model import EngineSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from curador.engines.base import Engine
    from curador.study.model import Study


class MadeUpPlace(Protocol):
    """A place for made-up tables."""

    @property
    def kind(self) -> str:
        """The kind of engine."""
        ...

    @property
    def url(self) -> str:
        """Its address, as a study says it."""
        ...

    @property
    def store(self) -> str:
        """Where it keeps prepared tables, where a study says so; else ""."""
        ...

    def give(self, name: str, rows: Any) -> str:
        """Put an Arrow table there in place of one of this name; return what a study calls it as a source."""
        ...


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """A schema of a PostgreSQL server."""

    url: str
    schema: str
    connection: Any
    kind: str = "postgres"
    store: str = ""

    def give(self, name: str, rows: Any) -> str:
        """Put an Arrow table into the schema."""
        from curador.engines.postgres.server import transaction
        from curador.engines.postgres.staging import give_rows

        with transaction(self.connection, "ISOLATION LEVEL READ COMMITTED READ WRITE") as cursor:
            give_rows(cursor, self.schema, name, rows)
        return f"{self.schema}.{name}"


@contextlib.contextmanager
def _on_postgres(url: str) -> Generator[MadeUpPlace]:
    from curador.engines.postgres.server import PREPARER, DatabaseServer, identifier, leave, transaction

    connection, schema = DatabaseServer(url).connect(PREPARER), f"curador_check_{secrets.token_hex(8)}"
    writing = "ISOLATION LEVEL READ COMMITTED READ WRITE"
    try:
        with transaction(connection, writing) as cursor:
            cursor.execute(f"CREATE SCHEMA {identifier(schema)}")
        try:
            yield PostgresPlace(url, schema, connection)
        finally:
            if connection.closed:  # a rule that failed may have taken it along
                connection = DatabaseServer(url).connect(PREPARER)
            with transaction(connection, writing) as cursor:
                cursor.execute(f"DROP SCHEMA {identifier(schema)} CASCADE")
    finally:
        leave(connection)


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """A folder that a Spark or Sail server sees."""

    url: str
    store: str
    session: Any
    given: list[str]
    kind: str = "spark"

    def give(self, name: str, rows: Any) -> str:
        """Write an Arrow table into the folder: here where it is on this machine, as Sail writes no file without rows."""
        import pyarrow.parquet as pq
        from pyspark.sql.pandas.types import from_arrow_schema

        path = f"{self.store}/{name}"
        if Path(self.store).parent.is_dir():
            Path(self.store).mkdir(exist_ok=True)
            pq.write_table(rows, f"{path}.parquet")
            return f"{path}.parquet"
        held = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
        frame = self.session.createDataFrame(rows, held) if rows.num_rows else self.session.createDataFrame([], held)
        frame.write.mode("overwrite").parquet(path)
        self.given.append(path)
        return path


@contextlib.contextmanager
def _on_spark(url: str) -> Generator[MadeUpPlace]:
    import os
    import shutil
    import time

    from curador.engines.spark.prepare import remove
    from curador.engines.spark.server import connect

    store = os.environ.get(SPARK_STORE, "").rstrip("/")
    if not store:
        raise InvalidParameter.must_be(SPARK_STORE, "a folder in which the server may write, in the environment", store)
    session = connect(EngineSettings(kind="spark", url=url)).open_session()
    place = SparkPlace(url, f"{store}/check-{secrets.token_hex(8)}", session, [])
    try:
        yield place
    finally:
        shutil.rmtree(place.store, ignore_errors=True)
        for path in dict.fromkeys(place.given):
            remove(session, path, time.monotonic() + 60)
        session.stop()


SPARK_STORE = "CURADOR_SPARK_STORE"
"""Where the environment names the folder for made-up tables on a Spark server."""

PLACES: Mapping[str, Callable[[str], contextlib.AbstractContextManager[MadeUpPlace]]] = {
    "postgresql": _on_postgres,
    "postgres": _on_postgres,
    "sc": _on_spark,
}
"""By the scheme of an address."""


def open_place(url: str) -> contextlib.AbstractContextManager[MadeUpPlace]:
    """Return a place on the server of an address; refuse a scheme that no engine has."""
    from curador.study.rules import require_bare_address

    require_bare_address(url)
    scheme = url.partition("://")[0].casefold()
    if scheme not in PLACES:
        known = " or ".join(f"{one}://" for one in PLACES)
        raise InvalidParameter.must_be("the address of an engine", f"one that begins with {known}", f"{scheme}://")
    return PLACES[scheme](url)


def open_on(place: MadeUpPlace, study: Study) -> tuple[Engine, Callable[[], object]]:
    """Return the place's engine on a study of Parquet files with the same rows there, and what removes the prepared copy."""
    import pyarrow.parquet as pq

    tables = tuple(
        replace(table, source=place.give(table.name, pq.read_table(study.folder / table.source))) for table in study.tables
    )
    settings: EngineSettings = replace(study.engine, kind=place.kind, url=place.url, store=place.store)
    there, kind = replace(study, tables=tables, engine=settings), engine_kind(place.kind)
    engine = kind.open(there, 1)
    try:
        engine.prepare(1)
    except BaseException:
        engine.close()
        kind.drop_prepared(there)
        raise
    return engine, lambda: kind.drop_prepared(there)


@contextlib.contextmanager
def opened_on(place: MadeUpPlace, study: Study) -> Generator[Engine]:
    """Open an engine as `open_on` does; what was prepared is removed."""
    engine, remove = open_on(place, study)
    try:
        yield engine
    finally:
        engine.close()
        remove()
