"""The mean by one bit of everybody."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.local.client.chance import WHOLE
from curador.local.client.duchi import HALF, DuchiMeanClient
from curador.local.collector import integers
from curador.local.estimate import normal_quantile
from curador.local.means.base import Means, Sums, make_client, places
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import RandomizedResponseLoss
from curador.randomness.entropy import U64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Entropy, IntArray


@dataclass(frozen=True, slots=True, init=False)
class DuchiMean(Means):
    """Each person sends one bit, a 1 the more often the larger the number is. Best where ε is at most about 0.61.

    The variance on [−1, 1] is B² − x², B = (e^ε + 1)/(e^ε − 1): the largest in the middle.

    Claim   ε-private, and unbiased: probabilities are whole numbers over 2⁶⁴, linear in the place on the grid.
    Source  [DJW18]
    """

    columns: ClassVar = (("report", "int64"),)

    def client(self) -> DuchiMeanClient:
        """Return the part for a person's device."""
        return make_client(DuchiMeanClient, self.epsilon, self.lower, self.upper, self.steps)

    @property
    def loss(self) -> Loss:
        """Randomized response of ε. Claim: a bit whose chances stay between those of its two answers is made from them."""
        return RandomizedResponseLoss(epsilon=self.epsilon, categories=2, adjacency=REPLACE_ONE)

    @property
    def reach(self) -> Fraction:
        """B: what a 1 estimates where the bounds are −1 and 1; a 0 estimates −B."""
        return Fraction(HALF, self.client().slope * (self.steps // 2))

    def draw(self, value: NDArray[Any], source: Entropy, size: int | None = None) -> IntArray:
        """Put each number on the grid, then throw its coin of 64 bits."""
        shape = value.shape if size is None else (size, *value.shape)
        spread = np.broadcast_to(value, shape).ravel()
        place = places(spread, self.lower, self.upper, self.steps, source) - self.steps // 2
        shares = (place * self.client().slope).view(np.uint64) + np.uint64(
            HALF
        )  # between 0 and 2⁶⁴: it wraps to the right one
        return (source.words(spread.size, U64) < shares).astype(np.int64).reshape(shape)

    def accept(self, reports: Any) -> tuple[IntArray, int]:
        """Return the reports that are a bit."""
        return integers(reports, 0, 2)

    def zero(self) -> Sums:
        """No 1."""
        return np.array([0], object)

    def tally(self, reports: IntArray) -> Sums:
        """Count the 1s."""
        return np.array([int(np.count_nonzero(reports))], object)

    def moments(self, statistic: Sums, reports: int) -> tuple[Fraction, Fraction]:
        """A 1 estimates B, a 0 estimates −B."""
        return self.reach * (2 * int(statistic[0]) - reports), self.reach**2 * reports

    @property
    def rounding(self) -> Fraction:
        """Nothing: the square of a report is always the same."""
        return Fraction(0)

    def second_moment(self, at: Fraction) -> Fraction:
        """Return B², whatever the number. The grid's rounding changes nothing."""
        del at
        return self.reach**2

    def interval(self, centre: float, error: float, reports: int, confidence: Fraction) -> tuple[float, float]:
        """Return the score interval of the share of 1s, as means. Source: [Wil27]."""
        del error
        reach, z = float(self.reach), normal_quantile(confidence)
        share, weight = (centre / reach + 1.0) / 2.0, z * z / reports
        middle = (share + weight / 2) / (1 + weight)
        width = math.sqrt(max(weight * share * (1 - share) + weight * weight / 4, 0.0)) / (1 + weight)
        return reach * (2 * (middle - width) - 1), reach * (2 * (middle + width) - 1)


def worst_pair(client: DuchiMeanClient) -> tuple[Fraction, Fraction]:
    """Return how likely a 1 is at the upper bound and at the lower one."""
    return Fraction(client.share(client.steps), WHOLE), Fraction(client.share(0), WHOLE)
