"""Losses of discrete Gaussian noise with σ ≥ 2 grid units, in closed form by the dual theta series.

    M(θ + it)/M(θ) = e^(it(2θ+1)μ²/2) Σ_j e^(−(μt + 2πσj)²/2) e^(2πijθΔ) / Σ_j e^(−2π²σ²j²) cos(2πjθΔ),   μ = Δ/σ.

Two terms of the numerator around the nearest j carry everything; the denominator is 1 within 1e-33.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Atoms, Lattice, Transform, common_step, too_many
from curador.privacy.laws.chunks import in_chunks, product

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import ComplexArray

SMALLEST = Fraction(4)
"""Smallest σ² that the two-term series serves; below, the atoms are summed."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw:
    """Independent discrete Gaussian losses of exact σ² and integer shift Δ, one entry a record.

    Claim   log M(θ) ≤ θ(θ+1) Δ²/(2σ²); φ as above within the stated round-off.
    Source  [CKS20]; docs/explanation/accounting.md, theorem 5.
    """

    sigma2: tuple[Fraction, ...]
    sensitivity: tuple[int, ...]
    count: FloatArray

    @property
    def horizon(self) -> float:
        """No decay is claimed: the law is a lattice."""
        return math.inf

    @property
    def top(self) -> float:
        """The loss is unbounded."""
        return math.inf

    @property
    def records(self) -> int:
        """Distinct records."""
        return len(self.count)

    def _mu2(self) -> FloatArray:
        # integers: rounded once, and many times faster than rationals
        return np.array([d * d * s.denominator / s.numerator for s, d in zip(self.sigma2, self.sensitivity, strict=True)])

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """θ(θ+1)μ²/2. Rounds: up."""
        theta = np.asarray(theta, dtype=np.float64)
        return 0.5 * float((self.count * self._mu2()).sum()) * theta * (theta + 1.0) * (1.0 + 16 * UNIT) + 1e-30

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """The nearest terms of the dual series."""
        mu2 = self._mu2()[:, None]
        turn = np.array([2.0 * math.pi * math.sqrt(s.numerator / s.denominator) for s in self.sigma2])[:, None]
        shift = np.array(self.sensitivity, dtype=np.float64)[:, None]
        mu = np.sqrt(mu2)
        # the neighbours of the nearest term are below e^(−(2πσ)²/8) each: 1e-31 from 2πσ = 24 on, far below the round-off
        offsets = (0.0,) if float(turn.min()) >= 24.0 else (-1.0, 0.0, 1.0)

        def block(frequency: FloatArray) -> tuple[ComplexArray, FloatArray]:
            line = frequency[None, :]
            nearest = -np.rint(mu * line / turn)
            phi = np.zeros(nearest.shape, dtype=np.complex128)
            for offset in offsets:
                j = nearest + offset
                size = np.exp(-0.5 * (mu * line + turn * j) ** 2)
                phi += size * np.exp(2j * math.pi * np.remainder(j * theta * shift, 1.0)) if j.any() else size
            angle = line * (2.0 * theta + 1.0) * mu2 / 2.0
            distance = np.abs(mu * line + turn * nearest)
            slip = 16.0 * np.abs(nearest) * (theta * shift + 1.0) + 4.0 * (distance + 1.0) * mu * line
            error = UNIT * (40.0 + slip)
            return product(phi, error + 8 * UNIT * angle, angle, self.count)

        value, bound = in_chunks(block, step, size, len(self.count))
        scale = 0.5 * float((self.count * mu2[:, 0]).sum()) * theta * (theta + 1.0)
        return Transform(value, bound, scale, scale * 16 * UNIT + 1e-30 * float(self.count.sum()))

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """Lattice laws do not decay."""
        del theta
        return np.zeros_like(frequency)

    def atoms(self, limit: int) -> list[Atoms] | None:
        """The atoms of single releases on coarse grids; what lies beyond 27 σ is below the AtomSum's own allowance."""
        if too_many(self.count, limit):
            return None
        out: list[Atoms] = []
        for sigma2, shift, count in zip(self.sigma2, self.sensitivity, self.count, strict=True):
            if count > 1 or 54.0 * math.sqrt(sigma2) + 8 > limit:
                return None
            out.append(gaussian_atoms(sigma2, shift)[0])
        return out

    def lattice(self) -> Lattice | None:
        """Losses are (Δ² − 2xΔ)/(2σ²)."""
        pairs = list(zip(self.sigma2, self.sensitivity, strict=True))
        step = common_step(d / s for s, d in pairs)
        if step is None:
            return None
        offset = sum((int(n) * d * d / (2 * s) for (s, d), n in zip(pairs, self.count, strict=True)), Fraction(0))
        return Lattice(offset, step)


def gaussian_atoms(sigma2: Fraction, shift: int) -> tuple[Atoms, float]:
    """Return the atoms of one discrete Gaussian loss within 27 σ, and a bound of the mass left out.

    Claim   Masses are within the stated relative error of the true ones; what is left out is below 1e-150.
    """
    reach = math.ceil(27.0 * math.sqrt(sigma2)) + 2
    places = np.arange(-reach, reach + 1)
    exponent = -(places.astype(np.float64) ** 2) / (2.0 * float(sigma2))
    weights = np.exp(exponent)
    start, step = float(Fraction(shift * shift) / (2 * sigma2)), float(Fraction(shift) / sigma2)
    losses = start - places * step
    error = UNIT * (24.0 + 4.0 * float(-exponent.min()))
    return Atoms(losses, weights / math.fsum(weights), error, 4 * UNIT * float(np.abs(losses).max())), 1e-150
