"""Frank–Wolfe over the ball: without privacy [FM22, Alg. 1], and with noise on every gradient, or on products with it alone.

    X ← (1 − s_t) X + s_t · argmin_V ⟨mean gradient + noise, V⟩,   s_t = 2/(t + 2)

Dense      a noisy gradient each step, and its exact top pair.
Products   the gradient is never made: alternating power iteration u ← G v, v ← G'u with noise on each product, one release
           each; the model is kept as factors. For shapes of which nothing of size d₁ × d₂ should exist.

Claim   Each release is of exact whole numbers: Σ c·a·b', or Σ (c·b'v)·a with coefficients that are cut to whole numbers
        record by record; a record adds at most its largest length to either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.nuclear.ball import linear_minimiser
from curador.learn.nuclear.gradient import NoisyGradient
from curador.learn.nuclear.losses import clipped
from curador.learn.nuclear.records import coefficient_bits, whole_coefficients
from curador.learn.nuclear.task import Fitted, History, in_norm
from curador.learn.plan import Part

if TYPE_CHECKING:
    from curador.learn.nuclear.losses import Batch, Loss
    from curador.learn.nuclear.records import Records
    from curador.learn.nuclear.task import Task
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats

_PRODUCTS = 6


def frank_wolfe(loss: Loss, radius: float, batch: Batch, *, steps: int = 100) -> Floats:
    """Return the model of T + 1 steps without noise. Not private: to compare with."""
    left, right = clipped(batch.left, loss.left_norm), clipped(batch.right, loss.right_norm)
    model = np.zeros((left.shape[1], right.shape[1]))
    for step in range(steps + 1):
        slopes = loss.slopes(((left @ model) * right).sum(axis=1), batch.targets)
        one, other = linear_minimiser((left * slopes[:, None]).T @ right / len(left), radius)
        share = 2.0 / (step + 2.0)
        model = (1.0 - share) * model + share * one[:, None] * other
    return model


@dataclass(frozen=True, slots=True)
class FrankWolfeSchedule:
    """How a run goes; a function of public numbers. products: of each step, 0 where gradients are made."""

    steps: int
    products: int

    @property
    def parts(self) -> list[Part]:
        """What a run releases."""
        return [Part("product", count=self.steps * self.products) if self.products else Part("gradient", count=self.steps)]


def frank_wolfe_schedule(strength: float, *, steps: int | None = None, matrix_free: bool = False) -> FrankWolfeSchedule:
    """Return the schedule: T = max(3, ⌈1.2 x^0.4⌉), and six products a step where there are no gradients."""
    usual = max(3, math.ceil(1.2 * strength**0.4))
    return FrankWolfeSchedule(usual if steps is None else steps, _PRODUCTS if matrix_free else 0)


def run_frank_wolfe(task: Task, schedule: FrankWolfeSchedule, records: Records, releaser: Releaser) -> Fitted:
    """Return the model of noisy Frank–Wolfe with gradients."""
    oracle = NoisyGradient(task, records, releaser)
    model, history = np.zeros(task.shape), History(schedule.steps)
    for step in range(schedule.steps):
        gradient = oracle.at(model)
        left, right = linear_minimiser(gradient, task.radius)
        share = 2.0 / (step + 2.0)
        model = (1.0 - share) * model + (share * left)[:, None] * right
        history.note(step, gradient, model, oracle.deviation)
    return Fitted(model, history.arrays())


@dataclass(frozen=True, slots=True)
class Factors:
    """A model as R Σ_r share_r u_r v_r': unit columns, and shares that are not negative and add up to at most 1."""

    left: Floats
    right: Floats
    shares: Floats


def run_products(task: Task, schedule: FrankWolfeSchedule, records: Records, releaser: Releaser) -> tuple[Factors, Floats]:
    """Return the factors of noisy Frank–Wolfe by products alone, and the noisy top singular value of each step."""
    shape, loss = task.shape, task.loss
    bits = coefficient_bits(task.count, records.limit)
    model = Factors(np.zeros((shape[0], 0)), np.zeros((shape[1], 0)), np.zeros(0))
    tops = np.zeros(schedule.steps)
    right = np.ones(shape[1]) / math.sqrt(shape[1])
    left = np.ones(shape[0]) / math.sqrt(shape[0])
    for step in range(schedule.steps):
        margins = records.margins_of_factors(model.left, model.right, model.shares, task.radius)
        slopes = np.clip(loss.slopes(margins, records.targets), -loss.slope, loss.slope)
        for place in range(schedule.products):
            forward = place % 2 == 0
            image = _product(task, records, releaser, slopes, right if forward else left, forward=forward, bits=bits)
            length = max(float(np.sqrt(image @ image)), 1e-300)
            if forward:
                left = image / length
            else:
                right = image / length
                tops[step] = length
        share = 2.0 / (step + 2.0)
        model = Factors(
            np.column_stack([model.left, -left]),
            np.column_stack([model.right, right]),
            np.append(model.shares * (1.0 - share), share),
        )
        right = right + 0.5 / math.sqrt(shape[1])  # the next start: near, and not orthogonal to anything for good
        right /= max(float(np.sqrt(right @ right)), 1e-300)
    return model, tops


def _product(
    task: Task, records: Records, releaser: Releaser, slopes: Floats, vector: Floats, *, forward: bool, bits: int
) -> Floats:
    """G v (forward) or G'u with noise; a record adds Σ (c·b'v)·a over its rows: at most slope · |b| · |a|."""
    loss = task.loss
    inner = loss.right_norm if forward else loss.left_norm
    along = slopes * records.along(vector, left=not forward)
    coefficients = whole_coefficients(records, along, bound=loss.slope * inner, bits=bits)
    sums = records.side_sums(coefficients, left=forward)
    limit, step = records.side(left=forward)
    length = in_norm(task.factor * (limit << bits), len(sums), releaser.plan)
    return releaser.noisy("product", sums, length=length, step=coefficients.step * step) / task.count
