"""Dates and points in time: parts, units, differences, and intervals added to them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import kinds, literals
from curador.query.casts import cast
from curador.query.functions import UNITS
from curador.query.messages import invalid, quoted
from curador.query.reading import Reading, taken
from curador.query.terms import Term, call, literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Place

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
    sunday = isinstance(node, exp.WeekStart)
    if isinstance(node, exp.Var | exp.Literal | exp.Column | exp.WeekStart):
        word = node.name.lower()
        if sunday or (word in {"week", "weeks"} and reading.context.dialect == "bigquery"):
            raise invalid(reading.place(around), "a week must begin on Monday", "ISOWEEK")
        if word in _PARTS:
            return _PARTS[word]
    raise invalid(reading.place(around), f"a unit of time must be written here: {', '.join(UNITS)}")


def _unit(node: Any, reading: Reading, around: exp.Expr) -> str:
    word = _word(node, reading, around)
    if word not in UNITS:
        raise invalid(reading.place(around), f"a unit of time must be one of {', '.join(UNITS)}; got {quoted(word)}")
    return word


def _fits(unit: str, term: Term, place: Place | None) -> None:
    if unit in _CLOCK and term.type is Type.DATE:
        raise invalid(place, f"a date has no {unit}", "CAST(x AS TIMESTAMP) is the date at midnight.")


# ---- parts and units ---------------------------------------------------------------------------------------------------


def part(word: exp.Expr, argument: exp.Expr, node: exp.Expr, reading: Reading) -> Term:
    """Return EXTRACT(word FROM argument)."""
    name = _word(word, reading, node)
    term = parted(name, reading.of(argument), reading.place(node))
    if name == "dayofweek" and reading.context.dialect in {"bigquery", "spark"}:
        return call("+", Type.INTEGER, (term, literal(1, Type.INTEGER)))  # Sunday is 1 there
    return term


def parted(name: str, term: Term, place: Place | None) -> Term:
    """Return a part of a date or point in time."""
    moment = kinds.temporal(term, f"what {name} is taken of")
    _fits(name, moment, place)
    return call("extract", Type.INTEGER, (literal(name, Type.STRING), moment), place=place)


def _extract(node: exp.Extract, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression")
    return part(this, expression, node, reading)


def _part_function(node: exp.Expr, reading: Reading) -> Term:
    this = taken(node, reading.context, "this")[0]
    return part(exp.Var(this=_FUNCTIONS[type(node)]), this, node, reading)


_FUNCTIONS: dict[type[exp.Expr], str] = {
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


def _trunc(node: exp.Expr, reading: Reading) -> Term:
    this, unit = taken(node, reading.context, "this", "unit", ignored=("input_type_preserved",))
    name = _unit(unit, reading, node)
    moment = kinds.temporal(reading.of(this), "what date_trunc() is of")
    _fits(name, moment, reading.place(node))
    place = reading.place(node)
    return call("date_trunc", moment.type or Type.DATE, (literal(name, Type.STRING), moment), place=place)


def _diff(node: exp.DateDiff, reading: Reading) -> Term:
    this, expression, unit = taken(node, reading.context, "this", "expression", "unit", ignored=("date_part_boundary",))
    name = "day" if unit is None else _unit(unit, reading, node)
    if name != "day" and reading.context.dialect == "spark":
        raise invalid(
            reading.place(node), "DATEDIFF must be in days in this dialect", "whole months and years are counted otherwise."
        )
    return between(name, reading.of(expression), reading.of(this), reading.place(node))


def between(unit: str, start: Term, end: Term, place: Place | None) -> Term:
    """Return how many borders of a unit of time lie between two points in time."""
    what = "what a difference of dates is taken of"
    first, last = kinds.aligned(kinds.temporal(start, what), kinds.temporal(end, what), "a difference")
    _fits(unit, first, place)
    return call("date_diff", Type.INTEGER, (literal(unit, Type.STRING), first, last), place=place)


def _as_date(node: exp.Expr, reading: Reading) -> Term:
    type_ = Type.TIMESTAMP if isinstance(node, exp.Timestamp) else Type.DATE
    this = taken(node, reading.context, "this", ignored=("with_tz", "safe"))[0]
    if this is None:
        raise invalid(reading.place(node), "a date must be made of something: DATE '2024-12-31'")
    return cast(reading.of(this), type_, reading.place(node))


# ---- intervals ---------------------------------------------------------------------------------------------------------


def moved(node: exp.Expr, this: exp.Expr, expression: exp.Expr, reading: Reading) -> Term | None:
    """Return date ± INTERVAL, None where no interval is meant."""
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    sign = -1 if isinstance(node, exp.Sub) else 1
    if _is_interval(expression):
        return added(this, expression, None, sign, node, reading)
    if _is_interval(this) and sign == 1:
        return added(expression, this, None, 1, node, reading)
    return None


def _is_interval(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Interval)


def difference(function: str, left: Term, right: Term, reading: Reading) -> Term | None:
    """Return date − date in days and date ± days, as some dialects write them; None where no date is meant."""
    if function not in {"+", "-"} or not (_temporal(left) or _temporal(right)):
        return None
    place = left.place
    if reading.context.dialect in {"duckdb", "postgres"}:
        if function == "-" and left.type is right.type is Type.DATE:
            return between("day", right, left, place)
        days = literals.value_of(right)
        if left.type is Type.DATE and right.type is Type.INTEGER and isinstance(days, int):
            return _moved(left, days if function == "+" else -days, "day", place)
    raise invalid(place, "dates must be compared, not calculated with", "date_diff('day', x, y), x + INTERVAL 3 DAY.")


def _temporal(term: Term) -> bool:
    return term.type is not None and term.type.temporal


def added(this: exp.Expr, amount: exp.Expr, unit: Any, sign: int, node: exp.Expr, reading: Reading) -> Term:
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
        amount, unit = taken(amount, reading.context, "this", "unit")
    name = "day" if unit is None and isinstance(node, exp.TsOrDsAdd) else _unit(unit, reading, node)
    moment = kinds.temporal(reading.of(this), "what an interval is added to")
    return _moved(moment, sign * _count(amount, reading, node), name, reading.place(node))


def _count(amount: Any, reading: Reading, node: exp.Expr) -> int:
    text = amount.name if isinstance(amount, exp.Literal) else ""
    digits = text.strip().removeprefix("-").removeprefix("+")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 12 or int(digits) > _MOST_MOVED:
        raise invalid(
            reading.place(node), "an interval must be a whole number of one unit", "INTERVAL 3 DAY, INTERVAL '2' MONTH."
        )
    return int(text)


def _moved(moment: Term, count: int, unit: str, place: Place | None) -> Term:
    _fits(unit, moment, place)
    value = literals.value_of(moment)
    if isinstance(value, dt.date):
        return literal(literals.shifted(value, count, unit, place), moment.type, place)
    arguments = (moment, literal(count, Type.INTEGER), literal(unit, Type.STRING))
    return call("date_add", moment.type or Type.DATE, arguments, place=place)


def _date_add(node: exp.Expr, reading: Reading) -> Term:
    this, expression, unit = taken(node, reading.context, "this", "expression", "unit")
    return added(this, expression, unit, -1 if isinstance(node, exp.DateSub) else 1, node, reading)


HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], Term]] = {
    exp.Extract: _extract,
    **dict.fromkeys(_FUNCTIONS, _part_function),
    exp.TimestampTrunc: _trunc,
    exp.DateTrunc: _trunc,
    exp.DateDiff: _diff,
    exp.DateAdd: _date_add,
    exp.DateSub: _date_add,
    exp.TsOrDsAdd: _date_add,
    exp.Date: _as_date,
    exp.Timestamp: _as_date,
    exp.TsOrDsToDate: _as_date,
}
