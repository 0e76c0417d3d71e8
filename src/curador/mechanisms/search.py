"""The smallest scale of noise that reaches a goal, for any mechanism: search sloppily, certify at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from curador.errors import NumericalFailure
from curador.mechanisms.parameters import Goal, rounded_up
from curador.numerics.roots import bisect
from curador.privacy.account import leaving_epsilon
from curador.privacy.laws.resolve import one_sided

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from curador.privacy.loss import Loss

_CLOSE = 3e-10
_FARTHEST = 1e12


def smallest_scale(goal: Goal, loss_at: Callable[[Fraction], Loss], *, start: float) -> Fraction:
    """Return a scale at which the goal is reached, within a relative 1e-9 of the smallest.

    Claim   The goal was checked on the returned scale itself, with certified bounds, whether a person joins or leaves.
    Needs   More noise never costs more.
    """
    if goal.epsilon is not None and one_sided(goal.whole_loss(loss_at(rounded_up(start)))):
        found = _searched(lambda scale: _cost(goal, loss_at(scale), one_way=True), start)
        if _cost(goal, loss_at(found)) <= 1.0:
            return found
        start = float(found)  # the other way costs more
    return _searched(lambda scale: _cost(goal, loss_at(scale)), start)


def _searched(price: Callable[[Fraction], float], start: float) -> Fraction:
    cost: dict[Fraction, float] = {}

    def excess(scale: float) -> float:
        exact = rounded_up(scale)
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


def largest(holds: Callable[[float], bool], *, start: float, limit: float = 1e9) -> float:
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
