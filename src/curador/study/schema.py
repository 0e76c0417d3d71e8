"""The study together with what is visible of its files without reading a row: every column and its type.

Made by an engine (`engines.duckdb.schema.describe(study)`), used by query and plan. No row, no statistic, no count is in
it, but of public tables, whose contents are public: their number of rows, the largest number of rows that share a key,
and, when asked for, the values of a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from curador.study.model import Column, Study, Table, UnitPath
    from curador.study.values import Type, Value


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
        return next((place for place, field in enumerate(self.fields) if field.name == name), None)

    @property
    def unit_index(self) -> int | None:
        """The place of the column that holds the unit itself; None for unit = row, longer key paths, public tables."""
        unit = self.table.unit
        column = getattr(unit, "column", None)
        path_to_key = getattr(unit, "key", None) is not None
        return None if column is None or path_to_key else self.index(column)

    @property
    def path(self) -> UnitPath | None:
        """The key path, where the unit is found through another table's key."""
        unit = self.table.unit
        return unit if unit is not None and getattr(unit, "key", None) is not None else None  # type: ignore[return-value]


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


@dataclass(frozen=True, slots=True)
class Schema:
    """What questions are read and planned against."""

    study: Study
    tables: tuple[TableSchema, ...]
    public: PublicFacts

    def table(self, name: str) -> TableSchema | None:
        """Return the table of this exact name, else the only one of this name in other letter case."""
        exact = [table for table in self.tables if table.table.name == name]
        near = [table for table in self.tables if table.table.name.lower() == name.lower()]
        found = exact or near
        return found[0] if len(found) == 1 else None
