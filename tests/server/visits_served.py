"""A real service of a small study on a real socket, in this process."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn

from curador.server import tokens
from curador.server.agents import add_agents
from curador.server.app import AppSettings, make_app
from curador.server.service import Service, ServiceSettings

STUDY = """\
version = 1
name = "visits"
budget = {{ epsilon = "3", delta = "1e-6" }}
ledger = "visits.ledger"

[unit]
name = "customer"

[engine]
deadline = "30 s"

[tables.visits]
source = "visits.parquet"
description = {about}
unit = "user_id"
caps = {{ rows = 5, groups = 3 }}

[tables.visits.columns]
spent = {{ type = "float", bounds = [0, 500], description = {about} }}
city = {{ type = "string", values = {cities} }}

[analysts]
ana = {{ share = "20%" }}
eva = {{ share = "60%" }}
"""
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY city"
COUNT = "SELECT COUNT(*) AS n FROM visits"


def write_study(folder, cities=("Lima", "Quito", "Cuzco"), people=600, seed=1):
    """A study of visits; cities are declared, and told in descriptions; shops are found privately."""
    import json

    rng = np.random.default_rng(seed)
    rows = people * 3
    visits = {
        "user_id": np.arange(rows) % people,
        "spent": rng.random(rows) * 500,
        "city": pa.array(rng.choice(cities, rows).tolist()),
        "shop": pa.array([cities[one % len(cities)] for one in range(rows)]),
    }
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    file = folder / "study.toml"
    said = {"cities": list(cities), "about": "; ".join(cities)[:1000]}
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in said.items()}
    file.write_text(STUDY.format(**texts), encoding="utf-8")
    return file


@contextlib.contextmanager
def serving(file, *, extend=(add_agents,), when_ready=True):
    """Serve a study file; gives its address and the service."""
    service = Service.open(file, settings=ServiceSettings(when_ready=when_ready))
    app = make_app(service, AppSettings(grace=5.0, extend=tuple(extend)))
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the service did not begin")
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", service
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
        service.close()


def token_of(service, role="analyst", name="eva", **said):
    """A token's text."""
    return tokens.new_token(service.state, service.study, role, name=name if role == "analyst" else None, **said)[0]
