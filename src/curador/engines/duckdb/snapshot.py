"""Data versions: which one is prepared, and whether a source has changed since. Known to the owner's store alone.

A version is an owner's act: the number grows at every refresh, whether or not anything changed, and is all that others see.
Digests of contents are HMACs under the study's key; they are compared here and leave the manifest for no entry, receipt,
log or message: a digest of a table tells two candidate tables apart.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb import sources
from curador.engines.duckdb.folder import Folder, prepared_folder, write_private
from curador.errors import InvalidStudy
from curador.plan.costs import NAME_BYTES, TEXT_CHARACTERS, UNIT_TEXT_BYTES
from curador.plan.grid import column_grid
from curador.plan.work import stored_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from curador.engines.duckdb.sources import Source
    from curador.study.model import Study
    from curador.study.schema import Schema

FORMAT = 1
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Seen:
    """One file, or one frame, as it was when a version was taken."""

    path: str
    size: int
    modified: int
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is prepared: the version, for which declarations, and its sources by table."""

    version: int
    layout: str
    sources: Mapping[str, tuple[Seen, ...]] = field(default_factory=dict[str, tuple[Seen, ...]])


def read(folder: Folder) -> Manifest | None:
    """Return what the folder says is prepared; None where nothing is."""
    try:
        stored = json.loads(folder.manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        stored = {}
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise InvalidStudy(f"{folder.manifest} must be a manifest of format {FORMAT}.\nHint: run `curador refresh`")
    by_table = {name: tuple(_read_seen(one) for one in files) for name, files in stored["sources"].items()}
    return Manifest(stored["version"], stored["layout"], by_table)


def write(folder: Folder, manifest: Manifest) -> None:
    """Store what is prepared."""
    by_table = {name: [_plain(one) for one in files] for name, files in manifest.sources.items()}
    content = {"format": FORMAT, "version": manifest.version, "layout": manifest.layout, "sources": by_table}
    write_private(folder.manifest, json.dumps(content, indent=1).encode())


def take(study: Study, folder: Folder) -> dict[str, tuple[Seen, ...]]:
    """Return every source as it is now, with digests: reads all bytes once."""
    key = folder.key("sources")
    found = {table.name: sources.find(study, table, "source") for table in study.tables}
    return {name: _seen(source, key, study.folder) for name, source in found.items()}


def changed(study: Study, folder: Folder | None = None) -> bool:
    """Whether a source differs from what the prepared version was taken from. Nothing taken yet: nothing changed.

    Size and time of change are compared first; only where they differ is the content. A file that was touched and is the
    same has not changed, and its new time is remembered.
    """
    folder = folder or Folder(prepared_folder(study))
    manifest = read(folder)
    if manifest is None:
        return False
    key = folder.key("sources")
    now: dict[str, tuple[Seen, ...]] = {}
    for table in study.tables:
        before = manifest.sources.get(table.name)
        if before is None:
            return True
        source = sources.find(study, table, "source")
        if source.files and _stated(source, study.folder) == [(one.path, one.size, one.modified) for one in before]:
            now[table.name] = before
            continue
        now[table.name] = _seen(source, key, study.folder)
        if [(one.path, one.digest) for one in now[table.name]] != [(one.path, one.digest) for one in before]:
            return True
    if now != dict(manifest.sources):
        write(folder, Manifest(manifest.version, manifest.layout, now))
    return False


def unchanged_files(seen: Mapping[str, tuple[Seen, ...]], study: Study) -> bool:
    """Whether size and time of every file are still those: nobody wrote while a version was taken."""
    found = {table.name: sources.find(study, table, "source") for table in study.tables if table.source != sources.FRAME}
    return all(
        _stated(source, study.folder) == [(one.path, one.size, one.modified) for one in seen[name]]
        for name, source in found.items()
    )


def bytes_of(study: Study) -> int:
    """Return how large the sources are together; of frames, as if every value were a number."""
    frames = [study.frames[table.name].shape for table in study.tables if table.source == sources.FRAME]
    files = [sources.find(study, table, "source").files for table in study.tables if table.source != sources.FRAME]
    return sum(8 * height * width for height, width in frames) + sum(file.stat().st_size for one in files for file in one)


def layout_digest(schema: Schema) -> str:
    """Return the fingerprint of everything that shapes a prepared file but rows: columns, values, grids, units, limits."""
    limits = (TEXT_CHARACTERS, UNIT_TEXT_BYTES, NAME_BYTES)
    described: list[object] = [
        limits,
        *(stored_rows(one.table, schema.study) for one in schema.tables if not one.table.public),
    ]
    described += [
        (
            table.table.name,
            repr(table.table.unit),
            table.table.unique,
            table.table.key,
            [(one.name, one.type, one.declared and (one.declared.values, column_grid(one.declared))) for one in table.fields],
        )
        for table in schema.tables
    ]
    return hashlib.sha256(repr(described).encode()).hexdigest()


def _plain(one: Seen) -> dict[str, Any]:
    return {"path": one.path, "size": one.size, "modified": one.modified, "digest": one.digest}


def _read_seen(one: dict[str, Any]) -> Seen:
    return Seen(path=one["path"], size=one["size"], modified=one["modified"], digest=one["digest"])


def _stated(source: Source, folder: Path) -> list[tuple[str, int, int]]:
    """Name as seen from the study, so that a study may move; size; time of change."""
    home = folder.absolute()
    names = [str(file.relative_to(home) if file.is_relative_to(home) else file) for file in source.files]
    stats = [file.stat() for file in source.files]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in zip(names, stats, strict=True)]


def _seen(source: Source, key: bytes, folder: Path) -> tuple[Seen, ...]:
    if source.kind == "frame":
        return (Seen(sources.FRAME, 0, 0, _frame_digest(source.frame, key)),)
    stated = _stated(source, folder)  # before the bytes: a later change shows
    return tuple(
        Seen(path, size, modified, _file_digest(file, key))
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
