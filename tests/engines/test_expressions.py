"""Ibis expressions as analysts write them: what a curator answers is what DuckDB says of the same rows, noise aside."""

import datetime as dt
import math

import duckdb
import ibis
import ibis_expressions
import numpy as np
import polars as pl
import pytest

import curador as cu
from curador.errors import Refused

UNITS, EACH = 1_500, 4
CLOSE = 5
"""Half widths of an interval: Gaussian noise lies farther than that once in 10²¹ numbers."""


STEP = 0.2
"""Between two values of a quantile's grid, and between two values of a column."""


def made_frames():
    """Made-up rows in which every unit has four, and whose groups differ in size by far more than the noise."""
    random = np.random.default_rng(7)
    rows = UNITS * EACH
    days = [dt.date(2023, 7, 1) + dt.timedelta(days=int(one)) for one in random.integers(0, 400, rows)]
    visits = pl.DataFrame(
        {
            "user_id": np.repeat(np.arange(UNITS), EACH),
            "city": random.choice(["Lima", "Quito", "Cusco"], rows, p=[0.55, 0.3, 0.15]),
            "age": random.integers(1, 90, rows),
            "spent": (random.random(rows) * 100).round(1) + 0.5,
            "price": pl.Series((random.random(rows) * 90).round(2)).cast(pl.Decimal(18, 2)),
            "day": days,
            "at": [
                dt.datetime.combine(day, dt.time(int(hour)))
                for day, hour in zip(days, random.integers(0, 24, rows), strict=True)
            ],
            "member": random.random(rows) < 0.7,
        }
    )
    sexes = random.choice(["f", "m"], UNITS, p=[0.6, 0.4])
    people = pl.DataFrame({"user_id": np.arange(UNITS), "born": random.integers(1930, 2010, UNITS), "sex": sexes})
    cities = pl.DataFrame({"city": ["Lima", "Quito", "Cusco"], "country": ["PE", "EC", "PE"], "size": [1000, 500, 50]})
    return {"visits": visits, "people": people, "cities": cities}


FRAMES = made_frames()


@pytest.fixture(scope="module")
def curator():
    """A study whose budget leaves next to no noise."""
    bounds = {"spent": (0, 101), "age": (0, 100), "price": (0, 100), "day": ("2023-01-01", "2025-01-01")}
    bounds |= {"at": ("2023-01-01", "2025-01-01")}
    with cu.open(
        FRAMES,
        unit={"visits": "user_id", "people": "user_id"},
        public=["cities"],
        budget=cu.Budget(epsilon=10**6, delta=1e-6),
        bounds={f"visits.{name}": ends for name, ends in bounds.items()} | {"people.born": (1900, 2020)},
        values={"visits.city": ["Lima", "Quito", "Cusco"], "people.sex": ["f", "m"]},
        caps={"visits": {"rows": EACH, "groups": EACH}, "people": {"rows": 1}},
        ledger=":memory:",
        engine={"worker": "inline"},
    ) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain():
    """The same rows in a DuckDB that answers exactly."""
    connection = duckdb.connect()
    for name, frame in FRAMES.items():
        connection.register(name, frame.to_arrow())
    return connection


UNBOUND = {
    "visits": ibis.table(
        {
            "user_id": "int64", "city": "string", "age": "int64", "spent": "float64", "price": "decimal", "day": "date",
            "at": "timestamp", "member": "boolean",
        },
        name="visits",
    ),
    "people": ibis.table({"user_id": "int64", "born": "int64", "sex": "string"}, name="people"),
    "cities": ibis.table({"city": "string", "country": "string", "size": "int64"}, name="cities"),
}  # fmt: skip
ANSWERED = ibis_expressions.answered(*UNBOUND.values())
REFUSED = ibis_expressions.refused(*UNBOUND.values())


def near(one, other, reach):
    """Whether two values are the same, numbers up to a reach."""
    if isinstance(one, (int, float)) and not isinstance(one, bool) and isinstance(other, (int, float)):
        return abs(one - other) <= reach + 1e-6 * max(1, abs(other))
    return one == other


def width_of(part):
    """The widest interval of a column of numbers; 0 of keys and dates."""
    ends = [] if part.low is None else list(zip(part.low, part.high, strict=True))
    return max(
        (high - low for low, high in ends if isinstance(low, (int, float)) and isinstance(high, (int, float))), default=0
    )


def plain_value(value):
    """A value of DuckDB as one of an answer."""
    if hasattr(value, "as_tuple"):
        return float(value)
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date()
    return None if isinstance(value, float) and math.isnan(value) else value


def test_tables_are_what_the_schema_shows(curator):
    """The expressions of this file are over the tables that the curator makes."""
    assert len(ANSWERED) >= 150
    for name, table in UNBOUND.items():
        assert curator.table(name).equals(table)


@pytest.mark.parametrize("name", ANSWERED)
def test_an_expression_is_answered_as_duckdb_answers_it(curator, plain, name):
    """Keys are the same, and every number is within five half widths of its interval."""
    expression = ANSWERED[name]
    answer = curator.ask(expression, spend="0.1%")
    found = plain.execute(str(ibis.to_sql(expression, dialect="duckdb")))
    true = [tuple(map(plain_value, row)) for row in found.fetchall()]
    assert [part.name for part in answer.parts] == [one[0] for one in found.description]
    rows = [tuple(map(plain_value, row)) for row in zip(*(part.values for part in answer.parts), strict=True)]
    keys = [place for place, part in enumerate(answer.parts) if part.low is None and not part.unproved]
    step = STEP if "quantile" in name or "median" in name else 0
    reach = [CLOSE * width_of(part) / 2 + step + (0.1 if part.unproved else 0) for part in answer.parts]

    def order(row):
        return [repr(row[place]) for place in keys]

    if keys:
        rows, true = sorted(rows, key=order), sorted(true, key=order)
        there = {repr(order(row)) for row in true}
        empty = [row for row in rows if repr(order(row)) not in there]  # known keys that no row has
        first = next(place for place in range(len(reach)) if place not in keys)
        assert all(near(row[first], 0, reach[first]) for row in empty)
        rows = [row for row in rows if repr(order(row)) in there]
    assert len(rows) == len(true)
    for ours, exact in zip(rows, true, strict=True):
        assert all(near(one, other, most) for one, other, most in zip(ours, exact, reach, strict=True)), (ours, exact, reach)


@pytest.mark.parametrize("name", REFUSED)
def test_an_expression_is_refused_as_its_text_is(curator, name):
    """What is no question here costs nothing, whoever wrote the text."""
    expression, words = REFUSED[name]
    before = curator.budget.spent
    with pytest.raises(Refused) as refusal:
        curator.ask(expression, spend="0.1%")
    assert words in str(refusal.value)
    assert curator.budget.spent == before
