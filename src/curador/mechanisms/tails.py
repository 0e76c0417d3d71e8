"""Tails of discrete Laplace and discrete Gaussian noise, enclosed by rationals on every scale and however far out.

A threshold's δ is a tail, so it must not be rounded down, and it must not vanish below 1e-308: everything here is integers
with directed rounding. The only floats are the terms of a long sum, and their error is part of the enclosure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from curador.errors import NumericalFailure
from curador.randomness.noise import exp_bounds

_BITS = 160
_FARTHEST = 1 << 14
_ADDED = Fraction(1 << 40)
_FEW = Fraction(16)
_PI = 314159265358979323846264338327950288419716939937510582097494459230781640628620899  # 81 decimals, cut
_PI_PLACES = 10**80


class Enclosed(NamedTuple):
    """The true number lies between the two rationals."""

    lower: Fraction
    upper: Fraction


def exponential(phi: Fraction, bits: int = _BITS) -> Enclosed:
    """Enclose e^(−φ), φ ≥ 0.

    Claim   The ends are a relative 2^(4 − bits) apart up to φ = 2¹⁴; beyond, the lower end is 0 and the upper e^(−2¹⁴).
    """
    if phi > _FARTHEST:
        return Enclosed(Fraction(0), exponential(Fraction(_FARTHEST), bits).upper)
    places = bits + int(phi * 3 / 2) + 2
    low, high = exp_bounds(phi, places)
    return Enclosed(Fraction(low, 1 << places), Fraction(high, 1 << places))


def _round_outward(lower: Fraction, upper: Fraction) -> Enclosed:
    """Cut both ends to 160 bits, and to [0, 1]: a probability."""
    return Enclosed(max(_cut_bits(lower, up=False), Fraction(0)), min(_cut_bits(upper, up=True), Fraction(1)))


def _cut_bits(value: Fraction, *, up: bool) -> Fraction:
    if value <= 0:
        return Fraction(0)
    places = _BITS - value.numerator.bit_length() + value.denominator.bit_length()
    top, bottom = (
        (value.numerator << places, value.denominator) if places >= 0 else (value.numerator, value.denominator << -places)
    )
    whole = -(-top // bottom) if up else top // bottom
    return Fraction(whole, 1 << places) if places >= 0 else Fraction(whole << -places)


def laplace_tail(scale: Fraction, reach: int) -> Enclosed:
    """Enclose P[N ≥ reach] for P[N = k] ∝ e^(−|k|/scale).

    Claim   r^reach/(1 + r) for reach ≥ 1, r = e^(−1/scale); by symmetry 1 − P[N ≥ 1 − reach] below.
    Rounds  Outward, a relative 2⁻¹⁵⁰ apart.
    """
    if reach <= 0:
        other = laplace_tail(scale, 1 - reach)
        return Enclosed(1 - other.upper, 1 - other.lower)
    ratio, power = exponential(1 / scale), exponential(reach / scale)
    return _round_outward(power.lower / (1 + ratio.upper), power.upper / (1 + ratio.lower))


def gaussian_tail(sigma2: Fraction, reach: int) -> Enclosed:
    """Enclose P[N ≥ reach] for P[N = k] ∝ e^(−k²/2σ²).

    Claim   With f(k) = e^(−k²/2σ²) and Z = Σ f, Poisson's summation gives σ√2π ≤ Z ≤ σ√2π (1 + 2⁻⁴⁰⁰) for σ ≥ 4.
            σ < 2²⁰: f(reach)/Z times Σ f(reach + j)/f(reach), added up.
            σ ≥ 2²⁰ and reach − 1/2 ≥ σ: f is convex from there on, so a midpoint is below the mean of its interval and a
            trapezoid above: f(reach)/2 + ∫ f from reach ≤ Σ f ≤ ∫ f from reach − 1/2. Nearer to 0 f only falls:
            ∫ f from reach ≤ Σ f ≤ f(reach) + that.
    Rounds  Outward. A relative 2⁻⁴⁰ apart for σ < 2²⁰; z²/8σ² beyond, z = reach/σ, that is below 1e-21 on a grid of σ/2⁴⁰.
    """
    if reach <= 0:
        other = gaussian_tail(sigma2, 1 - reach)
        return Enclosed(1 - other.upper, 1 - other.lower)
    if sigma2 >= _ADDED:
        return _smooth(sigma2, reach)
    first = exponential(reach * reach / (2 * sigma2))
    if first.lower == 0:
        more = 1 + sigma2 / reach  # 1/(1 − e^(−x)) ≤ 1 + 1/x bounds the geometric series that dominates
        return Enclosed(Fraction(0), min(first.upper * more, Fraction(1)))
    terms = _few(sigma2, reach) if sigma2 < _FEW else _many(sigma2, reach)
    whole = _total(sigma2)
    return _round_outward(first.lower * terms.lower / whole.upper, first.upper * terms.upper / whole.lower)


def _few(sigma2: Fraction, reach: int) -> Enclosed:
    """Σ f(reach + j)/f(reach) over j ≥ 0 in integers, for σ < 4: at most a hundred terms matter."""
    places, low, high, j = 256, 0, 0, 0
    while True:
        phi = j * (2 * reach + j) / (2 * sigma2)
        if phi > 128:  # what is left is below e^(−128) times a geometric series of ratio e^(−(reach + j)/σ²)
            rest = Fraction(1, 1 << 180) * (1 + sigma2 / (reach + j))
            return Enclosed(Fraction(low, 1 << places), Fraction(high, 1 << places) + rest)
        less, more = exp_bounds(phi, places)
        low, high, j = low + less, high + more, j + 1


def _many(sigma2: Fraction, reach: int) -> Enclosed:
    """The same sum for 4 ≤ σ < 2²⁰ in floats.

    Rounds  Each exponent is at most 62 and off by four roundings, exp by 4 ulps: 2⁻⁴⁴ a term with the rounding of the sum.
            The rest is below e^(−60) (1 + σ²/(reach + j)) ≤ 2⁻⁶⁵, where the sum is at least 1.
    """
    import numpy as np

    twice, start = float(2 * sigma2), float(reach)
    last = math.ceil(60.0 * twice / (start + math.sqrt(start * start + 60.0 * twice))) + 1
    total = 0.0
    for begin in range(0, last, 1 << 20):
        j = np.arange(begin, min(begin + (1 << 20), last), dtype=np.float64)
        total += float(np.exp(-(j * (j + 2.0 * start)) / twice).sum())
    return Enclosed(Fraction(total) * (1 - Fraction(1, 1 << 42)), Fraction(total) * (1 + Fraction(1, 1 << 42)))


def _total(sigma2: Fraction) -> Enclosed:
    """Z = Σ f over all integers."""
    if sigma2 < _FEW:
        half = _few(sigma2, 0)
        return Enclosed(2 * half.lower - 1, 2 * half.upper - 1)
    low, high = _root(2 * sigma2 * Fraction(_PI, _PI_PLACES)), _root(2 * sigma2 * Fraction(_PI + 1, _PI_PLACES))
    return Enclosed(low.lower, high.upper * (1 + Fraction(1, 1 << 400)))


def _smooth(sigma2: Fraction, reach: int) -> Enclosed:
    whole, first = _total(sigma2), exponential(reach * reach / (2 * sigma2))
    here = normal_tail(reach * reach / sigma2)
    if (2 * reach - 1) ** 2 >= 4 * sigma2:
        upper = normal_tail(Fraction(2 * reach - 1) ** 2 / (4 * sigma2)).upper
        lower = here.lower * (1 - Fraction(1, 1 << 400)) + first.lower / (2 * whole.upper)
        return _round_outward(lower, upper)
    return _round_outward(here.lower * (1 - Fraction(1, 1 << 400)), here.upper + first.upper / whole.lower)


@lru_cache(64)  # of π, again and again
def _root(value: Fraction) -> Enclosed:
    """√value with 2⁻¹⁹² of absolute room."""
    places = 192
    root = math.isqrt((value.numerator << 2 * places) // value.denominator)
    return Enclosed(Fraction(root, 1 << places), Fraction(root + 1, 1 << places))


def normal_tail(square: Fraction) -> Enclosed:
    """Enclose P[Z ≥ z] of a standard normal Z for z = √square ≥ 0.

    Claim   z < 2: 1/2 − φ(z) Σ z^(2n+1)/(1·3⋯(2n+1)), all terms positive. z ≥ 2: φ(z)/(z + 1/(z + 2/(z + 3/…))), where
            every tail of the fraction lies between z and z + (n+1)/z.
    Rounds  Outward, a relative 2⁻¹⁰⁰ apart.
    """
    root, bell = _root(square), exponential(square / 2)
    over = Enclosed(
        bell.lower / _root(2 * Fraction(_PI + 1, _PI_PLACES)).upper, bell.upper / _root(2 * Fraction(_PI, _PI_PLACES)).lower
    )
    if square < 4:
        low, high = _series(root.lower, up=False), _series(root.upper, up=True)
        return _round_outward(Fraction(1, 2) - over.upper * high, Fraction(1, 2) - over.lower * low)
    places = 192
    low, high = math.floor(root.lower * (1 << places)), math.ceil(root.upper * (1 << places))
    depth = 20 + math.ceil(1600 / square)
    near, far = low, high + (depth + 1 << 2 * places) // low + 1
    for k in range(depth, 0, -1):
        near, far = low + (k << 2 * places) // far, high + -(-(k << 2 * places) // near)
    return _round_outward(over.lower * Fraction(1 << places, far), over.upper * Fraction(1 << places, near))


def _series(z: Fraction, *, up: bool) -> Fraction:
    places = 256
    square, term = z * z, math.ceil(z * (1 << places)) if up else math.floor(z * (1 << places))
    total, n = 0, 0
    while term > 1:
        total, n = total + term, n + 1
        product = term * square / (2 * n + 1)
        term = math.ceil(product) if up else math.floor(product)
    # from here on each term is below z²/(2n + 1) < 1/4 of the one before
    return Fraction(total + (2 * term + 2 if up else 0), 1 << places)


def any_of(single: Fraction, count: int) -> Fraction:
    """Return 1 − (1 − single)^count: that one of `count` independent events happens. Rounds: up."""
    if count == 1 or single == 0:
        return single
    places = 2 * _BITS + single.denominator.bit_length() - single.numerator.bit_length()
    base = ((single.denominator - single.numerator) << places) // single.denominator
    none = 1 << places
    for bit in f"{count:b}":
        none = (none * none) >> places
        if bit == "1":
            none = (none * base) >> places
    return min(Fraction((1 << places) - none, 1 << places), single * count)


def share_of(whole: Fraction, count: int) -> Fraction:
    """Return the largest single chance, within a relative 2⁻¹²⁸, with any_of(single, count) ≤ whole. Rounds: down."""
    if count == 1:
        return whole
    places = 128 + count.bit_length() + whole.denominator.bit_length() - whole.numerator.bit_length() + 1
    low = (whole.numerator << places) // (whole.denominator * count)
    high = (whole.numerator << places) // whole.denominator + 1
    while high - low > 1:
        middle = (low + high) // 2
        if any_of(Fraction(middle, 1 << places), count) <= whole:
            low = middle
        else:
            high = middle
    return Fraction(low, 1 << places)


def first_whole(holds: Callable[[int], bool], guess: int, *, least: int = 0) -> int:
    """Return the smallest integer from `least` on at which a condition that holds from some point on holds.

    Claim   The condition was evaluated there and held, and failed at the integer before (unless that is below `least`).
    """
    low, high, step = max(guess, least), max(guess, least), 1
    while not holds(high):
        low, high, step = high, high + step, 2 * step
        if step > 1 << 80:
            raise NumericalFailure("no whole number satisfies the condition")
    step = 1
    while low > least and holds(low):
        low, high, step = max(low - step, least), low, 2 * step
    if holds(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def round_up_digits(value: Fraction, digits: int = 17) -> Fraction:
    """Return the next decimal of `digits` significant digits at or above a positive rational, however small. Rounds: up."""
    size = len(str(value.denominator // value.numerator)) if value < 1 else -len(str(value.numerator // value.denominator))
    place = 10 ** max(digits + size, 0)
    return Fraction(-(-value.numerator * place // value.denominator), place)


LEAST_DELTA = Fraction(1, 10**300)
"""A δ in a loss record is rounded up to at least this: smaller ones are not floats, and their text is longer than a page."""


def delta_for_record(delta: Fraction) -> Fraction:
    """Return the δ that a loss record carries: at most 17 digits, at least 1e-300. Rounds: up."""
    return min(max(round_up_digits(delta), LEAST_DELTA), Fraction(1)) if delta > 0 else delta
