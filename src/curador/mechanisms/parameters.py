"""Parameters that several mechanisms share: sensitivities, the grid of real-valued noise, and what to calibrate to.

The smallest scale of noise that reaches a goal is found for any mechanism in one way: search sloppily, certify at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.errors import InvalidParameter, NotPrivate, NumericalFailure, require
from curador.numerics.exact import Number, at_least_zero, confidence_level, coprime, positive, probability, square, whole
from curador.numerics.roots import bisect
from curador.privacy.account import leaving_epsilon
from curador.privacy.adjacency import Adjacency
from curador.privacy.laws.resolve import directions_differ
from curador.privacy.loss import Loss, Scheme
from curador.privacy.sensitivity import Norm, Sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable


# ---- sensitivities, grids, goals -------------------------------------------------------------------------------------------


GRID_BITS = 40
"""Real-valued noise lives on a power-of-two grid of 2⁻⁴⁰ to 2⁻⁴¹ of its scale: finer than anybody needs, coarser than a
float's own spacing for all values below 4,000 times the scale."""


_LEAST_STEPS_BITS = 10
_SMALLEST, _LARGEST = Fraction(1, 10**100), Fraction(10**100)
_LONG = 330  # bits: fewer than 1e100 has


def squared_sensitivity(sensitivity: Number | Sensitivity, norm: Norm) -> tuple[Fraction, Adjacency | None]:
    """Return the square of the sensitivity and the adjacency that it names.

    Claim   An L1 sensitivity bounds the L2 one; the reverse is refused.
    """
    if isinstance(sensitivity, Sensitivity):
        if norm is Norm.L1 and sensitivity.norm is Norm.L2:
            raise NotPrivate(
                "this noise needs an l1 sensitivity; got an l2 one, which may be smaller by the root of the dimension."
            )
        return sensitivity.value_squared, sensitivity.adjacency
    if type(sensitivity) is int and 0 <= sensitivity < 1 << _LONG // 2:
        return coprime(sensitivity * sensitivity, 1), None
    value = at_least_zero(sensitivity, "sensitivity")
    top, bottom = value.as_integer_ratio()
    if top.bit_length() + bottom.bit_length() > _LONG:  # comparing rationals is dear
        require(_SMALLEST <= value <= _LARGEST, "sensitivity", "0 or between 1e-100 and 1e100", sensitivity)
    return square(value), None


def floor_log2(value: Fraction) -> int:
    """Return the largest e with 2^e ≤ value, for a value above 0."""
    top, bottom = value.as_integer_ratio()
    guess = top.bit_length() - bottom.bit_length()
    reached = top >= bottom << guess if guess >= 0 else top << -guess >= bottom
    return guess if reached else guess - 1


def grid_exponent(scale: Fraction, squared: Fraction) -> int:
    """Return e such that real-valued noise of this scale, for a sensitivity of √squared, is drawn on the grid 2^e.

    At most a 2⁻⁴⁰-th of the scale; where the noise dwarfs the sensitivity, at most a 2⁻¹⁰-th of that, which is counted in
    whole steps.
    """
    fine = floor_log2(scale) - GRID_BITS
    top, bottom = squared.as_integer_ratio()
    about = top.bit_length() - bottom.bit_length() - 1  # log₂ squared, or one less
    if fine <= about // 2 - _LEAST_STEPS_BITS:
        return fine
    return fine if top == 0 else min(fine, floor_log2(squared) // 2 - _LEAST_STEPS_BITS)


def power_of_two(exponent: int) -> Fraction:
    """Return 2^exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def in_steps(value: Fraction, exponent: int) -> Fraction:
    """Return value / 2^exponent. Only twos can be in common then: those at the end of one of the two numbers."""
    top, bottom = value.as_integer_ratio()
    if exponent <= 0:
        shared = min(-exponent, (bottom & -bottom).bit_length() - 1)
        return coprime(top << -exponent - shared, bottom >> shared)
    if top == 0:
        return value
    shared = min(exponent, (top & -top).bit_length() - 1)
    return coprime(top >> shared, bottom << exponent - shared)


def steps_of(squared: Fraction, exponent: int) -> int:
    """Return the number of steps of the grid 2^exponent that a change of length √squared may become.

    Claim   For scalars, |a − b| ≤ kg implies |round(a/g) − round(b/g)| ≤ k: rounding costs nothing where g divides the
            sensitivity.
    Needs   round(x) = ⌊x + 1/2⌋; rounding halves to even would move 0.5 and 1.5 by two.
    Rounds  Up.
    """
    top, bottom = squared.as_integer_ratio()
    top, bottom = (top << -2 * exponent, bottom) if exponent <= 0 else (top, bottom << 2 * exponent)
    root = math.isqrt(top // bottom)
    return root if root * root * bottom == top else root + 1


def vector_steps(squared: Fraction, exponent: int, dimension: int) -> int:
    """Return the l1 steps of the grid 2^exponent that a vector of `dimension` numbers moving by √squared may move.

    Claim   Each coordinate becomes ⌈|move|/g⌉ steps at most, less than one more than its share: Σ⌈x_i⌉ < Σx_i + d, and the
            left side is whole, so it is at most ⌈Σx_i⌉ + d − 1.
    Rounds  Up.
    """
    steps = steps_of(squared, exponent)
    return steps + dimension - 1 if steps else 0


def vector_squares(squared: Fraction, exponent: int, dimension: int) -> int:
    """Return the square of the l2 length, in steps of the grid 2^exponent, that a vector's move of √squared may become.

    Claim   Rounding adds less than one step to a coordinate, so less than √d to the length: (√S + √d)² with S = squared/g².
    Rounds  Up.
    """
    if squared == 0:
        return 0
    scaled = in_steps(squared, 2 * exponent)
    whole_part = -(-scaled.numerator // scaled.denominator)
    return whole_part + math.isqrt(4 * whole_part * dimension) + 1 + dimension


def root_text(squared: Fraction) -> str:
    """Return √squared as a person would write it."""
    root = Sensitivity(squared, Norm.L2, Adjacency.REPLACE_ONE).exact
    return f"√{decimal_text(squared)}" if root is None else decimal_text(root)


def decimal_text(value: Fraction) -> str:
    """Return the rational as a decimal where that is exact and short, else as a ratio."""
    text = f"{float(value):.15g}"
    return text if Fraction(text) == value else str(value)


def round_up(value: float | Fraction, digits: int = 12) -> Fraction:
    """Return the next decimal of `digits` significant digits at or above the value, so that parameters read well."""
    exact = Fraction(value)
    place = Fraction(10) ** (math.floor(math.log10(exact)) - digits + 1)
    return -(-exact // place) * place


def round_down(value: float | Fraction, digits: int = 12) -> Fraction:
    """Return the decimal of `digits` significant digits at or below the value."""
    exact = Fraction(value)
    place = Fraction(10) ** (math.floor(math.log10(exact)) - digits + 1)
    return exact // place * place


_MODERATE = Fraction(10) ** 100


@dataclass(frozen=True, slots=True)
class Goal:
    """What a mechanism is calibrated to: (ε, δ), or ρ, after `count` releases, each perhaps on a subsample."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    count: int
    rate: Fraction | None
    scheme: Scheme
    adjacency: Adjacency | str | None

    def whole_loss(self, single: Loss) -> Loss:
        """Return the loss of all releases together."""
        one = single if self.rate is None else single.subsample(rate=self.rate, scheme=self.scheme, adjacency=self.adjacency)
        return self.count * one

    def reached(self, single: Loss) -> bool:
        """Whether that loss is within the goal: the check that every calibration ends with."""
        return self.cost(single) <= 1.0

    def cost(self, single: Loss) -> float:
        """Return the share of the goal that the loss takes; at most 1 is within."""
        loss = self.whole_loss(single)
        if self.rho is not None:
            return float(loss.rho / self.rho) if loss.rho > self.rho else 1.0
        assert_epsilon = self.epsilon or Fraction(0)
        pure = loss.pure_epsilon
        if pure is not None and pure <= assert_epsilon:
            return 1.0
        upper = loss.epsilon_interval(self.delta).upper
        return 1.0 if Fraction(upper) <= assert_epsilon else upper / float(assert_epsilon) * (1 + 1e-15)


def read_goal(
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    count: Number,
    rate: Number | None = None,
    scheme: Scheme = "poisson",
    adjacency: Adjacency | str | None = None,
) -> Goal:
    """Return the goal, refused unless exactly one of epsilon and rho is given."""
    if (epsilon is None) == (rho is None):
        given = "none" if rho is None else "two"
        raise InvalidParameter(subject="calibrate", rule="needs exactly one of epsilon, rho and accuracy", got=given)
    require(rho is None or (delta is None and rate is None), "rho", "given without delta and rate", rho)
    found = Goal(
        epsilon=None if epsilon is None else _require_moderate(epsilon, "epsilon"),
        delta=Fraction(0) if delta is None else _require_apart_from_one(probability(delta, "delta"), "delta"),
        rho=None if rho is None else _require_moderate(rho, "rho"),
        count=int(_require_moderate(whole(count, "count"), "count")),
        rate=None if rate is None else _rate(rate),
        scheme=scheme,
        adjacency=adjacency,
    )
    if found.rate is not None and found.count * found.rate <= found.delta:
        raise InvalidParameter(
            subject="delta",
            rule="must be below count · rate, the chance that a person is in a sample at all",
            got=str(delta),
            hint="with so large a delta no noise would be asked for, and whoever is sampled could be published as they are.",
        )
    return found


@dataclass(frozen=True, slots=True)
class Accuracy:
    """An error that must not be exceeded with the given confidence."""

    error: Fraction
    confidence: Fraction


def read_accuracy(accuracy: Number, confidence: Number, **others: object) -> Accuracy:
    """Return the accuracy goal, refused if a privacy goal is given too."""
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise InvalidParameter(f"calibrate needs exactly one of epsilon, rho and accuracy; got accuracy and {given[0]}.")
    return Accuracy(_require_moderate(accuracy, "accuracy"), confidence_level(confidence))


def _require_moderate(value: Number, name: str) -> Fraction:
    """Refuse a goal that no certified answer reaches."""
    exact = positive(value, name)
    require(1 / _MODERATE <= exact <= _MODERATE, name, "between 1e-100 and 1e100", value)
    return exact


def _rate(value: Number) -> Fraction:
    exact = _require_moderate(value, "rate")
    require(exact <= 1, "rate", "above 0 and at most 1", value)
    return exact


def _require_apart_from_one(exact: Fraction, name: str) -> Fraction:
    require(1 - exact >= 1 / _MODERATE, name, "at most 1 − 1e-100", "more")
    return exact


# ---- the smallest scale that reaches a goal --------------------------------------------------------------------------------


_CLOSE = 3e-10
_FARTHEST = 1e12


def find_smallest_scale(goal: Goal, loss_at: Callable[[Fraction], Loss], *, start: float) -> Fraction:
    """Return a scale at which the goal is reached, within a relative 1e-9 of the smallest.

    Claim   The goal was checked on the returned scale itself, with certified bounds, whether a person joins or leaves.
    Needs   More noise never costs more.
    """
    if goal.epsilon is not None and directions_differ(goal.whole_loss(loss_at(round_up(start)))):
        found = _search_scale(lambda scale: _cost(goal, loss_at(scale), one_way=True), start)
        if _cost(goal, loss_at(found)) <= 1.0:
            return found
        start = float(found)  # the other way costs more
    return _search_scale(lambda scale: _cost(goal, loss_at(scale)), start)


def _search_scale(price: Callable[[Fraction], float], start: float) -> Fraction:
    cost: dict[Fraction, float] = {}

    def excess(scale: float) -> float:
        exact = round_up(scale)
        cost[exact] = price(exact)
        return cost[exact]

    low, high = _bracket(excess, start)
    if low != high:
        _narrow(excess, low, high)
    for _ in range(60):
        fitting = [scale for scale, value in cost.items() if value <= 1.0]
        if fitting:
            return min(fitting)
        excess(float(max(cost)) * (1.0 + _CLOSE))
    raise NumericalFailure("no scale of noise reaches the goal")


def _cost(goal: Goal, loss: Loss, *, one_way: bool = False) -> float:
    """ε of the loss over the goal's, not cut at 1: the search needs to know how far inside it is.

    With `one_way` it may be that of a person who leaves alone: nearly always the larger, and half the work.
    """
    whole = goal.whole_loss(loss)
    if goal.rho is not None:
        return float(whole.rho / goal.rho)
    if goal.epsilon is None:
        return math.inf
    upper = leaving_epsilon(whole, goal.delta) if one_way else None
    if upper is None:
        upper = whole.epsilon_interval(goal.delta).upper
    return upper / float(goal.epsilon) * (1.0 + 4e-16)


def _bracket(excess: Callable[[float], float], start: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Walk from the start to a scale that costs too much and one that does not."""
    scale, value = start, excess(start)
    if 1.0 - 4.0 * _CLOSE < value <= 1.0:  # a closed form started us at the answer
        return (start, value), (start, value)
    factor = 1.5 if value > 1.0 else 1.0 / 1.5
    while 1.0 / _FARTHEST < scale / start < _FARTHEST:
        before, earlier = scale, value
        # ε falls about like 1/scale, so a step of that size is nearly right; the factor makes sure of progress
        guess = (
            scale * min(max(value, 1e-3), 1e3) * (1.02 if value > 1.0 else 0.98)
            if math.isfinite(value) and value > 0
            else scale * factor
        )
        scale = guess if abs(math.log(max(guess / scale, 1e-9))) > 0.05 else scale * (1.08 if value > 1.0 else 1 / 1.08)
        value = excess(scale)
        if (value > 1.0) != (earlier > 1.0):
            pair = ((before, earlier), (scale, value))
            return (pair[0], pair[1]) if earlier > 1.0 else (pair[1], pair[0])
    raise NumericalFailure(f"{'no' if value > 1.0 else 'every'} scale of noise reaches the goal")


def _narrow(excess: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]) -> None:
    """Secant steps on (log scale, log cost), nearly a straight line, kept inside the bracket; aims a hair inside the goal."""
    points = [(math.log(scale), _log(value)) for scale, value in (low, high)]
    left, right = points[0][0], points[1][0]
    for _ in range(40):
        (x0, f0), (x1, f1) = points[-2:]
        slope = (f1 - f0) / (x1 - x0) if x1 != x0 else 0.0
        guess = x1 - (f1 + 2.0 * _CLOSE) / slope if slope < 0.0 else 0.5 * (left + right)
        if not left < guess < right:
            guess = 0.5 * (left + right)
        value = _log(excess(math.exp(guess)))
        if value > 0.0:
            left = guess
        else:
            right = guess
            if value > -8.0 * _CLOSE:
                return
        if right - left < _CLOSE:
            return
        points.append((guess, value))


def _log(value: float) -> float:
    return 50.0 if math.isinf(value) else math.log(max(value, 1e-300))


def find_largest(holds: Callable[[float], bool], *, start: float, limit: float = 1e9) -> float:
    """Return a value, within a relative 1e-11 of the largest, at which a condition that fails from some point on holds.

    Claim   The condition was evaluated at the returned value, and held.
    """
    low = start
    while not holds(low):
        low /= 2.0
        if low < start * 1e-15:
            raise NumericalFailure("no value satisfies the goal")
    high = 2.0 * low
    while holds(high):
        low, high = high, 2.0 * high
        if high > limit * max(start, 1.0):
            return low
    _, held = bisect(holds, fails_at=high, holds_at=low, relative=1e-11)
    return held
