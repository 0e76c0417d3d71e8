"""The mean by a number near everybody's, and by a mixture of that and one bit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.local.client.chance import WHOLE
from curador.local.client.piecewise import HybridMeanClient, PiecewiseMeanClient
from curador.local.collector import integers, rows_of_integers
from curador.local.means.base import Means, Sums, exact_sums, fraction_variance, make_client, places
from curador.local.means.duchi import DuchiMean, worst_pair
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import Finite
from curador.randomness.choice import below, bernoulli

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Entropy, IntArray


@dataclass(frozen=True, slots=True, init=False)
class PiecewiseMean(Means):
    """Each person sends a number of a grid, one from a window around the own number more often than any other.

    The variance on [−1, 1] is about x²/(s − 1) + (s + 3)/(3(s − 1)²), s = e^(ε/2): best where ε
    is large and numbers are near the middle.

    Claim   ε-private, and unbiased: the mean of a report is `slope` times the place of the window's centre, exactly.
    Source  [WXY+19], on a grid.
    """

    columns: ClassVar = (("report", "int64"),)

    def client(self) -> PiecewiseMeanClient:
        """Return the part for a person's device."""
        return make_client(PiecewiseMeanClient, self.epsilon, self.lower, self.upper, self.steps)

    @property
    def loss(self) -> Loss:
        """The loss of two numbers whose windows have nothing in common.

        Claim   Where two windows share o outputs, H = (W − o)(a − e^s b)₊ for the chances a inside and b outside: the less
                the more they share, at every s and in both directions. So the pair without a common output, which exists
                for 2W ≤ N, dominates every other. Rounding mixes pairs, and H is convex in the pair.
        Source  [ZDW22] for dominating pairs.
        """
        return Finite(p=self.worst_pair[0], q=self.worst_pair[1], adjacency=REPLACE_ONE)

    @property
    def worst_pair(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """The chances of one window, of another and of the rest, under a number of the one and of the other."""
        client = self.client()
        inside = Fraction(client.share, WHOLE)
        other = (1 - inside) * client.window / client.outside
        rest = 1 - inside - other
        return (inside, other, rest), (other, inside, rest)

    @property
    def slope(self) -> Fraction:
        """k: the mean of a report on the window around c is k c.

        Claim   t c from the window; all outputs add up to 0, so those outside of it to −W c, a share (1 − t)/(N − W) of each.
        """
        client = self.client()
        inside = Fraction(client.share, WHOLE)
        return inside - (1 - inside) * client.window / client.outside

    @property
    def unit(self) -> Fraction:
        """What a report of 1 estimates, where the bounds are −1 and 1."""
        return 2 / (self.slope * self.client().outside)

    def draw(self, value: NDArray[Any], source: Entropy, size: int | None = None) -> IntArray:
        """Put each number's window on the grid, then draw inside and outside of it; a coin says which is sent."""
        shape = value.shape if size is None else (size, *value.shape)
        spread = np.broadcast_to(value, shape).ravel()
        client = self.client()
        start = places(spread, self.lower, self.upper, client.outside, source)
        near = bernoulli(Fraction(client.share, WHOLE), spread.size, source)
        inside = below(client.window, spread.size, source)
        outside = below(client.outside, spread.size, source)
        outside += np.where(outside >= start, client.window, 0)
        inside += start
        return (np.where(near, inside, outside) - self.steps // 2).reshape(shape)

    def accept(self, reports: Any) -> tuple[IntArray, int]:
        """Return the reports that are one of the outputs."""
        return integers(reports, -(self.steps // 2), self.steps // 2 + 1)

    def zero(self) -> Sums:
        """No sum, no squares."""
        return np.array([0, 0], object)

    def tally(self, reports: IntArray) -> Sums:
        """Add up reports and their squares."""
        return np.array(exact_sums(reports), object)

    def moments(self, statistic: Sums, reports: int) -> tuple[Fraction, Fraction]:
        """A report y estimates `unit` y."""
        del reports
        return self.unit * int(statistic[0]), self.unit**2 * int(statistic[1])

    @property
    def rounding(self) -> Fraction:
        """A quarter, times the weight of a window's place in the mean square."""
        return self.unit**2 * self.slope / 4

    def second_moment(self, at: Fraction) -> Fraction:
        """Return unit² E[y²], with the sums of squares of all outputs and of those of a window; exact."""
        client = self.client()
        inside = Fraction(client.share, WHOLE)
        reach = Fraction(client.outside, 2)
        centre = (at * reach) ** 2 + fraction_variance((at + 1) * reach)  # the mean of c²
        own = client.window * centre + _squares(client.window)
        outside = _squares(self.steps + 1) - own
        return self.unit**2 * (inside * own / client.window + (1 - inside) * outside / client.outside)


def _squares(size: int) -> Fraction:
    """The sum of the squares of `size` consecutive whole numbers around 0, size odd."""
    return Fraction(size * (size * size - 1), 12)


@dataclass(frozen=True, slots=True, init=False)
class HybridMean(Means):
    """Each person sends a piecewise report with probability 1 − e^(−ε/2), else one bit. Best from ε ≈ 0.61 on.

    The variance hardly depends on the number: where that of one is large the other's is small.

    Claim   ε-private, and unbiased: which of the two it is does not depend on the number.
    Source  [WXY+19]
    """

    columns: ClassVar = (("which", "int64"), ("report", "int64"))

    def client(self) -> HybridMeanClient:
        """Return the part for a person's device."""
        return make_client(HybridMeanClient, self.epsilon, self.lower, self.upper, self.steps)

    @property
    def parts(self) -> tuple[PiecewiseMean, DuchiMean]:
        """The two protocols that are mixed."""
        return (
            PiecewiseMean(lower=self.lower, upper=self.upper, epsilon=self.epsilon, steps=self.steps),
            DuchiMean(lower=self.lower, upper=self.upper, epsilon=self.epsilon, steps=self.steps),
        )

    @property
    def weight(self) -> Fraction:
        """How likely a report is piecewise."""
        return Fraction(self.client().share, WHOLE)

    @property
    def loss(self) -> Loss:
        """The worst pair of both parts side by side. Claim: H adds up over outputs that tell which part it is."""
        client = self.client()
        first, second = self.parts[0].worst_pair
        high, low = worst_pair(client.bit)
        weight = self.weight
        p = [weight * one for one in first] + [(1 - weight) * high, (1 - weight) * (1 - high)]
        q = [weight * one for one in second] + [(1 - weight) * low, (1 - weight) * (1 - low)]
        return Finite(p=p, q=q, adjacency=REPLACE_ONE)

    def draw(self, value: NDArray[Any], source: Entropy, size: int | None = None) -> IntArray:
        """Draw both reports of each number and which is sent: rows of (1, piecewise) or (0, bit)."""
        piece, bit = (part.draw(value, source, size) for part in self.parts)
        which = bernoulli(self.weight, piece.size, source).reshape(piece.shape)
        return np.stack([which.astype(np.int64), np.where(which, piece, bit)], axis=-1)

    def accept(self, reports: Any) -> tuple[IntArray, int]:
        """Return the reports that either part could have sent."""
        half = self.steps // 2
        rows, bad = rows_of_integers(reports, (0, -half), (2, half + 1))
        good = (rows[:, 0] == 1) | (rows[:, 1] >= 0) & (rows[:, 1] <= 1)
        return (rows, bad) if good.all() else (rows[good], bad + int(np.count_nonzero(~good)))

    def zero(self) -> Sums:
        """No report of either kind."""
        return np.array([0, 0, 0, 0], object)

    def tally(self, reports: IntArray) -> Sums:
        """Add up piecewise reports and their squares; count bits and the 1s among them."""
        piecewise = reports[:, 0] == 1
        first, second = exact_sums(reports[piecewise, 1]) if piecewise.any() else (0, 0)
        bits = reports[~piecewise, 1]
        return np.array([first, second, len(bits), int(np.count_nonzero(bits))], object)

    def moments(self, statistic: Sums, reports: int) -> tuple[Fraction, Fraction]:
        """Each report estimates what it estimates in its own part."""
        bits = int(statistic[2])
        first = self.parts[0].moments(statistic[:2], reports - bits)
        second = self.parts[1].moments(statistic[3:], bits)
        return first[0] + second[0], first[1] + second[1]

    @property
    def rounding(self) -> Fraction:
        """That of the piecewise reports."""
        return self.weight * self.parts[0].rounding

    def second_moment(self, at: Fraction) -> Fraction:
        """Return the mixture of both parts' mean squares."""
        piece, bit = self.parts
        return self.weight * piece.second_moment(at) + (1 - self.weight) * bit.second_moment(at)
