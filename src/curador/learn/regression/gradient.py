"""Gradients of logistic losses, by halves: Σ u v' of labels was released with the second moments; Σ u E[v] is released here.

A gradient is their difference. Labels are released once and not at every step, and what a step releases has half the range.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import Failed
from curador.learn.regression.frame import INWARD, TOP, Design, Sizes
from curador.learn.regression.moments import products
from curador.learn.sums import moved

if TYPE_CHECKING:
    from curador.learn.goal import Goal
    from curador.learn.plan import Plan
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats

NAME = "expected labels"

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


def rounded(coefficients: Floats) -> Floats:
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


def length_of(sizes: Sizes, goal: Goal) -> int:
    """Return by how many grid steps one unit moves Σ w c u'.

    Claim   |c u'| = |c||u| in l2 and in l1, |c| ≤ 1 in both, and the weights of a unit add up to at most 1. Replacing: twice.
    Rounds  Up.
    """
    if goal.pure:
        return moved(TOP * sizes.one, goal.adjacency)
    return moved(math.isqrt(TOP * TOP * sizes.square - 1) + 1, goal.adjacency)


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
    return releaser.noisy(NAME, sums, length=length_of(design.sizes, releaser.plan.goal), step=1.0 / TOP**2)


def noise_of(plan: Plan, sizes: Sizes) -> float:
    """Return the standard deviation of each number of such a release. Public."""
    return plan.deviation(NAME, float(length_of(sizes, plan.goal))) / TOP**2
