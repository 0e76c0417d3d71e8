"""How many guesses can be right in one run with canaries, by its trade-off function: of a point (ε, δ), or of a whole loss.

Let V of at most r guesses on m canaries be right, P_c = P[V ≥ c], and f the least rate of misses at a rate of false alarms,
in either order. Fix a canary i, a side s and all other coins, and look at the event A that i is guessed to be s and at least
c − 1 of the other guesses are right. If i's coin is s, A has a probability p; if it is not, then at least f(1 − p). Over all
canaries, sides and coins the first is on average h = Σ_{j ≥ c} (j/m) P[V = j], because A with a right guess means V ≥ c; the
second at most w = Σ_{j ≥ c−1} ((r − j)/m) P[V = j]. f is convex, so w ≥ f(1 − h).

With a = (P_c + P_{c+1} + …)/m this reads h = a + (c − 1) P_c/m and w = (r − c + 1) P_{c−1}/m − a, hence

    P_{c−1} ≥ m/(r − c + 1) · (f(1 − h) + a).

Everything on the right grows with every P, so P_v ≥ τ forces each P_c for c < v to be at least what the recursion from
P_v = τ, P_{v+1} = 0 gives. If that exceeds 1, P[V ≥ v] < τ. The inequality is that of [MMC24]; the proof is the one above.

Why not P[W ≥ v] + 2mδ · max_i P[v − i ≤ W < v]/i, W ~ Binomial(r, e^ε/(1 + e^ε)), which is in use for (ε, δ)? It does not
hold for all r, v and δ. Three canaries, all guessed: let guesses with k ≥ 1 right places have probability 7^(k−1)/73 each,
and those with none 0. That is (log 7, 1/73)-private and always has a right guess, P[V ≥ 1] = 1; the formula says 0.9982.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from curador.numerics.exact import Number, open_probability, whole
from curador.numerics.rounding import float_down

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.numerics.rounding import FloatArray
    from curador.privacy.loss import Loss

_FINE = 64
_OCTAVES = 44
_SLACK = 1e-6  # dominates the rounding of a hundred thousand steps
_LARGEST = 64.0


class Misses(Protocol):
    """A lower bound of f(1 − h), as a function of h."""

    def at(self, h: float) -> float:
        """Return the bound at h in [0, 1]."""
        ...


@dataclass(frozen=True, slots=True)
class Point:
    """f of one (ε, δ): f(1 − h) = max(0, 1 − δ − e^ε (1 − h), e^−ε (h − δ)). Rounds: down."""

    epsilon: float
    delta: float

    def at(self, h: float) -> float:
        """Return the bound at h."""
        grown = 1.0 - self.delta - math.exp(self.epsilon) * (1.0 - h) * (1 + 1e-12)
        return max(0.0, max(grown, math.exp(-self.epsilon) * (h - self.delta)) * (1 - 1e-12) - 1e-15)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """f(1 − h) on a grid of h, constant between its points."""

    places: list[float]
    values: list[float]

    def at(self, h: float) -> float:
        """Return the bound at the next place below."""
        return self.values[bisect_right(self.places, h) - 1]


def curve_of(tradeoff: Callable[[FloatArray], FloatArray]) -> Curve:
    """Return the curve of a trade-off function. Rounds: down, since f(1 − h) grows with h."""
    places = np.concatenate([[0.0], np.exp2(np.arange(-_OCTAVES * _FINE, 1) / _FINE)])
    rates = np.minimum(np.nextafter(1.0 - places, 2.0), 1.0)
    values = np.maximum(np.asarray(tradeoff(rates), np.float64), 0.0)
    return Curve(places.tolist(), values.tolist())


def exceeds(misses: Misses, correct: int, *, guesses: int, canaries: int, alpha: float) -> bool:
    """Return whether so many right guesses have a probability below alpha wherever the trade-off function is at least f.

    Claim   The recursion above from P[V ≥ correct] = alpha leads above 1.
    Needs   Fair, independent coins; at most `guesses` guesses.
    """
    tail, before = alpha, alpha / canaries
    for place in range(correct, 0, -1):
        h = before + (place - 1) * tail / canaries
        tail = max(tail, canaries / (guesses - place + 1) * (misses.at(min(h, 1.0)) + before))
        if tail > 1.0 + _SLACK:
            return True
        before += tail / canaries
    return False


def refutes(loss: Loss, counts: list[tuple[int, int]], canaries: int, alpha: float) -> bool:
    """Return whether any of (right guesses, guesses) refutes the loss, false with probability at most alpha in all."""
    curve = curve_of(lambda rates: np.asarray(loss.tradeoff(rates)))
    return any(exceeds(curve, v, guesses=r, canaries=canaries, alpha=alpha / len(counts)) for v, r in counts)


def one_run_mu(correct: int, *, guesses: int, canaries: int, confidence: Number = "0.95") -> float:
    """Return the μ below which no run with so many right guesses is μ-Gaussian-DP.

    Claim   If the run is μ-GDP the bound exceeds μ with probability at most 1 − confidence.
    Needs   Fair, independent coins; a number of guesses fixed before the run.
    Rounds  Down.
    Source  [MMC24], [DRS19]
    """
    from curador.privacy.odds import tradeoff_gaussian

    v, r, m = whole(correct, "correct", least=0), whole(guesses, "guesses"), whole(canaries, "canaries")
    alpha = float_down(1 - open_probability(confidence, "confidence"))

    def false(mu: float) -> bool:
        curve = curve_of(lambda rates: np.asarray(tradeoff_gaussian(rates, mu=mu)))
        return exceeds(curve, v, guesses=r, canaries=m, alpha=alpha)

    low, high = 0.0, _LARGEST
    if not false(0.0):
        return 0.0
    while high - low > 1e-4 * high:
        middle = (low + high) / 2 if low == 0.0 else math.sqrt(low * high)
        low, high = (middle, high) if false(middle) else (low, middle)
    return low
