"""What is computed from released rows, planned: how many rows there can be, which of them belong together, what is said.

All of it is post-processing: it costs nothing, and its time depends on what was released. It is bounded all the same, before
the charge: no step of it has more than a million rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from curador.errors import NotPrivate
from curador.plan.model import count_combinations
from curador.query.lifting import columns_of, noisy_columns
from curador.query.tree import (
    Aggregate,
    Block,
    Call,
    Cut,
    Distinct,
    Filter,
    Join,
    Project,
    Ref,
    ReleasedGroup,
    ReleasedLeaf,
    ReleasedWindow,
    UnionAll,
    inputs_of,
)
from curador.query.typed_terms import columns_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.plan.model import BlockPlan
    from curador.query.tree import AnyRelation, Expression, Node, Place

MOST_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class AbovePlan:
    """What is done with the released blocks, which are the plan's, in order."""

    tree: AnyRelation
    blocks: tuple[Block, ...]


def plan_above(tree: AnyRelation, blocks: Sequence[Block], planned: Sequence[BlockPlan], max_units: int) -> AbovePlan:
    """Return what is computed from released rows; refuse what may have more rows than a million."""
    sizes = {block: _size(one, max_units) for block, one in zip(blocks, planned, strict=True)}
    _bound(tree, sizes)
    return AbovePlan(tree, tuple(blocks))


# ---- how many rows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowBound:
    """At most `rows`, or, where keys are selected privately, `rows` times as many as were released of one block."""

    rows: int
    open: bool = False


def _size(block: BlockPlan, max_units: int) -> RowBound:
    known = count_combinations(block.keys, block.joint)
    if not block.private_keys:
        return RowBound(known)
    most = known * max_units * block.contribution.groups
    return RowBound(most) if most <= MOST_ROWS else RowBound(1, open=True)


def _bound(relation: AnyRelation, sizes: Mapping[Block, RowBound]) -> RowBound:
    """Return the most rows of a relation of released rows.

    Claim   No step has more: a join has at most the rows of one side where the other is known by the columns that are
            equated, else at most all pairs.
    """
    match relation:
        case ReleasedLeaf():
            return sizes[relation.block]
        case Join():
            found = _join_bound(relation, *(_bound(one, sizes) for one in (relation.left, relation.right)))
        case UnionAll():
            found = _sum([_bound(one, sizes) for one in relation.inputs])
        case ReleasedGroup() if not relation.keys:
            _bound(relation.input, sizes)
            return RowBound(1)
        case Cut() if relation.limit is not None:
            below = _bound(relation.input, sizes)
            return RowBound(min(relation.limit, MOST_ROWS)) if below.open else RowBound(min(relation.limit, below.rows))
        case _:
            (below,) = (_bound(one, sizes) for one in inputs_of(relation))
            return below
    if found.rows > MOST_ROWS or (found.open and found.rows > _TIMES):
        raise _too_many(relation.place, found)
    return found


_TIMES = 64
"""How many times the released rows a step may have whose keys are selected privately: each result that it reads once."""


def _too_many(place: Place | None, found: RowBound) -> NotPrivate:
    got = "more" if found.open else f"{found.rows:,}"
    return NotPrivate(
        f"what is computed from released rows must have at most {MOST_ROWS:,} of them; got {got}.",
        hint="join results on all keys of one of them, or restrict the keys with WHERE … IN.",
        place=place,
    )


def _sum(bounds: Sequence[RowBound]) -> RowBound:
    return RowBound(sum(one.rows for one in bounds), any(one.open for one in bounds))


def _join_bound(join: Join, left: RowBound, right: RowBound) -> RowBound:
    if join.kind in {"semi", "anti"}:
        return left
    lefts, rights = equated_columns(join)
    if is_known_by(join.right, rights):
        both = left
    else:
        both = right if is_known_by(join.left, lefts) else _pairs(left, right, join.place)
    kept = {"left": [left], "right": [right], "full": [left, right]}.get(join.kind, [])
    one_sided = join.kind == "left" and is_known_by(join.right, rights)
    return both if one_sided else _sum([both, *kept]) if kept else both


def _pairs(left: RowBound, right: RowBound, place: Place | None) -> RowBound:
    if left.open and right.open:
        raise _too_many(place, left)
    if left.open or right.open:
        rows = left.rows * right.rows
        return RowBound(rows, open=True)
    return RowBound(left.rows * right.rows)


# ---- which rows belong together --------------------------------------------------------------------------------------


def equated_columns(join: Join) -> tuple[frozenset[int], frozenset[int]]:
    """Return the columns of either side that a join equates with a column of the other."""
    width = len(join.left.columns)
    lefts, rights = set[int](), set[int]()
    for condition in _conditions(join.on):
        if isinstance(condition, Call) and condition.function == "=":
            first, second = condition.arguments
            if isinstance(first, Ref) and isinstance(second, Ref) and min(first.index, second.index) < width:
                low, high = sorted((first.index, second.index))
                if high >= width:
                    lefts.add(low)
                    rights.add(high - width)
    return frozenset(lefts), frozenset(rights)


def _conditions(node: Expression | None) -> tuple[Node, ...]:
    if node is None:
        return ()
    return node.arguments if isinstance(node, Call) and node.function == "and" else (node,)


def is_known_by(relation: AnyRelation, columns: frozenset[int], *, named: bool = False) -> bool:
    """Whether no two rows of a relation of released rows agree in all of these columns.

    named   it must be so by the keys: that a relation is cut to one row does not say which
    """
    match relation:
        case ReleasedLeaf():
            return columns >= set(range(len(relation.block.keys)))
        case ReleasedGroup():
            return columns >= set(range(len(relation.keys)))
        case Project():
            refs = {relation.expressions[place] for place in columns}
            return is_known_by(relation.input, frozenset(one.index for one in refs if isinstance(one, Ref)), named=named)
        case Distinct():
            return columns >= set(range(len(relation.columns))) or is_known_by(relation.input, columns, named=named)
        case Join() if relation.kind in {"semi", "anti"}:
            return is_known_by(relation.left, columns, named=named)
        case Join() if relation.kind in {"inner", "left"}:
            width = len(relation.left.columns)
            own = frozenset(place for place in columns if place < width)
            others = equated_columns(relation)[1]
            return is_known_by(relation.left, own, named=named) and is_known_by(relation.right, others, named=named)
        case Cut() if relation.limit is not None and relation.limit <= 1 and not named:
            return True
        case Filter() | Cut() | ReleasedWindow():
            width = len(relation.input.columns)
            return is_known_by(relation.input, frozenset(place for place in columns if place < width), named=named)
        case _:
            return False


def trace_column(relation: AnyRelation, place: int) -> tuple[Block, int] | None:
    """Return the block and its item that a column is, untouched; None where something was computed."""
    match relation:
        case ReleasedLeaf():
            return relation.block, place
        case Project():
            node = relation.expressions[place]
            return trace_column(relation.input, node.index) if isinstance(node, Ref) else None
        case Join():
            width = len(relation.left.columns)
            if place < width:
                return trace_column(relation.left, place)
            return trace_column(relation.right, place - width)
        case Filter() | Cut() | Distinct():
            return trace_column(relation.input, place)
        case ReleasedWindow():
            return trace_column(relation.input, place) if place < len(relation.input.columns) else None
        case _:
            return None


# ---- what noise decides ----------------------------------------------------------------------------------------------


def is_chosen(relation: AnyRelation) -> bool:
    """Whether noise decides which rows a relation has: a condition, an order that is cut, a group or a join of its values."""
    below = inputs_of(relation)
    if any(is_chosen(one) for one in below):
        return not (isinstance(relation, ReleasedGroup) and not relation.keys)
    match relation:
        case Filter():
            return depends_on_noise(relation.predicate, noisy_columns(relation.input))
        case Cut():
            noisy = noisy_columns(relation.input)
            cut = relation.limit is not None or relation.offset > 0
            return cut and any(depends_on_noise(one.expression, noisy) for one in relation.order)
        case Join():
            noisy = (*noisy_columns(relation.left), *noisy_columns(relation.right))
            return relation.on is not None and depends_on_noise(relation.on, noisy)
        case ReleasedGroup():
            noisy = noisy_columns(relation.input)
            return any(depends_on_noise(key, noisy) for key in relation.keys)
        case Distinct():
            return any(noisy_columns(relation.input))
        case _:
            return False


def depends_on_noise(node: Node, noisy: Sequence[bool]) -> bool:
    """Whether an expression holds a released number, or what follows from one."""
    places = columns_of(node) if isinstance(node, Aggregate) else columns_in(node)
    return any(noisy[place] for place in places)


# ---- what is said ----------------------------------------------------------------------------------------------------


def notes_above(plan: AbovePlan, blocks: Sequence[BlockPlan]) -> tuple[str, ...]:
    """Return what must be known of numbers that are made of several released rows."""
    private = {one for one, block in zip(plan.blocks, blocks, strict=True) if block.private_keys}
    gathered = [one for one in _walk(plan.tree) if _gathers(one)]
    notes: list[str] = []
    if any(_reads(one, private) for one in gathered):
        notes.append("numbers over groups are of the shown groups: those below the threshold are in none of them")
    if any(is_chosen(below) for one in gathered for below in inputs_of(one)):
        notes.append("noise decided which rows were counted together: numbers over them are of the shown ones")
    return tuple(notes)


def _walk(relation: AnyRelation) -> list[AnyRelation]:
    return [relation, *(found for below in inputs_of(relation) for found in _walk(below))]


def _gathers(relation: AnyRelation) -> bool:
    if isinstance(relation, ReleasedWindow):
        return any(call.frame is not None for call in relation.calls)
    return isinstance(relation, ReleasedGroup) and bool(relation.aggregates)


def _reads(relation: AnyRelation, blocks: set[Block]) -> bool:
    return any(isinstance(one, ReleasedLeaf) and one.block in blocks for one in _walk(relation))


def steps_text(plan: AbovePlan) -> str:
    """Return the steps in words, the first one first."""
    names: dict[type, str] = {
        Filter: "rows chosen",
        Project: "columns computed",
        Join: "joined",
        UnionAll: "put one after the other",
        ReleasedGroup: "aggregated",
        ReleasedWindow: "windows",
        Cut: "ordered",
        Distinct: "each once",
    }
    steps = [names[type(one)] for one in reversed(_walk(plan.tree)) if type(one) in names]
    return ", ".join(dict.fromkeys(steps)) or "as they are"
