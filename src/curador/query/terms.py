"""A node together with what has to be known about it while the question is read: type, size, what of the unit is in it.

Sizes count a shared part once for each use, because whoever walks the tree later will meet it that often: `b` as `a + a`,
`c` as `b + b`, … doubles at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from curador.query.messages import invalid
from curador.query.tree import Call, Estimated, Expression, Literal, Node, Out, Place, Ref
from curador.study.values import Type, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MOST_DEEP = 100
MOST_NODES = 20_000


@dataclass(frozen=True, slots=True)
class Term:
    """A node and what is known of it.

    type        None for a NULL that has no type yet
    unit        a column that holds the unit is somewhere in it
    aggregated  an aggregate or a released value is somewhere in it
    column      what is known of the column, where the node is one column and nothing else
    """

    node: Node
    type: Type | None
    nullable: bool = True
    size: int = 1
    depth: int = 1
    unit: bool = False
    aggregated: bool = False
    column: Out | None = None

    @property
    def place(self) -> Place | None:
        """Where it begins."""
        return None if isinstance(self.node, Estimated) else self.node.place

    @property
    def is_null(self) -> bool:
        """Whether it is a NULL written in the question."""
        return isinstance(self.node, Literal) and self.node.value is None

    @property
    def row(self) -> Expression:
        """The node, which must be about one row: no aggregate is in it."""
        if isinstance(self.node, Literal | Ref | Call):
            return self.node
        raise invalid(self.place, "an aggregate cannot stand here")


def literal(value: Value | None, type_: Type | None, place: Place | None = None) -> Term:
    """Return a value written in the question."""
    return Term(Literal(value, type_, place), type_, nullable=value is None)


def column(index: int, out: Out, place: Place | None = None) -> Term:
    """Return the column at this place of the relation below."""
    return Term(Ref(index, out.type, place), out.type, out.nullable, unit=out.unit or out.unit_or_null, column=out)


def call(
    function: str, type_: Type, arguments: Sequence[Term], *, nullable: bool | None = None, place: Place | None = None
) -> Term:
    """Return a function applied to arguments. It may be NULL if one of them may, unless said otherwise."""
    size = 1 + sum(one.size for one in arguments)
    depth = 1 + max((one.depth for one in arguments), default=0)
    at = place or next((one.place for one in arguments if one.place is not None), None)
    if depth > MOST_DEEP:
        raise invalid(at, f"an expression must be at most {MOST_DEEP} deep", "split it over a subquery in FROM.")
    if size > MOST_NODES:
        raise invalid(at, f"an expression must have at most {MOST_NODES:,} parts", "split it over a subquery in FROM.")
    return Term(
        Call(function, tuple(one.node for one in arguments), type_, at),
        type_,
        any(one.nullable for one in arguments) if nullable is None else nullable,
        size,
        depth,
        any(one.unit for one in arguments),
        any(one.aggregated for one in arguments),
    )


def joined(function: str, terms: Iterable[Term]) -> Term:
    """Return the AND or the OR of one or more booleans, flat."""
    flat: list[Term] = []
    for term in terms:
        node = term.node
        if isinstance(node, Call) and node.function == function:
            share = term.size // len(node.arguments)  # an upper bound of what matters: the sum stays the same
            flat.extend(
                replace(term, node=one, type=Type.BOOLEAN, size=share, depth=term.depth - 1) for one in node.arguments
            )
        else:
            flat.append(term)
    return flat[0] if len(flat) == 1 else call(function, Type.BOOLEAN, flat)


def both(terms: Iterable[Term]) -> Term:
    """Return the AND of one or more booleans."""
    return joined("and", terms)


def negated(term: Term) -> Term:
    """Return NOT of a boolean."""
    return call("not", Type.BOOLEAN, (term,))


def equal(left: Term, right: Term) -> Term:
    """Return the equality of two terms whose types agree already."""
    return call("=", Type.BOOLEAN, (left, right))


def known(term: Term) -> Term:
    """Return IS NOT NULL."""
    return negated(call("is_null", Type.BOOLEAN, (term,), nullable=False))


def replaced(node: Node, leaf: Callable[[Node], Node | None]) -> Node:
    """Return the node with its parts replaced, from above, wherever `leaf` says by what."""
    new = leaf(node)
    if new is not None:
        return new
    if isinstance(node, Call):
        return Call(node.function, tuple(replaced(one, leaf) for one in node.arguments), node.type, node.place)
    return node


def renumbered(term: Term, places: Callable[[int], int]) -> Term:
    """Return the term with every column moved to its new place."""

    def moved(node: Node) -> Node | None:
        return Ref(places(node.index), node.type, node.place) if isinstance(node, Ref) else None

    return replace(term, node=replaced(term.node, moved))


def columns_in(node: Node, found: set[int] | None = None) -> set[int]:
    """Return the places of all columns in an expression over rows."""
    places: set[int] = set() if found is None else found
    if isinstance(node, Ref):
        places.add(node.index)
    elif isinstance(node, Call):
        for one in node.arguments:
            columns_in(one, places)
    return places
