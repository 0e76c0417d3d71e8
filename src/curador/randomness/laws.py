"""The laws that the strip draws: masses ∝ e^(−φ(x)) on the integers, φ exact and in floats."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import IntArray


class Kind(enum.Enum):
    """What φ is."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    GEOMETRIC = "geometric"


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """φ(x) = |x| rate (Laplace, geometric) or x² rate (Gaussian); geometric lives on x ≥ 0.

    `mirrored`: |x| is replaced by x or −x − 1, whichever is at least 0. The coarse part of a wide draw needs that.
    """

    kind: Kind
    rate: Fraction
    mirrored: bool = False

    @property
    def one_sided(self) -> bool:
        """Whether negative integers have no mass."""
        return self.kind is Kind.GEOMETRIC

    @property
    def scale(self) -> float:
        """1/rate, or σ: how far the mass reaches. Only speed depends on it."""
        inverse = self.rate.denominator / self.rate.numerator
        return math.sqrt(inverse / 2) if self.kind is Kind.GAUSSIAN else inverse

    def phi(self, x: int) -> Fraction:
        """Return φ exactly."""
        size = x if x >= 0 else (~x if self.mirrored else -x)
        return (size * size if self.kind is Kind.GAUSSIAN else size) * self.rate

    def phi_float(self, x: IntArray) -> FloatArray:
        """Return φ within a relative 5 u: 64 · 5 u = 320 u absolutely where it is at most 64."""
        if self.mirrored:
            out = (x ^ (x >> 63)).astype(np.float64)
        else:
            out = x.astype(np.float64)
            np.abs(out, out=out)
        if self.kind is Kind.GAUSSIAN:
            out *= out
        out *= self.rate.numerator / self.rate.denominator
        return out
