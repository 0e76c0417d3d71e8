"""What every engine offers a curator: schemas without rows, one data version at a time, and exact tallies.

Which kinds of engines there are stands at the end: a second one is a folder beside `duckdb/` and a line here, and no edit of
the curator.
"""

from __future__ import annotations

import contextlib
import enum
import math
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curador.errors import Failed
from curador.study.rules import broken_rule

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from curador.plan.model import BlockPlan
    from curador.study.formats import FileFormat
    from curador.study.model import Schema, Study
    from curador.study.values import Type


# ---- base ------------------------------------------------------------------------------------------------------------------


KeyValue: TypeAlias = "bool | int | float | str | dt.date | dt.datetime | None"
"""A key as it comes back: decimals and floats as float, timestamps without zone (UTC)."""

Integers: TypeAlias = NDArray[np.int64] | NDArray[np.object_]
"""Exact integers: 64-bit ones, or Python's where they may not fit. Never floats."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A histogram per group, only what is not empty: group (place in `Tallied.keys`), cell, number of rows."""

    groups: NDArray[np.int64]
    cells: NDArray[np.int64]
    counts: Integers


@dataclass(frozen=True, slots=True)
class Tallied:
    """A block's exact integers, by group, in no particular order. Without keys: one group, also when there is no row.

    No two groups have one key, as `answers/release.py` reads keys: NaN as NULL, both zeros as one. Sources are cleaned of
    NaN and −0, what is computed has neither (`lower/expression.py:as_value`), decimals are doubles: groups are those very
    values.

    keys       one list for each key
    tallies    by place in the block's tallies: rows, steps, squares, units, distinct
    cells      by place in the block's tallies: the histograms
    selection  where keys are private: one list for each private key, and the number of units of each combination
    """

    keys: tuple[Sequence[KeyValue], ...]
    tallies: Mapping[int, Integers]
    cells: Mapping[int, Cells] = field(default_factory=dict[int, Cells])
    selection: tuple[tuple[Sequence[KeyValue], ...], Integers] | None = None


Compiled: TypeAlias = "Sequence[tuple[BlockPlan, Any]]"
"""The blocks of a question, each with what an engine runs for it: a function of the plan, made before anything is charged.
Nobody but the engine looks into the second."""


class EngineFailed(Failed):
    """The engine did not answer. Only a random id is told; what happened stands in the owner's log under it."""

    def __init__(self, incident: str) -> None:
        super().__init__(f"The engine could not answer; the owner finds the reason under incident {incident}.")
        self.incident = incident


@dataclass(frozen=True, slots=True)
class CopyDigest:
    """What a prepared copy is known by, to the owner alone: a digest of a table tells two candidate tables apart.

    key      tells whether two machines have the same rank key
    layout   of the declarations that it was made for
    content  a keyed digest of its rows
    """

    key: str
    layout: str
    content: str

    def __str__(self) -> str:
        return f"{self.key}:{self.layout}:{self.content}"

    @classmethod
    def read(cls, text: str) -> CopyDigest | None:
        """Return the one that was written so; None of anything else."""
        parts = text.split(":")
        return cls(*parts) if len(parts) == len(cls.__slots__) else None


UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)
"""The moment of the monotonic clock by which an engine must have ended; infinite where nobody said. Set by `at_most`."""


@contextlib.contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Let what an engine is asked inside end in so many seconds, or fail; the study's own deadline holds beside it."""
    token = UNTIL.set(min(UNTIL.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        UNTIL.reset(token)


class Engine(Protocol):
    """An engine opened on a study's current data version. Several threads ask it at once.

    `tally` and `read` end by `UNTIL`, and within the study's deadline.
    """

    @property
    def schema(self) -> Schema:
        """Every column and its type; read without rows."""
        ...

    @property
    def version(self) -> int:
        """The data version that questions are answered from: the one it was opened on, or prepared since."""
        ...

    @property
    def ready(self) -> bool:
        """Whether the data version is prepared for the study as it is declared now, and is still what was prepared."""
        ...

    @property
    def altered(self) -> bool:
        """Whether the version is prepared here, and the copy or the key is not what it was: it must be prepared again."""
        ...

    @property
    def copies(self) -> tuple[CopyDigest, ...]:
        """What the prepared copy is known by, then copies of the same version and sources for other declarations.

        Curators of one ledger compare them (`curator/machines.py`). Also where it is not ready; none where there is no copy.
        """
        ...

    def compile(self, blocks: Sequence[BlockPlan]) -> Compiled:
        """Return what is run for blocks, once; refuse those that the engine could not run, such as too deep ones.

        A function of the plan: no data are read.
        """
        ...

    def rehearse(self, compiled: Compiled) -> list[Tallied]:
        """Return the integers of all blocks on a copy of the tables that has no rows; raises Refused where that fails.

        What fails for the plan's sake fails here too, before anything is charged. No data are read, of public tables neither.
        """
        ...

    def record_failure(self, incident: str, detail: str) -> None:
        """Write what really happened to the owner's log, under the id that everybody else is told."""
        ...

    def record_duration(self, question: str, seconds: float) -> None:
        """Write to the owner's log how long a question took: nobody else may know."""
        ...

    def tally(self, compiled: Compiled) -> list[Tallied]:
        """Return the exact integers of all blocks, from one snapshot. Raises EngineFailed, with an id only."""
        ...

    def read(self, table: str, columns: Sequence[str]) -> Any:
        """Return columns v0, v1, … of a private table with the unit `u` of each row, as an Arrow table: for learners only.

        All rows of a unit, whatever the caps: a learner bounds what they weigh together. Raises EngineFailed.
        """
        ...

    def rehearse_read(self, table: str, columns: Sequence[str]) -> Any:
        """Return what `read` gives of a copy of the tables that has no rows; raises Refused where that fails.

        What fails for the statement's sake fails here too, before anything is charged. No data are read.
        """
        ...

    def prepare(self, version: int, *, progress: Callable[[str], None] | None = None) -> None:
        """Take the snapshot of a new data version; an owner's act."""
        ...

    def close(self) -> None:
        """Stop the workers and close what is open."""
        ...


class Sources(enum.Enum):
    """What an owner's store knows of the sources of a data version, compared with what they are now."""

    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"


EVERYTHING = "*"
"""Stands for every table inside a place."""


@dataclass(frozen=True, slots=True)
class PrivateSource:
    """Where rows of a private table come from: what a budget follows, whichever study names it.

    table   its name in the study
    owner   who owns its rows, in the words that a ledger keeps
    place   the resolved path of a file; else what names a server and a database there, whoever asks
    inside  the table in that place; "" where the place is the table, EVERYTHING where more than one may be read
    file    the file, where it is one on this machine
    """

    table: str
    owner: str
    place: str
    inside: str = ""
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class OwnerFact:
    """What was seen of a table or column, and what to do about it."""

    about: str
    fact: str
    conclusion: str

    def __str__(self) -> str:
        return f"{self.about}: {self.fact}\n  → {self.conclusion}"


@dataclass(frozen=True, slots=True)
class LookedTable:
    """What a source looks like.

    types  by column, of those that nearly always look like something else than text
    notes  what could not be decided, by column; "" for the whole table
    """

    format: FileFormat
    types: Mapping[str, Type]
    notes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KeptPlaces:
    """Where a kind of engine keeps what it must on this machine.

    prepared    the folder of the key and, where no server has them, of the prepared rows
    incidents   what really happened when a question failed
    durations   how long questions took
    """

    prepared: Path
    incidents: Path
    durations: Path


class EngineKind(Protocol):
    """A kind of engine, before one is opened; the registry says which there are."""

    def describe(self, study: Study) -> Schema:
        """Return every column of the study's sources; refuse those that are not there or not as declared. No row is read."""
        ...

    def physical_types(self, source: Any, how: FileFormat | None = None) -> list[tuple[str, str, Type | None]]:
        """Return the columns of one source: name, type as the source calls it, and ours. No row is read.

        how  the declared format, by which a header is read
        """
        ...

    def require_readable(self, study: Study) -> None:
        """Refuse sources of which something declared cannot be read at all; raises UnreadableData, for the owner only.

        Rows decide it: an owner's act, before a ledger is made and before a data version is declared.
        """
        ...

    def owner_facts(self, study: Study, called: str) -> list[OwnerFact]:
        """Return what rows show, for the owner's eyes; nothing is made or kept. `called`: the study file, in conclusions."""
        ...

    def look(self, source: str) -> LookedTable:
        """Return how one source seems to be written, by nearly all of its values, for the owner's eyes."""
        ...

    def private_sources(self, study: Study) -> tuple[PrivateSource, ...]:
        """Return where the rows of private tables come from; what lies in memory comes from nowhere. No row is read."""
        ...

    def open(self, study: Study, version: int) -> Engine:
        """Return the engine on a data version, which may not be prepared yet."""
        ...

    def sources(self, study: Study, version: int) -> Sources:
        """Return whether the sources are what they were when the version was taken."""
        ...

    def machine(self, study: Study) -> str:
        """Return what tells this machine's copies of the study's data from those of others; random."""
        ...

    def has_key(self, study: Study) -> bool:
        """Whether the key lies here with which copies of the data are made, or would be taken from where it was put."""
        ...

    def set_apart(self, study: Study) -> None:
        """Make a key of its own for a study that is forgotten when it is closed, such as a sandbox."""
        ...

    def drop_prepared(self, study: Study) -> str:
        """Remove the prepared copy of the data, and say so; what it was made from stays known."""
        ...

    def kept(self, study: Study) -> KeptPlaces:
        """Return the places on this machine in which something of the study is kept. Nothing is looked at."""
        ...

    def exposures(self, study: Study) -> list[str]:
        """Return what others on a server see of the study there, in lines for the owner; none where there is no server.

        Raises InvalidStudy where prepared rows can be read by others.
        """
        ...


# ---- registry --------------------------------------------------------------------------------------------------------------


EMBEDDED = "duckdb"
"""The kind of every study that names no other one in [engine]."""

_KINDS = {
    EMBEDDED: "curador.engines.duckdb.engine",
    "postgres": "curador.engines.postgres.engine",
    "spark": "curador.engines.spark.engine",
}
"""Modules whose `KIND` it is, imported when first used: a driver is not needed to import a study."""


def engine_kind(name: str = EMBEDDED) -> EngineKind:
    """Return the kind of engine of this name."""
    if name not in _KINDS:
        raise broken_rule(("engine", "kind"), f"one of {', '.join(_KINDS)}", name)
    kind: EngineKind = import_module(_KINDS[name]).KIND
    return kind
