"""What BigQuery's clause means: contribution_bounds_per_group clamps what a unit has in a group, once aggregated there.

SUM(x, b)      Σ over units of their sum in the group, clamped to b
COUNT(x, b)    Σ over units of their number of rows in the group, clamped to b
AVG(x[, b])    the mean over units of their mean in the group, clamped to b

So a SELECT under the clause is one over groups of (unit, keys), made here as an analyst would write it. Without an AVG and
without such bounds that is the same as a SELECT over rows, and it is left as it is.

Source  BigQuery, "Differentially private aggregate functions": AVG, COUNT, SUM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.query.functions import AGGREGATES
from curador.query.messages import invalid, not_private
from curador.query.tree import Aggregate, Block, Call, Literal, Out, Question, Ref, UnitGroup
from curador.query.typed_terms import replace_nodes
from curador.study.model import UnitRow
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.query.text import NarrowedBounds, PrivacyClause
    from curador.query.tree import Expression, Node, Order, Place
    from curador.study.model import Schema

PER_GROUP = "contribution_bounds_per_group"
PER_ROW = "contribution_bounds_per_row"


def aggregate_per_unit(question: Question, marks: PrivacyClause, schema: Schema) -> Question:
    """Return the question as the clause means it."""
    used: set[Place] = set()
    made = [_Rewriting(block, marks.bounds, schema, used) for block in question.blocks]
    order = question.order
    needed = [one.is_needed(order) for one in made]
    unused = set(marks.bounds) - used
    if unused:
        place = min(unused, key=lambda one: (one.line, one.column))
        raise invalid(place, f"{PER_GROUP} must stand in a SUM, AVG or COUNT", f"a quantile has {PER_ROW} => (0, 100).")
    if not any(needed):
        return question
    blocks = tuple(one.block_of_units() if needs else one.block for one, needs in zip(made, needed, strict=True))
    if len(made) == 1:
        order = tuple(replace(sort, expression=made[0].moved(sort.expression)) for sort in order)
    return replace(question, blocks=blocks, order=order)


@dataclass(slots=True)
class _Rewriting:
    """One block, and what its groups of (unit, keys) have so far."""

    block: Block
    bounds: Mapping[Place, NarrowedBounds]
    schema: Schema
    used: set[Place]
    inside: list[Aggregate] | None = None

    def is_needed(self, order: Sequence[Order]) -> bool:
        """Whether an AVG or bounds stand in it, or in what it is sorted by."""
        found = [one for item in self.block.items for one in _aggregates_of(item.expression)]
        found += [] if self.block.having is None else _aggregates_of(self.block.having)
        found += [one for sort in order for one in _aggregates_of(sort.expression)]
        self.used |= {one.place for one in found if one.place in self.bounds and AGGREGATES[one.function].over_units}
        return any(AGGREGATES[one.function].mean_of_units or one.place in self.bounds for one in found)

    @property
    def unit(self) -> Ref | None:
        """The unit's column; None where every row is a unit of its own."""
        columns = self.block.relation.columns
        place = next((index for index, out in enumerate(columns) if out.unit), None)
        if place is not None:
            return Ref(place, columns[place].type)
        if all(isinstance(one.unit, UnitRow) for one in self.schema.study.tables if not one.public):
            return None
        raise not_private(
            self.block.place,
            f"AVG and {PER_GROUP} are about each unit's rows; the unit has no column here",
            "join the table that has it.",
        )

    def block_of_units(self) -> Block:
        """Return the block over groups of (unit, keys)."""
        block, unit = self.block, self.unit
        if unit is not None:
            self.inside = []
        items = tuple(replace(item, expression=self.moved(item.expression)) for item in block.items)
        having = None if block.having is None else self.moved(block.having)
        if unit is None or self.inside is None:
            return replace(block, items=items, having=having)
        columns = block.relation.columns
        outs = [columns[unit.index]]
        outs += [
            columns[key.index] if isinstance(key, Ref) else Out(f"key_{number}", key.type or Type.STRING, True)
            for number, key in enumerate(block.keys, 1)
        ]
        outs += [
            Out(f"unit_{aggregate.function}_{number}", aggregate.type, not AGGREGATES[aggregate.function].counts)
            for number, aggregate in enumerate(self.inside, 1)
        ]
        group = UnitGroup(block.relation, (unit, *block.keys), tuple(self.inside), tuple(outs), block.place)
        keys = tuple(Ref(number, out.type) for number, out in enumerate(outs[1 : 1 + len(block.keys)], 1))
        return Block(group, keys, items, having, block.place)

    def moved(self, node: Node) -> Node:
        """Return what is released with its aggregates over groups of (unit, keys)."""
        return replace_nodes(node, lambda part: self._outer(part) if isinstance(part, Aggregate) else None)

    def _outer(self, one: Aggregate) -> Node:
        place = one.place
        bounds = self.bounds.get(place) if place is not None else None
        if self.inside is None:
            return self._per_row(one, bounds)
        entry = AGGREGATES[one.function]
        if entry.over_units:
            given = one.argument.type if one.argument is not None and entry.keeps else None
            type_ = Type.INTEGER if entry.counts else given or Type.FLOAT
            held = self._keep(Aggregate(one.function, one.argument, type_, one.filter))
            outer = Aggregate(entry.over_units, _clamp(held, bounds, nullable=not entry.counts), Type.FLOAT, place=place)
            return Call("cast", (outer,), Type.INTEGER, place) if entry.counts else outer
        if not entry.presence or one.argument is not None:
            raise invalid(
                place,
                f"beside an AVG or {PER_GROUP} only SUM, COUNT, AVG and COUNT(DISTINCT unit) may stand",
                "ask for the others in a question of their own.",
            )
        if one.filter is None:
            return one
        held = self._keep(Aggregate("count", None, Type.INTEGER, one.filter))
        return replace(one, filter=Call(">", (held, Literal(0, Type.INTEGER)), Type.BOOLEAN))

    def _per_row(self, one: Aggregate, bounds: NarrowedBounds | None) -> Node:
        """Every row is a unit: its sum and its mean are its value, and it is one row or none."""
        if bounds is None:
            return one
        if AGGREGATES[one.function].counts or one.argument is None:
            raise invalid(one.place, f"{PER_GROUP} of a COUNT is about units with many rows; here each has one")
        return replace(one, argument=_clamp(one.argument, bounds, nullable=True))

    def _keep(self, one: Aggregate) -> Ref:
        inside = self.inside if self.inside is not None else []
        if one not in inside:
            inside.append(one)
        return Ref(1 + len(self.block.keys) + inside.index(one), one.type)


def _clamp(value: Expression, bounds: NarrowedBounds | None, *, nullable: bool) -> Expression:
    """Return LEAST(GREATEST(value, low), high), which skip NULLs; NULL of NULL."""
    if bounds is None:
        return value
    whole = value.type is Type.INTEGER and all(end.denominator == 1 for end in bounds)
    type_ = Type.INTEGER if whole else Type.FLOAT
    low, high = (Literal(int(end) if whole else Fraction(end), type_) for end in bounds)
    inner: Expression = Call("least", (Call("greatest", (value, low), type_), high), type_)
    if nullable:
        inner = Call("case", (Call("is_null", (value,), Type.BOOLEAN), Literal(None, type_), inner), type_)
    return inner


def _aggregates_of(node: Node) -> list[Aggregate]:
    if isinstance(node, Aggregate):
        return [node]
    return [one for argument in node.arguments for one in _aggregates_of(argument)] if isinstance(node, Call) else []
