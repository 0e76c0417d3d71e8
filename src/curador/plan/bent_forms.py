"""Error bars of smooth functions of moments under Gaussian noise: by their mean slopes, `plan/bending.py`.

With y = x/n, d_i = ỹ_i − y_i = (N_i − y_i N_n)/ñ, over one count, and q_i the form N_i − y_i N_n, which is not random,

    h(ỹ) − h(y) = Σ g_i d_i = v̂ · Z/ñ,   v̂ = Σ g_i q_i,   v = Σ h_i(y) q_i,

g_i being the mean of the slope h_i on the way from y to ỹ. With B_ij the most that h has of a bend,

    |g_i − h_i(ỹ)|, |g_i − h_i(y)| ≤ ½ Σ B_ij |d_j|,   ‖v̂ − v‖ ≤ ½ Σ B_ij ‖q_i‖ |d_j|.

So slopes need be known over half of the box only, and there is no rest: what bends do is to turn v̂, which costs little.
If h is n times a function of moments, ñ h(ỹ) − n h(y) has h(y) N_n as well, whose coefficient is not random either.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.plan import enclosure as on
from curador.plan.bending import bent_values, where_bent
from curador.plan.enclosure import ColumnEnclosure
from curador.plan.error import FAR, ROUND_OFF, combined_reaches, lattice_slack, spread
from curador.plan.smooth import Jet, constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from curador.mechanisms.gaussian import DiscreteGaussian
    from curador.numerics.rounding import FloatArray
    from curador.plan.smooth import Box
    from curador.randomness.entropy import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Bending:
    """What the noises of moments are, in every row.

    counts       over which count a moment is
    centres      what was released of moments, without its sign
    wide         every moment within all that can come out for the same truth
    where        in which rows this law is used, and in which that of the box
    errors       how far moments are off
    further      how far they can be off at all, for any noise that is not missed: a bound of numbers that are not random
    sizes        ‖q‖ by moment, at most; slips: how far the lattice moves q
    released     by count what was released; reaches: how far its noise goes
    miss         what the form may miss
    """

    counts: Mapping[int, int]
    centres: Mapping[int, FloatArray]
    wide: Box
    where: tuple[BoolArray, BoolArray]
    errors: Mapping[int, FloatArray]
    further: Mapping[int, FloatArray]
    sizes: Mapping[int, FloatArray]
    slips: Mapping[int, FloatArray]
    released: Mapping[int, FloatArray]
    reaches: Mapping[int, float]
    noises: Mapping[int, DiscreteGaussian]
    miss: Fraction

    @classmethod
    def of(
        cls,
        counts: Mapping[int, int],
        moments: Mapping[int, tuple[Jet, FloatArray]],
        released: Mapping[int, FloatArray],
        reaches: Mapping[int, float],
        noises: Mapping[int, DiscreteGaussian],
        shares: tuple[Fraction, Fraction],
    ) -> Bending:
        """Return the law of moments, each with its enclosure and how far it is off.

        shares  what the form may miss, and what each moment's own interval may

        Claim   An interval that is not missed has |q_i| ≤ t_i, and t_i is not random; so |d_i| ≤ t_i/(n − R), and what can
                come out lies in y ± that. ñ − 2R ≤ n − R; t_i at the largest |y_i| that is possible is at least that at y_i.
        """
        rows = len(next(iter(released.values())))
        sure, unit = np.zeros(rows, np.bool_), constant(Fraction(1), rows)
        wide, further = dict.fromkeys(released, unit), dict[int, "FloatArray"]()
        sizes, slips, errors = dict[int, "FloatArray"](), dict[int, "FloatArray"](), dict[int, "FloatArray"]()
        centres = dict[int, "FloatArray"]()
        for index, (jet, error) in moments.items():
            count = counts[index]
            most = _size(jet.value)
            known = np.where(np.isfinite(most), most, 0.0)
            errors[index] = error
            sizes[index] = np.hypot(float(spread(noises[index])), most * float(spread(noises[count]))) * ROUND_OFF
            slips[index] = (lattice_slack(noises[index]) + most * lattice_slack(noises[count])) * ROUND_OFF
            both = np.stack([np.ones(rows), known], axis=-1)
            t = combined_reaches((0, 1), both, (noises[index], noises[count]), shares[1])
            further[index] = np.where(np.isfinite(most), t / _near(released[count], reaches[count]) * ROUND_OFF, np.inf)
            centre, far = jet.centre, error + further[index]
            centres[index] = _size(centre)
            wide[index] = Jet(centre, on.round_outward(centre.low - far, centre.high + far, sure), jet.slopes, {})
        size = np.minimum.reduce([held / float(spread(noises[count])) for count, held in released.items()])
        where = where_bent(np.where(np.isfinite(size), size, 0.0))
        return cls(counts, centres, wide, where, errors, further, sizes, slips, released, reaches, noises, shares[0])

    def reach(self, at: Jet, over: Jet, *, by_rows: bool, known: bool) -> FloatArray:
        """Return how far h(ỹ) is from h(y), or ñ h(ỹ) from n h(y) over ñ, h being seen at the point and over the wide box.

        by_rows, known   n times h is meant; h(y) is 0: for both h is `raised`, if there is one count

        Claim   A count's coefficient is −Σ g_i y_i = Σ g_i d_i − Σ g_i ỹ_i, of moments over it. If there are no others, the
                first is h(ỹ) − h(y); by rows the coefficient has h(y) more, so of g alone it is not known. Elsewhere it is
                bounded. Z is taken within the span of all q and, by rows or with several counts, of the counts' noises.
                `_bend` bounds the turn.
        Rounds  Up; infinite where slopes or bends are.
        """
        slopes = {index: at.slopes[index] for index in self.counts if index in at.slopes}
        rows = len(at.centre.low)
        halves, off = ({index: np.zeros(rows) for index in self.counts} for _ in range(2))
        for one, other, bend in _both_ways(over):
            halves[one] = halves[one] + bend * self.errors[other] / 2
            off[one] = off[one] + bend * (self.errors[other] + self.further[other] / 2)
        sizes = {index: _size(slope) + halves[index] for index, slope in slopes.items()}
        possible = {index: _around(slope, off[index]) for index, slope in slopes.items()}
        most, apart = ({count: np.zeros(rows) for count in self.released} for _ in range(2))
        levels = {count: _size(at.slopes[count]) if count in at.slopes else np.zeros(rows) for count in self.released}
        square, moved = np.zeros(rows), np.zeros(rows)
        for index, size in sizes.items():
            count = self.counts[index]
            levels[count] = levels[count] + halves[index] * self.centres[index]
            most[count] = most[count] + size * self.errors[index]
            apart[count] = apart[count] + halves[index] * (self.centres[index] + self.errors[index])  # of slopes at y
            square = square + (size * self._sigma(index) / self.released[count]) ** 2
            moved = moved + size * lattice_slack(self.noises[index]) / self.released[count]
        exact = len(self.released) == 1 and (by_rows or known)
        bend = self._bend(over, possible, {count: level + most[count] + apart[count] for count, level in levels.items()})
        span = len(self.counts) + (len(self.released) if by_rows or len(self.released) > 1 else 0)
        left = float(self.miss) * (1 - 1e-9) - (len(self.counts) + len(self.released)) * FAR
        critical = bent_values(bend, span - 1, left)
        found = critical
        for _ in range(1 if exact or len(self.released) > 1 else 2):
            whole, slip = square, moved
            for count, level in levels.items():
                size = level + (0.0 if exact else most[count])
                whole = whole + (size * self._sigma(count) / self.released[count]) ** 2
                slip = slip + size * lattice_slack(self.noises[count]) / self.released[count]
            found = (critical * np.sqrt(whole) + slip) * ROUND_OFF
            most = dict.fromkeys(most, found)  # of one count: h is off by no more than that
        return np.where(np.isfinite(found), found, np.inf)

    def _bend(self, over: Jet, possible: Mapping[int, ColumnEnclosure], levels: Mapping[int, FloatArray]) -> FloatArray:
        """How much v̂ turns at most, over max(‖(Z₀, Z₁)‖, 1).

        possible, levels   where slopes can be for any noise, and how large a count's coefficient

        Claim   Let G = Σ g_i q_i and H = Σ h_i(y) q_i over the moments of one count. Of one count v̂ is G, and sin ω is at
                most ‖G − H‖/‖v̂‖ ≤ ½ Σ B_ij ‖q_i‖ (‖q_j‖ + its slip) ‖Z‖/((n − R) ‖v̂‖) at the shortest v̂ that can come
                out: h_i(y) is within Σ B_ij |d_j| of h_i(ỹ), and g_i of other noise within half of what that can be off
                of h_i(y). Of several v̂ is Σ G/ñ, v is Σ H/n, and H/ñ − H/n is −N_n H/(ñ n). None of these
                bounds is random, and what is computed is no less than they are.
        """
        rows = len(over.centre.low)
        near = {count: _near(held, self.reaches[count]) for count, held in self.released.items()}
        several = len(near) > 1
        turned, shortest = np.zeros(rows), np.zeros(rows)
        for one, other, bend in _both_ways(over):
            moved = bend * self.sizes[one] * (self.sizes[other] + self.slips[other]) / near[self.counts[other]] / 2
            turned = turned + (moved / near[self.counts[one]] if several else moved)
        squares = {count: (level * self._sigma(count)) ** 2 for count, level in levels.items()}
        for index, slope in possible.items():
            count = self.counts[index]
            least = np.maximum(np.maximum(slope.low, -slope.high), 0.0) * self._sigma(index)
            furthest = self.released[count] + 2 * self.reaches[count]
            shortest = shortest + ((least / furthest) ** 2 if several else least**2)
            squares[count] = squares[count] + (_size(slope) * self._sigma(index)) ** 2
        if several:
            for count, square in squares.items():
                own = self._sigma(count) + lattice_slack(self.noises[count])
                turned = turned + own * np.sqrt(square) / near[count] ** 2
        return np.where(turned > 0, turned / np.sqrt(np.where(shortest > 0, shortest, np.nan)) * ROUND_OFF, 0.0)

    def _sigma(self, index: int) -> float:
        return float(spread(self.noises[index]))


def _near(count: FloatArray, reach: float) -> FloatArray:
    """n − R or less, which is above 0; else no number."""
    return np.where(count > 2 * reach, count - 2 * reach, np.nan)


def _both_ways(over: Jet) -> Iterator[tuple[int, int, FloatArray]]:
    """Every bend with its pair of moments in either order."""
    for (i, j), bend in over.bends.items():
        yield i, j, bend
        if i != j:
            yield j, i, bend


def _size(one: ColumnEnclosure) -> FloatArray:
    return np.maximum(np.abs(one.low), np.abs(one.high))


def _around(one: ColumnEnclosure, off: FloatArray) -> ColumnEnclosure:
    return on.round_outward(one.low - off, one.high + off, one.null)
