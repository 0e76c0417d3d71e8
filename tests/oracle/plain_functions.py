"""The catalogue of functions over released values, one value at a time, in plain Python: slow and easy to read.

Numbers are Python's floats; None is NULL. Written from the catalogue's table, without looking at the vectorised code.
"""

# ruff: noqa: DTZ001 -- times are UTC, without zone

from __future__ import annotations

import calendar
import datetime as dt
import math
from decimal import ROUND_HALF_UP, Decimal

from curador.query.tree import Call, Estimated, Key, Literal
from curador.study.values import Type

TOTAL = {"and", "or", "is_null", "case", "coalesce", "least", "greatest", "nullif", "in"}


def has_release(node):
    if isinstance(node, Call):
        return any(has_release(one) for one in node.arguments)
    return isinstance(node, Estimated)


def value_of(node, keys, estimates):
    """The value of an expression for one row."""
    match node:
        case Literal():
            return _plain(node.value)
        case Key():
            return _plain(keys[node.index])
        case Estimated():
            return _plain(estimates[node.index])
    held = [value_of(one, keys, estimates) for one in node.arguments]
    if node.function not in TOTAL and any(one is None for one in held):
        return None
    if node.function in {"/", "//"} and has_release(node.arguments[1]) and held[1] <= 0:
        return None
    found = FUNCTIONS[node.function](*held) if node.function != "cast" else cast(held[0], node.arguments[0].type, node.type)
    if isinstance(found, float) and not math.isfinite(found):
        return None
    return found


def _plain(value):
    return float(value) if value is not None and not isinstance(value, (bool, str, dt.date)) else value


def guarded(function):
    def call(*arguments):
        try:
            found = function(*arguments)
        except (ValueError, ZeroDivisionError, OverflowError):
            return None
        return None if isinstance(found, complex) else found

    return call


def land(*held):
    return False if any(one is False for one in held) else None if any(one is None for one in held) else True


def lor(*held):
    return True if any(one is True for one in held) else None if any(one is None for one in held) else False


def inside(value, *others):
    return lor(*(None if value is None or one is None else value == one for one in others))


def case(*held):
    *pairs, last = held
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        if condition is True:
            return value
    return last


def best(choose):
    def call(*held):
        known = [one for one in held if one is not None]
        return choose(known) if known else None

    return call


def rounded(value, digits=0.0):
    """Half away from 0, on the double that the value times a power of ten is."""
    factor = 10.0 ** abs(int(digits))
    scaled = value * factor if digits >= 0 else value / factor
    if abs(scaled) >= 2**52:
        return value
    whole = float(Decimal(scaled).quantize(Decimal(1), ROUND_HALF_UP))
    return whole / factor if digits >= 0 else whole * factor


def matches(text, pattern):
    """% and _ by recursion."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(matches(text[start:], pattern[1:]) for start in range(len(text) + 1))
    return bool(text) and pattern[0] in {"_", text[0]} and matches(text[1:], pattern[1:])


def midnight(value):
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)


def as_argument(found, argument):
    return found if isinstance(argument, dt.datetime) else found.date()


def trunc(unit, value):
    at = midnight(value)
    names = ["year", "month", "day", "hour", "minute", "second"]
    if unit == "week":
        day = dt.datetime(at.year, at.month, at.day)
        return as_argument(day - dt.timedelta(days=day.weekday()), value)
    if unit == "quarter":
        return as_argument(dt.datetime(at.year, {0: 1, 1: 4, 2: 7, 3: 10}[(at.month - 1) // 3], 1), value)
    kept = names.index(unit) + 1
    parts = [at.year, at.month, at.day, at.hour, at.minute, at.second][:kept]
    return as_argument(dt.datetime(*(parts + [1, 1, 1][len(parts) :])), value)


def part(name, value):
    at = midnight(value)
    week = at.strftime("%G %V %u %w %j %H %M %S").split()
    simple = {"week": week[1], "isodow": week[2], "dayofweek": week[3], "dayofyear": week[4]}
    simple |= {"hour": week[5], "minute": week[6], "second": week[7]}
    simple |= {"year": at.year, "month": at.month, "day": at.day, "quarter": math.ceil(at.month / 3)}
    return float(simple[name])


def diff(unit, start, end):
    first, last = midnight(trunc(unit, midnight(start))), midnight(trunc(unit, midnight(end)))
    if unit in {"year", "quarter", "month"}:
        months = (last.year - first.year) * 12 + last.month - first.month
        return float(months // {"year": 12, "quarter": 3, "month": 1}[unit])
    seconds = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}[unit]
    return float((last - first) // dt.timedelta(seconds=seconds))


def moved(value, count, unit):
    at, steps = midnight(value), int(count)
    try:
        if unit in {"year", "quarter", "month"}:
            months = at.year * 12 + at.month - 1 + steps * {"year": 12, "quarter": 3, "month": 1}[unit]
            year, month = months // 12, months % 12 + 1
            found = at.replace(year=year, month=month, day=1)
            found = found.replace(day=min(at.day, calendar.monthrange(year, month)[1]))
        else:
            found = at + steps * dt.timedelta(**{f"{unit}s": 1})
    except (ValueError, OverflowError, calendar.IllegalMonthError):
        found = dt.datetime(9999, 12, 31, 23, 59, 59, 999999) if steps > 0 else dt.datetime(1, 1, 1)
    return as_argument(found, value)


def cast(value, source, target):
    try:
        match target:
            case Type.STRING:
                if isinstance(value, bool):
                    return str(value).lower()
                if isinstance(value, dt.date):
                    return str(value)
                return str(int(value)) if source is Type.INTEGER else repr(value) if isinstance(value, float) else value
            case Type.INTEGER:
                return None if isinstance(value, dt.date) or abs(float(value)) >= 2**63 else float(round(float(value)))
            case Type.FLOAT | Type.DECIMAL:
                return None if isinstance(value, dt.date) else float(value)
            case Type.BOOLEAN:
                if isinstance(value, str):
                    return {"true": True, "false": False, "1": True, "0": False}.get(value.strip().lower())
                return None if isinstance(value, dt.date) else bool(value)
            case Type.DATE:
                if isinstance(value, str):
                    return dt.datetime.fromisoformat(value.strip()).date()
                return midnight(value).date() if isinstance(value, dt.date) else None
            case Type.TIMESTAMP:
                if isinstance(value, str):
                    return dt.datetime.fromisoformat(value.strip())
                return midnight(value) if isinstance(value, dt.date) else None
    except ValueError:
        return None


FUNCTIONS = {
    "and": land,
    "or": lor,
    "not": lambda a: not a,
    "is_null": lambda a: a is None,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": inside,
    "like": matches,
    "ilike": lambda a, b: matches(a.lower(), b.lower()),
    "starts_with": lambda a, b: a[: len(b)] == b,
    "case": case,
    "coalesce": lambda *held: next((one for one in held if one is not None), None),
    "nullif": lambda a, b: None if a is not None and a == b else a,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": guarded(lambda a, b: a / b),
    "//": guarded(lambda a, b: float(math.trunc(a / b))),
    "%": guarded(math.fmod),
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: float((a > 0) - (a < 0)),
    "round": rounded,
    "floor": lambda a: float(math.floor(a)),
    "ceil": lambda a: float(math.ceil(a)),
    "sqrt": guarded(math.sqrt),
    "ln": guarded(math.log),
    "log10": guarded(math.log10),
    "exp": guarded(math.exp),
    "power": guarded(lambda a, b: a**b),
    "least": best(min),
    "greatest": best(max),
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda a: a.strip(" "),
    "length": lambda a: float(len(a)),
    "concat": lambda *held: "".join(held),
    "substring": lambda a, start, length: a[int(start) - 1 :][: int(length)],
    "replace": lambda a, old, new: new.join(a.split(old)) if old else a,
    "date_trunc": trunc,
    "extract": part,
    "date_diff": diff,
    "date_add": moved,
}
