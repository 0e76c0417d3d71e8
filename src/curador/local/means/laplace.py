"""The mean by Laplace noise on every number."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.local.client.laplace import LaplaceMeanClient
from curador.local.collector import integers
from curador.local.means.base import Means, Sums, exact_sums, fraction_variance, make_client, places
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import DiscreteLaplaceLoss
from curador.randomness.noise import laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Entropy, IntArray


@dataclass(frozen=True, slots=True, init=False)
class LaplaceMean(Means):
    """Each person sends the number's place on the grid plus discrete Laplace noise of scale steps/ε.

    The variance is 8/ε² on [−1, 1], wherever the number lies. Its loss is smaller than ε where δ is allowed.

    Claim   ε-private. Unbiased but for e⁻⁶⁴, the probability that a report is cut.
    Source  [DMNS06]; [GRS09] for whole numbers.
    """

    columns: ClassVar = (("report", "int64"),)

    def client(self) -> LaplaceMeanClient:
        """Return the part for a person's device."""
        return make_client(LaplaceMeanClient, self.epsilon, self.lower, self.upper, self.steps)

    @property
    def loss(self) -> Loss:
        """Discrete Laplace noise on a place that moves by all steps at most."""
        return DiscreteLaplaceLoss(scale=self.steps / self.epsilon, sensitivity=self.steps, adjacency=REPLACE_ONE)

    def draw(self, value: NDArray[Any], source: Entropy, size: int | None = None) -> IntArray:
        """Put each number on the grid, add the noise, cut as the client does."""
        shape = value.shape if size is None else (size, *value.shape)
        spread = np.broadcast_to(value, shape).ravel()
        noise = laplace(self.steps / self.epsilon).draw(spread.size, source)
        noise += places(spread, self.lower, self.upper, self.steps, source)
        limit = self.client().limit
        return np.clip(noise, -limit, self.steps + limit).reshape(shape)

    def accept(self, reports: Any) -> tuple[IntArray, int]:
        """Return the reports that a client could have sent."""
        limit = self.client().limit
        return integers(reports, -limit, self.steps + limit + 1)

    def zero(self) -> Sums:
        """No sum, no squares."""
        return np.array([0, 0], object)

    def tally(self, reports: IntArray) -> Sums:
        """Add up reports and their squares."""
        return np.array(exact_sums(reports), object)

    def moments(self, statistic: Sums, reports: int) -> tuple[Fraction, Fraction]:
        """A report y estimates 2y/steps − 1."""
        first, second = int(statistic[0]), int(statistic[1])
        half = Fraction(self.steps, 2)
        return first / half - reports, second / half**2 - 2 * first / half + reports

    @property
    def rounding(self) -> Fraction:
        """A quarter of a step squared."""
        return Fraction(1, self.steps**2)

    def second_moment(self, at: Fraction) -> float:
        """Return x² + (2/steps)² (f(1 − f) + 2r/(1 − r)²), r = e^(−ε/steps)."""
        rate = float(self.epsilon / self.steps)
        noise = 2.0 * np.exp(-rate) / np.expm1(-rate) ** 2
        rounding = fraction_variance((at + 1) * self.steps / 2)
        return float(at**2) + (2.0 / self.steps) ** 2 * (float(rounding) + float(noise))
