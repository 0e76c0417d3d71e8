"""Draws that choose, exactly: uniform integers, coins of rational and of exponential probability, one of k.

A word that would favour some results is drawn again; a coin is decided by the digits that it takes.
"""

from __future__ import annotations

import bisect
import itertools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.randomness.entropy import U16, U32, U64
from curador.randomness.noise import LARGEST, certainly_below, exactly_below, exp_negative

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import BoolArray, Entropy, IntArray

CHUNK = 1 << 14
"""Draws whose arithmetic stays in the cache."""

_UNIFORM_CHUNK = 1 << 15
_BITS = 61

# ---- uniform integers ------------------------------------------------------------------------------------------------------


def below(limit: int, size: int, source: Entropy) -> IntArray:
    """Return `size` independent uniform integers in [0, limit), 1 ≤ limit ≤ 2⁶³.

    Claim   Exact: every result has equally many words, the others are drawn again, place by place.
    """
    out = np.empty(size, np.int64)
    for start in range(0, size, _UNIFORM_CHUNK):
        part = out[start : start + _UNIFORM_CHUNK]
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


# ---- coins -----------------------------------------------------------------------------------------------------------------


def bernoulli(probability: Fraction, size: int, source: Entropy) -> BoolArray:
    """Return `size` independent coins that are True with exactly this probability.

    Claim   A uniform number's digits are compared with those of p: 16 bits, in a tie (2⁻¹⁶) 64 more, then bit by bit.
    """
    top, bottom = probability.numerator, probability.denominator
    if top >= bottom:
        return np.ones(size, np.bool_)
    first, rest = divmod(top << 16, bottom)
    word = source.words(size, U16)
    out = word < np.uint16(first)
    if rest:
        tied = np.flatnonzero(word == np.uint16(first))
        if len(tied):
            out[tied] = _refine_bits(rest, bottom, len(tied), source)
    return out


def _refine_bits(rest: int, bottom: int, size: int, source: Entropy) -> BoolArray:
    second, rest = divmod(rest << 64, bottom)
    word = source.words(size, U64)
    out = word < np.uint64(second)
    for place in np.flatnonzero(word == np.uint64(second)).tolist():
        out[place] = _bitwise(rest, bottom, source)
    return out


def _bitwise(rest: int, bottom: int, source: Entropy) -> bool:
    while rest:
        bit, rest = divmod(rest << 1, bottom)
        drawn = source.bits(1)
        if drawn != bit:
            return drawn < bit
    return False


def bernoulli_exp(steps: IntArray, rate: Fraction, source: Entropy) -> BoolArray:
    """Return independent coins, the i-th True with probability exactly e^(−steps[i] · rate).

    Needs   steps ≥ 0 of one dimension, rate ≥ 0.
    Claim   80 bits a coin decide, with a proof; else (about 2⁻³⁸ of the coins) exact integers. The same work for each coin.
    """
    one = Fraction(1)
    out = np.empty(len(steps), np.bool_)
    for start in range(0, len(steps), CHUNK):
        part = steps[start : start + CHUNK]
        out[start : start + CHUNK] = bernoulli_scaled_exp(part, rate, 1.0, lambda _: one, source)
    return out


def bernoulli_scaled_exp(
    steps: IntArray,
    rate: Fraction,
    factor: FloatArray | float,
    exact_factor: Callable[[int], Fraction],
    source: Entropy,
) -> BoolArray:
    """Return coins of probability c_i e^(−steps[i] · rate) ≤ 1, c_i given as a float within 2⁻⁵⁰ and exactly on demand."""
    phi = steps.astype(np.float64)
    phi *= rate.numerator / rate.denominator
    top, rest = source.words(len(steps), U16), source.words(len(steps), U64)
    out, sure = certainly_below(top, rest, factor, phi)
    if not sure.all():
        for place in np.flatnonzero(~sure).tolist():
            word = (int(top[place]) << 64) | int(rest[place])
            out[place] = exactly_below(word, 80, exact_factor(place), int(steps[place]) * rate, source)
    return out


# ---- one of k --------------------------------------------------------------------------------------------------------------


class Choice:
    """Place i with probability ∝ multiplicity[i] · e^(−deficits[i] · rate).

    Claim   Exact. With n_i = ⌈A m_i f_i⌉ for an upper bound f_i of e^(−d_i rate), a 61-bit word falls to i with probability
            n_i 2⁻⁶¹ and is accepted with probability A m_i e^(−d_i rate)/n_i ≤ 1: the product has one constant for all i.
            Words that fall to nobody, and those refused (below 2⁻²⁹ for any weight that matters), are drawn again.
    Needs   deficits ≥ 0, 0 ≤ multiplicity < 2⁵³, one of them above 0; rate ≥ 0.
    Source  docs/explanation/exact-noise.md, theorem 4.
    """

    def __init__(self, deficits: IntArray, rate: Fraction, multiplicity: IntArray | None = None) -> None:
        many = np.ones(len(deficits), np.int64) if multiplicity is None else multiplicity
        present = many > 0
        least = int(deficits.min() if multiplicity is None else deficits[present].min())
        # a common factor does not change the law, and the best place that has a weight gets weight 1
        self._deficits = np.where(present, deficits - least, 0) if multiplicity is not None else deficits - least
        self._rate, self._many = rate, many
        weight = self._weights()
        spread = (2.0**_BITS - 2.0**55 - len(many)) / float(weight.sum()) * (1 - 2.0**-20)
        weight *= spread
        self._slots = np.ceil(weight, out=weight).astype(np.int64)
        self._ends = np.cumsum(self._slots)
        if not 0 < int(self._ends[-1]) <= 1 << _BITS:
            raise ArithmeticError("the slots of a choice do not fit its word")
        self._spread = Fraction(spread)
        self._spread_float = spread

    def _weights(self) -> FloatArray:
        """Upper bounds of m_i e^(−d_i rate), by pieces that stay in the cache."""
        rate = self._rate.numerator / self._rate.denominator
        out = np.empty(len(self._deficits), np.float64)
        for start in range(0, len(out), CHUNK):
            phi = self._deficits[start : start + CHUNK] * rate
            np.minimum(phi, LARGEST, out=phi)
            part = exp_negative(phi)
            part *= 1 + 2.0**-30
            part *= self._many[start : start + CHUNK]
            out[start : start + CHUNK] = part
        return out

    def draw(self, size: int, source: Entropy) -> IntArray:
        """Return `size` independent places."""
        out, todo = np.empty(size, np.int64), np.arange(size)
        last = len(self._slots) - 1
        while len(todo):
            word = (source.words(len(todo), U64) >> np.uint64(64 - _BITS)).astype(np.int64)
            found = np.searchsorted(self._ends, word, side="right")
            place = np.minimum(found, last)
            many, slots = self._many[place], self._slots[place]
            factor = self._spread_float * many / np.maximum(slots, 1)
            taken = bernoulli_scaled_exp(
                self._deficits[place],
                self._rate,
                factor,
                lambda i, many=many, slots=slots: self._spread * int(many[i]) / max(int(slots[i]), 1),
                source,
            )
            taken &= found <= last
            out[todo[taken]] = place[taken]
            todo = todo[~taken]
        return out


class Weighted:
    """Place i with probability weights[i] over their sum. Claim: exact, for integers of any size."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._ends = list(itertools.accumulate(weights))
        if not self._ends or self._ends[-1] <= 0 or min(weights) < 0:
            raise ValueError("weights must be at least 0 with one above 0")

    def draw(self, size: int, source: Entropy) -> IntArray:
        """Return `size` independent places."""
        total = self._ends[-1]
        if total <= 1 << 62:
            return np.searchsorted(np.array(self._ends, np.int64), below(total, size, source), side="right").astype(np.int64)
        return np.array([bisect.bisect_right(self._ends, below_one(total, source)) for _ in range(size)], np.int64)
