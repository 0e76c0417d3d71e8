"""A real PostgreSQL for the tests: from a wheel, else the machine's own; as `nobody` where the tests are root.

One server for all test processes: the first that wants it starts it, under a lock; the last that ends stops it. It listens on
a socket in a private folder and on nothing else. Each test has a schema of its own, made by `owner`, and comes as `writer`.
"""

import contextlib
import fcntl
import json
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from curador.door.cluster import MISSING, Cluster, find_installation, make_folders
from curador.ledger.postgres_schema import schema_text

__all__ = ["MISSING", "find_installation"]  # for fixtures, beside the servers

FAST = {"max_connections": "60", "shared_buffers": "16MB", "max_wal_senders": "4", "autovacuum": "off"}
"""Nothing here makes a commit less durable."""
ROLES = "CREATE ROLE owner LOGIN; CREATE ROLE writer LOGIN; GRANT CREATE ON DATABASE postgres TO owner"


@dataclass(frozen=True)
class Server(Cluster):
    """A server that tests start, stop and reconfigure."""

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-l", self.home / "log", "-w", "-t", "60", "start")

    def stop(self, how="immediate"):
        self.run("pg_ctl", "-D", self.data, "-m", how, "-w", "-t", "60", "stop", check=False)

    def restart(self, how="immediate"):
        self.stop(how)
        self.start()

    def reload(self):
        self.run("pg_ctl", "-D", self.data, "reload")

    def url(self, user="postgres", database="postgres", **options):
        told = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://{user}@/{database}?host={self.home}{told}"


def make_server(folder, *, copy_of=None, settings=None):
    """Return a started server on a new cluster, or on a copy that `copy_of` made into its folder."""
    made = make_folders(folder)
    server = Server(made.home, made.binaries, made.data)
    if copy_of is None:
        server.create(**FAST, **(settings or {}))
    else:
        copy_of(server)
        server.configure(listen_addresses="", unix_socket_directories=server.home, **FAST, **(settings or {}))
    server.start()
    if copy_of is None:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(ROLES)
    return server


def remove(server):
    server.stop()
    shutil.rmtree(server.home, ignore_errors=True)


@contextlib.contextmanager
def private_server(folder, **options):
    """A server of one test: one that it stops, stops answering or makes a standby of."""
    server = make_server(folder, **options)
    try:
        yield server
    finally:
        remove(server)


@contextlib.contextmanager
def shared_server(folder, meeting):
    """The server of all test processes that meet at a folder: started by the first, stopped by the last."""
    place = meeting / "postgres.json"
    with locked(meeting):
        if place.exists():
            held = json.loads(place.read_text(encoding="utf-8"))
        else:
            server = make_server(folder)
            held = {"users": 0, **{name: str(getattr(server, name)) for name in ("home", "binaries", "data")}}
        held["users"] += 1
        place.write_text(json.dumps(held), encoding="utf-8")
    server = Server(*(Path(held[name]) for name in ("home", "binaries", "data")))
    try:
        yield server
    finally:
        with locked(meeting):
            held = json.loads(place.read_text(encoding="utf-8"))
            held["users"] -= 1
            place.write_text(json.dumps(held), encoding="utf-8")
            if not held["users"]:
                remove(server)
                place.unlink()


@contextlib.contextmanager
def locked(folder):
    with (folder / "postgres.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def until(condition, seconds=20.0):
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@dataclass(frozen=True)
class Place:
    """A schema with the tables of a new ledger."""

    server: Server
    schema: str

    @property
    def url(self):
        """The address for a curator: the writer's role, which may only add."""
        return self.server.url("writer", schema=self.schema)

    def connect(self, user="owner"):
        """Return a bare connection, for what no curator does."""
        path = f"-c search_path={self.schema},pg_temp"
        return psycopg.connect(self.server.url(user), autocommit=True, options=path)


@contextlib.contextmanager
def new_place(server):
    """A schema of one test, made by the owner's role as the page for owners says."""
    schema = f"test_{secrets.token_hex(6)}"
    make_schema(server, schema)
    try:
        yield Place(server, schema)
    finally:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def make_schema(server, schema):
    with psycopg.connect(server.url("owner"), autocommit=True) as connection:
        connection.execute(schema_text(schema, "writer"))
