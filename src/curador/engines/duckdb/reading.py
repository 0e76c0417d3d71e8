# ruff: noqa: S608 -- names pass through `quoting`, the rest is ours
"""A source as a SELECT of its cleaned columns c0, c1, …: the one way in which rows enter, prepared or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.engines.duckdb import sources
from curador.engines.duckdb.clean import cleaning, gridded
from curador.engines.duckdb.physical import KEPT_AS
from curador.engines.duckdb.quoting import identifier, listed
from curador.plan.grid import column_grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from curador.engines.duckdb.clean import Cleaning
    from curador.engines.duckdb.sources import Source
    from curador.study.model import Column
    from curador.study.schema import TableSchema


def cleaned(connection: duckdb.DuckDBPyConnection, source: Source, schema: TableSchema, *, on_grids: bool = False) -> str:
    """Return the SELECT that reads a bound source as c0, c1, … in the order of the schema's fields.

    on_grids  with the grid columns, each clamped to its range whatever the file's statistics say
    """
    physical = {column.name: column.physical for column in sources.columns(connection, source)}
    owner = getattr(schema.table.unit, "column", None)
    steps = [
        cleaning(
            _column(source, field.name, physical[field.name]),
            physical[field.name],
            field.type,
            f"r{place}",
            field.declared,
            naming=field.name == owner,
        )
        for place, field in enumerate(schema.fields)
    ]
    raw = listed(f"{step.raw} AS r{place}" for place, step in enumerate(steps))
    kept = listed(
        f"CAST({step.kept} AS {KEPT_AS[field.type]}) AS c{place}"
        for place, (step, field) in enumerate(zip(steps, schema.fields, strict=True))
    )
    if on_grids:
        columns = grid_columns(schema)
        kept = listed([kept, *(f"{_placed(steps, name, column)} AS {name}" for name, column in columns.items())])
    return f"SELECT {kept} FROM (SELECT {raw} FROM {source.scan})"


def column_names(schema: TableSchema) -> list[str]:
    """Return c0, c1, …."""
    return [f"c{place}" for place in range(len(schema.fields))]


def column_types(schema: TableSchema) -> list[str]:
    """Return the columns as CREATE TABLE declares them: no collation, no constraint."""
    return [f"c{place} {KEPT_AS[field.type]}" for place, field in enumerate(schema.fields)]


def grid_columns(schema: TableSchema) -> dict[str, Column]:
    """Return the bounded numbers, by the name g<place> of their place on a grid."""
    declared = ((f"g{place}", field.declared) for place, field in enumerate(schema.fields))
    return {name: column for name, column in declared if column is not None and column_grid(column) is not None}


def grids(schema: TableSchema) -> dict[str, str]:
    """Return the grid columns of bounded numbers: name g<place> to the expression over c<place>."""
    return {name: gridded(f"c{name[1:]}", column) for name, column in grid_columns(schema).items()}


def _placed(steps: Sequence[Cleaning], name: str, column: Column) -> str:
    place = int(name[1:])
    return gridded(f"r{place}" if column.values is None else f"({steps[place].kept})", column)


def _column(source: Source, name: str, physical: str) -> str:
    """A column of the source. Texts of a DuckDB file may carry a collation; the way through bytes changes nothing else."""
    if source.kind == "database" and physical == "VARCHAR":
        return f"decode(encode({identifier(name)}))"
    return identifier(name)
