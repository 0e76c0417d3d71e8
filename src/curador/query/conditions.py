"""WHERE: conditions about rows, and the subqueries that may be conditions: IN (SELECT …) and EXISTS (SELECT …)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from curador.query import kinds
from curador.query.aggregates import holds_aggregate
from curador.query.context import Context, Environment, Released, Rows
from curador.query.expressions import operands, read
from curador.query.joins import From, joined, link, paired
from curador.query.messages import invalid, not_private
from curador.query.reading import Aliases, Reading, taken
from curador.query.relations import from_clause, thing
from curador.query.scope import Scope
from curador.query.terms import Term, both, column, columns_in, equal, known, renumbered
from curador.query.tree import Filter

if TYPE_CHECKING:
    from curador.query.tree import Place

_PLAIN = {"expressions", "from_", "joins", "where", "distinct"}


@dataclass(frozen=True, slots=True)
class Condition:
    """A subquery that is a condition: x [NOT] IN (query), or [NOT] EXISTS (query) where x is None."""

    x: exp.Expr | None
    query: exp.Expr
    negated: bool
    place: Place | None


def split(node: exp.Expr, reading: Reading) -> tuple[list[Term], list[Condition]]:
    """Return the conditions of WHERE that are about one row, and those that are subqueries."""
    terms: list[Term] = []
    subqueries: list[Condition] = []
    for one in operands(node, exp.And, reading):
        subquery = _subquery(one, reading.context)
        if subquery is None:
            terms.append(kinds.boolean(reading.of(one), "what follows WHERE"))
        else:
            subqueries.append(subquery)
    return terms, subqueries


def _subquery(node: exp.Expr, context: Context) -> Condition | None:
    negated = False
    place = context.place(node)
    while isinstance(node, exp.Not | exp.Paren):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists):
        return Condition(None, taken(node, context, "this")[0], negated, place)
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        x, query = taken(node, context, "this", "query")
        return Condition(x, query, negated, place)
    return None


def filtered(
    clause: From, where: exp.Expr | None, environment: Environment, context: Context, aliases: Aliases | None
) -> tuple[Rows, Scope]:
    """Return FROM and WHERE as one relation, and the names over it."""
    if where is None:
        done = joined(clause, [], context)
        return _kept(done.rows, done.rest, None), done.scope
    reading = Reading(context, Scope(clause.sources), "WHERE", aliases=aliases, read=read)
    condition = taken(where, context, "this")[0]
    terms, subqueries = split(condition, reading)
    done = joined(clause, terms, context)
    rows = _kept(done.rows, done.rest, context.place(condition))
    for one in subqueries:
        rows = _with(rows, done.scope, one, environment, context)
    return rows, done.scope


def _kept(rows: Rows, terms: list[Term], place: Place | None) -> Rows:
    return rows.under(Filter(rows.relation, both(terms).row, place)) if terms else rows


def _with(rows: Rows, scope: Scope, condition: Condition, environment: Environment, context: Context) -> Rows:
    """Return the rows that have, or have not, a match in a subquery: a semi or anti join."""
    query = condition.query
    while isinstance(query, exp.Subquery):
        query = taken(query, context, "this")[0]
    reading = Reading(context, scope, "WHERE", read=read)
    x = None if condition.x is None else reading.of(condition.x)
    if isinstance(query, exp.Select) and _is_plain(query):
        right, on = _correlated(rows, scope, x, query, environment, context)
    else:
        right, on = _independent(rows, x, query, environment, context)
    if right.private:
        tied = rows.private and any(link(term.node, rows.columns, right.columns, context) for term in on)
        if not tied:
            raise not_private(
                condition.place,
                "a subquery over private rows must be tied to the row outside by the unit, or by a declared key",
                "EXISTS (SELECT 1 FROM t WHERE t.unit = outside.unit AND …); IN (SELECT …) is free over public tables only.",
            )
    if condition.negated and x is not None and x.nullable:
        rows = _kept(rows, [known(x)], condition.place)
    kind = "anti" if condition.negated else "semi"
    return paired(rows, right, kind, both(on).row if on else None, condition.place)


def _is_plain(query: exp.Select) -> bool:
    set_ = {name for name, value in query.args.items() if value is not None and value is not False and value != []}
    return set_ <= _PLAIN and not any(holds_aggregate(one) for one in query.expressions)


def _correlated(
    rows: Rows, outside: Scope, x: Term | None, query: exp.Select, environment: Environment, context: Context
) -> tuple[Rows, list[Term]]:
    """Return the rows of a plain subquery and the conditions that tie them to the rows outside."""
    expressions, from_, joins, where, distinct = taken(query, context, "expressions", "from_", "joins", "where", "distinct")
    if distinct is not None:
        taken(distinct, context)  # DISTINCT ON is none; a plain DISTINCT changes nothing in a condition
    if from_ is None:
        raise invalid(context.place(query), "a subquery must have FROM")
    width = len(rows.columns)
    first = thing(taken(from_, context, "this")[0], environment, context)
    clause = from_clause(first, joins or [], environment, context)
    inside = Scope(clause.sources).shifted(width, outside)
    terms: list[Term] = []
    subqueries: list[Condition] = []
    if where is not None:
        reading = Reading(context, inside, "WHERE", read=read)
        terms, subqueries = split(taken(where, context, "this")[0], reading)
    own = [term for term in terms if all(index >= width for index in columns_in(term.node))]
    ties = [term for term in terms if not any(term is one for one in own)]
    done = joined(clause, [renumbered(term, lambda index: index - width) for term in own], context)
    right = _kept(done.rows, done.rest, None)
    for one in subqueries:
        right = _with(right, done.scope, one, environment, context)
    moved = [renumbered(term, lambda index: index if index < width else width + done.places(index - width)) for term in ties]
    item = _item(expressions, done.scope, width, outside, context, wanted=x is not None)
    if x is not None and item is not None:
        moved.append(equal(*kinds.aligned(x, item, "IN")))
    return right, moved


def _item(
    expressions: list[exp.Expr], scope: Scope, width: int, outside: Scope, context: Context, *, wanted: bool
) -> Term | None:
    """Return the one column that IN compares with; of EXISTS the list only has to be readable."""
    reading = Reading(context, scope.shifted(width, outside), "SELECT", read=read)
    terms: list[Term] = []
    for one in expressions:
        inner = one.this if isinstance(one, exp.Alias) else one
        if isinstance(inner, exp.Star):
            taken(inner, context)
            terms += [renumbered(named.term, lambda index: index + width) for named in scope.star(None, context.place(inner))]
        else:
            terms.append(reading.of(inner))
    if not wanted:
        return None
    if len(terms) != 1:
        place = context.place(expressions[0]) if expressions else None
        raise invalid(place, f"the subquery of IN must have one column; got {len(terms)}")
    return terms[0]


def _independent(
    rows: Rows, x: Term | None, query: exp.Expr, environment: Environment, context: Context
) -> tuple[Rows, list[Term]]:
    """Return the rows of any other subquery, which cannot name the rows outside."""
    place = context.place(query)
    right = context.query(query, environment, context)
    if isinstance(right, Released):
        raise not_private(
            place,
            "an aggregated subquery must not decide about rows: it would need its exact values",
            "group it by the unit, or ask for it first and write the numbers.",
        )
    if x is None:
        return right, []
    if len(right.columns) != 1:
        raise invalid(place, f"the subquery of IN must have one column; got {len(right.columns)}")
    other = column(len(rows.columns), right.columns[0], place)
    return right, [equal(*kinds.aligned(x, other, "IN"))]
