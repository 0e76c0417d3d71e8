"""Exact products of records with public vectors: what the iterations of power.py and oja.py release.

    whole records · whole public block ──► coefficients, cut to whole numbers ──► Σ record · coefficient

Every step is exact integer arithmetic on one record at a time, so that no record changes what another one adds: a
floating-point product A v would round differently when one row is gone. The public block is put on a grid, too; what it
loses there is lost to everybody alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from curador.errors import Failed
from curador.learn.sums import Floats, Integers, Whole, cross
from curador.privacy.adjacency import REPLACE_ONE, Adjacency

_BITS = 18
_ONE = 1 << _BITS
_MOST = 1 << 53
_WIDEST = 4
"""Blocks are about orthonormal: their squared operator norm is at most this."""


@dataclass(frozen=True, slots=True)
class Exact:
    """An exact product, to be released.

    length  how far one record moves it, in grid steps, in l2 over all entries
    step    what a grid step stands for
    """

    integers: Integers
    length: int
    step: float


Product: TypeAlias = Callable[[Floats], Exact]
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

    def product(block: Floats) -> Exact:
        grid, norm = _on_grid(block)
        columns = grid.shape[1]
        coefficients = _coefficients(rows, grid)
        integers = _spread(rows, coefficients, limit)
        alone = _root_up(limit**4 * norm, _ONE**2)
        if adjacency is not REPLACE_ONE:
            length = alone
        elif not one_row:
            length = 2 * alone
        else:
            cut = _root_up(4 * columns * limit**2, 1)
            length = cut + (alone if columns == 1 else _root_up(2 * limit**4 * norm, _ONE**2))
        return Exact(integers, length, rows.step**2)

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
        def product(block: Floats) -> Exact:
            grid, norm = _on_grid(block)
            factors = _scaled(_coefficients(inner, grid), coefficients)
            alone = _root_up(outer.limit**2 * inner.limit**2 * norm, _ONE**2)
            length = 2 * alone if adjacency is REPLACE_ONE else alone
            return Exact(_spread(outer, factors, inner.limit), length, outer.step * inner.step * _worth(coefficients))

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

    def product(block: Floats) -> Exact:
        grid, norm = _on_grid(block)
        if grid.shape[1] != 1:
            raise Failed("a symmetrised product is of one column")
        upper = _spread(left, _scaled(_coefficients(right, grid[height:]), coefficients), right.limit)
        lower = _spread(right, _scaled(_coefficients(left, grid[:height]), coefficients), left.limit)
        alone = _root_up(left.limit**2 * right.limit**2 * norm, _ONE**2)
        length = 2 * alone if adjacency is REPLACE_ONE else alone
        return Exact(np.concatenate([upper, lower]), length, left.step * right.step * _worth(coefficients))

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


def _scaled(factors: Floats, coefficients: Whole | None) -> Floats:
    """Times what each row has for a coefficient, at most 1 in units of its limit, cut towards 0 again."""
    if coefficients is None:
        return factors
    return np.trunc(factors * coefficients.values / coefficients.limit)


def _worth(coefficients: Whole | None) -> float:
    return 1.0 if coefficients is None else coefficients.step * coefficients.limit


def _spread(rows: Whole, factors: Floats, limit: int) -> Integers:
    """Σ row · factor, exactly; `limit` of what the factors are made from, which g < 2 may double."""
    return cross(rows, Whole(factors, 1.0, 2 * limit))


def _root_up(square: int, over: int) -> int:
    ceiling = -(-square // over)
    root = math.isqrt(ceiling)
    return root if root * root == ceiling else root + 1
