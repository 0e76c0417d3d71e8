"""Error bars of smooth functions of moments over one count, under Gaussian noise: by their mean slopes, `plan/bending.py`.

With y = x/n, d_i = ỹ_i − y_i = (N_i − y_i N_n)/ñ and q_i the noise N_i − y_i N_n, whose coefficients are not random,

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
    from collections.abc import Mapping

    from curador.mechanisms.gaussian import DiscreteGaussian
    from curador.numerics.rounding import FloatArray
    from curador.plan.smooth import Box
    from curador.randomness.entropy import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Bending:
    """What the noises of moments over one count are, in every row.

    point, wide  every moment as what was released of it, and within all that can come out for the same truth
    where        in which rows this law is used, and in which that of the box
    values       where moments lie before noise
    errors       how far they are off
    further      how far they can be off at all, for any noise that is not missed: a bound of numbers that are not random
    sizes        ‖q‖ by moment, at most; slips: how far the lattice moves q
    divisor      ñ, and n − R or less, R being how far the count's noise goes
    """

    count: int
    point: Box
    wide: Box
    where: tuple[BoolArray, BoolArray]
    values: Mapping[int, ColumnEnclosure]
    errors: Mapping[int, FloatArray]
    further: Mapping[int, FloatArray]
    sizes: Mapping[int, FloatArray]
    slips: Mapping[int, FloatArray]
    divisor: tuple[FloatArray, FloatArray]
    noises: Mapping[int, DiscreteGaussian]
    miss: Fraction

    @classmethod
    def of(
        cls,
        count: int,
        released: FloatArray,
        reach: float,
        moments: Mapping[int, tuple[Jet, FloatArray]],
        noises: Mapping[int, DiscreteGaussian],
        shares: tuple[Fraction, Fraction],
    ) -> Bending:
        """Return the law of moments, each with its enclosure and how far it is off; reach: of the count's noise.

        shares  what the form may miss, and what each moment's own interval may

        Claim   An interval that is not missed has |q_i| ≤ t_i, and t_i is not random; so |d_i| ≤ t_i/(n − R), and what can come
                out lies in y ± that. ñ − 2R ≤ n − R, and t_i at the largest |y_i| that is possible is at least that at y_i.
        """
        near = np.where(released > 2 * reach, released - 2 * reach, np.nan)
        sure = np.zeros(len(released), np.bool_)
        own, slack = float(spread(noises[count])), lattice_slack(noises[count])
        unit = constant(Fraction(1), len(released))
        point, wide, further = {count: unit}, {count: unit}, dict[int, "FloatArray"]()
        sizes, slips = dict[int, "FloatArray"](), dict[int, "FloatArray"]()
        for index, (jet, error) in moments.items():
            most = np.maximum(np.abs(jet.value.low), np.abs(jet.value.high))
            sizes[index] = np.hypot(float(spread(noises[index])), most * own) * ROUND_OFF
            slips[index] = (lattice_slack(noises[index]) + most * slack) * ROUND_OFF
            known = np.where(np.isfinite(most), most, 0.0)
            both = np.stack([np.ones_like(known), known], axis=-1)
            reaches = combined_reaches((index, count), both, _Held(noises), shares[1])
            further[index] = np.where(np.isfinite(most), reaches / near * ROUND_OFF, np.inf)
            centre, far = jet.centre, error + further[index]
            point[index] = Jet(centre, centre, {**jet.slopes, count: on.negative(centre)}, {})
            wide[index] = Jet(centre, on.round_outward(centre.low - far, centre.high + far, sure), jet.slopes, {})
        values = {index: jet.value for index, (jet, _) in moments.items()}
        errors = {index: error for index, (_, error) in moments.items()}
        where = where_bent(np.where(np.isfinite(released), released, 0.0) / own)
        divisor = released, near
        return cls(count, point, wide, where, values, errors, further, sizes, slips, divisor, noises, shares[0])

    def reach(self, at: Jet, over: Jet, *, by_rows: bool, known: bool) -> FloatArray:
        """Return how far h(ỹ) is from h(y), or ñ h(ỹ) from n h(y) over ñ, h being seen at the point and over the wide box.

        by_rows, known   n times h is meant; h(y) is 0: for both h is `raised`

        Claim   The count's coefficient is −Σ g_i y_i = h(ỹ) − h(y) − Σ g_i ỹ_i, and by rows h(y) more: of g alone it is not
                known. sin ω ≤ bend · max(‖(Z₀, Z₁)‖, 1), bend = ½ Σ B_ij ‖q_i‖ (‖q_j‖ + its slip)/((n − R) ‖v̂‖) at the shortest
                v̂ that can come out: h_i(y) is within Σ B_ij |d_j| of h_i(ỹ), and g_i of other noise within half of what that
                can be off of h_i(y). Z is taken within the span of all q and, by rows, of N_n.
        Rounds  Up; infinite where slopes or bends are.
        """
        held, rows = list(self.values), len(self.divisor[0])
        halves, off = ({index: np.zeros(rows) for index in held} for _ in range(2))
        turned = np.zeros(rows)
        for (i, j), bend in over.bends.items():
            for one, other in {(i, j), (j, i)}:
                halves[one] = halves[one] + bend * self.errors[other] / 2
                off[one] = off[one] + bend * (self.errors[other] + self.further[other] / 2)
                turned = turned + bend * self.sizes[one] * (self.sizes[other] + self.slips[other]) / 2
        level = at.slopes[self.count]
        shortest, length, moved, apart, most = (np.zeros(rows) for _ in range(5))
        for index in (one for one in held if one in at.slopes):
            sigma, released = float(spread(self.noises[index])), self.point[index].centre
            size = _size(at.slopes[index]) + halves[index]
            length, moved = length + (size * sigma) ** 2, moved + size * lattice_slack(self.noises[index])
            apart, most = apart + halves[index] * _size(released), most + size * self.errors[index]
            possible = _around(at.slopes[index], off[index])
            least = np.maximum(np.maximum(possible.low, -possible.high), 0.0)
            shortest = shortest + (least * sigma) ** 2
        bend = turned / (self.divisor[1] * np.sqrt(np.where(shortest > 0, shortest, np.nan))) * ROUND_OFF
        left = float(self.miss) * (1 - 1e-9) - (len(held) + 1) * FAR
        critical = bent_values(np.where(turned > 0, bend, 0.0), len(held) - (not by_rows), left)
        own = self.noises[self.count]
        found = most * ROUND_OFF  # how far h can be off within its box
        for _ in range(1 if by_rows or known else 2):
            size = _size(level) + apart + (0.0 if by_rows or known else found)
            whole = np.sqrt(length + (size * float(spread(own))) ** 2)
            found = (critical * whole + moved + size * lattice_slack(own)) / self.divisor[0] * ROUND_OFF
        return np.where(np.isfinite(found), found, np.inf)

    def raised(self, at: Jet) -> Jet:
        """Return a function at the point with its value added to the count's slope."""
        return Jet(at.centre, at.value, {**at.slopes, self.count: on.add(at.slopes[self.count], at.centre)}, at.bends)


class _Held:
    """Noises by their places."""

    def __init__(self, noises: Mapping[int, DiscreteGaussian]) -> None:
        self.noises = noises

    def __getitem__(self, index: int) -> DiscreteGaussian:
        return self.noises[index]


def _size(one: ColumnEnclosure) -> FloatArray:
    return np.maximum(np.abs(one.low), np.abs(one.high))


def _around(one: ColumnEnclosure, off: FloatArray) -> ColumnEnclosure:
    return on.round_outward(one.low - off, one.high + off, one.null)
