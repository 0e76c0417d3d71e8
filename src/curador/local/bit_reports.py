"""Reports with a bit for every value: what unary encoding and subset selection share at the collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.local.bits import column_sums, padding_of, width_of
from curador.local.protocol import Supporting
from curador.local.reading import rows_of_bytes

if TYPE_CHECKING:
    from curador.randomness.entropy import BoolArray, Bytes, IntArray


@dataclass(frozen=True, slots=True, init=False)
class BitReports(Supporting):
    """A report is ⌈k/8⌉ bytes; it supports the values whose bits are 1."""

    columns: ClassVar = (("report", "bytes"),)

    @property
    def width(self) -> int:
        """How many bytes a report has."""
        return width_of(self.size)

    @property
    def report_bits(self) -> int:
        """How many bits a report needs."""
        return self.size

    def accept(self, reports: Any) -> tuple[Bytes, int]:
        """Return the reports that have the right number of bytes, and no bit beyond the last value."""
        rows, bad = rows_of_bytes(reports, self.width)
        return self.kept(rows, rows[:, -1] & np.uint8(padding_of(self.size)) == 0, bad)

    @staticmethod
    def kept(rows: Bytes, sound: BoolArray, bad: int) -> tuple[Bytes, int]:
        """Return the sound rows, and how many reports are not among them."""
        good = rows if sound.all() else rows[sound]
        return good, bad + len(rows) - len(good)

    def speaks_for(self, reports: Bytes, code: int) -> BoolArray:
        """A report speaks for the values whose bits are set."""
        return reports[:, code >> 3] >> (code & 7) & 1 == 1

    def zero(self) -> IntArray:
        """No bit of any value."""
        return np.zeros(self.size, np.int64)

    def tally(self, reports: Bytes) -> IntArray:
        """Count the bits of each value."""
        return column_sums(reports, self.size)

    def supports(self, statistic: IntArray) -> IntArray:
        """A report supports the values whose bits are 1."""
        return statistic
