"""A lowered expression, and the three ways in which a number is needed: as it is, finite, or as a value.

Arithmetic is done in doubles without a check at each step. Its text is *raw*: NaN and infinities in it stand for NULL. Sums,
products and quotients carry them on, so a long chain needs no check but at its end; what could lose one (a comparison, a
divisor, e^x) asks for the term as a value or finite, and gets a guard. An infinity in a column is no such mark: it is larger
than every number, and is clamped to the bound when it is measured.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from curador.engines.lower.sql import require_short
from curador.query.tree import Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.engines.lower.dialect import Dialect
    from curador.query.tree import Call

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


def literal(node: Literal, dialect: Dialect) -> LoweredTerm:
    """Return a literal. Fractions become the nearest double, whole numbers beyond 64 bits too."""
    value = node.value
    match value:
        case None:
            return LoweredTerm("NULL" if node.type is None else null(node.type, dialect), node.type)
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


def null(type_: Type, dialect: Dialect) -> str:
    """Return NULL of a type."""
    return f"CAST(NULL AS {dialect.type(type_)})"


def number(term: LoweredTerm, dialect: Dialect) -> str:
    """Return a double to compute with, raw."""
    if term.type is None:
        return null(Type.FLOAT, dialect)
    if term.type is Type.INTEGER and not term.raw:
        return f"CAST({term.sql} AS {dialect.type(Type.FLOAT)})"
    return term.sql


def finite(term: LoweredTerm, dialect: Dialect) -> str:
    """Return a double that is never NaN nor infinite: NULL instead."""
    text = number(term, dialect)
    if term.raw or term.infinite:
        return f"(CASE WHEN {dialect.finite(text)} THEN {text} END)"
    return text


def value(term: LoweredTerm, dialect: Dialect) -> LoweredTerm:
    """Return the term in its type's physical form, never raw. A whole number that does not fit 64 bits is NULL."""
    if not term.raw:
        return term
    if term.type is Type.INTEGER:
        return LoweredTerm(dialect.whole(term.sql), Type.INTEGER)
    guarded = f"(CASE WHEN {dialect.finite(term.sql)} THEN {term.sql} + {dialect.double(0.0)} END)"
    return LoweredTerm(guarded, term.type)


def of_type(term: LoweredTerm, type_: Type, dialect: Dialect) -> LoweredTerm:
    """Return the value in the physical form of another type of its kind: whole numbers as doubles, dates as moments."""
    if term.type is None:
        return LoweredTerm(null(type_, dialect), type_)
    known = value(term, dialect)
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


def common(types: Sequence[Type | None]) -> Type | None:
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
    shared = type_ or common([term.type for term in terms]) or Type.BOOLEAN
    return [of_type(term, shared, dialect) for term in terms]
