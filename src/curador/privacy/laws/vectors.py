"""Which integer vectors may be the difference of two neighbours: the worst of them where it is known, and one that occurs."""

from __future__ import annotations

import math

ENOUGH = 4
"""Every natural number is a sum of four squares (Lagrange)."""


def worst_shift(squared: int, dimension: int) -> tuple[int, ...] | None:
    """Return the entries of an integer vector that dominates all those with |v|² ≤ `squared`; None where no one does so.

    Claim   With independent, equal, log-concave noise on the entries, every integer vector of `dimension` entries and
            |v|² ≤ `squared` has at every ε no larger a δ than the returned one, which is among them.
    Proof   Log-concave noise has a monotone likelihood ratio, so sup P(S) − e^ε Q(S) is taken by half-lines, and
            P[x ≤ c] − e^ε P[x ≤ c − a] grows with a: a longer shift of one entry dominates, and products keep that. One entry
            moves by at most ⌊√squared⌋. For squared ≤ 3 every entry moves by at most 1, and at most `squared` entries do.
    """
    if dimension == 1:
        root = math.isqrt(squared)
        return (root,) if root else ()
    return (1,) * min(squared, dimension) if squared < ENOUGH else None


def attained_shift(squared: int, dimension: int) -> tuple[int, ...]:
    """Return the non-zero entries of some integer vector with |v|² ≤ `squared`: each the largest that what is left allows."""
    entries: list[int] = []
    while squared and len(entries) < dimension:
        entries.append(math.isqrt(squared))
        squared -= entries[-1] ** 2
    return tuple(entries)


def attained_square(squared: int, dimension: int) -> int:
    """Return |v|² ≤ `squared` of some integer vector of `dimension` entries: all of it from four entries on."""
    if dimension >= ENOUGH:
        return squared
    return sum(entry * entry for entry in attained_shift(squared, dimension))
