"""The noisy second moment: all of a symmetric matrix is released once; eigenvectors are then free.

exact Gram ──► + integer noise on every entry ──► symmetrised ──► top eigenpairs, with what noise did to them undone

What noise does to a spectrum is known in advance, because the noise is: below the edge 2 √d σ an eigenvalue says nothing,
above it both its value and the angle of its vector have known limits. So the edge, the corrected values and the angles are
public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from curador.errors import Failed
from curador.learn.sums import Floats, Integers, Whole, gram, sensitivity_steps
from curador.numerics.exact import whole_root_up

if TYPE_CHECKING:
    from curador.learn.plan import FitPlan
    from curador.learn.release import Releaser

_TRACY_WIDOM = 2.0234
"""Where the largest eigenvalue of real symmetric noise ends in 99 of 100 draws, in units of its own fluctuation beyond the
edge."""

_DENSE = 1500
"""Up to this size all of a matrix is decomposed; above, only what is asked for, by an iteration."""


@dataclass(frozen=True, slots=True)
class NoisyMatrix:
    """A released matrix.

    deviation  standard deviation of the noise of an entry; of one off the diagonal where the matrix is symmetric
    """

    values: Floats
    deviation: float


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The top of a noisy symmetric matrix, all of it post-processing.

    values       the largest eigenvalues, falling, as they came out
    vectors      their unit eigenvectors, as rows; the largest entry of each is positive
    edge         2 √d σ: where the eigenvalues of noise alone end
    threshold    a little above the edge: noise alone exceeds it in one draw of a hundred
    debiased     the eigenvalues before noise, by the limit for large d; 0 below the edge
    cosines      squared cosines between the vectors and those before noise, by the same limit; 0 below the edge
    significant  how many eigenvalues lie above the threshold
    """

    values: Floats
    vectors: Floats
    edge: float
    threshold: float
    debiased: Floats
    cosines: Floats
    significant: int


@dataclass(frozen=True, slots=True)
class SingularPairs:
    """The top singular pairs of a rectangular matrix: values falling, left and right unit vectors as rows."""

    values: Floats
    left: Floats
    right: Floats


# ---- releases -----------------------------------------------------------------------------------------------------------


def noisy_gram(releaser: Releaser, name: str, rows: Whole) -> NoisyMatrix:
    """Release Σ v v' of rows; one release of the part `name`.

    Claim   As `noisy_symmetric`: a record adds a positive semi-definite matrix of Frobenius norm at most limit².
    Needs   Weights of a record's rows, if any, with squares that add up to at most 1.
    """
    return noisy_symmetric(releaser, name, gram(rows), limit=rows.limit**2, step=rows.step**2)


def noisy_symmetric(releaser: Releaser, name: str, integers: Integers, *, limit: int, step: float) -> NoisyMatrix:
    """Release an exact symmetric matrix of whole numbers; one release of the part `name`.

    limit   a record adds a positive semi-definite matrix of at most this Frobenius norm, in grid steps
    Claim   Costs what the plan accounts for one release. Gaussian: every entry gets its own noise and the mean with the
            transpose is kept, which halves the variance off the diagonal and is post-processing. Laplace: the upper triangle
            is released, and Σ_{i≤j} |m_ij| ≤ √(d + d(d−1)/4) |m|_F for symmetric m, by Cauchy and Schwarz.
    Needs   The integers are exact and symmetric.
    Rounds  Lengths up.
    Source  [DTTZ14]
    """
    size = _side(integers)
    length = symmetric_length(releaser.plan, size, limit)
    if releaser.plan.gaussian:
        full = releaser.noisy(name, integers, length=length, step=step)
        return NoisyMatrix((full + full.T) / 2, releaser.deviation(name, length=length, step=step) / math.sqrt(2.0))
    upper = np.triu_indices(size)
    values = np.zeros((size, size))
    values[upper] = releaser.noisy(name, integers[upper], length=length, step=step)
    values.T[upper] = values[upper]
    return NoisyMatrix(values, releaser.deviation(name, length=length, step=step))


def symmetric_length(plan: FitPlan, size: int, limit: int) -> int:
    """Return how far one record moves what `noisy_symmetric` releases: l2 of all, or l1 of the triangle. Rounds up."""
    length = sensitivity_steps(limit, plan.goal.adjacency, positive=True)
    if plan.gaussian:
        return length
    return whole_root_up(size * (size + 3) * length**2, 4)


def symmetric_deviation(plan: FitPlan, name: str, size: int, *, limit: int, step: float) -> float:
    """Return the deviation off the diagonal of what `noisy_symmetric` would release. Public: for forecasts."""
    deviation = plan.deviation(name, symmetric_length(plan, size, limit) * step)
    return deviation / math.sqrt(2.0) if plan.gaussian else deviation


# ---- what follows from a release ----------------------------------------------------------------------------------------


def noise_edge(size: int, deviation: float) -> tuple[float, float]:
    """Return 2 √d σ and the threshold above it that noise alone exceeds in one draw of a hundred."""
    edge = 2.0 * math.sqrt(size) * deviation
    return edge, edge + _TRACY_WIDOM * deviation * size ** (-1.0 / 6.0)


def debias_values(values: Floats, size: int, deviation: float) -> tuple[Floats, Floats]:
    """Return eigenvalues before noise, l = (e + √(e² − 4dσ²))/2, and squared cosines 1 − dσ²/l²; zeros below the edge.

    The limits for a few eigenvalues that stand out of noise on a large matrix: unbiased but for terms that vanish with 1/d.
    """
    floor = size * deviation**2
    seen = values > 2.0 * math.sqrt(floor)
    inner = np.sqrt(np.maximum(values**2 - 4.0 * floor, 0.0))
    before = np.where(seen, (values + inner) / 2.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = np.where(seen & (before > 0), 1.0 - floor / before**2, 0.0)
    return before, np.clip(cosines, 0.0, 1.0)


def spectrum(noisy: NoisyMatrix, count: int) -> Spectrum:
    """Return the `count` top eigenpairs of a noisy symmetric matrix, and what may be believed of them."""
    size = _side(noisy.values)
    values, vectors = top_symmetric(noisy.values, count)
    edge, threshold = noise_edge(size, noisy.deviation)
    before, cosines = debias_values(values, size, noisy.deviation)
    return Spectrum(values, vectors, edge, threshold, before, cosines, int(np.count_nonzero(values > threshold)))


def top_symmetric(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, falling, and their vectors as rows. The matrix is public, or the result is not."""
    from scipy.linalg import eigh

    size = _side(matrix)
    kept = min(count, size)
    found: tuple[Any, Any] | None = _iterate_pairs(matrix, kept) if size > _DENSE and 4 * kept < size else None
    if found is None:
        found = cast("tuple[Any, Any]", eigh(matrix, subset_by_index=(size - kept, size - 1)))
    values, vectors = np.asarray(found[0], np.float64), np.asarray(found[1], np.float64)
    order = np.argsort(values)[::-1]
    return values[order], _fix_signs(vectors.T[order])


def top_pairs(matrix: Floats, count: int = 1) -> SingularPairs:
    """Return the top singular pairs; where only the first is wanted, right = the unit vector that maximises |M v|."""
    rows, columns = matrix.shape
    kept = min(count, rows, columns)
    if min(rows, columns) <= 256:
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        return _pairs(values[:kept], left.T[:kept], right[:kept])
    wide = rows <= columns
    squares, vectors = top_symmetric(matrix @ matrix.T if wide else matrix.T @ matrix, kept)
    values = np.sqrt(np.maximum(squares, 0.0))
    other = vectors @ (matrix if wide else matrix.T)
    other /= np.maximum(np.linalg.norm(other, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return _pairs(values, vectors, other) if wide else _pairs(values, other, vectors)


def debias_pairs(values: Floats, shape: tuple[int, int], deviation: float) -> tuple[Floats, Floats, Floats]:
    """Return singular values before noise, and squared cosines of left and right vectors; zeros below the edge σ(√m + √n).

    y² = (s² + mσ²)(s² + nσ²)/s² for noise of deviation σ on an m × n matrix, m and n large: solved for s.
    """
    high, wide = shape[0] * deviation**2, shape[1] * deviation**2
    middle = values**2 - high - wide
    seen = values > math.sqrt(high) + math.sqrt(wide)
    squares = np.where(seen, (middle + np.sqrt(np.maximum(middle**2 - 4.0 * high * wide, 0.0))) / 2.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        top = squares**2 - high * wide
        left = np.where(seen & (squares > 0), top / (squares * (squares + high)), 0.0)
        right = np.where(seen & (squares > 0), top / (squares * (squares + wide)), 0.0)
    return np.sqrt(squares), np.clip(left, 0.0, 1.0), np.clip(right, 0.0, 1.0)


def generic_block(size: int, count: int) -> Floats:
    """Return a public orthonormal block (size × count) in general position: normal quantiles of a golden-ratio sequence."""
    from scipy.special import ndtri

    golden = (math.sqrt(5.0) - 1.0) / 2.0
    places = (np.arange(1, size * count + 1, dtype=np.float64) * golden + 0.5 * golden) % 1.0
    block: Floats = np.asarray(ndtri(np.clip(places, 1e-9, 1 - 1e-9)), np.float64).reshape(size, count)
    return np.asarray(np.linalg.qr(block)[0], np.float64)


def _iterate_pairs(matrix: Floats, count: int) -> tuple[Any, Any] | None:
    """The same by an iteration; None where that does not converge."""
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    try:
        return cast("tuple[Any, Any]", eigsh(matrix, k=count, which="LA", v0=generic_block(len(matrix), 1)[:, 0]))
    except ArpackNoConvergence:
        return None


def _pairs(values: Floats, left: Floats, right: Floats) -> SingularPairs:
    signs = _signs(left)
    return SingularPairs(values, left * signs, right * signs)


def _fix_signs(vectors: Floats) -> Floats:
    return vectors * _signs(vectors)


def _signs(vectors: Floats) -> Floats:
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, None], axis=1)
    return np.where(largest < 0, -1.0, 1.0)


def _side(matrix: Floats | Integers) -> int:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 1:
        raise Failed("a symmetric matrix is square")
    return int(matrix.shape[0])
