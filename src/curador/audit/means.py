"""Bounds of a mean of few known values by one bet, valid for every sample size.

Somebody bets the same share against "the mean is m" on every sample. If the mean is m the expected capital stays 1, so that
by Markov's inequality it reaches 1/α with probability at most α, whatever the law. The bound is the last m that it refutes.
The bet may be anything fixed beforehand; a good one is learned on other samples, and the bound is then as narrow as a
Chernoff bound made for the law itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from curador.audit.bounds import IntArray
    from curador.numerics.rounding import FloatArray

_SLACK = 1e-6
"""Added to the logarithm of the capital that refutes: dominates the error of a sum of a thousand logarithms times counts."""

_STEPS = 60
_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99])
_FACTORS = np.array([0.7, 0.85, 1.0, 1.2, 1.4])


def mean_at_least(values: FloatArray, counts: IntArray, *, bet: float, error: float) -> float:
    """Return a lower bound of the mean of values seen so many times each.

    Claim   Above the mean with probability at most `error`.
    Needs   Independent samples of one law, each one of `values`; a bet above 0 that does not depend on them.
    Rounds  Down.
    Source  [WR24] with one bet: where the mean is μ < min + 1/bet, E[1 + bet (X − μ)] = 1 and every factor is positive, so
            P[∏ (1 + bet (X − μ)) ≥ 1/error] ≤ error; the product falls with μ, and the bound is where it is 1/error, at most
            min + 1/bet, and at least min.
    """
    return float(_lowest(np.asarray(values, np.float64), np.asarray(counts, np.float64), np.array([bet]), error)[0])


def mean_at_most(values: FloatArray, counts: IntArray, *, bet: float, error: float) -> float:
    """Return an upper bound of the mean, as `mean_at_least` of the negatives. Rounds: up."""
    return -mean_at_least(-np.asarray(values, np.float64), counts, bet=bet, error=error)


def good_bet(values: FloatArray, shares: FloatArray, size: float, *, error: float) -> tuple[float, float]:
    """Return the bet, and the bound, that would prove most from below if the values had these shares of `size` samples."""
    mean = float(values @ shares)
    variance = max(float((values - mean) ** 2 @ shares), 1e-300)
    reach = mean - float(values.min())
    if reach <= 0.0:  # one value only
        return 1.0, float(values.min())
    usual = math.sqrt(2.0 * math.log(1.0 / error) / (size * variance))
    bets = np.concatenate([_SHARES / reach, np.minimum(_FACTORS * usual, 0.999 / reach)])
    bounds = _lowest(values, shares * size, bets, error)
    best = int(np.argmax(bounds))
    return float(bets[best]), float(bounds[best])


def _lowest(values: FloatArray, counts: FloatArray, bets: FloatArray, error: float) -> FloatArray:
    """For every bet, the largest mean that it refutes: the product falls in the mean, so by bisection from below."""
    least, goal = float(values.min()), math.log(1.0 / error) + _SLACK
    scale = max(float(np.abs(values).max()), 1e-300)
    low = np.full(len(bets), least)
    high = np.minimum(least + 1.0 / bets, float(values.max()) + 1e-9 * scale)
    seen = counts > 0
    places, weights = values[seen], counts[seen]

    def refuted(mean: FloatArray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            capital = np.log1p(bets[:, None] * (places - mean[:, None])) @ weights
        return capital >= goal  # NaN and −∞ refute nothing

    some = refuted(low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        lower = refuted(middle)
        low, high = np.where(lower, middle, low), np.where(lower, high, middle)
    return np.where(some, np.maximum(low - 1e-12 * scale, least), least)
