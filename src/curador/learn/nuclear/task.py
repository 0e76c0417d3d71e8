"""What every optimiser is given and gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.nuclear.ball import operator_norm
from curador.privacy.adjacency import REPLACE_ONE

if TYPE_CHECKING:
    from curador.learn.goal import Goal
    from curador.learn.nuclear.losses import Loss
    from curador.learn.plan import Plan
    from curador.learn.sums import Floats
    from curador.privacy.adjacency import Adjacency

_MOST_NOTES = 128


@dataclass(frozen=True, slots=True)
class Task:
    """Minimise the mean loss over the ball of this radius.

    count  of records: public (declared, or counted where records are replaced); every mean divides by it
    """

    loss: Loss
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
class Fitted:
    """The model of a run, and what could be watched on the way."""

    model: Floats
    history: dict[str, Floats]


def strength(task: Task, goal: Goal, mu: float) -> float:
    """Return x: how far a gradient of the largest size stands above the noise of one release with the whole budget, in the
    operator norm. The one number that decides how many steps pay. Reads no data.
    """  # noqa: D205 -- one sentence
    sides = math.sqrt(sum(task.shape))
    if goal.pure:
        return task.count * float(goal.epsilon) / (math.sqrt(2 * task.shape[0] * task.shape[1]) * task.factor * sides)
    return task.count * mu / (task.factor * sides)


def in_norm(length: int, numbers: int, plan: Plan) -> int:
    """Return a length in l2 as the plan's noise wants it: itself, or √numbers times it for l1. Rounds: up."""
    return length if plan.gaussian else length * (math.isqrt(numbers - 1) + 1)
