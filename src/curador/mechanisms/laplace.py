"""Laplace noise: on the integers, and on real numbers by a fine grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

from curador.mechanisms.additive import IntegerNoise, Plan, RealNoise, checked_dimension, kept
from curador.mechanisms.parameters import (
    Accuracy,
    Goal,
    accuracy_goal,
    decimal,
    goal,
    grid_exponent,
    in_steps,
    power_of_two,
    rounded_down,
    settled,
    steps_of,
    vector_steps,
    written,
)
from curador.mechanisms.search import largest, smallest_scale
from curador.numerics.exact import Number, positive
from curador.numerics.rounding import float_down, float_up, up
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import Loss, Scheme
from curador.privacy.losses import DiscreteLaplaceLoss
from curador.privacy.sensitivity import Norm, Sensitivity


@dataclass(frozen=True, slots=True, init=False)
class Laplace(RealNoise):
    """Laplace noise of the given scale for a real number, or `dimension` of them, of bounded l1 sensitivity.

    Values are rounded to a power-of-two grid of at most scale/2⁴⁰ and discrete Laplace noise is added on it.

    Claim   ε-private with ε = (⌈sensitivity/g⌉ + dimension − 1) g / scale, exactly; for one number, sensitivity/scale where g
            divides the sensitivity. A vector loses no more than one number that moves as far.
    Needs   The sensitivity is that of all numbers together, in l1.
    Rounds  The sensitivity in grid steps up.
    Source  [GRS09]; docs/explanation/accounting.md, theorem 9, for vectors.
    """

    scale: Fraction
    sensitivity_squared: Fraction
    relation: Adjacency | None
    dimension: int
    plan: Plan | None = field(compare=False, repr=False)

    def __init__(self, *, scale: Number, sensitivity: Number | Sensitivity, dimension: Number = 1) -> None:
        squared, relation = settled(sensitivity, Norm.L1)
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "relation", relation)
        object.__setattr__(self, "dimension", checked_dimension(dimension))
        object.__setattr__(self, "plan", None)

    def __repr__(self) -> str:
        numbers = f", dimension={self.dimension}" if self.dimension > 1 else ""
        return f"Laplace(scale={decimal(self.scale)}, sensitivity={written(self.sensitivity_squared)}{numbers})"

    @property
    def _exponent(self) -> int:
        return grid_exponent(self.scale, self.sensitivity_squared)

    @property
    def grid(self) -> Fraction:
        """The step of the grid that values and noise live on."""
        return power_of_two(self._exponent)

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        exponent = self._exponent
        steps = vector_steps(self.sensitivity_squared, exponent, self.dimension)
        return DiscreteLaplaceLoss(scale=in_steps(self.scale, exponent), sensitivity=steps, relation=self.relation)

    def _make_plan(self) -> Plan:
        from curador.randomness.noise import laplace

        return Plan(self._exponent, laplace(in_steps(self.scale, self._exponent)))

    @property
    def _moves(self) -> tuple[Norm, int]:
        return Norm.L1, vector_steps(self.sensitivity_squared, self._exponent, self.dimension) ** 2

    @property
    def _shape_rule(self) -> int | None:
        return self.dimension

    def _reach(self, confidence: Fraction) -> int:
        return laplace_reach(in_steps(self.scale, self._exponent), 1 - confidence)

    def probability(self, steps: int) -> float:
        """Return P[noise = steps grid steps], to display."""
        return laplace_mass(in_steps(self.scale, self._exponent), steps)

    @property
    def variance(self) -> float:
        """2 scale²: that of the noise drawn is smaller by less than one part in 10²³, since sinh x ≥ x. Rounds: up."""
        return float_up(2 * self.scale * self.scale)

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
        dimension: Number = 1,
    ) -> Self:
        """Return the mechanism with the least noise that reaches epsilon (at delta, if given) or rho after `count` releases.

        With accuracy: the one with the most noise whose error is at most `accuracy` with probability `confidence`.
        """
        if accuracy is not None:
            wanted = accuracy_goal(accuracy, confidence, epsilon=epsilon, delta=delta, rho=rho, rate=rate)

            def sized(scale: Fraction) -> Self:
                return cls(scale=scale, sensitivity=sensitivity, dimension=dimension)

            return kept(sized, _scale_for(wanted), wanted)
        aim = goal(epsilon=epsilon, delta=delta, rho=rho, count=count, rate=rate, scheme=scheme, adjacency=adjacency)
        squared, _ = settled(sensitivity, Norm.L1)
        if squared == 0:
            return cls(scale=1, sensitivity=sensitivity, dimension=dimension)
        if aim.epsilon is not None and aim.delta == 0 and aim.rate is None:
            scale = _pure_scale(aim, squared, checked_dimension(dimension))
            return cls(scale=scale, sensitivity=sensitivity, dimension=dimension)
        start = math.sqrt(squared) * _first_guess(aim)

        def loss_at(trial: Fraction) -> Loss:
            return cls(scale=trial, sensitivity=sensitivity, dimension=dimension).loss

        return cls(scale=smallest_scale(aim, loss_at, start=start), sensitivity=sensitivity, dimension=dimension)


def _pure_scale(aim: Goal, squared: Fraction, dimension: int) -> Fraction:
    """count · sensitivity / ε, the sensitivity in whole grid steps: the pure goal is met exactly."""
    epsilon = aim.epsilon or Fraction(1)
    scale = Fraction(math.sqrt(squared)) * aim.count / epsilon
    while True:  # until the grid that the scale asks for is the one it was computed on; a coarser grid never asks for a finer
        exponent = grid_exponent(scale, squared)
        scale = vector_steps(squared, exponent, dimension) * power_of_two(exponent) * aim.count / epsilon
        if grid_exponent(scale, squared) <= exponent:
            return scale


def _first_guess(aim: Goal) -> float:
    """scale/sensitivity of the right size."""
    if aim.rho is not None:
        return math.sqrt(aim.count / (2 * float(aim.rho)))
    epsilon, delta = float(aim.epsilon or 1), float(aim.delta)
    whole = aim.count / epsilon
    if delta == 0.0:
        return whole
    root = math.sqrt(aim.count * 2 * math.log(1 / delta)) / epsilon
    return min(whole, root) * (1.0 if aim.rate is None else max(float(aim.rate), 0.02))


def _scale_for(wanted: Accuracy) -> Fraction:
    """error / log(1/(1 − confidence)), rounded down, a grid step kept in reserve for rounding the value."""
    log_tail = up(-math.log(float_down(1 - wanted.confidence)), 8)
    return rounded_down(Fraction(float_down(wanted.error) / log_tail) * (1 - Fraction(1, 2**38)))


def discrete_variance(scale: Fraction) -> float:
    """2r/(1 − r)² with r = e^(−1/scale), that is 1/(2 sinh²(1/2scale)). Rounds: up."""
    half = float(1 / (2 * scale)) if scale > Fraction(1, 1400) else math.inf
    if half > 350.0:
        return math.nextafter(0.0, 1.0) if half > 375.0 else 4 * math.exp(-2 * half)
    return 0.5 / math.sinh(half) ** 2 * (1 + 1e-15 * (16 + 2 * half))


def laplace_mass(scale: Fraction, steps: int) -> float:
    """tanh(1/2scale) e^(−|steps|/scale), to nearest."""
    return math.tanh(float(1 / (2 * scale))) * math.exp(-float(abs(steps) / scale))


def laplace_tail(scale: Fraction, reach: int) -> float:
    """Return P[|noise| > reach] = 2 r^(reach+1)/(1 + r), r = e^(−1/scale). Rounds: up."""
    inverse = float(1 / scale)
    exponent = float((reach + 1) / scale)
    return min(2.0 * math.exp(-exponent) / (1.0 + math.exp(-inverse)) * (1 + 1e-15 * (16 + exponent)) + 1e-300, 1.0)


def laplace_reach(scale: Fraction, miss: Fraction) -> int:
    """Return w with P[|noise| > w] ≤ miss, the smallest but for round-off.

    Claim   w + 1 ≥ scale · log(2/((1 + r) miss)) is the condition, solved with the logarithm rounded up. Rounds: up.
    """
    inverse = float(1 / scale) if scale > Fraction(1, 700) else math.inf
    log_miss = math.log(miss.numerator) - math.log(miss.denominator)
    needed = math.log(2.0) - math.log1p(math.exp(-inverse)) - log_miss
    slack = 8 * (math.ulp(math.log(miss.denominator) + 1.0) + math.ulp(needed))
    if needed + slack <= 0.0:
        return 0
    return max(0, math.ceil(scale * Fraction(needed + slack)) - 1)


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(IntegerNoise):
    """Discrete Laplace (two-sided geometric) noise, P[k] ∝ exp(−|k|/scale), for integers of bounded l1 sensitivity.

    A value is one integer or an array of any shape; the sensitivity is that of the whole array.

    Claim   ε-private with ε = sensitivity/scale, exactly. A vector loses no more than one integer that moves as far.
    Source  [GRS09]; docs/explanation/accounting.md, theorem 9, for vectors.
    """

    scale: Fraction
    sensitivity: int
    relation: Adjacency | None
    plan: Plan | None = field(compare=False, repr=False)

    def __init__(self, *, scale: Number, sensitivity: Number | Sensitivity) -> None:
        squared, relation = settled(sensitivity, Norm.L1)
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity", steps_of(squared, 0))
        object.__setattr__(self, "relation", relation)
        object.__setattr__(self, "plan", None)

    def __repr__(self) -> str:
        return f"DiscreteLaplace(scale={decimal(self.scale)}, sensitivity={self.sensitivity})"

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        return DiscreteLaplaceLoss(scale=self.scale, sensitivity=self.sensitivity, relation=self.relation)

    @property
    def variance(self) -> float:
        """2r/(1 − r)², r = e^(−1/scale). Rounds: up."""
        return discrete_variance(self.scale)

    def tail(self, reach: int) -> float:
        """Return P[|noise| > reach]. Rounds: up."""
        return laplace_tail(self.scale, reach)

    def _make_plan(self) -> Plan:
        from curador.randomness.noise import laplace

        return Plan(0, laplace(self.scale))

    @property
    def _moves(self) -> tuple[Norm, int]:
        return Norm.L1, self.sensitivity**2

    def _reach(self, confidence: Fraction) -> int:
        return laplace_reach(self.scale, 1 - confidence)

    def probability(self, steps: int) -> float:
        """Return P[noise = steps], to display."""
        return laplace_mass(self.scale, steps)

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
            return cls(scale=_discrete_scale_for(wanted), sensitivity=sensitivity)
        aim = goal(epsilon=epsilon, delta=delta, rho=rho, count=count, rate=rate, scheme=scheme, adjacency=adjacency)
        shift = cls(scale=1, sensitivity=sensitivity).sensitivity
        if shift == 0:
            return cls(scale=1, sensitivity=sensitivity)
        if aim.epsilon is not None and aim.delta == 0 and aim.rate is None:
            return cls(scale=shift * aim.count / aim.epsilon, sensitivity=sensitivity)
        start = shift * _first_guess(aim)
        scale = smallest_scale(aim, lambda trial: cls(scale=trial, sensitivity=sensitivity).loss, start=start)
        return cls(scale=scale, sensitivity=sensitivity)


def _discrete_scale_for(wanted: Accuracy) -> Fraction:
    """The largest scale whose exact tail beyond the error is at most 1 − confidence. Rounds: down."""
    reach = math.floor(wanted.error)
    allowed = float_down(1 - wanted.confidence)
    held = largest(
        lambda scale: DiscreteLaplace(scale=Fraction(scale), sensitivity=1).tail(reach) <= allowed, start=(reach + 1) / 4
    )
    return rounded_down(held * (1 - 1e-11))
