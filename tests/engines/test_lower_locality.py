"""T-UL: what a relation gives one unit does not depend on anybody else. Zero tolerance, and every bug is found."""

import random
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from lower_layout import SCHEMA, call, connect, join, multiset, one, project, ref, rows_of, scan, where
from lower_worlds import felt, relations, standing, unit_group, visits, window, windows, world

from curador.engines.lower.block import lower_relation
from curador.errors import NotPrivate
from curador.query.tree import Aggregate, Ref, UnionAll, UnitGroup
from curador.study.values import Type

ZOO = relations()
TEXTS = {name: lower_relation(relation, SCHEMA) for name, relation in ZOO.items()}
PEOPLE = (7, 280)  # the first and the last; the quick tests take one of the middle
FEW = {"removed": (70,), "threads": (2,), "orders": ("hash(__h, __r)",), "rows": visits(people=14, most=14)}


def test_others_rows_stay_bit_for_bit():
    assert felt(connect(), TEXTS, **FEW) == set()


@pytest.mark.slow
def test_whatever_order():
    assert felt(connect(), TEXTS, removed=PEOPLE[:1], threads=(8,)) == set()


@pytest.mark.long
def test_whatever_order_and_number_of_threads():
    assert felt(connect(), TEXTS, removed=PEOPLE) == set()


@pytest.mark.slow
@pytest.mark.parametrize("order", ["hash(__h, __r)", pytest.param("__u, __r", marks=pytest.mark.long)])
def test_with_many_rows_in_several_row_groups(order):
    names = ("having", "running", "distinct")
    rows = visits(people=12_000, most=20, seed=8)
    assert len(rows) > 122_880
    options = {"removed": (7,), "threads": (8,), "orders": (order,), "rows": rows}
    assert felt(connect(), {name: TEXTS[name] for name in names}, **options) == set()


def test_orders_are_total_inside_a_unit():
    """No two rows of a unit share all order columns."""
    con = standing()
    for name, text in TEXTS.items():
        found = rows_of(con, text)
        orders = [column for column in found[0] if column.startswith("__o")]
        seen = Counter((row["__h"], *(row[order] for order in orders)) for row in found)
        assert max(seen.values()) == 1, name
        assert all(row["__u"] is not None and row["__h"] is not None for row in found), name


def test_a_row_belongs_to_one_person_in_every_join():
    """All columns of a joined row that hold a person are that person."""
    con = standing()
    owner = dict(con.execute("SELECT unit, hash('key', unit) FROM units").fetchall())
    for name in ("inner", "inner on the home only", "left", "right", "full", "self"):
        for row in rows_of(con, TEXTS[name]):
            persons = {row["c0"], row["c2" if name == "self" else "c8"]} - {None}
            assert {owner[person] for person in persons} == {row["__h"]}


def test_a_projection_reads_the_columns_below_it_and_not_its_own():
    con = standing()
    v = scan("visits")
    swapped = project(
        v, person=ref(v, "score"), score=ref(v, "person"), sum=call("+", ref(v, "person"), 1, type_=Type.INTEGER)
    )
    wanted = Counter(con.execute("SELECT c3, c0, c0 + 1 FROM t0").fetchall())
    assert Counter((row["c0"], row["c1"], row["c2"]) for row in rows_of(con, lower_relation(swapped, SCHEMA))) == wanted


def test_joins_keep_the_rows_that_sql_says():
    con = standing()
    for name, kind in (("left", "LEFT"), ("right", "RIGHT"), ("full", "FULL")):
        wanted = one(con, f"SELECT COUNT(*) FROM t0 AS l {kind} JOIN t1 AS r ON l.c0 = r.c0 AND r.c1 < 60")
        assert len(rows_of(con, TEXTS[name])) == wanted
    for name, word in (("semi", "EXISTS"), ("anti", "NOT EXISTS")):
        matching = "SELECT 1 FROM t1 AS r WHERE l.c0 = r.c0 AND l.c1 = r.c2"
        assert len(rows_of(con, TEXTS[name])) == one(con, f"SELECT COUNT(*) FROM t0 AS l WHERE {word} ({matching})")


def test_grouping_by_the_unit_gives_one_row_a_unit_even_where_its_column_is_null():
    """After a full join the person of a side is NULL where it had no match: the unit is grouped by, not that column."""
    con = standing()
    full = join(scan("visits"), scan("people"), "full", ("city", "home"))
    for place in (0, 8):
        outs = tuple(replace(out, unit=number == place) for number, out in enumerate(full.columns))
        relation = replace(full, columns=outs)
        key, counted = Ref(place, Type.INTEGER), Aggregate("count", None, Type.INTEGER)
        grouped = UnitGroup(relation, (key,), (counted,), (outs[place], replace(outs[1], type=Type.INTEGER)))
        found = rows_of(con, lower_relation(grouped, SCHEMA))
        assert max(Counter(row["__h"] for row in found).values()) == 1
        assert sum(row["c1"] for row in found) == len(rows_of(con, lower_relation(full, SCHEMA)))


# ---- inside a unit -------------------------------------------------------------------------------------------------------


def test_aggregates_inside_a_unit_are_those_of_python():
    rows = visits()
    con = world(rows=rows)
    grouped = ZOO["grouped"]
    names = [one.name for one in grouped.columns]
    found = {
        row["c0"]: dict(zip(names, (row[f"c{i}"] for i in range(len(names))), strict=True))
        for row in rows_of(con, lower_relation(grouped, SCHEMA))
    }
    for person in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == person]
        late = [row for row in own if row[4].day > 1]
        spent, score, x = ([row[i] for row in own if row[i] is not None] for i in (2, 3, 7))
        clamped = [min(max(Fraction(one), 0), 500) for one in spent]
        wanted = {
            "n": len(own),
            "n_late": len(late),
            "scores": len(score),
            "cities": len({row[1] for row in own} - {None}),
            "self": 1,
            "low": min(spent, default=None),
            "high": max((row[1] for row in own if row[1]), default=None),
            "points": sum(score) if score else None,
            "middle": sorted(score)[-(-len(score) // 2) - 1] if score else None,
        }
        assert {name: found[person][name] for name in wanted} == wanted
        close(found[person]["total"], sum(clamped) if clamped else None, 1e-6 * len(own))
        close(found[person]["mean"], sum(map(wide, x)) / len(x) if x else None, 1e-3)
        close(found[person]["mean_score"], Fraction(sum(score), len(score)) if score else None, 1e-12)
        close(found[person]["spread"], variance(clamped, 0), 1e-2)
        close(found[person]["spread_score"], variance(list(map(Fraction, score)), 1), 1e-9)
        goods = [row[6] for row in own if row[6] is not None]
        assert found[person]["all_good"] == (all(goods) if goods else None)
        assert found[person]["any_good"] == (any(goods) if goods else None)


def wide(one):
    """A number without declared bounds, as far as it is summed."""
    return min(max(Fraction(one), -(1 << 42)), 1 << 42)


def close(found, wanted, within):
    assert (found is None) == (wanted is None)
    assert found is None or abs(Fraction(found) - wanted) <= within


def variance(values, less):
    if len(values) <= less:
        return None
    mean = sum(values) / len(values)
    return sum((one - mean) ** 2 for one in values) / (len(values) - less)


def test_windows_inside_a_unit_are_those_of_python():
    rows = visits(people=12)
    con = world(rows=rows)
    names = list(windows(scan("visits")))
    found = rows_of(con, lower_relation(ZOO["window"], SCHEMA))
    per = {}
    for row in found:
        per.setdefault(row["c0"], []).append({**row, **{name: row[f"c{8 + i}"] for i, name in enumerate(names)}})
    for own in per.values():
        own.sort(key=lambda row: (row["c4"], row["__o0"]))
        total = points = 0
        for place, row in enumerate(own):
            total += min(max(Fraction(row["c2"] or 0), 0), 500)
            points += row["c3"] or 0
            seen = [one["c2"] for one in own[: place + 1] if one["c2"] is not None]
            assert row["first"] == place + 1
            assert row["dense"] == len({one["c4"] for one in own[: place + 1]})
            assert row["rows"] == sum(one["c1"] == row["c1"] for one in own)
            assert row["least"] == (min(seen) if seen else None)
            assert row["most"] == max(one["c4"] for one in own)
            assert row["before"] == (own[place - 1]["c2"] if place else None)
            assert row["after"] == (own[place + 2]["c1"] if place + 2 < len(own) else None)
            assert row["points"] == (points if any(one["c3"] is not None for one in own[: place + 1]) else None)
            close(row["so_far"], total if seen else None, 1e-5)
            same_city = [one for one in own if one["c1"] == row["c1"]]
            larger = sum(one["c2"] is None for one in same_city if row["c2"] is not None)
            larger += sum(one["c2"] is not None and row["c2"] is not None and one["c2"] > row["c2"] for one in same_city)
            assert row["place"] == larger + 1


def test_whole_sums_inside_a_unit_are_exact_at_the_edges():
    """Sums of 64-bit numbers are those of unbounded integers, NULL where they do not fit."""
    edge = (1 << 63) - 1
    cases = [[edge, -edge, 5], [edge, 1], [-edge - 1, -1], [edge, -1, 1], [1 << 53, 1, 1], [edge] * 3 + [-edge] * 2]
    rows = [(unit, None, None, value, None, None, None, None) for unit, values in enumerate(cases) for value in values]
    con = world(rows=rows)
    grouped = unit_group(scan("visits"), total=Aggregate("sum", ref(scan("visits"), "score"), Type.INTEGER))
    found = {row["c0"]: row["c1"] for row in rows_of(con, lower_relation(grouped, SCHEMA))}
    wanted = {unit: sum(values) if abs(sum(values)) <= edge else None for unit, values in enumerate(cases)}
    assert found == wanted


# ---- seeded bugs ---------------------------------------------------------------------------------------------------------


def without_order(sql):
    return sql.replace(", __o0 ROWS", " ROWS").replace(" LAST, __o0)", " LAST)")


def floats_summed(sql):
    """The sum of doubles in place of the sum of the integers that stand for them."""
    return sql.replace("SUM(v0)", "SUM(CAST(v0 AS DOUBLE) * 0.1::DOUBLE)")


BUGS = {
    "a window without the completing order": ("running", without_order),
    "a first row without the completing order": ("first row", without_order),
    "a join without the unit": ("inner on the home only", lambda sql: sql.replace("(l.__u = r.__u) AND ", "")),
    "a float sum inside a unit": ("having", floats_summed),
    "any value of a unit": ("grouped", lambda sql: re.sub(r"MIN\(a([1-9])\)", r"FIRST(a\1)", sql)),
    "DISTINCT without the unit": ("distinct", lambda sql: sql.replace("DISTINCT c0", "DISTINCT ON (c1) c0")),
    "a partition without the unit": ("window", lambda sql: sql.replace("PARTITION BY __u, ", "PARTITION BY ")),
}


@pytest.mark.slow
def test_every_bug_is_found():
    wrong = {bug: change(TEXTS[name]) for bug, (name, change) in BUGS.items()}
    assert all(wrong[bug] != TEXTS[name] for bug, (name, _) in BUGS.items())
    assert felt(
        connect(), wrong, **FEW | {"threads": (1,), "orders": ("__u, __r", "hash(__h, __r)"), "rows": visits(people=24)}
    ) == set(BUGS)


def test_public_rows_without_an_owner_are_refused():
    v, c = scan("visits"), scan("cities")
    for relation in (
        join(c, v, "left", ("city", "city")),
        join(v, c, "right", ("city", "city")),
        join(v, c, "full", ("city", "city")),
        join(c, v, "semi", ("city", "city")),
        join(c, v, "anti", ("city", "city")),
        UnionAll((c, v), c.columns),
    ):
        with pytest.raises(NotPrivate):
            lower_relation(relation, SCHEMA)


def test_windows_are_left_as_windows():
    """No plan holds the aggregate that keeps rows in memory: it cannot spill."""
    con = world()
    first = window(scan("visits"), n=windows(scan("visits"))["any"])
    for relation in (
        where(first, call("=", ref(first, "n"), 1)),
        where(first, call("<=", ref(first, "n"), 3)),
        ZOO["first row"],
    ):
        plan = "\n".join(text for _, text in con.execute(f"EXPLAIN {lower_relation(relation, SCHEMA)}").fetchall())
        assert "arg_min" not in plan
        assert "min_by" not in plan


@pytest.mark.slow
def test_the_same_rows_whatever_lies_around():
    """A world twice as large gives the first half the same rows."""
    rows = visits(people=20)
    more = rows + [(row[0] + 10_000, *row[1:]) for row in rows]
    random.Random(1).shuffle(more)
    for name in ("window", "grouped", "union of unlike orders"):
        sql = lower_relation(ZOO[name], SCHEMA)
        few = multiset(rows_of(world(rows=rows), sql))
        many = rows_of(world(rows=more), sql)
        assert few <= multiset(many)
