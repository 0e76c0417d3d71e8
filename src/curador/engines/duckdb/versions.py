"""Takes a data version: reads the sources once, prepares them beside the ledger, and remembers what was read."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from curador.engines.duckdb import snapshot, unreadable
from curador.engines.duckdb.connection import connect, limits, private_files
from curador.engines.duckdb.incidents import failure
from curador.engines.duckdb.prepare import Work, prepare, verify_keys
from curador.engines.duckdb.progress import Progress
from curador.engines.duckdb.views import make_views, view_source, write_frames
from curador.errors import InvalidStudy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    import duckdb

    from curador.engines.duckdb.folder import Folder
    from curador.engines.duckdb.sources import Source
    from curador.study.schema import Schema, TableSchema

NEVER = "never"
_SMALL = 32_000_000
"""Bytes of sources that are staged in memory."""


def take_version(schema: Schema, folder: Folder, version: int, tell: Callable[[str], None] | None = None) -> None:
    """Prepare the sources as they are now as this version, in place of any other. An error leaves the old one."""
    import duckdb

    folder.make()
    with private_files(), folder.locked(), Progress(tell) as progress:
        try:
            _take(schema, folder, version, progress)
        except duckdb.Error as problem:  # unreadable pages, a full disk: the text may hold rows
            raise failure(folder, version, f"{type(problem).__name__}: {problem}") from None


def _take(schema: Schema, folder: Folder, version: int, progress: Progress) -> None:
    study = schema.study
    never = study.engine.prepare == NEVER
    progress.step("looking for changes")
    seen = snapshot.take(study, folder)
    if never:
        write_frames(schema, folder.frames)
        _verify_views(schema, folder, progress)
    else:
        _prepare_file(schema, folder, version, progress)
    if not snapshot.unchanged_files(seen, study):
        raise InvalidStudy("The sources must stay as they are while a version is taken; a file has changed meanwhile.")
    if not never:
        _beside(folder, version, "part").replace(folder.version(version))
    snapshot.write(folder, snapshot.Manifest(version, snapshot.layout_digest(schema), seen))
    folder.remove_versions(keep=version)


def is_prepared(schema: Schema, folder: Folder, version: int) -> bool:
    """Whether this version is there, made for these declarations."""
    manifest = snapshot.read(folder)
    if manifest is None or manifest.version != version or manifest.layout != snapshot.layout_digest(schema):
        return False
    return schema.study.engine.prepare == NEVER or folder.version(version).is_file()


def specification(schema: Schema, folder: Folder, version: int) -> dict[str, Any]:
    """Return, as JSON values, the connection on which questions about this version run."""
    settings = schema.study.engine
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


def _beside(folder: Folder, version: int, word: str) -> Path:
    file = folder.version(version)
    return file.with_name(f"{file.name}.{word}")


def _prepare_file(schema: Schema, folder: Folder, version: int, progress: Progress) -> None:
    part, stage = (_beside(folder, version, word) for word in ("part", "stage"))
    small = snapshot.bytes_of(schema.study) <= _SMALL
    for file in (part, stage):
        for one in (file, file.with_name(f"{file.name}.wal")):
            one.unlink(missing_ok=True)
    settings, spill = schema.study.engine, folder.new_spill()
    connection = connect(str(part), limits(settings, spill))
    try:
        prepare(Work(connection, schema, unit_key(folder), settings.memory, progress), None if small else stage)
    except BaseException:
        connection.close()
        part.unlink(missing_ok=True)
        raise
    finally:
        connection.close()
        stage.unlink(missing_ok=True)
        shutil.rmtree(spill, ignore_errors=True)


def _verify_views(schema: Schema, folder: Folder, progress: Progress) -> None:
    """Verify, where nothing is prepared, that every value can be read, and keys."""
    views = make_views(schema, unit_key(folder), folder.frames)
    settings, spill = schema.study.engine, folder.new_spill()
    connection = connect(":memory:", limits(settings, spill))
    try:
        for statement in views.statements:
            connection.execute(statement).fetchall()
        for place, table in enumerate(schema.tables):
            progress.step(f"reading {table.table.name}")
            _verify_readable(connection, f"s{place}", view_source(schema, table, place, folder.frames), table)
        verify_keys(Work(connection, schema, "", settings.memory, progress), lambda place: f"s{place}")
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


def _verify_readable(connection: duckdb.DuckDBPyConnection, rows: str, source: Source, table: TableSchema) -> None:
    import duckdb

    try:
        unreadable.read_all(connection, rows, table)
    except duckdb.Error as problem:
        hint = 'prepare = "auto" reads texts that are no UTF-8 as NULL, and times beyond microseconds as the last year'
        raise unreadable.refusal(connection, rows, source, table, hint) or problem from None
