"""What a user does alone: own bias and factors, from own ratings and the items' published numbers. Nothing is released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings
    from curador.learn.sums import Floats

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
