"""Error bars that need no data: what `preview` shows and what `accuracy=` is calibrated to.

A count or a sum has one ± for every group. The error of a mean or a variance depends on how many rows the group has, so it is
told for a number of rows; of a quantile nothing can be said before it is drawn.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.numerics.rounding import float_up
from curador.plan.error_laws import Additive, sum_reach
from curador.plan.model import Linear, Mean, Point, Variance
from curador.plan.ratio import RatioLaw, Terms, ratio_law, ratio_reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.plan.model import Estimate
    from curador.plan.price import Noise

__all__ = [
    "RatioLaw",
    "linear_reach",
    "mean_law",
    "mean_reach_at",
    "ratio_law",
    "ratio_reach",
    "reach_at",
    "second_moment_law",
    "variance_reach_at",
]


def linear_reach(linear: Linear, noises: Sequence[Noise], confidence: Fraction) -> float:
    """Return the half-width of the error bar of constant + Σ coefficient · measurement, in the estimate's own unit.

    Claim   |released − exact| ≤ the half-width with at least this probability, in every group.
    Needs   Measurements have independent noises.
    Rounds  Up.
    Source  sum_reach.
    """
    return sum_reach(_independent(linear.terms, noises), confidence)


def mean_law(mean: Mean, noises: Sequence[Noise], confidence: Fraction) -> RatioLaw | None:
    """Return the law of step · total/count."""
    return ratio_law(((mean.total, mean.step),), ((mean.count, Fraction(1)),), noises, confidence)


def second_moment_law(variance: Variance, noises: Sequence[Noise], confidence: Fraction) -> RatioLaw | None:
    """Return the law of square_step · squares/count."""
    return ratio_law(((variance.squares, variance.square_step),), ((variance.count, Fraction(1)),), noises, confidence)


def mean_reach_at(mean: Mean, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float:
    """Return half the length of a mean's interval if the released count is `rows`, at the mean where it is longest.

    Claim   No mean between the bounds has a longer interval at that count, since the reach t(θ) grows with |θ|.
    Rounds  Up; at most half of the bounds' distance, as intervals end at the bounds.
    """
    furthest = max(mean.upper - mean.centre, mean.centre - mean.lower, key=abs)
    return _half(mean_law(mean, noises, confidence), furthest, rows, (mean.upper - mean.lower) / 2)


def variance_reach_at(variance: Variance, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float:
    """Return a bound of half the length of a variance's interval if the released count is `rows`.

    Claim   The interval is that of the second moment less that of the squared mean, each with half of the miss; the square of
            a mean m ± w, |m| ≤ range/2, is as long as 2w · range at most. Rounds: up.
    """
    level = 1 - (1 - confidence) / (3 if variance.sample else 2)
    total = Mean(variance.total, variance.count, variance.step, Fraction(0), Fraction(0), Fraction(0))
    reach = Fraction(_root_up(variance.most))  # half of the bounds' distance
    squares = variance.square_step * (variance.square_centre + 1)
    first = _half(mean_law(total, noises, level), reach, rows, reach)
    second = _half(second_moment_law(variance, noises, level), squares, rows, variance.most)
    factor = Fraction(rows, rows - 1) if variance.sample and rows > 1 else Fraction(1)
    return float_up(min(Fraction(second) + 2 * reach * Fraction(first), variance.most / 2) * factor)


def reach_at(estimate: Estimate, noises: Sequence[Noise], rows: int, confidence: Fraction) -> float | None:
    """Return the ± of an estimate for a group of so many rows; None of a quantile, whose error only data can tell."""
    match estimate:
        case Linear():
            return linear_reach(estimate, noises, confidence)
        case Mean():
            return mean_reach_at(estimate, noises, rows, confidence)
        case Variance():
            return variance_reach_at(estimate, noises, rows, confidence)
        case Point():
            return None


def _half(law: RatioLaw | None, ratio: Fraction, rows: int, most: Fraction) -> float:
    if law is None:
        return float_up(most)
    value, count = np.array([float(ratio)]), np.array([float(rows)])
    low, high = law.ends(value, value * count, count)
    return min(float(high[0] - low[0]) / 2, float_up(most))


def _root_up(value: Fraction) -> float:
    return float(np.nextafter(np.sqrt(float_up(value)), np.inf))


def _independent(terms: Terms, noises: Sequence[Noise]) -> tuple[tuple[Fraction, Additive], ...]:
    """The terms with their noises, coefficients of one measurement added up."""
    found: dict[int, Fraction] = {}
    for index, coefficient in terms:
        found[index] = found.get(index, Fraction(0)) + coefficient
    out: list[tuple[Fraction, Additive]] = []
    for index, coefficient in found.items():
        noise = noises[index]
        if not isinstance(noise, (DiscreteGaussian, DiscreteLaplace)):
            raise TypeError("a quantile has no additive noise")
        out.append((coefficient, noise))
    return tuple(out)
