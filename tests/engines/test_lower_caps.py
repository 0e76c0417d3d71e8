"""Caps are executed: as many rows and groups of a unit as are declared, chosen from its own rows, nested for every cap."""

from collections import Counter

import pytest
from lower_layout import (
    SCHEMA,
    STUDY,
    VISITS,
    F,
    I,
    block,
    call,
    connect,
    join,
    multiset,
    prepare,
    project,
    raw,
    ref,
    rows_of,
    scan,
    schema_of,
    where,
)
from lower_worlds import felt, lit_tenths, standing, visits, world

from curador.engines.lower import relation as lowered_relation
from curador.engines.lower.block import lower_block, lower_kept, lower_relation
from curador.errors import NotPrivate
from curador.plan.model import Cap, Tally
from curador.query.tree import Ref, UnionAll

V = scan("visits")
CHEAP = where(V, call("<", ref(V, "spent"), lit_tenths(5000)))
SMALL = project(V, person=ref(V, "person"), city=ref(V, "city"))
RELATIONS = {
    "filtered": CHEAP,
    "joined": join(V, scan("people"), "inner", ("person", "person")),
    "widened": join(V, scan("cities"), "left", ("city", "city")),
    "united": UnionAll((SMALL, SMALL), SMALL.columns),
}


def kept_rows(con, relation, cap):
    return rows_of(con, lower_kept(block(relation, cap, ("city",)), SCHEMA))


def identity(row):
    return (row["__h"], *(row[name] for name in sorted(row) if name.startswith("__o")))


def per_unit(rows):
    return Counter(row["__h"] for row in rows)


@pytest.mark.parametrize("name", RELATIONS)
def test_a_unit_keeps_as_many_rows_as_it_may(name):
    con = standing()
    found = per_unit(rows_of(con, lower_relation(RELATIONS[name], SCHEMA)))
    smaller = set()
    for most in (1, 2, 5, 7, 8, 9, 12, 40, 1_000_000):
        rows = kept_rows(con, RELATIONS[name], Cap(most, "window"))
        assert per_unit(rows) == {unit: min(most, count) for unit, count in found.items()}
        chosen = {identity(row) for row in rows}
        assert len(chosen) == len(rows)
        assert smaller <= chosen  # nested
        smaller = chosen


def test_a_rank_is_a_filter_of_the_table():
    con = standing()
    for most in (1, 3, 10):
        rows = kept_rows(con, CHEAP, Cap(most, "rank"))
        assert all(row["__o0"] <= most for row in rows)
        assert len(rows) == sum(row["__o0"] <= most for row in rows_of(con, lower_relation(CHEAP, SCHEMA)))
    assert "ROW_NUMBER" not in lower_block(block(CHEAP, Cap(3, "rank")), SCHEMA)


def test_a_rank_of_several_tables_is_refused():
    with pytest.raises(NotPrivate, match="one table"):
        lower_block(block(RELATIONS["joined"], Cap(3, "rank")), SCHEMA)
    lower_block(block(RELATIONS["widened"], Cap(3, "rank")), SCHEMA)


def test_both_ways_of_capping_rows_keep_the_same(monkeypatch):
    con = standing()
    for most in (1, 4, 9, 30):
        found = []
        for least in (1, 1_000):
            monkeypatch.setattr(lowered_relation, "CROWDED_FROM", least)
            found.append(multiset(kept_rows(con, CHEAP, Cap(most, "window")), leave=("__u", "__n_owned")))
        assert found[0] == found[1]


@pytest.mark.parametrize("name", ["filtered", "joined"])
@pytest.mark.parametrize(("groups", "in_group"), [(1, None), (2, None), (2, 2), (None, 1), (None, 3), (3, 1)])
def test_groups_and_rows_in_a_group_are_capped(name, groups, in_group):
    con = standing()
    before = kept_rows(con, RELATIONS[name], Cap(12, "window"))
    after = kept_rows(con, RELATIONS[name], Cap(12, "window", groups, in_group))
    assert {identity(row) for row in after} <= {identity(row) for row in before}
    for unit in per_unit(before):
        all_groups = Counter(row["a0"] for row in before if row["__h"] == unit)
        own = Counter(row["a0"] for row in after if row["__h"] == unit)
        assert len(own) == min(groups or 99, len(all_groups))
        assert all(count == min(in_group or 99, all_groups[group]) for group, count in own.items())


def test_groups_are_nested_too():
    con = standing()
    smaller = set()
    for groups in (1, 2, 3):
        rows = kept_rows(con, CHEAP, Cap(12, "window", groups))
        chosen = {(row["__h"], row["a0"]) for row in rows}
        assert smaller <= chosen
        smaller = chosen


def test_caps_that_cannot_bind_are_not_executed():
    text = lower_block(block(CHEAP, Cap(4, "rank", groups=4, in_group=4), ("city",)), SCHEMA)
    assert "DENSE_RANK" not in text
    assert "ROW_NUMBER" not in text
    alone = lower_block(block(CHEAP, Cap(4, "rank", groups=2)), SCHEMA)
    assert "DENSE_RANK" not in alone  # without keys there is one group


def test_a_thousand_identical_rows():
    con = connect()
    raw(con, 0, VISITS, [(7, "Bern", 1.0, 1, None, None, None, None)] * 1000)
    prepare(con, {0: VISITS})
    for cap in (Cap(5, "window"), Cap(9, "window"), Cap(5, "rank"), Cap(50, "window", in_group=5)):
        assert len(kept_rows(con, V, cap)) == min(cap.rows, cap.in_group or cap.rows)


def test_a_unique_table_gives_one_row_a_unit():
    tables = (
        STUDY.tables[0],
        type(STUDY.tables[1])("people", "p", STUDY.tables[1].unit, STUDY.tables[1].columns, unique=True),
    )
    study = type(STUDY)(STUDY.name, (*tables, STUDY.tables[2]), STUDY.budget, STUDY.ledger)
    rows = rows_of(standing(), lower_relation(scan("people"), schema_of(study)))
    assert max(per_unit(rows).values()) == 1


# ---- nobody else's rows are felt -------------------------------------------------------------------------------------------

CAPS = [Cap(3, "window"), Cap(10, "window", 2), Cap(10, "window", 2, 2), Cap(4, "rank", 1)]


def statements(**changed):
    found = {}
    for name, relation in RELATIONS.items():
        for number, cap in enumerate(CAPS):
            if cap.by == "rank" and name in {"joined", "united"}:
                continue
            argument = Ref(2, F) if name == "filtered" else None
            tallies = (Tally("rows"), Tally("distinct", argument or Ref(0, I), most=2))
            found[f"{name} {number}"] = lower_kept(block(relation, cap, ("city",), tallies), SCHEMA, **changed)
    return found


def test_what_is_kept_does_not_depend_on_others():
    few = {"removed": (7,), "threads": (2,), "orders": ("hash(__h, __r)",), "rows": visits(people=20)}
    assert felt(connect(), statements(), **few) == set()


@pytest.mark.slow
def test_whatever_order():
    assert felt(connect(), statements(), removed=(7,), threads=(8,)) == set()


@pytest.mark.long
def test_whatever_order_and_number_of_threads():
    assert felt(connect(), statements(), removed=(7, 280)) == set()


# ---- seeded bugs -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hash_of_dense_numbers_is_felt():
    """When the first unit leaves, all others get another number: their choices must not follow it."""
    right = statements()
    wrong = {name: text.replace("hash(__h", "hash(__u") for name, text in right.items()}
    changed = {name for name in right if wrong[name] != right[name]}
    assert changed
    few = {"removed": (7,), "threads": (1,), "orders": ("__u, __r",)}
    found = felt(connect(), {name: wrong[name] for name in changed}, **few)
    assert {name for name in changed if name.endswith(" 1")} <= found


@pytest.mark.slow
def test_a_dropped_tie_break_is_felt():
    right = lower_kept(block(RELATIONS["joined"], Cap(3, "window")), SCHEMA)
    wrong = right.replace("ORDER BY hash(__h, __o0, __o1), __o0, __o1", "ORDER BY __h")
    assert wrong != right
    few = {"removed": (7,), "threads": (1,), "orders": ("__u, __r", "hash(__h, __r)")}
    assert felt(connect(), {"wrong": wrong}, **few)


def test_rank_instead_of_row_number_keeps_too_much():
    con = standing()
    right = lower_kept(block(CHEAP, Cap(3, "window")), SCHEMA)
    wrong = right.replace("ROW_NUMBER()", "RANK()").replace("ORDER BY __o0, __u", "ORDER BY __h")
    assert wrong != right
    assert max(per_unit(rows_of(con, right)).values()) == 3
    assert max(per_unit(rows_of(con, wrong)).values()) > 3


def test_a_cap_before_the_filter_loses_rows():
    rows = visits()
    con = world(rows=rows)
    matching = per_unit(rows_of(con, lower_relation(CHEAP, SCHEMA)))
    wanted = {unit: min(3, count) for unit, count in matching.items()}
    assert per_unit(kept_rows(con, CHEAP, Cap(3, "window"))) == wanted
    assert per_unit(kept_rows(con, CHEAP, Cap(3, "rank"))) != wanted


def test_plans_spill():
    """No plan of a cap holds the aggregate that cannot: it would fail where memory is short, and failing is an answer."""
    con = standing()
    plain = "SELECT * FROM t0 QUALIFY ROW_NUMBER() OVER (PARTITION BY __u ORDER BY __r) <= 3"
    assert "arg_min" in explained(con, plain)  # what the engine makes of the plain way to write it
    for relation in RELATIONS.values():
        for cap in (Cap(1, "window"), Cap(3, "window"), Cap(10, "window", 1, 1), Cap(10, "window", 2, 2)):
            plan = explained(con, lower_block(block(relation, cap, ("city",)), SCHEMA))
            assert "arg_min" not in plan
            assert "min_by" not in plan


def explained(con, sql):
    return "\n".join(text for _, text in con.execute(f"EXPLAIN {sql}").fetchall())
