"""What an adversary believes after he saw an output, by the rule of Bayes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.exact import whole
from curador.privacy.odds import posterior_bounds

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray

CELLS = 16
"""Cells of a score that is no likelihood ratio by itself: few, or rare ones would show beliefs that are only noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The belief in the second world after each tested release of the first (beliefs0) and of the second (beliefs1).

    posterior odds = prior odds · likelihood ratio. Where the attack knows the law, the ratio is that of the claimed law; else
    it is estimated by how often a cell of the score is seen in each world, on other releases.

    low, high   between which every belief lies under pure ε; None where the loss is not pure: then a rare output may convince
                him of anything
    exact       whether the ratios are those of the claimed law; estimated ones may leave the bounds a little
    """

    prior: float
    beliefs0: FloatArray
    beliefs1: FloatArray
    low: float | None
    high: float | None
    exact: bool = True

    @property
    def mean(self) -> float:
        """The average belief in the world that was true."""
        return float(self.prior * self.beliefs1.mean() + (1 - self.prior) * (1 - self.beliefs0).mean())

    @property
    def largest(self) -> float:
        """The largest belief in the second world that was seen."""
        return float(max(self.beliefs0.max(), self.beliefs1.max()))

    @property
    def least(self) -> float:
        """The smallest belief in the second world that was seen."""
        return float(min(self.beliefs0.min(), self.beliefs1.min()))

    @property
    def right(self) -> float:
        """How often the world that he believes in more is the true one."""
        ahead, behind = _majority(self.beliefs1), 1 - _majority(self.beliefs0)
        return float(self.prior * ahead + (1 - self.prior) * behind)

    def calibration(self, cells: int = 10) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Return mean belief, share of the second world by the prior, and number of releases, for equal steps of belief.

        Beliefs are right if the first two agree. Steps without a release are left out.
        """
        count = whole(cells, "cells")
        places = [np.minimum((beliefs * count).astype(np.int64), count - 1) for beliefs in (self.beliefs0, self.beliefs1)]
        weights = ((1 - self.prior) / len(self.beliefs0), self.prior / len(self.beliefs1))
        mass = [np.bincount(place, minlength=count) * weight for place, weight in zip(places, weights, strict=True)]
        sums = [
            np.bincount(place, beliefs, minlength=count) * weight
            for place, beliefs, weight in zip(places, (self.beliefs0, self.beliefs1), weights, strict=True)
        ]
        seen = np.bincount(np.concatenate(places), minlength=count)
        kept = seen > 0
        total = (mass[0] + mass[1])[kept]
        return (sums[0] + sums[1])[kept] / total, mass[1][kept] / total, seen[kept].astype(np.int64)


def posterior_of(
    choose: tuple[FloatArray, FloatArray],
    test: tuple[FloatArray, FloatArray],
    prior: Fraction,
    pure: Fraction | None,
    *,
    exact: bool,
) -> Posterior:
    """Return the beliefs after the tested releases; scores that are no likelihood ratios are made ones by the others."""
    low, high = (None, None) if pure is None else posterior_bounds(pure, prior=prior)
    ratios = test if exact else _estimated(choose, test)
    odds = float(prior / (1 - prior))
    beliefs = [_belief(one, odds) for one in ratios]
    return Posterior(float(prior), beliefs[0], beliefs[1], low, high, exact)


def _belief(log_ratios: FloatArray, odds: float) -> FloatArray:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-log_ratios) / odds)


def _majority(beliefs: FloatArray) -> float:
    """How often he says *second world*; half of the time where he is undecided."""
    return float(np.mean((beliefs > 0.5) + 0.5 * (beliefs == 0.5)))


def _estimated(choose: tuple[FloatArray, FloatArray], test: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    values, counts = np.unique(np.concatenate(choose), return_counts=True)
    ends = np.cumsum(counts)
    places = np.searchsorted(ends, np.linspace(0, ends[-1], CELLS + 1)[1:-1], side="left") + 1
    edges = values[np.unique(places[places < len(values)])]
    seen = [np.bincount(np.searchsorted(edges, one, side="right"), minlength=len(edges) + 1) + 0.5 for one in choose]
    ratios = np.log(seen[1] / len(choose[1])) - np.log(seen[0] / len(choose[0]))
    one, other = (ratios[np.searchsorted(edges, scores, side="right")] for scores in test)
    return one, other
