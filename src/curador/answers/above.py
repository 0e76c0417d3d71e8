"""What is computed from released rows, step by step: values by the calculator, and of each column what it is made of.

A step's rows are columns of values, computed by the SQL of the catalogue in an engine that holds no data, and beside each
column its bar (`bars.py`). Which rows a step took, in which order and from where, the calculator says by the rows' places.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.bars import Computed, Folded, Known, MeanSum, Ranked, RowRanges, ShareOfExtreme, Stacked, Unproved
from curador.answers.column import arrow_type
from curador.answers.computed import ReleasedFrame, Vector, compute, evaluate, vector_of
from curador.answers.forms import MOST_TERMS, DrawnBar, Form, NoiseWorld, Share, is_mean, take_values
from curador.answers.release import key_order
from curador.plan.above import depends_on_noise, equated_columns, is_chosen, is_known_by
from curador.query.lifting import noisy_columns
from curador.query.tree import (
    Call,
    Cut,
    Distinct,
    Estimated,
    Filter,
    Join,
    Key,
    Literal,
    Project,
    Ref,
    ReleasedGroup,
    ReleasedLeaf,
    ReleasedWindow,
    UnionAll,
)
from curador.query.typed_terms import columns_in, replace_nodes
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.answers.bars import Bar
    from curador.answers.enclosures import Sight
    from curador.plan.above import AbovePlan
    from curador.query.tree import AnyRelation, Node, Order, ReleasedCall
    from curador.randomness.entropy import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """Rows of one step: their columns with types, what each is made of, and which follow from noise."""

    count: int
    kinds: tuple[Type, ...]
    columns: tuple[Vector, ...]
    bars: tuple[Bar, ...]
    noisy: tuple[bool, ...]

    def take(self, places: IntArray) -> ReleasedRows:
        """Return the rows at these places; −1: NULL in all columns."""
        columns = tuple(take_values(one, places) for one in self.columns)
        return ReleasedRows(len(places), self.kinds, columns, tuple(bar.take(places) for bar in self.bars), self.noisy)

    def mark(self) -> ReleasedRows:
        """Return the same, put beside others by noise."""
        return ReleasedRows(self.count, self.kinds, self.columns, tuple(bar.mark() for bar in self.bars), self.noisy)

    @cached_property
    def frame(self) -> ReleasedFrame:
        """What expressions are computed from: noisy numbers as estimates, everything else as keys."""
        keys = tuple(column.listed() for column, own in zip(self.columns, self._estimated, strict=True) if not own)
        kinds = tuple(kind for kind, own in zip(self.kinds, self._estimated, strict=True) if not own)
        estimates = tuple(column for column, own in zip(self.columns, self._estimated, strict=True) if own)
        return ReleasedFrame(self.count, keys, kinds, estimates)

    @cached_property
    def _estimated(self) -> tuple[bool, ...]:
        return tuple(noisy and kind.numeric for noisy, kind in zip(self.noisy, self.kinds, strict=True))

    def over(self, node: Node) -> Node:
        """Return an expression over the frame."""
        own = self._estimated

        def leaf(one: Node) -> Node | None:
            if not isinstance(one, Ref):
                return None
            place = sum(flag == own[one.index] for flag in own[: one.index])
            kind = self.kinds[one.index]
            return Estimated(place, kind) if own[one.index] else Key(place, kind)

        return replace_nodes(node, leaf)

    def values(self, nodes: Sequence[tuple[Node, Type]]) -> list[Vector]:
        """Return expressions in every row, computed at once."""
        own = [(self.over(node), kind) for node, kind in nodes]
        compute(own, self.frame)
        return [evaluate(node, self.frame, kind).of(kind) for node, kind in own]

    def value(self, node: Node) -> Vector:
        """Return one expression in every row."""
        return self.values([(node, node.type or Type.STRING)])[0]


def compute_above(plan: AbovePlan, sights: Sequence[Sight]) -> ReleasedRows:
    """Return the rows of the whole tree over what the blocks released."""
    world = NoiseWorld(sights)
    places = {block: place for place, block in enumerate(plan.blocks)}
    known: dict[int, ReleasedRows] = {}

    def rows_of(relation: AnyRelation) -> ReleasedRows:
        if id(relation) not in known:
            known[id(relation)] = _step(relation, rows_of, lambda leaf: _leaf(world, places[leaf.block]))
        return known[id(relation)]

    return rows_of(plan.tree)


def _step(relation: AnyRelation, rows_of: Any, leaf: Any) -> ReleasedRows:
    match relation:
        case ReleasedLeaf():
            return leaf(relation)
        case Project():
            return _project(relation, rows_of(relation.input))
        case Filter():
            below = rows_of(relation.input)
            kept = below.values([(relation.predicate, Type.BOOLEAN)])[0]
            return below.take(np.flatnonzero(kept.values & ~kept.null))
        case Cut():
            return _cut(relation, rows_of(relation.input))
        case Join():
            return _join(relation, rows_of(relation.left), rows_of(relation.right))
        case UnionAll():
            return _unite(relation, [rows_of(one) for one in relation.inputs])
        case ReleasedGroup():
            return _group(relation, rows_of(relation.input))
        case Distinct():
            below = rows_of(relation.input)
            first = _first_rows(below.columns, below.kinds, below.count)
            return below.take(np.unique(first))
        case ReleasedWindow():
            return _windows(relation, rows_of(relation.input))
        case _:
            raise TypeError(f"not of released rows: {type(relation).__name__}")


# ---- leaves, columns, orders -----------------------------------------------------------------------------------------


def _leaf(world: NoiseWorld, block: int) -> ReleasedRows:
    """A released block, its rows by their keys."""
    sight = world.sights[block]
    order = key_order(sight.released.keys, sight.rows)
    columns, kinds, bars, noisy = list[Vector](), list[Type](), list[Any](), list[bool]()
    for item in sight.block.items:
        node = item.expression
        kind = node.type if node.type is not None and not node.type.numeric else item.type
        kinds.append(kind)
        columns.append(take_values(evaluate(node, sight, kind), order))
        noisy.append(isinstance(node, Estimated))
        own = world.estimate(block, node.index, order) if isinstance(node, Estimated) and kind.numeric else None
        bars.append(own or (Unproved(len(order)) if isinstance(node, Estimated) else Known(columns[-1])))
    return ReleasedRows(len(order), tuple(kinds), tuple(columns), tuple(bars), tuple(noisy))


def _project(relation: Project, below: ReleasedRows) -> ReleasedRows:
    kinds = tuple(out.type for out in relation.columns)
    fresh = [(node, kind) for node, kind in zip(relation.expressions, kinds, strict=True) if not isinstance(node, Ref)]
    values = iter(below.values(fresh))
    columns = [
        below.columns[node.index].of(kind) if isinstance(node, Ref) else next(values)
        for node, kind in zip(relation.expressions, kinds, strict=True)
    ]
    bars = tuple(bar_of(node, below) for node in relation.expressions)
    noisy = tuple(any(below.noisy[place] for place in columns_in(node)) for node in relation.expressions)
    held = tuple(Known(one) if isinstance(bar, Known) else bar for one, bar in zip(columns, bars, strict=True))
    return ReleasedRows(below.count, kinds, tuple(columns), held, noisy)


def _cut(relation: Cut, below: ReleasedRows) -> ReleasedRows:
    places = np.arange(below.count)
    if relation.order:
        from curador.engines.lower.released import order_rows

        columns, kinds, sorts = _sorted_columns(relation.order, below)
        places = _numbers(_calculated(order_rows(sorts), columns, kinds, below.count), 0)
    last = None if relation.limit is None else relation.offset + relation.limit
    return below.take(places[relation.offset : last])


def _sorted_columns(
    order: Sequence[Order], below: ReleasedRows, before: int = 0
) -> tuple[list[Vector], list[Type], list[tuple[int, bool, bool]]]:
    nodes = [(one.expression, one.expression.type or Type.STRING) for one in order]
    sorts = [(before + place, one.descending, one.nulls_first) for place, one in enumerate(order)]
    return below.values(nodes), [kind for _, kind in nodes], sorts


def _calculated(statement: Any, columns: Sequence[Vector], kinds: Sequence[Type], count: int, other: Any = None) -> list[Any]:
    """The rows of a statement over columns."""
    from curador.engines.calculator import OTHER, TABLE, calculate

    table = _table(columns, kinds, count)
    return calculate(statement, table if other is None else {TABLE: table, OTHER: other})


def _table(columns: Sequence[Vector], kinds: Sequence[Type], count: int) -> Any:
    import pyarrow as pa

    held = {
        f"c{place}": pa.array(vector.of(kind).values, arrow_type(kind), mask=vector.of(kind).null)
        for place, (vector, kind) in enumerate(zip(columns, kinds, strict=True))
    }
    return pa.table({**held, "place": pa.array(np.arange(count, dtype=np.int64))})


def _numbers(found: list[Any], place: int) -> IntArray:
    """A column of places, −1 where there is none."""
    return np.array([-1 if row[place] is None else row[place] for row in found], np.int64)


# ---- joins, unions ---------------------------------------------------------------------------------------------------


def _join(relation: Join, left: ReleasedRows, right: ReleasedRows) -> ReleasedRows:
    from curador.engines.lower.released import join_pairs

    noisy = (*left.noisy, *right.noisy)
    kinds = (*left.kinds, *right.kinds)
    on = None if relation.on is None else _guarded(relation.on, noisy, kinds)
    statement = join_pairs(relation.kind, on, len(left.columns), len(right.columns))
    found = _calculated(statement, left.columns, left.kinds, left.count, _table(right.columns, right.kinds, right.count))
    lefts = _numbers(found, 0)
    if relation.kind in {"semi", "anti"}:
        return left.take(lefts)
    one, other = left.take(lefts), right.take(_numbers(found, 1))
    by_noise = relation.on is not None and depends_on_noise(relation.on, noisy)
    own, others = equated_columns(relation)
    if by_noise or (is_chosen(relation.left) and not is_known_by(relation.left, own, named=True)):
        one = one.mark()
    if by_noise or (is_chosen(relation.right) and not is_known_by(relation.right, others, named=True)):
        other = other.mark()
    return ReleasedRows(one.count, kinds, (*one.columns, *other.columns), (*one.bars, *other.bars), noisy)


def _guarded(node: Node, noisy: Sequence[bool], kinds: Sequence[Type]) -> Node:
    """A condition of a join in which a released divisor is NULL where it is not above 0, as everywhere."""

    def leaf(one: Node) -> Node | None:
        if isinstance(one, Ref):
            return Ref(one.index, kinds[one.index])
        if isinstance(one, Call) and one.function in {"/", "//"} and depends_on_noise(one.arguments[1], noisy):
            above, below = (replace_nodes(argument, leaf) for argument in one.arguments)
            positive = Call(">", (below, Literal(0, Type.INTEGER)), Type.BOOLEAN)
            divisor = Call("case", (positive, below, Literal(None, None)), below.type or Type.FLOAT)
            return Call(one.function, (above, divisor), one.type)
        return None

    return replace_nodes(node, leaf)


def _unite(relation: UnionAll, parts: Sequence[ReleasedRows]) -> ReleasedRows:
    kinds = tuple(out.type for out in relation.columns)
    columns: list[Vector] = []
    bars: list[Any] = []
    for place, kind in enumerate(kinds):
        own = [part.columns[place].of(kind) for part in parts]
        columns.append(Vector(np.concatenate([one.values for one in own]), np.concatenate([one.null for one in own])))
        bars.append(_stack([part.bars[place] for part in parts], columns[-1]))
    noisy = tuple(any(column) for column in zip(*(part.noisy for part in parts), strict=True))
    return ReleasedRows(sum(part.count for part in parts), kinds, tuple(columns), tuple(bars), noisy)


def _stack(parts: Sequence[Bar], whole: Vector) -> Bar:
    if all(isinstance(part, Known) for part in parts):
        return Known(whole)
    forms = [part for part in parts if isinstance(part, Form)]
    if len(forms) == len(parts) and len({one.chosen for one in forms}) == 1:
        from scipy.sparse import vstack

        starts = np.cumsum([0, *(one.matrix.shape[0] for one in forms)])
        picks = [np.where(one.pick >= 0, one.pick + start, -1) for one, start in zip(forms, starts, strict=False)]
        matrix = vstack([one.matrix for one in forms], format="csr")
        return Form(
            forms[0].world, matrix, np.concatenate(picks), np.concatenate([one.value for one in forms]), forms[0].chosen
        )
    return Stacked(tuple(parts), np.arange(sum(part.rows for part in parts)))


# ---- groups ----------------------------------------------------------------------------------------------------------


def _first_rows(columns: Sequence[Vector], kinds: Sequence[Type], count: int) -> IntArray:
    """For every row the first one that is equal to it in all columns."""
    from curador.engines.lower.released import first_of_group

    return _numbers(_calculated(first_of_group(range(len(columns))), columns, kinds, count), 0)


def _group(relation: ReleasedGroup, below: ReleasedRows) -> ReleasedRows:
    from curador.engines.lower.released import aggregate_groups

    keys = [(node, node.type or Type.STRING) for node in relation.keys]
    columns = below.values(keys)
    kinds = [kind for _, kind in keys]
    calls: list[tuple[str, int | None, int | None, Type]] = []
    for aggregate in relation.aggregates:
        argument = condition = None
        if aggregate.argument is not None:
            argument = len(columns)
            columns += below.values([(aggregate.argument, aggregate.argument.type or Type.STRING)])
            kinds.append(aggregate.argument.type or Type.STRING)
        if aggregate.filter is not None:
            condition = len(columns)
            columns += below.values([(aggregate.filter, Type.BOOLEAN)])
            kinds.append(Type.BOOLEAN)
        calls.append((aggregate.function, argument, condition, aggregate.type))
    found = _calculated(aggregate_groups(calls, range(len(keys))), columns, kinds, below.count)
    if keys:
        first = _first_rows(columns[: len(keys)], kinds[: len(keys)], below.count)
        heads, group = np.unique(first, return_inverse=True)
    else:
        heads, group = np.zeros(1, np.int64), np.zeros(below.count, np.int64)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(heads)))
    over = RowRanges(order, starts, np.searchsorted(group[order], np.arange(len(heads)), "right"))
    by_noise = is_chosen(relation.input) or any(depends_on_noise(node, below.noisy) for node in relation.keys)
    at = heads if keys else np.full(1, -1)
    made = [take_values(one, at) for one in columns[: len(keys)]]
    bars: list[Any] = [bar_of(node, below).take(at).mark() for node in relation.keys]
    for place, (aggregate, call) in enumerate(zip(relation.aggregates, calls, strict=True)):
        made.append(vector_of([row[place] for row in found], aggregate.type))
        kept = np.ones(below.count, np.bool_) if call[2] is None else columns[call[2]].values & ~columns[call[2]].null
        there = kept if call[1] is None else kept & ~columns[call[1]].null
        chosen = by_noise or (aggregate.filter is not None and depends_on_noise(aggregate.filter, below.noisy))
        if call[:2] == ("count", None) and aggregate.filter is not None:
            bars.append(_counted(aggregate.filter, below, over, made[-1], chosen=by_noise))
            continue
        bars.append(_folded(aggregate.function, aggregate.argument, below, (kept, there), over, made[-1], chosen=chosen))
    noisy = noisy_columns(relation)
    own = tuple(Known(one) if not flag else bar for one, bar, flag in zip(made, bars, noisy, strict=True))
    return ReleasedRows(len(heads), tuple(out.type for out in relation.columns), tuple(made), own, noisy)


def _counted(condition: Node, below: ReleasedRows, over: RowRanges, value: Vector, *, chosen: bool) -> Bar:
    """How many rows a condition holds of: the sum of 1 where it does."""
    one, nothing = Literal(1, Type.INTEGER), Literal(0, Type.INTEGER)
    each = Call("case", (condition, one, nothing), Type.INTEGER)
    every = np.ones(below.count, np.bool_)
    return _folded("sum", each, below, (every, every), over, value, chosen=chosen)


def _folded(
    function: str,
    argument: Node | None,
    below: ReleasedRows,
    members: tuple[BoolArray, BoolArray],
    over: RowRanges,
    value: Vector,
    *,
    chosen: bool,
) -> Bar:
    """What an aggregate over rows is made of. `members`: the rows that it may be over, and those that are not NULL."""
    if argument is None or function in {"count", "count_distinct"}:
        return Unproved(len(over.start))
    part = bar_of(argument, below)
    if isinstance(part, Known):
        return Unproved(len(over.start)) if chosen else Known(value)
    if isinstance(part, Form) and function in {"sum", "avg"}:
        found = _sum_form(function, part, members[1], over, value, chosen=chosen)
        if found is not None:
            return found
    return (
        Folded(function, part, *members, over, chosen, value.null)
        if function in {"sum", "avg", "min", "max"}
        else Unproved(len(over.start))
    )


def _sum_form(function: str, part: Form, there: BoolArray, over: RowRanges, value: Vector, *, chosen: bool) -> Form | None:
    """The sum of forms as a form; None where it would have too many terms."""
    from scipy.sparse import csr_array

    pairs, pick = np.unique(np.stack([over.start, over.stop], 1), axis=0, return_inverse=True)
    lengths = pairs[:, 1] - pairs[:, 0]
    terms = int(lengths.sum())
    wide = part.matrix.nnz // max(part.matrix.shape[0], 1) + 1
    if terms * wide > MOST_TERMS or part.rows * wide > MOST_TERMS:
        return None
    ends = np.cumsum(lengths)
    places = np.arange(terms) - np.repeat(ends - lengths, lengths) + np.repeat(pairs[:, 0], lengths)
    indices = over.order[places]
    weights = there[indices].astype(np.float64)
    members = csr_array((weights, indices, np.concatenate([[0], ends])), shape=(len(pairs), part.rows))
    if function == "avg":
        counts = np.maximum(members.sum(axis=1), 1.0)
        members = csr_array((members.data / np.repeat(counts, lengths), members.indices, members.indptr), shape=members.shape)
    matrix = (members @ part.wide()).tocsr()
    own = np.where(value.null, -1, pick.ravel())
    return Form(part.world, matrix, own, np.where(value.null, np.nan, value.values.astype(np.float64)), chosen or part.chosen)


# ---- windows ---------------------------------------------------------------------------------------------------------


def _windows(relation: ReleasedWindow, below: ReleasedRows) -> ReleasedRows:
    chosen = is_chosen(relation.input)
    columns, bars = list(below.columns), list[Any](below.bars)
    noisy = noisy_columns(relation)
    for place, call in enumerate(relation.calls, len(below.columns)):
        value, bar = _window(call, below, chosen=chosen)
        columns.append(value)
        bars.append(bar if noisy[place] else Known(value))
    kinds = (*below.kinds, *(call.type for call in relation.calls))
    return ReleasedRows(below.count, kinds, tuple(columns), tuple(bars), noisy)


def _window(call: ReleasedCall, below: ReleasedRows, *, chosen: bool) -> tuple[Vector, Bar]:
    from curador.engines.lower.released import window_values

    nodes = [(node, node.type or Type.STRING) for node in call.partition]
    columns, kinds = below.values(nodes), [kind for _, kind in nodes]
    sorted_, sorted_kinds, sorts = _sorted_columns(call.order, below, len(columns))
    columns, kinds = [*columns, *sorted_], [*kinds, *sorted_kinds]
    argument = None
    if call.argument is not None:
        argument = len(columns)
        columns = [*columns, below.value(call.argument)]
        kinds.append(call.argument.type or Type.STRING)
    statement = window_values(call.function, argument, range(len(call.partition)), sorts, call.frame, call.offset, call.type)
    found = _calculated(statement, columns, kinds, below.count)
    value = vector_of([row[0] for row in found], call.type)
    by_partition = chosen or any(depends_on_noise(node, below.noisy) for node in call.partition)
    by_order = any(depends_on_noise(one.expression, below.noisy) for one in call.order)
    first, number, peers = (_numbers(found, place) for place in (2, 3, 4))
    order = np.lexsort((number, first))
    heads, group, sizes = np.unique(first, return_inverse=True, return_counts=True)
    begin = np.searchsorted(first[order], heads)[group] if below.count else first
    size = sizes[group] if below.count else first
    if call.function in {"lag", "lead", "first_value", "last_value"} and call.argument is not None:
        bar = bar_of(call.argument, below).take(_numbers(found, 1))
        return value, bar.mark() if by_partition or by_order else bar
    if call.function in {"row_number", "rank", "dense_rank"}:
        over = RowRanges(order, begin, begin + size)
        return value, _ranked(call, below, over, chosen=by_partition)
    every = np.ones(below.count, np.bool_)
    members = every, every if argument is None else ~columns[argument].null
    over, whole = _frames(call, order, begin, size, number, peers)
    by_noise = by_partition or (by_order and not whole)
    return value, _folded(call.function, call.argument, below, members, over, value, chosen=by_noise)


def _frames(
    call: ReleasedCall, order: IntArray, begin: IntArray, size: IntArray, number: IntArray, peers: IntArray
) -> tuple[RowRanges, bool]:
    """Which rows a window function is over, and whether that is always the whole partition."""
    frame = call.frame
    if frame is None or (frame.start is None and frame.end is None):
        return RowRanges(order, begin, begin + size), True
    if not frame.rows:
        return RowRanges(order, begin, begin + peers), False
    start = np.zeros_like(size) if frame.start is None else np.clip(number - 1 + frame.start, 0, size)
    stop = size if frame.end is None else np.clip(number + frame.end, 0, size)
    return RowRanges(order, begin + start, begin + np.maximum(start, stop)), False


def _ranked(call: ReleasedCall, below: ReleasedRows, over: RowRanges, *, chosen: bool) -> Bar:
    first, *rest = call.order or (None,)
    if first is None or not depends_on_noise(first.expression, below.noisy):
        return Unproved(below.count)
    kind = first.expression.type
    if kind is None or not kind.numeric:
        return Unproved(below.count)
    part = bar_of(first.expression, below)
    return Ranked(call.function, part, first.descending, not rest, over, np.arange(below.count), chosen)


# ---- what an expression is made of -----------------------------------------------------------------------------------


def bar_of(node: Node, below: ReleasedRows) -> Bar:
    """Return what an expression over rows is made of."""
    if isinstance(node, Ref):
        return below.bars[node.index]
    if not any(below.noisy[place] for place in columns_in(node)):
        return Known(below.value(node))
    if not isinstance(node, Call):
        return Unproved(below.count)
    if node.function == "/":
        node = Call("/", (node.arguments[0], _bare(node.arguments[1])), node.type)
    parts = [bar_of(argument, below) for argument in node.arguments]
    return _arithmetic(node, parts, below.count) or _computed(node, parts, below)


def _bare(divisor: Node) -> Node:
    """NULLIF(x, 0) divides as x does, whose quotient is NULL there anyway."""
    match divisor:
        case Call(function="nullif", arguments=(inner, Literal(value=0 | Fraction()) as zero)) if not zero.value:
            return inner
        case _:
            return divisor


def _computed(node: Call, parts: Sequence[Bar], below: ReleasedRows) -> Bar:
    leaves: list[Node] = []
    for place, (argument, part) in enumerate(zip(node.arguments, parts, strict=True)):
        kind = argument.type or Type.STRING
        if isinstance(argument, Literal):
            leaves.append(argument)
        else:
            leaves.append(Ref(place, kind) if isinstance(part, Known) else Estimated(place, kind))
    return Computed(Call(node.function, tuple(leaves), node.type), tuple(parts), below.count)


def _arithmetic(node: Call, parts: Sequence[Bar], rows: int) -> Bar | None:
    """A sum, difference, multiple or quotient as a form or a share; None where it is neither."""
    match node.function, parts:
        case "cast", [Form() | Share() as one] if node.type in {Type.FLOAT, Type.DECIMAL}:
            return one
        case "neg", [Form() as one]:
            return _scaled(one, np.full(rows, -1.0))
        case (("+" | "-"), [one, other]):
            return _added(one, other, -1.0 if node.function == "-" else 1.0, rows)
        case "*", [Form() as one, Known() as other]:
            return _scaled(one, _floats(other))
        case "*", [Known() as other, Form() as one]:
            return _scaled(one, _floats(other))
        case "/", [Form() as one, Known() as other]:
            below = _floats(other)
            return _scaled(one, np.where(below == 0, np.nan, 1 / np.where(below == 0, 1.0, below)))
        case "/", [Form() as one, Form() as other]:
            return Share(one, other)
        case "/", [Form() as one, Folded(function="min" | "max", part=Form()) as other]:
            return ShareOfExtreme(one, other)
        case _:
            return None


def _floats(known: Known) -> Any:
    return np.where(known.values.null, np.nan, known.values.values.astype(np.float64))


def _scaled(one: Form, factors: Any) -> Form | None:
    """A form times a number for each row; NULL where that is none."""
    null = ~np.isfinite(factors)
    if len(factors) and np.all(factors == factors[0]) and not null.any():
        return Form(one.world, one.matrix * factors[0], one.pick, one.value * factors[0], one.chosen)
    wide = one.wide()
    if wide.nnz > MOST_TERMS:
        return None
    from scipy.sparse import diags_array

    held = np.where(null, 0.0, factors)
    matrix = (diags_array(held) @ wide).tocsr() if len(held) else wide
    pick = np.where(null | (one.pick < 0), -1, np.arange(one.rows))
    return Form(one.world, matrix, pick, np.where(pick < 0, np.nan, one.value * held), one.chosen)


def _added(one: Bar, other: Bar, sign: float, rows: int) -> Bar | None:
    if isinstance(one, Share) and isinstance(other, Share) and _same_rows(one.below, other.below):
        above = _added(one.above, other.above, sign, rows)
        return Share(above, one.below) if isinstance(above, Form) else None
    if isinstance(one, DrawnBar) and isinstance(other, DrawnBar) and is_mean(one) and is_mean(other):
        return MeanSum(one, other, int(sign))
    if isinstance(one, Known) and isinstance(other, Form):
        moved = _scaled(other, np.full(rows, sign))
        return None if moved is None else _shifted(moved, _floats(one))
    if isinstance(one, Form) and isinstance(other, Known):
        return _shifted(one, sign * _floats(other))
    if not (isinstance(one, Form) and isinstance(other, Form)):
        return None
    if len(one.pick) * 2 + one.matrix.nnz + other.matrix.nnz > MOST_TERMS:
        return None
    first, second = one.wide(), other.wide()
    if first.nnz + second.nnz > MOST_TERMS:
        return None
    pick = np.where((one.pick < 0) | (other.pick < 0), -1, np.arange(rows))
    matrix = (first + sign * second).tocsr()
    return Form(one.world, matrix, pick, one.value + sign * other.value, one.chosen or other.chosen)


def _shifted(one: Form, moves: Any) -> Form:
    pick = np.where(np.isfinite(moves), one.pick, -1)
    return Form(one.world, one.matrix, pick, one.value + moves, one.chosen)


def _same_rows(one: Form, other: Form) -> bool:
    both = (one.pick >= 0) & (other.pick >= 0)
    return one.matrix is other.matrix and bool(np.all(one.pick[both] == other.pick[both]))
