"""Sums and ratios of many noises: what is made of many groups has one noise of each.

Equal noises with equal coefficients are counted, not listed.

Gaussians   a sum of m equal discrete ones is a discrete one of √m times the width, but for a factor that is 1 to many digits
Laplaces    up to eight: as `error.py` has it; more: their law is computed on a lattice, by Fourier transforms
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.grid import round_up
from curador.plan.error import (
    FAR,
    ROUND_OFF,
    Additive,
    RatioLaw,
    lattice_slack,
    noise_plane,
    ratio_law,
    sum_reach,
)

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray

Counted: TypeAlias = tuple[float, Additive, int]
"""A coefficient, a noise, and how many there are of it, all independent."""

_FEW = 8


@lru_cache(maxsize=512)
def many_reach(terms: tuple[Counted, ...], confidence: Fraction) -> float:
    """Return w with P[|Σ c · noise| ≤ w] ≥ confidence, each noise as often as it is counted.

    Claim   Few noises: `sum_reach`. Many Gaussians: of every class its sum (`merged_gaussian`), then `sum_reach` of those,
            with the miss made smaller by the classes' factors. Many Laplaces: `_laplace_lattice_reach`.
    Rounds  Up.
    """
    held = [(Fraction(abs(c)), noise, many) for c, noise, many in terms if c and many]
    count = sum(many for _, _, many in held)
    if count <= 1:
        return sum_reach(tuple((c, noise) for c, noise, _ in held), confidence)
    if all(isinstance(noise, DiscreteGaussian) for _, noise, _ in held):
        merged = [(c, *merged_gaussian(noise, many)) for c, noise, many in held]  # type: ignore[arg-type]
        factor = sum(excess for *_, excess in merged)
        if factor <= _LARGEST_EXCESS:
            miss = (1 - confidence) * Fraction(math.exp(-factor) * (1 - 1e-15))
            return sum_reach(tuple((c, noise) for c, noise, _ in merged), 1 - miss)
    elif count > _FEW and not any(isinstance(noise, DiscreteGaussian) for _, noise, _ in held):
        found = _laplace_lattice_reach(tuple((float(c), noise, many) for c, noise, many in held), float(1 - confidence))
        if found is not None:
            return found
    return sum_reach(tuple((c, noise) for c, noise, many in held for _ in range(many)), confidence)


_LARGEST_EXCESS = 1e-3


@lru_cache(maxsize=512)
def merged_gaussian(noise: DiscreteGaussian, many: int) -> tuple[DiscreteGaussian, float]:
    """Return a discrete Gaussian G and τ so that P[|sum of `many` such noises| > t] ≤ e^τ P[|G| > t] for every t.

    Claim   With τ = 5 Σ e^(−2π²σ² k/(k+1)) over k from 1 to many − 1, for σ ≥ 1/2, the sum's probabilities are within e^±τ
            of those of a discrete Gaussian of variance many · σ². A larger σ only makes |G| larger: the ratio of the masses
            grows with |k|.
            One step, of variances kσ² and σ² with v² = σ² k/(k+1): completing the square, the mass of z is a constant times
            e^(−z²/2(k+1)σ²) times Σ over whole x of e^(−(x − u)²/2v²) with u = zk/(k+1). By Poisson's summation that sum is
            √(2π) v (1 + η), |η| ≤ h = 2 Σ_j e^(−2π²v²j²), whatever u is; so after normalising, the mass is that of the
            discrete Gaussian within a factor of (1 + h)/(1 − h). As v² ≥ 1/8, h ≤ 2.002 e^(−2π²v²) ≤ 0.17, and the factor's
            logarithm 2 artanh h ≤ 2.03 h < 5 e^(−2π²v²). A factor of the masses of one summand is one of the sum's, so that
            the steps' logarithms add up.
    Needs   Independent noises of one σ; τ is infinite below 1/2.
    Rounds  σ√many up, τ up.
    Source  The proof above; compared with convolutions by a test.
    """
    if many == 1:
        return noise, 0.0
    sigma2 = float(noise.sigma**2)
    excess = 5 * (many - 1) * math.exp(-(math.pi**2) * sigma2 * (1 - 1e-12)) * ROUND_OFF if sigma2 >= 0.25 else math.inf
    width = round_up(noise.sigma * Fraction(math.sqrt(many) * (1 + 1e-15)))
    return DiscreteGaussian(sigma=width, sensitivity=1), excess  # for its law alone: nothing is drawn from it


def many_ratio_law(terms: tuple[tuple[float, float, Additive, int], ...], confidence: Fraction) -> RatioLaw | None:
    """Return the law of a ratio; a term is (coefficient above, coefficient below, noise, how many of it).

    Claim   As `ratio_law`, of the classes' sums: equal noises with equal coefficients above and below move N − θD together,
            whatever θ is, so their sum stands for them. Few Laplaces are listed, of many the law is computed on a lattice.
    """
    laplaces = [many for *_, noise, many in terms if not isinstance(noise, DiscreteGaussian)]
    if len(laplaces) == len(terms) and sum(laplaces) > _FEW:
        found = _laplace_ratio_law(terms, confidence)
        if found is not None:
            return found
    held: list[tuple[float, float, Additive]] = []
    factor = 0.0
    for above, below, noise, many in terms:
        if isinstance(noise, DiscreteGaussian):
            merged, excess = merged_gaussian(noise, many)
            if excess <= _LARGEST_EXCESS:
                factor += excess
                held.append((above, below, merged))
                continue
        held += [(above, below, noise)] * many
    if factor > _LARGEST_EXCESS or len(held) > _MOST_LISTED:
        return None
    miss = (1 - confidence) * Fraction(math.exp(-factor) * (1 - 1e-15))
    above_terms = tuple((place, Fraction(above)) for place, (above, _, _) in enumerate(held) if above)
    below_terms = tuple((place, Fraction(below)) for place, (_, below, _) in enumerate(held) if below)
    if not above_terms or not below_terms:
        return None
    return ratio_law(above_terms, below_terms, [noise for *_, noise in held], 1 - miss)


_MOST_LISTED = 4096
_ARCS = 128
"""Into how many arcs the half circle is divided where each of them takes a transform."""


@lru_cache(maxsize=16)
def _laplace_ratio_law(terms: tuple[tuple[float, float, Additive, int], ...], confidence: Fraction) -> RatioLaw | None:
    """The law of a ratio of sums of many Laplaces; None where a lattice would have too many points.

    Claim   As `ratio_law`, with coarser arcs: the reach of an arc is that of the largest coefficients in it, and reaches grow
            with every coefficient.
    Rounds  Up.
    """
    above, below, laws, counts = zip(*terms, strict=True)
    plane = noise_plane(above, below, laws, _ARCS, counts)
    if plane is None:
        return None
    reaches: list[float] = []
    for row in plane.worst.tolist():
        held = tuple((c, law, many) for c, law, many in zip(row, laws, counts, strict=True) if c > 0)
        reach = _laplace_lattice_reach(held, float(1 - confidence), coarse=4.0, most=_MOST_POINTS >> 4)
        if reach is None:
            return None
        reaches.append(reach)
    return plane.law(np.array(reaches))


# ---- many Laplaces ---------------------------------------------------------------------------------------------------


_MOST_POINTS = 1 << 21
_WRAPPED = 1e-11
"""What may lie beyond the lattice, and what round-off of the transforms may hide."""


def _laplace_lattice_reach(
    terms: tuple[Counted, ...], miss: float, coarse: float = 1.0, most: int | None = None
) -> float | None:
    """The reach of a sum of Laplaces, on a lattice that may be coarser; None where it would have too many points.

    Claim   Each c X is put on a lattice of step h: as it is where c is h, else to the nearest point, off by h/2 at most. One
            of very many values is first coupled to the smooth Laplace of its scale within c · lattice_slack but for 1e-12.
            The product of the characteristic functions is the law of the sum on the lattice, wrapped around at its end;
            beyond that lies less than 1e-11 by Chernoff's bound (the discrete law's moments are at most the smooth one's),
            which is taken from the miss, as are round-off and couplings.
    Rounds  Up.
    """
    scales = np.array([c * float(noise.scale) for c, noise, _ in terms])  # type: ignore[union-attr]
    counts = np.array([many for _, _, many in terms], np.float64)
    count = float(counts.sum())
    end = _chernoff_end(scales, counts, _WRAPPED)
    alone = terms[0][0] if len({c for c, _, _ in terms}) == 1 and 2 * end / terms[0][0] <= _MOST_POINTS / 2 else None
    step = alone or 0.02 * coarse * math.sqrt(float(2 * (counts * scales**2).sum())) / count
    points = 1 << math.ceil(math.log2(2 * end / step + count + 2))
    left = miss - 2 * _WRAPPED - count * FAR - 1e-9 * miss
    if points > (most or _MOST_POINTS) or left <= 0 or len(terms) > _MOST_CLASSES:
        return None
    law, off = np.ones(points // 2 + 1), 0.0
    for c, noise, many in terms:
        scale = float(noise.scale)  # type: ignore[union-attr]
        values = int(_FURTHEST * scale) + 2
        if values <= points:
            own = np.fft.rfft(_placed_masses(scale, values, c / step, points)).real
            off += 0.0 if alone else many * step / 2
        else:
            own = _rounded_laplace(2 * math.pi * np.arange(points // 2 + 1) / points, step / (c * scale))
            off += many * (step / 2 + c * lattice_slack(noise))
        law = law * own**many
    masses = np.fft.irfft(law, points)
    inside = masses[0] + 2 * np.cumsum(np.concatenate([[0.0], masses[1 : points // 2]]))
    enough = np.flatnonzero(inside >= 1 - left)
    return (float(enough[0]) * step + off) * ROUND_OFF if len(enough) else None


_MOST_CLASSES = 64
_FURTHEST = 30
"""Scales beyond which a Laplace noise lies with less than 1e-12."""


def _placed_masses(scale: float, values: int, stretch: float, points: int) -> FloatArray:
    """P[k] of the discrete Laplace noise at the points nearest to k times a factor, those below 0 at the end."""
    places = np.arange(-values, values + 1)
    masses = math.tanh(0.5 / scale) * np.exp(-np.abs(places) / scale)
    at = np.copysign(np.floor(np.abs(places) * stretch + 0.5), places).astype(np.int64) % points
    return np.bincount(at, masses, points).astype(np.float64)


def _rounded_laplace(angles: FloatArray, ratio: float) -> FloatArray:
    """The characteristic function of a Laplace of scale 1/ratio steps that is rounded to whole steps."""
    q = math.exp(-ratio)
    cosines = np.cos(angles)
    below = (1 - q) ** 2 + 2 * q * (1 - cosines)
    return -math.expm1(-ratio / 2) + 2 * math.sinh(ratio / 2) * q * (cosines - q) / below


def _chernoff_end(scales: FloatArray, counts: FloatArray, miss: float) -> float:
    """L with P[|sum| > L] ≤ miss: the least of (log(2/miss) − Σ m log(1 − s²β²)) / s over some s."""
    largest = float(scales.max())
    best = math.inf
    for part in np.linspace(0.01, 0.99, 99):
        s = float(part) / largest
        best = min(best, (math.log(2 / miss) - float((counts * np.log1p(-((s * scales) ** 2))).sum())) / s)
    return best
