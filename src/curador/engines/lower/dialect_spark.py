"""Spark SQL's spelling, for Spark 4 and for Sail, which speaks the same language; checked on Spark 4 and Sail 0.7.

What their functions do at their edges, and why the snippets are as they are:
- a cast of a double to BIGINT raises beyond 64 bits, or saturates, so what goes in is compared with the ends before;
- `x / 0D` raises on Spark in its strict mode, `%` too: divisors of 0 become NULL;
- floor and ceil give BIGINT and raise beyond 64 bits: x − x % 1 is exact for every double, and a CASE takes it down or up;
- SUM(BIGINT) overflows: sums are of DECIMAL(38, 0), which holds 2¹²⁶;
- `div` of decimals gives BIGINT on Spark, and multiplies by 10⁴ before it divides on Sail: what may be wide is divided by
  powers of two, as doubles, after what is not a multiple was taken off, so that the quotient is exact;
- percentile_disc gives doubles: a quantile is taken from the sorted list of a unit's values;
- times of Sail are counted in nanoseconds inside some functions, which ends in the years 1677 and 2262: times are computed
  as whole days and microseconds here, and dates by calendar functions that reach further;
- a backslash escapes inside literals, and in LIKE where nothing else is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    Type.STRING: "STRING",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP_NTZ",
}
_WIDE = "DECIMAL(38,0)"
_TWO63 = "9.223372036854775808E18D"
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_SECONDS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_MOST_MONTHS = 120_000
_MOST_SECONDS = 320_000_000_000
"""Ten thousand years and a little: further than from one end of the calendar to the other."""
_MIDDLE = 104
"""A sum of 126 bits is cut at the 63rd and here: each of the upper two parts is a whole number that a double holds."""


class Spark:
    """The dialect of Spark and of Sail. `engine` is what it is called in a refusal."""

    def __init__(self, engine: str = "Spark") -> None:
        self.engine = engine

    # ---- literals and types ----------------------------------------------------------------------------------------

    def type(self, type_: Type) -> str:
        return _TYPES[type_]

    def boolean(self, value: bool) -> str:  # noqa: FBT001
        return "TRUE" if value else "FALSE"

    def integer(self, value: int) -> str:
        return f"CAST('{value:d}' AS BIGINT)" if value < 0 else f"{value:d}L"

    def double(self, value: float) -> str:
        named = {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, repr(value))
        return f"CAST('{named}' AS DOUBLE)"

    def string(self, value: str) -> str:
        if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
            raise InvalidQuery("a string must be Unicode text without the NUL character.")
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def date(self, value: dt.date) -> str:
        return f"DATE '{value.year:04d}-{value.month:02d}-{value.day:02d}'"

    def timestamp(self, value: dt.datetime) -> str:
        return f"TIMESTAMP_NTZ '{value.replace(tzinfo=None).isoformat(sep=' ')}'"

    def missing(self, function: str, types: Sequence[Type | None], result: Type | None) -> str | None:
        if function == "matches" and self.engine == "Spark":  # Java's expressions try one way after the other
            return "Spark looks for a pattern in a time that a single text can make long without end"
        if function == "cast" and result is Type.STRING and types[0] in {Type.FLOAT, Type.DECIMAL}:
            return f"{self.engine} spells numbers with a fraction in its own way, so none becomes a text"
        return None

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def arithmetic(self, operator: str, x: str, y: str) -> str:
        return f"{x} / nullif({y}, {self.double(0.0)})" if operator == "/" else f"{x} {operator} {y}"

    def finite(self, x: str) -> str:
        return f"(abs({x}) < {self.double(float('inf'))})"

    def whole(self, x: str) -> str:
        return f"(CASE WHEN {x} >= -{_TWO63} AND {x} < {_TWO63} THEN CAST({x} AS BIGINT) END)"

    def wide(self, x: str) -> str:
        return f"CAST({x} AS {_WIDE})"

    def shifted(self, x: str, bits: int) -> str:
        power = f"CAST('{1 << bits:d}' AS {_WIDE})"
        return f"CAST(CAST({self.wide(x)} - {self.wide(x)} % {power} AS DOUBLE) / {self.double(2.0**bits)} AS BIGINT)"

    def total(self, x: str, over: str = "") -> str:
        return f"SUM({self.wide(x)}){over}"

    def quotient(self, x: str, y: str) -> str:
        return f"({x} div {y})"

    def truncated(self, x: str) -> str:
        return f"(({x}) - ({x}) % CAST(1 AS DOUBLE))"

    def nearest(self, x: str) -> str:
        part = f"(({x}) % CAST(1 AS DOUBLE))"
        return f"(({x}) - {part} + CASE WHEN abs({part}) >= 0.5D THEN signum({x}) ELSE 0D END)"

    def remainder(self, x: str, y: str) -> str:
        return f"({x} % nullif({y}, {self.double(0.0)}))"

    def function(self, name: str, *arguments: str) -> str:
        if name not in {"floor", "ceil"}:
            return f"{name}({', '.join(arguments)})"
        (x,) = arguments
        whole, beyond, step = self.truncated(x), *(("<", "-") if name == "floor" else (">", "+"))
        return f"({whole} {step} CASE WHEN ({x}) % CAST(1 AS DOUBLE) {beyond} 0D THEN 1D ELSE 0D END)"

    def power(self, x: str, exponent: str) -> str:
        return f"pow(CASE WHEN {x} <> 0D OR {exponent} >= 0D THEN {x} END, {exponent})"

    def extreme(self, name: str, arguments: Sequence[str]) -> str:
        return f"{name}({', '.join(arguments)})"

    # ---- strings ---------------------------------------------------------------------------------------------------

    def like(self, x: str, pattern: str, *, fold: bool) -> str:
        return f"({x} {'ILIKE' if fold else 'LIKE'} {self.string(pattern)} ESCAPE '\\u0001')"

    def starts_with(self, x: str, start: str) -> str:
        return f"startswith({x}, {self.string(start)})"

    def matches(self, x: str, pattern: str) -> str:
        return f"({x} RLIKE {self.string(f'^(?:{pattern})$')} AND NOT endswith({x}, {self.string(chr(10))}))"

    def day(self, x: str) -> str:
        return f"date_from_unix_date(CAST({x} AS INT))"

    def searches(self, x: str, pattern: str) -> str:
        return f"({x} RLIKE {self.string(pattern)})"

    def text(self, name: str, x: str) -> str:
        if name == "trim":
            return f"trim(BOTH ' ' FROM {x})"
        return f"CAST(char_length({x}) AS BIGINT)" if name == "length" else f"{name}({x})"

    def substring(self, x: str, start: int, length: int) -> str:
        return f"substring({x}, {start:d}, {length:d})"

    def replaced(self, x: str, old: str, new: str) -> str:
        return f"replace({x}, {self.string(old)}, {self.string(new)})"

    def try_cast(self, x: str, type_: Type) -> str:
        return f"try_cast({x} AS {_TYPES[type_]})"

    # ---- times -----------------------------------------------------------------------------------------------------

    def date_trunc(self, unit: str, x: str, type_: Type) -> str:
        if unit in {"hour", "minute", "second"}:
            micros = _micros(x)
            return f"CAST({_moment(f'{micros} - pmod({micros}, {_SECONDS[unit]}000000L)')} AS {_TYPES[type_]})"
        date = f"CAST({x} AS DATE)"
        if unit in {"day", "week"}:
            begin = date if unit == "day" else f"date_from_unix_date({_monday(x)})"
        else:
            month = {"year": "1", "quarter": f"CAST(quarter({date}) * 3 - 2 AS INT)", "month": f"month({date})"}[unit]
            begin = f"make_date(year({date}), {month}, 1)"
        return f"CAST({begin} AS {_TYPES[type_]})"

    def part(self, part: str, x: str) -> str:
        if part in {"dayofweek", "isodow"}:  # 1970-01-01 was a Thursday: 4 either way
            days = f"unix_date(CAST({x} AS DATE))"
            return (
                f"CAST(pmod({days} + 4, 7) AS BIGINT)" if part == "dayofweek" else f"CAST(pmod({days} + 3, 7) + 1 AS BIGINT)"
            )
        if part in {"hour", "minute", "second"}:
            seconds = f"pmod({_micros(x)} - pmod({_micros(x)}, 1000000L), 86400000000L)"
            most = {"hour": 24, "minute": 60, "second": 60}[part]
            return f"pmod({_divided(seconds, _SECONDS[part] * 1_000_000)}, {most}L)"
        named = {"dayofyear": "DOY"}.get(part, part)
        return f"CAST(extract({named} FROM CAST({x} AS DATE)) AS BIGINT)"

    def date_diff(self, unit: str, start: str, end: str) -> str:
        first, last = (_number_of(unit, moment) for moment in (start, end))
        return f"CAST({last} - {first} AS BIGINT)"

    def moved(self, x: str, amount: int, unit: str) -> str:
        if unit in _MONTHS:
            months = min(max(amount * _MONTHS[unit], -_MOST_MONTHS), _MOST_MONTHS)
            date, micros = f"CAST({x} AS DATE)", _micros(x)
            days = f"CAST(unix_date(add_months({date}, {months:d})) AS BIGINT)"
            return _moment(f"{days} * 86400000000L + pmod({micros}, 86400000000L)")
        seconds = min(max(amount * _SECONDS[unit], -_MOST_SECONDS), _MOST_SECONDS)
        return _moment(f"{_micros(x)} + ({seconds * 1_000_000:d}L)")

    # ---- relations -------------------------------------------------------------------------------------------------

    def hash(self, values: Sequence[str]) -> str:
        return f"xxhash64({', '.join(values)})"

    def quantile(self, x: str, q: Fraction, over: str = "") -> str:
        first = f"(COUNT({x}){over} * {q.numerator:d}L + {q.denominator - 1:d}L) div {q.denominator:d}L"
        return f"get(array_sort(collect_list({x}){over}), CAST(greatest({first}, 1L) - 1L AS INT))"

    def wall(self) -> str:
        return ""

    def limbs(self, total: str) -> tuple[str, str]:
        wide, two = f"COALESCE({self.wide(total)}, {self.wide('0')})", f"CAST('{1 << 63:d}' AS {_WIDE})"
        middle = f"CAST('{1 << _MIDDLE:d}' AS {_WIDE})"
        low = f"({wide} % {two})"
        inner = f"CAST(CAST({wide} % {middle} - {low} AS DOUBLE) / {self.double(2.0**63)} AS BIGINT)"
        outer = f"CAST(CAST({wide} - {wide} % {middle} AS DOUBLE) / {self.double(2.0**_MIDDLE)} AS BIGINT)"
        return f"({inner} + {outer} * {1 << (_MIDDLE - 63):d}L)", f"CAST({low} AS BIGINT)"

    def semi_join(self, left: str, right: str, on: str, *, anti: bool) -> str:
        return f"({left}) AS l {'LEFT ANTI' if anti else 'LEFT SEMI'} JOIN ({right}) AS r ON {on}"

    def named(self, name: str, query: str, *, once: bool | None) -> str:  # noqa: ARG002 -- it computes a part where it stands
        return f"{name} AS ({query})"

    def first_rows(self, sources: Sequence[str], most: int) -> str | None:  # noqa: ARG002 -- rows have no order to pass in
        return None

    def place(self) -> str | None:
        return None

    def parts_of_units(self, parts: int) -> list[str | None]:  # noqa: ARG002
        return [None]


# ---- times as numbers ------------------------------------------------------------------------------------------------------


def _micros(x: str) -> str:
    """Microseconds since 1970, of a date or a moment without zone; the session's zone is UTC."""
    return f"unix_micros(CAST(CAST({x} AS TIMESTAMP_NTZ) AS TIMESTAMP))"


def _moment(micros: str) -> str:
    return f"CAST(timestamp_micros({micros}) AS TIMESTAMP_NTZ)"


def _monday(x: str) -> str:
    """The day on which the week begins, as a number; day 0 was a Thursday."""
    days = f"unix_date(CAST({x} AS DATE))"
    return f"CAST({days} - pmod({days} + 3, 7) AS INT)"


def _divided(x: str, by: int) -> str:
    """A 64-bit number divided and rounded down, exactly."""
    return f"(({x} - pmod({x}, {by:d}L)) div {by:d}L)"


def _number_of(unit: str, x: str) -> str:
    """The number of the unit of time in which a moment lies, counted from anywhere."""
    if unit in _MONTHS:
        date = f"CAST({x} AS DATE)"
        return f"((year({date}) * 12 + month({date}) - 1) div {_MONTHS[unit]:d})"
    if unit == "week":
        return _divided(f"CAST({_monday(x)} AS BIGINT)", 7)
    if unit == "day":
        return f"unix_date(CAST({x} AS DATE))"
    return _divided(_micros(x), _SECONDS[unit] * 1_000_000)


SPARK, SAIL = Spark("Spark"), Spark("Sail")
"""The two dialect objects: they have no state but a name."""
