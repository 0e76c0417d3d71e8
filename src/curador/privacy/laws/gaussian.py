"""The loss of Gaussian noise: normal with mean μ²/2 and variance μ². All Gaussians together are one Gaussian.

Discrete Gaussian noise of many grid units joins this family by the convolution sandwich: see `sandwich`.
Coarser noise, of σ ≥ 1/4 of a grid unit, has its own in closed form by the dual theta series:

    M(θ + it)/M(θ) = e^(it(2θ+1)μ²/2) Σ_j e^(−(μt + 2πσj)²/2) e^(2πijθΔ) / ϑ(θΔ),   μ = Δ/σ,
    ϑ(y) = Σ_j e^(−2π²σ²j²) cos(2πjy).

A few terms of the numerator around the nearest j carry everything. From σ = 2 on ϑ is 1 within 1e-33.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Atoms, Lattice, Transform, common_step, in_chunks, log_product, too_many

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import ComplexArray


# ---- on real numbers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """M(s) = exp(μ² s(s+1)/2).

    Claim   Exact for μ² within a relative `spread`: bounds hold for every μ² in [mu2 (1 − spread), mu2 (1 + spread)].
    Source  [DRS19]
    """

    mu2: float
    spread: float = 0.0

    @property
    def horizon(self) -> float:
        """The decay holds at every frequency."""
        return math.inf

    @property
    def top(self) -> float:
        """The loss is unbounded."""
        return math.inf

    @property
    def records(self) -> int:
        """All Gaussians are one."""
        return 1

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """μ² θ(θ+1)/2. Rounds: up."""
        return 0.5 * self.mu2 * theta * (theta + 1.0) * (1.0 + self.spread + 8 * UNIT)

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """Quadratic in the frequency, no quadrature."""
        frequency = step * np.arange(size)
        value = 0.5 * self.mu2 * (-(frequency**2) + 1j * frequency * (2.0 * theta + 1.0))
        relative = self.spread + 16 * UNIT
        scale = 0.5 * self.mu2 * theta * (theta + 1.0)
        return Transform(value, value.real + relative * (1.0 + np.abs(value)) * 1.01, scale, scale * relative)

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """−μ² t²/2. Rounds: up."""
        del theta
        return -0.5 * self.mu2 * (1.0 - self.spread - 8 * UNIT) * frequency**2

    def atoms(self, limit: int) -> list[Atoms] | None:
        """None: the law is continuous."""
        del limit

    def lattice(self) -> Lattice | None:
        """None: the law is continuous."""


def sandwich(sigma2: float, count: int, mu: float) -> float:
    """Return the relative doubt of μ² that puts discrete Gaussian noise of parameter σ² (grid units) between Gaussians.

    Claim   Let 2π²t = 60 + log(4 count) + log(1 + 1/m), m = `mu`, or t = σ²/2⁶⁰ if that is more; t < σ²/2. Then `count`
            discrete Gaussian releases of shift Δ, alone, composed with others or mixed over a subsample, have a δ(ε) between
            those of Gaussian noise with μ² = Δ²/(σ² + t) and with μ² = Δ²/(σ² − t), up to factors 1 ± s on δ and shifts
            ± s m/(1 + m) of ε, s ≤ 4e-26. Such a shift changes δ by a factor within 1 ± 3e-24: below the round-off counted.
    Needs   mu ≤ Δ/σ of one release; times the rate where it sees a sample.
    Proof   Draw x from N(c, σ² − t) and round it to the integer k with probability ∝ exp(−(k − x)²/2t). The result has masses
            ∝ exp(−(k − c)²/2σ²), up to the normaliser Σ_k exp(−(k − x)²/2t), which Poisson summation puts within a factor
            1 ± 2.1 e^(−2π²t) of a constant: the discrete noise is post-processing of the narrower Gaussian up to 1 ± η,
            η ≤ 5 e^(−2π²t) ≤ 1.1e-26/count. Conversely, discrete noise plus N(0, t) has the density of N(c, σ² + t) up to
            1 ± 5 e^(−2π²v), v = σ²t/(σ² + t), which is as small for σ² ≥ 1000 t. Probabilities within 1 ± η each move δ as
            stated. Shifts and mixtures use the same rounding. A vector is rounded entry by entry, one factor 1 ± η each, so
            `count` is the number of entries released; Gaussian vectors differ by the length of the shift only, Δ² = |v|².
    Source  [Pei10] for the convolution; docs/explanation/accounting.md, theorem 8.
    """
    width = (60.0 + math.log(4.0 * count) + math.log1p(1.0 / mu)) / (2.0 * math.pi**2)
    width = max(width, sigma2 * 2.0**-60)
    return width / (sigma2 - width) * (1.0 + 1e-12) if width < sigma2 / 2 else math.inf


# ---- on the integers -------------------------------------------------------------------------------------------------------


SMALLEST = Fraction(1, 16)
"""Smallest σ² that the series serves; below, the atoms are summed."""

_FLAT = 4.0 * math.pi
"""2πσ from which on ϑ is 1."""

_FAR = 11.5
"""e^(−x²/2) is below 2e-29 from here on: terms so far away are left out."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw:
    """Independent discrete Gaussian losses of exact σ² and integer shift Δ, one entry a record.

    Claim   log M(θ) = θ(θ+1) Δ²/(2σ²) + log ϑ(θΔ)/ϑ(0), whose last term is at most 0; φ as above within the stated round-off.
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

    def _turn(self) -> FloatArray:
        """2πσ of every record."""
        return np.array([2.0 * math.pi * math.sqrt(s.numerator / s.denominator) for s in self.sigma2])

    def _thetas(self, theta: FloatArray, turn: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ϑ(θΔ) of every record (rows) at every tilt, ϑ(0), and what their logarithms may be off by.

        Rounds  To nearest. From σ = 1/4 on 0.43 ≤ ϑ(1/2) ≤ ϑ(y) ≤ ϑ(0) ≤ 1.6, so that nothing cancels: each of the m terms is
                off by at most 8 units, by the 2πjθΔ units of its angle, and by those of its exponent (2πσj)²/2, which e^(−x)
                times x keeps below 1; divided by 0.43, all of that is below 3 times the sum.
        """
        shift = np.array(self.sensitivity, dtype=np.float64)[:, None]
        most = math.ceil(_FAR / float(turn.min()))
        value, start = np.ones((len(turn), len(theta))), np.ones((len(turn), 1))
        slip = np.zeros_like(value)
        for j in range(1, most + 1):
            size = 2.0 * np.exp(-0.5 * (turn[:, None] * j) ** 2)
            value += size * np.cos(2.0 * math.pi * np.remainder(j * shift * theta, 1.0))
            slip += size * (8.0 * j * shift * theta)
            start += size
        return value, start, 3.0 * UNIT * (slip + 16.0 * (most + 1))

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """θ(θ+1)μ²/2 + log ϑ(θΔ)/ϑ(0). Rounds: up."""
        theta = np.asarray(theta, dtype=np.float64)
        whole = 0.5 * float((self.count * self._mu2()).sum()) * theta * (theta + 1.0) * (1.0 + 16 * UNIT) + 1e-30
        turn = self._turn()
        if float(turn.min()) < _FLAT:
            value, start, error = self._thetas(theta, turn)
            whole += (self.count[:, None] * np.minimum(np.log(value / start) + error, 0.0)).sum(axis=0)
        return whole

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """The nearest terms of the dual series."""
        mu2 = self._mu2()[:, None]
        turn = self._turn()[:, None]
        shift = np.array(self.sensitivity, dtype=np.float64)[:, None]
        mu = np.sqrt(mu2)
        least = float(turn.min())
        # a term m places from the nearest one is at least (m − 1/2) 2πσ away
        beside = 0 if least >= 2.0 * _FAR + 1.0 else math.floor(_FAR / least + 0.5)
        near = 2.0 * beside * math.exp(-0.125 * least * least)  # at most the weight of all terms beside the nearest
        coarse = self._thetas(np.array([theta]), turn[:, 0]) if least < _FLAT else None

        turned: ComplexArray = np.exp(2j * math.pi * np.remainder(theta * shift, 1.0))
        back: ComplexArray = np.conjugate(turned)
        falls = [np.exp(-0.5 * (turn * m) ** 2) for m in range(1, beside + 1)]

        def block(frequency: FloatArray) -> tuple[ComplexArray, FloatArray]:
            """Sum the terms around the nearest: e^(−(d + 2πσm)²/2) = e^(−d²/2) e^(−2πσdm) e^(−(2πσm)²/2), two polynomials."""
            line = frequency[None, :]
            nearest = -np.rint(mu * line / turn)
            distance = mu * line + turn * nearest
            phi = np.exp(-0.5 * distance**2).astype(np.complex128)
            if beside:
                ratio = np.exp(-turn * distance)
                phi *= 1.0 + _polynomial(falls, ratio * turned) + _polynomial(falls, np.divide(back, ratio))
            if nearest.any():
                phi *= np.exp(2j * math.pi * np.remainder(nearest * theta * shift, 1.0))
            angle = line * (2.0 * theta + 1.0) * mu2 / 2.0
            # of the nearest term: its angle, and d times its exponent's error; of those beside it the same, 3 times at most
            # (|d| + 2πσm ≤ 3 |d + 2πσm|, and x e^(−x²/2) < 0.7), and 16 units a step of the polynomials
            slip = 16.0 * (np.abs(nearest) * (1.0 + near) + beside * near) * (theta * shift + 1.0)
            slip += 4.0 * (np.abs(distance) + 1.0 + 4.2 * near) * mu * line
            error = UNIT * (40.0 + 40.0 * beside * near + slip)
            if coarse is not None:
                phi /= coarse[0]
                error = error / coarse[0] + 2.0 * coarse[2] * np.abs(phi)
            return log_product(phi, error + 8 * UNIT * angle, angle, self.count)

        value, bound = in_chunks(block, step, size, len(self.count))
        scale = 0.5 * float((self.count * mu2[:, 0]).sum()) * theta * (theta + 1.0)
        error = scale * 16 * UNIT + 1e-30 * float(self.count.sum())
        if coarse is not None:
            logs = np.log(coarse[0] / coarse[1])[:, 0]
            scale += float((self.count * logs).sum())
            error += float((self.count * (coarse[2][:, 0] + UNIT * len(logs) * np.abs(logs))).sum())
        return Transform(value, bound, scale, error)

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


def _polynomial(factors: list[FloatArray], variable: ComplexArray) -> ComplexArray:
    """Return Σ factors[m − 1] variable^m."""
    total = np.zeros_like(variable)
    for factor in reversed(factors):
        total += factor
        total *= variable
    return total


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
