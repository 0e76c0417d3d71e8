"""Unary encoding: a bit for every value, each of them randomized by itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from .base import Client, code_of, size_of
from .chance import WHOLE, coin, coins, epsilon_of, share_of_truth
from .refusal import require

FORMS = ("optimal", "symmetric")
LARGEST_UNARY = 1 << 24
"""The most values: a report has a bit for each."""


class UnaryClient(Client):
    """A bit for each of `size` values: 1 with probability p for the true one and q for any other, each by itself.

    The optimal form keeps the true bit with p = 1/2 and has (1 − q)/q ≤ e^ε; the symmetric one has p = 1 − q, so that
    (1 − q)²/q² ≤ e^ε. A report is ⌈size/8⌉ bytes: value v is bit v mod 8, from the lowest, of byte v div 8; the rest is 0.

    Claim   ε-private: two values differ in two bits; the odds p(1 − q)/(q(1 − p)) of these are at most e^ε, by
            `share_of_truth`, and the other bits have one law under both.
    Source  [WBLJ17] for the optimal form; [EPK14] for the symmetric one.
    """

    kind = "unary"
    __slots__ = ("epsilon", "false_share", "form", "size", "true_share")

    def __init__(self, *, epsilon: object, size: object, form: object = "optimal") -> None:
        self.epsilon = epsilon_of(epsilon)
        self.size = size_of(size)
        require(self.size <= LARGEST_UNARY, "size", "at most 2^24 for a unary client", size)
        require(isinstance(form, str) and form in FORMS, "form", "optimal or symmetric", form)
        self.form = str(form)
        if form == "optimal":
            self.true_share, kept = WHOLE >> 1, share_of_truth(self.epsilon, truths=1, others=1)
        else:
            self.true_share = kept = share_of_truth(self.epsilon / 2, truths=1, others=1)
        self.false_share = WHOLE - kept

    @property
    def width(self) -> int:
        """How many bytes a report has."""
        return (self.size + 7) // 8

    def report(self, value: int) -> bytes:
        """Return what to send. The true value's bit is drawn twice: as any other's, then as its own."""
        code = code_of(value, self.size)
        bits, own = coins(self.false_share, self.size), coin(self.true_share)
        bits = bits & ~(1 << code) | own << code
        return bits.to_bytes(self.width, "little")

    def law(self, value: int) -> dict[bytes, Fraction]:
        """Return the probability of every report, exactly: 2^size of them."""
        code = code_of(value, self.size)
        chances = [Fraction(self.true_share if place == code else self.false_share, WHOLE) for place in range(self.size)]
        law: dict[bytes, Fraction] = {}
        for bits in product((0, 1), repeat=self.size):
            mass = Fraction(1)
            for bit, chance in zip(bits, chances, strict=True):
                mass *= chance if bit else 1 - chance
            law[sum(bit << place for place, bit in enumerate(bits)).to_bytes(self.width, "little")] = mass
        return law

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "size": self.size, "form": self.form}
