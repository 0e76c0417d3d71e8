"""What a service remembers beside the ledger: one SQLite file for all its processes, `<ledger>.service`, the owner's alone.

    token    who may come in, and with which limits        session   the console's cookies
    job      every question that was handed over           result    what became of it, as it was told
    used     what a token's questions held of its limits   failure   logins that failed, by where they came from

What is written here is on disk before anybody is told, except marks that only say how far a job has come. The ledger is the
judge of what was spent: whoever loses this file loses tokens and the keys of questions, and not one charge.

Claim   A key of a caller names one job for ever, whoever hands it over at the same time in whatever process.
Needs   A process that works on jobs holds its place (`Presence`) as long as it lives, and no longer.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
import stat
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from curador.errors import Failed, InvalidStudy

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

VERSION: Final = 1
"""Of the file: another one is refused. Samples of every version are read for ever (tests/compat)."""
PATIENCE: Final = 20.0
"""Seconds that a writer waits for another one."""

TABLES: Final = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    """CREATE TABLE token (
        id TEXT PRIMARY KEY, role TEXT NOT NULL CHECK (role IN ('owner', 'analyst', 'auditor')), name TEXT,
        made INTEGER NOT NULL, expires INTEGER NOT NULL, most_per_question TEXT, most_per_day TEXT,
        agent INTEGER NOT NULL CHECK (agent IN (0, 1)), note TEXT NOT NULL, digest BLOB NOT NULL,
        salt BLOB NOT NULL, stored_key BLOB NOT NULL, server_key BLOB NOT NULL, revoked INTEGER,
        CHECK ((role = 'analyst') = (name IS NOT NULL))) STRICT""",
    """CREATE TABLE session (
        digest BLOB PRIMARY KEY, token TEXT NOT NULL, made INTEGER NOT NULL, expires INTEGER NOT NULL) STRICT""",
    """CREATE TABLE job (
        id TEXT PRIMARY KEY, holder TEXT NOT NULL, key BLOB NOT NULL, body BLOB NOT NULL, token TEXT NOT NULL,
        question TEXT NOT NULL, options TEXT NOT NULL, fresh INTEGER NOT NULL, reservation TEXT NOT NULL UNIQUE,
        shown TEXT NOT NULL, worker INTEGER NOT NULL, state TEXT NOT NULL
        CHECK (state IN ('queued', 'running', 'done', 'failed', 'refused')), begun REAL NOT NULL, problem TEXT,
        kept INTEGER NOT NULL CHECK (kept IN (0, 1)), UNIQUE (holder, key)) STRICT""",
    "CREATE INDEX job_by_shown ON job (shown)",
    "CREATE INDEX job_open ON job (state) WHERE state IN ('queued', 'running')",
    "CREATE TABLE result (job TEXT PRIMARY KEY, body TEXT NOT NULL, arrow BLOB NOT NULL, receipt TEXT) STRICT",
    "CREATE TABLE used (reservation TEXT PRIMARY KEY, token TEXT NOT NULL, day TEXT NOT NULL, part TEXT NOT NULL) STRICT",
    "CREATE INDEX used_by_day ON used (token, day)",
    "CREATE TABLE failure (peer TEXT PRIMARY KEY, number INTEGER NOT NULL, last INTEGER NOT NULL) STRICT",
    "CREATE TABLE worker (number INTEGER PRIMARY KEY AUTOINCREMENT, made INTEGER NOT NULL) STRICT",
)


def state_of(ledger: Path) -> Path:
    """Return the place of the file that goes with a ledger."""
    return ledger.with_name(ledger.name + ".service")


class ServiceState:
    """The file and its connections, one for each thread; every method is one whole step."""

    def __init__(self, path: Path, ledger: str) -> None:
        """Open the file, or make it; refused where it belongs to another ledger or is open to others.

        ledger   the id of the ledger that it goes with
        """
        self.path = path
        self._held = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        if path.is_symlink():
            raise InvalidStudy.must_be("the service's file", "a plain file", str(path))
        with contextlib.suppress(FileExistsError):  # closing a handle of one that is open would drop SQLite's locks on it
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) or mode & 0o077:
            hint = "it holds what tokens are compared with: chmod 600"
            raise InvalidStudy.must_be("the service's file", "a plain file of its owner alone", str(path), hint)
        with self.writing() as connection:
            there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone()
            if there is None:
                for text in TABLES:
                    connection.execute(text)
                said = {"version": str(VERSION), "ledger": ledger, "secret": secrets.token_hex(32)}
                connection.executemany("INSERT INTO about VALUES (?, ?)", list(said.items()))
        about = dict(self.all("SELECT name, value FROM about"))
        if about.get("version") != str(VERSION):
            raise InvalidStudy.must_be("the service's file", f"of version {VERSION}", str(path))
        if about.get("ledger") != ledger:
            hint = "a file of tokens goes with one ledger: move it away to begin a new one"
            raise InvalidStudy.must_be("the service's file", "that of this ledger", str(path), hint)
        self.secret: Final = bytes.fromhex(about["secret"])

    # ---- steps ------------------------------------------------------------------------------------------------------

    def _connection(self) -> sqlite3.Connection:
        held = getattr(self._held, "of", None)
        if held is not None and held[0] == os.getpid():
            return held[1]
        made = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        for text in ("journal_mode = WAL", "synchronous = FULL", "trusted_schema = OFF", "secure_delete = ON"):
            made.execute(f"PRAGMA {text}")
        self._held.of = os.getpid(), made
        with self._lock:
            self._all.append(made)
        return made

    @contextlib.contextmanager
    def writing(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        """One change: on disk when the block is left, or nothing of it is.

        durable   false: a power cut may forget it; of what is only told while the process lives
        """
        connection = self._connection()
        if not durable:
            connection.execute("PRAGMA synchronous = NORMAL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:
            raise Failed("the service's file could not be written; nothing was begun.") from error
        finally:
            if not durable:
                connection.execute("PRAGMA synchronous = FULL")

    def all(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a question to the file."""
        return self._connection().execute(text, values).fetchall()

    def one(self, text: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return its first row."""
        return self._connection().execute(text, values).fetchone()

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for connection in self._all:
                connection.close()
            self._all.clear()
        self._held = threading.local()


# ---- who works on jobs ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Presence:
    """The place of one process in a file of locks: held as long as it lives, so that others know whose jobs are nobody's.

    Needs   The process opens the file of locks here and nowhere else: closing another handle of it would drop the lock.
    """

    number: int
    handle: int

    @classmethod
    def take(cls, state: ServiceState, made: int) -> Presence:
        """Take the next place."""
        with state.writing() as connection:
            number = connection.execute("INSERT INTO worker (made) VALUES (?)", (made,)).lastrowid or 0
        handle = os.open(state.path.with_name(state.path.name + ".workers"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        return cls(number, handle)

    def is_gone(self, number: int) -> bool:
        """Whether the process of a place has ended."""
        if number == self.number:
            return False
        try:
            fcntl.lockf(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError:
            return False
        fcntl.lockf(self.handle, fcntl.LOCK_UN, 1, number)
        return True

    def leave(self) -> None:
        """Give the place up."""
        os.close(self.handle)
