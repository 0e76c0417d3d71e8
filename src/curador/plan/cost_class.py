"""How long a question may take, by what it is made of: its cost class, a whole number of ticks, known before any row is read.

Where answers leave on a clock, the moment must not follow from the run. So it follows from the plan: tables that are read,
joins, windows, sorts, quantiles, private keys, calls, each with its points; points are put together, POINTS make a tick, and
the number of ticks is rounded up to a power of two. What is not done by then has failed, as at the deadline.

The points are no prediction for one machine: the owner's tick is. They say how many times the time of a plain question
another one gets. Rows that a public table multiplies count as often as it multiplies them.

Claim   A function of the question, the study and the public tables: `cost_class` is handed no engine and no data version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.plan.ownership import Owners, public_matches
from curador.query.tree import Call, Distinct, Filter, Join, Project, Scan, UnionAll, UnitGroup, Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from curador.plan.model import BlockPlan
    from curador.query.tree import Node, Relation
    from curador.study.model import EngineSettings, Schema

POINTS = 16
"""Points that one tick is enough for: a table that is read, with a few sums by group."""

SCAN, JOIN, GROUP, WINDOW, CAP = 8, 8, 8, 8, 8
QUANTILE, KEYS, DISTINCT, TALLY = 4, 4, 4, 1
CALLS = 8
"""Calls in expressions that are worth a point."""

MOST_POINTS = 1 << 40


def cost_class(blocks: Iterable[BlockPlan], schema: Schema, settings: EngineSettings) -> int:
    """Return how many ticks a question has from its turn to its answer: 1, 2, 4, 8 …, at most `most_ticks`."""
    if not settings.answer_every:
        return 1
    points = sum(_block(block, schema) for block in blocks)
    ticks, most = 1, most_ticks(settings)
    while ticks * POINTS < points and ticks < most:
        ticks *= 2
    return min(ticks, most)


def most_ticks(settings: EngineSettings) -> int:
    """Return the ticks of what may run up to the deadline: a tick beyond it. 1 where there are none."""
    tick = settings.answer_every
    return int(settings.deadline // tick) + 1 if tick else 1


def _block(block: BlockPlan, schema: Schema) -> int:
    points, times = _relation(block.relation, Owners(schema))
    points += CAP * times * (block.cap.by == "window")
    points += KEYS * times * bool(block.private_keys)
    kinds = {"cells": QUANTILE, "distinct": DISTINCT, "units": DISTINCT}
    points += times * sum(kinds.get(tally.kind, TALLY) for tally in block.tallies)
    nodes = [*(key.expression for key in block.keys), *(tally.argument for tally in block.tallies)]
    return min(points + _calls([*nodes, *(tally.filter for tally in block.tallies)], times), MOST_POINTS)


def _relation(relation: Relation, owners: Owners) -> tuple[int, int]:
    """Return the points of a relation, and how many times its private rows were multiplied by public ones."""
    match relation:
        case Scan():
            return SCAN, 1
        case UnionAll():
            parts = [_relation(one, owners) for one in relation.inputs]
            return min(sum(points for points, _ in parts), MOST_POINTS), max(times for _, times in parts)
        case Join():
            (left, many), (right, others) = _relation(relation.left, owners), _relation(relation.right, owners)
            times = min(max(many, others) * _multiplied(relation, owners), MOST_POINTS)
            return min(left + right + JOIN * times + _calls([relation.on], times), MOST_POINTS), times
        case _:
            points, times = _relation(relation.input, owners)
            return min(points + _step(relation, times), MOST_POINTS), times


def _step(relation: Filter | Project | UnitGroup | Window | Distinct, times: int) -> int:
    match relation:
        case Filter():
            return _calls([relation.predicate], times)
        case Project():
            return _calls(relation.expressions, times)
        case Window():
            arguments = [call.argument for call in relation.calls]
            return WINDOW * times * len(relation.calls) + _calls(arguments, times)
        case UnitGroup():
            arguments = [argument for one in relation.aggregates for argument in (one.argument, one.filter)]
            return GROUP * times + _calls([*relation.keys, *arguments], times)
        case Distinct():
            return GROUP * times


def _multiplied(join: Join, owners: Owners) -> int:
    """Return how many public rows one private row of a join may meet; 1 between private rows, of which nothing is known."""
    private = owners.private(join.left), owners.private(join.right)
    if all(private) or not any(private) or join.kind in {"semi", "anti"}:
        return 1
    return max(public_matches(join, join.right if private[0] else join.left, owners.schema) or 1, 1)


def _calls(nodes: Iterable[Node | None], times: int) -> int:
    return times * -(-sum(_count(node) for node in nodes) // CALLS)


def _count(node: Node | None) -> int:
    if not isinstance(node, Call):
        return 0
    return 1 + sum(_count(argument) for argument in node.arguments)
