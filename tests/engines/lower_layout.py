"""A small study, its tables laid out by hand in DuckDB as preparation leaves them, and short ways to write trees."""

import datetime as dt
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb

from curador.engines.duckdb.images import compute_images
from curador.engines.duckdb.spelling import UNIT_PARTS
from curador.engines.lower.block import collect, lower_block
from curador.plan.model import BlockPlan, Contribution, KeyPlan, Tally, column_grid
from curador.query.tree import Call, Filter, Join, Literal, Out, Project, Ref, Scan
from curador.study.model import Budget, Column, EngineSettings, Field, Schema, Study, Table, TableSchema, UnitColumn
from curador.study.values import Type

B, I, F, S, D, T = Type.BOOLEAN, Type.INTEGER, Type.FLOAT, Type.STRING, Type.DATE, Type.TIMESTAMP  # noqa: E741
SQL = {B: "BOOLEAN", I: "BIGINT", F: "DOUBLE", Type.DECIMAL: "DOUBLE", S: "VARCHAR", D: "DATE", T: "TIMESTAMP"}

VISITS = (
    Column("person", I),
    Column("city", S, values=("Bern", "Basel", "Chur")),
    Column("spent", F, bounds=(Fraction(0), Fraction(500))),
    Column("score", I, bounds=(-5, 5)),
    Column("day", D),
    Column("moment", T),
    Column("good", B),
    Column("x", F),
)
PEOPLE = (Column("person", I), Column("age", I, bounds=(0, 120)), Column("home", S))
CITIES = (Column("city", S), Column("region", S), Column("weight", F))


class Facts:
    """Public tables of these tests have no row twice."""

    def multiplicity(self, *_):
        return 1

    def distinct(self, *_):
        return None

    def longest(self, *_):
        return 40

    def images(self, listing, most):
        return compute_images(listing, most, lambda *_: None)


def table_of(name, unit, columns, **more):
    return Table(name, f"{name}.parquet", unit, columns, **more)


TABLES = (
    table_of("visits", UnitColumn("person"), VISITS),
    table_of("people", UnitColumn("person"), PEOPLE),
    table_of("cities", None, CITIES, key=("city",)),
)
STUDY = Study("test", TABLES, Budget(epsilon=1, delta="1e-6"), Path("test.ledger"), engine=EngineSettings(workers=1))
"""One worker: a question has both threads, and rows pass in two ranges."""


def schema_of(study=STUDY):
    fields = [TableSchema(one, tuple(Field(c.name, c.type, c.nullable, c) for c in one.columns)) for one in study.tables]
    return Schema(study, tuple(fields), Facts())


SCHEMA = schema_of()


def scan(name, schema=SCHEMA):
    table = schema.table(name)
    unit = table.unit_index
    return Scan(
        name,
        tuple(
            Out(one.name, one.type, one.nullable, (name, one.name), unit=place == unit)
            for place, one in enumerate(table.fields)
        ),
    )


# ---- trees -----------------------------------------------------------------------------------------------------------


def ref(relation, name):
    place = [one.name for one in relation.columns].index(name)
    return Ref(place, relation.columns[place].type)


def lit(value):
    kinds = {bool: B, int: I, Fraction: F, str: S, dt.date: D, dt.datetime: T}
    return Literal(value, None if value is None else kinds[type(value)])


def call(function, *arguments, type_=B):
    return Call(function, tuple(one if hasattr(one, "type") else lit(one) for one in arguments), type_)


def project(relation, **expressions):
    outs = tuple(
        replace(relation.columns[one.index], name=name) if isinstance(one, Ref) else Out(name, one.type, nullable=True)
        for name, one in expressions.items()
    )
    return Project(relation, tuple(expressions.values()), outs)


def where(relation, predicate):
    return Filter(relation, predicate)


def join(left, right, kind, *pairs, on=None):
    """Join on equal columns, and on more over the names of both sides."""
    width = len(left.columns)
    conditions = [call("=", ref(left, a), Ref(ref(right, b).index + width, ref(right, b).type)) for a, b in pairs] + (
        [on] if on is not None else []
    )
    predicate = None if not conditions else conditions[0] if len(conditions) == 1 else call("and", *conditions)
    if kind in {"semi", "anti"}:
        return Join(left, right, kind, predicate, left.columns)
    columns = absent(left, kind in {"right", "full"}) + absent(right, kind in {"left", "full"})
    return Join(left, right, kind, predicate, columns)


def absent(side, may_be):
    """The columns of a side of a join whose rows may have no match: its unit column may then be NULL."""
    if not may_be:
        return side.columns
    return tuple(replace(one, nullable=True, unit=False, unit_or_null=one.unit or one.unit_or_null) for one in side.columns)


ROWS = (Tally("rows"),)


def block(relation, cap, keys=(), tallies=ROWS, units=None, values=None):
    """Make a block over columns by name; `values`: known ones by key name, others are private."""
    plans = []
    for name in keys:
        expression = ref(relation, name) if isinstance(name, str) else name
        label = name if isinstance(name, str) else "key"
        plans.append(KeyPlan(label, expression, expression.type, (values or {}).get(label)))
    return BlockPlan(relation, cap, Contribution(1, 1, 1, bool(keys)), tuple(plans), tuple(tallies), (), (), (), None, units)


# ---- tables ----------------------------------------------------------------------------------------------------------


def connect(threads=1):
    """Open an empty engine."""
    return duckdb.connect(config={"threads": threads})


def raw(con, number, columns, rows):
    """Put rows of Python values into a table as they are: name raw<number>."""
    con.execute(f"CREATE OR REPLACE TABLE raw{number} ({', '.join(f'c{i} {SQL[c.type]}' for i, c in enumerate(columns))})")
    values = ", ".join(f"unnest(${place + 1}::{SQL[one.type]}[])" for place, one in enumerate(columns))
    if rows:
        con.execute(f"INSERT INTO raw{number} SELECT {values}", [list(one) for one in zip(*rows, strict=True)])


def prepare(con, tables, *, without=None, order="__u, __r"):
    """Lay out private tables, whose unit is c0, from their raw ones: dense units, keyed hashes of the original ones, ranks.

    tables   columns by number; without: a unit whose rows are left out; order: how rows lie, a SQL expression
    """
    gone = "" if without is None else f" AND c0 <> {without}"
    units = " UNION ".join(f"SELECT DISTINCT c0 AS unit FROM raw{number} WHERE c0 IS NOT NULL{gone}" for number in tables)
    con.execute(f"CREATE OR REPLACE TABLE units AS SELECT unit, DENSE_RANK() OVER (ORDER BY unit) AS __u FROM ({units})")
    for number, columns in tables.items():
        names = ", ".join(f"c{i}" for i in range(len(columns)))
        grids = "".join(f", {stored(i, column_grid(c))} AS g{i}" for i, c in enumerate(columns) if column_grid(c))
        found = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {names}) AS k FROM raw{number} JOIN units ON c0 = unit"
        rank = f"ROW_NUMBER() OVER (PARTITION BY c0 ORDER BY hash('row', c0, {names}, k), {names}, k)"
        laid = f"SELECT {names}{grids}, __u, hash('key', c0) AS __h, ({rank})::USMALLINT AS __r FROM ({found})"
        part = f"(__h >> {64 - (UNIT_PARTS - 1).bit_length()})::UTINYINT AS __b"
        con.execute(f"CREATE OR REPLACE TABLE t{number} AS SELECT *, {part} FROM ({laid}) ORDER BY {order}")


def stored(place, grid):
    """What preparation stores of a bounded column."""
    x = f"CAST(c{place} AS DOUBLE)"
    v = f"TRY_CAST(floor({x} * {2.0**-grid.exponent!r} - {float(grid.start)!r} + 0.5) AS HUGEINT)"
    low, high = f"{v} < 0 OR {x} = '-inf'::DOUBLE", f"{v} > {grid.steps} OR {x} = 'inf'::DOUBLE"
    return f"CAST(CASE WHEN {low} THEN 0 WHEN {high} THEN {grid.steps} ELSE {v} END AS INTEGER)"


def public(con, number, columns, rows):
    """Lay out a public table."""
    raw(con, number, columns, rows)
    con.execute(f"CREATE OR REPLACE TABLE t{number} AS SELECT *, ROW_NUMBER() OVER () AS __p FROM raw{number}")


def one(con, sql):
    """Return the one value of a statement."""
    return con.execute(sql).fetchall()[0][0]


def rows_of(con, sql):
    """Return a statement's rows as dictionaries."""
    answer = con.sql(sql)
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.fetchall()]


def tally(con, plan, schema=SCHEMA, **options):
    """Run a block and collect it."""
    lowered = lower_block(plan, schema, **options)
    return collect(plan, con.sql(lowered).to_arrow_table())


def by_key(tallied, place):
    """One tally as a dictionary by key values."""
    return {key: int(n) for key, n in zip(zip(*tallied.keys, strict=True), tallied.tallies[place], strict=True)}


def multiset(rows, *, leave=("__u",)):
    """Rows as a multiset, bit for bit (a signed zero is another row), without dense unit numbers."""
    return Counter(tuple((k, repr(v)) for k, v in sorted(row.items()) if k not in leave) for row in rows)
