"""The nuclear ball {X : the singular values of X add up to at most R}, and its dual norm, the largest singular value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from curador.learn.sums import Floats


def nuclear_norm(matrix: Floats) -> float:
    """Return the sum of the singular values."""
    return float(np.linalg.svd(matrix, compute_uv=False).sum())


def operator_norm(matrix: Floats) -> float:
    """Return the largest singular value."""
    return float(np.linalg.svd(matrix, compute_uv=False).max(initial=0.0))


def simplex_cut(values: Floats, radius: float) -> Floats:
    """Return the point nearest to `values` (falling, ≥ 0) of those that are ≥ 0 and add up to at most radius.

    It is max(v − t, 0) with the one t ≥ 0 at which the sum is right.
    """
    if values.sum() <= radius:
        return values
    sums = np.cumsum(values) - radius
    count = np.arange(1, len(values) + 1)
    above = np.flatnonzero(values - sums / count > 0)
    last = int(above[-1]) if len(above) else 0  # of values so large that the radius is lost in their rounding
    return np.minimum(np.maximum(values - sums[last] / (last + 1), 0.0), radius)


def project(matrix: Floats, radius: float) -> Floats:
    """Return the nearest matrix of the ball, in the Frobenius norm: the singular values, projected."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    if values.sum() <= radius:
        return matrix
    cut = simplex_cut(values, radius)
    kept = int((cut > 0).sum())
    return (left[:, :kept] * cut[:kept]) @ right[:kept]


def top_pair(matrix: Any) -> tuple[Floats, float, Floats]:
    """Return u, s, v of the largest singular value s; `matrix` may be sparse."""
    if hasattr(matrix, "tocsr") and min(matrix.shape) > 2:
        from scipy.sparse.linalg import svds

        start = np.ones(min(matrix.shape)) / np.sqrt(min(matrix.shape))
        found: Any = svds(matrix, k=1, v0=start)
        return found[0][:, 0], float(found[1][0]), found[2][0]
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, np.float64)
    left, values, right = np.linalg.svd(dense, full_matrices=False)
    return left[:, 0], float(values[0]), right[0]


def linear_minimiser(matrix: Any, radius: float) -> tuple[Floats, Floats]:
    """Return u, v such that u v' minimises ⟨matrix, X⟩ over the ball: the minimum is −radius · operator norm."""
    left, _, right = top_pair(matrix)
    return -radius * left, right


def linear_minimiser_near(matrix: Floats, radius: float, start: Floats, rounds: int) -> tuple[Floats, Floats]:
    """Return about the same by `rounds` of power iteration from a right vector; for matrices that change little by little."""
    right = start
    left = matrix @ right
    for _ in range(rounds):
        right = matrix.T @ left
        right /= max(float(np.sqrt(right @ right)), 1e-300)
        left = matrix @ right
    length = max(float(np.sqrt(left @ left)), 1e-300)
    return left * (-radius / length), right
