"""Tallies are the integers that Python's unbounded ones give over the same kept rows."""

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from lower_layout import (
    SCHEMA,
    STUDY,
    VISITS,
    B,
    F,
    I,
    S,
    block,
    by_key,
    call,
    connect,
    join,
    lit,
    multiset,
    one,
    prepare,
    project,
    raw,
    ref,
    rows_of,
    scan,
    schema_of,
    tally,
    where,
)
from lower_reference import evaluate
from lower_worlds import lit_tenths, standing, visits, world

from curador.engines.base import Tallied
from curador.engines.lower import aggregates as lowered_aggregates
from curador.engines.lower.block import collect, lower_block, lower_kept, lower_relation
from curador.engines.lower.sql import GeneratedSQL
from curador.errors import Failed
from curador.plan.model import Cap, Grid, Tally, column_grid, grid_between
from curador.query.tree import Aggregate, Call, Ref, UnitGroup
from curador.study.model import Column

V = scan("visits")
CITY, SPENT, SCORE, X, GOOD = (ref(V, name) for name in ("city", "spent", "score", "x", "good"))
SPENT_GRID, SCORE_GRID = column_grid(VISITS[2]), column_grid(VISITS[3])
COARSE = Grid(-3, 0, 4000)
LATE = call(">", ref(V, "moment"), ref(V, "day"))
TALLIES = (
    Tally("rows"),
    Tally("rows", SPENT),
    Tally("rows", None, GOOD),
    Tally("steps", SPENT, grid=SPENT_GRID),
    Tally("steps", SPENT, LATE, SPENT_GRID),
    Tally("steps", SCORE, grid=SCORE_GRID),
    Tally("steps", SPENT, grid=COARSE),
    Tally("steps", call("*", SPENT, SCORE, type_=F), grid=grid_between(Fraction(-2500), Fraction(2500), integer=False)),
    Tally("squares", SPENT, grid=SPENT_GRID, centre=SPENT_GRID.steps // 2, shift=9),
    Tally("squares", SCORE, GOOD, grid=SCORE_GRID, centre=5),
    Tally("units"),
    Tally("units", SCORE, GOOD),
    Tally("distinct", SCORE, most=2),
    Tally("distinct", ref(V, "day"), LATE, most=1),
    Tally("cells", SPENT, grid=COARSE),
    Tally("cells", SCORE, LATE, grid=SCORE_GRID),
)


# ---- a reference -------------------------------------------------------------------------------------------------------


def on_grid(x, grid):
    if x is None:
        return None
    if x in {float("inf"), float("-inf")}:
        return grid.steps if x > 0 else 0
    return min(max((Fraction(x) / grid.step - grid.start + Fraction(1, 2)).__floor__(), 0), grid.steps)


def kept_by_python(con, relation, cap, places):
    """The rows that count, chosen from the relation's own rows in its own order; hashes are the engine's."""
    keys = [f"c{place}" for place in places]
    chosen = f"hash({', '.join(['__h', *keys])})"
    units = {}
    for row in rows_of(con, f"SELECT *, {chosen} AS chosen FROM ({lower_relation(relation, SCHEMA)})"):
        units.setdefault(row["__h"], []).append(row)
    for rows in units.values():
        own = sorted(rows, key=lambda row: row["__o0"])
        if cap.by == "rank":
            own = [row for row in own if row["__o0"] <= cap.rows]
        elif cap.by == "window":
            own = own[: cap.rows]
        groups = sorted({(row["chosen"], *(str(row[name]) for name in keys)) for row in own})[: cap.groups]
        seen = Counter()
        for row in own:
            group = (row["chosen"], *(str(row[name]) for name in keys))
            seen[group] += group in groups
            if group in groups and (cap.in_group is None or seen[group] <= cap.in_group):
                yield row


def value(expression, row):
    return evaluate(expression, [row[f"c{place}"] for place in range(8)])


def counted(tally_, rows):
    """One tally over rows of one group."""
    rows = [row for row in rows if tally_.filter is None or value(tally_.filter, row) is True]
    if tally_.argument is not None:
        rows = [row for row in rows if value(tally_.argument, row) is not None]
    match tally_.kind:
        case "rows":
            return len(rows)
        case "units":
            return len({row["__h"] for row in rows})
        case "cells":
            return Counter(on_grid(value(tally_.argument, row), tally_.grid) for row in rows)
        case "steps":
            return sum(on_grid(value(tally_.argument, row), tally_.grid) for row in rows)
        case "squares":
            return sum(
                ((on_grid(value(tally_.argument, row), tally_.grid) - tally_.centre) ** 2) >> tally_.shift for row in rows
            )


def distinct(tally_, rows, con, keys):
    """Distinct values by group: at most `most` of a unit, by a hash of its own."""
    rows = [row for row in rows if tally_.filter is None or value(tally_.filter, row) is True]
    column = f"c{tally_.argument.index}"
    rows = [row for row in rows if row[column] is not None]
    kind = {"score": "BIGINT", "day": "DATE"}[V.columns[tally_.argument.index].name]
    units = {}
    for row in rows:
        units.setdefault(row["__h"], set()).add(row[column])
    found = {}
    for unit, values in units.items():
        order = {x: one(con, f"SELECT hash({unit}::UBIGINT, '{x}'::{kind})") for x in values}
        units[unit] = set(sorted(values, key=order.get)[: tally_.most])
    for row in rows:
        if row[column] in units[row["__h"]]:
            found.setdefault(tuple(row[f"c{place}"] for place in keys), set()).add(row[column])
    return {key: len(values) for key, values in found.items()}


def check(con, relation, cap, names, **options):
    plan = block(relation, cap, names, TALLIES)
    keys = [ref(relation, name).index for name in names]
    found = tally(con, plan, **options)
    rows = list(kept_by_python(con, relation, cap, keys))
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[f"c{place}"] for place in keys), []).append(row)
    if not names:
        groups = {(): rows}
    listed = list(zip(*found.keys, strict=True)) if names else [()]
    assert sorted(map(repr, listed)) == sorted(map(repr, groups))
    for place, tally_ in enumerate(TALLIES):
        if tally_.kind == "cells":
            cells = found.cells[place]
            have = {(listed[g], int(c)): int(n) for g, c, n in zip(cells.groups, cells.cells, cells.counts, strict=True)}
            want = {(key, cell): n for key, own in groups.items() for cell, n in counted(tally_, own).items()}
        else:
            have = dict(zip(listed, map(int, found.tallies[place]), strict=True))
            if tally_.kind == "distinct":
                want = dict.fromkeys(groups, 0) | distinct(tally_, rows, con, keys)
            else:
                want = {key: counted(tally_, own) for key, own in groups.items()}
        assert have == want, tally_


CAPS = [Cap(10**6, "none"), Cap(3, "window"), Cap(9, "window", 2, 2), Cap(5, "rank", 1), Cap(4, "rank", None, 2)]


@pytest.mark.parametrize("cap", CAPS, ids=str)
def test_tallies_are_those_of_python(cap):
    check(standing(), V, cap, ("city",))


@pytest.mark.slow
@pytest.mark.parametrize("names", [(), ("city",), ("city", "good"), ("day", "score"), ("spent",)])
@pytest.mark.parametrize("cap", CAPS, ids=str)
def test_whatever_the_keys(cap, names):
    rows = visits(people=30)
    rows += [
        (3, "Bern", float("inf"), 5, rows[0][4], rows[0][5], True, float("-inf")),
        (3, None, -5.0, None, rows[0][4], rows[0][5], None, None),
    ]
    for stored in (True, False):
        check(world(rows=rows), where(V, call("<>", SCORE, 2)), cap, names, stored_grids=stored)


def test_without_rows_there_is_one_group_of_zeros_or_none():
    for keys, groups in (((), 1), (("city",), 0)):
        found = tally(world(rows=[]), block(V, Cap(3, "window"), keys, TALLIES))
        assert [list(map(int, found.tallies[place])) for place in found.tallies] == [[0] * groups] * 14
        assert all(len(cells.counts) == 0 for cells in found.cells.values())
        assert found.selection is None


def test_private_keys_are_selected_by_units():
    con = standing()
    tallies = (Tally("rows"), Tally("units"))
    found = tally(con, block(V, Cap(3, "window"), ("city",), tallies, units=1))
    keys, units = found.selection
    assert dict(zip(keys[0], map(int, units), strict=True)) == {key[0]: n for key, n in by_key(found, 1).items()}
    mixed = tally(con, block(V, Cap(3, "window"), ("city", "good"), tallies, units=1, values={"good": (True, False, None)}))
    keys, units = mixed.selection
    rows = list(kept_by_python(con, V, Cap(3, "window"), [1]))
    wanted = Counter(city for city, _ in {(row["c1"], row["__h"]) for row in rows})
    assert dict(zip(keys[0], map(int, units), strict=True)) == wanted
    assert len(mixed.keys[0]) > len(keys[0])


def test_stored_grids_are_used_where_they_are_the_same_and_only_there():
    plan = block(V, Cap(3, "rank"), ("city",), (Tally("steps", SPENT, grid=SPENT_GRID),))
    assert "g2" in lower_block(plan, SCHEMA)
    assert "g2" not in lower_block(plan, SCHEMA, stored_grids=False)
    other = block(V, Cap(3, "rank"), ("city",), (Tally("steps", SPENT, grid=COARSE),))
    assert "g2" not in lower_block(other, SCHEMA)
    computed = project(V, twice=call("+", SPENT, SPENT, type_=F), spent=SPENT)
    through = join(where(computed, call(">", Ref(0, F), 1)), scan("cities"), "inner")
    text = lower_block(block(through, Cap(3, "window"), (), (Tally("steps", Ref(1, F), grid=SPENT_GRID),)), SCHEMA)
    assert "g2 AS g1" in text
    con = standing()
    plan = block(through, Cap(3, "window"), (), (Tally("steps", Ref(1, F), grid=SPENT_GRID), Tally("rows", Ref(1, F))))
    both = [tally(con, plan, stored_grids=stored) for stored in (True, False)]
    assert int(both[0].tallies[0][0]) == int(both[1].tallies[0][0]) > 0


# ---- exactness -----------------------------------------------------------------------------------------------------------


def narrow(column, values):
    """A study of one table with one measured column, and its rows."""
    columns = (Column("person", I), column)
    table = type(STUDY.tables[0])("visits", "v", STUDY.tables[0].unit, columns)
    schema = schema_of(type(STUDY)("narrow", (table,), STUDY.budget, STUDY.ledger))
    con = connect()
    raw(con, 0, columns, [(number, x) for number, x in enumerate(values)])
    prepare(con, {0: (Column("person", I), Column(column.name, column.type))})
    return con, schema


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ((1 << 62), (1 << 62) + 1000),
        (-(1 << 63), -(1 << 63) + 1000),
        ((1 << 63) - 1000, (1 << 63) - 1),
        (-5, 5),
        (-(1 << 63), (1 << 63) - 1),
        ((1 << 53) - 3, (1 << 53) + 3),
    ],
)
def test_whole_numbers_at_the_edges_are_exact(lower, upper):
    edges = {-(1 << 63), (1 << 63) - 1, 0, 1 << 53, (1 << 53) + 1, lower, upper, lower + 1, upper - 1, (lower + upper) // 2}
    values = [*edges, None]
    con, schema = narrow(Column("x", I), values)
    grid = grid_between(Fraction(lower), Fraction(upper), integer=True)
    relation = scan("visits", schema)
    tallies = (Tally("steps", Ref(1, I), grid=grid), Tally("rows", Ref(1, I)), Tally("cells", Ref(1, I), grid=grid))
    found = tally(con, block(relation, Cap(1, "none"), (), tallies), schema, stored_grids=False)
    exact = [on_grid(x, grid) for x in values if x is not None]
    if grid.exponent == 0:
        assert int(found.tallies[0][0]) == sum(exact)
        assert dict(zip(map(int, found.cells[2].cells), map(int, found.cells[2].counts), strict=True)) == Counter(exact)
    else:
        assert abs(int(found.tallies[0][0]) - sum(exact)) <= len(exact)  # doubles round a value by half a step at most
    assert int(found.tallies[1][0]) == len(exact)


def test_sums_beyond_64_bits_are_exact():
    column = Column("x", F, bounds=(Fraction(0), Fraction(1)))
    con, schema = narrow(column, [1.0] * 60 + [0.25, 1 / 3])
    grid = column_grid(column)
    tallies = (Tally("squares", Ref(1, F), grid=grid), Tally("steps", Ref(1, F), grid=grid))
    found = tally(con, block(scan("visits", schema), Cap(1, "none"), (), tallies), schema, stored_grids=False)
    values = [on_grid(x, grid) for x in [1.0] * 60 + [0.25, 1 / 3]]
    assert sum(v * v for v in values) > 1 << 63
    assert found.tallies[0].tolist() == [sum(v * v for v in values)]
    assert found.tallies[1].tolist() == [sum(values)]


@pytest.mark.parametrize(
    ("lower", "upper"), [("0", "1e-300"), ("-1e300", "1e300"), ("1e15", "1000000000000001"), ("3", "3"), ("-7.5", "-2.25")]
)
def test_grids_of_every_size(lower, upper):
    lower, upper = Fraction(lower), Fraction(upper)
    grid = grid_between(lower, upper, integer=False)
    chance = random.Random(6)
    values = [float(lower + (upper - lower) * Fraction(chance.random())) for _ in range(40)]
    values += [float("inf"), float("-inf"), 0.0, 5e-324, 1.7e308, -1.7e308, None]
    con, schema = narrow(Column("x", F), values)
    tallies = (Tally("cells", Ref(1, F), grid=grid), Tally("steps", Ref(1, F), grid=grid))
    found = tally(con, block(scan("visits", schema), Cap(1, "none"), (), tallies), schema, stored_grids=False)
    cells = Counter(dict(zip(map(int, found.cells[0].cells), map(int, found.cells[0].counts), strict=True)))
    want = Counter(on_grid(x, grid) for x in values if x is not None)
    assert cells.total() == want.total()
    assert all(0 <= cell <= grid.steps for cell in cells)
    moved = [abs(a - b) for a, b in zip(sorted(cells.elements()), sorted(want.elements()), strict=True)]
    assert max(moved) <= (0 if abs(grid.start) < 1 << 50 else 1 << max(0, abs(grid.start).bit_length() - 52))


# ---- seeded bugs -----------------------------------------------------------------------------------------------------------


def test_least_and_greatest_would_turn_null_into_a_bound(monkeypatch):
    def clamped(s, lowest, highest):
        return f"LEAST(GREATEST({s}, {lowest}), {highest})"

    monkeypatch.setattr(lowered_aggregates, "clamp_to_ends", clamped)
    with pytest.raises(AssertionError):
        check(standing(), V, CAPS[0], ("city",))


def test_nan_that_passes_would_be_the_upper_bound(monkeypatch):
    """x − x of an infinity is NaN, which is larger than every bound to the engine: it must be nothing."""
    column = Column("x", F, bounds=(Fraction(0), Fraction(1)))
    con, schema = narrow(column, [float("inf"), 0.5])
    zero = Call("-", (Ref(1, F), Ref(1, F)), F)
    plan = block(
        scan("visits", schema), Cap(1, "none"), (), (Tally("steps", zero, grid=column_grid(column)), Tally("rows", zero))
    )
    found = tally(con, plan, schema)
    assert [int(found.tallies[place][0]) for place in (0, 1)] == [0, 1]
    monkeypatch.setattr(lowered_aggregates, "as_finite", lowered_aggregates.as_number)
    assert int(tally(con, plan, schema).tallies[0][0]) > 0


def test_a_unit_counts_once():
    con = standing()
    plan = block(V, Cap(10**6, "none"), ("city",), (Tally("units"),))
    wrong = block(V, Cap(1, "none"), ("city",), (Tally("units"),))  # a cap that was not proved
    assert by_key(tally(con, plan), 0) != by_key(tally(con, wrong), 0)


# ---- results -------------------------------------------------------------------------------------------------------------


def arrow(**columns):
    return pa.table({"part": pa.array([0], pa.int32()), "cell": pa.array([None], pa.int64()), **columns})


def test_floats_and_nulls_are_refused_by_type():
    plan = block(V, Cap(1, "none"))
    assert isinstance(collect(plan, arrow(n0=pa.array([4], pa.int64()))), Tallied)
    for wrong in (pa.array([4.0]), pa.array([None], pa.int64()), pa.array(["4"]), pa.array([True])):
        with pytest.raises(Failed):
            collect(plan, arrow(n0=wrong))


def test_the_text_is_ours_and_holds_no_name_of_the_study():
    plan = block(where(V, call("=", CITY, "Bern'; DROP TABLE t0; --")), Cap(3, "window", 2), ("city",), TALLIES)
    text = lower_block(plan, SCHEMA)
    assert type(text) is GeneratedSQL
    assert "'Bern''; DROP TABLE t0; --'" in text
    for name in ("visits", "person", "city", "spent"):
        assert name not in text
    assert tally(standing(), plan).keys[0] == []


def test_every_group_of_a_histogram_is_found_among_many_keys():
    con = standing()
    keys = ("city", "day", "good", "score")
    found = tally(
        con, block(V, Cap(10**6, "none"), keys, (Tally("rows"), Tally("cells", SPENT, grid=COARSE), Tally("rows", SPENT)))
    )
    spread = np.zeros(len(found.keys[0]), np.int64)
    np.add.at(spread, found.cells[1].groups, found.cells[1].counts)
    assert spread.tolist() == found.tallies[2].tolist()


def test_a_question_over_groups_of_a_unit():
    """SELECT COUNT(*) over a subquery that groups by the unit, with a filter above it: exact, one row a unit."""
    rows = visits()
    con = world(rows=rows)
    outs = (V.columns[0], type(V.columns[0])("n", I, nullable=False))
    inner = UnitGroup(V, (ref(V, "person"),), (Aggregate("count", None, I),), outs)
    busy = where(inner, call(">", Ref(1, I), 20))
    found = tally(
        con, block(busy, Cap(1, "none"), (), (Tally("rows"), Tally("units"), Tally("steps", Ref(1, I), grid=Grid(0, 0, 25))))
    )
    counts = [n for n in Counter(row[0] for row in rows).values() if n > 20]
    assert [int(found.tallies[place][0]) for place in (0, 1, 2)] == [
        len(counts),
        len(counts),
        sum(min(n, 25) for n in counts),
    ]


def test_kept_rows_describe_all_tallies():
    """AVG of a constant is that constant for every cap: counts and sums are of the same rows."""
    rows = [(unit, "Bern", 200.0, 1, None, None, None, None) for unit in range(50) for _ in range(1 if unit else 1000)]
    con = world(rows=rows)
    for cap in (Cap(5, "window"), Cap(5, "rank"), Cap(9, "window", 1, 2)):
        plan = block(V, cap, ("city",), (Tally("rows", SPENT), Tally("steps", SPENT, grid=SPENT_GRID)))
        found = tally(con, plan)
        assert SPENT_GRID.value(Fraction(int(found.tallies[1][0]), int(found.tallies[0][0]))) == 200


def test_kept_is_what_is_tallied():
    con = standing()
    plan = block(V, Cap(7, "window", 2), ("city",), (Tally("rows"),))
    rows = rows_of(con, lower_kept(plan, SCHEMA))
    assert Counter((row["a0"],) for row in rows) == by_key(tally(con, plan), 0)
    assert multiset(rows) == multiset(rows_of(con, lower_kept(plan, SCHEMA)))


def test_keys_are_normalised():
    """Zeros have no sign, what is not a number is NULL, whole numbers that do not fit 64 bits are NULL."""
    con, schema = narrow(Column("x", F), [0.0, -1.0, 1.0, float("inf"), 1e300, None])
    relation = scan("visits", schema)
    keys = (
        Call("*", (Ref(1, F), lit(0)), F),
        Call("cast", (Ref(1, F),), I),
        Call("cast", (Call("neg", (Ref(1, F),), F),), S),
        Call(">", (Ref(1, F), lit_tenths(5)), B),
    )
    found = tally(con, block(relation, Cap(1, "none"), keys, (Tally("rows"),)), schema)
    plain = [(0.0, 0, "0.0", False), (0.0, -1, "1.0", False), (0.0, 1, "-1.0", True), (0.0, None, "-1e+300", True)]
    nothing = [(None, None, None, True), (None, None, None, None)]
    assert sorted(map(repr, zip(*found.keys, strict=True))) == sorted(map(repr, plain + nothing))
