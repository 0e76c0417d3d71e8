"""A small market that is made up: tables with data, for questions whose true values must be known.

customers   one row a person, the unit; visits, orders and lines are theirs, the last by a path of keys
countries, regions, products, suppliers are public

Every value lies within its bounds and the ends are taken, every person within the caps, every declared value and every public
row is somebody's: so a plain DuckDB's answer on these tables is the true one, group by group. Amounts are quarters, which
doubles hold exactly.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import curador as cu

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PEOPLE = 1200
COUNTRIES = {
    "Norway": ("Nordics", 5),
    "Sweden": ("Nordics", 10),
    "Denmark": ("Nordics", 6),
    "France": ("West", 68),
    "Belgium": ("West", 12),
    "Ireland": ("West", 5),
    "Spain": ("South", 48),
    "Italy": ("South", 59),
    "Greece": ("South", 10),
    "Chile": ("Andes", 20),
    "Peru": ("Andes", 34),
    "Bolivia": ("Andes", 12),
}
REGIONS = {"Nordics": "Europe", "West": "Europe", "South": "Europe", "Andes": "America"}
CITIES = ["Oslo", "Lima", "Paris", "Rome", "Athens", "La Paz"]
CATEGORIES = ["books", "food", "garden", "toys"]
NOTES = ["A-17 ok", "B-204 late", "C-9 ok", "gift: A-17", None, "Ünïcode", "b-31 LATE", ""]

STUDY = """version = 1
name = "market"
budget = { epsilon = "1e6", delta = "1e-3" }
allow_large_delta = true
ledger = "market.ledger"
max_units = 100_000
[engine]
worker = "inline"
threads = 1
unit_work = "100ms"

[tables.customers]
source = "customers.parquet"
unit = "customer_id"
unique = true
[tables.customers.columns]
age = { type = "integer", bounds = [0, 99], nullable = false }
sex = { type = "string", values = ["f", "m"] }
tier = { type = "string", values = ["bronze", "gold", "silver"], nullable = true }
code = { type = "string", values = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"] }
income = { type = "float", bounds = [0, 100000], nullable = true }
joined = { type = "date", bounds = ["2020-01-01", "2023-12-31"], nullable = false }
active = { type = "boolean", nullable = false }
name = { type = "string", length = 40, nullable = false }

[tables.visits]
source = "visits.parquet"
unit = "customer_id"
caps = { rows = 16, groups = 16 }
[tables.visits.columns]
moment = { type = "timestamp", bounds = ["2023-01-01", "2023-12-31 23:59:59"], nullable = false }
day = { type = "date", bounds = ["2023-01-01", "2023-12-31"], nullable = false }
channel = { type = "string", values = ["phone", "shop", "web"] }
spent = { type = "float", bounds = [0, 500], nullable = true }
items = { type = "integer", bounds = [0, 20], nullable = false }
returned = { type = "boolean", nullable = false }
note = { type = "string", length = 20, nullable = true }

[tables.orders]
source = "orders.parquet"
unit = { column = "o_customer", references = "customers" }
caps = { rows = 6, groups = 6 }
[tables.orders.columns]
status = { type = "string", values = ["done", "lost", "open"] }
total = { type = "decimal", bounds = [0, 4000], nullable = false }
placed = { type = "date", bounds = ["2022-01-01", "2023-12-31"], nullable = false }

[tables.lines]
source = "lines.parquet"
unit = { column = "l_order", references = "orders.o_id" }
caps = { rows = 12, groups = 12 }
[tables.lines.columns]
quantity = { type = "integer", bounds = [1, 10], nullable = false }
price = { type = "float", bounds = [0, 100], nullable = false }
discount = { type = "float", bounds = [0, 0.5], nullable = false }

[tables.countries]
source = "countries.parquet"
public = true
key = ["country"]
[tables.regions]
source = "regions.parquet"
public = true
key = ["region"]
[tables.products]
source = "products.parquet"
public = true
key = ["product"]
[tables.suppliers]
source = "suppliers.parquet"
public = true
key = ["supplier"]
"""


def tables() -> dict[str, pa.Table]:
    """Return the same tables every time."""
    dice = np.random.default_rng(15)
    customers = _customers(dice)
    visits = _visits(dice)
    orders, lines = _orders(dice)
    names = list(COUNTRIES)
    public = {
        "countries": {
            "country": names,
            "region": [COUNTRIES[one][0] for one in names],
            "population": [COUNTRIES[one][1] for one in names],
        },
        "regions": {"region": list(REGIONS), "continent": list(REGIONS.values())},
        "products": {
            "product": np.arange(1, 13),
            "category": [CATEGORIES[place % 4] for place in range(12)],
            "list_price": [5.0 + 2 * place for place in range(12)],
        },
        "suppliers": {"supplier": np.arange(1, 25), "s_country": [names[place % 12] for place in range(24)]},
    }
    private = {"customers": customers, "visits": visits, "orders": orders, "lines": lines}
    return {name: pa.table(columns) for name, columns in {**private, **public}.items()}


def _customers(dice: np.random.Generator) -> dict[str, object]:
    ids, ages = np.arange(1, PEOPLE + 1), dice.permutation(PEOPLE) % 100
    tiers = np.array(["bronze", "bronze", "silver", "gold"])[dice.integers(0, 4, PEOPLE)]
    days = dice.permutation(PEOPLE) * 1460 // (PEOPLE - 1)
    return {
        "customer_id": ids,
        "age": ages,
        "sex": np.array(["f", "m"])[(dice.random(PEOPLE) < 0.4).astype(int)],
        "tier": pa.array(tiers, mask=dice.random(PEOPLE) < 0.1),
        "code": [str(one) for one in 1 + dice.permutation(PEOPLE) % 16],
        "country": [list(COUNTRIES)[one] for one in np.minimum(dice.geometric(0.15, PEOPLE) - 1, 11)],
        "city": [CITIES[one] for one in dice.integers(0, 6, PEOPLE)],
        "income": pa.array((dice.integers(20, 200, PEOPLE) + 2 * ages) * 250.0, mask=dice.random(PEOPLE) < 0.05),
        "joined": [dt.date(2020, 1, 1) + dt.timedelta(days=int(one)) for one in days],
        "active": dice.random(PEOPLE) < 0.7,
        "name": [f"{'Ana' if one % 3 else 'Bo'} {one:04d}" for one in ids],
    }


def _visits(dice: np.random.Generator) -> dict[str, object]:
    """Twelve visits at most of one person, none of a tenth of them."""
    many = np.where(dice.random(PEOPLE) < 0.1, 0, dice.integers(1, 13, PEOPLE))
    owners = np.repeat(np.arange(1, PEOPLE + 1), many)
    rows = len(owners)
    minutes = dice.permutation(rows) * (365 * 24 * 60 - 1) // (rows - 1)
    times = [dt.datetime(2023, 1, 1) + dt.timedelta(minutes=int(one)) for one in minutes]  # noqa: DTZ001 -- UTC
    return {
        "visit_id": np.arange(rows),
        "customer_id": owners,
        "moment": pa.array(times, pa.timestamp("us")),
        "day": [one.date() for one in times],
        "channel": np.array(["phone", "shop", "web", "web"])[dice.integers(0, 4, rows)],
        "spent": pa.array(dice.permutation(rows) % 2001 / 4.0, mask=dice.random(rows) < 0.06),
        "items": dice.integers(0, 21, rows),
        "returned": dice.random(rows) < 0.15,
        "product": dice.integers(1, 13, rows),
        "note": pa.array([NOTES[one] for one in dice.integers(0, len(NOTES), rows)], pa.string()),
    }


def _orders(dice: np.random.Generator) -> tuple[dict[str, object], dict[str, object]]:
    """Four orders at most of one person, three lines at most of an order."""
    owners = np.repeat(np.arange(1, PEOPLE + 1), dice.integers(0, 5, PEOPLE))
    rows = len(owners)
    orders: dict[str, object] = {
        "o_id": np.arange(1, rows + 1) * 10,
        "o_customer": owners,
        "status": np.array(["done", "done", "open", "lost"])[dice.integers(0, 4, rows)],
        "total": pa.array([f"{one / 4:.2f}" for one in dice.integers(0, 12_000, rows)]).cast(pa.decimal128(12, 2)),
        "placed": [dt.date(2022, 1, 1) + dt.timedelta(days=int(one)) for one in dice.permutation(rows) * 729 // (rows - 1)],
    }
    of = np.repeat(np.arange(1, rows + 1) * 10, dice.integers(1, 4, rows))
    many = len(of)
    lines: dict[str, object] = {
        "l_order": of,
        "l_product": dice.integers(1, 13, many),
        "l_supplier": dice.integers(1, 25, many),
        "quantity": dice.integers(1, 11, many),
        "price": dice.integers(4, 400, many) / 4.0,
        "discount": dice.integers(0, 3, many) / 8.0,
    }
    return orders, lines


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[tuple[cu.Curator, duckdb.DuckDBPyConnection]]:
    """Write the market into a folder; give a curator of it, and a plain DuckDB with the same tables."""
    held = tables()
    for name, table in held.items():
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    with contextlib.closing(duckdb.connect()) as plain, cu.open(folder / "study.toml") as curator:
        plain.execute("SET TimeZone = 'UTC'")
        for name, table in held.items():
            plain.register(f"held_{name}", table)
            plain.execute(f"CREATE TABLE {name} AS SELECT * FROM held_{name}")
        yield curator, plain
