"""The shadow: a PostgreSQL of the door's own, in which the tables that an analyst may see exist and nobody may read them.

It answers what clients ask about catalogues. It holds no row of anybody; it is never the server of a ledger or an engine. It
has a folder of its own, a user of its own where we are root, a socket in that folder and no port. Once it is made it runs as
a standby of nobody, so that nothing in it can be written whatever a statement says.

There is one for each asker, with the tables that they may see: nobody's catalogue shows a table that is hidden from them,
and whoever sends what no signal ends, so that the whole server starts anew, ends no connection of anybody else. It is started
when the asker comes, in one or two seconds; it takes about 15 MB of memory and 50 MB of disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from curador.door.cluster import MISSING, PORT, Cluster, find_installation, make_folders, other_user, own_name
from curador.door.shadow_schema import KEEPER, ROLE, database_text, quote, stable_text, tables_text
from curador.errors import Failed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

MOST_CONNECTIONS = 120
"""Connections of one shadow; the door lets in fewer."""

LIMITS: dict[str, object] = {
    "max_connections": MOST_CONNECTIONS,
    "shared_buffers": "16MB",
    "work_mem": "4MB",
    "hash_mem_multiplier": "1",
    "temp_buffers": "1MB",
    "temp_file_limit": "64MB",
    "max_prepared_transactions": 0,
    "max_worker_processes": 0,
    "max_parallel_workers": 0,
    "max_parallel_workers_per_gather": 0,
    "max_logical_replication_workers": 0,
    "max_wal_senders": 0,
    "max_replication_slots": 0,
    "hot_standby": "on",
    "autovacuum": "off",
    "jit": "off",
    "fsync": "off",  # it is made anew at every start
    "full_page_writes": "off",
    "track_activities": "off",  # what one session says is nobody else's to see
    "track_counts": "off",
    "log_min_messages": "fatal",
    "log_min_error_statement": "panic",  # no statement of a client is in a log
    "wal_retrieve_retry_interval": "1h",
    "search_path": "public",
    "timezone": "UTC",
    "lc_messages": "C",
}
"""What bounds its memory, connections and disk; a client can change none of it, as no SET reaches it."""

MOST_MEMORY = 1 << 28
"""Bytes of address space of each of its processes."""

_GUARDED = """
ulimit -v "$1" 2>/dev/null; home="$2"; shift 2
cd "$home"; exec 3<&0 </dev/null
nice -n 10 "$@" 2>/dev/null & server=$!
{ read -r line <&3; kill -QUIT $server 2>/dev/null; } & watch=$!
wait $server; kill $watch 2>/dev/null; cd /; rm -rf "$home"
"""
"""The shell between the door and the server, which stands back behind questions.

When the door ends, however it does, the server and its folder go.

What the server says goes nowhere: it would have texts of clients in it."""

_PATIENCE = 30.0

MOST_UNUSED = 8
"""Shadows that are kept for askers who left: tools connect anew for each chart."""


@dataclass
class Shadow:
    """A server that runs, for one set of visible tables."""

    cluster: Cluster
    database: str
    guard: subprocess.Popen[bytes]
    keeping: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def socket(self) -> Path:
        """What it listens on."""
        return self.cluster.socket

    async def end_statement(self, backend: int) -> None:
        """End a session that did not heed a cancel: asked to, then killed, by which the whole shadow starts anew."""
        import psycopg

        with contextlib.suppress(psycopg.Error, TimeoutError):
            async with self.keeping, asyncio.timeout(5):
                kept = await psycopg.AsyncConnection.connect(self.url(KEEPER), autocommit=True)
                async with kept:
                    asked = await kept.execute("SELECT pg_terminate_backend(%s, 2000)", (backend,))
                    ended = await asked.fetchone()
            if ended == (True,):
                return
        with contextlib.suppress(ProcessLookupError, PermissionError, TimeoutError):
            if self._is_ours(backend):
                os.kill(backend, signal.SIGKILL)
                async with asyncio.timeout(_PATIENCE):  # until the server knows, it lets in whom it throws out
                    while self._is_ours(backend):  # noqa: ASYNC110 -- nobody tells us
                        await asyncio.sleep(0.02)

    def _is_ours(self, process: int) -> bool:
        """Whether the process is a child of this server: numbers of processes are used again."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            server = int((self.cluster.data / "postmaster.pid").read_text(encoding="ascii").split()[0])
            with open(f"/proc/{process}/stat", encoding="latin-1") as told:  # noqa: PTH123 -- no file of anybody's
                return int(told.read().rpartition(")")[2].split()[1]) == server
        return False

    def url(self, role: str) -> str:
        """Return the address for a role."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo(user=role, dbname=self.database, host=str(self.cluster.home), port=PORT)

    def stop(self) -> None:
        """Stop the server; its folder goes, too."""
        if self.guard.stdin is not None:
            self.guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.guard.wait(_PATIENCE)
        self.cluster.remove()


def start_shadow(tables: Sequence[Mapping[str, Any]], *, unit: str, database: str, folder: Path | None = None) -> Shadow:
    """Return a shadow of these tables, made and started; it was tried whether its role can read any of them."""
    import psycopg

    installation = find_installation()
    if installation is None:
        raise Failed(f"the door needs PostgreSQL for its catalogues; {MISSING}.")
    cluster = make_folders(installation, prefix="curador-shadow-", inside=folder)
    try:
        cluster.create(**LIMITS)
        _let_in(cluster, "postgres")
        with _running(cluster):
            _wait_for(cluster, "postgres")
            database = "postgres" if database in {"postgres", "template0", "template1"} else _cut(database)
            address = f"user=postgres host={cluster.home} port={PORT}"
            if database != "postgres":
                with psycopg.connect(f"{address} dbname=postgres", autocommit=True) as made:
                    made.execute(f"CREATE DATABASE {quote(database)}".encode())
            with psycopg.connect(address, dbname=database, autocommit=True) as made:
                made.execute(database_text(database).encode())
                made.execute(tables_text(tables, unit).encode())
        _let_in(cluster, ROLE, KEEPER)
        _own(cluster, "standby.signal", "")
        shadow = Shadow(cluster, database, _start(cluster))
    except BaseException:
        cluster.remove()
        raise
    try:
        _wait_for(cluster, ROLE, database)
        require_unreadable(shadow)
    except BaseException:
        shadow.stop()
        raise
    return shadow


def require_unreadable(shadow: Shadow) -> None:
    """Raise unless the role is refused each table: this is what a statement meets that was taken for something else."""
    import psycopg

    with psycopg.connect(shadow.url(ROLE), autocommit=True) as tried:
        names = tried.execute(
            "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relkind <> 'i'"
        ).fetchall()
        for (name,) in names:
            try:
                tried.execute(f"SELECT FROM {name} LIMIT 0".encode())
            except psycopg.errors.InsufficientPrivilege:
                continue
            raise Failed("a table of the shadow can be read, so the door stays closed.")


class Shadows:
    """The shadows that run: one for each asker and what is shown to them; the one that was used last stands last."""

    def __init__(self, folder: Path | None = None) -> None:
        """Start none yet."""
        self._folder = folder
        self.held: dict[str, asyncio.Task[Shadow]] = {}
        self._left: list[asyncio.Task[Shadow]] = []
        self._users = Counter[asyncio.Task[Shadow]]()

    @contextlib.asynccontextmanager
    async def of(self, asker: str, description: Mapping[str, Any], database: str) -> AsyncIterator[Shadow]:
        """Give an asker's shadow of a public description, started where there is none; unused ones are few."""
        shadow = self._look(stable_text([asker, description, database]), description, database)
        self._users[shadow] += 1
        try:
            await self._drop_unused()
            yield await asyncio.shield(shadow)
        finally:
            self._users[shadow] -= 1

    def _look(self, key: str, description: Mapping[str, Any], database: str) -> asyncio.Task[Shadow]:
        """Return the one that is held, or a new one; nothing else is done between the look and that it is held."""
        held = self.held.pop(key, None)
        if held is not None and held.done() and _is_dead(held):
            self._left.append(held)
            held = None
        if held is None:
            start = partial(
                start_shadow,
                description["tables"],
                unit=str(description["unit"]),
                database=database,
                folder=self._folder,
            )
            held = asyncio.ensure_future(asyncio.to_thread(start))
        self.held[key] = held
        return held

    async def _drop_unused(self) -> None:
        """Stop those that are dead, and of those that nobody uses all but the last few."""
        done = {key: held for key, held in self.held.items() if held.done()}
        dead = {key for key, held in done.items() if _is_dead(held)}
        unused = [key for key, held in done.items() if key not in dead and not self._users[held]]
        dropped, self._left = self._left, []
        dropped += [self.held.pop(key) for key in (*dead, *unused[: max(len(unused) - MOST_UNUSED, 0)])]
        for held in dropped:
            self._users.pop(held, None)
            if not _failed(held):
                await asyncio.to_thread(held.result().stop)

    async def stop(self) -> None:
        """Stop all of them."""
        held, self._left = [*self._left, *self.held.values()], []
        self.held.clear()
        for started in held:
            with contextlib.suppress(Exception):
                await asyncio.to_thread((await started).stop)


def _failed(task: asyncio.Task[Shadow]) -> bool:
    return task.cancelled() or task.exception() is not None


def _is_dead(task: asyncio.Task[Shadow]) -> bool:
    return _failed(task) or task.result().guard.poll() is not None or not task.result().socket.exists()


# ---- its making ------------------------------------------------------------------------------------------------------------


def _cut(name: str) -> str:
    """Return the name as PostgreSQL keeps it: at most 63 bytes."""
    return name.replace("\0", "").encode()[:63].decode("utf-8", "ignore") or "study"


def _let_in(cluster: Cluster, *roles: str) -> None:
    """Let in whoever comes by the socket as our own user, as one of these roles, and nobody else."""
    _own(cluster, "pg_hba.conf", "local all all peer map=door\n")
    _own(cluster, "pg_ident.conf", "".join(f'door "{own_name()}" {role}\n' for role in roles))


def _own(cluster: Cluster, name: str, text: str) -> None:
    place = cluster.data / name
    place.write_text(text, encoding="utf-8")
    place.chmod(0o600)
    who = other_user()
    if "user" in who and "group" in who:
        os.chown(place, who["user"], who["group"])


@contextlib.contextmanager
def _running(cluster: Cluster) -> Any:
    """A server while it is made; it is shut down cleanly, as a standby must begin from that."""
    cluster.run("pg_ctl", "-D", cluster.data, "-l", cluster.home / "log", "-W", "start")
    try:
        yield
    finally:
        cluster.run("pg_ctl", "-D", cluster.data, "-m", "fast", "-w", "stop", check=False)


def _start(cluster: Cluster) -> subprocess.Popen[bytes]:
    words = [str(cluster.binaries / "postgres"), "-D", str(cluster.data)]
    return subprocess.Popen(  # noqa: S603 -- a program of our own wheel, or of the machine
        ["/bin/sh", "-c", _GUARDED, "sh", str(MOST_MEMORY // 1024), str(cluster.home), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=cluster.environment,
        cwd=cluster.home,
        start_new_session=True,  # an interrupt at the terminal is the door's to hear, and it stops the server
        **other_user(),
    )


def _wait_for(cluster: Cluster, role: str, database: str = "postgres") -> None:
    import psycopg

    until = time.monotonic() + _PATIENCE
    while True:
        try:
            psycopg.connect(user=role, dbname=database, host=str(cluster.home), port=PORT).close()
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise Failed("the shadow PostgreSQL did not start in time.") from None
            time.sleep(0.02)
        else:
            return
