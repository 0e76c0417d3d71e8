"""Finite pairs as exact rows (p, q), one an output: of a base, and of a subsample of it."""

from __future__ import annotations

import math
from fractions import Fraction

from curador.privacy.loss import Loss, Scheme, parts_of
from curador.privacy.rules import exact_rows

MOST_ROWS = 4_000


def finite_rows(base: Loss) -> list[tuple[Fraction, Fraction]] | None:
    """(p, q) of every output of the base, exact, if it is finite and small; None otherwise."""
    rows = [(Fraction(1), Fraction(1))]
    for record, count in parts_of(base):
        single = exact_rows(record)
        if single is None or len(single) ** min(count, 64) * len(rows) > MOST_ROWS:
            return None
        for _ in range(count):
            rows = [(p * a, q * b) for p, q in rows for a, b in single]
    return rows


def response_rows(epsilon: Fraction, categories: int, delta: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Randomized response with the rational next to e^ε; the law's stated error covers the difference both ways."""
    halvings = max(0, math.ceil(epsilon / 600) - 1).bit_length()  # e^ε beyond the floats, as a power of a float
    ratio = Fraction(math.exp(epsilon / 2**halvings)) ** (2**halvings)
    total = ratio + categories - 1
    high, low, middle = ratio / total, 1 / total, (categories - 2) / total
    keep = 1 - delta
    rows = [
        (high * keep, low * keep),
        (low * keep, high * keep),
        (middle * keep, middle * keep),
        (delta, Fraction(0)),
        (Fraction(0), delta),
    ]
    return [row for row in rows if row != (0, 0)]


def directed_rows(rows: list[tuple[Fraction, Fraction]], rate: Fraction, *, leaves: bool) -> list[tuple[Fraction, Fraction]]:
    """((1 − r)Q + rP, Q), or its mirror."""
    mixed = [((1 - rate) * q + rate * p, q) for p, q in rows]
    return mixed if leaves else [(q, p) for p, q in mixed]


def dominating_rows(
    rows: list[tuple[Fraction, Fraction]], rate: Fraction, scheme: Scheme, *, leaves: bool
) -> list[tuple[Fraction, Fraction]]:
    """The pair that dominates a sample: the directed one, or without replacement the symmetric one."""
    if scheme == "poisson":
        return directed_rows(rows, rate, leaves=leaves)
    mixed = directed_rows(rows, rate, leaves=True)
    up = [(p, q) for p, q in mixed if p > q]  # the symmetric pair: the mixed one above 0, its mirror below, the rest at 0
    rest = 1 - sum((p + q for p, q in up), Fraction(0))
    return [*up, *((q, p) for p, q in up), (rest, rest)]
