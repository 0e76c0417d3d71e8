"""Least squares from noisy second moments: everything here is arithmetic on what was released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from curador.learn.regression.moments import Moments
    from curador.learn.sums import Floats


@dataclass(frozen=True, slots=True)
class Line:
    """v ≈ slopes · z + height, in units of features and targets in [-1, 1].

    errors  standard errors of slopes: of noise and of sampling together
    """

    slopes: Floats
    height: float
    errors: Floats


def centred_moments(moments: Moments, records: int | None = None) -> tuple[float, Floats, Floats, Floats, Floats]:
    """Return count, means, targets' means, and the centred Σ and cross sums, of moments whose last column is of ones.

    records  how many were declared; None: not said
    """
    count = count_of(moments, records)
    means = np.clip(moments.gram[:-1, -1] / count, -1.0, 1.0)
    heights: Floats = moments.cross[-1] / count
    gram = moments.gram[:-1, :-1] - count * np.outer(means, means)
    cross: Floats = moments.cross[:-1] - count * means[:, None] * heights[None, :]
    return count, means, heights, gram, cross


def count_of(moments: Moments, records: int | None) -> float:
    """Return how many records there are: as counted with noise and as declared, which is taken to be within a quarter."""
    counted, noise = float(moments.gram[-1, -1]), max(moments.noise[0], 1.0)
    if records is None:
        return max(counted, noise)
    own, other = 1.0 / noise**2, 16.0 / records**2
    return max((own * counted + other * records) / (own + other), records / 16)


def floor_of(moments: Moments) -> float:
    """Return about the size of eigenvalues that cannot be told from noise, whose own reach 2√width times its entries. Public.

    The factors were chosen on synthetic and public tables; under Laplace noise few entries make the largest eigenvalues, and
    a smaller one does.
    """
    return (0.5 if moments.pure else 0.8) * moments.noise[0] * math.sqrt(len(moments.gram))


def gains(values: Floats, floor: float, ridge: float | None) -> Floats:
    """Return what takes the place of 1/value for noisy eigenvalues.

    ridge  None: value₊/(value₊² + floor²), which is the linear estimate with the least mean squared error where coefficients
           are of size 1 and each equation has noise of size floor; a number: 1/(value₊ + ridge)
    """
    positive = np.maximum(values, 0.0)
    if ridge is None:
        return positive / (np.square(positive) + floor * floor)
    return np.where(positive + ridge > 0.0, 1.0 / np.where(positive + ridge > 0.0, positive + ridge, 1.0), 0.0)


def line_of(moments: Moments, *, intercept: bool, ridge: float | None, records: int | None = None) -> Line:
    """Return the least squares line of noisy moments.

    Errors are of slopes = F c, F = V g(Λ) V': noise in c, noise in the Gram matrix times the coefficients, and sampling,
    whose variance is what is left of Σ v². They do not contain what shrinking takes away.
    """
    noise = moments.noise
    if intercept:
        count, means, heights, gram, cross = centred_moments(moments, records)
        target, height = cross[:, 0], float(np.clip(heights[0], -1.0, 1.0))
    else:
        gram, target, means, height, count = moments.gram, moments.cross[:, 0], np.zeros(len(moments.gram)), 0.0, 1.0
    values, vectors = np.linalg.eigh(gram)
    gain = gains(values, floor_of(moments), ridge)
    slopes = vectors @ (gain * (vectors.T @ target))
    positive = np.maximum(values, 0.0)
    left = moments.square - (count * height * height if intercept else 0.0) - float(slopes @ target)
    size = count if intercept else max(float(np.trace(moments.gram)), 1.0)
    spread = min(max(left / size, 0.0), 1.0) if math.isfinite(left) else 0.0
    noisy = noise[1] ** 2 + noise[0] ** 2 * float(slopes @ slopes + height * height)
    variances = np.square(vectors) @ (np.square(gain) * (noisy + spread * positive))
    return Line(slopes, height - float(means @ slopes), np.sqrt(variances))
