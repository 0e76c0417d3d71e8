"""The real service on a port of loopback, over a small made-up study, in a thread of the test's own process."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curador.server.service import Service

PEOPLE = 20_000
CITIES = ("Albarena", "Bruma", "Cardenal", "Dorada", "Encina", "Faro", "Granate", "Hondura")

STUDY = """\
version = 1
name = {name}
budget = {{ epsilon = "4", delta = "1e-8" }}
max_units = 1_000_000
ledger = "study.ledger"

[unit]
name = {unit}

[engine]
answer_every = {every}
deadline = 12

[tables.people]
source = "people.parquet"
description = {about}
unit = "id"
unique = true

[tables.people.columns]
city = {{ type = "string", values = {cities} }}
birth_year = {{ type = "integer", bounds = [1930, 2010] }}
income = {{ type = "decimal", bounds = [0, 6000], description = {earned} }}
joined = {{ type = "date", bounds = ["2024-01-01", "2025-12-31"] }}
{column} = {{ type = "integer", bounds = [0, 9] }}

[tables.visits]
source = "visits.parquet"
unit = {{ column = "person", references = "people" }}

[tables.visits.columns]
kind = {{ type = "string", values = ["bakery", "bar", "cafe", "cinema", "museum"] }}
spent = {{ type = "decimal", bounds = [0, 200] }}

[analysts]
ana = {{ share = "40%" }}
{other} = {{ share = "30%" }}
"""


@dataclass(frozen=True, slots=True)
class Served:
    """Where the service is, and a token for each role."""

    url: str
    tokens: dict[str, str]
    service: Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Texts of a study that are somebody's own: its keys, and what things are called."""

    study: str = "outings"
    unit: str = "person"
    column: str = "children"
    analyst: str = "bruno"
    about: str = "Everybody who lives in one of eight towns."
    earned: str = "A month, after taxes."
    cities: tuple[str, ...] = CITIES


def write_study(folder: Path, names: Names | None = None, *, every: int = 1) -> Path:
    """Write people, visits and their study."""
    names = names or Names()
    cities = names.cities
    source = np.random.default_rng(11)
    where = source.choice(len(cities), PEOPLE, p=_falling(len(cities)))
    income = (1500 + 90 * where + 400 * source.standard_normal(PEOPLE)).clip(0, 6000).round(2)
    joined = np.datetime64("2024-01-01") + source.integers(0, 700, PEOPLE)
    people = {
        "id": np.arange(1, PEOPLE + 1),
        "city": [cities[one] for one in where],
        "birth_year": source.integers(1930, 2011, PEOPLE),
        "income": income,
        "joined": joined.astype("datetime64[D]"),
        names.column: source.integers(0, 10, PEOPLE),
    }
    kinds = np.array(["bakery", "bar", "cafe", "cinema", "museum"])
    who = source.integers(1, PEOPLE + 1, 2 * PEOPLE)
    visits = {
        "person": who,
        "kind": kinds[source.integers(0, 5, 2 * PEOPLE)],
        "spent": source.gamma(2, 12, 2 * PEOPLE).clip(0, 200),
    }
    for table, columns in {"people": people, "visits": visits}.items():
        parquet.write_table(pa.table(columns), folder / f"{table}.parquet")
    place = folder / "study.toml"
    texts = "[" + ", ".join(_toml(one) for one in cities) + "]"
    said = {"name": names.study, "unit": names.unit, "column": names.column, "other": names.analyst}
    said |= {"about": names.about, "earned": names.earned}
    text = STUDY.format(cities=texts, every=every, **{key: _toml(value) for key, value in said.items()})
    place.write_text(text, encoding="utf-8")
    return place


def _falling(several: int) -> np.ndarray:
    parts = 1 / np.arange(2, several + 2)
    return parts / parts.sum()


def _toml(text: str) -> str:
    """A text as TOML has it."""
    signs = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(signs.get(one) or (one if 32 <= ord(one) < 127 else f"\\U{ord(one):08x}") for one in text) + '"'


@contextlib.contextmanager
def serve(study: Path) -> Iterator[Served]:
    """Serve a study with a token for the owner, two analysts and an auditor until the block ends."""
    import uvicorn

    from curador.server.app import make_app
    from curador.server.service import Service
    from curador.server.tokens import new_token

    with contextlib.closing(Service.open(study)) as service:
        wanted = {"owner": ("owner", None), "auditor": ("auditor", None), "analyst": ("analyst", "ana")}
        tokens = {key: new_token(service.state, service.study, role, name=name)[0] for key, (role, name) in wanted.items()}
        settings = uvicorn.Config(make_app(service), host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=2)
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=server.run, name="service")
        thread.start()
        while not server.started and thread.is_alive():
            thread.join(0.02)
        try:
            port = server.servers[0].sockets[0].getsockname()[1]
            yield Served(f"http://127.0.0.1:{port}", tokens, service)
        finally:
            server.should_exit = True
            thread.join(30)
