"""Error bars of functions with bends, under Gaussian noise: the mean slopes on the way from the truth to what was released.

Let y be moments and ỹ what was released of them, off by d_i = (noise of x_i − y_i · noise of n)/ñ. By the fundamental theorem

    h(ỹ) − h(y) = Σ g_i d_i = v̂ · Z/ñ,   g_i = ∫ h_i(y + t d) dt,

without any rest: Z are independent normal noises of variance 1. The mean slopes g are not those at y, v, but turned by what h
bends on half of the way. With ω the angle between v̂ and v, Z₀ the part of Z along v, and Z₁ that across it within the span,

    |v̂ · Z| ≤ ‖v̂‖ (|Z₀| + sin ω ‖Z₁‖),   Z₀ and Z₁ independent,

as of ratios (`plan/ratio_sums.py`). Here the turn itself is made of noises d in that span: it is small where the noise is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from curador.plan.error import ROUND_OFF

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import BoolArray

FINENESS = 256
_EVERY = 1.05
"""Bends are rounded up to a few parts of 1, so many, and from there on to the next of numbers that grow by so much."""

_MOST_BEND = 1.0
_EDGES = 200

_FROM, _BAND = 20.0, 8.0
"""From how many deviations of a count on bends are followed, and where a noise is below FAR."""


def where_bent(size: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Return in which rows mean slopes are to be used, and in which the law before; in some both are.

    size  the smallest released count, in deviations of its noise

    Claim   If the interval is all that either allows where both are used, it misses no more often than one of them alone, but
            for FAR: the count before noise decides which, and the other is used alone only where a noise is beyond _BAND.
    """
    return size >= _FROM - _BAND, ~(size >= _FROM + _BAND)


def bent_values(bend: FloatArray, turning: int, miss: float) -> FloatArray:
    """Return for each row c with P[|Z₀| + min(bend · max(‖(Z₀, Z₁)‖, 1), 1) ‖Z₁‖ > c] ≤ miss; infinite where bends are large.

    turning  the dimension of Z₁

    Rounds  Up.
    """
    known = np.isfinite(bend) & (bend >= 0) & (bend <= _MOST_BEND)
    steps = np.where(known, bend, 0.0) * FINENESS
    rounded = np.ceil(np.log(np.maximum(steps, 1.0)) / np.log(_EVERY)) + 1
    rungs = np.where(known, np.where(steps < 1, np.ceil(steps), rounded), -1).astype(np.int64)
    held, places = np.unique(rungs, return_inverse=True)
    return np.array([bent_value(rung, turning, miss) if rung >= 0 else np.inf for rung in held.tolist()])[places]


def bend_of(rung: int) -> float:
    """Return the bend that a rung stands for."""
    return _EVERY ** (rung - 1) * (1 + 1e-9) / FINENESS if rung else 0.0


@lru_cache(maxsize=8192)
def bent_value(rung: int, turning: int, miss: float) -> float:
    """Return c for the bend of a rung.

    Claim   ‖Z₁‖ is taken at the upper edge of each of some hundred cells, so that the probability is overestimated; the left
            side grows with |Z₀|, so what is missed of a cell lies beyond one |Z₀|, which is taken from below.
    Rounds  Up.
    """
    from scipy.special import gammainc, ndtr, ndtri

    bend = bend_of(rung)
    if not rung:
        return float(-ndtri(miss / 2)) * ROUND_OFF
    edges = np.linspace(0.0, 9.0 + turning, _EDGES + 1)
    below = gammainc(turning / 2, edges**2 / 2)
    masses, beyond, edges = np.diff(below) * ROUND_OFF, (1 - below[-1]) + 1e-14, edges[1:]
    low, high = 0.0, 40.0
    for _ in range(36):
        middle = (low + high) / 2
        missed = float(masses @ np.minimum(2 * ndtr(-_least_along(middle, bend, edges)), 1.0)) + beyond
        low, high = (low, middle) if missed <= miss else (middle, high)
    return high * ROUND_OFF


def _least_along(c: float, bend: float, across: FloatArray) -> FloatArray:
    """The least |Z₀| at which the left side reaches c, for each ‖Z₁‖, or less.

    Claim   The left side is at most t + x, x = ‖Z₁‖, and at most the larger of t + kx and t + kx√(t² + x²). Where the last is
            c, (c − t)² = k²x²(t² + x²), of which the smaller root counts if kx < 1.
    """
    turned = bend * across
    bent = turned < 1 - 1e-9
    part = np.where(bent, 1 - turned * turned, 1.0)
    root = np.sqrt(np.maximum(c * c - part * (c * c - (turned * across) ** 2), 0.0))
    along = np.minimum((c - root * ROUND_OFF) / part - 1e-12, c - turned)
    return np.maximum(np.where(bent, np.maximum(along, c - across), c - across), 0.0)
