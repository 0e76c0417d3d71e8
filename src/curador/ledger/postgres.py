"""The ledger in one schema of a PostgreSQL server: many machines, one writer at a time, on disk before anything returns.

postgresql://writer@host/database?schema=visits      the schema is `curador` where none is named; passwords are not part of it

What every transaction proves before it reads or writes (`_PROOF`), since a server may be told otherwise at any time, and
something between it and us may hand us to another one:
  fsync, full_page_writes and synchronous_commit are on      a commit that returned survives a power cut
  the server is no standby                                   what it holds is not behind
  it is the same server, on the same line of history         a promoted standby may have forgotten charges: the study is
                                                             opened again, so that the witness is asked
  the backend and its settings are those of the connection   a pooler that hands out backends by transactions is refused
One writer: an advisory lock on the schema for each change, and in the server a lock on the row of the study's total for each
entry, also from somebody who takes no turn. READ COMMITTED: every statement after the lock sees what the writer before wrote.

When the connection is lost while COMMIT is under way nobody knows what became of it: `OutcomeUnknown`. Whoever then enters a
change (`writing`) has waited for the end of the lost one, and finds its entry by the id, or knows that it never will be.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import threading
import time
import urllib.parse
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from curador.errors import CuradorError, Failed, InvalidStudy, LedgerBusy
from curador.ledger.entry import DAMAGED, STUDY, ChainRow, EntryKind, holder_of
from curador.ledger.postgres_schema import SCHEMAS, digest_schema, require_name
from curador.ledger.store import CompiledStatement, Cursor, OutcomeUnknown, Page, statements
from curador.study.values import is_address

if TYPE_CHECKING:
    import psycopg

    from curador.ledger.amounts import Amounts
    from curador.ledger.witness import Head

PATIENCE: Final = 5.0
"""Seconds that a writer waits for another one."""
ANSWERING: Final = 30.0
"""Seconds in which the server answers one statement, beyond what it waits for a lock; then it counts as lost."""
OLDEST: Final = 16
"""The first version of PostgreSQL that is supported."""
DURABLE: Final = ("on", "remote_apply")
"""Values of synchronous_commit under which a commit is on disk when it returns, and on that of the standby that was named."""

_MOST_IDLE: Final = 5  # connections that are kept open between uses
_KEPT: Final[list[object]] = []  # connections that a fork carried over: closing them here would end the parent's sessions
_OURS: Final = frozenset({"password", "sslpassword", "options"})  # not for an address: secrets, and settings that are ours
_LOCK: Final = 0x43755264 << 32  # the advisory locks of ledgers, among those of other programs; the schema's number is added
_SETTINGS: Final = (
    "SET synchronous_commit = {durable}; SET search_path = {schema}, pg_temp; SET client_encoding = 'UTF8';"
    " SET row_security = off; SET idle_in_transaction_session_timeout = '60s'; SET \"curador.session\" = '{token}'"
)
_PROOF: Final = (
    "SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),"
    " pg_is_in_recovery(), pg_backend_pid(), current_setting('curador.session', true), current_setting('search_path'),"
    " (SELECT system_identifier FROM pg_control_system()),"
    " CASE WHEN pg_is_in_recovery() THEN '0' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"
)
_TURN: Final = "SELECT pg_advisory_xact_lock(%(lock)s)"
_SPACE: Final = "SELECT oid::bigint FROM pg_namespace WHERE nspname = %(name)s"
_TOO_MUCH: Final = (
    "SELECT bool_or(has_table_privilege(name, act)) FROM unnest(ARRAY['entry', 'answer', 'total', 'prepared']) AS name,"
    " unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS act"
)
_MOVE: Final = (
    "SELECT move_total(%(who)s, %(epsilon)s, %(rho)s, %(delta)s, %(epsilon_limit)s, %(rho_limit)s, %(delta_limit)s)"
)
_SUM: Final = "SELECT count(*), sum(('x' || left(hash, 8))::bit(32)::bigint) FROM entry WHERE {order}"
_SCANS: Final = (("on", "off", "sequence >= 0"), ("off", "on", "sequence >= 0"), ("off", "on", "id >= ''"))
"""The same sum by the rows as they lie, and by two indexes."""


class _NoTurn(Exception):  # noqa: N818 -- never leaves this file
    """The time to wait for another writer is over."""


class _Late(Exception):  # noqa: N818 -- idem
    """The server does not answer."""


# ---- places ----------------------------------------------------------------------------------------------------------------


class Address(NamedTuple):
    """Where a ledger is: what the driver is told, the schema, and what people are shown."""

    server: str
    schema: str
    name: str


def read_address(url: str) -> Address:
    """Read postgresql://role@host/database?schema=name; a secret in it is refused, and not repeated."""
    form = "postgresql://role@host/database?schema=name"
    try:
        parts = urllib.parse.urlsplit(url)
        options = urllib.parse.parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        secret = parts.password is not None
    except ValueError:
        raise InvalidStudy.must_be("ledger", f"an address: {form}", "one that cannot be read") from None
    if secret or any(name.lower() in _OURS for name, _ in options):
        hint = "leave the password to PGPASSWORD or to ~/.pgpass: an address stands in the study file, which many may read"
        rule = "without a password and without settings for the server"
        raise InvalidStudy.must_be("the address of the ledger", rule, "one that has them", hint)
    schemas = [value for name, value in options if name == "schema"]
    if not is_address(url) or len(schemas) > 1:
        raise InvalidStudy.must_be("ledger", f"an address: {form}", url)
    schema = require_name(schemas[0] if schemas else "curador", "schema")
    others = urllib.parse.urlencode([(name, value) for name, value in options if name != "schema"])
    return Address(urllib.parse.urlunsplit(parts._replace(query=others)), schema, url)


# ---- one connection --------------------------------------------------------------------------------------------------------


class ServerIdentity(NamedTuple):
    """Which server it is, and on which line of its history: a standby that is promoted begins another one."""

    system: int
    line: str


class _Session:
    """A connection whose backend was proved to be its own."""

    def __init__(self, connection: psycopg.Connection[Any], address: Address) -> None:
        self.connection = connection
        self.cursor: Any = connection.cursor()
        self.address = address
        self.token = secrets.token_hex(16)
        self.backend = connection.info.backend_pid
        self.path = f"{address.schema}, pg_temp"

    def set_up(self) -> tuple[ServerIdentity, int]:
        """Say how this session works, and prove it; return the server and the number of the schema."""
        version = self.connection.info.server_version // 10_000
        if version < OLDEST:
            raise InvalidStudy.must_be("the ledger's server", f"PostgreSQL {OLDEST} or later", version)
        run = self.cursor.execute
        run("SHOW synchronous_commit")
        (found,) = cast("tuple[str]", self.cursor.fetchone())
        durable = found if found in DURABLE else "on"
        run(_SETTINGS.format(durable=durable, schema=f'"{self.address.schema}"', token=self.token))
        for _ in range(2):  # two transactions, as a pooler would count them
            run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            server = self.prove()
            run("ROLLBACK")
        run(_SPACE, {"name": self.address.schema})
        space = self.cursor.fetchone()
        if space is None:
            raise _no_schema(self.address.name)
        run(_TOO_MUCH)
        (too_much,) = cast("tuple[bool]", self.cursor.fetchone())
        if too_much:
            hint = "name the writer's role in the address: the owner's makes the schema and is not used afterwards"
            raise InvalidStudy.must_be(
                "the ledger's role", "one that can neither change nor remove entries", self.connection.info.user, hint
            )
        return server, int(space[0])

    def begin(self, how: str, wait: float | None) -> None:
        """Begin a transaction that waits so long for locks."""
        limit = 0 if wait is None else max(1, round(wait * 1000))  # 0 would be: for ever
        self.wait_for(PATIENCE)
        self.cursor.execute(f"BEGIN ISOLATION LEVEL {how}; SET LOCAL lock_timeout = {limit}")

    def wait_for(self, patience: float) -> None:
        """Wait so many seconds for what the server says to each statement from here on."""
        cast("Any", self.connection).patience = patience

    def prove(self) -> ServerIdentity:
        """Refuse a server that would lose a commit or be behind, and a backend that is not this connection's; see above."""
        self.cursor.execute(_PROOF)
        found = cast("tuple[Any, ...]", self.cursor.fetchone())
        fsync, pages, commit, standby, backend, token, path, system, line = found
        if (backend, token) != (self.backend, self.token) or path.replace('"', "") != self.path:
            hint = "name the server itself; a pooler that hands out backends by transactions loses what a session was told"
            raise InvalidStudy.must_be("the ledger's connection", "one session of one backend", "another backend", hint)
        if standby:
            hint = "name the primary; a standby may be behind, and forgets charges"
            raise InvalidStudy.must_be("the ledger's server", "the primary", "a standby", hint)
        for name, value, wanted in (
            ("fsync", fsync, ("on",)),
            ("full_page_writes", pages, ("on",)),
            ("synchronous_commit", commit, DURABLE),
        ):
            if value not in wanted:
                hint = "without it a commit that was told may be lost when the power fails"
                raise InvalidStudy.must_be(f"{name} of the ledger's server", " or ".join(wanted), value, hint)
        return ServerIdentity(int(system), str(line))

    def commit(self, charged: str | None) -> None:
        """Make everything durable; OutcomeUnknown where nobody can tell."""
        import psycopg

        if self.connection.closed:  # before anything was handed over: the server undid it
            raise Failed(f"the connection to the ledger was lost; {charged or 'nothing was spent'}.")
        try:
            self.cursor.execute("COMMIT")
        except (psycopg.Error, _Late) as error:
            if isinstance(error, psycopg.Error) and _undone(error):
                raise
            told = "the connection to the ledger was lost while it was written, and the outcome is not known"
            raise OutcomeUnknown(
                f"{told}; {charged or 'what was asked may be charged, and nothing was released'}."
            ) from error
        if self.cursor.statusmessage != "COMMIT":  # the server rolled back, since a statement had failed
            raise Failed(f"the ledger could not be written; {charged or 'nothing was spent'}.")

    @property
    def idle(self) -> bool:
        """Whether it can be used again."""
        return not self.connection.closed and self.connection.info.transaction_status.name == "IDLE"

    def roll_back(self) -> None:
        """End a transaction that is not committed; where the server does not listen, it ends with the connection."""
        import psycopg

        if not self.connection.closed and self.connection.info.transaction_status.name in {"INTRANS", "INERROR"}:
            with contextlib.suppress(psycopg.Error, _Late):
                self.cursor.execute("ROLLBACK")


@functools.cache
def _connection_class() -> type[Any]:
    import psycopg

    class BoundedConnection(psycopg.Connection[Any]):
        """A connection that gives up a server which does not answer."""

        patience = PATIENCE

        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            """Run what the driver wants of the server, for so long."""
            return super().wait(_bounded(gen, time.monotonic() + self.patience), *arguments, **options)

    return BoundedConnection


def _bounded(steps: Generator[Any, Any, Any], deadline: float) -> Generator[Any, Any, Any]:
    """The driver's steps, which are given a turn ten times a second while the server is silent."""
    try:
        wanted = next(steps)
        while True:
            if time.monotonic() > deadline:
                raise _Late
            wanted = steps.send((yield wanted))
    except StopIteration as end:
        return end.value


def _connect(address: Address) -> _Session:
    try:
        import psycopg
    except ImportError:
        hint = "pip install 'curador[postgres]'"
        raise InvalidStudy.must_be("a ledger on PostgreSQL", "opened with psycopg", "none installed", hint) from None
    try:
        connection = _connection_class().connect(
            address.server, autocommit=True, connect_timeout=int(PATIENCE), application_name="curador", client_encoding="UTF8"
        )
    except psycopg.Error as error:
        raise _unreachable(address.name) from error
    return _Session(connection, address)


# ---- pages -----------------------------------------------------------------------------------------------------------------


class PostgresPage(Page):
    """A page whose running sums are moved by the server's one function.

    The function gives back what the last entry, a voided one, says. So what is to be given back waits for that entry.
    """

    __slots__ = ("_due", "_waiting")

    def __init__(self, cursor: Cursor, compiled: dict[str, CompiledStatement]) -> None:
        super().__init__(cursor, compiled)
        self._due: set[str] = set()  # whom the last entry gives back, and whose sums were not moved yet
        self._waiting: list[tuple[str, Amounts]] = []

    @contextlib.contextmanager
    def savepoint(self) -> Generator[None]:
        """A part of a change that may fail by itself: what it wrote goes, what others wrote stays."""
        self.cursor.execute("SAVEPOINT one")
        try:
            yield
            self.require_complete()
        except BaseException:
            self._waiting.clear()
            self._due.clear()
            self.cursor.execute("ROLLBACK TO SAVEPOINT one")
            self.cursor.execute("RELEASE SAVEPOINT one")
            raise
        self.cursor.execute("RELEASE SAVEPOINT one")

    def append(self, row: ChainRow) -> None:
        """Add an entry, and give back what waited for it."""
        super().append(row)
        self._due = {STUDY, holder_of(row.analyst)} if row.kind == EntryKind.VOIDED.value else set()
        waiting, self._waiting = self._waiting, []
        for holder, spent in waiting:
            self.give_back(holder, spent)

    def put_total(self, holder: str, spent: Amounts, limit: Amounts) -> None:
        """Set a running sum and the limit that it keeps."""
        self._move(holder, spent, limit)

    def give_back(self, holder: str, spent: Amounts) -> None:
        """Lower a running sum."""
        if holder in self._due:
            self._due.discard(holder)
            self._move(holder, spent, None)
        else:
            self._waiting.append((holder, spent))

    def require_complete(self) -> None:
        """Refuse a change that gives back without an entry that says so."""
        if self._waiting:
            raise Failed("the ledger gives back only what a voided entry says; nothing was given back.")

    def _move(self, holder: str, spent: Amounts, limit: Amounts | None) -> None:
        most = (None, None, None) if limit is None else limit.digits()
        names = ("epsilon", "rho", "delta", "epsilon_limit", "rho_limit", "delta_limit")
        self.cursor.execute(_MOVE, {"who": holder, **dict(zip(names, (*spent.digits(), *most), strict=True))})


# ---- the store -------------------------------------------------------------------------------------------------------------


class PostgresStore:
    """A ledger in a schema, and its connections. Threads may share it; a forked child gets connections of its own."""

    def __init__(self, url: str) -> None:
        self._address = read_address(url)
        self._start()
        with _translating_errors(self.name, None):
            session = _connect(self._address)
            try:
                self._server, self._space = session.set_up()
            except BaseException:
                session.connection.close()
                raise
        self._idle.append(session)

    def _start(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.Lock()
        self.mirroring = threading.Lock()  # one thread a process brings the witness up to date
        self._idle: list[_Session] = []
        self._statements = _statements()

    @property
    def name(self) -> str:
        """The address, which holds no secret."""
        return self._address.name

    @property
    def file(self) -> tuple[int, int]:
        """Numbers of the server, and of the schema on its line of history."""
        return self._server.system, int(self._server.line, 16) << 32 | self._space

    @contextlib.contextmanager
    def reading(self) -> Generator[Page]:
        """One moment of the ledger. Readers never wait for writers."""
        self._renew_after_fork()
        with _translating_errors(self.name, None), self._session("REPEATABLE READ READ ONLY", None) as session:
            yield PostgresPage(session.cursor, self._statements)

    @contextlib.contextmanager
    def writing(self, *, charged: str | None = None, patience: float | None = None) -> Generator[Page]:
        """One change of the ledger: all of it is on disk when the block is left, or nothing is.

        charged   what is said of a charge that stands already if this change cannot be made

        Claim   After LedgerBusy, or Failed that says "nothing was spent", nothing is written and nothing will be. After
                OutcomeUnknown, who enters the next change finds what was written, or knows that it never will be.
        Needs   Locks of a transaction are freed after its commit is on disk, and not before.
        """
        self._renew_after_fork()
        wait = PATIENCE if patience is None else patience
        began = time.monotonic()
        with _translating_errors(self.name, charged), self._alone(wait):
            left = max(0.0, wait - (time.monotonic() - began))
            with self._session("READ COMMITTED READ WRITE", left) as session:
                session.cursor.execute(_TURN, {"lock": _LOCK | self._space})
                page = PostgresPage(session.cursor, self._statements)
                yield page
                page.require_complete()
                session.commit(charged)

    def explain(self, error: Exception) -> CuradorError | None:
        """Return the sentence for what the server said of one act inside a change; None where it was not the server."""
        return _explained(error, self.name, None)

    def tip(self) -> tuple[int, str]:
        """Return the sequence and hash of the last entry."""
        with self.reading() as page:
            return page.tip()

    def integrity(self) -> None:
        """Refuse tables whose indexes do not lead to the rows that are there."""
        sums: set[object] = set()
        with self.reading() as page:
            for rows, index, order in _SCANS:
                page.cursor.execute(f"SET LOCAL enable_seqscan = {rows}")
                for way in ("indexscan", "indexonlyscan"):
                    page.cursor.execute(f"SET LOCAL enable_{way} = {index}")
                page.cursor.execute("SET LOCAL enable_bitmapscan = off")
                page.cursor.execute(_SUM.format(order=order))
                sums.add(page.cursor.fetchone())
        if len(sums) != 1:
            raise _corrupt(self.name)

    def schema(self) -> str:
        """Return a digest of the tables, constraints, indexes, triggers and functions as the server declares them."""
        with self.reading() as page:
            return self.schema_of(page)

    def schema_of(self, page: Page) -> str:
        """Return that digest at the page's moment."""
        return digest_schema(page.cursor, self._address.schema)

    def admit_all_kinds(self) -> None:
        """Refuse tables of an older version: only their owner can bring them up to date."""
        if self.schema() in SCHEMAS[:-1]:
            hint = "the owner of the schema brings them up to date; see docs/how-to/ledger-on-postgres.md"
            raise InvalidStudy.must_be("the tables of the ledger", "those of this version", self.name, hint)

    def close(self) -> None:
        """Close every connection."""
        while self._pid == os.getpid() and self._idle:
            self._idle.pop().connection.close()

    @contextlib.contextmanager
    def _session(self, how: str, wait: float | None) -> Generator[_Session]:
        idle = self._idle  # after a fork it is another one
        session = self._begun(idle, how, wait)
        try:
            if session.prove() != self._server:
                hint = "it was restored, or a standby took its place and may have forgotten charges; open the study again"
                raise InvalidStudy.must_be("the ledger's server", "the one that was opened", self.name, hint)
            session.wait_for(ANSWERING + (wait or 0.0))
            yield session
        finally:
            session.roll_back()
            if session.idle and len(idle) < _MOST_IDLE:
                idle.append(session)
            else:
                session.connection.close()

    def _begun(self, idle: list[_Session], how: str, wait: float | None) -> _Session:
        """Return a connection in a new transaction; those that a restarted server has forgotten are thrown away."""
        import psycopg

        while True:
            try:
                session, known = idle.pop(), True  # threads never get the same
            except IndexError:
                session, known = _connect(self._address), False
            try:
                if not known:
                    session.set_up()
                session.begin(how, wait)
            except BaseException as error:
                session.connection.close()
                if not (known and isinstance(error, psycopg.OperationalError)):
                    raise
            else:
                return session

    def _renew_after_fork(self) -> None:
        if self._pid != os.getpid():
            _KEPT.append(self._idle)
            self._start()

    @contextlib.contextmanager
    def _alone(self, patience: float) -> Generator[None]:
        """One writer a process: threads queue here instead of holding connections."""
        turn = self._turn
        if not turn.acquire(timeout=patience):
            raise _NoTurn
        try:
            yield
        finally:
            turn.release()


def create_ledger(url: str, fill: Callable[[Page, str], Head], announce: Callable[[Head], None]) -> None:
    """Make a new ledger in a schema that its owner has made: complete or not there at all. FileExistsError.

    fill      writes the first rows; it is given the digest of the schema
    announce  is called when they are written, before they can be seen by anybody
    """
    store = PostgresStore(url)
    try:
        with store.writing() as page:
            if page.rows(0):
                raise FileExistsError(store.name)
            schema = store.schema_of(page)
            if schema != SCHEMAS[-1]:
                hint = "let the owner make it anew: python -m curador.ledger.postgres_schema SCHEMA WRITER"
                raise InvalidStudy.must_be("the schema of a new ledger", "with the tables of this version", store.name, hint)
            announce(fill(page, schema))
    finally:
        store.close()


@functools.cache
def _statements() -> dict[str, CompiledStatement]:
    from sqlalchemy.dialects.postgresql.base import PGDialect

    return statements(PGDialect(paramstyle="pyformat"))  # that of a driver would cast numbers to 32 bits


# ---- what is told ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _translating_errors(name: str, charged: str | None) -> Generator[None]:
    """Turn what the server or the driver says into one sentence that may be shown."""
    try:
        yield
    except Exception as error:
        told = _explained(error, name, charged)
        if told is None:
            raise
        raise told from error


def _explained(error: Exception, name: str, charged: str | None) -> CuradorError | None:
    if isinstance(error, _NoTurn):
        return _too_busy(charged)
    if isinstance(error, _Late):
        return Failed(f"the ledger's server did not answer in time; {charged or 'nothing was spent'}.")
    if type(error).__module__.startswith("psycopg"):
        return _sentence_of(cast("psycopg.Error", error), name, charged)
    return None


def _sentence_of(cause: psycopg.Error, name: str, charged: str | None) -> CuradorError:
    state = cause.sqlstate or "08000"
    if state in {"55P03", "57014", "40001", "40P01"}:  # a lock, a cancelled wait
        return _too_busy(charged)
    if state in {"42501", "42P01", "42883", "3F000"}:
        return _no_schema(name)
    if state[:2] in {"08", "25", "53", "57", "58"}:  # lost, idle for too long, full, ended, broken
        return Failed(f"the ledger could not be written; {charged or 'nothing was spent'}.")
    return _corrupt(name)


def _undone(error: psycopg.Error) -> bool:
    """Whether the server said that it rolled back: an ERROR leaves the session, anything worse may come after the commit."""
    return error.diag.severity_nonlocalized == "ERROR" or error.sqlstate == "25P03"


def _too_busy(charged: str | None) -> CuradorError:
    if charged is None:
        return LedgerBusy("the ledger must be free; another writer held it too long, nothing was spent.", hint="ask again.")
    return Failed(f"the ledger was busy for too long; {charged}.")


def _unreachable(name: str) -> Failed:
    return Failed(f"the ledger's server could not be reached, and nothing was spent: {name}.")


def _no_schema(name: str) -> InvalidStudy:
    hint = "its owner makes it: python -m curador.ledger.postgres_schema SCHEMA WRITER; see docs/how-to/ledger-on-postgres.md"
    return InvalidStudy.must_be("ledger", "in a schema that this role may read and add to", name, hint)


def _corrupt(name: str) -> InvalidStudy:
    return InvalidStudy.must_be("ledger", "a whole ledger", name, DAMAGED)
