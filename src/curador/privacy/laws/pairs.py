"""Cells of the pairs that subsampling starts from: Laplace noise, bounded range, Gaussian noise."""

from __future__ import annotations

import math

import numpy as np

from curador.numerics.rounding import UNIT
from curador.privacy.laws.cells import CellPair

_CELLS = 2_400


def _edges(reach: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    edges = np.linspace(-reach, reach, _CELLS + 1)
    edges[_CELLS // 2] = 0.0  # subsampling without replacement folds there
    return edges


def laplace_cells(epsilon: float, *, scale: float = math.inf, sensitivity: float = math.inf) -> CellPair:
    """Laplace noise with ε₀ = epsilon; discrete if `scale` (in grid units) and the integer `sensitivity` are given."""
    edges = _edges(epsilon)
    if math.isinf(scale):
        p_tail = -0.5 * np.expm1((edges - epsilon) / 2.0)
        q_tail = 0.5 * math.exp(-epsilon) * np.expm1((epsilon - edges) / 2.0)
        heavy, light = 0.5, 0.5 * math.exp(-epsilon)
    else:
        inside = np.clip(np.ceil((sensitivity - edges * scale) / 2.0) - 1.0, 0.0, sensitivity - 1.0)
        total = 1.0 + math.exp(-1.0 / scale)
        p_tail = math.exp(-1.0 / scale) * -np.expm1(-inside / scale) / total
        q_tail = math.exp(-epsilon) * np.expm1(inside / scale) / total
        heavy, light = 1.0 / total, math.exp(-epsilon) / total
    p_tail[-1] = q_tail[-1] = 0.0
    return CellPair(
        edges=edges,
        p=-np.diff(p_tail),
        q=-np.diff(q_tail),
        atoms=((epsilon, heavy, light), (-epsilon, light, heavy)),
        doubt=1e-12,
    )


def bounded_range_cells(epsilon: float) -> CellPair:
    """The pair that dominates every ε-bounded-range mechanism."""
    edges = _edges(epsilon)
    scale = 1.0 / -math.expm1(-epsilon)
    p_tail = scale * -np.expm1((edges - epsilon) / 2.0)
    q_tail = scale * math.exp(-epsilon) * np.expm1((epsilon - edges) / 2.0)
    return CellPair(edges=edges, p=-np.diff(p_tail), q=-np.diff(q_tail))


def gaussian_cells(mu: float) -> CellPair:
    """Gaussian noise, cut 14 standard deviations beyond both means.

    Rounds  A tail Φ(z) has |z| ≤ μ + 14 where it is small. z is the difference of two rounded numbers of at most μ + 14, the
            slope of log Φ is at most |z| + 1, and e^(−z²/2) adds z² units: less than 4 (μ + 15)² + 256 units of each tail.
    """
    from scipy.special import ndtr

    edges = _edges(mu * mu / 2.0 + 14.0 * mu)
    p_tail, q_tail = ndtr(mu / 2.0 - edges / mu), ndtr(-mu / 2.0 - edges / mu)
    outside, doubt = float(p_tail[-1]), UNIT * (4.0 * (mu + 15.0) ** 2 + 256.0)  # as much of Q lies below as of P above
    outside *= 1.0 + 2.0 * doubt
    return CellPair(edges=edges, p=-np.diff(p_tail), q=-np.diff(q_tail), beyond=outside, under=outside, doubt=doubt)
