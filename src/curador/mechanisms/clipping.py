"""Bounding what a person contributes, so that a sensitivity is a fact about the numbers handed on.

Every function is total: whatever the rows hold, a result comes back, since an error would itself tell something about them.
"""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from curador.errors import InvalidParameter, require
from curador.mechanisms.grid import refusal_of_value, unwrap_value
from curador.numerics.exact import Number, positive, rational
from curador.numerics.rounding import UNIT, float_down, float_up

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from curador.numerics.rounding import FloatArray

_MOST = 1 << 32


def clip_l2(vectors: ArrayLike, bound: Number) -> NDArray[np.float64]:
    """Return the rows (or the one vector), each scaled down to an l2 norm of at most `bound` where it is longer.

    Claim   The exact l2 norm of the floats returned is at most `bound`. A row is first divided by a power of two, y = x/2^e
            with 1/2 ≤ max|y| < 1. The norm of y, d numbers, is below n = fl(√Σy²)(1 + (d + 8)u): each square and each sum is
            off by u at most, the root by u, underflow by d 2⁻¹⁰⁷⁵ of at least 1/4. With f at most bound/n, each number
            becomes fl(y f) moved one float towards 0, so at most |y f|, subnormal or not: the norm is at most f n ≤ bound.
    Rounds  Down. A row whose n 2^e is at most bound is returned as it is.
    Needs   At most 2³² numbers a row. A row with a NaN or an infinity becomes zeros: it has no direction to keep.
    """
    return _clip(vectors, bound, lambda rows: np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def clip_l1(vectors: ArrayLike, bound: Number) -> NDArray[np.float64]:
    """Return the rows (or the one vector), each scaled down to an l1 norm of at most `bound` where it is longer.

    Claim   The exact sum of the |numbers| returned is at most `bound`. As clip_l2, with n = fl(Σ|y|)(1 + (d + 8)u).
    """
    return _clip(vectors, bound, lambda rows: np.abs(rows).sum(axis=1))


def clamp(values: ArrayLike, lower: Number, upper: Number, *, missing: Number | None = None) -> NDArray[np.float64]:
    """Return the values moved into [lower, upper]; infinities go to the ends, NaN to `missing`, by default the middle.

    Claim   Every float returned lies between the exact bounds, also where those are no floats.
    Rounds  The ends inward.
    """
    low, high = rational(lower, "lower"), rational(upper, "upper")
    require(low <= high, "lower", "at most upper", lower)
    least, most = float_up(low), float_down(high)
    if not (least <= most and math.isfinite(least) and math.isfinite(most)):
        raise InvalidParameter.must_be("lower and upper", "bounds with a float between them", f"{lower} and {upper}")
    middle = (low + high) / 2 if missing is None else rational(missing, "missing")
    require(low <= middle <= high, "missing", "between lower and upper", missing)
    stand_in = min(max(float_down(middle), least), most)
    array = _floats(values, "values")
    return np.clip(np.where(np.isnan(array), stand_in, array), least, most)


def _floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """A fresh array of doubles; refused by type and shape alone. In lists, what is no number becomes a NaN."""
    given = unwrap_value(values, name)
    if isinstance(given, (str, bytes)) or not (isinstance(given, (list, tuple)) or hasattr(given, "__array__")):
        raise refusal_of_value(name, "numbers", f"a {type(given).__name__}")
    try:
        array: NDArray[Any] = np.array(given, dtype=object if isinstance(given, (list, tuple)) else None)
    except ValueError:
        raise refusal_of_value(name, "a rectangular array of numbers", "rows of different lengths") from None
    if array.dtype.kind == "O":
        if any(isinstance(one, (list, tuple)) for one in array.flat):
            raise refusal_of_value(name, "a rectangular array of numbers", "rows of different lengths")
        return np.array([_float(one) for one in array.flat], np.float64).reshape(array.shape)
    if array.dtype.kind not in "iuf":
        raise refusal_of_value(name, "an array of integers or floats", "another type of array")
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def _float(value: object) -> float:
    """The nearest double of a number, an infinity beyond them all; a NaN for nulls, booleans, text and the like."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, decimal.Decimal)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if cast("int", value) > 0 else -math.inf
    except (ValueError, TypeError):
        return math.nan


def _clip(vectors: ArrayLike, bound: Number, norm: Callable[[FloatArray], FloatArray]) -> NDArray[np.float64]:
    limit = float_down(positive(bound, "bound"))
    require(math.isfinite(limit), "bound", "within the range of a float", bound)
    array = _floats(vectors, "vectors")
    if array.ndim not in {1, 2}:
        raise refusal_of_value("vectors", "one vector or rows of them", f"an array of {array.ndim} dimensions")
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    if rows.size == 0:
        return array
    width = rows.shape[1]
    require(width <= _MOST, "vectors", "rows of at most 2^32 numbers", width)
    rows[~np.isfinite(rows).all(axis=1)] = 0.0
    with np.errstate(under="ignore", over="ignore", divide="ignore"):
        exponent = np.frexp(np.abs(rows).max(axis=1))[1]
        scaled = np.ldexp(rows, -exponent[:, None])
        length = np.nextafter(norm(scaled) * (1.0 + (width + 8) * UNIT), np.inf)
        outside = ~(length <= np.ldexp(limit, -exponent)) & (np.abs(rows).max(axis=1) > 0.0)
        factor = np.nextafter(limit / length[outside], 0.0)
        factor = np.minimum(factor, np.finfo(np.float64).max)
        rows[outside] = np.nextafter(scaled[outside] * factor[:, None], 0.0)
    return cast("NDArray[np.float64]", rows.reshape(array.shape))
