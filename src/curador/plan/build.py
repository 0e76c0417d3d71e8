"""From a question to a plan: which integers are tallied, which are measured, and what is computed from them.

What each aggregate needs stands in `plan/aggregates.py`; here every tally, measurement and estimate of a block is kept once.
Everything is a function of the question and the study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from curador.errors import InvalidQuery, NotPrivate
from curador.plan.above import plan_above
from curador.plan.aggregates import PLANNED, Linear, PlannedEstimate
from curador.plan.domains import Ranges, domains_of, image_range
from curador.plan.intervals import arithmetic_parts, can_be_null
from curador.plan.model import (
    BlockPlan,
    Cap,
    Contribution,
    ItemPlan,
    KeyPlan,
    KeyTuples,
    Measurement,
    OrderPlan,
    Plan,
    Range,
    Tally,
    aggregates_of,
    both_ends,
    count_combinations,
    grid_between,
)
from curador.plan.ownership import AS_DECLARED, Owners, RequestedCaps, bound_contribution, caps_of, is_unit
from curador.plan.words import expression_text, key_names, range_text
from curador.plan.work import cutting_height, fit_height, most_stored
from curador.query.functions import AGGREGATES
from curador.query.tree import Aggregate, Call, Estimated, Filter, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from curador.plan.model import Grid
    from curador.privacy.adjacency import Adjacency
    from curador.query.tree import Block, Expression, Node, Question, Relation
    from curador.study.model import Caps, Schema

_T = TypeVar("_T")
_Ends: TypeAlias = tuple[Fraction, Fraction]

MOST_GROUPS = 1_000_000
_WIDEST = 1 << 126


def build_plan(
    question: Question,
    schema: Schema,
    *,
    asked: RequestedCaps | Sequence[RequestedCaps] | None = None,
    bounds: Mapping[str, tuple[Fraction, Fraction]] | None = None,
) -> Plan:
    """Return the plan of a question.

    asked    caps other than those of its tables, the same for all blocks or one for each
    bounds   narrow the argument of a column's aggregate, by the column's name
    """
    options = question.options
    given = [asked or AS_DECLARED] * len(question.blocks) if not isinstance(asked, Sequence) else list(asked)
    if options.rows or options.groups:
        given = [replace(one, rows=one.rows or options.rows, groups=one.groups or options.groups) for one in given]
    narrow = {name: (lower, upper) for name, lower, upper in options.bounds} | dict(bounds or {})
    blocks: list[BlockPlan] = []
    orders: list[OrderPlan] = []
    for block, wanted in zip(question.blocks, given, strict=True):
        order: list[Node] = [one.expression for one in question.order if not isinstance(one.expression, Ref)]
        planned, expressions = _build_block(block, schema, wanted, narrow, order, blocks=len(question.blocks))
        blocks.append(planned)
        if len(question.blocks) == 1:
            pending = iter(expressions)
            for sort in question.order:
                column = sort.expression.index if isinstance(sort.expression, Ref) else None
                expression = None if column is not None else next(pending)
                orders.append(OrderPlan(expression, column, sort.descending, sort.nulls_first))
    if len(question.blocks) > 1:
        for sort in question.order:
            if not isinstance(sort.expression, Ref):
                raise InvalidQuery("ORDER BY after UNION ALL must name columns of the result.")
            orders.append(OrderPlan(None, sort.expression.index, sort.descending, sort.nulls_first))
    unknown = set(narrow) - {item.name for block in blocks for item in block.items}
    if unknown:
        raise InvalidQuery(
            subject="bounds", rule="must be of columns of the answer", got=", ".join(sorted(map(str, unknown)))
        )
    adjacency = schema.study.adjacency
    above = question.above
    planned = None if above is None else plan_above(above, question.blocks, blocks, schema.study.max_units)
    return Plan(
        tuple(blocks),
        tuple(orders),
        question.limit,
        question.offset,
        adjacency,
        question.tables,
        planned,
        most_delta=options.delta,
    )


def _build_block(
    block: Block, schema: Schema, asked: RequestedCaps, narrow: Mapping[str, _Ends], order: list[Node], *, blocks: int
) -> tuple[BlockPlan, list[Node]]:
    """Return a block with the largest height with which one unit's work fits; refuse it where none does.

    The limit is for the whole question: each of its blocks has an equal part of it. What is measured depends on the height
    through the caps alone: where it changes no other cap, the block stays as it was built.
    """
    most = most_stored(block.relation, schema)
    builder = _Builder(block, schema, asked, narrow, most)
    planned, expressions = builder.build(order, height=most)
    height, work = fit_height(planned, schema, builder.bounded, block.place, most=most, blocks=blocks)
    cap, contribution = builder.bounded(Owners(schema, height))
    if (replace(cap, height=None), contribution) != (replace(planned.cap, height=None), planned.contribution):
        planned, expressions = _Builder(block, schema, asked, narrow, most).build(order, height=height)
    return replace(planned, cap=cap, work=work), expressions


@dataclass(slots=True)
class _Builder:
    """Collects tallies, measurements and estimates of one block, each kept once."""

    block: Block
    schema: Schema
    asked: RequestedCaps
    narrow: Mapping[str, tuple[Fraction, Fraction]]
    most: int
    """Rows of one unit that the block's tables hold."""
    tallies: list[Tally] = field(default_factory=list[Tally])
    measurements: list[Measurement] = field(default_factory=list[Measurement])
    estimates: list[PlannedEstimate] = field(default_factory=list[PlannedEstimate])
    notes: dict[str, None] = field(default_factory=dict[str, None])
    counted: set[Tally] = field(default_factory=set[Tally])
    bounds: tuple[Fraction, Fraction] | None = None
    known_groups: int | None = field(init=False)
    counts_units: bool = field(init=False)
    only_key: Expression | None = field(init=False)
    bare: bool = field(init=False)
    ranges: Ranges = field(init=False)
    cap: Cap = field(init=False)
    contribution: Contribution = field(init=False)
    caps: Caps = field(init=False)

    @property
    def relation(self) -> Relation:
        return self.block.relation

    @property
    def adjacency(self) -> Adjacency:
        return self.schema.study.adjacency

    @property
    def unit_name(self) -> str:
        return self.schema.study.unit_name

    # ---- the block -------------------------------------------------------------------------------------------------

    def build(self, order: list[Node], *, height: int) -> tuple[BlockPlan, list[Node]]:
        self.caps = caps_of(self.relation, self.schema, self.asked)
        self.ranges = Ranges(self.schema, self.caps.rows)
        aggregates = [aggregate for item in self.block.items for aggregate in aggregates_of(item.expression)]
        aggregates += [
            aggregate for node in (self.block.having, *order) if node is not None for aggregate in aggregates_of(node)
        ]
        keys, joint = self._keys(only_keys=not aggregates)
        private = any(key.values is None for key in keys)
        self.known_groups = None if private else count_combinations(keys, joint)
        self.bare = all(key.expression == own for key, own in zip(keys, self.block.keys, strict=True))
        self.only_key = keys[0].expression if len(keys) == 1 else None
        self.counts_units = any(AGGREGATES[aggregate.function].presence for aggregate in aggregates)
        self.cap, self.contribution = self.bounded(Owners(self.schema, height))
        self.counted = {self.pattern(aggregate) for aggregate in aggregates if PLANNED[aggregate.function].counted}
        items = tuple(self._item(place) for place in range(len(self.block.items)))
        having = None if self.block.having is None else self._planned(self.block.having)
        ordering = [self._planned(node) for node in order]
        units = self.tally(Tally("units")) if private else None
        planned = BlockPlan(
            relation=self.relation,
            cap=self.cap,
            contribution=self.contribution,
            keys=keys,
            tallies=tuple(self.tallies),
            measurements=tuple(self.measurements),
            estimates=tuple(self.estimates),
            items=items,
            having=having,
            units=units,
            notes=tuple(self.notes),
            joint=joint,
        )
        return planned, ordering

    def _keys(self, *, only_keys: bool) -> tuple[tuple[KeyPlan, ...], tuple[KeyTuples, ...]]:
        names, keys = key_names(self.block), self.block.keys
        selectable = only_keys and not self.schema.study.budget.pure
        domains, joint = ((None,) * len(keys), ()) if selectable else domains_of(keys, self.relation, self.ranges)
        found = tuple(
            KeyPlan(name, key, key.type or Type.STRING, None, "selected privately")
            if domain is None
            else KeyPlan(name, domain.expression, key.type or Type.STRING, domain.values, domain.why)
            for name, key, domain in zip(names, keys, domains, strict=True)
        )
        combinations = count_combinations(found, joint)
        if combinations > MOST_GROUPS:
            known = [key for key in found if key.values is not None]
            counted = " · ".join(f"{key.name} {len(key.values or ()):,}" for key in known)
            rule = f"all combinations of known keys must be at most {MOST_GROUPS:,}; got {combinations:,} ({counted})."
            raise NotPrivate(rule, hint="group by fewer columns, or restrict them with WHERE … IN.", place=self.block.place)
        return found, joint

    def bounded(self, owners: Owners) -> tuple[Cap, Contribution]:
        """Return the caps where base tables are cut at the owners' height."""
        return bound_contribution(
            self.relation,
            owners,
            self.caps,
            self.asked,
            keyed=bool(self.block.keys),
            private_keys=self.known_groups is None,
            known_groups=self.known_groups,
            counts_units=self.counts_units,
            height=cutting_height(owners.height or 0, self.most, self.schema.study),
            key=self.only_key,
            fixed=frozenset(key.index for key in self.block.keys if isinstance(key, Ref)),
            bare=self.bare,
        )

    # ---- expressions -----------------------------------------------------------------------------------------------

    def _item(self, place: int) -> ItemPlan:
        item = self.block.items[place]
        self.bounds = self.narrow.get(item.name)
        planned = self._planned(item.expression)
        self.bounds = None
        released = bool(aggregates_of(item.expression))
        kind = item.expression.type or Type.STRING
        if released:
            estimate = self.estimates[planned.index] if isinstance(planned, Estimated) else None
            count = isinstance(estimate, Linear) and estimate.whole
            kind = Type.INTEGER if count else kind if kind in {Type.STRING, Type.BOOLEAN} else Type.FLOAT
        return ItemPlan(item.name, planned, kind, released)

    def _planned(self, node: Node) -> Node:
        match node:
            case Aggregate():
                return Estimated(_place(self.estimates, self._estimate(node)), node.type)
            case Call():
                return replace(node, arguments=tuple(self._planned(argument) for argument in node.arguments))
            case _:
                return node

    # ---- aggregates ------------------------------------------------------------------------------------------------

    def _estimate(self, one: Aggregate) -> PlannedEstimate:
        made = PLANNED[one.function].estimate
        if made is None:
            raise NotPrivate(f"{one.function} has no private form over all rows.", place=one.place)
        return made(self, one)

    def pattern(self, one: Aggregate) -> Tally:
        argument = one.argument
        absent = argument is None or not self._nullable(argument, one.filter)
        return Tally("rows", None if absent else argument, one.filter)

    def _nullable(self, argument: Expression, where: Expression | None) -> bool:
        if is_unit(argument, self.relation):
            return False
        relation = self.relation if where is None else Filter(self.relation, where)
        if not can_be_null(argument, relation):
            return False
        parts = [argument] if self.schema.older else arithmetic_parts(argument)
        if any(can_be_null(part, relation) for part in parts):
            return True
        return not (argument.type is not None and argument.type.numeric and self._range(argument, where).bounded)

    def outer(self, argument: Expression) -> bool:
        """Whether the column comes from the side of a join that need not match."""
        return isinstance(argument, Ref) and self.relation.columns[argument.index].nullable

    # ---- arguments -------------------------------------------------------------------------------------------------

    def bounded_argument(self, one: Aggregate) -> tuple[Expression, Range]:
        argument = one.argument
        if argument is None or argument.type is None or not argument.type.numeric:
            hint = "EXTRACT(year FROM x) and DATE_DIFF('day', DATE '2024-01-01', x) are numbers"
            raise InvalidQuery(f"{one.function.upper()} needs numbers.", hint=f"{hint}.", place=one.place)
        known = self._range(argument, one.filter)
        if self.bounds is not None:
            lower, upper = self.bounds
            inside = (known.lower is None or known.lower <= lower) and (known.upper is None or upper <= known.upper)
            if not (inside and lower < upper):
                wanted = f"[{float(lower):g}, {float(upper):g}]"
                text = f"bounds must be narrower than those known ({range_text(known)}); got {wanted}."
                raise NotPrivate(text, place=one.place)
            known = Range(lower, upper, known.integer and lower.denominator == upper.denominator == 1, "asked for")
        name = expression_text(argument, self.relation)
        if not known.bounded:
            text = f"{one.function.upper()}({name}) needs both bounds of {name}; known is {range_text(known)}."
            hint = f"the owner can declare `bounds`; or restrict it: WHERE {name} BETWEEN 0 AND 100, with your ends"
            if not isinstance(argument, Ref):
                hint = "the owner can declare `bounds` of what it is made of; or name it x in a subquery in FROM"
                hint += " and restrict that: WHERE x BETWEEN 0 AND 100"
            dated = [part for part in argument.arguments if isinstance(part, Ref)] if isinstance(argument, Call) else []
            if dated and dated[0].type.temporal:
                named = expression_text(dated[0], self.relation)
                hint = "the owner can declare `bounds`; or restrict its dates: "
                hint += f"WHERE {named} BETWEEN DATE '2024-01-01' AND DATE '2024-12-31', with your ends"
            raise NotPrivate(str(text), hint=f"{hint}.", place=one.place)
        self.notes[f"{name} in {range_text(known)}{f' ({known.why})' if known.why else ''}"] = None
        return argument, known

    def _range(self, argument: Expression, where: Expression | None) -> Range:
        relation = self.relation if where is None else Filter(self.relation, where)
        known = self.ranges.of(argument, relation)
        imageless = known.bounded or self.schema.older
        return known if imageless else image_range(argument, relation, self.ranges) or known

    def grid(self, known: Range) -> Grid:
        lower, upper = both_ends(known)
        grid = grid_between(lower, upper, integer=known.integer)
        most = max(abs(grid.start), abs(grid.start + grid.steps), grid.steps)
        if most * self.contribution.rows * self.schema.study.max_units >= _WIDEST:
            raise NotPrivate(
                "sums must stay below 2^126 for every number of units the owner allows.",
                hint="narrower bounds, or a smaller max_units in the study.",
            )
        return grid

    def name_of(self, expression: Expression) -> str:
        return expression_text(expression, self.relation)

    def words(self, name: str, argument: Expression | None, pattern: Tally) -> str:
        of = "" if argument is None else f"of {expression_text(argument, self.relation)}"
        where = "" if pattern.filter is None else f"where {expression_text(pattern.filter, self.relation)}"
        return " ".join(part for part in (name, of, where) if part)

    # ---- kept once -------------------------------------------------------------------------------------------------

    def tally(self, tally: Tally) -> int:
        return _place(self.tallies, tally)

    def measured(self, measurement: Measurement) -> int:
        return _place(self.measurements, measurement)


def _place(kept: list[_T], one: _T) -> int:
    if one not in kept:
        kept.append(one)
    return kept.index(one)
