"""How much one unit has of something, counted privately in doubling steps: what caps are found from.

rows      how many rows a unit has in a relation
groups    how many different groups its rows lie in
in_group  how many rows it has in the one of its groups where it has most

Units are counted, not rows: each is in one step, so one unit moves one number by 1 (two, where one is replaced), however many
rows it has. With tops 1, 2, 4, …, T the steps are 1, 2, 3 … 4, 5 … 8, …, T/2 + 1 … T − 1, and T or more: nothing private can
say how far the last one reaches.

The steps of a relation are a question like any other: planned, proved, priced and released by the same code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from typing import Literal as OneOf

from curador.errors import NotPrivate
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.plan.build import build_plan
from curador.plan.work import most_stored
from curador.privacy.adjacency import Adjacency
from curador.privacy.sensitivity import Norm, Sensitivity
from curador.query.tree import Aggregate, Block, Call, Item, Key, Literal, Out, Question, Ref, Scan, UnitGroup
from curador.study.model import Caps
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from curador.plan.model import Plan
    from curador.query.tree import Expression, Relation
    from curador.study.model import Schema

StepNoise: TypeAlias = DiscreteGaussian | DiscreteLaplace
CountedKind: TypeAlias = OneOf["rows", "groups", "in_group"]

SELDOM = Fraction(1, 10_000)
"""How often noise alone may make a step look occupied."""

_NEARLY = 1.25
_NEIGHBOURS = 3
"""Steps that are looked at together, where none of them is occupied by itself."""


# ---- what is asked ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counting:
    """What is to be counted of each unit: of a relation, and of the groups that keys make of it."""

    kind: CountedKind
    relation: Relation
    keys: tuple[Expression, ...] = ()


def counting_plan(counting: Counting, schema: Schema, tables: tuple[str, ...]) -> tuple[Plan, tuple[int, ...]]:
    """Return the plan that counts units by step, and the tops of the steps.

    Claim   One unit is in one step at most: its rows become one row, whose step is one of those written here.
    Needs   As `build_plan`; the height that bounds work cuts base tables, so what is counted are rows up to it.
    """
    wide = with_caps(schema, {table.table.name: Caps(rows=most_stored(counting.relation, schema)) for table in schema.tables})
    tops = doubling_tops(most_stored(counting.relation, schema))
    plan = build_plan(_question(counting, tops, tables), wide)
    height = plan.blocks[0].cap.height
    if height is not None and reads_one_table(counting.relation) and height < tops[-1]:
        tops = doubling_tops(height)
        plan = build_plan(_question(counting, tops, tables), wide)
    return plan, tops


def can_be_counted(counting: Counting, schema: Schema, tables: tuple[str, ...]) -> bool:
    """Whether counting is within the work that one unit's rows may cause: where it is not, a cap must come from elsewhere."""
    try:
        counting_plan(counting, schema, tables)
    except NotPrivate:
        return False
    return True


def reads_one_table(relation: Relation) -> bool:
    """Whether a relation reads one table once, so that a unit has no more rows in it than the table gives."""
    while not isinstance(relation, Scan):
        inner = getattr(relation, "input", None)
        if inner is None:
            return False
        relation = cast("Relation", inner)
    return True


def doubling_tops(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4, … up to the largest power of two that is at most `most`, 2 at least."""
    return tuple(1 << power for power in range(max(most, 2).bit_length()))


def with_caps(schema: Schema, caps: Mapping[str, Caps]) -> Schema:
    """Return the schema with these caps in force, whatever was declared or found: a plan proves what it executes."""
    tables = tuple(
        replace(table, table=replace(table.table, caps=caps[table.table.name], caps_max=None))
        if not table.table.public and not table.table.single and table.table.name in caps
        else table
        for table in schema.tables
    )
    return replace(schema, tables=tables)


def _question(counting: Counting, tops: tuple[int, ...], tables: tuple[str, ...]) -> Question:
    counted = counted_by_unit(counting)
    number = Ref(len(counted.columns) - 1, Type.INTEGER)
    arms: list[Expression] = []
    for step, top in enumerate(_last_values(tops)):
        arms += [Call("<=", (number, _whole(top)), Type.BOOLEAN), _whole(step)]
    step = Call("case", (*arms, _whole(len(arms) // 2)), Type.INTEGER)
    items = (Item("step", Key(0, Type.INTEGER)), Item("units", Aggregate("count", None, Type.INTEGER)))
    return Question(blocks=(Block(counted, (step,), items),), tables=tables)


def _last_values(tops: tuple[int, ...]) -> list[int]:
    """The largest value of every step but the last, which has none."""
    return list(dict.fromkeys([*tops[:-1], tops[-1] - 1]))


def counted_by_unit(counting: Counting) -> UnitGroup:
    """Return one row for each unit with what is counted as its last column."""
    if counting.kind == "rows":
        return group_by_unit(counting.relation)
    each = group_by_unit(counting.relation, counting.keys)
    if counting.kind == "groups":
        return group_by_unit(each)
    return group_by_unit(each, most_of=len(each.columns) - 1)


def group_by_unit(relation: Relation, keys: tuple[Expression, ...] = (), *, most_of: int | None = None) -> UnitGroup:
    """Return one row for each unit (and other keys) with its number of rows, or the largest value of a column."""
    place = next((place for place, column in enumerate(relation.columns) if column.unit), None)
    own = () if place is None else (Ref(place, relation.columns[place].type),)
    held = () if place is None else (relation.columns[place],)
    others = tuple(Out(f"key {number + 1}", key.type or Type.STRING, nullable=True) for number, key in enumerate(keys))
    if most_of is None:
        made = Aggregate("count", None, Type.INTEGER)
    else:
        made = Aggregate("max", Ref(most_of, Type.INTEGER), Type.INTEGER)
    return UnitGroup(relation, (*own, *keys), (made,), (*held, *others, Out("rows", Type.INTEGER, nullable=False)))


def _whole(value: int) -> Literal:
    return Literal(value, Type.INTEGER)


# ---- what was released -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Steps:
    """Noisy numbers of units by step, with their noise: released, so a function of it may be told to anybody.

    tops    1, 2, 4, …, T; there is one step more, T or more
    counts  one noisy number of units for each step
    noise   what was added to each
    """

    tops: tuple[int, ...]
    counts: tuple[int, ...]
    noise: StepNoise

    @property
    def lows(self) -> tuple[int, ...]:
        """The least value of every step."""
        return (1, *(last + 1 for last in _last_values(self.tops)))

    @property
    def highs(self) -> tuple[int, ...]:
        """The largest value of every step; the last one counts as T, as far as anything is said of it."""
        return (*_last_values(self.tops), self.tops[-1])

    @property
    def occupied(self) -> tuple[bool, ...]:
        """Whether each step holds more units than noise alone would show once in ten thousand."""
        return tuple(count > self.reach for count in self.counts)

    @property
    def reach(self) -> float:
        """What noise alone exceeds once in ten thousand."""
        return _reach(self.noise)

    def record(self) -> dict[str, Any]:
        """Return plain values, as the ledger keeps them."""
        if isinstance(self.noise, DiscreteGaussian):
            noise = {"gaussian": str(self.noise.sigma), "squared": str(self.noise.squared)}
        else:
            noise = {"laplace": str(self.noise.scale), "moves": str(self.noise.sensitivity)}
        return {"tops": list(self.tops), "counts": list(self.counts), "noise": noise}

    @classmethod
    def from_record(cls, held: Mapping[str, Any], adjacency: Adjacency) -> Steps:
        """Read what `record` wrote."""
        noise: Mapping[str, str] = held["noise"]
        if "gaussian" in noise:
            moves = Sensitivity(Fraction(noise["squared"]), Norm.L2, adjacency)
            made: StepNoise = DiscreteGaussian(sigma=Fraction(noise["gaussian"]), sensitivity=moves)
        else:
            moves = Sensitivity(Fraction(noise["moves"]) ** 2, Norm.L1, adjacency)
            made = DiscreteLaplace(scale=Fraction(noise["laplace"]), sensitivity=moves)
        return cls(tuple(held["tops"]), tuple(held["counts"]), made)


@lru_cache(maxsize=64)
def _reach(noise: StepNoise) -> float:
    return noise.half_width(1 - 2 * SELDOM)


# ---- what is chosen --------------------------------------------------------------------------------------------------------


def choose_rows(steps: Steps, spread: float, *, whole: int | None = None) -> int:
    """Return the cap, a power of two, that makes noise and loss of a count together smallest.

    spread   the noise's deviation of a count to which one unit adds 1
    whole    the cap of the whole table, where the steps are those of a part of it

    Where no step is occupied there are fewer units than noise hides. A cap m is then at most m times too noisy, or loses rows
    of so many units: these two are made equal. If those few have as many rows as others have in the whole table, its cap is
    right. Nothing says which it is, so the cap is as many times above the one as it is below the other.

    A choice, no claim: any cap is private, as it is executed and noise follows from it.
    """
    found = _occupied_steps(steps)
    if not found:
        hidden = max(steps.reach / spread, 1.0)
        between = hidden if whole is None else math.sqrt(hidden * max(whole, hidden))
        return min(1 << round(math.log2(between)), steps.tops[-1])
    return int(min(steps.tops, key=lambda cap: math.hypot(cap * spread, _lost(found, cap))))


def choose_groups(steps: Steps) -> int:
    """Return the cap on groups with which the smallest group that is shown is about smallest.

    A group is shown if its noisy number of units passes a threshold which grows with √g; of a group of n units, n · s(g) are
    left where s(g) is the share of all memberships that the cap keeps. So it is √g / s(g) that must be small. Near its least
    it hardly changes, while groups that are shown lose less: of the caps within a quarter of the least the largest is taken.
    """
    found = [*_occupied_steps(steps)]
    whole = sum(count * value for count, value in found)
    if not whole:
        return 1
    kept = {cap: sum(count * min(value, cap) for count, value in found) / whole for cap in steps.tops}
    smallest = {cap: math.sqrt(cap) / kept[cap] for cap in steps.tops}
    return int(max(cap for cap in steps.tops if smallest[cap] <= _NEARLY * min(smallest.values())))


def choose_in_group(steps: Steps, rows: int, groups: int, spread: float, *, parts: float) -> int:
    """Return the cap on rows of one unit in one group, a power of two, that makes noise and loss of a group's count smallest.

    steps         units by the rows that they have in their largest group
    rows, groups  the other caps
    parts         groups among which the loss is divided
    """

    def error(cap: int) -> float:
        full = min(rows // cap, groups)
        rest = rows % cap if rows // cap < groups else 0
        return math.hypot(math.sqrt(full * cap * cap + rest * rest) * spread, lost_rows(steps, cap) / parts)

    return int(min((top for top in steps.tops if top <= rows), key=error))


def lost_rows(steps: Steps, cap: int) -> float:
    """Return about how many rows lie beyond a cap, by the steps that are occupied."""
    return _lost(_occupied_steps(steps), cap)


def _lost(found: list[tuple[int, float]], cap: int) -> float:
    return sum(count * max(value - cap, 0.0) for count, value in found)


def _occupied_steps(steps: Steps) -> list[tuple[int, float]]:
    """Numbers of units, with what one of them has about: the mean of a step in which double is half as likely.

    Neighbours that are not occupied each by itself are, if their sum is more than noise alone would show once in ten
    thousand: the noise of J steps together reaches √J times as far. Which of them units are in is not seen: they count as
    in the lowest.
    """
    taken = [False] * len(steps.counts)
    out: list[tuple[int, float]] = []
    for width in range(1, _NEIGHBOURS + 1):
        for place in range(len(taken) - width + 1):
            window = slice(place, place + width)
            number = sum(steps.counts[window])
            if number > steps.reach * math.sqrt(width) and not any(taken[window]):
                taken[window] = [True] * width
                low, high = steps.lows[place], steps.highs[place]
                out.append((number, float(low) if high <= low else (high + 1 - low) / math.log((high + 1) / low)))
    return out
