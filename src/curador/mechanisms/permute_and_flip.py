"""Permute-and-flip: a candidate by coins, never worse than the exponential mechanism for the same ε."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from attrs import frozen

from curador.errors import require
from curador.mechanisms.scores import Chooser, Steps, are_near, choose_evenly, deficits_of, failure_of, split_size, steps_for
from curador.numerics.exact import Number, whole
from curador.numerics.rounding import FloatArray, Interval, float_down, float_up, up
from curador.privacy.loss import Loss
from curador.privacy.losses import Pure
from curador.randomness.choice import bernoulli_exp
from curador.randomness.entropy import Entropy, IntArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

T = TypeVar("T")

_MOST_SHOWN = 1000


@frozen(repr=False)
class PermuteAndFlip(Chooser):
    """In random order, flip a coin of probability exp(ε (score − best) / (2 sensitivity)) for each; the first heads wins.

    All coins are flipped at once and one of the heads is taken evenly, which is the same law: the order is independent of the
    coins, and the first heads of a uniform order is uniform among the heads. The best candidate always shows heads.

    Claim   ε-private. P(i) = p_i ∫₀¹ Π_{j≠i} (1 − p_j t) dt with p_j = e^(−rate d_j), d_j the distance to the best: a coin's
            place among the heads is 1/(1 + others) = ∫ t^others dt on average. With t = e^(−rate (n − d_i)) the same integral
            is P[N_i ≥ max_{j≠i} (s_j + N_j) − s_i] for independent exponential N_j of mean 1/rate. Others' noise fixed, that
            threshold moves by at most 2Δ between neighbours (Δ where all scores move the same way), and
            P[N ≥ t] ≤ e^(rate c) P[N ≥ t + c] for c ≥ 0: a factor of e^ε with rate = ε/(2Δ), or ε/Δ if monotone.
            NOT ε-bounded-range: its log-ratios span more than ε, so that ε²/8-zCDP would under-account it.
    Needs   No score moves by more than `sensitivity` between neighbours; monotone=True: and all move the same way.
    Rounds  Scores to a grid of about sensitivity/2³⁰, the sensitivity in grid steps up.
    Source  [MS20]; [DKS+21] for the exponential noise.
    """

    @staticmethod
    def _loss_of(epsilon: Fraction) -> Loss:
        return Pure(epsilon=epsilon)

    def probabilities(self, scores: ArrayLike) -> FloatArray:
        """Return the probability of each of at most 1000 candidates, as floats: for the eye and for tests.

        Rounds  The integrand is a polynomial of degree k − 1, which Gauss's rule with ⌈k/2⌉ nodes integrates exactly.
        """
        exact = self._on_grid(scores)
        require(len(exact) <= _MOST_SHOWN, "scores", f"at most {_MOST_SHOWN}", f"{len(exact)} of them")
        heads = np.exp(-deficits_of(exact).astype(np.float64) * float(self.rate))
        nodes, weights = np.polynomial.legendre.leggauss((len(exact) + 1) // 2 + 1)
        misses = 1.0 - 0.5 * (nodes[:, None] + 1.0) * heads  # above 0 at every node
        whole_product = np.exp(np.log(misses).sum(axis=1, keepdims=True))
        return heads * (0.5 * weights @ (whole_product / misses))

    def draw(self, value: Steps, source: Entropy, size: int | None = None) -> IntArray:
        """Return the place chosen for integer scores; `size` independent ones if given."""
        deficits = deficits_of(value)
        parts = [self._some(deficits, rows, source) for rows in split_size(len(deficits), 1 if size is None else size)]
        out = np.concatenate(parts)
        return out if size is not None else out[0]

    def _some(self, deficits: IntArray, rows: int, source: Entropy) -> IntArray:
        coins = bernoulli_exp(np.tile(deficits, rows), self.rate, source)
        return choose_evenly(coins.reshape(rows, len(deficits)), source)

    def within(self, one: Steps, other: Steps) -> bool:
        """Whether no score moves by more than the sensitivity (all the same way, if monotone)."""
        return are_near(one, other, self.steps, monotone=self.monotone)

    def interval(self, confidence: Number = "0.95", *, candidates: Number) -> Interval:
        """Return [0, t]: with at least this probability the score chosen is at most t below the best one.

        Claim   The chance that a candidate T or more behind wins is at most E[B/(1 + B)] for B ~ Binomial(k − 1, x),
                x = e^(−rate T): the best shows heads, fewer than k others are so far behind, and B/(1 + B) grows with B.
                That is 1 − (1 − (1 − x)^k)/(kx), with equality where the k − 1 others are T behind, and at most (k − 1)x/2.
        Rounds  Up.
        """
        beta, k = failure_of(confidence), whole(candidates, "candidates")
        if k == 1:
            return Interval(0.0, 0.0)
        odds = largest_heads(k, float_down(beta))
        log_odds = up(-math.log(odds), 8) if odds < 1.0 else 0.0
        return Interval(0.0, float_up(steps_for(log_odds, self.rate) * self.grid))


def largest_heads(k: int, beta: float) -> float:
    """Return the largest x ≤ 1, to ten digits, with 1 − (1 − (1 − x)^k)/(kx) ≤ beta. Rounds: down."""
    low, high = min(2.0 * beta / (k - 1) * (1.0 - 1e-15), 1.0), 1.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        lost = math.expm1(k * math.log1p(-middle)) if middle < 1.0 else -1.0
        if 1.0 + lost / (k * middle) + 1e-14 <= beta:  # the sum cancels; each term is at most 1
            low = middle
        else:
            high = middle
    return low
