"""Losses with finitely many values, given atom by atom."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.logspace import expm1_minus
from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Atoms, Lattice, Transform
from curador.privacy.laws.chunks import safe_log

if TYPE_CHECKING:
    from fractions import Fraction

    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import ComplexArray


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
