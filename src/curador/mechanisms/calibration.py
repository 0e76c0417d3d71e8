"""What a mechanism is calibrated to, and how: search sloppily, certify at the end, for any mechanism in one way."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self, TypeVar

from curador.errors import InvalidParameter, NumericalFailure, require
from curador.mechanisms.grid import round_up
from curador.numerics.exact import Number, confidence_level, positive, probability, whole
from curador.numerics.roots import bisect, secant
from curador.privacy.account import leaving_epsilon
from curador.privacy.adjacency import Adjacency
from curador.privacy.laws.resolve import directions_differ
from curador.privacy.loss import Loss, Scheme
from curador.privacy.sensitivity import Sensitivity

# ---- goals -----------------------------------------------------------------------------------------------------------------


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
_FARTHEST = math.log(1e12)
_LONGEST_STEP = math.log(1e3)


class HasLoss(Protocol):
    """What says of itself what one release costs."""

    @property
    def loss(self) -> Loss: ...


Made = TypeVar("Made", bound=HasLoss)


def calibrate(make: Callable[[Fraction], Made], goal: Goal, start: float) -> Made:
    """Return the mechanism with the least noise that reaches the goal, its scale within a relative 1e-9 of the smallest.

    Claim   The goal was checked on the returned mechanism itself, with certified bounds, whether a person joins or leaves.
    Needs   make(scale) has more noise for a larger scale, and more noise never costs more. `start` is of the right size.
    """
    return make(find_scale(lambda scale: make(scale).loss, goal, start))


def find_scale(loss_at: Callable[[Fraction], Loss], goal: Goal, start: float) -> Fraction:
    """Return the scale of `calibrate`, for a loss that is no mechanism's own."""
    if goal.epsilon is not None and directions_differ(goal.whole_loss(loss_at(round_up(start)))):
        found = _search_scale(lambda scale: _cost(goal, loss_at(scale), one_way=True), start)
        if _cost(goal, loss_at(found)) <= 1.0:
            return found
        start = float(found)  # the other way costs more
    return _search_scale(lambda scale: _cost(goal, loss_at(scale)), start)


def _search_scale(price: Callable[[Fraction], float], start: float) -> Fraction:
    """Search by floats, which promise nothing; of all scales that were certified on the way return the least that fits."""
    cost: dict[Fraction, float] = {}

    def excess(log_scale: float) -> float:
        """log cost, nearly a straight line; 0 from the goal to a hair inside, where the search may end."""
        exact = round_up(math.exp(log_scale))
        if exact not in cost:
            cost[exact] = price(exact)
        over = math.log(max(cost[exact], 1e-300))
        over = max(-_LONGEST_STEP, min(over, _LONGEST_STEP))  # a cost of 0 or ∞ is no reason to leap
        return 0.0 if -3.0 * _CLOSE <= over <= 0.0 else over + 1.5 * _CLOSE

    here = math.log(start)
    # ε falls about like 1/scale: the first slope
    found = secant(excess, start=here, slope=-1.0, lower=here - _FARTHEST, upper=here + _FARTHEST)
    for _ in range(60):
        fitting = [scale for scale, value in cost.items() if value <= 1.0]
        if fitting:
            break
        found += _CLOSE
        excess(found)
    else:
        raise NumericalFailure("no scale of noise reaches the goal")
    if min(fitting) == min(cost) and cost[min(cost)] < 1.0 - 1e-6:
        raise NumericalFailure("every scale of noise reaches the goal")
    return min(fitting)


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


# ---- the largest value that keeps a condition ------------------------------------------------------------------------------


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


# ---- noise of one scale ----------------------------------------------------------------------------------------------------


class ScaledNoise(ABC):
    """Noise that one scale sizes: what its families say of themselves, and the one way in which they are calibrated."""

    __slots__ = ()

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What one release costs."""

    @classmethod
    @abstractmethod
    def _at(cls, scale: Fraction, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        """Return the mechanism of a scale."""

    @classmethod
    @abstractmethod
    def _accurate(cls, wanted: Accuracy, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        """Return the mechanism with the most noise that keeps the accuracy."""

    @classmethod
    @abstractmethod
    def _least(cls, aim: Goal, sensitivity: Number | Sensitivity, dimension: Number) -> Self:
        """Return the mechanism with the least noise that reaches the goal: by a closed form, or by `calibrate`."""

    @classmethod
    def _maker(cls, sensitivity: Number | Sensitivity, dimension: Number) -> Callable[[Fraction], Self]:
        return lambda scale: cls._at(scale, sensitivity, dimension)

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
            wanted = read_accuracy(accuracy, confidence, epsilon=epsilon, delta=delta, rho=rho, rate=rate)
            return cls._accurate(wanted, sensitivity, dimension)
        aim = read_goal(epsilon=epsilon, delta=delta, rho=rho, count=count, rate=rate, scheme=scheme, adjacency=adjacency)
        return cls._least(aim, sensitivity, dimension)
