"""A number as one bit: the larger the number, the likelier a 1."""

from __future__ import annotations

from fractions import Fraction

from .base import Client
from .chance import WHOLE, coin, epsilon_of, share_of_truth
from .number import STEPS, bounds_of, large_enough, position_of, round_by_chance, roundings, steps_of

HALF = WHOLE // 2


class DuchiMeanClient(Client):
    """A 1 with probability (2⁶³ + i slope)/2⁶⁴ at the place i of −steps/2 … steps/2, else a 0.

    Claim   ε-private: the most likely bit has 2⁶³ + slope steps/2 ≤ 2⁶⁴ e^ε/(e^ε + 1) shares at one bound, and as many less
            than 2⁶⁴ at the other, by `share_of_truth`. In between the shares lie in between, rounded numbers too.
    Source  [DJW18]
    """

    kind = "duchi mean"
    __slots__ = ("epsilon", "lower", "slope", "steps", "upper")

    def __init__(self, *, epsilon: object, lower: object, upper: object, steps: object = STEPS) -> None:
        self.epsilon = large_enough(epsilon_of(epsilon))
        self.lower, self.upper = bounds_of(lower, upper)
        self.steps = steps_of(steps)
        self.slope = (share_of_truth(self.epsilon, truths=1, others=1) - HALF) // (self.steps // 2)

    def report(self, value: object) -> int:
        """Return what to send: 0 or 1."""
        place = round_by_chance(position_of(value, self.lower, self.upper, self.steps))
        return int(coin(self.share(place)))

    def share(self, place: int) -> int:
        """How likely a 1 is at a place from 0 to steps, in shares of 2⁻⁶⁴."""
        return HALF + (place - self.steps // 2) * self.slope

    def law(self, value: object) -> dict[int, Fraction]:
        """Return the probability of every report, exactly."""
        places = roundings(position_of(value, self.lower, self.upper, self.steps))
        one = sum((chance * Fraction(self.share(place), WHOLE) for place, chance in places.items()), Fraction(0))
        return {0: 1 - one, 1: one}

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "lower": str(self.lower), "upper": str(self.upper), "steps": self.steps}
