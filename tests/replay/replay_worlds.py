"""Random studies with random data full of edges, and neighbours of them."""

import datetime as dt
import random
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from curador.privacy.adjacency import Adjacency
from curador.study.file import read_study

FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7e308, -1.7e308, None, 0.1, 0.2, 0.3, 499.99, 500.0, 1e9]
INTEGERS = [None, 0, 1, 2, 3, 4, 5, 2**63 - 1, -(2**63), 9007199254740993]
LONG = "ab" * 40_000
"""More than any text of a unit may be, and more than one may be."""

TEXTS = [None, "", "a", "A", "b", "c", "Paris", "Lyon", "Zzyzx", "o'Brien", "東京", "a\x00b".replace("\x00", " ")]
DAYS = [None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(2023, 12, 31)]

PEOPLE = pa.schema(
    [("id", pa.int64()), ("age", pa.int64()), ("income", pa.float64()), ("sex", pa.string()), ("city", pa.string())]
)
VISITS = pa.schema(
    [
        ("id", pa.int64()),
        ("spent", pa.float64()),
        ("rating", pa.int64()),
        ("kind", pa.string()),
        ("city", pa.string()),
        ("day", pa.date32()),
        ("raw", pa.float64()),
        ("good", pa.bool_()),
    ]
)
ORDERS = pa.schema([("id", pa.int64()), ("number", pa.int64()), ("day", pa.date32())])
LINES = pa.schema([("number", pa.int64()), ("price", pa.float64()), ("amount", pa.int64()), ("flag", pa.string())])
REGIONS = pa.schema([("city", pa.string()), ("region", pa.string())])
EVENTS = pa.schema([("x", pa.int64()), ("y", pa.float64()), ("kind", pa.string())])

STUDY = """
version = 1
name = "replay"
adjacency = "{adjacency}"
budget = {{ epsilon = "1000", delta = "1e-3" }}
allow_large_delta = true
ledger = "replay.ledger"
max_units = 1_000_000
[engine]
worker = "inline"
threads = {threads}
unit_rows = {unit_rows}
unit_work = "{unit_work}"
[tables.people]
source = "people.parquet"
unit = "id"
unique = true
[tables.people.columns]
age = {{ type = "integer", bounds = [0, 120] }}
income = {{ type = "float", bounds = [{low}, 200000] }}
sex = {{ type = "string", values = ["a", "b"] }}
[tables.visits]
source = "visits.parquet"
unit = "id"
caps = {{ rows = {rows}, groups = {groups}, rows_per_group = {in_group} }}
[tables.visits.columns]
spent = {{ type = "float", bounds = [{low}, 500] }}
rating = {{ type = "integer", bounds = [1, 5] }}
kind = {{ type = "string", values = ["a", "b", "c"], nullable = true }}
day = {{ type = "date", bounds = ["2023-01-01", "2024-12-31"] }}
[tables.orders]
source = "orders.parquet"
unit = {{ column = "id", references = "people" }}
caps = {{ rows = {rows}, groups = {groups}, rows_per_group = {in_group} }}
[tables.lines]
source = "lines.parquet"
unit = {{ column = "number", references = "orders.number" }}
caps = {{ rows = {rows}, groups = {groups}, rows_per_group = {in_group} }}
[tables.lines.columns]
price = {{ type = "decimal", bounds = [-10, 100] }}
amount = {{ type = "integer", bounds = [0, 9] }}
flag = {{ type = "string", values = ["a", "b", "c"] }}
[tables.regions]
source = "regions.parquet"
public = true
"""

EVENTS_STUDY = """
version = 1
name = "replay"
adjacency = "{adjacency}"
budget = {{ epsilon = "1000", delta = "1e-3" }}
allow_large_delta = true
ledger = "replay.ledger"
max_units = 1_000_000
[engine]
worker = "inline"
threads = {threads}
unit_rows = {unit_rows}
unit_work = "{unit_work}"
[tables.events]
source = "events.parquet"
unit = "row"
[tables.events.columns]
x = {{ type = "integer", bounds = [-3, 7] }}
y = {{ type = "float", bounds = [-2, 2] }}
kind = {{ type = "string", values = ["a", "b", "c"], nullable = true }}
[tables.regions]
source = "regions.parquet"
public = true
"""


@dataclass(frozen=True)
class World:
    """Rows by table; units own rows by `id`, lines by their order's number, events by themselves."""

    tables: dict
    adjacency: Adjacency
    toml: str

    def without(self, unit):
        """Return the world without one unit's rows, in all tables."""
        if "events" in self.tables:
            kept = {**self.tables, "events": [row for place, row in enumerate(self.tables["events"]) if place != unit]}
            return replace(self, tables=kept)
        numbers = {row["number"] for row in self.tables["orders"] if row["id"] == unit}
        kept = {name: [row for row in rows if row.get("id", object()) != unit] for name, rows in self.tables.items()}
        kept["lines"] = [row for row in self.tables["lines"] if row["number"] not in numbers]
        return replace(self, tables=kept)

    def units(self):
        """Return who can leave."""
        if "events" in self.tables:
            return list(range(len(self.tables["events"])))
        ids = {row["id"] for name in ("people", "visits", "orders") for row in self.tables[name]}
        return sorted(one for one in ids if one is not None)

    def written(self, folder: Path):
        """Write the files and return the study."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in self.tables.items():
            schema = SCHEMAS[name]
            columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in schema}
            pq.write_table(pa.table(columns, schema=schema), folder / f"{name}.parquet")
        (folder / "study.toml").write_text(self.toml, encoding="utf-8")
        return read_study(folder / "study.toml")


SCHEMAS = {"people": PEOPLE, "visits": VISITS, "orders": ORDERS, "lines": LINES, "regions": REGIONS, "events": EVENTS}


def random_world(dice: random.Random) -> World:
    """Return a study and its data: a dozen people, some with many rows, some with equal ones, some rows of nobody."""
    rows = dice.choice([1, 2, 3, 5])
    settings = {
        "adjacency": dice.choice(list(Adjacency)),
        "rows": rows,
        "groups": dice.choice([1, 2, 3]),
        "in_group": dice.choice([1, 2, rows]),
        "low": dice.choice([0, -500, 100]),
        "threads": dice.choice([1, 2]),
        "unit_rows": dice.choice([6, 16_384, 16_384, 16_384]),
        "unit_work": dice.choice(["35us", "60us", "2ms", "2ms", "2ms", "2ms", "2ms", "2ms"]),
    }
    regions = [
        {"city": dice.choice(TEXTS), "region": dice.choice(["north", "south", None])} for _ in range(dice.choice([3, 8]))
    ]
    if dice.random() < 0.15:
        events = [event(dice) for _ in range(dice.choice([1, 10, 40]))]
        return World({"events": events, "regions": regions}, settings["adjacency"], EVENTS_STUDY.format(**settings))
    people = dice.sample(range(1, 40), 12)
    tables = {"people": [], "visits": [], "orders": [], "lines": [], "regions": regions}
    for one in people:
        add_unit(dice, tables, one)
    tables["visits"] += [visit(dice, None) for _ in range(3)]
    tables["lines"].append(line(dice, 10**6))
    for rows in (tables["visits"], tables["people"], tables["lines"], tables["orders"]):
        dice.shuffle(rows)
    return World(tables, settings["adjacency"], STUDY.format(**settings))


def add_unit(dice, tables, one):
    """Give one unit its rows."""
    if dice.random() < 0.9:
        tables["people"] += [person(dice, one) for _ in range(dice.choice([1, 1, 1, 2]))]
    many = dice.choice([0, 1, 2, 4, 8, 20, 60])
    visits = [visit(dice, one) for _ in range(many)]
    if many > 2 and dice.random() < 0.5:
        visits = [visits[0]] * many
    if dice.random() < 0.1:
        visits = [{**row, "city": LONG[: dice.choice([5_000, 80_000])]} for row in visits]
    tables["visits"] += visits
    for _ in range(dice.choice([0, 1, 2, 4])):
        number = one * 1000 + len(tables["orders"])
        tables["orders"].append({"id": one, "number": number, "day": dice.choice(DAYS)})
        tables["lines"] += [line(dice, number) for _ in range(dice.choice([0, 1, 3]))]


def neighbour(dice: random.Random, world: World) -> World:
    """Return the world without one unit, or with one unit's rows replaced by another's."""
    units = world.units()
    unit = dice.choice([units[0], units[-1], dice.choice(units)]) if units else 0
    left = world.without(unit)
    if world.adjacency is Adjacency.ADD_OR_REMOVE_ONE:
        return left
    tables = {name: list(rows) for name, rows in left.tables.items()}
    if "events" in tables:
        tables["events"].append(event(dice))
    else:
        add_unit(dice, tables, dice.choice([unit, 99]))
    return replace(left, tables=tables)


def person(dice, one):
    income = dice.choice([*FLOATS, dice.random() * 2e5])
    return {
        "id": one,
        "age": dice.choice(INTEGERS),
        "income": income,
        "sex": dice.choice(["a", "b", "z", None]),
        "city": dice.choice(TEXTS),
    }


def visit(dice, one):
    return {
        "id": one,
        "spent": dice.choice([*FLOATS, dice.randrange(5000) / 10]),
        "rating": dice.choice(INTEGERS),
        "kind": dice.choice(["a", "b", "c", "z", None]),
        "city": dice.choice(TEXTS),
        "day": dice.choice([*DAYS, dt.date(2024, dice.randrange(1, 13), 3)]),
        "raw": dice.choice(FLOATS),
        "good": dice.choice([True, False, None]),
    }


def line(dice, number):
    return {
        "number": number,
        "price": dice.choice([*FLOATS, dice.randrange(1000) / 100]),
        "amount": dice.choice(INTEGERS),
        "flag": dice.choice(["a", "b", "c", "z", None]),
    }


def event(dice):
    return {"x": dice.choice(INTEGERS), "y": dice.choice(FLOATS), "kind": dice.choice(["a", "b", "z", None])}
