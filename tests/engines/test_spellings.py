"""Functions that become others mean what engines mean by them: the lowered text against DuckDB's own, value by value."""

import datetime as dt
import random

import corpus_schemas
import duckdb
import pytest

from curador.engines.lower.dialect_duckdb import DUCKDB
from curador.engines.lower.expression import lower_text
from curador.query.date_texts import DAYS, MONTHS
from curador.query.sql import parse

DICE = random.Random(7)
MOMENTS = [
    *(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(1999, 12, 31, 12), dt.datetime(2000, 2, 29)),  # noqa: DTZ001
    *(dt.datetime(2021, 1, 3, 0, 0, 1), dt.datetime(2020, 12, 31, 11, 59, 59, 999_999)),  # noqa: DTZ001
    *(dt.datetime(1900, 1, 1) + dt.timedelta(seconds=DICE.randrange(200 * 365 * 86_400)) for _ in range(400)),  # noqa: DTZ001
]


@pytest.fixture(scope="module")
def con():
    """A table of points in time and numbers, NULL among them."""
    made = duckdb.connect()
    made.execute("CREATE TABLE t (ts TIMESTAMP, joined DATE, x DOUBLE, n BIGINT)")
    numbers = [None, -1e300, -0.5, 0.0, 0.1, 2.9999999999999996, 3.0, 9.999999999999998, 10.0, 1e300]
    numbers += [DICE.uniform(-2, 12) for _ in range(len(MOMENTS) - len(numbers))]
    whole = [None, *(DICE.randrange(-20, 140) for _ in MOMENTS)]
    made.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?)",
        [(None, None, None, None), *((one, one.date(), *rest) for one, *rest in zip(MOMENTS, numbers, whole, strict=False))],
    )
    return made


def lowered(text, table, columns, dialect="duckdb"):
    """The SQL that an expression over a table of the corpus becomes, with other names for its columns."""
    tree = parse(
        f"SELECT {text} AS k, COUNT(*) AS c FROM {table} GROUP BY 1", corpus_schemas.schema("people"), dialect=dialect
    )
    (key,) = tree.blocks[0].keys
    names = [columns.get(out.name, "NULL") for out in tree.blocks[0].relation.columns]
    return lower_text(key, names, DUCKDB)


FORMATS = [
    *(
        "%Y",
        "%y",
        "%G",
        "%m",
        "%-m",
        "%B",
        "%b",
        "%V",
        "%d",
        "%-d",
        "%j",
        "%A",
        "%a",
        "%u",
        "%w",
        "%Y-%m",
        "%Y-%m-%d",
        "%b %Y",
    ),
    *("%d.%m.%Y", "%G-W%V", "%A, %-d %B %Y", "%m-%d", "%Y%m%d", "week %V of %Y", "%y-%m-%Y"),
]
CLOCKS = ["%H", "%I", "%p", "%M", "%S", "%H:%M", "%Y-%m-%d %H:%M:%S", "%I:%M %p", "%a %H", "%d %H:%M"]


@pytest.mark.parametrize("shape", [*FORMATS, *CLOCKS])
def test_texts_of_dates_are_the_engines(con, shape):
    """STRFTIME of points in time and, where they have such parts, of dates."""
    columns = [("at", "visits", "ts")] + [("joined", "people", "joined")] * (shape in FORMATS)
    for column, table, name in columns:
        ours = lowered(f"STRFTIME({column}, '{shape}')", table, {column: name})
        theirs = f"STRFTIME({name}, '{shape}')"
        assert not con.execute(f"SELECT {name}, {ours}, {theirs} FROM t WHERE {ours} IS DISTINCT FROM {theirs}").fetchall()


TEMPLATES = {
    ("TO_CHAR(at, 'YYYY-MM-DD HH24:MI:SS')", "postgres"): "%Y-%m-%d %H:%M:%S",
    ("TO_CHAR(at, 'Dy DD Mon YY')", "postgres"): "%a %d %b %y",
    ("TO_CHAR(at, 'FMDay, FMMonth')", "postgres"): "%A, %B",
    ("TO_CHAR(at, 'IYYY-IW')", "postgres"): "%G-%V",
    ("TO_CHAR(at, 'DDD')", "postgres"): "%j",
    ("TO_CHAR(at, 'HH12:MI AM')", "postgres"): "%I:%M %p",
    ("TO_CHAR(at, 'YYYY\"T\"MM')", "postgres"): "%YT%m",
    ("TO_CHAR(at, 'MON-YYYY')", "snowflake"): "%b-%Y",
    ("TO_VARCHAR(at, 'yyyy-mm')", "snowflake"): "%Y-%m",
    ("DAYNAME(at)", "snowflake"): "%a",
    ("MONTHNAME(at)", "snowflake"): "%b",
    ("DAYNAME(at)", "duckdb"): "%A",
    ("MONTHNAME(at)", "duckdb"): "%B",
    ("FORMAT_TIMESTAMP('%Y-%m', at)", "bigquery"): "%Y-%m",
    ("FORMAT_DATE('%F', DATE(at))", "bigquery"): "%Y-%m-%d",
    ("DATE_FORMAT(at, 'yyyy-MM')", "spark"): "%Y-%m",
    ("DATE_FORMAT(at, 'EEEE d MMMM')", "spark"): "%A %-d %B",
    ("DATE_FORMAT(at, 'E HH:mm')", "spark"): "%a %H:%M",
}


@pytest.mark.parametrize(("text", "dialect"), TEMPLATES)
def test_other_dialects_formats_are_the_same_parts(con, text, dialect):
    """Each dialect's letters for the same text."""
    ours, theirs = lowered(text, "visits", {"at": "ts"}, dialect), f"STRFTIME(ts, '{TEMPLATES[text, dialect]}')"
    assert con.execute(f"SELECT COUNT(*) FROM t WHERE {ours} IS DISTINCT FROM {theirs}").fetchall() == [(0,)]


def test_postgres_fills_names_and_follows_the_case_of_the_word(con):
    """'Month' is nine letters long there, 'MONTH' in capitals."""
    for word, name in (("Month", str), ("MONTH", str.upper), ("month", str.lower)):
        ours = lowered(f"TO_CHAR(at, '{word}')", "visits", {"at": "ts"}, "postgres")
        for number, found in con.execute(f"SELECT DISTINCT MONTH(ts), {ours} FROM t WHERE ts IS NOT NULL").fetchall():
            assert found == name(MONTHS[number - 1]).ljust(9)
    short = lowered("TO_CHAR(at, 'DY')", "visits", {"at": "ts"}, "postgres")
    for number, found in con.execute(f"SELECT DISTINCT ISODOW(ts), {short} FROM t WHERE ts IS NOT NULL").fetchall():
        assert found == DAYS[number - 1][:3].upper()


def test_buckets_are_of_equal_width(con):
    """0 below, n + 1 from the high end on, NULL of NULL, and never a bucket that is not there, by rounding neither."""
    for text, column, low, high, many in (("spent", "x", 0, 10, 3), ("items", "n", 0, 100, 10), ("items", "n", -5, 120, 25)):
        ours = lowered(f"WIDTH_BUCKET({text}, {low}, {high}, {many})", "visits", {text: column})
        for value, found in con.execute(f"SELECT {column}, {ours} FROM t").fetchall():
            if value is None:
                assert found is None
            elif value < low or value >= high:
                assert found == (0 if value < low else many + 1)
            else:
                assert found == min(int((value - low) * many / (high - low)) + 1, many)
