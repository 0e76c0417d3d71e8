"""Components of items: from one noisy second moment of which items are liked together, then refined in rounds.

The moment.   Of one noisy second moment only what stands out from its noise is kept.

residuals, of length 1 a user ──► pairs i < j, exact ──► noise ──► eigenvalues above the noise's edge ──► items' factors

Claim   One user adds s·s' without its diagonal, |s| ≤ 1: pairs i < j of length at most 1/√2.
Source  [MM09] for noisy covariances and predictions that each user makes alone; eigenvalues under symmetric noise: an
        eigenvalue l of the signal appears at l + m·σ²/l if l is above σ√m, in a direction whose squared cosine with the
        signal's is 1 - m·σ²/l²; noise alone reaches 2σ√m.

The rounds.   Items' factors once more, of all items, from what users say along the components that were found.

Claim   In a round, one user with factors z, |z| ≤ 1, adds ω_i·x_i·z for each rated item i, where the vector of ω_i·x_i is
        clipped to a declared length, and z·z': pairs a ≤ b. On the grid the first is of length at most 2²², the second at
        most 2²⁰, both together √(1 + 1/16)·2²². How items' own moments differ is not asked: who rates what is taken not to
        depend on taste, which costs accuracy where it does, never privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.learn.ratings import Ratings
from curador.learn.recommend.bias import BiasModel, residuals
from curador.learn.recommend.users import grid_step, pair_length, pair_sums, symmetric, whole_rows_of_users, whole_vectors
from curador.learn.sums import sensitivity_steps

if TYPE_CHECKING:
    from curador.learn.ratings import Scale
    from curador.learn.recommend.forecast import Prospect
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers


# ---- spectral --------------------------------------------------------------------------------------------------------------


BITS = 14
MOST_COMPONENTS = 15
_SMALL = 600


@dataclass(frozen=True, slots=True)
class ItemFactors:
    """Items' factors: a user with factors z is expected to rate item i by items[i]·z above the bias model.

    ridge  with which a user's own factors are computed
    """

    items: Floats
    ridge: float
    eigenvalues: Floats
    edge: float


def among(ratings: Ratings, chosen: Integers) -> Ratings:
    """Return the ratings of the chosen items, which are numbered in their order."""
    places = np.full(ratings.catalogue, -1, np.int64)
    places[chosen] = np.arange(len(chosen))
    kept = ratings.only(places[ratings.items] >= 0)
    return Ratings(kept.starts, places[kept.items], kept.values, len(chosen))


def moment_integers(ratings: Ratings, model: BiasModel, scale: Scale, chosen: Integers) -> tuple[Integers, int]:
    """Return what is released: the second moment of users' residuals, pairs i < j of the chosen items; and its length."""
    kept = among(ratings, chosen)
    left = residuals(ratings, model, scale)
    places = np.zeros(ratings.catalogue, bool)
    places[chosen] = True
    entries = whole_vectors(kept, left[places[ratings.items]], norm=1.0, bits=BITS, fill=True)
    return pair_sums(kept, entries), pair_length(BITS)


def release_moment(
    ratings: Ratings, model: BiasModel, scale: Scale, chosen: Integers, releaser: Releaser, part: str
) -> tuple[Floats, float]:
    """Release the second moment; return it as a matrix, in units of a user's whole moment, and the deviation of its noise."""
    integers, length = moment_integers(ratings, model, scale, chosen)
    length = sensitivity_steps(length, releaser.plan.goal.adjacency)
    unit = 1.0 / (1 << 2 * BITS)
    noisy = releaser.noisy(part, integers, length=length, step=unit)
    return symmetric(noisy, len(chosen)), releaser.deviation(part, length=length, step=unit)


def factors_of(moment: Floats, noise: float, model: BiasModel, prospect: Prospect, *, users: int, rank: int) -> ItemFactors:
    """Return factors of the chosen items, of all components that stand out: post-processing.

    With p the popularity, the moment of users who rate independently of taste is p·p'/users times the correlation.
    Its entries vary by the noise, and by who happens to have rated both, p·p'/(users · ratings a user). Both are made about
    equal over the matrix by a scale for each item before eigenvalues are taken.
    """
    items, chosen = len(model.popularity), prospect.chosen
    popularity = model.popularity[chosen] * math.sqrt(prospect.stretch)
    chance = popularity / math.sqrt(users * max(model.per_user / prospect.stretch, 1.0))
    scales = noise + chance
    values, vectors = _top(moment / np.sqrt(np.outer(scales, scales)), min(rank, len(chosen) - 1))
    edge = 2 * math.sqrt(_largest_variance(noise / scales, chance / scales))
    kept = values > edge
    values, vectors = values[kept], vectors[:, kept]
    true = (values + np.sqrt(values**2 - edge**2)) / 2
    cosine = 1 - edge**2 / (4 * true**2)
    # given a direction with noise, an item's part of the true one: more is believed of items that are seen more
    weight = popularity**2 / scales
    weight = (weight / weight.sum())[:, None]
    believed = vectors * np.sqrt(cosine) * weight / (cosine * weight + (1 - cosine) / len(chosen))
    rows = believed * np.sqrt(users * true) * (np.sqrt(scales) / popularity)[:, None]
    explained = np.square(rows).sum(axis=1)
    rows *= np.sqrt(np.minimum(1.0, 0.9 / np.maximum(explained, 0.9)))[:, None]
    share = float(np.average(np.minimum(explained, 0.9), weights=popularity))
    out = np.zeros((items, rows.shape[1]))
    out[chosen] = rows
    return ItemFactors(out, max(1.0 - share, 0.1), true, edge)


def _largest_variance(noise: Floats, chance: Floats) -> float:
    """The largest eigenvalue of the matrix of variances noise_i·noise_j + chance_i·chance_j; half the edge is its root."""
    both = np.stack([noise, chance])
    return float(np.linalg.eigvalsh(both @ both.T)[-1])


def leading(matrix: Floats) -> tuple[float, Floats]:
    """Return the largest eigenvalue and its vector."""
    values, vectors = _top(matrix, 1)
    return float(values[0]), vectors[:, 0]


def _top(matrix: Floats, many: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues, descending, and their vectors."""
    if len(matrix) <= _SMALL:
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1][:many], vectors[:, ::-1][:, :many]
    from scipy.sparse.linalg import ArpackError, eigsh

    start = np.cos(np.arange(len(matrix)))  # any fixed one: nothing random, nothing of the data
    try:
        found: Any = eigsh(matrix, k=many, which="LA", v0=start)
    except ArpackError:
        found = np.linalg.eigh(matrix)
    order = np.argsort(-found[0])[:many]
    return found[0][order], found[1][:, order]


# ---- refine ----------------------------------------------------------------------------------------------------------------


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
    length = sensitivity_steps(_LENGTH, releaser.plan.goal.adjacency)
    unit = grid_step(_REACH * scale.half, WEIGHT_BITS) / (1 << FACTOR_BITS)
    return releaser.deviation(part, length=length, step=unit)


def expected_noise(half: float, distance: float) -> float:
    """Return about the same of a round that costs μ = distance: to decide with."""
    return math.sqrt(1 + 1 / 16) / distance * _REACH * half


def refine_factors(
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
    length = sensitivity_steps(length, releaser.plan.goal.adjacency)
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
