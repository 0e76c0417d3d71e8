"""Values at the border: any number or array of numbers, put on a power-of-two grid by ⌊x + 1/2⌋, exactly.

Refusals never repeat a value: it is what the noise protects.
"""

from __future__ import annotations

import decimal
import math
import numbers
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curador.errors import InvalidParameter
from curador.randomness.entropy import IntArray

Real: TypeAlias = int | float | Fraction | decimal.Decimal
FloatValues: TypeAlias = NDArray[np.float64]

LIMIT = 1 << 62
"""Where steps of arrays saturate: a public bound, and clamping moves no two values further apart."""

SCORE_BITS = 30

_CHUNK = 1 << 14


def refused(name: str, rule: str, kind: str, hint: str | None = None) -> InvalidParameter:
    """Return the refusal of a private value: its kind is told, never the value."""
    text = f"{name} must be {rule}; got {kind}."
    return InvalidParameter(f"{text}\nHint: {hint}" if hint else text)


def exact(value: object, name: str = "value") -> Fraction | int:
    """Return the number that the value is: a float is its binary value here, since data is no decimal that a person wrote."""
    kind = type(value)
    if kind is int:
        return cast("int", value)
    if isinstance(value, (bool, np.bool_)):
        raise refused(name, "a number", "a boolean", "write 0 or 1, or use RandomizedResponse")
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if not math.isfinite(number):
            raise refused(name, "a finite number", "a NaN" if math.isnan(number) else "an infinity")
        return Fraction(*number.as_integer_ratio())
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise refused(name, "a finite number", "a NaN or an infinity")
        if abs(value.adjusted()) > 5000:
            raise refused(name, "a number of reasonable size", "one with an exponent beyond 5000")
        return Fraction(value)
    if isinstance(value, Fraction):
        return value
    raise refused(name, "a number", f"a {kind.__name__}")


def to_steps(value: object, exponent: int, name: str = "value") -> int:
    """Return ⌊value/2^exponent + 1/2⌋."""
    number = exact(value, name)
    top, bottom = (number, 1) if isinstance(number, int) else (number.numerator, number.denominator)
    if exponent <= 0:
        top <<= -exponent
    else:
        bottom <<= exponent
    return top if bottom == 1 else (2 * top + bottom) // (2 * bottom)


def to_whole(value: object, name: str = "value") -> int:
    """Return the integer that the value is; a float or fraction is taken only if it is whole."""
    number = exact(value, name)
    if not isinstance(number, int):
        if number.denominator != 1:
            raise refused(name, "a whole number", "a number with a fraction", "use Laplace or Gaussian for real values")
        return number.numerator
    return number


def is_scalar(value: object) -> bool:
    """Whether the value is one number rather than an array, a sequence or a column of them."""
    if isinstance(value, (list, tuple)):
        return False
    return isinstance(value, np.generic) or not hasattr(value, "__array__")


def as_array(values: object, name: str = "value") -> NDArray[Any]:
    """Return an array of integers, floats, or Python integers; refused by its type or shape alone, except for NaN."""
    if isinstance(values, (str, bytes)) or values is None:
        raise refused(name, "numbers", f"a {type(values).__name__}")
    try:
        array = np.asarray(cast("ArrayLike", values))
    except (ValueError, OverflowError):
        raise refused(name, "a rectangular array of numbers", "rows of different lengths") from None
    kind = array.dtype.kind
    if kind == "b":
        raise refused(name, "numbers", "booleans", "cast them: values.astype(int)")
    if kind not in "iufO":
        raise refused(name, "numbers", f"an array of {array.dtype}")
    if array.size == 0:
        raise refused(name, "at least one number", "an empty array")
    if kind == "f" and not np.isfinite(array).all():
        raise refused(name, "finite numbers", "a NaN or an infinity among them")
    if kind == "O":
        return _of_objects(array, name)
    return array


def _of_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Python numbers: integers stay as they are, of any size; with a float or fraction among them all become fractions."""
    out = np.empty(array.shape, object)
    for place, value in np.ndenumerate(array):
        out[place] = exact(value, name)
    return out


def array_steps(values: object, exponent: int, name: str = "value") -> IntArray:
    """Return ⌊x/2^exponent + 1/2⌋ for every x, saturated at ±2⁶².

    Claim   Exact below the bound: scaling by a power of two, ⌊·⌋ and the fraction that it leaves are exact in floats.
    """
    array = as_array(values, name)
    if array.dtype.kind == "f":
        return _float_steps(array.astype(np.float64), exponent)
    if array.dtype.kind in "iu" and array.dtype.itemsize <= 4 and -30 <= exponent <= 0:
        return array.astype(np.int64) << -exponent
    flat = [min(max(to_steps(value, exponent, name), -LIMIT), LIMIT) for value in array.ravel().tolist()]
    return np.array(flat, np.int64).reshape(array.shape)


def _float_steps(array: FloatValues, exponent: int) -> IntArray:
    flat, out = np.ravel(array), np.empty(array.size, np.int64)
    for start in range(0, len(out), _CHUNK):
        with np.errstate(over="ignore", under="ignore"):  # an infinity saturates; what vanishes is 0 steps
            part = np.ldexp(flat[start : start + _CHUNK], -exponent)
        np.clip(part, -float(LIMIT), float(LIMIT), out=part)
        down = np.floor(part)
        part -= down
        down += part >= 0.5
        out[start : start + _CHUNK] = down
    return out.reshape(array.shape)


def whole_array(values: object, name: str = "value") -> IntArray:
    """Return integers, refused unless the type says that they are integers; saturated at ±2⁶²."""
    array = as_array(values, name)
    if array.dtype.kind == "f":
        raise refused(name, "integers", "floats", "cast them: values.astype(int)")
    return array_steps(array, 0, name)


def score_exponent(sensitivity: Fraction) -> int:
    """Return e such that scores of this sensitivity live on the grid 2^e: about a 2⁻³⁰-th of it."""
    from curador.mechanisms.parameters import floor_log2

    return floor_log2(sensitivity) - SCORE_BITS
