"""Numbers on public grids, per row and before anything is summed, in layers of SELECTs so that no text is repeated.

    x        the argument: NaN and raw infinities are NULL
    s        clamped to the grid's ends in doubles, scaled by a power of two, ⌊… + ½⌋, as a 64-bit integer
    v        clamped to the literals 0 … steps, as integers: whatever happened before, this is what a sensitivity rests on

CASE does the clamping: LEAST and GREATEST would turn NULL into a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.engines.lower import terms
from curador.engines.lower.sql import rows_of, select
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.engines.lower.dialect import Dialect
    from curador.engines.lower.terms import LoweredTerm
    from curador.plan.model import Grid

_EXACT = 1 << 53
_MOST_SCALE = 1000
"""Powers of two up to 2¹⁰⁰⁰ are doubles with room to spare; finer grids are reached in two steps."""


@dataclass(frozen=True, slots=True)
class Steps:
    """v = ⌊x/2^exponent − start + ½⌋ clamped to the integers low … high."""

    exponent: int
    start: int
    low: int
    high: int

    @property
    def step(self) -> float:
        """The width of one step, as the double it is."""
        return terms.nearest_double(Fraction(2) ** self.exponent)

    @property
    def offset(self) -> float:
        """The number that v = 0 stands for, as the nearest double."""
        return self._end(0)

    @property
    def ends(self) -> tuple[float, float]:
        """The numbers that the first and last v stand for, as the nearest doubles."""
        return self._end(self.low), self._end(self.high)

    def _end(self, steps: int) -> float:
        return terms.nearest_double(Fraction(2) ** self.exponent * (self.start + steps))


def steps_of(grid: Grid) -> Steps:
    """Return a plan's grid: 0 … steps."""
    return Steps(grid.exponent, grid.start, 0, grid.steps)


def argument(term: LoweredTerm, steps: Steps, dialect: Dialect) -> tuple[str, bool]:
    """Return x, and whether it is a 64-bit integer that doubles would round on this grid.

    x is NULL exactly where the term's value is: a whole number beyond 64 bits has none, so it must not be clamped to an end
    here while rows with a value are counted without it.
    """
    if term.raw and term.type is Type.INTEGER:
        term = terms.value(term, dialect)
    if term.type is Type.INTEGER and not term.raw and steps.exponent == 0:
        farthest = max(abs(steps.start + steps.low), abs(steps.start + steps.high))
        if farthest > _EXACT:
            return term.sql, True
    if term.raw:
        return terms.finite(term, dialect), False
    return terms.number(term, dialect), False


def scale_to_steps(x: str, steps: Steps, dialect: Dialect, *, integers: bool = False) -> str:
    """Return s. `integers`: x is a 64-bit integer, on a grid of whole numbers."""
    if integers:
        inside = dialect.whole(f"({dialect.wide(x)} - ({steps.start:d}))")
        first, last = steps.start + steps.low, steps.start + steps.high
        return f"CASE WHEN {x} < ({first:d}) THEN {steps.low:d} WHEN {x} > ({last:d}) THEN {steps.high:d} ELSE {inside} END"
    low, high = map(dialect.double, steps.ends)
    inside = f"(CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END)"
    exponent = -steps.exponent
    while exponent:
        part = min(max(exponent, -_MOST_SCALE), _MOST_SCALE)
        inside = f"({inside} * {dialect.double(2.0**part)})"
        exponent -= part
    start = dialect.double(terms.nearest_double(Fraction(steps.start)))
    return dialect.whole(dialect.function("floor", f"{inside} - {start} + {dialect.double(0.5)}"))


def clamp_to_ends(s: str, steps: Steps) -> str:
    """Return v: the integer clamp to the plan's own literals, last of all."""
    return f"CASE WHEN {s} < {steps.low:d} THEN {steps.low:d} WHEN {s} > {steps.high:d} THEN {steps.high:d} ELSE {s} END"


@dataclass(slots=True)
class Layers:
    """Columns computed from a relation: plain ones, and numbers on grids, each named once however often it is asked for."""

    dialect: Dialect
    kept: list[str]
    """Columns of the relation that go through."""
    _plain: dict[str, str] = field(default_factory=dict[str, str])
    _grids: dict[tuple[str, Steps, bool], str] = field(default_factory=dict[tuple[str, Steps, bool], str])

    def column(self, text: str) -> str:
        """Return the name under which the text's value goes on."""
        return self._plain.setdefault(text, f"a{len(self._plain)}")

    def on_grid(self, term: LoweredTerm, steps: Steps) -> str:
        """Return the name of the term's v."""
        x, integers = argument(term, steps, self.dialect)
        return self._grids.setdefault((x, steps, integers), f"v{len(self._grids)}")

    def select(self, relation: str) -> str:
        """Return the SELECT that adds the columns to a relation."""
        plain = [f"{text} AS {name}" for text, name in self._plain.items()]
        if not self._grids:
            return select([*self.kept, *plain], rows_of(relation))
        xs = [f"{x} AS x{name}" for (x, _, _), name in self._grids.items()]
        inner = select([*self.kept, *plain, *xs], rows_of(relation))
        names = [*self.kept, *self._plain.values()]
        middles = [
            f"{scale_to_steps(f'x{name}', steps, self.dialect, integers=integers)} AS s{name}"
            for (_, steps, integers), name in self._grids.items()
        ]
        middle = select([*names, *middles], rows_of(inner))
        last = [f"{clamp_to_ends(f's{name}', steps)} AS {name}" for (_, steps, _), name in self._grids.items()]
        return select([*names, *last], rows_of(middle))
