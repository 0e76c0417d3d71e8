"""Noisy power iteration and Lanczos: top directions from a few products with public vectors, without the matrix itself.

public block ──► exact product (products.py) ──► + noise: one release ──► next block, by post-processing ──► …

T products are T releases of one part; what they cost together is known before the first. Each costs by the operator norm of
what one record adds, where a released matrix costs by its Frobenius norm: that is what these are for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import require
from curador.learn.oracles.analyze_gauss import generic_block, top_symmetric
from curador.learn.sums import Floats

if TYPE_CHECKING:
    from curador.learn.oracles.products import Exact, Product
    from curador.learn.release import Releaser

STEPS_WITH_GAP = 6
"""Products that suffice where the first value stands out; ten where it does not."""


@dataclass(frozen=True, slots=True)
class Directions:
    """Top directions of a symmetric matrix: unit vectors as rows, and the noisy values of x'Ax there, falling."""

    values: Floats
    vectors: Floats


@dataclass(frozen=True, slots=True)
class Pair:
    """The top singular pair of a rectangular matrix, unit vectors both, and the noisy value of left' A right ≥ 0."""

    value: float
    left: Floats
    right: Floats


def released(releaser: Releaser, name: str, exact: Exact) -> Floats:
    """Release one exact product.

    Claim   Costs one release of the part `name`: its l2 length is given, its l1 length is at most √size times that.
    Rounds  Up.
    """
    length = exact.length
    if not releaser.plan.gaussian:
        square = exact.integers.size * length**2
        length = math.isqrt(square - 1) + 1
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
        image = released(releaser, name, product(block)).reshape(size, kept)
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
        images[:, step] = released(releaser, name, product(following[:, None])).ravel()
        following = _next(images[:, step], basis[:, : step + 1])
    return _ritz(basis, images, min(count, spread))


def alternating_power(
    releaser: Releaser, name: str, right: Product, left: Product, *, shape: tuple[int, int], steps: int = STEPS_WITH_GAP
) -> Pair:
    """Return the top singular pair by u ← A v, v ← A'u in turn, with noise; `steps` releases of `name`.

    right   V ↦ A V for public V;  left  U ↦ A'U
    """
    require(steps >= 2, "steps", "at least 2", steps)
    ends = (np.zeros(shape[0]), generic_block(shape[1], 1)[:, 0])
    value = 0.0
    for step in range(steps):
        image = released(releaser, name, (right if step % 2 == 0 else left)(ends[1 - step % 2][:, None])).ravel()
        value = float(np.linalg.norm(image))
        unit = image / max(value, np.finfo(np.float64).tiny)
        ends = (unit, ends[1]) if step % 2 == 0 else (ends[0], unit)
    return Pair(value, ends[0], ends[1])


def alternating_lanczos(
    releaser: Releaser, name: str, right: Product, left: Product, *, shape: tuple[int, int], steps: int = STEPS_WITH_GAP
) -> Pair:
    """Return the top singular pair from the two spaces that products in turn span; `steps` releases of `name`.

    Both sides are kept orthonormal; A between them is known twice, from either side's products, and their mean is decomposed.
    """
    require(steps >= 2, "steps", "at least 2", steps)
    rows, columns = shape
    rights, images = [generic_block(columns, 1)[:, 0]], list[Floats]()
    lefts, backs = list[Floats](), list[np.ndarray]()
    for step in range(min(steps, 2 * min(shape))):
        if step % 2 == 0:
            images.append(released(releaser, name, right(rights[-1][:, None])).ravel())
            lefts.append(_next(images[-1], np.array(lefts).reshape(-1, rows).T))
        else:
            backs.append(released(releaser, name, left(lefts[-1][:, None])).ravel())
            rights.append(_next(backs[-1], np.array(rights).T))
    return _middle(np.array(lefts[: len(backs)]), np.array(rights[: len(images)]), np.array(images), np.array(backs))


def _middle(lefts: Floats, rights: Floats, images: Floats, backs: Floats) -> Pair:
    """Decompose A between two spaces, all given as rows: `images` are A times `rights`, `backs` are A' times `lefts`."""
    between = (lefts @ images.T + backs @ rights.T) / 2.0
    first, _, second = np.linalg.svd(between, full_matrices=False)
    up, down = images.T @ second[0], backs.T @ first[:, 0]
    high, wide = (max(float(np.linalg.norm(one)), np.finfo(np.float64).tiny) for one in (up, down))
    return Pair(max(high, wide), up / high, down / wide)


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
