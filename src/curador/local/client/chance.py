"""Exact chances for clients: probabilities are whole numbers over 2⁶⁴, rounded so that no report tells more than e^ε.

Needs nothing but the standard library, and draws from the operating system alone.
"""

from __future__ import annotations

import secrets
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from .refusal import exact, require

BITS = 64
WHOLE = 1 << BITS
"""A probability is a whole number of these shares of 1."""

SMALLEST = Fraction(1, 10**9)
"""The smallest ε: below it the rounding of probabilities to whole numbers over 2⁶⁴ would tell more than the value does."""

LARGEST = 64
"""The largest ε: beyond it lies no privacy worth the name."""


def epsilon_of(value: object) -> Fraction:
    """Return ε exactly: the decimal that a person sees, for a float too."""
    epsilon = exact(value, "epsilon")
    require(SMALLEST <= epsilon <= LARGEST, "epsilon", f"at least 1e-9 and at most {LARGEST}", value)
    return epsilon


@lru_cache(maxsize=256)
def exp_below(exponent: Fraction) -> Fraction:
    """Return a rational just below e^exponent, exponent in [0, 64]. Rounds: down, by less than 1e-60 of it.

    Claim   decimal's exp is correctly rounded, and monotone: the argument is rounded down before, a unit is taken after.
    """
    with localcontext() as context:
        context.prec = 90
        context.rounding = "ROUND_FLOOR"
        argument = Decimal(exponent.numerator) / Decimal(exponent.denominator)  # rounded down
        near = argument.exp()  # within half a unit of its last of 90 places, whatever the mode
        return Fraction(near) * (1 - Fraction(1, 10**80))


def share_of_truth(epsilon: Fraction, *, truths: int, others: int) -> int:
    """Return the probability, in shares of 2⁻⁶⁴, that one of `truths` outcomes comes rather than one of `others`.

    Claim   (share/truths) / ((2⁶⁴ − share)/others) ≤ e^ε: a true outcome is at most e^ε times as likely as another.
    Rounds  Down: the largest such share, or one less.
    """
    odds = exp_below(epsilon) * truths
    return int(WHOLE * odds / (odds + others))


def below(limit: int) -> int:
    """Return a uniform whole number in [0, limit), exactly."""
    return secrets.randbelow(limit)


def coin(share: int) -> bool:
    """Return True with probability share/2⁶⁴, exactly."""
    return secrets.randbits(BITS) < share


def coins(share: int, size: int) -> int:
    """Return a whole number of `size` bits, each 1 with probability share/2⁶⁴, exactly and independently.

    Claim   Every place compares 64 random bits u with the share, all places at once, from the lowest bit up: where the bits
            of u and the share differ, the higher one decides; at the end a place is 1 where u < share. Bits below the
            share's lowest 1 decide nothing and are not drawn. The work depends on nothing that is drawn.
    """
    everywhere = (1 << size) - 1
    if share >> BITS:
        return everywhere
    lowest = (share & -share).bit_length() - 1 if share else BITS
    less = 0
    for place in range(lowest, BITS):
        drawn = secrets.randbits(size)
        less = less | (drawn ^ everywhere) if share >> place & 1 else less & (drawn ^ everywhere)
    return less


def subset(weight: int, limit: int) -> list[int]:
    """Return `weight` different whole numbers of [0, limit): every set of so many equally likely.

    Claim   After the step for `top` the list is a uniform set of its size from [0, top]: the new element is a uniform one of
            [0, top], or `top` where that is taken already; so a set that holds `top` comes as often as the others.
    Source  [BF87], Floyd's algorithm.
    """
    chosen: list[int] = []
    taken: set[int] = set()
    for top in range(limit - weight, limit):
        drawn = secrets.randbelow(top + 1)
        one = top if drawn in taken else drawn
        taken.add(one)
        chosen.append(one)
    return chosen
