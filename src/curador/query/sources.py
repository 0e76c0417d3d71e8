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
from curador.query.aggregates import holds_aggregate
from curador.query.context import (
    MOST_TABLES,
    AggregatedSelect,
    Aliases,
    Context,
    Environment,
    NamedColumn,
    Reading,
    RelationRows,
    Scope,
    ScopedSource,
    check_size,
    scan_table,
    source_of,
    take_arguments,
)
from curador.query.expressions import operands_of, read_expression
from curador.query.messages import invalid, name_node, not_private, quote_name
from curador.query.tree import Call, Expression, Filter, Join, Out, Project, Ref
from curador.query.typed_terms import TypedTerm, column_term, columns_in, conjoin, equate, not_null, renumber_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.query.tree import JoinKind, Node, Place


# ---- joins -----------------------------------------------------------------------------------------------------------------


FromKind = Literal["first", "comma", "inner", "left", "right", "full", "semi", "anti"]
_INNER = {"first", "comma", "inner"}


@dataclass(slots=True)
class JoinSide:
    """One table, subquery or bracket of FROM, with the names it brings, its columns counted from 0.

    start   where its columns begin while FROM is read
    """

    content: RelationRows | AggregatedSelect
    sources: tuple[ScopedSource, ...]
    place: Place | None
    kind: FromKind = "first"
    start: int = 0
    on: list[TypedTerm] = field(default_factory=list[TypedTerm])
    merged: list[tuple[str, TypedTerm, TypedTerm]] = field(default_factory=list[tuple[str, TypedTerm, TypedTerm]])
    """Columns of FULL JOIN … USING: the left one, or the right one where that is absent."""

    @property
    def rows(self) -> RelationRows:
        """The rows to be joined; what was aggregated has none."""
        if isinstance(self.content, AggregatedSelect):
            raise not_private(
                self.place,
                "an aggregated subquery must stand alone in FROM: a join would need its exact rows",
                "group it by the unit to join it; or ask twice and combine the answers.",
            )
        return self.content


@dataclass(slots=True)
class FromClause:
    """FROM as it is read: its parts, the names they bring, and what is known of every column."""

    parts: list[JoinSide]
    sources: list[ScopedSource]
    outs: list[Out]


@dataclass(frozen=True, slots=True)
class JoinedFrom:
    """FROM as one relation. `rest` are the conditions of WHERE that no join took."""

    rows: RelationRows
    scope: Scope
    rest: list[TypedTerm]
    places: Callable[[int], int]


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


def join_from(clause: FromClause, conditions: list[TypedTerm], context: Context) -> JoinedFrom:
    """Return FROM with the conditions of WHERE as one relation."""
    if len(clause.parts) == 1:
        rows = clause.parts[0].rows
        scope = Scope(clause.sources)
        return JoinedFrom(rows, scope, conditions, lambda index: index)
    if all(part.kind in _INNER for part in clause.parts):
        return _join_inner(clause, conditions, context)
    return _join_in_order(clause, conditions, context)


# ---- inner joins only: one pool of conditions, any order ---------------------------------------------------------------


def _join_inner(clause: FromClause, conditions: list[TypedTerm], context: Context) -> JoinedFrom:
    owner = [number for number, part in enumerate(clause.parts) for _ in part.rows.columns]
    pool = [(term, {owner[index] for index in columns_in(term.node)}) for part in clause.parts for term in part.on]
    pool += [(term, {owner[index] for index in columns_in(term.node)}) for term in conditions]
    order = _order_sides(clause, pool, context)
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
    left = [(renumber_columns(term, places), parts) for term, parts in pool]
    for number in order[1:]:
        seen.add(number)
        taken = [term for term, parts in left if len(parts) > 1 and parts <= seen]
        left = [(term, parts) for term, parts in left if len(parts) <= 1 or not parts <= seen]
        part = clause.parts[number]
        rows = _join_checked(rows, part.rows, "inner", taken, part.place, context)
    scope = Scope(clause.sources).over(rows.columns, places)
    return JoinedFrom(rows, scope, [term for term, _ in left], places)


def _order_sides(clause: FromClause, pool: list[tuple[TypedTerm, set[int]]], context: Context) -> list[int]:
    """Return the parts so that each private one is tied by its unit to those before, and others where a condition can be."""
    parts = clause.parts
    owner = [number for number, part in enumerate(parts) for _ in part.rows.columns]
    ties: set[tuple[int, int]] = set()
    for term, _ in pool:
        ties |= _ties_of(term.node, clause.outs, owner, context)
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
            raise _untied_refusal(parts[remaining[0]].place)
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


def _join_in_order(clause: FromClause, conditions: list[TypedTerm], context: Context) -> JoinedFrom:
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
                moved = [term for term in moved if equates_units(term.node, rows.columns, part.rows.columns, context)]
            on += moved
            rest = [term for term in rest if not any(term is one for one in moved)]
        kind: JoinKind = "inner" if part.kind in {"first", "comma"} else part.kind  # type: ignore[assignment]
        rows = _join_checked(rows, part.rows, kind, on, part.place, context)
        if part.merged:
            rows = _merge_using(rows, part)
    return JoinedFrom(rows, Scope(clause.sources).over(rows.columns, lambda index: index), rest, lambda index: index)


def _spans(node: Node, left: int, width: int) -> bool:
    """Whether a condition is about both sides of a join and about nothing after it."""
    places = columns_in(node)
    return bool(places) and min(places) < left <= max(places) < width


def _merge_using(rows: RelationRows, part: JoinSide) -> RelationRows:
    columns = rows.columns
    expressions: list[Expression] = [Ref(index, out.type) for index, out in enumerate(columns)]
    outs = list(columns)
    for name, left, right in part.merged:
        type_ = left.type or right.type
        if type_ is None or left.column is None or right.column is None:
            raise invalid(part.place, f"the column {quote_name(name)} of USING must have a type")
        unit = left.unit and right.unit
        if left.unit != right.unit:
            raise not_private(
                part.place, f"the column {quote_name(name)} of USING must be the unit on both sides, or on none"
            )
        expressions.append(Call("coalesce", (left.node, right.node), type_, part.place))
        outs.append(Out(name, type_, nullable=not unit and (left.nullable or right.nullable), unit=unit))
    return rows.under(Project(rows.relation, tuple(expressions), tuple(outs), part.place))


# ---- one join ----------------------------------------------------------------------------------------------------------


def _join_checked(
    left: RelationRows, right: RelationRows, kind: JoinKind, on: list[TypedTerm], place: Place | None, context: Context
) -> RelationRows:
    if left.private and right.private:
        if not any(equates_units(term.node, left.columns, right.columns, context) for term in on):
            raise _untied_refusal(place)
    elif left.private or right.private:
        _check_public(left, right, kind, place)
    elif kind in {"right", "full"}:
        raise invalid(place, f"{kind.upper()} JOIN must not be of two public tables", "LEFT JOIN, with the tables exchanged.")
    predicate = conjoin(on).row if on else None
    return join_pair(left, right, kind, predicate, place)


def _check_public(left: RelationRows, right: RelationRows, kind: JoinKind, place: Place | None) -> None:
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


def join_pair(
    left: RelationRows, right: RelationRows, kind: JoinKind, on: Expression | None, place: Place | None
) -> RelationRows:
    """Return two relations joined, with the columns of a side that may be absent marked so."""
    lefts = [_mark_absent(column) if kind in {"right", "full"} else column for column in left.columns]
    rights = [_mark_absent(column) if kind in {"left", "full"} else column for column in right.columns]
    columns = tuple(lefts) if kind in {"semi", "anti"} else (*lefts, *rights)
    rows = RelationRows(
        Join(left.relation, right.relation, kind, on, columns, place),
        left.private or right.private,
        (*left.tables, *right.tables),
        max(left.steps, right.steps) + 1,
    )
    return check_size(rows, place)


def _mark_absent(out: Out) -> Out:
    return replace(out, nullable=True, unit=False, unit_or_null=out.unit or out.unit_or_null)


# ---- relations -------------------------------------------------------------------------------------------------------------


def read_from_item(node: exp.Expr, environment: Environment, context: Context) -> JoinSide:
    """Return what a node of FROM stands for."""
    place = context.place(node)
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            raise invalid(place, "a table must be named in FROM; functions and files cannot be read")
        this, alias, joins = take_arguments(node, context, "this", "alias", "joins")
        if this.meta.get("end") in context.text.stars:
            raise invalid(place, "a table in FROM must not be followed by *")
        content = environment.get(this.name.lower()) or scan_table(this.name, context, place)
        found = _name_item(content, alias, this.name, place)
        return _read_bracket(found, joins, environment, context) if joins else found
    if isinstance(node, exp.Subquery):
        inner, alias = take_arguments(node, context, "this", "alias")
        if isinstance(inner, exp.Table):
            return _rename_item(read_from_item(inner, environment, context), alias)
        return _name_item(context.query(inner, environment, context), alias, None, place)
    raise invalid(
        place, f"{name_node(node, context.text)} must not stand in FROM", "FROM takes tables of the study and subqueries."
    )


def _name_item(content: RelationRows | AggregatedSelect, alias: Any, default: str | None, place: Place | None) -> JoinSide:
    if isinstance(content, RelationRows):
        source = source_of(default, content.columns)
    else:
        items = zip(content.items, content.terms[0], strict=True)
        source = ScopedSource(default, tuple(NamedColumn(item.name, term) for item, term in items))
    return _rename_item(JoinSide(content, (source,), place), alias)


def _rename_item(found: JoinSide, alias: Any) -> JoinSide:
    """Return the thing under an alias, which may name its columns too: t(x, y)."""
    if alias is None:
        return found
    name, names = read_alias(alias, found.place)
    columns = tuple(column for source in found.sources for column in source.columns if not column.hidden)
    if len(names) > len(columns):
        raise invalid(found.place, f"an alias must name at most the {len(columns)} columns there are; got {len(names)}")
    new = [replace(column, name=name) for column, name in zip(columns, names, strict=False)]
    return JoinSide(found.content, (ScopedSource(name, (*new, *columns[len(new) :])),), found.place)


def read_alias(alias: exp.TableAlias, place: Place | None) -> tuple[str | None, list[str]]:
    """Return the name and the column names of an alias."""
    plain = [
        isinstance(column, exp.Identifier) and (column.args.get("quoted") or column.name.isidentifier())
        for column in alias.columns
    ]
    if not all(plain):
        raise invalid(place, "the columns of an alias must be names: t(x, y)")
    return (alias.name or None), [column.name for column in alias.columns]


def _read_bracket(first: JoinSide, joins: list[exp.Join], environment: Environment, context: Context) -> JoinSide:
    """Return (a JOIN b ON …) as one relation that keeps the names inside."""
    done = join_from(read_from(first, joins, environment, context), [], context)
    rows = done.rows
    if done.rest:
        rows = rows.under(Filter(rows.relation, conjoin(done.rest).row, first.place))
    return JoinSide(rows, done.scope.sources, first.place)


# ---- joins as they are written -----------------------------------------------------------------------------------------


def read_from(first: JoinSide, joins: list[exp.Join], environment: Environment, context: Context) -> FromClause:
    """Return FROM with all that its joins say, before it is one relation."""
    clause = FromClause([first], list(first.sources), list(first.rows.columns))
    for node in joins:
        _add_join(clause, node, environment, context)
    return clause


def _add_join(clause: FromClause, node: exp.Join, environment: Environment, context: Context) -> None:
    this, on, using = take_arguments(node, context, "this", "on", "using", ignored=("side", "kind", "method"))
    part = read_from_item(this, environment, context)
    rows = part.rows
    if len(clause.parts) >= MOST_TABLES:
        raise invalid(part.place, f"a question must read at most {MOST_TABLES} tables; one that is used twice counts twice")
    kind = _join_kind(node, has_condition=on is not None or bool(using), place=part.place)
    start = len(clause.outs)
    part.kind, part.start = kind, start
    sources = [source.shown(lambda term: renumber_columns(term, lambda index: index + start)) for source in part.sources]
    for source in sources:
        if source.alias is not None and any(source.alias.lower() == (one.alias or "").lower() for one in clause.sources):
            raise invalid(
                part.place, f"the name {quote_name(source.alias)} must stand once in FROM", "give one of them an alias."
            )
    left, right = list(clause.sources), sources
    for name in using or []:
        _equate_using(name.name, left, right, part, context.place(name))
    if on is not None:
        reading = Reading(context, Scope([*left, *right]), "ON", read=read_expression)
        part.on += [
            typed_terms.require_boolean(reading.of(operand), "what follows ON")
            for operand in operands_of(on, exp.And, reading)
        ]
    clause.parts.append(part)
    if kind in {"semi", "anti"}:
        return
    clause.outs.extend(rows.columns)
    clause.sources = [*left, *right]
    if part.merged:
        width = len(clause.outs)
        outs = [Out(name, one.type or other.type, True) for name, one, other in part.merged if (one.type or other.type)]  # type: ignore[arg-type]
        clause.outs.extend(outs)
        clause.sources.append(
            ScopedSource(
                None, tuple(NamedColumn(out.name, column_term(width + index, out)) for index, out in enumerate(outs))
            )
        )


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
    name: str, left: list[ScopedSource], right: list[ScopedSource], part: JoinSide, place: Place | None
) -> None:
    """Equate the columns of this name on both sides, and let one of them stand for both."""
    one, other = (_visible(name, side, place) for side in (left, right))
    first, second = (side[at].columns[index].term for side, (at, index) in ((left, one), (right, other)))
    part.on.append(equate(*typed_terms.align_types(first, second, "USING")))
    if part.kind in {"right", "full"}:
        _hide(left, one)
    if part.kind != "right":
        _hide(right, other)
    if part.kind == "full":
        part.merged.append((name, first, second))


def _visible(name: str, sources: list[ScopedSource], place: Place | None) -> tuple[int, int]:
    found = [
        (at, index)
        for at, source in enumerate(sources)
        for index, column in enumerate(source.columns)
        if column.name.lower() == name.lower() and not column.hidden
    ]
    exact = [(at, index) for at, index in found if sources[at].columns[index].name == name]
    if len(exact) == 1:
        return exact[0]
    if len(found) != 1:
        rule = "must be of one table on each side" if found else "must be on both sides"
        raise invalid(place, f"the column {quote_name(name)} of USING {rule}")
    return found[0]


def _hide(sources: list[ScopedSource], where: tuple[int, int]) -> None:
    at, index = where
    columns = sources[at].columns
    hidden = replace(columns[index], hidden=True)
    sources[at] = ScopedSource(sources[at].alias, (*columns[:index], hidden, *columns[index + 1 :]))


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
    clause: FromClause, where: exp.Expr | None, environment: Environment, context: Context, aliases: Aliases | None
) -> tuple[RelationRows, Scope]:
    """Return FROM and WHERE as one relation, and the names over it."""
    if where is None:
        done = join_from(clause, [], context)
        return _keep_rows(done.rows, done.rest, None), done.scope
    reading = Reading(context, Scope(clause.sources), "WHERE", aliases=aliases, read=read_expression)
    condition = take_arguments(where, context, "this")[0]
    terms, subqueries = split_conditions(condition, reading)
    done = join_from(clause, terms, context)
    rows = _keep_rows(done.rows, done.rest, context.place(condition))
    for subquery in subqueries:
        rows = _match_subquery(rows, done.scope, subquery, environment, context)
    return rows, done.scope


def _keep_rows(rows: RelationRows, terms: list[TypedTerm], place: Place | None) -> RelationRows:
    return rows.under(Filter(rows.relation, conjoin(terms).row, place)) if terms else rows


def _match_subquery(
    rows: RelationRows, scope: Scope, condition: SubqueryCondition, environment: Environment, context: Context
) -> RelationRows:
    """Return the rows that have, or have not, a match in a subquery: a semi or anti join."""
    query = condition.query
    while isinstance(query, exp.Subquery):
        query = take_arguments(query, context, "this")[0]
    reading = Reading(context, scope, "WHERE", read=read_expression)
    x = None if condition.x is None else reading.of(condition.x)
    if isinstance(query, exp.Select) and _is_plain(query):
        right, on = _correlate_rows(rows, scope, x, query, environment, context)
    else:
        right, on = _independent(rows, x, query, environment, context)
    if right.private:
        tied = rows.private and any(equates_units(term.node, rows.columns, right.columns, context) for term in on)
        if not tied:
            raise not_private(
                condition.place,
                "a subquery over private rows must be tied to the row outside by the unit, or by a declared key",
                "EXISTS (SELECT 1 FROM t WHERE t.unit = outside.unit AND …); IN (SELECT …) is free over public tables only.",
            )
    if condition.negated and x is not None and x.nullable:
        rows = _keep_rows(rows, [not_null(x)], condition.place)
    kind = "anti" if condition.negated else "semi"
    return join_pair(rows, right, kind, conjoin(on).row if on else None, condition.place)


def _is_plain(query: exp.Select) -> bool:
    set_ = {name for name, value in query.args.items() if value is not None and value is not False and value != []}
    return set_ <= _PLAIN and not any(holds_aggregate(expression) for expression in query.expressions)


def _correlate_rows(
    rows: RelationRows, outside: Scope, x: TypedTerm | None, query: exp.Select, environment: Environment, context: Context
) -> tuple[RelationRows, list[TypedTerm]]:
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
    clause = read_from(first, joins or [], environment, context)
    inside = Scope(clause.sources).shifted(width, outside)
    terms: list[TypedTerm] = []
    subqueries: list[SubqueryCondition] = []
    if where is not None:
        reading = Reading(context, inside, "WHERE", read=read_expression)
        terms, subqueries = split_conditions(take_arguments(where, context, "this")[0], reading)
    own = [term for term in terms if all(index >= width for index in columns_in(term.node))]
    ties = [term for term in terms if not any(term is one for one in own)]
    done = join_from(clause, [renumber_columns(term, lambda index: index - width) for term in own], context)
    right = _keep_rows(done.rows, done.rest, None)
    for subquery in subqueries:
        right = _match_subquery(right, done.scope, subquery, environment, context)
    moved = [
        renumber_columns(term, lambda index: index if index < width else width + done.places(index - width)) for term in ties
    ]
    item = _item(expressions, done.scope, width, outside, context, wanted=x is not None)
    if x is not None and item is not None:
        moved.append(equate(*typed_terms.align_types(x, item, "IN")))
    return right, moved


def _item(
    expressions: list[exp.Expr], scope: Scope, width: int, outside: Scope, context: Context, *, wanted: bool
) -> TypedTerm | None:
    """Return the one column that IN compares with; of EXISTS the list only has to be readable."""
    reading = Reading(context, scope.shifted(width, outside), "SELECT", read=read_expression)
    terms: list[TypedTerm] = []
    for expression in expressions:
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        if isinstance(inner, exp.Star):
            take_arguments(inner, context)
            terms += [
                renumber_columns(named.term, lambda index: index + width) for named in scope.star(None, context.place(inner))
            ]
        else:
            terms.append(reading.of(inner))
    if not wanted:
        return None
    if len(terms) != 1:
        place = context.place(expressions[0]) if expressions else None
        raise invalid(place, f"the subquery of IN must have one column; got {len(terms)}")
    return terms[0]


def _independent(
    rows: RelationRows, x: TypedTerm | None, query: exp.Expr, environment: Environment, context: Context
) -> tuple[RelationRows, list[TypedTerm]]:
    """Return the rows of any other subquery, which cannot name the rows outside."""
    place = context.place(query)
    right = context.query(query, environment, context)
    if isinstance(right, AggregatedSelect):
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
