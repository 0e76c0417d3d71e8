"""Exact chances for clients: probabilities are whole numbers over 2⁶⁴, rounded so that no report tells more than e^ε.

Needs nothing but the standard library, and draws from the operating system alone.
"""

from __future__ import annotations

import secrets
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from .refusal import Refusal, require

BITS = 64
WHOLE = 1 << BITS
"""A probability is a whole number of these shares of 1."""

LARGEST = 64
"""The largest ε: beyond it lies no privacy worth the name."""


def epsilon_of(value: object) -> Fraction:
    """Return ε exactly: the decimal that a person sees, for a float too."""
    try:
        exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise Refusal(f"epsilon must be a number; got {value!r}.") from None
    require(0 < exact <= LARGEST and not isinstance(value, bool), "epsilon", f"above 0 and at most {LARGEST}", value)
    return exact


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
