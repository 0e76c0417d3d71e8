"""Intervals known without data: arithmetic on exact rationals, the calendar, and what a predicate says of a column.

Interval arithmetic on exact rationals: what a function can give if its arguments lie in given ranges. None is an end that
does not exist. Irrational ends are rounded outwards. A range speaks of values that are not NULL.

Calendar arithmetic is on moments known without data. Times have no zone: they are UTC everywhere.

Narrowing is what a predicate says of a column: the range of values for which it can be true, and that it is not NULL.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.plan.model import Range
from curador.plan.ownership import conjuncts
from curador.query.tree import Call, Distinct, Filter, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from curador.query.tree import Node, Relation
    from curador.study.values import Value


# ---- times -----------------------------------------------------------------------------------------------------------------


EARLIEST, LATEST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001 -- UTC without zone

_SECONDS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def moment_of(value: dt.date) -> dt.datetime:
    """Return the first moment of a date, or the moment itself."""
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001


def last_moment(value: dt.date) -> dt.datetime:
    """Return the last second of a date, or the moment itself."""
    if isinstance(value, dt.datetime):
        return value
    return dt.datetime(value.year, value.month, value.day, 23, 59, 59)  # noqa: DTZ001


def units_apart(start: dt.datetime, end: dt.datetime, unit: str) -> int:
    """Return how many whole units of time lie between two moments, rounded down."""
    if unit in _MONTHS:
        months = (end.year - start.year) * 12 + end.month - start.month
        return math.floor(months / _MONTHS[unit])
    return math.floor((end - start).total_seconds() / _SECONDS[unit])


def truncate_moment(moment: dt.datetime, unit: str) -> dt.datetime:
    """Return the beginning of the unit of time in which a moment lies."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=3 * ((moment.month - 1) // 3) + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            back = day.weekday()
            return day - dt.timedelta(days=back) if day.toordinal() > back else EARLIEST
        case "day":
            return day
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case _:
            return moment.replace(microsecond=0)


def unit_starts(first: dt.datetime, last: dt.datetime, unit: str, most: int) -> tuple[dt.datetime, ...] | None:
    """Return the beginnings of all units of time from one moment to another; None if there are more than `most`."""
    if units_apart(first, last, unit) > most:
        return None
    found = tuple(_walk_starts(truncate_moment(first, unit), last, unit))
    return found if len(found) <= most else None


def _walk_starts(start: dt.datetime, last: dt.datetime, unit: str) -> Iterator[dt.datetime]:
    moment = start
    while moment <= last:
        yield moment
        if unit in _MONTHS:
            months = moment.year * 12 + moment.month - 1 + _MONTHS[unit]
            if months // 12 > LATEST.year:
                return
            moment = moment.replace(year=months // 12, month=months % 12 + 1)
        else:
            if (LATEST - moment).total_seconds() < _SECONDS[unit]:
                return
            moment += dt.timedelta(seconds=_SECONDS[unit])


# ---- arithmetic ------------------------------------------------------------------------------------------------------------


End = Fraction | None
EVERYTHING = Range(None, None)
_FINE = 1 << 40
_FARTHEST = 1 << 1000
_LONGEST = 1024
_MOST_POWER = Fraction(700)  # e to it is a double with room to spare


def tame(one: Range) -> Range:
    """Return the range with ends that stay small: beyond 2¹⁰⁰⁰ there is none, and a long fraction is rounded outwards."""
    return Range(_short(one.lower, up=False), _short(one.upper, up=True), one.integer, one.why)


def _short(end: End, *, up: bool) -> End:
    if end is None or abs(end) > _FARTHEST:
        return None
    if end.denominator.bit_length() <= _LONGEST:
        return end
    scaled = end * (1 << _LONGEST)
    return Fraction(math.ceil(scaled) if up else math.floor(scaled), 1 << _LONGEST)


def add(one: Range, other: Range) -> Range:
    """Return the range of a sum."""
    return Range(_plus(one.lower, other.lower), _plus(one.upper, other.upper), one.integer and other.integer)


def negate(one: Range) -> Range:
    """Return the range of the opposite."""
    lower = None if one.upper is None else -one.upper
    return Range(lower, None if one.lower is None else -one.lower, one.integer)


def multiply(one: Range, other: Range) -> Range:
    """Return the range of a product; unbounded ends are known only where the other factor is 0."""
    integer = one.integer and other.integer
    for first, second in ((one, other), (other, one)):
        if first.lower == first.upper == 0:
            return Range(Fraction(0), Fraction(0), second.integer and integer)
    ends = _corners(one, other)
    if ends is None:
        return Range(None, None, integer)
    return Range(min(ends), max(ends), integer)


def _corners(one: Range, other: Range) -> list[Fraction] | None:
    if one.lower is None or one.upper is None or other.lower is None or other.upper is None:
        return None
    return [a * b for a in (one.lower, one.upper) for b in (other.lower, other.upper)]


def divide(one: Range, other: Range) -> Range:
    """Return the range of a quotient: no ends where the divisor can be 0 or as near to it as one likes."""
    if other.lower is None or other.upper is None or other.lower <= 0 <= other.upper:
        return EVERYTHING
    inverse = Range(1 / other.upper, 1 / other.lower)
    exact = multiply(Range(one.lower, one.upper), inverse)
    return Range(exact.lower, exact.upper)


def whole_quotient(one: Range, other: Range) -> Range:
    """Return the range of a quotient rounded towards 0."""
    exact = divide(one, other)
    return Range(_map_end(exact.lower, math.trunc), _map_end(exact.upper, math.trunc), integer=True)


def remainder(one: Range, other: Range) -> Range:
    """Return the range of a remainder, which has the sign of the dividend and is smaller than the divisor."""
    if other.lower is None or other.upper is None:
        return Range(None, None, one.integer and other.integer)
    size = max(abs(other.lower), abs(other.upper))
    lower = Fraction(0) if one.lower is not None and one.lower >= 0 else -size
    upper = Fraction(0) if one.upper is not None and one.upper <= 0 else size
    return Range(lower, upper, one.integer and other.integer)


def magnitude(one: Range) -> Range:
    """Return the range of the absolute value."""
    if one.lower is None or one.upper is None:
        return Range(Fraction(0), None, one.integer)
    lower = Fraction(0) if one.lower <= 0 <= one.upper else min(abs(one.lower), abs(one.upper))
    return Range(lower, max(abs(one.lower), abs(one.upper)), one.integer)


def round_range(one: Range, digits: int) -> Range:
    """Return the range of a value rounded to decimal digits."""
    unit = Fraction(10) ** -digits

    def nearest(end: Fraction) -> Fraction:
        return math.floor(abs(end) / unit + Fraction(1, 2)) * unit * (1 if end >= 0 else -1)

    return Range(_map_end(one.lower, nearest), _map_end(one.upper, nearest), one.integer or digits <= 0)


def monotone(one: Range, function: Callable[[Fraction], Fraction], *, integer: bool = False) -> Range:
    """Return the range of an increasing function."""
    return Range(_map_end(one.lower, function), _map_end(one.upper, function), integer)


def root(one: Range) -> Range:
    """Return the range of a square root; negative values have none."""
    lower = Fraction(0) if one.lower is None or one.lower < 0 else _root(one.lower, up=False)
    return Range(lower, None if one.upper is None else _root(max(one.upper, Fraction(0)), up=True))


def logarithm(one: Range, base: float) -> Range:
    """Return the range of a logarithm: no lower end where values can come close to 0."""
    lower = None if one.lower is None or one.lower <= 0 else _outward(_log(one.lower) / base, up=False)
    upper = None if one.upper is None or one.upper <= 0 else _outward(_log(one.upper) / base, up=True)
    return Range(lower, upper)


def exponential(one: Range) -> Range:
    """Return the range of e^x."""
    lower = Fraction(0) if one.lower is None else _exp(min(one.lower, _MOST_POWER), up=False)
    return Range(lower, None if one.upper is None or one.upper > _MOST_POWER else _exp(one.upper, up=True))


def power(one: Range, exponent: Fraction) -> Range:
    """Return the range of a power with a known exponent; only whole exponents and non-negative bases have ends."""
    if exponent == 0:
        return Range(Fraction(1), Fraction(1), integer=True)
    if exponent.denominator == 1 and 0 < exponent <= 64 and one.lower is not None and one.upper is not None:
        ends = [one.lower ** int(exponent), one.upper ** int(exponent)]
        if int(exponent) % 2 == 0 and one.lower <= 0 <= one.upper:
            ends.append(Fraction(0))
        return Range(min(ends), max(ends), one.integer)
    if 0 < exponent <= 64 and one.lower is not None and one.upper is not None and one.lower >= 0:
        top = max(one.upper, Fraction(1)) ** math.ceil(exponent)
        return Range(Fraction(0), top)
    return EVERYTHING


def hull(ranges: Sequence[Range]) -> Range:
    """Return the smallest range that holds all of them."""
    if not ranges:
        return EVERYTHING
    lowers, uppers = [one.lower for one in ranges], [one.upper for one in ranges]
    lower = None if None in lowers else min(end for end in lowers if end is not None)
    upper = None if None in uppers else max(end for end in uppers if end is not None)
    return Range(lower, upper, all(one.integer for one in ranges))


def meet(one: Range, other: Range) -> Range:
    """Return what lies in both; where nothing does, a single point, since no value does either."""
    lower = one.lower if other.lower is None else other.lower if one.lower is None else max(one.lower, other.lower)
    upper = one.upper if other.upper is None else other.upper if one.upper is None else min(one.upper, other.upper)
    if lower is not None and upper is not None and lower > upper:
        upper = lower
    return Range(lower, upper, one.integer, one.why)


def _plus(one: End, other: End) -> End:
    return None if one is None or other is None else one + other


def _map_end(end: End, function: Callable[[Fraction], Fraction | int]) -> End:
    return None if end is None else Fraction(function(end))


def _root(value: Fraction, *, up: bool) -> Fraction:
    scaled = math.isqrt(math.floor(value * _FINE * _FINE))
    return Fraction(scaled + 2 if up else scaled, _FINE)


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _exp(value: Fraction, *, up: bool) -> Fraction:
    if value < -_MOST_POWER:
        return Fraction(1, _FINE) if up else Fraction(0)
    return _outward(math.exp(value), up=up)


def _outward(value: float, *, up: bool) -> Fraction:
    margin = Fraction(abs(value)) / _FINE + Fraction(1, _FINE)
    return Fraction(value) + margin if up else Fraction(value) - margin


# ---- narrowing -------------------------------------------------------------------------------------------------------------


def narrow_range(known: Range, what: Node, predicate: Node, *, strict: bool = True) -> Range:
    """Return the range of a numeric column or expression where the predicate is true.

    strict  a whole number below x is at most the one before it; else x itself, as plans were once made

    Claim   Where all conjuncts are true, or NULL because the expression is NULL, the expression lies in the range or is NULL.
    Needs   Both are over the same columns. What is measured is clamped to its range: if the claim failed, for an infinity
            say, or a number that was rounded to be compared, an answer would be off and nobody's privacy.
    """
    for conjunct in conjuncts(predicate):
        if not isinstance(conjunct, Call):
            continue
        for function, literals in _about(conjunct, what):
            numbers = [written_range(literal) for literal in literals]
            if any(number.lower is None for number in numbers):
                continue
            found = _is_allowed(function, numbers, whole=known.integer and strict)
            if found is not None:
                reasons = dict.fromkeys(reason for reason in (*known.why.split("; "), "WHERE") if reason)
                known = replace(meet(known, found), why="; ".join(reasons))
    return known


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_DENIED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def compared_with(conjunct: Call) -> list[tuple[str, Node, Sequence[Node]]]:
    """Return what a comparison with literals compares: (comparison, what, literals)."""
    arguments = conjunct.arguments
    if conjunct.function == "in" and all(isinstance(argument, Literal) for argument in arguments[1:]):
        return [("in", arguments[0], arguments[1:])]
    if conjunct.function in _MIRRORED and len(arguments) == 2:
        if isinstance(arguments[1], Literal):
            return [(conjunct.function, arguments[0], arguments[1:])]
        if isinstance(arguments[0], Literal):
            return [(_MIRRORED[conjunct.function], arguments[1], arguments[:1])]
    return []


def _about(conjunct: Call, what: Node) -> list[tuple[str, Sequence[Node]]]:
    """What a conjunct says of a column or expression by literals, as (comparison, literals)."""
    return [(function, literals) for function, own, literals in compared_with(conjunct) if _is_same(own, what)]


def _is_same(expression: Node, what: Node) -> bool:
    if isinstance(expression, Ref) and isinstance(what, Ref):
        return expression.index == what.index
    return expression == what


def denials(condition: Node) -> list[Call]:
    """Return comparisons that are true or NULL where a condition is not true: what a later arm of a CASE may count on."""
    match condition:
        case Call(function="<" | "<=" | ">" | ">="):
            return [replace(condition, function=_DENIED[condition.function])]
        case Call(function="or"):
            return [denied for part in condition.arguments for denied in denials(part)]
        case Call(function="not", arguments=(inner,)):
            return [part for part in conjuncts(inner) if isinstance(part, Call)]
        case _:
            return []


def _is_allowed(function: str, numbers: list[Range], *, whole: bool) -> Range | None:
    """Where a comparison with literals is true. A whole number below x is at most ⌈x⌉ − 1, one above it ⌊x⌋ + 1 or more."""
    first = numbers[0].lower if numbers else None
    if first is None:
        return None
    match function:
        case "<":
            return Range(None, Fraction(math.ceil(first) - 1) if whole else first)
        case "<=":
            return Range(None, Fraction(math.floor(first)) if whole else first)
        case ">":
            return Range(Fraction(math.floor(first) + 1) if whole else first, None)
        case ">=":
            return Range(Fraction(math.ceil(first)) if whole else first, None)
        case "=":
            return Range(first, first)
        case _:
            return hull(numbers)


def narrow_times(
    known: tuple[dt.datetime, dt.datetime] | None, index: int, predicate: Node, *, daily: bool, strict: bool = True
) -> tuple[dt.datetime, dt.datetime] | None:
    """Return the earliest and latest time of a column where the predicate is true. daily: it holds dates.

    strict  what is earlier than a moment ends before it; else with it, and a written date is a day long, as plans once were
    """
    earliest, latest = known or (None, None)
    for conjunct in conjuncts(predicate):
        if not isinstance(conjunct, Call):
            continue
        for function, literals in _about(conjunct, Ref(index, Type.TIMESTAMP)):
            values = [
                literal.value for literal in literals if isinstance(literal, Literal) and isinstance(literal.value, dt.date)
            ]
            if not values or len(values) != len(literals):
                continue
            if strict:
                low, high = _times_allowed(function, [moment_of(value) for value in values], daily=daily)
            else:
                low = min(map(moment_of, values)) if function in {">", ">=", "=", "in"} else None
                high = max(map(last_moment, values)) if function in {"<", "<=", "=", "in"} else None
            if low is not None:
                earliest = low if earliest is None else max(earliest, low)
            if high is not None:
                latest = high if latest is None else min(latest, high)
    if earliest is None or latest is None:
        return None
    return earliest, max(earliest, latest)


_MOMENT = dt.timedelta(microseconds=1)


def _times_allowed(
    function: str, moments: list[dt.datetime], *, daily: bool
) -> tuple[dt.datetime | None, dt.datetime | None]:
    """The first and last moment for which a comparison is true; a date is compared as its midnight and lasts a day."""
    low, high = min(moments), max(moments)
    if function == ">":
        low = low + _MOMENT if low < LATEST else low
    if function == "<":
        high = high - _MOMENT if high > EARLIEST else high
    if daily:
        late = low > truncate_moment(low, "day") and low.date() < LATEST.date()
        low = moment_of(low.date() + dt.timedelta(days=1)) if late else truncate_moment(low, "day")
        high = last_moment(high.date())
    return low if function in {">", ">=", "=", "in"} else None, high if function in {"<", "<=", "=", "in"} else None


def written_range(expression: Node) -> Range:
    """Return the range of a literal; everything for anything else."""
    if isinstance(expression, Literal) and _is_number(expression.value):
        number = number_of(expression.value)
        return Range(number, number, number is not None and number.denominator == 1, "")
    return EVERYTHING


def _is_number(value: Value | None) -> bool:
    return isinstance(value, (int, Fraction)) and not isinstance(value, bool)


def number_of(value: Value | None) -> Fraction | None:
    """Return a value as a rational; None where it is no number."""
    return Fraction(value) if isinstance(value, (int, Fraction)) and not isinstance(value, bool) else None


# ---- NULL ------------------------------------------------------------------------------------------------------------------


def can_be_null(expression: Node, relation: Relation) -> bool:
    """Return whether an expression can be NULL; when in doubt, it can."""
    match expression:
        case Literal():
            return expression.value is None
        case Ref():
            return column_can_be_null(relation, expression.index)
        case Call(function="is_null"):
            return False
        case Call(function="coalesce"):
            return all(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(
            function="extract" | "date_trunc" | "neg" | "abs" | "floor" | "ceil" | "round" | "length" | "and" | "or" | "not"
        ):
            return any(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=" | "in" | "like" | "ilike" | "starts_with"):
            return any(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(function="case"):
            places = [*range(1, len(expression.arguments) - 1, 2), len(expression.arguments) - 1]
            return any(can_be_null(expression.arguments[place], relation) for place in places)
        case _:
            return True


def arithmetic_parts(expression: Node) -> list[Node]:
    """Return what sums, differences and products are made of: they are NULL where one of these is.

    Needs   Both ends of the expression are known: values that it overflows at lie far outside of declared bounds. Where one
            does, it counts as a row with the least value; who is a neighbour of whom, and what one unit moves, stays.
    """
    if isinstance(expression, Call) and expression.function in {"+", "-", "*"}:
        return [part for argument in expression.arguments for part in arithmetic_parts(argument)]
    return [expression]


def column_can_be_null(relation: Relation, index: int) -> bool:
    """Return whether a column can be NULL where the filters below hold."""
    if not relation.columns[index].nullable:
        return False
    if isinstance(relation, Filter):
        for conjunct in conjuncts(relation.predicate):
            if not isinstance(conjunct, Call):
                continue
            inner = conjunct.arguments[0]
            denied = conjunct.function == "not" and isinstance(inner, Call) and inner.function == "is_null"
            if denied and isinstance(inner, Call) and _is_column(inner.arguments[0], index):
                return False
            if conjunct.function in {"=", "<", "<=", ">", ">=", "in"} and any(
                _is_column(argument, index) for argument in conjunct.arguments
            ):
                return False
        return column_can_be_null(relation.input, index)
    if isinstance(relation, Distinct):
        return column_can_be_null(relation.input, index)
    return True


def _is_column(expression: Node, index: int) -> bool:
    return isinstance(expression, Ref) and expression.index == index
