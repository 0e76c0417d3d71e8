"""Packed bits: exact coins many at a time, sums of rows and columns."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.special import chdtrc

from curador.local import bits
from curador.local.bits import EightCoins, column_sums, packed_bits, padding_of, row_sums, set_bits
from curador.randomness.choice import Weighted
from curador.randomness.injected import Scripted, Seeded

SHARES = [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(999, 1000), Fraction(12345678901, 1 << 64)]


@pytest.mark.parametrize("p", SHARES)
def test_every_byte_has_exactly_its_probability(p: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the table, the second words and the whole numbers at the end make p^ones (1 − p)^(8 − ones)."""
    last: list[list[int]] = []

    def kept(weights: list[int]) -> Weighted:
        last.append(weights)
        return Weighted(weights)

    monkeypatch.setattr(bits, "Weighted", kept)
    coins = EightCoins(p)
    first, second = Fraction(1, 1 << 16), Fraction(1, 1 << 62)
    law = [int(number) * first for number in np.bincount(coins.table[: coins.known], minlength=256)]
    left = 1 - coins.known * first
    if left:
        law = [mass + left * int(slots) * second for mass, slots in zip(law, np.diff(coins.ends, prepend=0), strict=True)]
        left *= 1 - int(coins.ends[-1]) * second
    for weights in last:
        law = [mass + left * Fraction(weight, sum(weights)) for mass, weight in zip(law, weights, strict=True)]
    assert law == [p ** byte.bit_count() * (1 - p) ** (8 - byte.bit_count()) for byte in range(256)]


def test_bytes_follow_their_words() -> None:
    """All words of 16 bits in order: the table as it stands; what it leaves over is decided by the second words."""
    coins = EightCoins(Fraction(1, 3))
    over = (1 << 16) - coins.known
    assert 0 < over < 256
    ends = coins.ends.tolist()
    second = [0, ends[0] - 1, ends[0], ends[-1] - 1, (1 << 62) - 1]  # the last one is left over again
    script = np.arange(1 << 16, dtype="<u2").tobytes() + np.array([word << 2 for word in second], "<u8").tobytes()
    out = np.empty(1 << 16, np.uint8)
    coins.fill(out, Scripted(script, Seeded(1)))
    assert np.array_equal(out[: coins.known], coins.table[: coins.known])
    found = [next(byte for byte, end in enumerate(ends) if word < end) for word in second[:-1]]
    assert out[coins.known : coins.known + 4].tolist() == found
    assert found[0] == found[1] == 0 < found[2]


@pytest.mark.parametrize("size", [1, 5, 8, 13, 64, 100])
def test_padding_is_never_set(size: int) -> None:
    """Bits beyond the last place are 0, whatever the probability."""
    for p in (Fraction(1), Fraction(2, 3)):
        rows = packed_bits(p, 50, size, Seeded(size))
        assert not (rows[:, -1] & padding_of(size)).any()
        assert rows.shape == (50, -(-size // 8))
    assert row_sums(packed_bits(Fraction(1), 3, size, Seeded(1))).tolist() == [size] * 3
    assert row_sums(packed_bits(Fraction(0), 3, size, Seeded(1))).tolist() == [0] * 3


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), Fraction(5, 1 << 12), Fraction((1 << 64) - 12345, 1 << 64)])
def test_bits_have_their_probability_in_every_column(p: Fraction) -> None:
    """χ² of the number of ones among 8 neighbouring places against the binomial law, false alarm 1e-9."""
    rows = packed_bits(p, 20_000, 80, Seeded(9))
    ones = np.bitwise_count(rows).ravel()
    law = np.array([float(comb(8, number) * p**number * (1 - p) ** (8 - number)) for number in range(9)])
    due, seen = law * ones.size, np.bincount(ones, minlength=9)
    few = due < 5
    due, seen = np.append(due[~few], due[few].sum() or 1e-300), np.append(seen[~few], seen[few].sum())
    keep = due > 1e-6
    assert seen[~keep].sum() == 0
    assert chdtrc(max(keep.sum() - 1, 1), ((seen - due)[keep] ** 2 / due[keep]).sum()) > 1e-9


@pytest.mark.parametrize(("rows", "size"), [(0, 9), (1, 3), (2039, 8), (2040, 17), (5000, 13), (9000, 1000), (70_000, 24)])
def test_sums_of_columns_and_rows(rows: int, size: int) -> None:
    """Against unpacked bits, below and above the rows that are added in fields."""
    packed = np.random.default_rng(rows).integers(0, 256, (rows, -(-size // 8)), dtype=np.uint8)
    loose = np.unpackbits(packed, axis=1, bitorder="little")
    assert np.array_equal(column_sums(packed, size), loose.sum(axis=0, dtype=np.int64)[:size])
    assert np.array_equal(row_sums(packed), loose.sum(axis=1, dtype=np.int64))


def test_full_columns_do_not_overflow() -> None:
    """All bits set, in exactly one round of fields and in two."""
    for rows in (2040, 4080):
        assert column_sums(np.full((rows, 3), 255, np.uint8), 24).tolist() == [rows] * 24


def test_one_place_of_each_row_is_set_or_cleared() -> None:
    """And nothing else changes."""
    packed = np.array([[0b1111, 0], [0b1111, 0], [0, 0]], np.uint8)
    set_bits(packed, np.array([0, 2, 9]), np.array([True, False, True]))
    assert packed.tolist() == [[0b1111, 0], [0b1011, 0], [0, 0b10]]
