"""The embedded engine as a curator sees it: a schema, a data version, exact tallies.

And as a kind: what can be said and done before one is opened.
"""

from __future__ import annotations

import dataclasses
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

from curador.engines.base import UNTIL, EngineFailed, Sources
from curador.engines.duckdb import versions
from curador.engines.duckdb.copies import UNDIGESTED, read_record
from curador.engines.duckdb.facts import VersionFacts
from curador.engines.duckdb.looking import look_at
from curador.engines.duckdb.origins import private_sources
from curador.engines.duckdb.owner_facts import owner_facts
from curador.engines.duckdb.readable import require_readable
from curador.engines.duckdb.schema import describe, physical_types
from curador.engines.duckdb.versions import (
    Folder,
    KindWithFolder,
    is_numbered,
    is_prepared,
    is_there,
    layout_digest,
    log_failure,
    note_duration,
    note_failure,
    prepared_copy,
    prepared_folder,
    specification,
    take_version,
)
from curador.engines.duckdb.worker import BrokenError, InlineRunner, ProcessPool, open_connection
from curador.errors import Failed, InvalidQuery, InvalidStudy, UnreadableData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

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
    from curador.engines.duckdb.worker import Runner
    from curador.engines.lower.sql import GeneratedSQL
    from curador.plan.model import BlockPlan
    from curador.study.formats import FileFormat
    from curador.study.model import Schema, Study
    from curador.study.values import Type


# ---- engine ----------------------------------------------------------------------------------------------------------------


_REHEARSAL = 10.0
"""Seconds for a question on tables without rows: nobody pays for them."""

_MOST_REHEARSED = 256
"""Questions whose results on tables without rows are remembered."""


class DuckDBEngine:
    """An engine opened on one data version of a study. Preparing is an owner's act and never part of a question."""

    def __init__(self, study: Study, version: int, *, folder: Path | None = None) -> None:
        self._study = study
        self._version = version
        self._folder = Folder(prepared_folder(study) if folder is None else folder)
        self._runner: Runner | None = None
        self._rehearsed: Mapping[tuple[tuple[str, *tuple[str, ...]], ...], Mapping[str, Any]] = {}
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
        """Whether the version is prepared for the study as it is declared now, and nobody wrote to its file since."""
        return self._intact and is_prepared(self._schema, self._folder, self._version, self._layout)

    @property
    def altered(self) -> bool:
        """Whether the version is prepared here and its rows or its key are others than then."""
        return not self._intact

    @property
    def copies(self) -> tuple[CopyDigest, ...]:
        """What the prepared copy is known by, also one that is not ready; nothing where the version is not prepared here."""
        record = read_record(self._folder)
        found = record.copies if record is not None and record.version == self._version else ()
        return tuple(one for one in found if one.content != UNDIGESTED)

    def prepare(self, version: int, *, progress: Callable[[str], None] | None = None) -> None:
        """Take the snapshot of a data version from the sources as they are now, and answer from it.

        Columns may have come or gone since the engine was opened: the schema is theirs now.
        """
        described = describe(self._study)
        require_readable(described)
        self._rehearsed = {}
        self.close()
        try:
            take_version(described, self._folder, version, progress)
        except InvalidStudy as problem:  # keys that repeat, scans that stop: rows decide it
            raise UnreadableData(
                problem.text,
                subject=problem.subject,
                rule=problem.rule,
                got=problem.got,
                hint=problem.hint,
                path=problem.path,
            ) from None
        self._version = version
        self._describe(described)

    def _describe(self, described: Schema | None = None) -> None:
        """Hold the schema of the sources, and what it means for a prepared file."""
        found = describe(self._study) if described is None else described
        numbered = is_numbered(self._study, self._folder, self._version)
        self._schema = dataclasses.replace(found, public=VersionFacts(found.tables, self._facts), numbered=numbered)
        self._layout = layout_digest(self._schema)
        self._intact = self._is_intact()

    def _is_intact(self) -> bool:
        """Whether what is prepared, if anything is, holds what it was prepared with; its rows are read where that is open."""
        if not is_there(self._schema, self._folder, self._version, self._layout):
            return True
        with self._folder.locked():
            return prepared_copy(self._schema, self._folder, self._version, self._layout).is_intact()

    def compile(self, blocks: Sequence[BlockPlan]) -> Compiled:
        """Return the blocks lowered to SQL; refuse what cannot be: too deep, too long. No data are read."""
        from curador.engines.lower.block import lower_ways

        return tuple((block, lower_ways(block, self._schema)) for block in blocks)

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

        named: list[tuple[str, *tuple[GeneratedSQL, ...]]] = [(str(place), *ways) for place, (_, ways) in enumerate(compiled)]
        results = self._without_rows(named) if empty else self.run(named)
        try:
            return [collect(block, results[str(place)]) for place, (block, _) in enumerate(compiled)]
        except Exception:  # noqa: BLE001 -- after rows were read nothing but an id leaves
            raise log_failure(self._folder, self._version, traceback.format_exc()) from None

    def _without_rows(self, statements: Sequence[tuple[str, *tuple[GeneratedSQL, ...]]]) -> Mapping[str, Any]:
        """Run statements on tables without rows, once: the same ones give the same there, whatever rows a version has.

        All ways to compute a result are tried: none may fail for the plan's sake once something is charged.
        """
        key = tuple(statements)
        found = self._rehearsed.get(key)
        if found is None:
            others = [(f"{name} {place}", one) for name, *ways in statements for place, one in enumerate(ways[:-1])]
            found = self.run([*((name, ways[-1]) for name, *ways in statements), *others], empty=True)
            self._rehearsed = {**dict(list(self._rehearsed.items())[1 - _MOST_REHEARSED :]), key: found}
        return found

    def record_failure(self, incident: str, detail: str) -> None:
        """Write what really happened to incidents.log, under the id that everybody else is told."""
        note_failure(self._folder, self._version, incident, detail)

    def record_duration(self, question: str, seconds: float) -> None:
        """Write to durations.log how long a question took."""
        note_duration(self._folder, self._version, question, seconds)

    def read(self, table: str, columns: Sequence[str]) -> Any:
        """Return columns of a private table and the unit of each row as an Arrow table: for learners, and for nobody else.

        Raises EngineFailed, with an id only.
        """
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

    def run(self, statements: Sequence[tuple[str, *tuple[GeneratedSQL, ...]]], *, empty: bool = False) -> Mapping[str, Any]:
        """Run lowered statements in one transaction, on the data or on tables without rows; refuse what is not lowered.

        A result has a name and one statement, or several: of those the first that does not stop for the order of rows.
        """
        from curador.engines.lower.sql import GeneratedSQL

        for _, *ways in statements:
            for statement in ways:
                if type(statement) is not GeneratedSQL:
                    raise Failed.must_be("a statement", "made by the lowering", type(statement).__name__)
        try:
            seconds = min(float(self._study.engine.deadline), UNTIL.get() - time.monotonic())
            texts = [(name, *map(str, ways)) for name, *ways in statements]
            return self._opened().run(texts, min(seconds, _REHEARSAL) if empty else seconds, empty=empty)
        except BrokenError as problem:
            raise log_failure(self._folder, self._version, str(problem)) from None

    def close(self) -> None:
        """Stop the workers and close what is open."""
        with self._lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def _opened(self) -> Runner:
        with self._lock:
            if self._runner is None:
                self._require_ready()
                where = specification(self._schema, self._folder, self._version)
                settings = self._study.engine
                if settings.worker == "inline":
                    self._runner = InlineRunner(where)
                else:
                    pool = ProcessPool(where, self._folder, settings.places, warm=bool(settings.answer_every))
                    if settings.answer_every:
                        pool.start()
                    self._runner = pool
            return self._runner

    def _facts(self) -> duckdb.DuckDBPyConnection:
        self._require_ready()
        return open_connection(specification(self._schema, self._folder, self._version))

    def _require_ready(self) -> None:
        if not self.ready:
            rule = f"Data version {self._version} must be prepared for the study as it is declared."
            raise InvalidStudy(rule, hint="run `curador prepare`")


def _refusal(what: str, problem: EngineFailed) -> InvalidQuery:
    """Return the refusal of a question or a fit that the engine could not run on tables without rows."""
    hint = f"ask it in another way; the owner finds the reason under incident {problem.incident}"
    return InvalidQuery(f"the engine cannot run this {what}, even without rows; nothing was charged.", hint=f"{hint}.")


# ---- kind ------------------------------------------------------------------------------------------------------------------


class DuckDBKind(KindWithFolder):
    """DuckDB in worker processes or in this one, on files and frames, beside a prepared copy of them."""

    def describe(self, study: Study) -> Schema:
        """Return every column of the study's sources, or refuse them. No row is read."""
        return describe(study)

    def physical_types(self, source: Any, how: FileFormat | None = None) -> list[tuple[str, str, Type | None]]:
        """Return the columns of a file or frame: name, DuckDB's type, and ours. No row is read."""
        return physical_types(source, how=how)

    def require_readable(self, study: Study) -> None:
        """Refuse, to the owner, a study of whose rows something declared cannot be read at all."""
        require_readable(describe(study))

    def owner_facts(self, study: Study, called: str) -> list[OwnerFact]:
        """Return what rows show, for the owner's eyes. Reads every row and keeps nothing."""
        return list(owner_facts(describe(study), called))

    def look(self, source: str) -> LookedTable:
        """Return what nearly all values of a source look like, for the owner's eyes. Reads rows and keeps nothing."""
        from pathlib import Path

        return look_at(source, Path())

    def private_sources(self, study: Study) -> tuple[PrivateSource, ...]:
        """Return the files of private tables. No row is read."""
        return private_sources(study)

    def open(self, study: Study, version: int) -> Engine:
        """Return the engine on a data version."""
        return DuckDBEngine(study, version)

    def sources(self, study: Study, version: int) -> Sources:
        """Compare the sources with the manifest of the prepared folder."""
        folder = Folder(prepared_folder(study))
        manifest = versions.read_manifest(folder)
        if manifest is None or manifest.version != version:
            return Sources.UNKNOWN
        return Sources.CHANGED if versions.have_sources_changed(study, folder) else Sources.SAME

    def drop_prepared(self, study: Study) -> str:
        """Remove the prepared copy of the data, and say so. What it was made from stays known: it can be made again."""
        folder = Folder(prepared_folder(study))
        if not folder.path.is_dir():
            return "nothing was prepared"
        before = folder.size()
        folder.remove_versions()
        return f"removed {before - folder.size():,} bytes from {folder.path}"

    def exposures(self, study: Study) -> list[str]:
        """Return nothing: there is no server, and the prepared folder is its owner's alone."""
        del study
        return []


KIND: EngineKind = DuckDBKind()
