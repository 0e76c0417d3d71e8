"""A row cap that is executed while rows pass keeps the rows that sorting keeps, or stops and is not seen."""

import random
from dataclasses import replace

import duckdb
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
    multiset,
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
from lower_worlds import felt, lit_tenths, standing, visits, world

from curador.engines.duckdb.spelling import DISORDER, UNIT_PARTS
from curador.engines.duckdb.worker import PlanKeeper
from curador.engines.lower import dialect_duckdb
from curador.engines.lower.block import MOST_PARTS, collect, lower_kept, lower_ways
from curador.engines.lower.dialect_duckdb import STREAMED, DuckDB, ranges_of_parts
from curador.plan.model import Cap, Tally
from curador.query.tree import Ref, UnionAll

V = scan("visits")
CHEAP = where(V, call("<", ref(V, "spent"), lit_tenths(5000)))
NEVER = where(V, call("<", ref(V, "spent"), lit_tenths(-1)))
COMPUTED = project(CHEAP, person=ref(V, "person"), city=ref(V, "city"), twice=call("*", ref(V, "spent"), 2, type_=F))
TALLIES = (Tally("rows"), Tally("units"), Tally("distinct", Ref(0, I), most=2))
CAPS = (1, 2, 3, 7, 64, STREAMED, STREAMED + 1, 4_096)
HOW = {"leave": ("__u", "__o0", "__r", "__n_owned", "__back", "__before", "__n", "__began")}


def both(con, relation, cap):
    """The rows kept by either way, bit for bit."""
    plan = block(relation, cap, ("city",))
    return [multiset(rows_of(con, lower_kept(plan, SCHEMA, streamed=one)), **HOW) for one in (True, False)]


@pytest.mark.parametrize("relation", [CHEAP, NEVER, COMPUTED], ids=["filtered", "nothing", "computed"])
def test_the_rows_kept_are_those_of_sorting(relation):
    con = standing()
    for rows in CAPS:
        streamed, sorted_ = both(con, relation, Cap(rows, "window"))
        assert streamed == sorted_


@pytest.mark.parametrize(
    "cap", [Cap(5, "window", 2), Cap(9, "window", 2, 2), Cap(9, "window", None, 1), Cap(4, "window", height=6)]
)
def test_further_caps_choose_the_same_of_them(cap):
    streamed, sorted_ = both(standing(), CHEAP, cap)
    assert streamed
    assert streamed == sorted_


@pytest.mark.parametrize("seed", range(5))
def test_random_tables_have_the_same_integers(seed):
    """Keys that are NULL, identical rows, units of one row and of thousands, no rows at all."""
    dice = random.Random(seed)
    rows = visits(people=dice.choice([1, 3, 30]), most=dice.choice([1, 5, 40]), seed=seed)
    rows += [rows[0]] * dice.choice([0, 10, 5_000])
    con = connect(dice.choice([1, 2, 8]))
    raw(con, 0, VISITS, rows if seed else [])
    prepare(con, {0: VISITS})
    for cap in (1, 2, 5, 40, 2_047, 2_048, 4_999):
        plan = block(CHEAP, Cap(cap, "window"), ("city", "good"), TALLIES)
        found = [collect(plan, con.sql(way).to_arrow_table()) for way in lower_ways(plan, SCHEMA)]
        assert len(found) == 2
        assert as_dictionary(found[0]) == as_dictionary(found[1])


def as_dictionary(tallied):
    keys = list(zip(*tallied.keys, strict=True))
    return {place: dict(zip(keys, map(int, numbers), strict=True)) for place, numbers in tallied.tallies.items()}


@pytest.mark.parametrize("cap", [5, STREAMED + 1])
def test_nothing_is_sorted(cap):
    """What the engine makes of it: a window that rows pass through, in each of the ranges, and no other."""
    con = standing()
    for threads in (1, 2, 4):
        study = replace(STUDY, engine=replace(STUDY.engine, threads=threads, workers=1))
        first, sure = lower_ways(block(CHEAP, Cap(cap, "window"), ("city",)), schema_of(study))
        plan = explained(con, first)
        assert plan.count("─ Streaming Window") == threads * (1 if cap <= STREAMED else 2)
        assert "─ Window" not in plan
        assert "─ Window" in explained(con, sure)


def explained(con, sql):
    return "\n".join(text for _, text in con.execute(f"EXPLAIN {sql}").fetchall())


def test_lag_reaches_no_further_while_rows_pass():
    """The constant is the engine's: one row more, and it keeps and sorts all of them."""
    con = standing()
    text = "SELECT lag(__u, {}, -1) OVER () FROM t0"
    assert "─ Window" not in explained(con, text.format(STREAMED))
    assert "─ Window" in explained(con, text.format(STREAMED + 1))


def test_other_relations_are_sorted():
    small = project(V, person=ref(V, "person"), city=ref(V, "city"))
    never = replace(STUDY, engine=replace(STUDY.engine, prepare="never"))
    assert len(lower_ways(block(UnionAll((small, small), small.columns), Cap(3, "window")), SCHEMA)) == 1
    assert len(lower_ways(block(V, Cap(3, "rank")), SCHEMA)) == 1
    assert len(lower_ways(block(CHEAP, Cap(3, "window")), schema_of(never))) == 1
    assert len(lower_ways(block(CHEAP, Cap(3, "window")), SCHEMA)) == 2


def test_nobody_elses_rows_are_felt():
    """However many threads there are, of tables as preparation leaves them. Only places move when a unit leaves."""
    statements = {}
    for cap, names in (
        (Cap(3, "window"), "__o0, __r, __back, __before"),
        (Cap(9, "window", 2), "__o0, __r, __back, __before"),
        (Cap(STREAMED + 1, "window"), "__o0, __r, __before, __n, __began"),
    ):
        kept = lower_kept(block(CHEAP, cap, ("city",)), SCHEMA, streamed=True)
        statements[str(cap)] = f"SELECT * EXCLUDE ({names}) FROM ({kept})"
    few = {"removed": (7, 140), "threads": (1, 8), "orders": ("__u, __r",), "rows": visits(people=20)}
    assert felt(connect(), statements, **few) == set()


# ---- rows that are met out of order --------------------------------------------------------------------------------------


class Elsewhere(DuckDB):
    """An engine whose scans give rows in another order than that of their places."""

    def place(self):
        return "place"


def shuffled():
    """The world with the places that rows should have had, in another order."""
    con = world(con=connect(), rows=visits())
    con.execute("CREATE OR REPLACE TABLE t0 AS SELECT *, rowid AS place FROM t0 ORDER BY hash(__h, __r)")
    return con


PLAN = block(CHEAP, Cap(3, "window"), ("city",), TALLIES)


@pytest.mark.parametrize("rows", [3, STREAMED + 1])
def test_out_of_order_a_statement_stops(rows):
    plan = block(CHEAP, Cap(rows, "window"), ("city",), TALLIES)
    first, _ = lower_ways(plan, SCHEMA, dialect=Elsewhere())
    with pytest.raises(duckdb.InvalidInputException, match=DISORDER):
        shuffled().sql(first).fetchall()


def test_then_the_other_statement_is_run():
    """The worker returns what sorting gives, as if nothing had happened; before it and after it, other results too."""
    con = shuffled()
    ways = lower_ways(PLAN, SCHEMA, dialect=Elsewhere())
    found = PlanKeeper(con.cursor()).answer([("before", "SELECT 1 AS x"), ("rows", *ways), ("after", "SELECT 2 AS x")])
    assert as_dictionary(collect(PLAN, found["rows"])) == as_dictionary(tally(con, PLAN))
    assert [found[name].to_pylist() for name in ("before", "after")] == [[{"x": 1}], [{"x": 2}]]


def test_unseen_disorder_would_keep_other_rows():
    """The seeded bug: nobody looks at the places."""
    con = shuffled()
    first, sure = lower_ways(PLAN, SCHEMA, dialect=Elsewhere())
    wrong = first.replace("__before >= __o0", "FALSE")
    assert wrong != first
    found = [as_dictionary(collect(PLAN, con.sql(text).to_arrow_table())) for text in (wrong, sure)]
    assert found[0] != found[1]


def test_another_error_is_no_disorder():
    """A statement that fails by itself fails: the next one is not a second try."""
    con = connect()
    with pytest.raises(duckdb.InvalidInputException, match="something else"):
        PlanKeeper(con.cursor()).answer([("a", "SELECT error('something else') AS x", "SELECT 1 AS x")])


# ---- seeded bugs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [3, STREAMED + 1])
def test_one_row_too_many_is_seen(rows, monkeypatch):
    con = connect()
    raw(con, 0, VISITS, [(7, "Bern", 1.0, 1, None, None, None, None)] * 5_000)
    prepare(con, {0: VISITS})
    plain = dialect_duckdb.first_rows_of
    monkeypatch.setattr(dialect_duckdb, "first_rows_of", lambda source, most: plain(source, most + 1))
    streamed, sorted_ = both(con, CHEAP, Cap(rows, "window"))
    assert streamed != sorted_


def test_ranges_that_overlap_are_seen(monkeypatch):
    monkeypatch.setattr(dialect_duckdb, "ranges_of_parts", lambda parts: [None] * parts)
    streamed, sorted_ = both(standing(), CHEAP, Cap(3, "window"))
    assert streamed != sorted_


def test_a_cap_before_the_filter_is_seen():
    """The rank of all rows is not the number of the row among those that pass."""
    con = standing()
    ranked = block(CHEAP, Cap(3, "rank"), ("city",), TALLIES)
    assert as_dictionary(tally(con, ranked)) != as_dictionary(
        collect(PLAN, con.sql(lower_ways(PLAN, SCHEMA)[0]).to_arrow_table())
    )


def test_ranges_hold_every_part_once():
    con = connect()
    con.execute("CREATE TABLE h AS SELECT range::UTINYINT AS __b FROM range($1)", [UNIT_PARTS])
    for parts in range(1, MOST_PARTS + 1):
        found = [con.execute(f"SELECT __b FROM h WHERE {one or 'TRUE'}").fetchall() for one in ranges_of_parts(parts)]
        assert all(found)
        assert sorted(one for part in found for (one,) in part) == list(range(UNIT_PARTS))
    assert ranges_of_parts(1) == [None]
