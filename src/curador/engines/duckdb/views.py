# ruff: noqa: S608 -- names and texts pass through `quoting`, the rest is ours
"""`prepare = "never"`: the names of a prepared version as views over the sources, computed in every question.

The rules are those of a preparation: the same cleaning, the same hash of the unit, the same rank by the same formula; `__u`
is the canonical unit itself. Limits: every question reads, cleans, sorts and ranks the sources again; the owner must not
change them while a study is open (opening it notices, a question does not); keys are verified when a version is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from curador.engines.duckdb import reading, sources
from curador.engines.duckdb.clean import bounded
from curador.engines.duckdb.connection import look
from curador.engines.duckdb.prepare import row_hash, unit_hash
from curador.engines.duckdb.quoting import identifier, listed, text
from curador.engines.duckdb.ranking import in_one_sort, pseudorandom
from curador.engines.duckdb.units import TAGS, owners_first, unit_type
from curador.study.model import UnitPath, UnitRow

if TYPE_CHECKING:
    from pathlib import Path

    from curador.engines.duckdb.sources import Source
    from curador.study.schema import Schema, TableSchema


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
            if table.table.source == sources.FRAME:
                source = sources.find(schema.study, table.table, f"source{place}")
                sources.bind(connection, source)
                file = text(str(_frame_file(folder, place)))
                names = listed(identifier(field.name) for field in table.fields)  # others are never read
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
                f"CREATE VIEW s{place} AS {reading.cleaned(connection, source, table, on_grids=not table.table.public)}"
            )
    finally:
        connection.close()
    for place, table in enumerate(schema.tables):
        if table.table.public:
            names = listed(reading.column_names(table))
            statements.append(f"CREATE VIEW t{place} AS SELECT *, row_number() OVER (ORDER BY {names}) AS __p FROM s{place}")
    for place in owners_first(schema.study):
        statements += _private(schema, place, key)
    return Views(tuple(statements), tuple(allowed))


def _private(schema: Schema, place: int, key: str) -> list[str]:
    table = schema.tables[place]
    columns = reading.column_names(table)
    grids = {name: bounded(name, column) for name, column in reading.grid_columns(table).items()}
    names = listed(columns)
    owned = f"CREATE VIEW w{place} AS {_owned(schema, place, key, names)}"
    stored = listed([*columns, *(f"{expression} AS {name}" for name, expression in grids.items())])
    if isinstance(table.table.unit, UnitRow):
        return [owned, f"CREATE VIEW t{place} AS SELECT {stored}, u AS __u, h AS __h, CAST(1 AS BIGINT) AS __r FROM w{place}"]
    ranked = in_one_sort(f"(SELECT *, {pseudorandom(names)} AS p FROM w{place})", names, listed([*columns, *grids, "u", "h"]))
    only = " WHERE r = 1" if table.table.unique else ""
    return [owned, f"CREATE VIEW t{place} AS SELECT {stored}, u AS __u, h AS __h, r AS __r FROM ({ranked}){only}"]


def _owned(schema: Schema, place: int, key: str, names: str) -> str:
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


def view_source(schema: Schema, table: TableSchema, place: int, frames: Path) -> Source:
    """Return what the view of a table reads: its source, or the file of a frame."""
    if table.table.source == sources.FRAME:
        return sources.from_path(str(_frame_file(frames, place)), frames, f"source{place}")
    return sources.find(schema.study, table.table, f"source{place}")


def _frame_file(folder: Path, place: int) -> Path:
    return folder / f"t{place}.parquet"
