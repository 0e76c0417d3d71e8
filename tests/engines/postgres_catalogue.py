"""PostgreSQL for the catalogue of functions: one server for all tests of a process, a schema with the dialect's functions."""

import atexit
import functools
import secrets

import pytest

from curador.door.cluster import MISSING, find_installation
from curador.engines.lower.dialect_postgres import FUNCTIONS, POSTGRES


@functools.cache
def server():
    """A server of this process alone, stopped when it ends; the tests are skipped, and say so, where there is none."""
    import real_postgres

    if find_installation() is None:
        pytest.skip(MISSING)
    made = real_postgres.make_server(find_installation())
    atexit.register(real_postgres.remove, made)
    return made


def connect(**options):
    import psycopg

    settings = "-c TimeZone=UTC -c DateStyle=ISO -c jit=off"
    return psycopg.connect(server().url(**options), autocommit=True, options=settings)


class OnPostgres:
    """The dialect on a real server."""

    name = "PostgreSQL"
    dialect = POSTGRES

    def __init__(self):
        self.con = connect()
        self.schema = f"test_{secrets.token_hex(6)}"
        self.con.execute(f"CREATE SCHEMA {self.schema}; SET search_path = {self.schema}")
        for function in FUNCTIONS:
            self.con.execute(function)

    def load(self, types, rows):
        columns = ", ".join(
            f"c{place} {POSTGRES.type(one)}{' COLLATE ' + chr(34) + 'C' + chr(34) if one == 'string' else ''}"
            for place, one in enumerate(types)
        )
        self.con.execute(f"DROP TABLE IF EXISTS edges; CREATE TABLE edges (i BIGINT, {columns})")
        with self.con.cursor().copy("COPY edges FROM STDIN") as copy:
            for place, row in enumerate(rows, 1):
                copy.write_row([place, *row])

    def rows(self, texts):
        return self.con.execute(f"SELECT i, {', '.join(texts)} FROM edges").fetchall()

    def close(self):
        self.con.execute(f"DROP SCHEMA {self.schema} CASCADE")
        self.con.close()
