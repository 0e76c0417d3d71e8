"""Confidence sets of a ratio whose numerator and denominator are both noisy: exact, after Fieller.

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
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.plan.error_laws import (
    FAR,
    ROUND_OFF,
    SMALLEST_MISS,
    Additive,
    deviation,
    lattice_slack,
    own_reach,
    smooth_reach,
    spread,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.numerics.rounding import FloatArray
    from curador.plan.price import Noise
    from curador.randomness.entropy import IntArray

Terms: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Σ coefficient · measurement, by place."""

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


def ratio_law(numerator: Terms, denominator: Terms, noises: Sequence[Noise], confidence: Fraction) -> RatioLaw | None:
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
    above, below = np.array(above_), np.array(below_)
    deviations = np.array([deviation(law) for law in laws])
    upper, lower = above * deviations, below * deviations
    size = float(np.linalg.norm(lower))
    slope = float(upper @ lower) / (size * size) if size else 0.0
    across = above - slope * below
    rest = float(np.linalg.norm(across * deviations))
    if not (size > 0 and rest > 1e-9 * float(np.linalg.norm(upper))):
        return None
    edges = np.linspace(-math.pi / 2, math.pi / 2, CELLS + 1)[:, None]
    each = np.abs(np.cos(edges) * across / rest - np.sin(edges) * below / size)
    worst = np.maximum(each[:-1], each[1:]) / math.cos(math.pi / (2 * CELLS))
    reaches = _reaches(laws, worst, 1 - confidence, level=True)
    return RatioLaw(slope, rest / size, size, rest, _maxima(np.tile(reaches, 3)))


def ratio_reach(
    numerator: Terms, denominator: Terms, noises: Sequence[Noise], ratios: FloatArray, confidence: Fraction
) -> FloatArray:
    """Return t(θ) for each ratio θ: |noise of (numerator − θ · denominator)| ≤ t with this confidence. Rounds: up.

    Claim   Gaussian: z √Σ(n − θd)²σ² and the lattice's slack. Laplace: by partial fractions, a function of the scales' ratios
            alone, and the slack.
    """
    held = sorted({index for index, _ in (*numerator, *denominator)})
    coefficients = np.abs(_along(numerator, held) - np.asarray(ratios, np.float64)[:, None] * _along(denominator, held))
    return _reaches([_additive(noises[index]) for index in held], coefficients, 1 - confidence, level=False)


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


def _along(terms: Terms, held: list[int]) -> FloatArray:
    found = dict.fromkeys(held, Fraction(0))
    for index, coefficient in terms:
        found[index] += coefficient
    return np.array([float(found[index]) for index in held])


def _additive(noise: Noise) -> Additive:
    if hasattr(noise, "point"):
        raise TypeError("a quantile has no additive noise")
    return noise  # type: ignore[return-value]


def _maxima(reaches: FloatArray) -> FloatArray:
    """Row l holds the maximum over 2^l neighbours from each place on."""
    rows = [reaches]
    while (1 << len(rows)) <= CELLS:
        step = 1 << (len(rows) - 1)
        last = rows[-1]
        rows.append(np.maximum(last, np.append(last[step:], np.full(step, last.max()))))
    return np.array(rows)
