"""Is a uniform number below c e^(−φ)? Decided by floats where an error bound proves it, by integers otherwise.

Uses + − × and exact scalings by powers of two only, which IEEE 754 rounds correctly everywhere: no trust in a library's exp.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import BoolArray, Entropy, Words

LARGEST = 64.0
"""Largest φ at which the float exponential is a two-sided bound; beyond, e^(−64) is an upper bound only."""

_MARGIN = 2.0**-40
_UNREAD = 2.0**-79


def _powers() -> FloatArray:
    """2^(−j/64) for j = 0 … 63, each within one ulp: products of integer square roots with 200 bits."""
    places = 200
    out: list[float] = []
    for j in range(64):
        value, root = 1 << places, 1 << (places - 1)
        for bit in (32, 16, 8, 4, 2, 1):
            root = math.isqrt(root << places)
            if j & bit:
                value = value * root >> places
        out.append(value / (1 << places))
    return np.array(out)


_POWERS = _powers()
_PER_UNIT = 64 / math.log(2)
_UNIT_STEP = math.log(2) / 64


def exp_negative(phi: FloatArray) -> FloatArray:
    """Return e^(−φ) for 0 ≤ φ ≤ 64.

    Claim   Relative error below 2⁻⁴⁴. φ = n log2/64 − r with |r| < 0.0055: the product n log2/64 is off by 192 u at most
            (u = 2⁻⁵³; the constant by 2 u, the product by u, both of at most 64), the Taylor rest is below 2⁻⁶⁴, Horner,
            table and product below 14 u.
    """
    turns = phi * _PER_UNIT
    np.rint(turns, out=turns)
    rest = turns * _UNIT_STEP
    rest -= phi
    value = rest * (1 / 720.0)
    value += 1 / 120.0
    for coefficient in (1 / 24.0, 1 / 6.0, 0.5, 1.0, 1.0):
        value *= rest
        value += coefficient
    whole = turns.astype(np.int32)
    value *= _POWERS.take(whole & 63)
    whole >>= 6
    np.negative(whole, out=whole)
    return np.ldexp(value, whole, out=value)


def certainly_below(top: Words, rest: Words, factor: FloatArray | float, phi: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Return (W < c e^(−φ), whether that is proved) for W = (top + (rest + U)/2⁶⁴)/2¹⁶, U in [0, 1) not read yet.

    Claim   Where the second is true, the first is right for every U.
    Needs   `factor` within a relative 2⁻⁵⁰ of c; `phi` within a relative 5 u of φ, hence within 320 u where it is at most 64.
            Then a = factor · exp_negative(φ) is within a relative 2⁻⁴³ of c e^(−φ), W within 2 u and 2⁻⁸⁰: the margin
            2⁻⁴⁰ (W + a) + 2⁻⁷⁹ covers the relative errors eight times, the absolute one twice. Beyond φ = 64, a is only an
            upper bound: good for refusing alone. A NaN is unsure, never sure.
    Source  docs/explanation/exact-noise.md, theorem 2.
    """
    word = rest * 2.0**-64
    word += top
    word *= 2.0**-16
    bound = exp_negative(np.minimum(phi, LARGEST))
    bound *= factor
    below = word < bound
    distance = word - bound
    np.abs(distance, out=distance)
    word += bound
    word *= _MARGIN
    word += _UNREAD
    sure = distance > word
    sure &= ~(below & (phi > LARGEST))
    return below, sure


def exactly_below(word: int, read: int, factor: Fraction, phi: Fraction, source: Entropy) -> bool:
    """Return W < c e^(−φ) for W = (word + U)/2^read, U uniform, of which as many bits are read as the decision takes.

    Claim   Both answers are proved; undecided after p bits with probability below (4 c + 2) 2^(−p), so it ends with
            probability 1.
    """
    places = 128
    while True:
        if read < places:
            word, read = (word << (places - read)) | source.bits(places - read), places
        low, high = exp_bounds(phi, places)
        top, bottom = factor.numerator, factor.denominator
        if ((word + 1) * bottom) << places <= (top * low) << read:
            return True
        if (word * bottom) << places >= (top * high) << read:
            return False
        places *= 2


def exp_bounds(phi: Fraction, places: int) -> tuple[int, int]:
    """Return integers low ≤ 2^places e^(−φ) ≤ high, at most a few units apart, for φ ≥ 0. Rounds: outward at each step."""
    if phi == 0:
        return 1 << places, 1 << places
    if phi >= places:
        return 0, 1
    halvings = max(0, (phi.numerator // phi.denominator).bit_length()) + 3
    work = places + 2 * halvings + 16
    top, bottom = phi.numerator, phi.denominator << halvings  # φ/2^halvings < 1/8: terms alternate and fall
    low = high = term_low = term_high = 1 << work
    k = 0
    while term_high > 1:
        k += 1
        term_low = term_low * top // (bottom * k)
        term_high = -(-term_high * top // (bottom * k))
        if k & 1:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    low, high = low - 2, high + 2  # what is left out is below the last term
    for _ in range(halvings):
        low = (low * low) >> work if low > 0 else 0
        high = -((-high * high) >> work)
    shift = work - places
    return low >> shift, min(-(-high >> shift), 1 << places)
