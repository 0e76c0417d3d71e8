"""Do the outputs follow the law that the mechanism claims? χ² against exact probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray

LEAST_EXPECTED = 20.0
"""Neighbouring cells are pooled until each expects this many, where the law of χ² is good to the tails in use."""

MOST_CELLS = 128


@dataclass(frozen=True, slots=True)
class Fit:
    """The p-value of the claimed law: small means that the outputs do not follow it."""

    p: float
    statistic: float
    degrees: int


@dataclass(frozen=True, slots=True)
class LawCells:
    """A claimed law, seen through cells of integers: cell i holds edges[i − 1] ≤ k < edges[i]; the outer ones are tails."""

    edges: NDArray[np.int64]
    probabilities: FloatArray

    def counts(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many outputs each cell holds."""
        return np.bincount(np.searchsorted(self.edges, outputs, side="right"), minlength=len(self.edges) + 1).astype(np.int64)


def goodness(counts: NDArray[Any], probabilities: FloatArray) -> Fit:
    """Return the χ² fit of counts to the probabilities of the same cells.

    Cells are pooled from the left until each expects at least 20. A count where the law has no mass at all gives p = 0.
    """
    from scipy.special import chdtrc

    size = int(counts.sum())
    expected = np.asarray(probabilities, np.float64) * size
    if np.any(counts[expected == 0.0] > 0):
        return Fit(0.0, math.inf, 0)
    pooled = _pool_cells(expected)
    seen, wanted = np.bincount(pooled, weights=counts), np.bincount(pooled, weights=expected)
    statistic = float(((seen - wanted) ** 2 / wanted).sum())
    degrees = len(wanted) - 1
    return Fit(float(chdtrc(degrees, statistic)) if degrees else 1.0, statistic, degrees)


def _pool_cells(expected: FloatArray) -> NDArray[np.int64]:
    """Which pool each cell belongs to; a last pool that expects too little joins the one before."""
    pool, held = 0, 0.0
    out = np.empty(len(expected), np.int64)
    for place, value in enumerate(expected.tolist()):
        if held >= LEAST_EXPECTED:
            pool, held = pool + 1, 0.0
        out[place] = pool
        held += value
    if held < LEAST_EXPECTED and pool:
        out[out == pool] = pool - 1
    return out


def laplace_cells(scale: Fraction, shift: int = 0, *, reach: int | None = None) -> LawCells:
    """Return cells of P[k] ∝ e^(−|k − shift|/scale), given |k − shift| ≤ reach: of about equal mass, or single integers."""
    rate = float(1 / scale)
    quantiles = np.linspace(0, 1, MOST_CELLS // 2 + 1)[1:-1]
    away = np.unique(np.ceil(-np.log(quantiles) / rate).astype(np.int64))
    edges = np.unique(np.concatenate([1 - away, away, [0, 1]]))

    def below(edge: FloatArray) -> FloatArray:  # P[k < edge] by the tail of the nearer side
        tail = np.exp(-np.abs(np.where(edge <= 0, 1 - edge, edge)) * rate) / (1 + math.exp(-rate))
        return np.where(edge <= 0, tail, 1 - tail)

    if reach is None:
        return _cells(edges, below(edges.astype(np.float64)), shift)
    first, last = below(np.array([-reach, reach + 1.0])).tolist()
    edges = np.concatenate([[-reach], edges[(edges > -reach) & (edges <= reach)], [reach + 1]])
    return _cells(edges, (below(edges.astype(np.float64)) - first) / (last - first), shift)


def staircase_cells(epsilon: Fraction, width: int, first: int, shift: int = 0) -> LawCells:
    """Return cells of staircase noise: the first and the second part of each stretch of `width`, on both sides."""
    blocks = min(40, math.ceil(12 / float(epsilon)) + 1)
    fall = math.exp(-float(epsilon))
    starts = [block * width + part for block in range(blocks) for part in (0, first)]
    masses = [fall**block * mass for block in range(blocks) for mass in (first, fall * (width - first))]
    edges = np.array([*(1 - start for start in reversed(starts)), *starts[1:]], np.int64)
    far = fall**blocks * (first + fall * (width - first)) / (1 - fall)  # beyond the last stretch, which the last cell holds
    sides = np.array([*masses[:-1], masses[-1] + far])
    weights = np.concatenate([sides[::-1], sides])
    weights[len(sides) - 1] -= 1  # 0 has no negative twin
    edges = np.concatenate([edges[: len(sides) - 1], [0], edges[len(sides) :]])
    return LawCells(edges + shift, weights / weights.sum())


def gaussian_cells(sigma2: Fraction, shift: int = 0) -> LawCells:
    """Return cells of P[k] ∝ e^(−(k − shift)²/2σ²) of about equal mass.

    Below σ = 1000 by summing; above, where the sum over integers and the normal integral between half-integers agree to
    1/(24 σ²) of a cell's mass, by the normal law.
    """
    from scipy.special import ndtr, ndtri

    sigma = math.sqrt(sigma2)
    edges = np.unique(np.round(sigma * ndtri(np.linspace(0, 1, MOST_CELLS + 1)[1:-1])).astype(np.int64))
    if sigma >= 1000:
        return _cells(edges, ndtr((edges - 0.5) / sigma), shift)
    reach = math.ceil(12 * sigma) + 12
    places = np.arange(-reach, reach + 1)
    mass = np.exp(-(places.astype(np.float64) ** 2) / (2 * float(sigma2)))
    sums = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    edges = np.unique(np.concatenate([edges, [0, 1]]))
    return _cells(edges, sums[np.clip(edges + reach, 0, len(places))], shift)


def _cells(edges: NDArray[np.int64], below: FloatArray, shift: int) -> LawCells:
    return LawCells(edges + shift, np.diff(np.concatenate([[0.0], below, [1.0]])))
