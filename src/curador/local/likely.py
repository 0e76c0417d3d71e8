"""Counts as they most likely are, seen all together: less error where noise is larger than most counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_POINTS = 200
"""Points of the distribution of counts that is fitted."""

_ROUNDS = 300
"""Steps of the fit: more change nothing that one could see."""

_CELLS = 4_000
"""Values are fitted one by one up to here; beyond, those with nearly the same estimate and error together."""


def likely_counts(counts: FloatArray, errors: FloatArray, total: float) -> FloatArray:
    """Return the expected count of each value under the distribution of counts that fits all estimates best.

    Each estimate is a true count plus normal noise of its standard error; the true counts are taken for draws from one
    unknown distribution on [0, largest], which is fitted by expectation–maximisation (Kiefer and Wolfowitz's maximum
    likelihood); a value's count is then its mean given its estimate. At least 0, adding up to `total`. Biased, as everything
    that shrinks is; a function of the estimates alone, so it costs no privacy. Source: [KW56]; [JZ09].
    """
    wide = np.maximum(errors, max(float(np.max(errors)) * 1e-9, 1e-12))
    middle, spread, weight, place = _gathered(counts, wide)
    grid = np.linspace(0.0, max(float(counts.max()), total / len(counts)), _POINTS)
    exponent = -0.5 * ((middle[:, None] - grid) / spread[:, None]) ** 2
    chance = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    prior = np.full(_POINTS, 1.0 / _POINTS)
    belief = chance
    for _ in range(_ROUNDS):
        belief = chance * prior
        belief /= belief.sum(axis=1, keepdims=True)
        prior = weight @ belief / weight.sum()
        prior = np.maximum(prior, 1e-300)  # a point that is ruled out stays out; a sum never becomes 0
    expected = (belief @ grid)[place]
    whole = float(expected.sum())
    return expected * (total / whole) if whole > 0.0 else np.full(len(counts), total / len(counts))


def _gathered(counts: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.intp]]:
    """Estimates, errors, how many values stand for each, and where each value stands."""
    if len(counts) <= _CELLS:
        return counts, errors, np.ones(len(counts)), np.arange(len(counts))
    edges = np.linspace(float(counts.min()), float(counts.max()), _CELLS + 1)[1:-1]
    cell = np.searchsorted(edges, counts)
    _, place, number = np.unique(cell, return_inverse=True, return_counts=True)
    middle = np.bincount(place, counts) / number
    spread = np.sqrt(np.bincount(place, errors**2) / number)
    return middle, spread, number.astype(np.float64), place
