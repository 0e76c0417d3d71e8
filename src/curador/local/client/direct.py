"""Randomized response: the value itself with probability γ, else one of the others."""

from __future__ import annotations

from fractions import Fraction

from .base import Client, code_of, size_of
from .chance import WHOLE, below, coin, epsilon_of, share_of_truth


class DirectClient(Client):
    """One of `size` values; the true one with probability γ = share/2⁶⁴ ≤ e^ε/(e^ε + size − 1), else another, uniformly.

    Claim   ε-private: γ (size − 1)/(1 − γ) ≤ e^ε, by `share_of_truth`.
    Source  [War65]; [KBR16] for more than two values.
    """

    kind = "direct"
    __slots__ = ("epsilon", "share", "size")

    def __init__(self, *, epsilon: object, size: object) -> None:
        self.epsilon = epsilon_of(epsilon)
        self.size = size_of(size)
        self.share = share_of_truth(self.epsilon, truths=1, others=self.size - 1)

    def report(self, value: int) -> int:
        """Return what to send. The other value is drawn whether it is needed or not."""
        code = code_of(value, self.size)
        kept, other = coin(self.share), below(self.size - 1)
        return code if kept else other + (other >= code)

    def law(self, value: int) -> dict[int, Fraction]:
        """Return the probability of every report, exactly."""
        code = code_of(value, self.size)
        lie = Fraction(WHOLE - self.share, WHOLE * (self.size - 1))
        return {answer: Fraction(self.share, WHOLE) if answer == code else lie for answer in range(self.size)}

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "size": self.size}
