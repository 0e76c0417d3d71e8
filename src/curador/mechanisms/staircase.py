"""Staircase noise: the least expected error that ε allows to one number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from curador.errors import InvalidParameter, require
from curador.mechanisms.additive import RealNoise
from curador.mechanisms.calibration import find_largest, read_accuracy
from curador.mechanisms.grid import (
    GRID_BITS,
    decimal_text,
    floor_log2,
    power_of_two,
    refusal_of_value,
    root_text,
    round_up,
    squared_sensitivity,
    steps_of,
)
from curador.mechanisms.tails import exponential, first_whole
from curador.numerics.exact import Number, positive, probability, whole
from curador.numerics.rounding import float_up
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import Loss
from curador.privacy.losses import Pure
from curador.privacy.sensitivity import Norm, Sensitivity
from curador.randomness.choice import Choice, below
from curador.randomness.noise import geometric

if TYPE_CHECKING:
    from curador.randomness.entropy import Entropy, IntArray
    from curador.randomness.noise import Noise

_TRIED = 64
_LEAST_STEPS_BITS = 10
_MOST_STEPS = 1 << 51


class _Stairs(NamedTuple):
    """P[k] ∝ e^(−ε L(|k|)), L(i) = ⌊i/width⌋, one more where i mod width ≥ first."""

    epsilon: Fraction
    width: int
    first: int

    def moment(self, power: int) -> Fraction:
        """E|N|^power for power 0, 1, 2, within a relative 2⁻¹⁰⁰; power 0 gives the sum of all weights."""
        fall = exponential(self.epsilon, 256).upper
        flat = [_powers(self.first, p) + fall * (_powers(self.width, p) - _powers(self.first, p)) for p in range(3)]
        left = 1 - fall
        runs = [1 / left, fall / left**2, fall * (1 + fall) / left**3]  # Σ j^p e^(−jε)
        total = 2 * flat[0] * runs[0] - 1
        if power == 0:
            return total
        sums = sum(math.comb(power, p) * self.width**p * runs[p] * flat[power - p] for p in range(power + 1))
        return 2 * sums / total

    def beyond(self, reach: int) -> Fraction:
        """P[|N| > reach]. Rounds: up."""
        block, offset = divmod(reach + 1, self.width)
        fall, fallen = exponential(self.epsilon), exponential(block * self.epsilon).upper
        second = fall.upper * (self.width - max(offset, self.first))
        here = max(self.first - offset, 0) + second
        flat = self.first + fall.upper * (self.width - self.first)
        weight = fallen * (here + fall.upper * flat / (1 - fall.upper))
        total = 2 * (self.first + fall.lower * (self.width - self.first)) / (1 - fall.lower) - 1
        return min(2 * weight / total, Fraction(1))


def _powers(count: int, power: int) -> int:
    """0^p + 1^p + … + (count − 1)^p for p = 0, 1, 2."""
    return (count, count * (count - 1) // 2, (count - 1) * count * (2 * count - 1) // 6)[power]


@dataclass(frozen=True, slots=True, init=False)
class Staircase(RealNoise):
    """Noise that falls by e^(−ε) once in every stretch of one sensitivity, for one real number.

    Values are rounded to a power-of-two grid, 2⁻⁴⁰ of the noise unless `grid` says otherwise; grid=1 is for integers. With
    gamma, the share of a stretch before the fall, at 1/(1 + e^(ε/2)) the expected |error| is the smallest of all additive
    ε-private noise; against Laplace's it wins nothing for small ε and much for large.

    Claim   ε-private. P[N = k] ∝ e^(−ε L(|k|)) with L non-decreasing on 0, 1, 2, … and L(i + D) = L(i) + 1, D the
            sensitivity in steps. Two inputs s ≤ D steps apart compare the weights of k and k + s, and ||k + s| − |k|| ≤ D, so
            L differs by 1 at most, and the logarithms of the probabilities by ε, whatever the share.
    Needs   One number: a vector needs noise of its whole sensitivity.
    Rounds  The sensitivity in grid steps up.
    Source  [GV14]
    """

    epsilon: Fraction
    sensitivity_squared: Fraction
    adjacency: Adjacency | None
    gamma: Fraction
    exponent: int
    table: Noise | None = field(compare=False, repr=False)

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number | Sensitivity,
        gamma: Number | None = None,
        grid: Number | None = None,
    ) -> None:
        squared, adjacency = squared_sensitivity(sensitivity, Norm.L1)
        require(squared > 0, "sensitivity", "positive", 0)
        exact = positive(epsilon, "epsilon")
        object.__setattr__(self, "epsilon", exact)
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "exponent", _exponent(exact, squared) if grid is None else _read_grid(grid))
        width = self._width
        require(width <= _MOST_STEPS * min(exact, 1), "epsilon", "such that the noise has at most 2^51 grid steps", epsilon)
        if gamma is None:
            first = _best(exact, width)
        else:
            first = min(max(math.floor(probability(gamma, "gamma") * width + Fraction(1, 2)), 1), width)
        object.__setattr__(self, "gamma", Fraction(first, width))
        object.__setattr__(self, "table", None)

    def __repr__(self) -> str:
        return (
            f"Staircase(epsilon={decimal_text(self.epsilon)}, sensitivity={root_text(self.sensitivity_squared)}, "
            f"gamma={float(self.gamma):.12g})"
        )

    @property
    def grid(self) -> Fraction:
        """The step of the grid that values and noise live on."""
        return power_of_two(self.exponent)

    @property
    def _width(self) -> int:
        return steps_of(self.sensitivity_squared, self.exponent)

    @property
    def _stairs(self) -> _Stairs:
        return _Stairs(self.epsilon, self._width, int(self.gamma * self._width))

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        return Pure(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def variance(self) -> float:
        """Of the noise drawn. Rounds: up."""
        return float_up(self._stairs.moment(2) * self.grid**2 * (1 + Fraction(1, 1 << 90)))

    @property
    def mean_error(self) -> float:
        """E|noise|. Rounds: up."""
        return float_up(self._stairs.moment(1) * self.grid * (1 + Fraction(1, 1 << 90)))

    def probability(self, steps: int) -> float:
        """Return the probability that the noise is so many grid steps."""
        width, first = self._width, self._stairs.first
        block, offset = divmod(abs(steps), width)
        level = block + (offset >= first)
        return float(exponential(level * self.epsilon).upper / self._stairs.moment(0))

    def _make_table(self) -> Noise:
        return geometric(1 / self.epsilon)

    @property
    def _moves(self) -> tuple[Norm, int]:
        return Norm.L1, self._width**2

    def _check_size(self, size: int) -> None:
        if size != 1:
            hint = "use Laplace with dimension=, whose noise is for all numbers together"
            raise refusal_of_value("value", "one number", f"{size} numbers", hint)

    def _noise(self, size: int, source: Entropy) -> tuple[IntArray, bool]:
        """Which stretch, which part of it, where in that part, and which sign; −0 is drawn again, place by place.

        Claim   Exact: the stretch is geometric, the parts weigh `first` and (width − first) e^(−ε), and their places alike.
        """
        stairs, blocks = self._stairs, self._table
        parts = Choice(np.array([0, 1]), stairs.epsilon, np.array([stairs.first, stairs.width - stairs.first]))
        out, todo = np.empty(size, np.int64), np.arange(size)
        while len(todo):
            count = len(todo)
            block, later = blocks.several(count, source), parts.draw(count, source)
            near = below(stairs.first, count, source)
            far = stairs.first + below(max(stairs.width - stairs.first, 1), count, source)
            away = block * stairs.width + np.where(later == 1, far, near)
            negative = below(2, count, source) == 1
            good = ~(negative & (away == 0))
            out[todo[good]] = np.where(negative, -away, away)[good]
            todo = todo[~good]
        return out, False

    def _one(self, source: Entropy) -> int:
        return int(self._noise(1, source)[0][0])

    def _reach(self, confidence: Fraction) -> int:
        allowed, stairs = 1 - confidence, self._stairs
        guess = int(stairs.width * (1 + Fraction(math.log(1 / float(allowed))) / stairs.epsilon))
        return first_whole(lambda reach: stairs.beyond(reach) <= allowed, guess)

    @classmethod
    def calibrate(
        cls,
        *,
        sensitivity: Number | Sensitivity,
        epsilon: Number | None = None,
        accuracy: Number | None = None,
        confidence: Number = "0.95",
        count: Number = 1,
        grid: Number | None = None,
    ) -> Self:
        """Return the mechanism that costs epsilon after `count` releases, or the one with the most noise that keeps accuracy.

        With accuracy: the error is at most `accuracy` with probability `confidence`.
        """
        if (epsilon is None) == (accuracy is None):
            given = "none" if epsilon is None else "two"
            raise InvalidParameter(f"calibrate needs exactly one of epsilon and accuracy; got {given}.")
        if accuracy is None:
            return cls(epsilon=positive(epsilon, "epsilon") / whole(count, "count"), sensitivity=sensitivity, grid=grid)
        wanted = read_accuracy(accuracy, confidence)
        squared, _ = squared_sensitivity(sensitivity, Norm.L1)
        require(squared > 0, "sensitivity", "positive", 0)

        def keeps(inverse: float) -> bool:
            trial = cls(epsilon=round_up(1 / inverse), sensitivity=sensitivity, grid=grid)
            return Fraction(trial.half_width(wanted.confidence)) <= wanted.error

        held = find_largest(keeps, start=float(wanted.error) / math.sqrt(squared) / 4, limit=2.0**35)
        return cls(epsilon=round_up(1 / held), sensitivity=sensitivity, grid=grid)


def _exponent(epsilon: Fraction, squared: Fraction) -> int:
    """A 2⁻⁴⁰-th of the noise, sensitivity · max(1, 1/ε), and at most a 2⁻¹⁰-th of the sensitivity."""
    fine = floor_log2(squared / min(epsilon, Fraction(1)) ** 2) // 2 - GRID_BITS
    return min(fine, floor_log2(squared) // 2 - _LEAST_STEPS_BITS)


def _read_grid(grid: Number) -> int:
    step = positive(grid, "grid")
    exponent = floor_log2(step)
    require(power_of_two(exponent) == step, "grid", "a power of two", grid)
    return exponent


def _best(epsilon: Fraction, width: int) -> int:
    """The steps before the fall with the smallest E|N|: by trial where they are few, else a share of 1/(1 + e^(ε/2))."""
    if width <= _TRIED:
        return min(range(1, width + 1), key=lambda first: _Stairs(epsilon, width, first).moment(1))
    half = exponential(epsilon / 2).upper
    return min(max(round(width * half / (1 + half)), 1), width)
