"""The curve of true against false alarms, with a band that holds for all thresholds at once.

The thresholds are chosen on other samples. At each, both rates get Clopper–Pearson bounds; the error probability is shared
among all of them, so the band is exact at every sample size and narrow where alarms are rare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.audit.bounds import clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.numerics.rounding import FloatArray

    Tradeoff: TypeAlias = Callable[[FloatArray], FloatArray]

THRESHOLDS = 127
"""Most thresholds of a curve."""


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """Rates of *score ≥ threshold*: false alarms in the first world, true ones in the second; by growing false alarms.

    The first point is *never*, the last one *always*: both are certain.
    """

    thresholds: FloatArray
    fpr: FloatArray
    tpr: FloatArray
    fpr_low: FloatArray
    fpr_high: FloatArray
    tpr_low: FloatArray
    tpr_high: FloatArray

    def lower(self, fpr: FloatArray) -> FloatArray:
        """Return the lower edge of the band: rates that some test, a mixture of two thresholds, does reach."""
        return np.interp(fpr, self.fpr_high, self.tpr_low)

    def upper(self, fpr: FloatArray) -> FloatArray:
        """Return the upper edge of the band: rates that no threshold of this score exceeds."""
        place = np.searchsorted(self.fpr_low, fpr, side="right")  # thresholds before it have a rate of at most fpr
        return self.tpr_high[np.minimum(place, len(self.tpr_high) - 1)]

    @property
    def area(self) -> float:
        """The area under the curve: how often a release of the second world scores above one of the first."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def excess(self, tradeoff: Tradeoff) -> FloatArray:
        """Return, for each threshold, by how much the rectangle of its bounds lies beyond the proved region; ≤ 0: not at all.

        Claim   With f(x) the least rate of misses, in either order of the worlds, every event has TPR ≤ 1 − f(FPR) and
                FPR ≤ 1 − f(TPR), and so has its complement. The four are tested at the corner that is kindest to the claim.
        """
        rates = np.concatenate([self.fpr_high, 1.0 - self.tpr_low, 1.0 - self.fpr_low, self.tpr_high])
        misses = tradeoff(rates).reshape(4, -1)  # in one call: some losses prepare a lot for it
        return np.max(
            [
                self.tpr_low - (1.0 - misses[0]),
                misses[1] - self.fpr_high,
                misses[2] - self.tpr_high,
                self.fpr_low - (1.0 - misses[3]),
            ],
            axis=0,
        )


def thresholds_of(scores0: FloatArray, scores1: FloatArray) -> FloatArray:
    """Return thresholds for other samples, falling: every value where there are few, else quantiles, dense at both ends."""
    values, counts = np.unique(np.concatenate([scores0, scores1]), return_counts=True)
    if len(values) <= THRESHOLDS + 1:
        return values[1:][::-1]
    ends = np.cumsum(counts)
    shares = np.sin(np.linspace(0.0, math.pi / 2, THRESHOLDS + 2)[1:-1]) ** 2
    places = np.searchsorted(ends, shares * ends[-1], side="left")
    return values[np.unique(np.clip(places, 1, len(values) - 1))][::-1]


def hits(thresholds: FloatArray, scores: FloatArray) -> FloatArray:
    """Return how many scores are at or above each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left").astype(np.float64)


def measured(thresholds: FloatArray, scores0: FloatArray, scores1: FloatArray, *, alpha: float) -> Roc:
    """Return the curve of the scores at thresholds that were chosen without them.

    Claim   All rates lie within their bounds at once with probability at least 1 − alpha: each of the four bounds of a
            threshold gets alpha / (4 · thresholds).
    Needs   Independent releases; thresholds that do not depend on them.
    Source  [CP34]
    """
    share = alpha / (4 * max(len(thresholds), 1))
    false, true = hits(thresholds, scores0), hits(thresholds, scores1)
    fpr_low, fpr_high = clopper_pearson(false, len(scores0), share)
    tpr_low, tpr_high = clopper_pearson(true, len(scores1), share)
    return Roc(
        np.concatenate([[math.inf], thresholds, [-math.inf]]),
        _ended(false / len(scores0)),
        _ended(true / len(scores1)),
        _ended(fpr_low),
        _ended(fpr_high),
        _ended(tpr_low),
        _ended(tpr_high),
    )


def _ended(rates: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], rates, [1.0]])
