"""The same sum for losses on a common lattice: finitely many frequencies, nothing cut off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT
from curador.numerics.tilted.aliasing import aliasing

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import ComplexArray, Lattice, Total
    from curador.numerics.tilted.plan import Tilts


@dataclass(frozen=True, slots=True)
class LatticeSum:
    """D(ε) enclosed for losses on offset + step·ℤ.

    Claim   With T = N·step, s_k = θ + 2πik/T and l the first lattice point above ε,
            (1/N) Σ_k M(s_k) [e^(−s_k l)/(1 − e^(−s_k step)) − e^(ε − (s_k+1) l)/(1 − e^(−(s_k+1) step))]
            = Σ_m e^(θmT) D(ε + mT): an upper bound of D(ε), and a lower one after Chernoff's bound of the terms m ≠ 0.
    Needs   Every loss lies on the lattice exactly (rationals).
    Rounds  Outward.
    Source  docs/explanation/accounting.md, theorem 4.
    """

    theta: float
    lattice: Lattice
    table: Tilts
    top: float
    length: float
    frequency: FloatArray
    plain: ComplexArray  # w_k φ / (1 − e^(−s step)) / N
    shifted: ComplexArray  # w_k φ / (1 − e^(−(s+1) step)) / N
    noise: FloatArray
    moduli: FloatArray
    log_scale: float
    log_error: float

    def _first_above(self, epsilon: float) -> Fraction:
        exact = Fraction(epsilon)
        return self.lattice.offset + (math.floor((exact - self.lattice.offset) / self.lattice.step) + 1) * self.lattice.step

    def _parts(self, epsilon: float) -> tuple[float, float, float]:
        first = self._first_above(epsilon)
        wave = np.exp(-1j * self.frequency * float(first))
        back = math.exp(float(Fraction(epsilon) - first))
        value = float(((self.plain - back * self.shifted) * wave).real.sum())
        return value, float(first), self.log_scale - self.theta * float(first)

    def middle(self, epsilon: float) -> float:
        """Return the sum itself, with no claim."""
        value, _, exponent = self._parts(epsilon)
        return value * math.exp(min(exponent, 700.0))

    def enclose(self, epsilon: float) -> tuple[float, float]:
        """Return (lower, upper) bounds of D(ε)."""
        value, first, exponent = self._parts(epsilon)
        size = len(self.frequency)
        growing = UNIT * float((self.moduli * (32.0 + size / 4 + 2.0 * self.frequency * abs(first))).sum())
        round_off = float(self.noise.sum()) + growing
        drift = self.log_error + UNIT * (4.0 * abs(self.log_scale) + 8.0 * self.theta * abs(first) + 8.0)
        if not drift < 0.5:
            return 0.0, math.inf
        scale = math.exp(min(exponent, 700.0))
        upper = max(value + round_off, 0.0) * scale * (1.0 + 2.0 * drift)
        lower = max(value - round_off, 0.0) * scale * (1.0 - 2.0 * drift) - self.aliasing(epsilon)
        least = lower if lower > 0.0 else 0.0  # noqa: FURB136 -- max() would let a NaN through
        return least, (upper + 5e-324 if math.isfinite(upper) else math.inf)  # an underflow is not a proof of 0

    def aliasing(self, epsilon: float) -> float:
        """Return an upper bound of what the neighbouring periods add."""
        return aliasing(self.table, theta=self.theta, length=self.length, epsilon=epsilon, top=self.top)


def lattice_sum(total: Total, table: Tilts, lattice: Lattice, *, theta: float, points: int) -> LatticeSum:
    """Evaluate the families on `points` (made odd) frequencies of the period points · step."""
    points += 1 - points % 2
    step = float(lattice.step)
    length = points * step
    half = points // 2 + 1
    transform = total.transform(theta, 2.0 * math.pi / length, half)
    frequency = 2.0 * math.pi / length * np.arange(half)
    s = theta + 1j * frequency
    weight = np.where(np.arange(half) == 0, 1.0, 2.0) / points
    near: ComplexArray = np.asarray(-1.0 / np.expm1(-s * step), dtype=np.complex128)
    far: ComplexArray = np.asarray(-1.0 / np.expm1(-(s + 1.0) * step), dtype=np.complex128)
    product = np.exp(transform.value)
    with np.errstate(over="ignore"):
        bound = np.exp(transform.bound)
    heaviest = (np.abs(near) + np.abs(far)) * weight
    return LatticeSum(
        theta=theta,
        lattice=lattice,
        table=table,
        top=total.top,
        length=length,
        frequency=frequency,
        plain=weight * near * product,
        shifted=weight * far * product,
        noise=heaviest * (np.maximum(bound - np.abs(product), 0.0) + 8 * UNIT * bound),
        moduli=heaviest * bound,
        log_scale=transform.log_scale,
        log_error=transform.log_error,
    )
