"""Expressions over one row: total by construction, one meaning for every engine.

This is the one place that says what the catalogue of `query/functions.py` means; what is computed from released values means
the same.

numbers      Computed in doubles. A result that is NaN or infinite is NULL, and so is a whole number outside 64 bits as soon
             as it is compared, chosen, stored or grouped. An infinity in a column compares as one; arithmetic on it is NULL.
             Numbers beyond 2^±1000 are outside this promise: where one that is larger, or smaller and not 0, goes in,
             comes out or is met on the way, an engine may give NULL or 0. It never raises.
// %         Double quotient rounded towards 0; remainder with the sign of the dividend.
round        Halves away from 0: nearest(x · 10^d) / 10^d, or nearest(x / 10^−d) · 10^−d; a whole number stays with d ≥ 0.
comparisons  Whole numbers as 64-bit integers, a whole number with another number as doubles, strings by their bytes, a date
             with a timestamp as midnight.
least …      NULLs are skipped; NULL where all are.
cast         To integer: nearest, halves away from 0. Number to boolean: x <> 0. From a string, blanks around it apart, only:
             integer [+-]digits; float also with point and exponent; boolean true t 1 false f 0 in any case; date YYYY-MM-DD;
             timestamp a date, then a blank or T, HH:MM, :SS and up to six decimals. To a string: integers in digits, floats
             in the fewest that read back, true or false, dates and timestamps as above with a blank. Else NULL.
strings      Characters are code points. concat and replace give at most 4,096; replace reads no more than that allows.
             trim takes blanks only. lower and upper map single characters. matches: a part of the text does, by the
             language of `query/patterns.py`; $ is its end.
times        Years 1 to 9999, clamped. date_trunc to a Monday for weeks. date_diff counts how many units begin after the
             first moment up to the second. date_add keeps the day of the month or its last day. from_days counts from
             1970-01-01 and rounds down.

What grows is cut: a string that doubles at every step would fail for one row's sake.

A lowered expression is a term, and a number in it is needed in three ways: as it is, finite, or as a value. Arithmetic is
done in doubles without a check at each step. Its text is *raw*: NaN and infinities in it stand for NULL. Sums, products and
quotients carry them on, so a long chain needs no check but at its end; what could lose one (a comparison, a divisor, e^x)
asks for the term as a value or finite, and gets a guard. An infinity in a column is no such mark: it is larger than every
number, and is clamped to the bound when it is measured.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from curador.engines.lower.sql import MOST_DEPTH, require_short, too_deep
from curador.errors import InvalidQuery
from curador.query.functions import PARTS, UNITS
from curador.query.tree import Call, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.engines.lower.sql import Dialect
    from curador.query.tree import Node

# ---- an expression -------------------------------------------------------------------------------------------------


def lower_text(expression: Node, names: Sequence[str], dialect: Dialect, type_: Type | None = None) -> str:
    """Return an expression's value in the physical form of its type, or of the one given, over columns of these names."""
    known = lower_term(expression, names, dialect)
    return as_type(known, type_ or known.type or Type.BOOLEAN, dialect).sql


def lower_term(expression: Node, names: Sequence[str], dialect: Dialect, depth: int = 0) -> LoweredTerm:
    """Return the lowered expression, over columns of these names, in order."""
    if depth > MOST_DEPTH:
        raise too_deep()
    match expression:
        case Literal():
            return lower_literal(expression, dialect)
        case Ref():
            double = expression.type in {Type.FLOAT, Type.DECIMAL}
            return LoweredTerm(names[expression.index], expression.type, infinite=double)
        case Call():
            lowered = LOWERED.get(expression.function)
            if lowered is None:
                message = f"no such function: {expression.function}"
                raise TypeError(message)
            missing = dialect.missing(expression.function, [one.type for one in expression.arguments], expression.type)
            if missing is not None:
                raise InvalidQuery(f"{missing}.", hint="ask it in another way; `explain` shows what a question computes")
            arguments = [lower_term(argument, names, dialect, depth + 1) for argument in expression.arguments]
            return lowered(expression, arguments, dialect)
        case _:
            message = f"not an expression over rows: {type(expression).__name__}"
            raise TypeError(message)


# ---- terms ---------------------------------------------------------------------------------------------------------

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class LoweredTerm:
    """A text of SQL and what it is.

    type      None: NULL of any type
    raw       a number in doubles whose NaN and infinities stand for NULL, and whose zero may have a sign; else the text has
              the physical type of `type`, no NaN and no signed zero
    infinite  not raw, and may be an infinity that came from a column
    """

    sql: str
    type: Type | None
    raw: bool = False
    infinite: bool = False

    def __post_init__(self) -> None:
        require_short(self.sql)


CallLowering: TypeAlias = "Callable[[Call, list[LoweredTerm], Dialect], LoweredTerm]"
"""How a call is written, from its lowered arguments: total, whatever they hold."""


def lower_literal(node: Literal, dialect: Dialect) -> LoweredTerm:
    """Return a literal. Fractions become the nearest double, whole numbers beyond 64 bits too."""
    value = node.value
    match value:
        case None:
            return LoweredTerm("NULL" if node.type is None else null_of(node.type, dialect), node.type)
        case bool():
            return LoweredTerm(dialect.boolean(value), Type.BOOLEAN)
        case int() if node.type in {Type.INTEGER, None} and _SMALLEST <= value <= _LARGEST:
            return LoweredTerm(dialect.integer(value), Type.INTEGER)
        case int() | Fraction():
            number = nearest_double(Fraction(value))
            return LoweredTerm(dialect.double(number), Type.FLOAT, infinite=number in {float("inf"), float("-inf")})
        case str():
            return LoweredTerm(dialect.string(value), Type.STRING)
        case dt.datetime():
            return LoweredTerm(dialect.timestamp(value), Type.TIMESTAMP)
        case dt.date():
            if node.type is Type.TIMESTAMP:
                return LoweredTerm(dialect.timestamp(dt.datetime(value.year, value.month, value.day)), Type.TIMESTAMP)  # noqa: DTZ001
            return LoweredTerm(dialect.date(value), Type.DATE)


def nearest_double(value: Fraction) -> float:
    """Return the nearest double; an infinity beyond the largest."""
    try:
        number = value.numerator / value.denominator
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return number + 0.0  # no signed zero


def null_of(type_: Type, dialect: Dialect) -> str:
    """Return NULL of a type."""
    return f"CAST(NULL AS {dialect.type(type_)})"


def as_number(term: LoweredTerm, dialect: Dialect) -> str:
    """Return a double to compute with, raw."""
    if term.type is None:
        return null_of(Type.FLOAT, dialect)
    if term.type is Type.INTEGER and not term.raw:
        return f"CAST({term.sql} AS {dialect.type(Type.FLOAT)})"
    return term.sql


def as_finite(term: LoweredTerm, dialect: Dialect) -> str:
    """Return a double that is never NaN nor infinite: NULL instead."""
    text = as_number(term, dialect)
    if term.raw or term.infinite:
        return f"(CASE WHEN {dialect.finite(text)} THEN {text} END)"
    return text


def as_value(term: LoweredTerm, dialect: Dialect) -> LoweredTerm:
    """Return the term in its type's physical form, never raw. A whole number that does not fit 64 bits is NULL."""
    if not term.raw:
        return term
    if term.type is Type.INTEGER:
        return LoweredTerm(dialect.whole(term.sql), Type.INTEGER)
    guarded = f"(CASE WHEN {dialect.finite(term.sql)} THEN {term.sql} + {dialect.double(0.0)} END)"
    return LoweredTerm(guarded, term.type)


def as_type(term: LoweredTerm, type_: Type, dialect: Dialect) -> LoweredTerm:
    """Return the value in the physical form of another type of its kind: whole numbers as doubles, dates as moments."""
    if term.type is None:
        return LoweredTerm(null_of(type_, dialect), type_)
    known = as_value(term, dialect)
    if known.type is None or dialect.type(known.type) == dialect.type(type_):
        return LoweredTerm(known.sql, type_, infinite=known.infinite)
    if type_ is Type.INTEGER and known.type.numeric:
        return LoweredTerm(dialect.whole(dialect.nearest(known.sql)), type_)
    if type_.numeric and known.type is Type.INTEGER:
        return LoweredTerm(f"CAST({known.sql} AS {dialect.type(type_)})", type_)
    if type_ is Type.TIMESTAMP and known.type is Type.DATE:
        return LoweredTerm(dialect.try_cast(known.sql, type_), type_)
    message = f"no {known.type} stands for a {type_}"
    raise TypeError(message)


def _common_type(types: Sequence[Type | None]) -> Type | None:
    """Return the type in which values of one kind are compared."""
    known = {one for one in types if one is not None}
    if len(known) <= 1:
        return next(iter(known), None)
    if all(one.numeric for one in known):
        return Type.FLOAT
    if all(one.temporal for one in known):
        return Type.TIMESTAMP
    message = f"values of one kind were expected: {sorted(known)}"
    raise TypeError(message)


def align(terms: Sequence[LoweredTerm], dialect: Dialect, type_: Type | None = None) -> list[LoweredTerm]:
    """Return values of one kind in one physical form: that of the type, else the common one; booleans where all are NULL."""
    shared = type_ or _common_type([term.type for term in terms]) or Type.BOOLEAN
    return [as_type(term, shared, dialect) for term in terms]


# ---- times -----------------------------------------------------------------------------------------------------------------


_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 -- UTC without zone


def _truncated(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    moment = as_type(arguments[1], call.type, dialect)
    return LoweredTerm(dialect.date_trunc(_word(call.arguments[0], UNITS), moment.sql, call.type), call.type)


def _part(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(dialect.part(_word(call.arguments[0], PARTS), _moment(arguments[1], dialect).sql), Type.INTEGER)


def _between(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    unit = _word(call.arguments[0], UNITS)
    start, end = align([_moment(argument, dialect) for argument in arguments[1:]], dialect)
    return LoweredTerm(dialect.date_diff(unit, start.sql, end.sql), Type.INTEGER)


def _added(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    amount = call.arguments[1]
    if not isinstance(amount, Literal) or not hasattr(amount.value, "numerator"):
        message = "a whole number must be written here"
        raise TypeError(message)
    unit = _word(call.arguments[2], UNITS)
    moved = dialect.moved(as_type(arguments[0], call.type, dialect).sql, int(amount.value), unit)  # type: ignore[arg-type]
    first, last = dialect.timestamp(_FIRST), dialect.timestamp(_LAST)
    clamped = f"(CASE WHEN {moved} < {first} THEN {first} WHEN {moved} > {last} THEN {last} ELSE {moved} END)"
    return LoweredTerm(dialect.try_cast(clamped, call.type), call.type)


def _from_days(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    days, first, last = dialect.function("floor", as_finite(arguments[0], dialect)), *map(dialect.double, _DAYS)
    clamped = f"(CASE WHEN {days} < {first} THEN {first} WHEN {days} > {last} THEN {last} ELSE {days} END)"
    return LoweredTerm(dialect.day(clamped), Type.DATE)


_DAYS = tuple(float((one.date() - dt.date(1970, 1, 1)).days) for one in (_FIRST, _LAST))


def _moment(term: LoweredTerm, dialect: Dialect) -> LoweredTerm:
    """The term as a date or timestamp; NULL of no type is a timestamp."""
    return as_type(term, term.type or Type.TIMESTAMP, dialect)


def _word(node: Node, known: tuple[str, ...]) -> str:
    found = node.value if isinstance(node, Literal) else None
    if not isinstance(found, str) or found not in known:
        message = f"one of {', '.join(known)} must be written here"
        raise TypeError(message)
    return found


TIME_FUNCTIONS: dict[str, CallLowering] = {
    "date_trunc": _truncated,
    "extract": _part,
    "date_diff": _between,
    "date_add": _added,
    "from_days": _from_days,
}
"""Functions of dates and timestamps."""

# ---- texts -----------------------------------------------------------------------------------------------------------------


MOST_CHARACTERS = 4_096
"""What concat and replace give at most."""

_FAR = (1 << 31) - 1
_INTEGER = "[+-]?[0-9]+"
_FLOAT = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})?"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = f"{_DATE}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,6}})?)?)?"
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


def _text(argument: LoweredTerm, dialect: Dialect) -> str:
    return as_type(argument, Type.STRING, dialect).sql


def _like(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    pattern = _string_literal(call.arguments[1])
    return LoweredTerm(dialect.like(_text(arguments[0], dialect), pattern, fold=call.function == "ilike"), Type.BOOLEAN)


def _matched(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(dialect.searches(_text(arguments[0], dialect), _string_literal(call.arguments[1])), Type.BOOLEAN)


def _starts_with(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(dialect.starts_with(_text(arguments[0], dialect), _string_literal(call.arguments[1])), Type.BOOLEAN)


def _plain_text(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(dialect.text(call.function, _text(arguments[0], dialect)), call.type)


def _concat(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    joined, *parts = (_text(argument, dialect) for argument in arguments)
    for part in parts:  # cut at each step, so that no row's memory grows with the number of parts
        joined = dialect.substring(f"({joined} || {part})", 1, MOST_CHARACTERS)
    return LoweredTerm(joined, Type.STRING)


def _substring(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    start = min(max(_integer_literal(call.arguments[1]), 1), _FAR)
    length = min(max(_integer_literal(call.arguments[2]), 0), _FAR) if len(call.arguments) > 2 else _FAR
    return LoweredTerm(dialect.substring(_text(arguments[0], dialect), start, length), Type.STRING)


def _replace(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    text, old, new = _text(arguments[0], dialect), _string_literal(call.arguments[1]), _string_literal(call.arguments[2])
    if not old:
        return LoweredTerm(text, Type.STRING)
    if len(new) > len(old):
        text = dialect.substring(text, 1, max(1, MOST_CHARACTERS * len(old) // len(new)))
    return LoweredTerm(dialect.substring(dialect.replaced(text, old, new), 1, MOST_CHARACTERS), Type.STRING)


# ---- casts ---------------------------------------------------------------------------------------------------------


def cast_term(term: LoweredTerm, type_: Type, dialect: Dialect) -> LoweredTerm:
    """Return a value in another type, as the catalogue says; NULL where it does not fit."""
    given = term.type
    if given is None:
        return LoweredTerm(null_of(type_, dialect), type_)
    if given is Type.STRING and type_ is not Type.STRING:
        return _from_string(as_value(term, dialect).sql, type_, dialect)
    if given is type_ or (given.numeric and type_ in {Type.FLOAT, Type.DECIMAL}):
        return LoweredTerm(term.sql, type_, raw=True) if term.raw else as_type(term, type_, dialect)
    if given.numeric and type_ is Type.INTEGER:
        return LoweredTerm(dialect.nearest(as_number(term, dialect)), type_, raw=True)
    if given.numeric and type_ is Type.BOOLEAN:
        return LoweredTerm(f"({as_type(term, Type.FLOAT, dialect).sql} <> {dialect.double(0.0)})", type_)
    known = as_value(term, dialect).sql
    if type_ is Type.STRING:
        return _to_string(known, given, dialect)
    if given is Type.BOOLEAN and type_.numeric:
        one, zero = (dialect.integer(1), dialect.integer(0)) if type_ is Type.INTEGER else map(dialect.double, (1.0, 0.0))
        return LoweredTerm(f"(CASE {known} WHEN TRUE THEN {one} WHEN FALSE THEN {zero} END)", type_)
    if given.temporal and type_.temporal:
        return LoweredTerm(dialect.try_cast(known, type_), type_)
    return LoweredTerm(null_of(type_, dialect), type_)


def _to_string(text: str, given: Type, dialect: Dialect) -> LoweredTerm:
    if given is Type.BOOLEAN:
        return LoweredTerm(f"(CASE {text} WHEN TRUE THEN 'true' WHEN FALSE THEN 'false' END)", Type.STRING)
    return LoweredTerm(dialect.try_cast(text, Type.STRING), Type.STRING)


def _from_string(text: str, type_: Type, dialect: Dialect) -> LoweredTerm:
    trimmed = dialect.text("trim", text)
    if type_ is Type.BOOLEAN:
        word = dialect.text("lower", trimmed)
        true, false = (", ".join(map(dialect.string, words)) for words in (_TRUE, _FALSE))
        return LoweredTerm(f"(CASE WHEN {word} IN ({true}) THEN TRUE WHEN {word} IN ({false}) THEN FALSE END)", type_)
    if type_ in {Type.INTEGER, Type.FLOAT, Type.DECIMAL}:
        pattern = _INTEGER if type_ is Type.INTEGER else _FLOAT
        read = f"(CASE WHEN {dialect.matches(trimmed, pattern)} THEN {dialect.try_cast(trimmed, type_)} END)"
        return LoweredTerm(read, type_, raw=type_ is not Type.INTEGER)
    pattern = _DATE if type_ is Type.DATE else _TIMESTAMP
    spelled = f"{dialect.matches(trimmed, pattern)} AND {trimmed} >= '0001'"  # there is no year 0
    return LoweredTerm(f"(CASE WHEN {spelled} THEN {dialect.try_cast(trimmed, type_)} END)", type_)


def _string_literal(node: Node) -> str:
    found = node.value if isinstance(node, Literal) else None
    if not isinstance(found, str):
        message = "a string must be written here"
        raise TypeError(message)
    return found


def _integer_literal(node: Node) -> int:
    found = node.value if isinstance(node, Literal) else None
    if found is None or isinstance(found, (bool, str)) or not hasattr(found, "numerator"):
        message = "a whole number must be written here"
        raise TypeError(message)
    return int(found)  # type: ignore[arg-type]  # int or Fraction


TEXT_FUNCTIONS: dict[str, CallLowering] = {
    **dict.fromkeys(("like", "ilike"), _like),
    "matches": _matched,
    "starts_with": _starts_with,
    **dict.fromkeys(("lower", "upper", "trim", "length"), _plain_text),
    "concat": _concat,
    "substring": _substring,
    "replace": _replace,
}
"""Functions of strings."""

# ---- logic and choice ----------------------------------------------------------------------------------------------


def _connected(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    parts = [as_type(argument, Type.BOOLEAN, dialect).sql for argument in arguments]
    return LoweredTerm("(" + f" {call.function.upper()} ".join(parts) + ")", Type.BOOLEAN)


def _not(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(f"(NOT {as_type(arguments[0], Type.BOOLEAN, dialect).sql})", Type.BOOLEAN)


def _is_null(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(f"({as_value(arguments[0], dialect).sql} IS NULL)", Type.BOOLEAN)


def _compared(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    left, right = align(arguments, dialect)
    return LoweredTerm(f"({left.sql} {call.function} {right.sql})", Type.BOOLEAN)


def _in(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    first, *others = align(arguments, dialect)
    return LoweredTerm(f"({first.sql} IN ({', '.join(other.sql for other in others)}))", Type.BOOLEAN)


def _coalesce(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    values = align(arguments, dialect, call.type)
    text = f"COALESCE({', '.join(value.sql for value in values)})"
    return LoweredTerm(text, call.type, infinite=any(value.infinite for value in values))


def _extreme(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    values = align(arguments, dialect, call.type)
    text = dialect.extreme(call.function, [value.sql for value in values])
    return LoweredTerm(text, call.type, infinite=any(value.infinite for value in values))


def _nullif(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    first = as_type(arguments[0], call.type, dialect)
    left, right = align(arguments, dialect)
    text = f"(CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {first.sql} END)"
    return LoweredTerm(text, call.type, infinite=first.infinite)


def _case(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    conditions, results = arguments[:-1:2], [*arguments[1:-1:2], arguments[-1]]
    values = align(results, dialect, call.type)
    arms = [
        f"WHEN {as_type(condition, Type.BOOLEAN, dialect).sql} THEN {value.sql}"
        for condition, value in zip(conditions, values[:-1], strict=True)
    ]
    text = f"(CASE {' '.join(arms)} ELSE {values[-1].sql} END)"
    return LoweredTerm(text, call.type, infinite=any(value.infinite for value in values))


def _cast(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return cast_term(arguments[0], call.type, dialect)


# ---- numbers: raw doubles ------------------------------------------------------------------------------------------


def _raw(written: Callable[[Call, list[LoweredTerm], Dialect], str]) -> CallLowering:
    """Return the lowering of a function whose text is a raw double."""
    return lambda call, arguments, dialect: LoweredTerm(written(call, arguments, dialect), call.type, raw=True)


def _operator(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x, y = (as_number(argument, dialect) for argument in arguments)
    return f"({dialect.arithmetic(call.function, x, y)})"


def _divided(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x, y = as_number(arguments[0], dialect), as_finite(arguments[1], dialect)  # a number over an infinity would be 0
    match call.function:
        case "/":
            return f"({dialect.arithmetic('/', x, y)})"
        case "//":
            return dialect.truncated(dialect.arithmetic("/", x, y))
        case _:
            return dialect.remainder(x, y)


def _negated(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    return f"(- {as_number(arguments[0], dialect)})"


def _plain(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    return dialect.function(call.function, as_number(arguments[0], dialect))


def _to_whole(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x = as_number(arguments[0], dialect)
    return x if arguments[0].type is Type.INTEGER else dialect.function(call.function, x)


def _sign(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    # of a value: the sign of an infinity that a column holds is known, of a raw one it is not
    return dialect.function(call.function, as_number(as_value(arguments[0], dialect), dialect))


def _from_zero(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x, least = as_number(arguments[0], dialect), ">=" if call.function == "sqrt" else ">"
    return dialect.function(call.function, f"CASE WHEN {x} {least} {dialect.double(0.0)} THEN {x} END")


def _exponential(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    return dialect.function(call.function, as_finite(arguments[0], dialect))


def _power(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    exponent = as_finite(arguments[1], dialect)
    return dialect.power(as_finite(arguments[0], dialect), exponent)


def _round(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x = as_number(arguments[0], dialect)
    digits = whole_literal(call.arguments[1]) if len(call.arguments) > 1 else 0
    if digits >= 0 and arguments[0].type is Type.INTEGER:
        return x
    if digits == 0:
        return dialect.nearest(x)
    scale = dialect.double(float(10 ** abs(digits)))
    first, last = ("*", "/") if digits > 0 else ("/", "*")
    nearest = dialect.nearest(dialect.arithmetic(first, x, scale))
    return f"({dialect.arithmetic(last, nearest, scale)})"


def whole_literal(node: Node) -> int:
    """Return the whole number that a literal is."""
    found = node.value if isinstance(node, Literal) else None
    if isinstance(found, bool) or not isinstance(found, (int, Fraction)) or found != int(found):
        message = "a whole number must be written here"
        raise TypeError(message)
    return int(found)


LOWERED: dict[str, CallLowering] = {
    **dict.fromkeys(("and", "or"), _connected),
    "not": _not,
    "is_null": _is_null,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compared),
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    **dict.fromkeys(("least", "greatest"), _extreme),
    "cast": _cast,
    **dict.fromkeys(("+", "-", "*"), _raw(_operator)),
    **dict.fromkeys(("/", "//", "%"), _raw(_divided)),
    "neg": _raw(_negated),
    "abs": _raw(_plain),
    "sign": _raw(_sign),
    "round": _raw(_round),
    **dict.fromkeys(("floor", "ceil"), _raw(_to_whole)),
    **dict.fromkeys(("sqrt", "ln", "log10"), _raw(_from_zero)),
    "exp": _raw(_exponential),
    "power": _raw(_power),
    **TEXT_FUNCTIONS,
    **TIME_FUNCTIONS,
}
"""The SQL of every function of the catalogue, over rows and after the release."""
