"""Error bars of a sum of two ratios without a common noise, as a difference of means: Fieller's set in two dimensions.

In the plane of one ratio (`plan/error.py`) noise has variance 1 in every direction, and the ratio θ = β + γ tan ψ is a line
at the angle ψ. The noisy point, at distance R and angle ω, is off that line by ζ = R sin(ω − ψ), which is normal, and lies
R cos(ω − ψ) along it, which is independent of ζ. Dividing by the divisor as the point along the line has it,

    A = (ã − θ b̃)/g = γ tan(ω − ψ)/cos² ψ,   g = R cos(ω − ψ) cos ψ · σ_b,   of deviation S = γ/(R cos(ω − ψ) cos² ψ) given g.

So for the true pair of ratios A₁ + A₂ is normal of variance S₁² + S₂² given both g, and no other number is needed: the set of
all pairs with |A₁ + A₂| ≤ z √(S₁² + S₂²) holds the true pair with the probability of z. However small the divisors are.

The interval is that of t = θ₁ + θ₂ over this set, as far as both ratios lie in sets of their own. The angles ψ₁ are divided
into cells, and for each the numbers t: a cell of both is left out where it holds no pair of the set. As θ₁ moves at a fixed
t, A₁ + A₂ hardly does, since dA/dθ = 2 tan(ω − ψ) tan ψ − 1/cos²(ω − ψ) is near −1 for both; so cells may be coarse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.plan.error import FAR, ROUND_OFF, lattice_slack, ratio_plane, spread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from curador.mechanisms.gaussian import DiscreteGaussian
    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import BoolArray, IntArray

Enclosed: TypeAlias = "tuple[FloatArray, FloatArray]"

_SMALL = 50.0
_BAND = 8.0
_ANGLES = 14
_SUMS = 24
_ROWS = 128
"""So many cells an angle has, so many a sum in each of two rounds; so many rows are looked at together."""


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One ratio in every row: β and γ, distance and angle of its point, how far the lattice turns it, and its own ends."""

    slope: float
    scale: float
    length: FloatArray
    angle: FloatArray
    turn: FloatArray
    ends: Enclosed

    def take(self, rows: IntArray) -> _Side:
        length, angle, turn, low, high = (one[rows, None, None] for one in (self.length, self.angle, self.turn, *self.ends))
        return _Side(self.slope, self.scale, length, angle, turn, (low, high))

    def centre(self, ratio: FloatArray) -> FloatArray:
        """Return A at a ratio."""
        place = (ratio - self.slope) / self.scale
        return self.scale * np.tan(self.angle - np.arctan(place)) * (1 + place * place)

    def over(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return of all ratios between two ends: the ends of dA/dθ, the largest S, and how far the lattice can move A.

        Infinite where the point may lie across the line. Squares of secants are largest at an end, and least at an end or 1;
        tangents lie between those of the ends.
        """
        places = (low - self.slope) / self.scale, (high - self.slope) / self.scale
        first, last = self.angle - np.arctan(places[1]) - self.turn, self.angle - np.arctan(places[0]) + self.turn
        across = ~(np.maximum(np.abs(first), np.abs(last)) < math.pi / 2 - 1e-6)
        tangents = np.tan(np.where(across, 0.0, first)), np.tan(np.where(across, 0.0, last))
        least = np.where((first <= 0) & (last >= 0), 1.0, 1 + np.minimum(*(one * one for one in tangents)))
        most = 1 + np.maximum(*(one * one for one in tangents))
        products = [2 * one * other for one in tangents for other in places]
        own = 1 + np.maximum(*(place * place for place in places))
        slopes = np.minimum.reduce(products) - most, np.maximum.reduce(products) - least
        deviation, moved = self.scale * own * np.sqrt(most) / self.length, self.scale * own * most * self.turn
        infinite = [np.where(across, way * np.inf, one) for way, one in zip((-1, 1), slopes, strict=True)]
        return infinite[0], infinite[1], np.where(across, np.inf, deviation), np.where(across, np.inf, moved)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyRatio:
    """One ratio: coefficients of its noises above and below, what was released of both, and where it lies at all.

    within   an enclosure that may miss, and bounds that never do
    """

    above: FloatArray
    below: FloatArray
    noises: Sequence[DiscreteGaussian]
    numerator: FloatArray
    divisor: FloatArray
    within: Enclosed


def divisor_size(one: NoisyRatio) -> FloatArray:
    """Return how often a released divisor has its noise's deviation."""
    sigmas = np.array([float(spread(noise)) for noise in one.noises])
    return one.divisor / float(np.linalg.norm(one.below * sigmas))


def where_small(pair: tuple[NoisyRatio, NoisyRatio]) -> tuple[BoolArray, BoolArray]:
    """Return in which rows the set of pairs is to be used, and in which the turn of `plan/ratio_sums.py`; in some both are.

    A turn is next to nothing where divisors are large, and the set says no more. Which of them are is seen of noisy numbers.

    Claim   If the interval is all that either allows where both are used, it misses no more often than one of them does
            alone, but for FAR. Let m be the smaller of the divisors before noise over their deviations. If m is at most
            _SMALL, the turn alone is used only where a noise is above _BAND deviations, which has less than FAR; else the
            interval misses only where the set does. If m is above it, the set alone is used as rarely, and it misses only
            where the turn does.
    Needs   The laws of both have FAR to spare.
    """
    size = np.minimum(*map(divisor_size, pair))
    return size < _SMALL + _BAND, ~(size < _SMALL - _BAND)


def ratio_pair_ends(ratios: tuple[NoisyRatio, NoisyRatio], miss: Fraction, among: BoolArray) -> Enclosed | None:
    """Return the ends of the interval of the sum of two ratios, in some rows; None where one has no plane.

    Claim   In each row the sum before noise is missed with probability at most `miss`, and where a ratio is not within what
            is said of it. Integer noises are coupled to normal ones but for 1e-12 each, within slacks that move the point in
            its plane by at most h = √Σ(slack/σ)²: its angle by arcsin(h/R), its distance by h. Cells are dropped only if no
            pair in them is accepted, at any such point.
    Needs   Independent noises of one kind, Gaussian, none of them in both ratios.
    Rounds  Outward.
    Source  As above: normal noises along a line and across it are independent. Fieller's set is that of one ratio alone.
    """
    from scipy.special import ndtri

    sides = [_side(one) for one in ratios]
    if sides[0] is None or sides[1] is None:
        return None
    left = float(miss) * (1 - 1e-9) - FAR * sum(len(one.noises) for one in ratios)
    z = -float(ndtri(left / 2)) * ROUND_OFF
    count = len(ratios[0].divisor)
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    known = np.flatnonzero(np.all([np.isfinite(end) for side in sides if side for end in side.ends], axis=0) & among)
    for start in range(0, len(known), _ROWS):
        rows = known[start : start + _ROWS]
        pair = sides[0].take(rows), sides[1].take(rows)
        low[rows], high[rows] = _least(pair, z), _most(pair, z)
    slip = 1e-12 * sum(np.maximum(*map(np.abs, side.ends)) for side in sides if side)
    return low - slip, high + slip


def _side(one: NoisyRatio) -> _Side | None:
    sigmas = np.array([float(spread(noise)) for noise in one.noises])
    plane = ratio_plane(one.above, one.below, sigmas, 1)
    if plane is None:
        return None
    moved = float(np.linalg.norm([lattice_slack(noise) / float(spread(noise)) for noise in one.noises])) * ROUND_OFF
    flat, high = one.divisor / plane.denominator, (one.numerator - plane.slope * one.divisor) / plane.rest
    length = np.hypot(flat, high)
    known = length > moved
    turn = np.where(known, np.arcsin(moved / np.where(known, length, 1.0)), math.pi) + 1e-12
    scale = plane.rest / plane.denominator
    near = np.where(known, length - moved, 1.0) * (1 - 1e-12)
    return _Side(plane.slope, scale, near, np.arctan2(high, flat), turn, one.within)


def _least(pair: tuple[_Side, _Side], z: float) -> FloatArray:
    """The least accepted sum, or less: minus the most of the mirrored ratios."""
    mirrored = [_Side(-one.slope, one.scale, one.length, -one.angle, one.turn, (-one.ends[1], -one.ends[0])) for one in pair]
    return -_most((mirrored[0], mirrored[1]), z)


def _most(pair: tuple[_Side, _Side], z: float) -> FloatArray:
    """The largest accepted sum, or more.

    Claim   Of a cell of ratios θ₁, all accepted sums are at most the upper end of the last cell of sums that may hold one,
            and where those of the second round hold none, the lower end of what they divide: nothing above that was left.
    """
    one, other = pair
    edges = np.tan(np.linspace(0, 1, _ANGLES + 1)[None, :, None] * (_angle(one, 1) - _angle(one, 0)) + _angle(one, 0))
    edges = one.slope + one.scale * edges
    edges[:, :1], edges[:, -1:] = one.ends
    low, high = edges[:, :-1], edges[:, 1:]
    start, stop = low + other.ends[0], high + other.ends[1]
    parts = np.linspace(0, 1, _SUMS + 1)
    for _ in range(2):
        sums = start + (stop - start) * parts
        sums[..., :1], sums[..., -1:] = start, stop
        held = _may_hold(one, other, (low, high), (sums[..., :-1], sums[..., 1:]), z)
        last = _SUMS - np.argmax(held[..., ::-1], axis=-1, keepdims=True)  # the upper end of the last that may hold one
        last = np.where(held.any(axis=-1, keepdims=True), last, 0)
        start, stop = np.take_along_axis(sums, np.maximum(last - 1, 0), -1), np.take_along_axis(sums, last, -1)
    return np.max(stop, axis=(1, 2))


def _angle(side: _Side, end: int) -> FloatArray:
    return np.arctan((side.ends[end] - side.slope) / side.scale)


def _may_hold(one: _Side, other: _Side, ratios: Enclosed, sums: Enclosed, z: float) -> BoolArray:
    """Whether a pair in a cell of ratios and sums may be accepted.

    Claim   By the mean value theorem A₁ + A₂ differs from that in the middle by at most the sum over both coordinates of the
            largest derivative times half of the cell: dA₁/dθ₁ − dA₂/dθ₂ along θ₁, and dA₂/dθ₂ along t.
    """
    low, high = ratios
    middle, total = (low + high) / 2, (sums[0] + sums[1]) / 2
    beside = sums[0] - high, sums[1] - low
    first, second = one.over(low, high), other.over(*beside)
    value = one.centre(middle) + other.centre(total - middle)
    along = np.maximum(np.abs(first[1] - second[0]), np.abs(first[0] - second[1]))
    down = np.maximum(np.abs(second[0]), np.abs(second[1]))
    off = (along * (high - low) + down * (sums[1] - sums[0])) / 2 + first[3] + second[3]
    inside = (beside[1] >= other.ends[0]) & (beside[0] <= other.ends[1])
    return inside & ~(np.abs(value) > (z * np.hypot(first[2], second[2]) + off) * ROUND_OFF)
