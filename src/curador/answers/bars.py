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

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.answers.computed import Vector
from curador.answers.extremes import SCREENED, Contest, extreme_ends, find_contest, share_of_extreme
from curador.answers.forms import DrawnBar, Form, Share, measure_mean, share_noise, take_enclosure, take_values
from curador.answers.ratio_bars import ratio_sum_interval
from curador.plan import enclosure as on
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.functions import ENCLOSURES, TRUTHS
from curador.plan.smooth import BOX_SHARE
from curador.query.tree import Call, Estimated, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.answers.ratio_bars import MeasuredRatio
    from curador.numerics.rounding import FloatArray
    from curador.plan.enclosure import Truth
    from curador.plan.price import Noise
    from curador.query.tree import Node
    from curador.randomness.entropy import IntArray


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
class MeanSum:
    """The sum or difference of two means, each of some row."""

    one: DrawnBar
    other: DrawnBar
    sign: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.one.rows

    def take(self, places: IntArray) -> MeanSum:
        """Return the rows at these places; −1: NULL."""
        return replace(self, one=self.one.take(places), other=self.other.take(places))

    def mark(self) -> MeanSum:
        """Return the same, chosen by noise."""
        return replace(self, one=self.one.mark(), other=self.other.mark())

    def enclose(self, miss: Fraction) -> ColumnEnclosure:
        """Return where the sum lies: by the law of sums of ratios where no noise is in both means, else by both at once.

        Claim   In each row it is missed with probability at most `miss`. A mean is a ratio of two measurements of its row;
                those of different rows, blocks or measurements have noises of their own.
        """
        node = Call("+" if self.sign > 0 else "-", (Estimated(0, Type.FLOAT), Estimated(1, Type.FLOAT)), Type.FLOAT)
        both = Computed(node, (self.one, self.other), self.rows)
        ratios, noises = list["MeasuredRatio"](), list["Noise"]()
        for bar, sign in ((self.one, 1), (self.other, self.sign)):
            ratio, laws = measure_mean(bar, sign, len(noises))
            ratios.append(ratio)
            noises += laws
        if self.one.chosen or self.other.chosen:
            return enclose_bar(both, miss)
        null = (self.one.at < 0) | (self.other.at < 0)
        apart = ~null & ~share_noise(self.one, self.other)
        with np.errstate(all="ignore"):
            rough = enclose_bar(both, BOX_SHARE * miss)
            found = ratio_sum_interval(ratios, (), np.zeros(self.rows), noises, miss, rough)
        plain = enclose_bar(both, miss)
        if found is None:
            return plain
        return ColumnEnclosure(
            *(np.where(apart, getattr(found, name), getattr(plain, name)) for name in ("low", "high", "null"))
        )


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
                noise may have decided that a part is NULL, nothing is said. Extremes need less: `extremes.py`.
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
        else:
            ends = list(self._extreme(miss) or self._extreme_at_once(there, low, high))
        null = (count == 0) if self.null is None else (count == 0) | self.null
        found = [np.where(unsure, way * np.inf, end) for way, end in zip((-1, 1), ends, strict=True)]
        return ColumnEnclosure(np.where(null, np.inf, found[0]), np.where(null, -np.inf, found[1]), null | unsure)

    def _extreme_at_once(self, there: NDArray[np.bool_], low: FloatArray, high: FloatArray) -> list[FloatArray]:
        """The extreme of all ends."""
        if self.function == "max":
            return [_extremes(np.where(there, end, -np.inf), self.over) for end in (low, high)]
        return [-_extremes(np.where(there, -end, -np.inf), self.over) for end in (low, high)]

    def _extreme(self, miss: Fraction) -> tuple[FloatArray, FloatArray] | None:
        """Return the ends of a greatest or least of rows that were fixed before noise; None where there are too many."""
        among = None if self.chosen else self.contest(miss)
        return None if among is None else extreme_ends(among, self.part, miss, enclose_bar)

    def contest(self, miss: Fraction) -> Contest | None:
        """Return which rows can be the extreme one of each range, but for SCREENED of the miss; None for too many."""
        if self.chosen or not self.rows:
            return None
        return find_contest(self, enclose_bar(self.part, SCREENED * miss / max(self.over.longest, 1)))


@dataclass(frozen=True, eq=False)
class ShareOfExtreme:
    """A form over the greatest or least of some forms."""

    above: Form
    below: Folded

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.above.rows

    def take(self, places: IntArray) -> ShareOfExtreme | Computed:
        """Return the rows at these places; −1: NULL."""
        return ShareOfExtreme(self.above.take(places), self.below.take(places))

    def mark(self) -> ShareOfExtreme:
        """Return the same, chosen by noise."""
        return ShareOfExtreme(self.above.mark(), self.below.mark())

    def enclose(self, miss: Fraction) -> ColumnEnclosure:
        """Return where the ratio lies: by the row that is the extreme one, or by all that can be."""
        among = None if self.above.chosen else self.below.contest(miss)
        if among is None or not isinstance(self.below.part, Form):
            kind = Type.FLOAT
            node = Call("/", (Estimated(0, kind), Estimated(1, kind)), kind)
            return enclose_bar(Computed(node, (self.above, self.below), self.rows), miss)
        null = (self.above.pick < 0) | (self.below.null if self.below.null is not None else np.zeros(self.rows, np.bool_))
        return share_of_extreme(among, self.above, self.below.part, null, miss)


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


Bar: TypeAlias = Known | Unproved | Form | Share | ShareOfExtreme | MeanSum | DrawnBar | Computed | Folded | Ranked | Stacked


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
        case ShareOfExtreme():
            return is_proved(bar.below)
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
