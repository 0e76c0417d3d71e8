"""Parameters that several mechanisms share: sensitivities, the grid of real-valued noise, decimals that read well."""

from __future__ import annotations

import math
from fractions import Fraction

from curador.errors import NotPrivate, require
from curador.numerics.exact import Number, at_least_zero, coprime, square
from curador.privacy.adjacency import Adjacency
from curador.privacy.sensitivity import Norm, Sensitivity

GRID_BITS = 40
"""Real-valued noise lives on a power-of-two grid of 2⁻⁴⁰ to 2⁻⁴¹ of its scale: finer than anybody needs, coarser than a
float's own spacing for all values below 4,000 times the scale."""


_LEAST_STEPS_BITS = 10
_SMALLEST, _LARGEST = Fraction(1, 10**100), Fraction(10**100)
_LONG = 330  # bits: fewer than 1e100 has


def squared_sensitivity(sensitivity: Number | Sensitivity, norm: Norm) -> tuple[Fraction, Adjacency | None]:
    """Return the square of the sensitivity and the adjacency that it names.

    Claim   An L1 sensitivity bounds the L2 one; the reverse is refused.
    """
    if isinstance(sensitivity, Sensitivity):
        if norm is Norm.L1 and sensitivity.norm is Norm.L2:
            raise NotPrivate(
                "this noise needs an l1 sensitivity; got an l2 one, which may be smaller by the root of the dimension."
            )
        return sensitivity.value_squared, sensitivity.adjacency
    if type(sensitivity) is int and 0 <= sensitivity < 1 << _LONG // 2:
        return coprime(sensitivity * sensitivity, 1), None
    value = at_least_zero(sensitivity, "sensitivity")
    top, bottom = value.as_integer_ratio()
    if top.bit_length() + bottom.bit_length() > _LONG:  # comparing rationals is dear
        require(_SMALLEST <= value <= _LARGEST, "sensitivity", "0 or between 1e-100 and 1e100", sensitivity)
    return square(value), None


def floor_log2(value: Fraction) -> int:
    """Return the largest e with 2^e ≤ value, for a value above 0."""
    top, bottom = value.as_integer_ratio()
    guess = top.bit_length() - bottom.bit_length()
    reached = top >= bottom << guess if guess >= 0 else top << -guess >= bottom
    return guess if reached else guess - 1


def grid_exponent(scale: Fraction, squared: Fraction) -> int:
    """Return e such that real-valued noise of this scale, for a sensitivity of √squared, is drawn on the grid 2^e.

    At most a 2⁻⁴⁰-th of the scale; where the noise dwarfs the sensitivity, at most a 2⁻¹⁰-th of that, which is counted in
    whole steps.
    """
    fine = floor_log2(scale) - GRID_BITS
    top, bottom = squared.as_integer_ratio()
    about = top.bit_length() - bottom.bit_length() - 1  # log₂ squared, or one less
    if fine <= about // 2 - _LEAST_STEPS_BITS:
        return fine
    return fine if top == 0 else min(fine, floor_log2(squared) // 2 - _LEAST_STEPS_BITS)


def power_of_two(exponent: int) -> Fraction:
    """Return 2^exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def in_steps(value: Fraction, exponent: int) -> Fraction:
    """Return value / 2^exponent. Only twos can be in common then: those at the end of one of the two numbers."""
    top, bottom = value.as_integer_ratio()
    if exponent <= 0:
        shared = min(-exponent, (bottom & -bottom).bit_length() - 1)
        return coprime(top << -exponent - shared, bottom >> shared)
    if top == 0:
        return value
    shared = min(exponent, (top & -top).bit_length() - 1)
    return coprime(top >> shared, bottom << exponent - shared)


def steps_of(squared: Fraction, exponent: int) -> int:
    """Return the number of steps of the grid 2^exponent that a change of length √squared may become.

    Claim   For scalars, |a − b| ≤ kg implies |round(a/g) − round(b/g)| ≤ k: rounding costs nothing where g divides the
            sensitivity.
    Needs   round(x) = ⌊x + 1/2⌋; rounding halves to even would move 0.5 and 1.5 by two.
    Rounds  Up.
    """
    top, bottom = squared.as_integer_ratio()
    top, bottom = (top << -2 * exponent, bottom) if exponent <= 0 else (top, bottom << 2 * exponent)
    root = math.isqrt(top // bottom)
    return root if root * root * bottom == top else root + 1


def vector_steps(squared: Fraction, exponent: int, dimension: int) -> int:
    """Return the l1 steps of the grid 2^exponent that a vector of `dimension` numbers moving by √squared may move.

    Claim   Each coordinate becomes ⌈|move|/g⌉ steps at most, less than one more than its share: Σ⌈x_i⌉ < Σx_i + d, and the
            left side is whole, so it is at most ⌈Σx_i⌉ + d − 1.
    Rounds  Up.
    """
    steps = steps_of(squared, exponent)
    return steps + dimension - 1 if steps else 0


def vector_squares(squared: Fraction, exponent: int, dimension: int) -> int:
    """Return the square of the l2 length, in steps of the grid 2^exponent, that a vector's move of √squared may become.

    Claim   Rounding adds less than one step to a coordinate, so less than √d to the length: (√S + √d)² with S = squared/g².
    Rounds  Up.
    """
    if squared == 0:
        return 0
    scaled = in_steps(squared, 2 * exponent)
    whole_part = -(-scaled.numerator // scaled.denominator)
    return whole_part + math.isqrt(4 * whole_part * dimension) + 1 + dimension


def root_text(squared: Fraction) -> str:
    """Return √squared as a person would write it."""
    root = Sensitivity(squared, Norm.L2, Adjacency.REPLACE_ONE).exact
    return f"√{decimal_text(squared)}" if root is None else decimal_text(root)


def decimal_text(value: Fraction) -> str:
    """Return the rational as a decimal where that is exact and short, else as a ratio."""
    text = f"{float(value):.15g}"
    return text if Fraction(text) == value else str(value)


def round_up(value: float | Fraction, digits: int = 12) -> Fraction:
    """Return the next decimal of `digits` significant digits at or above the value, so that parameters read well."""
    exact = Fraction(value)
    place = Fraction(10) ** (math.floor(math.log10(exact)) - digits + 1)
    return -(-exact // place) * place


def round_down(value: float | Fraction, digits: int = 12) -> Fraction:
    """Return the decimal of `digits` significant digits at or below the value."""
    exact = Fraction(value)
    place = Fraction(10) ** (math.floor(math.log10(exact)) - digits + 1)
    return exact // place * place
