"""High Rényi orders of shuffled reports, where a law with a cut tail has nothing to say.

With mirror worlds E_P[e^((α−1)L)] = E_M[cosh(κL)/cosh(L/2)], κ = α − ½. Given that t people leave a fair sign each, V = ηX,
η = tanh(ε₀/2) and X the mean of t signs, and |L| = 2 artanh|V| ≤ ε₀|X| because artanh is convex; the quotient rises with |L|,
and E cosh(κε₀X) = cosh(κε₀/t)^t ≤ e^(κ²ε₀²/2t). So with t = 1 + C

    (α−1) D_α ≤ log E[e^(min(κ²ε₀²/2t, (α−1)ε₀))],      C ~ Bin(n−1, p).

The expectation is taken over a grid of t: the function falls with t, and P[C ≤ c] ≤ e^(−N KL(c/N ‖ p)).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray

_NEAR, _FAR = 200, 600  # points of the grid of t within thirty standard deviations of the mean, and in all
_LEAST = 4.0
"""Orders below this are left to the law's own sum."""


def high_orders(epsilon0: float, lottery: tuple[int, float, float], alpha: FloatArray) -> FloatArray:
    """Return upper bounds of (α−1) D_α of one shuffle; +∞ below the least order. Rounds: up."""
    signs, log_tails = _grid(*lottery)
    orders = np.maximum(alpha, _LEAST)[:, None]
    with np.errstate(over="ignore"):
        exponent = (orders - 0.5) ** 2 * epsilon0**2 / (2.0 * signs) * (1.0 + 16 * UNIT)
    exponent = np.minimum(exponent, (orders - 1.0) * epsilon0 * (1.0 + 16 * UNIT))
    base = exponent[:, -1]  # from the last point of the grid on
    gain = exponent[:, :-1] - exponent[:, 1:]  # Σ (h_i − h_(i+1)) P[t < t_(i+1)], h = e^exponent, over e^base
    with np.errstate(divide="ignore"):
        steps = exponent[:, 1:] - base[:, None] + np.log(np.expm1(np.minimum(gain, 700.0))) + log_tails
        steps = np.where(gain > 700.0, exponent[:, :-1] - base[:, None] + log_tails, steps)
    peak = np.maximum(steps.max(axis=1, initial=-np.inf), 0.0)
    rest = np.exp(steps - peak[:, None]).sum(axis=1) * (1.0 + 1e-12)
    extra = np.where(peak > 0.0, peak + np.log(np.exp(-peak) + rest), np.log1p(rest))
    return np.where(alpha >= _LEAST, (base + extra) * (1.0 + 1e-13), np.inf)


@lru_cache(maxsize=256)
def _grid(others: int, share: float, rest: float) -> tuple[FloatArray, FloatArray]:
    """Numbers of signs t from 1 up to a little below the mean, and upper bounds of log P[1 + C < t] from the second on."""
    mean = others * share
    near = mean - math.sqrt(mean) * np.linspace(5.0, 30.0, _NEAR)
    far = np.geomspace(1.0, max(1.0, mean - 5.0 * math.sqrt(mean)), _FAR)
    signs = np.unique(np.concatenate([[1.0], np.floor(near[near >= 1.0]), np.floor(far)]))
    counts = np.maximum(signs[1:] - 2.0, 0.0)  # 1 + C < t: C ≤ t − 2
    part = counts / max(others, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(counts > 0.0, counts * np.log(part / share), 0.0)
        second = (others - counts) * np.log1p((share - part) / rest)
    divergence = np.where(part < share, first + second, 0.0)
    return signs, np.minimum(1e-9 * (np.abs(first) + 1.0) - divergence * (1.0 - 1e-9), 0.0)
