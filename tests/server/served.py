"""A small study, its service, and clients of every role: by the application itself, or by real sockets."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from starlette.testclient import TestClient

from curador.server import tokens
from curador.server.app import AppSettings, make_app
from curador.server.service import Service, ServiceSettings

CANARY = "canary-7f3a91"
"""Stands in rows, in names of files and folders, and in no answer, problem or log."""
QUESTION = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
STUDY = """\
version = 1
name = "shop"
budget = { epsilon = "3", delta = "1e-8" }
max_units = 1_000_000
ledger = "shop.ledger"

[engine]
threads = 2
memory = "500 MB"
deadline = "DEADLINE s"
TICK

[unit]
name = "customer"

[tables.visits]
source = "visits-canary-7f3a91.parquet"
description = "each time in the shop"
unit = "user"
caps = { rows = 10, groups = 5 }
[tables.visits.columns]
city = { type = "string", values = ["=1+1", "c1", "c2"] }
spent = { type = "float", bounds = [0, 500], description = "paid at the till" }

[tables.secrets]
source = "secrets-canary-7f3a91.parquet"
unit = "user"

[analysts]
ana = { share = "50%", tables = ["visits"] }
bob = { share = "20%", tables = ["visits"] }
"""


def make_study(folder, *, tick=None, deadline=20, rows=2_000):
    """Write the study and its tables; return the file."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    draws = np.random.default_rng(int.from_bytes(os.urandom(4)))
    cities = np.array(["=1+1", "c1", "c2"])[draws.integers(0, 3, rows)]
    visits = pa.table(
        {
            "user": draws.integers(0, 500, rows),
            "city": cities,
            "spent": np.round(draws.uniform(0, 500, rows), 2),
            "remark": [f"{CANARY}-{place}" for place in range(rows)],
        }
    )
    pq.write_table(visits, folder / f"visits-{CANARY}.parquet")
    secrets = pa.table({"user": np.arange(50), "word": [f"{CANARY}-secret-{os.urandom(4).hex()}"] * 50})
    pq.write_table(secrets, folder / f"secrets-{CANARY}.parquet")
    pace = "" if tick is None else f'answer_every = "{tick} s"'
    text = STUDY.replace("DEADLINE", str(deadline)).replace("TICK", pace)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return folder / "study.toml"


@dataclass
class Served:
    """An open service and its application, with a token for every role."""

    service: Service
    client: TestClient
    tokens: dict
    ids: dict

    def header(self, who):
        """What somebody sends to be known; nothing for nobody."""
        return {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}

    def send(self, who, method, path, body=None, **headers):
        """Send a request."""
        said = {**self.header(who), **{name.replace("_", "-"): text for name, text in headers.items()}}
        return self.client.request(method, f"/api/v1{path}", json=body, headers=said)

    def ask(self, who, question=QUESTION, *, spend="1%", key=None, **said):
        """Ask a question."""
        headers = {} if key is None else {"Idempotency_Key": key}
        return self.send(who, "POST", "/answers", {"question": question, "options": {"spend": spend}, **said}, **headers)

    @property
    def entries(self):
        """How many entries the ledger has: it changes whenever anything is charged or said."""
        return self.service.curator.ledger.last.sequence

    @property
    def spent(self):
        """What was spent by all."""
        return self.service.curator.ledger.spent()


WHO = {"owner": ("owner", None), "ana": ("analyst", "ana"), "bob": ("analyst", "bob"), "auditor": ("auditor", None)}


@contextlib.contextmanager
def serving(folder, **settings):
    """Open a service on a study of its own."""
    service = Service.open(
        make_study(folder), settings=ServiceSettings(**{"when_ready": True, "rate": 1e6, "burst": 1e6, **settings})
    )
    made = {who: tokens.new_token(service.state, service.study, role, name=name) for who, (role, name) in WHO.items()}
    app = make_app(service, AppSettings())
    try:
        with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
            yield Served(
                service,
                client,
                {who: one[0] for who, one in made.items()},
                {who: one[1].token_id for who, one in made.items()},
            )
    finally:
        service.close()


# ---- by real sockets -----------------------------------------------------------------------------------------------------


@dataclass
class Running:
    """A service with its supervisor, in processes of its own."""

    study: Path
    port: int
    log: Path
    process: subprocess.Popen
    began: float

    @property
    def url(self):
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def token(self, name="ana", *more):
        """Make a token by the command line."""
        given = [name] if name else []
        command = [
            sys.executable,
            "-c",
            "import curador.cli; curador.cli.main()",
            "token",
            "new",
            str(self.study),
            *given,
            *more,
        ]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()

    def client(self, token, **said):
        """Return a client with a token."""
        return httpx.Client(base_url=f"{self.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=60, **said)

    def children(self):
        """The processes by their kinds."""
        found = {}
        for one in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            words = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
            if b"curador.server.process" in words:
                found.setdefault(words[words.index(b"curador.server.process") + 1].decode(), []).append(int(one))
        return found

    def stop(self):
        """End it in good order."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


def free_port():
    """Return a port that was free a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(study, *more, port=None, workers=2, when_ready=True):
    """Start a service, and return when it answers."""
    port = port or free_port()
    log = study.parent / "serve.log"
    flags = ["--answer-when-ready"] if when_ready else []
    command = [sys.executable, "-c", "import curador.cli; curador.cli.main()", "serve", str(study), "--port", str(port)]
    began = time.monotonic()
    with log.open("ab") as out:
        process = subprocess.Popen([*command, "--workers", str(workers), *flags, *more], stdout=out, stderr=out)
    running = Running(study, port, log, process, began)
    until = time.monotonic() + 180
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{running.url}/api/v1/health", timeout=2).status_code == 200:
                return running
        if process.poll() is not None:
            break
        time.sleep(0.02)
    process.terminate()
    process.wait(60)
    raise AssertionError(log.read_text(encoding="utf-8"))


@contextlib.contextmanager
def running(folder, *more, tick=None, deadline=10, **said):
    """Run a service on a study of its own."""
    one = start(make_study(folder, tick=tick, deadline=deadline), *more, **said)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.stop()


def lines_of(log):
    """The lines of a log that are JSON."""
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]


def field_paths(value, path=""):
    """Every field of plain values, as `access.py` names them."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from field_paths(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from field_paths(inner, f"{path}[]")
    elif path:
        yield path
