"""Items' factors once more, of all items: from what users say along the components that were found.

Claim   In a round, one user with factors z, |z| ≤ 1, adds ω_i·x_i·z for each rated item i, where the vector of ω_i·x_i is
        clipped to a declared length, and z·z': pairs a ≤ b. On the grid the first is of length at most 2²², the second at
        most 2²⁰, both together √(1 + 1/16)·2²². How items' own moments differ is not asked: who rates what is taken not to
        depend on taste, which costs accuracy where it does, never privacy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.learn.recommend.grid import grid_step, whole_rows_of_users, whole_vectors
from curador.learn.sums import moved

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings, Scale
    from curador.learn.recommend.bias import BiasModel
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers

WEIGHT_BITS = 12
FACTOR_BITS = 10
_LENGTH = math.isqrt((1 << 2 * (WEIGHT_BITS + FACTOR_BITS)) + (1 << 4 * FACTOR_BITS)) + 1
_REACH = 0.5
"""Residuals of a user, weighted, are clipped to this part of the longest that they may be."""


def taste_integers(ratings: Ratings, left_over: Floats, factors: Floats, scale: Scale) -> tuple[Integers, int]:
    """Return what is released, Σ ω·x·z' by item and then Σ z·z', exactly; and the length of what one user adds."""
    users = whole_rows_of_users(factors, bits=FACTOR_BITS, fill=True)
    weights = 1.0 / np.sqrt(np.maximum(ratings.counts, 1)[ratings.owners])
    rated = whole_vectors(ratings, weights * left_over, norm=_REACH * scale.half, bits=WEIGHT_BITS)
    values: Any = ratings.matrix(rated).T
    above, beside = np.triu_indices(users.shape[1])
    taste = np.asarray(values @ users, np.int64)
    return np.concatenate([taste.reshape(-1), (users.T @ users)[above, beside]]), _LENGTH


def taste_noise(scale: Scale, releaser: Releaser, part: str) -> float:
    """Return the deviation of an item's sums in a round that this part pays for. Public."""
    length = moved(_LENGTH, releaser.plan.goal.adjacency)
    unit = grid_step(_REACH * scale.half, WEIGHT_BITS) / (1 << FACTOR_BITS)
    return releaser.deviation(part, length=length, step=unit)


def expected_noise(half: float, distance: float) -> float:
    """Return about the same of a round that costs μ = distance: to decide with."""
    return math.sqrt(1 + 1 / 16) / distance * _REACH * half


def refined(
    ratings: Ratings,
    left_over: Floats,
    factors: Floats,
    model: BiasModel,
    scale: Scale,
    releaser: Releaser,
    part: str,
    *,
    users: int,
) -> Floats:
    """Return items' factors after one round. `factors`: of users."""
    integers, length = taste_integers(ratings, left_over, factors, scale)
    length = moved(length, releaser.plan.goal.adjacency)
    unit = 1.0 / (1 << (WEIGHT_BITS + FACTOR_BITS))
    noisy = releaser.noisy(part, integers, length=length, step=unit)
    # from here on: post-processing
    rank = factors.shape[1]
    step = grid_step(_REACH * scale.half, WEIGHT_BITS) * (1 << WEIGHT_BITS)
    taste = noisy[: ratings.catalogue * rank].reshape(-1, rank) * step
    moment = np.zeros((rank, rank))
    above, beside = np.triu_indices(rank)
    moment[above, beside] = moment[beside, above] = noisy[ratings.catalogue * rank :] * (1 << (WEIGHT_BITS - FACTOR_BITS))
    return _posterior(taste, taste_noise(scale, releaser, part), moment / users, model, scale)


def _posterior(taste: Floats, noise: float, moment: Floats, model: BiasModel, scale: Scale) -> Floats:
    """Factors as they are expected given the sums, for users' factors of variance 1.

    In the basis of users' factors an item's sum is popularity · eigenvalue · factor + noise. The variance of factors is what
    the sums show beyond their noise.
    """
    values, vectors = np.linalg.eigh(moment)
    values = np.maximum(values, 1e-3)
    seen = np.maximum(model.popularity, model.popularity_noise)[:, None] * values
    found = taste @ vectors
    spread = noise**2 + seen * 0.8 * (scale.half / 2) ** 2 / math.sqrt(model.per_user)
    variance = np.maximum((found**2 - spread).sum(axis=0) / (seen**2).sum(axis=0), 1e-4 * scale.half**2)
    return found * seen * variance / (seen**2 * variance + spread) * np.sqrt(values)
