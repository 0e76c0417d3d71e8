"""Real clients connect as if to PostgreSQL: psql, psycopg, SQLAlchemy, pandas, asyncpg and ADBC."""

import asyncio
import datetime as dt
import os
import shutil
import subprocess
from decimal import Decimal

import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import rows

from curador.door.cluster import find_installation

QUESTION = "SELECT city, count(*) AS n, avg(spent) AS mean FROM visits GROUP BY city ORDER BY city"
CITIES = ["Basel", "Bern", "Chur"]


def psql(door, *commands, name="ana", env=None):
    own = find_installation() / "bin" / "psql"  # an older one does not know the catalogues of a newer server
    found = str(own) if own.exists() else shutil.which("psql")
    if found is None:
        pytest.skip("psql is not there")
    user, password = door.user(name)
    words = [found, "-X", "-h", "127.0.0.1", "-p", str(door.port), "-U", user, "-d", "clinic", "-P", "pager=off"]
    for command in commands:
        words += ["-c", command]
    held = {**os.environ, "PGPASSWORD": password, "PGSSLMODE": "disable", **(env or {})}
    return subprocess.run(words, env=held, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)


# ---- psql ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("\\dt", ["public", "visits", "secrets", "towns"]),
        ("\\dt+", ["visits", "each time at the doctor's; private: answers are noisy; what is protected is one patient"]),
        ("\\d visits", ["user_id", "bigint", "spent", "double precision", "not null", "price", "numeric", "timestamp"]),
        ("\\d+ visits", ["paid at the counter; from 0 to 500", "one of Bern, Basel, Chur"]),
        ("\\l", ["clinic", "UTF8"]),
        ("\\l+", ["clinic"]),
        ("\\du", ["analyst"]),
        ("\\dn", ["public"]),
        ("\\df", ["List of functions"]),
        ("\\dv", ["Did not find any"]),
        ("\\di", ["Did not find any"]),
        ("\\ds", ["Did not find any"]),
        ("\\dp", ["visits"]),
        ("\\dx", ["List of installed extensions"]),
        ("\\dT", ["List of data types"]),
        ("\\sf version", ["CREATE OR REPLACE FUNCTION"]),
        ("\\conninfo", ["clinic"]),
        ("\\encoding", ["UTF8"]),
    ],
)
def test_psql_describes_what_may_be_asked_about(unspent, command, wanted):
    done = psql(unspent, command)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert [one for one in wanted if one not in said] == []


def test_psql_asks(door):
    done = psql(door, "SET curador.spend = '1%'", QUESTION)
    assert done.returncode == 0
    assert "Basel" in done.stdout
    assert "(3 rows)" in done.stdout
    assert "95 % intervals: n ±" in done.stderr


def test_psql_shows_a_refusal_at_its_place(unspent):
    done = psql(unspent, "SET curador.spend = '1%'", "SELECT count(*) FROM visits WHERE citty = 'Bern'")
    assert done.returncode == 1
    assert "LINE 1:" in done.stderr
    assert 'did you mean "city"' in done.stderr


def test_the_price_can_be_said_in_the_connections_options(door):
    done = psql(door, QUESTION, env={"PGOPTIONS": "-c curador.spend=1% -c curador.intervals=columns"})
    assert done.returncode == 0, done.stderr
    assert "mean_high" in done.stdout


# ---- psycopg ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ana(door):
    with door.connect() as connection:
        connection.execute("SET curador.spend = '1%'")
        yield connection


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_both_formats(door, ana, binary):
    cursor = ana.cursor(binary=binary)
    found = cursor.execute(QUESTION).fetchall()
    assert [city for city, _, _ in found] == CITIES
    assert all(type(n) is int and type(mean) is float for _, n, mean in found)
    assert found == ana.execute(QUESTION).fetchall()


@pytest.mark.parametrize("binary", [False, True])
def test_every_type_reads_back(ana, binary):
    asked = """
        SELECT paid, date_trunc('month', seen) AS month, min(day) AS first, count(*) AS n, avg(price) AS mean
        FROM visits WHERE paid AND seen < '2024-02-01' GROUP BY paid, date_trunc('month', seen)"""
    (found,) = [one for one in ana.cursor(binary=binary, row_factory=rows.dict_row).execute(asked).fetchall() if one["month"]]
    kinds = {name: type(value) for name, value in found.items()}
    assert kinds == {"paid": bool, "month": dt.datetime, "first": dt.date, "n": int, "mean": float}


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("city = %s", "Bern"),
        ("rating = %s", 3),
        ("rating = %s", 100_000),
        ("spent < %s", 250.5),
        ("price < %s", Decimal("50.25")),
        ("paid = %s", True),
        ("day >= %s", dt.date(2024, 7, 1)),
        ("seen >= %s", dt.datetime.combine(dt.date(2024, 7, 1), dt.time(6, 30))),
        ("rating > -%s", 3),
        ("city = %s", "it's $1 -- /* \\ \" “"),
        ("city <> '$1' AND city = %s", "Bern"),
    ],
)
def test_parameters_are_bound_by_their_types(door, condition, value, binary):
    with door.connect() as connection:
        connection.execute("SET curador.spend = '1%'")
        text = f"SELECT count(*) AS n FROM visits WHERE {condition}"
        held = "%b" if binary else "%t"
        ((found,),) = connection.execute(text.replace("%s", held), (value,), prepare=True).fetchall()
        assert type(found) is int


def test_a_bound_question_is_the_same_as_one_written_out(door, ana):
    written = ana.execute("SELECT count(*) AS n FROM visits WHERE city = 'Chur' AND rating > 2").fetchall()
    before = door.entries()
    bound = ana.execute("SELECT count(*) AS n FROM visits WHERE city = %s AND rating > %s", ("Chur", 2)).fetchall()
    assert bound == written
    stored = list(door.service.curator.ledger.entries())[before:]
    assert all(not entry.amounts for entry in stored)


def test_server_side_cursors_cost_their_question_and_no_more(door):
    with psycopg.connect(**door.words()) as connection:
        connection.execute("SET curador.spend = '1%'")
        with connection.cursor("shown", scrollable=True) as cursor:
            cursor.execute("SELECT rating, count(*) AS n FROM visits GROUP BY rating ORDER BY rating")
            before = door.entries()
            assert [column.name for column in cursor.description] == ["rating", "n"]
            assert [row[0] for row in cursor.fetchmany(2)] == [1, 2]
            assert cursor.fetchone()[0] == 3
            cursor.scroll(0, mode="absolute")
            assert [row[0] for row in cursor] == [1, 2, 3, 4, 5, None]
        assert door.entries() == before


def test_pipelines_and_executemany(door):
    with door.connect() as connection, connection.pipeline():
        first = connection.execute("SELECT 1")
        second = connection.execute("SELECT relname FROM pg_class WHERE relname = 'visits'")
        assert first.fetchall() == [(1,)]
        assert second.fetchall() == [("visits",)]


# ---- SQLAlchemy, pandas ----------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(door):
    made = sa.create_engine(door.url(scheme="postgresql+psycopg", sslmode="disable", options="-c curador.spend=1%"))
    yield made
    made.dispose()


def test_sqlalchemy_reflects(unspent, engine):
    found = sa.inspect(engine)
    assert sorted(found.get_table_names()) == ["secrets", "towns", "visits"]
    types = {one["name"]: str(one["type"]) for one in found.get_columns("visits")}
    assert types["spent"] == "DOUBLE PRECISION"
    assert types["day"] == "DATE"
    assert "; private: answers are noisy" in found.get_table_comment("visits")["text"]
    assert found.get_pk_constraint("visits")["constrained_columns"] == []
    assert found.get_foreign_keys("visits") == []
    assert found.get_indexes("visits") == []
    assert found.get_schema_names() == ["information_schema", "public"]
    meta = sa.MetaData()
    meta.reflect(engine)
    assert sorted(meta.tables) == ["secrets", "towns", "visits"]


def test_sqlalchemy_asks_in_its_own_words(engine):
    visits = sa.Table("visits", sa.MetaData(), autoload_with=engine)
    asked = sa.select(visits.c.city, sa.func.count().label("n")).where(visits.c.rating > 3).group_by(visits.c.city)
    with engine.connect() as connection:
        assert {row.city for row in connection.execute(asked)} == set(CITIES)


def test_pandas_reads(engine):
    found = pd.read_sql(QUESTION, engine)
    assert list(found.columns) == ["city", "n", "mean"]
    assert found.city.tolist() == CITIES
    assert len(pd.read_sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'", engine)) == 3


# ---- asyncpg ---------------------------------------------------------------------------------------------------------------


def run_asyncpg(door, use):
    asyncpg = pytest.importorskip("asyncpg")
    user, password = door.user()

    async def whole():
        connection = await asyncpg.connect(
            host="127.0.0.1", port=door.port, user=user, password=password, database="clinic", ssl=False
        )
        try:
            await connection.execute("SET curador.spend = '1%'")
            return await use(connection)
        finally:
            await connection.close()

    return asyncio.run(whole())


def test_asyncpg_asks(door):
    found = run_asyncpg(door, lambda connection: connection.fetch(QUESTION))
    assert [one["city"] for one in found] == CITIES


def test_asyncpg_learns_the_types_of_parameters_from_the_tables(door):
    async def use(connection):
        text = "SELECT count(*) AS n FROM visits WHERE city = $1 AND spent > $2 AND day >= $3 AND paid = $4 AND rating = $5"
        statement = await connection.prepare(text)
        kinds = [one.name for one in statement.get_parameters()]
        return kinds, await connection.fetchval(text, "Bern", 10.5, dt.date(2024, 2, 1), True, 3)

    kinds, found = run_asyncpg(door, use)
    assert kinds == ["text", "float8", "date", "bool", "int8"]
    assert type(found) is int


def test_asyncpg_looks_up_types_that_it_does_not_know(unspent):
    """By a statement that is WITH RECURSIVE over pg_type."""
    rows = run_asyncpg(unspent, lambda connection: connection.fetch("SELECT * FROM pg_class WHERE relname = $1", "visits"))
    assert [row["relname"] for row in rows] == ["visits"]


def test_sqlalchemy_reflects_by_asyncpg(unspent):
    asyncio_of_sqlalchemy = pytest.importorskip("sqlalchemy.ext.asyncio")
    pytest.importorskip("asyncpg")
    import sqlalchemy

    async def go():
        engine = asyncio_of_sqlalchemy.create_async_engine(unspent.url(scheme="postgresql+asyncpg", ssl="disable"))
        try:
            async with engine.connect() as connection:
                known = sqlalchemy.MetaData()
                await connection.run_sync(known.reflect)
                return {name: set(table.columns.keys()) for name, table in known.tables.items()}
        finally:
            await engine.dispose()

    found = asyncio.run(go())
    assert {"visits", "towns"} <= set(found)
    assert "city" in found["visits"]


def test_asyncpg_walks_a_cursor_and_comes_back_from_its_pool(door):
    async def use(connection):
        async with connection.transaction():
            found = [
                row["rating"]
                async for row in connection.cursor(
                    "SELECT rating, count(*) AS n FROM visits GROUP BY rating ORDER BY rating", prefetch=2
                )
            ]
        await connection.reset()
        return found

    assert run_asyncpg(door, use) == [1, 2, 3, 4, 5, None]


# ---- ADBC, JDBC, ODBC ------------------------------------------------------------------------------------------------------


def test_adbc_asks_without_copy(door):
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    url = door.url(sslmode="disable", options="-c curador.spend=1%")
    with adbc.connect(url) as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        cursor.execute(QUESTION)
        assert cursor.fetch_arrow_table().column("city").to_pylist() == CITIES
        cursor.execute("SELECT 1 AS one")
        assert cursor.fetchall() == [(1,)]


def test_adbc_is_told_how_to_do_without_copy(unspent):
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    url = unspent.url(sslmode="disable", options="-c curador.spend=1%")
    with adbc.connect(url) as connection, connection.cursor() as cursor, pytest.raises(adbc.Error, match="COPY is not here"):
        cursor.execute(QUESTION)
