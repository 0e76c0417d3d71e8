"""The ledger in one SQLite file: one writer at a time, across threads and processes, on disk before anything returns.

WAL and synchronous=FULL: a commit that returned survives a power cut; NORMAL would be many times faster and forget the last
charges. Both are read back on every new connection, as a build, a file or a driver may not do what it was told. What a killed
writer left in the log is synced before the first look at it.

Where it may lie: a regular file on a disk of this machine. SQLite's locks and shared memory do not work across machines, so
two curators on a network share would both believe that they hold the ledger. The list of mounts is read where the system has
one; elsewhere nothing is known and nothing refused.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets
import sqlite3
import threading
import time
import urllib.parse
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from curador.errors import CuradorError, Failed, InvalidStudy, LedgerBusy
from curador.ledger.entry import DAMAGED
from curador.ledger.migration import SCHEMAS, is_old, renew_tables
from curador.ledger.store import CompiledStatement, Cursor, Page, statements, tables
from curador.ledger.witness import Head, sync_folder

# ---- places ----------------------------------------------------------------------------------------------------------------


MOUNTS = Path("/proc/self/mounts")
_SHARED = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "juicefs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "orangefs", "prl_fs", "pvfs2", "smb", "smb2", "smb3", "smbfs", "vboxsf"),
    *("vmhgfs", "webdav"),
)
_SHARED_BY_FUSE = (
    *("beegfs", "ceph", "ceph-fuse", "davfs", "davfs2", "gcsfuse", "glusterfs", "goofys", "juicefs", "mfs"),
    *("moosefs", "rclone", "s3fs", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse"),
)
REMOTE = frozenset(_SHARED) | {f"fuse.{name}" for name in _SHARED_BY_FUSE}


def resolve_path(path: Path | str) -> Path:
    """Return the one absolute name of a file that may not exist yet; its own last part is not followed."""
    place = Path(path)
    return place.parent.resolve() / place.name


def require_regular(path: Path) -> None:
    """Refuse what is not a plain file: a link would give one ledger two names, and so two witnesses."""
    if path.is_symlink():
        raise InvalidStudy.must_be("ledger", "a file, not a symbolic link", str(path), "name the file itself")
    if not path.exists():
        hint = "check the name; a study that had a ledger starts without it only as a new one, with a reason"
        raise InvalidStudy.must_be("ledger", "a file that exists", str(path), hint)
    if not path.is_file():
        raise InvalidStudy.must_be("ledger", "a plain file", str(path))


def require_local(path: Path) -> None:
    """Refuse a file system that other machines share."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = kind_of(path, mounts)
    if kind in REMOTE:
        hint = "locks do not hold between machines; put the ledger on a local disk"
        raise InvalidStudy.must_be("ledger", "on a local file system", f"{path} on {kind}", hint)


def kind_of(path: Path, mounts: str) -> str | None:
    """Return the type of the file system that a path lies on, by the last mount on its nearest parent."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[1]))
        if path.is_relative_to(point):
            depth = len(point.parts)
            if best is None or depth >= best[0]:
                best = depth, fields[2]
    return None if best is None else best[1]


# ---- sqlite ----------------------------------------------------------------------------------------------------------------


PATIENCE: Final = 5.0
"""Seconds that a writer waits for another one."""

_POLL = 0.02  # seconds that SQLite itself polls for a lock, in steps from 1 ms; then we look at the clock and ask again
SETTINGS: Final[dict[str, str]] = {
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "fullfsync": "ON",  # where the system's plain fsync does not reach the disk
    "checkpoint_fullfsync": "ON",
    "foreign_keys": "ON",
    "trusted_schema": "OFF",
    "cell_size_check": "ON",
}
REQUIRED: Final[dict[str, object]] = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}

_MOST_IDLE: Final = 5  # connections that are kept open between uses
_KEPT: Final[list[object]] = []  # connections that a fork carried over: closing them here could drop the parent's locks


class SQLiteStore:
    """A ledger file and its connections. Threads may share it; a forked child gets connections of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.Lock()
        self.mirroring = threading.Lock()  # one thread a process brings the witness up to date
        self._file = _identity(self.path)
        self._idle: list[tuple[sqlite3.Connection, Page]] = []
        self._keeping = threading.Lock()
        self._keeper: sqlite3.Connection | None = None
        self._log: tuple[int, int] | None = None  # which file the log is, while somebody has it open
        self._statements = _statements()
        require_regular(self.path)
        require_local(self.path)

    @property
    def name(self) -> str:
        """The file's path."""
        return str(self.path)

    @property
    def file(self) -> tuple[int, int] | None:
        """Device and number of the file that was opened."""
        return self._file

    @contextlib.contextmanager
    def reading(self) -> Generator[Page]:
        """One moment of the ledger. Readers never wait for writers."""
        self._renew_after_fork()
        with _translating_errors(self.path, None), self._page() as page:
            _begin(page.cursor, "BEGIN", time.monotonic() + PATIENCE)
            try:
                yield page
            finally:
                _roll_back(page.cursor)

    @contextlib.contextmanager
    def writing(self, *, charged: str | None = None, patience: float | None = None) -> Generator[Page]:
        """One change of the ledger: all of it is on disk when the block is left, or nothing is.

        charged   what is said of a charge that stands already if this change cannot be made
        """
        self._renew_after_fork()
        wait = PATIENCE if patience is None else patience
        deadline = time.monotonic() + wait
        with _translating_errors(self.path, charged), self._alone(wait), self._page() as page:
            _begin(page.cursor, "BEGIN IMMEDIATE", deadline)
            try:
                self._require_same_file()
                yield page
                page.cursor.execute("COMMIT")
            except BaseException:
                _roll_back(page.cursor)
                raise

    def explain(self, error: Exception) -> CuradorError | None:
        """Return the sentence for what the database said of one act; None where it was not the database."""
        return _sentence_of(error, self.path, None) if isinstance(error, sqlite3.Error) else None

    def tip(self) -> tuple[int, str]:
        """Return the sequence and hash of the last entry."""
        self._renew_after_fork()
        with _translating_errors(self.path, None), self._page() as page:
            return page.tip()

    def integrity(self) -> None:
        """Refuse a file whose pages or indexes are damaged."""
        with self.reading() as page:
            page.cursor.execute("PRAGMA integrity_check(1)")
            found = page.cursor.fetchall()
        if found != [("ok",)]:
            raise _corrupt(self.path)

    def schema(self) -> str:
        """Return a digest of the tables, indexes and triggers as the file declares them."""
        with self.reading() as page:
            return schema_of(page)

    def admit_all_kinds(self) -> None:
        """Bring the tables of an older file up to date; one step, whole or not at all (`migration.py`)."""
        if not is_old(self.schema()):
            return
        with _translating_errors(self.path, None), self._alone(PATIENCE), contextlib.closing(_connect(self.path)) as own:
            own.execute("PRAGMA foreign_keys=OFF")
            page = Page(own.cursor(), self._statements)
            _begin(page.cursor, "BEGIN IMMEDIATE", time.monotonic() + PATIENCE)
            try:
                self._require_same_file()
                found = schema_of(page)
                if is_old(found):  # nobody else was faster
                    if not renew_tables(page.cursor, found) or schema_of(page) != SCHEMAS[-1]:
                        raise _corrupt(self.path)
                    page.cursor.execute("COMMIT")
            finally:
                _roll_back(page.cursor)

    def close(self) -> None:
        """Close every connection; the last one folds the log into the file."""
        while self._pid == os.getpid() and self._idle:
            self._idle.pop()[0].close()
        keeper, self._keeper, self._log = self._keeper, None, None
        if keeper is not None and self._pid == os.getpid():
            keeper.close()

    @contextlib.contextmanager
    def _page(self) -> Generator[Page]:
        if self._keeper is None:
            self._keep()
        idle = self._idle  # after a fork it is another one
        try:
            connection, page = idle.pop()  # threads never get the same
        except IndexError:
            connection = _connect(self.path)
            page = Page(connection.cursor(), self._statements)
        try:
            yield page
        finally:
            if connection.in_transaction or len(idle) >= _MOST_IDLE:
                connection.close()
            else:
                idle.append((connection, page))

    def _keep(self) -> None:
        """Make what is found last before anybody sees it, and hold a connection, so that nothing else is found later.

        A writer that was killed between writing a commit into the log and syncing it leaves it there. Nobody sees it while
        somebody has the file open; the first to open it afterwards does, and a power cut could still take it back: from the
        witness's eyes the ledger would then be one that forgot.
        """
        with self._keeping:
            if self._keeper is not None:
                return
            keeper = _connect(self.path)
            try:
                _patiently(keeper, "SELECT COUNT(*) FROM sqlite_master")  # here SQLite recovers the log
                _sync_log(self.path)
                self._log = _identity(_log_of(self.path))
            except BaseException:
                keeper.close()
                raise
            self._keeper = keeper

    def _require_same_file(self) -> None:
        """Refuse to write into a file or log that lost its name: SQLite does not notice, and charges would go with it."""
        hint = "it was moved, deleted or replaced while it was open"
        if _identity(self.path) != self._file:
            raise InvalidStudy.must_be("ledger", "the file that was opened", str(self.path), hint)
        if self._log is not None and _identity(_log_of(self.path)) != self._log:
            raise InvalidStudy.must_be("the ledger's log", "the file that was opened", str(_log_of(self.path)), hint)

    def _renew_after_fork(self) -> None:
        if self._pid != os.getpid():
            _KEPT.append((self._idle, self._keeper))
            self._start()

    @contextlib.contextmanager
    def _alone(self, patience: float) -> Generator[None]:
        """One writer a process: threads queue here instead of polling the file."""
        turn = self._turn
        if not turn.acquire(timeout=patience):
            raise _Busy
        try:
            yield
        finally:
            turn.release()


def create_file(path: Path, fill: Callable[[Page, str], Head], announce: Callable[[Head], None]) -> None:
    """Make a new ledger file: complete under its name or not there at all, 0600 whatever the umask. FileExistsError.

    fill      writes the first rows; it is given the digest of the schema
    announce  is called when the file is complete and on disk, before it gets its name
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        temporary.chmod(0o600)  # SQLite gives its log the same mode
        store = SQLiteStore(temporary)
        with store.writing() as page:
            for statement in tables(_dialect()):
                page.cursor.execute(statement)
            head = fill(page, schema_of(page))
        store.close()
        announce(head)
        os.link(temporary, path)  # fails where something stands there already
    finally:
        for suffix in ("", "-wal", "-shm"):
            temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)
    sync_folder(path.parent)


def schema_of(page: Page) -> str:
    """Return a digest of the tables, indexes and triggers as the file declares them, at the page's moment."""
    page.cursor.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return hashlib.sha256(repr(page.cursor.fetchall()).encode()).hexdigest()


@functools.cache
def _dialect() -> sa.Dialect:
    return sa.create_engine("sqlite+pysqlite://", paramstyle="named").dialect


@functools.cache
def _statements() -> dict[str, CompiledStatement]:
    return statements(_dialect())


def _connect(path: Path) -> sqlite3.Connection:
    place = f"file:{urllib.parse.quote(str(path))}?mode=rw"  # never makes a file by opening it
    # isolation_level: transactions are begun and ended here, by name; the driver begins none of its own
    connection = sqlite3.connect(place, uri=True, timeout=_POLL, isolation_level=None, check_same_thread=False)
    try:
        for name, value in SETTINGS.items():
            _patiently(connection, f"PRAGMA {name}={value}")
        require_durable(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _sync_log(path: Path) -> None:
    """Bring to disk what stands in the log, whoever wrote it. SQLite has no lock on that file which closing it would drop."""
    try:
        handle = os.open(_log_of(path), os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Failed("the ledger could not be written; nothing was released.") from error
    sync_folder(path.parent)  # whoever made it may have been killed before its name was on disk


def require_durable(connection: sqlite3.Connection) -> None:
    """Refuse a connection that would not do what the ledger promises, whatever it was told."""
    for name, value in REQUIRED.items():
        (got,) = connection.execute(f"PRAGMA {name}").fetchone()
        if got != value:
            raise InvalidStudy.must_be(f"{name} of the ledger's connection", str(value), got)


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            if not _busy(error) or time.monotonic() > deadline:
                raise
        else:
            return


def _begin(cursor: Cursor, statement: str, deadline: float) -> None:
    while True:
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError as error:
            if not _busy(error):
                raise
            if time.monotonic() > deadline:
                raise _Busy from None
        else:
            return


class _Busy(Exception):  # noqa: N818 -- never leaves this file
    """The time to wait for another writer is over."""


@contextlib.contextmanager
def _translating_errors(path: Path, charged: str | None) -> Generator[None]:
    """Turn what the database says into one sentence that may be shown."""
    try:
        yield
    except _Busy:
        raise _too_busy(charged) from None
    except UnicodeDecodeError as error:  # names or messages of a damaged file
        raise _corrupt(path) from error
    except sqlite3.Error as error:
        raise _sentence_of(error, path, charged) from error


def _too_busy(charged: str | None) -> CuradorError:
    if charged is None:
        return LedgerBusy("the ledger must be free; another writer held it too long, nothing was spent.", hint="ask again.")
    return Failed(f"the ledger was busy for too long; {charged}.")


def _sentence_of(cause: sqlite3.Error, path: Path, charged: str | None) -> CuradorError:
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return _too_busy(charged)
    if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH}:
        return InvalidStudy.must_be("ledger", "a file that can be read and written", str(path))
    if code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG}:
        return Failed(f"the ledger could not be written; {charged or 'nothing was released'}.")
    return _corrupt(path)


def _roll_back(cursor: Cursor) -> None:
    with contextlib.suppress(sqlite3.Error):  # what failed may have ended the transaction itself
        cursor.execute("ROLLBACK")


def _corrupt(path: Path) -> InvalidStudy:
    return InvalidStudy.must_be("ledger", "a whole ledger file", str(path), DAMAGED)


def _busy(error: BaseException | None) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
