"""Unary encoding, for many people: rows of bits, each randomized by itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import require
from curador.local.bits import BitReports, packed_bits, set_bits
from curador.local.client.chance import WHOLE
from curador.local.client.unary import FORMS, UnaryClient
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import Finite
from curador.randomness.choice import bernoulli

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.local.protocol import Domain
    from curador.numerics.exact import Number
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Bytes, Entropy, IntArray


@dataclass(frozen=True, slots=True, init=False)
class Unary(BitReports):
    """Each person reports a bit for every value: the own one's is 1 with probability p, any other's with q.

    `kind="optimal"` has p = 1/2 and q = 1/(e^ε + 1), the least variance of a rare value; `kind="symmetric"` has
    p = 1 − q = e^(ε/2)/(e^(ε/2) + 1), and treats a 1 as it treats a 0.

    Claim   ε-private; p and q are whole numbers over 2⁶⁴, and the estimates use these numbers.
    Source  [WBLJ17] for the optimal kind; [EPK14] for the symmetric one.
    """

    kind: str

    def __init__(self, domain: int | Sequence[Any] | Domain, *, epsilon: Number, kind: str = "optimal") -> None:
        BitReports.__init__(self, domain, epsilon=epsilon)
        require(kind in FORMS, "kind", "optimal or symmetric", kind)
        object.__setattr__(self, "kind", kind)
        self.client()  # refuses what no client can be made for

    @property
    def name(self) -> str:
        """What the protocol is called in a table."""
        return f"Unary ({self.kind})"

    def client(self) -> UnaryClient:
        """Return the part for a person's device."""
        return UnaryClient(epsilon=self.epsilon, size=self.size, form=self.kind)

    @property
    def loss(self) -> Loss:
        """What a report costs, exactly.

        Claim   Two values differ in the laws of two independent bits, and every pair of values in the same way; so the four
                outcomes of the two bits are the whole loss, of every pair.
        """
        p, q = self.p, self.q
        both, none = p * q, (1 - p) * (1 - q)
        own, other = p * (1 - q), (1 - p) * q
        return Finite(p=(own, other, both, none), q=(other, own, both, none), adjacency=REPLACE_ONE)

    @property
    def p(self) -> Fraction:
        return Fraction(self.client().true_share, WHOLE)

    @property
    def q(self) -> Fraction:
        return Fraction(self.client().false_share, WHOLE)

    def draw(self, value: IntArray, source: Entropy, size: int | None = None) -> Bytes:
        """Draw a bit for every value of every person; then the own one's again, with its own probability."""
        shape = value.shape if size is None else (size, *value.shape)
        truth = np.broadcast_to(value, shape).ravel()
        packed = packed_bits(self.q, truth.size, self.size, source)
        set_bits(packed, truth, bernoulli(self.p, truth.size, source))
        return packed.reshape(*shape, self.width)
