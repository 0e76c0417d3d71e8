# ruff: noqa: S608 -- every part is ours
r"""PostgreSQL's spelling, from version 17 on.

What its functions do at their edges, and why the snippets are as they are:
- + - * / raise where a result overflows, underflows or divides by 0, and so do exp and power: functions of ours decide by
  magnitude before they compute. None is STRICT: such functions are not put into the statement that calls them;
- a cast that does not fit raises: `pg_input_is_valid` is asked before, of texts, and bounds are, of numbers;
- round() takes halves to even numbers;
- SUM of 64-bit integers is NUMERIC, which nothing overflows; NUMERIC has no shifts, but div and mod;
- the text of a double is another one than everybody else's where it is whole or from 1e15 on;
- texts compare by the bytes of their UTF-8 under the collation "C", which every stored column has; the letters of all
  alphabets have cases under `pg_catalog.pg_c_utf8` alone, whatever the server's own locale is;
- '24:00' and a second 60 are times to PostgreSQL, and the next day or minute;
- date_trunc of a date goes through a time zone, so dates become timestamps before;
- . \b and \B mean something else in its regular expressions, and its classes are those of a locale: patterns are
  written anew.

The functions stand in the schema in which the prepared tables are: the search path names it and nothing else but the
server's catalogue.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from curador.engines.lower.sql import EVERY_ROW
from curador.errors import InvalidQuery
from curador.study.values import Type

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from fractions import Fraction

NAME = "PostgreSQL"

TYPES = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INTEGER: "BIGINT",
    Type.DECIMAL: "DOUBLE PRECISION",
    Type.FLOAT: "DOUBLE PRECISION",
    Type.STRING: "TEXT",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
_MOST_MOVED = {"year": 10_000, "quarter": 40_000, "month": 120_000, "week": 530_000, "day": 3_700_000}
_SECONDS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_FARTHEST = 317_000_000_000
"""Seconds that a moment is moved at most: ten thousand years."""

_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_PARTS = {"dayofweek": "dow", "dayofyear": "doy"}
_FIRST = "TIMESTAMP '0001-01-01 00:00:00'"
_COMPUTED = {"+": "__add", "-": "__subtract", "*": "__multiply", "/": "__divide"}

_SIGNS = {"(?s:.)": ".", "(?:$)": r"\Z", "^": r"\A", r"\b": r"\y", r"\B": r"\Y"}
"""What stands here for a sign of our patterns, where it is no part of a set of characters."""

_SIGN = re.compile(r"\(\?s:\.\)|\(\?:\$\)|\[(?:\\.|[^\]\\])*\]|\\x[0-9a-f]{2}|\\.|.", re.DOTALL)
_CODE = re.compile(r"(?<!\\)((?:\\\\)*)\\x([0-9a-f]{2})")


class PostgreSQL:
    """The dialect of a PostgreSQL server."""

    # ---- literals and types ----------------------------------------------------------------------------------------

    def type(self, type_: Type) -> str:
        return TYPES[type_]

    def boolean(self, value: bool) -> str:  # noqa: FBT001
        return "TRUE" if value else "FALSE"

    def integer(self, value: int) -> str:
        return f"CAST('{value:d}' AS BIGINT)"

    def double(self, value: float) -> str:
        return f"CAST('{value!r}' AS DOUBLE PRECISION)"

    def string(self, value: str) -> str:
        if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
            raise InvalidQuery("a string must be Unicode text without the NUL character.")
        return "CAST('" + value.replace("'", "''") + "' AS TEXT)"

    def date(self, value: dt.date) -> str:
        return f"DATE '{value.year:04d}-{value.month:02d}-{value.day:02d}'"

    def timestamp(self, value: dt.datetime) -> str:
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"

    def missing(self, function: str, types: Sequence[Type | None], result: Type | None) -> str | None:  # noqa: ARG002
        return None

    # ---- numbers ---------------------------------------------------------------------------------------------------

    def arithmetic(self, operator: str, x: str, y: str) -> str:
        return f"{_COMPUTED[operator]}({x}, {y})"

    def finite(self, x: str) -> str:
        return f"(abs({x}) < CAST('Infinity' AS DOUBLE PRECISION))"  # NaN is larger than every number

    def whole(self, x: str) -> str:
        return f"__whole({x})"

    def wide(self, x: str) -> str:
        return f"CAST({x} AS NUMERIC)"

    def shifted(self, x: str, bits: int) -> str:
        return f"div(CAST({x} AS NUMERIC), {1 << bits:d})"

    def total(self, x: str, over: str = "") -> str:
        return f"SUM({x}){over}"

    def quotient(self, x: str, y: str) -> str:
        return f"div({x}, {y})"

    def truncated(self, x: str) -> str:
        return f"trunc({x})"

    def nearest(self, x: str) -> str:
        return f"__nearest({x})"

    def remainder(self, x: str, y: str) -> str:
        return f"__remainder({x}, {y})"

    def function(self, name: str, *arguments: str) -> str:
        return f"{'__exp' if name == 'exp' else name}({', '.join(arguments)})"

    def power(self, x: str, exponent: str) -> str:
        return f"__power({x}, {exponent})"

    def extreme(self, name: str, arguments: Sequence[str]) -> str:
        return f"{name}({', '.join(arguments)})"

    # ---- strings ---------------------------------------------------------------------------------------------------

    def like(self, x: str, pattern: str, *, fold: bool) -> str:
        how = " COLLATE pg_catalog.pg_c_utf8 ILIKE" if fold else " LIKE"
        return f"({x}{how} {self.string(pattern)} ESCAPE '')"

    def starts_with(self, x: str, start: str) -> str:
        return f"starts_with({x}, {self.string(start)})"

    def matches(self, x: str, pattern: str) -> str:
        return f'({x} COLLATE "C" ~ {self.string(f"^(?:{pattern})$")})'

    def day(self, x: str) -> str:
        return f"(DATE '1970-01-01' + CAST({x} AS INTEGER))"

    def searches(self, x: str, pattern: str) -> str:
        return f'({x} COLLATE "C" ~ {self.string(written_pattern(pattern))})'

    def text(self, name: str, x: str) -> str:
        if name == "trim":
            return f"btrim({x}, ' ')"
        if name == "length":
            return f"CAST(char_length({x}) AS BIGINT)"
        return f'({name}({x} COLLATE pg_catalog.pg_c_utf8) COLLATE "C")'

    def substring(self, x: str, start: int, length: int) -> str:
        return f"substr({x}, {start:d}, {length:d})"

    def replaced(self, x: str, old: str, new: str) -> str:
        return f"replace({x}, {self.string(old)}, {self.string(new)})"

    def try_cast(self, x: str, type_: Type) -> str:
        name = "float" if type_ is Type.DECIMAL else str(type_)
        return f"__{name}_of({x})"  # one of several functions, by the type that x has

    # ---- times -----------------------------------------------------------------------------------------------------

    def date_trunc(self, unit: str, x: str, type_: Type) -> str:
        return f"CAST(date_trunc('{unit}', CAST({x} AS TIMESTAMP)) AS {TYPES[type_]})"

    def part(self, part: str, x: str) -> str:
        return f"CAST(trunc(extract({_PARTS.get(part, part)} FROM CAST({x} AS TIMESTAMP))) AS BIGINT)"

    def date_diff(self, unit: str, start: str, end: str) -> str:
        first, last = f"CAST({start} AS TIMESTAMP)", f"CAST({end} AS TIMESTAMP)"
        if unit in _MONTHS:
            months = (f"(extract(year FROM {one}) * 12 + extract(month FROM {one}) - 1)" for one in (last, first))
            ends = [f"div({one}, {_MONTHS[unit]:d})" for one in months]
        else:  # 1970-01-01 was a Thursday
            offset = 3 * _SECONDS["day"] if unit == "week" else 0
            seconds = (f"(extract(epoch FROM date_trunc('{unit}', {one})) + {offset:d})" for one in (last, first))
            ends = [f"div({one}, {_SECONDS[unit]:d})" for one in seconds]
        return f"CAST({ends[0]} - {ends[1]} AS BIGINT)"

    def moved(self, x: str, amount: int, unit: str) -> str:
        moment = f"CAST({x} AS TIMESTAMP)"
        if unit in _MONTHS:
            months = min(abs(amount), _MOST_MOVED[unit]) * _MONTHS[unit]
            step = f"make_interval(months => {months:d})"
        else:
            seconds = min(abs(amount) * _SECONDS[unit], _FARTHEST)
            step = f"make_interval(days => {seconds // 86_400:d}, secs => {seconds % 86_400:d})"
        if amount >= 0:
            return f"({moment} + {step})"
        return f"(CASE WHEN {moment} < {_FIRST} + {step} THEN {_FIRST} ELSE {moment} - {step} END)"

    # ---- relations -------------------------------------------------------------------------------------------------

    def hash(self, values: Sequence[str]) -> str:
        return f"hash_record_extended(ROW({', '.join(values)}), 0)"

    def quantile(self, x: str, q: Fraction, over: str = "") -> str:
        return f"percentile_disc({self.double(float(q))}) WITHIN GROUP (ORDER BY {x}){over}"

    def wall(self) -> str:
        return f" LIMIT {EVERY_ROW}"

    def limbs(self, total: str) -> tuple[str, str]:
        wide = f"COALESCE(CAST({total} AS NUMERIC), 0)"
        return f"CAST(div({wide}, {1 << 63:d}) AS BIGINT)", f"CAST(mod({wide}, {1 << 63:d}) AS BIGINT)"

    def semi_join(self, left: str, right: str, on: str, *, anti: bool) -> str:
        found = f"EXISTS (SELECT 1 FROM ({right}) AS r WHERE {on})"
        return f"(SELECT l.* FROM ({left}) AS l WHERE {'NOT ' if anti else ''}{found}) AS l"

    def named(self, name: str, query: str, *, once: bool | None) -> str:
        how = {True: "MATERIALIZED ", False: "NOT MATERIALIZED ", None: ""}[once]
        return f"{name} AS {how}({query})"

    def first_rows(self, sources: Sequence[str], most: int) -> str | None:  # noqa: ARG002
        return None

    def parts_of_units(self, parts: int) -> list[str | None]:  # noqa: ARG002
        return [None]

    def place(self) -> str | None:
        return None


def written_pattern(pattern: str) -> str:
    """Return a pattern of `query/patterns.py`, which has one meaning, as PostgreSQL writes what it means."""
    signs = (_SIGNS.get(found[0]) or _CODE.sub(r"\1\\u00\2", found[0]) for found in _SIGN.finditer(pattern))
    return f"(?:{''.join(signs)})"


POSTGRES = PostgreSQL()
"""The one dialect object: it has no state."""


# ---- functions -------------------------------------------------------------------------------------------------------------

_FLOAT, _NUMBER = "DOUBLE PRECISION", "CAST('{}' AS DOUBLE PRECISION)"
_INFINITY, _NAN = _NUMBER.format("Infinity"), _NUMBER.format("NaN")
_HUGE, _FAINT, _HALVED = (_NUMBER.format(repr(one)) for one in (2.0**1022, 2.0**900, 0.5))
_MOST = _NUMBER.format(repr(sys.float_info.max / 2))
"""Of half a sum, so that the sum itself is a number."""

_LARGE, _SMALL = _NUMBER.format(repr(2.0**500)), _NUMBER.format(repr(2.0**-500))
_FAR, _NEAR = _NUMBER.format("709.7827"), _NUMBER.format("-744.0")
"""A little inside the logarithms of the largest double and of the smallest above 0."""

_PLAIN = f"abs(x) BETWEEN {_SMALL} AND {_LARGE} AND abs(y) BETWEEN {_SMALL} AND {_LARGE}"
_SPECIAL = f"x = 0 OR abs(x) >= {_INFINITY} OR abs(y) >= {_INFINITY}"  # NaN is at least infinite here
_GROUND = _NUMBER.format(repr(2.0**53))


def _beyond(operator: str, sign: str) -> str:
    """The product or quotient of numbers that are far from 1: decided by the sum or difference of their logarithms."""
    logarithm = f"ln(abs(x)) {sign} ln(abs(y))"
    return (
        f"CASE WHEN {logarithm} > {_FAR} THEN {_INFINITY} WHEN {logarithm} < {_NEAR} THEN {_NUMBER.format('0')}"
        f" ELSE x {operator} y END"
    )


def _function(name: str, takes: str, gives: str, body: str, *, stable: bool = False) -> str:
    """One function: without STRICT, so that it becomes a part of the statement that calls it where that is cheap."""
    named = ", ".join(f"{one} {kind}" for one, kind in zip("xy", takes.split(", "), strict=False))
    how = "STABLE" if stable else "IMMUTABLE"
    return f"CREATE FUNCTION {name}({named}) RETURNS {gives} {how} PARALLEL SAFE LANGUAGE sql AS $${'SELECT '}{body}$$"


def _valid(kind: str, more: str = "") -> str:
    return f"CASE WHEN pg_input_is_valid(x, '{kind}'){more} THEN CAST(x AS {kind}) END"


_HALF = f"CASE WHEN abs(x) < {_GROUND} AND abs(x - trunc(x)) >= {_NUMBER.format('0.5')} THEN sign(x) ELSE 0 END"


_BITS = "CAST(CAST('x' || encode(float8send(abs(x)), 'hex') AS BIT(64)) AS BIGINT)"
_MANTISSA = f"CASE WHEN {_BITS} < {1 << 52:d} THEN {_BITS} ELSE {_BITS} % {1 << 52:d} + {1 << 52:d} END"
_EXPONENT = f"GREATEST({_BITS} >> 52, 1)"
_APART = "(__exponent(x) - __exponent(y))"
_LEFT = (
    f"CASE WHEN {_APART} <= 10 THEN (__mantissa(x) << CAST({_APART} AS INTEGER)) % __mantissa(y)"
    f" ELSE CAST(mod(__mantissa(x) * power(2::NUMERIC, CAST({_APART} AS NUMERIC)), __mantissa(y)) AS BIGINT) END"
)
_UNIT = f"power({_NUMBER.format('2')}, CAST(__exponent(y) - 1075 AS {_FLOAT}))"
"""The remainder of m·2^e by n·2^f with e ≥ f is that of m·2^(e−f) by n, times 2^f: of whole numbers, so exact."""
_PAIR = f"{_FLOAT}, {_FLOAT}"
_TEXT_OF_FLOAT = (
    f"CASE WHEN x >= {_INFINITY} THEN 'inf' WHEN x <= -{_INFINITY} THEN '-inf'"
    f" WHEN abs(x) >= {_NUMBER.format('1e16')} THEN CAST(x AS TEXT)"
    f" WHEN abs(x) >= {_NUMBER.format('1e15')} AND x = trunc(x) THEN CAST(CAST(x AS BIGINT) AS TEXT) || '.0'"
    f" WHEN abs(x) >= {_NUMBER.format('1e15')} THEN CAST(CAST(CAST(x AS TEXT) AS NUMERIC) AS TEXT)"
    f" WHEN x = trunc(x) THEN CAST(x AS TEXT) || '.0' ELSE CAST(x AS TEXT) END"
)

FUNCTIONS = (
    _function(
        "__add",
        _PAIR,
        _FLOAT,
        f"CASE WHEN abs(x) <= {_HUGE} AND abs(y) <= {_HUGE} THEN x + y"
        f" WHEN abs(x) >= {_INFINITY} OR abs(y) >= {_INFINITY} OR LEAST(abs(x), abs(y)) < {_FAINT} THEN x + y"
        f" WHEN abs(x * {_HALVED} + y * {_HALVED}) <= {_MOST} THEN x + y ELSE {_NAN} + x + y END",
    ),
    _function("__subtract", _PAIR, _FLOAT, "__add(x, - y)"),
    _function(
        "__multiply",
        _PAIR,
        _FLOAT,
        f"CASE WHEN {_PLAIN} THEN x * y WHEN {_SPECIAL} OR y = 0 THEN x * y ELSE {_beyond('*', '+')} END",
    ),
    _function(
        "__divide",
        _PAIR,
        _FLOAT,
        f"CASE WHEN {_PLAIN} THEN x / y WHEN y = 0 THEN NULL WHEN {_SPECIAL} THEN x / y ELSE {_beyond('/', '-')} END",
    ),
    _function("__nearest", _FLOAT, _FLOAT, f"trunc(x) + {_HALF}"),
    _function("__mantissa", _FLOAT, "BIGINT", _MANTISSA),
    _function("__exponent", _FLOAT, "BIGINT", _EXPONENT),
    _function(
        "__remainder",
        _PAIR,
        _FLOAT,
        f"CASE WHEN y = 0 OR abs(x) >= {_INFINITY} OR abs(y) >= {_INFINITY} THEN NULL WHEN abs(x) < abs(y) THEN x"
        f" ELSE sign(x) * CAST({_LEFT} AS {_FLOAT}) * {_UNIT} END",
    ),
    _function(
        "__exp",
        _FLOAT,
        _FLOAT,
        f"CASE WHEN x > {_FAR} THEN {_INFINITY} WHEN x < {_NEAR} THEN 0 ELSE exp(x) END",
    ),
    _function(
        "__power",
        _PAIR,
        _FLOAT,
        f"CASE WHEN x IS NULL OR y IS NULL THEN NULL WHEN y = 0 OR x = 1 THEN 1"
        f" WHEN x = 0 AND y < 0 THEN {_INFINITY} WHEN x = 0 THEN 0"
        f" WHEN x < 0 AND y <> trunc(y) THEN {_NAN} WHEN __multiply(y, ln(abs(x))) > {_FAR} THEN {_INFINITY}"
        f" WHEN __multiply(y, ln(abs(x))) < {_NEAR} THEN 0 ELSE power(x, y) END",
    ),
    *(
        _function("__whole", kind, "BIGINT", f"CASE WHEN x >= {-(1 << 63):d} AND x < {1 << 63:d} THEN CAST(x AS BIGINT) END")
        for kind in (_FLOAT, "NUMERIC")
    ),
    _function("__whole", "BIGINT", "BIGINT", "x"),
    _function("__integer_of", "TEXT", "BIGINT", _valid("BIGINT"), stable=True),
    _function("__float_of", "TEXT", _FLOAT, _valid(_FLOAT), stable=True),
    _function("__date_of", "TEXT", "DATE", _valid("DATE"), stable=True),
    _function("__date_of", "TIMESTAMP", "DATE", "CAST(x AS DATE)"),
    _function("__date_of", "DATE", "DATE", "x"),
    _function("__timestamp_of", "TEXT", "TIMESTAMP", _valid("TIMESTAMP", " AND x !~ '[ T]24|:60'"), stable=True),
    _function("__timestamp_of", "DATE", "TIMESTAMP", "CAST(x AS TIMESTAMP)"),
    _function("__timestamp_of", "TIMESTAMP", "TIMESTAMP", "x"),
    _function("__string_of", "TEXT", "TEXT", "x"),
    _function("__string_of", "BIGINT", "TEXT", "CAST(x AS TEXT)"),
    _function("__string_of", "DATE", "TEXT", "CAST(x AS TEXT)", stable=True),
    _function("__string_of", "TIMESTAMP", "TEXT", "CAST(x AS TEXT)", stable=True),
    _function("__string_of", _FLOAT, "TEXT", _TEXT_OF_FLOAT),
)
"""The functions that the snippets call, made once in the schema of a prepared version."""
