"""Randomized response of k values, for many people."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.local.client.chance import WHOLE
from curador.local.client.direct import DirectClient
from curador.local.collector import integers
from curador.local.protocol import Supporting
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import RandomizedResponseLoss
from curador.randomness.choice import below, bernoulli

if TYPE_CHECKING:
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import BoolArray, Entropy, IntArray


@dataclass(frozen=True, slots=True, init=False)
class Direct(Supporting):
    """Each person reports the own value with probability γ = e^ε/(e^ε + k − 1), else one of the others.

    Best where the domain is small: k < 3e^ε + 2. For two values nothing is better.

    Claim   ε-private; γ is a whole number over 2⁶⁴, rounded down, and the estimates use that number.
    Source  [War65]; [KBR16]
    """

    columns: ClassVar = (("report", "int64"),)

    def client(self) -> DirectClient:
        """Return the part for a person's device."""
        return DirectClient(epsilon=self.epsilon, size=self.size)

    @property
    def loss(self) -> Loss:
        """Randomized response of ε. Claim: one with a smaller γ is a post-processing of it."""
        return RandomizedResponseLoss(epsilon=self.epsilon, categories=self.size, adjacency=REPLACE_ONE)

    @property
    def p(self) -> Fraction:
        return Fraction(self.client().share, WHOLE)

    @property
    def q(self) -> Fraction:
        return (1 - self.p) / (self.size - 1)

    @property
    def report_bits(self) -> int:
        """How many bits a report needs."""
        return (self.size - 1).bit_length()

    @property
    def odds(self) -> Fraction:
        """How many times as likely the truth is as any other value."""
        return self.p / self.q

    def draw(self, value: IntArray, source: Entropy, size: int | None = None) -> IntArray:
        """Keep or change each value. The other value is drawn whether it is needed or not."""
        shape = value.shape if size is None else (size, *value.shape)
        truth = np.broadcast_to(value, shape).ravel()
        kept = bernoulli(self.p, truth.size, source)
        other = below(self.size - 1, truth.size, source)
        other += other >= truth
        return np.where(kept, truth, other).reshape(shape)

    def accept(self, reports: Any) -> tuple[IntArray, int]:
        """Return the reports that are one of the values."""
        return integers(reports, 0, self.size)

    def speaks_for(self, reports: IntArray, code: int) -> BoolArray:
        """A report speaks for the value that it names."""
        return reports == code

    def zero(self) -> IntArray:
        """No reports of any value."""
        return np.zeros(self.size, np.int64)

    def tally(self, reports: IntArray) -> IntArray:
        """Count each value."""
        return np.bincount(reports, minlength=self.size)

    def supports(self, statistic: IntArray) -> IntArray:
        """A report supports the value that it names."""
        return statistic
