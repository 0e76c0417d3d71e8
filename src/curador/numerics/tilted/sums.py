"""The sums that enclose D(ε): the tilted Fourier sum, the same on a lattice, and the plain one over few atoms.

    fourier_sum   one vertical line of frequencies, plain or smoothed by a little Gaussian loss (for laws with atoms)
    lattice_sum   losses on a common lattice: finitely many frequencies, nothing cut off
    AtomSum       a law with few atoms, by summing them
    aliasing      what the neighbouring periods add to the first two

Each has `middle`, the sum itself, and `enclose`, certified bounds of D(ε).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import Atoms, ComplexArray, Lattice, Total
    from curador.numerics.tilted.plan import FrequencyGrid, Tilts


# ---- what the neighbouring periods add -------------------------------------------------------------------------------------


def aliasing(
    table: Tilts, *, theta: float, length: float, epsilon: float, top: float, extra: FloatArray | float = 0.0
) -> float:
    """Return an upper bound of Σ_{m ≠ 0} e^(θmT) D(ε + mT).

    Claim   With any tilt θ' of the table, D(x) ≤ c(θ') M(θ') e^(−θ'x); above θ it bounds the periods to the right, below θ
            those to the left, where D ≤ 1 bounds them too. Nothing lies right of the largest loss `top`. `extra` is what
            smoothing adds to log M on the table.
    Rounds  Up. Source: docs/explanation/accounting.md, theorem 1.
    """
    gap = np.abs(table.theta - theta) * length
    tail = table.log_chernoff + extra - table.theta * epsilon
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        size = np.where(gap > 0.0, np.exp(np.minimum(tail - gap, 700.0)) / -np.expm1(-gap), np.inf)
    right = float(np.min(size[table.theta > theta], initial=math.inf))
    if epsilon + length >= top * (1 + 1e-12):
        right = 0.0
    left = float(np.min(size[table.theta < theta], initial=math.inf))
    left = min(left, math.exp(-theta * length) / -math.expm1(-theta * length))
    return (left + right) * (1.0 + 1e-12)


# ---- the Fourier sum -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FourierSum:
    """D(ε) enclosed for every ε by the values on one vertical line.

    Claim   For every ε, D(ε) lies in enclose(ε):
            above: the sum itself (aliasing is never negative), plus what was cut off and round-off;
            below: minus the aliasing terms by Chernoff's bound at the best tilts of the table, and with smoothing by an
            independent Gaussian loss of μ = τ, minus τ² e^(τ²/8) times the density of the smoothed loss at ε.
    Needs   The families' bounds: log_moment and `bound` from above, log_decay from above up to the horizon.
    Rounds  Outward; elementary functions within LIBM_ULPS (checked by verify and by the stress tests).
    Source  docs/explanation/accounting.md, theorems 1, 2, 3 and 6.
    """

    plan: FrequencyGrid
    table: Tilts
    top: float
    frequency: FloatArray
    upper_terms: ComplexArray  # w_k φ(s_k) / (s_k (s_k + 1)) / T
    lower_terms: ComplexArray  # the same with the smoothing kernel
    noise: FloatArray  # bound of the round-off of each term, without the part that grows with ε
    moduli: FloatArray  # |lower_terms| enlarged: weight of the part that grows with ε
    log_scale: float  # log M(θ), smoothing included
    log_error: float
    cut_upper: float  # what lies beyond the last frequency, relative to e^(log_scale − θε)
    cut_lower: float

    def middle(self, epsilon: float) -> float:
        """Return the sum itself, with no claim."""
        wave = np.exp(-1j * self.frequency * epsilon)
        return float((self.upper_terms * wave).real.sum()) * math.exp(self._exponent(epsilon))

    def _exponent(self, epsilon: float) -> float:
        return min(self.log_scale - self.plan.theta * epsilon, 700.0)

    def enclose(self, epsilon: float) -> tuple[float, float]:
        """Return (lower, upper) bounds of D(ε)."""
        wave = np.exp(-1j * self.frequency * epsilon)
        exponent = self._exponent(epsilon)
        scale = math.exp(exponent)
        size = len(self.frequency)
        growing = UNIT * float((self.moduli * (24.0 + size / 4 + 2.0 * self.frequency * abs(epsilon))).sum())
        round_off = float(self.noise.sum()) + growing
        drift = self.log_error + UNIT * (4.0 * abs(self.log_scale) + 8.0 * self.plan.theta * abs(epsilon) + 8.0)
        if not drift < 0.5:
            return 0.0, math.inf
        high = float((self.upper_terms * wave).real.sum()) + self.cut_upper + round_off
        low = float((self.lower_terms * wave).real.sum()) - self.cut_lower - round_off
        upper = max(high, 0.0) * scale * (1.0 + 2.0 * drift)
        lower = max(low, 0.0) * scale * (1.0 - 2.0 * drift) - self.aliasing(epsilon)
        least = lower if lower > 0.0 else 0.0  # noqa: FURB136 -- max() would let a NaN through
        return least, (upper + 5e-324 if math.isfinite(upper) else math.inf)  # an underflow is not a proof of 0

    def aliasing(self, epsilon: float) -> float:
        """Return an upper bound of what the neighbouring periods add."""
        smoothed = self.plan.smoothing > 0.0
        return aliasing(
            self.table,
            theta=self.plan.theta,
            length=2.0 * math.pi / self.plan.step,
            epsilon=epsilon,
            top=math.inf if smoothed else self.top,
            extra=_smoothing(self.plan, self.table.theta),
        )


def _smoothing(plan: FrequencyGrid, theta: FloatArray | float) -> FloatArray | float:
    return 0.5 * plan.smoothing**2 * theta * (theta + 1.0)


def _bound_cut(total: Total, plan: FrequencyGrid, last: float) -> float:
    """Bound what lies beyond the last frequency, relative to e^(log M(θ) − θε) (theorem 2, one piece a horizon)."""
    starts = [
        last,
        *sorted({family.horizon for family in total.families if last < family.horizon < math.inf}),
    ]
    size = 0.0
    for start, decay in zip(starts, total.log_decay(plan.theta, np.array(starts)).tolist(), strict=True):
        edge = start if start == last else max(start - plan.step, last)  # the first frequency beyond may lie a step before
        log_size = decay - 0.5 * (plan.smoothing * edge) ** 2
        size += math.exp(min(log_size, 0.0)) / (math.pi * edge)
    return size * (1.0 + 1e-12) + 1e-290  # and what underflowed


def fourier_sum(total: Total, table: Tilts, plan: FrequencyGrid) -> FourierSum:
    """Evaluate the families once on the line; every ε is then answered from the same values."""
    if plan.smoothing**2 / 8.0 > 700.0:
        raise NumericalFailure("so much smoothing would be needed that nothing is left")
    transform = total.transform(plan.theta, plan.step, plan.size)
    frequency = plan.step * np.arange(plan.size)
    s = plan.theta + 1j * frequency
    gauss = 0.5 * plan.smoothing**2 * (-(frequency**2) + 1j * frequency * (2.0 * plan.theta + 1.0))
    weight = np.where(np.arange(plan.size) == 0, 1.0, 2.0) * plan.step / (2.0 * math.pi)
    kernel = 1.0 / (s * (s + 1.0))
    narrow = kernel - plan.smoothing**2 * math.exp(plan.smoothing**2 / 8.0)
    product = np.exp(transform.value + gauss)
    heaviest = np.maximum(np.abs(kernel), np.abs(narrow)) * weight
    with np.errstate(over="ignore"):
        bound = np.exp(transform.bound + gauss.real)
    noise = np.maximum(bound - np.abs(product), 0.0) + 8 * UNIT * bound
    cut = _bound_cut(total, plan, float(frequency[-1]))
    return FourierSum(
        plan=plan,
        table=table,
        top=total.top,
        frequency=frequency,
        upper_terms=weight * kernel * product,
        lower_terms=weight * narrow * product,
        noise=heaviest * noise,
        moduli=heaviest * bound,
        log_scale=transform.log_scale + float(_smoothing(plan, plan.theta)),
        log_error=transform.log_error,
        cut_upper=cut,
        cut_lower=cut * (1.0 if plan.smoothing == 0.0 else 1.0 + math.exp(plan.smoothing**2 / 8.0)),
    )


# ---- on a lattice ----------------------------------------------------------------------------------------------------------


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


# ---- over atoms ------------------------------------------------------------------------------------------------------------


MOST_ATOMS = 40_000


@dataclass(frozen=True, slots=True)
class AtomSum:
    """D(ε) = Σ over losses l > ε of P(l) (1 − e^(ε−l)).

    Claim   D(ε) lies in enclose(ε).
    Rounds  Outward: losses are taken a few ulps of the largest to the unfavourable side, masses by their stated error.
    """

    law: Atoms

    def _sum(self, epsilon: float) -> float:
        start = int(np.searchsorted(self.law.losses, epsilon, side="right"))
        return float((self.law.masses[start:] * -np.expm1(epsilon - self.law.losses[start:])).sum())

    def middle(self, epsilon: float) -> float:
        """Return the sum itself, with no claim."""
        return self._sum(epsilon)

    def enclose(self, epsilon: float) -> tuple[float, float]:
        """Return (lower, upper) bounds of D(ε)."""
        size = len(self.law.losses)
        wobble = self.law.wobble + 4 * UNIT * abs(epsilon)
        error = self.law.error + UNIT * (16.0 + size / 8)
        return (
            max(0.0, self._sum(epsilon + wobble) * (1.0 - error)),
            self._sum(epsilon - wobble) * (1.0 + 2.0 * error) + 1e-140,  # laws with tails leave less than that out
        )
