"""Rényi orders of bounded-range mechanisms: the worst pair of each order, in closed form.

L lies in some [a, a + ε], so y = e^(−L) lies in [e^(−a−ε), e^(−a)] and has mean 1 under P. y^(−θ) is convex: its mean is
largest on the two ends, where P[L = a + ε] = (1 − e^a)/(1 − e^(−ε)). With v = e^a and c = (e^(θε) − 1)/(1 − e^(−ε))

    E_P[e^(θL)] ≤ v^θ (1 + c (1 − v)) ≤ (1 + c)/(1 + θ) · (θ (1 + c)/((1 + θ) c))^θ,

the last by the best v = θ(1 + c)/((1 + θ)c). At order 1 it is log((1 − e^(−ε))/ε) + ε/(1 − e^(−ε)) − 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.logspace import expm1_minus
from curador.numerics.rounding import UNIT, up

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray


def range_log_moments(epsilon: FloatArray, theta: FloatArray) -> FloatArray:
    """Return upper bounds of log E_P[e^(θL)] of ε-bounded-range mechanisms, one row a record, one column a tilt θ > 0.

    Claim   The lesser of the bound above and of θ(θ + 1) ε²/8, which has no cancellation where ε is small.
    Rounds  Up. Source: the proof above; [CR21] for ε²/8.
    """
    wide, tilt = epsilon[:, None], theta[None, :]
    with np.errstate(all="ignore"):
        log_c = tilt * wide + np.log(-np.expm1(-tilt * wide)) - np.log(-np.expm1(-wide))
        rise, fall = np.logaddexp(0.0, log_c), np.log1p(1.0 / tilt) - np.logaddexp(0.0, -log_c)
        worst = rise - np.log1p(tilt) - tilt * fall
        # log c is known within 16 units of its terms; the slopes of rise and θ · fall in it are at most 1 and θ
        doubt = (1.0 + tilt) * (32.0 + 16.0 * (np.abs(log_c) + tilt * wide + np.abs(np.log(wide)) + np.abs(np.log(tilt))))
        exact = worst + UNIT * doubt
        quadratic = tilt * (tilt + 1.0) * wide * wide / 8.0 * (1.0 + 16 * UNIT)
    return np.fmin(np.where(np.isnan(exact), np.inf, exact), quadratic)


def range_mean(epsilon: float) -> float:
    """Return an upper bound of E_P[L] of every ε-bounded-range mechanism. Rounds: up."""
    if epsilon == 0.0:
        return 0.0
    share = -math.expm1(-epsilon)
    # log(s/ε) + ε/s − 1 = g(x), g(x) = eˣ − 1 − x, x = log(ε/s) ≥ 0
    stretch = float(expm1_minus(np.array(-epsilon))) / share  # ε/s − 1
    log_stretch = math.log1p(stretch)
    return up(float(expm1_minus(np.array(log_stretch))), 64)
