"""Rules of a table, rules between the tables of a study, and what `check` tells an owner about a study that can be read.

Between tables: whose rows are whose, and that everybody is of one kind.

What `check` tells: refusals that a flag may lift, and warnings.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from curador.study.model import MEMORY, MOST_UNITS, Caps, Column, Table, Unit, UnitColumn, UnitPath, UnitRow
from curador.study.rules import (
    LONGEST_NAME,
    NAME,
    Where,
    broken_rule,
    check_description,
    did_you_mean,
    dotted_path,
    is_name,
    is_text,
    same_but_for_case,
)
from curador.study.values import LEAST, Plain, Type, is_writable, key_text, number_text, string_text

if TYPE_CHECKING:
    from curador.errors import InvalidStudy
    from curador.study.model import Study


# ---- consistency -----------------------------------------------------------------------------------------------------------


FRAME = "frame"
"""The source of a table that is given from Python."""

LONGEST_SOURCE = 4_096
UNIT = 'a column, "row", or { column = …, references = … }'


def check_table(table: Table) -> None:
    """Refuse a table that breaks a rule of its own."""
    where: Where = ("tables", str(table.name))
    if not is_name(table.name):
        raise broken_rule(where, NAME, table.name)
    if not is_text(table.source, LONGEST_SOURCE):
        raise broken_rule((*where, "source"), 'a file, a glob, a DuckDB file with #table, or "frame"', table.source)
    check_description((*where, "description"), table.description)
    _check_names(where, table)
    if table.unit is None:
        _check_public(where, table)
    else:
        _check_private(where, table, table.unit)


def _check_names(where: Where, table: Table) -> None:
    clash = same_but_for_case([column.name for column in table.columns])
    if clash:
        raise broken_rule((*where, "columns", clash[1]), f"unlike {clash[0]!r} in more than letter case", clash[1])
    for name in table.key:
        if not is_name(name):
            raise broken_rule((*where, "key"), NAME, name)
    if len(set(table.key)) < len(table.key):
        raise broken_rule((*where, "key"), "a list without repetition", table.key)


def _check_public(where: Where, table: Table) -> None:
    hint = "a public table belongs to nobody: nothing of it is capped"
    if table.unique:
        raise broken_rule(
            (*where, "unique"), "absent for a public table", value=True, hint='say key = ["…"] for columns that are unique'
        )
    if table.caps is not None:
        raise broken_rule((*where, "caps"), "absent for a public table", _caps_by_name(table.caps), hint)
    if table.caps_max is not None:
        raise broken_rule((*where, "caps_max"), "absent for a public table", _caps_by_name(table.caps_max), hint)


def _check_private(where: Where, table: Table, unit: Unit) -> None:
    columns = [] if isinstance(unit, UnitRow) else [unit.column]
    if isinstance(unit, UnitPath) and unit.key is not None:
        columns.append(unit.key)
    for column in columns:
        if not is_name(column):
            raise broken_rule((*where, "unit"), UNIT, column)
    if table.key:
        raise broken_rule(
            (*where, "key"), "absent for a private table", table.key, "key is for public tables; say unique = true for units"
        )
    _check_caps_max(where, table)
    declared = None if isinstance(unit, UnitRow) else table.column(unit.column)
    if declared is not None and declared.type in {Type.FLOAT, Type.BOOLEAN}:
        hint = 'who somebody is must be exact: declare the column as "integer" or "string"'
        raise broken_rule(
            (*where, "columns", declared.name, "type"), "a type that can name a unit", Plain(declared.type), hint
        )


def _check_caps_max(where: Where, table: Table) -> None:
    most = table.caps_max
    if most is None:
        return
    for name in ("rows", "groups", "rows_per_group"):
        usual, highest = getattr(table.caps, name, None), getattr(most, name)
        if usual is not None and highest is not None and highest < usual:
            raise broken_rule((*where, "caps_max", name), f"at least caps.{name}, which is {usual}", highest)


def _caps_by_name(caps: Caps) -> dict[str, int]:
    named = {"rows": caps.rows, "groups": caps.groups, "rows_per_group": caps.rows_per_group}
    return {name: value for name, value in named.items() if value is not None}


def check_whole(study: Study) -> None:
    """Refuse a study whose parts do not fit together."""
    for key, text in ((("name",), study.name), (("unit", "name"), study.unit_name)):
        if not is_text(text):
            raise broken_rule(key, f"some text of at most {LONGEST_NAME} characters", text)
    if not is_text(str(study.ledger), LONGEST_SOURCE) or study.ledger.name in {"", ".."}:
        raise broken_rule(("ledger",), "a file name", "" if study.ledger == Path() else str(study.ledger))
    if type(study.max_units) is not int or not 1 <= study.max_units <= MOST_UNITS:
        raise broken_rule(("max_units",), "a whole number from 1 to 2^62", study.max_units)
    least: object = study.least_spend
    if type(least) is not Fraction or not 0 <= least <= 1 or not is_writable(100 * least):
        raise broken_rule(("least_spend",), LEAST, study.least_spend)
    if type(study.allow_large_delta) is not bool:
        raise broken_rule(("allow_large_delta",), "true or false", study.allow_large_delta)
    _check_tables(study)
    _check_memory(study)
    _check_analysts(study)
    for name in study.frames:
        table = study.table(name)
        if table is None or table.source != FRAME:
            raise broken_rule(
                ("tables", name, "source"), '"frame" for a table that is given from Python', table and table.source
            )


def _check_memory(study: Study) -> None:
    """Refuse a ledger that forgets for a table that stays: whoever opens it again would begin with a whole budget."""
    kept = [table.name for table in study.tables if not table.public and table.source != FRAME]
    if study.in_memory and kept:
        rule = f"a file, as {dotted_path((kept[0],))} is one: a ledger in memory forgets what was spent"
        hint = f"name a file; {string_text(MEMORY)} is for made-up data frames, and a sandbox needs no ledger"
        raise broken_rule(("ledger",), rule, MEMORY, hint)


def _check_tables(study: Study) -> None:
    clash = same_but_for_case([table.name for table in study.tables])
    if clash:
        raise broken_rule(("tables", clash[1]), f"unlike {clash[0]!r} in more than letter case", clash[1])
    private = [table for table in study.tables if not table.public]
    if not private:
        hint = 'a table of people needs unit = "<its column>"'
        raise broken_rule(
            ("tables",), "tables of which at least one is private", Plain("none" if study.tables else "no table"), hint
        )
    ends = {table.name: _last_table(study, table) for table in private}
    _check_one_kind(ends)
    _check_types(study, private)


def _last_table(study: Study, table: Table) -> Table:
    """Return the table in which the chain of references ends."""
    seen = [table.name]
    while isinstance(unit := table.unit, UnitPath):
        table = _referenced_table(study, table, unit)
        if table.name in seen:
            loop = " -> ".join(key_text(name) for name in [*seen[seen.index(table.name) :], table.name])
            raise broken_rule(
                ("tables", seen[0], "unit"),
                "a chain of references that ends at a unit",
                Plain(loop),
                "one table must name its unit's own column",
            )
        seen.append(table.name)
    return table


def _referenced_table(study: Study, table: Table, unit: UnitPath) -> Table:
    where: Where = ("tables", table.name, "unit", "references")
    found = study.table(unit.table)
    if found is None:
        names = [one.name for one in study.tables]
        raise broken_rule(where, "a table of this study, or table.column", unit.table, did_you_mean(unit.table, names))
    if found.unit is None:
        raise broken_rule(
            where, "a private table", unit.table, f"{dotted_path((unit.table,))} is public: its rows belong to nobody"
        )
    holds_unit = isinstance(found.unit, UnitColumn) or (isinstance(found.unit, UnitPath) and found.unit.key is None)
    if unit.key is None and not holds_unit:
        hint = f'name the key that the column equals: references = [{string_text(unit.table)}, "<column>"]'
        raise broken_rule(where, "a table that holds its unit in a column", unit.table, hint)
    return found


def _check_one_kind(ends: dict[str, Table]) -> None:
    """Rows of a table are a kind of unit of their own; people that stand in columns are another."""
    rows = [name for name, end in ends.items() if isinstance(end.unit, UnitRow)]
    strangers = [name for name in ends if name not in rows or ends[name].name != ends[rows[0]].name] if rows else []
    if strangers:
        hint = "a study protects one kind of unit; give the other tables a study of their own, or a unit column"
        raise broken_rule(
            ("tables", rows[0], "unit"), f"of one kind with that of {dotted_path((strangers[0],))}", "row", hint
        )


def _check_types(study: Study, private: Sequence[Table]) -> None:
    """Who somebody is has one declared type, and so have the two sides of a key: '01', ' 1' and 1 are three people."""
    first: tuple[Table, Column] | None = None
    for table in private:
        unit = table.unit
        here = None if unit is None or isinstance(unit, UnitRow) else table.column(unit.column)
        if here is None:
            continue
        if isinstance(unit, UnitPath) and unit.key is not None:
            other = study.table(unit.table)
            there = None if other is None else other.column(unit.key)
            _check_same_type(table, here, unit.table, there)
        elif first is None:
            first = (table, here)
        else:
            _check_same_type(table, here, first[0].name, first[1])


def _check_same_type(table: Table, here: Column, other: str, there: Column | None) -> None:
    if there is not None and here.type is not there.type:
        rule = f"{there.type}, the type of {dotted_path((other, there.name))}"
        raise broken_rule(("tables", table.name, "columns", here.name, "type"), rule, Plain(here.type))


def _check_analysts(study: Study) -> None:
    clash = same_but_for_case([analyst.name for analyst in study.analysts])
    if clash:
        raise broken_rule(("analysts", clash[1]), f"unlike {clash[0]!r} in more than letter case", clash[1])
    names = [table.name for table in study.tables]
    for analyst in study.analysts:
        if analyst.tables is not None:
            _check_tables_of(analyst.name, analyst.tables, names)


def _check_tables_of(analyst: str, tables: Sequence[str], names: Sequence[str]) -> None:
    where: Where = ("analysts", analyst, "tables")
    if not tables or len(set(tables)) < len(tables):
        raise broken_rule(where, "a list of tables without repetition", tables, "leave it out for all tables")
    for place, name in enumerate(tables):
        if name not in names:
            raise broken_rule((*where, place), "a list of tables of this study", name, did_you_mean(name, names))


def read_references(written: object, names: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the ways to read a reference: a table, or a column of a table. Names may hold dots themselves."""
    if isinstance(written, (list, tuple)):
        parts = list(written)
        return [(parts[0], parts[1] if len(parts) == 2 else None)] if len(parts) in {1, 2} and parts[0] in names else []
    if not isinstance(written, str):
        return []
    whole: list[tuple[str, str | None]] = [(written, None)] if written in names else []
    dots = [place for place, character in enumerate(written) if character == "."]
    return whole + [(written[:dot], written[dot + 1 :]) for dot in dots if written[:dot] in names and written[dot + 1 :]]


# ---- check -----------------------------------------------------------------------------------------------------------------


LARGE_EPSILON = 10
"""Beyond it a promise says little: e^10 is 22,000."""


def check_study(study: Study) -> None:
    """Refuse a study that an owner must think about once more.

    Claim   Where every unit has a group key of its own, the expected number of keys that are printed over the life of the
            study is at most 1/100.
    Needs   At most max_units units; a unit's own key passes all thresholds together with probability at most δ.
    Rounds  Exact.
    Source  Linearity of expectation: max_units · δ ≤ 1/100.
    """
    found = _large_delta(study)
    if found is not None and not study.allow_large_delta:
        raise found


def opening_warnings(study: Study) -> tuple[str, ...]:
    """Return what an owner is told whenever the study is opened."""
    if study.least_spend:
        return ()
    how = "how long answers take depends on rows, and who times enough of them reads off what single people have in the table"
    return (f'least_spend is 0: questions may cost next to nothing and never end; {how}. Write least_spend = "0.01%".',)


def owner_warnings(study: Study) -> tuple[str, ...]:
    """Return what an owner should know although the study is accepted. Nothing in it comes from data."""
    warnings: list[str] = []
    found = _large_delta(study)
    if found is not None and study.allow_large_delta:
        warnings.append(found.sentence)
    if study.budget.epsilon > LARGE_EPSILON:
        warnings.append(
            f"budget.epsilon is above {LARGE_EPSILON}: who suspects what a {study.unit_name} has in it can be all but sure"
            " once it is spent. Most studies take 1 to 10: choose less, or write down why not."
        )
    unbounded = [table for table in study.tables if not table.public and not any(column.bounds for column in table.columns)]
    told = (
        f"{dotted_path(('tables', table.name))} declares no bounds: its rows can be counted, never summed."
        for table in unbounded
    )
    return (*opening_warnings(study), *warnings, *told)


def _large_delta(study: Study) -> InvalidStudy | None:
    delta, most = study.budget.delta, Fraction(1, 100 * study.max_units)
    if delta is None or delta <= most:
        return None
    rule = f"at most 1/(100 · max_units), which is {number_text(most)}"
    hint = "declare how many units there can be with max_units, lower delta, or write allow_large_delta = true"
    return broken_rule(("budget", "delta"), rule, delta, hint)
