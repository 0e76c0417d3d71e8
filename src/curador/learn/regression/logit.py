"""Logistic regression in few noisy releases: second moments, their discriminant, then preconditioned gradient steps.

    Σ u u', Σ u v' + noise ──► discriminant ──► [Σ u E[v] + noise ──► step by (h·Σ u u')⁻¹] × steps ──► mean of the last

Second moments cost once and make every step a Newton step but for its curvature h; so few steps do, and each has much budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.plan import Part
from curador.learn.regression import gradient, moments
from curador.learn.regression.discriminant import curvature, discriminant
from curador.learn.regression.frame import Frame, design_of, sizes_of
from curador.learn.regression.least_squares import floor_of, gains

if TYPE_CHECKING:
    from curador.learn.goal import Goal
    from curador.learn.plan import Plan
    from curador.learn.regression.moments import Grid, Moments
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats

_STEPS = (4, 2, 0.5)
_STEPS_PURE = (1, 1, 0.8)
"""How many steps, of how many the mean is taken, and the share of second moments. Each step halves, at least, what is left
where the curvature is within a factor 2; Laplace noise adds up faster than that with steps."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is public of a fit.

    classes  how many
    """

    frame: Frame
    classes: int
    intercept: bool

    @property
    def columns(self) -> int:
        """How many columns of coefficients there are: one for two classes."""
        return 1 if self.classes == 2 else self.classes


def steps_of(goal: Goal) -> tuple[int, int, float]:
    """Return how many steps, of how many of them the mean is taken, and what share second moments have. Public."""
    return _STEPS_PURE if goal.pure else _STEPS


def parts(goal: Goal) -> list[Part]:
    """Return what a fit releases."""
    steps, _, share = steps_of(goal)
    return [Part(moments.NAME, share), Part(gradient.NAME, 1 - share, steps)]


def noise_of(plan: Plan, problem: Problem) -> tuple[tuple[float, float], float]:
    """Return the noise of second moments and of gradients. Public."""
    sizes = sizes_of(problem.frame, intercept=problem.intercept)
    grid = moments.grid_of(sizes, pure=plan.goal.pure, squares=False, columns=problem.columns)
    return (
        moments.noise_of(plan, sizes, grid, intercept=problem.intercept),
        gradient.noise_of(plan, sizes),
    )


def coded(labels: Floats, problem: Problem, grid: Grid, roots: Floats | None) -> Floats:
    """Return labels (positions among the classes) as targets: ±1 for two classes, else 1 in the label's column.

    Claim  A row has one entry that is not 0, of grid.target times its root, rounded down: |v| and |v|₁ are at most that.
    """
    size = np.floor((np.ones(len(labels)) if roots is None else roots) * grid.target)
    if problem.classes == 2:
        return (np.where(labels > 0, 1.0, -1.0) * size)[:, None]
    found = np.zeros((len(labels), problem.classes))
    found[np.arange(len(labels)), labels.astype(np.int64)] = size
    return found


def coefficients_of(
    releaser: Releaser,
    rows: Floats,
    labels: Floats,
    problem: Problem,
    *,
    weights: Floats | None,
    roots: Floats | None,
    records: int | None,
) -> Floats:
    """Return the coefficients of features in [-1, 1] (the last of the intercept, if any): one column, or one a class."""
    design = design_of(rows, problem.frame, intercept=problem.intercept, roots=roots)
    plan = releaser.plan
    grid = moments.grid_of(design.sizes, pure=plan.goal.pure, squares=False, columns=problem.columns)
    found = moments.release_moments(
        releaser,
        design,
        coded(labels, problem, grid, roots),
        None,
        grid,
        intercept=problem.intercept,
        records=records,
    )
    current = gradient.rounded(_start(found, problem, records))
    bend = curvature(found, current) if problem.intercept else 0.25
    plain = design if roots is None else design_of(rows, problem.frame, intercept=problem.intercept)
    # labels of ±1 are twice as far apart as probabilities: half of what they give is the gradient
    half = 0.5 if problem.columns == 1 else 1.0
    noise = half * math.hypot(gradient.noise_of(plan, design.sizes), found.noise[1])
    values, vectors = np.linalg.eigh(found.gram)
    positive = np.maximum(values, 0.0)
    blur = math.hypot(floor_of(found), noise / bend)
    gain = half * positive / (np.square(positive) + blur * blur) / bend
    visited: list[Floats] = []
    steps, averaged, _ = steps_of(plan.goal)
    for _ in range(steps):
        expected = gradient.expectations(plain, current)
        slope = gradient.release_expected(releaser, plain, expected, weights) - found.cross
        current = gradient.rounded(current - vectors @ (gain[:, None] * (vectors.T @ slope)))
        visited.append(current)
    return np.mean(visited[-averaged:], axis=0)


def _start(found: Moments, problem: Problem, records: int | None) -> Floats:
    """The discriminant; without an intercept, the minimum of the loss's quadratic majorant, or 0 for many classes."""
    if problem.intercept:
        return discriminant(found, records)
    if problem.columns > 1:
        return np.zeros((problem.frame.features, problem.columns))
    values, vectors = np.linalg.eigh(found.gram)
    gain = gains(values, floor_of(found), None)
    return 2.0 * vectors @ (gain[:, None] * (vectors.T @ found.cross))
