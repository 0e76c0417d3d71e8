"""Data versions and the prepared folder they lie in: taken from the sources once, compared with them since.

The folder `<ledger>.prepared/` is a second copy of sensitive rows, so the owner's alone (0700, files 0600). Every machine has
its own, of the same rows under the same key.

key             32 random bytes of the study: ranks, hashes of units and digests of sources are made with it
machine         what tells this folder from those of other machines: random
manifest.json   which version is prepared, from which sources, for which declarations
copies.json     what the prepared copy is known by (`copies.py`)
v<N>.duckdb     data version N, prepared
frames/         tables given from Python, where nothing is prepared
spill/          what DuckDB moves out of memory while it works
lock            held by the process that prepares
incidents.log   what really happened when a question failed; analysts see an id only
durations.log   how long questions took, by the id in their receipts; analysts see the time at which they asked only

The two logs are the owner's alone: what really happened when a question failed, and how long others took. Each is a line of
JSON; everybody else sees a random id.

A version is an owner's act: the number grows at every refresh, whether or not anything changed, and is all that others see.
Which one is prepared, and whether a source has changed since, is known to the owner's store alone. Digests of contents are
HMACs under the study's key; they are compared here and leave the manifest for no entry, receipt, log or message: a digest of
a table tells two candidate tables apart.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import hmac
import json
import os
import secrets
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from curador.engines.base import EngineFailed, KeptPlaces
from curador.engines.duckdb import reading, sources
from curador.engines.duckdb.connection import connect, limits, private_files
from curador.engines.duckdb.copies import UNDIGESTED, PreparedFile, digest_rows, is_as_recorded, read_record
from curador.engines.duckdb.prepare import (
    PreparationWork,
    Progress,
    make_views,
    prepare,
    verify_keys,
    view_source,
    write_frames,
)
from curador.engines.duckdb.rank_key import KEY_BYTES, given_key
from curador.engines.duckdb.worker import open_connection
from curador.errors import InvalidStudy
from curador.plan.model import column_grid
from curador.plan.work import NAME_BYTES, TEXT_CHARACTERS, UNIT_TEXT_BYTES, stored_rows
from curador.study.frames import shape_of_frame
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    import duckdb

    from curador.engines.base import CopyDigest
    from curador.engines.duckdb.sources import TableSource
    from curador.study.model import Schema, Study, TableSchema


# ---- folder ----------------------------------------------------------------------------------------------------------------


def prepared_folder(study: Study) -> Path:
    """Return this machine's prepared folder: where the owner says, else beside the ledger's file."""
    if study.engine.prepared:
        return (study.folder / study.engine.prepared).absolute()
    ledger = study.folder / study.ledger
    return ledger.with_name(f"{ledger.name}.prepared").absolute()


@dataclass(frozen=True, slots=True)
class Folder:
    """The places inside one prepared folder."""

    path: Path

    @property
    def manifest(self) -> Path:
        """What is prepared."""
        return self.path / "manifest.json"

    @property
    def spill(self) -> Path:
        """Where DuckDB spills."""
        return self.path / "spill"

    @property
    def frames(self) -> Path:
        """Tables given from Python, as files."""
        return self.path / "frames"

    @property
    def incidents(self) -> Path:
        """The owner's log of failures."""
        return self.path / "incidents.log"

    @property
    def durations(self) -> Path:
        """The owner's log of how long questions took."""
        return self.path / "durations.log"

    def version(self, number: int) -> Path:
        """Return the file of a prepared version."""
        return self.path / f"v{number}.duckdb"

    def make(self, *, apart: bool = False) -> None:
        """Make the folder and its key, or make sure that they are the owner's alone.

        apart   with a key of its own, whatever the environment says: for rows that are forgotten
        """
        for folder in (self.path, self.spill):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        if not self.has_key:
            key = None if apart else given_key()
            with contextlib.suppress(FileExistsError):
                write_private(self.path / "key", secrets.token_bytes(KEY_BYTES) if key is None else key, new=True)
        (self.path / "key").chmod(0o600)

    @property
    def has_key(self) -> bool:
        """Whether the study's key lies here."""
        return (self.path / "key").exists()

    def machine(self) -> str:
        """Return what tells this folder from those of other machines; made when first asked for."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            write_private(self.path / "machine", secrets.token_hex(16).encode(), new=True)
        return (self.path / "machine").read_text(encoding="ascii")

    def key(self, purpose: str) -> bytes:
        """Return the study's key for one purpose: 32 bytes."""
        try:
            stored = (self.path / "key").read_bytes()
        except OSError:
            stored = b""
        if len(stored) != KEY_BYTES:
            hint = "restore it; or run `curador refresh`: without the key nobody can tell whether the data are still the same"
            raise InvalidStudy.must_be(str(self.path / "key"), f"{KEY_BYTES} bytes", Plain(f"{len(stored)} bytes"), hint)
        return hmac.digest(stored, purpose.encode(), hashlib.sha256)

    def remove_versions(self, keep: int | None = None) -> None:
        """Remove prepared versions but one and what a broken preparation left; without one also frames and the logs."""
        for file in self.path.glob("v*.duckdb*"):
            if keep is None or file.name != self.version(keep).name:
                file.unlink(missing_ok=True)
        self.sweep()
        if keep is None:
            shutil.rmtree(self.frames, ignore_errors=True)
            self.incidents.unlink(missing_ok=True)
            self.durations.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed processes had moved out of memory: it holds rows."""
        for left in self.spill.glob("*"):
            if not _is_alive(left.name.partition("-")[0]):
                shutil.rmtree(left, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Let one process at a time prepare; others wait."""
        import fcntl

        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def own_spill(self) -> Path:
        """Return this process's place for what is moved out of memory; its connections to one file must agree on it."""
        return self.spill / str(os.getpid())

    def new_spill(self) -> Path:
        """Return a place of its own for what a worker, or a preparation, moves out of memory; it tells whose it is."""
        return self.spill / f"{os.getpid()}-{secrets.token_hex(4)}"

    def appending(self, log: Path) -> IO[bytes]:
        """Open one of the owner's logs to append to it."""
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(handle, "ab", buffering=0)

    def size(self) -> int:
        """Return the bytes that the folder holds."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())


class KindWithFolder:
    """What every kind of engine does with this machine's prepared folder, wherever rows are."""

    def machine(self, study: Study) -> str:
        """Return the random name of the prepared folder."""
        return Folder(prepared_folder(study)).machine()

    def has_key(self, study: Study) -> bool:
        """Whether the prepared folder has its key, or the environment has one for it."""
        return Folder(prepared_folder(study)).has_key or given_key() is not None

    def set_apart(self, study: Study) -> None:
        """Make the prepared folder with a key of its own."""
        Folder(prepared_folder(study)).make(apart=True)

    def kept(self, study: Study) -> KeptPlaces:
        """Return the prepared folder and the owner's two logs in it."""
        folder = Folder(prepared_folder(study))
        return KeptPlaces(folder.path, folder.incidents, folder.durations)


def _is_alive(number: str) -> bool:
    """Whether the process of this number runs: what a killed one left behind holds rows and is removed."""
    try:
        os.kill(int(number), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def write_private(path: Path, content: bytes, *, new: bool = False) -> None:
    """Write a file that only the owner can read, at once: readers see the old content or the new one."""
    if new:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    write_private(beside, content, new=True)
    beside.replace(path)


# ---- logs ----------------------------------------------------------------------------------------------------------------


def log_failure(folder: Folder, version: int, detail: str) -> EngineFailed:
    """Write what happened to the owner's log; return what anybody may know of it."""
    incident = secrets.token_hex(8)
    note_failure(folder, version, incident, detail)
    return EngineFailed(incident)


def note_failure(folder: Folder, version: int, incident: str, detail: str) -> None:
    """Write what happened under an id that was given to it elsewhere."""
    _append(folder, folder.incidents, {"incident": incident, "version": version, "detail": detail})


def note_duration(folder: Folder, version: int, question: str, seconds: float) -> None:
    """Write how long a question took, by the id that its receipt shows."""
    _append(folder, folder.durations, {"question": question, "version": version, "seconds": round(seconds, 3)})


def _append(folder: Folder, log: Path, entry: dict[str, object]) -> None:
    now = dt.datetime.now(dt.UTC).isoformat()
    with folder.appending(log) as file:
        file.write(json.dumps({"time": now, **entry}).encode() + b"\n")


# ---- snapshot --------------------------------------------------------------------------------------------------------------


FORMAT = 1
PREPARATION = 3
"""What a prepared file holds; one of another number is prepared again, with the same ranks, as they follow from rows and key.

1   columns, grids, units, hashes, ranks
2   rows verified to lie unit by unit in the order of ranks; numbers of values in a unit
3   ranks in as few bytes as they need, and the part of a unit beside its hash
"""

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceFingerprint:
    """One file, or one frame, as it was when a version was taken."""

    path: str
    size: int
    modified: int
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is prepared: the version, for which declarations, and its sources by table.

    numbered  whether questions choose groups by the numbers of values: not where the version is older than they are, since
              what was asked about it by then is kept under other names
    """

    version: int
    layout: str
    sources: Mapping[str, tuple[SourceFingerprint, ...]] = field(default_factory=dict[str, tuple[SourceFingerprint, ...]])
    numbered: bool = False


def read_manifest(folder: Folder) -> Manifest | None:
    """Return what the folder says is prepared; None where nothing is."""
    stored = _stored_manifest(folder)
    if stored is None:
        return None
    by_table = {name: tuple(_read_fingerprint(file) for file in files) for name, files in stored["sources"].items()}
    return Manifest(stored["version"], stored["layout"], by_table, stored.get("numbered", False) is True)


def _stored_manifest(folder: Folder) -> dict[str, Any] | None:
    try:
        stored = json.loads(folder.manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        stored = {}
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise InvalidStudy(f"{folder.manifest} must be a manifest of format {FORMAT}.", hint="run `curador refresh`")
    return stored


def write_manifest(folder: Folder, manifest: Manifest) -> None:
    """Store what is prepared."""
    by_table = {name: [_plain(file) for file in files] for name, files in manifest.sources.items()}
    content: dict[str, Any] = {"format": FORMAT, "version": manifest.version, "layout": manifest.layout, "sources": by_table}
    if manifest.numbered:
        content["numbered"] = True
    write_private(folder.manifest, json.dumps(content, indent=1).encode())


def fingerprint_sources(study: Study, folder: Folder) -> dict[str, tuple[SourceFingerprint, ...]]:
    """Return every source as it is now, with digests: reads all bytes once."""
    key = folder.key("sources")
    found = {table.name: sources.find(study, table, "source") for table in study.tables}
    return {name: _fingerprint(source, key, study.folder) for name, source in found.items()}


def have_sources_changed(study: Study, folder: Folder | None = None) -> bool:
    """Whether a source differs from what the prepared version was taken from. Nothing taken yet: nothing changed.

    Size and time of change are compared first; only where they differ is the content. A file that was touched and is the
    same has not changed, and its new time is remembered.
    """
    folder = folder or Folder(prepared_folder(study))
    manifest = read_manifest(folder)
    if manifest is None:
        return False
    key = folder.key("sources")
    now: dict[str, tuple[SourceFingerprint, ...]] = {}
    for table in study.tables:
        before = manifest.sources.get(table.name)
        if before is None:
            return True
        source = sources.find(study, table, "source")
        if source.files and _file_stats(source, study.folder) == [(one.path, one.size, one.modified) for one in before]:
            now[table.name] = before
            continue
        now[table.name] = _fingerprint(source, key, study.folder)
        if [(one.path, one.digest) for one in now[table.name]] != [(one.path, one.digest) for one in before]:
            return True
    if now != dict(manifest.sources):
        write_manifest(folder, replace(manifest, sources=now))
    return False


def are_files_unchanged(seen: Mapping[str, tuple[SourceFingerprint, ...]], study: Study) -> bool:
    """Whether size and time of every file are still those: nobody wrote while a version was taken."""
    found = {table.name: sources.find(study, table, "source") for table in study.tables if table.source != sources.FRAME}
    return all(
        _file_stats(source, study.folder) == [(one.path, one.size, one.modified) for one in seen[name]]
        for name, source in found.items()
    )


def bytes_of(study: Study) -> int:
    """Return how large the sources are together; of frames, as if every value were a number."""
    frames = [shape_of_frame(study.frames[table.name]) for table in study.tables if table.source == sources.FRAME]
    files = [sources.find(study, table, "source").files for table in study.tables if table.source != sources.FRAME]
    return sum(8 * height * width for height, width in frames) + sum(file.stat().st_size for one in files for file in one)


def layout_digest(schema: Schema) -> str:
    """Return the fingerprint of everything that shapes a prepared file but rows: columns, values, grids, units, limits."""
    limits = (TEXT_CHARACTERS, UNIT_TEXT_BYTES, NAME_BYTES)
    described: list[object] = [
        limits,
        PREPARATION,
        *(stored_rows(table.table, schema.study) for table in schema.tables if not table.table.public),
    ]
    described += [
        (
            table.table.name,
            repr(table.table.unit),
            table.table.unique,
            table.table.key,
            [(one.name, one.type, one.declared and (one.declared.values, column_grid(one.declared))) for one in table.fields],
            *(() if table.table.format is None else (table.table.format.said(),)),
        )
        for table in schema.tables
    ]
    return hashlib.sha256(repr(described).encode()).hexdigest()


def _plain(one: SourceFingerprint) -> dict[str, Any]:
    return {"path": one.path, "size": one.size, "modified": one.modified, "digest": one.digest}


def _read_fingerprint(one: dict[str, Any]) -> SourceFingerprint:
    return SourceFingerprint(path=one["path"], size=one["size"], modified=one["modified"], digest=one["digest"])


def _file_stats(source: TableSource, folder: Path) -> list[tuple[str, int, int]]:
    """Name as seen from the study, so that a study may move; size; time of change."""
    home = folder.absolute()
    names = [str(file.relative_to(home) if file.is_relative_to(home) else file) for file in source.files]
    stats = [file.stat() for file in source.files]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in zip(names, stats, strict=True)]


def _fingerprint(source: TableSource, key: bytes, folder: Path) -> tuple[SourceFingerprint, ...]:
    if source.kind == "frame":
        return (SourceFingerprint(sources.FRAME, 0, 0, _frame_digest(source.frame, key)),)
    stated = _file_stats(source, folder)  # before the bytes: a later change shows
    return tuple(
        SourceFingerprint(path, size, modified, _file_digest(file, key))
        for file, (path, size, modified) in zip(source.files, stated, strict=True)
    )


def _file_digest(path: Path, key: bytes) -> str:
    digest = hmac.new(key, digestmod=hashlib.sha256)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _frame_digest(frame: Any, key: bytes) -> str:
    """HMAC of the frame as an Arrow stream, whatever pieces it comes in."""
    import pyarrow as pa

    digest = hmac.new(key, digestmod=hashlib.sha256)
    whole = frame.combine_chunks()
    sink = _Sink(digest)
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), whole.schema) as stream:
        stream.write_table(whole)
    return digest.hexdigest()


class _Sink:
    """A file that only digests."""

    def __init__(self, digest: hmac.HMAC) -> None:
        self._digest = digest
        self._length = 0
        self.closed = False

    def write(self, content: Any) -> int:
        self._digest.update(content)
        self._length += len(content)
        return len(content)

    def tell(self) -> int:
        return self._length

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


# ---- versions --------------------------------------------------------------------------------------------------------------


NEVER = "never"
_STAGED = 16
"""Sources of up to this part of the memory that an engine may use are staged in memory, from where they may spill."""


def take_version(schema: Schema, folder: Folder, version: int, tell: Callable[[str], None] | None = None) -> None:
    """Prepare the sources as they are now as this version, in place of any other. An error leaves the old one."""
    import duckdb

    folder.make()
    with private_files(), folder.locked(), Progress(tell) as progress:
        try:
            _take(schema, folder, version, progress)
        except duckdb.Error as problem:  # unreadable pages, a full disk: the text may hold rows
            raise log_failure(folder, version, f"{type(problem).__name__}: {problem}") from None


def _take(schema: Schema, folder: Folder, version: int, progress: Progress) -> None:
    study = schema.study
    never = study.engine.prepare == NEVER
    progress.step("looking for changes")
    seen = fingerprint_sources(study, folder)
    copy, others = prepared_copy(schema, folder, version), _copies_of_same(folder, version, seen)
    if never:
        write_frames(schema, folder.frames)
        content = _verify_views(schema, folder, copy.about, progress)
    else:
        content = prepare_file(schema, folder, version, copy.about, progress)
    if not are_files_unchanged(seen, study):
        raise InvalidStudy("The sources must stay as they are while a version is taken; a file has changed meanwhile.")
    if not never:
        beside(folder, version, "part").replace(folder.version(version))
    copy.record(content, others)
    write_manifest(folder, Manifest(version, layout_digest(schema), seen, is_numbered(study, folder, version)))
    folder.remove_versions(keep=version)


def prepared_copy(schema: Schema, folder: Folder, version: int, layout: str | None = None) -> PreparedFile:
    """Return the copy of a version as it is compared with what it was. layout: the digest of declarations, where known."""
    study = schema.study
    never = study.engine.prepare == NEVER
    about = (version, layout or layout_digest(schema), is_numbered(study, folder, version))

    def digest() -> str:
        if not study.shared:
            return UNDIGESTED
        with contextlib.closing(open_connection(specification(schema, folder, version))) as connection:
            return digest_rows(connection, folder.key, about=about, views=never)

    file = None if never else folder.version(version)
    return PreparedFile(folder, version, about[1], file, about, digest, shared=study.shared)


def _copies_of_same(
    folder: Folder, version: int, seen: Mapping[str, tuple[SourceFingerprint, ...]]
) -> tuple[CopyDigest, ...]:
    """Return what copies of this version are known by that were made here of the very same sources."""
    before, record = read_manifest(folder), read_record(folder)
    if before is None or record is None or (before.version, record.version) != (version, version):
        return ()
    held = {name: [(one.path, one.digest) for one in files] for name, files in before.sources.items()}
    now = {name: [(one.path, one.digest) for one in files] for name, files in seen.items()}
    return record.copies if held == now else ()


def is_numbered(study: Study, folder: Folder, version: int) -> bool:
    """Whether questions about a version, or about one that is yet to be taken, choose groups by the numbers of values.

    A version that is prepared again stays what it was.
    """
    manifest = _stored_manifest(folder)
    if study.engine.prepare == NEVER:
        return False
    return manifest is None or manifest["version"] != version or manifest.get("numbered", False) is True


def is_there(schema: Schema, folder: Folder, version: int, layout: str | None = None) -> bool:
    """Whether this version is there, made for these declarations. layout: their digest, where it is known."""
    stored = _stored_manifest(folder)
    if stored is None or stored["version"] != version or stored["layout"] != (layout or layout_digest(schema)):
        return False
    return schema.study.engine.prepare == NEVER or folder.version(version).is_file()


def is_prepared(schema: Schema, folder: Folder, version: int, layout: str | None = None) -> bool:
    """Whether this version is there, made for these declarations, and nobody wrote to its file since."""
    made_for = layout or layout_digest(schema)
    file = None if schema.study.engine.prepare == NEVER else folder.version(version)
    return is_there(schema, folder, version, made_for) and is_as_recorded(read_record(folder), version, made_for, file)


def specification(schema: Schema, folder: Folder, version: int) -> dict[str, Any]:
    """Return, as JSON values, the connection on which questions about this version run."""
    settings = schema.study.engine.of_worker
    never = settings.prepare == NEVER
    views = make_views(schema, unit_key(folder), folder.frames) if never else None
    return {
        "database": ":memory:" if never else str(folder.version(version)),
        "config": {**limits(settings, folder.own_spill()), "preserve_insertion_order": "false"},  # no answer has an order
        "setup": list(views.statements) if views else [],
        "allowed": list(views.allowed) if views else [],
        "memory": settings.memory,
    }


def unit_key(folder: Folder) -> str:
    """Return the key of hashes and ranks: 128 bits as hexadecimal digits, so that key and unit fill one block of MD5."""
    return folder.key("units")[:16].hex()


def beside(folder: Folder, version: int, word: str) -> Path:
    """Return the place of what belongs to the file of a version."""
    file = folder.version(version)
    return file.with_name(f"{file.name}.{word}")


def prepare_file(schema: Schema, folder: Folder, version: int, about: Iterable[object], progress: Progress) -> str:
    """Write the file of a version beside its place; return the digest of what it holds."""
    part, stage = (beside(folder, version, word) for word in ("part", "stage"))
    small = bytes_of(schema.study) <= schema.study.engine.memory // _STAGED
    for file in (part, stage):
        for left in (file, file.with_name(f"{file.name}.wal")):
            left.unlink(missing_ok=True)
    settings, spill = schema.study.engine, folder.new_spill()
    connection = connect(str(part), limits(settings, spill))
    try:
        prepare(PreparationWork(connection, schema, unit_key(folder), settings.memory, progress), None if small else stage)
        if not schema.study.shared:
            return UNDIGESTED
        progress.step("digesting")
        return digest_rows(connection, folder.key, about=about)
    except BaseException:
        connection.close()
        part.unlink(missing_ok=True)
        raise
    finally:
        connection.close()
        stage.unlink(missing_ok=True)
        shutil.rmtree(spill, ignore_errors=True)


def _verify_views(schema: Schema, folder: Folder, about: Iterable[object], progress: Progress) -> str:
    """Verify, where nothing is prepared, that every value can be read, and keys; return the digest of what is read."""
    views = make_views(schema, unit_key(folder), folder.frames)
    settings, spill = schema.study.engine, folder.new_spill()
    connection = connect(":memory:", limits(settings, spill))
    try:
        for statement in views.statements:
            connection.execute(statement).fetchall()
        for place, table in enumerate(schema.tables):
            progress.step(f"reading {table.table.name}")
            _verify_readable(connection, f"s{place}", view_source(schema, table, place, folder.frames), table)
        verify_keys(PreparationWork(connection, schema, "", settings.memory, progress), lambda place: f"s{place}")
        if not schema.study.shared:
            return UNDIGESTED
        progress.step("digesting")
        return digest_rows(connection, folder.key, about=about, views=True)
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


def _verify_readable(connection: duckdb.DuckDBPyConnection, rows: str, source: TableSource, table: TableSchema) -> None:
    import duckdb

    try:
        reading.read_all(connection, rows, table)
    except duckdb.Error as problem:
        hint = 'prepare = "auto" reads texts that are no UTF-8 as NULL, and times beyond microseconds as the last year'
        raise reading.unreadable_refusal(connection, rows, source, table, hint) or problem from None
