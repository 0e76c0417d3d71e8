"""Walks over planned expressions: which estimates and measurements something is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.plan.model import Linear, Mean, Point, Variance
from curador.query.tree import Aggregate, Call, Estimated

if TYPE_CHECKING:
    from curador.plan.model import BlockPlan, Estimate
    from curador.query.tree import Node


def estimates_of(expression: Node) -> set[int]:
    """Return the places of the estimates in an expression."""
    match expression:
        case Estimated():
            return {expression.index}
        case Call():
            return {index for argument in expression.arguments for index in estimates_of(argument)}
        case _:
            return set()


def measured_by(estimate: Estimate) -> tuple[int, ...]:
    """Return the places of the measurements an estimate is computed from."""
    match estimate:
        case Linear():
            return tuple(index for index, _ in estimate.terms)
        case Mean():
            return estimate.total, estimate.count
        case Variance():
            return estimate.total, estimate.squares, estimate.count
        case Point():
            return (estimate.measurement,)


def measurements_of(block: BlockPlan, expression: Node) -> set[int]:
    """Return the places of the measurements in an expression."""
    return {index for place in estimates_of(expression) for index in measured_by(block.estimates[place])}


def aggregates_of(node: Node) -> list[Aggregate]:
    """Return the aggregates of an expression, in order."""
    match node:
        case Aggregate():
            return [node]
        case Call():
            return [found for one in node.arguments for found in aggregates_of(one)]
        case _:
            return []
