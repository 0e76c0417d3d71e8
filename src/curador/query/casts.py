"""Casts. All of them give NULL where a value does not fit; a literal that does not fit is refused instead."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import kinds, literals
from curador.query.messages import invalid, quoted
from curador.query.reading import Reading, taken
from curador.query.terms import Term, call, literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Place

_MOST_SCALE = 15

_TYPES: dict[exp.DType, Type] = {
    **dict.fromkeys(
        (
            exp.DType.TINYINT,
            exp.DType.SMALLINT,
            exp.DType.MEDIUMINT,
            exp.DType.INT,
            exp.DType.BIGINT,
            exp.DType.INT128,
            exp.DType.UTINYINT,
            exp.DType.USMALLINT,
            exp.DType.UINT,
            exp.DType.UBIGINT,
            exp.DType.UINT128,
        ),
        Type.INTEGER,
    ),
    **dict.fromkeys((exp.DType.DECIMAL, exp.DType.BIGDECIMAL), Type.DECIMAL),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE), Type.FLOAT),
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR), Type.STRING),
    exp.DType.BOOLEAN: Type.BOOLEAN,
    exp.DType.DATE: Type.DATE,
    **dict.fromkeys(
        (
            exp.DType.TIMESTAMP,
            exp.DType.TIMESTAMPTZ,
            exp.DType.TIMESTAMPNTZ,
            exp.DType.TIMESTAMPLTZ,
            exp.DType.TIMESTAMP_S,
            exp.DType.TIMESTAMP_MS,
            exp.DType.TIMESTAMP_NS,
            exp.DType.DATETIME,
        ),
        Type.TIMESTAMP,
    ),
}


def _cast(node: exp.Cast, reading: Reading) -> Term:
    this, to = taken(node, reading.context, "this", "to", ignored=("safe", "requires_string"))
    kind, parameters = taken(to, reading.context, "this", "expressions", ignored=("kind",))
    type_ = _TYPES.get(kind)
    if type_ is None or (parameters and type_ is not Type.DECIMAL):
        raise invalid(
            reading.place(node),
            "a cast must be to BOOLEAN, BIGINT, DECIMAL, DOUBLE, VARCHAR, DATE or TIMESTAMP, without length",
        )
    term = cast(reading.of(this), type_, reading.place(node))
    if type_ is Type.DECIMAL and len(parameters or ()) == 2 and literals.value_of(term) is None:
        scale = reading.of(parameters[1].this)
        digits = literals.value_of(scale)
        if isinstance(digits, int) and digits <= _MOST_SCALE:
            return call("round", Type.DECIMAL, (term, scale), place=term.place)
    return term


def cast(term: Term, type_: Type, place: Place | None) -> Term:
    """Return the term in another type, NULL where it does not fit; a literal that does not fit is refused."""
    if term.is_null:
        return literal(None, type_, place)
    value = literals.value_of(term)
    if isinstance(value, str):
        return _spelled(value, type_, place)
    if value is not None and type_.numeric and term.type is not None and term.type.numeric:
        number = literals.fraction_of(term) or Fraction(0)
        if type_ is Type.INTEGER:
            half = Fraction(1, 2)
            number = Fraction(int(number + half) if number >= 0 else -int(-number + half))
        return literals.checked(number, type_, place)
    if term.type is type_ and not term.unit:
        return term  # what is declared of a column stays true
    times_and_others = {Type.BOOLEAN, Type.INTEGER, Type.DECIMAL, Type.FLOAT}
    if term.type is not None and term.type.temporal and type_ in times_and_others:
        raise invalid(place, f"a {term.type} cannot be cast to a {type_}", "EXTRACT(year FROM x), date_diff('day', x, y).")
    if type_.temporal and term.type in times_and_others:
        raise invalid(place, f"a {term.type} cannot be cast to a {type_}", "a date comes from a string or a timestamp.")
    if type_ is Type.TIMESTAMP and term.type is Type.DATE:
        return kinds.midnight(term)
    return call("cast", type_, (term,), nullable=True, place=place)


def _spelled(value: str, type_: Type, place: Place | None) -> Term:
    """Return the literal that a string literal spells in another type."""
    if type_ is Type.STRING:
        return literal(value, Type.STRING, place)
    if type_ is Type.DATE:
        return literal(literals.date(value, place), Type.DATE, place)
    if type_ is Type.TIMESTAMP:
        return literal(literals.timestamp(value, place), Type.TIMESTAMP, place)
    if type_ is Type.BOOLEAN:
        word = value.strip().lower()
        if word not in {"true", "false"}:
            raise invalid(place, f"{quoted(value)} must be true or false")
        return literal(word == "true", Type.BOOLEAN, place)
    text = value.strip()
    negative = text.startswith("-")
    spelled = literals.number(text.removeprefix("-"), place)
    number = literals.fraction_of(spelled) or Fraction(0)
    if type_ is Type.INTEGER and number.denominator != 1:
        raise invalid(place, f"{quoted(value)} must be a whole number")
    return literals.checked(-number if negative else number, type_, place)


HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], Term]] = {exp.Cast: _cast, exp.TryCast: _cast}
