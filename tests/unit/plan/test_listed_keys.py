"""Lists of keys, by brute force: the table of people holds every row that is declared, so what DuckDB finds is the image."""

import datetime as dt
import itertools
import random

import duckdb
import pyarrow as pa
import pytest
from plan_schemas import schema

from curador.engines.duckdb.images import compute_images
from curador.plan import listing
from curador.plan.build import build_plan
from curador.plan.listing import FiniteColumn
from curador.plan.model import count_combinations
from curador.query.sql import parse
from curador.study.model import Caps, Column, Table, UnitColumn
from curador.study.values import Type

INTEGER, STRING, BOOLEAN, DATE = Type.INTEGER, Type.STRING, Type.BOOLEAN, Type.DATE
DAYS = (dt.date(2023, 12, 30), dt.date(2024, 2, 1))
DAY_LIST = [dt.date.fromordinal(day) for day in range(DAYS[0].toordinal(), DAYS[1].toordinal() + 1)]

T = Table(
    "t",
    "t.parquet",
    UnitColumn("id"),
    caps=Caps(5),
    columns=(
        Column("a", INTEGER, (-3, 12)),
        Column("n", INTEGER, (0, 4), nullable=False),
        Column("s", STRING, values=("x", "y", "z"), nullable=False),
        Column("r", STRING, values=("u", "v")),
        Column("d", DATE, DAYS, nullable=False),
    ),
)
COLUMNS = {"id": INTEGER, "a": INTEGER, "n": INTEGER, "s": STRING, "r": STRING, "g": BOOLEAN, "d": DATE, "free": STRING}
PUBLIC = {
    "p": pa.table({"s": ["x", "x", "y", "q", None], "m": [1, 2, 2, 3, 3]}),
    "q": pa.table({"m": [1, 2, 2, 4], "w": ["one", "two", "deux", "four"]}),
}


class Facts:
    """Public tables that are there."""

    def multiplicity(self, _table, _columns):
        return 5

    def distinct(self, table, column, _most):
        return tuple(dict.fromkeys(PUBLIC[table].column(column).to_pylist()))

    def longest(self, _table, _column):
        return 40

    def images(self, listing, most):
        return compute_images(listing, most, self._rows)

    @staticmethod
    def _rows(source, _most):
        table = PUBLIC[source.table]
        held = {f"c{place}": table.column(column) for place, column in enumerate(source.columns)}
        return pa.table(held or {"c0": [1]})


SCHEMA = schema(
    [
        (T, COLUMNS),
        (Table("p", "p.parquet", None), {"s": STRING, "m": INTEGER}),
        (Table("q", "q.parquet", None), {"m": INTEGER, "w": STRING}),
    ],
    public=Facts(),
)


@pytest.fixture(scope="module")
def everything():
    """Every row that can be; no two columns with many values are asked for at once."""
    connection = duckdb.connect()
    rows = itertools.product([*range(-3, 13), None], range(5), "xyz", ["u", "v", None], [True, False, None], [DAYS[0]])
    few = itertools.product([0, 5, None], [0, 1], "xyz", ["u", None], [True], DAY_LIST)
    names = ["a", "n", "s", "r", "g", "d"]
    for name, held in (("t", [*rows, *few]),):
        table = pa.table({column: [row[place] for row in held] for place, column in enumerate(names)})
        connection.register(f"{name}_rows", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT row_number() OVER () AS id, * FROM {name}_rows")
    for name, table in PUBLIC.items():
        connection.register(name, table)
    yield connection
    connection.close()


def listed(question):
    """Return all tuples that the plan lists; None where a key is selected privately."""
    block = build_plan(parse(question, SCHEMA), SCHEMA).blocks[0]
    if any(key.values is None for key in block.keys):
        return None
    found = set()
    for row in itertools.product(*(key.values for key in block.keys)):
        if all(tuple(row[place] for place in one.places) in one.rows for one in block.joint):
            found.add(row)
    assert len(found) == count_combinations(block.keys, block.joint)
    return found


def image(connection, question):
    """Return the keys that DuckDB finds where every row is there."""
    rows = connection.execute(question).fetchall()
    return {tuple(row[:-1]) for row in rows}


def asked(keys, source, where=""):
    names = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys))
    groups = ", ".join(str(place + 1) for place in range(len(keys)))
    return f"SELECT {names}, COUNT(*) AS n FROM {source}{f' WHERE {where}' if where else ''} GROUP BY {groups}"


PEOPLE_KEYS = [
    "a",
    "n",
    "s",
    "r",
    "t.g",
    "FLOOR(a / 5) * 5",
    "n % 2",
    "a - n",
    "CASE WHEN a > 4 THEN 'many' WHEN n = 0 THEN 'none' END",
    "COALESCE(r, s)",
    "a > 3",
    "a IS NULL",
    "UPPER(t.s)",
    "CAST(n AS VARCHAR)",
    "GREATEST(a, n)",
    "NULLIF(n, 2)",
]
DAY_KEYS = ["d", "EXTRACT(month FROM d)", "DATE_TRUNC('month', d)", "EXTRACT(dow FROM d)", "EXTRACT(year FROM d) * 100"]
PEOPLE_CONDITIONS = [
    "",
    "a > 2 AND a <= 5",
    "t.s <> 'y'",
    "n > 0",
    "a IS NOT NULL",
    "a < n",
    "a % 2 = 0 OR n = 1",
    "r IN ('u', 'w')",
    "NOT (t.g AND a > 0)",
]
PUBLIC_SOURCES = [
    ("t JOIN p ON t.s = p.s", ["p.m", "p.s"]),
    ("t LEFT JOIN p ON t.s = p.s", ["p.m", "p.s"]),
    ("t JOIN p ON t.s = p.s JOIN q ON p.m = q.m", ["q.w", "p.m", "p.s"]),
    ("t JOIN p ON t.s = p.s LEFT JOIN q ON p.m = q.m", ["q.w", "p.m"]),
    ("t LEFT JOIN p ON t.s = p.s LEFT JOIN q ON p.m = q.m AND q.w <> 'two'", ["q.w", "p.m"]),
    ("t JOIN q ON t.n = q.m", ["q.w", "q.m % 2"]),
    ("(SELECT id, s, COALESCE(a, 0) AS z, n FROM t) t LEFT JOIN q ON t.n = q.m", ["q.w", "t.z // 4"]),
]
PUBLIC_CONDITIONS = ["", "q.w = 'two'", "q.w IS NULL", "q.m > 1", "q.w LIKE '%o%' OR q.m = 1"]


def random_cases(count):
    dice = random.Random(11)
    for _ in range(count):
        if dice.random() < 0.5:
            yield asked(dice.sample(PEOPLE_KEYS, dice.choice([1, 1, 2, 3])), "t", dice.choice(PEOPLE_CONDITIONS))
            continue
        source, keys = dice.choice(PUBLIC_SOURCES)
        where = dice.choice(PUBLIC_CONDITIONS)
        where = "" if "q.w" in where and " q " not in source else where
        where = "" if "q.m" in where and " q " not in source else where
        yield asked(dice.sample(keys, dice.choice([1, len(keys)])), source, where)


@pytest.mark.parametrize("question", list(dict.fromkeys(random_cases(150))))
def test_every_key_is_listed(question, everything):
    """No group of any data is missing."""
    found = listed(question)
    assert found is not None
    assert image(everything, question) <= found


@pytest.mark.parametrize(
    "keys", [*([key] for key in PEOPLE_KEYS), ["a", "n % 2"], ["a // 4", "a % 4"], ["a", "a > 3"], ["n", "s"]]
)
@pytest.mark.parametrize("where", PEOPLE_CONDITIONS)
def test_keys_of_people_are_the_image(keys, where, everything):
    """Nothing is listed that no row has, where all conditions are about the columns of the keys."""
    about = [
        name for name in ("a", "n", "s", "r", "g") if name in where.replace("AND", "").replace("IS", "").replace("OR", "")
    ]
    question = asked(keys, "t", where)
    if all(name in " ".join(keys) for name in about):
        assert listed(question) == image(everything, question)


@pytest.mark.parametrize("key", DAY_KEYS)
@pytest.mark.parametrize(
    "where", ["", "d >= DATE '2024-01-01'", "d < DATE '2024-01-01'", "d > DATE '2024-01-30'", "EXTRACT(day FROM d) = 31"]
)
def test_days_are_the_image(key, where, everything):
    """Days are enumerated, and conditions hold to the day."""
    question = asked([key], "t", where)
    assert days(listed(question)) == days(image(everything, question))


def days(rows):
    """Return dates and midnights alike, as texts."""
    return {tuple(str(value).removesuffix(" 00:00:00") for value in row) for row in rows}


@pytest.mark.parametrize(
    ("source", "keys", "where", "expected"),
    [
        ("t JOIN p ON t.s = p.s", ["p.s", "p.m"], "", {("x", 1), ("x", 2), ("y", 2), ("q", 3), (None, 3)}),
        ("t JOIN p ON t.s = p.s", ["p.m"], "p.s = 'x'", {(1,), (2,)}),
        ("t LEFT JOIN p ON t.s = p.s", ["p.s", "p.m"], "p.m <= 2", {("x", 1), ("x", 2), ("y", 2)}),
        ("t LEFT JOIN q ON t.n = q.m", ["q.w"], "", {("one",), ("two",), ("deux",), ("four",), (None,)}),
        ("t LEFT JOIN q ON t.n = q.m", ["q.m", "q.w"], "q.m > 1", {(2, "two"), (2, "deux"), (4, "four")}),
        (
            "t JOIN p ON t.s = p.s JOIN q ON p.m = q.m",
            ["p.s", "q.w"],
            "",
            {("x", "one"), ("x", "two"), ("x", "deux"), ("y", "two"), ("y", "deux")},
        ),
        (
            "t JOIN p ON t.s = p.s LEFT JOIN q ON p.m = q.m",
            ["p.m", "q.w"],
            "",
            {(1, "one"), (2, "two"), (2, "deux"), (3, None)},
        ),
        ("t JOIN p ON t.s = p.s", ["p.m"], "p.s = t.r", {(1,), (2,), (3,)}),
        ("t JOIN p ON t.s = p.s", ["p.m"], "p.m IN (SELECT m FROM q WHERE w = 'one')", {(1,)}),
        ("t JOIN p ON t.s = p.s", ["p.m", "t.g"], "p.m < 2 AND t.g", {(1, True)}),
    ],
)
def test_public_tuples_are_those_that_exist(source, keys, where, expected):
    """After public joins and public conditions, and the tuple of NULLs after LEFT JOIN; never a product of columns."""
    assert listed(asked(keys, source, where)) == expected


def test_branches_are_listed_each_by_itself(everything):
    """A UNION ALL has the keys of its branches, together."""
    source = "(SELECT id, n AS k, s AS l FROM t WHERE n > 3 UNION ALL SELECT id, n, r FROM t WHERE n < 1) u"
    question = asked(["k", "l"], source)
    assert listed(question) == image(everything, question) == {(4, "x"), (4, "y"), (4, "z"), (0, "u"), (0, "v"), (0, None)}


def test_keys_that_are_not_known_are_selected_privately():
    """A column of which nothing is declared, unless WHERE says what it is; too many whole numbers; one of two keys."""
    assert listed(asked(["free"], "t")) is None
    assert listed(asked(["free"], "t", "free IN ('a', 'b')")) == {("a",), ("b",)}
    assert listed(asked(["a * 1000 + n"], "t", "a >= 0")) == {(1000 * a + n,) for a in range(13) for n in range(5)}
    assert listed(asked(["a * 100 + n * 7 + EXTRACT(day FROM d) * 1001"], "t")) is None
    block = build_plan(parse(asked(["free", "a // 4", "a % 4"], "t"), SCHEMA), SCHEMA).blocks[0]
    assert [key.values is None for key in block.keys] == [True, False, False]
    assert [one.places for one in block.joint] == [(1, 2)]


def test_numbers_outside_are_moved_to_the_ends():
    """Bounds are promises: a key of a row beyond them is one that is listed."""
    block = build_plan(parse(asked(["FLOOR(a / 5) * 5"], "t"), SCHEMA), SCHEMA).blocks[0]
    assert block.keys[0].expression.function == "case"
    assert [one.value for one in block.keys[0].expression.arguments[1:4:2]] == [-5, 10]


def test_more_than_a_million_is_not_looked_through():
    """Conditions that tie too much are left out; keys that do are not listed."""
    wide = Table(
        "w",
        "w.parquet",
        UnitColumn("id"),
        caps=Caps(5),
        columns=(Column("a", INTEGER, (0, 2000)), Column("b", INTEGER, (0, 2000))),
    )
    own = schema([(wide, {"id": INTEGER, "a": INTEGER, "b": INTEGER})])
    question = "SELECT (a + b) % 3 AS k, COUNT(*) AS n FROM w GROUP BY 1"
    assert build_plan(parse(question, own), own).blocks[0].keys[0].values == (0, 1, 2, 3, None)  # by its range
    tied = build_plan(parse("SELECT a // 500 AS k, COUNT(*) AS n FROM w WHERE a < b GROUP BY 1", own), own).blocks[0].keys[0]
    assert tied.values == (0, 1, 2, 3, 4, None)


def test_a_forgotten_tuple_is_seen(monkeypatch, everything):
    """The brute force itself can fail: without the NULL of an absent side it does."""
    question = asked(["q.w"], "t LEFT JOIN q ON t.n = q.m")
    plain = listing.Lister._join  # noqa: SLF001 -- the bug is there
    monkeypatch.setattr(listing.Lister, "_join", lambda self, join, needed: plain(self, join, needed)[:1])
    assert not image(everything, question) <= listed(question)


def test_the_sizes_of_finite_columns_count_null():
    assert FiniteColumn(INTEGER, range(5), null=True, why="").size == 6


def test_tuples_stand_in_the_order_of_their_values():
    """Joins and sets give them in an order that is another in every process; one question has one plan."""
    question = "SELECT p.m, q.w, COUNT(*) AS n FROM t LEFT JOIN p ON t.s = p.s LEFT JOIN q ON p.m = q.m GROUP BY 1, 2"
    block = build_plan(parse(question, SCHEMA), SCHEMA).blocks[0]
    (one,) = block.joint
    assert one.rows == ((1, "one"), (2, "deux"), (2, "two"), (3, None), (None, None))
    orders = [block.keys[place].values for place in one.places]
    ranks = [tuple(order.index(value) for order, value in zip(orders, row, strict=True)) for row in one.rows]
    assert ranks == sorted(ranks)
