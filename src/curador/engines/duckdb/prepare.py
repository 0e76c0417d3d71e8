# ruff: noqa: S608 -- names and texts pass through `quoting`, the rest is ours

"""Prepares a data version: cleaned columns, grids, and for every private row its unit, the unit's hash and a rank.

    sources ─► stage (cleaned, once) ─► keys verified ─► units numbered ─► owners ─► t0, t1, … clustered by unit

`__u` numbers units for equality only. `__h` is a keyed hash of the unit's canonical bytes, `__r` the row's place in a random
order of its unit's rows: both are functions of the unit's own rows and of the study's key, of nothing else. Rows are ranked
in several passes over ranges of units, so that memory holds a part of the table, whatever its size.

`prepare = "never"`: the names of a prepared version as views over the sources, computed in every question.

The rules are those of a preparation: the same cleaning, the same hash of the unit, the same rank by the same formula; `__u`
is the canonical unit itself. Limits: every question reads, cleans, sorts and ranks the sources again; the owner must not
change them while a study is open (opening it notices, a question does not); keys are verified when a version is taken.

What is being done is told to the owner when it takes long: by the clock, never by rows.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from curador.engines.duckdb import reading, sources
from curador.engines.duckdb.connection import look
from curador.engines.duckdb.ranking import OwnedRows, pseudorandom, rank, rank_in_one_sort
from curador.engines.duckdb.reading import clamp_to_steps
from curador.engines.duckdb.schema import TAGS, owners_first, unit_type, verified_keys
from curador.engines.duckdb.spelling import commas, identifier, text
from curador.errors import Failed
from curador.plan.work import stored_rows
from curador.study.model import UnitColumn, UnitPath, UnitRow
from curador.study.rules import broken_rule
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import duckdb

    from curador.engines.duckdb.sources import TableSource
    from curador.study.model import Schema, TableSchema


# ---- progress --------------------------------------------------------------------------------------------------------------


PATIENCE = 2.0
"""Seconds before anything is said."""


class Progress:
    """Tells the current step once the work has taken longer than two seconds, and each further step as it begins."""

    def __init__(self, tell: Callable[[str], None] | None) -> None:
        self._tell = tell
        self._began = time.monotonic()
        self._step: str | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self._tell is not None:
            self._timer = threading.Timer(PATIENCE, self._late)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def step(self, text: str) -> None:
        """Begin a step."""
        with self._lock:
            self._step = text
            if self._tell is not None and time.monotonic() - self._began >= PATIENCE:
                self._told(text)

    def _late(self) -> None:
        with self._lock:
            if self._step is not None:
                self._told(self._step)

    def _told(self, text: str) -> None:
        if self._tell is not None:
            self._step = None  # once each
            self._tell(text)


# ---- prepare ---------------------------------------------------------------------------------------------------------------


STAGE = "stage"


@dataclass(frozen=True, slots=True)
class PreparationWork:
    """One preparation under way.

    key     of the study, as hexadecimal digits
    memory  bytes that the connection may use
    """

    connection: duckdb.DuckDBPyConnection
    schema: Schema
    key: str
    memory: int
    progress: Progress

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Run one statement."""
        return self.connection.execute(statement).fetchall()

    def table(self, place: int) -> TableSchema:
        """Return the table of this place in the study."""
        return self.schema.tables[place]


def prepare(work: PreparationWork, stage: Path | None) -> None:
    """Fill the connection's database with t0, t1, …; `stage` is a file for what is needed meanwhile, None for memory.

    Claim   T-UL: for every unit, the rows of t<i> that it owns (c, g, __h, __r) are a function of its own rows and the key.
    Needs   Keys of paths are UNIQUE NOT NULL, which is verified here; the key is independent of the data.
    Source  Cleaning is by value. A unit's owner row is found by equality with a verified key. The hash is of the unit's own
            canonical bytes. The rank is ROW_NUMBER over (PRF(key, unit, all columns, k), all columns, k) inside the unit.
    """
    work.run(f"ATTACH {text(':memory:' if stage is None else str(stage))} AS {STAGE}")
    for place, schema in enumerate(work.schema.tables):
        work.progress.step(f"reading {schema.table.name}")
        _read(work, place)
    rows_alone = {place for place, table in enumerate(work.schema.tables) if isinstance(table.table.unit, UnitRow)}
    verify_keys(work, lambda place: f"b{place}" if place in rows_alone else f"{STAGE}.s{place}")
    owners = _owners(work)
    for place, owned in owners.items():
        work.progress.step(f"ranking rows of {work.table(place).table.name}")
        most = stored_rows(work.table(place).table, work.schema.study)
        rank(work.connection, work.table(place), owned, work.memory, most)
    _verify_grids(work)
    work.progress.step("writing")
    work.run(f"DETACH {STAGE}")
    work.run("CHECKPOINT")


def _read(work: PreparationWork, place: int) -> None:
    """Read one source: public tables and rows that are their own unit at once as they stay, others to the stage."""
    import duckdb

    schema = work.table(place)
    source = sources.find(work.schema.study, schema.table, f"source{place}")
    sources.bind(work.connection, source)
    cleaned = reading.select_cleaned(work.connection, source, schema)
    try:
        _store(work, place, cleaned)
    except duckdb.Error as problem:
        if not _reread(work, place, source):
            raise reading.unreadable_refusal(work.connection, f"({cleaned})", source, schema) or problem from None


def _reread(work: PreparationWork, place: int, source: TableSource) -> bool:
    """Read a source again by another way, if there is one; return whether that went well."""
    import duckdb

    again = reading.reread(work.connection, source, work.table(place))
    if again is None:
        return False
    for name in (f"t{place}", f"b{place}", f"{STAGE}.s{place}"):  # made, and still empty
        work.run(f"DROP TABLE IF EXISTS {name}")
    try:
        _store(work, place, reading.select_cleaned(work.connection, again, work.table(place)))
    except duckdb.Error:
        return False
    return True


def _store(work: PreparationWork, place: int, cleaned: str) -> None:
    schema = work.table(place)
    if schema.table.public:
        _public(work, place, cleaned)
    elif isinstance(schema.table.unit, UnitRow):
        _rows(work, place, cleaned)
    else:
        work.run(f"CREATE TABLE {STAGE}.s{place} ({commas(reading.column_types(schema))})")
        work.run(f"INSERT INTO {STAGE}.s{place} {cleaned}")


def _public(work: PreparationWork, place: int, cleaned: str) -> None:
    """A public table: rows in the order of all columns, numbered."""
    schema = work.table(place)
    names = commas(reading.column_names(schema))
    work.run(f"CREATE TABLE t{place} ({commas(reading.column_types(schema))}, __p BIGINT)")
    work.run(f"INSERT INTO t{place} SELECT *, row_number() OVER (ORDER BY {names}) AS __p FROM ({cleaned}) ORDER BY __p")
    keys = commas(f"c{schema.index(name)}" for name in schema.table.key)
    if keys and work.run(f"SELECT 1 FROM t{place} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"):
        raise broken_rule(("tables", schema.table.name, "key"), "columns that no two rows agree in", schema.table.key)


def row_hash(names: str, key: str) -> str:
    """Return the hash of a row that is its own unit: of its contents, which do not move when another row leaves."""
    return f"hash(hash({int(key[:16], 16)}::UBIGINT, {names}))"


def _rows(work: PreparationWork, place: int, cleaned: str) -> None:
    """Rows that are their own unit: nothing to number, sort or rank. The number is the row's place, for equality only."""
    schema = work.table(place)
    names = reading.column_names(schema)
    grids = reading.grids(schema)
    kept = commas([*names, *(f"{expression} AS {name}" for name, expression in grids.items())])
    types = [*reading.column_types(schema), *(f"{name} INTEGER" for name in grids), "__h UBIGINT"]
    work.run(f"CREATE TABLE b{place} ({commas(types)})")
    work.run(f"INSERT INTO b{place} SELECT {kept}, {row_hash(commas(names), work.key)} AS __h FROM ({cleaned})")
    work.run(f"CREATE VIEW t{place} AS SELECT *, rowid AS __u, CAST(1 AS BIGINT) AS __r FROM b{place}")


def _verify_grids(work: PreparationWork) -> None:
    """Verify that every stored integer is on its grid: questions sum them as they are.

    Claim   A sum of n stored integers moves by at most steps for one row.
    Source  Every row is compared here, in the version that is then only read; `gridded` makes no other, unless it is wrong.
    """
    for place, schema in enumerate(work.schema.tables):
        for name, column in {} if schema.table.public else reading.grid_columns(schema).items():
            if work.run(f"SELECT 1 FROM t{place} WHERE {name} <> {clamp_to_steps(name, column)} LIMIT 1"):
                raise Failed("A stored number is not on its grid.")


def verify_keys(work: PreparationWork, relation: Callable[[int], str]) -> None:
    """Verify that every key through which units are found is UNIQUE NOT NULL; `relation` holds a table's cleaned rows.

    Else one row could give its owner another one's rows. An owner's error: no version is taken, no value is told.
    """
    for place, column in verified_keys(work.schema.study):
        _verify_key(work, place, column, relation(place))


def _verify_key(work: PreparationWork, place: int, column: str, table: str) -> None:
    schema = work.table(place)
    name = f"c{schema.index(column)}"
    where = ("tables", schema.table.name, "columns", column)
    if work.run(f"SELECT 1 FROM {table} WHERE {name} IS NULL LIMIT 1"):
        hint = (
            "every row needs one, as units are found through it; a value that does not fit the declared type counts as none"
        )
        raise broken_rule(where, "a key without NULL", Plain("a NULL"), hint)
    if work.run(f"SELECT 1 FROM {table} GROUP BY {name} HAVING count(*) > 1 LIMIT 1"):
        raise broken_rule(where, "a key that no two rows share", Plain("a repeated one"), "units are found through it")


def _owners(work: PreparationWork) -> dict[int, OwnedRows]:
    """Return, for each staged table, which relation (value, h, u) says whom the value of which column belongs to."""
    study = work.schema.study
    places = {table.name: place for place, table in enumerate(study.tables)}
    found: dict[int, OwnedRows] = {}
    roots = [place for place in owners_first(study) if isinstance(study.tables[place].unit, UnitColumn)]
    units = _number_units(work, roots) if roots else 0
    for place in owners_first(study):
        unit = study.tables[place].unit
        if isinstance(unit, UnitPath):
            other = places[unit.table]
            if isinstance(study.tables[other].unit, UnitRow):
                units = int(str(work.run(f"SELECT count(*) FROM b{other}")[0][0]))
            relation = _through(work, place, other, unit, found.get(other), only_root=roots == [other])
            found[place] = OwnedRows(f"{STAGE}.s{place}", f"c{work.table(place).index(unit.column)}", relation, units)
        elif isinstance(unit, UnitColumn):
            column = f"c{work.table(place).index(unit.column)}"
            found[place] = OwnedRows(f"{STAGE}.s{place}", column, f"{STAGE}.units", units)
    return found


def unit_hash(unit: str, tag: str, key: str) -> str:
    """Return the keyed hash of a unit's canonical bytes: 64 bits of MD5 of a secret, fixed-length key and the bytes.

    They are those of md5_number_lower, which takes four times as long.
    """
    return f"CAST(md5_number({text(key + tag)} || CAST({unit} AS VARCHAR)) >> 64 AS UBIGINT)"


def _number_units(work: PreparationWork, roots: list[int]) -> int:
    """Number all units of the study in the order of their hashes; return how many there are."""
    kind = unit_type(work.schema.tables)
    tag = "" if kind is None else TAGS[kind]
    columns = [
        f"SELECT c{index} AS value FROM {STAGE}.s{place} WHERE c{index} IS NOT NULL"
        for place in roots
        for index in (work.table(place).unit_index,)
    ]
    found = f"SELECT DISTINCT value FROM ({' UNION ALL '.join(columns)})"
    hashed = f"SELECT value, {unit_hash('value', tag, work.key)} AS h FROM ({found})"
    work.run(f"CREATE TABLE {STAGE}.found AS {hashed} ORDER BY h, value")
    work.run(f"CREATE TABLE {STAGE}.units AS SELECT value, h, rowid AS u FROM {STAGE}.found")
    work.run(f"DROP TABLE {STAGE}.found")
    return int(str(work.run(f"SELECT count(*) FROM {STAGE}.units")[0][0]))


def _through(
    work: PreparationWork, place: int, other: int, unit: UnitPath, owned: OwnedRows | None, *, only_root: bool
) -> str:
    """Make the relation (value, h, u) of a table whose unit is found through another one."""
    relation = f"{STAGE}.o{place}"
    if unit.key is None:
        if owned is None or only_root:
            return f"{STAGE}.units"  # everybody stands in the other table
        present = f"SELECT {owned.column} FROM {owned.rows}"
        work.run(f"CREATE TABLE {relation} AS SELECT * FROM {owned.owners} WHERE value IN ({present})")
        return relation
    key = f"c{work.table(other).index(unit.key)}"
    if owned is None:  # every row of the other table is its own unit
        work.run(f"CREATE TABLE {relation} AS SELECT {key} AS value, __h AS h, rowid AS u FROM b{other}")
    else:
        joined = f"{owned.rows} AS s JOIN {owned.owners} AS o ON s.{owned.column} = o.value"
        work.run(f"CREATE TABLE {relation} AS SELECT s.{key} AS value, o.h, o.u FROM {joined}")
    return relation


# ---- views -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Views:
    """Statements that make the views on an empty database, and the files that they read."""

    statements: tuple[str, ...]
    allowed: tuple[str, ...]


def write_frames(schema: Schema, folder: Path) -> None:
    """Write the tables given from Python once, for the worker to read."""
    folder.mkdir(mode=0o700, exist_ok=True)
    connection = look()
    try:
        for place, table in enumerate(schema.tables):
            if sources.is_streamed(table.table):
                source = sources.find(schema.study, table.table, f"source{place}")
                sources.bind(connection, source)
                file = text(str(_frame_file(folder, place)))
                names = commas(identifier(field.name) for field in table.fields)  # others are never read
                connection.execute(f"COPY (SELECT {names} FROM {source.scan}) TO {file} (FORMAT parquet)").fetchall()
    finally:
        connection.close()


def make_views(schema: Schema, key: str, frames: Path) -> Views:
    """Return the views t0, t1, … of a study that is not prepared."""
    statements: list[str] = []
    allowed: list[str] = []
    connection = look()
    try:
        for place, table in enumerate(schema.tables):
            source = view_source(schema, table, place, frames)
            sources.bind(connection, source)
            if source.kind == "database":
                statements.append(sources.attach(source))
            allowed += [str(file) for file in source.files]
            statements.append(
                f"CREATE VIEW s{place} AS "
                + reading.select_cleaned(connection, source, table, on_grids=not table.table.public)
            )
    finally:
        connection.close()
    for place, table in enumerate(schema.tables):
        if table.table.public:
            names = commas(reading.column_names(table))
            statements.append(f"CREATE VIEW t{place} AS SELECT *, row_number() OVER (ORDER BY {names}) AS __p FROM s{place}")
    for place in owners_first(schema.study):
        statements += _private(schema, place, key)
    return Views(tuple(statements), tuple(allowed))


def _private(schema: Schema, place: int, key: str) -> list[str]:
    table = schema.tables[place]
    columns = reading.column_names(table)
    grids = {name: clamp_to_steps(name, column) for name, column in reading.grid_columns(table).items()}
    names = commas(columns)
    owned = f"CREATE VIEW w{place} AS {_select_owned(schema, place, key, names)}"
    stored = commas([*columns, *(f"{expression} AS {name}" for name, expression in grids.items())])
    if isinstance(table.table.unit, UnitRow):
        return [owned, f"CREATE VIEW t{place} AS SELECT {stored}, u AS __u, h AS __h, CAST(1 AS BIGINT) AS __r FROM w{place}"]
    ranked = rank_in_one_sort(
        f"(SELECT *, {pseudorandom(names)} AS p FROM w{place})", names, commas([*columns, *grids, "u", "h"])
    )
    only = " WHERE r = 1" if table.table.unique else ""
    return [owned, f"CREATE VIEW t{place} AS SELECT {stored}, u AS __u, h AS __h, r AS __r FROM ({ranked}){only}"]


def _select_owned(schema: Schema, place: int, key: str, names: str) -> str:
    """The rows with their unit u and its hash h."""
    table = schema.tables[place]
    unit = table.table.unit
    if unit is None or isinstance(unit, UnitRow):
        return f"SELECT *, {row_hash(names, key)} AS h, row_number() OVER () AS u FROM s{place}"
    column = f"c{table.index(unit.column)}"
    if not isinstance(unit, UnitPath):
        kind = unit_type(schema.tables)
        tag = "" if kind is None else TAGS[kind]
        units = f"SELECT DISTINCT {column} AS value FROM s{place}"
        owners = (
            f"SELECT value, {unit_hash('value', tag, key)} AS h FROM ({units})"  # once a unit: it takes longer than a join
        )
        return f"SELECT s.*, o.h, o.value AS u FROM s{place} AS s JOIN ({owners}) AS o ON s.{column} = o.value"
    other = next(number for number, one in enumerate(schema.tables) if one.table.name == unit.table)
    if unit.key is None:
        owners = f"SELECT DISTINCT u AS value, h, u FROM w{other}"
    else:
        owners = f"SELECT c{schema.tables[other].index(unit.key)} AS value, h, u FROM w{other}"
    return f"SELECT s.*, o.h, o.u FROM s{place} AS s JOIN ({owners}) AS o ON s.{column} = o.value"


def view_source(schema: Schema, table: TableSchema, place: int, frames: Path) -> TableSource:
    """Return what the view of a table reads: its source, or the file of a frame or stream."""
    if sources.is_streamed(table.table):
        return sources.from_path(str(_frame_file(frames, place)), frames, f"source{place}")
    return sources.find(schema.study, table.table, f"source{place}")


def _frame_file(folder: Path, place: int) -> Path:
    return folder / f"t{place}.parquet"
