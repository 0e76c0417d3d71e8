"""Power-of-two grids: values at the border, put there by ⌊x + 1/2⌋, exactly, and what mechanisms count in their steps.

Any number or array of numbers is a value. The parameters that several mechanisms share are sensitivities and scales: which
grid they ask for, what they are in its steps, and decimals that read well.

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

from curador.errors import InvalidParameter, NotPrivate, require
from curador.numerics.exact import Number, at_least_zero, coprime, square
from curador.privacy.adjacency import Adjacency
from curador.privacy.sensitivity import Norm, Sensitivity
from curador.randomness.entropy import IntArray

Real: TypeAlias = int | float | Fraction | decimal.Decimal
FloatValues: TypeAlias = NDArray[np.float64]

# ---- values ----------------------------------------------------------------------------------------------------------------

LIMIT = 1 << 62
"""Where steps of arrays saturate: a public bound, and clamping moves no two values further apart."""

SCORE_BITS = 30

MOST_FLOAT = math.nextafter(math.inf, 0.0)

_CHUNK = 1 << 14
_SAFE = 1 << 900
_EASY_FLOAT, _EASY_EXPONENT = 2.0**500, 500
_PLAIN = frozenset({int, float})
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
    if type(value) is float and -_EASY_FLOAT < value < _EASY_FLOAT and -_EASY_EXPONENT < exponent < _EASY_EXPONENT:
        scaled = math.ldexp(value, -exponent)  # exact, or far below 1/2
        down = math.floor(scaled)
        return down + (scaled - down >= 0.5)  # beyond 2⁵³ nothing is left of it
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
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise refusal_of_value(name, "numbers", "a masked array", "fill it first: the mask would be lost")
    if hasattr(value, "columns"):
        raise refusal_of_value(name, "an array of numbers", "a table", "pass one column, or an array of one type")
    if isinstance(value, np.ndarray) and cast("NDArray[Any]", value).ndim == 0:
        return cast("NDArray[Any]", value)[()]
    return value


def is_scalar(value: object) -> bool:
    """Whether the value is one number rather than an array, a sequence or a column of them."""
    if type(value) in _PLAIN:
        return True
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


# ---- parameters ------------------------------------------------------------------------------------------------------------

GRID_BITS = 40
"""Real-valued noise lives on a power-of-two grid of 2⁻⁴⁰ to 2⁻⁴¹ of its scale: finer than anybody needs, coarser than a
float's own spacing for all values below 4,000 times the scale."""

_LEAST_STEPS_BITS = 10
_SMALLEST, _LARGEST = Fraction(1, 10**100), Fraction(10**100)
_LONG = 330  # bits: fewer than 1e100 has


def squared_sensitivity(sensitivity: Number | Sensitivity, norm: Norm) -> tuple[Fraction, Adjacency | None]:
    """Return the square of the sensitivity and the adjacency that it names.

    Claim   An L1 sensitivity bounds the L2 one; the reverse is refused.
    """
    if isinstance(sensitivity, Sensitivity):
        if norm is Norm.L1 and sensitivity.norm is Norm.L2:
            raise NotPrivate(
                "this noise needs an l1 sensitivity; got an l2 one, which may be smaller by the root of the dimension."
            )
        return sensitivity.value_squared, sensitivity.adjacency
    if type(sensitivity) is int and 0 <= sensitivity < 1 << _LONG // 2:
        return coprime(sensitivity * sensitivity, 1), None
    value = at_least_zero(sensitivity, "sensitivity")
    top, bottom = value.as_integer_ratio()
    if top.bit_length() + bottom.bit_length() > _LONG:  # comparing rationals is dear
        require(_SMALLEST <= value <= _LARGEST, "sensitivity", "0 or between 1e-100 and 1e100", sensitivity)
    return square(value), None


def floor_log2(value: Fraction) -> int:
    """Return the largest e with 2^e ≤ value, for a value above 0."""
    top, bottom = value.as_integer_ratio()
    guess = top.bit_length() - bottom.bit_length()
    reached = top >= bottom << guess if guess >= 0 else top << -guess >= bottom
    return guess if reached else guess - 1


def grid_exponent(scale: Fraction, squared: Fraction) -> int:
    """Return e such that real-valued noise of this scale, for a sensitivity of √squared, is drawn on the grid 2^e.

    At most a 2⁻⁴⁰-th of the scale; where the noise dwarfs the sensitivity, at most a 2⁻¹⁰-th of that, which is counted in
    whole steps.
    """
    fine = floor_log2(scale) - GRID_BITS
    top, bottom = squared.as_integer_ratio()
    about = top.bit_length() - bottom.bit_length() - 1  # log₂ squared, or one less
    if fine <= about // 2 - _LEAST_STEPS_BITS:
        return fine
    return fine if top == 0 else min(fine, floor_log2(squared) // 2 - _LEAST_STEPS_BITS)


def score_exponent(sensitivity: Fraction) -> int:
    """Return e such that scores of this sensitivity live on the grid 2^e: about a 2⁻³⁰-th of it."""
    return floor_log2(sensitivity) - SCORE_BITS


def power_of_two(exponent: int) -> Fraction:
    """Return 2^exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def in_steps(value: Fraction, exponent: int) -> Fraction:
    """Return value / 2^exponent. Only twos can be in common then: those at the end of one of the two numbers."""
    top, bottom = value.as_integer_ratio()
    if exponent <= 0:
        shared = min(-exponent, (bottom & -bottom).bit_length() - 1)
        return coprime(top << -exponent - shared, bottom >> shared)
    if top == 0:
        return value
    shared = min(exponent, (top & -top).bit_length() - 1)
    return coprime(top >> shared, bottom << exponent - shared)


def steps_of(squared: Fraction, exponent: int) -> int:
    """Return the number of steps of the grid 2^exponent that a change of length √squared may become.

    Claim   For scalars, |a − b| ≤ kg implies |round(a/g) − round(b/g)| ≤ k: rounding costs nothing where g divides the
            sensitivity.
    Needs   round(x) = ⌊x + 1/2⌋; rounding halves to even would move 0.5 and 1.5 by two.
    Rounds  Up.
    """
    top, bottom = squared.as_integer_ratio()
    top, bottom = (top << -2 * exponent, bottom) if exponent <= 0 else (top, bottom << 2 * exponent)
    root = math.isqrt(top // bottom)
    return root if root * root * bottom == top else root + 1


def vector_steps(squared: Fraction, exponent: int, dimension: int) -> int:
    """Return the l1 steps of the grid 2^exponent that a vector of `dimension` numbers moving by √squared may move.

    Claim   Each coordinate becomes ⌈|move|/g⌉ steps at most, less than one more than its share: Σ⌈x_i⌉ < Σx_i + d, and the
            left side is whole, so it is at most ⌈Σx_i⌉ + d − 1.
    Rounds  Up.
    """
    steps = steps_of(squared, exponent)
    return steps + dimension - 1 if steps else 0


def vector_squares(squared: Fraction, exponent: int, dimension: int) -> int:
    """Return the square of the l2 length, in steps of the grid 2^exponent, that a vector's move of √squared may become.

    Claim   Rounding adds less than one step to a coordinate, so less than √d to the length: (√S + √d)² with S = squared/g².
    Rounds  Up.
    """
    if squared == 0:
        return 0
    scaled = in_steps(squared, 2 * exponent)
    whole_part = -(-scaled.numerator // scaled.denominator)
    return whole_part + math.isqrt(4 * whole_part * dimension) + 1 + dimension


def root_text(squared: Fraction) -> str:
    """Return √squared as a person would write it."""
    root = Sensitivity(squared, Norm.L2, Adjacency.REPLACE_ONE).exact
    return f"√{decimal_text(squared)}" if root is None else decimal_text(root)


def decimal_text(value: Fraction) -> str:
    """Return the rational as a decimal where that is exact and short, else as a ratio."""
    text = f"{float(value):.15g}"
    return text if Fraction(text) == value else str(value)


def round_up(value: float | Fraction, digits: int = 12) -> Fraction:
    """Return the next decimal of `digits` significant digits at or above the value, so that parameters read well."""
    exact = Fraction(value)
    place = Fraction(10) ** (math.floor(math.log10(exact)) - digits + 1)
    return -(-exact // place) * place


def round_down(value: float | Fraction, digits: int = 12) -> Fraction:
    """Return the decimal of `digits` significant digits at or below the value."""
    exact = Fraction(value)
    place = Fraction(10) ** (math.floor(math.log10(exact)) - digits + 1)
    return exact // place * place
