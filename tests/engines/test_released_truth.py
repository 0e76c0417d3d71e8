"""Questions over released results tell the truth where noise is small: they are DuckDB's, on the rows themselves."""

import datetime as dt

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu

pytestmark = pytest.mark.slow

ROWS = 6_000
STUDY = """\
version = 1
name = "people"
budget = { epsilon = "100000", delta = "1e-6" }
ledger = "people.ledger"

[unit]
name = "person"

[tables.people]
source = "people.parquet"
unit = "user_id"
unique = true

[tables.people.columns]
age = { type = "integer", bounds = [18, 99], nullable = false }
plan = { type = "string", values = ["basic", "plus", "pro"], nullable = false }
joined = { type = "date", bounds = ["2024-01-01", "2024-12-31"], nullable = false }
city = { type = "string", nullable = false }
"""
BY_PLAN = "SELECT plan, COUNT(*) AS n FROM people GROUP BY plan"
BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
BY_MONTH = "SELECT DATE_TRUNC('month', joined) AS m, COUNT(*) AS n FROM people GROUP BY m"
QUESTIONS = [
    "SELECT plan, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY plan ORDER BY plan",
    "SELECT city, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY city ORDER BY city",
    f"SELECT m, n - LAG(n) OVER (ORDER BY m) AS d FROM ({BY_MONTH}) ORDER BY m",
    (
        f"SELECT m, SUM(n) OVER (ORDER BY m) AS s, AVG(n) OVER (ORDER BY m ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a "
        f"FROM ({BY_MONTH}) ORDER BY m"
    ),
    f"SELECT SUM(n) AS s, AVG(n) AS a, MIN(n) AS l, MAX(n) AS h FROM ({BY_CITY})",
    f"SELECT city FROM ({BY_CITY}) WHERE n > (SELECT AVG(n) FROM ({BY_CITY})) ORDER BY city",
    "SELECT plan, COUNT(*) / (SELECT COUNT(*) FROM people) AS share FROM people GROUP BY plan ORDER BY plan",
    f"SELECT plan FROM people GROUP BY plan HAVING COUNT(*) > (SELECT AVG(n) FROM ({BY_PLAN})) ORDER BY plan",
    "SELECT city, AVG(age) AS mean FROM people GROUP BY city QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) < 3 ORDER BY 1",
    (
        f"WITH a AS ({BY_PLAN}), b AS (SELECT plan, COUNT(*) AS n FROM people WHERE age < 40 GROUP BY plan) "
        "SELECT a.plan, b.n / a.n AS part FROM a JOIN b USING (plan) ORDER BY a.plan"
    ),
    f"SELECT a.city, a.n, t.n AS total FROM ({BY_CITY}) a CROSS JOIN (SELECT COUNT(*) AS n FROM people) t ORDER BY a.city",
    (
        "SELECT plan, city, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY plan) AS share FROM people "
        "GROUP BY plan, city ORDER BY plan, city"
    ),
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A curator over made-up people, and a DuckDB with the same rows."""
    folder = tmp_path_factory.mktemp("people")
    dice = np.random.default_rng(7)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(366 * one)) for one in dice.random(ROWS) ** 1.3]
    table = pa.table(
        {
            "user_id": np.arange(ROWS),
            "age": dice.integers(18, 99, ROWS),
            "plan": dice.choice(["basic", "plus", "pro"], ROWS, p=[0.6, 0.3, 0.1]),
            "joined": days,
            "city": dice.choice(["Cusco", "Lima", "Quito", "Valencia"], ROWS, p=[0.1, 0.45, 0.3, 0.15]),
        }
    )
    pq.write_table(table, folder / "people.parquet")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    rows = duckdb.connect()
    rows.register("people", table)
    with cu.open(folder / "study.toml", engine={"worker": "inline"}) as curator:
        yield curator, rows


@pytest.mark.parametrize("text", QUESTIONS)
def test_what_is_computed_from_results_is_true(opened, text):
    """Every value is within a thousandth of DuckDB's on the rows, and no bar is wide."""
    curator, rows = opened
    wanted = rows.execute(text).fetchall()
    answer = curator.ask(text, spend="5%")
    names = [name for name in answer.columns if not name.endswith(("_low", "_high"))]
    found = [tuple(row[name] for name in names) for row in answer.rows]
    assert len(found) == len(wanted)
    for row, true, shown in zip(found, wanted, answer.rows, strict=True):
        for name, value, exact in zip(names, row, true, strict=True):
            if isinstance(exact, int | float) and not isinstance(exact, bool):
                assert value == pytest.approx(exact, rel=2e-3, abs=2e-3), (text, name)
                low, high = shown.get(f"{name}_low"), shown.get(f"{name}_high")
                assert low is None or high is None or low - 1 <= exact <= high + 1
            else:
                assert value == exact or str(value)[:10] == str(exact)[:10], (text, name)
