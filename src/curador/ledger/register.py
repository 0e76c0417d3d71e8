"""The owner's register: which ledgers there are, and which private sources each of them is about.

A budget belongs to rows, not to the name of a study or the place of a file. So a source is recognised by its resolved path,
by the device and number of its file, and by a fingerprint of its contents: HMAC-SHA-256 under a key that is the owner's and
never leaves the register, as a digest without a key would tell two candidate tables apart.

It is one SQLite file of mode 0600, `register` in the user's data folder (CURADOR_REGISTER names another). Whoever decides
that a ledger may be made holds its lock until the ledger is there: of two who make one for the same rows at once, one does.

A file is read once for each (device, number, size, time of change), whatever its size. What is not recognised: a copy of
which a byte was changed, data on another machine or under another user, and what lies in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final

from curador.engines.base import EVERYTHING, PrivateSource
from curador.errors import InvalidStudy
from curador.ledger.entry import now

VARIABLE: Final = "CURADOR_REGISTER"
"""The environment's variable that names the register's file."""
VERSION: Final = 1
PATIENCE: Final = 60.0
"""Seconds to wait for another process that is making a ledger."""
_BLOCK: Final = 1 << 20
_LARGE: Final = 1 << 28  # bytes
_TELL_AFTER: Final = 2.0
_TABLES: Final = """
CREATE TABLE owner (key BLOB NOT NULL);
CREATE TABLE ledger (id TEXT PRIMARY KEY, path TEXT NOT NULL, study TEXT NOT NULL, made TEXT NOT NULL);
CREATE TABLE source (
    ledger TEXT NOT NULL REFERENCES ledger (id), place TEXT NOT NULL, inside TEXT NOT NULL, owner TEXT NOT NULL,
    device INTEGER, number INTEGER, size INTEGER, modified INTEGER, fingerprint TEXT NOT NULL,
    PRIMARY KEY (ledger, place, inside, fingerprint)
);
CREATE INDEX source_by_place ON source (place);
CREATE INDEX source_by_file ON source (device, number);
CREATE INDEX source_by_fingerprint ON source (fingerprint);
CREATE TABLE fingerprint (
    device INTEGER NOT NULL, number INTEGER NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL,
    fingerprint TEXT NOT NULL, PRIMARY KEY (device, number, size, modified)
);
"""
_SOURCE: Final = "ledger, place, inside, owner, device, number, size, modified, fingerprint"


@dataclass(frozen=True, slots=True)
class SeenSource:
    """A private source as it is now.

    device, number, size, modified   of its file; None for what is no file here
    fingerprint                      of its contents under the owner's key; "" where they were not read
    """

    source: PrivateSource
    device: int | None = None
    number: int | None = None
    size: int | None = None
    modified: int | None = None
    fingerprint: str = ""

    @property
    def inside(self) -> str:
        """The table in its place."""
        return self.source.inside


@dataclass(frozen=True, slots=True)
class KnownLedger:
    """A ledger that is about some of the same rows.

    path     where it was last seen
    study    whose it was when it was made
    owners   (who owns the rows there, who owns them here) of every source that both have
    """

    id: str
    path: Path
    study: str
    owners: frozenset[tuple[str, str]]


def register_path() -> Path:
    """Return the place of this user's register."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    home = os.environ.get("XDG_DATA_HOME")
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".local" / "share"
    return base / "curador" / "register"


class Register:
    """An open register. A context manager: leaving it closes the file."""

    def __init__(self, path: Path | None) -> None:
        """Open the register of this path, made where there is none; None: one in memory, which remembers nothing."""
        self.path = path
        with self._translating_errors():
            if path is not None:
                _make_private(path)
            place = ":memory:" if path is None else str(path)
            self._connection = sqlite3.connect(place, timeout=PATIENCE, isolation_level=None)
            try:
                self._begin_version()
            except BaseException:
                self._connection.close()
                raise

    def _begin_version(self) -> None:
        with self.deciding():
            (found,) = self._connection.execute("PRAGMA user_version").fetchone()
            if found == 0:
                for statement in _TABLES.split(";"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {VERSION}")
                self._connection.execute("INSERT INTO owner VALUES (?)", [secrets.token_bytes(32)])
            elif found != VERSION:
                hint = "it was written by a later version of curador: use that one"
                raise InvalidStudy.must_be("the register of ledgers", f"of version {VERSION}", found, hint)
        (self._key,) = self._connection.execute("SELECT key FROM owner").fetchone()

    def __enter__(self) -> Register:  # noqa: PYI034 -- nobody derives from a register
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def deciding(self) -> Generator[None]:
        """One decision: nobody else decides meanwhile, and what was entered is kept only if the block ends well."""
        with self._translating_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    # ---- what a source is -------------------------------------------------------------------------------------------

    def look(
        self,
        sources: Sequence[PrivateSource],
        *,
        known_to: str | None = None,
        contents: bool = True,
        tell: Callable[[str], None] | None = None,
    ) -> list[SeenSource]:
        """Return sources as they are now, with fingerprints of their contents; not inside `deciding`, as it may take long.

        known_to   a ledger: contents of a file that it is known to be about, by place, are not read for it
        contents   whether contents are read that never were
        tell       is told how far reading has come, where that takes longer than two seconds
        """
        with self._translating_errors():
            found = [_stat(source) for source in sources]
            mine = {row[0] for row in self._connection.execute("SELECT place FROM source WHERE ledger = ?", [known_to or ""])}
            made: dict[tuple[int | None, ...], str] = {}
            wanted: list[tuple[SeenSource, Path]] = []
            for seen in found:
                if seen.size and _file_key(seen) not in made:
                    made[_file_key(seen)] = self._remembered(seen)
                    unread = not made[_file_key(seen)] and seen.source.place not in mine
                    if contents and unread and seen.source.file is not None:
                        wanted.append((seen, seen.source.file))
        kept: list[tuple[int | str | None, ...]] = []
        for seen, fingerprint in _read_all(wanted, bytes(self._key), tell):
            made[_file_key(seen)] = fingerprint
            kept.append((*_file_key(seen), fingerprint))
            if (seen.size or 0) > _LARGE:  # an interrupt must not cost the reading of hours
                self._remember(kept)
        self._remember(kept)
        return [replace(seen, fingerprint=made.get(_file_key(seen), "")) for seen in found]

    def _remembered(self, one: SeenSource) -> str:
        statement = "SELECT fingerprint FROM fingerprint WHERE (device, number, size, modified) = (?, ?, ?, ?)"
        row = self._connection.execute(statement, _file_key(one)).fetchone()
        return "" if row is None else str(row[0])

    def _remember(self, kept: list[tuple[int | str | None, ...]]) -> None:
        """Write fingerprints down in one step, and empty the list."""
        if kept:
            with self.deciding():
                self._connection.executemany("INSERT OR REPLACE INTO fingerprint VALUES (?, ?, ?, ?, ?)", kept)
            kept.clear()

    # ---- whose rows they are ----------------------------------------------------------------------------------------

    def ledgers_of(self, sources: Iterable[SeenSource]) -> list[KnownLedger]:
        """Return every ledger that is about a row of these sources, the oldest first."""
        owners: dict[str, set[tuple[str, str]]] = {}
        with self._translating_errors():
            for seen in sources:
                for ledger, owner in self._matches(seen):
                    owners.setdefault(ledger, set()).add((owner, seen.source.owner))
            rows = self._connection.execute("SELECT id, path, study FROM ledger ORDER BY made, rowid").fetchall()
        return [KnownLedger(id_, Path(path), study, frozenset(owners[id_])) for id_, path, study in rows if id_ in owners]

    def _matches(self, one: SeenSource) -> list[tuple[str, str]]:
        """Return (ledger, owner of the rows there) of what is the same source, by place, by file or by contents."""
        statement = (
            f"SELECT {_SOURCE} FROM source WHERE place = ? OR (device = ? AND number = ?)"  # noqa: S608 -- ours
            " OR (fingerprint = ? AND fingerprint <> '')"
        )
        rows = self._connection.execute(statement, [one.source.place, one.device, one.number, one.fingerprint]).fetchall()
        return [
            (ledger, owner)
            for ledger, place, inside, owner, device, number, size, modified, fingerprint in rows
            if (inside == one.inside or EVERYTHING in {inside, one.inside})
            and (
                place == one.source.place
                or (fingerprint and fingerprint == one.fingerprint)
                or (size, modified) == (one.size, one.modified)  # moved; another file may have got its number since
                or _is_file(place, device, number)  # a hard link, or another mount
            )
        ]

    def place_of(self, ledger: str) -> Path | None:
        """Return where a ledger was last seen."""
        with self._translating_errors():
            row = self._connection.execute("SELECT path FROM ledger WHERE id = ?", [ledger]).fetchone()
        return None if row is None else Path(row[0])

    def enter(self, ledger: str, path: Path, study: str, sources: Iterable[SeenSource]) -> None:
        """Write down that a ledger is about these sources; inside `deciding`. What is known already is not written again."""
        execute = self._connection.execute
        known = execute("SELECT path FROM ledger WHERE id = ?", [ledger]).fetchone()
        if known is None:
            execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", [ledger, str(path), study, now()])
        elif known != (str(path),):
            execute("UPDATE ledger SET path = ? WHERE id = ?", [str(path), ledger])
        for seen in sources:
            own, file = [ledger, seen.source.place, seen.inside], [seen.source.owner, *_file_key(seen)]
            rows = execute(
                "SELECT owner, device, number, size, modified, fingerprint FROM source"
                " WHERE (ledger, place, inside) = (?, ?, ?)",
                own,
            ).fetchall()
            if any(list(row[:5]) != file for row in rows):
                execute(
                    "UPDATE source SET (owner, device, number, size, modified) = (?, ?, ?, ?, ?)"
                    " WHERE (ledger, place, inside) = (?, ?, ?)",
                    [*file, *own],
                )
            if not rows or (seen.fingerprint and seen.fingerprint not in {row[5] for row in rows}):
                execute("INSERT INTO source VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [*own, *file, seen.fingerprint])

    @contextlib.contextmanager
    def _translating_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            hint = f"it says which budget your data have; restore it, or name another file in {VARIABLE}"
            if "locked" in str(error):
                hint = "another process is making a ledger: try again"
            place = "in memory" if self.path is None else str(self.path)
            raise InvalidStudy.must_be(
                "the register of ledgers", "a file that can be read and written", place, hint
            ) from error


def open_register(warn: Callable[[str], None]) -> Register:
    """Return this user's register; where none can be made, one that remembers nothing, and a warning."""
    try:
        return Register(register_path())
    except (OSError, RuntimeError) as error:  # no home, no room, a folder that cannot be written
        reason = getattr(error, "strerror", None) or "there is no home folder"
        warn(f"no register of ledgers ({reason}): your data are recognised in their own folders only. Set {VARIABLE}")
        return Register(None)


def _make_private(path: Path) -> None:
    """Make an empty file that only the owner can read, or make it so; OSError where that cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _stat(source: PrivateSource) -> SeenSource:
    if source.file is None:
        return SeenSource(source)
    found = source.file.stat()
    return SeenSource(source, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _file_key(one: SeenSource) -> tuple[int | None, ...]:
    return one.device, one.number, one.size, one.modified


def _is_file(place: str, device: int | None, number: int | None) -> bool:
    try:
        found = os.stat(place)  # noqa: PTH116 -- a text from the register
    except OSError:
        return False
    return device is not None and (found.st_dev, found.st_ino) == (device, number)


def _read_all(
    wanted: Sequence[tuple[SeenSource, Path]], key: bytes, tell: Callable[[str], None] | None
) -> Generator[tuple[SeenSource, str]]:
    """Yield fingerprints of files, and say how far it is where it takes longer than two seconds."""
    whole, done, told = sum(seen.size or 0 for seen, _ in wanted), 0, time.monotonic()
    for seen, place in wanted:
        digest = hmac.new(key, digestmod=hashlib.sha256)
        with place.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                done += len(block)
                if tell is not None and time.monotonic() - told > _TELL_AFTER:
                    told = time.monotonic()
                    tell(f"looking whether these data have a ledger: {done / 1e9:.1f} of {whole / 1e9:.1f} GB")
        yield seen, digest.hexdigest()
