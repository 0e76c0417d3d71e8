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
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.engines.lower import terms, texts, times
from curador.engines.lower.sql import MOST_DEPTH, too_deep
from curador.engines.lower.terms import Lowered, Term
from curador.query.tree import Call, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.engines.lower.dialect import Dialect
    from curador.query.tree import Node


@dataclass(frozen=True, slots=True)
class Expressions:
    """Lowers expressions over rows whose columns have these names, in order."""

    names: Sequence[str]
    dialect: Dialect

    def text(self, expression: Node, type_: Type | None = None) -> str:
        """Return the expression's value in the physical form of its type, or of the one given."""
        known = self.term(expression)
        return terms.of_type(known, type_ or known.type or Type.BOOLEAN, self.dialect).sql

    def term(self, expression: Node, depth: int = 0) -> Term:
        """Return the lowered expression."""
        if depth > MOST_DEPTH:
            raise too_deep()
        match expression:
            case Literal():
                return terms.literal(expression, self.dialect)
            case Ref():
                double = expression.type in {Type.FLOAT, Type.DECIMAL}
                return Term(self.names[expression.index], expression.type, infinite=double)
            case Call():
                return self._call(expression, depth + 1)
            case _:
                message = f"not an expression over rows: {type(expression).__name__}"
                raise TypeError(message)

    def _call(self, call: Call, depth: int) -> Term:
        lowered = LOWERED.get(call.function)
        if lowered is None:
            message = f"no such function: {call.function}"
            raise TypeError(message)
        return lowered(call, [self.term(one, depth) for one in call.arguments], self.dialect)


# ---- logic and choice ----------------------------------------------------------------------------------------------


def _connected(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    parts = [terms.of_type(one, Type.BOOLEAN, dialect).sql for one in arguments]
    return Term("(" + f" {call.function.upper()} ".join(parts) + ")", Type.BOOLEAN)


def _not(_: Call, arguments: list[Term], dialect: Dialect) -> Term:
    return Term(f"(NOT {terms.of_type(arguments[0], Type.BOOLEAN, dialect).sql})", Type.BOOLEAN)


def _is_null(_: Call, arguments: list[Term], dialect: Dialect) -> Term:
    return Term(f"({terms.value(arguments[0], dialect).sql} IS NULL)", Type.BOOLEAN)


def _compared(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    left, right = terms.aligned(arguments, dialect)
    return Term(f"({left.sql} {call.function} {right.sql})", Type.BOOLEAN)


def _in(_: Call, arguments: list[Term], dialect: Dialect) -> Term:
    first, *others = terms.aligned(arguments, dialect)
    return Term(f"({first.sql} IN ({', '.join(one.sql for one in others)}))", Type.BOOLEAN)


def _coalesce(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    values = terms.aligned(arguments, dialect, call.type)
    text = f"COALESCE({', '.join(one.sql for one in values)})"
    return Term(text, call.type, infinite=any(one.infinite for one in values))


def _extreme(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    values = terms.aligned(arguments, dialect, call.type)
    text = dialect.extreme(call.function, [one.sql for one in values])
    return Term(text, call.type, infinite=any(one.infinite for one in values))


def _nullif(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    first = terms.of_type(arguments[0], call.type, dialect)
    left, right = terms.aligned(arguments, dialect)
    text = f"(CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {first.sql} END)"
    return Term(text, call.type, infinite=first.infinite)


def _case(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    conditions, results = arguments[:-1:2], [*arguments[1:-1:2], arguments[-1]]
    values = terms.aligned(results, dialect, call.type)
    arms = [
        f"WHEN {terms.of_type(condition, Type.BOOLEAN, dialect).sql} THEN {one.sql}"
        for condition, one in zip(conditions, values[:-1], strict=True)
    ]
    text = f"(CASE {' '.join(arms)} ELSE {values[-1].sql} END)"
    return Term(text, call.type, infinite=any(one.infinite for one in values))


def _cast(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    return texts.cast(arguments[0], call.type, dialect)


# ---- numbers: raw doubles ------------------------------------------------------------------------------------------


def _raw(written: Callable[[Call, list[Term], Dialect], str]) -> Lowered:
    """Return the lowering of a function whose text is a raw double."""
    return lambda call, arguments, dialect: Term(written(call, arguments, dialect), call.type, raw=True)


def _operator(call: Call, arguments: list[Term], dialect: Dialect) -> str:
    return f"({terms.number(arguments[0], dialect)} {call.function} {terms.number(arguments[1], dialect)})"


def _divided(call: Call, arguments: list[Term], dialect: Dialect) -> str:
    x, y = terms.number(arguments[0], dialect), terms.finite(arguments[1], dialect)  # a number over an infinity would be 0
    match call.function:
        case "/":
            return f"({x} / {y})"
        case "//":
            return dialect.truncated(f"{x} / {y}")
        case _:
            return dialect.remainder(x, y)


def _negated(_: Call, arguments: list[Term], dialect: Dialect) -> str:
    return f"(- {terms.number(arguments[0], dialect)})"


def _plain(call: Call, arguments: list[Term], dialect: Dialect) -> str:
    return dialect.function(call.function, terms.number(arguments[0], dialect))


def _to_whole(call: Call, arguments: list[Term], dialect: Dialect) -> str:
    x = terms.number(arguments[0], dialect)
    return x if arguments[0].type is Type.INTEGER else dialect.function(call.function, x)


def _sign(call: Call, arguments: list[Term], dialect: Dialect) -> str:
    # of a value: the sign of an infinity that a column holds is known, of a raw one it is not
    return dialect.function(call.function, terms.number(terms.value(arguments[0], dialect), dialect))


def _from_zero(call: Call, arguments: list[Term], dialect: Dialect) -> str:
    x, least = terms.number(arguments[0], dialect), ">=" if call.function == "sqrt" else ">"
    return dialect.function(call.function, f"CASE WHEN {x} {least} {dialect.double(0.0)} THEN {x} END")


def _exponential(call: Call, arguments: list[Term], dialect: Dialect) -> str:
    return dialect.function(call.function, terms.finite(arguments[0], dialect))


def _power(_: Call, arguments: list[Term], dialect: Dialect) -> str:
    exponent = terms.finite(arguments[1], dialect)
    return dialect.power(terms.finite(arguments[0], dialect), exponent)


def _round(call: Call, arguments: list[Term], dialect: Dialect) -> str:
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


LOWERED: dict[str, Lowered] = {
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
    **texts.LOWERED,
    **times.LOWERED,
}
"""The SQL of every function of the catalogue, over rows and after the release."""
