"""Reports from outside as arrays: whatever is not well-formed is counted, never an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.randomness.entropy import IntArray


def listed(reports: Any) -> list[Any]:
    """Return the reports as a list; what is no collection of reports is refused."""
    try:
        return list(reports)
    except TypeError:
        raise InvalidParameter(f"reports must be a list or an array of reports; got a {type(reports).__name__}.") from None


def integers(reports: Any, low: int, high: int) -> tuple[IntArray, int]:
    """Return the reports that are whole numbers in [low, high), and how many were not."""
    if isinstance(reports, np.ndarray):
        if reports.ndim != 1:
            raise InvalidParameter(f"reports must be an array of one dimension; got {reports.ndim}.")
        if reports.dtype.kind in "iu":
            inside = (reports >= low) & (reports < high)
            good = reports if inside.all() else reports[inside]
            return good.astype(np.int64, copy=False), len(reports) - len(good)
    items = listed(reports)
    kept = [item for item in items if type(item) is int and low <= item < high]
    if any(isinstance(item, np.integer) for item in items):
        kept = [
            int(item)
            for item in items
            if isinstance(item, (int, np.integer)) and not isinstance(item, bool) and low <= item < high
        ]
    return np.array(kept, np.int64), len(items) - len(kept)


def rows_of_bytes(reports: Any, width: int) -> tuple[NDArray[np.uint8], int]:
    """Return the reports that are `width` bytes, one a row, and how many were not."""
    if isinstance(reports, np.ndarray):
        if reports.ndim != 2 or reports.dtype != np.uint8 or reports.shape[1] != width:
            raise InvalidParameter(
                f"reports must be an array of uint8 with {width} columns; got {reports.dtype}, {reports.shape}."
            )
        return reports, 0
    items = listed(reports)
    kept = [bytes(item) for item in items if isinstance(item, (bytes, bytearray)) and len(item) == width]
    return np.frombuffer(b"".join(kept), np.uint8).reshape(len(kept), width), len(items) - len(kept)


def rows_of_integers(reports: Any, low: Sequence[int], high: Sequence[int]) -> tuple[IntArray, int]:
    """Return the reports that are as many whole numbers, each in its [low, high), one a row, and how many were not."""
    width = len(low)
    if isinstance(reports, np.ndarray) and reports.dtype.kind in "iu":
        if reports.ndim != 2 or reports.shape[1] != width:
            raise InvalidParameter(f"reports must be an array with {width} columns; got {reports.shape}.")
        inside = ((reports >= np.array(low)) & (reports < np.array(high))).all(axis=1)
        good = reports if inside.all() else reports[inside]
        return good.astype(np.int64, copy=False), len(reports) - len(good)
    items = listed(reports)
    kept = [numbers for item in items if (numbers := _whole_numbers(item, low, high)) is not None]
    return np.array(kept, np.int64).reshape(len(kept), width), len(items) - len(kept)


def _whole_numbers(item: Any, low: Sequence[int], high: Sequence[int]) -> list[int] | None:
    if isinstance(item, np.ndarray) and item.ndim != 1:
        return None
    if not isinstance(item, (tuple, list, np.ndarray)) or len(item) != len(low):
        return None
    numbers = [one for one in item if isinstance(one, (int, np.integer)) and not isinstance(one, bool)]
    if len(numbers) != len(low) or not all(a <= one < b for one, a, b in zip(numbers, low, high, strict=True)):
        return None
    return [int(one) for one in numbers]
