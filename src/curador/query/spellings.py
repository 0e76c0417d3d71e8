"""Functions that are other functions in another spelling: each becomes an expression of what the catalogue has.

texts of dates   STRFTIME, TO_CHAR, FORMAT_DATE, DATE_FORMAT, DAYNAME, MONTHNAME: `date_texts.py`
buckets          WIDTH_BUCKET(x, low, high, n), of equal width
patterns         REGEXP_MATCHES, REGEXP_LIKE, RLIKE, ~, SIMILAR TO: `patterns.py`
quotients        SAFE_DIVIDE: NULL where the divisor is 0, as every quotient here
dates            MAKE_DATE(2024, 12, 31), MAKE_TIMESTAMP: of written numbers, so a literal
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import date_texts, typed_terms
from curador.query.constants import whole_constant
from curador.query.context import Reading, take_arguments
from curador.query.functions import AGGREGATES
from curador.query.messages import invalid
from curador.query.patterns import read_pattern
from curador.query.text import function_name
from curador.query.tree import Aggregate, Call
from curador.query.typed_terms import TypedTerm, call_term, literal_term
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.query.tree import Node

MOST_BUCKETS = 100_000

# ---- texts of dates --------------------------------------------------------------------------------------------------------


DATE_TEXTS = frozenset(
    {"STRFTIME", "TO_CHAR", "TO_VARCHAR", "FORMAT_DATE", "FORMAT_DATETIME", "FORMAT_TIMESTAMP", "DATE_FORMAT"}
)
"""Functions that the parser must leave as they are written: it would translate their formats, and not all of them."""


def read_date_text(node: exp.Anonymous, reading: Reading) -> TypedTerm:
    """Return STRFTIME(x, '%Y-%m'), whatever it is called and on whichever side the format stands."""
    arguments: list[exp.Expr] = take_arguments(node, reading.context, "this", "expressions")[1] or []
    name, place = str(node.this).lower(), reading.place(node)
    if len(arguments) != 2:
        raise invalid(place, f"{name}() must have a date and a format", "CAST(x AS VARCHAR) writes any value as a text.")
    first, second = (reading.of(one) for one in arguments)
    if isinstance(typed_terms.value_of(first), str) and not isinstance(typed_terms.value_of(second), str):
        first, second = second, first
    shape = typed_terms.value_of(second)
    if not isinstance(shape, str):
        raise invalid(place, f"the format of {name}() must be a string written here", f"{name}(x, '%Y-%m')")
    if first.type is not None and not first.type.temporal and not isinstance(typed_terms.value_of(first), str):
        raise invalid(place, f"what {name}() is of must be a date or a timestamp", "CAST(x AS VARCHAR) writes any value.")
    moment = typed_terms.require_time(first, f"what {name}() is of")
    pieces = date_texts.read_format(shape, name, reading.context.dialect, place)
    return date_texts.format_time(moment, pieces, place)


def _name_of_part(node: exp.Dayname | exp.Monthname, reading: Reading) -> TypedTerm:
    this, short = take_arguments(node, reading.context, "this", "abbreviated")
    what = "day" if isinstance(node, exp.Dayname) else "month"
    moment = typed_terms.require_time(reading.of(this), f"what {what}name() is of")
    brief = bool(short) or reading.context.dialect in {"spark", "snowflake"}
    return date_texts.name_part(moment, what, short=brief, place=reading.place(node))


# ---- buckets and quotients -------------------------------------------------------------------------------------------------


def _width_bucket(node: exp.WidthBucket, reading: Reading) -> TypedTerm:
    """0 below low, n + 1 from high on, else 1 + floor((x − low) · n / (high − low)) cut to 1 … n, NULL of NULL."""
    this, *written = take_arguments(node, reading.context, "this", "min_value", "max_value", "num_buckets")
    place = reading.place(node)
    term = typed_terms.require_number(reading.of(this), "what width_bucket() is of")
    numbers = [None if one is None else typed_terms.fraction_of(reading.of(one)) for one in written]
    low, high, many = numbers
    if low is None or high is None or many is None or low >= high or many.denominator != 1 or not 1 <= many <= MOST_BUCKETS:
        raise invalid(
            place,
            f"width_bucket() must have a low end, a higher end and a whole number up to {MOST_BUCKETS:,}, all written here",
            "WIDTH_BUCKET(x, 0, 100, 10)",
        )
    ends = [typed_terms.number_term(end, Type.DECIMAL, place) for end in (low, high)]
    count, width = literal_term(int(many), Type.INTEGER), typed_terms.number_term(high - low, Type.FLOAT, place)
    one = literal_term(1, Type.INTEGER)
    moved = call_term("*", Type.FLOAT, (call_term("-", Type.FLOAT, (term, ends[0])), count))
    moved = call_term("/", Type.FLOAT, (moved, width))
    inside = call_term("+", Type.INTEGER, (call_term("floor", Type.INTEGER, (moved,)), one))
    kept = call_term("least", Type.INTEGER, (call_term("greatest", Type.INTEGER, (inside, one)), count))
    arms = [
        call_term("<", Type.BOOLEAN, (term, ends[0])),
        literal_term(0, Type.INTEGER),
        call_term(">=", Type.BOOLEAN, (term, ends[1])),
        literal_term(int(many) + 1, Type.INTEGER),
        typed_terms.not_null(term),
        kept,
    ]
    return call_term("case", Type.INTEGER, [*arms, literal_term(None, Type.INTEGER)], nullable=term.nullable, place=place)


def _safe_divide(node: exp.SafeDivide, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    return divide_terms(reading.of(this), reading.of(expression), reading.place(node))


def is_whole(node: Node) -> bool:
    """Whether a number is whole by its type in SQL: a released SUM, MIN or MAX of whole numbers, too."""
    if node.type is Type.INTEGER:
        return True
    if isinstance(node, Aggregate):
        of_its_type = AGGREGATES[node.function].keeps or node.q in {0, 1}
        return of_its_type and node.argument is not None and node.argument.type is Type.INTEGER
    return isinstance(node, Call) and node.function in _WHOLE_OF_WHOLES and all(map(is_whole, node.arguments))


_WHOLE_OF_WHOLES = {"+", "-", "*", "//", "%", "neg", "abs", "coalesce", "nullif", "least", "greatest"}


def _nvl2(node: exp.Nvl2, reading: Reading) -> TypedTerm:
    this, true, false = take_arguments(node, reading.context, "this", "true", "false")
    there = exp.Not(this=exp.Is(this=this, expression=exp.Null()))
    return reading.of(exp.If(this=there, true=true, false=false))


# ---- dates of numbers ------------------------------------------------------------------------------------------------------


def _make_date(node: exp.DateFromParts, reading: Reading) -> TypedTerm:
    names = ("year", "month", "day")
    year, month, day = _written_parts(node, take_arguments(node, reading.context, *names), reading, "make_date()")
    place = reading.place(node)
    return literal_term(typed_terms.parse_date(f"{year:04}-{month:02}-{day:02}", place), Type.DATE, place)


def _make_timestamp(node: exp.TimestampFromParts, reading: Reading) -> TypedTerm:
    names = ("year", "month", "day", "hour", "min", "sec")
    *whole, second = take_arguments(node, reading.context, *names)
    place = reading.place(node)
    year, month, day, hour, minute = _written_parts(node, whole, reading, "make_timestamp()")
    seconds = None if second is None else typed_terms.fraction_of(reading.of(second))
    micros = None if seconds is None else seconds * 1_000_000
    if micros is None or micros.denominator != 1 or not 0 <= micros < 60_000_000:
        raise invalid(place, "the seconds of make_timestamp() must be a number from 0 to below 60 written here")
    text = f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{int(micros) // 1_000_000:02}.{int(micros) % 1_000_000:06}"
    return literal_term(typed_terms.parse_timestamp(text, place), Type.TIMESTAMP, place)


def _written_parts(node: exp.Expr, parts: Sequence[Any], reading: Reading, name: str) -> list[int]:
    found = [whole_constant(one) for one in parts]
    whole = [one for one in found if one is not None and 0 <= one <= 9999]
    if len(whole) < len(found):
        hint = "DATE '2024-12-31'; DATE_TRUNC('month', x) is the first day of a month."
        raise invalid(reading.place(node), f"{name} must be of whole numbers written here", hint)
    return whole


# ---- regular expressions ---------------------------------------------------------------------------------------------------


def _regular(node: exp.RegexpLike | exp.RegexpILike, reading: Reading) -> TypedTerm:
    """REGEXP_MATCHES, REGEXP_LIKE, REGEXP_CONTAINS, RLIKE, ~ and ~*."""
    this, expression, flag, whole = take_arguments(
        node, reading.context, "this", "expression", "flag", "full_match", ignored=("function",)
    )
    flags = "" if flag is None else flag.name
    if flag is not None and (not isinstance(flag, exp.Literal) or set(flags) - {"i", "c"}):
        raise invalid(reading.place(node), "the flags of a regular expression must be 'i', or nothing")
    operator = reading.context.dialect == "duckdb" and function_name(node, reading.context.text) != "regexp_matches"
    fold = isinstance(node, exp.RegexpILike) or "i" in flags
    return _match_text(this, expression, node, reading, fold=fold, whole=bool(whole) or operator)


def _whole_match(node: exp.RegexpFullMatch | exp.SimilarTo, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    if isinstance(node, exp.SimilarTo) and reading.context.dialect != "duckdb":
        raise invalid(reading.place(node), "SIMILAR TO is not part of the language in this dialect", "x ~ '^(a|b)[0-9]+$'.")
    return _match_text(this, expression, node, reading, fold=False, whole=True)


def _match_text(
    this: exp.Expr, expression: exp.Expr, node: exp.Expr, reading: Reading, *, fold: bool, whole: bool
) -> TypedTerm:
    term = typed_terms.require_text(reading.of(this), "what a regular expression is said of")
    written = reading.of(expression)
    text, place = typed_terms.value_of(written), reading.place(node)
    if not isinstance(text, str):
        raise invalid(place, "a regular expression must be a string written here, not a column or an expression")
    lines = reading.context.dialect == "postgres"
    pattern = read_pattern(text, written.place or place, fold=fold, whole=whole, lines=lines)
    return call_term("matches", Type.BOOLEAN, (term, literal_term(pattern, Type.STRING)), place=place)


def divide_terms(above: TypedTerm, below: TypedTerm, place: Any) -> TypedTerm:
    """Return a quotient in floats, NULL where the divisor is 0."""
    sides = tuple(typed_terms.require_number(one, "each side of a quotient") for one in (above, below))
    if typed_terms.fraction_of(sides[1]) == 0:
        raise invalid(place, "a division by zero is written here")
    return call_term("/", Type.FLOAT, sides, nullable=True, place=place)


SPELLED_HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], TypedTerm]] = {
    exp.Dayname: _name_of_part,
    exp.Monthname: _name_of_part,
    exp.WidthBucket: _width_bucket,
    exp.SafeDivide: _safe_divide,
    exp.DateFromParts: _make_date,
    exp.TimestampFromParts: _make_timestamp,
    exp.Nvl2: _nvl2,
    exp.RegexpLike: _regular,
    exp.RegexpILike: _regular,
    exp.RegexpFullMatch: _whole_match,
    exp.SimilarTo: _whole_match,
}
