"""Gaussian noise: on the integers, and on real numbers by a fine grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from curador.mechanisms.parameters import (
    Accuracy,
    accuracy_goal,
    decimal,
    goal,
    grid_exponent,
    grid_of,
    in_steps,
    rounded_down,
    rounded_up,
    settled,
    steps_of,
    written,
)
from curador.mechanisms.search import largest, smallest_scale
from curador.numerics.exact import Number, positive, whole
from curador.numerics.rounding import float_down, float_up
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import Loss, Scheme
from curador.privacy.losses import DiscreteGaussianLoss
from curador.privacy.sensitivity import Norm, Sensitivity


@dataclass(frozen=True, slots=True, init=False)
class Gaussian:
    """Gaussian noise of standard deviation `sigma` for real values of bounded l2 sensitivity.

    Values are rounded to a power-of-two grid of at most σ/2⁴⁰ and discrete Gaussian noise is added on it.

    Claim   The loss is that of discrete Gaussian noise of σ/g grid steps for a shift of ⌈sensitivity/g⌉ steps; it is
            Δ²/2σ²-zCDP, and its δ(ε) is that of ideal Gaussian noise within a relative 1e-23.
    Rounds  The sensitivity in grid steps up.
    Source  [CKS20]; docs/explanation/accounting.md, theorem 8.
    """

    sigma: Fraction
    sensitivity_squared: Fraction
    relation: Adjacency | None

    def __init__(self, *, sigma: Number, sensitivity: Number | Sensitivity) -> None:
        squared, relation = settled(sensitivity, Norm.L2)
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "relation", relation)

    def __repr__(self) -> str:
        return f"Gaussian(sigma={decimal(self.sigma)}, sensitivity={written(self.sensitivity_squared)})"

    @property
    def grid(self) -> Fraction:
        """The step of the grid that values and noise live on."""
        return grid_of(self.sigma)

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        exponent = grid_exponent(self.sigma)
        ratio = in_steps(self.sigma, exponent)
        steps = steps_of(self.sensitivity_squared, exponent)
        return DiscreteGaussianLoss(sigma2=ratio * ratio, sensitivity=steps, relation=self.relation)

    @property
    def variance(self) -> float:
        """σ²; the grid changes it by less than one part in 10²³. Rounds: up."""
        return float_up(self.sigma * self.sigma)

    @classmethod
    def calibrate(
        cls,
        *,
        sensitivity: Number | Sensitivity,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Number | None = None,
        confidence: Number = "0.95",
        count: Number = 1,
        rate: Number | None = None,
        scheme: Scheme = "poisson",
        adjacency: Adjacency | str | None = None,
    ) -> Self:
        """Return the mechanism with the least noise that reaches (epsilon, delta) or rho after `count` releases.

        With accuracy: the one with the most noise whose error is at most `accuracy` with probability `confidence`.
        """
        if accuracy is not None:
            wanted = accuracy_goal(accuracy, confidence, epsilon=epsilon, delta=delta, rho=rho, rate=rate)
            return cls(sigma=_sigma_for(wanted), sensitivity=sensitivity)
        aim = goal(epsilon=epsilon, delta=delta, rho=rho, count=count, rate=rate, scheme=scheme, adjacency=adjacency)
        squared, _ = settled(sensitivity, Norm.L2)
        length = math.sqrt(squared)
        if length == 0.0:
            return cls(sigma=1, sensitivity=sensitivity)
        if aim.rho is not None:
            start = length * math.sqrt(aim.count / (2 * aim.rho))
            sigma = rounded_up(start)
            while not aim.reached(cls(sigma=sigma, sensitivity=sensitivity).loss):
                sigma = rounded_up(sigma * (1 + Fraction(1, 10**11)))
            return cls(sigma=sigma, sensitivity=sensitivity)
        start = length * _first_guess(float(aim.epsilon or 1), float(aim.delta), aim.count, aim.rate)
        sigma = smallest_scale(aim, lambda scale: cls(sigma=scale, sensitivity=sensitivity).loss, start=start)
        return cls(sigma=sigma, sensitivity=sensitivity)


def _first_guess(epsilon: float, delta: float, count: int, rate: Fraction | None) -> float:
    """σ/sensitivity of the right size; a subsample at rate q behaves about like q√count releases."""
    from curador.errors import InvalidParameter, sentence
    from curador.privacy.gaussian import gaussian_mu

    if delta <= 0.0:
        raise InvalidParameter(sentence("delta", "above 0 for Gaussian noise", delta, "Laplace noise needs no delta"))
    mu = gaussian_mu(epsilon=epsilon, delta=delta)
    if rate is None:
        return math.sqrt(count) / mu
    return max(math.sqrt(count) * float(rate) / mu, 0.3)


def _sigma_for(wanted: Accuracy) -> Fraction:
    """σ = error / z, rounded down, a grid step kept in reserve for rounding the value."""
    from scipy.special import ndtri

    # the tail, not its complement: 1 − confidence keeps its digits however close to 0
    z = -float(ndtri(float_down((1 - wanted.confidence) / 2))) * (1 + 1e-12)
    return rounded_down(wanted.error / Fraction(z) * (1 - Fraction(1, 2**38)))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian:
    """Discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²), for integers of bounded sensitivity.

    Claim   sensitivity²/2σ²-zCDP; the loss record carries the exact law. Source: [CKS20]
    """

    sigma: Fraction
    sensitivity: int
    relation: Adjacency | None

    def __init__(self, *, sigma: Number, sensitivity: Number | Sensitivity) -> None:
        squared, relation = settled(sensitivity, Norm.L2)
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        object.__setattr__(self, "sensitivity", steps_of(squared, 0))
        object.__setattr__(self, "relation", relation)

    def __repr__(self) -> str:
        return f"DiscreteGaussian(sigma={decimal(self.sigma)}, sensitivity={self.sensitivity})"

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        return DiscreteGaussianLoss(sigma2=self.sigma * self.sigma, sensitivity=self.sensitivity, relation=self.relation)

    @property
    def variance(self) -> float:
        """Σ k² P[k], at most σ². Source: [CKS20]. Rounds: up."""
        sigma2 = float(self.sigma * self.sigma)
        if sigma2 > 100.0:  # equal to σ² within e^(−2π²σ²)
            return float_up(self.sigma * self.sigma)
        weights = [math.exp(-k * k / (2 * sigma2)) for k in range(math.ceil(40 * math.sqrt(sigma2)) + 2)]
        total = weights[0] + 2 * math.fsum(weights[1:])
        return min(
            2 * math.fsum(k * k * w for k, w in enumerate(weights)) / total * (1 + 1e-14),
            float_up(self.sigma**2),
        )

    def tail(self, reach: int) -> float:
        """Return P[|noise| > reach]. Rounds: up."""
        return discrete_gaussian_tail(self.sigma * self.sigma, reach)

    @classmethod
    def calibrate(
        cls,
        *,
        sensitivity: Number | Sensitivity,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Number | None = None,
        confidence: Number = "0.95",
        count: Number = 1,
        rate: Number | None = None,
        scheme: Scheme = "poisson",
        adjacency: Adjacency | str | None = None,
    ) -> Self:
        """Return the mechanism with the least noise that reaches the privacy goal, or the most that keeps the accuracy."""
        if accuracy is not None:
            wanted = accuracy_goal(accuracy, confidence, epsilon=epsilon, delta=delta, rho=rho, rate=rate)
            return cls(sigma=_discrete_sigma_for(wanted), sensitivity=sensitivity)
        aim = goal(epsilon=epsilon, delta=delta, rho=rho, count=count, rate=rate, scheme=scheme, adjacency=adjacency)
        smooth = Gaussian.calibrate(
            sensitivity=sensitivity,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            count=count,
            rate=rate,
            scheme=scheme,
            adjacency=adjacency,
        )
        if aim.rho is not None or cls(sigma=smooth.sigma, sensitivity=sensitivity).sensitivity == 0:
            return cls(sigma=smooth.sigma, sensitivity=sensitivity)
        start = float(smooth.sigma)
        sigma = smallest_scale(aim, lambda scale: cls(sigma=scale, sensitivity=sensitivity).loss, start=start)
        return cls(sigma=sigma, sensitivity=sensitivity)


def discrete_gaussian_tail(sigma2: Fraction, reach: int) -> float:
    """Return P[|X| > reach] for discrete Gaussian X. Rounds: up; sums far enough that what is left is below one ulp."""
    import numpy as np

    s2, sigma = float(sigma2), math.sqrt(sigma2)
    first, last = whole(reach, "reach", least=0) + 1, math.ceil(reach + 12 * sigma + 40)
    if last - first > 5_000_000:  # a fine grid: between the continuous tails half a step out and in
        from scipy.special import ndtr

        return 2.0 * float(ndtr(-(reach - 0.5) / sigma)) * (1 + 1e-9)
    weights = np.exp(-(np.arange(first, last, dtype=np.float64) ** 2) / (2 * s2))
    near = np.exp(-(np.arange(0, math.ceil(40 * sigma) + 2, dtype=np.float64) ** 2) / (2 * s2))
    total = 2.0 * float(near.sum()) - 1.0
    return min(2.0 * float(weights.sum()) / total * (1 + 1e-12) + 1e-300, 1.0)


def _discrete_sigma_for(wanted: Accuracy) -> Fraction:
    """The largest σ whose exact tail beyond the error is at most 1 − confidence. Rounds: down."""
    reach = math.floor(wanted.error)
    allowed = float_down(1 - wanted.confidence)
    held = largest(lambda sigma: discrete_gaussian_tail(Fraction(sigma) ** 2, reach) <= allowed, start=(reach + 1) / 4)
    return rounded_down(held * (1 - 1e-11))
