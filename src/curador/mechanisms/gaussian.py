"""Gaussian noise: on the integers, and on real numbers by a fine grid.

A `Stretch` is one release of it that leaves piece by piece: sequences in which a number may depend on those that left before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeVar

from curador.mechanisms.additive import IntegerNoise, RealNoise, largest_accurate, read_dimension
from curador.mechanisms.calibration import Accuracy, Goal, HasLoss, ScaledNoise, calibrate, find_largest
from curador.mechanisms.grid import (
    decimal_text,
    grid_exponent,
    in_steps,
    power_of_two,
    root_text,
    round_down,
    round_up,
    squared_sensitivity,
    steps_of,
    vector_squares,
)
from curador.numerics.exact import Number, positive, square, whole
from curador.numerics.rounding import float_down, float_up
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import Loss
from curador.privacy.losses import DiscreteGaussianLoss, DiscreteGaussianVectorLoss
from curador.privacy.sensitivity import Norm, Sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.randomness.entropy import Entropy
    from curador.randomness.noise import Noise

G = TypeVar("G", bound=HasLoss)


# ---- noise on real numbers and on integers ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, init=False)
class Gaussian(RealNoise, ScaledNoise):
    """Gaussian noise of standard deviation `sigma` for a real number, or `dimension` of them, of bounded l2 sensitivity.

    Values are rounded to a power-of-two grid of at most σ/2⁴⁰ and discrete Gaussian noise is added on it.

    Claim   The loss is that of discrete Gaussian noise of σ/g grid steps for a shift of ⌈sensitivity/g⌉ steps (a vector: of
            length sensitivity/g + √dimension); it is Δ²/2σ²-zCDP for that Δ, and its δ(ε) is that of ideal Gaussian noise
            within a relative 1e-20.
    Needs   The sensitivity is that of all numbers together, in l2.
    Rounds  The sensitivity in grid steps up.
    Source  [CKS20]; docs/explanation/accounting.md, theorem 8.
    """

    sigma: Fraction
    sensitivity_squared: Fraction
    adjacency: Adjacency | None
    dimension: int
    exponent: int
    table: Noise | None = field(compare=False, repr=False)

    def __init__(self, *, sigma: Number, sensitivity: Number | Sensitivity, dimension: Number = 1) -> None:
        squared, adjacency = squared_sensitivity(sensitivity, Norm.L2)
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "dimension", read_dimension(dimension))
        object.__setattr__(self, "exponent", grid_exponent(self.sigma, squared))
        object.__setattr__(self, "table", None)

    def __repr__(self) -> str:
        numbers = f", dimension={self.dimension}" if self.dimension > 1 else ""
        return f"Gaussian(sigma={decimal_text(self.sigma)}, sensitivity={root_text(self.sensitivity_squared)}{numbers})"

    @property
    def grid(self) -> Fraction:
        """The step of the grid that values and noise live on."""
        return power_of_two(self.exponent)

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        exponent = self.exponent
        sigma2 = square(in_steps(self.sigma, exponent))
        if self.dimension == 1:
            steps = steps_of(self.sensitivity_squared, exponent)
            return DiscreteGaussianLoss(sigma2=sigma2, sensitivity=steps, adjacency=self.adjacency)
        return DiscreteGaussianVectorLoss(
            sigma2=sigma2,
            sensitivity_squared=vector_squares(self.sensitivity_squared, exponent, self.dimension),
            dimension=self.dimension,
            adjacency=self.adjacency,
        )

    def _make_table(self) -> Noise:
        from curador.randomness.noise import gaussian

        return gaussian(in_steps(self.sigma, self.exponent) ** 2)

    @property
    def _moves(self) -> tuple[Norm, int]:
        exponent = self.exponent
        if self.dimension == 1:
            return Norm.L2, steps_of(self.sensitivity_squared, exponent) ** 2
        return Norm.L2, vector_squares(self.sensitivity_squared, exponent, self.dimension)

    @property
    def _shape_rule(self) -> int | None:
        return self.dimension

    def _reach(self, confidence: Fraction) -> int:
        return gaussian_reach(in_steps(self.sigma, self.exponent) ** 2, 1 - confidence)

    def probability(self, steps: int) -> float:
        """Return P[noise = steps grid steps], to display."""
        return gaussian_mass(in_steps(self.sigma, self.exponent) ** 2, steps)

    @property
    def variance(self) -> float:
        """σ²; the grid changes it by less than one part in 10²³. Rounds: up."""
        return float_up(self.sigma * self.sigma)

    @classmethod
    def _at(cls, scale: Fraction, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        return cls(sigma=scale, sensitivity=sensitivity, dimension=dimension)

    @classmethod
    def _accurate(cls, wanted: Accuracy, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        return largest_accurate(cls._maker(sensitivity, dimension), _sigma_for(wanted), wanted)

    @classmethod
    def _least(cls, aim: Goal, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        return _least_noise(cls._maker(sensitivity, dimension), aim, sensitivity)


def _least_noise(make: Callable[[Fraction], G], aim: Goal, sensitivity: Number | Sensitivity) -> G:
    length = math.sqrt(squared_sensitivity(sensitivity, Norm.L2)[0])
    if length == 0.0:
        return make(Fraction(1))
    if aim.rho is not None:
        sigma = round_up(length * math.sqrt(aim.count / (2 * aim.rho)))
        while not aim.reached(make(sigma).loss):  # the grid's rounding costs a little: more noise in proportion
            excess = float(aim.whole_loss(make(sigma).loss).rho / aim.rho)
            sigma = round_up(sigma * max(Fraction(math.sqrt(excess)), 1 + Fraction(1, 10**11)))
        return make(sigma)
    start = length * _first_guess(float(aim.epsilon or 1), float(aim.delta), aim.count, aim.rate)
    return calibrate(make, aim, start)


def _first_guess(epsilon: float, delta: float, count: int, rate: Fraction | None) -> float:
    """σ/sensitivity of the right size; a subsample at rate q behaves about like q√count releases."""
    from curador.errors import InvalidParameter, NumericalFailure
    from curador.privacy.gaussian import gaussian_mu

    if delta <= 0.0:
        raise InvalidParameter.must_be("delta", "above 0 for Gaussian noise", delta, "Laplace noise needs no delta")
    mu = gaussian_mu(epsilon=epsilon, delta=delta)
    if not mu > 0.0:  # the goal is beyond what floats can tell from no release at all
        raise NumericalFailure("no scale of noise reaches the goal")
    if rate is None:
        return math.sqrt(count) / mu
    return max(math.sqrt(count) * float(rate) / mu, 0.3)


def _sigma_for(wanted: Accuracy) -> Fraction:
    """σ = error / z, rounded down, a grid step kept in reserve for rounding the value."""
    from scipy.special import ndtri

    # the tail, not its complement: 1 − confidence keeps its digits however close to 0
    z = -float(ndtri(float_down((1 - wanted.confidence) / 2))) * (1 + 1e-12)
    return round_down(wanted.error / Fraction(z) * (1 - Fraction(1, 2**38)))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(IntegerNoise, ScaledNoise):
    """Discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²), for an integer, or `dimension` of them, of bounded l2 sensitivity.

    Claim   sensitivity²/2σ²-zCDP; the loss record of one integer carries the exact law, that of a vector lies within the
            sandwich of two Gaussians.
    Needs   The sensitivity is that of all integers together, in l2.
    Rounds  The sensitivity of one integer up to a whole number; the square of a vector's down, since it is whole.
    Source  [CKS20]; docs/explanation/accounting.md, theorem 8.
    """

    sigma: Fraction
    squared: int
    adjacency: Adjacency | None
    dimension: int
    table: Noise | None = field(compare=False, repr=False)

    def __init__(self, *, sigma: Number, sensitivity: Number | Sensitivity, dimension: Number = 1) -> None:
        squared, adjacency = squared_sensitivity(sensitivity, Norm.L2)
        numbers = read_dimension(dimension)
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        object.__setattr__(self, "squared", steps_of(squared, 0) ** 2 if numbers == 1 else math.floor(squared))
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "dimension", numbers)
        object.__setattr__(self, "table", None)

    def __repr__(self) -> str:
        numbers = f", dimension={self.dimension}" if self.dimension > 1 else ""
        return f"DiscreteGaussian(sigma={decimal_text(self.sigma)}, sensitivity={root_text(Fraction(self.squared))}{numbers})"

    @property
    def sensitivity(self) -> float:
        """How far the integers may move, in l2."""
        return math.isqrt(self.squared) if self.dimension == 1 else math.sqrt(self.squared)

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        sigma2 = self.sigma * self.sigma
        if self.dimension == 1:
            return DiscreteGaussianLoss(sigma2=sigma2, sensitivity=math.isqrt(self.squared), adjacency=self.adjacency)
        return DiscreteGaussianVectorLoss(
            sigma2=sigma2, sensitivity_squared=self.squared, dimension=self.dimension, adjacency=self.adjacency
        )

    def _make_table(self) -> Noise:
        from curador.randomness.noise import gaussian

        return gaussian(self.sigma**2)

    @property
    def _moves(self) -> tuple[Norm, int]:
        return Norm.L2, self.squared

    @property
    def _shape_rule(self) -> int | None:
        return self.dimension

    def _reach(self, confidence: Fraction) -> int:
        return gaussian_reach(self.sigma**2, 1 - confidence)

    def probability(self, steps: int) -> float:
        """Return P[noise = steps], to display."""
        return gaussian_mass(self.sigma**2, steps)

    @property
    def variance(self) -> float:
        """Σ k² P[k], at most σ². Source: [CKS20]. Rounds: up."""
        sigma2 = float(self.sigma * self.sigma)
        if sigma2 > 100.0:  # equal to σ² within e^(−2π²σ²)
            return float_up(self.sigma * self.sigma)
        weights = [math.exp(-k * k / (2 * sigma2)) for k in range(math.ceil(40 * math.sqrt(sigma2)) + 2)]
        total = weights[0] + 2 * math.fsum(weights[1:])
        margin = 1e-15 * (64.0 + 1.0 / sigma2)  # the first weight's exponent is 1/2σ²
        mean = 2 * math.fsum(k * k * w for k, w in enumerate(weights)) / total * (1 + margin)
        return min(max(mean, math.nextafter(0.0, 1.0)), float_up(self.sigma**2))

    def tail(self, reach: int) -> float:
        """Return P[|noise| > reach]. Rounds: up."""
        return discrete_gaussian_tail(self.sigma * self.sigma, reach)

    @classmethod
    def _at(cls, scale: Fraction, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        return cls(sigma=scale, sensitivity=sensitivity, dimension=dimension)

    @classmethod
    def _accurate(cls, wanted: Accuracy, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        return cls._at(_discrete_sigma_for(wanted), sensitivity, dimension)

    @classmethod
    def _least(cls, aim: Goal, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        make = cls._maker(sensitivity, dimension)
        unit = make(Fraction(1))
        if unit.squared == 0:
            return unit
        moved = math.isqrt(unit.squared) if unit.dimension == 1 else sensitivity
        smooth = _least_noise(lambda sigma: Gaussian(sigma=sigma, sensitivity=moved), aim, moved).sigma
        return make(smooth) if aim.rho is not None else calibrate(make, aim, float(smooth))


def gaussian_mass(sigma2: Fraction, steps: int) -> float:
    """e^(−steps²/2σ²) / Σ_k e^(−k²/2σ²), to nearest."""
    return math.exp(-float(steps * steps / (2 * sigma2))) / gaussian_total(sigma2)


def gaussian_total(sigma2: Fraction) -> float:
    """Σ_k e^(−k²/2σ²) over all integers, to nearest; σ√(2π) within e^(−2π²σ²) of it."""
    if sigma2 >= 4:
        return math.sqrt(2 * math.pi * sigma2)
    return 1.0 + 2.0 * math.fsum(math.exp(-float(k * k / (2 * sigma2))) for k in range(1, 60))


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


def gaussian_reach(sigma2: Fraction, miss: Fraction) -> int:
    """Return w with P[|noise| > w] ≤ miss, the smallest but for round-off and, on fine grids, one step. Rounds: up."""
    from scipy.special import log_ndtr, ndtri_exp

    sigma = math.sqrt(sigma2)
    log_half = math.log(miss.numerator) - math.log(2 * miss.denominator)
    guess = -float(ndtri_exp(log_half)) * sigma
    if sigma >= 1000.0:
        # each mass is at most its integral over the step below it, and the total is at least σ√(2π)
        reach = max(0, math.ceil(Fraction(guess) * (1 + Fraction(1, 1 << 46))))
        while float(log_ndtr(-reach / sigma)) > log_half * (1 + 1e-14) - 1e-14:
            reach += 1 + reach // (1 << 46)
        return reach
    reach = max(0, math.floor(guess))
    allowed = float_down(miss)
    while discrete_gaussian_tail(sigma2, reach) > allowed:
        reach += 1
    while reach and discrete_gaussian_tail(sigma2, reach - 1) <= allowed:
        reach -= 1
    return reach


def _discrete_sigma_for(wanted: Accuracy) -> Fraction:
    """The largest σ whose exact tail beyond the error is at most 1 − confidence. Rounds: down."""
    reach = math.floor(wanted.error)
    allowed = float_down(1 - wanted.confidence)
    held = find_largest(lambda sigma: discrete_gaussian_tail(Fraction(sigma) ** 2, reach) <= allowed, start=(reach + 1) / 4)
    return round_down(held * (1 - 1e-11))


# ---- one release that leaves piece by piece --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """The next integers y_t of a sequence y_0, y_1, … that is accounted as one release of `noise`.

    Claim   y_t = f_t(data, y_0 … y_{t−1}) + noise costs one release of `noise`, all stretches together, if for every record
            there are fixed numbers l_t with Σ l_t² ≤ its sensitivity², such that a neighbour moves f_t by at most l_t in l2,
            whatever y_0 … y_{t−1} were.
    Proof   Up to factors that the loss accounts for, discrete noise is a post-processing of normal noise entry by entry
            (docs/explanation/accounting.md, theorem 8), so each y_t is at distance μ_t = l_t/σ or less given its past; such
            releases, composed one after the other, are at distance √Σ μ_t² ≤ sensitivity/σ.
    Needs   No more integers in all than the dimension of `noise`. Laplace noise does not add up by squares.

    name    which sequence of a run it is; what has the same name is one
    """

    noise: DiscreteGaussian
    name: str

    @property
    def loss(self) -> Loss:
        """What the whole sequence costs."""
        return self.noise.loss

    def draw(self, value: Any, source: Entropy, size: int | None = None) -> Any:
        """Add noise to the next integers."""
        return self.noise.draw(value, source, size)

    def within(self, one: Any, other: Any) -> bool:
        """Whether two sequences, or what is known of them, differ by no more than the declared sensitivity."""
        return self.noise.within(one, other)
