"""Real numbers as balls: a midpoint, and a radius within which the true value is proved to lie.

Every operation on balls returns one that holds the results for all points of its arguments, whatever the precision: rounding,
cancellation and the ends of series are in the radius. The arithmetic is Arb's, by python-flint. How many bits a formula needs
depends on the numbers put in, so it is evaluated with 128, with twice as many and so on, until its ball is narrow enough or
lies on one side of 0. A formula that does not get there within the most bits fails; it never guesses.

Where a value is 0 or infinite its caller decides beforehand, in rationals: no ball but an exact one says that two numbers are
equal.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from curador.errors import NumericalFailure
from curador.numerics.rounding import float_down, float_up

if TYPE_CHECKING:
    from flint import arb

    Formula = Callable[[], arb]

Judged = TypeVar("Judged")

FEWEST = 128
MOST = 65_536
NARROW = 80
"""Bits of a ball that is narrow: its radius is below 2⁻⁷⁹ of its midpoint."""

SMALLEST = math.nextafter(0.0, 1.0)
_BEYOND = 2**1024  # what no float holds
_ONE_AT_A_TIME = threading.RLock()  # the precision of python-flint belongs to the whole process


def ball(exact: Fraction | int) -> arb:
    """Return a ball that holds the rational, in the precision at hand."""
    from flint import arb, fmpq

    return arb(fmpq(exact.numerator, exact.denominator))


def raise_precision(compute: Callable[[], Judged | None], *, fewest: int = FEWEST, most: int = MOST) -> Judged:
    """Return the first answer of `compute` other than None, asked with more and more bits; at most `most` of them.

    Claim   What is returned was said of balls, so it is so whatever their precision was. The caller's precision is as before.
    Needs   `compute` says None where its balls decide nothing.
    Rounds  Nothing.
    """
    from flint import ctx

    bits = fewest
    with _ONE_AT_A_TIME:
        while bits <= most:
            with ctx.workprec(bits):
                answer = compute()
            if answer is not None:
                return answer
            bits *= 2
    raise NumericalFailure(f"{most} bits did not suffice to enclose the value.")


def near(formula: Formula) -> float:
    """Return the float next to a positive number.

    Claim   The number lies in a ball of relative radius 2⁻⁷⁹, and the result is the float nearest to the ball's midpoint.
            Below the smallest float, where the ball proves the number positive, it is the smallest float; beyond the largest
            it is +∞.
    Needs   The number is above 0; `formula` computes it with balls.
    Rounds  Near: at most 2⁻²⁵ ulps more than half an ulp.
    """
    return raise_precision(lambda: _nearest(formula()))


def outward(formula: Formula) -> tuple[float, float]:
    """Return floats on both sides of a positive number.

    Claim   The number is at least the first and at most the second; they are one or two floats apart.
    Needs   As of `near`.
    Rounds  Outward.
    """
    return raise_precision(lambda: _around(formula()))


def is_positive(formula: Formula) -> bool:
    """Whether a number is above 0.

    Claim   The number is above 0 if True is returned, below 0 if False is.
    Needs   It is not 0; `formula` computes it with balls.
    Rounds  Nothing: the sign is decided by a ball that excludes 0.
    """
    return raise_precision(lambda: _sign(formula()))


def _nearest(value: arb) -> float | None:
    if value > _BEYOND:
        return math.inf
    if value.upper() <= SMALLEST:
        return SMALLEST if value > 0 else _refuse_negative(value)
    if value.rel_accuracy_bits() < NARROW:
        return None
    _refuse_negative(value)
    try:
        return float(_end(value.mid()))
    except OverflowError:
        return math.inf


def _around(value: arb) -> tuple[float, float] | None:
    if value.upper() <= SMALLEST:
        return (0.0, SMALLEST) if value > 0 else _refuse_negative(value)
    if value > _BEYOND:
        return math.nextafter(math.inf, 0.0), math.inf
    if value.rel_accuracy_bits() < NARROW:
        return None
    _refuse_negative(value)
    return float_down(_end(value.lower())), float_up(_end(value.upper()))


def _sign(value: arb) -> bool | None:
    if value > 0:
        return True
    return False if value < 0 else None


def _refuse_negative(value: arb) -> None:
    """A ball without a positive point shows that the caller was wrong to promise one."""
    if value <= 0:
        raise NumericalFailure("a number that must be above 0 is not.")


def _end(exact: arb) -> Fraction:
    """Return the midpoint or an end of a ball, which are binary fractions."""
    mantissa, exponent = (int(part) for part in exact.man_exp())
    return Fraction(mantissa * 2**exponent) if exponent >= 0 else Fraction(mantissa, 2**-exponent)
