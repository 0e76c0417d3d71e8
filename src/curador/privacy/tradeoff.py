"""The trade-off reading: how many false negatives an adversary must accept for a given rate of false positives."""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from curador.errors import require
from curador.numerics.exact import Number, rational
from curador.numerics.rounding import FloatArray
from curador.privacy.account import enclosure
from curador.privacy.laws.resolve import Direction, sides
from curador.privacy.loss import Loss, parts_of
from curador.privacy.losses import DiscreteGaussianLoss, GaussianLoss, LaplaceLoss

_POINTS = 48


@overload
def tradeoff(loss: Loss, fpr: Number) -> float: ...
@overload
def tradeoff(loss: Loss, fpr: FloatArray) -> FloatArray: ...
def tradeoff(loss: Loss, fpr: Number | FloatArray) -> float | FloatArray:
    """Return a lower bound of the false negative rate, one value a false positive rate.

    Claim   f(x) ≥ max over ε ≥ 0 of max(1 − δ(ε) − e^ε x, e^(−ε)(1 − δ(ε) − x)); any set of ε gives a valid bound.
    Rounds  Down. Source: [DRS19]; Gaussian and Laplace noise by their closed forms.
    """
    if isinstance(fpr, np.ndarray):
        rates = np.asarray(fpr, dtype=np.float64)
        require(bool(np.all((rates >= 0.0) & (rates <= 1.0))), "fpr", "rates between 0 and 1", fpr)
        return _bound(loss, rates)
    exact = rational(fpr, "fpr")
    require(0 <= exact <= 1, "fpr", "between 0 and 1", fpr)
    return float(_bound(loss, np.array([float(exact)]))[0])


def _bound(loss: Loss, rates: FloatArray) -> FloatArray:
    from curador.privacy.odds import tradeoff_approximate, tradeoff_gaussian, tradeoff_laplace

    parts = parts_of(loss)
    if not parts:
        return 1.0 - rates
    if all(isinstance(record, (GaussianLoss, DiscreteGaussianLoss)) for record, _ in parts):
        side = sides(loss, Direction.LEAVES)[0]
        if side.gaussians and not side.others and not side.thetas and side.spread <= 1e-12:
            mu = math.sqrt(math.fsum(side.gaussians)) * (1.0 + side.spread + 2e-15)
            return np.asarray(tradeoff_gaussian(rates, mu=mu))
    if len(parts) == 1 and parts[0][1] == 1 and isinstance(parts[0][0], LaplaceLoss):
        return np.asarray(tradeoff_laplace(rates, epsilon=parts[0][0].epsilon0))
    best = np.zeros_like(rates)
    for epsilon, delta in profile(loss):
        best = np.maximum(best, np.asarray(tradeoff_approximate(rates, epsilon=epsilon, delta=delta)))
    return best


def profile(loss: Loss) -> list[tuple[float, float]]:
    """Return points (ε, δ(ε)) of the privacy profile, δ from above, that span the trade-off function."""
    reading = enclosure(loss)
    pure = loss.pure_epsilon
    largest = min(loss.epsilon(1e-12), 60.0)
    if not math.isfinite(largest) or largest <= 0.0:
        largest = 1.0
    points = [(epsilon, reading.delta(epsilon).upper) for epsilon in np.linspace(0.0, largest, _POINTS).tolist()]
    points = [(epsilon, min(delta, loss.delta(epsilon)) if delta >= 1.0 else delta) for epsilon, delta in points]
    if pure is not None:
        points.append((float(pure) * (1 + 1e-15), 0.0))
    return [(epsilon, delta) for epsilon, delta in points if delta < 1.0]
