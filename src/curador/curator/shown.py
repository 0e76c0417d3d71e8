"""What an analyst may hold of a study: the tables that may be asked about, nothing of where they lie or of others."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from curador.study.model import EngineSettings, UnitColumn, UnitPath

if TYPE_CHECKING:
    from collections.abc import Collection

    from curador.study.model import Analyst, Study, Table
    from curador.study.schema import Schema


def shown_to(analyst: Analyst, visible: Schema) -> Schema:
    """Return the schema for the analyst's own eyes: to read, not to ask with.

    A table's source is its name, and a unit that is found through a hidden table is the column that leads there.
    """
    names = {one.table.name for one in visible.tables}
    tables = tuple(replace(one, table=_without_places(one.table, names)) for one in visible.tables)
    study = _part_of(
        visible.study,
        tables=tuple(one.table for one in tables),
        analysts=(analyst,),
        ledger=Path(visible.study.ledger.name),
        folder=Path(),
        engine=EngineSettings(),
        frames=MappingProxyType({}),
    )
    return replace(visible, study=study, tables=tables)


def _without_places(table: Table, names: Collection[str]) -> Table:
    unit = table.unit
    if isinstance(unit, UnitPath) and unit.table not in names:
        unit = UnitColumn(unit.column)
    return replace(table, source=table.name, unit=unit)


def _part_of(study: Study, **changes: Any) -> Study:
    """The study with some fields changed and not checked again: a part need not hold together as the whole does."""
    part = copy.copy(study)
    for name, value in changes.items():
        object.__setattr__(part, name, value)
    return part
