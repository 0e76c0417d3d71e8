"""A result as released rows: what a SELECT with aggregates gives, where another SELECT reads it.

Each block becomes a leaf that has the block's keys and aggregates, and what was computed from them, HAVING, ORDER BY and
LIMIT, becomes steps above it. So one aggregate that is used twice is measured once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from curador.query import typed_terms
from curador.query.context import Reading, Scope, check_size, name_columns, scope_of
from curador.query.functions import AGGREGATES
from curador.query.messages import invalid, not_private
from curador.query.release import number_repeated, read_limits, read_ordering
from curador.query.tree import (
    Aggregate,
    Block,
    Call,
    Cut,
    Distinct,
    Expression,
    Filter,
    Item,
    Join,
    Key,
    Node,
    Order,
    Out,
    Project,
    Question,
    Ref,
    ReleasedCall,
    ReleasedGroup,
    ReleasedLeaf,
    ReleasedWindow,
    UnionAll,
)
from curador.query.typed_terms import TypedTerm, columns_in, replace_nodes
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from curador.query.context import Context
    from curador.query.tree import AnyRelation, Place, Relation


# ---- a result as rows ------------------------------------------------------------------------------------------------


def lift_scope(scope: Scope) -> Scope:
    """Return a result that stands in FROM as released rows; what is rows already stays."""
    if not isinstance(scope.content, Question):
        return scope
    rows = lift_question(scope.content)
    named = [replace(out, name=name) for (name, _), out in zip(scope.shown, rows.columns, strict=True)]
    columns = name_columns(named)
    return Scope(rows, columns, ((scope.sources[0][0], columns),), place=scope.place)


def lift_question(question: Question) -> Relation:
    """Return a result as a tree of released rows."""
    parts = [_lift_block(block) for block in question.blocks]
    rows = parts[0] if len(parts) == 1 else check_size(UnionAll(tuple(parts), unite_outs(parts)))
    if len(question.blocks) > 1 or not question.order:
        return cut_rows(rows, question.order, question.limit, question.offset)
    # the order is over the block's own keys and aggregates, so it stands below the list
    own = _Lifted.of(question.blocks[0], [one.expression for one in question.order])
    order = tuple(replace(one, expression=own.over(one.expression)) for one in question.order)
    return own.listed(cut_rows(own.kept, order, question.limit, question.offset))


def _lift_block(block: Block) -> Relation:
    own = _Lifted.of(block, [])
    return own.listed(own.kept)


class _Lifted:
    """A block as a leaf, and its items over the leaf's columns."""

    def __init__(self, block: Block, aggregates: Sequence[Aggregate], names: Sequence[str]) -> None:
        self.block = block
        self.places = {one: len(block.keys) + place for place, one in enumerate(aggregates)}
        self.leaf = leaf_of(block.relation, block.keys, aggregates, names, block.place)

    @classmethod
    def of(cls, block: Block, others: Sequence[Node]) -> _Lifted:
        names = {item.expression: item.name for item in reversed(block.items)}
        nodes = [*(item.expression for item in block.items), *([block.having] if block.having else []), *others]
        aggregates = list(dict.fromkeys(found for node in nodes for found in aggregates_in(node)))
        keys = [names.get(Key(place, key.type or Type.STRING), "") for place, key in enumerate(block.keys)]
        return cls(block, aggregates, [*keys, *(names.get(one, "") for one in aggregates)])

    def over(self, node: Node) -> Node:
        """Return a node of the block over the leaf's columns."""

        def leaf(one: Node) -> Node | None:
            if isinstance(one, Key):
                return Ref(one.index, one.type, one.place)
            return Ref(self.places[one], one.type, one.place) if isinstance(one, Aggregate) else None

        return replace_nodes(node, leaf)

    @property
    def kept(self) -> Relation:
        """The rows that HAVING keeps."""
        having = self.block.having
        return self.leaf if having is None else check_size(Filter(self.leaf, row_node(self.over(having)), self.block.place))

    def listed(self, rows: Relation) -> Relation:
        """Return the block's items."""
        return project_released(
            rows, [(item.name, self.over(item.expression)) for item in self.block.items], self.block.place
        )


def leaf_of(
    relation: Relation,
    keys: Sequence[Expression],
    aggregates: Sequence[Aggregate],
    names: Sequence[str],
    place: Place | None,
) -> Relation:
    """Return a block with nothing but its keys and aggregates, as released rows."""
    nodes: list[Node] = [Key(index, key.type or Type.STRING, place) for index, key in enumerate(keys)]
    nodes += aggregates
    said = [name or _own_name(node) for name, node in zip(names, nodes, strict=True)]
    items = tuple(Item(name, node, place) for name, node in zip(number_repeated(said), nodes, strict=True))
    outs = tuple(
        Out(item.name, item.expression.type or Type.STRING, nullable=not is_count(item.expression)) for item in items
    )
    return check_size(ReleasedLeaf(Block(relation, tuple(keys), items, None, place), outs, place))


def _own_name(node: Node) -> str:
    return node.function if isinstance(node, Aggregate) else "key"


def is_count(node: Node) -> bool:
    """Whether a node is an aggregate that is never NULL."""
    return isinstance(node, Aggregate) and AGGREGATES[node.function].counts


def aggregates_in(node: Node) -> list[Aggregate]:
    """Return the aggregates of an expression, in order."""
    if isinstance(node, Aggregate):
        return [node]
    return [found for argument in node.arguments for found in aggregates_in(argument)] if isinstance(node, Call) else []


def row_node(node: Node) -> Expression:
    """Return a node that must be about one row."""
    return TypedTerm(node, node.type).row


def project_released(rows: Relation, listed: Sequence[tuple[str, Node]], place: Place | None) -> Relation:
    """Return released rows with these columns; as they are, where these are all of them in order."""
    outs = tuple(Out(name, node.type or Type.STRING, nullable=True) for name, node in listed)
    same = len(listed) == len(rows.columns) and all(
        isinstance(node, Ref) and node.index == index for index, (_, node) in enumerate(listed)
    )
    if same and all(out.name == own.name for out, own in zip(outs, rows.columns, strict=True)):
        return rows
    return check_size(Project(rows, tuple(row_node(node) for _, node in listed), outs, place))


def unite_outs(parts: Sequence[Relation]) -> tuple[Out, ...]:
    """The columns of several results one after the other: whole only if they are in all of them."""
    outs: list[Out] = []
    for columns in zip(*(part.columns for part in parts), strict=True):
        types = {column.type for column in columns}
        mixed = len(types) > 1 and all(one.numeric for one in types)
        outs.append(Out(columns[0].name, Type.FLOAT if mixed else columns[0].type, nullable=True))
    return tuple(outs)


def cut_rows(rows: Relation, order: Sequence[Order], limit: int | None, offset: int) -> Relation:
    """Return released rows in an order, and the first of them."""
    return rows if not order and limit is None and not offset else check_size(Cut(rows, tuple(order), limit, offset))


def unite_released(parts: Sequence[Scope], place: Place | None) -> Scope:
    """Return results one after the other as released rows."""
    rows = [part.rows for part in parts]
    first = rows[0]
    for part in rows:
        if len(part.columns) != len(first.columns):
            raise invalid(place, f"each part of UNION ALL must have {len(first.columns)} columns; got {len(part.columns)}")
    for index in range(len(first.columns)):
        terms = [typed_terms.column_term(index, part.columns[index], place) for part in rows]
        typed_terms.unify_types(terms, "a column of UNION ALL", place)
    return scope_of(check_size(UnionAll(tuple(rows), unite_outs(rows), place)))


def cut_released(scope: Scope, order: exp.Order | None, limit: Any, offset: exp.Offset | None, context: Context) -> Scope:
    """Return released rows in brackets with the ORDER BY and LIMIT that follow."""
    reading = Reading(context, scope, "ORDER BY")
    items = [term for _, term in scope.shown]
    ordered = read_ordering(order, reading, items, lambda term: term.node, several=False)
    most, skipped = read_limits(limit, offset, context)
    return replace(scope, content=cut_rows(scope.rows, ordered, most, skipped))


def scalar_refusal(place: Place | None) -> Exception:
    """Return the refusal of a scalar subquery that would decide about people's rows."""
    return not_private(
        place,
        "a scalar subquery must not be compared with people's rows: it would need its exact value",
        "ask for it, then write the number.",
    )


def columns_of(one: Aggregate) -> set[int]:
    """Return the places of all columns in an aggregate."""
    return {index for node in (one.argument, one.filter) if node is not None for index in columns_in(node)}


def parts_of(call: ReleasedCall) -> list[Node]:
    """Return the expressions of a window function."""
    argument: list[Node] = [] if call.argument is None else [call.argument]
    return [*argument, *call.partition, *(one.expression for one in call.order)]


# ---- what is noise's ---------------------------------------------------------------------------------------------------


def noisy_columns(relation: AnyRelation) -> tuple[bool, ...]:
    """Return which columns hold released numbers or what follows from them; keys and constants do not."""
    match relation:
        case ReleasedLeaf():
            return tuple(not isinstance(item.expression, Key) for item in relation.block.items)
        case Project():
            below = noisy_columns(relation.input)
            return tuple(_noisy(one, below) for one in relation.expressions)
        case Join():
            both = (*noisy_columns(relation.left), *noisy_columns(relation.right))
            return both[: len(relation.columns)]
        case UnionAll():
            return tuple(any(column) for column in zip(*map(noisy_columns, relation.inputs), strict=True))
        case ReleasedGroup():
            below = noisy_columns(relation.input)
            keys = tuple(_noisy(one, below) for one in relation.keys)
            return (*keys, *(_noisy(one, below) for one in relation.aggregates))
        case ReleasedWindow():
            below = noisy_columns(relation.input)
            return (*below, *(_noisy_call(call, below) for call in relation.calls))
        case Filter() | Distinct() | Cut():
            return noisy_columns(relation.input)
        case _:
            raise TypeError(f"not of released rows: {type(relation).__name__}")


def _noisy(node: Node, below: Sequence[bool]) -> bool:
    if isinstance(node, Aggregate):
        return any(below[index] for index in columns_of(node))
    return any(below[index] for index in columns_in(node))


def _noisy_call(call: ReleasedCall, below: Sequence[bool]) -> bool:
    return any(_noisy(part, below) for part in parts_of(call))
