"""The trade-off reading: how many false negatives an adversary must accept for a given rate of false positives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import overload

import numpy as np

from curador.errors import require
from curador.numerics.exact import Number, rational
from curador.numerics.rounding import FloatArray, float_up, up
from curador.numerics.tilted.enclosure import Enclosure, Sum
from curador.privacy.laws.resolve import sides
from curador.privacy.laws.side import Direction
from curador.privacy.loss import TRADEOFF, Loss, attempt, parts_of
from curador.privacy.numerical import NumericalReading, enclosure
from curador.privacy.odds import tradeoff_approximate, tradeoff_gaussian
from curador.privacy.rules import closed_tradeoff, traits_of

_POINTS = 32
_NARROW = 1e-4
_REFINED = 16
_ATOMS = 300


@overload
def tradeoff(loss: Loss, fpr: Number) -> float: ...
@overload
def tradeoff(loss: Loss, fpr: FloatArray) -> FloatArray: ...
@TRADEOFF.answered_by
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
    return float(_bound(loss, np.array([float_up(exact)]))[0])  # more false alarms need fewer misses: up is safe


def _bound(loss: Loss, rates: FloatArray) -> FloatArray:
    parts = parts_of(loss)
    if not parts:
        return 1.0 - rates
    if all(traits_of(record).gaussian for record, _ in parts):
        side = sides(loss, Direction.LEAVES)[0]
        alone = side.missing is None and not side.others and not side.thetas
        if side.gaussians and alone and side.spread <= 1e-12:
            mu = math.sqrt(math.fsum(side.gaussians)) * (1.0 + side.spread + 2e-15)
            return np.asarray(tradeoff_gaussian(rates, mu=mu))
    closed = closed_tradeoff(parts[0][0], rates) if len(parts) == 1 and parts[0][1] == 1 else None
    if closed is not None:
        return closed
    reading = attempt(lambda: enclosure(loss)) or NumericalReading((None,), (None,))
    source = _Profile(loss, reading, [[] for _ in reading.above])
    points = profile(source)
    for _ in range(3 if points else 0):
        points = sorted({*points, *_refine_points(source, points, rates)})
    best = np.zeros_like(rates)
    for epsilon, delta in points:
        best = np.maximum(best, np.asarray(tradeoff_approximate(rates, epsilon=epsilon, delta=delta)))
    return best


def _refine_points(source: _Profile, points: list[tuple[float, float]], rates: FloatArray) -> list[tuple[float, float]]:
    """More points of the profile around those that decide for the given rates; sixteen rates at most are refined."""
    table = np.array([np.asarray(tradeoff_approximate(rates, epsilon=e, delta=d)) for e, d in points])
    spread = rates if len(rates) <= _REFINED else rates[np.linspace(0, len(rates) - 1, _REFINED, dtype=int)]
    deciding = {int(np.argmax(table[:, int(np.argmin(np.abs(rates - rate)))])) for rate in spread}
    more: list[tuple[float, float]] = []
    for index in sorted(deciding):
        low, high = points[max(index - 1, 0)][0], points[min(index + 1, len(points) - 1)][0]
        between = np.linspace(low, high, 6)[1:-1].tolist()
        more.extend((epsilon, delta) for epsilon in between if (delta := source.delta(epsilon)) < 1.0)
    return more


@dataclass(frozen=True, slots=True)
class _Profile:
    """δ(ε) from above at many places: a sum made for one ε serves its neighbours as long as its interval is narrow."""

    loss: Loss
    reading: NumericalReading
    sums: list[list[Sum]]

    def delta(self, epsilon: float) -> float:
        worst = 0.0
        for side, sums in zip(self.reading.above, self.sums, strict=True):
            worst = max(worst, 1.0 if side is None else _upper(side, sums, epsilon))
        return self.loss.delta(epsilon) if worst >= 1.0 else worst


def _upper(side: Enclosure, sums: list[Sum], epsilon: float) -> float:
    if not side.total.families:
        return side.infinite.upper
    for source in reversed(sums):
        low, high = source.enclose(epsilon)
        if high - low <= _NARROW * high:
            return min(1.0, up(high + side.infinite.upper, 2))
    made = attempt(lambda: side.sum_at_epsilon(epsilon))
    if made is None:
        return 1.0
    sums.append(made)
    return min(1.0, up(sums[-1].enclose(epsilon)[1] + side.infinite.upper, 2))


def profile(source: _Profile) -> list[tuple[float, float]]:
    """Return points (ε, δ(ε)) of the privacy profile, δ from above, that span the trade-off function."""
    largest = min(source.loss.epsilon_interval("1e-12").upper, 60.0)
    if not math.isfinite(largest) or largest <= 0.0:
        largest = 1.0
    places = {*np.linspace(0.0, largest, _POINTS).tolist(), *_kinks(source.reading)}
    points = [(epsilon, source.delta(epsilon)) for epsilon in sorted(places)]
    pure = source.loss.pure_epsilon
    if pure is not None:
        points.append((float_up(pure), 0.0))
    return [(epsilon, delta) for epsilon, delta in points if delta < 1.0]


def _kinks(reading: NumericalReading) -> list[float]:
    """The losses of laws with few atoms: the profile bends there and nowhere else."""
    kinks: set[float] = set()
    for side in reading.above:
        law = side.total.atoms(_ATOMS) if side is not None and side.total.families else None
        if law is not None:
            kinks.update(law.losses[law.losses > 0.0].tolist())
    return sorted(kinks) if len(kinks) <= _ATOMS else []
