"""What was found privately and is in force: surveyed caps, and numbers of units by step that questions bought.

A surveyed entry of the ledger holds what was released, under names that are read for ever. What follows from it, caps among
it, is a function of released numbers, and is told to everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curador.plan.counting import Steps
from curador.study.model import Caps

if TYPE_CHECKING:
    from curador.ledger.entry import Entry
    from curador.privacy.adjacency import Adjacency
    from curador.study.model import Schema


@dataclass(frozen=True, slots=True)
class ColumnSurvey:
    """What was measured of a column as a key: groups per unit, and rows in the unit's largest group."""

    groups: Steps
    in_group: Steps


@dataclass(frozen=True, slots=True)
class TableSurvey:
    """What was measured of a table, and the cap on rows that followed from it."""

    rows: Steps
    cap: int
    columns: Mapping[str, ColumnSurvey]


@dataclass(frozen=True, slots=True)
class Survey:
    """What a surveyed entry says of a study's tables.

    id        of the entry, as it is shown: part of every question that is answered with its caps
    time      when it was bought
    version   the data version that was measured
    before    caps of the survey before it, where they were others
    """

    id: str
    time: str
    version: int
    tables: Mapping[str, TableSurvey]
    before: Mapping[str, int]

    def fill(self, schema: Schema) -> Schema:
        """Return the schema with the caps that were found, where none are declared."""
        found = {one.table.name: self.tables[one.table.name] for one in schema.tables if one.table.name in self.tables}
        tables = tuple(
            replace(known, table=replace(known.table, caps=Caps(rows=found[known.table.name].cap)))
            if known.table.surveyed and known.table.name in found
            else known
            for known in schema.tables
        )
        names = {one.table.name for one in schema.tables if one.table.surveyed and one.table.name in found}
        return replace(schema, tables=tables, found=frozenset(names))


def survey_record(tables: Mapping[str, TableSurvey], *, study: str, before: Mapping[str, int]) -> dict[str, Any]:
    """Return what the surveyed entry of a study holds."""
    return {"study": study, "tables": {name: _table_record(one) for name, one in tables.items()}, "before": dict(before)}


def _table_record(one: TableSurvey) -> dict[str, Any]:
    columns = {
        name: {"groups": parts.groups.record(), "in_group": parts.in_group.record()} for name, parts in one.columns.items()
    }
    return {"rows": one.rows.record(), "cap": one.cap, "columns": columns}


def read_survey(entry: Entry, adjacency: Adjacency) -> Survey:
    """Return what a surveyed entry says."""
    held = entry.survey or {}
    tables = {
        name: TableSurvey(
            Steps.from_record(parts_of["rows"], adjacency),
            int(parts_of["cap"]),
            {
                column: ColumnSurvey(*(Steps.from_record(parts[kind], adjacency) for kind in ("groups", "in_group")))
                for column, parts in parts_of["columns"].items()
            },
        )
        for name, parts_of in held["tables"].items()
    }
    return Survey(entry.shown, entry.time, entry.data_version, tables, held["before"])
