"""Aggregates and windows inside one unit: exact and free of order, so that nobody else's rows can be felt in them.

Sums are of integers. A whole number is summed as it is; any other is first put on its column's declared grid, or, where
nothing is declared, on steps of 2⁻²⁰ up to ±2⁶² of them. What is then computed from the sums is one expression of exact
integers. Variances use narrower integers, |v| ≤ 2⁴⁵, so that no number of rows below 2³⁴ can overflow 127 bits; without
declared bounds their steps are 2⁻¹⁵.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from curador.engines.lower import terms
from curador.engines.lower.aggregates import ExactParts
from curador.engines.lower.expression import Expressions
from curador.engines.lower.grid import Layers, Steps, steps_of
from curador.engines.lower.sql import commas, rows_of, select
from curador.engines.lower.terms import LoweredTerm
from curador.plan.model import column_grid
from curador.plan.ownership import is_unit
from curador.query.tree import Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.engines.lower.dialect import Dialect
    from curador.engines.lower.relation import LoweredRelation
    from curador.query.tree import Expression, Relation, UnitGroup, Window, WindowCall
    from curador.study.model import Schema

_WIDE = Steps(-20, 0, -(1 << 62), 1 << 62)
_NARROW = Steps(-15, 0, -(1 << 45), 1 << 45)
_NARROW_WHOLE = Steps(0, 0, -(1 << 45), 1 << 45)
_FAR = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Inside:
    """What lowers the parts of one grouped or windowed relation."""

    expressions: Expressions
    layers: Layers
    relation: Relation
    schema: Schema

    @property
    def dialect(self) -> Dialect:
        return self.layers.dialect

    def value(self, expression: Expression, type_: Type | None = None) -> str:
        """Return the column that holds an expression's value."""
        return self.layers.column(self.expressions.text(expression, type_))

    def integers(self, expression: Expression, *, narrow: bool = False) -> tuple[str, Steps | None]:
        """Return the column of integers that stand for an expression, and their steps; None: the numbers themselves."""
        term = self.expressions.term(expression)
        if term.type is Type.INTEGER:
            if narrow:
                return self.layers.on_grid(term, _NARROW_WHOLE), _NARROW_WHOLE
            return self.layers.column(terms.value(term, self.dialect).sql), None
        steps = self._declared(expression) or (_NARROW if narrow else _WIDE)
        return self.layers.on_grid(terms.of_type(term, Type.FLOAT, self.dialect), steps), steps

    def _declared(self, expression: Expression) -> Steps | None:
        source = self.relation.columns[expression.index].source if isinstance(expression, Ref) else None
        table = None if source is None else self.schema.table(source[0])
        declared = None if source is None or table is None else table.table.column(source[1])
        grid = None if declared is None else column_grid(declared)
        return None if grid is None else steps_of(grid)

    def total(self, total: str, count: str, steps: Steps | None) -> LoweredTerm:
        """Return Σx from Σv and the number of v."""
        if steps is None:
            return LoweredTerm(self.dialect.whole(total), Type.INTEGER)
        text = f"{self.double(total)} * {self.dialect.double(steps.step)}"
        if steps.start:
            text = f"{text} + {self.double(count)} * {self.dialect.double(steps.offset)}"
        return LoweredTerm(f"({text})", Type.FLOAT)

    def mean(self, total: str, count: str, steps: Steps | None) -> LoweredTerm:
        """Return Σx/n from Σv and the number of v: one division of exact integers."""
        text = f"{self.double(total)} / {self.double(count)}"
        if steps is not None:
            text = f"{text} * {self.dialect.double(steps.step)}"
            if steps.start:
                text = f"{text} + {self.dialect.double(steps.offset)}"
        return LoweredTerm(f"({text})", Type.FLOAT)

    def double(self, integer: str) -> str:
        """Return an exact integer as a double: the one conversion."""
        return f"CAST({integer} AS {self.dialect.type(Type.FLOAT)})"


# ---- GROUP BY the unit ---------------------------------------------------------------------------------------------


def unit_group(group: UnitGroup, below: LoweredRelation, schema: Schema, dialect: Dialect) -> tuple[str, tuple[Type, ...]]:
    """Return the SELECT of one row for each unit and combination of other keys, and the types of its order columns.

    The unit itself is never what is grouped by: `__u` is. A column that holds it may be NULL after an outer join.
    """
    inside = _Inside(Expressions(below.column_names, dialect), Layers(dialect, ["__u", "__h"]), group.input, schema)
    columns: list[str] = []
    grouped: list[str] = []
    orders: list[tuple[str, Type]] = []
    for place, key in enumerate(group.keys):
        type_ = group.columns[place].type
        name = inside.value(key, type_)
        if is_unit(key, group.input):
            columns.append(f"MIN({name}) AS c{place}")
        else:
            columns.append(f"{name} AS c{place}")
            orders.append((f"c{place} AS __o{len(orders)}", type_))
            grouped.append(name)
    parts = ExactParts(inside, {})
    outs = group.columns[len(group.keys) :]
    results = [
        f"{terms.of_type(parts.lower(aggregate), out.type, dialect).sql} AS c{len(group.keys) + place}"
        for place, (aggregate, out) in enumerate(zip(group.aggregates, outs, strict=True))
    ]
    rows = inside.layers.select(below.sql)
    exact = [*columns, *(f"{text} AS {name}" for text, name in parts.named.items()), "__u", "MIN(__h) AS __h"]
    groups = select(exact, rows_of(rows), by=dict.fromkeys(["__u", *grouped]))
    names = [*(f"c{place}" for place in range(len(group.keys))), *results, "__u", "__h", *(text for text, _ in orders)]
    return select(names, rows_of(groups)), tuple(type_ for _, type_ in orders)


# ---- windows -------------------------------------------------------------------------------------------------------


def window(node: Window, below: LoweredRelation, schema: Schema, dialect: Dialect) -> str:
    """Return the SELECT that adds a column for each call. Partitions hold the unit; orders are completed to total ones.

    RANK and DENSE_RANK look at the values of their order alone, so rows that tie share a rank whatever their places.
    """
    kept = [*below.column_names, *below.grid_names, *below.owner_names, *below.order_names]
    inside = _Inside(Expressions(below.column_names, dialect), Layers(dialect, kept), node.input, schema)
    outs = node.columns[len(below.columns) :]
    calls = [
        f"{terms.of_type(_lower_window(call, inside, below), out.type, dialect).sql} AS c{len(below.columns) + place}"
        for place, (call, out) in enumerate(zip(node.calls, outs, strict=True))
    ]
    return select([*kept, *calls], rows_of(inside.layers.select(below.sql)))


def _lower_window(call: WindowCall, inside: _Inside, below: LoweredRelation) -> LoweredTerm:
    ranking = call.function in {"rank", "dense_rank"}
    whole = call.whole and call.function in {"count", "sum", "min", "max", "avg"}
    partition = [*below.owner_names[:1], *(inside.value(one) for one in call.partition)]
    order = [
        f"{inside.value(expression)} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
        for expression, descending, first in call.order
    ]
    if not ranking:
        order += below.order_names
        order += below.owner_names[1:] if len(order) < 2 else []
    running = not whole and call.function in {"count", "sum", "min", "max", "avg"}
    over = " ".join(
        (
            f"PARTITION BY {commas(dict.fromkeys(partition))}" if partition else "",
            f"ORDER BY {commas(order)}" if order and not whole else "",
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW" if running else "",
        )
    ).strip()
    return _call(call, inside, f"OVER ({over})")


def _call(call: WindowCall, inside: _Inside, over: str) -> LoweredTerm:
    argument = call.argument
    match call.function:
        case "row_number" | "rank" | "dense_rank":
            return LoweredTerm(f"{call.function.upper()}() {over}", Type.INTEGER)
        case "count":
            return LoweredTerm(f"COUNT({'*' if argument is None else inside.value(argument)}) {over}", Type.INTEGER)
        case "sum" | "avg" if argument is not None:
            v, steps = inside.integers(argument)
            finish = inside.total if call.function == "sum" else inside.mean
            return finish(f"SUM({v}) {over}", f"COUNT({v}) {over}", steps)
        case "min" | "max" if argument is not None:
            return LoweredTerm(f"{call.function.upper()}({inside.value(argument)}) {over}", argument.type, infinite=True)
        case "lag" | "lead" if argument is not None:
            offset = min(max(call.offset, 0), _FAR)
            return LoweredTerm(
                f"{call.function.upper()}({inside.value(argument)}, {offset:d}) {over}", argument.type, infinite=True
            )
        case _:
            message = f"{call.function} needs an argument"
            raise TypeError(message)
