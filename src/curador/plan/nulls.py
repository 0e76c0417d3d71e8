"""Whether an expression can be NULL, known without data: of its columns, and of the conditions that rows below it meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.plan.ownership import conjuncts
from curador.query.tree import Call, Distinct, Filter, Literal, Ref

if TYPE_CHECKING:
    from curador.query.tree import Node, Relation


def can_be_null(expression: Node, relation: Relation) -> bool:
    """Return whether an expression can be NULL; when in doubt, it can."""
    match expression:
        case Literal():
            return expression.value is None
        case Ref():
            return column_can_be_null(relation, expression.index)
        case Call(function="is_null"):
            return False
        case Call(function="coalesce"):
            return all(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(
            function="extract" | "date_trunc" | "neg" | "abs" | "floor" | "ceil" | "round" | "length" | "and" | "or" | "not"
        ):
            return any(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=" | "in" | "like" | "ilike" | "starts_with"):
            return any(can_be_null(argument, relation) for argument in expression.arguments)
        case Call(function="case"):
            places = [*range(1, len(expression.arguments) - 1, 2), len(expression.arguments) - 1]
            return any(can_be_null(expression.arguments[place], relation) for place in places)
        case _:
            return True


def column_can_be_null(relation: Relation, index: int) -> bool:
    """Return whether a column can be NULL where the filters below hold."""
    if not relation.columns[index].nullable:
        return False
    if isinstance(relation, Filter):
        for conjunct in conjuncts(relation.predicate):
            if not isinstance(conjunct, Call):
                continue
            inner = conjunct.arguments[0]
            denied = conjunct.function == "not" and isinstance(inner, Call) and inner.function == "is_null"
            if denied and isinstance(inner, Call) and _reads(inner.arguments[0], index):
                return False
            if conjunct.function in {"=", "<", "<=", ">", ">=", "in"} and any(
                _reads(argument, index) for argument in conjunct.arguments
            ):
                return False
        return column_can_be_null(relation.input, index)
    if isinstance(relation, Distinct):
        return column_can_be_null(relation.input, index)
    return True


def _reads(expression: Node, index: int) -> bool:
    return isinstance(expression, Ref) and expression.index == index
