"""What the records of all families share."""

from __future__ import annotations

from fractions import Fraction

from curador.privacy.convert import pure_to_rho
from curador.privacy.loss import Loss
from curador.privacy.rules import AmountPair, single_pure


def basic_of_pure(record: Loss) -> AmountPair | None:
    """Return (ε, 0) of a record that is pure: what basic composition adds up."""
    pure = single_pure(record)
    return None if pure is None else (pure, Fraction(0))


def concentrated_of_pure(record: Loss) -> AmountPair | None:
    """Return (ρ, 0) of a record that is known by its pure ε alone.

    Claim   ε tanh(ε/2): randomized response is the worst case.
    """
    pure = single_pure(record)
    return None if pure is None else (pure_to_rho(pure), Fraction(0))
