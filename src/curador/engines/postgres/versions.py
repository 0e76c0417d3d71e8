"""Data versions on a server: a schema each, and beside the ledger what this machine knows of it.

The prepared folder `<ledger>.prepared/` has key, machine, manifest and logs as for files, and instead of the rows:

v<N>.duckdb    the public tables of version N: plans look at them
server.json    the schema of the version, what tells it from any other, and how its tables lie: one that was written to,
               restored or made anew is not what was prepared

Schemas are called curador_<machine>_v<N>; beside each stands one with the same tables and no rows, in which a question is
tried before it is charged.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curador.engines.base import CopyDigest
from curador.engines.duckdb.connection import connect, private_files
from curador.engines.duckdb.copies import check_key
from curador.engines.duckdb.prepare import Progress
from curador.engines.duckdb.versions import (
    Folder,
    Manifest,
    beside,
    is_numbered,
    layout_digest,
    log_failure,
    prepare_file,
    read_manifest,
    write_manifest,
    write_private,
)
from curador.engines.postgres import exposure, staging
from curador.engines.postgres.origins import sources_of
from curador.engines.postgres.server import (
    PATIENCE,
    PREPARER,
    READER,
    SilentServerError,
    identifier,
    leave,
    login_of,
    transaction,
)
from curador.errors import InvalidStudy

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    from curador.engines.postgres.server import DatabaseServer
    from curador.study.model import Schema

FORMAT = 1
ISOLATED = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LYING = """
SELECT c.relname, pg_catalog.pg_relation_filenode(c.oid)::bigint, pg_catalog.pg_relation_size(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'v', 'm', 'p', 'f') ORDER BY c.relname
"""


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """What is known of a prepared schema.

    version, layout  of what, and for which declarations, it was made
    schema, token    its name, and what only it has
    lying            of each table: its name, file and size on the server
    copies           what it is known by to other machines
    """

    version: int
    layout: str
    schema: str
    token: str
    lying: tuple[tuple[str, int, int], ...]
    copies: tuple[CopyDigest, ...]


def read_record(folder: Folder) -> ServerRecord | None:
    """Return what the folder says of the server; None where it says nothing that is understood."""
    try:
        held = json.loads((folder.path / "server.json").read_text(encoding="utf-8"))
        if held["format"] != FORMAT:
            return None
        copies = tuple(CopyDigest(one["key"], one["layout"], one["content"]) for one in held["copies"])
        lying = tuple((str(name), int(file), int(size)) for name, file, size in held["lying"])
        return ServerRecord(int(held["version"]), held["layout"], held["schema"], held["token"], lying, copies)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_record(folder: Folder, record: ServerRecord) -> None:
    copies = [{"key": one.key, "layout": one.layout, "content": one.content} for one in record.copies]
    held = {"format": FORMAT, "version": record.version, "layout": record.layout, "schema": record.schema}
    held |= {"token": record.token, "lying": [list(one) for one in record.lying], "copies": copies}
    write_private(folder.path / "server.json", json.dumps(held, indent=1).encode())


def schema_name(folder: Folder, version: int) -> str:
    """Return the name of a version's schema: 63 bytes are what a server keeps of a name."""
    return f"{_family(folder)}{version:d}"


def without_rows(schema: str) -> str:
    """Return the name of the schema with the same tables and no rows."""
    return f"{schema}_empty"


def _family(folder: Folder) -> str:
    return f"curador_{folder.machine()[:24]}_v"


# ---- taken -----------------------------------------------------------------------------------------------------------------


def take_version(
    server: DatabaseServer, schema: Schema, folder: Folder, version: int, tell: Callable[[str], None] | None = None
) -> None:
    """Prepare the sources as they are now as this version, in place of any other. An error leaves the old one."""
    import duckdb
    import psycopg

    folder.make()
    reader, preparer = login_of(READER)[0], login_of(PREPARER)[0]
    if reader == preparer:
        hint = f"make a second role: {READER} asks questions, and can read nothing but what is prepared"
        raise InvalidStudy.must_be(READER, f"another role than {PREPARER}", reader, hint)
    with private_files(), folder.locked(), Progress(tell) as progress:
        try:
            _take(server, schema, folder, version, progress)
        except (duckdb.Error, psycopg.Error, SilentServerError) as problem:  # a full disk, say: the text may hold rows
            raise log_failure(folder, version, f"{type(problem).__name__}: {problem}") from None
        finally:
            beside(folder, version, "part").unlink(missing_ok=True)


def _take(server: DatabaseServer, schema: Schema, folder: Folder, version: int, progress: Progress) -> None:
    stage = folder.new_spill()
    stage.mkdir(mode=0o700)
    layout = layout_digest(schema)
    numbered = is_numbered(schema.study, folder, version)
    connection = server.connect(PREPARER)
    try:
        with transaction(connection, ISOLATED) as cursor:
            exposure.require_own_reader(cursor, schema.study, login_of(READER)[0])
            local = staging.stage(cursor, schema, stage, progress.step)
            sources = sources_of(cursor, schema.study)
        progress.step("preparing")
        content = prepare_file(local, folder, version, (version, layout, numbered), progress)
        record = _upload(connection, local, folder, version, layout, progress)
        own = CopyDigest(check_key(folder.key, version), layout, content)
        _write_record(folder, replace(record, copies=(own,)))
        _keep_public(schema, folder, version)
        write_manifest(folder, Manifest(version, layout, sources, numbered))
        _remove_others(connection, folder, record.schema)
    finally:
        leave(connection)
        shutil.rmtree(stage, ignore_errors=True)
    folder.remove_versions(keep=version)


def _upload(
    connection: psycopg.Connection[Any], schema: Schema, folder: Folder, version: int, layout: str, progress: Progress
) -> ServerRecord:
    """Give the server what was prepared: in one transaction, so that there is all of it or nothing."""
    name, token = schema_name(folder, version), secrets.token_hex(16)
    part = connect(str(beside(folder, version, "part")), {"threads": 1}, read_only=True)
    try:
        with transaction(connection, "ISOLATION LEVEL READ COMMITTED READ WRITE") as cursor:
            owner, reader = login_of(PREPARER)[0], login_of(READER)[0]
            for own in (without_rows(name), name):
                staging.create_schema(cursor, own, owner)
                for place, table in enumerate(schema.tables):
                    columns = staging.columns_of(part, schema, place)
                    staging.create_table(cursor, place, columns)
                    if own == name:
                        progress.step(f"storing {table.table.name} on the server")
                        staging.fill_table(cursor, part, place, columns)
                staging.write_about(cursor, token)
                staging.grant_reader(cursor, own, reader)
            exposure.require_unexposed(cursor, name, {owner, reader})
            cursor.execute(_LYING, [name])
            lying = tuple((str(one), int(file), int(size)) for one, file, size in cursor.fetchall())
    finally:
        part.close()
    return ServerRecord(version, layout, name, token, lying, ())


def _keep_public(schema: Schema, folder: Folder, version: int) -> None:
    """Keep the public tables of what was prepared, and nothing else of it."""
    from curador.engines.duckdb.spelling import text

    part, kept = beside(folder, version, "part"), beside(folder, version, "public")
    kept.unlink(missing_ok=True)
    public = [place for place, one in enumerate(schema.tables) if one.table.public]
    connection = connect(str(kept), {"threads": 1})
    try:
        connection.execute(f"ATTACH {text(str(part))} AS part (READ_ONLY)").fetchall()
        for place in public:
            connection.execute(f"CREATE TABLE t{place} AS SELECT * FROM part.t{place} ORDER BY __p").fetchall()  # noqa: S608
        connection.execute("DETACH part").fetchall()
    finally:
        connection.close()
    kept.replace(folder.version(version))


def _remove_others(connection: psycopg.Connection[Any], folder: Folder, keep: str | None) -> int:
    """Remove the schemas of this folder's other versions; return how many there were."""
    with transaction(connection, "ISOLATION LEVEL READ COMMITTED READ WRITE") as cursor:
        cursor.execute("SELECT nspname FROM pg_catalog.pg_namespace WHERE starts_with(nspname::text, %s)", [_family(folder)])
        kept = set() if keep is None else {keep, without_rows(keep)}
        gone = sorted(str(row[0]) for row in cursor.fetchall() if str(row[0]) not in kept)
        for name in gone:
            cursor.execute(f"DROP SCHEMA {identifier(name)} CASCADE")
    return len(gone)


# ---- there -----------------------------------------------------------------------------------------------------------------


def is_there(folder: Folder, version: int, layout: str) -> bool:
    """Whether the folder says that this version is prepared for these declarations."""
    record, manifest = read_record(folder), read_manifest(folder)
    return (
        record is not None
        and manifest is not None
        and (record.version, record.layout) == (version, layout)
        and (manifest.version, manifest.layout) == (version, layout)
        and folder.version(version).is_file()
    )


def is_intact(server: DatabaseServer, folder: Folder, version: int) -> bool:
    """Whether the server has what the folder says, as it was made, under the key that lies here, and nobody else reads it."""
    record = read_record(folder)
    if record is None:
        return False
    try:
        key = check_key(folder.key, version)
    except InvalidStudy:  # no key: whoever needs it says so
        return False
    if record.version != version or record.copies[0].key != key:
        return False
    until = time.monotonic() + PATIENCE
    with contextlib.closing(server.connect(READER, until)) as connection, transaction(connection, ISOLATED, until) as cursor:
        cursor.execute(_LYING, [record.schema])
        lying = tuple((str(one), int(file or 0), int(size)) for one, file, size in cursor.fetchall())
        if lying != record.lying:
            return False
        exposure.require_unexposed(cursor, record.schema, {login_of(READER)[0]})
        cursor.execute(f"SELECT token FROM {identifier(record.schema)}.__about")  # noqa: S608 -- ours, and quoted
        return cursor.fetchall() == [(record.token,)]


def drop_version(server: DatabaseServer, folder: Folder) -> int:
    """Remove every schema of the folder from the server, and what the folder has of them; return how many there were."""
    connection = server.connect(PREPARER)
    try:
        gone = _remove_others(connection, folder, None)
    finally:
        leave(connection)
    (folder.path / "server.json").unlink(missing_ok=True)
    folder.remove_versions()
    return gone
