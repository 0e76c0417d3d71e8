"""After the release: ORDER BY and LIMIT, an outer SELECT over an aggregated one, UNION ALL of aggregated ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import kinds
from curador.query.aggregates import holds_aggregate
from curador.query.casts import cast
from curador.query.context import MOST_COLUMNS, Context, Released
from curador.query.expressions import operands, read
from curador.query.messages import invalid, not_private
from curador.query.names import item_name, unaliased
from curador.query.reading import Aliases, Reading, taken
from curador.query.scope import Named, Scope, Source
from curador.query.terms import Term, both
from curador.query.tree import Block, Item, Order, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.query.tree import Node, Place

MOST_BLOCKS = 64
_CLAUSE = "the result of an aggregated subquery"


# ---- ORDER BY, LIMIT ---------------------------------------------------------------------------------------------------


def ordering(
    order: exp.Order | None, reading: Reading, items: Sequence[Term], released: Callable[[Term], Node], *, several: bool
) -> tuple[Order, ...]:
    """Return ORDER BY over released values. With several blocks it must be an output column."""
    if order is None:
        return ()
    found: list[Order] = []
    for one in taken(order, reading.context, "expressions")[0]:
        this, descending, first = taken(one, reading.context, "this", "desc", "nulls_first")
        for term in _ordered_by(this, reading, items):
            node = released(term)
            if several:
                node = _output(term, items, reading.place(one))
            found.append(Order(node, bool(descending), bool(first)))
    return tuple(found)


def _ordered_by(node: exp.Expr, reading: Reading, items: Sequence[Term]) -> list[Term]:
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return list(items)
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.name.isdecimal() or not 1 <= int(node.name[:9]) <= len(items):
            raise invalid(reading.place(node), f"a position in ORDER BY must be from 1 to {len(items)}")
        return [items[int(node.name) - 1]]
    return [reading.of(node)]


def _output(term: Term, items: Sequence[Term], place: Place | None) -> Node:
    for index, item in enumerate(items):
        if item.node == term.node and item.type is not None:
            return Ref(index, item.type, place)
    raise invalid(place, "ORDER BY of several results must be by an output column", "select it, and name it or its position.")


def limits(limit: Any, offset: exp.Offset | None, context: Context) -> tuple[int | None, int]:
    """Return LIMIT and OFFSET."""
    most: int | None = None
    if isinstance(limit, exp.Fetch):
        count, options = taken(limit, context, "count", "limit_options", ignored=("direction",))
        if options is not None:
            taken(options, context, ignored=("rows",))
        most = 1 if count is None else _whole(count, "LIMIT", context)
    elif limit is not None:
        most = _whole(taken(limit, context, "expression")[0], "LIMIT", context)
    skipped = 0 if offset is None else _whole(taken(offset, context, "expression")[0], "OFFSET", context) or 0
    return most, skipped


def _whole(node: exp.Expr, what: str, context: Context) -> int | None:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Null) or (isinstance(node, exp.Var | exp.Column) and node.name.upper() == "ALL"):
        return None
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and len(node.name) <= 12:
        return int(node.name)
    raise invalid(context.place(node), f"{what} must be a whole number written here")


# ---- an outer SELECT over an aggregated one ----------------------------------------------------------------------------


def reshaped(node: exp.Select, inner: Released, source: Source, context: Context) -> Released:
    """Return an outer SELECT as part of the aggregated one below it: all it does is done to released values."""
    items, where, order, limit, offset, distinct, group, having = taken(
        node,
        context,
        "expressions",
        "where",
        "order",
        "limit",
        "offset",
        "distinct",
        "group",
        "having",
        ignored=("from_", "with_"),
    )
    if distinct is not None or group is not None or having is not None or any(holds_aggregate(one) for one in items):
        asked = next((one for one in (group, having, distinct) if one is not None), None)
        raise not_private(
            context.place(asked or next((one for one in items if holds_aggregate(one)), node)),
            "an aggregated subquery must not be aggregated again: that would need its exact rows",
            "group the subquery by the unit; or ask for its result and compute from that.",
        )
    cut = inner.limit is not None or inner.offset > 0
    if cut and (where is not None or order is not None or limit is not None or offset is not None):
        raise invalid(
            context.place(where or order or limit or offset),
            "a subquery with LIMIT must not be filtered, sorted or cut again",
            "put WHERE, ORDER BY and LIMIT into the outer SELECT.",
        )
    blocks: list[Block] = []
    terms: list[tuple[Term, ...]] = []
    readings: list[Reading] = []
    for block, inner_terms in zip(inner.blocks, inner.terms, strict=True):
        named = zip(source.columns, inner_terms, strict=True)
        scope = Scope([Source(source.alias, tuple(Named(one.name, term) for one, term in named))])
        done, block_terms, reading = _reshaped_block(block, scope, items, where, context)
        blocks.append(done)
        terms.append(block_terms)
        readings.append(reading)
    most, skipped = limits(limit, offset, context)
    outer_order = ordering(order, readings[0], terms[0], lambda term: term.node, several=len(blocks) > 1)
    kept = _still(inner, blocks, terms) if order is None else outer_order
    if cut:
        most, skipped = inner.limit, inner.offset
    return Released(tuple(blocks), tuple(terms), inner.tables, kept, most, skipped)


def _still(inner: Released, blocks: list[Block], terms: list[tuple[Term, ...]]) -> tuple[Order, ...]:
    """Return the order of the subquery where the outer SELECT has none; `Ref`s must still find their columns."""
    if len(blocks) == 1:
        return inner.order
    kept: list[Order] = []
    for one in inner.order:
        index = one.expression.index if isinstance(one.expression, Ref) else -1
        old = inner.terms[0][index].node
        new = next((place for place, term in enumerate(terms[0]) if term.node == old), None)
        if new is None:
            break
        kept.append(replace(one, expression=Ref(new, one.expression.type or inner.terms[0][index].type)))  # type: ignore[arg-type]
    return tuple(kept)


def _reshaped_block(
    block: Block, scope: Scope, items: list[exp.Expr], where: exp.Where | None, context: Context
) -> tuple[Block, tuple[Term, ...], Reading]:
    asts = {one.alias.lower(): unaliased(one) for one in items if isinstance(one, exp.Alias)}
    aliases = Aliases(asts)
    reading = Reading(context, scope, _CLAUSE, aggregates="done", aliases=aliases, read=read)
    having = block.having
    if where is not None:
        condition = taken(where, context, "this")[0]
        terms = [kinds.boolean(reading.of(one), "what follows WHERE") for one in operands(condition, exp.And, reading)]
        before = [] if having is None else [Term(having, Type.BOOLEAN, aggregated=True)]
        having = both([*before, *terms]).node
    found: list[Term] = []
    made: list[Item] = []
    for item in items:
        inner = unaliased(item)
        place = context.place(item)
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            star = inner if isinstance(inner, exp.Star) else inner.this
            taken(star, context)
            if isinstance(item, exp.Alias):
                raise invalid(place, "* must have no alias")
            for one in scope.star(inner.table or None if isinstance(inner, exp.Column) else None, place):
                found.append(one.term)
                made.append(Item(one.name, one.term.node, place))
            continue
        term = reading.of(inner)
        found.append(term)
        made.append(Item(item_name(item, term, context.text), term.node, place))
    order_reading = replace(reading, first="always")
    return Block(block.relation, block.keys, tuple(made), having, block.place), tuple(found), order_reading


# ---- UNION ALL ---------------------------------------------------------------------------------------------------------


def united(parts: Sequence[Released], place: Place | None) -> Released:
    """Return several aggregated SELECTs one after the other."""
    first = parts[0]
    for part in parts:
        if part.limit is not None or part.offset:
            raise invalid(place, "LIMIT must stand once, after the whole UNION ALL")
        if len(part.items) != len(first.items):
            raise invalid(place, f"each part of UNION ALL must have {len(first.items)} columns; got {len(part.items)}")
    blocks = [block for part in parts for block in part.blocks]
    terms = [list(row) for part in parts for row in part.terms]
    if len(blocks) > MOST_BLOCKS:
        raise invalid(place, f"a question must have at most {MOST_BLOCKS} parts, each a release of its own")
    if len(blocks) * len(first.items) > MOST_COLUMNS:
        raise invalid(place, f"an answer must have at most {MOST_COLUMNS:,} columns over all its parts")
    for index in range(len(first.items)):
        column = [row[index] for row in terms]
        type_, agreed = kinds.unified(column, "a column of UNION ALL", place)
        for row, term in zip(terms, agreed, strict=True):
            row[index] = term if term.type is type_ else cast(term, type_, term.place)
    done = [
        replace(
            block,
            items=tuple(
                Item(one.name, term.node, old.place) for one, term, old in zip(first.items, row, block.items, strict=True)
            ),
        )
        for block, row in zip(blocks, terms, strict=True)
    ]
    tables = tuple(name for part in parts for name in part.tables)
    return Released(tuple(done), tuple(tuple(row) for row in terms), tables)


def ordered(whole: Released, order: exp.Order | None, limit: Any, offset: exp.Offset | None, context: Context) -> Released:
    """Return a UNION ALL, or a bracketed SELECT, with the ORDER BY and LIMIT that follow it."""
    if order is None and limit is None and offset is None:
        return whole
    if whole.limit is not None or whole.offset:
        raise invalid(context.place(order or limit or offset), "a SELECT with LIMIT must not be sorted or cut again")
    named = zip(whole.items, whole.terms[0], strict=True)
    scope = Scope([Source(None, tuple(Named(item.name, term) for item, term in named))])
    reading = Reading(context, scope, _CLAUSE, aggregates="done", read=read)
    several = len(whole.blocks) > 1
    most, skipped = limits(limit, offset, context)
    new = ordering(order, reading, whole.terms[0], lambda term: term.node, several=several)
    return replace(whole, order=new or whole.order, limit=most, offset=skipped)
