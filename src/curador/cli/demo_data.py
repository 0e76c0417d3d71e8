"""A made-up country for the demonstration: people, a year of their visits, and a public table of cities.

Nobody and nothing in it exists. The tables are the same on every machine (their generator has a seed; the noise of answers
has none) and look like real ones: a few people go out every day and most seldom, incomes are skewed and partly unknown, one
visit in fifteen has no price and one in three no rating, and some prices lie far outside what the owner declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

SEED = 7
PEOPLE = 100_000
VISITS = 1_000_000
VENUES = 30  # of one city
FAVOURITES = 6  # venues that one person goes to, at most

CITIES = (
    # city, region, inhabitants
    ("Albarena", "north", 214_000),
    ("Bruma", "coast", 1_120_000),
    ("Cardenal", "centre", 386_000),
    ("Dorada", "south", 95_000),
    ("Encina", "centre", 528_000),
    ("Faro", "coast", 74_000),
    ("Granate", "north", 167_000),
    ("Hondura", "south", 241_000),
    ("Isleta", "coast", 58_000),
    ("Jara", "south", 133_000),
)

KINDS = {
    # usual price, its spread, the busiest hour, stars that people give
    "bakery": (4.0, 0.5, 8, 4.2),
    "bar": (24.0, 0.7, 22, 3.8),
    "cafe": (7.0, 0.5, 10, 4.0),
    "cinema": (13.0, 0.3, 20, 3.7),
    "gym": (9.0, 0.3, 18, 3.9),
    "market": (31.0, 0.6, 11, 3.6),
    "museum": (11.0, 0.4, 14, 4.4),
    "restaurant": (38.0, 0.6, 20, 3.9),
}

STUDY = """\
# Who is protected, what may be asked, and how much all answers together may reveal.
version = 1
name = "outings"
budget = { epsilon = "3", delta = "1e-8" }   # for ever, over all analysts and questions
max_units = 1_000_000                        # public: there are no more people than this
ledger = "outings.ledger"

[unit]
name = "person"

[tables.people]
source = "people.parquet"
unit = "id"
unique = true                                # one row a person

[tables.people.columns]
birth_year = { type = "integer", bounds = [1930, 2010] }
city = { type = "string", values = [
  "Albarena", "Bruma", "Cardenal", "Dorada", "Encina", "Faro", "Granate", "Hondura", "Isleta", "Jara",
] }
income = { type = "decimal", bounds = [0, 6000] }
joined = { type = "date", bounds = ["2015-01-01", "2025-12-31"] }

[tables.visits]
source = "visits.parquet"
unit = { column = "person", references = "people" }
caps = { rows = 40, groups = 6 }             # what one person may add to one answer

[tables.visits.columns]
kind = { type = "string", values = [
  "bakery", "bar", "cafe", "cinema", "gym", "market", "museum", "restaurant",
] }
spent = { type = "decimal", bounds = [0, 200] }
rating = { type = "integer", bounds = [1, 5] }
visited = { type = "timestamp", bounds = ["2025-01-01", "2025-12-31 23:59:59"] }

[tables.cities]
source = "cities.parquet"
public = true                                # of nobody: may be joined, costs nothing
key = ["city"]

[analysts]
ana = { share = "40%" }                      # a limit inside the one budget
"""


def write_demo(folder: Path) -> Path:
    """Write people, visits, cities and the study file into the folder; return the study's place."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    source = np.random.default_rng(SEED)
    city = _draw_weighted(source, [size for _, _, size in CITIES], PEOPLE)
    tables = {"people": _people(source, city), "visits": _visits(source, city), "cities": _cities()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=122_880)
    place = folder / "study.toml"
    place.write_text(STUDY, encoding="utf-8")
    return place


def _cities() -> dict[str, Any]:
    cities, regions, inhabitants = zip(*CITIES, strict=True)
    return {"city": cities, "region": regions, "inhabitants": inhabitants}


def _people(source: np.random.Generator, city: Integers) -> dict[str, Any]:
    import numpy as np
    import pyarrow as pa

    birth = np.clip(source.normal(1982, 17, PEOPLE), 1930, 2010).astype(np.int32)
    usual = 1400 + 260 * np.sin(city * 1.7) + 12 * np.clip(2025 - birth - 20, 0, 30)
    income = (usual * source.lognormal(-0.08, 0.4, PEOPLE)).round(2)
    joined = np.datetime64("2015-01-01") + (4017 * source.beta(2.0, 1.2, PEOPLE)).astype(np.int64)
    unknown = (source.random(PEOPLE) < 0.08) | (birth > 2007)
    return {
        "id": np.arange(1, PEOPLE + 1),
        "birth_year": birth,
        "city": _pick_names(city, [name for name, _, _ in CITIES]),
        "income": pa.array(income, mask=unknown),
        "joined": joined.astype("datetime64[D]"),
    }


def _visits(source: np.random.Generator, city: Integers) -> dict[str, Any]:
    import numpy as np
    import pyarrow as pa

    person = _draw_weighted(source, source.lognormal(0.0, 0.8, PEOPLE), VISITS)  # skewed: some go out every day
    kinds = np.array(list(KINDS.values()))
    kind_of_venue = _draw_weighted(source, [7, 6, 12, 3, 4, 10, 1, 9], len(CITIES) * VENUES)

    # everybody has a few favourite places in their own city, and likes the first best
    favourites = _draw_weighted(source, 1.0 / np.arange(1, VENUES + 1) ** 0.8, PEOPLE * FAVOURITES).reshape(
        PEOPLE, FAVOURITES
    )
    favourite = np.minimum(source.geometric(0.4, VISITS) - 1, FAVOURITES - 1)
    venue = city[person] * VENUES + favourites[person, favourite]
    kind = kind_of_venue[venue]
    price, spread, hour, stars = kinds[kind].T

    spent = (price * np.exp(spread * source.standard_normal(VISITS))).round(2)
    spent[source.random(VISITS) < 0.0003] *= 40  # a wedding party, or a slipped decimal point
    rating = np.clip(np.rint(stars + source.standard_normal(VISITS)), 1, 5).astype(np.int8)
    day = source.integers(0, 365, VISITS)
    minute = np.clip(60 * hour + 75 * source.standard_normal(VISITS), 0, 1439).astype(np.int64)
    return {
        "person": person + 1,
        "kind": _pick_names(kind, list(KINDS)),
        "venue": _pick_names(venue, [f"{list(KINDS)[kind]} {1 + place}" for place, kind in enumerate(kind_of_venue)]),
        "visited": np.datetime64("2025-01-01T00:00", "us") + 60_000_000 * (1440 * day + minute),
        "spent": pa.array(spent, mask=source.random(VISITS) < 0.07),
        "rating": pa.array(rating, mask=source.random(VISITS) < 0.35),
    }


def _draw_weighted(source: np.random.Generator, weights: Sequence[float] | NDArray[np.floating[Any]], size: int) -> Integers:
    """Return that many places, each with probability in proportion to its weight."""
    import numpy as np

    upper = np.cumsum(np.asarray(weights, dtype=np.float64))
    return np.searchsorted(upper, source.random(size) * upper[-1]).astype(np.int64)


def _pick_names(places: Integers, names: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(places.astype("int32")), pa.array(list(names)))
