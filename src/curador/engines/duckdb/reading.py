# ruff: noqa: S608 -- names pass through `quoting`, the rest is ours

"""Reading is total: every value of a file becomes a value of the declared type, or NULL. Nothing a row holds is an error.

type       what is kept                          NULL                           changed
boolean    true, false, 0, 1, DuckDB's words     everything else
integer    whole numbers of 64 bits              fractions, larger ones, NaN
numbers    doubles                               NaN, what is no number         -0.0 becomes 0.0; ±inf stay (they clamp)
string     text; a whole number's digits         NaN                            9.0 and 9.00 become '9'; cut to 4,096
                                                                                characters, or what a row costs had no end
date       years 1 to 9999                       ±infinity, no date             years outside are clamped
timestamp  idem, in UTC, without a zone          idem                           idem; a zone is read and time turned to UTC

A text that says who somebody is would be another's if it were cut: beyond 256 bytes it is NULL, nobody.
A declared list of values turns everything else into NULL. Bounds are not applied: what is measured is clamped, not what is
filtered on. Each step is two expressions, the second over the result of the first, so that no text is read twice.

A source is read as a SELECT of its cleaned columns c0, c1, …: the one way in which rows enter, prepared or not.

Rows that DuckDB's own scan stops at are read by another way where there is one, else told to the owner, by column. Never an
analyst's error: everything is read when a version is taken.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.engines.duckdb import sources
from curador.engines.duckdb.arrow import column_with_cut_times, scannable_batches
from curador.engines.duckdb.spelling import KEPT_AS, TypeFamily, commas, double, family_of, identifier, literal, text
from curador.plan.model import column_grid
from curador.plan.work import NAME_BYTES, TEXT_CHARACTERS
from curador.study.formats import BLANKS
from curador.study.rules import broken_rule
from curador.study.values import Plain, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb

    from curador.engines.duckdb.sources import TableSource
    from curador.errors import InvalidStudy
    from curador.plan.model import Grid
    from curador.study.formats import FileFormat
    from curador.study.model import Column, Field, Table, TableSchema
    from curador.study.values import Value


# ---- clean -----------------------------------------------------------------------------------------------------------------


_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
_FIRST_TIME, _LAST_TIME = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
_EXACT = 2**51
"""Up to here doubles tell half a whole number from the whole ones beside it."""

_NEARER = 0.49
"""What is nearer than this to a whole number is rounded to it, whichever way halves go."""

_GROUPS = {" ": "[ \u00a0\u2007\u202f]", "'": "['\u2019]"}
"""Signs between thousands that are written in several ways."""

_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")
"""How a sheet's own dates are spelled, whatever its texts are."""

_SCALE = 1000
"""Powers of two that one double literal can carry."""


@dataclass(frozen=True, slots=True)
class Cleaning:
    """How one column is read: `raw` over the source's column, `kept` over a column `raw_name` that holds raw."""

    raw: str
    kept: str


def not_a_number(x: str) -> str:
    """Return whether a double is NaN, asked row by row.

    `isnan` is not: DuckDB answers it from a Parquet file's statistics, which leave NaN out, so that whether one row's NaN is
    seen would depend on other rows.
    """
    return f"(NOT isfinite({x}) AND NOT isinf({x}))"


def cleaning_of(
    source: str, physical: str, kind: Type, raw_name: str, declared: Column | None, *, naming: bool = False
) -> Cleaning:
    """Return the two expressions that read a column of this physical type as this type. `naming`: it says who owns a row.

    Claim   Both are total: they raise for no value of the physical type. The result is a function of the value alone.
    Needs   The family of the physical type carries the declared one (`physical.CARRIERS`); TimeZone is UTC.
    Rounds  Numbers to the nearest double.
    Source  TRY_CAST returns NULL where CAST raises; comparisons, CASE, floor, isinf and isfinite raise for nothing.
    """
    found = family_of(physical)
    if found is None:
        raise AssertionError(physical)  # such columns are no fields
    raw = _raw(source, physical, found, kind)
    kept = _keep_type(raw_name, found, kind)
    if kind is Type.STRING and found is TypeFamily.TEXT:
        kept = _short(kept, naming=naming)
    if declared is not None and declared.values is not None:
        kept = f"CASE WHEN {_is_declared(f'({kept})', kind, declared.values)} THEN ({kept}) END"
    return Cleaning(raw, kept)


def _is_declared(x: str, kind: Type, values: Sequence[Value]) -> str:
    """Whether x is a declared value; whole numbers without a gap are a range, which is quicker to compare with."""
    whole = {int(value) for value in values if type(value) is int}
    if kind is Type.INTEGER and len(whole) == len(values) == max(whole) - min(whole) + 1:
        return f"{x} BETWEEN {min(whole)} AND {max(whole)}"
    return f"{x} IN ({commas(literal(value) for value in values)})"


def _raw(x: str, physical: str, found: TypeFamily, kind: Type) -> str:
    if kind is Type.INTEGER:
        return _whole(x, physical, found)
    if kind in {Type.DECIMAL, Type.FLOAT}:
        return f"TRY_CAST({x} AS DOUBLE)"
    if kind is Type.BOOLEAN:
        return f"CASE {x} WHEN 0 THEN false WHEN 1 THEN true END" if _is_integer(found) else f"TRY_CAST({x} AS BOOLEAN)"
    if kind is Type.STRING:
        return _spell_value(x, physical, found)
    if kind is Type.DATE and found in {TypeFamily.DATE, TypeFamily.TEXT}:
        return f"TRY_CAST({x} AS DATE)"
    return _time(x, physical, found)


def _keep_type(raw: str, found: TypeFamily, kind: Type) -> str:
    if kind in {Type.DECIMAL, Type.FLOAT}:
        return f"CASE WHEN {not_a_number(raw)} THEN NULL WHEN {raw} = 0 THEN {double(0.0)} ELSE {raw} END"
    if kind is Type.DATE:
        return _clamp(f"CAST({raw} AS DATE)", _FIRST_DAY, _LAST_DAY)
    if kind is Type.TIMESTAMP:
        return _clamp(raw, _FIRST_TIME, _LAST_TIME)
    if kind is Type.STRING and found is TypeFamily.DATE:
        return f"CAST({_clamp(raw, _FIRST_DAY, _LAST_DAY)} AS VARCHAR)"
    if kind is Type.STRING and found in {TypeFamily.TIMESTAMP, TypeFamily.ZONED}:
        return f"CAST({_clamp(raw, _FIRST_TIME, _LAST_TIME)} AS VARCHAR)"
    return raw


def _short(x: str, *, naming: bool) -> str:
    """A text of a length that bounds what computing with it takes. `strlen` counts bytes, and need not look at them."""
    if naming:
        return f"CASE WHEN strlen({x}) <= {NAME_BYTES} THEN {x} END"
    return f"CASE WHEN strlen({x}) <= {TEXT_CHARACTERS} THEN {x} ELSE substring({x}, 1, {TEXT_CHARACTERS}) END"


def _is_integer(found: TypeFamily) -> bool:
    return found in {TypeFamily.INTEGER, TypeFamily.WIDE}


def _whole(x: str, physical: str, found: TypeFamily) -> str:
    """A whole number; what would have to be rounded does not fit."""
    if found in {TypeFamily.INTEGER, TypeFamily.BOOLEAN}:
        return f"CAST({x} AS BIGINT)"
    if found is TypeFamily.WIDE:
        return f"TRY_CAST({x} AS BIGINT)"
    if found is TypeFamily.DECIMAL:  # back and forth: equal only if nothing was rounded
        return f"CASE WHEN TRY_CAST(TRY_CAST({x} AS BIGINT) AS {physical}) = {x} THEN TRY_CAST({x} AS BIGINT) END"
    number = x if found is TypeFamily.FLOAT else f"TRY_CAST({x} AS DOUBLE)"
    return f"CASE WHEN {number} = floor({number}) THEN TRY_CAST({x} AS BIGINT) END"


def _spell_value(x: str, physical: str, found: TypeFamily) -> str:
    if found is TypeFamily.FLOAT:
        whole = f"CAST(TRY_CAST({x} AS HUGEINT) AS VARCHAR)"
        plain = f"CASE WHEN {x} = floor({x}) THEN coalesce({whole}, CAST({x} AS VARCHAR)) ELSE CAST({x} AS VARCHAR) END"
        return f"CASE WHEN {not_a_number(x)} THEN NULL ELSE {plain} END"
    if found is TypeFamily.DECIMAL:
        return f"rtrim(rtrim(CAST({x} AS VARCHAR), '0'), '.')"
    if found in {TypeFamily.TIMESTAMP, TypeFamily.ZONED}:
        return _time(x, physical, found)
    return x if found is TypeFamily.DATE else f"CAST({x} AS VARCHAR)"


def _time(x: str, physical: str, found: TypeFamily) -> str:
    """A timestamp without zone."""
    if found is TypeFamily.DATE:
        return f"TRY_CAST({_clamp(x, _FIRST_DAY, _LAST_DAY)} AS TIMESTAMP)"
    if found is TypeFamily.TIMESTAMP:
        if physical in {"TIMESTAMP_S", "TIMESTAMP_MS"}:  # these reach further than microseconds do
            first, last = (f"CAST('{day}' AS {physical})" for day in ("0001-01-01 00:00:00", "9999-12-31 23:59:59"))
            x = _clamp(x, first, last)
        return f"TRY_CAST({x} AS TIMESTAMP)"
    zoned = f"TRY_CAST({x} AS TIMESTAMPTZ)"
    return f"CASE WHEN isfinite({zoned}) THEN {zoned} AT TIME ZONE 'UTC' END"


def _clamp(x: str, lower: str, upper: str) -> str:
    return (
        f"CASE WHEN NOT isfinite({x}) THEN NULL WHEN {x} < {lower} THEN {lower} WHEN {x} > {upper} THEN {upper} ELSE {x} END"
    )


def put_on_grid(x: str, column: Column) -> str:
    """Return the column on its grid: v, the whole number nearest to x/2^e − start, for x clamped to the column's bounds.

    Claim   NULL where x is NULL or NaN, else a whole number of 0 … steps: the range that sensitivities are computed from.
    Needs   Comparisons of doubles are those of the values: `bounded` is for where an engine may know them from statistics.
    Rounds  In doubles; exactly for whole numbers on a grid of ones.
    Source  Outside the bounds v is computed exactly here. Inside, every operation is correctly rounded, so monotone in x: v
            is between those of the bounds; where these, computed here by the same operations, leave the range, it is clamped.
            NaN is inside for an engine that looked at statistics only: the cast makes it NULL, as the other branch does.
    """
    grid = column_grid(column)
    if column.bounds is None or grid is None:
        raise AssertionError(column.name)  # no number with bounds
    lower, upper = (Fraction(bound) for bound in column.bounds)  # type: ignore[arg-type]  # a grid is of numbers
    first, last = (_place(bound, grid) for bound in (lower, upper))
    whole = column.type is Type.INTEGER
    number = f"{x} IS NOT NULL" if whole else f"coalesce(isfinite({x}) OR isinf({x}), false)"
    if whole and grid.exponent == 0 and max(abs(lower), abs(upper)) > _EXACT:
        low, high = (str(int(bound)) for bound in (lower, upper))
        inside = f"CAST({x} AS HUGEINT) - ({grid.start})"
    else:
        low, high = double(lower), double(upper)
        # a cast to whole numbers rounds: floor would take longer
        inside = _scale_by_power(f"CAST({x} AS DOUBLE)", -grid.exponent)
        inside = inside if grid.start == 0 else f"{inside} - {double(grid.start)}"
        if not all(-_NEARER < _place_of_bound(float(bound), grid) < grid.steps + _NEARER for bound in (lower, upper)):
            inside = f"least(greatest(TRY_CAST({inside} AS INTEGER), 0), {grid.steps})"  # NULL is skipped, so becomes 0
            ends = f"WHEN {x} <= {low} THEN {first} WHEN {x} >= {high} THEN {last}"
            return f"CASE WHEN NOT ({number}) THEN NULL {ends} ELSE {inside} END"
    outside = f"CASE WHEN {x} < {low} THEN {first} ELSE {last} END"
    return f"CASE WHEN {x} BETWEEN {low} AND {high} THEN TRY_CAST({inside} AS INTEGER) WHEN {number} THEN {outside} END"


def clamp_to_steps(v: str, column: Column) -> str:
    """Return v clamped to 0 … steps once more, by integers that no file's statistics speak of; NULL stays."""
    grid = column_grid(column)
    steps = 0 if grid is None else grid.steps
    return f"CASE WHEN {v} < 0 THEN 0 WHEN {v} > {steps} THEN {steps} ELSE {v} END"


def _place_of_bound(bound: float, grid: Grid) -> float:
    """The bound's place by the operations of the expression above; +∞ where doubles cannot tell."""
    for part in _powers(-grid.exponent):
        bound *= 2.0**part
    place = bound - float(grid.start)
    return place if math.isfinite(place) else math.inf


def _place(bound: Fraction, grid: Grid) -> int:
    return min(max((bound / grid.step - grid.start + Fraction(1, 2)).__floor__(), 0), grid.steps)


def _scale_by_power(x: str, exponent: int) -> str:
    """X times a power of two, exactly as long as nothing is lost to under- or overflow of the result itself."""
    for part in _powers(exponent):
        x = f"{x} * {double(2.0**part)}"
    return f"({x})"


def _powers(exponent: int) -> Iterator[int]:
    """The exponent in parts that one double literal can carry."""
    while exponent:
        part = max(-_SCALE, min(_SCALE, exponent))
        yield part
        exponent -= part


# ---- reading ---------------------------------------------------------------------------------------------------------------


def select_cleaned(
    connection: duckdb.DuckDBPyConnection, source: TableSource, schema: TableSchema, *, on_grids: bool = False
) -> str:
    """Return the SELECT that reads a bound source as c0, c1, … in the order of the schema's fields.

    on_grids  with the grid columns, each clamped to its range whatever the file's statistics say
    """
    physical = {column.name: column.physical for column in sources.columns(connection, source)}
    owner = getattr(schema.table.unit, "column", None)
    spelled = {
        field.name: _spelled(
            _column(source, field.name, physical[field.name]), physical[field.name], field.type, schema.table
        )
        for field in schema.fields
    }
    plain = schema.table.format is None
    steps = [
        cleaning_of(
            spelled[field.name][0] if plain else f"s{place}",
            spelled[field.name][1],
            field.type,
            f"r{place}",
            field.declared,
            naming=field.name == owner,
        )
        for place, field in enumerate(schema.fields)
    ]
    raw = commas(f"{step.raw} AS r{place}" for place, step in enumerate(steps))
    kept = commas(
        f"CAST({step.kept} AS {KEPT_AS[field.type]}) AS c{place}"
        for place, (step, field) in enumerate(zip(steps, schema.fields, strict=True))
    )
    if on_grids:
        columns = grid_columns(schema)
        kept = commas([kept, *(f"{_place_cleaning(steps, name, column)} AS {name}" for name, column in columns.items())])
    if plain:
        return f"SELECT {kept} FROM (SELECT {raw} FROM {source.scan})"
    texts = commas(f"{spelled[field.name][0]} AS s{place}" for place, field in enumerate(schema.fields))
    return f"SELECT {kept} FROM (SELECT {raw} FROM (SELECT {texts} FROM {source.scan}))"


def _spelled(x: str, physical: str, kind: Type, table: Table) -> tuple[str, str]:
    """A column of the source as programs write it, by the declared format, and of which physical type that is.

    Claim   Total, and a function of the value alone: what is not written as declared becomes NULL, in numbers and times.
    Source  trim, replace, regular expressions and try_strptime raise for no text; a TRY_CAST of the result is as before.
    """
    how = table.format
    if how is None or family_of(physical) is not TypeFamily.TEXT:
        return x, physical
    x = f"CAST({x} AS VARCHAR)"
    bare = f"trim({x}, {text(BLANKS)})"
    if how.nulls:
        x = f"CASE WHEN {bare} IN ({commas(text(word) for word in how.nulls)}) THEN NULL ELSE {x} END"
    if kind is Type.STRING:
        return (f"trim({x}, {text(BLANKS)})" if how.trim else x), "VARCHAR"
    x = f"trim({x}, {text(BLANKS)})"
    if kind.temporal and how.times:
        patterns = (*how.times, *(_ISO if sources.is_sheet(table.source) else ()))
        read = f"try_strptime({x}, [{commas(text(pattern) for pattern in patterns)}])"
        return f"CASE WHEN regexp_matches({x}, '[0-9]') THEN {read} END", "TIMESTAMP"  # it reads the word infinity as 1900
    return (_plain_number(x, kind, how) if kind.numeric and how.numbers else x), "VARCHAR"


def select_filled(connection: duckdb.DuckDBPyConnection, source: TableSource, schema: TableSchema) -> str:
    """Return the SELECT that says, as f0, f1, …, whether something stands in each cell: no blanks, no word for NULL."""
    physical = {column.name: column.physical for column in sources.columns(connection, source)}
    how = schema.table.format
    words = commas(text(word) for word in ("", *(how.nulls if how is not None else ())))
    columns: list[str] = []
    for place, field in enumerate(schema.fields):
        x = _column(source, field.name, physical[field.name])
        if family_of(physical[field.name]) is TypeFamily.TEXT:
            x = f"CASE WHEN trim(CAST({x} AS VARCHAR), {text(BLANKS)}) NOT IN ({words}) THEN 1 END"
        columns.append(f"({x}) IS NOT NULL AS f{place}")
    return f"SELECT {commas(columns)} FROM {source.scan}"


def can_lose(physical: str, field: Field) -> bool:
    """Whether reading a column as the declared type may make NULL of what stands there; a list of values always may."""
    return field.declared is not None and family_of(physical) is TypeFamily.TEXT and field.type is not Type.STRING


def _plain_number(x: str, kind: Type, how: FileFormat) -> str:
    """A number with the declared signs as programs write it; what has others is none, as 1.234 may be two numbers.

    Of whole numbers 13047.0 is one, too: so programs write those that they took for others, and it cannot be another.
    """
    decimal = re.escape(how.decimal)
    group = "" if how.thousands is None else _GROUPS.get(how.thousands, re.escape(how.thousands))
    whole = f"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)" if group else "[0-9]+"
    number = f"[+-]?(?:{whole}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    digits = f"regexp_replace({x}, {text(group)}, '', 'g')" if group else x
    other = f" WHEN regexp_full_match({x}, '[+-]?[0-9]+[.]0{{1,2}}') THEN {x}" if kind is Type.INTEGER else ""
    return f"CASE WHEN regexp_full_match({x}, {text(number)}) THEN replace({digits}, {text(how.decimal)}, '.'){other} END"


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
    return {name: put_on_grid(f"c{name[1:]}", column) for name, column in grid_columns(schema).items()}


def _place_cleaning(steps: Sequence[Cleaning], name: str, column: Column) -> str:
    place = int(name[1:])
    return put_on_grid(f"r{place}" if column.values is None else f"({steps[place].kept})", column)


def _column(source: TableSource, name: str, physical: str) -> str:
    """A column of the source. Texts of a DuckDB file may carry a collation; the way through bytes changes nothing else."""
    if source.kind == "database" and physical == "VARCHAR":
        return f"decode(encode({identifier(name)}))"
    return identifier(name)


# ---- unreadable ------------------------------------------------------------------------------------------------------------


def reread(connection: duckdb.DuckDBPyConnection, source: TableSource, schema: TableSchema) -> TableSource | None:
    """Return a bound source with the same rows, to be read once, in which nothing stops a scan; None if there is none.

    Claim   Rows that the first way reads have the same values by the second one.
    Needs   A column of the same physical type by both ways has the same values; others are not read this way.
    """
    import pyarrow as pa

    if source.kind != "parquet":
        return None
    names = [field.name for field in schema.fields]
    try:
        stream = scannable_batches(source.files, names)
    except (pa.ArrowException, OSError, KeyError):
        return None
    alias = f"{source.alias}_again"
    again = dataclasses.replace(source, kind="frame", alias=alias, scan=identifier(alias), frame=stream)
    sources.bind(connection, again)
    first, second = ({column.name: column.physical for column in sources.columns(connection, one)} for one in (source, again))
    return again if all(first[name] == second[name] for name in names) else None


def read_all(connection: duckdb.DuckDBPyConnection, rows: str, schema: TableSchema) -> None:
    """Read every value of cleaned rows, and keep nothing of them."""
    _read(connection, rows, column_names(schema))


def unreadable_refusal(
    connection: duckdb.DuckDBPyConnection, rows: str, source: TableSource, schema: TableSchema, hint: str | None = None
) -> InvalidStudy | None:
    """Return what the owner is told of a source whose cleaned rows cannot be read; None if every column can by itself."""
    if source.stream is not None and source.stream.problems:
        return source.stream.problems[-1]
    names = [field.name for field in schema.fields]
    found = [name for place, name in enumerate(names) if not _is_readable(connection, rows, f"c{place}")]
    if not found:
        return None
    name = found[0]
    if source.kind == "parquet" and len(found) == len(names):  # a time in the footer stops the scan of every column
        name = _cut_times(source, names) or name
    where = ("tables", schema.table.name, "columns", name)
    return broken_rule(where, "a column whose every value can be read", Plain("one that cannot"), hint)


def _cut_times(source: TableSource, names: list[str]) -> str | None:
    import pyarrow as pa

    try:
        return column_with_cut_times(source.files, names)
    except (pa.ArrowException, OSError):
        return None


def _is_readable(connection: duckdb.DuckDBPyConnection, rows: str, name: str) -> bool:
    import duckdb

    try:
        _read(connection, rows, [name])
    except duckdb.Error:
        return False
    return True


def _read(connection: duckdb.DuckDBPyConnection, rows: str, names: list[str]) -> None:
    """A hash needs the value itself: counts and extremes are known from a file's footer."""
    connection.execute(f"SELECT {commas(f'bit_xor(hash({name}))' for name in names)} FROM {rows}").fetchall()
