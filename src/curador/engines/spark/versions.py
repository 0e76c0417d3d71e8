# ruff: noqa: S608 -- names are ours

"""What is prepared on a server, written down on this machine: in the prepared folder, beside the key.

The folder is the one of `duckdb/versions.py`, without a copy in it: the key, the machine's name, the two logs, and

spark.json   which version is prepared, for which declarations and under which key; where on the server, and how many rows

A version's tables lie in a folder of their own whose name is random, and nobody writes to them after. Sources are compared
with what they were only where a version must be prepared again: whoever wants new rows declares a new version.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curador.canonical import canonical_text
from curador.engines.base import CopyDigest
from curador.engines.duckdb.copies import check_key
from curador.engines.duckdb.prepare import Progress
from curador.engines.duckdb.spelling import commas
from curador.engines.duckdb.versions import layout_digest, unit_key, write_private
from curador.engines.spark.prepare import SparkPreparation, prepare, remove
from curador.engines.spark.server import close_session, run_tagged
from curador.engines.spark.sources import columns_of, find, name_of
from curador.errors import InvalidStudy
from curador.study.rules import broken_rule
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from curador.engines.duckdb.versions import Folder
    from curador.engines.spark.server import Session, SparkServer
    from curador.study.model import Schema, Study

FORMAT = 1
PREPARATION = 1
"""What prepared tables hold; one of another number is prepared again."""

PATIENCE = 24 * 3600.0
"""Seconds that one step of preparing may take."""


@dataclass(frozen=True, slots=True)
class SparkManifest:
    """What is prepared: where, and as what.

    place    the folder on the server
    schemas  the columns of each table, as Spark writes them down
    rows     how many each table has
    sources  keyed digests of the rows of each source as they were
    """

    version: int
    layout: str
    key: str
    content: str
    place: str
    schemas: Mapping[str, Any]
    rows: Mapping[str, int]
    sources: Mapping[str, str]

    @property
    def copy(self) -> CopyDigest:
        return CopyDigest(self.key, self.layout, self.content)


def _file(folder: Folder) -> Path:
    return folder.path / "spark.json"


def read_manifest(folder: Folder) -> SparkManifest | None:
    """Return what the folder says is prepared; None where it says nothing."""
    try:
        held = json.loads(_file(folder).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        held = {}
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise InvalidStudy(f"{_file(folder)} must be of format {FORMAT}.", hint="run `curador refresh`")
    return SparkManifest(**{name: held[name] for name in SparkManifest.__slots__})


def write_manifest(folder: Folder, manifest: SparkManifest) -> None:
    """Write down what is prepared."""
    held = {"format": FORMAT, **{name: getattr(manifest, name) for name in SparkManifest.__slots__}}
    write_private(_file(folder), json.dumps(held, indent=1).encode())


def spark_layout(schema: Schema) -> str:
    """Return the fingerprint of everything that shapes prepared tables but rows."""
    said = f"spark {PREPARATION} {layout_digest(schema)} {schema.study.engine.store}"
    return hashlib.sha256(said.encode()).hexdigest()


def is_current(folder: Folder, manifest: SparkManifest | None, version: int, layout: str) -> bool:
    """Whether a version is prepared for these declarations under the key that lies here. The server is not asked."""
    return (
        manifest is not None
        and (manifest.version, manifest.layout) == (version, layout)
        and folder.has_key
        and manifest.key == check_key(folder.key, version)
    )


# ---- taking a version ------------------------------------------------------------------------------------------------------


def store_of(study: Study) -> str:
    """Return the folder in which the server keeps what is prepared; refuse a study that names none."""
    if not study.engine.store:
        hint = 'say store = "s3a://bucket/curador", or a folder of a disk that every machine of the server has'
        raise broken_rule(("engine", "store"), "a folder in which the server may write", Plain("nothing"), hint)
    return study.engine.store.rstrip("/")


def take_version(
    schema: Schema, folder: Folder, server: SparkServer, version: int, tell: Callable[[str], None] | None
) -> None:
    """Prepare the sources as they are now as this version, in place of any other. An error leaves the old one."""
    place = f"{store_of(schema.study)}/v{version}-{secrets.token_hex(8)}"
    until = time.monotonic() + PATIENCE
    folder.make()
    session = server.open_session()
    try:
        with folder.locked(), Progress(tell) as progress:
            before = read_manifest(folder)
            work = SparkPreparation(session, schema, unit_key(folder), place, until, progress.step)
            try:
                write_manifest(folder, _taken(work, folder, version))
            except BaseException:
                for path in work.written:  # rows that nobody would find again
                    with contextlib.suppress(Exception):
                        remove(session, path, until)
                raise
            if before is not None:
                _remove_all(session, before.place, list(before.schemas), until)
    finally:
        close_session(session)


def _taken(work: SparkPreparation, folder: Folder, version: int) -> SparkManifest:
    """Prepare, and return what is written down of it."""
    schema, session = work.schema, work.session
    sources = digest_sources(schema, folder, session, work.until)
    prepare(work)
    if digest_sources(schema, folder, session, work.until) != sources:
        raise InvalidStudy("The sources must stay as they are while a version is taken; one has changed meanwhile.")
    names = [f"t{number}" for number in range(len(schema.tables))]
    schemas = {name: session.table(name).schema.jsonValue() for name in names}
    counts = {name: int(work.rows(f"SELECT COUNT(*) AS n FROM {name}")[0][0]) for name in names}
    key, layout = check_key(folder.key, version), spark_layout(schema)
    content = _digest_copy(schema, folder, session, version, work.until) if schema.study.shared else ""
    return SparkManifest(version, layout, key, content, work.place, schemas, counts, sources)


def drop(folder: Folder, server: SparkServer) -> bool:
    """Remove the rows of the prepared tables from the server; return whether there were any. What they were stays known."""
    manifest = read_manifest(folder)
    if manifest is None or not manifest.rows:
        return False
    session = server.open_session()
    try:
        _remove_all(session, manifest.place, list(manifest.schemas), time.monotonic() + PATIENCE)
    finally:
        close_session(session)
    write_manifest(folder, SparkManifest(manifest.version, "", manifest.key, "", "", {}, {}, manifest.sources))
    return True


def _remove_all(session: Session, place: str, tables: list[str], until: float) -> None:
    for name in tables:
        remove(session, f"{place}/{name}", until)


# ---- digests -----------------------------------------------------------------------------------------------------------


def digest_sources(schema: Schema, folder: Folder, session: Session, until: float) -> dict[str, str]:
    """Return keyed digests of the rows of every source, whatever order they lie in: all rows are read once.

    Rows count by the sum of the server's own 64-bit hashes of them: it finds what changed by itself, not what somebody
    changed so that it would not be found.
    """
    found: dict[str, str] = {}
    for place, table in enumerate(schema.tables):
        frame = find(schema.study, table.table).read(session)
        known = {column.name for column in columns_of(frame)}
        names = [name_of(field.name) for field in table.fields if field.name in known]
        frame.createOrReplaceTempView(f"seen{place}")
        found[table.table.name] = _keyed(folder, "sources", _summed(session, f"seen{place}", names, until))
    return found


def _digest_copy(schema: Schema, folder: Folder, session: Session, version: int, until: float) -> str:
    sums = [
        _summed(session, f"t{place}", [name_of(one.name) for one in session.table(f"t{place}").schema.fields], until)
        for place in range(len(schema.tables))
    ]
    return _keyed(folder, "copy", [version, spark_layout(schema), sums])


def _summed(session: Session, table: str, names: list[str], until: float) -> list[str]:
    statement = f"SELECT COUNT(*) AS n, SUM(CAST(xxhash64({commas(names)}) AS DECIMAL(38,0))) AS s FROM {table}"
    row = run_tagged(session, lambda: session.sql(statement).toArrow(), until)
    return [",".join(names), *(str(row.column(place).to_pylist()[0]) for place in range(2))]


def _keyed(folder: Folder, purpose: str, content: Any) -> str:
    return hmac.digest(folder.key(purpose), canonical_text(content).encode(), hashlib.sha256).hex()
