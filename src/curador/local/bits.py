"""Reports with a bit for every value: rows of packed bits, and what protocols that send them share at the collector.

Rows of bits are packed in bytes: many exact coins at once, and the sums of the columns.

Place v of a row is bit v mod 8, from the lowest, of byte v div 8; what is left of the last byte is 0.

BitReports is what unary encoding and subset selection share at the collector.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.local.collector import rows_of_bytes
from curador.local.protocol import Supporting
from curador.randomness.choice import Weighted
from curador.randomness.entropy import U16, U64

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from curador.randomness.entropy import BoolArray, Bytes, Entropy, IntArray


# ---- bits ------------------------------------------------------------------------------------------------------------------


_BLOCK = 1 << 16
"""Bytes that are drawn together: their random words stay in the cache."""

_MORE = 62
"""Random bits for the few bytes that 16 do not decide; their places fit an int64."""

_ROUND = 255 * 8
"""Rows whose bits add up in fields of 2, 4 and 8 bits without overflow, and fill whole words at every step."""


def width_of(size: int) -> int:
    """Return how many bytes hold that many bits."""
    return (size + 7) // 8


def padding_of(size: int) -> int:
    """Return the bits of the last byte that are never set, as a mask."""
    return 0xFF << ((size - 1) % 8 + 1) & 0xFF


def packed_bits(probability: Fraction, rows: int, size: int, source: Entropy) -> Bytes:
    """Return rows of `size` independent bits, each 1 with exactly this probability, a rational in [0, 1]."""
    packed = np.empty((rows, width_of(size)), np.uint8)
    fill_bits(packed, probability, size, source)
    return packed


def fill_bits(packed: Bytes, probability: Fraction, size: int, source: Entropy) -> None:
    """Fill contiguous rows with such bits, in situ."""
    coins, flat = eight_coins(probability), packed.reshape(-1)
    for start in range(0, len(flat), _BLOCK):
        coins.fill(flat[start : start + _BLOCK], source)
    if size % 8:
        packed[:, -1] &= np.uint8(0xFF & ~padding_of(size))


class EightCoins:
    """Bytes of eight independent coins of one probability.

    `table` has the byte of every word below `known`; `ends` where the second words of each byte end; `rest` draws the others.

    Claim   Exact for every rational p. Byte c has probability P(c) = p^ones (1 − p)^(8 − ones). Of the 2¹⁶ random words
            ⌊2¹⁶ P(c)⌋ stand for c; fewer than 256 words are left over, one byte in 500 or less. These have what is missing
            of each P(c): 62 bits more decide among them in the same way, and where even these leave it open, once in 2⁵⁴,
            whole numbers of any size.
    """

    def __init__(self, probability: Fraction) -> None:
        top, bottom = probability.numerator, probability.denominator
        by_ones = [top**ones * (bottom - top) ** (8 - ones) for ones in range(9)]
        weights = [by_ones[byte.bit_count()] for byte in range(256)]
        slots, weights, total = _digits(weights, bottom**8, 16)
        self.table = np.zeros(1 << 16, np.uint8)
        self.known = sum(slots)
        self.table[: self.known] = np.repeat(np.arange(256, dtype=np.uint8), slots)
        if self.known < 1 << 16:
            slots, weights, total = _digits(weights, total, _MORE)
            self.ends = np.cumsum(np.array(slots, np.int64))
            self.rest = Weighted(weights) if total else None

    def fill(self, out: Bytes, source: Entropy) -> None:
        """Fill an array with such bytes."""
        words = source.words(len(out), U16)
        np.take(self.table, words, out=out, mode="clip")  # no word is outside; the mode spares a check
        if self.known < 1 << 16:
            places = np.flatnonzero(words >= np.uint16(self.known))
            found = np.searchsorted(
                self.ends, (source.words(len(places), U64) >> np.uint64(64 - _MORE)).astype(np.int64), "right"
            )
            lost = np.flatnonzero(found == 256)
            if len(lost) and self.rest is not None:
                found[lost] = self.rest.draw(len(lost), source)
            out[places] = found


def _digits(weights: list[int], total: int, bits: int) -> tuple[list[int], list[int], int]:
    """Return ⌊2^bits weight/total⌋ of each, the weights that are left, and their sum."""
    parts = [divmod(weight << bits, total) for weight in weights]
    rest = [left for _, left in parts]
    return [whole for whole, _ in parts], rest, sum(rest)


eight_coins = lru_cache(maxsize=16)(EightCoins)


def set_bits(packed: Bytes, places: IntArray, on: BoolArray) -> None:
    """Set or clear one place of each row, in situ."""
    rows = np.arange(len(packed))
    columns, masks = places >> 3, np.left_shift(1, places & 7).astype(np.uint8)
    cleared = packed[rows, columns] & ~masks
    packed[rows, columns] = np.where(on, cleared | masks, cleared)


def row_sums(packed: Bytes) -> IntArray:
    """Return how many bits of each row are set: eight bytes at a time, then the bytes that are left."""
    words = packed.shape[1] // 8 * 8
    out = np.empty(len(packed), np.int64)
    step = max(1, _BLOCK * 4 // packed.shape[1])
    for start in range(0, len(packed), step):
        part = packed[start : start + step]
        whole, rest = np.ascontiguousarray(part[:, :words]).view(U64), part[:, words:]
        out[start : start + step] = np.bitwise_count(whole).sum(axis=1) + np.bitwise_count(rest).sum(axis=1)
    return out


def column_sums(packed: Bytes, size: int) -> IntArray:
    """Return how many rows have each of the first `size` places set.

    Three rows are added in fields of two bits, five such sums in fields of four, seventeen of these in whole bytes: eight
    or more places a machine word, and a sixth of the work of counting each bit.
    """
    width = packed.shape[1]
    total = np.zeros((width, 8), np.int64)
    whole = len(packed) // _ROUND * _ROUND
    step = max(_ROUND, (1 << 19) // (width * _ROUND) * _ROUND)
    for start in range(0, whole, step):
        part = packed[start : min(start + step, whole)]
        total += _fold_bits(np.ascontiguousarray(part).reshape(-1).view(U64), width)
    tail = np.unpackbits(packed[whole:], axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    return total.reshape(-1)[:size] + tail[:size]


def _fold_bits(words: NDArray[np.uint64], width: int) -> IntArray:
    """Return the sums of eight bits in each byte column, of rows in multiples of _ROUND."""
    fields = [words]
    for bits, ways, mask in ((1, 3, 0x5555555555555555), (2, 5, 0x3333333333333333), (4, 17, 0x0F0F0F0F0F0F0F0F)):
        # the fields of the order in which they split: first the lower, then the upper half
        fields = [
            ((field if not shift else field >> np.uint64(bits)) & np.uint64(mask)).reshape(ways, -1).sum(axis=0)
            for field in fields
            for shift in (0, 1)
        ]
    counts = np.stack([field.view(np.uint8).reshape(-1, width).sum(axis=0, dtype=np.int64) for field in fields], axis=1)
    return counts[:, _ORDER]


_ORDER = [0, 4, 2, 6, 1, 5, 3, 7]
"""Bit b of a byte is the field whose number has the bits of b in reverse."""

# ---- bit reports -----------------------------------------------------------------------------------------------------------


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
