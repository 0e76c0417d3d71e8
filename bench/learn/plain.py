"""Alternating least squares without privacy: what ratings alone allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from curador.learn.ratings import Ratings

_BIAS_WEIGHT = 5.0  # ratings' worth of prior for a bias
_SWEEPS = 12


def als_error(train: Ratings, test: Ratings, *, rank: int, weight: float) -> float:
    """Return the root mean squared error on `test` of factors and biases fitted to `train`."""
    mean = float(train.values.mean())
    items, users = np.zeros(train.catalogue), np.zeros(train.users)
    owners = train.owners
    for _ in range(3):
        left = train.values - mean - users[owners]
        items = np.bincount(train.items, left, train.catalogue) / (
            np.bincount(train.items, minlength=train.catalogue) + _BIAS_WEIGHT
        )
        left = train.values - mean - items[train.items]
        users = np.bincount(owners, left, train.users) / (train.counts + _BIAS_WEIGHT)
    residual = train.matrix(train.values - mean - users[owners] - items[train.items])
    seen = train.matrix(np.ones(len(train.values)))
    right = np.random.default_rng(0).normal(0, 0.1, (train.catalogue, rank))
    left = np.zeros((train.users, rank))
    transposed, seen_by = residual.T.tocsr(), seen.T.tocsr()
    for _ in range(_SWEEPS):
        left = _solved(residual, seen, right, weight)
        right = _solved(transposed, seen_by, left, weight)
    found = mean + users[test.owners] + items[test.items] + (left[test.owners] * right[test.items]).sum(axis=1)
    return float(np.sqrt(((np.clip(found, train.values.min(), train.values.max()) - test.values) ** 2).mean()))


def _solved(residual: Any, seen: Any, factors: Any, weight: float) -> Any:
    rank = factors.shape[1]
    squares = seen @ (factors[:, :, None] * factors[:, None, :]).reshape(len(factors), -1)
    matrices = squares.reshape(-1, rank, rank) + weight * np.eye(rank)
    return np.linalg.solve(matrices, (residual @ factors)[:, :, None])[:, :, 0]
