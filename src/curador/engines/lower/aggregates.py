"""The SQL of aggregates: what is tallied over the kept rows of everybody, and what is exact inside one unit.

TALLIES  by the kind of a tally: results beside others in one SELECT, or a SELECT of its own, grouped by the keys
EXACT    by the name of an aggregate: an expression of exact parts of one unit's rows, each computed and named once

All results of tallies are 64-bit integers; sums come as two of them (`Dialect.limbs`), so that no width of the data can
fail or round.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeAlias

from curador.engines.lower.sql import every, rows_of, select
from curador.engines.lower.terms import LoweredTerm
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.engines.lower.dialect import Dialect
    from curador.engines.lower.grid import Steps
    from curador.plan.model import Tally
    from curador.query.tree import Aggregate, Expression


# ---- tallies -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TallyColumn:
    """A tally over columns of the kept rows: its argument's column (None: no argument) and its filter's."""

    tally: Tally
    argument: str | None
    filter: str | None

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
class TallyFrame:
    """Where tallies stand: the keys' columns, each once; `single`: a unit has one row at most."""

    dialect: Dialect
    keys: tuple[str, ...]
    single: bool


@dataclass(frozen=True, slots=True)
class BesideOthers:
    """A tally that stands beside others; wide: it is a sum, which comes as two integers."""

    results: Callable[[TallyColumn, TallyFrame], list[str]]
    wide: bool = False


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A tally with a SELECT of its own: from which rows, and what is counted; by_cell: for each value of its argument."""

    source: Callable[[TallyColumn, TallyFrame], str]
    counted: Callable[[TallyColumn], str]
    by_cell: bool = False


def _rows(column: TallyColumn, _: TallyFrame) -> list[str]:
    # COUNT(x) is the same number as COUNT(*) FILTER (WHERE x IS NOT NULL), and a third quicker
    simple = column.argument is not None and column.filter is None
    return [f"COUNT({column.argument})" if simple else f"COUNT(*){column.only}"]


def _units(column: TallyColumn, frame: TallyFrame) -> list[str]:
    # one row a unit: every row is another unit
    return [f"COUNT(*){column.only}" if frame.single else f"COUNT(DISTINCT __u){column.only}"]


def _steps(column: TallyColumn, frame: TallyFrame) -> list[str]:
    return [*frame.dialect.limbs(f"SUM({column.argument}){column.filtered}")]


def _squares(column: TallyColumn, frame: TallyFrame) -> list[str]:
    tally, dialect = column.tally, frame.dialect
    steps = 0 if tally.grid is None else tally.grid.steps
    farthest = max(abs(tally.centre), abs(steps - tally.centre))
    whole = f"CAST({column.argument} AS {dialect.type(Type.INTEGER)})"
    number = whole if farthest < 1 << 31 else dialect.wide(whole)
    apart = f"({number} - ({tally.centre:d}))"
    square = f"(({apart} * {apart}) >> {tally.shift:d})" if tally.shift else f"({apart} * {apart})"
    return [*dialect.limbs(f"SUM({square}){column.filtered}")]


def _few_values(column: TallyColumn, frame: TallyFrame) -> str:
    x = column.argument or "NULL"
    once = select(dict.fromkeys(["__u", "__h", *frame.keys, x]), "kept", when=column.conditions, distinct=True)
    number = f"DENSE_RANK() OVER (PARTITION BY __u ORDER BY {frame.dialect.hash(['__h', x])}, {x})"
    numbered = select(["*", f"{number} AS __d"], rows_of(once))
    return rows_of(select(["*"], rows_of(numbered), when=[f"__d BETWEEN 1 AND {column.tally.most:d}"]))


def _kept_rows(column: TallyColumn, _: TallyFrame) -> str:
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


# ---- exact, inside one unit ------------------------------------------------------------------------------------------


class InsideUnit(Protocol):
    """What lowers the parts of one grouped relation: `inside.py`, where it is said."""

    @property
    def dialect(self) -> Dialect: ...
    def value(self, expression: Expression, type_: Type | None = None) -> str: ...
    def integers(self, expression: Expression, *, narrow: bool = False) -> tuple[str, Steps | None]: ...
    def total(self, total: str, count: str, steps: Steps | None) -> LoweredTerm: ...
    def mean(self, total: str, count: str, steps: Steps | None) -> LoweredTerm: ...
    def double(self, integer: str) -> str: ...


@dataclass(frozen=True, slots=True)
class ExactParts:
    """The exact aggregates of a group, each computed and named once; results are expressions of them."""

    inside: InsideUnit
    named: dict[str, str]

    def part(self, text: str) -> str:
        """Return the name of an exact aggregate."""
        return self.named.setdefault(text, f"e{len(self.named)}")

    def lower(self, aggregate: Aggregate) -> LoweredTerm:
        """Return the aggregate as an expression of named parts."""
        filter_ = aggregate.filter
        only = "" if filter_ is None else f" FILTER (WHERE {self.inside.value(filter_, Type.BOOLEAN)})"
        return EXACT[aggregate.function](self, aggregate, only)


ExactLowering: TypeAlias = "Callable[[ExactParts, Aggregate, str], LoweredTerm]"
"""Of the parts, the aggregate and its FILTER clause."""


def _of(aggregate: Aggregate) -> Expression:
    if aggregate.argument is None:
        message = f"{aggregate.function} needs an argument"
        raise TypeError(message)
    return aggregate.argument


def _counted(parts: ExactParts, aggregate: Aggregate, only: str) -> LoweredTerm:
    of = "*" if aggregate.argument is None else parts.inside.value(aggregate.argument)
    return LoweredTerm(parts.part(f"COUNT({of}){only}"), Type.INTEGER)


def _one_unit(parts: ExactParts, _: Aggregate, only: str) -> LoweredTerm:
    return LoweredTerm(parts.part(f"COUNT(DISTINCT __u){only}"), Type.INTEGER)


def _values(parts: ExactParts, aggregate: Aggregate, only: str) -> LoweredTerm:
    return LoweredTerm(parts.part(f"COUNT(DISTINCT {parts.inside.value(_of(aggregate))}){only}"), Type.INTEGER)


def _one_of(parts: ExactParts, aggregate: Aggregate, only: str) -> LoweredTerm:
    argument = _of(aggregate)
    text = f"{aggregate.function.upper()}({parts.inside.value(argument)}){only}"
    return LoweredTerm(parts.part(text), argument.type, infinite=True)


def _quantile(parts: ExactParts, aggregate: Aggregate, only: str) -> LoweredTerm:
    argument, q = _of(aggregate), Fraction(1, 2) if aggregate.q is None else aggregate.q
    text = parts.inside.dialect.quantile(parts.inside.value(argument), q)
    return LoweredTerm(parts.part(text + only), argument.type, infinite=True)


def _total(parts: ExactParts, aggregate: Aggregate, only: str) -> LoweredTerm:
    v, steps = parts.inside.integers(_of(aggregate))
    return parts.inside.total(parts.part(f"SUM({v}){only}"), parts.part(f"COUNT({v}){only}"), steps)


def _mean(parts: ExactParts, aggregate: Aggregate, only: str) -> LoweredTerm:
    v, steps = parts.inside.integers(_of(aggregate))
    return parts.inside.mean(parts.part(f"SUM({v}){only}"), parts.part(f"COUNT({v}){only}"), steps)


def _variance(parts: ExactParts, aggregate: Aggregate, only: str) -> LoweredTerm:
    """Σ(v − a)² about the integer a = Σv div n is exact; what is left of the mean is b/n, |b| < n.

    n·variance = Σ(v − a)² − b²/n. Where not all v are equal this is at least ½, and b²/n < n, so doubles keep its sign.
    """
    inside, dialect = parts.inside, parts.inside.dialect
    v, steps = inside.integers(_of(aggregate), narrow=True)
    wide = dialect.wide(v)
    total, squares = parts.part(f"SUM({v}){only}"), parts.part(f"SUM({wide} * {wide}){only}")
    count = parts.part(f"COUNT({v}){only}")
    n = dialect.wide(f"CASE WHEN {count} < 1 THEN 1 ELSE {count} END")  # without a value, total is NULL
    a = dialect.quotient(total, n)
    around = inside.double(f"({squares} - 2 * {a} * {total} + {n} * {a} * {a})")
    left = inside.double(f"({total} - {n} * {a})")
    sample = aggregate.function == "var_samp"
    divisor = f"CASE WHEN {count} > 1 THEN {inside.double(f'{count} - 1')} END" if sample else inside.double(n)
    square = dialect.double(1.0 if steps is None else steps.step**2)
    text = f"(({around} - {left} * {left} / {inside.double(n)}) / ({divisor}) * {square})"
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
