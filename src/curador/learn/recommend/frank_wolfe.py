"""Frank-Wolfe over matrices of bounded nuclear norm: a step is a direction of items, from a noisy moment of gradients.

Claim   In a step, one user adds g·g' with the user's gradient g, |g| ≤ a declared length L: its pairs i < j are no longer
        than L²/√2; with the diagonal they are one vector, which is no longer than L².
        How far a user moves along a direction is computed by the user, from own ratings and what was released.
Source  [JTT18], with whole second moments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.recommend.bias import BiasModel, residuals
from curador.learn.recommend.spectral import among, leading
from curador.learn.recommend.users import grid_step, item_sums, pair_sums, per_user, symmetric, whole_vectors
from curador.learn.sums import sensitivity_steps

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings, Scale
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers

BITS = 14
STEPS = 6
_REACH = 0.6
_TASTE = 0.2


@dataclass(frozen=True, slots=True)
class Path:
    """The steps that were taken: a direction over items each, and how far a user goes for a unit of own gradient along it."""

    directions: Floats
    gains: Floats


def gradient_integers(ratings: Ratings, gradients: Floats, norm: float) -> tuple[Integers, int]:
    """Return the second moment of users' gradients in whole numbers, diagonal then pairs, and the length of one user's part.

    Claim  Diagonal e_i², pairs e_i·e_j: their squares add up to Σe⁴ + Σ_{i<j} e_i²e_j² ≤ (Σe²)² ≤ 16^BITS.
    """
    entries = whole_vectors(ratings, gradients, norm=norm, bits=BITS)
    return np.concatenate([item_sums(ratings, entries**2), pair_sums(ratings, entries)]), 1 << 2 * BITS


def learn_path(
    ratings: Ratings,
    model: BiasModel,
    scale: Scale,
    chosen: Integers,
    releaser: Releaser,
    part: str,
    *,
    users: int,
    steps: int,
) -> Path:
    """Return the path of all steps, each from one release."""
    kept = among(ratings, chosen)
    mask = np.zeros(ratings.catalogue, bool)
    mask[chosen] = True
    left_over = residuals(ratings, model, scale)[mask[ratings.items]]
    norm = _REACH * scale.half * math.sqrt(model.per_user)
    # a bound on the nuclear norm of what users would say of all chosen items, if tastes explained what they are taken to
    radius = scale.half / 2 * math.sqrt(_TASTE * steps * users * len(chosen))
    directions, gains = np.zeros((ratings.catalogue, steps)), np.zeros(steps)
    reached = np.zeros(len(left_over))
    for step in range(steps):
        gradients = left_over - reached
        integers, length = gradient_integers(kept, gradients, norm)
        length = sensitivity_steps(length, releaser.plan.goal.adjacency)
        noisy = releaser.noisy(part, integers, length=length, step=grid_step(norm, BITS) ** 2)
        moment = symmetric(noisy[len(chosen) :], len(chosen)) + np.diag(noisy[: len(chosen)])
        value, direction = leading(moment)
        directions[chosen, step] = direction
        gains[step] = radius / steps / math.sqrt(max(value, norm**2))
        # each user alone, now: the gradient along the direction, and the step
        along = gains[step] * per_user(kept, gradients * direction[kept.items])
        reached = (1 - 1 / steps) * reached + along[kept.owners] * direction[kept.items]
    return Path(directions, gains)


def walk(ratings: Ratings, left_over: Floats, path: Path) -> Floats:
    """Return how far each user ends along each direction: the user's own steps again, from own ratings and the path."""
    steps = len(path.gains)
    out = np.zeros((ratings.users, steps))
    reached = np.zeros(len(left_over))
    for step in range(steps):
        direction = path.directions[ratings.items, step]
        along = path.gains[step] * per_user(ratings, (left_over - reached) * direction)
        out *= 1 - 1 / steps
        out[:, step] += along
        reached = (1 - 1 / steps) * reached + along[ratings.owners] * direction
    return out
