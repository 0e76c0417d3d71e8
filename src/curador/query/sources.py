"""FROM and WHERE: tables, subqueries and brackets, joined and filtered into one relation.

FROM holds tables, common table expressions, subqueries, brackets of joins. WHERE holds conditions about rows, and the
subqueries that may be conditions: IN (SELECT …) and EXISTS (SELECT …).

Joins. The units of two private sides are equated, or the question is refused. The engine always adds that the units are
equal, so that no join can pair two people whatever the text says. What is checked here is that the text says it too: then
the added condition changes nothing of what was asked.

Where all joins are inner, the conditions of ON and WHERE are one pool, and the order of the tables is ours to choose: the
first private one, then always one that a condition ties to those before. Comma joins and explicit ones so become the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp

from curador.query import typed_terms
from curador.query.context import (
    MOST_TABLES,
    Context,
    Environment,
    Reading,
    Scope,
    check_size,
    name_columns,
    scan_table,
    scope_of,
    take_arguments,
)
from curador.query.expressions import holds_aggregate, operands_of
from curador.query.lifting import lift_scope
from curador.query.messages import invalid, not_private, quote_name
from curador.query.text import name_node
from curador.query.tree import Call, Expression, Filter, Join, Out, Project, Question, Ref, releases_of
from curador.query.typed_terms import TypedTerm, column_term, columns_in, conjoin, equate, not_null, renumber_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from curador.query.tree import JoinKind, Node, Place, Relation


# ---- joins -----------------------------------------------------------------------------------------------------------------


FromKind = Literal["first", "comma", "inner", "left", "right", "full", "semi", "anti"]
_INNER = {"first", "comma", "inner"}


@dataclass(slots=True)
class JoinSide:
    """One table, subquery or bracket of FROM, its columns counted from 0.

    start   where its columns begin while FROM is read
    merged  columns of FULL JOIN … USING: the left one, or the right one where that is absent
    """

    rows: Relation
    place: Place | None
    kind: FromKind = "first"
    start: int = 0
    on: list[TypedTerm] = field(default_factory=list[TypedTerm])
    merged: list[tuple[str, TypedTerm, TypedTerm]] = field(default_factory=list[tuple[str, TypedTerm, TypedTerm]])


def equates_units(node: Node, left: Sequence[Out], right: Sequence[Out], context: Context) -> bool:
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


def join_from(
    scope: Scope, joins: list[JoinSide], conditions: list[TypedTerm], context: Context
) -> tuple[Scope, list[TypedTerm], Callable[[int], int]]:
    """Return FROM, as `read_from` gives it, with the conditions of WHERE as one relation.

    The names over it; the conditions that no join took; and where each column of FROM as it was read now stands.
    """
    if not joins:
        return scope, conditions, lambda index: index
    sides = [JoinSide(scope.rows, scope.place), *joins]
    if all(side.kind in _INNER for side in sides):
        return _join_inner(scope, sides, conditions, context)
    rows, rest = _join_in_order(sides, conditions, context)
    return scope.over(rows, lambda index: index), rest, lambda index: index


# ---- inner joins only: one pool of conditions, any order ---------------------------------------------------------------


def _join_inner(
    scope: Scope, sides: list[JoinSide], conditions: list[TypedTerm], context: Context
) -> tuple[Scope, list[TypedTerm], Callable[[int], int]]:
    owner = [number for number, side in enumerate(sides) for _ in side.rows.columns]
    terms = [*(term for side in sides for term in side.on), *conditions]
    pool = [(term, {owner[index] for index in columns_in(term.node)}) for term in terms]
    order = _order_sides(sides, owner, pool, context)
    starts: dict[int, int] = {}
    width = 0
    for number in order:
        starts[number] = width
        width += len(sides[number].rows.columns)

    def places(index: int) -> int:
        number = owner[index]
        return starts[number] + index - sides[number].start

    rows = sides[order[0]].rows
    seen = {order[0]}
    left = [(renumber_columns(term, places), about) for term, about in pool]
    for number in order[1:]:
        seen.add(number)
        taken = [term for term, about in left if len(about) > 1 and about <= seen]
        left = [(term, about) for term, about in left if len(about) <= 1 or not about <= seen]
        rows = _join_checked(rows, sides[number].rows, "inner", taken, sides[number].place, context)
    return scope.over(rows, places), [term for term, _ in left], places


def _order_sides(
    sides: list[JoinSide], owner: list[int], pool: list[tuple[TypedTerm, set[int]]], context: Context
) -> list[int]:
    """Return the sides so that each private one is tied by its unit to those before, and others where a condition can be."""
    outs = [out for side in sides for out in side.rows.columns]
    ties: set[tuple[int, int]] = set()
    for term, _ in pool:
        ties |= _ties_of(term.node, outs, owner, context)
    private = [context.is_private(side.rows) for side in sides]
    first = private.index(True) if any(private) else 0
    order = [first]
    seen = {first}
    remaining = [number for number in range(len(sides)) if number != first]
    while remaining:

        def allowed(number: int) -> bool:
            free = not private[number] or not any(private[one] for one in seen)
            return free or any((one, number) in ties for one in seen)

        def near(number: int) -> bool:
            return any(number in about and len(about) > 1 and about <= seen | {number} for _, about in pool)

        possible = [number for number in remaining if allowed(number)]
        if not possible:
            raise _untied_refusal(sides[remaining[0]].place)
        chosen = next((number for number in possible if near(number)), possible[0])
        order.append(chosen)
        seen.add(chosen)
        remaining.remove(chosen)
    return order


def _ties_of(node: Node, outs: Sequence[Out], owner: Sequence[int], context: Context) -> set[tuple[int, int]]:
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


def _untied_refusal(place: Place | None) -> Exception:
    return not_private(
        place,
        "a join of two private tables must equate their units, or the two ends of a declared key",
        "… ON a.unit = b.unit, as a condition of its own (no OR, no arithmetic); every further one goes after AND.",
    )


# ---- outer, semi and anti joins: the order of the text -----------------------------------------------------------------


def _join_in_order(sides: list[JoinSide], conditions: list[TypedTerm], context: Context) -> tuple[Relation, list[TypedTerm]]:
    """Return the joined rows, and the conditions that no join took."""
    outer = [number for number, side in enumerate(sides) if side.kind in {"right", "full"}]
    comma = [number for number, side in enumerate(sides) if side.kind == "comma"]
    if outer and comma and comma[0] < outer[-1]:
        raise invalid(
            sides[outer[-1]].place,
            "RIGHT JOIN and FULL JOIN must not follow a comma in FROM",
            "write the other tables with JOIN … ON.",
        )
    rows = sides[0].rows
    rest = list(conditions)
    for number, side in enumerate(sides[1:], 1):
        on = list(side.on)
        width = len(rows.columns) + len(side.rows.columns)
        movable = not any(one > number for one in outer)
        if side.kind in _INNER and movable:
            moved = [term for term in rest if _spans(term.node, len(rows.columns), width)]
            if side.kind == "inner":
                moved = [term for term in moved if equates_units(term.node, rows.columns, side.rows.columns, context)]
            on += moved
            rest = [term for term in rest if not any(term is one for one in moved)]
        kind: JoinKind = "inner" if side.kind in {"first", "comma"} else side.kind  # type: ignore[assignment]
        rows = _join_checked(rows, side.rows, kind, on, side.place, context)
        if side.merged:
            rows = _merge_using(rows, side)
    return rows, rest


def _spans(node: Node, left: int, width: int) -> bool:
    """Whether a condition is about both sides of a join and about nothing after it."""
    places = columns_in(node)
    return bool(places) and min(places) < left <= max(places) < width


def _merge_using(rows: Relation, side: JoinSide) -> Relation:
    columns = rows.columns
    expressions: list[Expression] = [Ref(index, out.type) for index, out in enumerate(columns)]
    outs = list(columns)
    for name, left, right in side.merged:
        type_ = left.type or right.type
        if type_ is None or left.column is None or right.column is None:
            raise invalid(side.place, f"the column {quote_name(name)} of USING must have a type")
        unit = left.unit and right.unit
        if left.unit != right.unit:
            raise not_private(
                side.place, f"the column {quote_name(name)} of USING must be the unit on both sides, or on none"
            )
        expressions.append(Call("coalesce", (left.node, right.node), type_, side.place))
        outs.append(Out(name, type_, nullable=not unit and (left.nullable or right.nullable), unit=unit))
    return check_size(Project(rows, tuple(expressions), tuple(outs), side.place))


# ---- one join ----------------------------------------------------------------------------------------------------------


def _join_checked(
    left: Relation, right: Relation, kind: JoinKind, on: list[TypedTerm], place: Place | None, context: Context
) -> Relation:
    if releases_of(left) or releases_of(right):
        return join_released(left, right, kind, on, place)
    left_private, right_private = context.is_private(left), context.is_private(right)
    if left_private and right_private:
        if not any(equates_units(term.node, left.columns, right.columns, context) for term in on):
            raise _untied_refusal(place)
    elif left_private or right_private:
        _check_public(kind, place, left_private=left_private)
    elif kind in {"right", "full"}:
        raise invalid(place, f"{kind.upper()} JOIN must not be of two public tables", "LEFT JOIN, with the tables exchanged.")
    return join_pair(left, right, kind, conjoin(on).row if on else None, place)


def join_released(left: Relation, right: Relation, kind: JoinKind, on: list[TypedTerm], place: Place | None) -> Relation:
    """Return released rows joined with released rows; with rows of a table they must not be."""
    for side in (left, right):
        if not releases_of(side):
            raise not_private(
                place,
                "a released result must be joined with released results only: rows of a table would need its exact values",
                "group the subquery by the unit to join it with rows; or ask for it, then write the numbers.",
            )
    return join_pair(left, right, kind, conjoin(on).row if on else None, place)


def _check_public(kind: JoinKind, place: Place | None, *, left_private: bool) -> None:
    """Refuse what keeps rows of the public side without a private one: nobody would own them."""
    kept = {
        "left": not left_private,
        "right": left_private,
        "full": True,
        "semi": not left_private,
        "anti": not left_private,
    }
    if kept.get(kind, False):
        raise not_private(
            place,
            f"{kind.upper()} JOIN must not keep rows of a public table that no unit owns",
            "start from the private table: private LEFT JOIN public.",
        )


def join_pair(left: Relation, right: Relation, kind: JoinKind, on: Expression | None, place: Place | None) -> Relation:
    """Return two relations joined, with the columns of a side that may be absent marked so."""
    lefts = [_mark_absent(column) if kind in {"right", "full"} else column for column in left.columns]
    rights = [_mark_absent(column) if kind in {"left", "full"} else column for column in right.columns]
    columns = tuple(lefts) if kind in {"semi", "anti"} else (*lefts, *rights)
    return check_size(Join(left, right, kind, on, columns, place))


def _mark_absent(out: Out) -> Out:
    return replace(out, nullable=True, unit=False, unit_or_null=out.unit or out.unit_or_null)


# ---- relations -------------------------------------------------------------------------------------------------------------


def read_from_item(node: exp.Expr, environment: Environment, context: Context) -> Scope:
    """Return what a node of FROM stands for."""
    place = context.place(node)
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            raise invalid(place, "a table must be named in FROM; functions and files cannot be read")
        this, alias, joins = take_arguments(node, context, "this", "alias", "joins")
        if this.meta.get("end") in context.stars:
            raise invalid(place, "a table in FROM must not be followed by *")
        known = environment.get(this.name.lower())
        if known is None:
            found = scope_of(scan_table(this.name, context, place), this.name, place)
        else:
            found = _name_item(known, this.name, place)
        found = _rename_item(found, alias)
        return _read_bracket(found, joins, environment, context) if joins else found
    if isinstance(node, exp.Subquery):
        inner, alias = take_arguments(node, context, "this", "alias")
        if isinstance(inner, exp.Table):
            return _rename_item(read_from_item(inner, environment, context), alias)
        return _rename_item(_name_item(context.query(inner, environment, context), None, place), alias)
    raise invalid(
        place, f"{name_node(node, context.text)} must not stand in FROM", "FROM takes tables of the study and subqueries."
    )


def _name_item(found: Scope, name: str | None, place: Place | None) -> Scope:
    return replace(found, sources=((name, found.shown),), place=place)


def _rename_item(found: Scope, alias: Any) -> Scope:
    """Return the thing under an alias, which may name its columns too: t(x, y)."""
    if alias is None:
        return found
    name, names = read_alias(alias, found.place)
    columns = found.shown
    if len(names) > len(columns):
        raise invalid(found.place, f"an alias must name at most the {len(columns)} columns there are; got {len(names)}")
    renamed = tuple((new, term) for new, (_, term) in zip(names, columns, strict=False))
    shown = (*renamed, *columns[len(renamed) :])
    return replace(found, shown=shown, sources=((name, shown),))


def read_alias(alias: exp.TableAlias, place: Place | None) -> tuple[str | None, list[str]]:
    """Return the name and the column names of an alias."""
    plain = [
        isinstance(column, exp.Identifier) and (column.args.get("quoted") or column.name.isidentifier())
        for column in alias.columns
    ]
    if not all(plain):
        raise invalid(place, "the columns of an alias must be names: t(x, y)")
    return (alias.name or None), [column.name for column in alias.columns]


def _read_bracket(first: Scope, joins: list[exp.Join], environment: Environment, context: Context) -> Scope:
    """Return (a JOIN b ON …) as one relation that keeps the names inside."""
    first = lift_scope(first)
    scope, rest, _ = join_from(*read_from(first, joins, environment, context), [], context)
    return replace(scope, content=_keep_rows(scope.rows, rest, first.place))


# ---- joins as they are written -----------------------------------------------------------------------------------------


def read_from(
    first: Scope, joins: list[exp.Join], environment: Environment, context: Context
) -> tuple[Scope, list[JoinSide]]:
    """Return the names of all of FROM, whose rows are still the first ones alone, and its joins with all that they say."""
    scope = first
    sides: list[JoinSide] = []
    width = len(first.rows.columns)
    for node in joins:
        scope, side = _read_join(scope, width, node, len(sides), environment, context)
        sides.append(side)
        if side.kind not in {"semi", "anti"}:
            width += len(side.rows.columns) + len(side.merged)
    return scope, sides


def _read_join(
    left: Scope, width: int, node: exp.Join, before: int, environment: Environment, context: Context
) -> tuple[Scope, JoinSide]:
    """Return the names after one more join, and its side. `width` columns stand to the left, made by `before` joins."""
    this, on, using = take_arguments(node, context, "this", "on", "using", ignored=("side", "kind", "method"))
    found = read_from_item(this, environment, context)
    if isinstance(found.content, Question):
        found = lift_scope(found)
    rows = found.rows
    if before + 1 >= MOST_TABLES:
        raise invalid(found.place, f"a question must read at most {MOST_TABLES} tables; one that is used twice counts twice")
    kind = _join_kind(node, has_condition=on is not None or bool(using), place=found.place)
    side = JoinSide(rows, found.place, kind, width)
    right = found.shifted(width)
    taken = {(alias or "").lower() for alias, _ in left.sources}
    for alias, _ in right.sources:
        if alias is not None and alias.lower() in taken:
            raise invalid(found.place, f"the name {quote_name(alias)} must stand once in FROM", "give one of them an alias.")
    lefts, rights = list(left.shown), list(right.shown)
    for name in using or []:
        _equate_using(name.name, lefts, rights, side, context.place(name))
    both = replace(left, shown=(*lefts, *rights), sources=(*left.sources, *right.sources))
    if on is not None:
        reading = Reading(context, both, "ON")
        side.on += [
            typed_terms.require_boolean(reading.of(operand), "what follows ON")
            for operand in operands_of(on, exp.And, reading)
        ]
    if kind in {"semi", "anti"}:
        return left, side
    if side.merged:
        outs = [Out(name, one.type or other.type, True) for name, one, other in side.merged if (one.type or other.type)]  # type: ignore[arg-type]
        merged = name_columns(outs, width + len(rows.columns))
        both = replace(both, shown=(*both.shown, *merged), sources=(*both.sources, (None, merged)))
    return both, side


def _join_kind(node: exp.Join, *, has_condition: bool, place: Place | None) -> FromKind:
    method, side, kind = (str(node.args.get(one) or "").upper() for one in ("method", "side", "kind"))
    words = " ".join(one for one in (method, side, kind) if one)
    known: dict[tuple[str, str, str], FromKind] = {
        ("", "", ""): "inner" if has_condition else "comma",
        ("", "", "INNER"): "inner" if has_condition else "comma",
        ("", "", "CROSS"): "comma",
        ("", "LEFT", ""): "left",
        ("", "LEFT", "OUTER"): "left",
        ("", "RIGHT", ""): "right",
        ("", "RIGHT", "OUTER"): "right",
        ("", "FULL", ""): "full",
        ("", "FULL", "OUTER"): "full",
        ("", "", "SEMI"): "semi",
        ("", "LEFT", "SEMI"): "semi",
        ("", "", "ANTI"): "anti",
        ("", "LEFT", "ANTI"): "anti",
    }
    found = known.get((method, side, kind))
    if found is None:
        raise invalid(
            place, f"{words} JOIN is not part of the language", "JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN … ON or USING."
        )
    if has_condition == (kind == "CROSS") and (has_condition or found not in {"inner", "comma"}):
        rule = "must have no condition" if has_condition else "must have a condition: ON or USING"
        raise invalid(place, f"{words} JOIN {rule}")
    return found


def _equate_using(
    name: str,
    left: list[tuple[str, TypedTerm]],
    right: list[tuple[str, TypedTerm]],
    side: JoinSide,
    place: Place | None,
) -> None:
    """Equate the columns of this name on both sides, and let one of them stand for both: the other is shown no more."""
    one, other = (_visible(name, columns, place) for columns in (left, right))
    first, second = left[one][1], right[other][1]
    side.on.append(equate(*typed_terms.align_types(first, second, "USING")))
    if side.kind in {"right", "full"}:
        del left[one]
    if side.kind != "right":
        del right[other]
    if side.kind == "full":
        side.merged.append((name, first, second))


def _visible(name: str, columns: list[tuple[str, TypedTerm]], place: Place | None) -> int:
    found = [index for index, (one, _) in enumerate(columns) if one.lower() == name.lower()]
    exact = [index for index in found if columns[index][0] == name]
    if len(exact) == 1:
        return exact[0]
    if len(found) != 1:
        rule = "must be of one table on each side" if found else "must be on both sides"
        raise invalid(place, f"the column {quote_name(name)} of USING {rule}", about="column")
    return found[0]


# ---- conditions ------------------------------------------------------------------------------------------------------------


_PLAIN = {"expressions", "from_", "joins", "where", "distinct"}


@dataclass(frozen=True, slots=True)
class SubqueryCondition:
    """A subquery that is a condition: x [NOT] IN (query), or [NOT] EXISTS (query) where x is None."""

    x: exp.Expr | None
    query: exp.Expr
    negated: bool
    place: Place | None


def split_conditions(node: exp.Expr, reading: Reading) -> tuple[list[TypedTerm], list[SubqueryCondition]]:
    """Return the conditions of WHERE that are about one row, and those that are subqueries."""
    terms: list[TypedTerm] = []
    subqueries: list[SubqueryCondition] = []
    for operand in operands_of(node, exp.And, reading):
        subquery = _subquery_condition(operand, reading.context)
        if subquery is None:
            terms.append(typed_terms.require_boolean(reading.of(operand), "what follows WHERE"))
        else:
            subqueries.append(subquery)
    return terms, subqueries


def _subquery_condition(node: exp.Expr, context: Context) -> SubqueryCondition | None:
    negated = False
    place = context.place(node)
    while isinstance(node, exp.Not | exp.Paren):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists):
        return SubqueryCondition(None, take_arguments(node, context, "this")[0], negated, place)
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        x, query = take_arguments(node, context, "this", "query")
        return SubqueryCondition(x, query, negated, place)
    return None


def read_filtered(
    scope: Scope,
    joins: list[JoinSide],
    where: exp.Expr | None,
    aliases: Mapping[str, exp.Expr],
    environment: Environment,
    context: Context,
) -> Scope:
    """Return FROM, as `read_from` gives it, and WHERE as one relation, with the names over it."""
    if where is None:
        done, rest, _ = join_from(scope, joins, [], context)
        return replace(done, content=_keep_rows(done.rows, rest, None))
    reading = Reading(context, scope, "WHERE", aliases=aliases)
    condition = take_arguments(where, context, "this")[0]
    terms, subqueries = split_conditions(condition, reading)
    done, rest, _ = join_from(scope, joins, terms, context)
    rows = _keep_rows(done.rows, rest, context.place(condition))
    for subquery in subqueries:
        rows = _match_subquery(rows, done, subquery, environment, context)
    return replace(done, content=rows)


def _keep_rows(rows: Relation, terms: list[TypedTerm], place: Place | None) -> Relation:
    return check_size(Filter(rows, conjoin(terms).row, place)) if terms else rows


def _match_subquery(
    rows: Relation, scope: Scope, condition: SubqueryCondition, environment: Environment, context: Context
) -> Relation:
    """Return the rows that have, or have not, a match in a subquery: a semi or anti join."""
    query = condition.query
    while isinstance(query, exp.Subquery):
        query = take_arguments(query, context, "this")[0]
    reading = Reading(context, scope, "WHERE")
    x = None if condition.x is None else reading.of(condition.x)
    if x is None and isinstance(query, exp.Select) and (query.args.get("group") or query.args.get("having")):
        unit, table = context.unit, next((one.name for one in query.find_all(exp.Table)), "t")
        raise not_private(
            condition.place,
            "EXISTS must be of rows: groups of a subquery cannot be tied to the row outside",
            f"{unit} IN (SELECT {unit} FROM {table} GROUP BY {unit} HAVING COUNT(*) > 3)",  # noqa: S608 -- a hint
        )
    if isinstance(query, exp.Select) and _is_plain(query):
        right, on = _correlate_rows(rows, scope, x, query, environment, context)
    else:
        right, on = _independent(rows, x, query, environment, context)
    if releases_of(rows):
        return join_released(rows, right, "anti" if condition.negated else "semi", on, condition.place)
    if context.is_private(right):
        tied = context.is_private(rows) and any(equates_units(term.node, rows.columns, right.columns, context) for term in on)
        if not tied:
            raise not_private(
                condition.place,
                "a subquery over private rows must be tied to the row outside by the unit, or by a declared key",
                f"say in its WHERE that its {context.unit} is that of the row outside; over public tables it is free.",
            )
    if condition.negated and x is not None and x.nullable:
        rows = _keep_rows(rows, [not_null(x)], condition.place)
    kind = "anti" if condition.negated else "semi"
    return join_pair(rows, right, kind, conjoin(on).row if on else None, condition.place)


def _is_plain(query: exp.Select) -> bool:
    set_ = {name for name, value in query.args.items() if value is not None and value is not False and value != []}
    return set_ <= _PLAIN and not any(holds_aggregate(expression) for expression in query.expressions)


def _correlate_rows(
    rows: Relation, outside: Scope, x: TypedTerm | None, query: exp.Select, environment: Environment, context: Context
) -> tuple[Relation, list[TypedTerm]]:
    """Return the rows of a plain subquery and the conditions that tie them to the rows outside."""
    expressions, from_, joins, where, distinct = take_arguments(
        query, context, "expressions", "from_", "joins", "where", "distinct"
    )
    if distinct is not None:
        take_arguments(distinct, context)  # DISTINCT ON is none; a plain DISTINCT changes nothing in a condition
    if from_ is None:
        raise invalid(context.place(query), "a subquery must have FROM")
    width = len(rows.columns)
    first = read_from_item(take_arguments(from_, context, "this")[0], environment, context)
    if releases_of(rows):
        first = lift_scope(first)
    scope, sides = read_from(first, joins or [], environment, context)
    inside = scope.shifted(width, outside)
    terms: list[TypedTerm] = []
    subqueries: list[SubqueryCondition] = []
    if where is not None:
        reading = Reading(context, inside, "WHERE")
        terms, subqueries = split_conditions(take_arguments(where, context, "this")[0], reading)
    own = [term for term in terms if all(index >= width for index in columns_in(term.node))]
    ties = [term for term in terms if not any(term is one for one in own)]
    own = [renumber_columns(term, lambda index: index - width) for term in own]
    done, rest, places = join_from(scope, sides, own, context)
    right = _keep_rows(done.rows, rest, None)
    for subquery in subqueries:
        right = _match_subquery(right, done, subquery, environment, context)
    moved = [renumber_columns(term, lambda index: index if index < width else width + places(index - width)) for term in ties]
    item = _item(expressions, done, width, outside, context, wanted=x is not None)
    if x is not None and item is not None:
        moved.append(equate(*typed_terms.align_types(x, item, "IN")))
    return right, moved


def _item(
    expressions: list[exp.Expr], scope: Scope, width: int, outside: Scope, context: Context, *, wanted: bool
) -> TypedTerm | None:
    """Return the one column that IN compares with; of EXISTS the list only has to be readable."""
    inside = scope.shifted(width, outside)
    reading = Reading(context, inside, "SELECT")
    terms: list[TypedTerm] = []
    for expression in expressions:
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        if isinstance(inner, exp.Star):
            take_arguments(inner, context)
            terms += [term for _, term in inside.star(None, context.place(inner))]
        else:
            terms.append(reading.of(inner))
    if not wanted:
        return None
    if len(terms) != 1:
        place = context.place(expressions[0]) if expressions else None
        raise invalid(place, f"the subquery of IN must have one column; got {len(terms)}")
    return terms[0]


def _independent(
    rows: Relation, x: TypedTerm | None, query: exp.Expr, environment: Environment, context: Context
) -> tuple[Relation, list[TypedTerm]]:
    """Return the rows of any other subquery, which cannot name the rows outside."""
    place = context.place(query)
    found = context.query(query, environment, context)
    right = lift_scope(found).rows if releases_of(rows) else found.content
    if isinstance(right, Question) or (releases_of(right) and not releases_of(rows)):
        raise not_private(
            place,
            "an aggregated subquery must not decide about rows: it would need its exact values",
            "group it by the unit, or ask for it first and write the numbers.",
        )
    if x is None:
        return right, []
    if len(right.columns) != 1:
        raise invalid(place, f"the subquery of IN must have one column; got {len(right.columns)}")
    other = column_term(len(rows.columns), right.columns[0], place)
    return right, [equate(*typed_terms.align_types(x, other, "IN"))]
