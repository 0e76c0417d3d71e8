"""Losses with the values ε, 0, −ε: binary and k-ary randomized response, and the worst case of any (ε, δ) mechanism."""

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


@dataclass(frozen=True, slots=True)
class ThreePointLaw:
    """P[L = ε] = e^ε/Z, P[L = 0] = (k − 2)/Z, P[L = −ε] = 1/Z, Z = e^ε + k − 1, one entry a record.

    Claim   M(s) = (e^(ε(s+1)) + k − 2 + e^(−sε))/Z; M(θ) − 1 = (e^(θε) − 1)(e^(ε(θ+1)) − 1) e^(−θε)/Z.
    Source  [KOV15, Thm. 3.3] for k = 2 as the worst case of pure privacy.
    """

    epsilon: FloatArray
    categories: FloatArray
    count: FloatArray
    exact: tuple[Fraction, ...]

    @property
    def horizon(self) -> float:
        """No decay is claimed at any frequency."""
        return math.inf

    @property
    def top(self) -> float:
        """Σ n ε. Rounds: up."""
        return float((self.count * self.epsilon).sum()) * (1.0 + 4 * UNIT * (4 + len(self.count)))

    @property
    def records(self) -> int:
        """Distinct records."""
        return len(self.count)

    def _masses(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        fall = np.exp(-self.epsilon)
        total = 1.0 + (self.categories - 1.0) * fall
        return 1.0 / total, (self.categories - 2.0) * fall / total, fall / total

    def _logs(self, theta: FloatArray) -> FloatArray:
        """log M(θ) in shape (records, tilts), relative error below 32 ulps."""
        epsilon = self.epsilon[:, None]
        high, middle, low = (mass[:, None] for mass in self._masses())
        with np.errstate(over="ignore", invalid="ignore"):
            excess = low * -np.expm1(-theta * epsilon) * np.expm1((theta + 1.0) * epsilon)
            plain = np.log1p(excess)
            if float(excess.max()) < 1.0:
                return plain
            shape = high + middle * np.exp(-theta * epsilon) + low * np.exp(-2.0 * theta * epsilon)
            tilted = theta * epsilon + np.log(shape)
        return np.where(excess < 1.0, plain, tilted)

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """Σ n log M(θ). Rounds: up."""
        line = np.asarray(theta, dtype=np.float64)[None, :]
        error = 1.0 + UNIT * (48.0 + 4.0 * line * self.epsilon[:, None])
        return (self.count[:, None] * self._logs(line) * error).sum(axis=0)

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """Three exponentials."""
        high, middle, low = self._masses()
        masses = np.stack([high, middle * np.exp(-theta * self.epsilon), low * np.exp(-2.0 * theta * self.epsilon)])
        high, middle, low = (masses / masses.sum(axis=0))[:, :, None]
        logs = self._logs(np.array([[theta]]))[:, 0]

        def block(frequency: FloatArray) -> tuple[ComplexArray, FloatArray]:
            angle = frequency[None, :] * self.epsilon[:, None]
            across, along = np.cos(angle), np.sin(angle)
            phi = np.empty(angle.shape, dtype=np.complex128)  # high + middle e^(−ia) + low e^(−2ia), in real arithmetic
            phi.real = (high + low) + middle * across - 2.0 * low * along**2
            phi.imag = -along * (middle + 2.0 * low * across)
            return product(phi, UNIT * (32.0 + 8.0 * angle), angle, self.count)

        value, bound = in_chunks(block, step, size, len(self.count))
        relative = 64.0 + 4.0 * theta * self.epsilon
        return Transform(
            value,
            bound,
            float((self.count * logs).sum()),
            UNIT * float((self.count * relative * np.abs(logs)).sum()),
        )

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """Atoms do not decay."""
        del theta
        return np.zeros_like(frequency)

    def atoms(self, limit: int) -> list[Atoms] | None:
        """Binary records by binomials, k-ary ones only if single."""
        if too_many(self.count, limit):
            return None
        out: list[Atoms] = []
        for index, count in enumerate(self.count):
            single = self._single(index)
            if len(single.losses) == 2:
                if count >= limit:
                    return None
                out.append(_binomial(single, int(count)))
            elif 3.0 ** min(count, 40) > limit:
                return None
            else:
                out.extend([single] * int(count))
        return out

    def _single(self, index: int) -> Atoms:
        masses = np.array([mass[index] for mass in self._masses()])
        losses = np.array([1.0, 0.0, -1.0]) * self.epsilon[index]
        return Atoms(losses[masses > 0], masses[masses > 0], 16 * UNIT, 2 * UNIT * float(self.epsilon[index]))

    def lattice(self) -> Lattice | None:
        """Steps of 2ε for binary records, of ε for k-ary ones."""
        step = common_step((2 if k == 2 else 1) * e for e, k in zip(self.exact, self.categories, strict=True))
        if step is None:
            return None
        return Lattice(sum((int(n) * e for e, n in zip(self.exact, self.count, strict=True)), Fraction(0)), step)


def _binomial(single: Atoms, count: int) -> Atoms:
    """The law of the sum of `count` independent copies of a two-point loss."""
    if count == 1:
        return single
    times = np.arange(count + 1)
    log_choose, doubt = _log_binomials(count)
    logs = np.log(single.masses)
    masses = np.exp(log_choose + times * logs[0] + (count - times) * logs[1])
    losses = times * single.losses[0] + (count - times) * single.losses[1]
    size = doubt + 4.0 * (float(log_choose.max()) + count * float(np.abs(logs).max()))
    return Atoms(losses, masses, UNIT * (32.0 + size), 6 * UNIT * float(np.abs(losses).max()))


def _log_binomials(count: int) -> tuple[FloatArray, float]:
    """log C(count, i) for all i, and a bound of their error in units of UNIT: exact integers up to 1,000."""
    if count <= 1_000:
        row = [1]
        for i in range(count):
            row.append(row[-1] * (count - i) // (i + 1))
        return np.array([math.log(value) for value in row]), 4.0
    from scipy.special import gammaln

    times = np.arange(count + 1)
    logs = gammaln(count + 1.0) - gammaln(times + 1.0) - gammaln(count - times + 1.0)
    return logs, 16.0 * float(gammaln(count + 1.0))
