"""A world of visits with every kind of tie, a zoo of relations over it, and the test of unit-locality."""

import datetime as dt
import functools
import itertools
import random
from fractions import Fraction

from lower_layout import (
    CITIES,
    PEOPLE,
    VISITS,
    B,
    D,
    F,
    I,
    S,
    call,
    connect,
    join,
    lit,
    multiset,
    one,
    prepare,
    project,
    public,
    raw,
    ref,
    rows_of,
    scan,
    where,
)

from curador.query.tree import Aggregate, Distinct, Out, Ref, UnionAll, UnitGroup, Window, WindowCall

ORDERS = ("__u, __r", "hash(__h, __r)", "c2, hash(__r, __h)", "__r DESC, __u DESC")
"""How rows lie: clustered by unit, shuffled, by a column, turned round."""


def visits(people=40, most=24, seed=1):
    """Rows with repeated values, identical rows, NULLs; floats are tenths, whose sums depend on their order."""
    chance = random.Random(seed)
    rows = []
    for person in range(1, people + 1):
        for _ in range(chance.randint(1, most)):
            day = dt.date(2024, 1, chance.randint(1, 3))
            row = (
                person * 7,
                chance.choice(["Bern", "Basel", "Chur", None]),
                chance.choice([0.1, 0.2, 0.3, 499.9, 700.0, None]),
                chance.choice([-9, -5, 0, 1, 2, 5, None]),
                day,
                dt.datetime.combine(day, dt.time(chance.randint(0, 2))),
                chance.choice([True, False, None]),
                chance.choice([0.1, 0.7, 1e16, -1e16, 3.3, None]),
            )
            rows += [row] * chance.choice([1, 1, 1, 3])
    return rows


def people(count=40, seed=2):
    """One to three rows a person; some have none, and some have no visits."""
    chance = random.Random(seed)
    found = []
    for person in range(1, count + 4):
        if chance.random() < 0.2:
            continue
        found += [
            (person * 7, chance.choice([20, 50, 130, None]), chance.choice(["Bern", "Chur", None]))
            for _ in range(chance.choice([1, 1, 2, 3]))
        ]
    return found


REGIONS = [
    ("Bern", "west", 0.5),
    ("Basel", "north", 1.5),
    ("Basel", "rhine", 0.25),
    ("Olten", "middle", 0.0),
    (None, "none", None),
]


def world(threads=1, *, rows=None, order=ORDERS[0], without=None, con=None):
    """Lay out all three tables."""
    con = con or connect(threads)
    if rows is not None or not con.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'raw0'").fetchall():
        raw(con, 0, VISITS, visits() if rows is None else rows)
        raw(con, 1, PEOPLE, people())
        public(con, 2, CITIES, REGIONS)
    prepare(con, {0: VISITS, 1: PEOPLE}, order=order, without=without)
    return con


@functools.cache
def standing():
    """The world as it is, for tests that only read it."""
    return world()


# ---- relations -------------------------------------------------------------------------------------------------------


def unit_group(relation, *others, **aggregates):
    keys = (ref(relation, "person"), *(ref(relation, name) for name in others))
    outs = [relation.columns[key.index] for key in keys]
    outs += [Out(name, one.type, True) for name, one in aggregates.items()]
    return UnitGroup(relation, keys, tuple(aggregates.values()), tuple(outs))


def window(relation, **calls):
    outs = tuple(Out(name, one.type, True) for name, one in calls.items())
    return Window(relation, tuple(calls.values()), relation.columns + outs)


def aggregates(relation):
    spent, score, x, good = (ref(relation, name) for name in ("spent", "score", "x", "good"))
    late = call(">", ref(relation, "day"), dt.date(2024, 1, 1))
    return {
        "n": Aggregate("count", None, I),
        "n_late": Aggregate("count", None, I, filter=late),
        "scores": Aggregate("count", score, I),
        "cities": Aggregate("count_distinct", ref(relation, "city"), I),
        "self": Aggregate("count_units", None, I),
        "low": Aggregate("min", spent, F),
        "high": Aggregate("max", ref(relation, "city"), S),
        "all_good": Aggregate("bool_and", good, B),
        "any_good": Aggregate("bool_or", good, B),
        "middle": Aggregate("quantile", score, I),
        "total": Aggregate("sum", spent, F),
        "total_late": Aggregate("sum", x, F, filter=late),
        "points": Aggregate("sum", score, I),
        "mean": Aggregate("avg", x, F),
        "mean_score": Aggregate("avg", score, F),
        "spread": Aggregate("var_pop", spent, F),
        "spread_x": Aggregate("var_samp", x, F),
        "spread_score": Aggregate("var_samp", score, F),
    }


def windows(relation):
    spent, day, score = (ref(relation, name) for name in ("spent", "day", "score"))
    by_day = ((day, False, False),)
    return {
        "first": WindowCall("row_number", None, (), by_day, I),
        "any": WindowCall("row_number", None, (), (), I),
        "place": WindowCall("rank", None, (ref(relation, "city"),), ((spent, True, True),), I),
        "dense": WindowCall("dense_rank", None, (), by_day, I),
        "so_far": WindowCall("sum", spent, (), by_day, F),
        "points": WindowCall("sum", score, (), by_day, I),
        "all": WindowCall("sum", ref(relation, "x"), (), (), F, whole=True),
        "mean": WindowCall("avg", spent, (), by_day, F),
        "rows": WindowCall("count", None, (ref(relation, "city"),), (), I, whole=True),
        "least": WindowCall("min", spent, (), by_day, F),
        "most": WindowCall("max", day, (), (), D, whole=True),
        "before": WindowCall("lag", spent, (), by_day, F),
        "after": WindowCall("lead", ref(relation, "city"), (), by_day, S, offset=2),
    }


def relations():
    """The zoo: every node, and some of them above each other."""
    v, p, c = scan("visits"), scan("people"), scan("cities")
    spending = where(v, call(">", ref(v, "spent"), lit_tenths(2)))
    computed = project(v, person=ref(v, "person"), double=call("*", ref(v, "spent"), 2, type_=F), city=ref(v, "city"))
    first = window(v, **windows(v))
    grouped = unit_group(v, **aggregates(v))
    by_city = unit_group(v, "city", n=Aggregate("count", None, I), total=Aggregate("sum", ref(v, "spent"), F))
    older = call("<", Ref(len(v.columns) + 1, I), 60)
    small = project(v, person=ref(v, "person"), city=ref(v, "city"))
    homes = project(p, person=ref(p, "person"), city=ref(p, "home"))
    both = UnionAll((small, homes), small.columns)
    mixed = UnionAll((small, project(by_city, person=Ref(0, I), city=Ref(1, S)), homes), small.columns)
    return {
        "scan": v,
        "filter": spending,
        "project": computed,
        "inner": join(v, p, "inner", ("person", "person")),
        "inner on the home only": join(v, p, "inner", ("city", "home")),
        "left": join(v, p, "left", ("person", "person"), on=older),
        "right": join(v, p, "right", ("person", "person"), on=older),
        "full": join(v, p, "full", ("person", "person"), on=older),
        "semi": join(v, p, "semi", ("city", "home")),
        "anti": join(v, p, "anti", ("city", "home")),
        "self": join(small, small, "inner", ("city", "city")),
        "public": join(v, c, "inner", ("city", "city")),
        "public left": join(v, c, "left", ("city", "city")),
        "public right": join(c, v, "right", ("city", "city")),
        "public cross": join(small, c, "inner"),
        "public semi": join(v, c, "semi", ("city", "city")),
        "public anti": join(v, c, "anti", ("city", "city")),
        "union": both,
        "union of unlike orders": mixed,
        "grouped": grouped,
        "grouped by city": by_city,
        "grouped over full": unit_group(join(v, p, "full", ("person", "person"), on=older), n=Aggregate("count", None, I)),
        "having": where(grouped, call(">", ref(grouped, "total"), lit_tenths(6))),
        "window": first,
        "first row": where(first, call("=", ref(first, "first"), 1)),
        "running": where(first, call("<", ref(first, "so_far"), lit_tenths(9))),
        "distinct": Distinct(small),
        "distinct of join": Distinct(
            project(join(v, p, "left", ("person", "person")), a=Ref(0, I), b=Ref(len(v.columns) + 2, S))
        ),
        "group of window": unit_group(first, "first", t=Aggregate("max", ref(first, "so_far"), F)),
        "join of groups": join(grouped, by_city, "left", ("person", "person")),
        "union joined": join(both, c, "left", ("city", "city")),
    }


def lit_tenths(tenths):
    return lit(Fraction(tenths, 10))


# ---- unit-locality ---------------------------------------------------------------------------------------------------


def felt(con, statements, *, removed, threads=(1, 2, 8, 8), orders=ORDERS, rows=None):
    """T-UL: the names of statements in which any other unit's rows change, by a bit, when a unit leaves.

    However rows lie and threads run, the rows of the others are those of the first world.
    """
    world(con=con, rows=rows)
    whole = {name: rows_of(con, sql) for name, sql in statements.items()}
    hashes = {None: None} | {unit: one(con, f"SELECT hash('key', {unit}::BIGINT)") for unit in removed}
    wanted = {
        (name, unit): multiset(row for row in found if unit is None or row["__h"] != hashes[unit])
        for name, found in whole.items()
        for unit in hashes
    }
    changed = set()
    for unit, order in itertools.product(hashes, orders):
        world(con=con, order=order, without=unit)
        for count in threads:
            con.execute(f"SET threads = {count}")
            changed |= {name for name, sql in statements.items() if multiset(rows_of(con, sql)) != wanted[name, unit]}
    return changed
