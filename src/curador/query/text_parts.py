"""Parts of texts: by their place, and whether a text begins with one, ends with it or has it anywhere.

Both are written in the question itself; a place may be an expression of written numbers, as programs write it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import typed_terms
from curador.query.constants import as_written, whole_constant
from curador.query.context import Reading, take_arguments
from curador.query.messages import invalid
from curador.query.typed_terms import TypedTerm, call_term, literal_term
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Place

MOST_LETTERS = 1_000_000
"""The largest start or length in SUBSTRING; LIKE has the limit of the text."""


def require_written(node: exp.Expr | None, reading: Reading, what: str, around: exp.Expr) -> TypedTerm:
    """Return a string that must be written in the question."""
    term = literal_term(None, None) if node is None else reading.of(node)
    if not isinstance(typed_terms.value_of(term), str):
        raise invalid(reading.place(around), f"{what} must be a string written here, not a column or an expression")
    return term


def _contains(node: exp.Contains, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    return _compare_part(this, expression, node, reading, name="contains()", shape="%{}%")


def _ends_with(node: exp.EndsWith, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    return _compare_end(this, expression, node, reading)


def _compare_end(this: exp.Expr, end: exp.Expr, node: exp.Expr, reading: Reading) -> TypedTerm:
    return _compare_part(this, end, node, reading, name="ends_with()", shape="%{}")


def _compare_part(this: exp.Expr, part: exp.Expr, node: exp.Expr, reading: Reading, *, name: str, shape: str) -> TypedTerm:
    """Return whether a text holds a part where the shape, which LIKE reads, has it."""
    term = typed_terms.require_text(reading.of(this), f"what {name} is of")
    looked = str(typed_terms.value_of(require_written(part, reading, f"what {name} looks for", node)))
    if set(looked) & {"%", "_"}:
        raise invalid(reading.place(node), f"what {name} looks for must be without % and _")
    return call_term("like", Type.BOOLEAN, (term, literal_term(shape.format(looked), Type.STRING)), place=reading.place(node))


def _starts_with(node: exp.StartsWith, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    return _compare_prefix(this, expression, node, reading)


def _compare_prefix(this: exp.Expr, prefix: exp.Expr, node: exp.Expr, reading: Reading) -> TypedTerm:
    term = reading.of(this)
    start = require_written(prefix, reading, "the start of STARTS_WITH", node)
    return call_term(
        "starts_with",
        Type.BOOLEAN,
        (typed_terms.require_text(term, "what starts_with() is of"), start),
        place=reading.place(node),
    )


def _substring(node: exp.Substring, reading: Reading) -> TypedTerm:
    this, start, length = take_arguments(node, reading.context, "this", "start", "length")
    term = typed_terms.require_text(reading.of(this), "what substring() is of")
    first = literal_term(1, Type.INTEGER) if start is None else reading.of(as_written(start))
    count = literal_term(MOST_LETTERS, Type.INTEGER) if length is None else reading.of(as_written(length))
    return _cut_text(term, first, count, reading.place(node))


def _left(node: exp.Left, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    term = typed_terms.require_text(reading.of(this), "what left() is of")
    return _cut_text(term, literal_term(1, Type.INTEGER), reading.of(as_written(expression)), reading.place(node))


def _cut_text(term: TypedTerm, start: TypedTerm, length: TypedTerm, place: Place | None) -> TypedTerm:
    for bound, least, what in ((start, 1, "the start"), (length, 0, "the length")):
        value = typed_terms.value_of(bound)
        if bound.type is not Type.INTEGER or not isinstance(value, int) or not least <= value <= MOST_LETTERS:
            raise invalid(place, f"{what} of a part of a string must be a whole number from {least} to {MOST_LETTERS:,}")
    return call_term("substring", Type.STRING, (term, start, length), place=place)


def _slice(node: exp.ArraySlice, reading: Reading) -> TypedTerm:
    """ARRAY_SLICE(x, first, last) of a text: from one letter to another, −1 for the last."""
    this, start, end = take_arguments(node, reading.context, "this", "start", "end", ignored=("is_length",))
    term, place = typed_terms.require_text(reading.of(this), "what array_slice() is of"), reading.place(node)
    if reading.context.dialect != "duckdb":  # others count from 0, or mean a length
        raise invalid(place, "array_slice() is not part of the language in this dialect", "SUBSTRING(x, 1, 3).")
    first, last = whole_constant(start), whole_constant(end)
    if first is None or last is None or last < -1:
        raise invalid(place, "the ends of array_slice() must be whole numbers written here, -1 for the last letter")
    count = MOST_LETTERS if last == -1 else max(last - max(first, 0) + 1, 0)
    return _cut_text(term, literal_term(first, Type.INTEGER), literal_term(count, Type.INTEGER), place)


TEXT_HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], TypedTerm]] = {
    exp.Contains: _contains,
    exp.StartsWith: _starts_with,
    exp.EndsWith: _ends_with,
    exp.Substring: _substring,
    exp.Left: _left,
    exp.ArraySlice: _slice,
}

TEXT_CALLS: dict[str, Callable[[exp.Expr, exp.Expr, exp.Expr, Reading], TypedTerm]] = {
    "prefix": _compare_prefix,
    "suffix": _compare_end,
}
"""Functions of two arguments that the parser knows by name only."""
