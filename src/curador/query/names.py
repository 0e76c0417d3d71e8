"""Names of output columns: the alias; else the column; else the function and its column (`count`, `sum_spent`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from curador.query.messages import Text, function_name, invalid, quoted
from curador.query.tree import Aggregate, Block, Call, Item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.query.terms import Term
    from curador.query.tree import Node

MOST_LETTERS = 200


def unaliased(node: exp.Expr) -> exp.Expr:
    """Return an item of a SELECT list without its alias and brackets."""
    while isinstance(node, exp.Alias | exp.Paren):
        node = node.this
    return node


def item_name(node: exp.Expr, term: Term, text: Text) -> str:
    """Return the name of an item of a SELECT list. A bare column has its own, in the letter case of its table."""
    if not isinstance(node, exp.Alias) and isinstance(unaliased(node), exp.Column) and term.column is not None:
        return term.column.name
    if isinstance(node, exp.Alias):
        name = node.alias
        if not name or len(name) > MOST_LETTERS or not name.isprintable():
            raise invalid(text.of(node), f"a name must be of 1 to {MOST_LETTERS} printable letters")
        return name
    return _plain(node, text)


def _plain(node: exp.Expr, text: Text) -> str:
    while isinstance(node, exp.Paren | exp.Cast | exp.Filter):
        node = node.this
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.WithinGroup):
        order = node.expression
        column = _column(order.expressions[0].this) if isinstance(order, exp.Order) and order.expressions else None
        return _with_column(function_name(node.this, text), column)
    if isinstance(node, exp.Extract):
        return _with_column(node.name.lower(), _column(node.expression))
    if isinstance(node, exp.Case | exp.If):
        return "case"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return _with_column(function_name(node, text), _column(node))
    return "value"


def _column(node: exp.Expr) -> str | None:
    """Return the name of the column that a function is of, if it is of one."""
    arguments = list(node.iter_expressions()) if isinstance(node, exp.Func) else [node]
    for one in arguments:
        inner: exp.Expr = one
        if isinstance(inner, exp.Distinct):
            inner = inner.expressions[0] if inner.expressions else inner
        while isinstance(inner, exp.Paren | exp.Cast):
            inner = inner.this
        if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Identifier):
            return inner.name
        if not isinstance(inner, exp.Literal | exp.Var):
            return None
    return None


def _with_column(function: str, column: str | None) -> str:
    return function if column is None else f"{function}_{column}"


def labelled(names: Sequence[str]) -> list[str]:
    """Return the names with `_2`, `_3`, … after those that came before, whatever their letter case."""
    taken: set[str] = set()
    counts: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        label, count = name, counts.get(name.lower(), 1)
        while label.lower() in taken:
            count += 1
            label = f"{name}_{count}"
        counts[name.lower()] = count
        taken.add(label.lower())
        found.append(label)
    return found


def check_clashes(items: Sequence[Item]) -> None:
    """Refuse a name that an interval of another column will have: x is followed by x_low and x_high."""
    names = {one.name.lower(): one for one in items}
    for item in items:
        if not is_released_number(item.expression):
            continue
        for ending in ("_low", "_high"):
            other = names.get(f"{item.name.lower()}{ending}")
            if other is not None:
                raise invalid(
                    other.place,
                    f"the columns {quoted(item.name)} and {quoted(other.name)} clash: the interval of "
                    f"{quoted(item.name)} is in {quoted(item.name + '_low')} and {quoted(item.name + '_high')}",
                    "give one of them another name with AS.",
                )


def is_released_number(node: Node) -> bool:
    """Whether an output column carries an interval: a number or date that an aggregate is in."""
    type_ = node.type
    return type_ is not None and (type_.numeric or type_.temporal) and _holds_aggregate(node)


def _holds_aggregate(node: Node) -> bool:
    return isinstance(node, Aggregate) or (isinstance(node, Call) and any(_holds_aggregate(one) for one in node.arguments))


def named_blocks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks of the whole question with their final names, which are the first one's."""
    names = labelled([one.name for one in blocks[0].items])
    done: list[Block] = []
    for block in blocks:
        items = tuple(Item(name, one.expression, one.place) for name, one in zip(names, block.items, strict=True))
        check_clashes(items)
        done.append(Block(block.relation, block.keys, items, block.having, block.place))
    return tuple(done)
