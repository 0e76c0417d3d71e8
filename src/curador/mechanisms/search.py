"""The smallest scale of noise that reaches a goal, for any mechanism: search sloppily, certify at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from curador.errors import NumericalFailure
from curador.mechanisms.parameters import Goal, rounded_up

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from curador.privacy.loss import Loss

_CLOSE = 3e-10
_LARGEST = 1e12


def smallest_scale(goal: Goal, loss_at: Callable[[Fraction], Loss], *, start: float) -> Fraction:
    """Return a scale at which the goal is reached, within a relative 1e-9 of the smallest.

    Claim   The goal was checked on the returned scale itself, with certified bounds.
    Needs   More noise never costs more.
    """
    cost: dict[Fraction, float] = {}

    def excess(scale: float) -> float:
        exact = rounded_up(scale)
        cost[exact] = _cost(goal, loss_at(exact))
        return cost[exact]

    low, high = _bracket(excess, start)
    _narrow(excess, low, high)
    for _ in range(60):
        fitting = [scale for scale, value in cost.items() if value <= 1.0]
        if fitting:
            return min(fitting)
        excess(float(max(cost)) * (1.0 + _CLOSE))
    raise NumericalFailure("no scale of noise reaches the goal")


def _cost(goal: Goal, loss: Loss) -> float:
    """ε of the loss over the goal's, not cut at 1: the search needs to know how far inside it is."""
    whole = goal.whole_loss(loss)
    if goal.rho is not None:
        return float(whole.rho / goal.rho)
    if goal.epsilon is None:
        return math.inf
    return whole.epsilon_interval(goal.delta).upper / float(goal.epsilon) * (1.0 + 4e-16)


def _bracket(excess: Callable[[float], float], start: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Walk from the start to a scale that costs too much and one that does not."""
    scale, value = start, excess(start)
    factor = 1.5 if value > 1.0 else 1.0 / 1.5
    while _LARGEST**-1 < scale < _LARGEST:
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
    raise NumericalFailure("no scale of noise reaches the goal")


def _narrow(excess: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]) -> None:
    """Regula falsi on (log scale, log cost), Illinois variant, until the bracket is a relative 1e-9."""
    (a, fa), (b, fb) = (
        (math.log(scale), math.log(max(value, 1e-300)) if math.isfinite(value) else 50.0) for scale, value in (low, high)
    )
    for _ in range(40):
        if b - a < 4 * _CLOSE:
            return
        middle = b - fb * (b - a) / (fb - fa)
        inside = 0.02 * (b - a) if b - a > 1e-3 else _CLOSE
        middle = min(max(middle, a + inside), b - inside)
        value = math.log(max(excess(math.exp(middle)), 1e-300))
        if value > 0.0:
            a, fa, fb = middle, value, fb * (0.5 if abs(value) > 1e-4 else 1.0)
            if value < 1e-7:  # all but there: step over the root
                excess(math.exp(middle + 1.5 * value + _CLOSE))
                return
        else:
            b, fb, fa = middle, value, fa * (0.5 if abs(value) > 1e-4 else 1.0)
            if value > -1e-9:
                return
