"""The chance that no loss is infinite, as a constant moment function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Atoms, Lattice, Transform

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray


@dataclass(frozen=True, slots=True)
class SurvivalLaw:
    """P[L < ∞] = e^log_mass and L = 0 there."""

    log_mass: float

    @property
    def horizon(self) -> float:
        """Nothing to decay."""
        return math.inf

    @property
    def top(self) -> float:
        """The only finite loss is 0."""
        return 0.0

    @property
    def records(self) -> int:
        """Costs nothing."""
        return 0

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """The constant. Rounds: up."""
        return np.full(np.shape(theta), self.log_mass * (1 - 16 * UNIT))

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """The constant again."""
        del theta, step
        zero = np.zeros(size)
        return Transform(zero + 0j, zero, self.log_mass, 16 * UNIT * abs(self.log_mass))

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """None."""
        del theta
        return np.zeros_like(frequency)

    def atoms(self, limit: int) -> list[Atoms]:
        """One atom of less than full mass."""
        del limit
        return [Atoms(np.zeros(1), np.array([math.exp(self.log_mass)]), 16 * UNIT * (1 + abs(self.log_mass)), 0.0)]

    def lattice(self) -> Lattice:
        """Any lattice through 0."""
        return Lattice(Fraction(0), Fraction(0))
