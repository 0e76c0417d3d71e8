"""A small study with an engine that holds no data: it returns the numbers it is told to."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curador.curator.curator import Curator
from curador.curator.opening import ledger_of
from curador.curator.rehearsal import tally_without_rows
from curador.curator.session import Session
from curador.engines.base import Cells, Tallied
from curador.engines.duckdb.images import compute_images
from curador.ledger.limits import Limits
from curador.study.model import Analyst, Budget, Caps, Column, Field, Schema, Study, Table, TableSchema, UnitColumn
from curador.study.values import Type

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY city"
BY_SHOP = "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop"
CITIES = ("Lima", "Quito", "Cuzco")


class NoPublicTables:
    """Nothing is public here."""

    def multiplicity(self, table, columns):  # noqa: ARG002
        raise AssertionError(table)

    def distinct(self, table, column, most):  # noqa: ARG002
        raise AssertionError(table)

    def longest(self, table, column):  # noqa: ARG002
        raise AssertionError(table)

    def images(self, listing, most):
        return compute_images(listing, most, lambda *_: None)


def write_files(folder):
    """Files with the study's columns and no row: what is looked at before a ledger is made. Each folder's are its own."""
    visits = {"user_id": pa.int64(), "spent": pa.decimal128(9, 2), "city": pa.string(), "shop": pa.string()}
    for name, columns in (("visits", visits), ("salaries", {"user_id": pa.int64(), "pay": pa.float64()})):
        file = folder / f"{name}.parquet"
        if not file.exists():
            schema = pa.schema(list(columns.items()), metadata={"folder": str(folder)})  # else they would be copies
            pq.write_table(schema.empty_table(), file)


def make_study(folder, *, budget=None, analysts=None, name="visits", **changes):
    columns = (
        Column("spent", Type.DECIMAL, bounds=(0, 500), nullable=False),
        Column("city", Type.STRING, values=CITIES, nullable=False),
    )
    tables = (
        Table("visits", "visits.parquet", UnitColumn("user_id"), columns, caps=Caps(rows=5)),
        Table("salaries", "salaries.parquet", UnitColumn("user_id"), (), caps=Caps(rows=10)),
    )
    write_files(folder)
    people = (Analyst("ana", Fraction(1, 5)), Analyst("eva", Fraction(1), ("visits",)), Analyst("leo", Fraction(1, 2)))
    return Study(
        name=name,
        tables=tables,
        budget=budget or Budget(epsilon=3, delta="1e-6"),
        ledger=folder / f"{name}.ledger",
        folder=folder,
        analysts=people if analysts is None else analysts,
        **changes,
    )


def make_schema(study):
    visits, salaries = study.tables
    spent, city = visits.columns
    fields = (
        Field("user_id", Type.INTEGER, nullable=False),
        Field("spent", Type.DECIMAL, nullable=False, declared=spent),
        Field("city", Type.STRING, nullable=False, declared=city),
        Field("shop", Type.STRING, nullable=True),
    )
    pay = (Field("user_id", Type.INTEGER, nullable=False), Field("pay", Type.FLOAT, nullable=True))
    return Schema(study, (TableSchema(visits, fields), TableSchema(salaries, pay)), NoPublicTables())


class FakeEngine:
    """Answers every block with `each` rows a group, the middle of every range, and `shops` units a private key."""

    ready = True
    altered = False
    copies = ()

    def compile(self, blocks):
        """Refuse nothing."""
        return [(block, None) for block in blocks]

    def __init__(self, study, *, each=1000, shops=None, version=1):
        self.version = version
        self.schema = make_schema(study)
        self.each = each
        self.shops = {"north": 5000, "corner": 1} if shops is None else shops
        self.tallied = []
        self.prepared = []
        self.incidents, self.durations = {}, {}
        self.problem = None
        self.before = None
        self.closed = False

    def rehearse(self, compiled):
        """Tables without rows."""
        return [tally_without_rows(block) for block, _ in compiled]

    def record_failure(self, incident, detail):
        self.incidents[incident] = detail

    def record_duration(self, question, seconds):
        self.durations[question] = seconds

    def tally(self, compiled):
        self.tallied.append([block for block, _ in compiled])
        if self.before is not None:
            self.before()
        if self.problem is not None:
            raise self.problem
        return [self._block(block) for block, _ in compiled]

    def _block(self, block):
        known = [self._values(key) for key in block.keys]
        rows = list(itertools.product(*known))
        keys = tuple([row[place] for row in rows] for place in range(len(block.keys)))
        tallies, cells = {}, {}
        for place, tally in enumerate(block.tallies):
            if tally.kind == "cells":
                middle = tally.grid.steps // 2
                groups = np.arange(len(rows))
                cells[place] = Cells(groups, np.full(len(rows), middle), np.full(len(rows), self.each))
            else:
                one = {"steps": self.each * ((tally.grid.steps if tally.grid else 0) // 2)}.get(tally.kind, self.each)
                tallies[place] = np.full(len(rows), one, np.int64)
        selection = None
        if block.private_keys:
            selection = (tuple([*self.shops] for _ in block.private_keys), np.array([*self.shops.values()], np.int64))
        return Tallied(keys, tallies, cells, selection)

    def _values(self, key):
        return [*self.shops] if key.values is None else [float(v) if isinstance(v, Fraction) else v for v in key.values]

    def prepare(self, version, *, progress=None):  # noqa: ARG002
        self.prepared.append(version)
        self.version = version

    def close(self):
        self.closed = True


def open_curator(folder, **changes):
    engine = {name: changes.pop(name) for name in ("each", "shops") if name in changes}
    study = make_study(folder, **changes)
    ledger = ledger_of(study, new_ledger=None, verify=True)
    return Curator(study, ledger, FakeEngine(study, version=ledger.data_version, **engine))


def session_of(study, *, budget=None, analyst=None, version=1):
    """Whom prices are for: a session without a ledger's file."""
    limits = Limits.create(budget or study.budget, adjacency=study.adjacency, unit=study.unit_name, max_units=study.max_units)
    ledger = SimpleNamespace(limits=limits, stored=lambda *_: None, data_version=version)
    return Session(study, ledger, FakeEngine(study, version=version), analyst)
