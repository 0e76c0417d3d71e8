"""The catalogue of row functions in Python, written from the words of `lower/expression.py` and not from its SQL.

Numbers: `Raw` is the result of arithmetic, a float whose NaN and infinities are NULL; columns and choices hold plain values.
"""

import datetime as dt
import math
import re
from fractions import Fraction

from curador.query.tree import Call, Literal, Ref
from curador.study.values import Type

_MIN, _MAX = -(1 << 63), (1 << 63) - 1
_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001
_TEXT = 4096


class Raw(float):
    """A double in the middle of arithmetic."""


def evaluate(node, row):
    """Return the value of an expression over a row: None, bool, int, float, str, date or datetime."""
    return _value(_term(node, row), node.type)


def _value(found, type_):
    if isinstance(found, Raw):
        if not math.isfinite(found):
            return None
        if type_ is Type.INTEGER:
            return int(found) if _MIN <= int(found) <= _MAX else None
        return float(found) + 0.0
    return found


def _term(node, row):
    match node:
        case Literal(value=Fraction() as number):
            return number.numerator / number.denominator
        case Literal():
            return node.value
        case Ref():
            return row[node.index]
        case Call():
            return _call(node, row)


def _number(found):
    return None if found is None else float(found)


def _finite(found):
    return None if found is None or not math.isfinite(found) else float(found)


def _call(node, row):
    name, arguments = node.function, node.arguments
    if name in _LAZY:
        return _LAZY[name](node, row)
    terms = [_term(one, row) for one in arguments]
    values = [_value(term, one.type) for term, one in zip(terms, arguments, strict=True)]
    if name in _ARITHMETIC:
        given = [_number(one) for one in terms]
        if name in {"sign", "exp", "power"}:
            given = [_number(one) for one in values]
        if None in given:
            return None
        found = _ARITHMETIC[name](node, *given)
        return None if found is None else Raw(found)
    if name == "cast":
        return _cast(terms[0], values[0], arguments[0].type, node.type)
    if any(one is None for one in values):
        return None
    return _OTHERS[name](node, *values)


# ---- logic, comparison, choice ---------------------------------------------------------------------------------------


def _and(node, row):
    found = [evaluate(one, row) for one in node.arguments]
    return False if False in found else None if None in found else True


def _or(node, row):
    found = [evaluate(one, row) for one in node.arguments]
    return True if True in found else None if None in found else False


def _not(node, row):
    found = evaluate(node.arguments[0], row)
    return None if found is None else not found


def _comparable(values, types):
    kinds = {one for one in types if one is not None}
    if kinds == {Type.INTEGER}:
        return values
    if all(kind.numeric for kind in kinds):
        return [None if one is None else float(one) for one in values]
    if all(kind.temporal for kind in kinds) and len(kinds) == 2:
        return [dt.datetime.combine(v, dt.time()) if v is not None and not isinstance(v, dt.datetime) else v for v in values]
    return [one.encode() if isinstance(one, str) else one for one in values]


def _compare(node, row):
    values = [evaluate(one, row) for one in node.arguments]
    if None in values:
        return None
    left, right = _comparable(values, [one.type for one in node.arguments])
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[node.function]


def _in(node, row):
    found = [_compare(Call("=", (node.arguments[0], other), Type.BOOLEAN), row) for other in node.arguments[1:]]
    return True if True in found else None if None in found else False


def _case(node, row):
    *pairs, otherwise = node.arguments
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        if evaluate(condition, row) is True:
            return _as(evaluate(value, row), node.type)
    return _as(evaluate(otherwise, row), node.type)


def _coalesce(node, row):
    found = (evaluate(one, row) for one in node.arguments)
    return _as(next((one for one in found if one is not None), None), node.type)


def _nullif(node, row):
    same = _compare(Call("=", node.arguments, Type.BOOLEAN), row)
    return None if same else _as(evaluate(node.arguments[0], row), node.type)


def _extreme(node, row):
    found = [_as(evaluate(one, row), node.type) for one in node.arguments]
    found = [one for one in found if one is not None]
    if not found:
        return None
    key = (lambda one: one.encode()) if isinstance(found[0], str) else None
    return (min if node.function == "least" else max)(found, key=key)


def _as(value, type_):
    return float(value) if value is not None and type_ in {Type.FLOAT, Type.DECIMAL} else value


_LAZY = {
    "and": _and,
    "or": _or,
    "not": _not,
    "is_null": lambda node, row: evaluate(node.arguments[0], row) is None,
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "least": _extreme,
    "greatest": _extreme,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compare),
}


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _away(x):
    """Nearest whole number, halves away from 0."""
    if not math.isfinite(x):
        return x
    low = math.floor(abs(x))
    return math.copysign(low + (1 if Fraction(abs(x)) - low >= Fraction(1, 2) else 0), x)


def _divide(x, y):
    y = _finite(y)
    if y is None or y == 0 or not math.isfinite(x):
        return None
    return x / y


def _round(node, x, *_):
    digits = int(node.arguments[1].value) if len(node.arguments) > 1 else 0
    if digits >= 0 and node.arguments[0].type is Type.INTEGER:
        return x
    if digits > 0:
        return _away(x * 10.0**digits) / 10.0**digits
    return _away(x / 10.0**-digits) * 10.0**-digits if digits else _away(x)


def _guarded(function):
    def computed(_, *given):
        if any(not math.isfinite(one) for one in given):
            return None
        try:
            found = function(*given)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return None if isinstance(found, complex) else found

    return computed


def _quotient(node, x, y):
    found = _divide(x, y)
    return found if found is None or not math.isfinite(found) else math.trunc(found)


def _whole(function):
    return lambda node, x: x if not math.isfinite(x) or node.arguments[0].type is Type.INTEGER else float(function(x))


_ARITHMETIC = {
    "+": lambda _, x, y: x + y,
    "-": lambda _, x, y: x - y,
    "*": lambda _, x, y: x * y,
    "/": lambda _, x, y: _divide(x, y),
    "//": _quotient,
    "%": lambda _, x, y: math.fmod(x, y) if math.isfinite(x) and math.isfinite(y) and y else None,
    "neg": lambda _, x: -x,
    "abs": lambda _, x: abs(x),
    "sign": lambda _, x: (x > 0) - (x < 0),
    "round": _round,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "sqrt": _guarded(math.sqrt),
    "ln": _guarded(math.log),
    "log10": _guarded(math.log10),
    "exp": _guarded(math.exp),
    "power": _guarded(math.pow),
}


# ---- casts -----------------------------------------------------------------------------------------------------------


def _cast(term, value, given, type_):
    numbers = {Type.INTEGER, Type.FLOAT, Type.DECIMAL}
    if value is None and given is not None and not (given in numbers and type_ in numbers):
        return None
    if given is Type.STRING:
        return _read(value.strip(" "), value, type_)
    if given is type_:
        return term
    if given in numbers and type_ in {Type.FLOAT, Type.DECIMAL}:
        return Raw(term) if isinstance(term, Raw) else _as(value, type_)
    if given in numbers and type_ is Type.INTEGER:
        return None if term is None else Raw(_away(float(term)))
    if given in numbers and type_ is Type.BOOLEAN:
        return float(value) != 0
    if type_ is Type.STRING:
        return _spelled(value, given)
    if given is Type.BOOLEAN and type_ in numbers:
        return _as(int(value), type_)
    if given is Type.DATE and type_ is Type.TIMESTAMP:
        return dt.datetime.combine(value, dt.time())
    if given is Type.TIMESTAMP and type_ is Type.DATE:
        return value.date()
    return None


def _spelled(value, given):
    if given is Type.BOOLEAN:
        return "true" if value else "false"
    if given is Type.TIMESTAMP:
        text = f"{value.date().isoformat()} {value.time().replace(microsecond=0).isoformat()}"
        return text + (f".{value.microsecond:06d}".rstrip("0") if value.microsecond else "")
    if given is Type.DATE:
        return value.isoformat()
    return repr(value)


def _read(text, whole, type_):
    if type_ is Type.STRING:
        return whole
    if type_ is Type.BOOLEAN:
        return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(text.lower())
    if type_ is Type.INTEGER:
        found = int(text) if re.fullmatch("[+-]?[0-9]+", text) else None
        return found if found is not None and _MIN <= found <= _MAX else None
    if type_ in {Type.FLOAT, Type.DECIMAL}:
        pattern = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?"
        return Raw(text) if re.fullmatch(pattern, text) else None
    pattern = "([0-9]{4}-[0-9]{2}-[0-9]{2})" + ("" if type_ is Type.DATE else r"([ T]([0-9:.]*))?")
    clock = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    found = re.fullmatch(pattern, text)
    try:
        day = dt.date.fromisoformat(found[1]) if found else None
        if day is None or type_ is Type.DATE:
            return day
        if not found[2]:
            return dt.datetime.combine(day, dt.time())
        return dt.datetime.combine(day, dt.time.fromisoformat(found[3])) if re.fullmatch(clock, found[3]) else None
    except ValueError:
        return None


# ---- strings and times -----------------------------------------------------------------------------------------------


def _like(node, text, pattern):
    if node.function == "ilike":
        text, pattern = text.lower(), pattern.lower()
    parts = {"%": ".*", "_": "."}
    return re.fullmatch("".join(parts.get(one, re.escape(one)) for one in pattern), text, re.DOTALL) is not None


def _from_days(node, days):
    if not math.isfinite(days):
        return None
    first, last = ((one.date() - dt.date(1970, 1, 1)).days for one in (_FIRST, _LAST))
    return dt.date(1970, 1, 1) + dt.timedelta(days=min(max(math.floor(days), first), last))


def _matches(node, text, pattern):
    return re.search(pattern.replace("(?:$)", r"\Z"), text, re.ASCII) is not None


def _replace(node, text, old, new):
    if not old:
        return text
    if len(new) > len(old):
        text = text[: max(1, _TEXT * len(old) // len(new))]
    return text.replace(old, new)[:_TEXT]


def _concat(node, *parts):
    joined = parts[0]
    for part in parts[1:]:
        joined = (joined + part)[:_TEXT]
    return joined


def _moment(value):
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


def _truncated(moment, unit):
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - dt.timedelta(days=day.weekday())
        case "day":
            return day
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case _:
            return moment.replace(microsecond=0)


def _date_trunc(node, unit, value):
    found = _truncated(_moment(value), unit)
    return found.date() if node.type is Type.DATE else found


def _extract(node, part, value):
    moment = _moment(value)
    return {
        "year": moment.year,
        "quarter": (moment.month - 1) // 3 + 1,
        "month": moment.month,
        "week": moment.isocalendar().week,
        "day": moment.day,
        "hour": moment.hour,
        "minute": moment.minute,
        "second": moment.second,
        "dayofweek": moment.isoweekday() % 7,
        "isodow": moment.isoweekday(),
        "dayofyear": moment.timetuple().tm_yday,
    }[part]


def _date_diff(node, unit, start, end):
    start, end = (_truncated(_moment(one), unit) for one in (start, end))
    months = (end.year - start.year) * 12 + end.month - start.month
    if unit in {"year", "quarter", "month"}:
        return months // {"year": 12, "quarter": 3, "month": 1}[unit]
    span = {"week": 7 * 86400, "day": 86400, "hour": 3600, "minute": 60, "second": 1}[unit]
    return (end - start) // dt.timedelta(seconds=span)


def _date_add(node, value, amount, unit):
    moment = _moment(value)
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    try:
        if months:
            total = moment.year * 12 + moment.month - 1 + months * amount
            year, month = total // 12, total % 12 + 1
            if not 1 <= year <= 9999:
                raise OverflowError  # noqa: TRY301 -- the one way out
            last = 31 if month == 12 else (dt.date(year, month + 1, 1) - dt.timedelta(days=1)).day
            found = moment.replace(year=year, month=month, day=min(moment.day, last))
        else:
            found = moment + amount * dt.timedelta(**{f"{unit}s": 1})
    except OverflowError:
        found = _LAST if amount > 0 else _FIRST
    return found.date() if node.type is Type.DATE else found


_OTHERS = {
    "like": _like,
    "ilike": _like,
    "matches": _matches,
    "from_days": _from_days,
    "starts_with": lambda _, text, start: text.startswith(start),
    "lower": lambda _, text: text.lower(),
    "upper": lambda _, text: text.upper(),
    "trim": lambda _, text: text.strip(" "),
    "length": lambda _, text: len(text),
    "concat": _concat,
    "substring": lambda _, text, start, length=1 << 40: text[start - 1 : start - 1 + length],
    "replace": _replace,
    "date_trunc": _date_trunc,
    "extract": _extract,
    "date_diff": _date_diff,
    "date_add": _date_add,
}
