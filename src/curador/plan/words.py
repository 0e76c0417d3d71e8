"""Expressions in words that the analyst would recognise: for messages and `explain`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from curador.query.functions import FUNCTIONS
from curador.query.tree import Aggregate, Call, Estimated, Key, Literal, Ref

if TYPE_CHECKING:
    from curador.plan.model import Range
    from curador.query.tree import Block, Node, Relation


def written(node: Node, relation: Relation) -> str:
    """Return an expression over a relation's rows as text."""
    match node:
        case Literal():
            return _literal(node)
        case Ref():
            return relation.columns[node.index].name
        case Key():
            return f"key {node.index + 1}"
        case Estimated():
            return f"estimate {node.index + 1}"
        case Aggregate():
            inner = "*" if node.argument is None else written(node.argument, relation)
            return f"{node.function}({inner})"
        case Call():
            held = [written(one, relation) for one in node.arguments]
            chain, name = f" {node.function.upper()} ".join(held), node.function
            listed = {"all": ", ".join(held), "rest": ", ".join(held[1:]), "chain": chain}
            return FUNCTIONS[name].words.format(*held, name=name, type=node.type, **listed)


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, Fraction):
        return f"{float(value):g}"
    return f"'{value}'" if isinstance(value, str) else str(value)


def key_names(block: Block) -> list[str]:
    """Return what the keys of a block are called: their column of the answer, or their place."""
    names = [f"key {place + 1}" for place in range(len(block.keys))]
    for item in block.items:
        if isinstance(item.expression, Key):
            names[item.expression.index] = item.name
    return names


def both_ends(known: Range) -> tuple[Fraction, Fraction]:
    """Return the ends of a bounded range."""
    return known.lower or Fraction(0), known.upper or Fraction(0)


def shown(known: Range) -> str:
    """Return a range as a person reads it."""
    lower = "-∞" if known.lower is None else f"{float(known.lower):g}"
    upper = "∞" if known.upper is None else f"{float(known.upper):g}"
    return f"[{lower}, {upper}]"
