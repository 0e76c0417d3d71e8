"""The loss of Gaussian noise: normal with mean μ²/2 and variance μ². All Gaussians together are one Gaussian.

Discrete Gaussian noise of many grid units joins this family by the convolution sandwich: see `sandwich`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Transform

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import Atoms, Lattice


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
