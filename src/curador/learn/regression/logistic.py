"""Logistic regression in few noisy releases: second moments, their discriminant, then preconditioned gradient steps.

Gradients of logistic losses come by halves: Σ u v' of labels was released with the second moments; Σ u E[v] is released here.

A gradient is their difference. Labels are released once and not at every step, and what a step releases has half the range.

The linear discriminant of noisy second moments is where steps of a logistic regression start, and with δ = 0 mostly end.

Scores s_k = log π_k + μ_k'Σ⁻¹(x − μ_k/2) are those of classes with normal features of one covariance, for which they are the
logistic regression; elsewhere they are its quadratic approximation with the curvature that the classes' spread asks for.

The whole of a fit:

    Σ u u', Σ u v' + noise ──► discriminant ──► [Σ u E[v] + noise ──► step by (h·Σ u u')⁻¹] × steps ──► mean of the last

Second moments cost once and make every step a Newton step but for its curvature h; so few steps do, and each has much budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import Failed
from curador.learn.plan import PlannedRelease
from curador.learn.regression import moments
from curador.learn.regression.frame import INWARD, TOP, Design, FeatureFrame, Sizes, design_of, sizes_of
from curador.learn.regression.moments import centred_moments, floor_of, gains, products
from curador.learn.sums import sensitivity_steps
from curador.numerics.exact import whole_root_up

if TYPE_CHECKING:
    from curador.learn.plan import FitGoal, FitPlan
    from curador.learn.regression.moments import NoisyMoments, TargetGrid
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats


# ---- gradient --------------------------------------------------------------------------------------------------------------


GRADIENT = "expected labels"

_GRAIN = 1 << 16
_MOST = 1 << 24
"""Coefficients are whole multiples of 2⁻¹⁶ and at most 2⁸."""

_FINE = 1 << 12
_END = 40 * _FINE
"""Scores are rounded to 2⁻¹²; beyond 40 labels are certain."""


def probabilities(scores: Floats) -> Floats:
    """Return the probabilities of scores: of one column, of the second of two classes; of more, of each class."""
    if scores.shape[1] == 1:
        return 0.5 * (1.0 + np.tanh(0.5 * np.clip(scores, -700.0, 700.0)))
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def round_coefficients(coefficients: Floats) -> Floats:
    """Return coefficients on the grid on which scores of whole rows are exact. Public, for they come from releases."""
    return np.clip(np.rint(coefficients * _GRAIN), -_MOST, _MOST) / _GRAIN


def expectations(design: Design, coefficients: Floats) -> Floats:
    """Return what each row's coded label is expected to be: one number for two classes (±1), else the probability of each.

    coefficients  of `rounded`
    Claim  |c|₁ ≤ 1, and so |c| ≤ 1, but for rounding. What becomes of a row depends on that row only, to the last bit: scores
           are sums of whole numbers below 2⁵³, in whatever order and in whatever blocks a matrix product adds them; the rest
           is looked up in fixed tables, added column by column, and divided.
    """
    if design.sizes.one * _MOST >= 1 << 53:
        raise Failed("more features than scores are exact for")
    places = np.rint((design.values @ np.rint(coefficients * _GRAIN)) * (_FINE / (TOP * _GRAIN)))
    if places.shape[1] == 1:
        known = _tables()[0][np.minimum(np.abs(places), _END).astype(np.int64)]
        return np.copysign(known, places)
    behind = places.max(axis=1, keepdims=True) - places
    raised = _tables()[1][np.minimum(behind, _END).astype(np.int64)]
    total = np.zeros(len(raised))
    for column in range(raised.shape[1]):
        total += raised[:, column]
    return raised / total[:, None]


@cache
def _tables() -> tuple[Floats, Floats]:
    """tanh(s/2) and e^(−s) at s = 0, 1/FINE, …, 40."""
    scores = np.arange(_END + 1) / _FINE
    return np.tanh(0.5 * scores), np.exp(-scores)


def gradient_length(sizes: Sizes, goal: FitGoal) -> int:
    """Return by how many grid steps one unit moves Σ w c u'.

    Claim   |c u'| = |c||u| in l2 and in l1, |c| ≤ 1 in both, and the weights of a unit add up to at most 1. Replacing: twice.
    Rounds  Up.
    """
    if goal.pure:
        return sensitivity_steps(TOP * sizes.one, goal.adjacency)
    return sensitivity_steps(whole_root_up(TOP * TOP * sizes.square), goal.adjacency)


def release_expected(releaser: Releaser, design: Design, expected: Floats, weights: Floats | None) -> Floats:
    """Release Σ w c u' as an array of one row a column of u, in units of features in [-1, 1].

    design    rows without weights
    expected  of `expectations`
    Claim     What is expected is shortened by 2⁻³⁰, more than what rounding of it and of weights adds, and rounded towards
              zero, which lengthens nothing; NaN is 0.
    """
    weighted = expected if weights is None else expected * weights[:, None]
    whole = np.trunc(np.clip(np.nan_to_num(weighted, nan=0.0), -1.0, 1.0) * (TOP * INWARD))
    sums = products(design.values, whole, design.sizes.top * TOP)
    return releaser.noisy(GRADIENT, sums, length=gradient_length(design.sizes, releaser.plan.goal), step=1.0 / TOP**2)


def gradient_noise(plan: FitPlan, sizes: Sizes) -> float:
    """Return the standard deviation of each number of such a release. Public."""
    return plan.deviation(GRADIENT, float(gradient_length(sizes, plan.goal))) / TOP**2


# ---- discriminant ----------------------------------------------------------------------------------------------------------


def discriminant(moments: NoisyMoments, records: int | None = None) -> Floats:
    """Return the coefficients of scores, one row a column of u (the last of ones), one column a class; of two classes, one.

    moments  with labels as targets: ±1 for two classes, else one column of 0 and 1 a class
    records  how many were declared; None: not said
    """
    two = moments.cross.shape[1] == 1
    ones = moments.gram[:, -1]
    sums = np.stack([ones - moments.cross[:, 0], ones + moments.cross[:, 0]], axis=1) / 2 if two else moments.cross
    count, means, _, gram, _ = centred_moments(moments, records)
    classes = sums.shape[1]
    least = max(1.0, 2 * moments.noise[1], 1e-3 * count / classes)
    counts = np.maximum(sums[-1], least)
    shares = counts / counts.sum()
    away = sums[:-1] / counts - means[:, None]
    away = np.clip(away, -2.0, 2.0)
    # Σ_w = Σ_t − Σ π d d' by Woodbury with a floor under what is left, so that noise cannot make scores explode
    values, vectors = np.linalg.eigh(gram / count)
    positive = np.maximum(values, 0.0)
    gain = positive / (np.square(positive) + (floor_of(moments) / count) ** 2)
    inverse = (vectors * gain) @ vectors.T
    roots = away * np.sqrt(shares)
    between = roots.T @ inverse @ roots
    size, basis = np.linalg.eigh(between)
    within = (basis / np.maximum(1.0 - size, 0.2)) @ basis.T
    slopes = inverse @ roots @ within / np.sqrt(shares)
    heights = np.log(shares) - 0.5 * np.einsum("jk,jk->k", slopes, away) - means @ slopes
    scores = np.vstack([slopes, heights])
    return scores[:, 1:] - scores[:, :1] if two else scores - scores.mean(axis=1, keepdims=True)


def curvature(moments: NoisyMoments, coefficients: Floats) -> float:
    """Return about what p(1 − p) is on average where scores have the first two moments that were released.

    For two classes, of normal scores by a quadrature; for more, Böhning's bound ½ is halved. Never above ¼, never below 1/50.
    """
    if coefficients.shape[1] > 1:
        return 0.25
    count = max(float(moments.gram[-1, -1]), 1.0)
    vector = coefficients[:, 0]
    mean = float(moments.gram[-1] @ vector) / count
    square = float(vector @ moments.gram @ vector) / count
    spread = math.sqrt(max(square - mean * mean, 0.0))
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    some = 0.5 * (1.0 + np.tanh(0.5 * np.clip(mean + spread * nodes, -700.0, 700.0)))
    found = float((weights * some * (1.0 - some)).sum() / weights.sum())
    return min(max(found, 0.125), 0.25)


# ---- logit -----------------------------------------------------------------------------------------------------------------


_STEPS = (4, 2, 0.5)
_STEPS_PURE = (1, 1, 0.8)
"""How many steps, of how many the mean is taken, and the share of second moments. Each step halves, at least, what is left
where the curvature is within a factor 2; Laplace noise adds up faster than that with steps."""


@dataclass(frozen=True, slots=True)
class LogisticProblem:
    """What is public of a fit.

    classes  how many
    """

    frame: FeatureFrame
    classes: int
    intercept: bool

    @property
    def columns(self) -> int:
        """How many columns of coefficients there are: one for two classes."""
        return 1 if self.classes == 2 else self.classes


def steps_of(goal: FitGoal) -> tuple[int, int, float]:
    """Return how many steps, of how many of them the mean is taken, and what share second moments have. Public."""
    return _STEPS_PURE if goal.pure else _STEPS


def parts(goal: FitGoal) -> list[PlannedRelease]:
    """Return what a fit releases."""
    steps, _, share = steps_of(goal)
    return [PlannedRelease(moments.NAME, share), PlannedRelease(GRADIENT, 1 - share, steps)]


def noise_of(plan: FitPlan, problem: LogisticProblem) -> tuple[tuple[float, float], float]:
    """Return the noise of second moments and of gradients. Public."""
    sizes = sizes_of(problem.frame, intercept=problem.intercept)
    grid = moments.grid_of(sizes, pure=plan.goal.pure, squares=False, columns=problem.columns)
    return (
        moments.noise_of(plan, sizes, grid, intercept=problem.intercept),
        gradient_noise(plan, sizes),
    )


def code_labels(labels: Floats, problem: LogisticProblem, grid: TargetGrid, roots: Floats | None) -> Floats:
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
    problem: LogisticProblem,
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
        code_labels(labels, problem, grid, roots),
        None,
        grid,
        intercept=problem.intercept,
        records=records,
    )
    current = round_coefficients(_start(found, problem, records))
    bend = curvature(found, current) if problem.intercept else 0.25
    plain = design if roots is None else design_of(rows, problem.frame, intercept=problem.intercept)
    # labels of ±1 are twice as far apart as probabilities: half of what they give is the gradient
    half = 0.5 if problem.columns == 1 else 1.0
    noise = half * math.hypot(gradient_noise(plan, design.sizes), found.noise[1])
    values, vectors = np.linalg.eigh(found.gram)
    positive = np.maximum(values, 0.0)
    blur = math.hypot(floor_of(found), noise / bend)
    gain = half * positive / (np.square(positive) + blur * blur) / bend
    visited: list[Floats] = []
    steps, averaged, _ = steps_of(plan.goal)
    for _ in range(steps):
        expected = expectations(plain, current)
        slope = release_expected(releaser, plain, expected, weights) - found.cross
        current = round_coefficients(current - vectors @ (gain[:, None] * (vectors.T @ slope)))
        visited.append(current)
    return np.mean(visited[-averaged:], axis=0)


def _start(found: NoisyMoments, problem: LogisticProblem, records: int | None) -> Floats:
    """The discriminant; without an intercept, the minimum of the loss's quadratic majorant, or 0 for many classes."""
    if problem.intercept:
        return discriminant(found, records)
    if problem.columns > 1:
        return np.zeros((problem.frame.features, problem.columns))
    values, vectors = np.linalg.eigh(found.gram)
    gain = gains(values, floor_of(found), None)
    return 2.0 * vectors @ (gain[:, None] * (vectors.T @ found.cross))
