"""Records as whole numbers on a grid, and exact sums of them at the speed of floating-point products.

A record's numbers are whole, at most 2^bits in l2; sums of products of them stay below 2⁵³ in blocks of rows, where every
order of adding floats is exact; blocks are added as 64-bit integers. So a sum is the one integer that it is, and one record
moves it by what is said here, not by that and a rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.errors import Failed
from curador.numerics.exact import whole_root_up
from curador.privacy.adjacency import REPLACE_ONE, Adjacency

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

_EXACT = 1 << 53
_INWARD = 1.0 - 2.0**-30
"""Records are shortened by this, which is more than all rounding of a record's scaling."""

_MOST_NUMBERS = 1 << 20
_NEAR = (1e-140, 1e140)
"""Norms between these have squares that no float loses."""

_LEAST = np.finfo(np.float64).tiny
_ROWS = 4096
"""Rows that are looked at together: few enough to stay in a processor's cache."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Rows of whole numbers (held as floats): row r stands for step · values[r].

    Claim   Σ |values[r]|² over the rows of one record is at most limit², exactly, if the squares of its weights add up to at
            most 1; Σ |values[r]| is at most limit if its weights do.
    """

    values: Floats
    step: float
    limit: int


def whole_rows(rows: Floats, *, norm: float, weights: Floats | None = None, bits: int = 18, clip: bool = True) -> Whole:
    """Return rows clipped to an l2 norm of at most `norm`, times their weights, rounded towards zero to a grid.

    weights  of the rows, between 0 and 1; None: 1
    clip     False where rows are known to be clipped already; NaN must be gone then
    Claim    See Whole. A row with NaN or infinities is zeros. A norm of at most 2²⁰ numbers is computed within 2⁻³² of
             itself, and scaling is four roundings: less than 2⁻³⁰ together, by which rows are shorter than they might
             be. Rounding towards zero makes nothing longer.
    """
    limit = 1 << bits
    if not _NEAR[0] < norm < _NEAR[1]:
        raise Failed("a norm must be a number of ordinary size")  # else a scale of 1/norm is infinite
    scale = limit / norm * _INWARD
    kept = np.asarray(rows, np.float64)
    with np.errstate(over="ignore"):  # of a row near 0, which is not scaled
        factors = np.full(len(kept), scale) if not clip else np.minimum(scale, limit * _INWARD / _norms(kept))
    if weights is not None:
        factors = factors * weights
    lost = ~np.isfinite(kept).all(axis=1) if clip else np.zeros(0, bool)
    with np.errstate(invalid="ignore"):
        scaled = np.multiply(kept, factors[:, None])
    if lost.any():
        scaled[lost] = 0.0
    return Whole(np.trunc(scaled, out=scaled), norm / (limit * _INWARD), limit)


def _norms(rows: Floats) -> Floats:
    """The l2 norms of rows, at least the least number above 0; where squares would leave the range of floats, by scaling."""
    if rows.shape[1] > _MOST_NUMBERS:
        raise Failed("a record has more numbers than its norm is proved for")
    found = np.sqrt(_squares(rows))
    far = ~((found > _NEAR[0]) & (found < _NEAR[1]))
    if far.any():
        some = np.nan_to_num(rows[far], nan=0.0, posinf=0.0, neginf=0.0)
        largest = np.maximum(np.abs(some).max(axis=1, initial=0.0), _NEAR[0])
        found[far] = np.sqrt(_squares(some / largest[:, None])) * largest
    return np.maximum(found, _LEAST)


def _squares(rows: Floats) -> Floats:
    """Return Σ x² of each row, column after column.

    Claim   What becomes of a row depends on that row only, to the last bit: every row's numbers are added in the same order,
            wherever it stands and whoever stands beside it. A library's own sum over rows promises nothing of the kind.
    """
    found = np.zeros(len(rows))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, len(rows), _ROWS):
            part = found[start : start + _ROWS]
            for column in np.ascontiguousarray(rows[start : start + _ROWS].T):
                part += column * column
    return found


def whole_numbers(numbers: Floats, *, bound: float, weights: Floats | None = None, bits: int = 18) -> Whole:
    """Return numbers clamped to ±bound, times their weights, as rows of one number; NaN is 0, infinities are the ends."""
    clamped = np.clip(np.nan_to_num(numbers, nan=0.0, posinf=bound, neginf=-bound), -bound, bound)
    return whole_rows(clamped[:, None], norm=bound, weights=weights, bits=bits, clip=False)


def total(rows: Whole) -> Integers:
    """Return Σ of the rows. One record moves it by at most limit in l2."""
    return _in_blocks(len(rows.values), rows.limit, lambda part: rows.values[part].sum(axis=0))


def gram(rows: Whole) -> Integers:
    """Return Σ v v'. One record moves it by at most limit² in the Frobenius norm, √2 limit² where it is replaced."""
    return _in_blocks(len(rows.values), rows.limit**2, lambda part: rows.values[part].T @ rows.values[part])


def cross(left: Whole, right: Whole, coefficients: Whole | None = None) -> Integers:
    """Return Σ c u v'. One record moves it by at most the product of the limits in the Frobenius norm.

    Needs  Weights, if any, such that the products of a record's weights add up to at most 1: by their roots in two of the
           factors, or whole in one.
    """
    limit = left.limit * right.limit * (1 if coefficients is None else coefficients.limit)

    def block(part: slice) -> Floats:
        first = left.values[part] if coefficients is None else left.values[part] * coefficients.values[part]
        return first.T @ right.values[part]

    return _in_blocks(len(left.values), limit, block)


def sensitivity_steps(length: int, adjacency: Adjacency, *, positive: bool = False) -> int:
    """Return by how many steps one record moves a sum to which it adds something of at most this length (l2).

    positive  what records add is positive semi-definite, or has no negative entry: two such are never farther apart than √2
    Rounds    Up.
    """
    if adjacency is not REPLACE_ONE:
        return length
    return whole_root_up(2 * length * length) if positive else 2 * length


def _in_blocks(rows: int, limit: int, block: Callable[[slice], Floats]) -> Integers:
    """Sum blocks so short that no float in them is rounded: every partial sum is a whole number below 2⁵³.

    Blocks are added modulo 2⁶⁴, which is exact below 2⁶³ and, beyond, post-processing of what is released: how many rows
    there are must not decide between an answer and an error.
    """
    size = max(1, (_EXACT - 1) // limit)
    if limit >= _EXACT:
        raise Failed("numbers too fine for exact products")
    out: Integers | None = None
    for start in range(0, max(rows, 1), size):
        part = block(slice(start, min(start + size, rows))).astype(np.int64)
        out = part if out is None else out + part
    return np.zeros(0, np.int64) if out is None else out
