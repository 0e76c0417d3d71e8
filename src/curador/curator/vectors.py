"""Columns of values with NULLs: what expressions over released values are computed on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.randomness.entropy import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """One value a row: numbers as doubles, truths as booleans, all else as objects; what stands at a NULL means nothing."""

    values: NDArray[Any]
    null: BoolArray

    def __len__(self) -> int:
        return len(self.values)

    def of(self, kind: Type | None) -> Vector:
        """Return this column as one of the type; only a column of NULLs can be of another."""
        wanted = dtype_of(kind)
        if self.values.dtype == wanted:
            return self
        return Vector(np.zeros(len(self), wanted), np.ones(len(self), np.bool_))

    def listed(self) -> list[Any]:
        """Return the values as Python's own, None where they are NULL."""
        out: list[Any] = self.values.tolist()
        for place in np.flatnonzero(self.null).tolist():
            out[place] = None
        return out


def dtype_of(kind: Type | None) -> np.dtype[Any]:
    """Return how values of a type are held."""
    if kind is None or kind.numeric:
        return np.dtype(np.float64)
    return np.dtype(np.bool_) if kind is Type.BOOLEAN else np.dtype(object)


def vector_of(values: Sequence[Any], kind: Type | None) -> Vector:
    """Return a column of Python values, None among them for NULL. Numbers become the nearest doubles."""
    null = np.array([value is None for value in values], np.bool_)
    out = np.zeros(len(values), dtype_of(kind))
    if out.dtype == object:
        out[:] = values
    else:
        out[:] = [0 if value is None else _near(value) for value in values] if null.any() else _all_near(values)
    return Vector(out, null)


def constant(value: Any, kind: Type | None, rows: int) -> Vector:
    """Return a column of one value."""
    out = np.empty(rows, dtype_of(kind)) if value is not None else np.zeros(rows, dtype_of(kind))
    if value is not None:
        out[:] = _near(value)
    return Vector(out, np.full(rows, value is None))


def numbers(values: NDArray[Any], null: BoolArray) -> Vector:
    """Return doubles, NULL also where they are not finite: functions are total."""
    floats = np.asarray(values, np.float64)
    missing = null | ~np.isfinite(floats)
    return Vector(np.where(missing, 0.0, floats) + 0.0, missing)  # one zero


def _all_near(values: Sequence[Any]) -> Any:
    largest = max(values, default=0), min(values, default=0)
    return values if all(abs(one) < 1 << 1000 for one in largest) else [_near(value) for value in values]


def _near(value: Any) -> Any:
    """The double next to a number of any size."""
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return value
