"""Randomized response: one of k answers, the true one more often than any other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from curador.errors import InvalidParameter, require
from curador.mechanisms.parameters import decimal, goal, rounded_down
from curador.mechanisms.search import largest
from curador.numerics.exact import Number, at_least_zero, open_probability, whole
from curador.numerics.rounding import float_down, up
from curador.privacy.loss import Loss
from curador.privacy.losses import RandomizedResponseLoss


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """The true answer with probability γ = e^ε/(e^ε + k − 1), else one of the k − 1 others, uniformly.

    Give epsilon, or the probability of truth gamma (then ε = log(γ(k − 1)/(1 − γ)), rounded up).

    Claim   ε-private for the person who answers. Source: [War65]; [KBR16] for k answers.
    """

    epsilon: Fraction
    categories: int

    def __init__(self, *, epsilon: Number | None = None, gamma: Number | None = None, categories: Number = 2) -> None:
        k = whole(categories, "categories", least=2)
        if (epsilon is None) == (gamma is None):
            raise InvalidParameter("RandomizedResponse needs exactly one of epsilon and gamma.")
        if epsilon is not None:
            value = at_least_zero(epsilon, "epsilon")
        else:
            truth = open_probability(gamma, "gamma")
            require(
                truth * k >= 1,
                "gamma",
                f"at least 1/{k}",
                gamma,
                "below it the answer is truer when inverted",
            )
            odds = truth * (k - 1) / (1 - truth)
            value = Fraction(up(math.log(odds), 4)) if odds > 1 else Fraction(0)
        object.__setattr__(self, "epsilon", value)
        object.__setattr__(self, "categories", k)

    def __repr__(self) -> str:
        return f"RandomizedResponse(epsilon={decimal(self.epsilon)}, categories={self.categories})"

    @property
    def gamma(self) -> float:
        """The probability of the true answer."""
        return 1.0 / (1.0 + (self.categories - 1) * math.exp(-float(self.epsilon)))

    @property
    def loss(self) -> Loss:
        """What one answer costs."""
        return RandomizedResponseLoss(epsilon=self.epsilon, categories=self.categories)

    @property
    def variance(self) -> float:
        """Of the unbiased estimate, from one answer, of whether the truth is a given category. Rounds: up.

        The estimate is (1[answer = c] − q)/(γ − q), q = (1 − γ)/(k − 1); the larger of its variances over both truths.
        """
        truth = self.gamma
        other = (1.0 - truth) / (self.categories - 1)
        if truth <= other:
            return math.inf
        return max(truth * (1 - truth), other * (1 - other)) / (truth - other) ** 2 * (1 + 1e-12)

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        confidence: Number | None = None,
        count: Number = 1,
        categories: Number = 2,
    ) -> Self:
        """Return the truest mechanism within the privacy goal after `count` answers; with confidence, the one with γ = it."""
        if confidence is not None:
            if epsilon is not None or rho is not None:
                raise InvalidParameter("calibrate needs exactly one of epsilon, rho and confidence; got two.")
            return cls(gamma=confidence, categories=categories)
        aim = goal(epsilon=epsilon, delta=delta, rho=rho, count=count)
        if aim.epsilon is not None and aim.delta == 0:
            return cls(epsilon=aim.epsilon / aim.count, categories=categories)

        def holds(epsilon: float) -> bool:
            return aim.reached(cls(epsilon=rounded_down(epsilon), categories=categories).loss)

        start = float_down((aim.epsilon or aim.rho or Fraction(1)) / aim.count)
        return cls(epsilon=rounded_down(largest(holds, start=start)), categories=categories)
