"""Counts of the unit under a condition: COUNT(DISTINCT CASE WHEN c THEN unit END), which FILTER (WHERE c) says as well."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from curador.query.tree import Call, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.query.tree import Node, Out
    from curador.query.typed_terms import TypedTerm

_ALWAYS, _NEVER = Literal(True, Type.BOOLEAN), Literal(False, Type.BOOLEAN)


def condition_of_unit(term: TypedTerm, columns: Sequence[Out]) -> TypedTerm | None:
    """Return where an expression is its row's unit, if it is NULL everywhere else; None if it can be anything else.

    Claim   Counting such an expression, or its different values, counts rows, or units, FILTER (WHERE that condition).
    Needs   A column marked as the unit holds the row's own unit, or that or NULL, in every row: `query/tree.py:Out`.
    """
    condition = _condition(term.node, columns)
    if condition is None or isinstance(condition, Literal):
        return None
    return replace(term, node=condition, type=Type.BOOLEAN, nullable=True, unit=False, column=None)


def _condition(node: Node, columns: Sequence[Out]) -> Node | None:
    match node:
        case Ref(index=index) if columns[index].unit:
            return _ALWAYS
        case Ref(index=index) if columns[index].unit_or_null:
            return Call("not", (Call("is_null", (node,), Type.BOOLEAN),), Type.BOOLEAN)
        case Literal(value=None):
            return _NEVER
        case Call(function="case", arguments=arguments):
            arms = [_condition(arm, columns) for arm in (*arguments[1:-1:2], arguments[-1])]
            if None in arms:
                return None
            if arms == [_ALWAYS, _NEVER]:
                return arguments[0]
            pairs = [one for pair in zip(arguments[:-1:2], arms, strict=False) for one in pair]
            return Call("case", tuple(cast("list[Node]", [*pairs, arms[-1]])), Type.BOOLEAN)
        case _:
            return None
