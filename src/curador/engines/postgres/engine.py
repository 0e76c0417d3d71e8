"""PostgreSQL as a curator sees it: a schema, a data version, exact tallies; and as a kind, before one is opened."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

from curador.engines.base import UNTIL, EngineFailed, Sources
from curador.engines.duckdb import schema as embedded
from curador.engines.duckdb.connection import look, private_files
from curador.engines.duckdb.facts import TableFacts, VersionFacts
from curador.engines.duckdb.owner_facts import owner_facts
from curador.engines.duckdb.reading import select_cleaned
from curador.engines.duckdb.sources import FRAME, bind, from_frame
from curador.engines.duckdb.versions import (
    Folder,
    KindWithFolder,
    is_numbered,
    layout_digest,
    log_failure,
    note_duration,
    note_failure,
    prepared_folder,
    read_manifest,
)
from curador.engines.duckdb.worker import BrokenError
from curador.engines.lower.dialect_postgres import NAME, POSTGRES
from curador.engines.postgres import exposure, origins, staging, versions
from curador.engines.postgres.catalogue import find_table
from curador.engines.postgres.runner import ServerRunner
from curador.engines.postgres.server import (
    PATIENCE,
    PREPARER,
    READER,
    DatabaseServer,
    SilentServerError,
    has_login,
    leave,
    login_of,
    transaction,
    unreachable,
)
from curador.errors import Failed, InvalidQuery, InvalidStudy
from curador.study.model import Schema
from curador.study.rules import broken_rule
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    import duckdb

    from curador.engines.base import (
        Compiled,
        CopyDigest,
        Engine,
        EngineKind,
        LookedTable,
        OwnerFact,
        PrivateSource,
        Tallied,
    )
    from curador.engines.postgres.runner import Question
    from curador.engines.postgres.server import Cursor
    from curador.plan.model import BlockPlan
    from curador.study.formats import FileFormat
    from curador.study.model import Study, TableSchema

_REHEARSAL = 10.0
"""Seconds for a question on tables without rows: nobody pays for them."""

_MOST_REHEARSED = 256


# ---- schema ----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def looking(server: DatabaseServer, role: str | None = None) -> Generator[Cursor]:
    """One short transaction that looks and changes nothing; as the role that asks questions where no other is needed."""
    import psycopg

    until = time.monotonic() + PATIENCE
    connection = server.connect(role or (READER if has_login(READER) else PREPARER), until)
    try:
        with transaction(connection, versions.ISOLATED, until) as cursor:
            yield cursor
    except (psycopg.Error, SilentServerError):
        raise unreachable(role or READER) from None
    finally:
        leave(connection)


def describe(study: Study) -> Schema:
    """Return every column of the server's tables, or refuse them; reads the catalogue alone."""
    import pyarrow as pa

    if study.engine.prepare == "never":
        raise broken_rule(("engine", "prepare"), f"auto, as rows of {NAME} are always prepared", study.engine.prepare)
    server = DatabaseServer.of(study)
    frames: dict[str, Any] = {}
    with looking(server) as cursor:
        for table in study.tables:
            columns = find_table(cursor, study, table).columns
            frames[table.name] = pa.table({one.name: pa.array([], one.arrow) for one in columns})
    tables = tuple(dataclasses.replace(table, source=FRAME) for table in study.tables)
    found = embedded.describe(staging.local_study(study, tables), frames=frames)
    own = tuple(dataclasses.replace(one, table=table) for one, table in zip(found.tables, study.tables, strict=True))
    return Schema(study, own, ServerFacts(server, study, own))


class ServerFacts(TableFacts):
    """Facts of public tables as they are on the server: for a study that has no data version yet."""

    def __init__(self, server: DatabaseServer, study: Study, tables: tuple[TableSchema, ...]) -> None:
        super().__init__(tables)
        self._server, self._study = server, study

    def _open(self, place: int) -> duckdb.DuckDBPyConnection:
        table = self._tables[place]
        with looking(self._server, PREPARER if has_login(PREPARER) else None) as cursor:
            rows = staging.read_table(cursor, find_table(cursor, self._study, table.table))
        connection, source = look(), from_frame(rows, f"source{place}")
        bind(connection, source)
        cleaned = select_cleaned(connection, source, table)
        connection.execute(f"CREATE TEMP TABLE t{place} AS {cleaned}").fetchall()
        return connection


# ---- engine ----------------------------------------------------------------------------------------------------------------


class PostgresEngine:
    """An engine opened on one data version of a study. Preparing is an owner's act and never part of a question."""

    def __init__(self, study: Study, version: int) -> None:
        self._study = study
        self._server = DatabaseServer.of(study)
        self._version = version
        self._folder = Folder(prepared_folder(study))
        self._runner: ServerRunner | None = None
        self._rehearsed: Mapping[tuple[str, ...], Mapping[str, Any]] = {}
        self._lock = threading.Lock()
        self._folder.sweep()
        self._describe()

    @property
    def schema(self) -> Schema:
        """Every column and its type; facts of public tables are those of the version."""
        return self._schema

    @property
    def version(self) -> int:
        """The data version that questions are answered from."""
        return self._version

    @property
    def ready(self) -> bool:
        """Whether the version is prepared for the study as it is declared now, and nobody wrote to its tables since."""
        return self._intact and versions.is_there(self._folder, self._version, self._layout)

    @property
    def altered(self) -> bool:
        """Whether the version is prepared here, and what the server has, or the key, is not what it was."""
        return not self._intact

    @property
    def copies(self) -> tuple[CopyDigest, ...]:
        """What the prepared copy is known by; nothing where the version is not prepared here."""
        record = versions.read_record(self._folder)
        found = record.copies if record is not None and record.version == self._version else ()
        return tuple(one for one in found if one.content)

    def prepare(self, version: int, *, progress: Callable[[str], None] | None = None) -> None:
        """Take the snapshot of a data version from the server's tables as they are now, and answer from it."""
        described = describe(self._study)
        self._rehearsed = {}
        self.close()
        versions.take_version(self._server, described, self._folder, version, progress)
        self._version = version
        self._describe(described)

    def _describe(self, described: Schema | None = None) -> None:
        found = describe(self._study) if described is None else described
        numbered = is_numbered(self._study, self._folder, self._version)
        self._layout = layout_digest(found)
        there = versions.is_there(self._folder, self._version, self._layout)
        facts = VersionFacts(found.tables, self._facts) if there else found.public
        self._schema = dataclasses.replace(found, public=facts, numbered=numbered)
        self._intact = not there or versions.is_intact(self._server, self._folder, self._version)

    def compile(self, blocks: Sequence[BlockPlan]) -> Compiled:
        """Return the blocks lowered to SQL; refuse what cannot be: too deep, too long, or nothing that the server has."""
        from curador.engines.lower.block import lower_block

        return tuple((block, lower_block(block, self._schema, dialect=POSTGRES)) for block in blocks)

    def rehearse(self, compiled: Compiled) -> list[Tallied]:
        """Return the integers of all blocks on tables without rows; a failure there is a refusal. Nothing is read."""
        try:
            return self._tallied(compiled, empty=True)
        except EngineFailed as problem:
            raise _refusal("question", problem) from None

    def tally(self, compiled: Compiled) -> list[Tallied]:
        """Return the exact integers of all blocks, from one snapshot. Raises EngineFailed, with an id only."""
        return self._tallied(compiled, empty=False)

    def _tallied(self, compiled: Compiled, *, empty: bool) -> list[Tallied]:
        from curador.engines.lower.block import collect

        questions = [(str(place), text, result_types(block)) for place, (block, text) in enumerate(compiled)]
        results = self._without_rows(questions) if empty else self.run(questions)
        try:
            return [collect(block, results[str(place)]) for place, (block, _) in enumerate(compiled)]
        except Exception:  # noqa: BLE001 -- after rows were read nothing but an id leaves
            raise log_failure(self._folder, self._version, traceback.format_exc()) from None

    def _without_rows(self, questions: Sequence[Question]) -> Mapping[str, Any]:
        """Run statements on tables without rows, once: the same ones give the same there, whatever rows a version has."""
        key = tuple(text for _, text, _ in questions)
        found = self._rehearsed.get(key)
        if found is None:
            found = self.run(questions, empty=True)
            self._rehearsed = {**dict(list(self._rehearsed.items())[1 - _MOST_REHEARSED :]), key: found}
        return found

    def record_failure(self, incident: str, detail: str) -> None:
        """Write what really happened to incidents.log, under the id that everybody else is told."""
        note_failure(self._folder, self._version, incident, detail)

    def record_duration(self, question: str, seconds: float) -> None:
        """Write to durations.log how long a question took."""
        note_duration(self._folder, self._version, question, seconds)

    def read(self, table: str, columns: Sequence[str]) -> Any:
        """Return columns of a private table and the unit of each row as an Arrow table: for learners, and for nobody else."""
        return self._read(table, columns, empty=False)

    def rehearse_read(self, table: str, columns: Sequence[str]) -> Any:
        """Return the same columns of tables without rows; a failure there is a refusal. Nothing is read."""
        try:
            return self._read(table, columns, empty=True)
        except EngineFailed as problem:
            raise _refusal("fit", problem) from None

    def _read(self, table: str, columns: Sequence[str], *, empty: bool) -> Any:
        from curador.engines.lower.block import lower_rows

        found = next(one for one in self._schema.tables if one.table.name == table)
        types = {f"v{number}": found.fields[found.index(name) or 0].type for number, name in enumerate(columns)}
        text = lower_rows(self._schema, table, columns)
        return self.run([("rows", text, {**types, "u": Type.INTEGER})], empty=empty)["rows"]

    def run(self, questions: Sequence[Question], *, empty: bool = False) -> Mapping[str, Any]:
        """Run lowered statements in one snapshot, on the data or on tables without rows; refuse what is not lowered."""
        from curador.engines.lower.sql import GeneratedSQL

        for _, text, _ in questions:
            if type(text) is not GeneratedSQL:
                raise Failed.must_be("a statement", "made by the lowering", type(text).__name__)
        try:
            seconds = min(float(self._study.engine.deadline), UNTIL.get() - time.monotonic())
            return self._opened().run(questions, min(seconds, _REHEARSAL) if empty else seconds, empty=empty)
        except BrokenError as problem:
            raise log_failure(self._folder, self._version, str(problem)) from None

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def _opened(self) -> ServerRunner:
        with self._lock:
            if self._runner is None:
                record = versions.read_record(self._folder)
                if record is None or not self.ready:
                    raise _not_ready(self._version)
                self._runner = ServerRunner(self._server, record.schema, self._study.engine.places)
            return self._runner

    def _facts(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        if not self.ready:
            raise _not_ready(self._version)
        return duckdb.connect(str(self._folder.version(self._version)), read_only=True)


def result_types(block: BlockPlan) -> dict[str, Type]:
    """Return the types of the columns of a block's statement (`lower/block.py`)."""
    from curador.engines.lower.aggregates import results_of

    width = max(1, sum(results_of(tally.kind) for tally in block.tallies))
    keys = {f"k{place}": key.type or Type.BOOLEAN for place, key in enumerate(block.keys)}
    whole = Type.INTEGER
    return {"part": whole, **keys, "cell": whole, **{f"n{place}": whole for place in range(width)}}


def _not_ready(version: int) -> InvalidStudy:
    rule = f"Data version {version} must be prepared for the study as it is declared."
    return InvalidStudy(rule, hint="run `curador prepare`")


def _refusal(what: str, problem: EngineFailed) -> InvalidQuery:
    """Return the refusal of a question or a fit that the engine could not run on tables without rows."""
    hint = f"ask it in another way; the owner finds the reason under incident {problem.incident}"
    told = f"the engine ({NAME}) cannot run this {what}, even without rows; nothing was charged."
    return InvalidQuery(told, hint=f"{hint}.")


# ---- kind ------------------------------------------------------------------------------------------------------------------


class PostgresKind(KindWithFolder):
    """Tables of a PostgreSQL server, beside a prepared copy of them there."""

    def describe(self, study: Study) -> Schema:
        """Return every column of the study's sources, or refuse them. No row is read."""
        return describe(study)

    def physical_types(self, source: Any, how: FileFormat | None = None) -> list[tuple[str, str, Type | None]]:
        """Return nothing: which server a table is on stands in the study file."""
        del source, how
        return []

    def require_readable(self, study: Study) -> None:
        """Refuse a study whose tables are not there, or that the preparer may not read. No row is read."""
        describe(study)
        with looking(DatabaseServer.of(study), PREPARER) as cursor:
            for table in study.tables:
                found = find_table(cursor, study, table)
                cursor.execute("SELECT pg_catalog.has_table_privilege(%s::oid, 'SELECT')", [found.number])
                if cursor.fetchone() != (True,):
                    hint = f"GRANT SELECT ON {table.source} TO {login_of(PREPARER)[0]}"
                    rule = f"a table that {PREPARER} may read"
                    raise broken_rule(("tables", table.name, "source"), rule, table.source, hint)

    def owner_facts(self, study: Study, called: str) -> list[OwnerFact]:
        """Return what rows show, for the owner's eyes. Reads every row, and keeps nothing."""
        described, folder = describe(study), Folder(prepared_folder(study))
        folder.make()
        stage = folder.new_spill()
        with private_files():
            stage.mkdir(mode=0o700)
            try:
                with looking(DatabaseServer.of(study), PREPARER) as cursor:
                    local = staging.stage(cursor, described, stage, lambda _: None)
                return list(owner_facts(local, called))
            finally:
                shutil.rmtree(stage, ignore_errors=True)

    def look(self, source: str) -> LookedTable:
        """Refuse: types of a server's columns need not be guessed."""
        raise InvalidStudy.must_be("a source to look at", "a file", source, f"columns of {NAME} have types of their own")

    def private_sources(self, study: Study) -> tuple[PrivateSource, ...]:
        """Return the tables of private tables, by the server's own number. No row is read."""
        with looking(DatabaseServer.of(study)) as cursor:
            return origins.private_sources(cursor, study)

    def open(self, study: Study, version: int) -> Engine:
        """Return the engine on a data version."""
        return PostgresEngine(study, version)

    def sources(self, study: Study, version: int) -> Sources:
        """Say whether the version is there as it was taken: what the server's tables held then nobody can compare."""
        folder = Folder(prepared_folder(study))
        manifest = read_manifest(folder)
        if manifest is None or manifest.version != version:
            return Sources.UNKNOWN
        with looking(DatabaseServer.of(study)) as cursor:
            if origins.sources_of(cursor, study) != dict(manifest.sources):
                return Sources.CHANGED
        layout = layout_digest(describe(study))
        there = versions.is_there(folder, version, layout) and versions.is_intact(DatabaseServer.of(study), folder, version)
        return Sources.SAME if there else Sources.UNKNOWN

    def drop_prepared(self, study: Study) -> str:
        """Remove the prepared schemas from the server, and what lies here; say so."""
        folder = Folder(prepared_folder(study))
        if not folder.path.is_dir():
            return "nothing was prepared"
        gone = versions.drop_version(DatabaseServer.of(study), folder)
        return f"removed {gone:,} schemas from the server of [engine] url"

    def exposures(self, study: Study) -> list[str]:
        """Return what others see of the study on its server; refuse a prepared schema whose rows they can read."""
        folder = Folder(prepared_folder(study))
        record = versions.read_record(folder)
        owner, reader = login_of(PREPARER)[0], login_of(READER)[0]
        with looking(DatabaseServer.of(study), READER) as cursor:
            if record is not None:
                exposure.require_unexposed(cursor, record.schema, {owner, reader})
            return exposure.told_lines(cursor, [owner, reader], owner)


KIND: EngineKind = PostgresKind()
