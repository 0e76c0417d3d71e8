"""Aggregates of the same rows share one count: a product is there where both of its columns are."""

from dataclasses import replace
from fractions import Fraction

import pytest
from plan_schemas import schema

from curador.plan.build import build_plan
from curador.query.sql import parse
from curador.study.model import Caps, Column, Table, UnitColumn
from curador.study.values import Type

INTEGER, FLOAT = Type.INTEGER, Type.FLOAT
T = Table(
    "t",
    "t.parquet",
    UnitColumn("id"),
    caps=Caps(5),
    columns=(
        Column("x", FLOAT, (Fraction(0), Fraction(10))),
        Column("y", FLOAT, (Fraction(0), Fraction(10))),
        Column("n", INTEGER, (0, 4), nullable=False),
        Column("m", INTEGER, (0, 4), nullable=False),
        Column("far", INTEGER, nullable=False),
    ),
)
SCHEMA = schema([(T, {"id": INTEGER, "x": FLOAT, "y": FLOAT, "n": INTEGER, "m": INTEGER, "far": INTEGER})])


def kinds(column, about=SCHEMA):
    """Names of what is measured for a column."""
    plan = build_plan(parse(f"SELECT {column} AS a FROM t", about), about)
    return sorted(one.name for block in plan.blocks for one in block.measurements)


@pytest.mark.parametrize(
    ("column", "measured"),
    [
        ("COVAR_POP(x, y)", ["centred", "centred", "centred", "count"]),
        ("REGR_SLOPE(x, y)", ["centred", "centred", "centred", "count", "squares"]),
        ("CORR(x, y)", ["centred", "centred", "centred", "count", "squares", "squares"]),
        ("AVG(n * m - n) + COUNT(*)", ["centred", "count"]),
        ("AVG(x * y) - AVG(n)", ["centred", "centred", "count", "count"]),
        ("COUNT(n * far) + AVG(n)", ["centred", "count", "count"]),
    ],
)
def test_what_has_the_same_rows_has_one_count(column, measured):
    """A product that may be NULL by itself keeps its own, and so does one that may be too large for a number."""
    assert kinds(column) == measured


def test_plans_as_they_once_were_keep_their_counts():
    """What was paid for is found by its older key."""
    assert len(kinds("COVAR_POP(x, y)", replace(SCHEMA, older=True))) == len(kinds("COVAR_POP(x, y)")) + 1
