"""Values at the border: any number or array of numbers, put on a power-of-two grid by ⌊x + 1/2⌋, exactly.

Refusals never repeat a value: it is what the noise protects.
"""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Sequence
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

MOST_FLOAT = math.nextafter(math.inf, 0.0)

_CHUNK = 1 << 14
_SAFE = 1 << 900
_LARGEST_EXPONENT = 5000
_WIDEST_FLOAT = 8  # octets: a wider one would be rounded before it is on the grid
_KINDS = {
    "b": "booleans",
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "durations",
    "c": "complex numbers",
    "f": "wide floats",
}


def refusal_of_value(name: str, rule: str, kind: str, hint: str | None = None) -> InvalidParameter:
    """Return the refusal of a private value: its kind is told, never the value."""
    return InvalidParameter(subject=name, rule=f"must be {rule}", got=kind, hint=hint)


def exact_number(value: object, name: str = "value") -> Fraction | int:
    """Return the number that the value is: an integer for an integer's type, else a rational, of a float its binary value."""
    kind = type(value)
    if kind is int:
        return cast("int", value)
    if isinstance(value, (bool, np.bool_)):
        raise refusal_of_value(name, "a number", "a boolean", "write 0 or 1, or use RandomizedResponse")
    if isinstance(value, numbers.Integral) and not isinstance(value, np.timedelta64):
        return int(value)
    if kind is float or (isinstance(value, (float, np.floating)) and np.dtype(kind).itemsize <= _WIDEST_FLOAT):
        number = float(cast("float", value))
        if not math.isfinite(number):
            raise refusal_of_value(name, "a finite number", "a NaN" if math.isnan(number) else "an infinity")
        return Fraction(*number.as_integer_ratio())
    if isinstance(value, decimal.Decimal):
        return _of_decimal(value, name)
    if isinstance(value, Fraction):
        return value
    raise refusal_of_value(name, "a number", f"a {kind.__name__}")


def _of_decimal(value: decimal.Decimal, name: str) -> Fraction:
    if not value.is_finite():
        raise refusal_of_value(name, "a finite number", "a NaN or an infinity")
    if value == 0:
        return Fraction(0)
    if value.adjusted() > _LARGEST_EXPONENT:
        raise refusal_of_value(name, "a number of reasonable size", f"one above 1e{_LARGEST_EXPONENT}")
    if value.adjusted() < -_LARGEST_EXPONENT:  # far below any grid: only its sign can matter
        return Fraction(-1 if value < 0 else 1, 10**_LARGEST_EXPONENT)
    return Fraction(value)


def to_steps(value: object, exponent: int, name: str = "value") -> int:
    """Return ⌊value/2^exponent + 1/2⌋."""
    number = exact_number(value, name)
    top, bottom = (number, 1) if isinstance(number, int) else (number.numerator, number.denominator)
    if exponent <= 0:
        top <<= -exponent
    else:
        bottom <<= exponent
    return top if bottom == 1 else (2 * top + bottom) // (2 * bottom)


def to_float(steps: int, exponent: int) -> float:
    """Return steps · 2^exponent, rounded once; beyond the floats the nearest of them, which is post-processing."""
    try:
        if -_SAFE < steps < _SAFE:
            return math.ldexp(float(steps), exponent)
        return steps / (1 << -exponent) if exponent < 0 else float(steps << exponent)
    except OverflowError:  # the release is paid for: an error now would waste it, and tell that the value is huge
        return MOST_FLOAT if steps > 0 else -MOST_FLOAT


def to_whole(value: object, name: str = "value") -> int:
    """Return the integer; refused by its type: a float that happens to be whole is refused like any other."""
    number = exact_number(value, name)
    if not isinstance(number, int):
        raise refusal_of_value(
            name, "an integer", f"a {type(value).__name__}", "cast it, or use Laplace or Gaussian for real values"
        )
    return number


def unwrap_value(value: object, name: str = "value") -> object:
    """Return the value, an array without dimensions as the number in it; masked arrays and tables are refused."""
    if isinstance(value, np.ma.MaskedArray):
        raise refusal_of_value(name, "numbers", "a masked array", "fill it first: the mask would be lost")
    if hasattr(value, "columns"):
        raise refusal_of_value(name, "an array of numbers", "a table", "pass one column, or an array of one type")
    if isinstance(value, np.ndarray) and cast("NDArray[Any]", value).ndim == 0:
        return cast("NDArray[Any]", value)[()]
    return value


def is_scalar(value: object) -> bool:
    """Whether the value is one number rather than an array, a sequence or a column of them."""
    if isinstance(value, (list, tuple)):
        return False
    return isinstance(value, np.generic) or not hasattr(value, "__array__")


def as_array(values: object, name: str = "value") -> NDArray[Any]:
    """Return an array of machine integers, of floats, or of Python's exact numbers. The kind follows from types alone.

    A list becomes floats if all its members are floats and Python's numbers otherwise: left to itself, NumPy would round
    the integers of a mixed list to floats, and so move neighbours apart.
    """
    given = unwrap_value(values, name)
    if isinstance(given, (list, tuple)):
        return _of_list(cast("Sequence[object]", given), name)
    if isinstance(given, (str, bytes)) or not hasattr(given, "__array__"):
        raise refusal_of_value(name, "numbers", f"a {type(given).__name__}")
    array = np.asarray(cast("ArrayLike", given))
    kind = array.dtype.kind
    if kind not in "iufO" or array.dtype.itemsize > _WIDEST_FLOAT:
        hint = "cast them: values.astype(int)" if kind == "b" else None
        raise refusal_of_value(name, "numbers", _KINDS.get(kind, "something else"), hint)
    return _of_objects(array, name) if kind == "O" else _check_array(array, name)


def _check_array(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.size == 0:
        raise refusal_of_value(name, "at least one number", "an empty array")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise refusal_of_value(name, "finite numbers", "a NaN or an infinity among them")
    return array


def _of_list(values: Sequence[object], name: str) -> NDArray[Any]:
    try:
        array = np.array(values, dtype=object)
    except ValueError:
        raise refusal_of_value(name, "a rectangular array of numbers", "rows of different lengths") from None
    if any(isinstance(one, (list, tuple)) for one in array.flat):
        raise refusal_of_value(name, "a rectangular array of numbers", "rows of different lengths")
    if array.size and all(type(one) is float or isinstance(one, np.float64) for one in array.flat):
        return _check_array(array.astype(np.float64), name)
    return _of_objects(array, name)


def _of_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Python's numbers: integers as they are, of any size, everything else as a rational."""
    out = np.empty(array.shape, object)
    for place, value in np.ndenumerate(array):
        out[place] = exact_number(value, name)
    return _check_array(out, name)


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
        with np.errstate(all="ignore"):  # an infinity saturates; what vanishes is 0 steps
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
        raise refusal_of_value(name, "integers", "floats", "cast them: values.astype(int)")
    if array.dtype.kind == "O":
        whole = [min(max(to_whole(one, name), -LIMIT), LIMIT) for one in array.ravel().tolist()]
        return np.array(whole, np.int64).reshape(array.shape)
    return array_steps(array, 0, name)


def score_exponent(sensitivity: Fraction) -> int:
    """Return e such that scores of this sensitivity live on the grid 2^e: about a 2⁻³⁰-th of it."""
    from curador.mechanisms.parameters import floor_log2

    return floor_log2(sensitivity) - SCORE_BITS
