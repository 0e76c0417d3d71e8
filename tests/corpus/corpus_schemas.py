"""The schemas that the corpus of questions is asked of: declarations only, no data.

people   people (one row each) and visits (many) with the unit in a column; cities and weather are public
shop     customers, orders that refer to them, lines that refer to orders by a key path; products and categories are public
trips    every row is a unit of its own; zones is public
"""

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path

from curador.engines.duckdb.images import compute_images
from curador.study.model import Budget, Caps, Column, Field, Schema, Study, Table, TableSchema, UnitColumn, UnitPath, UnitRow
from curador.study.values import Type

BOOLEAN, INTEGER, DECIMAL, FLOAT = Type.BOOLEAN, Type.INTEGER, Type.DECIMAL, Type.FLOAT
STRING, DATE, TIMESTAMP = Type.STRING, Type.DATE, Type.TIMESTAMP

CORPUS = Path(__file__).parent / "questions.jsonl"


class Facts:
    """What is known of the public tables: their keys are unique, nothing else is."""

    def __init__(self, keys, rows):
        self.keys, self.rows = keys, rows

    def multiplicity(self, table, columns):
        unique = self.keys.get(table)
        return 1 if unique and set(unique) <= set(columns) else self.rows

    def distinct(self, _table, _column, _most):
        return None

    def longest(self, _table, _column):
        return 40

    def images(self, listing, most):
        return compute_images(listing, most, lambda *_: None)


def numbers(low, high):
    return (Fraction(low), Fraction(high))


DAYS = (dt.date(2015, 1, 1), dt.date(2025, 12, 31))
UNDECLARED = object()
"""In the place of a declaration: a column of the file that the owner did not declare."""

# table: (unit, more of the table, {column: (type, more of its declaration)})
PEOPLE = {
    "people": (
        UnitColumn("user_id"),
        {"unique": True},
        {
            "user_id": (INTEGER, {}),
            "age": (INTEGER, {"bounds": (0, 120)}),
            "sex": (STRING, {"values": ("f", "m"), "nullable": False}),
            "city": (STRING, UNDECLARED),
            "income": (FLOAT, {"bounds": numbers(0, 200_000)}),
            "height": (DECIMAL, {"bounds": numbers(0, 3)}),
            "joined": (DATE, {"bounds": DAYS}),
            "active": (BOOLEAN, {"nullable": False}),
            "name": (STRING, {"length": 40}),
        },
    ),
    "visits": (
        UnitColumn("user_id"),
        {"caps": Caps(rows=20, groups=5)},
        {
            "visit_id": (STRING, UNDECLARED),
            "user_id": (INTEGER, {}),
            "at": (TIMESTAMP, UNDECLARED),
            "place": (STRING, {"values": ("shop", "web", "phone")}),
            "spent": (FLOAT, {"bounds": numbers(0, 500)}),
            "items": (INTEGER, {"bounds": (0, 50), "nullable": False}),
            "raw": (FLOAT, UNDECLARED),
            "returned": (BOOLEAN, {"nullable": False}),
        },
    ),
    "cities": (
        None,
        {"key": ("city",)},
        {
            "city": (STRING, {"nullable": False}),
            "country": (STRING, {}),
            "population": (INTEGER, {}),
            "capital": (BOOLEAN, {}),
        },
    ),
    "weather": (None, {}, {"city": (STRING, {}), "day": (DATE, {}), "rain": (FLOAT, {})}),
}
SHOP = {
    "customers": (
        UnitColumn("c_id"),
        {"unique": True},
        {
            "c_id": (INTEGER, {}),
            "segment": (STRING, {"values": ("home", "office"), "nullable": False}),
            "balance": (DECIMAL, {"bounds": numbers(-1000, 10_000)}),
            "since": (DATE, {"bounds": DAYS}),
        },
    ),
    "orders": (
        UnitPath("o_customer", "customers"),
        {"caps": Caps(rows=20)},
        {
            "o_id": (INTEGER, {}),
            "o_customer": (INTEGER, {}),
            "status": (STRING, {"values": ("open", "done", "lost")}),
            "total": (DECIMAL, {"bounds": numbers(0, 5000)}),
            "placed": (DATE, {"bounds": DAYS}),
        },
    ),
    "lines": (
        UnitPath("l_order", "orders", "o_id"),
        {"caps": Caps(rows=40)},
        {
            "l_order": (INTEGER, {}),
            "l_product": (INTEGER, UNDECLARED),
            "quantity": (INTEGER, {"bounds": (0, 50)}),
            "price": (DECIMAL, {"bounds": numbers(0, 1000)}),
            "discount": (DECIMAL, {"bounds": numbers(0, 1)}),
            "shipped": (DATE, {"bounds": DAYS}),
        },
    ),
    "products": (
        None,
        {"key": ("p_id",)},
        {"p_id": (INTEGER, {"nullable": False}), "category": (STRING, {}), "list_price": (DECIMAL, {})},
    ),
    "categories": (None, {"key": ("category",)}, {"category": (STRING, {}), "group_name": (STRING, {})}),
}
TRIPS = {
    "trips": (
        UnitRow(),
        {},
        {
            "zone": (INTEGER, {"values": tuple(range(1, 21))}),
            "distance": (FLOAT, {"bounds": numbers(0, 100)}),
            "fare": (FLOAT, {"bounds": numbers(0, 300)}),
            "passengers": (INTEGER, {"bounds": (0, 8)}),
            "payment": (STRING, {"values": ("card", "cash")}),
            "pickup": (TIMESTAMP, {"bounds": (dt.datetime(2024, 1, 1), dt.datetime(2024, 12, 31))}),  # noqa: DTZ001 -- UTC
        },
    ),
    "zones": (None, {"key": ("zone",)}, {"zone": (INTEGER, {}), "borough": (STRING, {})}),
}
TABLES = {"people": PEOPLE, "shop": SHOP, "trips": TRIPS}


def schema(name):
    """Return one of the schemas by its name."""
    tables = []
    for table, (unit, more, columns) in TABLES[name].items():
        declared = {
            column: Column(column, kind, **declaration)
            for column, (kind, declaration) in columns.items()
            if declaration is not UNDECLARED
        }
        made = Table(table, f"{table}.parquet", unit, tuple(declared.values()), **more)
        fields = []
        for column, (kind, _) in columns.items():
            known = declared.get(column)
            fields.append(Field(column, kind, known.nullable if known else True, known))
        tables.append(TableSchema(made, tuple(fields)))
    study = Study(
        name, tuple(one.table for one in tables), Budget(epsilon=1000, delta=Fraction(1, 1000)), Path(f"{name}.ledger")
    )
    keys = {one.table.name: one.table.key for one in tables if one.table.public}
    return Schema(study, tuple(tables), Facts(keys, 1000))


def questions():
    """Return the corpus: id, schema, sql, dialect, expect (answer or refuse), error, by (parse or plan), why."""
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    return [{"dialect": "duckdb", "error": None, "by": "parse", **json.loads(line)} for line in lines]
