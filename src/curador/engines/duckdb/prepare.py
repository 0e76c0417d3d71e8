# ruff: noqa: S608 -- names and texts pass through `quoting`, the rest is ours
"""Prepares a data version: cleaned columns, grids, and for every private row its unit, the unit's hash and a rank.

    sources ─► stage (cleaned, once) ─► keys verified ─► units numbered ─► owners ─► t0, t1, … clustered by unit

`__u` numbers units for equality only. `__h` is a keyed hash of the unit's canonical bytes, `__r` the row's place in a random
order of its unit's rows: both are functions of the unit's own rows and of the study's key, of nothing else. Rows are ranked
in several passes over ranges of units, so that memory holds a part of the table, whatever its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from curador.engines.duckdb import reading, sources, unreadable
from curador.engines.duckdb.clean import bounded
from curador.engines.duckdb.quoting import listed, text
from curador.engines.duckdb.ranking import Owned, rank
from curador.engines.duckdb.units import TAGS, owners_first, unit_type, verified_keys
from curador.errors import Failed
from curador.plan.work import stored_rows
from curador.study.model import UnitColumn, UnitPath, UnitRow
from curador.study.rules import broken
from curador.study.spelling import Plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import duckdb

    from curador.engines.duckdb.progress import Progress
    from curador.engines.duckdb.sources import Source
    from curador.study.schema import Schema, TableSchema

STAGE = "stage"


@dataclass(frozen=True, slots=True)
class Work:
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


def prepare(work: Work, stage: Path | None) -> None:
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
    rows_alone = {place for place, one in enumerate(work.schema.tables) if isinstance(one.table.unit, UnitRow)}
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


def _read(work: Work, place: int) -> None:
    """Read one source: public tables and rows that are their own unit at once as they stay, others to the stage."""
    import duckdb

    schema = work.table(place)
    source = sources.find(work.schema.study, schema.table, f"source{place}")
    sources.bind(work.connection, source)
    cleaned = reading.cleaned(work.connection, source, schema)
    try:
        _store(work, place, cleaned)
    except duckdb.Error as problem:
        if not _reread(work, place, source):
            raise unreadable.refusal(work.connection, f"({cleaned})", source, schema) or problem from None


def _reread(work: Work, place: int, source: Source) -> bool:
    """Read a source again by another way, if there is one; return whether that went well."""
    import duckdb

    again = unreadable.reread(work.connection, source, work.table(place))
    if again is None:
        return False
    for name in (f"t{place}", f"b{place}", f"{STAGE}.s{place}"):  # made, and still empty
        work.run(f"DROP TABLE IF EXISTS {name}")
    try:
        _store(work, place, reading.cleaned(work.connection, again, work.table(place)))
    except duckdb.Error:
        return False
    return True


def _store(work: Work, place: int, cleaned: str) -> None:
    schema = work.table(place)
    if schema.table.public:
        _public(work, place, cleaned)
    elif isinstance(schema.table.unit, UnitRow):
        _rows(work, place, cleaned)
    else:
        work.run(f"CREATE TABLE {STAGE}.s{place} ({listed(reading.column_types(schema))})")
        work.run(f"INSERT INTO {STAGE}.s{place} {cleaned}")


def _public(work: Work, place: int, cleaned: str) -> None:
    """A public table: rows in the order of all columns, numbered."""
    schema = work.table(place)
    names = listed(reading.column_names(schema))
    work.run(f"CREATE TABLE t{place} ({listed(reading.column_types(schema))}, __p BIGINT)")
    work.run(f"INSERT INTO t{place} SELECT *, row_number() OVER (ORDER BY {names}) AS __p FROM ({cleaned}) ORDER BY __p")
    keys = listed(f"c{schema.index(name)}" for name in schema.table.key)
    if keys and work.run(f"SELECT 1 FROM t{place} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"):
        raise broken(("tables", schema.table.name, "key"), "columns that no two rows agree in", schema.table.key)


def row_hash(names: str, key: str) -> str:
    """Return the hash of a row that is its own unit: of its contents, which do not move when another row leaves."""
    return f"hash(hash({int(key[:16], 16)}::UBIGINT, {names}))"


def _rows(work: Work, place: int, cleaned: str) -> None:
    """Rows that are their own unit: nothing to number, sort or rank. The number is the row's place, for equality only."""
    schema = work.table(place)
    names = reading.column_names(schema)
    grids = reading.grids(schema)
    kept = listed([*names, *(f"{expression} AS {name}" for name, expression in grids.items())])
    types = [*reading.column_types(schema), *(f"{name} INTEGER" for name in grids), "__h UBIGINT"]
    work.run(f"CREATE TABLE b{place} ({listed(types)})")
    work.run(f"INSERT INTO b{place} SELECT {kept}, {row_hash(listed(names), work.key)} AS __h FROM ({cleaned})")
    work.run(f"CREATE VIEW t{place} AS SELECT *, rowid AS __u, CAST(1 AS BIGINT) AS __r FROM b{place}")


def _verify_grids(work: Work) -> None:
    """Verify that every stored integer is on its grid: questions sum them as they are.

    Claim   A sum of n stored integers moves by at most steps for one row.
    Source  Every row is compared here, in the version that is then only read; `gridded` makes no other, unless it is wrong.
    """
    for place, schema in enumerate(work.schema.tables):
        for name, column in {} if schema.table.public else reading.grid_columns(schema).items():
            if work.run(f"SELECT 1 FROM t{place} WHERE {name} <> {bounded(name, column)} LIMIT 1"):
                raise Failed("A stored number is not on its grid.")


def verify_keys(work: Work, relation: Callable[[int], str]) -> None:
    """Verify that every key through which units are found is UNIQUE NOT NULL; `relation` holds a table's cleaned rows.

    Else one row could give its owner another one's rows. An owner's error: no version is taken, no value is told.
    """
    for place, column in verified_keys(work.schema.study):
        _verify_key(work, place, column, relation(place))


def _verify_key(work: Work, place: int, column: str, table: str) -> None:
    schema = work.table(place)
    name = f"c{schema.index(column)}"
    where = ("tables", schema.table.name, "columns", column)
    if work.run(f"SELECT 1 FROM {table} WHERE {name} IS NULL LIMIT 1"):
        hint = (
            "every row needs one, as units are found through it; a value that does not fit the declared type counts as none"
        )
        raise broken(where, "a key without NULL", Plain("a NULL"), hint)
    if work.run(f"SELECT 1 FROM {table} GROUP BY {name} HAVING count(*) > 1 LIMIT 1"):
        raise broken(where, "a key that no two rows share", Plain("a repeated one"), "units are found through it")


def _owners(work: Work) -> dict[int, Owned]:
    """Return, for each staged table, which relation (value, h, u) says whom the value of which column belongs to."""
    study = work.schema.study
    places = {table.name: place for place, table in enumerate(study.tables)}
    found: dict[int, Owned] = {}
    roots = [place for place in owners_first(study) if isinstance(study.tables[place].unit, UnitColumn)]
    units = _number_units(work, roots) if roots else 0
    for place in owners_first(study):
        unit = study.tables[place].unit
        if isinstance(unit, UnitPath):
            other = places[unit.table]
            if isinstance(study.tables[other].unit, UnitRow):
                units = int(str(work.run(f"SELECT count(*) FROM b{other}")[0][0]))
            relation = _through(work, place, other, unit, found.get(other), only_root=roots == [other])
            found[place] = Owned(f"{STAGE}.s{place}", f"c{work.table(place).index(unit.column)}", relation, units)
        elif isinstance(unit, UnitColumn):
            column = f"c{work.table(place).index(unit.column)}"
            found[place] = Owned(f"{STAGE}.s{place}", column, f"{STAGE}.units", units)
    return found


def unit_hash(unit: str, tag: str, key: str) -> str:
    """Return the keyed hash of a unit's canonical bytes: 64 bits of MD5 of a secret, fixed-length key and the bytes."""
    return f"md5_number_lower({text(key + tag)} || CAST({unit} AS VARCHAR))"


def _number_units(work: Work, roots: list[int]) -> int:
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


def _through(work: Work, place: int, other: int, unit: UnitPath, owned: Owned | None, *, only_root: bool) -> str:
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
