"""The linear discriminant of noisy second moments: where steps of a logistic regression start, and with δ = 0 mostly end.

Scores s_k = log π_k + μ_k'Σ⁻¹(x − μ_k/2) are those of classes with normal features of one covariance, for which they are the
logistic regression; elsewhere they are its quadratic approximation with the curvature that the classes' spread asks for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curador.learn.regression.least_squares import centred_moments, floor_of

if TYPE_CHECKING:
    from curador.learn.regression.moments import Moments
    from curador.learn.sums import Floats


def discriminant(moments: Moments, records: int | None = None) -> Floats:
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


def curvature(moments: Moments, coefficients: Floats) -> float:
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
