"""Studies over tables of a real PostgreSQL server: the tables, the two roles, and a study file."""

import contextlib
import dataclasses
import io
import secrets
from dataclasses import dataclass

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from postgres_catalogue import server
from psycopg import sql
from pyarrow import csv

from curador.engines.postgres.server import PREPARER, READER

TYPES = {
    "bool": "boolean",
    "int64": "bigint",
    "int32": "integer",
    "double": "double precision",
    "string": "text",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
}


@dataclass(frozen=True)
class Database:
    """A database of one test, with a role that prepares and one that asks."""

    server: object
    name: str
    preparer: str
    reader: str

    @property
    def url(self):
        """The address for a study file: nobody's name stands in it."""
        return f"postgresql:///{self.name}?host={self.server.home}"

    def name_roles(self, monkeypatch):
        """Name its two roles in the environment, where another database may have named its own meanwhile."""
        monkeypatch.setenv(PREPARER, self.preparer)
        monkeypatch.setenv(READER, self.reader)

    def connect(self, user="postgres"):
        return psycopg.connect(self.server.url(user, self.name), autocommit=True)

    def run(self, *statements, user="postgres"):
        with self.connect(user) as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def give(self, name, table, types=None):
        """Make a table of Arrow's rows that the preparer may read."""
        kinds = {field.name: (types or {}).get(field.name, TYPES.get(str(field.type))) for field in table.schema}
        columns = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(k)) for n, k in kinds.items())
        sink = io.BytesIO()
        csv.write_csv(table, sink, csv.WriteOptions(include_header=False))
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), columns))
            with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(sql.Identifier(name))) as copy:
                copy.write(sink.getvalue())
            grant = sql.SQL("GRANT SELECT ON {} TO {}")
            connection.execute(grant.format(sql.Identifier(name), sql.Identifier(self.preparer)))


@contextlib.contextmanager
def database(monkeypatch, on=None):
    """A new database, and the environment in which its two roles are named."""
    where, name = on or server(), f"test_{secrets.token_hex(6)}"
    made = Database(where, name, f"prepares_{name}", f"asks_{name}")
    with psycopg.connect(where.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        connection.execute(f"CREATE ROLE {made.preparer} LOGIN; CREATE ROLE {made.reader} LOGIN")
        connection.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
        connection.execute(f"GRANT CONNECT, CREATE ON DATABASE {name} TO {made.preparer}")
        connection.execute(f"GRANT CONNECT ON DATABASE {name} TO {made.reader}")
    made.name_roles(monkeypatch)
    try:
        yield made
    finally:
        with contextlib.suppress(psycopg.Error), psycopg.connect(where.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"DROP ROLE IF EXISTS {made.reader}; DROP ROLE IF EXISTS {made.preparer}")


def on_postgres(study, made, **engine):
    """Return a study of Parquet files over tables of a database with the same rows."""
    for table in study.tables:
        made.give(table.name, pq.read_table(study.folder / table.source))
    tables = tuple(dataclasses.replace(table, source=table.name) for table in study.tables)
    settings = dataclasses.replace(study.engine, kind="postgres", url=made.url, **engine)
    return dataclasses.replace(study, tables=tables, engine=settings)


VISITS = pa.table(
    {
        "user": pa.array([number % 7 for number in range(100)]),
        "spent": pa.array([None if n % 11 == 0 else float(n * 37 % 700 - 100) for n in range(100)], pa.float64()),
        "city": pa.array([("Cuzco", "Lima", "Quito", None)[n % 4] for n in range(100)], pa.string()),
        "shop": pa.array([("north", "south", "", None)[n % 3 if n < 90 else 3] for n in range(100)], pa.string()),
    }
)
