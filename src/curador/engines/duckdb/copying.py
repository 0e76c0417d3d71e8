# ruff: noqa: S608 -- names and texts pass through `quoting`, the rest is ours

"""A copy of a study's private rows, and worlds that differ from it in one unit: for an owner's own audit, and nobody else.

    sources ─► base.duckdb: raw columns, as their files have them ─► owner of every row ─► worlds with one less or more

The copy has the columns and physical types that the sources have, so cleaning, grids, ranks and caps run on it as on them.
Not in it is how lines of a text become fields: a copied table is one of a DuckDB file. Owners are found as a preparation
finds them: by the cleaned unit, or by way of a key.

Everything here is written to a folder that the caller made for its owner alone, and that the caller removes.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from curador.engines.duckdb import reading, sources
from curador.engines.duckdb.connection import connect, limits, private_files
from curador.engines.duckdb.schema import describe, owners_first, verified_keys
from curador.engines.duckdb.spelling import commas, identifier, text
from curador.engines.duckdb.versions import prepared_folder, write_private
from curador.errors import Failed
from curador.study.formats import UTF_8
from curador.study.model import Column, Field, UnitColumn, UnitPath, UnitRow
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from curador.study.model import Schema, Study, Table, TableSchema

CANARY = "curador_canary"
"""The column by which made-up units are counted; no real row has a value there."""

_ROW = "curador_row"
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class CanaryRows:
    """Rows of made-up units in one table, each as (unit, cell); and how many cells there are, used or not."""

    table: str
    cells: int
    rows: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """The private rows of a study in one file, and who owns each.

    schema   of the study with the copy in the place of its sources
    key      of ranks and hashes: one for all worlds, as they are histories of one study
    """

    schema: Schema
    folder: Path
    key: bytes

    def units(self, count: int) -> list[str]:
        """Return so many units, each as likely as another; fewer where there are fewer."""
        salt = text(secrets.token_hex(16))
        with self._opened() as connection:
            found = connection.execute(f"SELECT unit FROM weights ORDER BY md5({salt} || unit), unit LIMIT {count:d}")
            return [str(row[0]) for row in found.fetchall()]

    def heaviest(self) -> str | None:
        """Return the unit that has most rows, in all tables together; None where nobody has any."""
        with self._opened() as connection:
            found = connection.execute("SELECT unit FROM weights ORDER BY many DESC, unit LIMIT 1").fetchone()
        return None if found is None else str(found[0])

    def world(
        self, name: str, *, without: str | None = None, stranger: bool = False, canaries: CanaryRows | None = None
    ) -> Study:
        """Write a world and return its study: without a unit, with a made-up one beyond all bounds, or with canaries.

        A world lies in a folder of its own, beside its ledger and what is prepared for it.
        """
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        file = folder / "rows.duckdb"
        with self._opened(file) as connection:
            for place in owners_first(self.schema.study):
                kept = "" if without is None else f"WHERE rowid NOT IN ({_owned(place, without)})"
                connection.execute(f"CREATE TABLE t{place} AS SELECT * FROM base.t{place} {kept} ORDER BY rowid").fetchall()
            if stranger:
                _add_stranger(connection, self.schema)
            if canaries is not None:
                _add_canaries(connection, self.schema, canaries)
        study = _placed(self.schema.study, file)
        if canaries is not None:
            study = _with_canary_column(study, canaries.table, canaries.cells)
        study = replace(study, ledger=folder / "ledger")
        prepared = prepared_folder(study)
        prepared.mkdir(mode=0o700)
        write_private(prepared / "key", self.key, new=True)
        return study

    @contextlib.contextmanager
    def _opened(self, file: Path | None = None) -> Generator[duckdb.DuckDBPyConnection]:
        """Open a new file, or memory, with the copy attached to it for reading."""
        with private_files():
            settings = limits(self.schema.study.engine, self.folder / "spill")
            connection = connect(":memory:" if file is None else str(file), settings)
            try:
                connection.execute(f"ATTACH {text(str(self.folder / 'base.duckdb'))} AS base (READ_ONLY)").fetchall()
                if file is None:
                    connection.execute("USE base").fetchall()
                yield connection
            finally:
                connection.close()


def copy_rows(study: Study, folder: Path) -> CopiedRows:
    """Read every private table once, into a file of a folder that is the owner's alone."""
    declared = describe(study)
    file = folder / "base.duckdb"
    with private_files():
        connection = connect(str(file), limits(study.engine, folder / "spill"))
        try:
            for place in owners_first(study):
                _copy(connection, place, study, declared.tables[place])
            placed = _placed(study, file)
            _find_owners(connection, placed, declared)
        finally:
            connection.close()
    schema = describe(placed)
    if [table.fields for table in schema.tables] != [table.fields for table in declared.tables]:
        raise Failed("a copy must have the columns of its sources")
    return CopiedRows(schema, folder, secrets.token_bytes(_KEY_BYTES))


def _placed(study: Study, file: Path) -> Study:
    """Return the study with its private tables in a file."""
    tables = tuple(
        table if table.public else replace(table, source=f"{file}#t{place}", format=_of_values(table))
        for place, table in enumerate(study.tables)
    )
    public = {table.name: study.frames[table.name] for table in tables if table.name in study.frames and table.public}
    frames = MappingProxyType(public)
    return replace(study, tables=tables, server=None, ledger=file.with_name("ledger"), frames=frames)


def _of_values(table: Table) -> Any:
    """Return what a table's format says of values: bytes and lines of its source were read already."""
    how = table.format
    return None if how is None else replace(how, separator=None, encoding=UTF_8, newlines=False)


def _copy(connection: duckdb.DuckDBPyConnection, place: int, study: Study, schema: TableSchema) -> None:
    import duckdb

    source = sources.find(study, schema.table, f"source{place}")
    sources.bind(connection, source)
    try:
        connection.execute(f"CREATE TABLE t{place} AS SELECT * FROM {source.scan}").fetchall()
    except duckdb.Error:
        again = reading.reread(connection, source, schema)
        if again is None:
            raise
        connection.execute(f"DROP TABLE IF EXISTS t{place}").fetchall()
        connection.execute(f"CREATE TABLE t{place} AS SELECT * FROM {again.scan}").fetchall()


# ---- who owns a row --------------------------------------------------------------------------------------------------------


def _find_owners(connection: duckdb.DuckDBPyConnection, study: Study, schema: Schema) -> None:
    """Write for every row whose it is, and for every unit how many rows it has.

    w0, w1, …   (place, unit, and the keys k0, k1 … that other tables' units are found through)
    """
    places = {table.name: place for place, table in enumerate(study.tables)}
    keys = {place: [name for own, name in verified_keys(study) if own == place] for place in places.values()}
    for place in owners_first(study):
        unit, held = study.tables[place].unit, keys[place]
        owner = [] if isinstance(unit, UnitRow) or unit is None else [unit.column]
        cleaned = _cleaned(connection, place, schema.tables[place], study.tables[place], [*owner, *held])
        first = 1 + len(owner)
        more = "".join(f", CAST(c{first + at} AS VARCHAR) AS k{at}" for at in range(len(held)))
        if isinstance(unit, UnitPath) and unit.key is not None:
            other = places[unit.table]
            key = f"k{keys[other].index(unit.key)}"
            found = f"SELECT s.c0 AS place, o.unit{more} FROM ({cleaned}) AS s "
            found += f"LEFT JOIN w{other} AS o ON CAST(s.c1 AS VARCHAR) = o.{key}"
        elif isinstance(unit, UnitRow):
            found = f"SELECT c0 AS place, 'row {place}: ' || CAST(c0 AS VARCHAR) AS unit{more} FROM ({cleaned})"
        else:
            found = f"SELECT c0 AS place, 'unit: ' || CAST(c1 AS VARCHAR) AS unit{more} FROM ({cleaned})"
        connection.execute(f"CREATE TABLE w{place} AS {found}").fetchall()
    every = " UNION ALL ".join(f"SELECT unit FROM w{place}" for place in owners_first(study))
    counted = f"SELECT unit, count(*) AS many FROM ({every}) WHERE unit IS NOT NULL GROUP BY unit"
    connection.execute(f"CREATE TABLE weights AS {counted}").fetchall()


def _cleaned(
    connection: duckdb.DuckDBPyConnection, place: int, schema: TableSchema, table: Table, names: Sequence[str]
) -> str:
    """Return the SELECT of rows' places and of some cleaned columns, c0, c1, …, of a copied table."""
    by_name = {one.name: one for one in schema.fields}
    chosen = (Field(_ROW, Type.INTEGER, nullable=False), *(by_name[name] for name in names))
    scan = f"(SELECT *, rowid AS {_ROW} FROM t{place})"
    source = sources.TableSource(("source",), "frame", f"t{place}", (), scan)
    return reading.select_cleaned(connection, source, replace(schema, table=table, fields=chosen))


def _owned(place: int, unit: str) -> str:
    return f"SELECT place FROM base.w{place} WHERE unit = {text(unit)}"


# ---- made-up units ---------------------------------------------------------------------------------------------------------


_BEYOND = ("inf", "-inf", "nan", "1e300", "-1e300", "9223372036854775807", "-9223372036854775808")
_TIMES = ("9999-12-31", "0001-01-01", "infinity")
_MOST_ROWS = 400


def _add_stranger(connection: duckdb.DuckDBPyConnection, schema: Schema) -> None:
    """Add a unit whom nobody knows: more rows than any cap, in every declared group, with values beyond every bound."""
    study = schema.study
    places = {table.name: place for place, table in enumerate(study.tables)}
    keys = {place: {name for own, name in verified_keys(study) if own == place} for place in places.values()}
    (unit,) = _new_units(connection, schema, 1)
    made: dict[tuple[int, str], list[str]] = {}
    for place in owners_first(study):
        table = schema.tables[place]
        own, rows = table.table.unit, _rows_of_stranger(table.table)
        columns: dict[str, list[str | None]] = {one.name: _hostile_values(one, rows) for one in table.fields}
        for name in keys[place]:
            made[place, name] = _new_keys(connection, schema, place, name, rows)
            columns[name] = list(made[place, name])
        if isinstance(own, UnitPath) and own.key is not None:
            led = made[places[own.table], own.key]
            columns[own.column] = [led[row % len(led)] for row in range(rows)]
        elif isinstance(own, UnitColumn | UnitPath):
            columns[own.column] = [unit] * rows
        _insert(connection, place, columns)


def _rows_of_stranger(table: Table) -> int:
    if isinstance(table.unit, UnitRow):
        return 1
    return min(_MOST_ROWS, 4 * (16 if table.caps is None else table.caps.rows) + 3)


def _new_units(connection: duckdb.DuckDBPyConnection, schema: Schema, count: int) -> list[str]:
    """Return names of units that no row has."""
    roots = [place for place, table in enumerate(schema.study.tables) if isinstance(table.unit, UnitColumn)]
    if not roots:
        return [""] * count  # every row is a unit of its own
    known = "SELECT unit FROM base.weights WHERE unit IN"
    columns = [(place, schema.study.tables[place].unit.column) for place in roots]  # type: ignore[union-attr]
    physical = min((_physical(connection, place)[name] for place, name in columns), key=_bits)
    return _new_names(connection, _name_type(schema, *columns[0], physical), known, "unit: ", count)


def _new_keys(connection: duckdb.DuckDBPyConnection, schema: Schema, place: int, name: str, count: int) -> list[str]:
    """Return values of a key that no row has."""
    column = [own for at, own in verified_keys(schema.study) if at == place].index(name)
    known = f"SELECT k{column} FROM base.w{place} WHERE k{column} IN"
    physical = _physical(connection, place)[name]
    return _new_names(connection, _name_type(schema, place, name, physical), known, "", count)


def _name_type(schema: Schema, place: int, name: str, physical: str) -> str:
    """Return how names are written: as whole numbers where texts are read as such."""
    field = next(one for one in schema.tables[place].fields if one.name == name)
    return "BIGINT" if physical == "VARCHAR" and field.type is Type.INTEGER else physical


def _new_names(connection: duckdb.DuckDBPyConnection, physical: str, known: str, before: str, count: int) -> list[str]:
    bits = _bits(physical)
    top, start = 1 << bits, int.from_bytes(secrets.token_bytes(8))
    drawn = [(top >> 1) + (start + place) % (top >> 1) for place in range(3 * count)]
    names = list(dict.fromkeys(_name_of(one, physical) for one in drawn))
    taken = {row[0] for row in connection.execute(f"{known} ({commas(text(before + one) for one in names)})").fetchall()}
    free = [one for one in names if before + one not in taken]
    if len(free) < count:
        raise Failed("no names are left for made-up units in the column that names units")
    return free[:count]


def _name_of(number: int, physical: str) -> str:
    if physical == "UUID":
        return f"{number:032x}"
    return str(number) if "INT" in physical else f"made up {number}"


def _bits(physical: str) -> int:
    """How large a number a column of names can hold, in bits, its sign apart."""
    widths = {"TINYINT": 7, "UTINYINT": 8, "SMALLINT": 15, "USMALLINT": 16, "INTEGER": 31, "UINTEGER": 32}
    return widths.get(physical, 56)


def _physical(connection: duckdb.DuckDBPyConnection, place: int) -> dict[str, str]:
    return {str(name): str(kind) for name, kind, *_ in connection.execute(f"DESCRIBE t{place}").fetchall()}


def _hostile_values(field: Field, rows: int) -> list[str | None]:
    """Return a column of a stranger's rows: every declared value, what is beyond bounds, and nothing at all."""
    declared = field.declared
    values: list[str | None] = []
    if declared is not None and declared.values is not None:
        values = [*map(str, declared.values[: _MOST_ROWS // 2]), "made up", None]
    elif declared is not None and declared.bounds is not None:
        low, high = (str(bound) if field.type.temporal else f"{float(bound):.17g}" for bound in declared.bounds)  # type: ignore[arg-type]
        values = [high, *(_TIMES if field.type.temporal else _BEYOND), low, None]
    elif field.type is Type.BOOLEAN:
        values = ["true", "false", None]
    else:
        values = [*(str(place) for place in range(5)), *(f"made up {place}" for place in range(5)), *_TIMES, None]
    return [values[row % len(values)] for row in range(rows)]


def _insert(connection: duckdb.DuckDBPyConnection, place: int, columns: Mapping[str, Sequence[str | None]]) -> None:
    """Insert rows that are written as texts, each value as its column's type reads it, NULL where that cannot."""
    import pyarrow as pa

    types = _physical(connection, place)
    names = [name for name in columns if name in types]
    made = pa.table({f"v{at}": pa.array(columns[name], pa.string()) for at, name in enumerate(names)})
    casts = commas(f"TRY_CAST(v{at} AS {types[name]})" for at, name in enumerate(names))
    connection.register("made", made)
    into = commas(identifier(name) for name in names)
    connection.execute(f"INSERT INTO t{place} ({into}) SELECT {casts} FROM made").fetchall()
    connection.unregister("made")


def _add_canaries(connection: duckdb.DuckDBPyConnection, schema: Schema, canaries: CanaryRows) -> None:
    """Give a table the column of canaries, and add those that are in."""
    study = schema.study
    place = next(at for at, table in enumerate(study.tables) if table.name == canaries.table)
    connection.execute(f"ALTER TABLE t{place} ADD COLUMN {CANARY} BIGINT").fetchall()
    unit = study.tables[place].unit
    columns: dict[str, list[str | None]] = {CANARY: [str(cell) for _, cell in canaries.rows]}
    many = max(one for one, _ in canaries.rows) + 1
    for name in {name for own, name in verified_keys(study) if own == place}:
        columns[name] = list(_new_keys(connection, schema, place, name, len(canaries.rows)))
    if isinstance(unit, UnitColumn):
        names = _new_units(connection, schema, many)
        columns[unit.column] = [names[one] for one, _ in canaries.rows]
    _insert(connection, place, columns)


def _with_canary_column(study: Study, name: str, cells: int) -> Study:
    added = Column(CANARY, Type.INTEGER, values=tuple(range(cells)), nullable=True)
    tables = tuple(replace(table, columns=(*table.columns, added)) if table.name == name else table for table in study.tables)
    return replace(study, tables=tables)
