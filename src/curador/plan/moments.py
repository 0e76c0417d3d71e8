"""How far a variance can lie from the released one, from how far its two moments can.

Of n values on a grid with middle 0 let M be the mean, S the second moment less a known number, and ñ, M̃, S̃ what was released.
With the noises N of the three sums, of which p and q are the steps of values and of squares,

    M̃ − M = e = (p N_total − M N_count)/ñ        S̃ − S = (q N_squares − S N_count)/ñ

    (S̃ − M̃²) − (S − M²) = T/ñ − e²,   T = q N_squares − 2 M p N_total + (2 M² − S) N_count

both without any rest. T is a linear form of independent noises whose coefficients are not random, and ñ is known. Under
Gaussian noise e² is taken into the form, as slopes in the middle between M and M̃ (`plan/bending.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.plan.bending import bent_values, where_bent
from curador.plan.error import FAR, ROUND_OFF, combined_reaches, lattice_slack, own_reach, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.numerics.rounding import FloatArray
    from curador.plan.price import Noise

MOMENTS_SHARE = Fraction(1, 20)
COUNT_SHARE = MOMENTS_SHARE / 5
"""What both moments' own intervals may take of a variance's miss, and what e may; and what the count's own interval may."""

_ROUNDS = 3
_LEVELS = Fraction(1, 1000), Fraction(1, 4)
"""Mean slopes are followed for what may be missed so often: stairs ask for many more levels, and each has its own values."""

Enclosed: TypeAlias = "tuple[FloatArray, FloatArray]"


@dataclass(frozen=True, slots=True, eq=False)
class MomentBox:
    """What is known of a variance's moments, in every row.

    mean      the released mean, or where it lies
    value     the released variance, or no number
    moments   where M and S lie
    variance  where the variance lies at all
    centre    what S is less than the second moment
    """

    mean: Enclosed
    value: FloatArray
    moments: tuple[Enclosed, Enclosed]
    variance: Enclosed
    centre: float


def variance_reaches(
    places: tuple[int, int, int],
    steps: tuple[float, float],
    count: FloatArray,
    box: MomentBox,
    noises: Sequence[Noise],
    miss: Fraction,
) -> Enclosed:
    """Return how far the variance before noise can lie below the released one, and above it, in every row.

    places   of squares, total and count
    steps    q and p
    count    the released one; infinite where it is not above 0

    Claim   Both hold with probability at least 1 − (1 − MOMENTS_SHARE) · miss, if all lies where the box says. Which of two
            laws is used is by `where_bent`.
    Needs   The box may fail with MOMENTS_SHARE of the miss, so that all of it is used.
    Rounds  Up.
    """
    laws = [noises[place] for place in places]
    gaussians = [law for law in laws if isinstance(law, DiscreteGaussian)]
    if len(gaussians) < len(laws) or not _LEVELS[0] <= miss <= _LEVELS[1]:
        return _boxed_reaches(places, steps, count, box, noises, miss)
    bent, boxed = where_bent(count / float(spread(gaussians[2])))
    left = miss - Fraction(FAR)
    half = _bent_reach(steps, count, box, gaussians, left) if bent.any() else np.zeros(len(count))
    if not boxed.any():
        return half, half
    less, more = _boxed_reaches(places, steps, count, box, noises, left)
    found = [np.maximum(np.where(bent, half, 0.0), np.where(boxed, one, 0.0)) for one in (less, more)]
    return found[0], found[1]


def _bent_reach(
    steps: tuple[float, float], count: FloatArray, box: MomentBox, noises: Sequence[DiscreteGaussian], miss: Fraction
) -> FloatArray:
    """By the slopes in the middle between M and M̃, of which the variance's noise is made without any rest.

    Claim   The variance is off by v̂ · Z/ñ, v̂ = (q, −(M̃ + M) p, M (M̃ + M) − S) times the deviations. It differs from v, that
            with 2M for M̃ + M, by e Δ, Δ = (0, −p, M), and ñe is −Δ · Z; so sin ω ≤ |e| ‖Δ‖/‖v̂‖ ≤ bend · ‖(Z₀, Z₁)‖, with
            Z₁ of one dimension and bend = ‖Δ‖²/((n − R) qσ), R being what N_count exceeds with COUNT_SHARE of the miss.
            That number is not random; what is computed is that or more, as ñ − 2R ≤ n − R. The form has what is left.
            M (M̃ + M) − S is M M̃ − V, V being the variance less the centre; each narrower V allows a shorter v̂.
    Source  `plan/bending.py`. The lattice moves e by its slack.
    Rounds  Up; infinite where the bend is large.
    """
    (low, high), (least, most) = box.moments
    q, p = steps
    sigmas = [float(spread(noise)) for noise in noises]
    slack = [lattice_slack(noise) for noise in noises]
    above = np.where(count > 0, count, np.nan)
    furthest = np.maximum(np.abs(low), np.abs(high))
    turn, slip = np.hypot(p * sigmas[1], furthest * sigmas[2]), p * slack[1] + furthest * slack[2]
    near = count - 2 * float(own_reach(noises[2], COUNT_SHARE * miss))
    bend = turn * (turn + slip) / (np.where(near > 0, near, np.nan) * q * sigmas[0]) * ROUND_OFF
    left = float((1 - MOMENTS_SHARE - COUNT_SHARE) * miss) * (1 - 1e-9) - len(noises) * FAR
    critical = bent_values(bend, 1, left)
    both = box.mean[0] + low, box.mean[1] + high
    squares, crossed = (_products((low, high), other) for other in (both, box.mean))
    by_total = p * np.maximum(*map(np.abs, both))
    half, (small, large) = np.full_like(above, np.inf), box.variance
    for _ in range(_ROUNDS):
        small, large = np.fmax(small, box.value - half), np.fmin(large, box.value + half)
        from_below = np.maximum(squares[0] - most, crossed[0] - (large - box.centre))
        from_above = np.minimum(squares[1] - least, crossed[1] - (small - box.centre))
        by_count = np.maximum(np.abs(from_below), np.abs(from_above)) * ROUND_OFF
        sizes = q, by_total, by_count
        form = np.sqrt(sum((size * sigma) ** 2 for size, sigma in zip(sizes, sigmas, strict=True)))
        moved = sum(size * one for size, one in zip(sizes, slack, strict=True))
        half = (critical * form + moved) / above * ROUND_OFF
    return half


def _products(one: Enclosed, other: Enclosed) -> Enclosed:
    corners = [end * beside for end in one for beside in other]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _boxed_reaches(
    places: tuple[int, int, int],
    steps: tuple[float, float],
    count: FloatArray,
    box: MomentBox,
    noises: Sequence[Noise],
    miss: Fraction,
) -> Enclosed:
    """By the slopes at M, and e² for itself.

    Claim   T is beyond its reach with 1 − 2 · MOMENTS_SHARE of the miss, at the largest coefficients that M and S allow, as
            reaches grow with each of them; e with MOMENTS_SHARE.
    Rounds  Up.
    """
    (low, high), (least, most) = box.moments
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
