"""Made-up rows for a sandbox: from what a study declares and a public seed, and from nothing else.

Claim   No row, no column and no number of a source is in what is made here.
Needs   Nothing here opens a file, a frame or an engine: the only inputs are declarations, a number of units and a seed.
Source  `tests/unit/curator/test_made_up.py` reads the imports of this module; `tests/engines/test_sandbox.py` deletes the
        sources and looks for canaries.

What a declaration says is kept: types, bounds, values, NULL only where it may stand, one row a unit where a table is unique,
at most as many rows a unit as its cap, keys that are unique, and references that lead to a row. What no declaration says is
plain on purpose: texts are "key 1", "key 2" …, numbers and dates without bounds a few small ones.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from curador.study.model import Caps, Column, UnitColumn, UnitPath
from curador.study.rules import dotted_path
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from curador.study.model import Study, Table

    Places = NDArray[np.int64]

KEYS = 12
"""Values of a column of which nothing is declared."""

PUBLIC_ROWS = 50
"""Rows of a public table that is not there."""

NULLS = 0.05
"""How many values are NULL where NULL may stand."""

ASSUMED_ROWS = 16
"""Rows of one unit that count where a survey of the real study would find the number."""

_FIRST_DAY = dt.date(2024, 1, 1)
_FIRST_MOMENT = dt.datetime(2024, 1, 1)  # noqa: DTZ001 -- timestamps have no zone
_MICROSECOND = dt.timedelta(microseconds=1)
_MORE_ROWS = 1 / 3
"""One over the mean number of rows that units have, those without any counted as one row."""


# ---- what is assumed -------------------------------------------------------------------------------------------------------


def with_assumed_caps(table: Table, unit: str) -> tuple[Table, str | None]:
    """Return the table with caps, and what to say where the study declares none: the one place that assumes any."""
    if not table.surveyed:
        return table, None
    note = f"made up: assumes at most {ASSUMED_ROWS} rows per {unit} in {table.name}; the survey of the real study finds them"
    return replace(table, caps=Caps(rows=ASSUMED_ROWS)), note


def known_columns(study: Study, table: Table) -> tuple[Column, ...]:
    """Return the columns that a sandbox knows of a table: those that are declared, and those that name units and keys."""
    declared = {column.name: column for column in table.columns}
    needed = [*table.key, *_keys_of(study, table)]
    if isinstance(table.unit, (UnitColumn, UnitPath)):
        needed.insert(0, table.unit.column)
    added = [_guess_column(study, table, name) for name in dict.fromkeys(needed) if name not in declared]
    return (*added, *table.columns)


def guessed_types(study: Study, table: Table) -> dict[str, str]:
    """Return what to say of columns whose type no declaration tells, by their names."""
    declared = {column.name for column in table.columns}
    found = [column for column in known_columns(study, table) if column.name not in declared]
    return {
        column.name: f"made up: assumes that {dotted_path((table.name, column.name))} is of type {column.type}, "
        "as the study does not say"
        for column in found
    }


def _guess_column(study: Study, table: Table, name: str) -> Column:
    """Return a column that must be there, of the type that its other end is declared with, else the likeliest one."""
    if table.public:
        alike = [column for other in study.tables for column in other.columns if column.name == name]
        found = next((column for column in alike if column.values is not None), alike[0] if alike else None)
        return Column(name, Type.STRING, nullable=False) if found is None else replace(found, nullable=False)
    ends = _other_ends(study, table, name)
    kinds = [column.type for other, end in ends if (column := other.column(end)) is not None]
    return Column(name, kinds[0] if kinds else Type.INTEGER, nullable=False)


def _other_ends(study: Study, table: Table, name: str) -> list[tuple[Table, str]]:
    """Return the columns that hold the same names of units, or of rows, as a column that names them."""
    by_name = {one.name: one for one in study.tables}
    unit = table.unit
    if isinstance(unit, UnitPath) and unit.column == name and unit.key is not None:
        return [(by_name[unit.table], unit.key)]
    if isinstance(unit, (UnitColumn, UnitPath)) and unit.column == name:
        return [(other, other.unit.column) for other in study.tables if _holds_units(other)]  # type: ignore[union-attr]
    paths = [(other, other.unit) for other in study.tables if isinstance(other.unit, UnitPath)]
    return [(other, path.column) for other, path in paths if path.table == table.name and path.key == name]


def _holds_units(table: Table) -> bool:
    return isinstance(table.unit, UnitColumn) or (isinstance(table.unit, UnitPath) and table.unit.key is None)


def _keys_of(study: Study, table: Table) -> list[str]:
    """Return the columns of a table through whose values other tables find their units."""
    paths = [other.unit for other in study.tables if isinstance(other.unit, UnitPath)]
    return list(dict.fromkeys(path.key for path in paths if path.table == table.name and path.key is not None))


# ---- tables ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MadeUpRows:
    """A made-up table: an Arrow table, and the number of the unit that each row belongs to."""

    table: Any
    units: Places


def make_private(study: Study, *, units: int, seed: int) -> dict[str, Any]:
    """Return an Arrow table for every private table of the study, by name."""
    made: dict[str, MadeUpRows] = {}
    names = _name_units(study, min(units, study.max_units))
    for table in _owners_first(study):
        made[table.name] = _make_rows(study, table, made, names, min(units, study.max_units), seed)
    return {name: rows.table for name, rows in made.items()}


def make_public(study: Study, table: Table, *, seed: int) -> Any:
    """Return an Arrow table for a public table whose rows are not there."""
    columns = known_columns(study, table)
    dice = _dice(seed, table)
    pools = [_distinct(column, PUBLIC_ROWS) for column in columns if column.name in table.key]
    rows = min(PUBLIC_ROWS, math.prod(len(pool) for pool in pools)) if pools else PUBLIC_ROWS
    left, unique = np.arange(rows), dict[str, Any]()
    for column, pool in zip((one for one in columns if one.name in table.key), pools, strict=True):
        unique[column.name] = pool.take(left % len(pool))  # whole numbers written in a mixed base: no two rows agree
        left = left // len(pool)
    return _assemble(columns, unique, rows, dice)


def _owners_first(study: Study) -> Iterator[Table]:
    """Yield the private tables, each after the one through which its units are found."""
    waiting = [table for table in study.tables if not table.public]
    done: set[str] = set()
    while waiting:
        ready = [table for table in waiting if not isinstance(table.unit, UnitPath) or table.unit.table in done]
        yield from ready
        done |= {table.name for table in ready}
        waiting = [table for table in waiting if table.name not in done]


def _name_units(study: Study, units: int) -> Any:
    """Return an Arrow array of the names of all units; None where rows are their own units."""
    for table in study.tables:
        if isinstance(table.unit, UnitColumn):
            column = next(one for one in known_columns(study, table) if one.name == table.unit.column)
            return _distinct(column, units, "unit")
    return None


def _make_rows(study: Study, table: Table, made: dict[str, MadeUpRows], names: Any, units: int, seed: int) -> MadeUpRows:
    columns, dice, unit = known_columns(study, table), _dice(seed, table), table.unit
    keys = _keys_of(study, table)
    alone = table.unique or (isinstance(unit, (UnitColumn, UnitPath)) and unit.column in keys)
    held: dict[str, Any] = {}
    if isinstance(unit, UnitPath):
        parent = made[unit.table]
        owners, starts, counts = np.unique(np.sort(parent.units), return_index=True, return_counts=True)
        place = np.repeat(np.arange(len(owners)), _rows_each(table, len(owners), dice, alone=alone))
        owner = owners[place]
        if unit.key is None:
            held[unit.column] = names.take(owner)
        else:
            picked = np.argsort(parent.units, kind="stable")[
                starts[place] + (dice.random(len(place)) * counts[place]).astype(int)
            ]
            held[unit.column] = parent.table[unit.key].combine_chunks().take(picked)
    elif isinstance(unit, UnitColumn):
        owner = np.repeat(np.arange(len(names)), _rows_each(table, len(names), dice, alone=alone))
        held[unit.column] = names.take(owner)
    else:
        owner = np.arange(units)
    for column in columns:
        if column.name in keys and column.name not in held:
            held[column.name] = _distinct(column, len(owner))
    rows = min(len(owner), *(len(values) for values in held.values())) if held else len(owner)
    held = {name: values.slice(0, rows) for name, values in held.items()}
    return MadeUpRows(_assemble(columns, held, rows, dice), owner[:rows])


def _rows_each(table: Table, units: int, dice: np.random.Generator, *, alone: bool) -> Places:
    """Return how many rows each unit has: one, or from none to as many as the cap lets count, few having many."""
    if alone:
        return np.ones(units, np.int64)
    return np.minimum(dice.geometric(_MORE_ROWS, units) - 1, 1 if table.caps is None else table.caps.rows).astype(np.int64)


def _assemble(columns: Sequence[Column], held: dict[str, Any], rows: int, dice: np.random.Generator) -> Any:
    import pyarrow as pa

    made = {column.name: held[column.name] if column.name in held else _draw(column, rows, dice) for column in columns}
    # a table must have a column, also where none is known: this one is of a type that no question can select
    return pa.table(made or {"nothing": pa.array([b""] * rows, pa.binary())})


def _dice(seed: int, table: Table) -> np.random.Generator:
    """Return the table's own generator: another table in the study changes nothing in this one."""
    public = [seed, *table.name.encode()]  # like the rows that it makes
    return np.random.default_rng(public)


# ---- columns ---------------------------------------------------------------------------------------------------------------


def _draw(column: Column, rows: int, dice: np.random.Generator) -> Any:
    """Return values of a column by chance; NULL among them where it may stand."""
    import pyarrow as pa

    if column.values is None and column.bounds is not None:
        values = pa.array(_between(column, dice.random(rows)), _arrow(column.type))
    else:
        pool = _distinct(column, KEYS if column.values is None else len(column.values))
        often = 1 / np.sqrt(np.arange(1, len(pool) + 1))
        values = pool.take(dice.choice(len(pool), rows, p=often / often.sum()))
    if not column.nullable:
        return values
    known = np.arange(rows)
    return values.take(pa.array(known, mask=dice.random(rows) < NULLS))  # a place that is NULL takes NULL


def _between(column: Column, parts: NDArray[np.float64]) -> list[Any]:
    """Return the values that lie these parts of the way from the lower to the upper bound."""
    lower, upper = cast("tuple[Any, Any]", column.bounds)
    if column.type is Type.INTEGER:
        return [min(lower + int((upper - lower + 1) * part), upper) for part in parts.tolist()]
    if column.type.numeric:
        low, high = float(lower), float(upper)
        found = low * (1 - parts) + high * parts
        return np.clip(np.round(found, 2) if 10 <= high - low < 1e12 else found, low, high).tolist()
    if column.type is Type.DATE:
        return [lower + dt.timedelta(days=int(((upper - lower).days) * part)) for part in parts.tolist()]
    span = (upper - lower) // _MICROSECOND
    return [lower + int(span * part) * _MICROSECOND for part in parts.tolist()]


def _distinct(column: Column, most: int, word: str = "key") -> Any:
    """Return up to so many different values that may stand in a column, as an Arrow array."""
    import pyarrow as pa

    values: Sequence[Any]
    if column.values is not None:
        values = cast("tuple[Any, ...]", column.values)[:most]
    elif column.type is Type.BOOLEAN:
        values = (False, True)
    elif column.type is Type.STRING:
        values = _words(word, most, column.length)
    else:
        values = list(_steps(column, most))
    return pa.array([float(one) if column.type in _REALS else one for one in values], _arrow(column.type))


def _steps(column: Column, most: int) -> Iterator[Any]:
    """Yield numbers, days or hours one after the other, from the lower bound or from a plain beginning."""
    usual: dict[Type, tuple[Any, Any]] = {
        Type.DATE: (_FIRST_DAY, dt.timedelta(days=1)),
        Type.TIMESTAMP: (_FIRST_MOMENT, dt.timedelta(hours=1)),
    }
    first, step = usual.get(column.type, (1, 1))
    last: Any = None
    if column.bounds is not None:
        first, last = column.bounds
    for place in range(most):
        try:
            value = first + place * step
        except OverflowError:  # the last day that there is
            return
        if last is not None and value > last:
            return
        yield value


def _words(word: str, most: int, length: int | None) -> list[str]:
    """Return "key 1", "key 2" …; bare numbers where a declared length leaves no room for the word."""
    longest = math.inf if length is None else length
    before = f"{word} " if len(f"{word} {most}") <= longest else ""
    return [f"{before}{number}" for number in range(1, most + 1) if len(f"{before}{number}") <= longest] or [""]


_REALS = (Type.FLOAT, Type.DECIMAL)


def _arrow(kind: Type) -> Any:
    import pyarrow as pa

    return {
        Type.BOOLEAN: pa.bool_(),
        Type.INTEGER: pa.int64(),
        Type.DECIMAL: pa.float64(),
        Type.FLOAT: pa.float64(),
        Type.STRING: pa.string(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }[kind]
