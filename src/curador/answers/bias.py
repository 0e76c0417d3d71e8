"""What caps and bounds took away, as questions of their own: planned, proved and paid for like any other.

rows beyond m a unit      1 − Σ min(c, m) / Σ min(c, 10 m) over units, c the unit's rows after joins and filters. A unit with
                          more than ten times the cap counts as one with ten times, so the share is at least that: what is
                          told is a lower bound, and its interval ends at 100 %.
units in over g groups    the share of units whose rows lie in more groups than the cap on groups lets through
units with over g values  the same of COUNT(DISTINCT x), which counts at most so many different values of a unit
x outside its bounds      the share of kept rows whose x was clamped

Each is about units or kept rows, so each has a bounded sensitivity; the number of rows itself has none.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.answers.lost import OUTSIDE, ROWS_BEYOND, is_lower_bound
from curador.errors import InvalidParameter
from curador.plan.counting import group_by_unit, with_caps
from curador.plan.model import aggregates_of
from curador.plan.words import expression_text
from curador.query.functions import AGGREGATES
from curador.query.tree import Aggregate, Block, Call, Filter, Item, Literal, Question, Ref
from curador.study.model import Caps
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.answers.column import AnswerColumn
    from curador.plan.model import BlockPlan, Plan
    from curador.query.tree import Expression, Node
    from curador.study.model import Schema


FURTHEST = 10
"""How many times the cap a unit's rows are counted up to."""


def bias_questions(question: Question, plan: Plan, schema: Schema, *, values: bool = True) -> list[Question]:
    """Return the questions whose answers estimate what was lost; refused where nothing can be.

    values   False: without what COUNT(DISTINCT x) lost, as it was before: for the keys of answers that were paid for then
    """
    found: list[Question] = []
    for block, planned in zip(question.blocks, plan.blocks, strict=True):
        unit = schema.study.unit_name
        about_units = [*_rows_lost(block, planned, unit)]
        about_groups = [*_groups_lost(block, planned, unit), *(_values_lost(block, planned, unit) if values else ())]
        about_rows = _share_clamped(block, planned)
        for part in (*about_units, *about_groups, *([about_rows] if about_rows is not None else [])):
            one = Question(blocks=(part,), tables=question.tables)
            if one not in found:
                found.append(one)
    if not found:
        raise InvalidParameter("bias must be asked of a question that caps or bounds can change; this one loses nothing.")
    return found


def as_shares(columns: Sequence[AnswerColumn]) -> tuple[AnswerColumn, ...]:
    """Return estimated shares with everything outside 0 … 1 moved to the nearer end: that is what a share can be.

    Claim   An interval holds the share that its column names with the confidence asked for: where only a lower bound of the
            share was measured, it ends at 1.
    """

    def inside(values: list[Any]) -> list[Any]:
        return [None if value is None else min(max(value, 0.0), 1.0) for value in values]

    def ends(values: list[Any] | None) -> list[Any] | None:
        return None if values is None else inside(values)

    def highest(one: AnswerColumn) -> list[Any] | None:
        return [1.0] * len(one.values) if is_lower_bound(one.name) and one.high is not None else ends(one.high)

    return tuple(
        replace(column, values=inside(column.values), low=ends(column.low), high=highest(column)) for column in columns
    )


def with_wider_caps(schema: Schema, plan: Plan) -> Schema:
    """Return the schema with caps under which a unit's rows are counted up to ten times the question's own cap.

    A cap is not a promise to anybody: what a plan proves follows from the caps that it executes.
    """
    most = max(FURTHEST * block.cap.rows for block in plan.blocks)
    return with_caps(schema, {table.table.name: Caps(rows=most) for table in schema.tables})


def _rows_lost(block: Block, planned: BlockPlan, unit: str) -> list[Block]:
    if planned.cap.by == "none":
        return []
    cap = planned.cap.rows
    counted = group_by_unit(block.relation)
    rows = Ref(len(counted.keys), Type.INTEGER)
    kept = _sum(Call("least", (rows, _whole(cap)), Type.INTEGER))
    share = Call("-", (_whole(1), Call("/", (kept, _sum(rows)), Type.FLOAT)), Type.FLOAT)
    return [Block(counted, (), (Item(f"{ROWS_BEYOND}{cap:,} a {unit}", share),))]


def _groups_lost(block: Block, planned: BlockPlan, unit: str) -> list[Block]:
    groups = planned.cap.groups
    if groups is None:
        return []
    each = group_by_unit(block.relation, block.keys)
    counted = group_by_unit(each)
    many = Call(">", (Ref(len(counted.keys), Type.INTEGER), _whole(groups)), Type.BOOLEAN)
    return [Block(counted, (), (Item(f"{unit}s in more than {groups:,} groups", _share_of(many, None)),))]


def _values_lost(block: Block, planned: BlockPlan, unit: str) -> list[Block]:
    """Of every COUNT(DISTINCT x) whose values are cut: the share of units that have more of them, among those with one."""
    found: list[Block] = []
    for tally in planned.tallies:
        if tally.argument is None or not 0 < tally.most < planned.contribution.rows:
            continue
        there: Expression = Call("not", (Call("is_null", (tally.argument,), Type.BOOLEAN),), Type.BOOLEAN)
        where = there if tally.filter is None else Call("and", (tally.filter, there), Type.BOOLEAN)
        counted = group_by_unit(group_by_unit(Filter(block.relation, where), (tally.argument,)))
        many = Call(">", (Ref(len(counted.keys), Type.INTEGER), _whole(tally.most)), Type.BOOLEAN)
        values = f"different value{'' if tally.most == 1 else 's'} of {expression_text(tally.argument, block.relation)}"
        found.append(Block(counted, (), (Item(f"{unit}s with more than {tally.most:,} {values}", _share_of(many, None)),)))
    return found


def _share_clamped(block: Block, planned: BlockPlan) -> Block | None:
    """The share of kept rows on which an aggregate's argument was clamped, for every argument."""
    nodes = [*(item.expression for item in block.items), *([block.having] if block.having is not None else [])]
    items: dict[str, Item] = {}
    for aggregate in (found for node in nodes for found in aggregates_of(node)):
        ends = _bounds(planned, aggregate)
        if not AGGREGATES[aggregate.function].bounded or aggregate.argument is None or ends is None:
            continue
        lower, upper = (Literal(end, Type.DECIMAL) for end in ends)
        outside = Call(
            "or", (_comparison("<", aggregate.argument, lower), _comparison(">", aggregate.argument, upper)), Type.BOOLEAN
        )
        there = Call("not", (Call("is_null", (aggregate.argument,), Type.BOOLEAN),), Type.BOOLEAN)
        where = there if aggregate.filter is None else Call("and", (aggregate.filter, there), Type.BOOLEAN)
        name = f"{expression_text(aggregate.argument, block.relation)}{OUTSIDE}{float(ends[0]):g} … {float(ends[1]):g}"
        items.setdefault(name, Item(name, _share_of(outside, where)))
    return Block(block.relation, (), tuple(items.values())) if items else None


def _bounds(planned: BlockPlan, one: Aggregate) -> tuple[Fraction, Fraction] | None:
    for tally in planned.tallies:
        if tally.argument == one.argument and tally.filter == one.filter and tally.grid is not None:
            return tally.grid.value(0), tally.grid.value(tally.grid.steps)
    return None


def _sum(argument: Expression) -> Aggregate:
    return Aggregate("sum", argument, Type.INTEGER)


def _share_of(condition: Expression, where: Expression | None) -> Node:
    """The mean of 1 where the condition holds and 0 elsewhere."""
    indicator = Call("case", (condition, _whole(1), _whole(0)), Type.INTEGER)
    return Aggregate("avg", indicator, Type.FLOAT, filter=where)


def _comparison(sign: str, left: Expression, right: Expression) -> Call:
    return Call(sign, (left, right), Type.BOOLEAN)


def _whole(value: int) -> Literal:
    return Literal(value, Type.INTEGER)
