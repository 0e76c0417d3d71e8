"""Where numbers lie that are made of several released rows: each is kept as what it is made of until its bar is wanted.

form      Σ coefficient · measurement: one noise that is used twice is one variable. Its bar is its reach, by the exact law
share     one form over another: Fieller's set, as the noise of N − θD is a form
drawn     a mean, a variance or a quantile of one row: by its own interval
computed  a function of others: all of them at once, each with its part of the miss, and all that can come out
folded    a sum, a mean or an extreme of rows, and `ranked` a rank among them: from intervals that hold for all rows at once

Which rows a number is made of may have been decided by noise: a condition, an order, a rank. Then the law of one form says
nothing, as its noises were looked at. Such a number is `chosen`, and its bar is made of intervals that hold for every
measurement at once: whatever was chosen, it is covered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.answers.computed import Vector
from curador.plan import enclosure as on
from curador.plan.aggregates import Linear
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import own_reach
from curador.plan.functions import ENCLOSURES, TRUTHS
from curador.plan.many import many_ratio_law, many_reach
from curador.query.tree import Call, Estimated, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.answers.enclosures import Sight
    from curador.numerics.rounding import FloatArray
    from curador.plan.enclosure import Truth
    from curador.plan.error import Additive
    from curador.query.tree import Node
    from curador.randomness.entropy import IntArray

MOST_TERMS = 4_000_000
"""Coefficients of a column's forms; beyond it bars are made of intervals that hold at once."""

_ROUND_OFF = 1e-12


# ---- the noises ------------------------------------------------------------------------------------------------------


class NoiseWorld:
    """Every noise of a question as a variable: (block, measurement, row), numbered; and whose law each has."""

    def __init__(self, sights: Sequence[Sight]) -> None:
        self.sights = sights
        self.starts: dict[tuple[int, int], int] = {}
        self.laws: list[Additive] = []
        kinds: list[NDArray[np.int64]] = []
        count = 0
        for block, sight in enumerate(sights):
            for measurement, noise in enumerate(sight.noises):
                if hasattr(noise, "point"):
                    continue
                self.starts[block, measurement] = count
                kinds.append(np.full(sight.rows, len(self.laws), np.int64))
                self.laws.append(noise)  # type: ignore[arg-type]
                count += sight.rows
        self.count = count
        self.kind_of = np.concatenate(kinds) if kinds else np.zeros(0, np.int64)

    def estimate(self, block: int, place: int, order: IntArray) -> Bar:
        """Return the bar of a block's estimate, its rows in an order."""
        sight = self.sights[block]
        estimate = sight.block.estimates[place]
        if not isinstance(estimate, Linear):
            return DrawnBar(self, block, place, order)
        from scipy.sparse import csr_array

        terms = [(self.starts[block, index], float(coefficient)) for index, coefficient in estimate.terms]
        rows, many = len(order), len(terms)
        indices = np.concatenate([start + order for start, _ in terms]).reshape(many, rows).T.ravel() if terms else order[:0]
        data = np.tile([coefficient for _, coefficient in terms], rows)
        matrix = csr_array((data, indices, np.arange(rows + 1) * many), shape=(rows, self.count))
        return Form(self, matrix, np.arange(rows), estimate.value(sight.released)[0][order])


# ---- what a number is made of ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Known:
    """A column without noise."""

    values: Vector

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.values)

    def take(self, places: IntArray) -> Known:
        """Return the rows at these places; −1: NULL."""
        return Known(take_values(self.values, places))

    def mark(self) -> Known:
        """Return the same, chosen by noise."""
        return self


@dataclass(frozen=True, eq=False)
class Unproved:
    """A column of which no bar is proved."""

    rows: int

    def take(self, places: IntArray) -> Unproved:
        """Return as many rows as these places."""
        return Unproved(len(places))

    def mark(self) -> Unproved:
        """Return the same, chosen by noise."""
        return self


@dataclass(frozen=True, eq=False)
class Form:
    """Rows of a matrix over all variables, by `pick`, −1: NULL; and the released values, which nothing but noise moved.

    chosen   noise decided of which variables it is
    """

    world: NoiseWorld
    matrix: Any
    pick: IntArray
    value: FloatArray
    chosen: bool = False

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.pick)

    def take(self, places: IntArray) -> Form:
        """Return the rows at these places; −1: NULL."""
        there = places >= 0
        at = np.where(there, places, 0)
        if not self.rows:
            return replace(self, pick=np.full(len(places), -1), value=np.full(len(places), np.nan))
        return replace(
            self,
            pick=np.where(there, self.pick[at], -1),
            value=np.where(there & (self.pick[at] >= 0), self.value[at], np.nan),
        )

    def mark(self) -> Form:
        """Return the same, chosen by noise."""
        return replace(self, chosen=True)

    @cached_property
    def used(self) -> tuple[IntArray, IntArray]:
        """The rows of the matrix that are used, and which of them each row is."""
        used, back = np.unique(np.maximum(self.pick, 0), return_inverse=True)
        return (used, back) if self.matrix.shape[0] else (used[:0], back)

    def wide(self) -> Any:
        """Return one row of the matrix for each row."""
        return self.matrix[np.maximum(self.pick, 0)] if self.rows else self.matrix[:0]

    def enclose(self, miss: Fraction) -> ColumnEnclosure:
        """Return where the sum of the numbers before noise lies.

        Claim   In every row with probability at least 1 − miss. Not chosen: the row's variables are fixed before noise, and
                the reach is of their law. Chosen: with that probability every variable of every measurement that could be in
                it is within its own reach at once, and |Σ c x| is at most Σ |c| reach.
        Rounds  Outward.
        """
        null = self.pick < 0
        used, back = self.used
        reach = self._reaches(used, miss)[back] if len(used) else np.zeros(self.rows)
        value = np.where(null, 0.0, self.value)
        slip = _ROUND_OFF * np.abs(value)
        found = on.round_outward(value - reach - slip, value + reach + slip, null, ulps=2)
        return ColumnEnclosure(np.where(null, np.inf, found.low), np.where(null, -np.inf, found.high), null)

    def _reaches(self, used: IntArray, miss: Fraction) -> FloatArray:
        matrix, world = self.matrix[used], self.world
        if self.chosen:
            return abs(matrix) @ simultaneous_reaches(world, np.unique(world.kind_of[matrix.indices]), miss)
        entries = np.stack([world.kind_of[matrix.indices].astype(np.float64), np.abs(matrix.data)], 1)
        found = np.zeros(len(used))
        for classes, rows in row_patterns(matrix.indptr, entries):
            terms = tuple((size, world.laws[int(kind)], many) for (kind, size), many in classes if size)
            found[rows] = many_reach(terms, 1 - miss)
        return found


def row_patterns(starts: IntArray, entries: FloatArray) -> list[tuple[tuple[tuple[tuple[float, ...], int], ...], IntArray]]:
    """Return the rows that have the same entries, whatever their order, with these entries and how often each is there."""
    if not len(entries):
        return [((), np.arange(len(starts) - 1))]
    kinds, codes = np.unique(entries, axis=0, return_inverse=True)
    codes, lengths = codes.ravel(), np.diff(starts)
    found: list[tuple[Any, IntArray]] = []
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        held = np.sort(codes[starts[rows][:, None] + np.arange(length)], axis=1)
        patterns, back = np.unique(held, axis=0, return_inverse=True)
        for pattern, own in zip(patterns, split_rows(back.ravel(), len(patterns)), strict=True):
            different, many = np.unique(pattern, return_counts=True)
            classes = tuple((tuple(kinds[code].tolist()), int(count)) for code, count in zip(different, many, strict=True))
            found.append((classes, rows[own]))
    return found


def split_rows(which: IntArray, count: int) -> list[IntArray]:
    """Return the places of every number from 0 up to a count."""
    order = np.argsort(which, kind="stable")
    return np.split(order, np.searchsorted(which[order], np.arange(1, count))) if count else []


def simultaneous_reaches(world: NoiseWorld, kinds: IntArray, miss: Fraction) -> FloatArray:
    """Return for every variable a reach, so that all variables of these measurements stay within theirs at once."""
    among = int(np.isin(world.kind_of, kinds).sum())
    found = np.zeros(len(world.laws))
    for kind in kinds.tolist():
        found[kind] = float(own_reach(world.laws[kind], miss / max(among, 1))) * (1 + _ROUND_OFF)
    return found[world.kind_of]


@dataclass(frozen=True, eq=False)
class Share:
    """One form over another."""

    above: Form
    below: Form

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.above.rows

    def take(self, places: IntArray) -> Share:
        """Return the rows at these places; −1: NULL."""
        return Share(self.above.take(places), self.below.take(places))

    def mark(self) -> Share:
        """Return the same, chosen by noise."""
        return Share(self.above.mark(), self.below.mark())

    def enclose(self, miss: Fraction) -> ColumnEnclosure:
        """Return where the ratio of the numbers before noise lies.

        Claim   In every row with probability at least 1 − miss: N − θD is a form of both sides' variables, each counted once
                with the coefficient that it has in both; Fieller's set holds the true θ. Chosen: the quotient of what all
                variables at once allow.
        """
        if self.above.chosen or self.below.chosen:
            kinds = [part.world.kind_of[part.matrix.indices] for part in (self.above, self.below)]
            return _boxed_quotient(self.above, self.below, np.unique(np.concatenate(kinds)), miss)
        low, high = np.full(self.rows, -np.inf), np.full(self.rows, np.inf)
        for pattern, at in self._patterns():
            laws = self.above.world.laws
            terms = tuple((above, below, laws[int(kind)], many) for (kind, above, below), many in pattern)
            law = many_ratio_law(terms, 1 - miss)
            if law is None:
                continue
            above, below = self.above.value[at], self.below.value[at]
            with np.errstate(all="ignore"):
                low[at], high[at] = law.ends(above / np.where(below > 0, below, 1.0), above, below)
        null = (self.above.pick < 0) | (self.below.pick < 0)
        open_ = np.isinf(low) | np.isinf(high)
        return ColumnEnclosure(np.where(null, np.inf, low), np.where(null, -np.inf, high), null | open_)

    def _patterns(self) -> list[tuple[Any, IntArray]]:
        """Rows by what their law depends on: how many variables of which noise have which coefficients above and below."""
        there = np.flatnonzero((self.above.pick >= 0) & (self.below.pick >= 0))
        pairs, back = np.unique(np.stack([self.above.pick[there], self.below.pick[there]], 1), axis=0, return_inverse=True)
        lengths = [np.diff(part.matrix.indptr)[pairs[:, side]].sum() for side, part in enumerate((self.above, self.below))]
        found = self._listed(pairs) if sum(lengths) <= MOST_TERMS else self._counted(pairs)
        which = np.zeros(len(pairs), np.int64)
        for place, (_, rows) in enumerate(found):
            which[rows] = place
        return [(found[place][0], there[rows]) for place, rows in enumerate(split_rows(which[back.ravel()], len(found)))]

    def _listed(self, pairs: IntArray) -> list[tuple[Any, IntArray]]:
        """The patterns of pairs of rows, all of their variables written out."""
        world = self.above.world
        sides = [part.matrix[pairs[:, side]].tocoo() for side, part in enumerate((self.above, self.below))]
        keys = np.concatenate([side.row.astype(np.int64) * max(world.count, 1) + side.col for side in sides])
        different, place = np.unique(keys, return_inverse=True)
        cut = sides[0].nnz
        above, below = (
            np.bincount(place[part], side.data, len(different))
            for part, side in zip((slice(None, cut), slice(cut, None)), sides, strict=True)
        )
        rows, variables = np.divmod(different, max(world.count, 1))
        starts = np.searchsorted(rows, np.arange(len(pairs) + 1))
        return row_patterns(starts, np.stack([world.kind_of[variables], above, below], 1).astype(np.float64))

    def _counted(self, pairs: IntArray) -> list[tuple[Any, IntArray]]:
        """The same where a total is of very many: its variables are counted once, and what stands above taken out of it."""
        world, belows = self.above.world, dict[int, tuple[dict[int, float], Counter[Any]]]()
        found: dict[Any, list[int]] = {}
        for row, (one, other) in enumerate(pairs.tolist()):
            if other not in belows:
                held = _entries(self.below.matrix, other)
                belows[other] = held, Counter((int(world.kind_of[index]), 0.0, size) for index, size in held.items())
            below, counted = belows[other]
            own = Counter(counted)
            for index, size in _entries(self.above.matrix, one).items():
                kind, shared = int(world.kind_of[index]), below.get(index, 0.0)
                if shared:
                    own[kind, 0.0, shared] -= 1
                own[kind, size, shared] += 1
            found.setdefault(tuple(sorted(entry for entry in own.items() if entry[1])), []).append(row)
        return [(pattern, np.array(rows)) for pattern, rows in found.items()]


def _entries(matrix: Any, row: int) -> dict[int, float]:
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    held = zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True)
    return {index: size for index, size in held if size}


def _boxed_quotient(above: Form, below: Form, kinds: IntArray, miss: Fraction) -> ColumnEnclosure:
    reaches = simultaneous_reaches(above.world, kinds, miss)
    held = []
    for part in (above, below):
        null = part.pick < 0
        used, back = part.used
        reach = (abs(part.matrix[used]) @ reaches)[back] if len(used) else np.zeros(part.rows)
        value = np.where(null, 0.0, part.value)
        found = on.round_outward(value - reach, value + reach, null, ulps=4)
        held.append(ColumnEnclosure(np.where(null, np.inf, found.low), np.where(null, -np.inf, found.high), null))
    with np.errstate(all="ignore"):
        return on.above_zero(on.divide(*held), held[1])


@dataclass(frozen=True, eq=False)
class DrawnBar:
    """An estimate of a block that is no sum of measurements, by its rows; −1: NULL."""

    world: NoiseWorld
    block: int
    place: int
    at: IntArray
    chosen: bool = False

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.at)

    def take(self, places: IntArray) -> DrawnBar:
        """Return the rows at these places; −1: NULL."""
        there = places >= 0
        return replace(
            self, at=np.where(there, self.at[np.where(there, places, 0)], -1) if self.rows else np.full(len(places), -1)
        )

    def mark(self) -> DrawnBar:
        """Return the same, chosen by noise."""
        return replace(self, chosen=True)

    def enclose(self, miss: Fraction) -> ColumnEnclosure:
        """Return where the number before noise lies; chosen: in all rows of its block at once."""
        sight = self.world.sights[self.block]
        level = 1 - (miss / max(sight.rows, 1) if self.chosen else miss)
        found = sight.block.estimates[self.place].interval(sight.noises, sight.released, level)
        return take_enclosure(found, self.at)


@dataclass(frozen=True, eq=False)
class Computed:
    """A function of other columns: its leaves are `Estimated`, by their place among the parts, and literals."""

    node: Call
    parts: tuple[Bar, ...]
    rows: int

    def take(self, places: IntArray) -> Computed:
        """Return the rows at these places; −1: NULL."""
        return Computed(self.node, tuple(part.take(places) for part in self.parts), len(places))

    def mark(self) -> Computed:
        """Return the same, chosen by noise."""
        return replace(self, parts=tuple(part.mark() for part in self.parts))


@dataclass(frozen=True, eq=False)
class RowRanges:
    """Which rows each number is over: those of `order` from `start` up to `stop`."""

    order: IntArray
    start: IntArray
    stop: IntArray

    @property
    def longest(self) -> int:
        """How many rows the longest has."""
        return int((self.stop - self.start).max(initial=0))


def _at_once(part: Bar, over: RowRanges, miss: Fraction, *, chosen: bool) -> ColumnEnclosure:
    """Where all rows of any one range lie at once; chosen: all rows that noise chose from, too."""
    return enclose_bar(part.mark(), miss) if chosen else enclose_bar(part, miss / max(over.longest, 1))


@dataclass(frozen=True, eq=False)
class Folded:
    """A sum, a mean, a least or a greatest of rows of another column.

    kept    the rows that it may be over
    there   those of them that are not NULL as they were released
    """

    function: str
    part: Bar
    kept: NDArray[np.bool_]
    there: NDArray[np.bool_]
    over: RowRanges
    chosen: bool = False
    null: NDArray[np.bool_] | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.over.start)

    def take(self, places: IntArray) -> Folded:
        """Return the rows at these places; −1: NULL."""
        start, stop, null = take_ranges(self.over, self.null, places)
        return replace(self, over=replace(self.over, start=start, stop=stop), null=null)

    def mark(self) -> Folded:
        """Return the same, chosen by noise."""
        return replace(self, chosen=True)

    def enclose(self, miss: Fraction) -> ColumnEnclosure:
        """Return what all of a row's parts at once allow.

        Claim   With probability at least 1 − miss all parts that a row is over lie in their intervals, each of which misses
                with miss over their number; chosen: all that could have been chosen. Then so does what is made of them. Where
                noise may have decided that a part is NULL, nothing is said.
        Rounds  Outward.
        """
        held = _at_once(self.part, self.over, miss, chosen=self.chosen)
        order, there = self.over.order, self.there[self.over.order]
        low, high = held.low[order], held.high[order]
        absent = self.kept[order] & ~there
        doubtful = (there & (held.null | held.empty)[order]) | (absent & ~held.empty[order])
        unsure = _sums(doubtful.astype(np.float64), self.over) > 0
        count = _sums(there.astype(np.float64), self.over)
        if self.function in {"sum", "avg"}:
            ends = [_sums(np.where(there & np.isfinite(end), end, 0.0), self.over) for end in (low, high)]
            sizes = np.where(there & np.isfinite(low) & np.isfinite(high), np.maximum(np.abs(low), np.abs(high)), 0.0)
            slip = 2.3e-16 * (len(sizes) + 2) * float(sizes.sum())  # of running sums, over all rows
            unsure = unsure | (_sums((there & ~(np.isfinite(low) & np.isfinite(high))).astype(np.float64), self.over) > 0)
            ends = [ends[0] - slip, ends[1] + slip]
            if self.function == "avg":
                ends = [end / np.maximum(count, 1.0) for end in ends]
        elif self.function == "max":
            ends = [_extremes(np.where(there, end, -np.inf), self.over) for end in (low, high)]
        else:
            ends = [-_extremes(np.where(there, -end, -np.inf), self.over) for end in (low, high)]
        null = (count == 0) if self.null is None else (count == 0) | self.null
        found = [np.where(unsure, way * np.inf, end) for way, end in zip((-1, 1), ends, strict=True)]
        return ColumnEnclosure(np.where(null, np.inf, found[0]), np.where(null, -np.inf, found[1]), null | unsure)


@dataclass(frozen=True, eq=False)
class Ranked:
    """A rank among the rows of a partition, by another column and perhaps more columns after it."""

    function: str
    part: Bar
    descending: bool
    alone: bool
    over: RowRanges
    at: IntArray
    chosen: bool = False

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.at)

    def take(self, places: IntArray) -> Ranked:
        """Return the rows at these places; −1: NULL."""
        there = places >= 0
        return replace(
            self, at=np.where(there, self.at[np.where(there, places, 0)], -1) if self.rows else np.full(len(places), -1)
        )

    def mark(self) -> Ranked:
        """Return the same, chosen by noise."""
        return replace(self, chosen=True)

    def enclose(self, miss: Fraction) -> ColumnEnclosure:
        """Return where the rank of the numbers before noise lies.

        Claim   With probability at least 1 − miss the numbers of all rows of the partition lie in their intervals at once.
                A row whose interval lies wholly above this one's is before it, one that does not reach above it is not; so
                1 + the number of the first is at most the rank, 1 + the number of those that may be above at least.
                A tie may go either way, unless the rank is `rank`, to which ties do not count.
        """
        sizes = self.over.stop - self.over.start
        held = _at_once(self.part, self.over, miss, chosen=self.chosen)
        low, high = (-held.high, -held.low) if self.descending else (held.low, held.high)
        broken = held.null | held.empty
        first, last = np.full(len(low), 1.0), np.full(len(low), np.inf)
        for start, size in sorted(set(zip(self.over.start.tolist(), sizes.tolist(), strict=True))):
            rows = self.over.order[start : start + size]
            if broken[rows].any():
                continue
            lows, highs = np.sort(low[rows]), np.sort(high[rows])
            surely = np.searchsorted(highs, low[rows], "left")  # those wholly before
            strict = self.function != "row_number" and self.alone
            maybe = np.searchsorted(lows, high[rows], "left" if strict else "right")
            maybe = maybe - np.where((low[rows] < high[rows]) | (not strict), 1, 0)  # not itself
            first[rows] = 1 + (np.minimum(surely, 1) if self.function == "dense_rank" else surely)
            last[rows] = 1 + np.maximum(maybe, 0)
        null = self.at < 0
        at = np.maximum(self.at, 0)
        found = (first[at], last[at]) if len(first) else (np.zeros(0), np.zeros(0))
        return ColumnEnclosure(np.where(null, np.inf, found[0]), np.where(null, -np.inf, found[1]), null)


@dataclass(frozen=True, eq=False)
class Stacked:
    """Columns one after the other; and of their rows those at some places."""

    parts: tuple[Bar, ...]
    at: IntArray

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.at)

    def take(self, places: IntArray) -> Stacked:
        """Return the rows at these places; −1: NULL."""
        there = places >= 0
        return replace(
            self, at=np.where(there, self.at[np.where(there, places, 0)], -1) if self.rows else np.full(len(places), -1)
        )

    def mark(self) -> Stacked:
        """Return the same, chosen by noise."""
        return replace(self, parts=tuple(part.mark() for part in self.parts))

    def enclose(self, miss: Fraction) -> ColumnEnclosure:
        """Return each part's own."""
        held = [enclose_bar(part, miss) for part in self.parts]
        whole = ColumnEnclosure(*(np.concatenate([getattr(one, name) for one in held]) for name in ("low", "high", "null")))
        return take_enclosure(whole, self.at)


Bar: TypeAlias = Known | Unproved | Form | Share | DrawnBar | Computed | Folded | Ranked | Stacked


# ---- where it lies ---------------------------------------------------------------------------------------------------


def enclose_bar(bar: Bar, miss: Fraction) -> ColumnEnclosure:
    """Return where the number before noise lies, in every row.

    Claim   In each row it is in the enclosure with probability at least 1 − miss, or is NULL and the enclosure says so. The
            parts of what is computed get equal shares of the miss: all hold at once, whatever they have in common.
    Rounds  Outward.
    """
    if isinstance(bar, Known):
        return on.exactly(bar.values.values, bar.values.null) if _is_number(bar) else on.unknown(bar.rows)
    if isinstance(bar, Unproved):
        return on.unknown(bar.rows)
    if not isinstance(bar, Computed):
        return bar.enclose(miss)
    parts: dict[int, Bar] = {}
    _collect(bar, parts)
    share = miss / max(sum(not isinstance(part, Known | Unproved) for part in parts.values()), 1)
    held = {key: enclose_bar(part, share) for key, part in parts.items()}
    with np.errstate(all="ignore"):
        return _Walk(bar.rows, bar.parts, held).number(bar.node)


def is_proved(bar: Bar) -> bool:
    """Whether a bar says anything of a number."""
    match bar:
        case Unproved():
            return False
        case Computed() | Stacked():
            return all(is_proved(part) for part in bar.parts)
        case Folded() | Ranked():
            return is_proved(bar.part)
        case _:
            return True


def _is_number(bar: Known) -> bool:
    return bar.values.values.dtype in (np.int64, np.float64)


def _collect(bar: Computed, found: dict[int, Bar]) -> None:
    for part in bar.parts:
        if isinstance(part, Computed):
            _collect(part, found)
        else:
            found[id(part)] = part


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """What the parts of an expression can be, in every row."""

    rows: int
    parts: tuple[Bar, ...]
    held: dict[int, ColumnEnclosure]

    def number(self, node: Node) -> ColumnEnclosure:
        match node:
            case Literal():
                return _written(node, self.rows)
            case Estimated() | Ref():
                part = self.parts[node.index]
                if isinstance(part, Computed):
                    return _Walk(self.rows, part.parts, self.held).number(part.node)
                return self.held[id(part)]
            case Call():
                found = ENCLOSURES[node.function](node, self)
                return on.fit_integers(found) if node.type is Type.INTEGER else found
            case _:
                return on.unknown(self.rows)

    def truth(self, node: Node) -> Truth:
        match node:
            case Literal(value=bool()):
                values = np.full(self.rows, node.value, np.bool_)
                return on.certain(values, np.zeros(self.rows, np.bool_))
            case Estimated() | Ref():
                part = self.parts[node.index]
                if isinstance(part, Known) and part.values.values.dtype == np.bool_:
                    return on.certain(part.values.values, part.values.null)
                if isinstance(part, Computed):
                    return _Walk(self.rows, part.parts, self.held).truth(part.node)
                return on.doubtful(self.rows)
            case Call():
                return TRUTHS[node.function](node, self)
            case _:
                return on.doubtful(self.rows)


def _written(node: Literal, rows: int) -> ColumnEnclosure:
    if node.value is None:
        return ColumnEnclosure(np.full(rows, np.inf), np.full(rows, -np.inf), np.ones(rows, np.bool_))
    if isinstance(node.value, bool) or not isinstance(node.value, int | Fraction):
        return on.unknown(rows)
    return on.exactly(np.full(rows, float(node.value)), np.zeros(rows, np.bool_))


# ---- rows ------------------------------------------------------------------------------------------------------------


def take_values(values: Vector, places: IntArray) -> Vector:
    """Return the rows at these places; −1: NULL."""
    there = places >= 0
    if not len(values):
        return Vector(np.zeros(len(places), values.values.dtype), np.ones(len(places), np.bool_))
    at = np.where(there, places, 0)
    return Vector(values.values[at], values.null[at] | ~there)


def take_enclosure(held: ColumnEnclosure, places: IntArray) -> ColumnEnclosure:
    """Return the rows at these places; −1: NULL."""
    null = places < 0
    if not len(held.low):
        return ColumnEnclosure(np.full(len(places), np.inf), np.full(len(places), -np.inf), null)
    at = np.maximum(places, 0)
    return ColumnEnclosure(np.where(null, np.inf, held.low[at]), np.where(null, -np.inf, held.high[at]), null | held.null[at])


def take_ranges(
    over: RowRanges, null: NDArray[np.bool_] | None, places: IntArray
) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """Return the ranges of the rows at these places; −1: NULL."""
    gone = places < 0
    if not len(over.start):
        return np.zeros(len(places), np.int64), np.zeros(len(places), np.int64), np.ones(len(places), np.bool_)
    at = np.maximum(places, 0)
    held = np.zeros(len(over.start), np.bool_) if null is None else null
    return over.start[at], over.stop[at], gone | held[at]


def _sums(values: FloatArray, over: RowRanges) -> FloatArray:
    """Sums of the values, which stand in the ranges' order."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return total[over.stop] - total[over.start]


def _extremes(values: FloatArray, over: RowRanges) -> FloatArray:
    """The largest of each range: of two overlapping runs of a power of two."""
    size = over.stop - over.start
    found = np.full(len(size), -np.inf)
    level, runs = 0, values
    while (size >= 1 << level).any():
        own = (size >= 1 << level) & (size < 2 << level)
        found[own] = np.maximum(runs[over.start[own]], runs[over.stop[own] - (1 << level)])
        step = 1 << level
        runs = np.maximum(runs[: max(len(runs) - step, 0)], runs[step:]) if len(runs) > step else runs[:0]
        level += 1
    return found
