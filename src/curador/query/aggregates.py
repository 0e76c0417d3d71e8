"""Aggregates: over the rows of a release, where noise will be added, or exact and inside one unit."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast

from sqlglot import exp

from curador.query import typed_terms
from curador.query.context import Reading, take_arguments
from curador.query.functions import AGGREGATES
from curador.query.messages import invalid, not_private
from curador.query.tree import Aggregate
from curador.query.typed_terms import TypedTerm, call_term, conjoin, not_null
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.query.tree import Place

AggregateScope = Literal["released", "unit"]

_CLASSES: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.ApproxDistinct: "approx_count_distinct",
    **{getattr(exp, parsed): one.name for one in AGGREGATES.values() for parsed in one.parsed},
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.StddevPop: "stddev_pop",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
    exp.Quantile: "quantile",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.ApproxQuantile: "quantile",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}
_NAMES = {
    "every": "bool_and",
    "percentile": "quantile",
    **{called: one.name for one in AGGREGATES.values() for called in one.called},
}

AGGREGATE_CLASSES = (*_CLASSES, exp.Filter, exp.WithinGroup)
"""The allow-list of aggregates, by class."""

AGGREGATE_NAMES = (*_NAMES, *(one.name for one in AGGREGATES.values() if one.parsed))
"""What analysts may call, for hints."""


def aggregate_name(node: exp.Anonymous) -> str | None:
    """Return which aggregate a function is that the parser knows by name only."""
    return _NAMES.get(str(node.this).lower())


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate stands in an expression, outside of window functions and subqueries."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, exp.Window | exp.Query):
            continue
        if isinstance(current, exp.AggFunc | exp.Filter | exp.WithinGroup):
            return True
        if isinstance(current, exp.Anonymous) and aggregate_name(current) is not None:
            return True
        stack.extend(current.iter_expressions())
    return False


def read_aggregate(node: exp.Expr, reading: Reading) -> TypedTerm:
    """Return an aggregate with its FILTER."""
    place = reading.place(node)
    if reading.aggregates is None or reading.aggregates == "done":
        raise _misplaced_refusal(reading, place)
    rows = reading.inside("an aggregate")
    core, filters, order = _unwrap(node, rows)
    name = _NAMES[str(core.this).lower()] if isinstance(core, exp.Anonymous) else _CLASSES[type(core)]
    if order is not None and not name.startswith("quantile"):
        raise invalid(place, "WITHIN GROUP must follow PERCENTILE_CONT or PERCENTILE_DISC")
    if name.startswith("count") or name == "approx_count_distinct":
        return _count(core, name, filters, reading, rows)
    q: Fraction | None = None
    if name.startswith(("quantile", "median")):
        argument, q = _quantile(core, name, order, reading, rows)
    else:
        argument = _argument(core, rows)
    return _measure(name, argument, q, filters, reading.aggregates, place)


def _misplaced_refusal(reading: Reading, place: Place | None) -> Exception:
    if reading.clause == "an aggregate":
        return invalid(
            place, "an aggregate must not stand inside another", "group by the unit in a subquery, then aggregate that."
        )
    if reading.aggregates == "done":
        return not_private(
            place,
            "an aggregate over an aggregated subquery would need its exact rows",
            "ask for the inner result and compute from it, or group the subquery by the unit.",
        )
    return invalid(place, f"an aggregate must not stand in {reading.clause}", "HAVING is about groups, WHERE about rows.")


def _unwrap(node: exp.Expr, rows: Reading) -> tuple[exp.Expr, list[TypedTerm], exp.Order | None]:
    """Return the aggregate itself, the conditions of FILTER, and the order of WITHIN GROUP."""
    filters: list[TypedTerm] = []
    order: exp.Order | None = None
    while isinstance(node, exp.Filter | exp.WithinGroup):
        this, expression = take_arguments(node, rows.context, "this", "expression")
        if isinstance(node, exp.Filter):
            condition = take_arguments(expression, rows.context, "this")[0]
            filters.append(typed_terms.require_boolean(rows.of(condition), "what follows FILTER (WHERE"))
        else:
            order = expression
        node = this
    known_name = isinstance(node, exp.Anonymous) and aggregate_name(node) is not None
    if type(node) not in _CLASSES and not known_name:
        rows.of(node)  # says what is wrong with it, if something is
        raise invalid(rows.place(node), "FILTER and WITHIN GROUP must follow an aggregate")
    return node, filters, order


def _argument(core: exp.Expr, rows: Reading) -> TypedTerm:
    """Return what SUM, AVG, … are of."""
    if isinstance(core, exp.Anonymous):
        arguments: list[Any] = take_arguments(core, rows.context, "this", "expressions")[1] or []
        if len(arguments) != 1:
            raise invalid(rows.place(core), "an aggregate must have one argument")
        inner: Any = arguments[0]
    else:
        inner = take_arguments(core, rows.context, "this")[0]
    if isinstance(inner, exp.Distinct):
        raise not_private(
            rows.place(core),
            "DISTINCT must stand in COUNT only: a value that several share would be everybody's and nobody's",
            "COUNT(DISTINCT x), or GROUP BY x.",
        )
    return _refuse_unit(rows.of(inner), rows, rows.place(core))


def _refuse_unit(term: TypedTerm, rows: Reading, place: Place | None) -> TypedTerm:
    if term.unit:
        raise not_private(
            term.place or place,
            "the unit must not be measured: an aggregate of it, or of an expression over it, is about single units",
            f"COUNT(DISTINCT {rows.context.unit}) counts them; a condition on the unit stands in WHERE or FILTER.",
        )
    return term


def _count(core: exp.Expr, name: str, filters: list[TypedTerm], reading: Reading, rows: Reading) -> TypedTerm:
    place = reading.place(core)
    where = cast("AggregateScope", reading.aggregates)
    inner: Any = take_arguments(core, rows.context, "this", ignored=("big_int",))[0]
    if name == "count_if":
        if isinstance(inner, exp.Distinct):
            raise invalid(place, "COUNT_IF must be of a condition, without DISTINCT")
        condition = typed_terms.require_boolean(rows.of(inner), "what COUNT_IF counts")
        return _aggregate_term("count", None, [*filters, condition], None, Type.INTEGER, place)
    distinct = name == "approx_count_distinct"
    if isinstance(inner, exp.Distinct):
        distinct = True
        expressions = take_arguments(inner, rows.context, "expressions")[0] or []
        if len(expressions) != 1:
            raise invalid(place, "COUNT(DISTINCT …) must be of one expression")
        inner = expressions[0]
    if inner is None:
        raise invalid(place, "COUNT must have an argument", "COUNT(*) counts rows.")
    if isinstance(inner, exp.Star):
        take_arguments(inner, rows.context)
        if distinct:
            raise invalid(place, "COUNT(DISTINCT …) must be of an expression")
        return _aggregate_term("count", None, filters, None, Type.INTEGER, place)
    term = rows.of(inner)
    if term.is_null:
        raise invalid(place, "COUNT(NULL) counts nothing", "COUNT(*) counts rows.")
    out = term.column
    if out is not None and (out.unit or out.unit_or_null):
        if distinct and where == "unit":
            raise invalid(place, "COUNT(DISTINCT unit) inside a unit is 1")
        present = [] if out.unit else [not_null(term)]
        return _aggregate_term("count_units" if distinct else "count", None, [*filters, *present], None, Type.INTEGER, place)
    _refuse_unit(term, rows, place)
    if distinct:
        if typed_terms.value_of(term) is not None:
            raise invalid(place, "COUNT(DISTINCT …) must be of an expression over columns")
        return _aggregate_term("count_distinct", term, filters, None, Type.INTEGER, place)
    always = typed_terms.value_of(term) is not None  # COUNT(1)
    return _aggregate_term("count", None if always else term, filters, None, Type.INTEGER, place)


def _quantile(
    core: exp.Expr, name: str, order: exp.Order | None, reading: Reading, rows: Reading
) -> tuple[TypedTerm, Fraction | None]:
    place = reading.place(core)
    if name == "quantile_cont" and reading.aggregates == "unit":
        raise invalid(place, "a quantile inside a unit must be one of its values", "QUANTILE_DISC(x, q) or MEDIAN(x).")
    if name == "median":
        return _argument(core, rows), Fraction(1, 2)
    if order is not None:
        asked = take_arguments(core, rows.context, "this")[0]
        ordered = take_arguments(order, rows.context, "expressions")[0]
        if len(ordered) != 1:
            raise invalid(place, "WITHIN GROUP must be ordered by one expression")
        this, descending = take_arguments(ordered[0], rows.context, "this", "desc", ignored=("nulls_first",))
        q = _share(rows.of(asked), place)
        return _refuse_unit(rows.of(this), rows, place), 1 - q if descending else q
    if isinstance(core, exp.Anonymous):
        arguments = take_arguments(core, rows.context, "this", "expressions")[1] or []
    else:
        arguments = take_arguments(core, rows.context, "this", "quantile" if "quantile" in core.arg_types else "expression")
    if len(arguments) != 2 or arguments[1] is None or isinstance(arguments[0], exp.Distinct):
        raise invalid(place, "a quantile must be of an expression and a share", "QUANTILE(x, 0.9)")
    return _refuse_unit(rows.of(arguments[0]), rows, place), _share(rows.of(arguments[1]), place)


def _share(term: TypedTerm, place: Place | None) -> Fraction:
    share = typed_terms.fraction_of(term)
    if share is None or not 0 <= share <= 1:
        raise invalid(term.place or place, "the share of a quantile must be a number from 0 to 1 written here")
    return share


def _measure(
    name: str, argument: TypedTerm, q: Fraction | None, filters: list[TypedTerm], where: AggregateScope, place: Place | None
) -> TypedTerm:
    released = where == "released"
    if name in {"bool_and", "bool_or"}:
        if released:
            raise not_private(
                place, f"{name} over many people is decided by one of them", "COUNT_IF(x) with the number of rows."
            )
        condition = typed_terms.require_boolean(argument, f"what {name}() is of")
        return _aggregate_term(name, condition, filters, None, Type.BOOLEAN, place)
    if name in {"min", "max"} or q is not None:
        return _order_statistic(name, argument, q, filters, place, released=released)
    number = typed_terms.require_number(argument, f"what {name}() is of")
    if name in {"stddev", "stddev_pop"}:
        variance = _aggregate_term("var_samp" if name == "stddev" else "var_pop", number, filters, None, Type.FLOAT, place)
        return call_term("sqrt", Type.FLOAT, (variance,), nullable=True, place=place)
    entry = AGGREGATES[name]
    if not released and not entry.exact:
        raise invalid(place, f"{name}() must be over all rows; it has no exact form inside a unit")
    type_ = number.type if entry.keeps and not released else None
    return _aggregate_term(name, number, filters, None, type_ or Type.FLOAT, place)


def _order_statistic(
    name: str, argument: TypedTerm, q: Fraction | None, filters: list[TypedTerm], place: Place | None, *, released: bool
) -> TypedTerm:
    type_ = argument.type
    if type_ is None or not (type_.numeric or type_.temporal):
        raise invalid(
            argument.place or place, f"what {name}() is of must be a number or a date", "GROUP BY shows keys of any type."
        )
    if not released and q is None:
        return _aggregate_term(name, argument, filters, None, type_, place)
    share = q if q is not None else Fraction(int(name == "max"))
    return _aggregate_term("quantile", argument, filters, share, Type.FLOAT if released and type_.numeric else type_, place)


def _aggregate_term(
    function: str,
    argument: TypedTerm | None,
    filters: list[TypedTerm],
    q: Fraction | None,
    type_: Type,
    place: Place | None,
) -> TypedTerm:
    condition = conjoin(filters) if filters else None
    parts = [one for one in (argument, condition) if one is not None]
    node = Aggregate(
        function,
        None if argument is None else argument.row,
        type_,
        None if condition is None else condition.row,
        q,
        place,
    )
    return TypedTerm(
        node,
        type_,
        nullable=not AGGREGATES[function].counts,
        size=1 + sum(part.size for part in parts),
        depth=1 + max((part.depth for part in parts), default=0),
        aggregated=True,
    )
