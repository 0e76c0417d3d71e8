"""Ranges that conditions narrow, by brute force: of all rows within their bounds none leaves the range it is planned with."""

import itertools
import random
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from plan_schemas import schema

from curador.errors import NotPrivate
from curador.plan.build import build_plan
from curador.plan.domains import Ranges
from curador.plan.functions import RANGES
from curador.plan.notes import bounding_notes
from curador.query.sql import parse
from curador.query.tree import Filter
from curador.study.model import Caps, Column, Table, UnitColumn
from curador.study.values import Type

INTEGER, FLOAT, STRING = Type.INTEGER, Type.FLOAT, Type.STRING
T = Table(
    "t",
    "t.parquet",
    UnitColumn("id"),
    caps=Caps(5),
    columns=(
        Column("a", INTEGER, (-3, 8)),
        Column("n", INTEGER, (0, 4), nullable=False),
        Column("x", FLOAT, (Fraction(-2), Fraction(10))),
        Column("e", STRING, values=tuple(map(str, range(1, 17))), nullable=False),
    ),
)
SCHEMA = schema([(T, {"id": INTEGER, "a": INTEGER, "n": INTEGER, "x": FLOAT, "e": STRING, "word": STRING})])
XS = [-2.0, -1.5, -0.1, 0.0, 0.5, 1.0, 2.5, 4.0, 9.75, 10.0, None]


@pytest.fixture(scope="module")
def everything():
    connection = duckdb.connect()
    rows = list(itertools.product([*range(-3, 9), None], range(5), XS, ["1", "9", "16"], ["a", "abc", "abcdefghij", None]))
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(["a", "n", "x", "e", "word"])})
    connection.register("held", table)
    connection.execute("CREATE TABLE t AS SELECT row_number() OVER () AS id, * FROM held")
    yield connection
    connection.close()


def planned(question):
    """Return the range of the one aggregate's argument."""
    block = parse(question, SCHEMA).blocks[0]
    aggregate = block.items[0].expression
    relation = block.relation if aggregate.filter is None else Filter(block.relation, aggregate.filter)
    return Ranges(SCHEMA, 5).of(aggregate.argument, relation)


NUMBERS = [
    "a",
    "n",
    "x",
    "a + n",
    "a * x",
    "ABS(x)",
    "x - a",
    "LENGTH(word)",
    "ROUND(x)",
    "GREATEST(a, n)",
    "x * x",
    "a // 2",
]
COMPARISONS = ["<", "<=", ">", ">=", "="]


def condition(dice):
    number, limit = dice.choice(NUMBERS), dice.choice(["0", "1", "2.5", "-1", "3", "7"])
    plain = f"{number} {dice.choice(COMPARISONS)} {limit}"
    return dice.choice(
        [
            plain,
            f"{limit} {dice.choice(COMPARISONS)} {number}",
            f"{number} BETWEEN 0 AND {limit}",
            f"{number} IN (0, 2, {limit})",
            f"NOT ({plain})",
            f"({plain} OR {dice.choice(NUMBERS)} > 2)",
            f"({plain} AND {dice.choice(NUMBERS)} < 3)",
        ]
    )


def argument(dice):
    number = dice.choice(NUMBERS)
    return dice.choice(
        [
            number,
            f"CASE WHEN {condition(dice)} THEN {number} END",
            f"CASE WHEN {condition(dice)} THEN {number} ELSE {dice.choice(NUMBERS)} END",
            f"CASE WHEN {condition(dice)} THEN {number} WHEN {condition(dice)} THEN {dice.choice(NUMBERS)} ELSE {number} END",
        ]
    )


def cases(count=250):
    dice = random.Random(3)
    for _ in range(count):
        yield argument(dice), dice.choice(["1 = 1", condition(dice), f"{condition(dice)} AND {condition(dice)}"])


def leaving(connection, number, where):
    """Return the values, as DuckDB has them, that leave the planned range."""
    known = planned(f"SELECT SUM({number}) FILTER (WHERE {where}) AS s FROM t")
    found = connection.execute(f"SELECT DISTINCT {number} AS v FROM t WHERE {where}").fetchall()
    lower, upper = (float(end) if end is not None else None for end in (known.lower, known.upper))
    values = [float(value) for (value,) in found if value is not None]
    return [v for v in values if (lower is not None and v < lower - 1e-9) or (upper is not None and v > upper + 1e-9)]


@pytest.mark.parametrize("count", [25, pytest.param(250, marks=pytest.mark.slow)])
def test_no_value_leaves_its_range(count, everything):
    """FILTER, and the conditions of CASE arms, taken and not taken."""
    assert [(number, where) for number, where in cases(count) if leaving(everything, number, where)] == []


def test_an_arm_narrowed_wrongly_is_seen(monkeypatch, everything):
    """The brute force itself can fail: an arm that is narrowed by the condition of another one."""

    def wrong(call, ranges, relation):
        return ranges.of(call.arguments[-1], Filter(relation, call.arguments[0]))

    monkeypatch.setitem(RANGES, "case", wrong)
    assert any(leaving(everything, number, where) for number, where in cases())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("SELECT AVG(CASE WHEN x BETWEEN 1 AND 2 THEN x END) AS m FROM t", (1, 2)),
        ("SELECT AVG(x) FILTER (WHERE x BETWEEN 1 AND 2) AS m FROM t", (1, 2)),
        ("SELECT SUM(CASE WHEN a > 5 THEN 5 ELSE a END) AS s FROM t", (-3, 5)),
        ("SELECT SUM(CASE WHEN a > 0 THEN a WHEN a < 0 THEN -a ELSE 0 END) AS s FROM t", (0, 8)),
        ("SELECT SUM(CASE WHEN NOT (a >= 2) THEN 2 ELSE a END) AS s FROM t", (2, 8)),
        ("SELECT AVG(n) AS m FROM t WHERE n > 0", (1, 4)),
        ("SELECT AVG(n) AS m FROM t WHERE 2.5 > n", (0, 2)),
        ("SELECT AVG(x) AS m FROM t WHERE x > 0", (0, 10)),
        ("SELECT AVG(x / n) AS m FROM t WHERE n > 0", (-2, 10)),
        ("SELECT AVG(CAST(e AS INTEGER)) AS m FROM t WHERE CAST(e AS INTEGER) BETWEEN 9 AND 16", (9, 16)),
        ("SELECT AVG(LENGTH(word)) FILTER (WHERE LENGTH(word) <= 7) AS m FROM t", (0, 7)),
        ("SELECT AVG(a * n) AS m FROM t WHERE a * n <= 3", (-12, 3)),
        ("SELECT AVG(IF(a < 3, a, NULL)) AS m FROM t", (-3, 2)),
    ],
)
def test_conditions_narrow(question, expected):
    """Expressions as columns, arms by their conditions, whole numbers to the next."""
    known = planned(question)
    assert (known.lower, known.upper) == expected


def test_numbers_made_of_declared_texts_are_bounded_by_their_image():
    """Sixteen texts are sixteen numbers."""
    notes = build_plan(parse("SELECT AVG(CAST(e AS INTEGER)) AS m FROM t", SCHEMA), SCHEMA).blocks[0].notes
    assert notes[0].startswith("e::integer in [1, 16]")
    notes = build_plan(parse("SELECT AVG(LENGTH(CONCAT(e, e))) AS m FROM t", SCHEMA), SCHEMA).blocks[0].notes
    assert notes[0].startswith("length(concat(e, e)) in [2, 4]")
    with pytest.raises(NotPrivate, match="needs both bounds"):
        build_plan(parse("SELECT AVG(CAST(word AS INTEGER)) AS m FROM t", SCHEMA), SCHEMA)


def test_a_case_has_the_noise_of_its_filter():
    """The same measurements, to the last digit."""
    plans = [
        build_plan(parse(question, SCHEMA), SCHEMA).blocks[0]
        for question in (
            "SELECT AVG(CASE WHEN x BETWEEN 1 AND 2 THEN x END) AS m FROM t",
            "SELECT AVG(x) FILTER (WHERE x BETWEEN 1 AND 2) AS m FROM t",
        )
    ]
    first, second = ([(one.l1, one.l2_squared, one.grid) for one in block.measurements] for block in plans)
    assert first == second


IMPOSSIBLE = {
    "a < -3": True,
    "a < -2": False,
    "a <= -4": True,
    "x > 10": True,
    "x >= 10": False,
    "n IN (7, 9)": True,
    "n IN (4, 9)": False,
    "5 < n": True,
    "n * n > 17": True,
    "n < 3 AND a = 9": True,
    "n < 3 OR a = 9": False,
}


@pytest.mark.parametrize("condition", IMPOSSIBLE)
def test_what_no_value_fulfils_is_told(everything, condition):
    """As brute force over all rows within their bounds has it; a function of the study."""
    for text in (f"SELECT COUNT(*) AS c FROM t WHERE {condition}", f"SELECT COUNT(*) FILTER (WHERE {condition}) AS c FROM t"):
        plan = build_plan(parse(text, SCHEMA), SCHEMA)
        told = [line for line in bounding_notes(plan, SCHEMA) if "fulfils" in line]
        assert bool(told) == IMPOSSIBLE[condition]
        assert tuple(told) == bounding_notes(plan, SCHEMA)[: len(told)]  # first, as nothing below it matters then
    held = everything.sql(f"SELECT COUNT(*) FROM t WHERE {condition}").fetchall()[0][0]
    assert held == 0 or not IMPOSSIBLE[condition]
