"""Laplace noise: on the integers, on real numbers by a fine grid, and noise that never exceeds a bound.

What the bound of truncated noise costs is a δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np

from curador.errors import require
from curador.mechanisms.additive import IntegerNoise, RealNoise, largest_accurate, read_dimension
from curador.mechanisms.calibration import Accuracy, Goal, ScaledNoise, calibrate, find_largest
from curador.mechanisms.grid import (
    decimal_text,
    grid_exponent,
    in_steps,
    power_of_two,
    refusal_of_value,
    root_text,
    round_down,
    squared_sensitivity,
    steps_of,
    vector_steps,
)
from curador.mechanisms.tails import Enclosed, delta_for_record, exponential, first_whole
from curador.numerics.exact import Number, open_probability, positive
from curador.numerics.rounding import float_down, float_up, up
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import Loss
from curador.privacy.losses import Approx, DiscreteLaplaceLoss
from curador.privacy.sensitivity import Norm, Sensitivity
from curador.randomness.choice import below, bernoulli_exp
from curador.randomness.noise import laplace

if TYPE_CHECKING:
    from curador.randomness.entropy import Entropy, IntArray
    from curador.randomness.noise import Noise


# ---- noise of any size -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, init=False)
class Laplace(RealNoise, ScaledNoise):
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
    adjacency: Adjacency | None
    dimension: int
    exponent: int
    table: Noise | None = field(compare=False, repr=False)

    def __init__(self, *, scale: Number, sensitivity: Number | Sensitivity, dimension: Number = 1) -> None:
        squared, adjacency = squared_sensitivity(sensitivity, Norm.L1)
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "dimension", read_dimension(dimension))
        object.__setattr__(self, "exponent", grid_exponent(self.scale, squared))
        object.__setattr__(self, "table", None)

    def __repr__(self) -> str:
        numbers = f", dimension={self.dimension}" if self.dimension > 1 else ""
        return f"Laplace(scale={decimal_text(self.scale)}, sensitivity={root_text(self.sensitivity_squared)}{numbers})"

    @property
    def grid(self) -> Fraction:
        """The step of the grid that values and noise live on."""
        return power_of_two(self.exponent)

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        exponent = self.exponent
        steps = vector_steps(self.sensitivity_squared, exponent, self.dimension)
        return DiscreteLaplaceLoss(scale=in_steps(self.scale, exponent), sensitivity=steps, adjacency=self.adjacency)

    def _make_table(self) -> Noise:
        from curador.randomness.noise import laplace

        return laplace(in_steps(self.scale, self.exponent))

    @property
    def _moves(self) -> tuple[Norm, int]:
        return Norm.L1, vector_steps(self.sensitivity_squared, self.exponent, self.dimension) ** 2

    @property
    def _shape_rule(self) -> int | None:
        return self.dimension

    def _reach(self, confidence: Fraction) -> int:
        return laplace_reach(in_steps(self.scale, self.exponent), 1 - confidence)

    def probability(self, steps: int) -> float:
        """Return P[noise = steps grid steps], to display."""
        return laplace_mass(in_steps(self.scale, self.exponent), steps)

    @property
    def variance(self) -> float:
        """2 scale²: that of the noise drawn is smaller by less than one part in 10²³, since sinh x ≥ x. Rounds: up."""
        return float_up(2 * self.scale * self.scale)

    @classmethod
    def _at(cls, scale: Fraction, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        return cls(scale=scale, sensitivity=sensitivity, dimension=dimension)

    @classmethod
    def _accurate(cls, wanted: Accuracy, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        return largest_accurate(cls._maker(sensitivity, dimension), _scale_for(wanted), wanted)

    @classmethod
    def _least(cls, aim: Goal, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        make = cls._maker(sensitivity, dimension)
        squared, _ = squared_sensitivity(sensitivity, Norm.L1)
        if squared == 0:
            return make(Fraction(1))
        if aim.epsilon is not None and aim.delta == 0 and aim.rate is None:
            return make(_pure_scale(aim, squared, read_dimension(dimension)))
        return calibrate(make, aim, math.sqrt(squared) * _first_guess(aim))


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
    return round_down(Fraction(float_down(wanted.error) / log_tail) * (1 - Fraction(1, 2**38)))


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
class DiscreteLaplace(IntegerNoise, ScaledNoise):
    """Discrete Laplace (two-sided geometric) noise, P[k] ∝ exp(−|k|/scale), for integers of bounded l1 sensitivity.

    A value is one integer or an array of any shape; the sensitivity is that of the whole array.

    Claim   ε-private with ε = sensitivity/scale, exactly. A vector loses no more than one integer that moves as far.
    Source  [GRS09]; docs/explanation/accounting.md, theorem 9, for vectors.
    """

    scale: Fraction
    sensitivity: int
    adjacency: Adjacency | None
    table: Noise | None = field(compare=False, repr=False)

    def __init__(self, *, scale: Number, sensitivity: Number | Sensitivity) -> None:
        squared, adjacency = squared_sensitivity(sensitivity, Norm.L1)
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity", steps_of(squared, 0))
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "table", None)

    def __repr__(self) -> str:
        return f"DiscreteLaplace(scale={decimal_text(self.scale)}, sensitivity={self.sensitivity})"

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        return DiscreteLaplaceLoss(scale=self.scale, sensitivity=self.sensitivity, adjacency=self.adjacency)

    @property
    def variance(self) -> float:
        """2r/(1 − r)², r = e^(−1/scale). Rounds: up."""
        return discrete_variance(self.scale)

    def tail(self, reach: int) -> float:
        """Return P[|noise| > reach]. Rounds: up."""
        return laplace_tail(self.scale, reach)

    def _make_table(self) -> Noise:
        from curador.randomness.noise import laplace

        return laplace(self.scale)

    @property
    def _moves(self) -> tuple[Norm, int]:
        return Norm.L1, self.sensitivity**2

    def _reach(self, confidence: Fraction) -> int:
        return laplace_reach(self.scale, 1 - confidence)

    def probability(self, steps: int) -> float:
        """Return P[noise = steps], to display."""
        return laplace_mass(self.scale, steps)

    @classmethod
    def _at(cls, scale: Fraction, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        read_dimension(dimension)  # any: arrays of every shape cost the same
        return cls(scale=scale, sensitivity=sensitivity)

    @classmethod
    def _accurate(cls, wanted: Accuracy, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        return cls._at(_discrete_scale_for(wanted), sensitivity, dimension)

    @classmethod
    def _least(cls, aim: Goal, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        make = cls._maker(sensitivity, dimension)
        unit = make(Fraction(1))
        if unit.sensitivity == 0:
            return unit
        if aim.epsilon is not None and aim.delta == 0 and aim.rate is None:
            return make(unit.sensitivity * aim.count / aim.epsilon)
        return calibrate(make, aim, unit.sensitivity * _first_guess(aim))


def _discrete_scale_for(wanted: Accuracy) -> Fraction:
    """The largest scale whose exact tail beyond the error is at most 1 − confidence. Rounds: down."""
    reach = math.floor(wanted.error)
    allowed = float_down(1 - wanted.confidence)
    held = find_largest(
        lambda scale: DiscreteLaplace(scale=Fraction(scale), sensitivity=1).tail(reach) <= allowed, start=(reach + 1) / 4
    )
    return round_down(held * (1 - 1e-11))


# ---- noise that never exceeds a bound --------------------------------------------------------------------------------------


_MOST_STEPS = 1 << 51
_FARTHEST = 1 << 62


@dataclass(frozen=True, slots=True, init=False)
class TruncatedLaplace(RealNoise):
    """Laplace noise of the given scale, given that it is at most `reach` in size, for one real number.

    Values are rounded to a power-of-two grid of at most scale/2⁴⁰; on it the noise is discrete Laplace given |k| ≤ A.

    Claim   (ε, δ)-private with ε = D/scale and δ = Σ P[k] over A − D < k ≤ A, D and scale in steps. Of two inputs s ≤ D steps
            apart, what one can give and the other not are s values at one end, of mass at most δ; on the others the
            probabilities differ by e^(s/scale) at most. So P(S) ≤ δ + e^ε P′(S).
    Needs   One number: a vector's ends would be reached by each of its numbers. reach ≥ sensitivity.
    Rounds  The sensitivity in grid steps up, the reach down, δ up.
    Source  [GDGK20]
    """

    scale: Fraction
    reach: Fraction
    sensitivity_squared: Fraction
    adjacency: Adjacency | None
    exponent: int
    table: Noise | None = field(compare=False, repr=False)

    def __init__(self, *, scale: Number, reach: Number, sensitivity: Number | Sensitivity) -> None:
        squared, adjacency = squared_sensitivity(sensitivity, Norm.L1)
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "exponent", grid_exponent(self.scale, squared))
        require(in_steps(self.scale, self.exponent) <= _MOST_STEPS, "scale", "at most 2^40 sensitivities", scale)
        steps = math.floor(in_steps(positive(reach, "reach"), self.exponent))
        object.__setattr__(self, "reach", steps * self.grid)
        require(steps >= self._width, "reach", "at least the sensitivity", reach)
        object.__setattr__(self, "table", None)

    def __repr__(self) -> str:
        return (
            f"TruncatedLaplace(scale={decimal_text(self.scale)}, reach={float(self.reach):.15g}, "
            f"sensitivity={root_text(self.sensitivity_squared)})"
        )

    @property
    def grid(self) -> Fraction:
        """The step of the grid that values and noise live on."""
        return power_of_two(self.exponent)

    @property
    def _width(self) -> int:
        return steps_of(self.sensitivity_squared, self.exponent)

    @property
    def epsilon(self) -> Fraction:
        """The sensitivity, in whole steps, over the scale."""
        return self._width * self.grid / self.scale

    @property
    def delta(self) -> Fraction:
        """What lies within one sensitivity of an end, as small as it is. Rounds: up, by a relative 2⁻⁹⁰ at most."""
        return _lost(in_steps(self.scale, self.exponent), int(self.reach / self.grid), self._width)

    @property
    def loss(self) -> Loss:
        """What one release costs; its δ is at least 1e-300."""
        return Approx(epsilon=self.epsilon, delta=delta_for_record(self.delta), adjacency=self.adjacency)

    @property
    def variance(self) -> float:
        """Of the noise drawn. Rounds: up."""
        scale, reach = in_steps(self.scale, self.exponent), int(self.reach / self.grid)
        r, last = exponential(1 / scale, 800).upper, exponential((reach + 1) / scale, 800).upper
        squares = r * (1 + r) - last * ((reach + 1) ** 2 - (2 * reach * reach + 2 * reach - 1) * r + reach * reach * r * r)
        exact = 2 * squares / (1 - r) ** 3 / (1 + 2 * (r - last) / (1 - r))
        return float_up(exact * self.grid**2 * (1 + Fraction(1, 1 << 90)))

    def probability(self, steps: int) -> float:
        """Return P[noise = steps grid steps], to display."""
        if abs(steps) * self.grid > self.reach:
            return 0.0
        cut = -math.expm1(-float((self.reach + self.grid) / self.scale))
        return laplace_mass(in_steps(self.scale, self.exponent), steps) / cut

    def _make_table(self) -> Noise:
        return laplace(in_steps(self.scale, self.exponent))

    @property
    def _moves(self) -> tuple[Norm, int]:
        return Norm.L1, self._width**2

    def _check_size(self, size: int) -> None:
        if size != 1:
            hint = "use Laplace with dimension=; each number's end would cost a delta of its own"
            raise refusal_of_value("value", "one number", f"{size} numbers", hint)

    def _noise(self, size: int, source: Entropy) -> tuple[IntArray, bool]:
        """Discrete Laplace noise, drawn again, place by place, until it is inside; a short reach by uniform proposals.

        Claim   Exact: rejection keeps the law inside. At least a third of the proposals is taken.
        """
        scale, reach = in_steps(self.scale, self.exponent), min(int(self.reach / self.grid), _FARTHEST)
        out, todo = np.empty(size, np.int64), np.arange(size)
        while len(todo):
            if reach < scale:
                noise = below(2 * reach + 1, len(todo), source) - reach
                inside = bernoulli_exp(np.abs(noise), 1 / scale, source)
            else:
                noise = self._table.several(len(todo), source)
                inside = np.abs(noise) <= reach
            out[todo[inside]] = noise[inside]
            todo = todo[~inside]
        return out, False

    def _one(self, source: Entropy) -> int:
        return int(self._noise(1, source)[0][0])

    def _reach(self, confidence: Fraction) -> int:
        scale, reach = in_steps(self.scale, self.exponent), int(self.reach / self.grid)
        allowed = 1 - confidence
        ratio, last, whole = exponential(1 / scale), exponential((reach + 1) / scale), _whole(scale, reach)

        def holds(near: int) -> bool:
            outside = (exponential((near + 1) / scale).upper - last.lower) / (1 - ratio.upper)
            return near >= reach or 2 * outside <= allowed * whole.lower

        return first_whole(holds, min(int(scale * Fraction(math.log(1 / float(allowed)))), reach))

    @classmethod
    def calibrate(cls, *, epsilon: Number, delta: Number, sensitivity: Number | Sensitivity) -> Self:
        """Return the mechanism of scale sensitivity/epsilon with the shortest reach that is (epsilon, delta)-private."""
        wanted, allowed = positive(epsilon, "epsilon"), open_probability(delta, "delta")
        squared, _ = squared_sensitivity(sensitivity, Norm.L1)
        require(squared > 0, "sensitivity", "positive", 0)
        scale = _scale(wanted, squared)
        exponent = grid_exponent(scale, squared)
        width, steps = steps_of(squared, exponent), in_steps(scale, exponent)
        require(steps <= _MOST_STEPS, "epsilon", "at least 2^-40", epsilon)
        # between the steps δ = (e^ε − 1)/(2(e^(A/scale) − 1)): a guess, from logarithms since both may leave the floats
        log = float(wanted) + math.log(-math.expm1(-float(wanted))) - math.log(2)
        log += math.log(allowed.denominator) - math.log(allowed.numerator)
        guess = int(steps * Fraction(log + math.log1p(math.exp(-log)) if log > 0 else math.log1p(math.exp(log))))
        reach = first_whole(lambda far: _lost(steps, far, width) <= allowed, guess, least=width)
        return cls(scale=scale, reach=reach * power_of_two(exponent), sensitivity=sensitivity)


def _scale(epsilon: Fraction, squared: Fraction) -> Fraction:
    """sensitivity / ε, the sensitivity in whole steps of a grid that is no coarser than the scale's own."""
    scale = Fraction(math.sqrt(squared)) / epsilon
    while True:
        exponent = grid_exponent(scale, squared)
        scale = steps_of(squared, exponent) * power_of_two(exponent) / epsilon
        if grid_exponent(scale, squared) <= exponent:
            return scale


def _whole(scale: Fraction, reach: int) -> Enclosed:
    """Σ e^(−|k|/scale) over |k| ≤ reach."""
    ratio, last = exponential(1 / scale), exponential((reach + 1) / scale)
    return Enclosed(
        1 + 2 * (ratio.lower - last.upper) / (1 - ratio.lower),
        1 + 2 * (ratio.upper - last.lower) / (1 - ratio.upper),
    )


def _lost(scale: Fraction, reach: int, width: int) -> Fraction:
    """P[reach − width < N ≤ reach]. Rounds: up."""
    if width == 0:
        return Fraction(0)
    ratio = exponential(1 / scale)
    first, across = exponential((reach - width + 1) / scale), exponential(width / scale)
    return first.upper * (1 - across.lower) / (1 - ratio.upper) / _whole(scale, reach).lower
