"""Functions on numbers and strings, and those that the parser knows by name only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import kinds, literals, times
from curador.query.functions import FUNCTIONS, Function, Reads
from curador.query.messages import invalid, near, not_private, quoted
from curador.query.reading import Reading, taken
from curador.query.terms import Term, call, literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Place

MOST_LETTERS = 1_000_000
"""The largest start or length in SUBSTRING; LIKE has the limit of the text."""

_MOST_ROUNDING = 15


# ---- numbers ---------------------------------------------------------------------------------------------------------


def reader_of(function: Function, reads: Reads) -> Callable[[Any, Reading], Term]:
    """Return the reader of a function of one number or one string."""
    require = kinds.numeric if reads.of == "number" else kinds.text

    def read(node: exp.Expr, reading: Reading) -> Term:
        term = require(reading.of(taken(node, reading.context, "this")[0]), f"what {function.name}() is of")
        type_ = reads.type or term.type or Type.FLOAT
        return call(function.name, type_, (term,), nullable=reads.nullable or None, place=reading.place(node))

    return read


def _round(node: exp.Round, reading: Reading) -> Term:
    this, decimals = taken(node, reading.context, "this", "decimals", ignored=("casts_non_integer_decimals",))
    term = kinds.numeric(reading.of(this), "what round() is of")
    digits = literal(0, Type.INTEGER) if decimals is None else reading.of(decimals)
    value = literals.value_of(digits)
    if digits.type is not Type.INTEGER or not isinstance(value, int) or abs(value) > _MOST_ROUNDING:
        raise invalid(reading.place(node), "the digits of ROUND must be a whole number from -15 to 15")
    return call("round", term.type or Type.FLOAT, (term, digits), place=reading.place(node))


def _trunc(node: exp.Trunc, reading: Reading) -> Term:
    term = kinds.numeric(
        reading.of(taken(node, reading.context, "this", ignored=("fractions_supported",))[0]), "what trunc() is of"
    )
    return call("//", term.type or Type.FLOAT, (term, literal(1, Type.INTEGER)), place=reading.place(node))


def _log(node: exp.Log, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression")
    if expression is None:
        function = "ln" if reading.context.dialect in {"bigquery", "spark"} else "log10"
        return _unary(function, reading.of(this), reading.place(node))
    base, argument = (expression, this) if reading.context.dialect == "bigquery" else (this, expression)
    if literals.fraction_of(reading.of(base)) != 10:
        raise invalid(
            reading.place(node), "LOG must have the base 10", "LN(x) / LN(2), with the number for LN(2), has the base 2."
        )
    return _unary("log10", reading.of(argument), reading.place(node))


def _unary(function: str, term: Term, place: Place | None) -> Term:
    return call(function, Type.FLOAT, (kinds.numeric(term, f"what {function}() is of"),), nullable=True, place=place)


def _power(node: exp.Pow, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression")
    base, exponent = kinds.numeric(reading.of(this), "the base of POWER"), reading.of(expression)
    if literals.fraction_of(exponent) is None:
        raise invalid(
            reading.place(node), "the exponent of POWER must be a number written here", "EXP(x * LN(2)) for 2 to x."
        )
    return call("power", Type.FLOAT, (base, exponent), nullable=True, place=reading.place(node))


def _extreme(node: exp.Expr, reading: Reading) -> Term:
    this, expressions, skips = taken(node, reading.context, "this", "expressions", "ignore_nulls")
    function = "least" if isinstance(node, exp.Least) else "greatest"
    terms = [reading.of(one) for one in (this, *(expressions or ()))]
    type_, terms = kinds.unified(terms, f"the values of {function.upper()}", reading.place(node))
    if type_ is Type.BOOLEAN or len(terms) == 1:
        raise invalid(reading.place(node), f"{function.upper()} must have two or more numbers, strings or dates")
    if not skips and any(one.nullable for one in terms):
        raise invalid(
            reading.place(node),
            f"{function.upper()} must have values that are never NULL in this dialect",
            "ours skips NULLs, which is not what it means here: COALESCE(x, …) first.",
        )
    return call(function, type_, terms, nullable=all(one.nullable for one in terms), place=reading.place(node))


# ---- strings ---------------------------------------------------------------------------------------------------------


def _written(node: exp.Expr | None, reading: Reading, what: str, around: exp.Expr) -> Term:
    """Return a string that must be written in the question."""
    term = literal(None, None) if node is None else reading.of(node)
    if not isinstance(literals.value_of(term), str):
        raise invalid(reading.place(around), f"{what} must be a string written here, not a column or an expression")
    return term


def _like(node: exp.Like | exp.ILike, reading: Reading) -> Term:
    this, expression, negate = taken(node, reading.context, "this", "expression", "negate")
    term = kinds.text(reading.of(this), "what LIKE is said of")
    pattern = _written(expression, reading, "the pattern of LIKE", node)
    if reading.context.dialect != "duckdb" and "\\" in str(literals.value_of(pattern)):
        raise invalid(pattern.place, "the pattern of LIKE must have no backslash", "there is no escape; % and _ are wild.")
    result = call("like" if isinstance(node, exp.Like) else "ilike", Type.BOOLEAN, (term, pattern))
    return call("not", Type.BOOLEAN, (result,)) if negate else result


def _contains(node: exp.Contains, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression")
    term = kinds.text(reading.of(this), "what contains() is of")
    part = str(literals.value_of(_written(expression, reading, "what contains() looks for", node)))
    if set(part) & {"%", "_"}:
        raise invalid(reading.place(node), "what contains() looks for must be without % and _")
    return call("like", Type.BOOLEAN, (term, literal(f"%{part}%", Type.STRING)), place=reading.place(node))


def _starts_with(node: exp.StartsWith, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression")
    return _prefixed(reading.of(this), expression, node, reading)


def _prefixed(term: Term, prefix: exp.Expr, node: exp.Expr, reading: Reading) -> Term:
    start = _written(prefix, reading, "the start of STARTS_WITH", node)
    return call("starts_with", Type.BOOLEAN, (kinds.text(term, "what starts_with() is of"), start), place=reading.place(node))


def _concat(node: exp.Concat, reading: Reading) -> Term:
    expressions, skips = taken(node, reading.context, "expressions", "coalesce", ignored=("safe",))
    terms = [kinds.text(reading.of(one), "each part of concat()") for one in expressions]
    if skips:
        terms = [_or_empty(one) for one in terms]
    return _joined(terms, reading.place(node))


def _or_empty(term: Term) -> Term:
    empty = literal("", Type.STRING)
    return call("coalesce", Type.STRING, (term, empty), nullable=False) if term.nullable else term


def _pipes(node: exp.DPipe, reading: Reading) -> Term:
    parts: list[Term] = []
    current: Any = node
    while isinstance(current, exp.DPipe):
        this, expression = taken(current, reading.context, "this", "expression", ignored=("safe",))
        parts.append(kinds.text(reading.of(expression), "each side of ||"))
        current = this
    parts.append(kinds.text(reading.of(current), "each side of ||"))
    return _joined(parts[::-1], reading.place(node))


def _joined(terms: list[Term], place: Place | None) -> Term:
    values = [literals.value_of(one) for one in terms]
    if all(isinstance(one, str) for one in values):
        return literal("".join(str(one) for one in values), Type.STRING, place)
    return terms[0] if len(terms) == 1 else call("concat", Type.STRING, terms, place=place)


def _substring(node: exp.Substring, reading: Reading) -> Term:
    this, start, length = taken(node, reading.context, "this", "start", "length")
    term = kinds.text(reading.of(this), "what substring() is of")
    first = literal(1, Type.INTEGER) if start is None else reading.of(start)
    count = literal(MOST_LETTERS, Type.INTEGER) if length is None else reading.of(length)
    return _cut(term, first, count, reading.place(node))


def _left(node: exp.Left, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression")
    term = kinds.text(reading.of(this), "what left() is of")
    return _cut(term, literal(1, Type.INTEGER), reading.of(expression), reading.place(node))


def _cut(term: Term, start: Term, length: Term, place: Place | None) -> Term:
    for bound, least, what in ((start, 1, "the start"), (length, 0, "the length")):
        value = literals.value_of(bound)
        if bound.type is not Type.INTEGER or not isinstance(value, int) or not least <= value <= MOST_LETTERS:
            raise invalid(place, f"{what} of a part of a string must be a whole number from {least} to {MOST_LETTERS:,}")
    return call("substring", Type.STRING, (term, start, length), place=place)


def _replace(node: exp.Replace, reading: Reading) -> Term:
    this, expression, replacement = taken(node, reading.context, "this", "expression", "replacement")
    term = kinds.text(reading.of(this), "what replace() is of")
    old = _written(expression, reading, "what REPLACE looks for", node)
    new = literal("", Type.STRING) if replacement is None else _written(replacement, reading, "what REPLACE puts in", node)
    return call("replace", Type.STRING, (term, old, new), place=reading.place(node))


# ---- by name ---------------------------------------------------------------------------------------------------------


def by_name(node: exp.Anonymous, reading: Reading) -> Term:
    """Return a function that the parser has no class for."""
    name = str(node.this).lower()
    place = reading.place(node)
    arguments: list[exp.Expr] = taken(node, reading.context, "this", "expressions")[1] or []
    if name in {"date_part", "datepart"} and len(arguments) == 2:
        return times.part(arguments[0], arguments[1], node, reading)
    if name in {"dow", "weekday"} and len(arguments) == 1:
        return times.parted("dayofweek", reading.of(arguments[0]), place)
    if name in {"date_sub", "date_subtract"} and len(arguments) == 2:
        return times.added(arguments[0], arguments[1], None, -1, node, reading)
    if name == "iff" and len(arguments) == 3:
        return reading.of(exp.If(this=arguments[0], true=arguments[1], false=arguments[2]))
    if name == "prefix" and len(arguments) == 2:
        return _prefixed(reading.of(arguments[0]), arguments[1], node, reading)
    if name in {"now", "today", "current_date", "get_current_timestamp", "getdate"}:
        raise invalid(place, "the time of asking is not part of the language", "write the date: DATE '2024-12-31'.")
    if name in _RAW:
        raise not_private(
            place,
            f"{name}() gives back values of single rows, which no noise covers",
            "COUNT, SUM, AVG, MEDIAN, …; GROUP BY for keys.",
        )
    raise invalid(place, f"the function {quoted(name)} does not exist here", near(name, NAMES, "there are"))


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
    "avg", "coalesce", "concat", "contains", "count", "count_if", "date_add", "date_diff", "date_part", "date_trunc", "day",
    "dayofweek", "dayofyear", "extract", "greatest", "hour", "if", "ifnull", "isodow", "least", "left", "log10", "mean",
    "median", "minute", "month", "nullif", "power", "quantile", "quarter", "replace", "round", "second", "starts_with",
    "stddev", "substring", "sum", "trunc", "variance", "week", "year",
)  # fmt: skip

NAMES = tuple(sorted((*_BY_READERS, *(one.name for one in FUNCTIONS.values() if one.reads is not None))))
"""What analysts may call, for hints."""


HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], Term]] = {
    **{getattr(exp, one.reads.parsed): reader_of(one, one.reads) for one in FUNCTIONS.values() if one.reads is not None},
    exp.Round: _round,
    exp.Trunc: _trunc,
    exp.Log: _log,
    exp.Pow: _power,
    exp.Least: _extreme,
    exp.Greatest: _extreme,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Contains: _contains,
    exp.StartsWith: _starts_with,
    exp.Concat: _concat,
    exp.DPipe: _pipes,
    exp.Substring: _substring,
    exp.Left: _left,
    exp.Replace: _replace,
}
