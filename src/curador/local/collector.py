"""The collector: reads reports from outside, adds up what they say, batch by batch, and never keeps a report.

Reports from outside become arrays: whatever is not well-formed is counted, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.numerics.exact import Number
    from curador.randomness.entropy import IntArray


# ---- reading ---------------------------------------------------------------------------------------------------------------


def list_reports(reports: Any) -> list[Any]:
    """Return the reports as a list; what is no collection of reports is refused."""
    try:
        return list(reports)
    except TypeError:
        raise InvalidParameter(
            subject="reports", rule="must be a list or an array of reports", got=f"a {type(reports).__name__}"
        ) from None


def integers(reports: Any, low: int, high: int) -> tuple[IntArray, int]:
    """Return the reports that are whole numbers in [low, high), and how many were not."""
    if isinstance(reports, np.ndarray):
        if reports.ndim != 1:
            raise InvalidParameter(subject="reports", rule="must be an array of one dimension", got=str(reports.ndim))
        if reports.dtype.kind in "iu":
            inside = (reports >= low) & (reports < high)
            good = reports if inside.all() else reports[inside]
            return good.astype(np.int64, copy=False), len(reports) - len(good)
    items = list_reports(reports)
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
                subject="reports",
                rule=f"must be an array of uint8 with {width} columns",
                got=f"{reports.dtype}, {reports.shape}",
            )
        return reports, 0
    items = list_reports(reports)
    kept = [bytes(item) for item in items if isinstance(item, (bytes, bytearray)) and len(item) == width]
    return np.frombuffer(b"".join(kept), np.uint8).reshape(len(kept), width), len(items) - len(kept)


def rows_of_integers(reports: Any, low: Sequence[int], high: Sequence[int]) -> tuple[IntArray, int]:
    """Return the reports that are as many whole numbers, each in its [low, high), one a row, and how many were not."""
    width = len(low)
    if isinstance(reports, np.ndarray) and reports.dtype.kind in "iu":
        if reports.ndim != 2 or reports.shape[1] != width:
            raise InvalidParameter(subject="reports", rule=f"must be an array with {width} columns", got=str(reports.shape))
        inside = ((reports >= np.array(low)) & (reports < np.array(high))).all(axis=1)
        good = reports if inside.all() else reports[inside]
        return good.astype(np.int64, copy=False), len(reports) - len(good)
    items = list_reports(reports)
    kept = [numbers for item in items if (numbers := _whole_numbers(item, low, high)) is not None]
    return np.array(kept, np.int64).reshape(len(kept), width), len(items) - len(kept)


def _whole_numbers(item: Any, low: Sequence[int], high: Sequence[int]) -> list[int] | None:
    if isinstance(item, np.ndarray) and item.ndim != 1:
        return None
    if not isinstance(item, (tuple, list, np.ndarray)) or len(item) != len(low):
        return None
    numbers = [one for one in item if isinstance(one, (int, np.integer)) and not isinstance(one, bool)]
    if len(numbers) != len(low) or not all(a <= number < b for number, a, b in zip(numbers, low, high, strict=True)):
        return None
    return [int(number) for number in numbers]


# ---- collector -------------------------------------------------------------------------------------------------------------


MOST_VALUES = 1 << 26
"""Values that a collector counts one by one: half a gigabyte of counts."""

Progress = Callable[[int], None]
"""Called with the number of reports read so far."""


class Collector:
    """Counts reports of one protocol. Reports may come from anybody: a malformed one is counted as rejected and left out.

    Nothing here is secret: a report is private before it arrives. But whoever sends many reports moves the estimate: the
    collector's owner must see to it that a person reports once.
    """

    def __init__(self, protocol: Any) -> None:
        if getattr(protocol, "size", 0) > MOST_VALUES:
            raise InvalidParameter(
                subject="domain",
                rule=f"must have at most {MOST_VALUES:,} values to be counted whole",
                got=f"{protocol.size:,}",
                hint="HeavyHitters finds the frequent ones of a huge domain.",
            )
        self.protocol = protocol
        self.reports = 0
        self.rejected = 0
        self._statistic: IntArray = protocol.zero()

    def add(self, reports: Any) -> Collector:
        """Count reports: an array as `privatise` gives, or a list of what clients sent."""
        good, bad = self.protocol.accept(reports)
        if len(good):
            self._statistic += self.protocol.tally(good)
        self.reports += len(good)
        self.rejected += bad
        return self

    def add_files(self, *paths: str | os.PathLike[str], progress: Progress | None = None) -> Collector:
        """Count the reports of Arrow or Parquet files, or of all such files in a folder, a batch at a time."""
        from curador.local.files import batches

        for reports, bad in batches(self.protocol, [Path(path) for path in paths]):
            self.rejected += bad
            self.add(reports)
            if progress is not None:
                progress(self.reports + self.rejected)
        return self

    def merge(self, *others: Collector) -> Collector:
        """Add what other collectors of the same protocol counted."""
        for other in others:
            if getattr(other, "protocol", None) != self.protocol:
                raise InvalidParameter(subject="merge", rule="must be given collectors of the same protocol", got="another")
            self._statistic = self._statistic + other._statistic  # noqa: SLF001 -- of its own kind
            self.reports += other.reports
            self.rejected += other.rejected
        return self

    def estimate(self, *, confidence: Number = "0.95") -> Any:
        """Return the estimates with error bars. Asking costs nothing and changes nothing."""
        if not self.reports:
            raise InvalidParameter(subject="estimate", rule="must follow at least one well-formed report", got="none")
        return self.protocol.estimated(self._statistic, self.reports, self.rejected, confidence)

    def __repr__(self) -> str:
        return f"Collector({self.protocol!r}): {self.reports:,} reports, {self.rejected:,} rejected"
