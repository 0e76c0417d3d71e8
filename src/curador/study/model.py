"""The study: what an owner declares before anybody may ask, and its schema: that, with the columns that its files have.

Frozen values; a study is made by `file.py`, `build.py` or by hand.

A value that exists keeps the rules: each type checks its own when it is made, the study checks what holds between tables.

Study ─ tables ─ Table ─ columns ─ Column
      │          │     ─ unit: UnitColumn | UnitRow | UnitPath | None (a public table)
      │          └ caps: Caps
      ├ budget: Budget      ├ engine: EngineSettings      └ analysts: Analyst

The fingerprint of a study: SHA-256 of canonical JSON of what gives an answer its meaning.

In it     name, word for the unit, adjacency, budget, max_units, and of every table its name, source as declared, unit,
          caps and highest caps, uniqueness, keys and columns, and how its texts are read where that was said.
Not in it the engine's settings, the folder and the ledger's place (the same study on another machine is the same),
          data frames (their contents are a data version), analysts and the least spend (who may ask, and for how little,
          does not change what an answer means), the order in which tables, columns and values were written.

The schema is the study together with what is visible of its files without reading a row: every column and its type. Made
by an engine (`engines.duckdb.schema.describe(study)`), used by query and plan. No row, no statistic, no count is in it, but
of public tables, whose contents are public: their number of rows, the largest number of rows that share a key, and, when
asked for, the values of a column.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from curador.canonical import canonical_digest
from curador.errors import require
from curador.numerics.exact import Number, at_least_zero, open_probability, positive
from curador.privacy.adjacency import Adjacency
from curador.study.formats import FileFormat
from curador.study.rules import (
    NAME,
    broken_rule,
    check_description,
    column_bounds,
    column_length,
    column_type,
    column_values,
    is_name,
    is_text,
    require_bare_address,
)
from curador.study.values import (
    DURATION,
    LONGEST_NUMBER,
    SHARE,
    SIZE,
    TICK,
    Plain,
    Type,
    Value,
    duration_text,
    is_writable,
    read_duration,
    read_size,
    read_tick,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


# ---- model -----------------------------------------------------------------------------------------------------------------


DEFAULT_MAX_UNITS = 1_000_000_000
DEFAULT_LEAST_SPEND = Fraction(1, 10_000)
"""What one question costs at least, of the asker's whole limit: so there are at most 10,000 of them."""
MOST_UNITS = 2**62
MOST_THREADS = 1024
MOST_UNIT_ROWS = 1_000_000
MEMORY = ":memory:"
"""In the place of a ledger: one that is forgotten when the study is closed."""
PREPARE = ("auto", "always", "never")
WORKERS = ("process", "inline")
AHEAD = 3
"""Questions that are charged at once for each that can be computed."""


@dataclass(frozen=True, slots=True)
class Column:
    """One declared column. What is not declared may be filtered on and counted, never summed.

    bounds   for numbers, dates and timestamps: values outside are clamped to them when they are measured
    values   the whole list of what may stand there: known keys, which cost no δ
    nullable whether NULL may stand there. Default: true, except where `values` lists what may stand there;
             then NULL is a group of its own only if nullable was said
    length   the declared maximum of LENGTH of a string
    description  what it is about, for people who ask; it changes no answer, and is in no fingerprint
    """

    name: str
    type: Type
    bounds: tuple[Value, Value] | None = None
    values: tuple[Value, ...] | None = None
    nullable: bool = True
    length: int | None = None
    description: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise broken_rule((str(self.name),), NAME, self.name)
        check_description((self.name, "description"), self.description)
        kind = column_type(self.name, self.type)
        length = column_length(self.name, kind, self.length)
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "bounds", column_bounds(self.name, kind, self.bounds))
        object.__setattr__(self, "values", column_values(self.name, kind, self.values, length))
        if type(self.nullable) is not bool:
            raise broken_rule((self.name, "nullable"), "true or false", self.nullable)


@dataclass(frozen=True, slots=True)
class UnitColumn:
    """The unit stands in a column of the table."""

    column: str


@dataclass(frozen=True, slots=True)
class UnitRow:
    """Every row is a unit of its own."""


@dataclass(frozen=True, slots=True)
class UnitPath:
    """The unit is that of the row of `table` whose `key` equals our `column`. `key` is UNIQUE NOT NULL there.

    key None: `column` holds the unit itself, which must exist in `table`'s unit column.
    """

    column: str
    table: str
    key: str | None = None


Unit: TypeAlias = UnitColumn | UnitRow | UnitPath

PUBLIC, ROW = "public", "row"
"""How a ledger names tables of nobody, and tables whose rows are their own units."""


def owner_text(unit: Unit | None) -> str:
    """Return who owns a table's rows, in the words that a ledger keeps."""
    match unit:
        case None:
            return PUBLIC
        case UnitRow():
            return ROW
        case UnitColumn():
            return f"column {unit.column}"
        case UnitPath():
            return f"column {unit.column} of {unit.table}" + ("" if unit.key is None else f", key {unit.key}")


@dataclass(frozen=True, slots=True)
class Caps:
    """What one unit may contribute to one question.

    rows            rows of one unit that one question may use, all groups together
    groups          groups of one unit; None: as many as rows allow
    rows_per_group  rows of one unit in one group; None: as many as rows allow
    """

    rows: int
    groups: int | None = None
    rows_per_group: int | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "groups", "rows_per_group"):
            value = getattr(self, name)
            whole = type(value) is int and 1 <= value <= 1_000_000
            require(whole or (value is None and name != "rows"), f"caps.{name}", "a whole number from 1 to 1,000,000", value)

    @property
    def most_groups(self) -> int:
        """Groups of one unit, as far as rows allow."""
        return self.rows if self.groups is None else min(self.groups, self.rows)

    @property
    def most_in_group(self) -> int:
        """Rows of one unit in one group, as far as rows allow."""
        return self.rows if self.rows_per_group is None else min(self.rows_per_group, self.rows)


@dataclass(frozen=True, slots=True)
class Table:
    """One table. Columns of the file that are not declared are read with the physical type the engine reports.

    caps   None: nobody said how many rows of one unit count; they are found privately, by a survey (see `surveyed`)
    """

    name: str
    source: str
    unit: Unit | None
    columns: tuple[Column, ...] = ()
    unique: bool = False
    caps: Caps | None = None
    caps_max: Caps | None = None
    key: tuple[str, ...] = ()
    """Of a public table: columns that together are unique (checked when it is read)."""
    format: FileFormat | None = None
    """How the texts of its source are read; None: as programs write them."""
    description: str | None = field(default=None, compare=False)
    """What it is about, for people who ask; it changes no answer, and is in no fingerprint."""

    def __post_init__(self) -> None:
        from curador.study.check import check_table

        if self.caps is None and self.unique and self.unit is not None:
            object.__setattr__(self, "caps", Caps(rows=1))
        check_table(self)

    @property
    def public(self) -> bool:
        """Whether the table is of public knowledge and owned by nobody."""
        return self.unit is None

    @property
    def single(self) -> bool:
        """Whether a unit has one row at most, so that nothing needs a cap."""
        return self.unique or isinstance(self.unit, UnitRow)

    @property
    def surveyed(self) -> bool:
        """Whether its caps are found by a private survey, as nobody declared them."""
        return self.caps is None and not self.public and not self.single

    def column(self, name: str) -> Column | None:
        """Return the declared column of this exact name."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """The whole budget of a study, for ever: pure ε, or (ε, δ).

    delta_keys: the part of δ that private keys may cost; half by default. The rest turns ρ into ε.
    """

    epsilon: Fraction
    delta: Fraction | None
    delta_keys: Fraction | None

    def __init__(self, *, epsilon: Number, delta: Number | None = None, delta_keys: Number | None = None) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "budget.epsilon"))
        object.__setattr__(self, "delta", None if delta is None else open_probability(delta, "budget.delta"))
        keys: Fraction | None = None
        if self.delta is None:
            require(delta_keys is None, "budget.delta_keys", "absent where there is no delta", delta_keys)
        else:
            keys = self.delta / 2 if delta_keys is None else at_least_zero(delta_keys, "budget.delta_keys")
            require(keys < self.delta, "budget.delta_keys", "below budget.delta", delta_keys)
        object.__setattr__(self, "delta_keys", keys)
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta), ("delta_keys", self.delta_keys)):
            require(
                value is None or is_writable(value),
                f"budget.{name}",
                f"a number of at most {LONGEST_NUMBER} characters",
                Plain("a longer one"),
            )

    @property
    def pure(self) -> bool:
        """Whether the budget has no δ."""
        return self.delta is None


@dataclass(frozen=True, slots=True)
class Analyst:
    """Somebody who may ask. The share is a quota inside the study's one guarantee, not a guarantee about the analyst."""

    name: str
    share: Fraction = Fraction(1)
    tables: tuple[str, ...] | None = None
    train: bool = False

    def __post_init__(self) -> None:
        if not is_name(self.name) or self.name.casefold() == "owner":
            raise broken_rule(("analysts", str(self.name)), f'{NAME} and is not "owner"', self.name)
        if not 0 < self.share <= 1 or not is_writable(100 * self.share):
            raise broken_rule(("analysts", self.name, "share"), SHARE, self.share)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which engine computes, and how it runs. Sizes in bytes, times in seconds.

    kind       its name in the registry of `engines/base.py`
    unit_rows  rows of one unit that a prepared table holds at most; never less than a cap allows
    unit_work  the most work that one unit's rows may cause in one question, by the measured costs of `plan/work.py`: what
               would cause more is refused, since its duration would tell about one unit
    answer_every  answers leave a whole number of times this after their turn came, by what the question is made of
               (`plan/cost_class.py`), and whatever an analyst is told leaves at a multiple of it; 0: when it is ready
    workers    questions that are computed at once, each in a process of its own; None: as many as threads
    prepared   the folder of this machine's prepared copy, as seen from the study's; "": beside the ledger
    url        the address of an engine that is a server, such as "sc://host:15002", without a secret; "": the engine has none
    store      the folder in which a server keeps prepared tables, as the server sees it; "": the engine needs none
    """

    threads: int = 2
    memory: int = 4_000_000_000
    spill: int = 10_000_000_000
    deadline: Fraction = Fraction(60)
    prepare: str = "auto"
    worker: str = "process"
    answer_every: Fraction = Fraction(0)
    unit_rows: int = 16_384
    unit_work: Fraction = Fraction(2, 1000)
    kind: str = "duckdb"
    prepared: str = ""
    workers: int | None = None
    url: str = ""
    store: str = ""

    @property
    def places(self) -> int:
        """How many questions are computed at once."""
        if self.worker != "process":
            return 1
        return self.threads if self.workers is None else self.workers

    @property
    def askers(self) -> int:
        """How many questions are charged and on their way at once: while some wait for the disk, others are computed.

        Where answers leave on a clock, and in this very process, as many as are computed: who is charged is computed at once.
        """
        return self.places if self.answer_every or self.worker != "process" else AHEAD * self.places

    @property
    def longest(self) -> Fraction:
        """Seconds until the engine is done with what was charged: others ahead, the deadline, a tick before and after."""
        return self.deadline * (self.askers // self.places) + 2 * self.answer_every

    @property
    def of_worker(self) -> EngineSettings:
        """The settings of one worker: its part of memory and spill, and all threads: whoever is alone has them."""
        parts = self.places
        if parts == 1:
            return self
        memory, spill = (max(size // parts, 1) for size in (self.memory, self.spill))
        return replace(self, workers=1, memory=memory, spill=spill)

    def __post_init__(self) -> None:
        if type(self.unit_rows) is not int or not 1 <= self.unit_rows <= MOST_UNIT_ROWS:
            raise broken_rule(("engine", "unit_rows"), f"a whole number from 1 to {MOST_UNIT_ROWS:,}", self.unit_rows)
        if read_duration(self.unit_work) is None:
            raise broken_rule(("engine", "unit_work"), 'a duration such as "2ms"', self.unit_work)
        if type(self.threads) is not int or not 1 <= self.threads <= MOST_THREADS:
            raise broken_rule(("engine", "threads"), f"a whole number from 1 to {MOST_THREADS:,}", self.threads)
        for name, size in (("memory", self.memory), ("spill", self.spill)):
            if read_size(size) is None:
                raise broken_rule(("engine", name), SIZE, size)
        if read_duration(self.deadline) is None:
            raise broken_rule(("engine", "deadline"), DURATION, self.deadline)
        if type(self.answer_every) is not Fraction or read_tick(self.answer_every) is None:
            raise broken_rule(("engine", "answer_every"), TICK, self.answer_every)
        if self.answer_every and self.deadline % self.answer_every:
            rule = f"a whole number of answer_every, which is {duration_text(self.answer_every)}"
            raise broken_rule(("engine", "deadline"), rule, duration_text(self.deadline))
        if self.prepared and not is_text(self.prepared, 4_096):
            raise broken_rule(("engine", "prepared"), "the path of a folder", self.prepared)
        if self.url:
            require_bare_address(self.url)
        if self.store and not is_text(self.store, 4_096):
            raise broken_rule(("engine", "store"), "a place as text", self.store)
        if self.prepare not in PREPARE:
            raise broken_rule(("engine", "prepare"), f"one of {', '.join(PREPARE)}", self.prepare)
        if self.worker not in WORKERS:
            raise broken_rule(("engine", "worker"), f"one of {', '.join(WORKERS)}", self.worker)
        if self.workers is not None and (type(self.workers) is not int or not 1 <= self.workers <= self.threads):
            rule = f"a whole number from 1 to threads, which is {self.threads:,}"
            raise broken_rule(("engine", "workers"), rule, self.workers)


class _Fingerprinted:
    """Where a study keeps its fingerprint, which every question asks for. No field: what is copied or changed has none."""

    __slots__ = ("_fingerprint",)
    _fingerprint: str


@dataclass(frozen=True, slots=True)
class Study(_Fingerprinted):
    """Everything an owner declares."""

    name: str
    tables: tuple[Table, ...]
    budget: Budget
    ledger: Path
    unit_name: str = "person"
    adjacency: Adjacency = Adjacency.ADD_OR_REMOVE_ONE
    max_units: int = DEFAULT_MAX_UNITS
    engine: EngineSettings = field(default_factory=EngineSettings)
    analysts: tuple[Analyst, ...] = ()
    folder: Path = field(default_factory=Path)
    """What relative sources are relative to."""
    frames: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), compare=False, repr=False)
    """Data frames or Arrow tables given from Python, by table name."""
    allow_large_delta: bool = False
    """The owner knows that δ is above 1/(100 · max_units) and wants it so; `check` then warns instead of refusing."""
    least_spend: Fraction = DEFAULT_LEAST_SPEND
    """What one question or fit costs at least, as a part of its asker's whole limit; 0: nothing is too little."""
    server: str | None = None
    """The address of the PostgreSQL schema that the ledger is kept in, as the file `ledger` then says; None: in that file."""

    def __post_init__(self) -> None:
        from curador.study.check import check_whole

        check_whole(self)

    @property
    def digest(self) -> str:
        """The fingerprint of everything that gives an answer its meaning; see `digest_study` for what that is."""
        if not hasattr(self, "_fingerprint"):
            object.__setattr__(self, "_fingerprint", digest_study(self))
        return self._fingerprint

    @property
    def in_memory(self) -> bool:
        """Whether the ledger is to be forgotten when the study is closed; only where every private table is a frame."""
        return self.ledger == Path(MEMORY)

    @property
    def ledger_path(self) -> Path:
        """Where the ledger lies; like a source, `ledger` is relative to `folder`."""
        return self.folder / self.ledger

    @property
    def shared(self) -> bool:
        """Whether other machines may answer from copies of their own: ledger on a server, or the copy apart from it.

        Only then a prepared copy is digested, which takes half as long as making it.
        """
        return self.server is not None or bool(self.engine.prepared)

    def to_toml(self) -> str:
        """Return the study as the text of a file that reads back as this study, frames aside."""
        from curador.study.file import to_toml

        return to_toml(self)

    @property
    def owners(self) -> tuple[tuple[str, str], ...]:
        """(table, who owns its rows), sorted: what a ledger holds the study to."""
        return tuple(sorted((table.name, owner_text(table.unit)) for table in self.tables))

    def table(self, name: str) -> Table | None:
        """Return the table of this exact name."""
        return next((table for table in self.tables if table.name == name), None)

    def analyst(self, name: str) -> Analyst | None:
        """Return the analyst of this exact name."""
        return next((analyst for analyst in self.analysts if analyst.name == name), None)


# ---- schema ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a table as questions see it.

    declared  the owner's declaration, None for a column of the file that was not declared
    """

    name: str
    type: Type
    nullable: bool
    declared: Column | None = None


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table: its declaration and all its columns that can be selected, in the file's order."""

    table: Table
    fields: tuple[Field, ...]

    def index(self, name: str) -> int | None:
        """Return the place of the column of this exact name."""
        return next((place for place, one in enumerate(self.fields) if one.name == name), None)

    @property
    def unit_index(self) -> int | None:
        """The place of the column that holds the unit itself; None for unit = row, longer key paths, public tables."""
        unit = self.table.unit
        if isinstance(unit, UnitColumn) or (isinstance(unit, UnitPath) and unit.key is None):
            return self.index(unit.column)
        return None

    @property
    def path(self) -> UnitPath | None:
        """The key path, where the unit is found through another table's key."""
        unit = self.table.unit
        return unit if isinstance(unit, UnitPath) and unit.key is not None else None


class PublicFacts(Protocol):
    """What a plan may know of public tables' contents."""

    def multiplicity(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows that agree in these columns (no columns: the number of rows)."""
        ...

    def distinct(self, table: str, column: str, most: int) -> tuple[Value | None, ...] | None:
        """Return the values of a column, NULL as None, sorted; None if there are more than `most`."""
        ...

    def longest(self, table: str, column: str) -> int:
        """Return how many bytes the longest text of a column has."""
        ...

    def images(self, listing: Any, most: int) -> tuple[tuple[Value | None, ...], ...] | None:
        """Return all tuples of a listing (`plan/listing.py`), each once; None if more than `most` rows must be looked at."""
        ...


@dataclass(frozen=True, slots=True)
class Schema:
    """What questions are read and planned against.

    found   the tables whose caps nobody declared and a survey found: the caps of these tables are its
    numbered  whether the data version stores the numbers of values in a unit (`plan/ownership.py:numbered_columns`)
    older   plan as before rows that are told apart proved caps, and conditions narrowed expressions: answers that were paid
            for then have the keys of such plans
    """

    study: Study
    tables: tuple[TableSchema, ...]
    public: PublicFacts
    found: frozenset[str] = frozenset()
    numbered: bool = False
    older: bool = False

    def table(self, name: str) -> TableSchema | None:
        """Return the table of this exact name, else the only one of this name in other letter case."""
        for table in self.tables:  # no two have the same
            if table.table.name == name:
                return table
        near = [one for one in self.tables if one.table.name.lower() == name.lower()]
        return near[0] if len(near) == 1 else None


# ---- digest ----------------------------------------------------------------------------------------------------------------


DIGEST_VERSION = 1


def digest_study(study: Study) -> str:
    """Return the fingerprint as 64 hexadecimal digits."""
    return canonical_digest(digested_meaning(study))


def digested_meaning(study: Study) -> dict[str, object]:
    """Return what the fingerprint is taken of, as JSON values. Numbers are exact texts."""
    budget = study.budget
    return {
        "version": DIGEST_VERSION,
        "name": study.name,
        "unit": study.unit_name,
        "adjacency": str(study.adjacency),
        "budget": [_exact_text(one) for one in (budget.epsilon, budget.delta, budget.delta_keys)],
        "max_units": str(study.max_units),
        "tables": {table.name: _digest_table(table) for table in study.tables},
    }


def _digest_table(table: Table) -> dict[str, object]:
    return {
        "source": table.source,
        "unit": _digest_unit(table.unit),
        "unique": table.unique,
        "caps": _UNDECLARED if table.caps is None else _digest_caps(table.caps),
        "caps_max": None if table.caps_max is None else _digest_caps(table.caps_max),
        "key": sorted(table.key),
        "columns": {column.name: _digest_column(column) for column in table.columns},
        **({} if table.format is None else {"format": table.format.said()}),  # studies without one are as they were
    }


def _digest_unit(unit: Unit | None) -> dict[str, object]:
    """Return kind and fields: the kinds must differ although a path without a key looks like a column."""
    match unit:
        case None:
            return {"kind": "NoneType"}  # what a public table has been written as from the first day
        case UnitRow():
            return {"kind": "UnitRow"}
        case UnitColumn():
            return {"kind": "UnitColumn", "column": unit.column}
        case UnitPath():
            return {"kind": "UnitPath", "column": unit.column, "table": unit.table, "key": unit.key}


_UNDECLARED = [10, None, None]
"""What caps that nobody declared have been written as from the first day, when they were these. A question that is answered
with found caps has the id of their survey in its key."""


def _digest_caps(caps: Caps) -> list[int | None]:
    return [caps.rows, caps.groups, caps.rows_per_group]


def _digest_column(column: Column) -> dict[str, object]:
    return {
        "type": str(column.type),
        "bounds": None if column.bounds is None else [_exact_text(bound) for bound in column.bounds],
        "values": None if column.values is None else sorted(_exact_text(value) or "" for value in column.values),
        "nullable": column.nullable,
        "length": column.length,
    }


def _exact_text(value: Value | None) -> str | None:
    """Return the one spelling of a value; the column's type, which stands beside it, says how to read it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, Fraction)):
        return str(value)
    return value.isoformat() if isinstance(value, dt.datetime) else dt.date.isoformat(value)
