"""Functions that keep their relative accuracy where the textbook form cancels."""

from __future__ import annotations

import bisect
import math

import numpy as np

from curador.numerics.rounding import FloatArray

_TERMS = tuple(1.0 / math.factorial(k) for k in range(2, 17))

_REACHES = tuple((math.factorial(k + 3) * 2.0**-57) ** (1.0 / (k + 1)) for k in range(len(_TERMS) - 1))
"""Up to where the terms after the first k + 1 are below 2⁻⁵⁵ of the first."""


def expm1_minus(x: FloatArray) -> FloatArray:
    """Return eˣ − 1 − x, never negative, within 8 ulps: a series below 1/2, where the plain form cancels."""
    x = np.asarray(x, dtype=np.float64)
    size = np.abs(x)
    largest = float(size.max(initial=0.0))
    if largest < 0.5:
        return _series(x, _TERMS[: 1 + bisect.bisect_left(_REACHES, largest)])
    small = size < 0.5
    with np.errstate(over="ignore"):
        return np.where(small, _series(np.where(small, x, 0.0), _TERMS), np.expm1(x) - x)


def _series(x: FloatArray, terms: tuple[float, ...]) -> FloatArray:
    """x² Σ terms[k] xᵏ."""
    series = np.full_like(x, terms[-1])
    for coefficient in terms[-2::-1]:
        series *= x
        series += coefficient
    series *= x
    series *= x
    return series


def sinh_minus(x: FloatArray) -> FloatArray:
    """Return sinh x − x for x ≥ 0, within 8 ulps."""
    x = np.asarray(x, dtype=np.float64)
    small = x < 1.0
    safe = np.where(small, x, 0.0)
    square = safe * safe
    series = np.zeros_like(safe)
    for k in range(21, 1, -2):
        series = series * square + 1.0 / math.factorial(k)
    with np.errstate(over="ignore"):
        return np.where(small, series * square * safe, np.sinh(x) - x)


def log1mexp(x: float) -> float:
    """Return log(1 − e⁻ˣ) for x > 0, from whichever form keeps its digits."""
    if x <= 0.0:
        return -math.inf
    return math.log(-math.expm1(-x)) if x < math.log(2.0) else math.log1p(-math.exp(-x))


def log_chernoff(theta: FloatArray) -> FloatArray:
    """Return log c(θ), c(θ) = θ^θ / (1 + θ)^(1 + θ).

    Claim   (1 − e⁻ʸ)₊ ≤ c(θ) e^(θ y) for every real y and θ > 0, with equality at y = log(1 + 1/θ).
    """
    theta = np.asarray(theta, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(theta > 0, -theta * np.log1p(1.0 / theta) - np.log1p(theta), 0.0)
