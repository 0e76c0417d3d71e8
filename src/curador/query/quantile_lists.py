"""Several quantiles in one call: QUANTILE_CONT(x, [0.25, 0.5]), PERCENTILE_CONT(ARRAY[…]), APPROX_QUANTILES(x, 4).

A cell of an answer holds one number, with the ends of its interval beside it. So such an item becomes several columns, one
for each level, named after its alias: `q` becomes q_25 and q_50; without one, quantile_25 and quantile_50. What
APPROX_QUANTILES(x, 100)[OFFSET(90)] picks is one number and stays one column. ORDER BY and GROUP BY count columns as the
answer has them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from curador.query.messages import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from curador.query.context import Context, Reading
    from curador.query.typed_terms import TypedTerm

MOST_LEVELS = 100


def spread_lists(items: Iterable[exp.Expr], context: Context) -> list[exp.Expr]:
    """Return a SELECT list with one item for each level of its quantiles."""
    return [one for item in items for one in _spread(item, context)]


def _spread(item: exp.Expr, context: Context) -> list[exp.Expr]:
    inner = item.this if isinstance(item, exp.Alias) else item
    core = inner
    while isinstance(core, exp.Filter | exp.WithinGroup):
        core = core.this
    levels = _levels_of(core, context)
    if levels is None:
        return [item]
    name = item.alias if isinstance(item, exp.Alias) else "quantile"
    return [_at_level(inner, level, f"{name}_{_spelled(level)}") for level in levels]


def _levels_of(core: exp.Expr, context: Context) -> list[Fraction] | None:
    """Return the levels that a call asks for as a list; None where it asks for one."""
    if isinstance(core, exp.ApproxQuantiles):
        many = _parts_of(core, context)
        return [Fraction(number, many) for number in range(many + 1)]
    listed = _list_in(core)
    if listed is None:
        return None
    found = [_level(one) for one in listed.expressions]
    if not found or len(found) > MOST_LEVELS or None in found or len(set(found)) < len(found):
        rule = f"a list of quantiles must have 1 to {MOST_LEVELS} different numbers from 0 to 1, written here"
        raise invalid(context.place(core), rule, "QUANTILE_CONT(x, [0.25, 0.5, 0.75])")
    return [one for one in found if one is not None]


def _list_in(core: exp.Expr) -> exp.Array | None:
    if not isinstance(core, exp.PercentileCont | exp.PercentileDisc | exp.Quantile | exp.ApproxQuantile):
        return None
    return next((value for value in core.args.values() if isinstance(value, exp.Array)), None)


def _level(node: exp.Expr) -> Fraction | None:
    try:
        level = Fraction(node.name) if isinstance(node, exp.Literal) and len(node.name) < 20 else None
    except (ValueError, ZeroDivisionError):
        return None
    return level if level is not None and 0 <= level <= 1 else None


def _parts_of(core: exp.ApproxQuantiles, context: Context) -> int:
    many = core.expression
    text = many.name if isinstance(many, exp.Literal) and not many.is_string else ""
    if not text.isdecimal() or not 1 <= int(text) <= 1_000:
        raise invalid(context.place(core), "APPROX_QUANTILES must be of an expression and a number of parts from 1 to 1,000")
    return int(text)


def _at_level(inner: exp.Expr, level: Fraction, name: str) -> exp.Expr:
    copy = inner.copy()
    core = copy
    while isinstance(core, exp.Filter | exp.WithinGroup):
        core = core.this
    written = exp.Div(this=exp.Literal.number(level.numerator), expression=exp.Literal.number(level.denominator))
    if isinstance(core, exp.ApproxQuantiles):
        one = exp.Quantile(this=core.this.copy(), quantile=written)
        if core is copy:
            copy = one
        else:
            core.replace(one)
    else:
        (listed,) = (value for value in core.args.values() if isinstance(value, exp.Array))
        listed.replace(written)
    return exp.Alias(this=copy, alias=exp.to_identifier(name))


def _spelled(level: Fraction) -> str:
    """Return a level as a percentage in letters that a name may have: 25, 99_9."""
    return f"{float(100 * level):.6g}".replace(".", "_")


def pick_quantile(node: exp.Bracket, reading: Reading) -> TypedTerm | None:
    """Return APPROX_QUANTILES(x, 100)[OFFSET(90)] as one quantile; None where something else stands before the bracket."""
    core, places = node.this, node.expressions
    if not isinstance(core, exp.ApproxQuantiles):
        return None
    many, start = _parts_of(core, reading.context), int(node.args.get("offset") or 0)
    text = places[0].name if len(places) == 1 and isinstance(places[0], exp.Literal) else ""
    if not text.isdecimal() or not 0 <= int(text) - start <= many:
        raise invalid(reading.place(node), f"the place in APPROX_QUANTILES must be a whole number from 0 to {many}")
    level = exp.Div(this=exp.Literal.number(int(text) - start), expression=exp.Literal.number(many))
    return reading.of(exp.Quantile(this=core.this, quantile=level))
