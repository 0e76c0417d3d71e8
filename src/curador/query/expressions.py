"""From the parser's expressions to ours, by an allow-list: a class that is not in the table below does not exist.

Window functions are read here too; they must stay inside a unit: they are partitioned by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp

from curador.query import calls, typed_terms
from curador.query.aggregates import AGGREGATE_CLASSES, aggregate_name, read_aggregate
from curador.query.context import UNIT, Reading, take_arguments
from curador.query.messages import invalid, not_private, quote_name, suggest_names
from curador.query.text import function_name, name_node
from curador.query.tree import Out, WindowCall
from curador.query.typed_terms import TypedTerm, call_term, column_term, conjoin, connect, literal_term, negate_term
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Expression, Place, WindowName


# ---- windows ---------------------------------------------------------------------------------------------------------------


_WINDOW_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Avg: "avg",
    exp.Lag: "lag",
    exp.Lead: "lead",
}
_RANKS = {"row_number", "rank", "dense_rank"}
_MOST_OFFSET = 1_000

Ordering = tuple[tuple["Expression", bool, bool], ...]


def read_window(node: exp.Window, reading: Reading) -> TypedTerm:
    """Return the column that a window function makes, and note the function for the relation below."""
    place = reading.place(node)
    if reading.windows is None:
        raise not_private(
            place,
            f"a window function must stand in the SELECT list of a subquery in FROM, not in {reading.clause}",
            "SELECT … FROM (SELECT *, row_number() OVER (PARTITION BY … ORDER BY x) AS r FROM t) WHERE r = 1.",
        )
    this, partition, order, spec = take_arguments(
        node, reading.context, "this", "partition_by", "order", "spec", ignored=("over",)
    )
    function = _WINDOW_FUNCTIONS.get(type(this))
    if function is None:
        raise invalid(
            place,
            f"{name_node(this, reading.context.text)} must not stand before OVER",
            f"{', '.join(_WINDOW_FUNCTIONS.values())}.",
        )
    rows = reading.inside("a window")
    others = _partition(partition or [], rows, place)
    ordering = _read_order(order, rows)
    argument, offset = _argument(this, function, rows)
    whole = _frame(spec, function, ordered=bool(ordering), reading=rows, place=place)
    type_ = _type(function, argument)
    asked = WindowCall(
        cast("WindowName", function),
        None if argument is None else argument.row,
        others,
        ordering,
        type_,
        whole,
        offset,
        place,
    )
    if asked not in reading.windows.calls:
        reading.windows.calls.append(asked)
    index = reading.windows.width + reading.windows.calls.index(asked)
    return column_term(index, Out(function, type_, nullable=function not in _RANKS | {"count"}), place)


def _partition(nodes: list[exp.Expr], rows: Reading, place: Place | None) -> tuple[Expression, ...]:
    """Return what the partition has besides the unit."""
    terms = [rows.of(node) for node in nodes]
    identities = [rows.context.identity(one.column) for one in terms]
    certain = any(one.column is not None and one.column.unit for one in terms)
    if not certain and not any(identity is not None and identity != UNIT for identity in identities):
        raise not_private(
            place,
            "a window must be partitioned by the unit: rows of one person must not depend on another's",
            f"PARTITION BY {rows.context.unit}",
        )
    others: list[Expression] = []
    for term in terms:
        if term.column is not None and term.column.unit:
            continue
        if term.unit:
            raise not_private(term.place, "a partition must have the unit as a bare column")
        others.append(term.row)
    return tuple(others)


def _read_order(order: exp.Order | None, rows: Reading) -> Ordering:
    if order is None:
        return ()
    found: list[tuple[Expression, bool, bool]] = []
    for sort in take_arguments(order, rows.context, "expressions")[0]:
        this, descending, first = take_arguments(sort, rows.context, "this", "desc", "nulls_first")
        term = rows.of(this)
        if typed_terms.value_of(term) is not None or term.is_null:
            raise invalid(term.place, "a window must be ordered by columns")
        if term.unit:
            raise not_private(term.place, "a window must not be ordered by the unit, which is the same in all its rows")
        found.append((term.row, bool(descending), bool(first)))
    return tuple(found)


def _argument(this: exp.Expr, function: str, rows: Reading) -> tuple[TypedTerm | None, int]:
    place = rows.place(this)
    if function in _RANKS:
        take_arguments(this, rows.context)
        return None, 1
    if function in {"lag", "lead"}:
        inner, offset = take_arguments(this, rows.context, "this", "offset")
        step = 1 if offset is None else typed_terms.value_of(rows.of(offset))
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= _MOST_OFFSET:
            raise invalid(place, f"the offset of {function} must be a whole number from 0 to {_MOST_OFFSET:,}")
        return _row_term(inner, rows), step
    inner: Any = take_arguments(this, rows.context, "this", ignored=("big_int",))[0]
    if function == "count" and (inner is None or isinstance(inner, exp.Star)):
        return None, 1
    if isinstance(inner, exp.Distinct):
        raise invalid(place, "DISTINCT must not stand in a window")
    term = _row_term(inner, rows)
    if function == "count":
        return (None if typed_terms.value_of(term) is not None else term), 1
    if function in {"sum", "avg"}:
        return typed_terms.require_number(term, f"what {function}() is of"), 1
    if term.type is None or not (term.type.numeric or term.type.temporal):
        raise invalid(place, f"what {function}() is of must be a number or a date")
    return term, 1


def _row_term(node: exp.Expr, rows: Reading) -> TypedTerm:
    term = rows.of(node)
    if term.unit:
        raise not_private(term.place, "a window must not be computed over the unit")
    if term.type is None:
        raise invalid(term.place, "a window must be computed over a column")
    return term


def _frame(spec: exp.WindowSpec | None, function: str, *, ordered: bool, reading: Reading, place: Place | None) -> bool:
    """Return whether an aggregate is over the whole partition; False for one that runs up to its row."""
    if function in _RANKS | {"lag", "lead"}:
        if spec is not None:
            raise invalid(place, f"{function} must have no frame")
        return False
    if spec is None:
        return not ordered
    kind, *rest = take_arguments(spec, reading.context, "kind", "start", "start_side", "end", "end_side")
    start, start_side, end, end_side = (str(one or "").upper() for one in rest)
    if str(kind).upper() in {"ROWS", "RANGE"} and (start, start_side) == ("UNBOUNDED", "PRECEDING"):
        if end in {"CURRENT ROW", ""} and ordered:
            return False
        if (end, end_side) == ("UNBOUNDED", "FOLLOWING"):
            return True
    raise invalid(
        place,
        "a frame must run from the first row to this one or to the last",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, with ORDER BY.",
    )


def _type(function: str, argument: TypedTerm | None) -> Type:
    if argument is None or function == "count":
        return Type.INTEGER
    if function == "avg":
        return Type.FLOAT
    return argument.type or Type.FLOAT


# ---- expressions -----------------------------------------------------------------------------------------------------------


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
        return not_private(
            place,
            "a subquery must stand in FROM, or be a condition of its own in WHERE",
            "x IN (SELECT y FROM a public table), EXISTS (SELECT 1 FROM t WHERE t.unit = unit); join it otherwise.",
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
            "COUNT, COUNT(DISTINCT), SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE, MIN, MAX.",
        )
    if isinstance(node, exp.Func):
        return invalid(
            place,
            f"the function {name_node(node, reading.context.text)} does not exist here",
            suggest_names(function_name(node, reading.context.text), calls.FUNCTION_NAMES, "there are"),
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


def _case(node: exp.Case, reading: Reading) -> TypedTerm:
    this, ifs, default = take_arguments(node, reading.context, "this", "ifs", "default")
    subject = None if this is None else reading.of(this)
    conditions: list[TypedTerm] = []
    values: list[TypedTerm] = []
    for branch in ifs:
        condition, value = take_arguments(branch, reading.context, "this", "true")
        term = reading.of(condition)
        if subject is None:
            conditions.append(typed_terms.require_boolean(term, "what follows WHEN"))
        else:
            conditions.append(call_term("=", Type.BOOLEAN, typed_terms.align_types(subject, term, "CASE x WHEN y")))
        values.append(reading.of(value))
    values.append(literal_term(None, None) if default is None else reading.of(default))
    return _choose(conditions, values, reading.place(node))


def _if(node: exp.If, reading: Reading) -> TypedTerm:
    this, true, false = take_arguments(node, reading.context, "this", "true", "false")
    condition = typed_terms.require_boolean(reading.of(this), "the condition of IF")
    values = [reading.of(true), literal_term(None, None) if false is None else reading.of(false)]
    return _choose([condition], values, reading.place(node))


def _choose(conditions: list[TypedTerm], values: list[TypedTerm], place: Place | None) -> TypedTerm:
    type_, values = typed_terms.unify_types(values, "the values of CASE", place)
    arguments = [one for pair in zip(conditions, values, strict=False) for one in pair]
    return call_term("case", type_, [*arguments, values[-1]], nullable=any(value.nullable for value in values), place=place)


def _coalesce(node: exp.Coalesce, reading: Reading) -> TypedTerm:
    this, expressions = take_arguments(node, reading.context, "this", "expressions", ignored=("is_nvl", "is_null"))
    terms = [reading.of(one) for one in (this, *(expressions or ()))]
    type_, terms = typed_terms.unify_types(terms, "the values of COALESCE", reading.place(node))
    if len(terms) == 1:
        return terms[0]
    return call_term("coalesce", type_, terms, nullable=all(term.nullable for term in terms), place=reading.place(node))


def _nullif(node: exp.Nullif, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    left, right = typed_terms.align_types(reading.of(this), reading.of(expression), "NULLIF")
    return call_term("nullif", left.type or Type.STRING, (left, right), nullable=True, place=reading.place(node))


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
    integers = left.type is right.type is Type.INTEGER
    if function == "/" and integers and node.args.get("typed"):
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
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Neg: _neg,
    exp.Window: read_window,
    exp.Grouping: _grouping,
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_ARITHMETIC, _read_arithmetic),
    **calls.CALL_HANDLERS,
    **calls.CAST_HANDLERS,
    **calls.TIME_HANDLERS,
}
"""The allow-list of scalar expressions."""
