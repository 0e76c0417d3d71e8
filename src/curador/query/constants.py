"""Whole numbers that a question writes as an expression of written numbers, as programs that write SQL do.

`SUBSTRING(x, CASE WHEN (0 + 1) >= 1 THEN 0 + 1 ELSE 0 + 1 + LENGTH(x) END, 2)` has the start 1. Nothing is looked at but what
is written; what is needed for the number is computed, and the other arm of a CASE is not.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST = 1 << 53
_COMPARED: dict[type[exp.Expr], Callable[[int, int], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}


def as_written(node: exp.Expr) -> exp.Expr:
    """Return a whole number that is written as a choice between written numbers as that number; anything else as it is."""
    if not isinstance(node, exp.Case | exp.Coalesce):
        return node
    found = whole_constant(node)
    if found is None:
        return node
    number = exp.Literal.number(abs(found))
    return number if found >= 0 else exp.Neg(this=number)


def whole_constant(node: Any) -> int | None:
    """Return the whole number that an expression of written ones is; None where it is not one, or a very large one."""
    found = _constant(node)
    return found if found is not None and abs(found) <= _LARGEST else None


def _constant(node: Any) -> int | None:
    match node:
        case exp.Literal() if not node.is_string and node.name.isdecimal() and node.name.isascii():
            return int(node.name) if len(node.name) <= 16 else None
        case exp.Paren():
            return whole_constant(node.this)
        case exp.Neg():
            found = whole_constant(node.this)
            return None if found is None else -found
        case exp.Add() | exp.Sub():
            left, right = whole_constant(node.this), whole_constant(node.expression)
            if left is None or right is None:
                return None
            return left + right if isinstance(node, exp.Add) else left - right
        case exp.Coalesce():
            given = [one for one in (node.this, *node.expressions) if not isinstance(one, exp.Null)]
            return whole_constant(given[0]) if given else None  # a number that is written is not NULL
        case exp.Case() if node.this is None:
            return _chosen(node)
        case _:
            return None


def _chosen(node: exp.Case) -> int | None:
    for arm in node.args["ifs"]:
        true = _compared(arm.this)
        if true is None:
            return None
        if true:
            return whole_constant(arm.args["true"])
    return whole_constant(node.args.get("default"))


def _compared(node: Any) -> bool | None:
    while isinstance(node, exp.Paren):
        node = node.this
    compare = _COMPARED.get(type(node))
    if compare is None:
        return None
    left, right = whole_constant(node.this), whole_constant(node.expression)
    return None if left is None or right is None else compare(left, right)
