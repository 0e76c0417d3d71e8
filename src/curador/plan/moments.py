"""How far a variance can lie from the released one, from how far its two moments can.

Of n values on a grid with middle 0 let M be the mean, S the second moment less a known number, and ñ, M̃, S̃ what was released.
With the noises N of the three sums, of which p and q are the steps of values and of squares,

    M̃ − M = e = (p N_total − M N_count)/ñ        S̃ − S = (q N_squares − S N_count)/ñ

    (S̃ − M̃²) − (S − M²) = T/ñ − e²,   T = q N_squares − 2 M p N_total + (2 M² − S) N_count

both without any rest. T is a linear form of independent noises whose coefficients are not random, and ñ is known.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.plan.error import ROUND_OFF, combined_reaches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.numerics.rounding import FloatArray
    from curador.plan.price import Noise

MOMENTS_SHARE = Fraction(1, 20)
"""What both moments' own intervals may take of a variance's miss, and what e may."""

Enclosed: TypeAlias = "tuple[FloatArray, FloatArray]"


def variance_reaches(
    places: tuple[int, int, int],
    steps: tuple[float, float],
    count: FloatArray,
    moments: tuple[Enclosed, Enclosed],
    noises: Sequence[Noise],
    miss: Fraction,
) -> Enclosed:
    """Return how far the variance before noise can lie below the released one, and above it, in every row.

    places   of squares, total and count
    steps    q and p
    count    the released one; infinite where it is not above 0
    moments  where M and S lie

    Claim   Both hold with probability at least 1 − (1 − MOMENTS_SHARE) · miss, if M and S lie where they are said to: T is
            beyond its reach with 1 − 2 · MOMENTS_SHARE of the miss, at the largest coefficients that M and S allow, as
            reaches grow with each of them; e with MOMENTS_SHARE.
    Needs   M and S may lie elsewhere with MOMENTS_SHARE of the miss, so that all of it is used.
    Rounds  Up.
    """
    (low, high), (least, most) = moments
    q, p = steps
    furthest = np.maximum(np.abs(low), np.abs(high))
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    by_count = np.maximum(np.abs(2 * furthest**2 - least), np.abs(2 * nearest**2 - most)) * ROUND_OFF
    form = np.stack([np.full_like(furthest, q), 2 * p * furthest, by_count], axis=-1) * ROUND_OFF
    mean = np.stack([np.full_like(furthest, p), furthest], axis=-1) * ROUND_OFF
    squares, total, rows = places
    reach = combined_reaches((squares, total, rows), form, noises, (1 - 2 * MOMENTS_SHARE) * miss)
    slip = combined_reaches((total, rows), mean, noises, MOMENTS_SHARE * miss)
    above = np.where(count > 0, count, np.nan)
    less = reach / above * ROUND_OFF
    return less, less + (slip / above) ** 2 * ROUND_OFF
