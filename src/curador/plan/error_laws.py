"""How far sums of independent integer noises reach: data-free laws behind every error bar.

one noise              the mechanism's own exact interval
Gaussians, smooth      z √Σ(cσ)²: a sum of Gaussians is Gaussian
Laplaces, smooth       P[|S| > t] = Σ wᵢ e^(−t/βᵢ), wᵢ = Π βᵢ²/(βᵢ² − βⱼ²): partial fractions of Π 1/(1 + βᵢ²s²)
from smooth to lattice a coupling: integer noise lies within `lattice_slack` steps of the smooth one
coarse lattices        all noises but the finest are enumerated, so that no slack is paid for them

Whatever is left out (tails beyond 1e-12, round-off) is taken from the allowed miss, so that every reach errs upward.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian, gaussian_total
from curador.mechanisms.laplace import DiscreteLaplace
from curador.numerics.rounding import FloatArray, float_up

if TYPE_CHECKING:
    from collections.abc import Sequence

Additive: TypeAlias = DiscreteLaplace | DiscreteGaussian
Term: TypeAlias = tuple[Fraction, Additive]

FAR = 1e-12
"""The probability that a coupling leaves out, for each noise."""

SMALLEST_MISS = 1e-9
"""Below this only the exact laws of single noises are used."""

ROUND_OFF = 1 + 1e-12
"""What every reach is multiplied by: far above the round-off of a few dozen float operations."""

_MOST_POINTS = 1 << 18
_MOST_LAPLACES = 8
_FINE = 1000.0


# ---- sums of integer noises ----------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def sum_reach(terms: tuple[Term, ...], confidence: Fraction) -> float:
    """Return w with P[|Σ c · noise| ≤ w] ≥ confidence, for independent noises.

    Claim   One noise: |c| times its exact interval. Several of one kind: with Z the smooth noise of the same scale, coupled
            to X so that |X − Z| ≤ s steps but for a probability of 1e-12, |Σ cX| ≤ |Σ cZ| + Σ|c|s, and the law of Σ cZ is
            known. Where that slack is felt, all noises but the finest are enumerated: P[|Σ cX| > w] is then a finite sum
            over the values of those, of tails of the finest, smooth or not. Otherwise the union bound.
    Needs   Each noise stands in one term only.
    Rounds  Up.
    Source  lattice_slack and smooth_reach, where they are proved.
    """
    held = tuple((abs(c), noise) for c, noise in terms if c)
    miss = 1 - confidence
    if len(held) <= 1:
        return float_up(sum((c * own_reach(noise, miss) for c, noise in held), Fraction(0)))
    if len({type(noise) for _, noise in held}) > 1 or miss < SMALLEST_MISS:
        return float_up(sum((c * own_reach(noise, miss / len(held)) for c, noise in held), Fraction(0)))
    left = float(miss) * (1 - 1e-9) - len(held) * FAR
    smooth = float(smooth_reach(held[0][1], np.array([[float(c * spread(noise)) for c, noise in held]]), left)[0])
    slack = sum(float(c) * lattice_slack(noise) for c, noise in held)
    bound = (smooth + slack) * ROUND_OFF
    return bound if slack <= smooth / 256 else min(bound, _enumerated(held, left, max(smooth - slack, 0.0), bound))


def spread(noise: Additive) -> Fraction:
    """Return σ, or the scale."""
    return noise.sigma if isinstance(noise, DiscreteGaussian) else noise.scale


def deviation(noise: Additive) -> float:
    """Return the standard deviation of the smooth noise of the same scale."""
    return float(spread(noise)) * (1.0 if isinstance(noise, DiscreteGaussian) else math.sqrt(2.0))


def own_reach(noise: Additive, miss: Fraction) -> Fraction:
    """Return the reach of one noise by its exact law. Rounds: up."""
    return Fraction(noise.interval(1 - miss).upper)


def _enumerated(terms: Sequence[Term], miss: float, low: float, high: float) -> float:
    """The reach with all noises but the finest enumerated, that one smooth, or enumerated too where that is short."""
    coarse = sorted(terms, key=lambda term: spread(term[1]))
    reaches = [int(own_reach(noise, Fraction(miss / 1000))) for _, noise in coarse]
    left = miss * (1 - len(coarse) / 1000)  # what lies beyond the reaches is missed
    if math.prod(2 * reach + 1 for reach in reaches[:-1]) > _MOST_POINTS:
        return high
    everything = math.prod(2 * reach + 1 for reach in reaches) <= _MOST_POINTS
    sums, weights = np.zeros(1), np.ones(1)
    for (c, noise), reach in zip(coarse if everything else coarse[:-1], reaches, strict=False):
        places = np.arange(-reach, reach + 1, dtype=np.float64)
        sums = (sums[:, None] + float(c) * places[None, :]).ravel()
        weights = (weights[:, None] * _masses(noise, places)[None, :]).ravel()
    if everything:
        return _finite_reach(np.abs(sums), weights, left) * ROUND_OFF
    c, finest = coarse[-1]
    scale, slack = float(c * spread(finest)), float(c) * lattice_slack(finest)
    for _ in range(40):
        middle = (low + high) / 2
        missed = float(weights @ _beyond(finest, (middle - slack) / scale, sums / scale)) * ROUND_OFF
        low, high = (low, middle) if missed <= left else (middle, high)
    return high * ROUND_OFF


def _masses(noise: Additive, places: FloatArray) -> FloatArray:
    """P[noise = k] for each place k."""
    scale = float(spread(noise))
    if isinstance(noise, DiscreteGaussian):
        return np.exp(-0.5 * (places / scale) ** 2) / gaussian_total(noise.sigma**2)
    return np.tanh(0.5 / scale) * np.exp(-np.abs(places) / scale)


def _finite_reach(sizes: FloatArray, weights: FloatArray, miss: float) -> float:
    """The smallest size that larger ones exceed with probability at most `miss`."""
    order = np.argsort(sizes)
    above = weights.sum() - np.cumsum(weights[order])
    return float(sizes[order][int(np.argmax(above <= miss))])


def _beyond(noise: Additive, reach: float, shift: FloatArray) -> FloatArray:
    """P[|Y + shift| > reach] for the smooth law of scale 1."""
    if reach <= 0:
        return np.ones_like(shift)
    if isinstance(noise, DiscreteGaussian):
        from scipy.special import ndtr

        return ndtr(-reach - shift) + ndtr(shift - reach)
    return _laplace_above(reach - shift) + _laplace_above(reach + shift)


def _laplace_above(x: FloatArray) -> FloatArray:
    half = 0.5 * np.exp(-np.abs(x))
    return np.where(x >= 0, half, 1 - half)


# ---- from the smooth law to the lattice ----------------------------------------------------------------------------


@lru_cache(maxsize=512)
def lattice_slack(noise: Additive) -> float:
    """Return s: the noise X and the smooth Z of the same scale can be drawn together with |X − Z| ≤ s but for 1e-12.

    Claim   Give both the same sign, and X = k ≥ 1 where |Z| lies between a_k and a_(k+1), with P[Z ≥ a_k] = P[X ≥ k]; X = 0
            below a_1. Then s is the largest of k − a_k and a_(k+1) − k over what occurs.
            Laplace: P[X ≥ k] = r^k/(1 + r), so a_k = k − 1/2 + b log cosh(1/2b) and s = 1/2 + b log cosh(1/2b) ≤ 1.
            Gaussian: the tails are summed, up to where 1e-12 is left. Beyond σ = 1000 s = 1.001: each mass is at least its
            integral over the step above it and at most over the step below, and the masses' total is σ√(2π) within
            e^(−2π²σ²), so k − 1 ≤ a_k ≤ k but for less than 1e-3.
    Rounds  Up.
    """
    scale = float(spread(noise))
    furthest = scale * (7.3 if isinstance(noise, DiscreteGaussian) else 28.5)  # |Z| beyond it has less than 1e-12
    reach = int(own_reach(noise, Fraction(FAR / 2)))
    if reach == 0:
        return furthest
    if isinstance(noise, DiscreteLaplace):
        return (0.5 + scale * _log_cosh(0.5 / scale)) * ROUND_OFF
    if scale > _FINE:
        return 1.001
    from scipy.special import ndtri

    places = np.arange(1, math.ceil(reach + 12 * scale + 40), dtype=np.float64)
    tails = np.cumsum(np.exp(-0.5 * (places[::-1] / scale) ** 2))[::-1] / gaussian_total(noise.sigma**2)
    edges = -scale * ndtri(tails[: reach + 1])  # a_1, a_2, …, the last one beyond `reach`
    edges = np.minimum(edges, max(furthest, float(reach)))
    below = np.max(places[:reach] - edges[:reach])
    above = np.max(edges - np.arange(reach + 1))
    return float(max(below, above)) * ROUND_OFF


def _log_cosh(x: float) -> float:
    """log cosh x without overflow."""
    return x + math.log1p(math.exp(-2 * x)) - math.log(2) if x > 1e-4 else x * x / 2


# ---- smooth sums ---------------------------------------------------------------------------------------------------


def smooth_reach(kind: Additive, scales: FloatArray, miss: float) -> FloatArray:
    """Return for each row t with P[|Σ scale · Y| > t] ≤ miss, Y independent smooth noises of scale 1 of the kind's law.

    Claim   Gaussians: Σ scale · Y is Gaussian. Laplaces: partial fractions of the characteristic function, where the scales
            differ; they are first raised until they do, which only widens the law: 1/(1 + β′²s²) is 1/(1 + β²s²) times
            p + (1 − p)/(1 + β′²s²), p = β²/β′², so the wider sum is the narrower one plus an independent symmetric
            variable, and a symmetric unimodal law loses mass in every [−t, t] when one is added.
    Rounds  Up; the cancellation of the weights is added to the tail.
    Source  Anderson's inequality for the last step; sums of Laplace variables are symmetric and log-concave.
    """
    if isinstance(kind, DiscreteGaussian):
        from scipy.special import ndtri

        return np.sqrt(np.sum(scales * scales, axis=-1)) * (-float(ndtri(miss / 2)) * ROUND_OFF)
    return _laplace_sum_reach(scales, miss)


def _laplace_sum_reach(scales: FloatArray, miss: float) -> FloatArray:
    count = scales.shape[-1]
    if count > _MOST_LAPLACES:
        half = count // 2
        return _laplace_sum_reach(scales[:, :half], miss / 2) + _laplace_sum_reach(scales[:, half:], miss / 2)
    largest = np.maximum(np.max(scales, axis=-1, keepdims=True), 1e-300)
    apart = _separated(scales / largest)
    weights = _weights(apart)
    low, high = np.zeros(len(scales)), np.sum(apart, axis=-1) * math.log(count / miss)
    for _ in range(60):
        middle = (low + high) / 2
        parts = weights * np.exp(-middle[:, None] / apart)
        tail = np.sum(parts, axis=-1) + 2.0**-44 * np.sum(np.abs(parts), axis=-1)
        low, high = np.where(tail <= miss, low, middle), np.where(tail <= miss, middle, high)
    return high * largest[:, 0] * ROUND_OFF


def _separated(scales: FloatArray) -> FloatArray:
    """Scales in ascending order, raised until each is above the one before by a factor that the weights can bear."""
    count = scales.shape[-1]
    factor = 1 + 2.0 ** -(10 if count <= 3 else 8 if count <= 4 else 6 if count <= 6 else 5)
    out = np.maximum(np.sort(scales, axis=-1), 1e-9)
    for place in range(1, count):
        out[:, place] = np.maximum(out[:, place], out[:, place - 1] * factor)
    return out


def _weights(scales: FloatArray) -> FloatArray:
    squares = scales * scales
    out = np.ones_like(scales)
    for one, other in combinations(range(scales.shape[-1]), 2):
        gap = (scales[:, one] - scales[:, other]) * (scales[:, one] + scales[:, other])
        out[:, one] *= squares[:, one] / gap
        out[:, other] *= -squares[:, other] / gap
    return out
