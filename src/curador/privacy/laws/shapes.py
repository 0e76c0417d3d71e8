"""Losses that are Gaussian noise and nothing else: what subsampling by mixtures of normals starts from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from curador.numerics.rounding import UNIT
from curador.privacy.laws.gaussian import sandwich
from curador.privacy.loss import Loss, parts_of
from curador.privacy.rules import gaussian_squares

COARSEST = 1e-3
"""Largest relative doubt of μ² at which discrete Gaussian noise may be subsampled: the sandwich holds from below too."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Gaussian noise: μ that is enough, μ that occurs, and the relative doubt of their squares."""

    above: float
    below: float
    doubt: float


def gaussian_shape(base: Loss, count: int, rate: Fraction) -> Shape | None:
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
    return Shape(math.sqrt(total), math.sqrt(math.fsum(below)), worst + 4 * UNIT) if total > 0 else None


def doubt_of_sample(sigma2: Fraction, count: int, square: Fraction, rate: Fraction) -> float:
    """Return what the sandwich leaves open of μ² = `square` in a sample of the rate; a shift of 0 costs nothing."""
    return sandwich(float(sigma2), count, math.sqrt(square) * float(rate)) if square > 0 else 0.0
