"""FROM with its joins. The units of two private sides are equated, or the question is refused.

The engine always adds that the units are equal, so that no join can pair two people whatever the text says. What is
checked here is that the text says it too: then the added condition changes nothing of what was asked.

Where all joins are inner, the conditions of ON and WHERE are one pool, and the order of the tables is ours to choose: the
first private one, then always one that a condition ties to those before. Comma joins and explicit ones so become the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from curador.query.context import Rows, grown
from curador.query.messages import invalid, not_private, quoted
from curador.query.scope import Scope, Source
from curador.query.terms import Term, both, columns_in, renumbered
from curador.query.tree import Call, Expression, Join, Out, Project, Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.query.context import Context
    from curador.query.tree import JoinKind, Node, Place

Kind = Literal["first", "comma", "inner", "left", "right", "full", "semi", "anti"]
_INNER = {"first", "comma", "inner"}


@dataclass(slots=True)
class Part:
    """One table, subquery or bracket of FROM. `start` is where its columns begin while FROM is read."""

    rows: Rows
    kind: Kind
    start: int
    place: Place | None
    on: list[Term] = field(default_factory=list[Term])
    merged: list[tuple[str, Term, Term]] = field(default_factory=list[tuple[str, Term, Term]])
    """Columns of FULL JOIN … USING: the left one, or the right one where that is absent."""


@dataclass(slots=True)
class From:
    """FROM as it is read: its parts, the names they bring, and what is known of every column."""

    parts: list[Part]
    sources: list[Source]
    outs: list[Out]


@dataclass(frozen=True, slots=True)
class Joined:
    """FROM as one relation. `rest` are the conditions of WHERE that no join took."""

    rows: Rows
    scope: Scope
    rest: list[Term]
    places: Callable[[int], int]


def link(node: Node, left: Sequence[Out], right: Sequence[Out], context: Context) -> bool:
    """Whether a condition equates the units of both sides, or the two ends of a declared key path."""
    if not isinstance(node, Call) or node.function != "=":
        return False
    first, second = node.arguments
    if not isinstance(first, Ref) or not isinstance(second, Ref):
        return False
    low, high = sorted((first.index, second.index))
    if not low < len(left) <= high:
        return False
    identity = context.identity(left[low])
    return identity is not None and identity == context.identity(right[high - len(left)])


def joined(clause: From, conditions: list[Term], context: Context) -> Joined:
    """Return FROM with the conditions of WHERE as one relation."""
    if len(clause.parts) == 1:
        rows = clause.parts[0].rows
        scope = Scope(clause.sources)
        return Joined(rows, scope, conditions, lambda index: index)
    if all(part.kind in _INNER for part in clause.parts):
        return _inner(clause, conditions, context)
    return _in_order(clause, conditions, context)


# ---- inner joins only: one pool of conditions, any order ---------------------------------------------------------------


def _inner(clause: From, conditions: list[Term], context: Context) -> Joined:
    owner = [number for number, part in enumerate(clause.parts) for _ in part.rows.columns]
    pool = [(term, {owner[index] for index in columns_in(term.node)}) for part in clause.parts for term in part.on]
    pool += [(term, {owner[index] for index in columns_in(term.node)}) for term in conditions]
    order = _order(clause, pool, context)
    starts: dict[int, int] = {}
    width = 0
    for number in order:
        starts[number] = width
        width += len(clause.parts[number].rows.columns)

    def places(index: int) -> int:
        number = owner[index]
        return starts[number] + index - clause.parts[number].start

    rows = clause.parts[order[0]].rows
    seen = {order[0]}
    left = [(renumbered(term, places), parts) for term, parts in pool]
    for number in order[1:]:
        seen.add(number)
        taken = [term for term, parts in left if len(parts) > 1 and parts <= seen]
        left = [(term, parts) for term, parts in left if len(parts) <= 1 or not parts <= seen]
        part = clause.parts[number]
        rows = _pair(rows, part.rows, "inner", taken, part.place, context)
    scope = Scope(clause.sources).over(rows.columns, places)
    return Joined(rows, scope, [term for term, _ in left], places)


def _order(clause: From, pool: list[tuple[Term, set[int]]], context: Context) -> list[int]:
    """Return the parts so that each private one is tied by its unit to those before, and others where a condition can be."""
    parts = clause.parts
    owner = [number for number, part in enumerate(parts) for _ in part.rows.columns]
    ties: set[tuple[int, int]] = set()
    for term, _ in pool:
        ties |= _tied(term.node, clause.outs, owner, context)
    first = next((number for number, part in enumerate(parts) if part.rows.private), 0)
    order = [first]
    seen = {first}
    remaining = [number for number in range(len(parts)) if number != first]
    while remaining:

        def allowed(number: int) -> bool:
            free = not parts[number].rows.private or not any(parts[one].rows.private for one in seen)
            return free or any((one, number) in ties for one in seen)

        def near(number: int) -> bool:
            return any(number in about and len(about) > 1 and about <= seen | {number} for _, about in pool)

        possible = [number for number in remaining if allowed(number)]
        if not possible:
            raise _untied(parts[remaining[0]].place)
        chosen = next((number for number in possible if near(number)), possible[0])
        order.append(chosen)
        seen.add(chosen)
        remaining.remove(chosen)
    return order


def _tied(node: Node, outs: Sequence[Out], owner: Sequence[int], context: Context) -> set[tuple[int, int]]:
    if not isinstance(node, Call) or node.function != "=":
        return set()
    first, second = node.arguments
    if not isinstance(first, Ref) or not isinstance(second, Ref) or owner[first.index] == owner[second.index]:
        return set()
    identity = context.identity(outs[first.index])
    if identity is None or identity != context.identity(outs[second.index]):
        return set()
    one, other = owner[first.index], owner[second.index]
    return {(one, other), (other, one)}


def _untied(place: Place | None) -> Exception:
    return not_private(
        place,
        "a join of two private tables must equate their units, or the two ends of a declared key",
        "… ON a.unit = b.unit, as a condition of its own (no OR, no arithmetic); every further one goes after AND.",
    )


# ---- outer, semi and anti joins: the order of the text -----------------------------------------------------------------


def _in_order(clause: From, conditions: list[Term], context: Context) -> Joined:
    parts = clause.parts
    outer = [number for number, part in enumerate(parts) if part.kind in {"right", "full"}]
    comma = [number for number, part in enumerate(parts) if part.kind == "comma"]
    if outer and comma and comma[0] < outer[-1]:
        raise invalid(
            parts[outer[-1]].place,
            "RIGHT JOIN and FULL JOIN must not follow a comma in FROM",
            "write the other tables with JOIN … ON.",
        )
    rows = parts[0].rows
    rest = list(conditions)
    for number, part in enumerate(parts[1:], 1):
        on = list(part.on)
        width = len(rows.columns) + len(part.rows.columns)
        movable = not any(one > number for one in outer)
        if part.kind in _INNER and movable:
            moved = [term for term in rest if _spans(term.node, len(rows.columns), width)]
            if part.kind == "inner":
                moved = [term for term in moved if link(term.node, rows.columns, part.rows.columns, context)]
            on += moved
            rest = [term for term in rest if not any(term is one for one in moved)]
        kind: JoinKind = "inner" if part.kind in {"first", "comma"} else part.kind  # type: ignore[assignment]
        rows = _pair(rows, part.rows, kind, on, part.place, context)
        if part.merged:
            rows = _merged(rows, part)
    return Joined(rows, Scope(clause.sources).over(rows.columns, lambda index: index), rest, lambda index: index)


def _spans(node: Node, left: int, width: int) -> bool:
    """Whether a condition is about both sides of a join and about nothing after it."""
    places = columns_in(node)
    return bool(places) and min(places) < left <= max(places) < width


def _merged(rows: Rows, part: Part) -> Rows:
    columns = rows.columns
    expressions: list[Expression] = [Ref(index, out.type) for index, out in enumerate(columns)]
    outs = list(columns)
    for name, left, right in part.merged:
        type_ = left.type or right.type
        if type_ is None or left.column is None or right.column is None:
            raise invalid(part.place, f"the column {quoted(name)} of USING must have a type")
        unit = left.unit and right.unit
        if left.unit != right.unit:
            raise not_private(part.place, f"the column {quoted(name)} of USING must be the unit on both sides, or on none")
        expressions.append(Call("coalesce", (left.node, right.node), type_, part.place))
        outs.append(Out(name, type_, nullable=not unit and (left.nullable or right.nullable), unit=unit))
    return rows.under(Project(rows.relation, tuple(expressions), tuple(outs), part.place))


# ---- one join ----------------------------------------------------------------------------------------------------------


def _pair(left: Rows, right: Rows, kind: JoinKind, on: list[Term], place: Place | None, context: Context) -> Rows:
    if left.private and right.private:
        if not any(link(term.node, left.columns, right.columns, context) for term in on):
            raise _untied(place)
    elif left.private or right.private:
        _check_public(left, right, kind, place)
    elif kind in {"right", "full"}:
        raise invalid(place, f"{kind.upper()} JOIN must not be of two public tables", "LEFT JOIN, with the tables exchanged.")
    predicate = both(on).row if on else None
    return paired(left, right, kind, predicate, place)


def _check_public(left: Rows, right: Rows, kind: JoinKind, place: Place | None) -> None:
    """Refuse what keeps rows of a public table without a private one: nobody would own them."""
    kept = {
        "left": not left.private,
        "right": not right.private,
        "full": True,
        "semi": not left.private,
        "anti": not left.private,
    }
    if kept.get(kind, False):
        raise not_private(
            place,
            f"{kind.upper()} JOIN must not keep rows of a public table that no unit owns",
            "start from the private table: private LEFT JOIN public.",
        )


def paired(left: Rows, right: Rows, kind: JoinKind, on: Expression | None, place: Place | None) -> Rows:
    """Return two relations joined, with the columns of a side that may be absent marked so."""
    lefts = [_absent(one) if kind in {"right", "full"} else one for one in left.columns]
    rights = [_absent(one) if kind in {"left", "full"} else one for one in right.columns]
    columns = tuple(lefts) if kind in {"semi", "anti"} else (*lefts, *rights)
    rows = Rows(
        Join(left.relation, right.relation, kind, on, columns, place),
        left.private or right.private,
        (*left.tables, *right.tables),
        max(left.steps, right.steps) + 1,
    )
    return grown(rows, place)


def _absent(out: Out) -> Out:
    return replace(out, nullable=True, unit=False, unit_or_null=out.unit or out.unit_or_null)
