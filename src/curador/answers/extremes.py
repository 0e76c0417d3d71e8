"""Where the greatest or least of several released numbers lies: by the few rows that can be the extreme one.

Let x_i be the numbers of some rows before noise, M = x_j the greatest, and u_i reaches that all noises are within at once but
for a small part of the miss, SCREENED. j is fixed by the data, whatever the noise is. So

upper end   M ≤ x̃_j + (reach of one noise): of all rows that can be j the largest such number; no row is counted twice
lower end   the largest x̃_i − c is at most M unless a noise is above c. Rows with x_i ≤ M − u_i cannot be the reason while all
            noises are within u, so only the others are counted, of which there are at most those with x̃_i + 2u_i ≥ x̃_k − u_k
            for all k: c is the reach that so many noises exceed

and a ratio x_r/M, of a number above 0, is the least of the ratios x_r/x_i of two forms each: as of an extreme number, its
lower end needs the set of row j alone, and the upper one those of the few rows that are near. Where one row is clearly the
largest, all that is left is the law of its own noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.answers.forms import MOST_TERMS, Form, Share
from curador.plan import enclosure as on
from curador.plan.enclosure import ColumnEnclosure

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.answers.bars import Bar, Folded
    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import BoolArray, IntArray

SCREENED = Fraction(1, 20)
"""What finding the rows that matter may take of an interval's miss."""

_MOST_PAIRS = 100_000
"""Of a row and one that can be the extreme one, each of which has a set of its own."""

_SAME = 1e-15
"""What a form may differ by from a multiple of another, relatively, by rounding alone."""


@dataclass(frozen=True, eq=False)
class Contest:
    """The rows of some ranges, one range after the other.

    rows     of the part
    starts   where each range that has rows begins
    which    by number: its range among those, −1 where it has no rows
    sign     1 for the greatest, −1 for the least, of which the greatest of −x is made
    can      whether the row can be the extreme one
    near     whether it can be so near that its noise may say so; all that can be are near
    least    by range: a number that the extreme one is at least, times the sign
    most     by range: one that it is at most
    """

    rows: IntArray
    starts: IntArray
    which: IntArray
    sign: int
    can: BoolArray
    near: BoolArray
    least: FloatArray
    most: FloatArray

    def reduce(self, values: FloatArray, by: np.ufunc, empty: float) -> FloatArray:
        """Return one number a range, in every row of the answer."""
        if not len(self.starts):
            return np.full(len(self.which), empty)
        found = by.reduceat(values, self.starts)
        return np.where(self.which >= 0, found[np.maximum(self.which, 0)], empty)

    def spread(self, values: FloatArray) -> FloatArray:
        """Return numbers of ranges at each of their rows."""
        return np.repeat(values, np.diff([*self.starts.tolist(), len(self.rows)]))


def find_contest(one: Folded, held: ColumnEnclosure) -> Contest | None:
    """Return the rows that can be extreme, from intervals that hold for all rows of any range at once; None for too many.

    Claim   Where all these intervals hold, j can be. Of forms, of whose intervals the lengths 2u are not random: let W be the
            rows with x_i ≥ M − 2u_j − 2u_i, which is fixed before noise. With T the largest lower end, M − 2u_j ≤ T ≤ M, so
            what can be, x̃_i + u_i ≥ T, is in W; and what is in W is near, x̃_i + 3u_i + 2u ≥ T for the largest u of the range.
    """
    pairs, which = np.unique(np.stack([one.over.start, one.over.stop], 1), axis=0, return_inverse=True)
    lengths = pairs[:, 1] - pairs[:, 0]
    if int(lengths.sum()) > MOST_TERMS:
        return None
    ends = np.cumsum(lengths)
    rows = one.over.order[np.arange(int(lengths.sum())) + np.repeat(pairs[:, 0] - ends + lengths, lengths)]
    range_of = np.repeat(np.arange(len(pairs)), lengths)
    there = one.there[rows]
    rows, range_of = rows[there], range_of[there]
    used, starts = np.unique(range_of, return_index=True)
    number = np.full(len(pairs), -1)
    number[used] = np.arange(len(used))
    sign = 1 if one.function == "max" else -1
    low, high = (held.low, held.high) if sign > 0 else (-held.high, -held.low)
    low, high = low[rows], high[rows]
    made = Contest(rows, starts, number[which.ravel()], sign, there[there], there[there], np.zeros(0), np.zeros(0))
    if not len(starts):
        return made
    least = np.maximum.reduceat(low, starts)
    with np.errstate(all="ignore"):
        can = ~(high < made.spread(least))
        half = (high - low) / 2
        near = ~(high + 2 * half + 2 * made.spread(np.maximum.reduceat(half, starts)) < made.spread(least))
    return Contest(rows, starts, made.which, sign, can, near, least, np.maximum.reduceat(high, starts))


def extreme_ends(
    among: Contest, part: Bar, miss: Fraction, enclose_bar: Callable[[Bar, Fraction], ColumnEnclosure]
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the extreme number of each range.

    Claim   They miss it with probability at most `miss`, of which the contest has SCREENED. Forms, whose noises are
            symmetric, half of the rest for each end: the upper one is at least that of row j. The lower one is above M only
            where one of the rows that can be, all of them in W, has x_i below its lower end; their misses are made for at
            least as many rows as W has. Other parts: the interval of row j is among those of the rows that can be it, and no
            number is below the greatest of the ends that hold at once.
    Rounds  Outward.
    """
    left = (1 - SCREENED) * miss

    def ends(miss: Fraction) -> tuple[FloatArray, FloatArray]:
        held = enclose_bar(part, miss)
        found = (held.low, held.high) if among.sign > 0 else (-held.high, -held.low)
        return found[0][among.rows], found[1][among.rows]

    low, high = ends(left)
    upper = among.reduce(np.where(among.can, high, -np.inf), np.maximum, -np.inf)
    if isinstance(part, Form):
        levels = _levels(among)
        lower = np.full(len(levels), np.inf)
        for level in np.unique(levels).tolist():
            own = among.reduce(np.where(among.can, ends(left / (1 << level))[0], -np.inf), np.maximum, np.inf)
            lower = np.where(levels == level, own, lower)
    else:
        nearest = among.reduce(np.where(among.can, low, np.inf), np.minimum, np.inf)
        lower = np.maximum(nearest, among.reduce(among.spread(among.least), np.maximum, -np.inf))
    lower = np.minimum(lower, upper)
    return (lower, upper) if among.sign > 0 else (-upper, -lower)


def _levels(among: Contest) -> IntArray:
    """By row of the answer the logarithm of the number of near rows, rounded up."""
    count = among.reduce(among.near.astype(np.float64), np.add, 1.0)
    return np.ceil(np.log2(np.maximum(count, 1.0))).astype(np.int64)


def share_of_extreme(among: Contest, above: Form, part: Form, null: BoolArray, miss: Fraction) -> ColumnEnclosure:
    """Return where a form over the extreme one of others lies, in every row.

    Claim   It is missed with probability at most `miss`, of which the contest has SCREENED, and so has the interval of what
            stands above. Let t = x_r/M, and let x_r and M be above 0 (with the least below all is mirrored). In every row
            x_r − t x_i is at least 0, and in row j it is 0, whatever the signs of the others are. The set of row i ends
            below t only where the released x̃_r − t x̃_i is below −reach, so only where noise is: with half of the set's
            miss, as it is symmetric. So the outer end is that of row j or further out; the inner one is beyond t only where
            that of one of the rows that can be is, all of them in W, and their misses are made for as many rows as W has.
            If x_r may be below 0, both ends are those of all rows that can be j. If M is below 0, row j has an end only
            where its noise alone is above a reach, with half of a miss, and without one nothing is said. A form over
            itself is its factor. Where there are very many pairs, what the intervals of M and x_r allow that hold anyway:
            no other miss is needed, so it does not matter that noise may have decided it.
    Rounds  Outward.
    """
    left = (1 - 2 * SCREENED) * miss
    top = above.enclose(SCREENED * miss)
    there = np.flatnonzero((among.which >= 0) & ~null)
    own = among.which[there]
    able = np.flatnonzero(among.can)
    lengths = np.diff(np.searchsorted(able, [*among.starts.tolist(), len(among.rows)]))[own]
    if int(lengths.sum()) > _MOST_PAIRS:
        return _boxed_share(among, top, null)
    row = np.repeat(there, lengths)
    ends = np.cumsum(lengths)
    place = able[np.arange(len(row)) + np.repeat(np.searchsorted(able, among.starts)[own] - ends + lengths, lengths)]
    first, second = above.take(row), part.take(among.rows[place])
    low, high = _ratio_ends(first, second, left)
    inner = np.full((2, len(row)), np.nan)
    levels = _levels(among)[row]
    for level in np.unique(levels).tolist():
        at = np.flatnonzero(levels == level)
        inner[:, at] = _ratio_ends(first.take(at), second.take(at), left / (1 << level))
    outer_end, inner_end = (low, inner[1]) if among.sign > 0 else (-high, -inner[0])
    far, close = -_largest(-outer_end, row, above.rows), -_largest(-inner_end, row, above.rows)
    widest = _largest(inner_end, row, above.rows)
    positive = top.low > 0
    most = np.maximum(np.where(positive, close, widest), far)
    nothing = null | ~np.isin(np.arange(above.rows), row)
    open_ = ~(np.isfinite(far) & np.isfinite(most))  # of a divisor that may be below 0 the inner end says nothing either
    far, most = np.where(open_, -np.inf, far), np.where(open_, np.inf, most)
    found = (far, most) if among.sign > 0 else (-most, -far)
    return ColumnEnclosure(np.where(nothing, np.inf, found[0]), np.where(nothing, -np.inf, found[1]), nothing | open_)


def _boxed_share(among: Contest, top: ColumnEnclosure, null: BoolArray) -> ColumnEnclosure:
    """What stands above, within an interval, over what the extreme one is within; unknown where that may be 0 or less."""
    low, high = (among.reduce(among.spread(one), np.maximum, np.nan) for one in (among.least, among.most))
    low, high = (low, high) if among.sign > 0 else (-high, -low)
    known = (low > 0) & ~null
    with np.errstate(all="ignore"):
        held = on.divide(top, ColumnEnclosure(np.where(known, low, 1.0), np.where(known, high, 1.0), null))
    nothing = null | (among.which < 0)
    found = np.where(known, held.low, -np.inf), np.where(known, held.high, np.inf)
    return ColumnEnclosure(np.where(nothing, np.inf, found[0]), np.where(nothing, -np.inf, found[1]), nothing | ~known)


def _largest(values: FloatArray, row: IntArray, rows: int) -> FloatArray:
    found = np.full(rows, -np.inf)
    np.maximum.at(found, row, values)
    return found


def _ratio_ends(first: Form, second: Form, miss: Fraction) -> tuple[FloatArray, FloatArray]:
    """The ends of a ratio of two forms; a form over itself is its factor, one that differs by a number is by both sides."""
    held = Share(first, second).enclose(miss)
    low, high = np.where(held.null, -np.inf, held.low), np.where(held.null, np.inf, held.high)
    same = _factors(first, second)
    box = on.divide(first.enclose(miss / 4), second.enclose(miss / 4))
    low, high = np.where(np.isinf(same), box.low, low), np.where(np.isinf(same), box.high, high)
    factor = np.isfinite(same)
    same = np.where(factor, same, 0.0)
    return np.where(factor, same - 1e-12 * np.abs(same), low), np.where(factor, same + 1e-12 * np.abs(same), high)


def _factors(one: Form, other: Form) -> FloatArray:
    """By row how often one form has another, both of one variable; NaN where it has not, infinite where a number is added."""
    first, second = one.wide(), other.wide()
    alone = (np.diff(first.indptr) == 1) & (np.diff(second.indptr) == 1)
    found = np.full(one.rows, np.nan)
    rows = np.flatnonzero(alone)
    at, beside = first.indptr[rows], second.indptr[rows]
    rows, at, beside = (which[first.indices[at] == second.indices[beside]] for which in (rows, at, beside))
    with np.errstate(all="ignore"):
        factor = first.data[at] / second.data[beside]
        exact = np.abs(one.value[rows] - factor * other.value[rows]) <= _SAME * np.abs(one.value[rows])
    found[rows] = np.where(exact, factor, np.inf)
    return found
