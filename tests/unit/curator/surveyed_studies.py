"""Studies with real rows, of which some tables have no declared caps: what a survey is bought for."""

import random

import pyarrow as pa
import pyarrow.parquet as pq

import curador as cu

COUNT = "SELECT COUNT(*) AS n FROM visits"
FILTERED = "SELECT COUNT(*) AS n FROM visits WHERE spent > 400"
BY_CITY = "SELECT city, COUNT(*) AS n, SUM(spent) AS total FROM visits WHERE spent > 400 GROUP BY city"
BY_SHOP = "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop"
JOINED = "SELECT COUNT(*) AS n FROM visits JOIN people ON visits.user_id = people.user_id WHERE age > 30"

STUDY = """
version = 1
name = "shops"
ledger = "shops.ledger"
unit = {{ name = "customer" }}
budget = {budget}
adjacency = "{adjacency}"
{more}
[engine]
worker = "inline"
threads = 1
deadline = "{deadline}"
[analysts]
ana = {{ share = "50%" }}
leo = {{ share = "25%" }}
[tables.visits]
source = "visits.parquet"
unit = "user_id"
{caps}
[tables.visits.columns]
spent = {{ type = "integer", bounds = [0, 500] }}
city = {{ type = "string", values = ["Lima", "Quito", "Cuzco"] }}
[tables.people]
source = "people.parquet"
unit = "user_id"
unique = true
[tables.people.columns]
age = {{ type = "integer", bounds = [0, 120] }}
"""


def write_rows(folder, *, units=400, most=60, seed=1):
    """Customers with 1 … `most` visits each, and one row each of who they are."""
    dice = random.Random(seed)
    owners = [unit for unit in range(units) for _ in range(dice.choice([1, 2, 6, most]))]
    visits = {
        "user_id": owners,
        "spent": [dice.randrange(501) for _ in owners],
        "city": [dice.choice(["Lima", "Quito", "Cuzco"]) for _ in owners],
        "shop": [f"shop {dice.randrange(20)}" for _ in owners],
    }
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    people = {"user_id": list(range(units)), "age": [dice.randrange(90) for _ in range(units)]}
    pq.write_table(pa.table(people), folder / "people.parquet")


def write_study(
    folder, *, budget='{ epsilon = "3", delta = "1e-6" }', adjacency="add_or_remove_one", caps="", more="", deadline="60s"
):
    """Write rows, if there are none, and the study file; return its path."""
    if not (folder / "visits.parquet").exists():
        write_rows(folder)
    text = STUDY.format(budget=budget, adjacency=adjacency, caps=caps, more=more, deadline=deadline)
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def opened(folder, **changes):
    """Return the curator of such a study."""
    return cu.open(write_study(folder, **changes))


def kinds(curator):
    """The kinds of all entries, in order."""
    return [str(entry.kind) for entry in curator.ledger.entries()]


def charges(curator):
    """Everything that was reserved, in order."""
    return [entry for entry in curator.ledger.entries() if str(entry.kind) == "reserved"]


def session_of(asker):
    """What an asker stands on."""
    return asker._session  # noqa: SLF001
