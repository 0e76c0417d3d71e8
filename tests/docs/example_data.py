"""The files that examples of the documents find in their folder: visits, people, cities and a study over them.

Nobody in them exists. They are the same on every machine; what is answered about them is not, as its noise has no seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from pathlib import Path

PEOPLE = 8_000
VISITS = 60_000
DAYS = 366
"""Days of 2024."""

CITIES = {"Cusco": 0.12, "Lima": 0.45, "Quito": 0.28, "Valencia": 0.15}
COUNTRIES = {"Cusco": "Peru", "Lima": "Peru", "Quito": "Ecuador", "Valencia": "Spain"}
VILLAGE, VILLAGERS = "Iquicha", 6
"""A place that few have visited: no example may ever show it."""

STUDY = """\
version = 1
name = "shop"
budget = { epsilon = "3", delta = "1e-6" }   # for ever, over all analysts and questions
max_units = 10_000                           # public: there are no more customers than this
ledger = "shop.ledger"

[unit]
name = "customer"

[tables.visits]
source = "visits.parquet"
unit = "user_id"
caps = { rows = 10, groups = 4 }
caps_max = { rows = 50 }

[tables.visits.columns]
city = { type = "string" }
spent = { type = "float", bounds = [0, 500], nullable = false }
rating = { type = "integer", values = [1, 2, 3, 4, 5], nullable = true }
day = { type = "date", bounds = ["2024-01-01", "2024-12-31"] }

[tables.people]
source = "people.parquet"
unit = "user_id"
unique = true

[tables.people.columns]
age = { type = "integer", bounds = [18, 100] }
plan = { type = "string", values = ["basic", "plus"] }

[tables.cities]
source = "cities.csv"
public = true
key = ["city"]

[analysts]
ana = { share = "20%" }
eva = { share = "50%", tables = ["visits"] }
"""


def write(folder: Path) -> None:
    """Write visits.parquet, people.parquet, cities.csv and study.toml."""
    draw = np.random.default_rng(2024)
    parquet.write_table(_people(draw), folder / "people.parquet")
    parquet.write_table(_visits(draw), folder / "visits.parquet")
    lines = ["city,country", *(f"{city},{country}" for city, country in COUNTRIES.items())]
    (folder / "cities.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")


def _people(draw: np.random.Generator) -> pa.Table:
    return pa.table(
        {
            "user_id": np.arange(PEOPLE),
            "age": np.clip(draw.normal(41, 15, PEOPLE), 18, 95).astype(np.int64),
            "plan": draw.choice(["basic", "plus"], PEOPLE, p=[0.8, 0.2]),
        }
    )


def _visits(draw: np.random.Generator) -> pa.Table:
    """Some people come often and most seldom; one visit in four has no rating."""
    often = draw.gamma(1.5, 1.0, PEOPLE)
    city = draw.choice(list(CITIES), VISITS, p=list(CITIES.values())).astype(object)
    city[:VILLAGERS] = VILLAGE
    stars = draw.choice(5, VISITS, p=[0.05, 0.1, 0.2, 0.4, 0.25]) + 1
    user = draw.choice(PEOPLE, VISITS, p=often / often.sum())
    user[:VILLAGERS] = np.arange(VILLAGERS)
    start = np.datetime64("2024-01-01")
    return pa.table(
        {
            "user_id": user,
            "city": pa.array(city.tolist(), pa.string()),
            "spent": np.round(draw.gamma(2.0, 40.0, VISITS), 2),
            "rating": pa.array(stars, mask=draw.random(VISITS) < 0.25),
            "day": start + draw.integers(0, DAYS, VISITS).astype("timedelta64[D]"),
        }
    )
