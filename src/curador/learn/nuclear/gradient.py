"""The optimisers that use all records in every step: noisy projected gradient, and Frank–Wolfe.

Projected gradient over the ball: what to use unless there is a reason not to.

    X ← project(X − step · (mean gradient + noise)),   T times;   the model is the mean of the last half

Claim   T sums Σ c·a·b' of exact whole numbers, each with noise for the length of a record's largest gradient, cost what the
        plan says. Everything else is made of them.
Needs   Coefficients that are functions of one record and of what was released (records.py).

Frank–Wolfe over the ball is here without privacy [FM22, Alg. 1], and with noise on every gradient, or on products with
it alone.

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

from curador.learn.nuclear.losses import clip_rows
from curador.learn.nuclear.records import DenseRecords, coefficient_bits, whole_coefficients
from curador.learn.nuclear.task import FittedMatrix, History, in_norm, linear_minimiser, project
from curador.learn.plan import PlannedRelease
from curador.learn.sums import cross, sensitivity_steps
from curador.numerics.exact import whole_root_up

if TYPE_CHECKING:
    from curador.learn.nuclear.losses import Batch, ObjectiveLoss
    from curador.learn.nuclear.records import Records
    from curador.learn.nuclear.task import Task
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats


# ---- gradient --------------------------------------------------------------------------------------------------------------


_CURVATURE_SHARE = 0.01
_MOST_BOUGHT = 4_000_000
BOLD = 0.75
"""A step is this over the curvature."""

_SURE = 3.0


@dataclass(frozen=True, slots=True)
class GradientSchedule:
    """How a run goes; a function of public numbers.

    curvature  of the mean loss in the Frobenius norm, where it is declared (or bounded by the loss's constants)
    bought     whether it is estimated with a hundredth of the budget
    """

    steps: int
    curvature: float
    bought: bool

    @property
    def parts(self) -> list[PlannedRelease]:
        """What a run releases."""
        if not self.bought:
            return [PlannedRelease("gradient", count=self.steps)]
        return [
            PlannedRelease("gradient", 1 - _CURVATURE_SHARE, self.steps),
            PlannedRelease("second_moments", _CURVATURE_SHARE),
        ]


def gradient_schedule(
    task: Task, strength: float, *, steps: int | None = None, curvature: float | None = None, pure: bool = False
) -> GradientSchedule:
    """Return the schedule: T = max(3, ⌈1.25 x^(1/3)⌉), fewer where noise adds up faster than its root."""
    usual = max(2, math.ceil(strength**0.25)) if pure else max(3, math.ceil(1.25 * strength ** (1 / 3)))
    affordable = task.shape[0] ** 2 + task.shape[1] ** 2 <= _MOST_BOUGHT
    return GradientSchedule(
        usual if steps is None else steps,
        task.loss.smoothness if curvature is None else curvature,
        curvature is None and affordable,
    )


def run_gradient(task: Task, schedule: GradientSchedule, records: Records, releaser: Releaser) -> FittedMatrix:
    """Return the model of noisy projected gradient."""
    curvature = schedule.curvature
    if schedule.bought:
        curvature = min(curvature, bought_curvature(task, records, releaser))
    oracle = NoisyGradient(task, records, releaser)
    model = np.zeros(task.shape)
    mean, kept = np.zeros(task.shape), 0
    before: tuple[Floats, Floats] | None = None
    history = History(schedule.steps)
    for step in range(schedule.steps):
        gradient = oracle.at(model)
        if before is not None:
            curvature = max(curvature, shown_curvature(before, (model, gradient), oracle.deviation))
        before = (model, gradient)
        model = project(model - BOLD / curvature * gradient, task.radius)
        if step >= schedule.steps // 2:
            mean, kept = mean + model, kept + 1
        history.note(step, gradient, model, oracle.deviation)
    return FittedMatrix(mean / kept, history.arrays())


@dataclass(slots=True)
class NoisyGradient:
    """The mean gradient with noise: one release of the part each time it is asked for."""

    task: Task
    records: Records
    releaser: Releaser
    name: str = "gradient"

    @property
    def bits(self) -> int:
        """Of a coefficient."""
        return coefficient_bits(self.task.count, self.records.limit)

    @property
    def length(self) -> int:
        """How far a neighbour moves the sum, in grid steps, as the plan's noise wants it."""
        numbers = self.task.shape[0] * self.task.shape[1]
        return in_norm(self.task.factor * (self.records.limit << self.bits), numbers, self.releaser.plan)

    @property
    def deviation(self) -> float:
        """The standard deviation of each entry of the noisy mean."""
        step = self.records.step * self.task.loss.slope / (1 << self.bits) / self.task.count
        return self.releaser.deviation(self.name, length=self.length, step=step)

    def at(self, model: Floats) -> Floats:
        """Return the noisy mean gradient at a model."""
        loss, records = self.task.loss, self.records
        slopes = loss.slopes(records.margins(model, self.task.radius), records.targets)
        coefficients = whole_coefficients(records, slopes, bound=loss.slope, bits=self.bits)
        step = records.step * coefficients.step
        return self.releaser.noisy(self.name, records.sums(coefficients), length=self.length, step=step) / self.task.count


def bought_curvature(task: Task, records: Records, releaser: Releaser) -> float:
    """Return about bend · λ(mean aa') · λ(mean bb') by one release of both second moments: the curvature where a and b are
    about independent.

    Claim   A record adds two positive semi-definite matrices, each no longer than its limit: √2 of that together, and √2 more
            where it is replaced. Of entries, the two are diagonal, and only the diagonals are released.
    """  # noqa: D205 -- one sentence
    bits = 10
    shares = whole_coefficients(records, np.ones(len(records.targets)), bound=1.0, bits=bits)  # each row by its weight
    if isinstance(records, DenseRecords):
        sides = [cross(rows, rows, shares) for rows in (records.left, records.right)]
        limit, steps = records.left.limit**2, [records.left.step**2, records.right.step**2]
    else:
        sides = [records.side_sums(shares, left=True), records.side_sums(shares, left=False)]
        limit, steps = 1, [1.0, 1.0]
    one = sensitivity_steps(limit << bits, task.adjacency, positive=True)
    length = whole_root_up(2 * one * one)
    flat = np.concatenate([side.ravel() for side in sides])
    length = in_norm(length, flat.size, releaser.plan)
    scale = shares.step * steps[0]
    noisy = releaser.noisy("second_moments", flat, length=length, step=scale)
    deviation = releaser.deviation("second_moments", length=length, step=scale)
    parts = [noisy[: sides[0].size].reshape(sides[0].shape), noisy[sides[0].size :].reshape(sides[1].shape)]
    tops = [_top(part, deviation) * step / steps[0] / task.count for part, step in zip(parts, steps, strict=True)]
    norms = (task.loss.left_norm**2, task.loss.right_norm**2)
    tops = [min(max(top, norm * 1e-6), norm) for top, norm in zip(tops, norms, strict=True)]
    return task.loss.bend * tops[0] * tops[1]


def _top(noisy: Floats, deviation: float) -> float:
    """The largest eigenvalue under the noise, without what noise adds to it; of a diagonal, its largest entry."""
    if noisy.ndim == 1:
        return float(noisy.max(initial=0.0))
    size = len(noisy)
    value = float(np.linalg.eigvalsh((noisy + noisy.T) / 2)[-1])
    left = value * value - 2.0 * size * deviation * deviation  # 4 d σ², σ² half of an entry's: pairs were averaged
    return (value + math.sqrt(left)) / 2 if left > 0 else value


def shown_curvature(before: tuple[Floats, Floats], after: tuple[Floats, Floats], deviation: float) -> float:
    """Return what two noisy gradients show of the curvature between them, less three deviations: to be surprised by."""
    move = after[0] - before[0]
    length = float(np.sqrt(np.square(move).sum()))
    if length == 0.0:
        return 0.0
    along = float(((after[1] - before[1]) * move).sum()) / length**2
    return along - _SURE * math.sqrt(2.0) * deviation / length


# ---- frank wolfe -----------------------------------------------------------------------------------------------------------


_PRODUCTS = 6


def frank_wolfe(loss: ObjectiveLoss, radius: float, batch: Batch, *, steps: int = 100) -> Floats:
    """Return the model of T + 1 steps without noise. Not private: to compare with."""
    left, right = clip_rows(batch.left, loss.left_norm), clip_rows(batch.right, loss.right_norm)
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
    def parts(self) -> list[PlannedRelease]:
        """What a run releases."""
        return [
            PlannedRelease("product", count=self.steps * self.products)
            if self.products
            else PlannedRelease("gradient", count=self.steps)
        ]


def frank_wolfe_schedule(strength: float, *, steps: int | None = None, matrix_free: bool = False) -> FrankWolfeSchedule:
    """Return the schedule: T = max(3, ⌈1.2 x^0.4⌉), and six products a step where there are no gradients."""
    usual = max(3, math.ceil(1.2 * strength**0.4))
    return FrankWolfeSchedule(usual if steps is None else steps, _PRODUCTS if matrix_free else 0)


def run_frank_wolfe(task: Task, schedule: FrankWolfeSchedule, records: Records, releaser: Releaser) -> FittedMatrix:
    """Return the model of noisy Frank–Wolfe with gradients."""
    oracle = NoisyGradient(task, records, releaser)
    model, history = np.zeros(task.shape), History(schedule.steps)
    for step in range(schedule.steps):
        gradient = oracle.at(model)
        left, right = linear_minimiser(gradient, task.radius)
        share = 2.0 / (step + 2.0)
        model = (1.0 - share) * model + (share * left)[:, None] * right
        history.note(step, gradient, model, oracle.deviation)
    return FittedMatrix(model, history.arrays())


@dataclass(frozen=True, slots=True)
class ModelFactors:
    """A model as R Σ_r share_r u_r v_r': unit columns, and shares that are not negative and add up to at most 1."""

    left: Floats
    right: Floats
    shares: Floats


def run_products(
    task: Task, schedule: FrankWolfeSchedule, records: Records, releaser: Releaser
) -> tuple[ModelFactors, Floats]:
    """Return the factors of noisy Frank–Wolfe by products alone, and the noisy top singular value of each step."""
    shape, loss = task.shape, task.loss
    bits = coefficient_bits(task.count, records.limit)
    model = ModelFactors(np.zeros((shape[0], 0)), np.zeros((shape[1], 0)), np.zeros(0))
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
        model = ModelFactors(
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
