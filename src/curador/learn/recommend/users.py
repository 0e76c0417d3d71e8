"""What one user does: adds whole numbers of bounded length to a release, and computes the own factors alone.

What each user adds to a release is whole numbers of which no user has more than a stated length; and their exact sums.

A user's numbers are computed from that user's ratings and from what was released before, one operation at a time in an order
that nobody else changes: taking a user away takes away that user's whole numbers and moves no other, not by one rounding.

What a user does alone are own bias and factors, from own ratings and the items' published numbers. Nothing is released.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings
    from curador.learn.sums import Floats, Integers


# ---- grid ------------------------------------------------------------------------------------------------------------------


INWARD = 1.0 - 2.0**-20
"""Vectors are shortened by this, so that rounding makes none longer than its limit, whose check would then drop it."""

_LEAST = 1e-200
_ROWS = 256


def per_user(ratings: Ratings, numbers: Floats) -> Floats:
    """Return the sum of each user's numbers: in their own order, whoever else there is."""
    return np.asarray(np.bincount(ratings.owners, weights=numbers, minlength=ratings.users), np.float64)


def whole_vectors(ratings: Ratings, numbers: Floats, *, norm: float, bits: int, fill: bool = False) -> Integers:
    """Return each user's numbers, clipped to `norm`, as whole multiples of grid_step(norm, bits).

    fill   stretch vectors that are shorter, too: every user with a number other than 0 then has the length `norm`
    Claim  The squares of one user's whole numbers add up to at most 4^bits. This is verified in integers, for each user, and
           what were longer is 0: no analysis of floating point is relied upon.
    """
    limit = 1 << bits
    lengths = np.sqrt(per_user(ratings, np.square(numbers)))
    factors = limit * INWARD / np.maximum(lengths, _LEAST if fill else norm)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.nan_to_num(numbers * factors[ratings.owners], nan=0.0, posinf=0.0, neginf=0.0)
    found = np.clip(np.trunc(scaled), -limit, limit).astype(np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.square(found))])  # differences are exact even if it wraps
    squares = ends[ratings.starts[1:]] - ends[ratings.starts[:-1]]
    too_long = squares > limit * limit
    if too_long.any():
        found[too_long[ratings.owners]] = 0
    return found


def grid_step(norm: float, bits: int) -> float:
    """Return what one whole number of `whole_vectors` stands for."""
    return norm / ((1 << bits) * INWARD)


def whole_rows_of_users(rows: Floats, *, bits: int, fill: bool = False) -> Integers:
    """Return rows, one a user, clipped to length 1 (or stretched, too) as whole numbers of which 2^bits are 1.

    Claim  The squares of a row add up to at most 4^bits: verified in integers; what were longer is 0.
    """
    limit = 1 << bits
    squares = np.zeros(len(rows))
    for column in rows.T:  # one after the other: the order of a user's sum is nobody else's business
        squares += np.square(column)
    factors = limit * INWARD / np.maximum(np.sqrt(squares), _LEAST if fill else 1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.nan_to_num(rows * factors[:, None], nan=0.0, posinf=0.0, neginf=0.0)
    found = np.clip(np.trunc(scaled), -limit, limit).astype(np.int64)
    found[np.square(found).sum(axis=1) > limit * limit] = 0
    return found


def item_sums(ratings: Ratings, entries: Integers) -> Integers:
    """Return the sum of each item's whole numbers. One user moves it by at most the user's own length.

    All sums of this room are modulo 2⁶⁴, which is exact below 2⁶³ and, beyond, post-processing of what is released: how many
    users there are must not decide between an answer and an error.
    """
    found = np.zeros(ratings.catalogue, np.int64)
    np.add.at(found, ratings.items, entries)
    return found


def pair_sums(ratings: Ratings, entries: Integers) -> Integers:
    """Return Σ over users of e_i·e_j for all pairs i < j, in one row: (0, 1), (0, 2), …, (1, 2) and so on.

    Claim  A user whose entries have length 2^bits moves it by at most `pair_length(bits)` in l2: the squares of the products
           of all pairs i < j are half of (Σe²)² - Σe⁴. Exact: products of 64-bit integers.
    """
    rows: Any = ratings.matrix(entries)
    columns: Any = rows.T.tocsr()
    items = ratings.catalogue
    out = np.zeros(items * (items - 1) // 2, np.int64)
    place = 0
    for start in range(0, items, _ROWS):  # a block of items against itself and those that follow: nothing else is held
        block: Any = columns[start : start + _ROWS] @ rows[:, start:]
        dense = block.toarray()
        for row in range(len(dense)):
            after = dense[row, row + 1 :]
            out[place : place + len(after)] = after
            place += len(after)
    return out


def pair_length(bits: int) -> int:
    """Return the length of what one user adds to `pair_sums`, rounded up."""
    return math.isqrt((1 << 4 * bits) // 2) + 1


def symmetric(pairs: Floats, items: int) -> Floats:
    """Return the matrix of which these are the pairs i < j; zeros on the diagonal."""
    out = np.zeros((items, items))
    place = 0
    for row in range(items):
        many = items - row - 1
        out[row, row + 1 :] = pairs[place : place + many]
        place += many
    out += out.T
    return out


# ---- local -----------------------------------------------------------------------------------------------------------------


_USERS = 20_000


def ridge(ratings: Ratings, left: Floats, factors: Floats, penalty: Floats) -> Floats:
    """Return each user's z with the least |left - factors·z|² + Σ penalty·z².

    Claim  A user's z is computed from that user's ratings alone, in an order that nobody else changes: sparse products add
           row by row, and each small system is solved by itself.
    """
    rank = factors.shape[1]
    above, beside = np.triu_indices(rank)
    products = factors[:, above] * factors[:, beside]
    numbers: Any = ratings.matrix(left)
    ones: Any = ratings.matrix(np.ones(len(left)))
    out = np.zeros((ratings.users, rank))
    for start in range(0, ratings.users, _USERS):
        part = slice(start, start + _USERS)
        pairs = ones[part] @ products
        systems = np.zeros((len(pairs), rank, rank))
        systems[:, above, beside] = pairs
        systems[:, beside, above] = pairs
        systems[:, np.arange(rank), np.arange(rank)] += penalty
        right = numbers[part] @ factors
        out[part] = np.linalg.solve(systems, right[:, :, None])[:, :, 0]
    return out
