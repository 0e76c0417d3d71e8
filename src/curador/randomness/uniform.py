"""Uniform integers, exactly: a word that would favour some results is drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curador.randomness.entropy import U32, U64

if TYPE_CHECKING:
    from curador.randomness.entropy import Entropy, IntArray

_CHUNK = 1 << 15


def below(limit: int, size: int, source: Entropy) -> IntArray:
    """Return `size` independent uniform integers in [0, limit), 1 ≤ limit ≤ 2⁶³.

    Claim   Exact: every result has equally many words, the others are drawn again, place by place.
    """
    out = np.empty(size, np.int64)
    for start in range(0, size, _CHUNK):
        part = out[start : start + _CHUNK]
        if limit & (limit - 1) == 0:
            part[:] = source.words(len(part), U64) & np.uint64(limit - 1)
        else:
            _fill(part, limit, source)
    return out


def _fill(out: IntArray, limit: int, source: Entropy) -> None:
    draw = _narrow if limit <= 1 << 31 else _broad
    value, again = draw(limit, len(out), source)
    out[:] = value
    while len(again):
        value, more = draw(limit, len(again), source)
        out[again] = value
        again = again[more]


def _narrow(limit: int, size: int, source: Entropy) -> tuple[IntArray, IntArray]:
    """The upper half of word · limit; words whose lower half is below 2³² mod limit would come once too often."""
    product = source.words(size, U32).astype(np.uint64)
    product *= np.uint64(limit)
    again = np.flatnonzero((product & np.uint64(0xFFFFFFFF)) < np.uint64((1 << 32) % limit))
    product >>= np.uint64(32)
    return product.astype(np.int64), again


def _broad(limit: int, size: int, source: Entropy) -> tuple[IntArray, IntArray]:
    words = source.words(size, U64)
    again = np.flatnonzero(words > np.uint64((1 << 64) - (1 << 64) % limit - 1))
    return (words % np.uint64(limit)).astype(np.int64), again


def below_one(limit: int, source: Entropy) -> int:
    """Return a uniform integer in [0, limit) for a limit of any size. Claim: exact."""
    places = (limit - 1).bit_length()
    while True:
        value = source.bits(places) if places else 0
        if value < limit:
            return value
