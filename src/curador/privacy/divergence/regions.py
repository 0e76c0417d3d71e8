"""How much more likely a region is under one distribution than under another.

The hockey-stick divergence sup_S P(S) - e^ε Q(S) is attained on S = {loss > ε}, loss = log p/q. For the
normal and the Laplace family S is an interval, the outside of one, or a half-line. Where the loss crosses ε
the densities satisfy e^ε q = p; so the weighted tail e^ε Q beyond a crossing is p times the scale of Q times
its ratio of tail to density, and e^ε itself is not needed where it may be huge.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from curador.privacy.divergence.digits import HALF, ONE, TINY, fresh_context

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Shape:
    """A symmetric distribution in standard units: its density, and its tail divided by its density."""

    density: Callable[[Decimal], Decimal]
    relative_tail: Callable[[Decimal], Decimal]  # asked for values of at least 0 only


@dataclass(frozen=True, slots=True)
class Crossing:
    """A point where the loss is ε, with its place and its farther sides under P and under Q.

    The farther side is the one away from the centre. Its mass is P's, or e^ε times Q's.
    """

    first: Decimal
    first_mass: Decimal
    second: Decimal
    second_mass: Decimal


def crossing(shape: Shape, first: Decimal, second: Decimal, ratio: Decimal) -> Crossing:
    """Return the crossing at first (P's standard units) and second (Q's); ratio is scale Q / scale P."""
    height = shape.density(first)
    return Crossing(
        first,
        height * shape.relative_tail(abs(first)),
        second,
        height * ratio * shape.relative_tail(abs(second)),
    )


def excess_inside(low: Crossing, high: Crossing, epsilon: Decimal) -> Decimal:
    """Return P(S) - e^ε Q(S) of the interval; TINY where a tail of P below every float holds it."""
    if (low.first > 0 and low.first_mass < TINY) or (high.first < 0 and high.first_mass < TINY):
        return TINY
    first = _between(low.first, low.first_mass, high.first, high.first_mass, Decimal(0))
    return first - _between(low.second, low.second_mass, high.second, high.second_mass, epsilon)


def excess_outside(low: Crossing, high: Crossing, epsilon: Decimal) -> Decimal:
    """Return P(S) - e^ε Q(S) of what is not between low and high; TINY where P(S) is below every float."""
    zero = Decimal(0)
    probability = _above(-low.first, low.first_mass, zero) + _above(high.first, high.first_mass, zero)
    if probability < TINY:
        return TINY
    left, right = (-low.second, low.second_mass), (high.second, high.second_mass)
    return probability - _above(*left, epsilon) - _above(*right, epsilon)


def excess_above(low: Crossing, epsilon: Decimal) -> Decimal:
    """Return P(S) - e^ε Q(S) of the half-line above low; TINY where P(S) is below every float."""
    probability = _above(low.first, low.first_mass, Decimal(0))
    return TINY if probability < TINY else probability - _above(low.second, low.second_mass, epsilon)


def _above(place: Decimal, mass: Decimal, log_weight: Decimal) -> Decimal:
    return mass if place >= 0 else log_weight.exp() - mass


def _between(low: Decimal, low_mass: Decimal, high: Decimal, high_mass: Decimal, log_weight: Decimal) -> Decimal:
    if low >= 0:
        return low_mass - high_mass
    return high_mass - low_mass if high <= 0 else log_weight.exp() - low_mass - high_mass


def _normal_density(value: Decimal) -> Decimal:
    return (-value * value / 2).exp() / (2 * _pi(decimal.getcontext().prec)).sqrt()


def _normal_relative_tail(value: Decimal) -> Decimal:
    """Return Mills' ratio: by its series where that is short, by its continued fraction elsewhere."""
    digits, square = decimal.getcontext().prec, value * value
    if square > 2 * digits:
        return _mills_by_fraction(value)
    with decimal.localcontext() as context:
        context.prec += int(square / 2) + 10  # the difference below cancels all but 1/value of e^(square/2)
        total, term, odd = value, value, 1
        while term > total.scaleb(-context.prec):
            odd += 2
            term = term * square / odd
            total += term
        return (_pi(context.prec) / 2).sqrt() * (square / 2).exp() - total


def _mills_by_fraction(value: Decimal) -> Decimal:
    """Return 1/(v + 1/(v + 2/(v + 3/(v + …)))).

    All terms are positive, so that two successive convergents enclose it.
    """
    above, top, below, bottom = Decimal(0), ONE, ONE, value
    convergent, count = top / bottom, 0
    while True:
        count += 1
        above, top = top, value * top + count * above
        below, bottom = bottom, value * bottom + count * below
        following = top / bottom
        if abs(following - convergent) <= following.scaleb(-decimal.getcontext().prec):
            return following
        convergent = following


@lru_cache(maxsize=64)
def _pi(digits: int) -> Decimal:
    """Return π by the arithmetic-geometric mean, which doubles its digits with each step."""
    with decimal.localcontext(fresh_context(digits + 10)):
        mean, other, gap, weight = ONE, HALF.sqrt(), Decimal("0.25"), ONE
        while abs(mean - other) > ONE.scaleb(-digits // 2 - 5):
            middle = (mean + other) / 2
            other = (mean * other).sqrt()
            gap -= weight * (mean - middle) ** 2
            mean, weight = middle, 2 * weight
        return (mean + other) ** 2 / (4 * gap)


NORMAL = Shape(_normal_density, _normal_relative_tail)
LAPLACE = Shape(lambda value: (-abs(value)).exp() / 2, lambda _: ONE)
