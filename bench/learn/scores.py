"""How good a model is: NumPy only, so that every environment judges alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Moment:
    """The second moment of rows about a centre, and the most variance that one direction has."""

    matrix: Any
    most: float

    def lost(self, direction: Any) -> float:
        """Return which part of the variance along the best direction a direction misses."""
        unit = np.asarray(direction, float).reshape(-1)
        unit = unit / np.linalg.norm(unit)
        return 1 - float(unit @ self.matrix @ unit) / self.most

    @property
    def lost_at_random(self) -> float:
        """What a direction drawn at random misses in the mean."""
        return 1 - float(np.trace(self.matrix)) / len(self.matrix) / self.most


def moment(rows: Any, *, about_mean: bool = False) -> Moment:
    """Return the second moment of rows about 0, or about their mean."""
    count = len(rows)
    matrix = np.asarray(rows.T @ rows, float) / count
    if about_mean:
        mean = rows.mean(axis=0)
        matrix -= np.outer(mean, mean)
    return Moment(matrix, float(np.linalg.eigvalsh(matrix)[-1]))


def r_squared(target: Any, predicted: Any) -> float:
    """Return the coefficient of determination."""
    return 1 - float(((target - predicted) ** 2).sum() / ((target - target.mean()) ** 2).sum())


def log_loss(target: Any, chance: Any) -> float:
    """Return the mean of -log of the probability that was given to what came; none is taken below 1e-6."""
    given = np.clip(np.where(target == 1, chance, 1 - chance), 1e-6, 1)
    return float(-np.log(given).mean())


def inertia(rows: Any, centres: Any) -> float:
    """Return the mean squared distance of rows to their nearest centre."""
    centres = np.asarray(centres, float)
    distance = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centres.T + (centres**2).sum(axis=1)[None]
    return float(np.maximum(distance.min(axis=1), 0).mean())
