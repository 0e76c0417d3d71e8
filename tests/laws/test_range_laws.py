"""Ranges hold whatever a row can be: random expressions, evaluated exactly at random rows inside the declared bounds."""

import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.plan.domains import Ranges
from curador.plan.model import CELL_STEPS, SUM_STEPS, grid_between
from curador.query.tree import Call, Literal, Out, Ref, Scan
from curador.study.model import Budget, Column, Field, Schema, Study, Table, TableSchema, UnitColumn
from curador.study.values import Type

pytestmark = pytest.mark.slow

BOUNDS = [(Fraction(0), Fraction(10)), (Fraction(-3), Fraction(7)), (Fraction(2), Fraction(5)), (Fraction(-5), Fraction(-2))]


def study_of(bounds):
    columns = tuple(Column(f"x{place}", Type.FLOAT, pair) for place, pair in enumerate(bounds))
    table = Table("t", "t.parquet", UnitColumn("u"), columns)
    study = Study("s", (table,), Budget(epsilon=1), Path("l"))
    return Schema(study, (TableSchema(table, tuple(Field(c.name, c.type, True, c) for c in columns)),), None)


SCHEMA = study_of(BOUNDS)
SCAN = Scan("t", tuple(Out(f"x{place}", Type.FLOAT, True, ("t", f"x{place}")) for place in range(len(BOUNDS))))


def value(node, row):
    """The exact value, None for NULL."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Ref):
        return row[node.index]
    held = [value(one, row) for one in node.arguments]
    if node.function == "coalesce":
        return next((one for one in held if one is not None), None)
    if node.function in {"least", "greatest"}:
        present = [one for one in held if one is not None]
        return (min if node.function == "least" else max)(present) if present else None
    if node.function == "case":
        return held[1] if held[0] else held[2]
    if any(one is None for one in held):
        return None
    a, b = held[0], held[-1]
    match node.function:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b if b else None
        case "//":
            return Fraction(math.trunc(a / b)) if b else None
        case "%":
            return a - b * math.trunc(a / b) if b else None
        case "neg":
            return -a
        case "abs":
            return abs(a)
        case "floor":
            return Fraction(math.floor(a))
        case "ceil":
            return Fraction(math.ceil(a))
        case "sqrt":
            return Fraction(math.sqrt(a)) if a >= 0 else None
        case "exp":
            return Fraction(math.exp(a)) if a < 700 else None
        case "ln":
            return Fraction(math.log(a)) if a > 0 else None
        case "nullif":
            return None if a == b else a
        case "<":
            return a < b
    raise AssertionError(node.function)


LEAVES = st.one_of(
    st.integers(0, len(BOUNDS) - 1).map(lambda index: Ref(index, Type.FLOAT)),
    st.fractions(-4, 4, max_denominator=4).map(lambda number: Literal(number, Type.FLOAT)),
)


def grown(inner):
    binary = st.tuples(
        st.sampled_from(["+", "-", "*", "/", "//", "%", "least", "greatest", "coalesce", "nullif"]), inner, inner
    )
    unary = st.tuples(st.sampled_from(["neg", "abs", "floor", "ceil", "sqrt", "exp", "ln"]), inner)
    choice = st.tuples(inner, inner, inner, inner).map(
        lambda four: Call("case", (Call("<", four[:2], Type.BOOLEAN), *four[2:]), Type.FLOAT)
    )
    return st.one_of(
        binary.map(lambda three: Call(three[0], three[1:], Type.FLOAT)),
        unary.map(lambda two: Call(two[0], two[1:], Type.FLOAT)),
        choice,
    )


EXPRESSIONS = st.recursive(LEAVES, grown, max_leaves=6)


@st.composite
def rows(draw):
    inside = [draw(st.fractions(low, high, max_denominator=16)) for low, high in BOUNDS]
    return [None if draw(st.booleans()) and draw(st.booleans()) else one for one in inside]


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, rows())
def test_the_value_lies_in_the_range(expression, row):
    """Whatever an expression is made of, its value on a row within bounds lies in its range."""
    found, known = value(expression, row), Ranges(SCHEMA, 10).of(expression, SCAN)

    if found is not None:
        slack = Fraction(1, 10**9) * (1 + abs(found))  # the reference computes roots and exponentials in floats
        assert known.lower is None or known.lower <= found + slack
        assert known.upper is None or found - slack <= known.upper


@settings(max_examples=400, deadline=None)
@given(
    st.fractions(-(10**6), 10**6), st.fractions(0, 10**6), st.booleans(), st.sampled_from([SUM_STEPS, CELL_STEPS]), st.data()
)
def test_a_grid_holds_every_value_between_its_bounds(lower, width, whole, most, data):
    """v is within 0 … steps, and stands for a number within half a step of x."""
    lower = Fraction(math.floor(lower)) if whole else lower
    width = Fraction(math.floor(width)) if whole else width
    grid = grid_between(lower, lower + width, integer=whole, most=most)
    share = data.draw(st.fractions(0, 1))
    x = lower + (Fraction(math.floor(width * share)) if whole else width * share)
    v = math.floor(x / grid.step - grid.start + Fraction(1, 2))

    assert 0 <= v <= grid.steps <= most
    assert abs(grid.value(v) - x) <= grid.step / 2
    if whole and grid.exponent == 0:
        assert grid.value(v) == x


def test_a_range_that_forgets_the_sign_is_caught():
    """A product whose range were [lower · lower, upper · upper] would miss the value at a corner."""
    wrong = (BOUNDS[1][0] * BOUNDS[1][0], BOUNDS[1][1] * BOUNDS[1][1])
    row = [Fraction(0), Fraction(-3), Fraction(5), Fraction(-5)]
    product = Call("*", (Ref(1, Type.FLOAT), Ref(2, Type.FLOAT)), Type.FLOAT)

    assert not wrong[0] <= value(product, row) <= wrong[1]
