"""The plan: which exact integers an engine tallies, which of them are measured with noise, and what is computed afterwards.

    Plan ─ blocks ─ BlockPlan ─ relation, cap            which rows count, at most how many a unit
                              ├ keys                     enumerated without data, or selected privately
                              ├ tallies                  exact integers per group: what the engine returns
                              ├ measurements             integer combinations of tallies, each with its sensitivity
                              └ estimates, items         the released numbers, as functions of measurements

A plan never depends on data. `price` (in `price.py`) adds the noise: a Priced plan is what is charged, run and stored.

Public grids: which power of two a value is rounded to. A function of bounds, so of the study and the question alone. Sums use
about 2³⁰ steps between the bounds: one row fits 32 bits, rounding errs by a billionth of the range, far below any noise, and
the sum of 2³⁰ units' rows stays below 2¹²⁶. Histograms for quantiles use at most 2¹⁶ cells.

Walks over planned expressions say which estimates and measurements something is made of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from curador.privacy.adjacency import Adjacency
from curador.query.tree import Aggregate, Call, Estimated, Expression, Node, Place, Relation
from curador.study.values import Type, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.plan.above import AbovePlan
    from curador.plan.aggregates import PlannedEstimate
    from curador.study.model import Column


# ---- model -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """What an expression can be where it is not NULL: a closed interval of rationals, None where it has no end."""

    lower: Fraction | None
    upper: Fraction | None
    integer: bool = False
    why: str = ""

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.lower is not None and self.upper is not None


@dataclass(frozen=True, slots=True)
class Grid:
    """A public grid of powers of two: the value x becomes v = ⌊x/2^exponent − start + 1/2⌋, clamped to 0 … steps.

    v stands for the number 2^exponent · (start + v). NULL and NaN become nothing.
    """

    exponent: int
    start: int
    steps: int

    @property
    def step(self) -> Fraction:
        """The width of one step."""
        return Fraction(2) ** self.exponent

    def value(self, steps: int | Fraction) -> Fraction:
        """Return the number that `steps` stand for."""
        return self.step * (self.start + steps)


@dataclass(frozen=True, slots=True)
class Tally:
    """One exact integer per group, over the kept rows for which `filter` holds and `argument` is not NULL.

    Its SQL stands under its kind in `engines/lower/aggregates.py`.

    rows      how many rows
    steps     Σ v, v the argument on the grid
    squares   Σ ((v − centre)² >> shift)
    units     how many units (distinct)
    distinct  how many different values of the argument, at most `most` of a unit, chosen from its own rows
    cells     a histogram: how many rows have each value v (one grid step a cell)
    """

    kind: str
    argument: Expression | None = None
    filter: Expression | None = None
    grid: Grid | None = None
    centre: int = 0
    shift: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class Cap:
    """What bounds one unit's rows, in the order in which it is executed.

    by          rank: `__r <= rows` on the one base table; window: the first rows of a unit in the relation's own total
                order; none: the relation itself has at most `rows` rows a unit
    groups      at most this many groups of a unit; None: not executed
    in_group    at most this many rows of a unit in one group; None: not executed
    height      rows of a unit that every private table gives at most, by the stored rank, below everything else: what bounds
                work, not noise; None: as many as are stored
    groups_by   which groups: hash: those of the lowest hashes with the unit's own; first: those that appear first in the
                order of the stored rank, by the stored number of the one key's value
    """

    rows: int
    by: OneOf["rank", "window", "none"]
    groups: int | None = None
    in_group: int | None = None
    height: int | None = None
    groups_by: OneOf["hash", "first"] = "hash"


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a unit adds at most, proved: `rows` in all, in at most `groups` groups, `in_group` in one. One group: no keys."""

    rows: int
    groups: int
    in_group: int
    keyed: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan: rows of one unit that pass it at most, and what they cost there together."""

    what: str
    rows: int
    nanoseconds: int
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """One GROUP BY key. `values` are all it can be, known without data (None among them is NULL); None: private."""

    name: str
    expression: Expression
    type: Type
    values: tuple[Value | None, ...] | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class KeyTuples:
    """All combinations of some keys that there can be, fewer than those of their values; places are those of the keys."""

    places: tuple[int, ...]
    rows: tuple[tuple[Value | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """An integer per group to which noise is added.

    combination  Σ coefficient · tally: exact integers
    l1, l2       how far one unit moves all groups together: in l1, and the square of the move in l2
    kind         noise: an additive mechanism; quantile: the exponential mechanism on a histogram of cells
    """

    name: str
    kind: OneOf["noise", "quantile"]
    combination: tuple[tuple[int, int], ...]
    l1: int
    l2_squared: int
    q: Fraction | None = None
    grid: Grid | None = None
    unit_weight: int = 1
    text: str = ""


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """One column of the answer.

    expression  leaves: Key, Literal and Call of the question's tree with every Aggregate replaced by Estimated
    released    whether it is a released number, followed by its interval; a key or constant is not
    """

    name: str
    expression: Node
    type: Type
    released: bool


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """One SELECT of the question, ready to be tallied and measured."""

    relation: Relation
    cap: Cap
    contribution: Contribution
    keys: tuple[KeyPlan, ...]
    tallies: tuple[Tally, ...]
    measurements: tuple[Measurement, ...]
    estimates: tuple[PlannedEstimate, ...]
    items: tuple[ItemPlan, ...]
    having: Node | None
    units: int | None
    """The tally of units per private key combination, where keys are selected privately."""
    notes: tuple[str, ...] = ()
    """For `explain`: every interval and where it came from, every cap and why."""
    work: tuple[Step, ...] = ()
    """What one unit's rows can cause at most, step by step; empty only where a block was not built from a question."""
    joint: tuple[KeyTuples, ...] = ()
    """Known keys of which not all combinations can be: no key stands in two of them. All others are combined."""

    @property
    def private_keys(self) -> tuple[int, ...]:
        """The places of the keys that must be selected privately."""
        return tuple(place for place, key in enumerate(self.keys) if key.values is None)


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """ORDER BY on released values; `column` names an output column instead of an expression over the one block."""

    expression: Node | None
    column: int | None
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole question, planned. most_delta: what the statement lets the selection of its keys cost at most."""

    blocks: tuple[BlockPlan, ...]
    order: tuple[OrderPlan, ...]
    limit: int | None
    offset: int
    adjacency: Adjacency
    tables: tuple[str, ...]
    above: AbovePlan | None = None
    """What is computed from the blocks; None: they are shown as they are."""
    most_delta: Fraction | None = None


# ---- grid ------------------------------------------------------------------------------------------------------------------


def both_ends(known: Range) -> tuple[Fraction, Fraction]:
    """Return the ends of a bounded range."""
    return known.lower or Fraction(0), known.upper or Fraction(0)


SUM_STEPS = 1 << 30
CELL_STEPS = (1 << 16) - 1


@lru_cache(256)
def grid_between(lower: Fraction, upper: Fraction, *, integer: bool, most: int = SUM_STEPS) -> Grid:
    """Return the finest grid with at most `most` steps between the bounds; whole numbers never need one below 1.

    Claim   Every x in [lower, upper] has its v in 0 … steps, and 2^exponent (start + v) is within half a step of x; equal
            to x for whole numbers where the exponent is 0.
    """
    width = upper - lower
    exponent = 0 if integer else _exponent(width or abs(lower), most)
    if integer and width > most:
        exponent = _exponent(width, most)
    while True:
        step = Fraction(2) ** exponent
        start, end = math.floor(lower / step), math.ceil(upper / step)
        if end - start <= most:
            return Grid(exponent, start, end - start)
        exponent += 1


def column_grid(column: Column) -> Grid | None:
    """Return the grid on which a bounded numeric column is stored by preparation; None where it has no bounds."""
    if column.bounds is None or not column.type.numeric:
        return None
    lower, upper = column.bounds
    if isinstance(lower, (int, Fraction)) and isinstance(upper, (int, Fraction)):
        return grid_between(Fraction(lower), Fraction(upper), integer=column.type is Type.INTEGER)
    return None


def _exponent(width: Fraction, most: int) -> int:
    """The smallest e with width/2^e ≤ most, for width > 0; 0 for width 0."""
    if width == 0:
        return 0
    exponent = width.numerator.bit_length() - width.denominator.bit_length() - most.bit_length() - 1
    while width > most * Fraction(2) ** exponent:
        exponent += 1
    return exponent


# ---- keys ------------------------------------------------------------------------------------------------------------------


def count_combinations(keys: Sequence[KeyPlan], joint: Sequence[KeyTuples]) -> int:
    """Return how many combinations known keys have."""
    tied = {place for one in joint for place in one.places}
    free = [len(key.values) for place, key in enumerate(keys) if key.values is not None and place not in tied]
    return math.prod(free) * math.prod(len(one.rows) for one in joint)


# ---- parts -----------------------------------------------------------------------------------------------------------------


def estimates_of(expression: Node) -> set[int]:
    """Return the places of the estimates in an expression."""
    match expression:
        case Estimated():
            return {expression.index}
        case Call():
            return {index for argument in expression.arguments for index in estimates_of(argument)}
        case _:
            return set()


def measurements_of(block: BlockPlan, expression: Node) -> set[int]:
    """Return the places of the measurements in an expression."""
    return {index for place in estimates_of(expression) for index in block.estimates[place].measurements}


def aggregates_of(node: Node) -> list[Aggregate]:
    """Return the aggregates of an expression, in order."""
    match node:
        case Aggregate():
            return [node]
        case Call():
            return [found for argument in node.arguments for found in aggregates_of(argument)]
        case _:
            return []
