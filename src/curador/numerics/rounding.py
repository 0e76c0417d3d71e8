"""Directed rounding: which side of the truth a float lies on is part of every function.

IEEE 754 rounds + − × ÷ √ to nearest: half a unit in the last place (ulp). The elementary functions of libm
and NumPy promise nothing; the tests hold them to LIBM_ULPS against 60-digit values over the ranges in use.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]

UNIT = 2.0**-53
"""Half an ulp of 1: the relative error of one correctly rounded operation."""

LIBM_ULPS = 4
"""Largest error, in ulps, that we assume of exp, expm1, log, log1p, sin, cos, sinh, cosh, tanh."""


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


def ups(x: FloatArray, ulps: float = 1.0, of: FloatArray | None = None) -> FloatArray:
    """`up` for arrays. Rounds: up."""
    with np.errstate(invalid="ignore"):  # the spacing of what is infinite is NaN
        raised = np.nextafter(x + ulps * np.spacing(np.abs(x if of is None else of)), np.inf)
    return np.where(np.isnan(raised), np.inf, raised)
