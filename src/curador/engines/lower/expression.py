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
from curador.engines.lower.terms import Term
from curador.query.tree import Call, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.engines.lower.dialect import Dialect
    from curador.query.tree import Node

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


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
        arguments = [self.term(one, depth) for one in call.arguments]
        function = call.function
        if function in _COMPARISONS:
            left, right = terms.aligned(arguments, self.dialect)
            return Term(f"({left.sql} {function} {right.sql})", Type.BOOLEAN)
        if (found := self._logic(function, arguments)) is not None:
            return found
        if (found := self._choice(function, arguments, call.type)) is not None:
            return found
        if (found := self._number(function, arguments, call)) is not None:
            return Term(found, call.type, raw=True)
        return self._other(call, arguments)

    def _other(self, call: Call, arguments: list[Term]) -> Term:
        if call.function == "cast":
            return texts.cast(arguments[0], call.type, self.dialect)
        found = texts.string_function(call, arguments, self.dialect) or times.time_function(call, arguments, self.dialect)
        if found is None:
            message = f"no such function: {call.function}"
            raise TypeError(message)
        return found

    # ---- logic and choice ------------------------------------------------------------------------------------------

    def _logic(self, function: str, arguments: list[Term]) -> Term | None:
        match function:
            case "and" | "or":
                parts = [terms.of_type(one, Type.BOOLEAN, self.dialect).sql for one in arguments]
                return Term("(" + f" {function.upper()} ".join(parts) + ")", Type.BOOLEAN)
            case "not":
                return Term(f"(NOT {terms.of_type(arguments[0], Type.BOOLEAN, self.dialect).sql})", Type.BOOLEAN)
            case "is_null":
                return Term(f"({terms.value(arguments[0], self.dialect).sql} IS NULL)", Type.BOOLEAN)
            case "in":
                first, *others = terms.aligned(arguments, self.dialect)
                return Term(f"({first.sql} IN ({', '.join(one.sql for one in others)}))", Type.BOOLEAN)
            case _:
                return None

    def _choice(self, function: str, arguments: list[Term], type_: Type) -> Term | None:
        match function:
            case "case":
                return self._case(arguments, type_)
            case "coalesce" | "least" | "greatest":
                values = terms.aligned(arguments, self.dialect, type_)
                infinite = any(one.infinite for one in values)
                chosen = [one.sql for one in values]
                if function == "coalesce":
                    return Term(f"COALESCE({', '.join(chosen)})", type_, infinite=infinite)
                return Term(self.dialect.extreme(function, chosen), type_, infinite=infinite)
            case "nullif":
                first = terms.of_type(arguments[0], type_, self.dialect)
                left, right = terms.aligned(arguments, self.dialect)
                text = f"(CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {first.sql} END)"
                return Term(text, type_, infinite=first.infinite)
            case _:
                return None

    def _case(self, arguments: list[Term], type_: Type) -> Term:
        conditions, results = arguments[:-1:2], [*arguments[1:-1:2], arguments[-1]]
        values = terms.aligned(results, self.dialect, type_)
        arms = [
            f"WHEN {terms.of_type(condition, Type.BOOLEAN, self.dialect).sql} THEN {one.sql}"
            for condition, one in zip(conditions, values[:-1], strict=True)
        ]
        text = f"(CASE {' '.join(arms)} ELSE {values[-1].sql} END)"
        return Term(text, type_, infinite=any(one.infinite for one in values))

    # ---- numbers: raw doubles ----------------------------------------------------------------------------------------

    def _number(self, function: str, arguments: list[Term], call: Call) -> str | None:
        if function not in _ARITHMETIC:
            return None
        x = terms.number(arguments[0], self.dialect)
        if function in _BINARY:
            return self._binary(function, x, arguments[1])
        match function:
            case "neg":
                return f"(- {x})"
            case "abs":
                return self.dialect.function(function, x)
            case "floor" | "ceil":
                return x if arguments[0].type is Type.INTEGER else self.dialect.function(function, x)
            case "round":
                return self._round(arguments[0], x, call)
            case "sign":  # of a value: the sign of an infinity that a column holds is known, of a raw one it is not
                return self.dialect.function(function, terms.number(terms.value(arguments[0], self.dialect), self.dialect))
            case "sqrt":
                return self.dialect.function(function, f"CASE WHEN {x} >= {self.dialect.double(0.0)} THEN {x} END")
            case "ln" | "log10":
                return self.dialect.function(function, f"CASE WHEN {x} > {self.dialect.double(0.0)} THEN {x} END")
            case "exp":
                return self.dialect.function(function, terms.finite(arguments[0], self.dialect))
            case _:
                exponent = terms.finite(arguments[1], self.dialect)
                return self.dialect.power(terms.finite(arguments[0], self.dialect), exponent)

    def _binary(self, function: str, x: str, right: Term) -> str:
        if function in {"+", "-", "*"}:
            return f"({x} {function} {terms.number(right, self.dialect)})"
        y = terms.finite(right, self.dialect)  # a number over an infinity would be 0
        match function:
            case "/":
                return f"({x} / {y})"
            case "//":
                return self.dialect.truncated(f"{x} / {y}")
            case _:
                return self.dialect.remainder(x, y)

    def _round(self, argument: Term, x: str, call: Call) -> str:
        digits = whole_literal(call.arguments[1]) if len(call.arguments) > 1 else 0
        if digits >= 0 and argument.type is Type.INTEGER:
            return x
        if digits == 0:
            return self.dialect.nearest(x)
        scale = self.dialect.double(float(10 ** abs(digits)))
        first, last = ("*", "/") if digits > 0 else ("/", "*")
        return f"({self.dialect.nearest(f'{x} {first} {scale}')} {last} {scale})"


_BINARY = frozenset({"+", "-", "*", "/", "//", "%"})
_ARITHMETIC = _BINARY | {"neg", "abs", "sign", "round", "floor", "ceil", "sqrt", "ln", "log10", "exp", "power"}


def whole_literal(node: Node) -> int:
    """Return the whole number that a literal is."""
    found = node.value if isinstance(node, Literal) else None
    if isinstance(found, bool) or not isinstance(found, (int, Fraction)) or found != int(found):
        message = "a whole number must be written here"
        raise TypeError(message)
    return int(found)
