"""Which pairs of intervals of two independent numbers hold both numbers at once, as stairs around the truth.

Let each of two numbers have intervals at many levels, each of which lies in the next, and let the noises of both be
independent. If the first number is in its interval k with a probability of at least 1 − u_k, and the second in its own with
1 − v_k, u falling and v rising with k, then some k has both inside with at least

    Σ_k (u_(k−1) − u_k)(1 − v_k),   u_0 = 1,

by adding up the steps of a stair; as the sum grows with each of the probabilities, intervals may hold more often than they
say. So a function of both numbers lies where these pairs allow it, and of nothing else need be known: not how large the
divisors of two ratios are, not what their noises do to each other. What is chosen here is the form of the stair, which is
right in any form, and shortest where it runs along the law of the sum.

one-sided   of upper ends, or of lower ones: u is at most 1/2, where the end is the released number itself
two-sided   of intervals whose ends are not known to miss equally often
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.plan.error import smooth_reach

if TYPE_CHECKING:
    from fractions import Fraction

    from curador.numerics.rounding import FloatArray
    from curador.plan.error import Additive

_BESIDE = 0.6
"""The law that stairs are formed for, as of a mean under Laplace noise: of two noises, of which the second is so large."""

_DIRECTIONS = 9
_EVERY = 5.0
"""How far the logarithm of a ratio of lengths goes where it may be any."""


@lru_cache(maxsize=8)
def rungs(kind: Additive) -> tuple[FloatArray, FloatArray]:
    """Return places, in deviations of a part, and what lies above each of them, by which a stair goes: from 1/2 down.

    The law is that of one Gaussian noise, or of two Laplaces; it forms the stair, and has no say in what that holds.
    """
    if isinstance(kind, DiscreteGaussian):
        from scipy.special import ndtr

        places = np.arange(0.0, 5.6, 0.08)
        return places, ndtr(-places)
    places = np.concatenate([np.arange(0.0, 4.0, 0.08), np.arange(4.0, 9.0, 0.3)])
    sizes = np.array([1.0, _BESIDE])
    scales = sizes / np.sqrt(2 * np.sum(sizes * sizes))
    squares = scales * scales
    weights = squares / (squares - squares[::-1])
    return places, 0.5 * np.exp(-places[:, None] / scales) @ weights


@dataclass(frozen=True, slots=True)
class StairSteps:
    """The steps of a stair, as numbers of rungs: of the first part rising, of the second falling."""

    first: tuple[int, ...]
    second: tuple[int, ...]


def miss_of_steps(levels: FloatArray, steps: StairSteps, *, sides: int) -> float:
    """Return what a stair misses at most.

    levels  what lies above each rung; sides: 1 or 2, so many times is it missed by the interval of that rung

    Claim   As above. Rounds: up, by more than what a few hundred operations can be off.
    """
    u, v = (sides * levels[list(one)] for one in (steps.first, steps.second))
    before = np.concatenate([[1.0], u[:-1]])
    return float(1 - np.sum((before - u) * (1 - v))) + 1e-13


@lru_cache(maxsize=1024)
def stair(kind: Additive, miss: Fraction, ratio: float, about: float, *, sides: int) -> StairSteps | None:
    """Return the steps of a stair that misses with at most `miss`; None where the rungs do not reach so far.

    ratio  how much longer the second part is than the first, by their deviations, as a logarithm
    about  how far from that its form may be wanted, likewise; infinite: for all

    Claim   `miss_of_steps` of it is at most `miss`: the form is widened until it is.
    """
    places, levels = rungs(kind)
    wide = min(about, _EVERY)
    count = _DIRECTIONS if wide < _EVERY else 6 * _DIRECTIONS + 1
    ratios = np.exp(np.linspace(-wide, wide, count) + (ratio if wide < _EVERY else 0.0))
    reaches = smooth_reach(kind, _spreads(kind, ratios), 2 * float(miss) / sides)
    low, high, found = 0.8, 4.0, None
    for _ in range(20):
        middle = (low + high) / 2
        steps = _inside(places, middle * reaches, ratios)
        if steps is not None and miss_of_steps(levels, steps, sides=sides) <= float(miss):
            high, found = middle, steps
        else:
            low = middle
    return found


def _spreads(kind: Additive, ratios: FloatArray) -> FloatArray:
    """The scales of the noises of both parts, which have the deviations 1 and `ratios`."""
    ones = np.ones_like(ratios)
    if isinstance(kind, DiscreteGaussian):
        return np.stack([ones, ratios], axis=-1)
    size = np.sqrt(2 * (1 + _BESIDE**2))
    return np.stack([ones, _BESIDE * ones, ratios, _BESIDE * ratios], axis=-1) / size


def _inside(places: FloatArray, reaches: FloatArray, ratios: FloatArray) -> StairSteps | None:
    """The rungs x, y with x + ratio · y ≤ reach for every ratio."""
    most = np.min((reaches[None, :] - places[:, None]) / ratios[None, :], axis=1)
    rung = np.searchsorted(places, most, side="right") - 1
    if not np.any(most >= 0):
        return None
    last = int(np.flatnonzero(most >= 0)[-1])
    rung = rung[: last + 1]
    keep = np.flatnonzero(np.append(rung[1:] < rung[:-1], True))  # of equal second rungs the largest first
    return StairSteps(tuple(keep.tolist()), tuple(rung[keep].tolist()))
