"""DuckDB's spelling, checked on version 2.0.

What its functions do at their edges, and why the snippets are as they are:
- a decimal literal such as 0.1 is a DECIMAL, so doubles are cast from text;
- casting a double to BIGINT raises where TRY_CAST gives NULL, NaN included, and rounds halves to even, so what goes in is
  whole already;
- `%` keeps the sign of the dividend while fmod() floors; both give NaN at 0 for doubles, where integers raise;
- what a projection holds twice is computed once, ahead of the CASE or TRY around it: neither may be what keeps a function
  from raising. Arguments are guarded, not calls: ln(CASE WHEN x > 0 THEN x END);
- times of years 1 to 9999, as preparation leaves them, never raise; TRY costs nothing and is there for other years;
- date_diff('week') counts spans of seven days from an epoch, so Mondays are counted instead;
- `ROW_NUMBER() … <= n` over a single order column becomes an aggregate that keeps its rows in memory and cannot spill: the
  windows written here have two order columns and a BETWEEN, which it leaves alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.engines.duckdb.spelling import DISORDER, UNIT_PARTS
from curador.engines.lower.sql import EVERY_ROW, rows_of, select
from curador.errors import InvalidQuery
from curador.study.values import Type

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from fractions import Fraction

_TYPES = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INTEGER: "BIGINT",
    Type.DECIMAL: "DOUBLE",
    Type.FLOAT: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
_MOST_MOVED = {
    "year": 10_000,
    "quarter": 40_000,
    "month": 120_000,
    "week": 530_000,
    "day": 3_700_000,
    "hour": 88_000_000,
    "minute": 5_300_000_000,
    "second": 317_000_000_000,
}
_LOW = (1 << 63) - 1

STREAMED = 2_047
"""Rows that lag() OVER () looks back without keeping all of them."""


class DuckDB:
    """The dialect of the embedded engine."""

    # ---- literals and types ----------------------------------------------------------------------------------------

    def type(self, type_: Type) -> str:
        return _TYPES[type_]

    def boolean(self, value: bool) -> str:  # noqa: FBT001
        return "TRUE" if value else "FALSE"

    def integer(self, value: int) -> str:
        return f"CAST('{value:d}' AS BIGINT)" if value < 0 else f"{value:d}::BIGINT"

    def double(self, value: float) -> str:
        return f"CAST('{value!r}' AS DOUBLE)"

    def string(self, value: str) -> str:
        if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
            raise InvalidQuery("a string must be Unicode text without the NUL character.")
        return "'" + value.replace("'", "''") + "'"

    def date(self, value: dt.date) -> str:
        return f"DATE '{value.year:04d}-{value.month:02d}-{value.day:02d}'"

    def timestamp(self, value: dt.datetime) -> str:
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"

    def missing(self, function: str, types: Sequence[Type | None], result: Type | None) -> str | None:  # noqa: ARG002
        return None

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def arithmetic(self, operator: str, x: str, y: str) -> str:
        return f"{x} {operator} {y}"

    def finite(self, x: str) -> str:
        return f"isfinite({x})"

    def whole(self, x: str) -> str:
        return f"TRY_CAST({x} AS BIGINT)"

    def wide(self, x: str) -> str:
        return f"CAST({x} AS HUGEINT)"

    def shifted(self, x: str, bits: int) -> str:
        return f"({x} >> {bits:d})"

    def total(self, x: str, over: str = "") -> str:
        return f"SUM({x}){over}"

    def quotient(self, x: str, y: str) -> str:
        return f"({x} // {y})"

    def truncated(self, x: str) -> str:
        return f"trunc({x})"

    def nearest(self, x: str) -> str:
        return f"round({x})"

    def remainder(self, x: str, y: str) -> str:
        return f"({x} % {y})"

    def function(self, name: str, *arguments: str) -> str:
        text = f"{name}({', '.join(arguments)})"
        return f"CAST({text} AS DOUBLE)" if name == "sign" else text

    def power(self, x: str, exponent: str) -> str:
        return f"pow({x}, {exponent})"

    def extreme(self, name: str, arguments: Sequence[str]) -> str:
        return f"{name}({', '.join(arguments)})"

    # ---- strings ---------------------------------------------------------------------------------------------------

    def like(self, x: str, pattern: str, *, fold: bool) -> str:
        return f"({x} {'ILIKE' if fold else 'LIKE'} {self.string(pattern)})"

    def starts_with(self, x: str, start: str) -> str:
        return f"starts_with({x}, {self.string(start)})"

    def matches(self, x: str, pattern: str) -> str:
        return f"regexp_full_match({x}, {self.string(pattern)})"

    def day(self, x: str) -> str:
        return f"(DATE '1970-01-01' + CAST({x} AS INTEGER))"

    def searches(self, x: str, pattern: str) -> str:
        return f"regexp_matches({x}, {self.string(pattern)})"

    def text(self, name: str, x: str) -> str:
        return f"trim({x}, ' ')" if name == "trim" else f"{name}({x})"

    def substring(self, x: str, start: int, length: int) -> str:
        return f"substring({x}, {start:d}, {length:d})"

    def replaced(self, x: str, old: str, new: str) -> str:
        return f"replace({x}, {self.string(old)}, {self.string(new)})"

    def try_cast(self, x: str, type_: Type) -> str:
        return f"TRY_CAST({x} AS {_TYPES[type_]})"

    # ---- times -----------------------------------------------------------------------------------------------------

    def date_trunc(self, unit: str, x: str, type_: Type) -> str:
        return f"TRY(CAST(date_trunc('{unit}', {x}) AS {_TYPES[type_]}))"

    def part(self, part: str, x: str) -> str:
        return f"TRY(CAST(date_part('{part}', {x}) AS BIGINT))"

    def date_diff(self, unit: str, start: str, end: str) -> str:
        if unit == "week":
            mondays = f"date_diff('day', date_trunc('week', {start}), date_trunc('week', {end}))"
            return f"TRY(CAST({mondays} // 7 AS BIGINT))"
        return f"TRY(CAST(date_diff('{unit}', {start}, {end}) AS BIGINT))"

    def moved(self, x: str, amount: int, unit: str) -> str:
        most = _MOST_MOVED[unit]
        return f"TRY(TRY_CAST({x} AS TIMESTAMP) + to_{unit}s({min(max(amount, -most), most):d}))"

    # ---- relations -------------------------------------------------------------------------------------------------

    def hash(self, values: Sequence[str]) -> str:
        return f"hash({', '.join(values)})"

    def quantile(self, x: str, q: Fraction, over: str = "") -> str:
        return f"quantile_disc({x}, {self.double(float(q))}){over}"

    def wall(self) -> str:
        return f" LIMIT {EVERY_ROW}"

    def limbs(self, total: str) -> tuple[str, str]:
        wide = f"COALESCE(CAST({total} AS HUGEINT), 0::HUGEINT)"
        return f"TRY_CAST({wide} >> 63 AS BIGINT)", f"TRY_CAST({wide} & {_LOW}::HUGEINT AS BIGINT)"

    def semi_join(self, left: str, right: str, on: str, *, anti: bool) -> str:
        return f"({left}) AS l {'ANTI' if anti else 'SEMI'} JOIN ({right}) AS r ON {on}"

    def named(self, name: str, query: str, *, once: bool | None) -> str:
        how = {True: "MATERIALIZED ", False: "NOT MATERIALIZED ", None: ""}[once]
        return f"{name} AS {how}({query})"

    def first_rows(self, sources: Sequence[str], most: int) -> str:
        """A window without partition and order is computed while rows pass: nothing is sorted, kept or spilled.

        A unit's rows lie together, so it begins behind the place __o0 - __r of its table: whoever's row has that place or one
        before it is somebody else. lag() reaches STREAMED rows back; beyond that rows are counted, and from each number that
        of the unit's first row is taken, which is the largest so far of those at which a unit begins.
        """
        return " UNION ALL ".join(first_rows_of(source, most) for source in sources)

    def place(self) -> str:
        return "rowid"

    def parts_of_units(self, parts: int) -> list[str | None]:
        return ranges_of_parts(parts)


def first_rows_of(source: str, most: int) -> str:
    """Return the SELECT of the first rows of every unit of a source."""
    before = "lag(__o0, 1, -1) OVER () AS __before"
    if most <= STREAMED:
        back = f"lag(__o0, {most:d}, -1) OVER () AS __back"
        passing, first = select(["*", back, before], source), "__back <= __o0 - __r"
    else:
        counted = select(["*", "row_number() OVER () AS __n", before], source)
        began = "max(CASE WHEN __before <= __o0 - __r THEN __n ELSE 0 END) OVER (ROWS UNBOUNDED PRECEDING) AS __began"
        passing, first = select(["*", began], rows_of(counted)), f"__n - __began < {most:d}"
    kept = f"CASE WHEN __before >= __o0 THEN error('{DISORDER}') ELSE {first} END"
    return select(["*"], rows_of(passing), when=[kept])


def ranges_of_parts(parts: int) -> list[str | None]:
    """Return conditions on `__b` of which each holds of whole units, and one of every unit: each can be given to a thread."""
    edges = [UNIT_PARTS * number // parts for number in range(1, parts)]
    least = ["", *(f"__b >= {edge:d}" for edge in edges)]
    below = [*(f"__b < {edge:d}" for edge in edges), ""]
    return [" AND ".join(filter(None, pair)) or None for pair in zip(least, below, strict=True)]


DUCKDB = DuckDB()
"""The one dialect object: it has no state."""
