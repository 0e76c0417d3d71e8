"""Directed rounding: which side of the truth a float lies on is part of every function.

IEEE 754 rounds + − × ÷ √ to nearest: half a unit in the last place (ulp). The elementary functions of libm
and NumPy promise nothing; the tests hold them to LIBM_ULPS against 60-digit values over the ranges in use.

A certified number is known by two ends, an `Interval`: enclosures, readings and error bars of mechanisms all speak of it.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curador.errors import NumericalFailure

FloatArray: TypeAlias = NDArray[np.floating[Any]]

UNIT = 2.0**-53
"""Half an ulp of 1: the relative error of one correctly rounded operation."""

LIBM_ULPS = 4
"""Largest error, in ulps, that we assume of exp, expm1, log, log1p, sin, cos, sinh, cosh, tanh."""


class Interval(NamedTuple):
    """A certified enclosure: the true number lies between the two ends."""

    lower: float
    upper: float


def float_up(exact: Fraction | int) -> float:
    """Return the smallest float that is at least the rational. Rounds: up."""
    if exact == 0:
        return 0.0
    near = _to_float(Fraction(exact))
    return near if near == math.inf or Fraction(near) >= exact else math.nextafter(near, math.inf)


def float_down(exact: Fraction | int) -> float:
    """Return the largest float that is at most the rational. Rounds: down."""
    return -float_up(-Fraction(exact))


def _to_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:  # also where the nearest float would be infinite
        return math.inf if exact > 0 else -sys.float_info.max


def near_float(exact: Fraction) -> float:
    """Return the float above a rational of at least 0; beyond 1e300 nothing is certified."""
    if exact > 10**300:
        raise NumericalFailure("no bound is certified for parameters beyond 1e300")
    return float_up(exact)


def up(x: float, ulps: float = 1.0, of: float | None = None) -> float:
    """Return an upper bound of the real number that x approximates within `ulps` ulps of `of`.

    `of` is the largest intermediate result (default x itself). Where that is infinite or NaN nothing is known of x, and the
    bound is +∞. Rounds: up.
    """
    raised = math.nextafter(x + ulps * math.ulp(abs(x if of is None else of)), math.inf)
    return math.inf if math.isnan(raised) else raised


def down(x: float, ulps: float = 1.0, of: float | None = None) -> float:
    """Return a lower bound of the real number that x approximates. Rounds: down."""
    return -up(-x, ulps, of)


def log_up(ratio: Fraction) -> float:
    """Return an upper bound of the logarithm of a rational above 0. Rounds: up, in ulps of the logarithms subtracted."""
    if Fraction(1, 2) < ratio < 2:
        return up(math.log1p(float_up(ratio - 1)), LIBM_ULPS)
    above, below = math.log(ratio.numerator), math.log(ratio.denominator)  # no overflow: integers of any size
    return up(above - below, 2.0 * LIBM_ULPS + 1.0, of=max(above, below))


def log_of(value: Fraction) -> tuple[float, float]:
    """Return (log value, a bound of its absolute error) of any positive rational."""
    if Fraction(1, 2) < value < 2:
        near = math.log1p(float(value - 1))
        # what is next to 1 has a subnormal logarithm, whose error is absolute: half a step of value − 1, and one of log1p
        return near, 12 * UNIT * abs(near) + (0.0 if value == 1 else 2 * math.ulp(0.0))
    if Fraction(1, 10**300) < value < 10**300:
        near = math.log(float(value))
        return near, UNIT * (2 + 8 * abs(near))
    top, bottom = math.log(value.numerator), math.log(value.denominator)
    return top - bottom, 16 * UNIT * (1 + top + bottom)


def ups(x: FloatArray, ulps: float = 1.0, of: FloatArray | None = None) -> FloatArray:
    """`up` for arrays. Rounds: up."""
    with np.errstate(invalid="ignore"):  # the spacing of what is infinite is NaN
        raised = np.nextafter(x + ulps * np.spacing(np.abs(x if of is None else of)), np.inf)
    return np.where(np.isnan(raised), np.inf, raised)
