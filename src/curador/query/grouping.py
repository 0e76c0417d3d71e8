"""GROUP BY: its keys, and the grouping sets that ROLLUP, CUBE and GROUPING SETS make of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query.aggregates import holds_aggregate
from curador.query.messages import invalid, not_private
from curador.query.names import unaliased
from curador.query.reading import taken
from curador.query.terms import Term, columns_in, replaced
from curador.query.tree import Aggregate, Call, Key, Literal, Node, Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.query.context import Context
    from curador.query.reading import Reading
    from curador.query.tree import Place

MOST_SETS = 64
MOST_KEYS = 64


@dataclass(slots=True)
class Keys:
    """The keys, each once, and where in them every grouping set points."""

    terms: list[Term] = field(default_factory=list[Term])
    sets: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    index: dict[Node, int] = field(default_factory=dict[Node, int])

    def add(self, term: Term) -> int:
        """Return the place of a key, new or known."""
        place = self.index.setdefault(term.node, len(self.terms))
        if place >= MOST_KEYS:
            raise invalid(term.place, f"a question must have at most {MOST_KEYS} keys")
        if place == len(self.terms):
            self.terms.append(term)
        return place


def keys_of(group: exp.Group | None, items: Sequence[exp.Expr], reading: Reading) -> Keys:
    """Return the keys of GROUP BY; without it there is one group."""
    keys = Keys()
    context = reading.context
    if group is None:
        keys.sets = [()]
        return keys
    expressions, everything, rollup, cube = taken(group, context, "expressions", "all", "rollup", "cube")

    def key(node: exp.Expr) -> int:
        return keys.add(_key(node, items, reading))

    if everything:
        if expressions:
            raise invalid(context.place(group), "GROUP BY ALL must stand without further keys")
        plain = [unaliased(one) for one in items if not holds_aggregate(one)]
        if any(isinstance(one, exp.Star) for one in plain):
            raise not_private(context.place(plain[0]), "* must not be a key", "name the keys.")
        keys.sets = [tuple(dict.fromkeys(key(one) for one in plain))]
        return keys
    if not expressions:
        raise invalid(context.place(group), "GROUP BY must be followed by keys")
    alternatives = [_alternatives(one, key, context) for one in expressions or []]
    for written, kind in ((rollup, exp.Rollup), (cube, exp.Cube)):  # GROUP BY a, b WITH ROLLUP
        if written:
            if len(written) != 1 or written[0].expressions:
                raise invalid(context.place(group), "ROLLUP and CUBE must be written as ROLLUP (a, b)")
            alternatives = [_alternatives(kind(expressions=expressions or []), key, context)]
    count = 1
    for one in alternatives:
        count *= len(one)
        if count > MOST_SETS:
            raise invalid(context.place(group), f"a GROUP BY must have at most {MOST_SETS} grouping sets")
    for combination in itertools.product(*alternatives):
        keys.sets.append(tuple(sorted({place for part in combination for place in part})))
    return keys


def _alternatives(node: Any, key: Callable[[exp.Expr], int], context: Context) -> list[tuple[int, ...]]:
    """Return the sets of keys that one part of GROUP BY stands for."""
    if isinstance(node, exp.Rollup | exp.Cube):
        parts = [_one_set(one, key, context) for one in taken(node, context, "expressions")[0] or []]
        if isinstance(node, exp.Rollup):
            chosen = [parts[:length] for length in range(len(parts), -1, -1)]
        else:
            if len(parts) > 6:
                raise invalid(context.place(node), f"CUBE must make at most {MOST_SETS} grouping sets")
            chosen = [
                list(subset) for length in range(len(parts), -1, -1) for subset in itertools.combinations(parts, length)
            ]
        return [tuple(place for part in subset for place in part) for subset in chosen]
    if isinstance(node, exp.GroupingSets):
        found: list[tuple[int, ...]] = []
        for one in taken(node, context, "expressions")[0]:
            found += _alternatives(one, key, context)
        return found
    return [_one_set(node, key, context)]


def _one_set(node: exp.Expr, key: Callable[[exp.Expr], int], context: Context) -> tuple[int, ...]:
    if isinstance(node, exp.Tuple):
        return tuple(key(one) for one in taken(node, context, "expressions")[0] or [])
    return (key(node),)


def _key(node: exp.Expr, items: Sequence[exp.Expr], reading: Reading) -> Term:
    place = reading.place(node)
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.name.isdecimal() or not 1 <= int(node.name[:9]) <= len(items):
            raise invalid(place, f"a position in GROUP BY must be from 1 to {len(items)}")
        node = unaliased(items[int(node.name) - 1])
    if holds_aggregate(node):
        raise invalid(place, "a key must not hold an aggregate")
    return over_columns(reading.of(node))


def over_columns(term: Term) -> Term:
    """Return a key unless it is a constant."""
    if not columns_in(term.node):
        raise invalid(term.place, "a key must be an expression over columns")
    return term


def check_released(keys: Keys, context: Context, *, top: bool) -> None:
    """Refuse keys that single out units: the unit, what is computed from it, a declared key of one unit's rows."""
    for term in keys.terms:
        if term.unit:
            raise not_private(
                term.place,
                "the unit, or an expression over it, must not be a key of what is released: each group would be one unit",
                f"COUNT(DISTINCT {context.unit}) counts them; GROUP BY {context.unit} may stand in a subquery in FROM.",
            )
        if context.identity(term.column) is not None:
            raise not_private(
                term.place,
                "a key must not identify: this column belongs to one unit's rows by declaration",
                "group by what many units share; the column may stand in WHERE and in joins."
                if top
                else "group the subquery by the unit as well: join the table that has it, GROUP BY unit, key.",
            )


class Matcher:
    """Finds keys in expressions. A key is known by its structure; what stands on top of it is compared first."""

    def __init__(self, keys: Keys) -> None:
        self.index = keys.index
        self.heads = {_head(one) for one in keys.index}

    def replaced(self, term: Term, key: Callable[[int, Place | None], Node], aggregate: Callable[[Aggregate], Node]) -> Node:
        """Return a node with its keys and aggregates replaced; refuse a column that is neither."""

        def leaf(node: Node) -> Node | None:
            place = self.index.get(node) if _head(node) in self.heads else None
            if place is not None:
                return key(place, Term(node, None).place)
            if isinstance(node, Ref):
                raise ungrouped(node.place)
            return aggregate(node) if isinstance(node, Aggregate) else None

        return replaced(term.node, leaf)


@dataclass(frozen=True, slots=True)
class Release:
    """Turns expressions over rows and aggregates into ones over what a grouping set releases."""

    keys: Keys
    chosen: tuple[int, ...]
    matcher: Matcher

    def of(self, term: Term) -> Node:
        """Return the node over keys and aggregates. A key that the set leaves out is NULL."""
        return self.matcher.replaced(term, self._key, _itself)

    def _key(self, place: int, where: Place | None) -> Node:
        type_ = self.keys.terms[place].type
        if place not in self.chosen or type_ is None:
            return Literal(None, type_, where)
        return Key(self.chosen.index(place), type_, where)


def _itself(node: Aggregate) -> Node:
    return node


def _head(node: Node) -> tuple[object, object]:
    if isinstance(node, Call):
        return (Call, node.function)
    return (type(node), node.index if isinstance(node, Ref | Key) else None)


def ungrouped(place: Place | None) -> Exception:
    """Return the refusal of a column beside aggregates."""
    return invalid(
        place,
        "a column must stand in GROUP BY or inside an aggregate",
        "add it to GROUP BY, or ask for AVG, MEDIAN, … of it.",
    )
