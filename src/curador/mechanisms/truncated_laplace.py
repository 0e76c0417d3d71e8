"""Laplace noise that never exceeds a bound; what the bound costs is a δ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np

from curador.errors import require
from curador.mechanisms.additive import Plan, RealNoise
from curador.mechanisms.grid import refused
from curador.mechanisms.laplace import laplace_mass
from curador.mechanisms.parameters import decimal, grid_exponent, in_steps, power_of_two, settled, steps_of, written
from curador.mechanisms.tails import Enclosed, exponential, first_whole, recorded
from curador.numerics.exact import Number, open_probability, positive
from curador.numerics.rounding import float_up
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import Loss
from curador.privacy.losses import Approx
from curador.privacy.sensitivity import Norm, Sensitivity
from curador.randomness.bernoulli import bernoulli_exp
from curador.randomness.noise import laplace
from curador.randomness.uniform import below

if TYPE_CHECKING:
    from curador.randomness.entropy import Entropy, IntArray

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
    relation: Adjacency | None
    plan: Plan | None = field(compare=False, repr=False)

    def __init__(self, *, scale: Number, reach: Number, sensitivity: Number | Sensitivity) -> None:
        squared, relation = settled(sensitivity, Norm.L1)
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "relation", relation)
        require(in_steps(self.scale, self._exponent) <= _MOST_STEPS, "scale", "at most 2^40 sensitivities", scale)
        steps = math.floor(in_steps(positive(reach, "reach"), self._exponent))
        object.__setattr__(self, "reach", steps * self.grid)
        require(steps >= self._width, "reach", "at least the sensitivity", reach)
        object.__setattr__(self, "plan", None)

    def __repr__(self) -> str:
        return (
            f"TruncatedLaplace(scale={decimal(self.scale)}, reach={float(self.reach):.15g}, "
            f"sensitivity={written(self.sensitivity_squared)})"
        )

    @property
    def _exponent(self) -> int:
        return grid_exponent(self.scale, self.sensitivity_squared)

    @property
    def grid(self) -> Fraction:
        """The step of the grid that values and noise live on."""
        return power_of_two(self._exponent)

    @property
    def _width(self) -> int:
        return steps_of(self.sensitivity_squared, self._exponent)

    @property
    def epsilon(self) -> Fraction:
        """The sensitivity, in whole steps, over the scale."""
        return self._width * self.grid / self.scale

    @property
    def delta(self) -> Fraction:
        """What lies within one sensitivity of an end, as small as it is. Rounds: up, by a relative 2⁻⁹⁰ at most."""
        return _lost(in_steps(self.scale, self._exponent), int(self.reach / self.grid), self._width)

    @property
    def loss(self) -> Loss:
        """What one release costs; its δ is at least 1e-300."""
        return Approx(epsilon=self.epsilon, delta=recorded(self.delta), relation=self.relation)

    @property
    def variance(self) -> float:
        """Of the noise drawn. Rounds: up."""
        scale, reach = in_steps(self.scale, self._exponent), int(self.reach / self.grid)
        r, last = exponential(1 / scale, 800).upper, exponential((reach + 1) / scale, 800).upper
        squares = r * (1 + r) - last * ((reach + 1) ** 2 - (2 * reach * reach + 2 * reach - 1) * r + reach * reach * r * r)
        exact = 2 * squares / (1 - r) ** 3 / (1 + 2 * (r - last) / (1 - r))
        return float_up(exact * self.grid**2 * (1 + Fraction(1, 1 << 90)))

    def probability(self, steps: int) -> float:
        """Return P[noise = steps grid steps], to display."""
        if abs(steps) * self.grid > self.reach:
            return 0.0
        cut = -math.expm1(-float((self.reach + self.grid) / self.scale))
        return laplace_mass(in_steps(self.scale, self._exponent), steps) / cut

    def _make_plan(self) -> Plan:
        return Plan(self._exponent, laplace(in_steps(self.scale, self._exponent)))

    @property
    def _moves(self) -> tuple[Norm, int]:
        return Norm.L1, self._width**2

    def _check_size(self, size: int) -> None:
        if size != 1:
            hint = "use Laplace with dimension=; each number's end would cost a delta of its own"
            raise refused("value", "one number", f"{size} numbers", hint)

    def _noise(self, size: int, source: Entropy) -> IntArray:
        """Discrete Laplace noise, drawn again, place by place, until it is inside; a short reach by uniform proposals.

        Claim   Exact: rejection keeps the law inside. At least a third of the proposals is taken.
        """
        scale, reach = in_steps(self.scale, self._exponent), min(int(self.reach / self.grid), _FARTHEST)
        out, todo = np.empty(size, np.int64), np.arange(size)
        while len(todo):
            if reach < scale:
                noise = below(2 * reach + 1, len(todo), source) - reach
                inside = bernoulli_exp(np.abs(noise), 1 / scale, source)
            else:
                noise = self._planned.noise.several(len(todo), source)
                inside = np.abs(noise) <= reach
            out[todo[inside]] = noise[inside]
            todo = todo[~inside]
        return out

    def _one(self, source: Entropy) -> int:
        return int(self._noise(1, source)[0])

    def _reach(self, confidence: Fraction) -> int:
        scale, reach = in_steps(self.scale, self._exponent), int(self.reach / self.grid)
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
        squared, _ = settled(sensitivity, Norm.L1)
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
