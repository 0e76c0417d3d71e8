"""The exponential mechanism: a candidate with probability growing in its score."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from curador.mechanisms.parameters import decimal, goal, rounded_down
from curador.mechanisms.search import largest
from curador.numerics.exact import Number, positive
from curador.numerics.rounding import float_down
from curador.privacy.loss import Loss
from curador.privacy.losses import BoundedRange


@dataclass(frozen=True, slots=True, init=False)
class Exponential:
    """Candidate r with probability ∝ exp(ε score(r) / (2 sensitivity)).

    Claim   The log-ratio of probabilities spans at most ε over the candidates, so it is ε-bounded-range: ε-private,
            ε²/8-zCDP, and cheaper than ε-private mechanisms in general when composed.
    Needs   No score moves by more than `sensitivity` between neighbours.
    Source  [MT07]; [DDR20]
    """

    epsilon: Fraction
    sensitivity: Fraction

    def __init__(self, *, epsilon: Number, sensitivity: Number) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))

    def __repr__(self) -> str:
        return f"Exponential(epsilon={decimal(self.epsilon)}, sensitivity={decimal(self.sensitivity)})"

    @property
    def loss(self) -> Loss:
        """What one choice costs."""
        return BoundedRange(epsilon=self.epsilon)

    @classmethod
    def calibrate(
        cls,
        *,
        sensitivity: Number,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        count: Number = 1,
    ) -> Self:
        """Return the sharpest mechanism within the privacy goal after `count` choices."""
        aim = goal(epsilon=epsilon, delta=delta, rho=rho, count=count)
        if aim.epsilon is not None and aim.delta == 0:
            return cls(epsilon=aim.epsilon / aim.count, sensitivity=sensitivity)

        def holds(trial: float) -> bool:
            return aim.reached(cls(epsilon=rounded_down(trial), sensitivity=sensitivity).loss)

        start = float_down((aim.epsilon or aim.rho or Fraction(1)) / aim.count)
        return cls(epsilon=rounded_down(largest(holds, start=start)), sensitivity=sensitivity)
