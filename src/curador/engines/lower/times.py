"""Dates and timestamps, within years 1 to 9999."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from curador.engines.lower import terms
from curador.engines.lower.terms import Lowered, Term
from curador.query.functions import PARTS, UNITS
from curador.query.tree import Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.engines.lower.dialect import Dialect
    from curador.query.tree import Call, Node

_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 -- UTC without zone


def _truncated(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    moment = terms.of_type(arguments[1], call.type, dialect)
    return Term(dialect.date_trunc(_word(call.arguments[0], UNITS), moment.sql, call.type), call.type)


def _part(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    return Term(dialect.part(_word(call.arguments[0], PARTS), _moment(arguments[1], dialect).sql), Type.INTEGER)


def _between(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    unit = _word(call.arguments[0], UNITS)
    start, end = terms.aligned([_moment(one, dialect) for one in arguments[1:]], dialect)
    return Term(dialect.date_diff(unit, start.sql, end.sql), Type.INTEGER)


def _added(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    amount = call.arguments[1]
    if not isinstance(amount, Literal) or not hasattr(amount.value, "numerator"):
        message = "a whole number must be written here"
        raise TypeError(message)
    unit = _word(call.arguments[2], UNITS)
    moved = dialect.moved(terms.of_type(arguments[0], call.type, dialect).sql, int(amount.value), unit)  # type: ignore[arg-type]
    first, last = dialect.timestamp(_FIRST), dialect.timestamp(_LAST)
    clamped = f"(CASE WHEN {moved} < {first} THEN {first} WHEN {moved} > {last} THEN {last} ELSE {moved} END)"
    return Term(dialect.try_cast(clamped, call.type), call.type)


def _moment(term: Term, dialect: Dialect) -> Term:
    """The term as a date or timestamp; NULL of no type is a timestamp."""
    return terms.of_type(term, term.type or Type.TIMESTAMP, dialect)


def _word(node: Node, known: tuple[str, ...]) -> str:
    found = node.value if isinstance(node, Literal) else None
    if not isinstance(found, str) or found not in known:
        message = f"one of {', '.join(known)} must be written here"
        raise TypeError(message)
    return found


LOWERED: dict[str, Lowered] = {"date_trunc": _truncated, "extract": _part, "date_diff": _between, "date_add": _added}
"""Functions of dates and timestamps."""
