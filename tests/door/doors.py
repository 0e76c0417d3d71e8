"""A door over a real study, in a thread of the test's process; its service, its shadow and its engine are the real ones."""

import asyncio
import contextlib
import datetime as dt
import threading
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
from pyarrow import parquet

from curador.door.door import Door, DoorLimits
from curador.server import tokens
from curador.server.service import Service, ServiceSettings

CANARY = "canary-7f3a91"
"""Stands in a row of nobody's that only the shadow is given, by tests."""

CITIES = ["Bern", "Basel", "Chur"]

STUDY = """\
version = 1
name = "clinic"
budget = { epsilon = "300", delta = "1e-6" }
max_units = 10_000
ledger = "clinic.ledger"

[unit]
name = "patient"

[tables.visits]
source = "visits.parquet"
description = "each time at the doctor's"
unit = "user_id"
caps = { rows = 10, groups = 4 }

[tables.visits.columns]
city = { type = "string", values = ["Bern", "Basel", "Chur"] }
spent = { type = "float", bounds = [0, 500], nullable = false, description = "paid at the counter" }
price = { type = "decimal", bounds = [0, 100] }
rating = { type = "integer", values = [1, 2, 3, 4, 5], nullable = true }
paid = { type = "boolean" }
day = { type = "date", bounds = ["2024-01-01", "2024-12-31"] }
seen = { type = "timestamp", bounds = ["2024-01-01 00:00:00", "2024-12-31 00:00:00"] }

[tables.secrets]
source = "secrets.parquet"
unit = "user_id"
caps = { rows = 5 }

[tables.secrets.columns]
kind = { type = "string", values = ["a", "b"] }

[tables.towns]
source = "towns.parquet"
public = true

[analysts.ana]
share = "60%"

[analysts.ben]
share = "30%"
tables = ["visits"]
"""


def write_study(folder: Path) -> Path:
    """Write the study and its data."""
    draw = np.random.default_rng(7)
    rows = 6_000
    days = [dt.date(2024, 1, 1) + dt.timedelta(int(day)) for day in draw.integers(0, 366, rows)]
    visits = {
        "user_id": draw.integers(0, 2_000, rows),
        "city": draw.choice(CITIES, rows),
        "spent": draw.random(rows) * 500,
        "price": pa.array([Decimal(int(cents)) / 100 for cents in draw.integers(0, 10_000, rows)], pa.decimal128(8, 2)),
        "rating": draw.integers(1, 6, rows),
        "paid": draw.random(rows) < 0.5,
        "day": pa.array(days, pa.date32()),
        "seen": pa.array([dt.datetime.combine(day, dt.time(12)) for day in days], pa.timestamp("us")),
    }
    parquet.write_table(pa.table(visits), folder / "visits.parquet")
    parquet.write_table(
        pa.table({"user_id": draw.integers(0, 2_000, 500), "kind": draw.choice(["a", "b"], 500)}), folder / "secrets.parquet"
    )
    parquet.write_table(pa.table({"town": CITIES, "canton": ["BE", "BS", "GR"]}), folder / "towns.parquet")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return folder / "study.toml"


@dataclass
class OpenDoor:
    """A door that listens, and what is behind it."""

    service: Service
    door: Door
    port: int
    loop: asyncio.AbstractEventLoop
    log: list[tuple[str, dict]] = field(default_factory=list)
    noted: list[tuple[str, dict]] = field(default_factory=list)
    made: dict[str, tuple[str, str]] = field(default_factory=dict)

    def token(self, name="ana", **said):
        """Return the user and the password of a new token."""
        role = name if name in {"owner", "auditor"} else "analyst"
        text, caller = tokens.new_token(
            self.service.state, self.service.study, role, name=name if role == "analyst" else None, **said
        )
        return f"{name}.{caller.token_id}", text

    def user(self, name="ana"):
        """Return the user and the password of a token that tests share."""
        if name not in self.made:
            self.made[name] = self.token(name)
        return self.made[name]

    def words(self, name="ana", **said):
        """Return what a client says to connect."""
        user, password = self.user(name)
        return {
            "host": "127.0.0.1", "port": self.port, "user": user, "password": password, "dbname": "clinic",
            "sslmode": "disable", **said,
        }  # fmt: skip

    def url(self, name="ana", scheme="postgresql", **said):
        """Return the same as an address."""
        from urllib.parse import quote, urlencode

        user, password = self.user(name)
        query = "?" + urlencode(said, quote_via=quote) if said else ""
        return f"{scheme}://{user}:{password}@127.0.0.1:{self.port}/clinic{query}"

    def connect(self, name="ana", **said):
        """Return a connection of psycopg, each statement by itself."""
        return psycopg.connect(**self.words(name, **said), autocommit=True)

    def run(self, awaited, seconds=60):
        """Run something in the door's own loop."""
        return asyncio.run_coroutine_threadsafe(awaited, self.loop).result(seconds)

    def entries(self):
        """Return how many entries the ledger has."""
        return len(list(self.service.curator.ledger.entries()))

    @property
    def shadow(self):
        """The shadows that run."""
        return [task.result() for task in self.door.shadows.held.values() if task.done()]


@contextlib.contextmanager
def open_door(folder: Path, *, limits=None, tls=None, settings=None):
    """Open a study, and a door to it."""
    study = folder / "study.toml"
    if not study.exists():
        write_study(folder)
    service = Service.open(study, settings=settings or ServiceSettings(when_ready=True))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    log, noted = [], []

    def write(level, event, **said):
        """Keep errors, which no test may cause, apart from what is noted."""
        (log if level == "error" else noted).append((event, said))

    door = Door(service, limits=limits or DoorLimits(), tls=tls, log=write)
    try:
        port = asyncio.run_coroutine_threadsafe(door.open("127.0.0.1", 0), loop).result(10)
        yield OpenDoor(service, door, port, loop, log, noted)
    finally:
        asyncio.run_coroutine_threadsafe(door.close(), loop).result(60)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.2), loop).result(60)  # connections that end are let go of
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        service.close()
