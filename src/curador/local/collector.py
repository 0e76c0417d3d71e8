"""The collector: adds up what reports say, batch by batch, and never keeps a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.errors import InvalidParameter

if TYPE_CHECKING:
    import os

    from curador.numerics.exact import Number
    from curador.randomness.entropy import IntArray

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
                f"domain must have at most {MOST_VALUES:,} values to be counted whole; got {protocol.size:,}.\n"
                "Hint: HeavyHitters finds the frequent ones of a huge domain."
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
                raise InvalidParameter("merge must be given collectors of the same protocol; got another.")
            self._statistic = self._statistic + other._statistic  # noqa: SLF001 -- of its own kind
            self.reports += other.reports
            self.rejected += other.rejected
        return self

    def estimate(self, *, confidence: Number = "0.95") -> Any:
        """Return the estimates with error bars. Asking costs nothing and changes nothing."""
        if not self.reports:
            raise InvalidParameter("estimate must follow at least one well-formed report; got none.")
        return self.protocol.estimated(self._statistic, self.reports, self.rejected, confidence)

    def __repr__(self) -> str:
        return f"Collector({self.protocol!r}): {self.reports:,} reports, {self.rejected:,} rejected"
