"""Noisy power iteration and Lanczos, and the exact products with public vectors that they release.

Products.   Exact products of records with public vectors are what the iterations here and of oja.py release.

    whole records · whole public block ──► coefficients, cut to whole numbers ──► Σ record · coefficient

Every step is exact integer arithmetic on one record at a time, so that no record changes what another one adds: a
floating-point product A v would round differently when one row is gone. The public block is put on a grid, too; what it
loses there is lost to everybody alike.

Iterations.   Top directions from a few products with public vectors, without the matrix itself.

public block ──► exact product ──► + noise: one release ──► next block, by post-processing ──► …

T products are T releases of one part; what they cost together is known before the first. Each costs by the operator norm of
what one record adds, where a released matrix costs by its Frobenius norm: that is what these are for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.errors import Failed, require
from curador.learn.oracles.analyze_gauss import generic_block, top_symmetric
from curador.learn.sums import Floats, Integers, Whole, cross
from curador.numerics.exact import whole_root_up
from curador.privacy.adjacency import REPLACE_ONE, Adjacency

if TYPE_CHECKING:
    from curador.learn.release import Releaser


# ---- products --------------------------------------------------------------------------------------------------------------


_BITS = 18
_ONE = 1 << _BITS
_MOST = 1 << 53
_WIDEST = 4
"""Blocks are about orthonormal: their squared operator norm is at most this."""


@dataclass(frozen=True, slots=True)
class ExactProduct:
    """An exact product, to be released.

    length  how far one record moves it, in grid steps, in l2 over all entries
    step    what a grid step stands for
    """

    integers: Integers
    length: int
    step: float


Product: TypeAlias = Callable[[Floats], ExactProduct]
"""From a public block of columns, at most about orthonormal, to the exact product with it: (n × k) to (m × k)."""


def gram_product(rows: Whole, adjacency: Adjacency, *, one_row: bool) -> Product:
    """Return V ↦ Σ v v' V of whole rows.

    one_row  whether every record is one row, as against several with weights
    Claim    With g the operator norm of V on its grid, a record that comes or goes moves the sum by at most g · limit², for
             any number of columns, because |v v'V|_F = |v| |V'v|. A record of one row that is replaced moves it by g ·
             limit² for one column (|aa' − bb'|_op ≤ 1 for |a|, |b| ≤ 1), by g · √2 · limit² for more (the Frobenius norm),
             and 2 √k limit for cutting coefficients to whole numbers; one of several rows, by 2 g · limit².
    Needs    Weights of a record's rows, if any, with squares that add up to at most 1.
    Rounds   Up. g is at most the root of the largest absolute row sum of the exact V'V.
    """
    limit = rows.limit

    def product(block: Floats) -> ExactProduct:
        grid, norm = _on_grid(block)
        columns = grid.shape[1]
        coefficients = _coefficients(rows, grid)
        integers = _spread(rows, coefficients, limit)
        alone = whole_root_up(limit**4 * norm, _ONE**2)
        if adjacency is not REPLACE_ONE:
            length = alone
        elif not one_row:
            length = 2 * alone
        else:
            cut = whole_root_up(4 * columns * limit**2)
            length = cut + (alone if columns == 1 else whole_root_up(2 * limit**4 * norm, _ONE**2))
        return ExactProduct(integers, length, rows.step**2)

    return product


def cross_products(
    left: Whole, right: Whole, adjacency: Adjacency, coefficients: Whole | None = None
) -> tuple[Product, Product]:
    """Return V ↦ Σ c u v' V and U ↦ Σ c v u' U: the products of Σ c u v' and of its transpose.

    Claim   One record that comes or goes moves each by at most g · |left| · |right| · |c| (limits in grid steps; c cut back
            to its own bound), replaced by twice that; g as in `gram_product`.
    Needs   Weights, if any, whose products over a record's rows add up to at most 1.
    Rounds  Up.
    """

    def one(outer: Whole, inner: Whole) -> Product:
        def product(block: Floats) -> ExactProduct:
            grid, norm = _on_grid(block)
            factors = _times_coefficients(_coefficients(inner, grid), coefficients)
            alone = whole_root_up(outer.limit**2 * inner.limit**2 * norm, _ONE**2)
            length = 2 * alone if adjacency is REPLACE_ONE else alone
            return ExactProduct(_spread(outer, factors, inner.limit), length, outer.step * inner.step * _worth(coefficients))

        return product

    return one(left, right), one(right, left)


def symmetrised_product(left: Whole, right: Whole, adjacency: Adjacency, coefficients: Whole | None = None) -> Product:
    """Return x ↦ [[0, D], [D', 0]] x of D = Σ c u v', for one column of size m + n, released as one vector.

    Claim   A record moves it by at most |x| · |left| · |right| · |c|: (|u|² |v·b|² + |v|² |u·a|²)^½ ≤ |u| |v| |(a, b)|;
            replaced: by twice that.
    Needs   As `cross_products`.
    Rounds  Up.
    """
    height = left.values.shape[1]

    def product(block: Floats) -> ExactProduct:
        grid, norm = _on_grid(block)
        if grid.shape[1] != 1:
            raise Failed("a symmetrised product is of one column")
        upper = _spread(left, _times_coefficients(_coefficients(right, grid[height:]), coefficients), right.limit)
        lower = _spread(right, _times_coefficients(_coefficients(left, grid[:height]), coefficients), left.limit)
        alone = whole_root_up(left.limit**2 * right.limit**2 * norm, _ONE**2)
        length = 2 * alone if adjacency is REPLACE_ONE else alone
        return ExactProduct(np.concatenate([upper, lower]), length, left.step * right.step * _worth(coefficients))

    return product


def _on_grid(block: Floats) -> tuple[Floats, int]:
    """The block in whole numbers of 2⁻¹⁸, towards 0, and a bound on its squared operator norm there.

    Sums of squares of a column are exact while they are below 2⁵³; one that is not is refused for its size.
    """
    grid = np.trunc(np.asarray(block, np.float64).reshape(len(block), -1) * _ONE)
    norm = np.abs(grid.T @ grid).sum(axis=1).max(initial=0.0)
    if not norm <= _WIDEST * _ONE**2:
        raise Failed("a public block must be of orthonormal columns")
    return grid, int(norm)


def _coefficients(rows: Whole, grid: Floats) -> Floats:
    """Each row times the block, exactly, then cut towards 0: at most |row| · g / 2¹⁸, and whole.

    By Cauchy and Schwarz no part of a sum exceeds limit · g, which is below 2⁵³; dividing by 2¹⁸ is exact.
    """
    if rows.limit * 2 * _ONE >= _MOST:
        raise Failed("numbers too fine for exact products")
    return np.trunc(rows.values @ grid / _ONE)


def _times_coefficients(factors: Floats, coefficients: Whole | None) -> Floats:
    """Times what each row has for a coefficient, at most 1 in units of its limit, cut towards 0 again."""
    if coefficients is None:
        return factors
    return np.trunc(factors * coefficients.values / coefficients.limit)


def _worth(coefficients: Whole | None) -> float:
    return 1.0 if coefficients is None else coefficients.step * coefficients.limit


def _spread(rows: Whole, factors: Floats, limit: int) -> Integers:
    """Σ row · factor, exactly; `limit` of what the factors are made from, which g < 2 may double."""
    return cross(rows, Whole(factors, 1.0, 2 * limit))


# ---- power -----------------------------------------------------------------------------------------------------------------


STEPS_WITH_GAP = 6
"""Products that suffice where the first value stands out; ten where it does not."""


@dataclass(frozen=True, slots=True)
class Directions:
    """Top directions of a symmetric matrix: unit vectors as rows, and the noisy values of x'Ax there, falling."""

    values: Floats
    vectors: Floats


@dataclass(frozen=True, slots=True)
class TopPair:
    """The top singular pair of a rectangular matrix, unit vectors both, and the noisy value of left' A right ≥ 0."""

    value: float
    left: Floats
    right: Floats


def release_product(releaser: Releaser, name: str, exact: ExactProduct) -> Floats:
    """Release one exact product.

    Claim   Costs one release of the part `name`: its l2 length is given, its l1 length is at most √size times that.
    Rounds  Up.
    """
    length = exact.length
    if not releaser.plan.gaussian:
        square = exact.integers.size * length**2
        length = whole_root_up(square)
    return releaser.noisy(name, exact.integers, length=length, step=exact.step)


def power_iteration(
    releaser: Releaser, name: str, product: Product, *, size: int, count: int = 1, steps: int = STEPS_WITH_GAP
) -> Directions:
    """Return the `count` top directions of a symmetric positive matrix by block power iteration; `steps` releases of `name`.

    Each step multiplies an orthonormal block, adds noise, and makes it orthonormal again; the last product also gives
    values, by a decomposition within the block. Sensitivity does not grow with the block where a record is one row
    (`gram_product`).
    """
    require(steps >= 1, "steps", "at least 1", steps)
    kept = min(count, size)
    block = generic_block(size, kept)
    image = block
    for step in range(steps):
        if step:
            block = _orthonormal(image)
        image = release_product(releaser, name, product(block)).reshape(size, kept)
    return _ritz(block, image, kept)


def lanczos(
    releaser: Releaser, name: str, product: Product, *, size: int, count: int = 1, steps: int = STEPS_WITH_GAP
) -> Directions:
    """Return the `count` top directions from the space that `steps` products span; `steps` releases of `name`.

    One column at a time, each the last product made orthogonal to all before. The best directions within that space are
    found by Rayleigh and Ritz, and multiplied once more by the products that are there already: that is free.
    """
    require(steps >= 1, "steps", "at least 1", steps)
    require(count <= steps, "n_components", f"at most the number of products, {steps}", count, "ask for more steps")
    spread = min(steps, size)
    basis = np.empty((size, spread))
    images = np.empty((size, spread))
    following = generic_block(size, 1)[:, 0]
    for step in range(spread):
        basis[:, step] = following
        images[:, step] = release_product(releaser, name, product(following[:, None])).ravel()
        following = _next(images[:, step], basis[:, : step + 1])
    return _ritz(basis, images, min(count, spread))


def alternating_power(
    releaser: Releaser, name: str, right: Product, left: Product, *, shape: tuple[int, int], steps: int = STEPS_WITH_GAP
) -> TopPair:
    """Return the top singular pair by u ← A v, v ← A'u in turn, with noise; `steps` releases of `name`.

    right   V ↦ A V for public V;  left  U ↦ A'U
    """
    require(steps >= 2, "steps", "at least 2", steps)
    ends = (np.zeros(shape[0]), generic_block(shape[1], 1)[:, 0])
    value = 0.0
    for step in range(steps):
        image = release_product(releaser, name, (right if step % 2 == 0 else left)(ends[1 - step % 2][:, None])).ravel()
        value = float(np.linalg.norm(image))
        unit = image / max(value, np.finfo(np.float64).tiny)
        ends = (unit, ends[1]) if step % 2 == 0 else (ends[0], unit)
    return TopPair(value, ends[0], ends[1])


def alternating_lanczos(
    releaser: Releaser, name: str, right: Product, left: Product, *, shape: tuple[int, int], steps: int = STEPS_WITH_GAP
) -> TopPair:
    """Return the top singular pair from the two spaces that products in turn span; `steps` releases of `name`.

    Both sides are kept orthonormal; A between them is known twice, from either side's products, and their mean is decomposed.
    """
    require(steps >= 2, "steps", "at least 2", steps)
    rows, columns = shape
    rights, images = [generic_block(columns, 1)[:, 0]], list[Floats]()
    lefts, backs = list[Floats](), list[np.ndarray]()
    for step in range(min(steps, 2 * min(shape))):
        if step % 2 == 0:
            images.append(release_product(releaser, name, right(rights[-1][:, None])).ravel())
            lefts.append(_next(images[-1], np.array(lefts).reshape(-1, rows).T))
        else:
            backs.append(release_product(releaser, name, left(lefts[-1][:, None])).ravel())
            rights.append(_next(backs[-1], np.array(rights).T))
    return _middle(np.array(lefts[: len(backs)]), np.array(rights[: len(images)]), np.array(images), np.array(backs))


def _middle(lefts: Floats, rights: Floats, images: Floats, backs: Floats) -> TopPair:
    """Decompose A between two spaces, all given as rows: `images` are A times `rights`, `backs` are A' times `lefts`."""
    between = (lefts @ images.T + backs @ rights.T) / 2.0
    first, _, second = np.linalg.svd(between, full_matrices=False)
    up, down = images.T @ second[0], backs.T @ first[:, 0]
    high, wide = (max(float(np.linalg.norm(one)), np.finfo(np.float64).tiny) for one in (up, down))
    return TopPair(max(high, wide), up / high, down / wide)


def _ritz(basis: Floats, images: Floats, count: int) -> Directions:
    """The best directions within a basis whose products are known, multiplied once more by them."""
    inner = basis.T @ images
    values, vectors = top_symmetric((inner + inner.T) / 2.0, count)
    return Directions(values, _orthonormal(images @ vectors.T).T)


def _orthonormal(block: Floats) -> Floats:
    """Gram and Schmidt in the order of the columns, each keeping its direction."""
    found, triangle = np.linalg.qr(block)
    return np.asarray(found * np.where(np.diag(triangle) < 0, -1.0, 1.0), np.float64)


def _next(image: Floats, basis: Floats) -> Floats:
    """What is new in an image: orthogonal to the basis (columns), of length 1. Twice, because once leaves rounding behind."""
    rest = image
    for _ in range(2):
        rest = rest - basis @ (basis.T @ rest)
    length = float(np.linalg.norm(rest))
    return rest / length if length > 0 else generic_block(len(image), 1)[:, 0]
