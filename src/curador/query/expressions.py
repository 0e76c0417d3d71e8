"""From the parser's expressions to ours, by an allow-list: a class that is not in the tables below does not exist.

Aggregates stand over the rows of a release, where noise will be added, or are exact and inside one unit.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast

from sqlglot import exp

from curador.query import calls, typed_terms
from curador.query.choices import CHOICE_HANDLERS
from curador.query.context import Reading, take_arguments
from curador.query.functions import AGGREGATES, CALLED_AGGREGATES
from curador.query.messages import invalid, not_private, quote_name
from curador.query.moments import PAIRED, both_there, relate_columns
from curador.query.quantile_lists import pick_quantile
from curador.query.replacements import replace_function
from curador.query.spellings import SPELLED_HANDLERS, is_whole
from curador.query.text import function_name, name_node
from curador.query.tree import Aggregate
from curador.query.typed_terms import TypedTerm, call_term, conjoin, connect, literal_term, negate_term, not_null
from curador.query.unit_counts import condition_of_unit
from curador.query.windows import read_window
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Place


def read_expression(node: exp.Expr | None, reading: Reading) -> TypedTerm:
    """Return the expression that a parsed one stands for; refuse whatever is not in the tables."""
    if node is None:
        raise invalid(None, f"an argument is missing in {reading.clause}")
    handler = HANDLERS.get(type(node))
    if handler is not None:
        return handler(node, reading)
    if isinstance(node, AGGREGATE_CLASSES) or (isinstance(node, exp.Anonymous) and aggregate_name(node) is not None):
        return read_aggregate(node, reading)
    if isinstance(node, exp.Anonymous):
        return calls.read_by_name(node, reading)
    raise _unknown_refusal(node, reading)


def _unknown_refusal(node: exp.Expr, reading: Reading) -> Exception:
    place = reading.place(node)
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) and isinstance(node.this, exp.Expr):
        node = node.this  # how ANY_VALUE arrives
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        if isinstance(node.parent, exp.In):
            return not_private(
                place,
                "IN (SELECT …) must be a condition of its own in WHERE",
                "join the table in FROM; its columns may stand in any condition.",
            )
        if isinstance(node, exp.Exists):
            return not_private(
                place,
                "EXISTS must be a condition of its own in WHERE",
                "EXISTS (SELECT 1 FROM t WHERE t.unit = unit), after WHERE or AND; or join it.",
            )
        return not_private(
            place,
            "a scalar subquery must not be compared with people's rows: it would need its exact value",
            "ask for it, then write the number.",
        )
    if isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime | exp.Localtime | exp.Localtimestamp):
        return invalid(place, "the time of asking is not part of the language", "write the date: DATE '2024-12-31'.")
    if isinstance(node, exp.Rand | exp.Randn | exp.Uuid):
        return invalid(
            place,
            f"{name_node(node, reading.context.text)} is not part of the language",
            "noise is added to the answer; no other chance is.",
        )
    if isinstance(node, exp.Interval):
        return invalid(place, "an interval must be added to a date or subtracted from one", "d + INTERVAL 3 DAY")
    if isinstance(node, exp.AggFunc):
        return not_private(
            place,
            f"{name_node(node, reading.context.text)} must be an aggregate with a known sensitivity; it is none",
            replace_function(function_name(node, reading.context.text), ())
            or "COUNT(*), COUNT(DISTINCT x), SUM(x), AVG(x), VARIANCE(x), MEDIAN(x), QUANTILE(x, 0.9), MIN(x), MAX(x).",
        )
    if isinstance(node, exp.Func):
        return invalid(
            place,
            f"the function {name_node(node, reading.context.text)} does not exist here",
            replace_function(function_name(node, reading.context.text), calls.FUNCTION_NAMES),
        )
    return invalid(place, f"{name_node(node, reading.context.text)} is not part of the language")


def _column(node: exp.Column, reading: Reading) -> TypedTerm:
    this, table = take_arguments(node, reading.context, "this", "table")
    place = reading.place(node)
    if not isinstance(this, exp.Identifier):
        raise invalid(place, "* must stand alone in a SELECT list or in COUNT(*)")
    name = this.name
    if table is None and reading.first == "always":
        alias = _alias(name, reading, place)
        if alias is not None:
            return alias
    found = reading.scope.find(None if table is None else table.name, name, place)
    if found is not None and (reading.first != "unless key" or table is not None or found.node in reading.keys):
        return found
    if table is None:
        alias = _alias(name, reading, place)
        if alias is not None:
            return alias
    if found is not None:
        return found
    raise reading.scope.unknown(name, place, reading.aliases)


def _alias(name: str, reading: Reading, place: Place | None) -> TypedTerm | None:
    """Return the item of the SELECT list that has this name, read where it is used."""
    key = name.lower()
    if key not in reading.known:
        item = reading.aliases.get(key)
        if item is None:
            return None
        reading.known[key] = None  # inside itself it means something else
        reading.known[key] = read_expression(item, replace(reading, first="never"))
    term = reading.known[key]
    if term is None:
        return None
    if term.aggregated and reading.aggregates is None:
        raise invalid(
            place, f"{quote_name(name)} holds an aggregate and must not stand in {reading.clause}", "HAVING may use it."
        )
    return term


def _literal(node: exp.Literal, reading: Reading) -> TypedTerm:
    place = reading.place(node)
    return literal_term(node.name, Type.STRING, place) if node.is_string else typed_terms.parse_number(node.name, place)


def _raw_string(node: exp.RawString, reading: Reading) -> TypedTerm:
    return literal_term(node.name, Type.STRING, reading.place(node))


def _null(node: exp.Null, reading: Reading) -> TypedTerm:
    return literal_term(None, None, reading.place(node))


def _boolean(node: exp.Boolean, reading: Reading) -> TypedTerm:
    return literal_term(bool(node.this), Type.BOOLEAN, reading.place(node))


def _paren(node: exp.Paren, reading: Reading) -> TypedTerm:
    return reading.of(take_arguments(node, reading.context, "this")[0])


def _alias_node(node: exp.Alias, reading: Reading) -> TypedTerm:
    raise invalid(reading.place(node), "an alias must stand after an item of the SELECT list")


def operands_of(node: exp.Expr, kind: type[exp.Expr], reading: Reading) -> list[exp.Expr]:
    """Return the operands of a chain of ANDs or ORs, without recursion: chains are long."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        current = stack.pop()
        while isinstance(current, exp.Paren):
            current = current.this
        if type(current) is kind:
            left, right = take_arguments(current, reading.context, "this", "expression")
            stack += [right, left]
        else:
            found.append(current)
    return found


def _connector(node: exp.Expr, reading: Reading) -> TypedTerm:
    word = "and" if isinstance(node, exp.And) else "or"
    parts = [
        typed_terms.require_boolean(reading.of(operand), f"each side of {word.upper()}")
        for operand in operands_of(node, type(node), reading)
    ]
    return connect(word, parts)


def _not(node: exp.Not, reading: Reading) -> TypedTerm:
    return negate_term(
        typed_terms.require_boolean(reading.of(take_arguments(node, reading.context, "this")[0]), "what NOT is said of")
    )


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def _comparison(node: exp.Expr, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    left, right = typed_terms.align_types(reading.of(this), reading.of(expression), "a comparison")
    return call_term(_COMPARISONS[type(node)], Type.BOOLEAN, (left, right))


def _same(node: exp.Expr, reading: Reading) -> TypedTerm:
    """IS [NOT] DISTINCT FROM, with NULL a value like any other."""
    this, expression = take_arguments(node, reading.context, "this", "expression")
    left, right = reading.of(this), reading.of(expression)
    if left.is_null or right.is_null:
        same = call_term("is_null", Type.BOOLEAN, (left if right.is_null else right,), nullable=False)
    else:
        left, right = typed_terms.align_types(left, right, "a comparison")
        nulls = [call_term("is_null", Type.BOOLEAN, (one,), nullable=False) for one in (left, right)]
        unequal = conjoin(nulls) if left.nullable and right.nullable else literal_term(False, Type.BOOLEAN)
        same = call_term("coalesce", Type.BOOLEAN, (call_term("=", Type.BOOLEAN, (left, right)), unequal), nullable=False)
    return negate_term(same) if isinstance(node, exp.NullSafeNEQ) else same


def _is(node: exp.Is, reading: Reading) -> TypedTerm:
    this, expression, negate = take_arguments(node, reading.context, "this", "expression", "negate")
    term = reading.of(this)
    if isinstance(expression, exp.Null):
        result = call_term("is_null", Type.BOOLEAN, (term,), nullable=False)
    elif isinstance(expression, exp.Boolean):
        condition = typed_terms.require_boolean(term, "what IS TRUE or IS FALSE is said of")
        asked = condition if expression.this else negate_term(condition)
        result = call_term("coalesce", Type.BOOLEAN, (asked, literal_term(False, Type.BOOLEAN)), nullable=False)
    else:
        raise invalid(reading.place(node), "IS must be followed by NULL, TRUE, FALSE or DISTINCT FROM")
    return negate_term(result) if negate else result


def _between(node: exp.Between, reading: Reading) -> TypedTerm:
    this, low, high = take_arguments(node, reading.context, "this", "low", "high")
    term = reading.of(this)
    value, lower = typed_terms.align_types(term, reading.of(low), "BETWEEN")
    other, upper = typed_terms.align_types(term, reading.of(high), "BETWEEN")
    return conjoin((call_term(">=", Type.BOOLEAN, (value, lower)), call_term("<=", Type.BOOLEAN, (other, upper))))


def _in(node: exp.In, reading: Reading) -> TypedTerm:
    if node.args.get("query") is not None:
        raise _unknown_refusal(node.args["query"], reading)
    this, expressions = take_arguments(node, reading.context, "this", "expressions")
    if not expressions:
        raise invalid(reading.place(node), "IN must be followed by a list of values: IN (1, 2)")
    term = reading.of(this)
    if term.is_null:
        raise invalid(term.place, "a comparison with NULL is never true", "x IS NULL, x IS NOT NULL.")
    pairs = [typed_terms.align_types(term, reading.of(expression), "IN") for expression in expressions]
    if all(left is term and typed_terms.value_of(value) is not None for left, value in pairs):
        return call_term("in", Type.BOOLEAN, (term, *(value for _, value in pairs)))
    return connect("or", [call_term("=", Type.BOOLEAN, pair) for pair in pairs])


def _read_arithmetic(node: exp.Expr, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression", ignored=("typed", "safe"))
    moved = calls.move_by_interval(node, this, expression, reading)
    if moved is not None:
        return moved
    left, right = reading.of(this), reading.of(expression)
    function = _ARITHMETIC[type(node)]
    difference = calls.compute_with_dates(function, left, right, reading)
    if difference is not None:
        return difference
    left, right = (typed_terms.require_number(one, f"each side of {function}") for one in (left, right))
    if function == "/" and node.args.get("typed") and is_whole(left.node) and is_whole(right.node):
        function = "//"  # dialects in which 7 / 2 is 3
    return apply_arithmetic(function, left, right, reading.place(node))


_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
}


def apply_arithmetic(function: str, left: TypedTerm, right: TypedTerm, place: Place | None) -> TypedTerm:
    """Return an operation on two numbers, done at once where both are known."""
    done = typed_terms.fold_arithmetic(function, left, right, place)
    if done is not None:
        return done
    integers = left.type is right.type is Type.INTEGER
    type_ = Type.INTEGER if integers and function != "/" else Type.FLOAT
    nullable = True if function in {"/", "//", "%"} else None
    return call_term(function, type_, (left, right), nullable=nullable)


def _bracket(node: exp.Bracket, reading: Reading) -> TypedTerm:
    found = pick_quantile(node, reading)
    if found is None:
        raise _unknown_refusal(node, reading)
    return found


def _neg(node: exp.Neg, reading: Reading) -> TypedTerm:
    term = typed_terms.require_number(reading.of(take_arguments(node, reading.context, "this")[0]), "what − is said of")
    number = typed_terms.fraction_of(term)
    if number is not None and term.type is not None:
        whole = number.denominator == 1 and -number == -(2**63)  # the one integer whose positive twin needs 65 bits
        return typed_terms.number_term(-number, Type.INTEGER if whole else term.type, term.place)
    return call_term("neg", term.type or Type.FLOAT, (term,))


def _grouping(node: exp.Grouping, reading: Reading) -> TypedTerm:
    """GROUPING(a, b): a bit for each key, 1 where the grouping set leaves it out."""
    bits = 0
    for argument in take_arguments(node, reading.context, "expressions")[0]:
        key = reading.keys.get(reading.of(argument).node)
        if key is None:
            raise invalid(reading.place(argument), "GROUPING must be of keys of GROUP BY")
        bits = 2 * bits + (key in reading.absent)
    return literal_term(bits, Type.INTEGER, reading.place(node))


# ---- aggregates ------------------------------------------------------------------------------------------------------------


AggregateScope = Literal["released", "unit", "above"]

_AGGREGATES_BY_CLASS: dict[type[exp.Expr], str] = {
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
    **{getattr(exp, parsed): name for parsed, name in PAIRED.items()},
}
AGGREGATE_CLASSES = (*_AGGREGATES_BY_CLASS, exp.Filter, exp.WithinGroup)
"""The allow-list of aggregates, by class."""


def aggregate_name(node: exp.Anonymous) -> str | None:
    """Return which aggregate a function is that the parser knows by name only."""
    return CALLED_AGGREGATES.get(str(node.this).lower())


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
    name = CALLED_AGGREGATES[str(core.this).lower()] if isinstance(core, exp.Anonymous) else _AGGREGATES_BY_CLASS[type(core)]
    if order is not None and not name.startswith("quantile"):
        raise invalid(place, "WITHIN GROUP must follow PERCENTILE_CONT or PERCENTILE_DISC")
    if name.startswith("count") or name == "approx_count_distinct":
        return _count(core, name, filters, reading, rows)
    if name in PAIRED.values():
        return _pair(core, name, filters, reading, rows)
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
    if type(node) not in _AGGREGATES_BY_CLASS and not known_name:
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
    inner: Any = take_arguments(core, rows.context, "this", ignored=("big_int", "zero_on_all_null"))[0]
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
    chosen = condition_of_unit(term, rows.scope.rows.columns) if term.unit else None
    if chosen is not None and not (distinct and where == "unit"):
        return _aggregate_term("count_units" if distinct else "count", None, [*filters, chosen], None, Type.INTEGER, place)
    _refuse_unit(term, rows, place)
    if distinct:
        if typed_terms.value_of(term) is not None:
            raise invalid(place, "COUNT(DISTINCT …) must be of an expression over columns")
        return _aggregate_term("count_distinct", term, filters, None, Type.INTEGER, place)
    always = typed_terms.value_of(term) is not None  # COUNT(1)
    return _aggregate_term("count", None if always else term, filters, None, Type.INTEGER, place)


def _pair(core: exp.Expr, name: str, filters: list[TypedTerm], reading: Reading, rows: Reading) -> TypedTerm:
    place = reading.place(core)
    if reading.aggregates == "unit":
        raise invalid(place, f"{name}() must be over all rows; it has no exact form inside a unit")
    given = take_arguments(core, rows.context, "this", "expression")
    y, x = (_refuse_unit(typed_terms.require_number(rows.of(one), f"what {name}() is of"), rows, place) for one in given)
    both = [*filters, *both_there(y, x)]

    def measure(function: str, argument: TypedTerm | None) -> TypedTerm:
        type_ = Type.INTEGER if argument is None else Type.FLOAT
        return _aggregate_term(function, argument, both, None, type_, place)

    return relate_columns(name, y, x, measure, place)


def _quantile(
    core: exp.Expr, name: str, order: exp.Order | None, reading: Reading, rows: Reading
) -> tuple[TypedTerm, Fraction | None]:
    place = reading.place(core)
    if name == "quantile_cont" and reading.aggregates == "unit":
        raise invalid(place, "a quantile inside a unit must be one of its values", "QUANTILE_DISC(x, 0.9) or MEDIAN(x).")
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
    if where == "above" and name not in {"sum", "avg", "min", "max"}:
        raise invalid(
            place,
            f"{name}() must not be over released rows",
            "COUNT, SUM, AVG, MIN and MAX of released values; or ask for it.",
        )
    if where == "above" and name == "avg":
        return _aggregate_term(
            name, typed_terms.require_number(argument, "what avg() is of"), filters, None, Type.FLOAT, place
        )
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
    if released and type_.temporal:
        days = calls.count_borders("day", literal_term(dt.date(1970, 1, 1), Type.DATE), argument, place)
        found = _aggregate_term("quantile", days, filters, share, Type.FLOAT, place)
        return call_term("from_days", Type.DATE, (found,), nullable=True, place=place)
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


# ---- the allow-list of scalar expressions ----------------------------------------------------------------------------------


HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], TypedTerm]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.RawString: _raw_string,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Paren: _paren,
    exp.Alias: _alias_node,
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: _not,
    exp.NullSafeEQ: _same,
    exp.NullSafeNEQ: _same,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Neg: _neg,
    exp.Bracket: _bracket,
    exp.Window: read_window,
    exp.Grouping: _grouping,
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_ARITHMETIC, _read_arithmetic),
    **calls.CALL_HANDLERS,
    **calls.CAST_HANDLERS,
    **calls.TIME_HANDLERS,
    **SPELLED_HANDLERS,
    **CHOICE_HANDLERS,
}
"""The allow-list of scalar expressions."""
