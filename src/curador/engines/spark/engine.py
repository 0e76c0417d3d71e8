# ruff: noqa: S608 -- names are ours

"""A Spark server as a curator sees it: a schema, a data version, exact tallies. And as a kind, before one is opened.

Questions run on the server, whole: a block is one statement, and only its groups come back. The curator itself needs no Java.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.engines.base import UNTIL, EngineFailed, LookedTable, OwnerFact, PrivateSource, Sources
from curador.engines.duckdb.facts import VersionFacts
from curador.engines.duckdb.versions import Folder, KindWithFolder, log_failure, note_duration, note_failure, prepared_folder
from curador.engines.duckdb.worker import BrokenError
from curador.engines.spark.server import close_session, connect, fetch, read_address, run_tagged, within
from curador.engines.spark.sources import columns_of, describe_tables, files_here, find, select_cleaned
from curador.engines.spark.versions import (
    PATIENCE,
    digest_sources,
    drop,
    is_current,
    read_manifest,
    spark_layout,
    store_of,
    take_version,
)
from curador.errors import Failed, InvalidQuery, InvalidStudy, UnreadableData
from curador.study.model import Schema, owner_text
from curador.study.rules import broken_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    import duckdb

    from curador.engines.base import Compiled, CopyDigest, Engine, EngineKind, Tallied
    from curador.engines.lower.sql import GeneratedSQL
    from curador.engines.spark.server import Session, SparkServer
    from curador.engines.spark.versions import SparkManifest
    from curador.plan.model import BlockPlan
    from curador.study.formats import FileFormat
    from curador.study.model import Study, TableSchema
    from curador.study.values import Type

_LOOK = 60.0
"""Seconds for a look at columns, and for reading a public table."""

_MOST_REHEARSED = 256
"""Questions whose results on tables without rows are remembered."""


# ---- engine ----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LentSession:
    """A session that several threads use at once; retired: whoever uses it last ends it."""

    session: Session
    users: int = 0
    retired: bool = False


class SparkEngine:
    """An engine opened on one data version of a study. Preparing is an owner's act and never part of a question."""

    def __init__(self, study: Study, version: int) -> None:
        self._study = study
        self._version = version
        self._folder = Folder(prepared_folder(study))
        self._server = connect(study.engine)
        self._sessions: dict[bool, LentSession] = {}
        self._rehearsed: Mapping[tuple[tuple[str, str], ...], Mapping[str, Any]] = {}
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(study.engine.places)
        self._describe()

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def version(self) -> int:
        return self._version

    @property
    def ready(self) -> bool:
        """Whether the version is prepared for the study as it is declared now, and its tables have the rows they had."""
        return self._current and not self._altered

    @property
    def altered(self) -> bool:
        """Whether the version is prepared and its tables on the server are not what they were."""
        return self._altered

    @property
    def copies(self) -> tuple[CopyDigest, ...]:
        manifest = self._manifest
        return (manifest.copy,) if manifest is not None and manifest.version == self._version and manifest.content else ()

    def prepare(self, version: int, *, progress: Callable[[str], None] | None = None) -> None:
        """Take the snapshot of a data version from the sources as they are now, and answer from it."""
        schema = describe(self._study, self._server)
        self._rehearsed = {}
        self.close()
        try:
            take_version(schema, self._folder, self._server, version, progress)
        except InvalidStudy as problem:  # keys that repeat: rows decide it
            said = (problem.subject, problem.rule, problem.got, problem.hint, problem.path)
            subject, rule, got, hint, path = said
            raise UnreadableData(problem.text, subject=subject, rule=rule, got=got, hint=hint, path=path) from None
        except Failed:
            raise
        except Exception as problem:  # noqa: BLE001 -- a server's words may hold values of rows
            raise log_failure(self._folder, version, f"{type(problem).__name__}: {problem}") from None
        self._version = version
        self._describe(schema)

    def _describe(self, described: Schema | None = None) -> None:
        """Hold the schema of the sources, and what it means for prepared tables."""
        found = describe(self._study, self._server) if described is None else described
        facts = VersionFacts(found.tables, self._public)
        self._schema = dataclasses.replace(found, public=facts, numbered=True)
        self._layout = spark_layout(self._schema)
        self._manifest = read_manifest(self._folder)
        self._current = is_current(self._folder, self._manifest, self._version, self._layout)
        self._altered = self._current and not self._has_its_rows()

    def _has_its_rows(self) -> bool:
        """Whether every prepared table has as many rows as when it was made: what is gone, or was written over, shows."""
        manifest, until = self._prepared(), time.monotonic() + float(self._study.engine.deadline)
        try:
            with self._session(empty=False, until=until) as session:
                counts = [fetch(session, f"SELECT COUNT(*) AS n FROM {name}", until) for name in manifest.rows]
            return [table.column(0).to_pylist()[0] for table in counts] == list(manifest.rows.values())
        except (BrokenError, EngineFailed):
            self._forget()
            return False

    def _prepared(self) -> SparkManifest:
        if self._manifest is None:
            raise self._unprepared()
        return self._manifest

    def _unprepared(self) -> InvalidStudy:
        rule = f"Data version {self._version} must be prepared for the study as it is declared."
        return InvalidStudy(rule, hint="run `curador prepare`")

    # ---- questions -----------------------------------------------------------------------------------------------------

    def compile(self, blocks: Sequence[BlockPlan]) -> Compiled:
        """Return the blocks lowered to SQL; refuse what cannot be: too deep, too long, what the server lacks."""
        from curador.engines.lower.block import lower_block

        return tuple((block, lower_block(block, self._schema, dialect=self._server.dialect)) for block in blocks)

    def rehearse(self, compiled: Compiled) -> list[Tallied]:
        """Return the integers of all blocks on tables without rows; a failure there is a refusal. Nothing is read."""
        try:
            return self._tallied(compiled, empty=True)
        except EngineFailed as problem:
            raise _refusal("question", problem) from None

    def tally(self, compiled: Compiled) -> list[Tallied]:
        """Return the exact integers of all blocks: of tables that nobody writes to. Raises EngineFailed, with an id only."""
        return self._tallied(compiled, empty=False)

    def _tallied(self, compiled: Compiled, *, empty: bool) -> list[Tallied]:
        from curador.engines.lower.block import collect

        named = [(str(place), statement) for place, (_, statement) in enumerate(compiled)]
        results = self._without_rows(named) if empty else self.run(named)
        try:
            return [collect(block, results[str(place)]) for place, (block, _) in enumerate(compiled)]
        except Exception:  # noqa: BLE001 -- after rows were read nothing but an id leaves
            raise log_failure(self._folder, self._version, traceback.format_exc()) from None

    def _without_rows(self, statements: Sequence[tuple[str, GeneratedSQL]]) -> Mapping[str, Any]:
        """Run statements on tables without rows, once: the same ones give the same there."""
        key = tuple((name, str(one)) for name, one in statements)
        found = self._rehearsed.get(key)
        if found is None:
            found = self.run(statements, empty=True)
            self._rehearsed = {**dict(list(self._rehearsed.items())[1 - _MOST_REHEARSED :]), key: found}
        return found

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

        return self.run([("rows", lower_rows(self._schema, table, columns))], empty=empty)["rows"]

    def run(self, statements: Sequence[tuple[str, GeneratedSQL]], *, empty: bool = False) -> Mapping[str, Any]:
        """Run lowered statements, on the data or on tables without rows; refuse what is not lowered."""
        from curador.engines.lower.sql import GeneratedSQL

        for _, statement in statements:
            if type(statement) is not GeneratedSQL:
                raise Failed.must_be("a statement", "made by the lowering", type(statement).__name__)
        seconds = float(self._study.engine.deadline)
        until = min(time.monotonic() + seconds, UNTIL.get())
        if not self._places.acquire(timeout=max(until - time.monotonic(), 0)):
            raise log_failure(self._folder, self._version, "The deadline passed before the question began.")
        try:
            return self._answered(statements, until, empty=empty)
        except BrokenError as problem:
            raise log_failure(self._folder, self._version, str(problem)) from None
        finally:
            self._places.release()

    def _answered(self, statements: Sequence[tuple[str, GeneratedSQL]], until: float, *, empty: bool) -> dict[str, Any]:
        """Return the results; after a failure sessions are not used again, as what they do then is unknown.

        Where no row is read, which is before each charge, a server that was started again meanwhile is asked once more.
        """
        used = empty in self._sessions
        try:
            with self._session(empty=empty, until=until) as session:
                return {name: fetch(session, str(statement), until) for name, statement in statements}
        except BrokenError:
            self._forget()
            if not (used and empty):
                raise
        return self._answered(statements, until, empty=empty)

    def close(self) -> None:
        """End the sessions."""
        self._forget(patience=2.0)

    def _forget(self, patience: float = 0.0) -> None:
        """Use the sessions no more, and end each that nobody uses; who does ends it. Waits so long for the ends."""
        with self._lock:
            held, self._sessions = list(self._sessions.values()), {}
            for lent in held:
                lent.retired = True
            unused = [lent.session for lent in held if not lent.users]
        for session in unused:
            close_session(session, patience=patience)

    @contextlib.contextmanager
    def _session(self, *, empty: bool, until: float) -> Generator[Session]:
        """Lend the session in which t0, t1, … are the version's tables, or tables like them without rows."""
        if not self._current:
            raise self._unprepared()
        with self._lock:
            if empty not in self._sessions:
                self._sessions[empty] = LentSession(self._opened(empty=empty, until=until))
            lent = self._sessions[empty]
            lent.users += 1
        try:
            yield lent.session
        finally:
            with self._lock:
                lent.users -= 1
                ended = lent.retired and not lent.users
            if ended:
                close_session(lent.session, patience=0.0)

    def _opened(self, *, empty: bool, until: float) -> Session:
        manifest = self._prepared()

        def open_views() -> Session:
            from pyspark.sql.types import StructType

            session = self._server.open_session()
            for name, said in manifest.schemas.items():
                described = StructType.fromJson(said)
                stored = f"{manifest.place}/{name}"
                rows = session.createDataFrame([], described) if empty else session.read.schema(described).parquet(stored)
                rows.createOrReplaceTempView(name)
            return session

        return within(until - time.monotonic(), open_views)

    def _public(self) -> duckdb.DuckDBPyConnection:
        """Return the version's public tables, here: what a plan knows of them is computed from a copy."""
        try:
            with self._session(empty=False, until=time.monotonic() + _LOOK) as session:
                return _hold_here(session, [(f"t{place}", f"t{place}") for place in _public_places(self._schema.tables)])
        except BrokenError as problem:
            self._forget()
            raise log_failure(self._folder, self._version, str(problem)) from None

    # ---- the owner's logs ----------------------------------------------------------------------------------------------

    def record_failure(self, incident: str, detail: str) -> None:
        """Write what really happened to incidents.log, under the id that everybody else is told."""
        note_failure(self._folder, self._version, incident, detail)

    def record_duration(self, question: str, seconds: float) -> None:
        """Write to durations.log how long a question took."""
        note_duration(self._folder, self._version, question, seconds)


def _refusal(what: str, problem: EngineFailed) -> InvalidQuery:
    hint = f"ask it in another way; the owner finds the reason under incident {problem.incident}"
    return InvalidQuery(f"the engine cannot run this {what}, even without rows; nothing was charged.", hint=f"{hint}.")


# ---- schema ----------------------------------------------------------------------------------------------------------------


def describe(study: Study, server: SparkServer | None = None) -> Schema:
    """Return the study with all columns of its sources on the server. No row is read."""
    store_of(study)
    if study.engine.prepare == "never":
        raise broken_rule(("engine", "prepare"), '"auto" on a server', study.engine.prepare)
    for table in study.tables:
        find(study, table)  # what no server can see is refused before one is asked
    found = connect(study.engine) if server is None else server
    session = found.open_session()
    try:
        tables = run_tagged(session, lambda: describe_tables(study, session), time.monotonic() + _LOOK)
    except BrokenError:
        place = read_address(study.engine).place
        raise InvalidStudy.must_be("engine.url", "a Spark Connect server that answers", place) from None
    finally:
        close_session(session)
    return Schema(study, tables, VersionFacts(tables, lambda: _public_sources(study, found, tables)), numbered=True)


def _public_places(tables: Sequence[TableSchema]) -> list[int]:
    return [place for place, one in enumerate(tables) if one.table.public]


def _public_sources(study: Study, server: SparkServer, tables: Sequence[TableSchema]) -> duckdb.DuckDBPyConnection:
    """Return the public tables as their sources are now."""
    session = server.open_session()
    try:
        names: list[tuple[str, str]] = []
        for place in _public_places(tables):
            frame = find(study, tables[place].table).read(session)
            frame.createOrReplaceTempView(f"source{place}")
            cleaned = select_cleaned(f"source{place}", columns_of(frame), tables[place])
            names.append((f"t{place}", f"({cleaned}) AS c"))
        return _hold_here(session, names)
    except BrokenError:
        place = read_address(study.engine).place
        raise InvalidStudy.must_be("a public table", "one that the server can read", place) from None
    finally:
        close_session(session)


def _hold_here(session: Session, tables: Sequence[tuple[str, str]]) -> duckdb.DuckDBPyConnection:
    from curador.engines.duckdb.connection import look

    connection = look()
    for name, source in tables:
        rows = fetch(session, f"SELECT * FROM {source}", time.monotonic() + _LOOK)
        connection.register(f"held_{name}", rows)
        connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM held_{name}").fetchall()
        connection.unregister(f"held_{name}")
    return connection


# ---- kind ------------------------------------------------------------------------------------------------------------------


class SparkKind(KindWithFolder):
    """A Spark or Sail server behind Spark Connect; prepared tables lie in a folder of its own."""

    def describe(self, study: Study) -> Schema:
        """Return every column of the study's sources, or refuse them. No row is read."""
        return describe(study)

    def physical_types(self, source: Any, how: FileFormat | None = None) -> list[tuple[str, str, Type | None]]:  # noqa: ARG002
        """Return nothing: a source is known on a server alone, which a study names."""
        return []

    def require_readable(self, study: Study) -> None:
        """Refuse sources that are not there or not as declared; rows are read when a version is taken."""
        describe(study)

    def owner_facts(self, study: Study, called: str) -> list[OwnerFact]:
        """Return that nothing of rows is looked at here."""
        del study
        fact = "rows lie on a server, and nothing of them is looked at here"
        return [OwnerFact("all tables", fact, f"look at them there before the bounds and caps of {called} are declared")]

    def look(self, source: str) -> LookedTable:
        """Refuse: a draft is made of files on this machine."""
        raise InvalidStudy.must_be("a draft", "made of a file on this machine", source, "write the study of a server by hand")

    def private_sources(self, study: Study) -> tuple[PrivateSource, ...]:
        """Return where private rows come from: files where they are on this machine, else what the server calls them."""
        place, found = read_address(study.engine).place, list[PrivateSource]()
        for table in study.tables:
            if table.public:
                continue
            source, owner = find(study, table), owner_text(table.unit)
            files = files_here(source)
            found += [PrivateSource(table.name, owner, str(file.resolve()), file=Path(file)) for file in files]
            if not files:
                found.append(PrivateSource(table.name, owner, place, source.name.casefold()))
        return tuple(found)

    def open(self, study: Study, version: int) -> Engine:
        """Return the engine on a data version."""
        return SparkEngine(study, version)

    def sources(self, study: Study, version: int) -> Sources:
        """Compare the sources with what they were, where the version must be prepared again; else they are not looked at."""
        folder = Folder(prepared_folder(study))
        manifest = read_manifest(folder)
        if manifest is None or manifest.version != version:
            return Sources.UNKNOWN
        server = connect(study.engine)
        schema = describe(study, server)
        if is_current(folder, manifest, version, spark_layout(schema)):
            return Sources.SAME
        session = server.open_session()
        try:
            same = digest_sources(schema, folder, session, time.monotonic() + PATIENCE) == dict(manifest.sources)
        except BrokenError as problem:
            raise log_failure(folder, version, str(problem)) from None
        finally:
            close_session(session)
        return Sources.SAME if same else Sources.CHANGED

    def exposures(self, study: Study) -> list[str]:
        """Return what others on the server may see of the study there."""
        store = store_of(study)
        return [
            f"whoever reads {store} reads prepared rows: it must be the curator's alone",
            f"whoever sees the pages, logs and events of {read_address(study.engine).place} sees exact counts and durations",
        ]

    def drop_prepared(self, study: Study) -> str:
        """Remove the prepared rows from the server, and say so."""
        folder = Folder(prepared_folder(study))
        if not drop(folder, connect(study.engine)):
            return "nothing was prepared"
        return f"removed the prepared tables of {folder.path.name} from the server"


KIND: EngineKind = SparkKind()
