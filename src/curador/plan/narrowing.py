"""What a predicate says of a column: the range of values for which it can be true."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.plan import arithmetic as intervals
from curador.plan.arithmetic import EVERYTHING
from curador.plan.model import Range
from curador.plan.ownership import conjuncts
from curador.plan.times import last_moment, moment_of
from curador.query.tree import Call, Literal, Ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.query.tree import Node
    from curador.study.values import Value


def narrowed(known: Range, index: int, predicate: Node) -> Range:
    """Return the range of a numeric column where the predicate is true."""
    for conjunct in conjuncts(predicate):
        if not isinstance(conjunct, Call):
            continue
        for function, literals in _about(conjunct, index):
            numbers = [written_range(literal) for literal in literals]
            if any(number.lower is None for number in numbers):
                continue
            found = _allowed(function, numbers)
            if found is not None:
                reasons = [reason for reason in (known.why, "WHERE") if reason and reason not in known.why.split("; ")[1:]]
                known = replace(intervals.meet(known, found), why="; ".join(reasons))
    return known


def _about(conjunct: Call, index: int) -> list[tuple[str, Sequence[Node]]]:
    """What a conjunct says of the column by literals, as (comparison, literals)."""
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
    arguments = conjunct.arguments
    if conjunct.function == "in" and _is(arguments[0], index) and all(isinstance(one, Literal) for one in arguments[1:]):
        return [("in", arguments[1:])]
    if conjunct.function in mirrored and len(arguments) == 2:
        if _is(arguments[0], index) and isinstance(arguments[1], Literal):
            return [(conjunct.function, arguments[1:])]
        if _is(arguments[1], index) and isinstance(arguments[0], Literal):
            return [(mirrored[conjunct.function], arguments[:1])]
    return []


def _is(expression: Node, index: int) -> bool:
    return isinstance(expression, Ref) and expression.index == index


def _allowed(function: str, numbers: list[Range]) -> Range | None:
    if not numbers:
        return None
    first = numbers[0].lower
    match function:
        case "<" | "<=":
            return Range(None, first)
        case ">" | ">=":
            return Range(first, None)
        case "=":
            return Range(first, first)
        case _:
            return intervals.hull(numbers)


def times_narrowed(
    known: tuple[dt.datetime, dt.datetime] | None, index: int, predicate: Node
) -> tuple[dt.datetime, dt.datetime] | None:
    """Return the earliest and latest time of a column where the predicate is true."""
    earliest, latest = known or (None, None)
    for conjunct in conjuncts(predicate):
        if not isinstance(conjunct, Call):
            continue
        for function, literals in _about(conjunct, index):
            values = [one.value for one in literals if isinstance(one, Literal) and isinstance(one.value, dt.date)]
            if not values or len(values) != len(literals):
                continue
            low, high = min(map(moment_of, values)), max(map(last_moment, values))
            if function in {">", ">=", "=", "in"}:
                earliest = low if earliest is None else max(earliest, low)
            if function in {"<", "<=", "=", "in"}:
                latest = high if latest is None else min(latest, high)
    if earliest is None or latest is None:
        return None
    return earliest, max(earliest, latest)


def written_range(expression: Node) -> Range:
    """Return the range of a literal; everything for anything else."""
    if isinstance(expression, Literal) and _isnumber_of(expression.value):
        number = number_of(expression.value)
        return Range(number, number, number is not None and number.denominator == 1, "")
    return EVERYTHING


def _isnumber_of(value: Value | None) -> bool:
    return isinstance(value, (int, Fraction)) and not isinstance(value, bool)


def number_of(value: Value | None) -> Fraction | None:
    """Return a value as a rational; None where it is no number."""
    return Fraction(value) if isinstance(value, (int, Fraction)) and not isinstance(value, bool) else None
