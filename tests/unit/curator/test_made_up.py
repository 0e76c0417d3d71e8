"""Made-up rows keep what a study declares, and are made of nothing else."""

from __future__ import annotations

import ast
import datetime as dt
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

import curador
from curador.curator.made_up import NULLS, PUBLIC_ROWS, guessed_types, make_private, make_public, with_assumed_caps
from curador.study.model import Budget, Caps, Column, Study, Table, UnitColumn, UnitPath, UnitRow
from curador.study.values import Type
from parsed import nodes_of

UNITS = 2_000
DAYS = (dt.date(2015, 1, 1), dt.date(2015, 1, 31))
MOMENTS = (dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 12))  # noqa: DTZ001 -- timestamps have no zone


def study(*tables, **changes):
    return Study("made", tables, Budget(epsilon=3, delta="1e-6"), Path("made.ledger"), **changes)


COLUMNS = (
    Column("kind", Type.STRING, values=("b", "a", "c"), nullable=False),
    Column("kind_or_null", Type.STRING, values=("b", "a"), nullable=True),
    Column("age", Type.INTEGER, bounds=(18, 20)),
    Column("far", Type.INTEGER, bounds=(-(2**62), 2**62), nullable=False),
    Column("spent", Type.FLOAT, bounds=(0, 500), nullable=False),
    Column("huge", Type.FLOAT, bounds=(-(10**300), 10**300), nullable=False),
    Column("rate", Type.DECIMAL, bounds=(0, Fraction(1, 3)), nullable=False),
    Column("price", Type.DECIMAL, values=(Fraction(1, 10), Fraction(1, 4)), nullable=False),
    Column("day", Type.DATE, bounds=DAYS, nullable=False),
    Column("at", Type.TIMESTAMP, bounds=MOMENTS, nullable=False),
    Column("ever", Type.DATE, bounds=(dt.date(1, 1, 1), dt.date(9999, 12, 31)), nullable=False),
    Column("yes", Type.BOOLEAN, nullable=False),
    Column("free", Type.STRING, nullable=False),
    Column("short", Type.STRING, length=1, nullable=False),
    Column("number", Type.INTEGER, nullable=False),
    Column("some_day", Type.DATE, nullable=False),
    Column("some_time", Type.TIMESTAMP, nullable=False),
)
VISITS = Table("visits", "visits.parquet", UnitColumn("user_id"), COLUMNS, caps=Caps(rows=3))
ORDERS = (
    Table("customers", "c.parquet", UnitColumn("c_id"), (), unique=True),
    Table("orders", "o.parquet", UnitPath("o_customer", "customers"), (), caps=Caps(rows=4)),
    Table("lines", "l.parquet", UnitPath("l_order", "orders", "o_id"), (), caps=Caps(rows=5)),
)


def made(declared, *, units=UNITS, seed=1):
    return {name: table.to_pydict() for name, table in make_private(declared, units=units, seed=seed).items()}


@pytest.fixture(scope="module")
def visits():
    return made(study(VISITS))["visits"]


@pytest.mark.parametrize("column", [column for column in COLUMNS if column.bounds is not None], ids=lambda one: one.name)
def test_values_lie_between_their_bounds(visits, column):
    """All of them, and they reach far into the range: made-up sums are not those of one value."""
    lower, upper = column.bounds
    found = [value for value in visits[column.name] if value is not None]
    exact = [Fraction(value) if isinstance(value, float) else value for value in found]

    assert all(lower <= value <= upper or float(lower) <= value <= float(upper) for value in exact)
    assert len(set(found)) >= 3
    assert {type(value) for value in found} == {type(found[0])}


def test_declared_values_all_stand_there_and_no_other(visits):
    """Known keys are known: every one is there."""
    assert set(visits["kind"]) == {"a", "b", "c"}
    assert set(visits["price"]) == {0.1, 0.25}
    assert set(visits["yes"]) == {False, True}


def test_null_stands_where_it_may(visits):
    """A share of about NULLS there: 20 standard deviations around it; nowhere else."""
    rows = len(visits["kind"])
    reach = 20 * (NULLS * (1 - NULLS) / rows) ** 0.5
    assert visits["kind"].count(None) == 0
    for name in ("kind_or_null", "age"):
        assert abs(visits[name].count(None) / rows - NULLS) < reach


def test_unknown_texts_are_keys_by_number(visits):
    """Nobody takes them for real ones; a declared length is kept."""
    assert {"key 1", "key 2", "key 12"} <= set(visits["free"])
    assert all(text.startswith("key ") for text in visits["free"])
    assert all(len(text) == 1 for text in visits["short"])
    assert set(visits["number"]) == set(range(1, 13))


def test_no_unit_has_more_rows_than_its_cap(visits):
    """And some reach it."""
    counts = Counter(visits["user_id"])
    assert max(counts.values()) == 3
    assert min(counts) >= 1
    assert max(counts) <= UNITS


def test_references_lead_to_rows():
    """Every order is of a customer who exists, every line of an order; keys are unique; caps are of one customer."""
    tables = made(study(*ORDERS))
    customers, orders, lines = tables["customers"], tables["orders"], tables["lines"]
    assert len(set(customers["c_id"])) == len(customers["c_id"]) == UNITS
    assert set(orders["o_customer"]) <= set(customers["c_id"])
    assert len(set(orders["o_id"])) == len(orders["o_id"])
    assert set(lines["l_order"]) <= set(orders["o_id"])
    whose = dict(zip(orders["o_id"], orders["o_customer"], strict=True))
    assert max(Counter(whose[order] for order in lines["l_order"]).values()) == 5
    assert max(Counter(orders["o_customer"]).values()) == 4
    assert len({whose[order] for order in lines["l_order"]}) > UNITS / 10


@pytest.mark.parametrize(
    ("tables", "unique"),
    [
        ((Table("t", "t", UnitRow(), (Column("id", Type.STRING),)), Table("u", "u", UnitPath("x", "t", "id"))), ("t", "id")),
        ((Table("t", "t", UnitColumn("id")), Table("u", "u", UnitPath("x", "t", "id"))), ("t", "id")),
        (
            (
                Table("t", "t", UnitColumn("id"), (Column("k", Type.INTEGER, values=(7, 8, 9)),)),
                Table("u", "u", UnitPath("x", "t", "k")),
            ),
            ("t", "k"),
        ),
        (
            (
                Table("t", "t", UnitColumn("id")),
                Table("u", "u", UnitPath("x", "t", "k")),
                Table("v", "v", UnitPath("y", "u", "x")),
            ),
            ("u", "x"),
        ),
        ((Table("t", "t", UnitColumn("id"), unique=True), Table("u", "u", UnitPath("x", "t"), unique=True)), ("u", "x")),
    ],
    ids=["key of rows", "the unit itself", "few values", "key of a key", "unique reference"],
)
def test_what_must_be_unique_is(tables, unique):
    """Whatever kind of column it is that others refer to."""
    table, column = unique
    found = made(study(*tables))
    assert len(found[table][column]) == len(set(found[table][column])) > 0
    for other in tables:
        assert len(next(iter(found[other.name].values()))) > 0


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (Column("id", Type.STRING, values=("x", "y")), {"x", "y"}),
        (Column("id", Type.INTEGER, bounds=(5, 7)), {5, 6, 7}),
        (Column("id", Type.STRING, length=1), set("123456789")),
    ],
)
def test_units_are_those_that_are_declared(column, names):
    """There are no more of them than their column allows, nor than max_units."""
    declared = study(Table("t", "t", UnitColumn("id"), (column,), unique=True))
    assert set(made(declared)["t"]["id"]) == names
    assert len(made(study(*declared.tables, max_units=2))["t"]["id"]) == 2


def test_a_type_that_is_not_declared_is_that_of_the_other_end():
    """And it is said which one was taken."""
    orders = Table("orders", "o", UnitPath("customer", "customers"))
    customers = Table("customers", "c", UnitColumn("id"), (Column("id", Type.STRING),), unique=True)
    declared = study(orders, customers)
    assert set(made(declared, units=3)["orders"]["customer"]) <= {"unit 1", "unit 2", "unit 3"}
    assert guessed_types(declared, customers) == {}
    assert guessed_types(declared, orders) == {
        "customer": "made up: assumes that orders.customer is of type string, as the study does not say"
    }
    assert "type integer" in guessed_types(study(*ORDERS), ORDERS[0])["c_id"]


def test_the_seed_decides_everything():
    """The same file gives the same rows to everybody; a table more changes no other; another seed gives others."""
    other = Table("other", "other", UnitColumn("user_id"))
    assert made(study(VISITS))["visits"] == made(study(other, VISITS))["visits"]
    assert made(study(VISITS))["visits"] != made(study(VISITS), seed=2)["visits"]


def test_a_public_table_that_is_absent_has_unique_keys():
    """Also of several columns; values come from columns of the same name, so that joins find rows."""
    cities = Table("cities", "c.csv", None, (Column("rain", Type.FLOAT),), key=("kind", "day", "zone"))
    declared = study(VISITS, cities)
    found = make_public(declared, cities, seed=1).to_pydict()
    rows = list(zip(found["kind"], found["day"], found["zone"], strict=True))
    assert len(rows) == len(set(rows)) == PUBLIC_ROWS
    assert set(found["kind"]) == {"a", "b", "c"}
    assert all(DAYS[0] <= day <= DAYS[1] for day in found["day"])
    few = Table("few", "few.csv", None, (), key=("kind",))
    assert make_public(study(VISITS, few), few, seed=1).to_pydict() == {"kind": ["b", "a", "c"]}


def test_a_table_of_which_no_column_is_known_has_rows():
    """COUNT(*) needs no name."""
    table = make_private(study(Table("t", "t.parquet", UnitRow())), units=7, seed=1)["t"]
    assert len(table) == 7


def test_caps_that_nobody_declared_are_said():
    """They are assumed in one function; declared caps, unique tables and rows as units need none."""
    bare = Table("bare", "bare.parquet", UnitColumn("id"))
    assert "assumes at most 16 rows per customer in bare" in with_assumed_caps(bare, "customer")[1]
    for table in (VISITS, ORDERS[0], Table("t", "t", UnitRow()), Table("p", "p", None)):
        assert with_assumed_caps(table, "customer") == (table, None)


ALLOWED = {"curador.study", "datetime", "math", "dataclasses", "typing", "numpy", "pyarrow", "__future__", "collections"}


def strangers(text):
    """Modules that a module which makes rows up may not import, and what it may not call."""
    for node in nodes_of(text):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (name for name in names if not any(name == one or name.startswith(f"{one}.") for one in ALLOWED))
            if "pyarrow" in names and isinstance(node, ast.ImportFrom):
                yield "pyarrow"  # its readers
        match node:
            case ast.Name(id="open") | ast.Attribute(attr="frames" | "folder" | "source" | "ledger"):
                yield getattr(node, "attr", "open")


def test_rows_are_made_of_declarations_only():
    """No engine, no file, no frame, no source can be reached from here."""
    path = Path(curador.__file__).parent / "curator" / "made_up.py"
    assert list(strangers(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "from curador.engines.base import engine_kind",
        "from pyarrow import parquet",
        "from pathlib import Path",
        "x = open('visits.parquet')",
        "x = study.frames['visits']",
        "x = table.source",
    ],
)
def test_another_way_to_rows_is_caught(text):
    """The check itself can fail."""
    assert list(strangers(text))
