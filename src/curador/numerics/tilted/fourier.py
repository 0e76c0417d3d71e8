"""The tilted Fourier sum, plain or smoothed, as a certified enclosure of D(ε)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT
from curador.numerics.tilted.aliasing import aliasing

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import ComplexArray, Total
    from curador.numerics.tilted.plan import Plan, Tilts


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

    plan: Plan
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


def _smoothing(plan: Plan, theta: FloatArray | float) -> FloatArray | float:
    return 0.5 * plan.smoothing**2 * theta * (theta + 1.0)


def _cut(total: Total, plan: Plan, last: float) -> float:
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


def fourier_sum(total: Total, table: Tilts, plan: Plan) -> FourierSum:
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
    cut = _cut(total, plan, float(frequency[-1]))
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
