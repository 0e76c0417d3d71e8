"""Alternating least squares: users' factors are theirs to compute, items' factors come from noisy normal equations.

Claim   In a round, one user with factors z, |z| ≤ 1, adds ω_i·z·z' to the left side of every item i that the user rated and
        ω_i·x_i·z to the right side, where Σω² ≤ 1 and the vector of ω_i·x_i is clipped to a declared length, which is what
        the noise is scaled by: never that of ratings taken as if they were at most 1. So both sides move by at most 1 and by
        that length. Left sides are released as their pairs a ≤ b, which are no longer than the matrix.
Source  [CJK+21], with ratings clipped and scaled explicitly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.learn.recommend.bias import BiasModel, residuals
from curador.learn.recommend.users import grid_step, ridge, whole_rows_of_users, whole_vectors
from curador.learn.sums import sensitivity_steps

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings, Scale
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers

WEIGHT_BITS = 12
FACTOR_BITS = 10
ROUNDS = 5
RANK = 6
_REACH = 0.6
"""Residuals of a user, weighted, are clipped to this part of the longest that they may be."""

_TASTE = 0.2
"""The part of the variance of residuals that factors are expected to explain. Public."""


@dataclass(frozen=True, slots=True)
class Equations:
    """What one round releases, in whole numbers, and how long one user's part of it is."""

    left: Integers
    right: Integers
    left_length: int
    right_length: int


def normal_equations(ratings: Ratings, left_over: Floats, factors: Floats, scale: Scale) -> Equations:
    """Return the sides of the items' equations, exactly. `factors`: of users."""
    users = whole_rows_of_users(factors, bits=FACTOR_BITS, fill=True)
    weights = 1.0 / np.sqrt(np.maximum(ratings.counts, 1)[ratings.owners])
    counted = whole_vectors(ratings, weights, norm=1.0, bits=WEIGHT_BITS)
    rated = whole_vectors(ratings, weights * left_over, norm=_REACH * scale.half, bits=WEIGHT_BITS)
    above, beside = np.triu_indices(users.shape[1])
    counts: Any = ratings.matrix(counted).T
    values: Any = ratings.matrix(rated).T
    return Equations(
        np.asarray(counts @ (users[:, above] * users[:, beside]), np.int64),
        np.asarray(values @ users, np.int64),
        1 << (WEIGHT_BITS + 2 * FACTOR_BITS),
        1 << (WEIGHT_BITS + FACTOR_BITS),
    )


def learn_als(
    ratings: Ratings, model: BiasModel, scale: Scale, releaser: Releaser, *, left: str, right: str, rank: int, rounds: int
) -> tuple[Floats, float]:
    """Return items' factors after some rounds, and the ridge of a user's own."""
    left_over = residuals(ratings, model, scale)
    noise = 0.8 * (scale.half / 2) ** 2  # the variance of what factors do not explain, and of what they do
    taste = _TASTE * (scale.half / 2) ** 2
    penalty = np.full(rank, rank * noise)
    items = np.random.default_rng(1).normal(size=(ratings.catalogue, rank)) * math.sqrt(taste)  # the same for everybody
    for _ in range(rounds):
        users = ridge(ratings, left_over, items, penalty)
        items = _item_factors(ratings, left_over, users, model, scale, releaser, (left, right), noise, taste)
    return items, float(penalty[0])


def _item_factors(
    ratings: Ratings,
    left_over: Floats,
    users: Floats,
    model: BiasModel,
    scale: Scale,
    releaser: Releaser,
    parts: tuple[str, str],
    noise: float,
    taste: float,
) -> Floats:
    sides = normal_equations(ratings, left_over, users, scale)
    adjacency = releaser.plan.goal.adjacency
    rank = users.shape[1]
    one = 1.0 / (1 << FACTOR_BITS)
    steps = grid_step(1.0, WEIGHT_BITS) * one * one, grid_step(_REACH * scale.half, WEIGHT_BITS) * one
    lengths = sensitivity_steps(sides.left_length, adjacency), sensitivity_steps(sides.right_length, adjacency)
    left = releaser.noisy(parts[0], sides.left, length=lengths[0], step=steps[0])
    right = releaser.noisy(parts[1], sides.right, length=lengths[1], step=steps[1])
    deviations = [
        releaser.deviation(part, length=length, step=step) for part, length, step in zip(parts, lengths, steps, strict=True)
    ]
    # from here on: post-processing
    above, beside = np.triu_indices(rank)
    systems = np.zeros((len(left), rank, rank))
    systems[:, above, beside] = left
    systems[:, beside, above] = left
    values, vectors = np.linalg.eigh(systems)
    values = np.maximum(values, 0.0)
    seen = np.maximum(model.popularity, model.popularity_noise) / rank
    doubt = noise / math.sqrt(model.per_user) / taste + deviations[1] ** 2 / (taste * seen) + deviations[0] * math.sqrt(rank)
    turned = np.einsum("iba,ib->ia", vectors, right) / (values + doubt[:, None])
    return np.einsum("iab,ib->ia", vectors, turned)
