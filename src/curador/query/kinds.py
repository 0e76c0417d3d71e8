"""Which types go together. Strict: what an engine would have to convert row by row is refused here, where no row is seen."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.query import literals
from curador.query.messages import invalid, quoted
from curador.query.terms import Term, call, literal
from curador.query.tree import Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.query.tree import Place

_WIDER = {Type.INTEGER: 0, Type.DECIMAL: 1, Type.FLOAT: 2}


def boolean(term: Term, what: str) -> Term:
    """Return the term if it is true or false."""
    if term.type is Type.BOOLEAN or term.is_null:
        return retyped(term, Type.BOOLEAN)
    raise invalid(term.place, f"{what} must be a condition; got {_described(term)}", "compare it: x = 1, x IS NOT NULL.")


def numeric(term: Term, what: str) -> Term:
    """Return the term if it is a number."""
    if term.type is not None and term.type.numeric:
        return term
    if term.is_null:
        return retyped(term, Type.FLOAT)
    hint = {
        Type.BOOLEAN: "count the rows where it holds: COUNT_IF(x), or CASE WHEN x THEN 1 ELSE 0 END.",
        Type.STRING: "CAST(x AS DOUBLE) reads a number from a text.",
    }.get(term.type or Type.DATE)
    raise invalid(term.place, f"{what} must be a number; got {_described(term)}", hint)


def text(term: Term, what: str) -> Term:
    """Return the term if it is a string."""
    if term.type is Type.STRING or term.is_null:
        return retyped(term, Type.STRING)
    raise invalid(term.place, f"{what} must be a string; got {_described(term)}", "CAST(x AS VARCHAR) writes it as one.")


def temporal(term: Term, what: str) -> Term:
    """Return the term if it is a date or a point in time; a string literal is read as one."""
    if term.type is not None and term.type.temporal:
        return term
    value = literals.value_of(term)
    if isinstance(value, str):
        return read_as(term, Type.DATE if len(value.strip()) <= len("2024-12-31") else Type.TIMESTAMP)
    raise invalid(term.place, f"{what} must be a date or a timestamp; got {_described(term)}", "CAST(x AS DATE) reads one.")


def retyped(term: Term, type_: Type) -> Term:
    """Return a NULL with a type; anything else as it is."""
    if term.type is None and isinstance(term.node, Literal):
        return replace(term, node=Literal(None, type_, term.place), type=type_)
    return term


def read_as(term: Term, type_: Type) -> Term:
    """Return a string literal as the date or timestamp it spells."""
    value = str(literals.value_of(term))
    if type_ is Type.DATE:
        return literal(literals.date(value, term.place), Type.DATE, term.place)
    return literal(literals.timestamp(value, term.place), Type.TIMESTAMP, term.place)


def midnight(term: Term) -> Term:
    """Return a date as the point in time at which it begins."""
    value = literals.value_of(term)
    if isinstance(value, dt.date):
        return literal(dt.datetime(value.year, value.month, value.day), Type.TIMESTAMP, term.place)  # noqa: DTZ001 -- all are UTC
    return call("cast", Type.TIMESTAMP, (term,))


def aligned(left: Term, right: Term, what: str) -> tuple[Term, Term]:
    """Return two terms that can be compared, with literals read in the other's type."""
    if left.is_null or right.is_null:
        place = left.place if left.is_null else right.place
        raise invalid(place, f"{what} with NULL is never true", "x IS NULL, x IS NOT NULL, x IS DISTINCT FROM y.")
    if left.type is right.type:
        return left, right
    types = {left.type, right.type}
    if types <= set(_WIDER):
        return left, right
    if types == {Type.DATE, Type.TIMESTAMP}:
        return tuple(midnight(one) if one.type is Type.DATE else one for one in (left, right))  # type: ignore[return-value]
    for one, other in ((left, right), (right, left)):
        if isinstance(literals.value_of(one), str) and other.type is not None and other.type.temporal:
            spelled = read_as(one, other.type)
            return (spelled, right) if one is left else (left, spelled)
    raise invalid(
        right.place or left.place,
        f"{what} must be between two of one kind; got {_described(left)} and {_described(right)}",
        _convert(left, right),
    )


def unified(terms: Sequence[Term], what: str, place: Place | None) -> tuple[Type, list[Term]]:
    """Return the one type that several terms have together, and the terms with their literals in it."""
    types = {one.type for one in terms if one.type is not None}
    if not types:
        raise invalid(place, f"{what} must have a value besides NULL")
    if len(types) == 1:
        type_ = types.pop()
    elif types <= set(_WIDER):
        type_ = max(types, key=_WIDER.__getitem__)
    elif types <= {Type.DATE, Type.TIMESTAMP, Type.STRING} and types - {Type.STRING}:
        type_ = Type.TIMESTAMP if Type.TIMESTAMP in types else Type.DATE
    else:
        raise invalid(place, f"{what} must be of one kind; got {' and '.join(sorted(types))}", "CAST(x AS …) makes them one.")
    return type_, [_in_type(one, type_, what) for one in terms]


def _in_type(term: Term, type_: Type, what: str) -> Term:
    if term.type is type_:
        return term
    if term.is_null:
        return replace(term, node=Literal(None, type_, term.place), type=type_)
    number = literals.fraction_of(term)
    if number is not None and type_.numeric:
        return literal(Fraction(number), type_, term.place)
    if type_.temporal and isinstance(literals.value_of(term), str):
        return read_as(term, type_)
    if type_ is Type.TIMESTAMP and term.type is Type.DATE:
        return midnight(term)
    if type_.numeric:
        return term
    raise invalid(term.place, f"{what} must be of one kind; got {_described(term)} beside a {type_}")


def _described(term: Term) -> str:
    value = literals.value_of(term)
    if isinstance(value, str):
        return f"the string {quoted(value)}"
    if term.is_null:
        return "NULL"
    article = "an" if term.type is Type.INTEGER else "a"
    return f"{article} {term.type}"


def _convert(left: Term, right: Term) -> str:
    kinds = {left.type, right.type}
    if Type.BOOLEAN in kinds:
        return "a condition needs no comparison: WHERE x, WHERE NOT x, x IS TRUE."
    for one, other in ((left, right), (right, left)):
        if isinstance(literals.value_of(one), str) and other.type is not None and other.type.numeric:
            return "write the number without quotes."
        if literals.fraction_of(one) is not None and other.type is Type.STRING:
            return "write the value in single quotes."
    return "CAST(x AS …) makes them one."
