"""Small studies for tests of plans: nothing but declarations."""

from fractions import Fraction
from pathlib import Path

from curador.engines.duckdb.images import compute_images
from curador.study.model import (
    Analyst,
    Budget,
    Caps,
    Column,
    Field,
    Schema,
    Study,
    Table,
    TableSchema,
    UnitColumn,
    UnitPath,
    UnitRow,
)
from curador.study.values import Type

INTEGER, FLOAT, DECIMAL, STRING = Type.INTEGER, Type.FLOAT, Type.DECIMAL, Type.STRING
BOUNDS = (Fraction(0), Fraction(500))


class Public:
    """Facts of public tables, written by hand."""

    def __init__(self, many=1, values=("north", "south", None)):
        self.many, self.values = many, values

    def multiplicity(self, _table, columns):
        return self.many if columns else 100

    def distinct(self, _table, _column, _most):
        return self.values

    def longest(self, _table, _column):
        return 40

    def images(self, listing, most):
        return compute_images(listing, most, lambda *_: None)


REGIONS = (Table("regions", "r.parquet", None), {"city": STRING, "region": STRING})


def people_tables(caps):
    """people (one row each), visits (many), regions (public), orders and lines (a key path)."""
    people = Table(
        "people",
        "people.parquet",
        UnitColumn("id"),
        unique=True,
        caps=Caps(1),
        columns=(
            Column("age", INTEGER, (0, 120)),
            Column("income", FLOAT, (Fraction(0), Fraction(200_000))),
            Column("sex", STRING, values=("f", "m"), nullable=False),
        ),
    )
    visits = Table(
        "visits",
        "visits.parquet",
        UnitColumn("id"),
        caps=caps,
        columns=(
            Column("spent", FLOAT, BOUNDS),
            Column("rating", INTEGER, (1, 5), nullable=False),
            Column("kind", STRING, values=("a", "b", "c")),
        ),
    )
    lines = Table(
        "lines", "l.parquet", UnitPath("order", "orders", "order"), (Column("price", DECIMAL, BOUNDS),), caps=Caps(10)
    )
    return [
        (people, {"id": INTEGER, "age": INTEGER, "income": FLOAT, "sex": STRING, "city": STRING}),
        (visits, {"id": INTEGER, "spent": FLOAT, "rating": INTEGER, "kind": STRING, "city": STRING, "raw": FLOAT}),
        (Table("orders", "o.parquet", UnitColumn("id"), caps=Caps(5)), {"id": INTEGER, "order": INTEGER}),
        (lines, {"order": INTEGER, "price": DECIMAL}),
        REGIONS,
    ]


def event_tables():
    """events: every row is a unit of its own."""
    events = Table("events", "e.parquet", UnitRow(), columns=(Column("x", INTEGER, (-5, 5)),))
    return [(events, {"x": INTEGER, "city": STRING}), REGIONS]


def schema(tables=None, *, budget=None, caps=None, public=None, **changes):
    """Return a study's schema, made without a file."""
    given = people_tables(caps or Caps(10)) if tables is None else tables
    study = Study(
        "s",
        tuple(table for table, _ in given),
        budget or Budget(epsilon=3, delta="1e-6"),
        Path("s.ledger"),
        analysts=(Analyst("ana"),),
        **changes,
    )
    found = []
    for table, columns in given:
        declared = {name: table.column(name) for name in columns}
        fields = [
            Field(name, kind, declared[name] is None or declared[name].nullable, declared[name])
            for name, kind in columns.items()
        ]
        found.append(TableSchema(table, tuple(fields)))
    return Schema(study, tuple(found), public or Public())
