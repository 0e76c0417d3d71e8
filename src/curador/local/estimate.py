"""What a collector knows after all reports: an estimate for every value, with its error bar.

Counts can also be given as they most likely are, seen all together: less error where noise is larger than most counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curador.text import key_text

if TYPE_CHECKING:
    from collections.abc import Iterator


# ---- likely ----------------------------------------------------------------------------------------------------------------


_Numbers = NDArray[np.float64]

_POINTS = 200
"""Points of the distribution of counts that is fitted."""

_ROUNDS = 300
"""Steps of the fit: more change nothing that one could see."""

_CELLS = 4_000
"""Values are fitted one by one up to here; beyond, those with nearly the same estimate and error together."""


def likely_counts(counts: _Numbers, errors: _Numbers, total: float) -> _Numbers:
    """Return the expected count of each value under the distribution of counts that fits all estimates best.

    Each estimate is a true count plus normal noise of its standard error; the true counts are taken for draws from one
    unknown distribution on [0, largest], which is fitted by expectation–maximisation (Kiefer and Wolfowitz's maximum
    likelihood); a value's count is then its mean given its estimate. At least 0, adding up to `total`. Biased, as everything
    that shrinks is; a function of the estimates alone, so it costs no privacy. Source: [KW56]; [JZ09].
    """
    wide = np.maximum(errors, max(float(np.max(errors)) * 1e-9, 1e-12))
    middle, spread, weight, place = _gather_values(counts, wide)
    grid = np.linspace(0.0, max(float(counts.max()), total / len(counts)), _POINTS)
    exponent = -0.5 * ((middle[:, None] - grid) / spread[:, None]) ** 2
    chance = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    prior = np.full(_POINTS, 1.0 / _POINTS)
    belief = chance
    for _ in range(_ROUNDS):
        belief = chance * prior
        belief /= belief.sum(axis=1, keepdims=True)
        prior = weight @ belief / weight.sum()
        prior = np.maximum(prior, 1e-300)  # a point that is ruled out stays out; a sum never becomes 0
    expected = (belief @ grid)[place]
    whole = float(expected.sum())
    return expected * (total / whole) if whole > 0.0 else np.full(len(counts), total / len(counts))


def _gather_values(counts: _Numbers, errors: _Numbers) -> tuple[_Numbers, _Numbers, _Numbers, NDArray[np.intp]]:
    """Estimates, errors, how many values stand for each, and where each value stands."""
    if len(counts) <= _CELLS:
        return counts, errors, np.ones(len(counts)), np.arange(len(counts))
    edges = np.linspace(float(counts.min()), float(counts.max()), _CELLS + 1)[1:-1]
    cell = np.searchsorted(edges, counts)
    _, place, number = np.unique(cell, return_inverse=True, return_counts=True)
    middle = np.bincount(place, counts) / number
    spread = np.sqrt(np.bincount(place, errors**2) / number)
    return middle, spread, number.astype(np.float64), place


# ---- estimate --------------------------------------------------------------------------------------------------------------


FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """How many people hold each value: unbiased, with a standard error and an interval each.

    Of the people who reported, not of those they were drawn from. `reports` were counted, `rejected` were malformed.
    Intervals are each right with the stated confidence, not all together. Estimates and intervals may lie below 0, as noise
    does; `consistent()` and `likely()` give counts that do not.
    """

    values: tuple[Any, ...] | range
    counts: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    reports: int
    rejected: int
    confidence: Fraction
    method: str = field(default="")

    @property
    def shares(self) -> FloatArray:
        """The estimates as shares of the reports."""
        return self.counts / self.reports

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary a value."""
        return list(self._rows(range(len(self.counts))))

    def _rows(self, places: Any) -> Iterator[dict[str, Any]]:
        for place in places:
            yield {
                "value": self.values[place],
                "count": float(self.counts[place]),
                "standard_error": float(self.standard_errors[place]),
                "low": float(self.low[place]),
                "high": float(self.high[place]),
            }

    def top(self, number: int = 10) -> list[dict[str, Any]]:
        """The values with the largest estimates, largest first."""
        order = np.argsort(-self.counts, kind="stable")[:number]
        return list(self._rows(order.tolist()))

    def consistent(self) -> FloatArray:
        """Return counts that are at least 0 and add up to the reports: the nearest such, and no longer unbiased.

        Post-processing, so it costs nothing. The shift that makes the positive parts add up. Source: [WLL+20], Norm-Sub.
        """
        ordered = np.sort(self.counts)[::-1]
        excess = (np.cumsum(ordered) - self.reports) / np.arange(1, len(ordered) + 1)
        kept = int(np.flatnonzero(ordered > excess)[-1])
        return np.maximum(self.counts - excess[kept], 0.0)

    def likely(self) -> FloatArray:
        """Return counts as they most likely are, seen all together: at least 0, adding up to the reports, biased.

        Where noise is larger than most counts their error is far below that of `counts` and of `consistent()`.
        Post-processing, so it costs nothing. The intervals belong to `counts`.
        """
        return likely_counts(self.counts, self.standard_errors, float(self.reports))

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table."""
        import pyarrow as pa

        return pa.table(
            {
                "value": _column(self.values),
                "count": self.counts,
                "standard_error": self.standard_errors,
                "low": self.low,
                "high": self.high,
            }
        )

    def to_pandas(self) -> Any:
        """Return a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a Polars data frame."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def __str__(self) -> str:
        shown = self.top(10)
        width = max((len(key_text(row["value"])) for row in shown), default=0)
        lines = [f"{self.method}: {self.reports:,} reports" + (f", {self.rejected:,} malformed" if self.rejected else "")]
        lines += [
            f"  {key_text(row['value']):<{width}}  {row['count']:>12,.0f}  [{row['low']:,.0f}, {row['high']:,.0f}]"
            for row in shown
        ]
        if len(self.counts) > len(shown):
            lines.append(f"  … and {len(self.counts) - len(shown):,} more values")
        lines.append(f"  in brackets: the {float(self.confidence):.0%} interval, of each value by itself")
        return "\n".join(lines)


def _column(values: tuple[Any, ...] | range) -> Any:
    """The values as an Arrow array; of several kinds side by side, as texts."""
    import pyarrow as pa

    try:
        return pa.array(list(values))
    except pa.ArrowException:
        return pa.array([str(value) for value in values])


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """The mean of the numbers of those who reported: unbiased for numbers within the bounds, with its error and interval.

    `population_error` is the standard error as an estimate of the mean of the people they were drawn from.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    reports: int
    rejected: int
    confidence: Fraction
    method: str = ""
    population_error: float = math.nan

    def __str__(self) -> str:
        half = (self.high - self.low) / 2
        extra = f", {self.rejected:,} malformed" if self.rejected else ""
        return f"{self.method}: {self.mean:.6g} ± {half:.2g} ({float(self.confidence):.0%}; {self.reports:,} reports{extra})"


def normal_quantile(confidence: Fraction) -> float:
    """The z of a two-sided interval."""
    from scipy.special import ndtri

    return float(-ndtri(float(1 - confidence) / 2))


def support_interval(counts: FloatArray, reports: int, p: Fraction, q: Fraction, z: float) -> tuple[FloatArray, FloatArray]:
    """Return the score interval of the number m of holders, from counts that support a value.

    Claim   A holder supports the value with probability p, anybody else with q, independently; so the count has mean
            m p + (n − m) q and variance m p(1 − p) + (n − m) q(1 − q). The interval holds the m whose standardised count is
            within ± z: the roots of a quadratic. Right up to the normal approximation of one binomial sum, and far better
            than estimate ± z standard errors where few reports support a value. Not cut at 0 or n: cut, the interval of a
            value that nobody holds would be right too often, and one far below 0 would say "nobody" with certainty.
    Source  [Wil27] for the score interval.
    """
    base, rise = float(q * (1 - q)) * reports, float(p * (1 - p) - q * (1 - q))
    return score_interval(counts - float(q) * reports, float(p - q), base, rise, z)


def score_interval(
    away: FloatArray, slope: float, base: FloatArray | float, rise: float, z: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the m at which a statistic of mean m · slope and variance base + m · rise is within ± z.

    They are those between the roots of (away − m slope)² = z² (base + m rise).
    """
    a, b, c = slope * slope, -(2.0 * away * slope + z * z * rise), away * away - z * z * base
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)
