"""The readers of functions: casts, dates and points in time, numbers and strings, and what the parser knows by name only.

Casts     all of them give NULL where a value does not fit; a literal that does not fit is refused instead
times     dates and points in time: parts, units, differences, and intervals added to them
calls     functions on numbers and strings, and those that the parser knows by name only
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import typed_terms
from curador.query.context import Reading, take_arguments
from curador.query.functions import AGGREGATE_NAMES, FUNCTIONS, UNITS, Function, Reads, Takes
from curador.query.messages import invalid, not_private, quote_name
from curador.query.replacements import replace_function
from curador.query.spellings import DATE_TEXTS, read_date_text
from curador.query.text_parts import TEXT_CALLS, TEXT_HANDLERS, require_written
from curador.query.typed_terms import TypedTerm, call_term, literal_term
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Place


# ---- casts -----------------------------------------------------------------------------------------------------------------


_MOST_SCALE = 15

_TYPES: dict[exp.DType, Type] = {
    **dict.fromkeys(
        (
            exp.DType.TINYINT,
            exp.DType.SMALLINT,
            exp.DType.MEDIUMINT,
            exp.DType.INT,
            exp.DType.BIGINT,
            exp.DType.INT128,
            exp.DType.UTINYINT,
            exp.DType.USMALLINT,
            exp.DType.UINT,
            exp.DType.UBIGINT,
            exp.DType.UINT128,
        ),
        Type.INTEGER,
    ),
    **dict.fromkeys((exp.DType.DECIMAL, exp.DType.BIGDECIMAL), Type.DECIMAL),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE), Type.FLOAT),
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR), Type.STRING),
    exp.DType.BOOLEAN: Type.BOOLEAN,
    exp.DType.DATE: Type.DATE,
    **dict.fromkeys(
        (
            exp.DType.TIMESTAMP,
            exp.DType.TIMESTAMPTZ,
            exp.DType.TIMESTAMPNTZ,
            exp.DType.TIMESTAMPLTZ,
            exp.DType.TIMESTAMP_S,
            exp.DType.TIMESTAMP_MS,
            exp.DType.TIMESTAMP_NS,
            exp.DType.DATETIME,
        ),
        Type.TIMESTAMP,
    ),
}


def _read_cast(node: exp.Cast, reading: Reading) -> TypedTerm:
    this, to = take_arguments(node, reading.context, "this", "to", ignored=("safe", "requires_string"))
    kind, parameters = take_arguments(to, reading.context, "this", "expressions", ignored=("kind",))
    type_ = _TYPES.get(kind)
    if type_ is None or (parameters and type_ is not Type.DECIMAL):
        raise invalid(
            reading.place(node),
            "a cast must be to BOOLEAN, BIGINT, DECIMAL, DOUBLE, VARCHAR, DATE or TIMESTAMP, without length",
        )
    inner = reading.of(this)
    if type_ is Type.INTEGER and reading.context.dialect == "spark":
        inner = _cut_fraction(inner, reading.place(node))
    if type_ is Type.INTEGER and inner.type is Type.FLOAT and reading.context.dialect == "duckdb":
        inner = _halves_to_even(inner, reading.place(node))
    term = cast_term(inner, type_, reading.place(node))
    if type_ is Type.DECIMAL and len(parameters or ()) == 2 and typed_terms.value_of(term) is None:
        scale = reading.of(parameters[1].this)
        digits = typed_terms.value_of(scale)
        if isinstance(digits, int) and digits <= _MOST_SCALE:
            return call_term("round", Type.DECIMAL, (term, scale), place=term.place)
    return term


def _cut_fraction(term: TypedTerm, place: Place | None) -> TypedTerm:
    """Return a number without its fraction, as casts in Spark make whole numbers; others round."""
    number = typed_terms.fraction_of(term)
    if number is not None:
        return typed_terms.number_term(Fraction(int(number)), term.type or Type.FLOAT, place)
    if term.type not in {Type.FLOAT, Type.DECIMAL}:
        return term
    return call_term("//", term.type, (term, literal_term(1, Type.INTEGER)), nullable=term.nullable, place=place)


def _halves_to_even(term: TypedTerm, place: Place | None) -> TypedTerm:
    """Return a number whose halves are the even neighbour already, as DuckDB casts doubles."""
    if typed_terms.value_of(term) is not None or term.is_null:
        return term
    below, above = (call_term(name, Type.FLOAT, (term,), place=place) for name in ("floor", "ceil"))
    half = call_term("-", Type.FLOAT, (term, below), place=place)
    tie = call_term("=", Type.BOOLEAN, (half, literal_term(Fraction(1, 2), Type.DECIMAL)), place=place)
    odd = call_term("%", Type.FLOAT, (below, literal_term(2, Type.INTEGER)), place=place)
    even = call_term("=", Type.BOOLEAN, (odd, literal_term(0, Type.INTEGER)), place=place)
    both = call_term("and", Type.BOOLEAN, (tie, even), place=place)
    return call_term("case", Type.FLOAT, (both, below, tie, above, term), nullable=term.nullable, place=place)


def cast_term(term: TypedTerm, type_: Type, place: Place | None) -> TypedTerm:
    """Return the term in another type, NULL where it does not fit; a literal that does not fit is refused."""
    if term.is_null:
        return literal_term(None, type_, place)
    value = typed_terms.value_of(term)
    if isinstance(value, str):
        return _read_spelled(value, type_, place)
    if value is not None and type_.numeric and term.type is not None and term.type.numeric:
        number = typed_terms.fraction_of(term) or Fraction(0)
        if type_ is Type.INTEGER:
            half = Fraction(1, 2)
            number = Fraction(int(number + half) if number >= 0 else -int(-number + half))
        return typed_terms.number_term(number, type_, place)
    if term.type is type_ and not term.unit:
        return term  # what is declared of a column stays true
    times_and_others = {Type.BOOLEAN, Type.INTEGER, Type.DECIMAL, Type.FLOAT}
    if term.type is not None and term.type.temporal and type_ in times_and_others:
        raise invalid(place, f"a {term.type} cannot be cast to a {type_}", "EXTRACT(year FROM x), date_diff('day', x, y).")
    if type_.temporal and term.type in times_and_others:
        raise invalid(place, f"a {term.type} cannot be cast to a {type_}", "a date comes from a string or a timestamp.")
    if type_ is Type.TIMESTAMP and term.type is Type.DATE:
        return typed_terms.to_midnight(term)
    return call_term("cast", type_, (term,), nullable=True, place=place)


def _read_spelled(value: str, type_: Type, place: Place | None) -> TypedTerm:
    """Return the literal that a string literal spells in another type."""
    if type_ is Type.STRING:
        return literal_term(value, Type.STRING, place)
    if type_ is Type.DATE:
        return literal_term(typed_terms.parse_date(value, place), Type.DATE, place)
    if type_ is Type.TIMESTAMP:
        return literal_term(typed_terms.parse_timestamp(value, place), Type.TIMESTAMP, place)
    if type_ is Type.BOOLEAN:
        word = value.strip().lower()
        if word not in {"true", "false"}:
            raise invalid(place, f"{quote_name(value)} must be true or false")
        return literal_term(word == "true", Type.BOOLEAN, place)
    text = value.strip()
    negative = text.startswith("-")
    spelled = typed_terms.parse_number(text.removeprefix("-"), place)
    number = typed_terms.fraction_of(spelled) or Fraction(0)
    if type_ is Type.INTEGER and number.denominator != 1:
        raise invalid(place, f"{quote_name(value)} must be a whole number")
    return typed_terms.number_term(-number if negative else number, type_, place)


CAST_HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], TypedTerm]] = {exp.Cast: _read_cast, exp.TryCast: _read_cast}

# ---- times -----------------------------------------------------------------------------------------------------------------


_PARTS = {
    **{one: one for one in UNITS},
    **{f"{one}s": one for one in UNITS},
    "dayofmonth": "day",
    "isoweek": "week",
    "weekofyear": "week",
    "dow": "dayofweek",
    "dayofweek": "dayofweek",
    "weekday": "dayofweek",
    "isodow": "isodow",
    "dayofweekiso": "isodow",
    "doy": "dayofyear",
    "dayofyear": "dayofyear",
}
_CLOCK = {"hour", "minute", "second"}
_MOST_MOVED = 1_000_000_000


def _word(node: Any, reading: Reading, around: exp.Expr) -> str:
    """Return the unit or part of time that a node names: a bare word or a string."""
    if isinstance(node, exp.WeekStart) and node.name.lower() == "monday":
        return "week"
    sunday = isinstance(node, exp.WeekStart)
    if isinstance(node, exp.Var | exp.Literal | exp.Column | exp.WeekStart):
        word = node.name.lower()
        if sunday or (word in {"week", "weeks"} and reading.context.dialect == "bigquery"):
            raise invalid(reading.place(around), "a week must begin on Monday", "ISOWEEK or WEEK(MONDAY).")
        if reading.context.dialect == "spark":
            word = _SPARK_WORDS.get(word, word)
        if word in _PARTS:
            return _PARTS[word]
    raise invalid(reading.place(around), f"a unit of time must be written here: {', '.join(UNITS)}")


_SPARK_WORDS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}
"""What Spark's trunc() and date_trunc() call some units besides."""


def _unit(node: Any, reading: Reading, around: exp.Expr) -> str:
    word = _word(node, reading, around)
    if word not in UNITS:
        raise invalid(reading.place(around), f"a unit of time must be one of {', '.join(UNITS)}; got {quote_name(word)}")
    return word


def _check_unit_fits(unit: str, term: TypedTerm, place: Place | None) -> None:
    if unit in _CLOCK and term.type is Type.DATE:
        raise invalid(place, f"a date has no {unit}", "CAST(x AS TIMESTAMP) is the date at midnight.")


# ---- parts and units ---------------------------------------------------------------------------------------------------


def read_part(word: exp.Expr, argument: exp.Expr, node: exp.Expr, reading: Reading) -> TypedTerm:
    """Return EXTRACT(word FROM argument)."""
    name = _word(word, reading, node)
    term = extract_part(name, reading.of(argument), reading.place(node))
    if name == "dayofweek" and reading.context.dialect in {"bigquery", "spark"}:
        return call_term("+", Type.INTEGER, (term, literal_term(1, Type.INTEGER)))  # Sunday is 1 there
    return term


def extract_part(name: str, term: TypedTerm, place: Place | None) -> TypedTerm:
    """Return a part of a date or point in time."""
    moment = typed_terms.require_time(term, f"what {name} is taken of")
    _check_unit_fits(name, moment, place)
    return call_term("extract", Type.INTEGER, (literal_term(name, Type.STRING), moment), place=place)


def _extract(node: exp.Extract, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    return read_part(this, expression, node, reading)


def _part_function(node: exp.Expr, reading: Reading) -> TypedTerm:
    this = take_arguments(node, reading.context, "this")[0]
    return read_part(exp.Var(this=_PART_FUNCTIONS[type(node)]), this, node, reading)


_PART_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "weekofyear",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.DayOfWeek: "dayofweek",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "dayofyear",
}


def _truncate_time(node: exp.Expr, reading: Reading) -> TypedTerm:
    this, unit = take_arguments(node, reading.context, "this", "unit", ignored=("input_type_preserved",))
    if isinstance(unit, exp.WeekStart) and unit.name.upper() in _LATER:
        return _truncate_week(this, _LATER[unit.name.upper()], node, reading)
    name = _unit(unit, reading, node)
    moment = typed_terms.require_time(reading.of(this), "what date_trunc() is of")
    _check_unit_fits(name, moment, reading.place(node))
    place = reading.place(node)
    return call_term("date_trunc", moment.type or Type.DATE, (literal_term(name, Type.STRING), moment), place=place)


_LATER = {"TUESDAY": 1, "WEDNESDAY": 2, "THURSDAY": 3, "FRIDAY": 4, "SATURDAY": 5, "SUNDAY": 6}


def _truncate_week(this: exp.Expr, days: int, node: exp.Expr, reading: Reading) -> TypedTerm:
    """Return the beginning of a week that begins so many days after Monday."""
    place = reading.place(node)
    moment = _move(typed_terms.require_time(reading.of(this), "what date_trunc() is of"), -days, "day", place)
    monday = call_term("date_trunc", moment.type or Type.DATE, (literal_term("week", Type.STRING), moment), place=place)
    return _move(monday, days, "day", place)


def _diff(node: exp.DateDiff, reading: Reading) -> TypedTerm:
    this, expression, unit = take_arguments(
        node, reading.context, "this", "expression", "unit", ignored=("date_part_boundary",)
    )
    name = "day" if unit is None else _unit(unit, reading, node)
    if name != "day" and reading.context.dialect == "spark":
        raise invalid(
            reading.place(node), "DATEDIFF must be in days in this dialect", "whole months and years are counted otherwise."
        )
    return count_borders(name, reading.of(expression), reading.of(this), reading.place(node))


def count_borders(unit: str, start: TypedTerm, end: TypedTerm, place: Place | None) -> TypedTerm:
    """Return how many borders of a unit of time lie between two points in time."""
    what = "what a difference of dates is taken of"
    first, last = typed_terms.align_types(
        typed_terms.require_time(start, what), typed_terms.require_time(end, what), "a difference"
    )
    _check_unit_fits(unit, first, place)
    return call_term("date_diff", Type.INTEGER, (literal_term(unit, Type.STRING), first, last), place=place)


def _as_date(node: exp.Expr, reading: Reading) -> TypedTerm:
    type_ = Type.TIMESTAMP if isinstance(node, exp.Timestamp) else Type.DATE
    this = take_arguments(node, reading.context, "this", ignored=("with_tz", "safe"))[0]
    if this is None:
        raise invalid(reading.place(node), "a date must be made of something: DATE '2024-12-31'")
    return cast_term(reading.of(this), type_, reading.place(node))


# ---- intervals ---------------------------------------------------------------------------------------------------------


def move_by_interval(node: exp.Expr, this: exp.Expr, expression: exp.Expr, reading: Reading) -> TypedTerm | None:
    """Return date ± INTERVAL, None where no interval is meant."""
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    sign = -1 if isinstance(node, exp.Sub) else 1
    if _is_interval(expression):
        return add_interval(this, expression, None, sign, node, reading)
    if _is_interval(this) and sign == 1:
        return add_interval(expression, this, None, 1, node, reading)
    return None


def _is_interval(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Interval)


def compute_with_dates(function: str, left: TypedTerm, right: TypedTerm, reading: Reading) -> TypedTerm | None:
    """Return date − date in days and date ± days, as some dialects write them; None where no date is meant."""
    if function not in {"+", "-"} or not (_is_temporal(left) or _is_temporal(right)):
        return None
    place = left.place
    if reading.context.dialect in {"duckdb", "postgres"}:
        if function == "-" and left.type is right.type is Type.DATE:
            return count_borders("day", right, left, place)
        days = typed_terms.value_of(right)
        if left.type is Type.DATE and right.type is Type.INTEGER and isinstance(days, int):
            return _move(left, days if function == "+" else -days, "day", place)
    raise invalid(place, "dates must be compared, not calculated with", "date_diff('day', x, y), x + INTERVAL 3 DAY.")


def _is_temporal(term: TypedTerm) -> bool:
    return term.type is not None and term.type.temporal


def add_interval(this: exp.Expr, amount: exp.Expr, unit: Any, sign: int, node: exp.Expr, reading: Reading) -> TypedTerm:
    """Return a date or point in time moved by an interval or a number of units."""
    while isinstance(amount, exp.Paren | exp.Neg | exp.Mul):
        if isinstance(amount, exp.Mul):  # how date_sub is told in some dialects
            if not isinstance(amount.expression, exp.Neg):
                break
            amount, sign = amount.this, -sign
        else:
            sign = -sign if isinstance(amount, exp.Neg) else sign
            amount = amount.this
    if isinstance(amount, exp.Interval):
        amount, unit = take_arguments(amount, reading.context, "this", "unit")
    name = "day" if unit is None and isinstance(node, exp.TsOrDsAdd) else _unit(unit, reading, node)
    moment = typed_terms.require_time(reading.of(this), "what an interval is added to")
    return _move(moment, sign * _count(amount, reading, node), name, reading.place(node))


def _count(amount: Any, reading: Reading, node: exp.Expr) -> int:
    text = amount.name if isinstance(amount, exp.Literal) else ""
    digits = text.strip().removeprefix("-").removeprefix("+")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 12 or int(digits) > _MOST_MOVED:
        raise invalid(
            reading.place(node), "an interval must be a whole number of one unit", "INTERVAL 3 DAY, INTERVAL '2' MONTH."
        )
    return int(text)


def _move(moment: TypedTerm, count: int, unit: str, place: Place | None) -> TypedTerm:
    _check_unit_fits(unit, moment, place)
    value = typed_terms.value_of(moment)
    if isinstance(value, dt.date):
        return literal_term(typed_terms.shift_moment(value, count, unit, place), moment.type, place)
    arguments = (moment, literal_term(count, Type.INTEGER), literal_term(unit, Type.STRING))
    return call_term("date_add", moment.type or Type.DATE, arguments, place=place)


def _date_add(node: exp.Expr, reading: Reading) -> TypedTerm:
    this, expression, unit = take_arguments(node, reading.context, "this", "expression", "unit")
    return add_interval(this, expression, unit, -1 if isinstance(node, exp.DateSub) else 1, node, reading)


TIME_HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], TypedTerm]] = {
    exp.Extract: _extract,
    **dict.fromkeys(_PART_FUNCTIONS, _part_function),
    exp.TimestampTrunc: _truncate_time,
    exp.DateTrunc: _truncate_time,
    exp.DateDiff: _diff,
    exp.DateAdd: _date_add,
    exp.DateSub: _date_add,
    exp.TsOrDsAdd: _date_add,
    exp.Date: _as_date,
    exp.Timestamp: _as_date,
    exp.TsOrDsToDate: _as_date,
}

# ---- calls -----------------------------------------------------------------------------------------------------------------


# ---- numbers ---------------------------------------------------------------------------------------------------------


_REQUIRED: dict[str, Callable[[TypedTerm, str], TypedTerm]] = {
    "number": typed_terms.require_number,
    "text": typed_terms.require_text,
    "time": typed_terms.require_time,
    "condition": typed_terms.require_boolean,
}


def reader_of(function: Function, reads: Reads) -> Callable[[Any, Reading], TypedTerm]:
    """Return the reader of a function whose entry says what it takes."""
    names = [take.parsed for take in reads.takes]

    def read(node: exp.Expr, reading: Reading) -> TypedTerm:
        if reads.parsed:
            given = take_arguments(node, reading.context, *names, ignored=reads.ignored)
        else:
            given = take_arguments(node, reading.context, "this", "expressions")[1] or []
        return _read_call(function, reads, given, node, reading)

    return read


def _read_call(function: Function, reads: Reads, given: list[Any], node: exp.Expr, reading: Reading) -> TypedTerm:
    if len(given) > len(reads.takes):
        raise invalid(reading.place(node), f"{function.name}() must have at most {len(reads.takes)} arguments")
    padded = [*given, *[None] * (len(reads.takes) - len(given))]
    terms = [_argument(one, takes, function, node, reading) for one, takes in zip(padded, reads.takes, strict=True)]
    type_ = reads.type or terms[0].type or Type.FLOAT
    return call_term(function.name, type_, terms, nullable=reads.nullable or None, place=reading.place(node))


def _argument(given: exp.Expr | None, takes: Takes, function: Function, node: exp.Expr, reading: Reading) -> TypedTerm:
    """Return an argument that is what the entry wants."""
    what = takes.what or f"what {function.name}() is of"
    if given is None and takes.missing is not None:
        return literal_term(takes.missing, Type.STRING if isinstance(takes.missing, str) else Type.INTEGER)
    if takes.wanted == "a written text":
        return require_written(given, reading, what, node)
    term = reading.of(given)
    if takes.wanted in _REQUIRED:
        return _REQUIRED[takes.wanted](term, what)
    number = typed_terms.fraction_of(term)
    if takes.wanted == "a written number" and number is not None:
        return term
    inside = number is not None and (takes.ends is None or takes.ends[0] <= number <= takes.ends[1])
    if takes.wanted == "a written whole number" and term.type is Type.INTEGER and inside:
        return term
    rule = "a number written here" if takes.ends is None else f"a whole number from {takes.ends[0]:,} to {takes.ends[1]:,}"
    raise invalid(reading.place(node), f"{what} must be {rule}", takes.hint)


def _truncate_number(node: exp.Trunc, reading: Reading) -> TypedTerm:
    term = typed_terms.require_number(
        reading.of(take_arguments(node, reading.context, "this", ignored=("fractions_supported",))[0]), "what trunc() is of"
    )
    return call_term("//", term.type or Type.FLOAT, (term, literal_term(1, Type.INTEGER)), place=reading.place(node))


def _log(node: exp.Log, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    if expression is None:
        function = "ln" if reading.context.dialect in {"bigquery", "spark"} else "log10"
        return _call_unary(function, reading.of(this), reading.place(node))
    base, argument = (expression, this) if reading.context.dialect == "bigquery" else (this, expression)
    if typed_terms.fraction_of(reading.of(base)) != 10:
        raise invalid(
            reading.place(node), "LOG must have the base 10", "LN(x) / LN(2), with the number for LN(2), has the base 2."
        )
    return _call_unary("log10", reading.of(argument), reading.place(node))


def _call_unary(function: str, term: TypedTerm, place: Place | None) -> TypedTerm:
    return call_term(
        function, Type.FLOAT, (typed_terms.require_number(term, f"what {function}() is of"),), nullable=True, place=place
    )


def _extreme(node: exp.Expr, reading: Reading) -> TypedTerm:
    this, expressions, skips = take_arguments(node, reading.context, "this", "expressions", "ignore_nulls")
    function = "least" if isinstance(node, exp.Least) else "greatest"
    terms = [reading.of(one) for one in (this, *(expressions or ()))]
    type_, terms = typed_terms.unify_types(terms, f"the values of {function.upper()}", reading.place(node))
    if type_ is Type.BOOLEAN or len(terms) == 1:
        raise invalid(reading.place(node), f"{function.upper()} must have two or more numbers, strings or dates")
    if not skips and any(term.nullable for term in terms):
        raise invalid(
            reading.place(node),
            f"{function.upper()} must have values that are never NULL in this dialect",
            "ours skips NULLs, which is not what it means here: COALESCE(x, …) first.",
        )
    return call_term(function, type_, terms, nullable=all(term.nullable for term in terms), place=reading.place(node))


# ---- strings ---------------------------------------------------------------------------------------------------------


def _like(node: exp.Like | exp.ILike, reading: Reading) -> TypedTerm:
    this, expression, negate = take_arguments(node, reading.context, "this", "expression", "negate")
    term = typed_terms.require_text(reading.of(this), "what LIKE is said of")
    pattern = require_written(expression, reading, "the pattern of LIKE", node)
    if reading.context.dialect != "duckdb" and "\\" in str(typed_terms.value_of(pattern)):
        raise invalid(pattern.place, "the pattern of LIKE must have no backslash", "there is no escape; % and _ are wild.")
    result = call_term("like" if isinstance(node, exp.Like) else "ilike", Type.BOOLEAN, (term, pattern))
    return call_term("not", Type.BOOLEAN, (result,)) if negate else result


def _concat(node: exp.Concat, reading: Reading) -> TypedTerm:
    expressions, skips = take_arguments(node, reading.context, "expressions", "coalesce", ignored=("safe",))
    terms = [typed_terms.require_text(reading.of(expression), "each part of concat()") for expression in expressions]
    if skips:
        terms = [_or_empty(term) for term in terms]
    return _concatenate(terms, reading.place(node))


def _or_empty(term: TypedTerm) -> TypedTerm:
    empty = literal_term("", Type.STRING)
    return call_term("coalesce", Type.STRING, (term, empty), nullable=False) if term.nullable else term


def _pipes(node: exp.DPipe, reading: Reading) -> TypedTerm:
    parts: list[TypedTerm] = []
    current: Any = node
    while isinstance(current, exp.DPipe):
        this, expression = take_arguments(current, reading.context, "this", "expression", ignored=("safe",))
        parts.append(typed_terms.require_text(reading.of(expression), "each side of ||"))
        current = this
    parts.append(typed_terms.require_text(reading.of(current), "each side of ||"))
    return _concatenate(parts[::-1], reading.place(node))


def _concatenate(terms: list[TypedTerm], place: Place | None) -> TypedTerm:
    values = [typed_terms.value_of(term) for term in terms]
    if all(isinstance(value, str) for value in values):
        return literal_term("".join(str(value) for value in values), Type.STRING, place)
    return terms[0] if len(terms) == 1 else call_term("concat", Type.STRING, terms, place=place)


# ---- by name ---------------------------------------------------------------------------------------------------------


def read_by_name(node: exp.Anonymous, reading: Reading) -> TypedTerm:
    """Return a function that the parser has no class for."""
    name = str(node.this).lower()
    place = reading.place(node)
    entry = FUNCTIONS.get(name)
    if entry is not None and entry.reads is not None and not entry.reads.parsed:
        return reader_of(entry, entry.reads)(node, reading)
    if name.upper() in DATE_TEXTS:
        return read_date_text(node, reading)
    arguments: list[exp.Expr] = take_arguments(node, reading.context, "this", "expressions")[1] or []
    if name in {"date_part", "datepart"} and len(arguments) == 2:
        return read_part(arguments[0], arguments[1], node, reading)
    if name in {"dow", "weekday"} and len(arguments) == 1:
        return extract_part("dayofweek", reading.of(arguments[0]), place)
    if name in {"date_sub", "date_subtract"} and len(arguments) == 2:
        return add_interval(arguments[0], arguments[1], None, -1, node, reading)
    if name == "iff" and len(arguments) == 3:
        return reading.of(exp.If(this=arguments[0], true=arguments[1], false=arguments[2]))
    if name in TEXT_CALLS and len(arguments) == 2:
        return TEXT_CALLS[name](arguments[0], arguments[1], node, reading)
    if name in {"now", "today", "current_date", "get_current_timestamp", "getdate"}:
        raise invalid(place, "the time of asking is not part of the language", "write the date: DATE '2024-12-31'.")
    if name in _RAW:
        raise not_private(
            place,
            f"{name}() gives back values of single rows, which no noise covers",
            replace_function(name, ()) or "COUNT(*), SUM(x), AVG(x), MEDIAN(x); GROUP BY shows keys.",
        )
    raise invalid(place, f"the function {quote_name(name)} does not exist here", replace_function(name, FUNCTION_NAMES))


_RAW = {
    "list",
    "array_agg",
    "string_agg",
    "group_concat",
    "first",
    "last",
    "any_value",
    "mode",
    "arg_max",
    "arg_min",
    "histogram",
}

_BY_READERS = (
    "coalesce", "concat", "contains", "count", "count_if", "date_add", "date_diff", "date_part", "date_trunc", "day",
    "dayofweek", "dayofyear", "extract", "greatest", "hour", "if", "ifnull", "isodow", "least", "left", "log10", "mean",
    "median", "minute", "month", "nullif", "quantile", "quarter", "second", "starts_with", "stddev", "substring", "trunc",
    "variance", "week", "year",
)  # fmt: skip
_READ = tuple(one for one in FUNCTIONS.values() if one.reads is not None)

FUNCTION_NAMES = tuple(sorted({*_BY_READERS, *(one.name for one in _READ), *AGGREGATE_NAMES}))
"""What analysts may call, for hints."""


CALL_HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], TypedTerm]] = {
    **TEXT_HANDLERS,
    **{getattr(exp, one.reads.parsed): reader_of(one, one.reads) for one in _READ if one.reads and one.reads.parsed},
    exp.Trunc: _truncate_number,
    exp.Log: _log,
    exp.Least: _extreme,
    exp.Greatest: _extreme,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Concat: _concat,
    exp.DPipe: _pipes,
}
