"""Expressions over one row: total by construction, one meaning for every engine.

This is the one place that says what the catalogue of `query/functions.py` means; what is computed from released values means
the same.

numbers      Computed in doubles. A result that is NaN or infinite is NULL, and so is a whole number outside 64 bits as soon
             as it is compared, chosen, stored or grouped. An infinity in a column compares as one; arithmetic on it is NULL.
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
             trim takes blanks only. lower and upper map single characters.
times        Years 1 to 9999, clamped. date_trunc to a Monday for weeks. date_diff counts how many units begin after the
             first moment up to the second. date_add keeps the day of the month or its last day.

What grows is cut: a string that doubles at every step would fail for one row's sake.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.engines.lower import terms
from curador.engines.lower.sql import MOST_DEPTH, too_deep
from curador.engines.lower.terms import CallLowering, LoweredTerm
from curador.query.functions import PARTS, UNITS
from curador.query.tree import Call, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.engines.lower.dialect import Dialect
    from curador.query.tree import Node


# ---- times -----------------------------------------------------------------------------------------------------------------


_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 -- UTC without zone


def _truncated(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    moment = terms.of_type(arguments[1], call.type, dialect)
    return LoweredTerm(dialect.date_trunc(_word(call.arguments[0], UNITS), moment.sql, call.type), call.type)


def _part(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(dialect.part(_word(call.arguments[0], PARTS), _moment(arguments[1], dialect).sql), Type.INTEGER)


def _between(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    unit = _word(call.arguments[0], UNITS)
    start, end = terms.align([_moment(argument, dialect) for argument in arguments[1:]], dialect)
    return LoweredTerm(dialect.date_diff(unit, start.sql, end.sql), Type.INTEGER)


def _added(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    amount = call.arguments[1]
    if not isinstance(amount, Literal) or not hasattr(amount.value, "numerator"):
        message = "a whole number must be written here"
        raise TypeError(message)
    unit = _word(call.arguments[2], UNITS)
    moved = dialect.moved(terms.of_type(arguments[0], call.type, dialect).sql, int(amount.value), unit)  # type: ignore[arg-type]
    first, last = dialect.timestamp(_FIRST), dialect.timestamp(_LAST)
    clamped = f"(CASE WHEN {moved} < {first} THEN {first} WHEN {moved} > {last} THEN {last} ELSE {moved} END)"
    return LoweredTerm(dialect.try_cast(clamped, call.type), call.type)


def _moment(term: LoweredTerm, dialect: Dialect) -> LoweredTerm:
    """The term as a date or timestamp; NULL of no type is a timestamp."""
    return terms.of_type(term, term.type or Type.TIMESTAMP, dialect)


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
    return terms.of_type(argument, Type.STRING, dialect).sql


def _like(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    pattern = _string_literal(call.arguments[1])
    return LoweredTerm(dialect.like(_text(arguments[0], dialect), pattern, fold=call.function == "ilike"), Type.BOOLEAN)


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
        return LoweredTerm(terms.null(type_, dialect), type_)
    if given is Type.STRING and type_ is not Type.STRING:
        return _from_string(terms.value(term, dialect).sql, type_, dialect)
    if given is type_ or (given.numeric and type_ in {Type.FLOAT, Type.DECIMAL}):
        return LoweredTerm(term.sql, type_, raw=True) if term.raw else terms.of_type(term, type_, dialect)
    if given.numeric and type_ is Type.INTEGER:
        return LoweredTerm(dialect.nearest(terms.number(term, dialect)), type_, raw=True)
    if given.numeric and type_ is Type.BOOLEAN:
        return LoweredTerm(f"({terms.of_type(term, Type.FLOAT, dialect).sql} <> {dialect.double(0.0)})", type_)
    known = terms.value(term, dialect).sql
    if type_ is Type.STRING:
        return _to_string(known, given, dialect)
    if given is Type.BOOLEAN and type_.numeric:
        one, zero = (dialect.integer(1), dialect.integer(0)) if type_ is Type.INTEGER else map(dialect.double, (1.0, 0.0))
        return LoweredTerm(f"(CASE {known} WHEN TRUE THEN {one} WHEN FALSE THEN {zero} END)", type_)
    if given.temporal and type_.temporal:
        return LoweredTerm(dialect.try_cast(known, type_), type_)
    return LoweredTerm(terms.null(type_, dialect), type_)


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
    "starts_with": _starts_with,
    **dict.fromkeys(("lower", "upper", "trim", "length"), _plain_text),
    "concat": _concat,
    "substring": _substring,
    "replace": _replace,
}
"""Functions of strings."""

# ---- expression ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expressions:
    """Lowers expressions over rows whose columns have these names, in order."""

    names: Sequence[str]
    dialect: Dialect

    def text(self, expression: Node, type_: Type | None = None) -> str:
        """Return the expression's value in the physical form of its type, or of the one given."""
        known = self.term(expression)
        return terms.of_type(known, type_ or known.type or Type.BOOLEAN, self.dialect).sql

    def term(self, expression: Node, depth: int = 0) -> LoweredTerm:
        """Return the lowered expression."""
        if depth > MOST_DEPTH:
            raise too_deep()
        match expression:
            case Literal():
                return terms.literal(expression, self.dialect)
            case Ref():
                double = expression.type in {Type.FLOAT, Type.DECIMAL}
                return LoweredTerm(self.names[expression.index], expression.type, infinite=double)
            case Call():
                return self._call(expression, depth + 1)
            case _:
                message = f"not an expression over rows: {type(expression).__name__}"
                raise TypeError(message)

    def _call(self, call: Call, depth: int) -> LoweredTerm:
        lowered = LOWERED.get(call.function)
        if lowered is None:
            message = f"no such function: {call.function}"
            raise TypeError(message)
        return lowered(call, [self.term(argument, depth) for argument in call.arguments], self.dialect)


# ---- logic and choice ----------------------------------------------------------------------------------------------


def _connected(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    parts = [terms.of_type(argument, Type.BOOLEAN, dialect).sql for argument in arguments]
    return LoweredTerm("(" + f" {call.function.upper()} ".join(parts) + ")", Type.BOOLEAN)


def _not(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(f"(NOT {terms.of_type(arguments[0], Type.BOOLEAN, dialect).sql})", Type.BOOLEAN)


def _is_null(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    return LoweredTerm(f"({terms.value(arguments[0], dialect).sql} IS NULL)", Type.BOOLEAN)


def _compared(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    left, right = terms.align(arguments, dialect)
    return LoweredTerm(f"({left.sql} {call.function} {right.sql})", Type.BOOLEAN)


def _in(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    first, *others = terms.align(arguments, dialect)
    return LoweredTerm(f"({first.sql} IN ({', '.join(other.sql for other in others)}))", Type.BOOLEAN)


def _coalesce(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    values = terms.align(arguments, dialect, call.type)
    text = f"COALESCE({', '.join(value.sql for value in values)})"
    return LoweredTerm(text, call.type, infinite=any(value.infinite for value in values))


def _extreme(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    values = terms.align(arguments, dialect, call.type)
    text = dialect.extreme(call.function, [value.sql for value in values])
    return LoweredTerm(text, call.type, infinite=any(value.infinite for value in values))


def _nullif(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    first = terms.of_type(arguments[0], call.type, dialect)
    left, right = terms.align(arguments, dialect)
    text = f"(CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {first.sql} END)"
    return LoweredTerm(text, call.type, infinite=first.infinite)


def _case(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> LoweredTerm:
    conditions, results = arguments[:-1:2], [*arguments[1:-1:2], arguments[-1]]
    values = terms.align(results, dialect, call.type)
    arms = [
        f"WHEN {terms.of_type(condition, Type.BOOLEAN, dialect).sql} THEN {value.sql}"
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
    return f"({terms.number(arguments[0], dialect)} {call.function} {terms.number(arguments[1], dialect)})"


def _divided(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x, y = terms.number(arguments[0], dialect), terms.finite(arguments[1], dialect)  # a number over an infinity would be 0
    match call.function:
        case "/":
            return f"({x} / {y})"
        case "//":
            return dialect.truncated(f"{x} / {y}")
        case _:
            return dialect.remainder(x, y)


def _negated(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    return f"(- {terms.number(arguments[0], dialect)})"


def _plain(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    return dialect.function(call.function, terms.number(arguments[0], dialect))


def _to_whole(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x = terms.number(arguments[0], dialect)
    return x if arguments[0].type is Type.INTEGER else dialect.function(call.function, x)


def _sign(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    # of a value: the sign of an infinity that a column holds is known, of a raw one it is not
    return dialect.function(call.function, terms.number(terms.value(arguments[0], dialect), dialect))


def _from_zero(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x, least = terms.number(arguments[0], dialect), ">=" if call.function == "sqrt" else ">"
    return dialect.function(call.function, f"CASE WHEN {x} {least} {dialect.double(0.0)} THEN {x} END")


def _exponential(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    return dialect.function(call.function, terms.finite(arguments[0], dialect))


def _power(_: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    exponent = terms.finite(arguments[1], dialect)
    return dialect.power(terms.finite(arguments[0], dialect), exponent)


def _round(call: Call, arguments: list[LoweredTerm], dialect: Dialect) -> str:
    x = terms.number(arguments[0], dialect)
    digits = whole_literal(call.arguments[1]) if len(call.arguments) > 1 else 0
    if digits >= 0 and arguments[0].type is Type.INTEGER:
        return x
    if digits == 0:
        return dialect.nearest(x)
    scale = dialect.double(float(10 ** abs(digits)))
    first, last = ("*", "/") if digits > 0 else ("/", "*")
    return f"({dialect.nearest(f'{x} {first} {scale}')} {last} {scale})"


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
