"""The task of every optimiser, what it gives back, and the nuclear ball that the task is over.

The ball    {X : the singular values of X add up to at most R}, with its projection, its linear minimisation and its
            dual norm, the largest singular value.

The task is what every optimiser is given; a fitted matrix and its history are what it gives back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.numerics.exact import whole_root_up
from curador.privacy.adjacency import REPLACE_ONE

if TYPE_CHECKING:
    from curador.learn.nuclear.losses import ObjectiveLoss
    from curador.learn.plan import FitGoal, FitPlan
    from curador.learn.sums import Floats
    from curador.privacy.adjacency import Adjacency


# ---- ball ------------------------------------------------------------------------------------------------------------------


def nuclear_norm(matrix: Floats) -> float:
    """Return the sum of the singular values."""
    return float(np.linalg.svd(matrix, compute_uv=False).sum())


def operator_norm(matrix: Floats) -> float:
    """Return the largest singular value."""
    return float(np.linalg.svd(matrix, compute_uv=False).max(initial=0.0))


def simplex_cut(values: Floats, radius: float) -> Floats:
    """Return the point nearest to `values` (falling, ≥ 0) of those that are ≥ 0 and add up to at most radius.

    It is max(v − t, 0) with the one t ≥ 0 at which the sum is right.
    """
    if values.sum() <= radius:
        return values
    sums = np.cumsum(values) - radius
    count = np.arange(1, len(values) + 1)
    above = np.flatnonzero(values - sums / count > 0)
    last = int(above[-1]) if len(above) else 0  # of values so large that the radius is lost in their rounding
    return np.minimum(np.maximum(values - sums[last] / (last + 1), 0.0), radius)


def project(matrix: Floats, radius: float) -> Floats:
    """Return the nearest matrix of the ball, in the Frobenius norm: the singular values, projected."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    if values.sum() <= radius:
        return matrix
    cut = simplex_cut(values, radius)
    kept = int((cut > 0).sum())
    return (left[:, :kept] * cut[:kept]) @ right[:kept]


def top_pair(matrix: Any) -> tuple[Floats, float, Floats]:
    """Return u, s, v of the largest singular value s; `matrix` may be sparse."""
    if hasattr(matrix, "tocsr") and min(matrix.shape) > 2:
        from scipy.sparse.linalg import svds

        start = np.ones(min(matrix.shape)) / np.sqrt(min(matrix.shape))
        found: Any = svds(matrix, k=1, v0=start)
        return found[0][:, 0], float(found[1][0]), found[2][0]
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, np.float64)
    left, values, right = np.linalg.svd(dense, full_matrices=False)
    return left[:, 0], float(values[0]), right[0]


def linear_minimiser(matrix: Any, radius: float) -> tuple[Floats, Floats]:
    """Return u, v such that u v' minimises ⟨matrix, X⟩ over the ball: the minimum is −radius · operator norm."""
    left, _, right = top_pair(matrix)
    return -radius * left, right


def linear_minimiser_near(matrix: Floats, radius: float, start: Floats, rounds: int) -> tuple[Floats, Floats]:
    """Return about the same by `rounds` of power iteration from a right vector; for matrices that change little by little."""
    right = start
    left = matrix @ right
    for _ in range(rounds):
        right = matrix.T @ left
        right /= max(float(np.sqrt(right @ right)), 1e-300)
        left = matrix @ right
    length = max(float(np.sqrt(left @ left)), 1e-300)
    return left * (-radius / length), right


# ---- task ------------------------------------------------------------------------------------------------------------------


_MOST_NOTES = 128


@dataclass(frozen=True, slots=True)
class Task:
    """Minimise the mean loss over the ball of this radius.

    count  of records: public (declared, or counted where records are replaced); every mean divides by it
    """

    loss: ObjectiveLoss
    radius: float
    count: int
    shape: tuple[int, int]
    adjacency: Adjacency

    @property
    def factor(self) -> int:
        """By how many record lengths a neighbour moves a sum."""
        return 2 if self.adjacency is REPLACE_ONE else 1


@dataclass(slots=True)
class History:
    """What can be watched of a run: functions of releases only."""

    planned: int
    step: list[float] = field(default_factory=list[float])
    gradient_norm: list[float] = field(default_factory=list[float])
    noise_floor: list[float] = field(default_factory=list[float])
    nuclear_norm: list[float] = field(default_factory=list[float])
    rank: list[float] = field(default_factory=list[float])

    def note(self, step: int, gradient: Floats, model: Floats, deviation: float) -> None:
        """Keep a noisy gradient's operator norm, what noise alone would show there, and the model's norm and rank.

        Long runs keep every so-manieth step.
        """
        if step % max(1, -(-self.planned // _MOST_NOTES)):
            return
        self.step.append(float(step))
        self.gradient_norm.append(operator_norm(gradient))
        self.noise_floor.append(deviation * (math.sqrt(gradient.shape[0]) + math.sqrt(gradient.shape[1])))
        values = np.linalg.svd(model, compute_uv=False)
        self.nuclear_norm.append(float(values.sum()))
        self.rank.append(float((values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)).sum()))

    def arrays(self) -> dict[str, Floats]:
        """Return it by names."""
        names = ("step", "gradient_norm", "noise_floor", "nuclear_norm", "rank")
        return {name: np.asarray(getattr(self, name), np.float64) for name in names}


@dataclass(frozen=True, slots=True)
class FittedMatrix:
    """The model of a run, and what could be watched on the way."""

    model: Floats
    history: dict[str, Floats]


def strength(task: Task, goal: FitGoal, mu: float) -> float:
    """Return x: how far a gradient of the largest size stands above the noise of one release with the whole budget, in the
    operator norm. The one number that decides how many steps pay. Reads no data.
    """  # noqa: D205 -- one sentence
    sides = math.sqrt(sum(task.shape))
    if goal.pure:
        return task.count * float(goal.epsilon) / (math.sqrt(2 * task.shape[0] * task.shape[1]) * task.factor * sides)
    return task.count * mu / (task.factor * sides)


def in_norm(length: int, numbers: int, plan: FitPlan) -> int:
    """Return a length in l2 as the plan's noise wants it: itself, or √numbers times it for l1. Rounds: up."""
    return length if plan.gaussian else length * whole_root_up(numbers)
