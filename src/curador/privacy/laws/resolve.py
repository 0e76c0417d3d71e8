"""From loss records to laws: a dominating one above and an attainable one below, per direction.

`above` bounds what the records allow (its pair dominates every mechanism that a record describes); `below` is the loss of
some mechanism that the records describe, so that no honest accounting can go lower. For noise the two are the same.
The laws of each kind stand beside it, in `kinds`.

What subsampling asks of a base: its exact rows (p, q), one an output, where it is finite, of the base and of a subsample of
it; its μ where it is Gaussian noise and nothing else, which is what mixtures of normals start from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from curador.numerics.rounding import UNIT
from curador.privacy.laws.gaussian import sandwich
from curador.privacy.laws.side import Direction, Side, Sides
from curador.privacy.loss import Loss, Scheme, kinds_of, parts_of
from curador.privacy.rules import exact_rows, gaussian_squares, law, traits_of, two_faced

# ---- finite pairs as exact rows --------------------------------------------------------------------------------------------


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


# ---- Gaussian noise and nothing else ---------------------------------------------------------------------------------------


COARSEST = 1e-3
"""Largest relative doubt of μ² at which discrete Gaussian noise may be subsampled: the sandwich holds from below too."""


@dataclass(frozen=True, slots=True)
class GaussianShift:
    """Gaussian noise: μ that is enough, μ that occurs, and the relative doubt of their squares."""

    above: float
    below: float
    doubt: float


def gaussian_shift(base: Loss, count: int, rate: Fraction) -> GaussianShift | None:
    """μ from above and from below if the base is Gaussian noise and nothing else; it sees a sample of the rate."""
    above: list[float] = []
    below: list[float] = []
    worst = 0.0
    for record, times in parts_of(base):
        single = gaussian_squares(record, count * times, rate)
        if single is None or single[2] > COARSEST:
            return None
        above.append(float(single[0]) * times)
        below.append(float(single[1]) * times)
        worst = max(worst, single[2])
    total = math.fsum(above)
    return GaussianShift(math.sqrt(total), math.sqrt(math.fsum(below)), worst + 4 * UNIT) if total > 0 else None


def doubt_of_sample(sigma2: Fraction, count: int, square: Fraction, rate: Fraction) -> float:
    """Return what the sandwich leaves open of μ² = `square` in a sample of the rate; a shift of 0 costs nothing."""
    return sandwich(float(sigma2), count, math.sqrt(square) * float(rate)) if square > 0 else 0.0


# ---- the laws above and below ----------------------------------------------------------------------------------------------


def sides(loss: Loss, direction: Direction) -> tuple[Side, Side]:
    """Return the laws above and below all records of the loss, in one direction. The same object where they agree."""
    kinds = kinds_of(loss).values()
    above = Side()
    out = Sides(above, Side() if any(two_faced.some(parts) for parts in kinds) else above)
    for parts in kinds:
        add = law.answer_of(parts[0][0])
        for record, count in parts:
            add(record, count, direction, out)
    return out.above, out.below


def directions_differ(loss: Loss) -> bool:
    """Whether the two directions differ."""
    return any(traits_of(parts[0][0]).directional for parts in kinds_of(loss).values())


def directions_of(loss: Loss) -> tuple[Direction, ...]:
    """Return the directions that must be looked at: both, or one where they are mirror images."""
    return tuple(Direction) if directions_differ(loss) else (Direction.LEAVES,)
