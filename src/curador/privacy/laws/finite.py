"""Losses with finitely many values: any, given atom by atom; the values ε, 0, −ε; and 0 alone.

`ThreePointLaw` is that of binary and k-ary randomized response, and the worst case of any (ε, δ) mechanism; `SurvivalLaw` is
the chance that no loss is infinite, as a constant moment function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.logspace import expm1_minus
from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Atoms, Lattice, Transform, common_step, in_chunks, log_product, safe_log, too_many

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import ComplexArray


# ---- atom by atom ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: it holds arrays
class FiniteLaw:
    """One record with finitely many finite losses, `count` times.

    Claim   M(s) = Σ P(l) e^(sl). log_moment is an upper bound; where the law has no infinite mass on either side
            (`balanced`: Σ P(l) e^(−l) = 1 = Σ P(l)), M − 1 = Σ P(l) (g(θl) + θ g(−l)), g(x) = eˣ − 1 − x: no cancellation.
    """

    losses: FloatArray
    masses: FloatArray
    count: int
    error: float  # relative error of the masses
    balanced: bool
    doubt: float = 0.0  # absolute error of the losses beyond 8 UNIT of the largest
    grid: tuple[Fraction, Fraction] | None = None  # (offset, step) of a single record, exact

    @property
    def horizon(self) -> float:
        """No decay is claimed."""
        return math.inf

    @property
    def top(self) -> float:
        """The largest loss, count times. Rounds: up."""
        reach = float(np.abs(self.losses).max())
        return (float(self.losses.max()) + self.doubt + 16 * UNIT * reach) * self.count

    @property
    def records(self) -> int:
        """As costly as its atoms, roughly."""
        return 1 + len(self.losses) // 8

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """Count times log Σ P e^(θl). Rounds: up."""
        theta = np.asarray(theta, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            exponent = theta[None, :] * self.losses[:, None]
            weighted = exponent + np.log(self.masses)[:, None]
            peak = weighted.max(axis=0)
            tilted = peak + np.log(np.exp(weighted - peak).sum(axis=0))
            error = self.error + theta * self.doubt + UNIT * (16.0 + 4.0 * np.abs(exponent).max(axis=0) + len(self.losses))
            upper = tilted + error
            if self.balanced:
                excess = (self.masses[:, None] * (expm1_minus(exponent) + theta * expm1_minus(-self.losses)[:, None])).sum(
                    axis=0
                )
                upper = np.minimum(upper, np.log1p(excess) * (1.0 + 2.0 * error) + 2.0 * theta * self.error * self._tilt())
        return self.count * np.where(np.isnan(upper), np.inf, upper)

    def _tilt(self) -> float:
        # relative errors of the masses unbalance Σ P e^(−l) = 1 by at most this much a unit of θ
        return float((self.masses * np.abs(np.expm1(-self.losses))).sum())

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """A matrix product over equally spaced frequencies."""
        weighted = theta * self.losses + np.log(self.masses)
        peak = float(weighted.max())
        weights = np.exp(weighted - peak)
        total = float(weights.sum())
        phi = characteristic(weights / total, self.losses, step, size)
        reach = float(np.abs(self.losses).max())
        frequency = step * np.arange(size)
        error = (
            2.0 * self.error
            + UNIT * (24.0 + 8.0 * math.sqrt(len(weights)) + 6.0 * (frequency + abs(theta)) * reach)
            + 2.0 * (frequency + abs(theta)) * self.doubt
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = safe_log(phi)
        value = self.count * logs
        bound = self.count * np.log(np.abs(phi) + error) + 4 * UNIT * self.count * np.minimum(np.abs(logs), 1e3)
        log_scale = peak + math.log(total)
        drift = (
            self.error
            + abs(theta) * self.doubt
            + UNIT * (24.0 + 2.0 * float(np.abs(weighted).max()) + math.sqrt(len(weights)) + 4.0 * abs(theta) * reach)
        )
        return Transform(value, bound, self.count * log_scale, self.count * drift)

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """Atoms do not decay."""
        del theta
        return np.zeros_like(frequency)

    def atoms(self, limit: int) -> list[Atoms] | None:
        """The atoms, repeated."""
        if self.count * math.log(max(2, len(self.losses))) > math.log(limit):
            return None
        return [
            Atoms(self.losses, self.masses, self.error, self.doubt + 8 * UNIT * float(np.abs(self.losses).max()))
        ] * self.count

    def lattice(self) -> Lattice | None:
        """The lattice of the sum, where the record has one."""
        if self.grid is None:
            return None
        offset, step = self.grid
        return Lattice(self.count * offset, step)


def characteristic(weights: FloatArray, points: FloatArray, step: float, size: int) -> ComplexArray:
    """Return Σ_j weight_j exp(i k step point_j) for k = 0 … size − 1.

    e^(i(aB+b)x) = e^(iaBx) e^(ibx), so two small tables and one matrix product serve all frequencies.
    """
    if size <= 64:
        return np.asarray(np.exp(1j * np.outer(step * np.arange(size), points)) @ weights, dtype=np.complex128)
    block = math.isqrt(size - 1) + 1
    fine = np.exp(1j * np.outer(step * np.arange(block), points))
    coarse = np.exp(1j * np.outer(step * block * np.arange(-(-size // block)), points)) * weights
    return np.asarray(coarse @ fine.T, dtype=np.complex128).ravel()[:size]


# ---- the values ε, 0, −ε ---------------------------------------------------------------------------------------------------


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
            return log_product(phi, UNIT * (32.0 + 8.0 * angle), angle, self.count)

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


# ---- the chance that no loss is infinite -----------------------------------------------------------------------------------


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
