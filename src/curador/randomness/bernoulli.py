"""Coins of rational and of exponential probability, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.randomness.decide import certainly_below, exactly_below
from curador.randomness.entropy import U16, U64

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import BoolArray, Entropy, IntArray

CHUNK = 1 << 14
"""Draws whose arithmetic stays in the cache."""


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
