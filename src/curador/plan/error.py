"""The laws behind error bars, none of which needs data: `plan/aggregates.py` makes the ± of every estimate of them.

A count or a sum has one ± for every group. The error of a mean or a variance depends on how many rows the group has, so it is
told for a number of rows; of a quantile nothing can be said before it is drawn.

Sums. How far sums of independent integer noises reach: data-free laws behind every error bar.

one noise              the mechanism's own exact interval
Gaussians, smooth      z √Σ(cσ)²: a sum of Gaussians is Gaussian
Laplaces, smooth       P[|S| > t] = Σ wᵢ e^(−t/βᵢ), wᵢ = Π βᵢ²/(βᵢ² − βⱼ²): partial fractions of Π 1/(1 + βᵢ²s²)
from smooth to lattice a coupling: integer noise lies within `lattice_slack` steps of the smooth one
coarse lattices        all noises but the finest are enumerated, so that no slack is paid for them

Whatever is left out (tails beyond 1e-12, round-off) is taken from the allowed miss, so that every reach errs upward.

Ratios. Confidence sets of a ratio whose numerator and denominator are both noisy: exact, after Fieller.

If θ = N/D is the true ratio, N − θD is 0, so that of the noisy values Ñ − θD̃ only noise is left, whose law is known for every
θ. The set of all θ for which |Ñ − θD̃| is no larger than its reach t(θ) therefore holds the true one with the probability that
t was made for, at every θ, every group size, and however small the denominator is.

In the plane of (D/σ_D, (N − βD)/r), where noise has variance 1 in every direction, a ratio is a line through 0 at an angle ψ,
θ = β + γ tan ψ with γ = r/σ_D. A noisy point at distance R and angle ω accepts the lines with R |sin(ψ − ω)| ≤ t(ψ): an arc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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

    from curador.plan.price import Noise
    from curador.randomness.entropy import IntArray


# ---- error laws ------------------------------------------------------------------------------------------------------------


Additive: TypeAlias = DiscreteLaplace | DiscreteGaussian
WeightedNoise: TypeAlias = tuple[Fraction, Additive]

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
def sum_reach(terms: tuple[WeightedNoise, ...], confidence: Fraction) -> float:
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
    return bound if slack <= smooth / 256 else min(bound, _enumerated_reach(held, left, max(smooth - slack, 0.0), bound))


def spread(noise: Additive) -> Fraction:
    """Return σ, or the scale."""
    return noise.sigma if isinstance(noise, DiscreteGaussian) else noise.scale


def deviation(noise: Additive) -> float:
    """Return the standard deviation of the smooth noise of the same scale."""
    return float(spread(noise)) * (1.0 if isinstance(noise, DiscreteGaussian) else math.sqrt(2.0))


def own_reach(noise: Additive, miss: Fraction) -> Fraction:
    """Return the reach of one noise by its exact law. Rounds: up."""
    return Fraction(noise.half_width(1 - miss))


def _enumerated_reach(terms: Sequence[WeightedNoise], miss: float, low: float, high: float) -> float:
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
    apart = _separate_scales(scales / largest)
    weights = _weights(apart)
    low, high = np.zeros(len(scales)), np.sum(apart, axis=-1) * math.log(count / miss)
    for _ in range(60):
        middle = (low + high) / 2
        parts = weights * np.exp(-middle[:, None] / apart)
        tail = np.sum(parts, axis=-1) + 2.0**-44 * np.sum(np.abs(parts), axis=-1)
        low, high = np.where(tail <= miss, low, middle), np.where(tail <= miss, middle, high)
    return high * largest[:, 0] * ROUND_OFF


def _separate_scales(scales: FloatArray) -> FloatArray:
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


# ---- ratio -----------------------------------------------------------------------------------------------------------------


Combination: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Σ coefficient · measurement, by place."""

_COARSE = 128
CELLS = 1024
"""Into how many arcs the half circle is divided; the reach of an arc is that of its worst angle."""

_ROUNDS = 4


@dataclass(frozen=True, slots=True, eq=False)
class RatioLaw:
    """What the noises of a numerator and a denominator say about their ratio.

    slope, scale       β and γ: θ = β + γ tan ψ
    denominator, rest  σ_D and r: the units of the plane
    reaches            t for each arc, then the maxima over 2, 4, 8 … arcs; three half circles in a row, so that arcs wrap
    """

    slope: float
    scale: float
    denominator: float
    rest: float
    reaches: FloatArray

    def ends(self, ratio: FloatArray, numerator: FloatArray, denominator: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the interval for each noisy pair; infinite where the denominator is not clearly above 0.

        Claim   The interval covers the true ratio with the confidence of the law. All accepted lines lie within arcsin(t/R)
                of the noisy one for the largest t of the circle; so for the largest t of that arc; and so on, on either side.
        Needs   ratio = numerator/denominator, to nearest.
        Rounds  Outward.
        """
        flat, high = denominator / self.denominator, (numerator - self.slope * denominator) / self.rest
        length = np.maximum(np.hypot(flat, high), 1e-300)
        cosine, sine = flat / length, high / length
        first = np.clip(np.floor((np.arctan2(high, np.maximum(flat, 0)) / math.pi + 0.5) * CELLS), 0, CELLS - 1)
        place = first.astype(np.int64) + CELLS
        above = self._opening(length, place, 1)
        below = self._opening(length, place, -1)
        turned = np.sqrt(1 - above * above), np.sqrt(1 - below * below)
        upper, lower = cosine * turned[0] - sine * above, cosine * turned[1] + sine * below
        open_ = (denominator <= 0) | (above >= 1) | (below >= 1) | (upper <= 0) | (lower <= 0)
        with np.errstate(all="ignore"):
            more = self.scale * ROUND_OFF * above / (cosine * upper)
            less = self.scale * ROUND_OFF * below / (cosine * lower)
            ends = np.nextafter(ratio - less, -np.inf), np.nextafter(ratio + more, np.inf)
        return np.where(open_, -np.inf, ends[0]), np.where(open_, np.inf, ends[1])

    def _opening(self, length: FloatArray, place: IntArray, side: int) -> FloatArray:
        """The sine of the angle to the furthest accepted line on one side; 1 where every line is accepted."""
        sine = np.minimum(np.max(self.reaches[0]) / length, 1.0)
        for _ in range(_ROUNDS):
            cells = np.minimum(np.arcsin(sine) * (CELLS / math.pi), CELLS / 2).astype(np.int64) + 2
            start = place if side > 0 else place - cells
            sine = np.minimum(self._largest(start, cells + 1) / length, sine)
        return sine

    def _largest(self, start: IntArray, count: IntArray) -> FloatArray:
        """The largest reach of `count` arcs from `start` on: two overlapping runs of a power of two."""
        level = np.frexp(count.astype(np.float64))[1] - 1
        last = start + count - (1 << level)
        return np.maximum(self.reaches[level, start], self.reaches[level, last])


def ratio_law(
    numerator: Combination, denominator: Combination, noises: Sequence[Noise], confidence: Fraction
) -> RatioLaw | None:
    """Return the law of a ratio of two sums of measurements; None where their noises are the same but for a factor.

    Claim   For every angle of an arc the noise along it is Σ c(ψ) X, and its reach is at most t of the arc: scales and
            lattice slacks grow with |c|, and |c(ψ)| is at most the larger of its values at the ends of the arc, over the
            cosine of half of it. Laplace reaches grow with each scale, as adding an independent symmetric variable widens a
            symmetric unimodal law; Gaussian noise has the same reach z in every direction.
    Rounds  Up.
    """
    held = sorted({index for index, _ in (*numerator, *denominator)})
    along = (tuple(_along(terms, held).tolist()) for terms in (numerator, denominator))
    return _ratio_law(*along, tuple(_additive(noises[index]) for index in held), confidence)


@lru_cache(maxsize=16)
def _ratio_law(
    above_: tuple[float, ...], below_: tuple[float, ...], laws: tuple[Additive, ...], confidence: Fraction
) -> RatioLaw | None:
    """The same for coefficients along each noise; a question is tried out before it is asked, with the same laws."""
    plane = noise_plane(above_, below_, laws, CELLS)
    return None if plane is None else plane.law(_reaches(laws, plane.worst, 1 - confidence, level=True))


@lru_cache(maxsize=8)
def ratio_laws(
    above_: tuple[float, ...], below_: tuple[float, ...], laws: tuple[Additive, ...], misses: tuple[float, ...]
) -> tuple[RatioLaw, ...] | None:
    """Return `ratio_law` for each of many misses, of coarser arcs, whose reaches are those of their worst angles, too.

    Either end misses half as often: a sum of symmetric noises is above its reach as often as below the opposite one.
    """
    plane = noise_plane(above_, below_, laws, _COARSE)
    if plane is None:
        return None
    return tuple(plane.law(_reaches(laws, plane.worst, Fraction(miss), level=True)) for miss in misses)


@dataclass(frozen=True, slots=True, eq=False)
class RatioPlane:
    """The plane of a ratio, before any law: β, σ_D and r, and for each arc the largest |coefficient| of every noise in it."""

    slope: float
    denominator: float
    rest: float
    worst: FloatArray

    def law(self, reaches: FloatArray) -> RatioLaw:
        """Return the law with these reaches of the arcs, which there may be fewer of than of cells."""
        every = np.repeat(reaches, CELLS // len(reaches))
        return RatioLaw(self.slope, self.rest / self.denominator, self.denominator, self.rest, arc_maxima(np.tile(every, 3)))


def noise_plane(
    above: Sequence[float], below: Sequence[float], laws: Sequence[Additive], arcs: int, counts: Sequence[int] = ()
) -> RatioPlane | None:
    """Return `ratio_plane` of noises with these laws; counts: how many there are of each, one of each where none is given."""
    deviations = np.array([deviation(law) for law in laws]) * np.sqrt(np.array(counts or [1] * len(laws), np.float64))
    return ratio_plane(np.array(above), np.array(below), deviations, arcs)


def ratio_plane(above: FloatArray, below: FloatArray, deviations: FloatArray, arcs: int) -> RatioPlane | None:
    """Return the plane of noises with these coefficients above and below; None where both sides are one but for a factor.

    Claim   |c(ψ)| is at most the larger of its values at the ends of an arc, over the cosine of half of it.
    Rounds  Up.
    """
    upper, lower = above * deviations, below * deviations
    size = float(np.linalg.norm(lower))
    slope = float(upper @ lower) / (size * size) if size else 0.0
    across = above - slope * below
    rest = float(np.linalg.norm(across * deviations))
    if not (size > 0 and rest > 1e-9 * float(np.linalg.norm(upper))):
        return None
    cosines, sines = _directions(arcs)
    each = np.abs(cosines * across / rest - sines * below / size)
    return RatioPlane(slope, size, rest, np.maximum(each[:-1], each[1:]) / math.cos(math.pi / (2 * arcs)))


@lru_cache(maxsize=4)
def _directions(arcs: int) -> tuple[FloatArray, FloatArray]:
    """Cosines and sines of the angles between the arcs of a half circle, which are the same for every law."""
    edges = np.linspace(-math.pi / 2, math.pi / 2, arcs + 1)[:, None]
    return np.cos(edges), np.sin(edges)


def ratio_reach(
    numerator: Combination, denominator: Combination, noises: Sequence[Noise], ratios: FloatArray, confidence: Fraction
) -> FloatArray:
    """Return t(θ) for each ratio θ: |noise of (numerator − θ · denominator)| ≤ t with this confidence. Rounds: up.

    Claim   Gaussian: z √Σ(n − θd)²σ² and the lattice's slack. Laplace: by partial fractions, a function of the scales' ratios
            alone, and the slack.
    """
    held = sorted({index for index, _ in (*numerator, *denominator)})
    coefficients = np.abs(_along(numerator, held) - np.asarray(ratios, np.float64)[:, None] * _along(denominator, held))
    return _reaches([_additive(noises[index]) for index in held], coefficients, 1 - confidence, level=False)


def combined_reaches(held: Sequence[int], coefficients: FloatArray, noises: Sequence[Noise], miss: Fraction) -> FloatArray:
    """Return for each row of coefficients t with P[|Σ c · noise| > t] ≤ miss, one coefficient for each place held.

    Claim   t grows with each |c|. Gaussian: z √Σ(cσ)² and the lattice's slack. Laplace: adding an independent symmetric
            variable widens a symmetric unimodal law. Otherwise, and for a miss below SMALLEST_MISS, a sum of single reaches.
    Needs   Coefficients at least 0; independent noises.
    Rounds  Up.
    """
    return _reaches([_additive(noises[index]) for index in held], coefficients, miss, level=False)


def _reaches(laws: Sequence[Additive], coefficients: FloatArray, miss: Fraction, *, level: bool) -> FloatArray:
    """The reach of Σ c X for each row of coefficients; level: Gaussian sums are known to have variance 1."""
    kinds = {type(law) for law in laws}
    if len(kinds) > 1 or miss < SMALLEST_MISS:
        share = miss / len(laws)
        return coefficients @ np.array([float(own_reach(law, share)) for law in laws]) * ROUND_OFF
    left = float(miss) * (1 - 1e-9) - len(laws) * FAR
    slack = coefficients @ np.array([lattice_slack(law) for law in laws])
    scales = coefficients * np.array([float(spread(law)) for law in laws])
    if level and not hasattr(laws[0], "scale"):
        scales = np.ones((len(coefficients), 1))
    return (smooth_reach(laws[0], scales, left) + slack) * ROUND_OFF


def _along(terms: Combination, held: list[int]) -> FloatArray:
    found = dict.fromkeys(held, Fraction(0))
    for index, coefficient in terms:
        found[index] += coefficient
    return np.array([float(found[index]) for index in held])


def _additive(noise: Noise) -> Additive:
    if hasattr(noise, "point"):
        raise TypeError("a quantile has no additive noise")
    return noise  # type: ignore[return-value]


def arc_maxima(reaches: FloatArray) -> FloatArray:
    """Return rows of which row l holds the maximum over 2^l neighbours from each place on."""
    rows = np.full((CELLS.bit_length(), len(reaches)), reaches.max())  # what lies beyond the end is as large as any
    rows[0] = reaches
    for level in range(1, len(rows)):
        step, last = 1 << (level - 1), rows[level - 1]
        np.maximum(last[:-step], last[step:], out=rows[level, :-step])
    return rows


def weighted_noises(terms: Combination, noises: Sequence[Noise]) -> tuple[WeightedNoise, ...]:
    """Return the terms with their noises, coefficients of one measurement added up."""
    found: dict[int, Fraction] = {}
    for index, coefficient in terms:
        found[index] = found.get(index, Fraction(0)) + coefficient
    return tuple((coefficient, _additive(noises[index])) for index, coefficient in found.items())
