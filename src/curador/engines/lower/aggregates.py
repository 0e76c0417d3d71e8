"""What is summed and counted: numbers on public grids, tallies over the kept rows of everybody, exact aggregates of one unit.

Grids. Numbers are put on public grids per row and before anything is summed, in layers of SELECTs so that no text is
repeated.

    x        the argument: NaN and raw infinities are NULL
    s        clamped to the grid's ends in doubles, scaled by a power of two, ⌊… + ½⌋, as a 64-bit integer
    v        clamped to the literals 0 … steps, as integers: whatever happened before, this is what a sensitivity rests on

CASE does the clamping: LEAST and GREATEST would turn NULL into a bound.

Tallies. TALLIES, by the kind of a tally: results beside others in one SELECT, or a SELECT of its own, grouped by the keys.
All results are 64-bit integers; sums come as two of them (`Dialect.limbs`), so that no width of the data can fail or round.

Inside one unit. Aggregates and windows are exact and free of order, so that nobody else's rows can be felt in them. EXACT,
by the name of an aggregate: an expression of exact parts of one unit's rows, each computed and named once. Sums are of
integers. A whole number is summed as it is; any other is first put on its column's declared grid, or, where nothing is
declared, on steps of 2⁻²⁰ up to ±2⁶² of them. What is then computed from the sums is one expression of exact integers.
Variances use narrower integers, |v| ≤ 2⁴⁵, so that no number of rows below 2³⁴ can overflow 127 bits; without declared
bounds their steps are 2⁻¹⁵.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from curador.engines.lower.expression import (
    LoweredTerm,
    as_finite,
    as_number,
    as_type,
    as_value,
    lower_term,
    lower_text,
    nearest_double,
)
from curador.engines.lower.sql import commas, every, rows_of, select
from curador.plan.model import Grid, column_grid
from curador.plan.ownership import is_unit
from curador.query.tree import Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.engines.lower.relation import LoweredRelation
    from curador.engines.lower.sql import Dialect
    from curador.plan.model import Tally
    from curador.query.tree import Aggregate, Expression, Node, Relation, UnitGroup, Window, WindowCall
    from curador.study.model import Schema


# ---- grids -------------------------------------------------------------------------------------------------------------


_EXACT = 1 << 53
_MOST_SCALE = 1000
"""Powers of two up to 2¹⁰⁰⁰ are doubles with room to spare; finer grids are reached in two steps."""


@dataclass(slots=True)
class Layers:
    """Columns computed from a relation: plain ones, and numbers on grids, each named once however often it is asked for."""

    names: Sequence[str]
    """Columns of the relation that expressions read, in order."""
    kept: list[str]
    """Columns of the relation that go through."""
    dialect: Dialect
    _plain: dict[str, str] = field(default_factory=dict[str, str])
    _grids: dict[tuple[str, Grid, int, bool], str] = field(default_factory=dict[tuple[str, Grid, int, bool], str])

    def column(self, text: str) -> str:
        """Return the name under which the text's value goes on."""
        return self._plain.setdefault(text, f"a{len(self._plain)}")

    def value(self, expression: Node, type_: Type | None = None) -> str:
        """Return the name of the column that holds an expression's value."""
        return self.column(lower_text(expression, self.names, self.dialect, type_))

    def term(self, expression: Node) -> LoweredTerm:
        """Return an expression over the relation's columns."""
        return lower_term(expression, self.names, self.dialect)

    def on_grid(self, term: LoweredTerm, grid: Grid, lowest: int = 0) -> str:
        """Return the name of the term's v, clamped to lowest … steps of the grid."""
        x, integers = argument(term, grid, lowest, self.dialect)
        return self._grids.setdefault((x, grid, lowest, integers), f"v{len(self._grids)}")

    def select(self, relation: str) -> str:
        """Return the SELECT that adds the columns to a relation."""
        plain = [f"{text} AS {name}" for text, name in self._plain.items()]
        if not self._grids:
            return select([*self.kept, *plain], rows_of(relation))
        xs = [f"{x} AS x{name}" for (x, *_), name in self._grids.items()]
        inner = select([*self.kept, *plain, *xs], rows_of(relation))
        names = [*self.kept, *self._plain.values()]
        middles = [
            f"{scale_to_steps(f'x{name}', grid, lowest, self.dialect, integers=integers)} AS s{name}"
            for (_, grid, lowest, integers), name in self._grids.items()
        ]
        middle = select([*names, *middles], rows_of(inner))
        last = [
            f"{clamp_to_ends(f's{name}', lowest, grid.steps)} AS {name}" for (_, grid, lowest, _), name in self._grids.items()
        ]
        return select([*names, *last], rows_of(middle))


def argument(term: LoweredTerm, grid: Grid, lowest: int, dialect: Dialect) -> tuple[str, bool]:
    """Return x, and whether it is a 64-bit integer that doubles would round on this grid.

    x is NULL exactly where the term's value is: a whole number beyond 64 bits has none, so it must not be clamped to an end
    here while rows with a value are counted without it.
    """
    if term.raw and term.type is Type.INTEGER:
        term = as_value(term, dialect)
    if term.type is Type.INTEGER and not term.raw and grid.exponent == 0:
        farthest = max(abs(grid.start + lowest), abs(grid.start + grid.steps))
        if farthest > _EXACT:
            return term.sql, True
    if term.raw:
        return as_finite(term, dialect), False
    return as_number(term, dialect), False


def scale_to_steps(x: str, grid: Grid, lowest: int, dialect: Dialect, *, integers: bool = False) -> str:
    """Return s. `integers`: x is a 64-bit integer, on a grid of whole numbers."""
    if integers:
        inside = dialect.whole(f"({dialect.wide(x)} - ({grid.start:d}))")
        first, last = grid.start + lowest, grid.start + grid.steps
        return f"CASE WHEN {x} < ({first:d}) THEN {lowest:d} WHEN {x} > ({last:d}) THEN {grid.steps:d} ELSE {inside} END"
    low, high = (dialect.double(nearest_double(grid.value(end))) for end in (lowest, grid.steps))
    inside = f"(CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END)"
    exponent = -grid.exponent
    while exponent:
        part = min(max(exponent, -_MOST_SCALE), _MOST_SCALE)
        inside = f"({dialect.arithmetic('*', inside, dialect.double(2.0**part))})"
        exponent -= part
    start = dialect.double(nearest_double(Fraction(grid.start)))
    return dialect.whole(dialect.function("floor", f"{inside} - {start} + {dialect.double(0.5)}"))


def clamp_to_ends(s: str, lowest: int, highest: int) -> str:
    """Return v: the integer clamp to the plan's own literals, last of all."""
    return f"CASE WHEN {s} < {lowest:d} THEN {lowest:d} WHEN {s} > {highest:d} THEN {highest:d} ELSE {s} END"


def move_to_grid(v: str, stored: Grid, grid: Grid) -> str:
    """Return the place on a grid of what has the place v on a stored one with the same steps, which reaches beyond it.

    Claim   The integers 0 … steps of the grid, and NULL where v is.
    Needs   v from 0 to the stored grid's last step, as preparation has verified of every row: an end that both grids share
            is not tested again.
    Rounds  Both are ⌊x/2^exponent − start + ½⌋ in doubles. Where a sum there is not exact they may differ by one step from
            what `scale_to_steps` gives: either is a place on the grid, of the row's own value.
    """
    below = grid.start - stored.start
    if not below and grid.steps == stored.steps:
        return v
    last = below + grid.steps
    tests = [f"WHEN {v} < {below:d} THEN 0"] if below > 0 else []
    tests += [f"WHEN {v} > {last:d} THEN {grid.steps:d}"] if last < stored.steps else []
    moved = f"{v} - {below:d}"
    return f"CASE {' '.join(tests)} ELSE {moved} END" if tests else moved


# ---- tallies -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TallyColumn:
    """A tally over columns of the kept rows.

    argument, filter  the columns that hold them; None: the tally has none
    keys              the columns of the keys, each once
    single            whether a unit has one row at most
    first             whether `__f` says which row is the first of its unit in its group
    """

    tally: Tally
    argument: str | None
    filter: str | None
    keys: tuple[str, ...]
    single: bool
    first: bool = False

    @property
    def conditions(self) -> list[str]:
        """What holds in the rows that count."""
        argument = [] if self.argument is None else [f"{self.argument} IS NOT NULL"]
        return [*([] if self.filter is None else [self.filter]), *argument]

    @property
    def only(self) -> str:
        """The FILTER clause of the rows that count."""
        conditions = every(self.conditions)
        return f" FILTER (WHERE {conditions})" if conditions else ""

    @property
    def filtered(self) -> str:
        """The FILTER clause of what skips NULLs by itself."""
        return f" FILTER (WHERE {self.filter})" if self.filter else ""


@dataclass(frozen=True, slots=True)
class BesideOthers:
    """A tally that stands beside others; wide: it is a sum, which comes as two integers."""

    results: Callable[[TallyColumn, Dialect], list[str]]
    wide: bool = False


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A tally with a SELECT of its own: from which rows, and what is counted; by_cell: for each value of its argument."""

    source: Callable[[TallyColumn, Dialect], str]
    counted: Callable[[TallyColumn], str]
    by_cell: bool = False


def _rows(column: TallyColumn, _: Dialect) -> list[str]:
    # COUNT(x) is the same number as COUNT(*) FILTER (WHERE x IS NOT NULL), and a third quicker
    simple = column.argument is not None and column.filter is None
    return [f"COUNT({column.argument})" if simple else f"COUNT(*){column.only}"]


def _units(column: TallyColumn, _: Dialect) -> list[str]:
    if column.first and not column.conditions:
        return ["COUNT(*) FILTER (WHERE __f)"]  # one row of every unit that has any in the group
    # one row a unit: every row is another unit
    return [f"COUNT(*){column.only}" if column.single else f"COUNT(DISTINCT __u){column.only}"]


def _steps(column: TallyColumn, dialect: Dialect) -> list[str]:
    return [*dialect.limbs(dialect.total(str(column.argument), column.filtered))]


def _squares(column: TallyColumn, dialect: Dialect) -> list[str]:
    tally = column.tally
    steps = 0 if tally.grid is None else tally.grid.steps
    farthest = max(abs(tally.centre), abs(steps - tally.centre))
    whole = f"CAST({column.argument} AS {dialect.type(Type.INTEGER)})"
    number = whole if farthest < 1 << 31 else dialect.wide(whole)
    apart = f"({number} - ({tally.centre:d}))"
    square = f"({apart} * {apart})"
    return [*dialect.limbs(dialect.total(dialect.shifted(square, tally.shift) if tally.shift else square, column.filtered))]


def _few_values(column: TallyColumn, dialect: Dialect) -> str:
    x = column.argument or "NULL"
    once = select(dict.fromkeys(["__u", "__h", *column.keys, x]), "kept", when=column.conditions, distinct=True)
    number = f"DENSE_RANK() OVER (PARTITION BY __u ORDER BY {dialect.hash(['__h', x])}, {x})"
    numbered = select(["*", f"{number} AS __d"], rows_of(once))
    return rows_of(select(["*"], rows_of(numbered), when=[f"__d BETWEEN 1 AND {column.tally.most:d}"]))


def _kept_rows(column: TallyColumn, _: Dialect) -> str:
    return rows_of(select(["*"], "kept", when=column.conditions))


TALLIES: dict[str, BesideOthers | OwnPart] = {
    "rows": BesideOthers(_rows),
    "units": BesideOthers(_units),
    "steps": BesideOthers(_steps, wide=True),
    "squares": BesideOthers(_squares, wide=True),
    "distinct": OwnPart(_few_values, lambda column: f"COUNT(DISTINCT {column.argument or 'NULL'})"),
    "cells": OwnPart(_kept_rows, lambda _: "COUNT(*)", by_cell=True),
}
"""By the kind of `plan/model.py:Tally`."""


def results_of(kind: str) -> int:
    """Return how many integers a tally gives beside others: none where it has a part of its own."""
    made = TALLIES[kind]
    return (2 if made.wide else 1) if isinstance(made, BesideOthers) else 0


# ---- inside one unit -------------------------------------------------------------------------------------------------


_WIDE = Grid(-20, 0, 1 << 62)
_NARROW = Grid(-15, 0, 1 << 45)
_NARROW_WHOLE = Grid(0, 0, 1 << 45)
"""Where nothing is declared: as many steps below 0 as above."""


@dataclass(frozen=True, slots=True)
class InsideUnit:
    """What lowers the parts of one grouped or windowed relation.

    named   the exact aggregates of a group, each computed and named once; results are expressions of them
    """

    layers: Layers
    relation: Relation
    schema: Schema
    named: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def dialect(self) -> Dialect:
        return self.layers.dialect

    def part(self, text: str) -> str:
        """Return the name of an exact aggregate."""
        return self.named.setdefault(text, f"e{len(self.named)}")

    def lower(self, aggregate: Aggregate) -> LoweredTerm:
        """Return the aggregate as an expression of named parts."""
        filter_ = aggregate.filter
        only = "" if filter_ is None else f" FILTER (WHERE {self.value(filter_, Type.BOOLEAN)})"
        return EXACT[aggregate.function](self, aggregate, only)

    def value(self, expression: Expression, type_: Type | None = None) -> str:
        """Return the column that holds an expression's value."""
        return self.layers.value(expression, type_)

    def integers(self, expression: Expression, *, narrow: bool = False) -> tuple[str, Grid | None]:
        """Return the column of integers that stand for an expression, and their grid; None: the numbers themselves."""
        term = self.layers.term(expression)
        if term.type is Type.INTEGER:
            if narrow:
                return self.layers.on_grid(term, _NARROW_WHOLE, -_NARROW_WHOLE.steps), _NARROW_WHOLE
            return self.layers.column(as_value(term, self.dialect).sql), None
        declared = self._declared(expression)
        number = as_type(term, Type.FLOAT, self.dialect)
        if declared is not None:
            return self.layers.on_grid(number, declared), declared
        grid = _NARROW if narrow else _WIDE
        return self.layers.on_grid(number, grid, -grid.steps), grid

    def _declared(self, expression: Expression) -> Grid | None:
        source = self.relation.columns[expression.index].source if isinstance(expression, Ref) else None
        table = None if source is None else self.schema.table(source[0])
        declared = None if source is None or table is None else table.table.column(source[1])
        return None if declared is None else column_grid(declared)

    def total(self, total: str, count: str, grid: Grid | None) -> LoweredTerm:
        """Return Σx from Σv and the number of v."""
        if grid is None:
            return LoweredTerm(self.dialect.whole(total), Type.INTEGER)
        compute = self.dialect.arithmetic
        text = compute("*", self.double(total), self._nearest(grid.step))
        if grid.start:
            text = compute("+", text, compute("*", self.double(count), self._nearest(grid.value(0))))
        return LoweredTerm(f"({text})", Type.FLOAT)

    def mean(self, total: str, count: str, grid: Grid | None) -> LoweredTerm:
        """Return Σx/n from Σv and the number of v: one division of exact integers."""
        compute = self.dialect.arithmetic
        text = compute("/", self.double(total), self.double(count))
        if grid is not None:
            text = compute("*", text, self._nearest(grid.step))
            if grid.start:
                text = compute("+", text, self._nearest(grid.value(0)))
        return LoweredTerm(f"({text})", Type.FLOAT)

    def double(self, integer: str) -> str:
        """Return an exact integer as a double: the one conversion."""
        return f"CAST({integer} AS {self.dialect.type(Type.FLOAT)})"

    def _nearest(self, number: Fraction) -> str:
        return self.dialect.double(nearest_double(number))


# ---- GROUP BY the unit ---------------------------------------------------------------------------------------------


def unit_group(group: UnitGroup, below: LoweredRelation, schema: Schema, dialect: Dialect) -> tuple[str, tuple[Type, ...]]:
    """Return the SELECT of one row for each unit and combination of other keys, and the types of its order columns.

    The unit itself is never what is grouped by: `__u` is. A column that holds it may be NULL after an outer join.
    """
    inside = InsideUnit(Layers(below.column_names, ["__u", "__h"], dialect), group.input, schema)
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
    outs = group.columns[len(group.keys) :]
    results = [
        f"{as_type(inside.lower(aggregate), out.type, dialect).sql} AS c{len(group.keys) + place}"
        for place, (aggregate, out) in enumerate(zip(group.aggregates, outs, strict=True))
    ]
    rows = inside.layers.select(below.sql)
    exact = [*columns, *(f"{text} AS {name}" for text, name in inside.named.items()), "__u", "MIN(__h) AS __h"]
    groups = select(exact, rows_of(rows), by=dict.fromkeys(["__u", *grouped]))
    names = [*(f"c{place}" for place in range(len(group.keys))), *results, "__u", "__h", *(text for text, _ in orders)]
    return select(names, rows_of(groups)), tuple(type_ for _, type_ in orders)


# ---- exact aggregates of a group -------------------------------------------------------------------------------------


ExactLowering: TypeAlias = "Callable[[InsideUnit, Aggregate, str], LoweredTerm]"
"""Of where it stands, the aggregate and its FILTER clause."""


def _of(aggregate: Aggregate) -> Expression:
    if aggregate.argument is None:
        message = f"{aggregate.function} needs an argument"
        raise TypeError(message)
    return aggregate.argument


def _counted(inside: InsideUnit, aggregate: Aggregate, only: str) -> LoweredTerm:
    of = "*" if aggregate.argument is None else inside.value(aggregate.argument)
    return LoweredTerm(inside.part(f"COUNT({of}){only}"), Type.INTEGER)


def _one_unit(inside: InsideUnit, _: Aggregate, only: str) -> LoweredTerm:
    return LoweredTerm(inside.part(f"COUNT(DISTINCT __u){only}"), Type.INTEGER)


def _values(inside: InsideUnit, aggregate: Aggregate, only: str) -> LoweredTerm:
    return LoweredTerm(inside.part(f"COUNT(DISTINCT {inside.value(_of(aggregate))}){only}"), Type.INTEGER)


def _one_of(inside: InsideUnit, aggregate: Aggregate, only: str) -> LoweredTerm:
    of = _of(aggregate)
    text = f"{aggregate.function.upper()}({inside.value(of)}){only}"
    return LoweredTerm(inside.part(text), of.type, infinite=True)


def _quantile(inside: InsideUnit, aggregate: Aggregate, only: str) -> LoweredTerm:
    of, q = _of(aggregate), Fraction(1, 2) if aggregate.q is None else aggregate.q
    text = inside.dialect.quantile(inside.value(of), q, only)
    return LoweredTerm(inside.part(text), of.type, infinite=True)


def _total(inside: InsideUnit, aggregate: Aggregate, only: str) -> LoweredTerm:
    v, grid = inside.integers(_of(aggregate))
    return inside.total(inside.part(inside.dialect.total(v, only)), inside.part(f"COUNT({v}){only}"), grid)


def _mean(inside: InsideUnit, aggregate: Aggregate, only: str) -> LoweredTerm:
    v, grid = inside.integers(_of(aggregate))
    return inside.mean(inside.part(inside.dialect.total(v, only)), inside.part(f"COUNT({v}){only}"), grid)


def _variance(inside: InsideUnit, aggregate: Aggregate, only: str) -> LoweredTerm:
    """Σ(v − a)² about the integer a = Σv div n is exact; what is left of the mean is b/n, |b| < n.

    n·variance = Σ(v − a)² − b²/n. Where not all v are equal this is at least ½, and b²/n < n, so doubles keep its sign.
    """
    dialect = inside.dialect
    v, grid = inside.integers(_of(aggregate), narrow=True)
    wide = dialect.wide(v)
    total, squares = inside.part(dialect.total(v, only)), inside.part(dialect.total(f"{wide} * {wide}", only))
    count = inside.part(f"COUNT({v}){only}")
    n = dialect.wide(f"CASE WHEN {count} < 1 THEN 1 ELSE {count} END")  # without a value, total is NULL
    a = dialect.quotient(total, n)
    around = inside.double(f"({squares} - 2 * {a} * {total} + {n} * {a} * {a})")
    left = inside.double(f"({total} - {n} * {a})")
    sample = aggregate.function == "var_samp"
    divisor = f"CASE WHEN {count} > 1 THEN {inside.double(f'{count} - 1')} END" if sample else inside.double(n)
    square = dialect.double(1.0 if grid is None else nearest_double(grid.step) ** 2)
    compute = dialect.arithmetic
    rest = compute("/", compute("*", left, left), inside.double(n))
    apart = f"({compute('-', around, rest)})"
    text = f"({compute('*', compute('/', apart, f'({divisor})'), square)})"
    return LoweredTerm(text, Type.FLOAT, raw=True)


EXACT: dict[str, ExactLowering] = {
    "count": _counted,
    "count_units": _one_unit,
    "count_distinct": _values,
    "sum": _total,
    "avg": _mean,
    **dict.fromkeys(("var_pop", "var_samp"), _variance),
    "quantile": _quantile,
    **dict.fromkeys(("min", "max", "bool_and", "bool_or"), _one_of),
}
"""By the name in the catalogue of `query/functions.py`."""


# ---- windows -------------------------------------------------------------------------------------------------------


_FARTHEST_ROW = 1_000_000_000
"""Rows that LAG and LEAD look back or ahead at most."""


def window(node: Window, below: LoweredRelation, schema: Schema, dialect: Dialect) -> str:
    """Return the SELECT that adds a column for each call. Partitions hold the unit; orders are completed to total ones.

    RANK and DENSE_RANK look at the values of their order alone, so rows that tie share a rank whatever their places.
    """
    kept = [*below.column_names, *below.grid_names, *below.owner_names, *below.order_names]
    inside = InsideUnit(Layers(below.column_names, kept, dialect), node.input, schema)
    outs = node.columns[len(below.columns) :]
    calls = [
        f"{as_type(_lower_window(call, inside, below), out.type, dialect).sql} AS c{len(below.columns) + place}"
        for place, (call, out) in enumerate(zip(node.calls, outs, strict=True))
    ]
    return select([*kept, *calls], rows_of(inside.layers.select(below.sql)))


def _lower_window(call: WindowCall, inside: InsideUnit, below: LoweredRelation) -> LoweredTerm:
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
    return _window_call(call, inside, f"OVER ({over})")


def _window_call(call: WindowCall, inside: InsideUnit, over: str) -> LoweredTerm:
    of = call.argument
    match call.function:
        case "row_number" | "rank" | "dense_rank":
            return LoweredTerm(f"{call.function.upper()}() {over}", Type.INTEGER)
        case "count":
            return LoweredTerm(f"COUNT({'*' if of is None else inside.value(of)}) {over}", Type.INTEGER)
        case "sum" | "avg" if of is not None:
            v, grid = inside.integers(of)
            finish = inside.total if call.function == "sum" else inside.mean
            return finish(inside.dialect.total(v, f" {over}"), f"COUNT({v}) {over}", grid)
        case "min" | "max" if of is not None:
            return LoweredTerm(f"{call.function.upper()}({inside.value(of)}) {over}", of.type, infinite=True)
        case "lag" | "lead" if of is not None:
            offset = min(max(call.offset, 0), _FARTHEST_ROW)
            return LoweredTerm(f"{call.function.upper()}({inside.value(of)}, {offset:d}) {over}", of.type, infinite=True)
        case _:
            message = f"{call.function} needs an argument"
            raise TypeError(message)
