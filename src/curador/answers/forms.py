"""Sums of measurements over released rows, their ratios, and single estimates: what has a law of its own.

Every noise of a question is one variable. A form is Σ coefficient · variable, so a noise that is used twice is one; a share
is one form over another, in which a variable has a coefficient above and one below.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.computed import Vector
from curador.answers.ratio_bars import MeasuredRatio
from curador.plan import enclosure as on
from curador.plan.aggregates import Linear, Mean
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import own_reach
from curador.plan.many import many_ratio_law, many_reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.answers.enclosures import Sight
    from curador.numerics.rounding import FloatArray
    from curador.plan.error import Additive
    from curador.plan.price import Noise
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

    def estimate(self, block: int, place: int, order: IntArray) -> Form | DrawnBar:
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


# ---- sums and ratios of them -----------------------------------------------------------------------------------------


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


def is_mean(bar: object) -> bool:
    """Whether a bar is of a block's mean."""
    return isinstance(bar, DrawnBar) and isinstance(bar.world.sights[bar.block].block.estimates[bar.place], Mean)


def measure_mean(bar: DrawnBar, sign: int, first: int) -> tuple[MeasuredRatio, list[Noise]]:
    """Return a mean as a ratio of two measurements, times 1 or −1, with their noises, whose places are from `first` on."""
    sight = bar.world.sights[bar.block]
    mean = sight.block.estimates[bar.place]
    if not isinstance(mean, Mean):
        raise TypeError("not a mean")
    at = np.maximum(bar.at, 0)
    total, count = (
        np.asarray(sight.released.values[place], np.float64)[at] if sight.rows else np.zeros(len(at))
        for place in (mean.total, mean.count)
    )
    ratio = MeasuredRatio(
        ((first, sign * mean.step), (first + 1, sign * mean.centre)),
        ((first + 1, Fraction(1)),),
        sign * (float(mean.step) * total + float(mean.centre) * count),
        count,
        (mean.lower, mean.upper) if sign > 0 else (-mean.upper, -mean.lower),
    )
    return ratio, [sight.noises[mean.total], sight.noises[mean.count]]


def share_noise(one: DrawnBar, other: DrawnBar) -> NDArray[np.bool_]:
    """Return in which rows two means are of one measurement of one row."""
    used = [set(bar.world.sights[bar.block].block.estimates[bar.place].measurements) for bar in (one, other)]
    return (one.at == other.at) & (one.block == other.block and bool(used[0] & used[1]))


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
