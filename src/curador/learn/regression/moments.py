"""Second moments in one noisy release, and least squares made of them.

The release is of Σ u u', Σ u v' and Σ q of whole numbers; moments are what they are after noise.

Regressions need nothing else of the data: least squares, discriminants, preconditioners of gradient steps.

Least squares from noisy second moments is arithmetic on what was released, all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import Failed
from curador.learn.regression.frame import TOP, Design, Sizes
from curador.numerics.exact import whole_root_up
from curador.privacy.adjacency import REPLACE_ONE

if TYPE_CHECKING:
    from curador.learn.plan import FitGoal, FitPlan
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers


# ---- moments ---------------------------------------------------------------------------------------------------------------


NAME = "second moments"

_EXACT = 1 << 53
_EXPECTED = 0.25
"""The squared length of coefficients (of targets and features in [-1, 1]) for which noise is shared out."""


@dataclass(frozen=True, slots=True)
class TargetGrid:
    """How fine targets and their squares are, in whole numbers. Public.

    target   what ±1 is
    square   what v² = 1 is; 0: squares are not released
    columns  how many targets there are; of several, a row has one that is not 0
    """

    target: int
    square: int = 0
    columns: int = 1


@dataclass(frozen=True, slots=True)
class NoisyMoments:
    """Noisy second moments, in units of features and targets in [-1, 1].

    gram      Σ u u', symmetric, not necessarily positive
    cross     Σ u v', one column a target
    square    Σ v²; NaN where it was not released
    noise     the standard deviations of off-diagonal entries of gram, and of cross. Public
    pure      whether noise is Laplace noise
    """

    gram: Floats
    cross: Floats
    square: float
    noise: tuple[float, float]
    pure: bool


def grid_of(sizes: Sizes, *, pure: bool, squares: bool, columns: int = 1) -> TargetGrid:
    """Return the grid of targets that makes the noise of cross and gram weigh about equally in what is solved from them.

    Where targets are s times as fine as features and a release has length l, noise in gram is as l and noise in cross as l/s;
    the gradient of a quadratic has both, times |β| and 1. s minimises l²(|β|² + 1/s²): s³ = a/(b|β|²) in l1, where
    l = a + s·b; s⁴ = |u|²/(2|β|²) in l2, where l² = |u|⁴ + 2 s²|u|².
    """
    one, square = sizes.one / TOP, sizes.square / TOP**2
    if pure:
        ratio = ((one * one + square) / 2 / (one * _EXPECTED)) ** (1 / 3)
    else:
        ratio = (square / (2 * _EXPECTED)) ** 0.25
    target = round(TOP * min(max(ratio, 0.5), 8.0))
    # squares are for error bars only: a tenth of what targets may take
    fine = round(TOP * target * (one if pure else math.sqrt(square)) / 10) if squares else 0
    return TargetGrid(target, fine, columns)


def length_of(sizes: Sizes, grid: TargetGrid, goal: FitGoal, *, intercept: bool) -> int:
    """Return by how many grid steps one unit moves the release of `release_moments`.

    Claim   Gaussian (l2, u u' and u v' in both triangles): |u u'|² + 2|u v'|² + q² = |u|⁴ + 2|u|²|v|² + q². Two units have
            inner product (u·w)² + 2(u·w)(v·t) ≥ −(v·t)², so replacing moves by at most √(2(|u|⁴ + 2|u|²|v|² + |v|⁴) + q²)
            and by at most twice what adding does. Units of many rows: weighted sums of the same over rows and pairs.
            Laplace (l1, one triangle): (|u|₁² + |u|²)/2 + |u|₁|v|₁ + |q|. Replacing: twice, but for what is never negative,
            which moves by at most its largest value: q, and the squares u_j² in a box. The count does not move. Less in a
            cube: `_replaced_in_cube`.
    Needs   |v| and |v|₁ at most grid.target, q between 0 and grid.square; rows times the roots of weights that add up to 1.
    Rounds  Up.
    """
    one, square, v, q = sizes.one, sizes.square, grid.target, grid.square
    replaced = goal.adjacency is REPLACE_ONE
    if goal.pure:
        whole = -(-(one * one + square) // 2) + one * v + q
        if not replaced:
            return whole
        loose = 2 * whole - q - (square if sizes.box else 0) - (TOP * TOP if intercept else 0)
        return min(loose, _replaced_in_cube(sizes.cube, grid, intercept=intercept)) if sizes.cube else loose
    added = square * square + 2 * square * v * v
    if not replaced:
        return whole_root_up(added + q * q)
    return whole_root_up(min(2 * added + 2 * v**4, 4 * added) + q * q)


def _replaced_in_cube(features: int, grid: TargetGrid, *, intercept: bool) -> int:
    """Return what a replaced unit moves at most in l1, where features are bounded by TOP each and by nothing else.

    Claim   But for squares and q, which move by at most their largest values, the distance of (z, t, v) and (z', t', v') is
            Σ |z_i z_j − z_i' z_j'| + Σ |z_i t − z_i' t'| + Σ |z_i v − z_i' v'| + |t v − t' v'|: convex in each number alone,
            so that a largest value is at corners: z in ±TOP, t in {0, TOP}, v in ±target (of several columns: one of them).
            Corners that differ in m signs: pairs move 2 if one of the two differs. Units of many rows are mixtures of such
            points, and of 0, which is one; distances of mixtures are at most those of their points.
    """
    one, v, several = TOP * TOP, TOP * grid.target, grid.columns > 1
    best = 0
    for m in range(features + 1):
        pairs = 2 * m * (features - m) * one
        crossed = 2 * v * (features if several else max(m, features - m))
        best = max(best, pairs + crossed)
        if intercept:
            both = 2 * v * (features + 1 if several else max(m, features - m + 1))
            best = max(best, pairs + 2 * m * one + both, pairs + features * one + crossed + v)
    return best + features * one + grid.square


def release_moments(
    releaser: Releaser,
    design: Design,
    targets: Floats,
    squares: Floats | None,
    grid: TargetGrid,
    *,
    intercept: bool,
    records: int | None,
    name: str = NAME,
) -> NoisyMoments:
    """Release Σ u u', Σ u v', Σ q with one draw of noise and return them in units of [-1, 1].

    targets  whole numbers (as floats), one row a row of the design, one column a target: times the root of the row's weight
    squares  whole numbers, one a row, times the row's weight; None: not released
    records  how many there are, where that is public (records are replaced): the count is then not released
    """
    goal = releaser.plan.goal
    length = length_of(design.sizes, grid, goal, intercept=intercept)
    gram = products(design.values, design.values, design.sizes.top**2)
    cross = products(design.values, targets, design.sizes.top * grid.target)
    known = intercept and goal.adjacency is REPLACE_ONE
    if known:
        gram[-1, -1] = 0
    total = np.zeros(0, np.int64) if squares is None else np.array([whole_total(squares, max(grid.square, 1))], np.int64)
    width = len(gram)
    if goal.pure:
        upper = np.triu_indices(width)
        noisy = releaser.noisy(name, np.concatenate([gram[upper], cross.ravel(), total]), length=length, step=1.0 / TOP**2)
        first = np.zeros((width, width))
        first[upper] = noisy[: len(upper[0])]
        found, rest = first + np.triu(first, 1).T, noisy[len(upper[0]) :]
        second = rest[: cross.size].reshape(cross.shape)
    else:
        parts = [gram.ravel(), cross.ravel(), cross.ravel(), total]
        noisy = releaser.noisy(name, np.concatenate(parts), length=length, step=1.0 / TOP**2)
        first = noisy[: gram.size].reshape(width, width)
        found, rest = (first + first.T) / 2, noisy[gram.size :]
        second = ((rest[: cross.size] + rest[cross.size : 2 * cross.size]) / 2).reshape(cross.shape)
    if known:
        if records is None:
            raise Failed("the number of records must be known where records are replaced")
        found[-1, -1] = float(records)
    square = math.nan if squares is None else float(noisy[-1]) * TOP**2 / grid.square
    return NoisyMoments(
        found,
        second * (TOP / grid.target),
        square,
        noise_of(releaser.plan, design.sizes, grid, intercept=intercept, name=name),
        goal.pure,
    )


def marginal_length(sizes: Sizes, goal: FitGoal) -> int:
    """Return by how many grid steps, in l1, one unit moves squares, sums and the count of `release_marginals`.

    Claim   Σ u_j² + TOP·Σ|u_j| over the features, and TOP² for the count. Replacing: twice the sums; squares, which are never
            negative, in a box by at most their largest values; the count does not move.
    Rounds  Up.
    """
    features = sizes.square - TOP * TOP
    sums = (sizes.one - TOP) * TOP
    if goal.adjacency is REPLACE_ONE:
        return 2 * sums + (features if sizes.box else 2 * features)
    return features + sums + TOP * TOP


def release_marginals(releaser: Releaser, design: Design, *, records: int | None, name: str = NAME) -> NoisyMoments:
    """Release Σ u_j² and Σ u_j alone, of a design with a last column of ones, under Laplace noise.

    They are returned in the place of Σ u u', whose other entries are 0. Of many features: far less noise.
    """
    goal = releaser.plan.goal
    length = marginal_length(design.sizes, goal)
    gram = products(design.values, design.values[:, -1:], design.sizes.top**2)[:, 0]
    squares = np.array([whole_total(np.square(column), TOP**2) for column in design.values[:, :-1].T], np.int64)
    known = goal.adjacency is REPLACE_ONE
    if known:
        gram[-1] = 0
    noisy = releaser.noisy(name, np.concatenate([squares, gram]), length=length, step=1.0 / TOP**2)
    width = len(gram)
    found = np.zeros((width, width))
    found[np.arange(width - 1), np.arange(width - 1)] = noisy[: width - 1]
    found[-1, :] = found[:, -1] = noisy[width - 1 :]
    if known:
        if records is None:
            raise Failed("the number of records must be known where records are replaced")
        found[-1, -1] = float(records)
    deviation = releaser.plan.deviation(name, float(length)) / TOP**2
    return NoisyMoments(found, np.zeros((width, 0)), math.nan, (deviation, math.nan), goal.pure)


def noise_of(plan: FitPlan, sizes: Sizes, grid: TargetGrid, *, intercept: bool, name: str = NAME) -> tuple[float, float]:
    """Return the standard deviations of the entries of gram (off its diagonal) and of cross. Public."""
    each = plan.deviation(name, float(length_of(sizes, grid, plan.goal, intercept=intercept)))
    if plan.gaussian:
        each /= math.sqrt(2)
    return each / TOP**2, each / (TOP * grid.target)


def products(left: Floats, right: Floats, limit: int) -> Integers:
    """Return Σ u v' of whole numbers, exactly.

    Needs  No |u v'| entry of a row is above limit.
    Claim  Blocks are so short that every partial sum is a whole number below 2⁵³, which floats hold in every order of adding.
    """
    rows = len(left)
    if limit >= _EXACT:
        raise Failed("numbers too fine for exact products")
    size = max(1, (_EXACT - 1) // limit)
    out = np.zeros((left.shape[1], right.shape[1]), np.int64)
    for start in range(0, rows, size):
        part = slice(start, start + size)
        out += (left[part].T @ right[part]).astype(np.int64)
    return out


def whole_total(numbers: Floats, limit: int) -> int:
    """Return the exact sum of whole numbers of at most `limit`."""
    return int(products(np.ones((len(numbers), 1)), numbers[:, None], limit)[0, 0])


# ---- least squares ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """v ≈ slopes · z + height, in units of features and targets in [-1, 1].

    errors  standard errors of slopes: of noise and of sampling together
    """

    slopes: Floats
    height: float
    errors: Floats


def centred_moments(moments: NoisyMoments, records: int | None = None) -> tuple[float, Floats, Floats, Floats, Floats]:
    """Return count, means, targets' means, and the centred Σ and cross sums, of moments whose last column is of ones.

    records  how many were declared; None: not said
    """
    count = count_of(moments, records)
    means = np.clip(moments.gram[:-1, -1] / count, -1.0, 1.0)
    heights: Floats = moments.cross[-1] / count
    gram = moments.gram[:-1, :-1] - count * np.outer(means, means)
    cross: Floats = moments.cross[:-1] - count * means[:, None] * heights[None, :]
    return count, means, heights, gram, cross


def count_of(moments: NoisyMoments, records: int | None) -> float:
    """Return how many records there are: as counted with noise and as declared, which is taken to be within a quarter."""
    counted, noise = float(moments.gram[-1, -1]), max(moments.noise[0], 1.0)
    if records is None:
        return max(counted, noise)
    own, other = 1.0 / noise**2, 16.0 / records**2
    return max((own * counted + other * records) / (own + other), records / 16)


def floor_of(moments: NoisyMoments) -> float:
    """Return about the size of eigenvalues that cannot be told from noise, whose own reach 2√width times its entries. Public.

    The factors were chosen on synthetic and public tables; under Laplace noise few entries make the largest eigenvalues, and
    a smaller one does.
    """
    return (0.5 if moments.pure else 0.8) * moments.noise[0] * math.sqrt(len(moments.gram))


def gains(values: Floats, floor: float, ridge: float | None) -> Floats:
    """Return what takes the place of 1/value for noisy eigenvalues.

    ridge  None: value₊/(value₊² + floor²), which is the linear estimate with the least mean squared error where coefficients
           are of size 1 and each equation has noise of size floor; a number: 1/(value₊ + ridge)
    """
    positive = np.maximum(values, 0.0)
    if ridge is None:
        return positive / (np.square(positive) + floor * floor)
    return np.where(positive + ridge > 0.0, 1.0 / np.where(positive + ridge > 0.0, positive + ridge, 1.0), 0.0)


def line_of(moments: NoisyMoments, *, intercept: bool, ridge: float | None, records: int | None = None) -> Line:
    """Return the least squares line of noisy moments.

    Errors are of slopes = F c, F = V g(Λ) V': noise in c, noise in the Gram matrix times the coefficients, and sampling,
    whose variance is what is left of Σ v². They do not contain what shrinking takes away.
    """
    noise = moments.noise
    if intercept:
        count, means, heights, gram, cross = centred_moments(moments, records)
        target, height = cross[:, 0], float(np.clip(heights[0], -1.0, 1.0))
    else:
        gram, target, means, height, count = moments.gram, moments.cross[:, 0], np.zeros(len(moments.gram)), 0.0, 1.0
    values, vectors = np.linalg.eigh(gram)
    gain = gains(values, floor_of(moments), ridge)
    slopes = vectors @ (gain * (vectors.T @ target))
    positive = np.maximum(values, 0.0)
    left = moments.square - (count * height * height if intercept else 0.0) - float(slopes @ target)
    size = count if intercept else max(float(np.trace(moments.gram)), 1.0)
    spread = min(max(left / size, 0.0), 1.0) if math.isfinite(left) else 0.0
    noisy = noise[1] ** 2 + noise[0] ** 2 * float(slopes @ slopes + height * height)
    variances = np.square(vectors) @ (np.square(gain) * (noisy + spread * positive))
    return Line(slopes, height - float(means @ slopes), np.sqrt(variances))
