"""Mechanisms that add integer noise: on integers, and on real numbers by a fine grid. What they share from border to border.

release:  number or array → whole numbers of grid steps → seam → noise added in integers → one conversion at the end
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np

from curador.errors import InvalidParameter
from curador.mechanisms.calibration import Accuracy
from curador.mechanisms.grid import (
    MOST_FLOAT,
    FloatValues,
    Real,
    as_array,
    is_scalar,
    power_of_two,
    refusal_of_value,
    round_down,
    to_float,
    to_steps,
    to_whole,
    unwrap_value,
)
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, confidence_level, whole
from curador.numerics.rounding import Interval, float_up
from curador.privacy.sensitivity import Norm

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from curador.randomness.entropy import Entropy
    from curador.randomness.noise import Noise

_LIMB = 32
_LARGEST = 2.0**1000
_HALF = 1 << 62
_INT64 = np.iinfo(np.int64)


class IntegerNoise(ABC):
    """Adds noise to an integer or an array of integers.

    Python's integers may be of any size, in lists too; arrays of machine integers give 64-bit ones, saturated at the ends of
    their range, which is post-processing. What else fits 64 bits once it is released is given in them.
    """

    __slots__ = ()

    # ---- what a mechanism says of itself ----------------------------------------------------------------------------

    @abstractmethod
    def _make_table(self) -> Noise:
        """Return the exact noise of this scale, in grid steps."""

    def _noise(self, size: int, source: Entropy) -> tuple[NDArray[Any], bool]:
        """Return `size` noises in grid steps, and whether all are known to be below 2⁶²."""
        table: Noise = getattr(self, "table", None) or self._table
        return table.several(size, source), not table.unbounded

    def _one(self, source: Entropy) -> int:
        return self._table.one(source)

    @abstractmethod
    def _reach(self, confidence: Fraction) -> int:
        """Return the smallest w known with P[|noise| ≤ w grid steps] ≥ confidence."""

    @abstractmethod
    def probability(self, steps: int) -> float:
        """Return P[noise = steps grid steps], to display."""

    @property
    @abstractmethod
    def _moves(self) -> tuple[Norm, int]:
        """The norm of the sensitivity, and its square in grid steps."""

    @property
    def _shape_rule(self) -> int | None:
        """How many numbers a value must have; None: any number."""
        return None

    @property
    def _table(self) -> Noise:
        table = cast("Noise | None", getattr(self, "table", None))
        if table is None:
            table = self._make_table()
            object.__setattr__(self, "table", table)
        return table

    def planned(self) -> Self:
        """Make what the first release would make: noise that cannot be drawn is refused now, and not when data are there."""
        _ = self._table
        return self

    # ---- releases ---------------------------------------------------------------------------------------------------

    def release(self, value: int | ArrayLike) -> Any:
        """Return the value with noise: an integer for an integer, an array for an array."""
        given = unwrap_value(value)
        if is_scalar(given):
            self._check_size(1)
            return perform(self, to_whole(given))
        return _to_machine_integers(perform(self, self._whole(given)))

    def release_many(self, value: int | ArrayLike, size: int) -> NDArray[Any]:
        """Return `size` independent releases along a first axis. Costs `size` times the loss."""
        count, given = whole(size, "size"), unwrap_value(value)
        if is_scalar(given):
            self._check_size(1)
            return _to_machine_integers(perform(self, to_whole(given), count))
        return _to_machine_integers(perform(self, self._whole(given), count))

    def _whole(self, value: object) -> NDArray[Any]:
        array = as_array(value)
        if array.dtype.kind == "f":
            raise refusal_of_value("value", "integers", "floats", "cast them, or use Laplace or Gaussian for real values")
        self._check_size(array.size)
        if array.dtype.kind == "O" or array.dtype == np.uint64:
            return _as_objects([to_whole(one) for one in array.ravel().tolist()], array.shape)
        return array.astype(np.int64)

    def _check_size(self, size: int) -> None:
        wanted = self._shape_rule
        if wanted is not None and size != wanted:
            hint = f"make the mechanism with dimension={size}; its sensitivity is that of the whole array"
            raise refusal_of_value("value", "one number" if wanted == 1 else f"{wanted} numbers", f"{size} numbers", hint)

    def draw(self, value: Any, source: Entropy, size: int | None = None) -> Any:
        """Add noise to whole numbers of grid steps."""
        if isinstance(value, int):
            if size is None:
                return value + self._one(source)
            noise, bounded = self._noise(size, source)
            if -_HALF < value < _HALF and (bounded or _is_small(noise)):
                noise += np.array(value)  # a number would take twice as long
                return noise
            return noise.astype(object) + value
        array = cast("NDArray[Any]", value)
        shape = array.shape if size is None else (size, *array.shape)
        noise, bounded = self._noise(math.prod(shape), source)
        noise = noise.reshape(shape)
        if "O" in (array.dtype.kind, noise.dtype.kind):
            return np.asarray(array.astype(object) + noise.astype(object), object)
        return _sum(array, noise, small=(bounded or _is_small(noise)) and _is_small(array))

    def within(self, one: Any, other: Any) -> bool:
        """Whether two values, in grid steps, differ by no more than the declared sensitivity."""
        norm, squared = self._moves
        if np.shape(one) != np.shape(other):
            return False
        pairs = zip(np.ravel(one).tolist(), np.ravel(other).tolist(), strict=True)
        moved = [abs(int(a) - int(b)) for a, b in pairs]
        length = sum(moved) ** 2 if norm is Norm.L1 else sum(step * step for step in moved)
        return length <= squared

    # ---- error bars -------------------------------------------------------------------------------------------------

    def interval(self, confidence: Number = "0.95", *, together: Number = 1) -> Interval:
        """Return the error bar: noise and rounding lie in it with at least this probability; add it to a released number.

        together: the probability that this many numbers, each with its own noise, all lie within theirs.
        """
        half = self.half_width(confidence, together=together)
        return Interval(-half, half)

    def half_width(self, confidence: Number = "0.95", *, together: Number = 1) -> float:
        """Return how far the error bar reaches to either side. See `interval`. Rounds: up."""
        return float_up(self._reach(1 - miss_of_each(confidence, together)))


class RealNoise(IntegerNoise):
    """Adds noise to a real number or an array of them, on the grid 2^exponent.

    A value is rounded to the grid by ⌊x + 1/2⌋, exactly; noise is added in integers; the sum becomes a float once: what is
    released is a function of that sum alone, and the low bits of the value never meet a float.
    """

    __slots__ = ()
    exponent: int

    @property
    def _shape_rule(self) -> int | None:
        return 1

    def release(self, value: Real | ArrayLike) -> Any:
        """Return the value with noise: a float for a number, an array of floats for an array."""
        given = unwrap_value(value)
        if is_scalar(given):
            self._check_size(1)
            exponent = self.exponent
            return to_float(perform(self, to_steps(given, exponent)), exponent)
        return self._scaled(perform(self, self._steps_of(given)))

    def release_many(self, value: Real | ArrayLike, size: int) -> NDArray[np.float64]:
        """Return `size` independent releases along a first axis. Costs `size` times the loss."""
        count, given = whole(size, "size"), unwrap_value(value)
        if is_scalar(given):
            self._check_size(1)
            steps = to_steps(given, self.exponent)
            return self._scaled(perform(self, steps, count))
        return self._scaled(perform(self, self._steps_of(given), count))

    def _steps_of(self, value: object) -> FloatValues | NDArray[Any]:
        """Whole numbers of steps, as floats, which hold them exactly: beyond 2⁵³ a float has no fraction to round."""
        array = as_array(value)
        self._check_size(array.size)
        exponent = self.exponent
        if array.dtype.kind in "Ou" or (array.dtype.kind == "i" and array.dtype.itemsize > 4):
            return _as_objects([to_steps(one, exponent) for one in array.ravel().tolist()], array.shape)
        with np.errstate(all="ignore"):
            scaled = np.ldexp(array.astype(np.float64), -exponent)
        if not (np.abs(scaled) < _LARGEST).all():
            return _as_objects([to_steps(one, exponent) for one in array.ravel().tolist()], array.shape)
        down = np.floor(scaled)
        down += scaled - down >= 0.5
        return down

    def _scaled(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        exponent = self.exponent
        if steps.dtype.kind == "O":
            flat = [to_float(one, exponent) for one in steps.ravel().tolist()]
            return np.array(flat, np.float64).reshape(steps.shape)
        floats = steps.astype(np.float64)  # a copy: a recorder may hold the steps
        if -1000 < exponent < 1000:
            floats *= _power(exponent)
            return floats
        with np.errstate(all="ignore"):
            return np.clip(np.ldexp(floats, exponent), -MOST_FLOAT, MOST_FLOAT)

    def draw(self, value: Any, source: Entropy, size: int | None = None) -> Any:
        """Add noise to whole numbers of grid steps; sums beyond 62 bits are rounded to floats here, once."""
        if isinstance(value, int) or value.dtype.kind == "O":
            return IntegerNoise.draw(self, value, source, size)
        shape = value.shape if size is None else (size, *value.shape)
        noise, bounded = self._noise(math.prod(shape), source)
        noise = noise.reshape(shape)
        if noise.dtype.kind == "O":
            return np.asarray(_as_objects([int(one) for one in value.ravel().tolist()], value.shape) + noise, object)
        if _is_small(value):
            return _sum(value.astype(np.int64), noise, small=bounded or _is_small(noise))
        return _float_sum(value, noise)

    def half_width(self, confidence: Number = "0.95", *, together: Number = 1) -> float:
        """Return how far the error bar reaches to either side, half a grid step for rounding included. Rounds: up."""
        reach = self._reach(1 - miss_of_each(confidence, together))
        return float_up((2 * reach + 1) * power_of_two(self.exponent - 1))


M = TypeVar("M", bound="RealNoise")


def largest_accurate(make: Callable[[Fraction], M], scale: Fraction, wanted: Accuracy) -> M:
    """Return the mechanism of this scale, or of a smaller one if the grid's own rounding would break the accuracy."""
    while True:
        mechanism = make(scale)
        reached = Fraction(mechanism.half_width(wanted.confidence))
        if reached <= wanted.error:
            return mechanism
        scale = round_down(scale * min(wanted.error / reached, 1 - Fraction(1, 1 << 38)))


def miss_of_each(confidence: Number, together: Number) -> Fraction:
    """Return m with (1 − m)^together ≥ confidence. Rounds: down."""
    exact = confidence_level(confidence)
    count = whole(together, "together")
    if count == 1:
        return 1 - exact
    allowed = -math.expm1(math.log1p(-float(1 - exact)) / count)
    return Fraction(allowed) * (1 - Fraction(1, 1 << 48))


@lru_cache(maxsize=256)
def _power(exponent: int) -> NDArray[np.float64]:
    return np.array(2.0**exponent)  # an array without dimensions multiplies a short one faster than a number does


def _as_objects(values: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


def _to_machine_integers(released: NDArray[Any]) -> NDArray[Any]:
    """Python's integers as 64-bit ones if all fit: a question about what was released, not about the value."""
    if released.dtype.kind == "O" and all(_INT64.min <= one <= _INT64.max for one in released.flat):
        return released.astype(np.int64)
    return released


def _sum(value: NDArray[Any], noise: NDArray[Any], *, small: bool) -> NDArray[Any]:
    """value + noise, saturated at the ends of 64 bits; small: both are known to be below 2⁶²."""
    if small:
        noise += value
        return noise
    with np.errstate(all="ignore"):
        total = value + noise
    over = ((value ^ total) & (noise ^ total)) < 0
    return np.where(over, np.where(value < 0, _INT64.min, _INT64.max), total)


def _is_small(array: NDArray[Any]) -> bool:
    """Whether two such arrays can be added in 64 bits."""
    return bool(np.minimum.reduce(array, axis=None) > -_HALF and np.maximum.reduce(array, axis=None) < _HALF)


def _float_sum(value: FloatValues, noise: NDArray[Any]) -> FloatValues:
    """The float of value + noise, for whole floats and 64-bit integers.

    Claim   A function of the exact sum alone, correctly rounded below 2⁸⁵. The sum is high · 2³² + low in one way only; high
            is rounded to a float, once, where it is beyond 2⁵³; then low is added with one rounding.
    """
    high = np.floor(value * 2.0**-_LIMB)
    low = (value - high * 2.0**_LIMB).astype(np.int64) + noise
    high = high + (low >> _LIMB)
    return (high * 2.0**_LIMB + (low & ((1 << _LIMB) - 1))).astype(np.float64, copy=False)


def read_dimension(value: Number) -> int:
    """Return how many numbers a value has."""
    count = whole(value, "dimension")
    if count > 1 << 40:
        raise InvalidParameter.must_be("dimension", "at most 2^40", value)
    return count
