"""A number with Laplace noise: whole steps of a grid, and the noise whole steps too."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from .base import Client
from .chance import below, epsilon_of
from .number import STEPS, bounds_of, large_enough, position_of, round_by_chance, steps_of

REACH = 64
"""Reports are cut where the noise would be 64 times its scale (probability e⁻⁶⁴), so that a collector knows their range."""


class LaplaceMeanClient(Client):
    """The number's place on the grid plus discrete Laplace noise of scale steps/ε.

    Claim   ε-private: two places are at most `steps` apart, and P[k] ∝ e^(−|k|ε/steps). Cutting is post-processing.
    Source  [DMNS06]; [GRS09] for whole numbers; [CKS20] for the draw.
    """

    kind = "laplace mean"
    __slots__ = ("epsilon", "limit", "lower", "scale", "steps", "upper")

    def __init__(self, *, epsilon: object, lower: object, upper: object, steps: object = STEPS) -> None:
        self.epsilon = large_enough(epsilon_of(epsilon))
        self.lower, self.upper = bounds_of(lower, upper)
        self.steps = steps_of(steps)
        self.scale = self.steps / self.epsilon
        self.limit = ceil(REACH * self.scale)

    def report(self, value: object) -> int:
        """Return what to send: a place on the grid, with noise."""
        place = round_by_chance(position_of(value, self.lower, self.upper, self.steps))
        return min(max(place + discrete_laplace(self.scale), -self.limit), self.steps + self.limit)

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "lower": str(self.lower), "upper": str(self.upper), "steps": self.steps}


def discrete_laplace(scale: Fraction) -> int:
    """Return a whole number k with probability ∝ e^(−|k|/scale), exactly, by uniform whole numbers alone.

    Claim   With scale s/r: U uniform below s, kept with probability e^(−U/s), and V with P[V = v] ∝ e^(−v) make
            U + sV geometric of rate 1/s; its ⌊·/r⌋ is geometric of rate r/s; a fair sign with one of the two zeros
            thrown away makes it two-sided.
    Source  [CKS20], algorithm 2.
    """
    top, bottom = scale.numerator, scale.denominator
    while True:
        first = below(top)
        if not exponential_coin(first, top):
            continue
        second = 0
        while exponential_coin(1, 1):
            second += 1
        size = (first + top * second) // bottom
        negative = below(2) == 1
        if negative and size == 0:
            continue
        return -size if negative else size


def exponential_coin(top: int, bottom: int) -> bool:
    """True with probability e^(−top/bottom), 0 ≤ top ≤ bottom. Source: [CKS20], algorithm 1."""
    turn = 1
    while below(bottom * turn) < top:
        turn += 1
    return turn % 2 == 1
