"""From the parser's expressions to ours, by an allow-list: a class that is not in the table below does not exist."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import calls, casts, kinds, literals, times
from curador.query.aggregates import AGGREGATES, aggregate, released_name
from curador.query.messages import function_name, invalid, named, near, not_private, quoted
from curador.query.reading import Reading, taken
from curador.query.terms import Term, both, call, joined, literal, negated
from curador.query.windows import window
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Place


def read(node: exp.Expr | None, reading: Reading) -> Term:
    """Return the expression that a parsed one stands for; refuse whatever is not in the tables."""
    if node is None:
        raise invalid(None, f"an argument is missing in {reading.clause}")
    handler = HANDLERS.get(type(node))
    if handler is not None:
        return handler(node, reading)
    if isinstance(node, AGGREGATES) or (isinstance(node, exp.Anonymous) and released_name(node) is not None):
        return aggregate(node, reading)
    if isinstance(node, exp.Anonymous):
        return calls.by_name(node, reading)
    raise _unknown(node, reading)


def _unknown(node: exp.Expr, reading: Reading) -> Exception:
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
            f"{named(node, reading.context.text)} is not part of the language",
            "noise is added to the answer; no other chance is.",
        )
    if isinstance(node, exp.Interval):
        return invalid(place, "an interval must be added to a date or subtracted from one", "d + INTERVAL 3 DAY")
    if isinstance(node, exp.AggFunc):
        return not_private(
            place,
            f"{named(node, reading.context.text)} must be an aggregate with a known sensitivity; it is none",
            "COUNT, COUNT(DISTINCT), SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE, MIN, MAX.",
        )
    if isinstance(node, exp.Func):
        return invalid(
            place,
            f"the function {named(node, reading.context.text)} does not exist here",
            near(function_name(node, reading.context.text), calls.NAMES, "there are"),
        )
    return invalid(place, f"{named(node, reading.context.text)} is not part of the language")


def _column(node: exp.Column, reading: Reading) -> Term:
    this, table = taken(node, reading.context, "this", "table")
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
    others = () if reading.aliases is None else tuple(reading.aliases.items)
    raise reading.scope.unknown(name, place, others)


def _alias(name: str, reading: Reading, place: Place | None) -> Term | None:
    """Return the item of the SELECT list that has this name, read where it is used."""
    aliases = reading.aliases
    if aliases is None:
        return None
    key = name.lower()
    if key not in aliases.terms:
        item = aliases.items.get(key)
        if item is None or key in aliases.busy:
            return None
        aliases.busy.add(key)
        term = read(item, replace(reading, first="never"))
        aliases.busy.discard(key)
        aliases.terms[key] = term
    term = aliases.terms[key]
    if term.aggregated and reading.aggregates is None:
        raise invalid(
            place, f"{quoted(name)} holds an aggregate and must not stand in {reading.clause}", "HAVING may use it."
        )
    return term


def _literal(node: exp.Literal, reading: Reading) -> Term:
    place = reading.place(node)
    return literal(node.name, Type.STRING, place) if node.is_string else literals.number(node.name, place)


def _raw_string(node: exp.RawString, reading: Reading) -> Term:
    return literal(node.name, Type.STRING, reading.place(node))


def _null(node: exp.Null, reading: Reading) -> Term:
    return literal(None, None, reading.place(node))


def _boolean(node: exp.Boolean, reading: Reading) -> Term:
    return literal(bool(node.this), Type.BOOLEAN, reading.place(node))


def _paren(node: exp.Paren, reading: Reading) -> Term:
    return reading.of(taken(node, reading.context, "this")[0])


def _alias_node(node: exp.Alias, reading: Reading) -> Term:
    raise invalid(reading.place(node), "an alias must stand after an item of the SELECT list")


def operands(node: exp.Expr, kind: type[exp.Expr], reading: Reading) -> list[exp.Expr]:
    """Return the operands of a chain of ANDs or ORs, without recursion: chains are long."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        current = stack.pop()
        while isinstance(current, exp.Paren):
            current = current.this
        if type(current) is kind:
            left, right = taken(current, reading.context, "this", "expression")
            stack += [right, left]
        else:
            found.append(current)
    return found


def _connector(node: exp.Expr, reading: Reading) -> Term:
    word = "and" if isinstance(node, exp.And) else "or"
    parts = [kinds.boolean(reading.of(one), f"each side of {word.upper()}") for one in operands(node, type(node), reading)]
    return joined(word, parts)


def _not(node: exp.Not, reading: Reading) -> Term:
    return negated(kinds.boolean(reading.of(taken(node, reading.context, "this")[0]), "what NOT is said of"))


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def _comparison(node: exp.Expr, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression")
    left, right = kinds.aligned(reading.of(this), reading.of(expression), "a comparison")
    return call(_COMPARISONS[type(node)], Type.BOOLEAN, (left, right))


def _same(node: exp.Expr, reading: Reading) -> Term:
    """IS [NOT] DISTINCT FROM, with NULL a value like any other."""
    this, expression = taken(node, reading.context, "this", "expression")
    left, right = reading.of(this), reading.of(expression)
    if left.is_null or right.is_null:
        same = call("is_null", Type.BOOLEAN, (left if right.is_null else right,), nullable=False)
    else:
        left, right = kinds.aligned(left, right, "a comparison")
        nulls = [call("is_null", Type.BOOLEAN, (one,), nullable=False) for one in (left, right)]
        unequal = both(nulls) if left.nullable and right.nullable else literal(False, Type.BOOLEAN)
        same = call("coalesce", Type.BOOLEAN, (call("=", Type.BOOLEAN, (left, right)), unequal), nullable=False)
    return negated(same) if isinstance(node, exp.NullSafeNEQ) else same


def _is(node: exp.Is, reading: Reading) -> Term:
    this, expression, negate = taken(node, reading.context, "this", "expression", "negate")
    term = reading.of(this)
    if isinstance(expression, exp.Null):
        result = call("is_null", Type.BOOLEAN, (term,), nullable=False)
    elif isinstance(expression, exp.Boolean):
        condition = kinds.boolean(term, "what IS TRUE or IS FALSE is said of")
        asked = condition if expression.this else negated(condition)
        result = call("coalesce", Type.BOOLEAN, (asked, literal(False, Type.BOOLEAN)), nullable=False)
    else:
        raise invalid(reading.place(node), "IS must be followed by NULL, TRUE, FALSE or DISTINCT FROM")
    return negated(result) if negate else result


def _between(node: exp.Between, reading: Reading) -> Term:
    this, low, high = taken(node, reading.context, "this", "low", "high")
    term = reading.of(this)
    value, lower = kinds.aligned(term, reading.of(low), "BETWEEN")
    other, upper = kinds.aligned(term, reading.of(high), "BETWEEN")
    return both((call(">=", Type.BOOLEAN, (value, lower)), call("<=", Type.BOOLEAN, (other, upper))))


def _in(node: exp.In, reading: Reading) -> Term:
    if node.args.get("query") is not None:
        raise _unknown(node.args["query"], reading)
    this, expressions = taken(node, reading.context, "this", "expressions")
    if not expressions:
        raise invalid(reading.place(node), "IN must be followed by a list of values: IN (1, 2)")
    term = reading.of(this)
    if term.is_null:
        raise invalid(term.place, "a comparison with NULL is never true", "x IS NULL, x IS NOT NULL.")
    pairs = [kinds.aligned(term, reading.of(one), "IN") for one in expressions]
    if all(left is term and literals.value_of(value) is not None for left, value in pairs):
        return call("in", Type.BOOLEAN, (term, *(value for _, value in pairs)))
    return joined("or", [call("=", Type.BOOLEAN, pair) for pair in pairs])


def _case(node: exp.Case, reading: Reading) -> Term:
    this, ifs, default = taken(node, reading.context, "this", "ifs", "default")
    subject = None if this is None else reading.of(this)
    conditions: list[Term] = []
    values: list[Term] = []
    for one in ifs:
        condition, value = taken(one, reading.context, "this", "true")
        term = reading.of(condition)
        if subject is None:
            conditions.append(kinds.boolean(term, "what follows WHEN"))
        else:
            conditions.append(call("=", Type.BOOLEAN, kinds.aligned(subject, term, "CASE x WHEN y")))
        values.append(reading.of(value))
    values.append(literal(None, None) if default is None else reading.of(default))
    return _chosen(conditions, values, reading.place(node))


def _if(node: exp.If, reading: Reading) -> Term:
    this, true, false = taken(node, reading.context, "this", "true", "false")
    condition = kinds.boolean(reading.of(this), "the condition of IF")
    values = [reading.of(true), literal(None, None) if false is None else reading.of(false)]
    return _chosen([condition], values, reading.place(node))


def _chosen(conditions: list[Term], values: list[Term], place: Place | None) -> Term:
    type_, values = kinds.unified(values, "the values of CASE", place)
    arguments = [one for pair in zip(conditions, values, strict=False) for one in pair]
    return call("case", type_, [*arguments, values[-1]], nullable=any(one.nullable for one in values), place=place)


def _coalesce(node: exp.Coalesce, reading: Reading) -> Term:
    this, expressions = taken(node, reading.context, "this", "expressions", ignored=("is_nvl", "is_null"))
    terms = [reading.of(one) for one in (this, *(expressions or ()))]
    type_, terms = kinds.unified(terms, "the values of COALESCE", reading.place(node))
    if len(terms) == 1:
        return terms[0]
    return call("coalesce", type_, terms, nullable=all(one.nullable for one in terms), place=reading.place(node))


def _nullif(node: exp.Nullif, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression")
    left, right = kinds.aligned(reading.of(this), reading.of(expression), "NULLIF")
    return call("nullif", left.type or Type.STRING, (left, right), nullable=True, place=reading.place(node))


def _arithmetic(node: exp.Expr, reading: Reading) -> Term:
    this, expression = taken(node, reading.context, "this", "expression", ignored=("typed", "safe"))
    moved = times.moved(node, this, expression, reading)
    if moved is not None:
        return moved
    left, right = reading.of(this), reading.of(expression)
    function = _ARITHMETIC[type(node)]
    difference = times.difference(function, left, right, reading)
    if difference is not None:
        return difference
    left, right = (kinds.numeric(one, f"each side of {function}") for one in (left, right))
    integers = left.type is right.type is Type.INTEGER
    if function == "/" and integers and node.args.get("typed"):
        function = "//"  # dialects in which 7 / 2 is 3
    return arithmetic(function, left, right, reading.place(node))


_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
}


def arithmetic(function: str, left: Term, right: Term, place: Place | None) -> Term:
    """Return an operation on two numbers, done at once where both are known."""
    done = literals.folded(function, left, right, place)
    if done is not None:
        return done
    integers = left.type is right.type is Type.INTEGER
    type_ = Type.INTEGER if integers and function != "/" else Type.FLOAT
    nullable = True if function in {"/", "//", "%"} else None
    return call(function, type_, (left, right), nullable=nullable)


def _neg(node: exp.Neg, reading: Reading) -> Term:
    term = kinds.numeric(reading.of(taken(node, reading.context, "this")[0]), "what − is said of")
    number = literals.fraction_of(term)
    if number is not None and term.type is not None:
        whole = number.denominator == 1 and -number == -(2**63)  # the one integer whose positive twin needs 65 bits
        return literals.checked(-number, Type.INTEGER if whole else term.type, term.place)
    return call("neg", term.type or Type.FLOAT, (term,))


def _grouping(node: exp.Grouping, reading: Reading) -> Term:
    """GROUPING(a, b): a bit for each key, 1 where the grouping set leaves it out."""
    bits = 0
    for one in taken(node, reading.context, "expressions")[0]:
        key = reading.keys.get(reading.of(one).node)
        if key is None:
            raise invalid(reading.place(one), "GROUPING must be of keys of GROUP BY")
        bits = 2 * bits + (key in reading.absent)
    return literal(bits, Type.INTEGER, reading.place(node))


HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], Term]] = {
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
    exp.Window: window,
    exp.Grouping: _grouping,
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **calls.HANDLERS,
    **casts.HANDLERS,
    **times.HANDLERS,
}
"""The allow-list of scalar expressions."""
