"""What every protocol of means is: one report a number, unbiased, and its exact variance; and many numbers on its grid.

Many numbers come on a public grid, rounded up or down by chance so that means stay exact: the client's law, in arrays.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from curador.errors import require
from curador.local.client.number import STEPS, bounds_of, large_enough, steps_of
from curador.local.collector import Collector
from curador.local.estimate import MeanEstimate
from curador.local.protocol import Reporting, exact_epsilon
from curador.mechanisms.grid import as_array
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, open_probability, rational, whole
from curador.randomness.entropy import U64

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from curador.local.protocol import Reports
    from curador.randomness.entropy import Entropy, IntArray


# ---- places ----------------------------------------------------------------------------------------------------------------


_PLACES_AT_ONCE = 1 << 15
_LARGEST_EXACT = 1 << 53
_SANE = 1e280
"""Between this and its inverse no product below overflows or loses bits to small numbers."""


def places(values: NDArray[Any], lower: Fraction, upper: Fraction, steps: int, source: Entropy) -> IntArray:
    """Return ⌊t + U⌋ for each clamped value's position t in steps from the lower bound, U uniform in [0, 1).

    Claim   Exactly t in the mean. Floats decide where their error cannot change the floor; else (about 2⁻²⁵ of the draws) the
            position is a rational and U is drawn bit by bit as far as it matters.
    """
    out = np.empty(len(values), np.int64)
    doubles = _as_doubles(values)
    factor, error = _scale(lower, upper, steps) if doubles is not None else (0.0, 1.0)
    for start in range(0, len(out), _PLACES_AT_ONCE):
        part = out[start : start + _PLACES_AT_ONCE]
        words = source.words(len(part), U64)
        if doubles is None or error >= 0.25:
            open_ones = np.arange(len(part))
        else:
            open_ones = _by_floats(
                part, doubles[start : start + _PLACES_AT_ONCE], words, (float(lower), factor, error, steps)
            )
        for place in open_ones.tolist():
            position = _position(values[start + place], lower, upper, steps)
            part[place] = _exactly(position, int(words[place]), source)
    return out


def _by_floats(
    out: IntArray, values: NDArray[np.float64], words: NDArray[np.uint64], numbers: tuple[float, float, float, int]
) -> IntArray:
    """Write what floats can decide and return the places of the rest."""
    lower, factor, error, steps = numbers
    with np.errstate(over="ignore"):  # far outside of the bounds: an infinity is clamped as well
        position = np.clip((values - lower) * factor, 0.0, float(steps))
    drawn = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53  # U, less than 2⁻⁵³ too small
    total = position + drawn
    down = np.floor(total - error)
    out[:] = down
    return np.flatnonzero(down != np.floor(total + error))


def _scale(lower: Fraction, upper: Fraction, steps: int) -> tuple[float, float]:
    """Return steps per unit as a float, and a bound of the error of position + U; 1 where floats cannot do it.

    Each of bound, difference, factor, product, sum and U is off by at most 2⁻⁵³ of itself (the bound and the difference of
    the larger bound, which the factor then scales); eight times that is more than all of them together.
    """
    largest = max(abs(lower), abs(upper), upper - lower)
    ratio = steps / (upper - lower)
    if not (largest < _SANE and 1 / Fraction(_SANE) < ratio < _SANE and largest * ratio < 1 << 50):
        return 0.0, 1.0
    return float(ratio), 8 * 2.0**-52 * (float(largest * ratio) + steps + 2)


def _as_doubles(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """The values as doubles where that is exact."""
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind in "iu" and (values.dtype.itemsize <= 4 or bool((np.abs(values) <= _LARGEST_EXACT).all())):
        return values.astype(np.float64)
    return None


def _position(value: Any, lower: Fraction, upper: Fraction, steps: int) -> Fraction:
    exact = value if isinstance(value, Fraction) else Fraction(value.item() if isinstance(value, np.generic) else value)
    return (min(max(exact, lower), upper) - lower) * steps / (upper - lower)


def _exactly(position: Fraction, word: int, source: Entropy) -> int:
    """⌊t + U⌋, U beginning with these 64 bits: up where U ≥ 1 − the fraction of t."""
    down, part = divmod(position.numerator, position.denominator)
    drawn, bits = word, 64
    while True:
        edge = Fraction((position.denominator - part) << bits, position.denominator)  # up where U 2^bits is at least this
        if drawn >= edge:
            return down + 1
        if drawn + 1 <= edge:
            return down
        drawn, bits = (drawn << 64) | source.bits(64), bits + 64


# ---- base ------------------------------------------------------------------------------------------------------------------


Sums: TypeAlias = "NDArray[Any]"
"""What a collector of means adds up: Python's own whole numbers, so that no sum of reports overflows."""

One = TypeVar("One")
"""Some client."""

_CHUNK = 1 << 13


@dataclass(frozen=True, slots=True, init=False)
class Means(Reporting):
    """A protocol by which people report one number each; numbers are clamped to the public bounds."""

    lower: Fraction
    upper: Fraction
    epsilon: Fraction
    steps: int

    def __init__(self, *, lower: Number, upper: Number, epsilon: Number, steps: int = STEPS) -> None:
        low, high = bounds_of(rational(lower, "lower"), rational(upper, "upper"))
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "epsilon", large_enough(exact_epsilon(epsilon)))
        object.__setattr__(self, "steps", steps_of(steps))

    @property
    def name(self) -> str:
        """What the protocol is called in a table."""
        return type(self).__name__

    # ---- reports ----------------------------------------------------------------------------------------------------

    def privatise(self, values: Any) -> Reports:
        """Return one report for each person's number, drawn as the client would."""
        array = as_array(values, "values")
        require(array.ndim == 1, "values", "a list of numbers", f"an array of {array.ndim} dimensions")
        return perform(self, array)

    def release_many(self, value: Any, size: int) -> Reports:
        """Return `size` independent reports on one number. Costs `size` times the loss."""
        return perform(self, as_array([value], "value"), whole(size, "size"))[:, 0]

    # ---- estimates --------------------------------------------------------------------------------------------------

    def collector(self) -> Collector:
        """Return an empty collector."""
        return Collector(self)

    def estimate(self, reports: Reports, *, confidence: Number = "0.95") -> MeanEstimate:
        """Return the mean from these reports alone; a collector takes them batch by batch."""
        collector = self.collector()
        collector.add(reports)
        return collector.estimate(confidence=confidence)

    @abstractmethod
    def zero(self) -> Sums:
        """The statistic of no reports: what a collector adds up."""

    @abstractmethod
    def tally(self, reports: Reports) -> Sums:
        """The statistic of well-formed reports, to be added to others'."""

    @abstractmethod
    def moments(self, statistic: Sums, reports: int) -> tuple[Fraction, Fraction]:
        """The sum of the reports' unbiased estimates and of their squares, where the bounds are −1 and 1; exact."""

    @abstractmethod
    def second_moment(self, at: Fraction) -> Fraction | float:
        """The mean square of one report's estimate of a number in [−1, 1], where the bounds are −1 and 1."""

    @property
    @abstractmethod
    def rounding(self) -> Fraction:
        """The most that rounding to the grid adds to `second_moment`: f(1 − f) is at most a quarter."""

    def estimated(self, statistic: Sums, reports: int, rejected: int, confidence: Number) -> MeanEstimate:
        """Return the mean of the reports' unbiased estimates.

        Claim   Unbiased for the mean of the clamped numbers of those who reported; the standard error and the interval are
                about that mean, up to a normal approximation, and the interval is cut to the bounds. The reports vary by
                their noise and by the people's numbers. The latter is taken off, as far as the reports tell it: their mean
                square is α + β E[x²], α and β known. One-bit reports have β = 0 and do not tell: there it stays.
                `population_error` is about the mean of the people they were drawn from, whose numbers vary.
        """
        level = open_probability(confidence, "confidence")
        total, squares = self.moments(statistic, reports)
        centre = total / reports
        if reports > 1:
            spread = max(float((squares - total * centre) / (reports - 1)), 0.0)
        else:
            spread = float(self.worst_variance / self._half**2)
        error = math.sqrt(max(spread - self._variety(squares / reports, centre), 0.0) / reports)
        low, high = self.interval(float(centre), error, reports, level)
        half, middle = float(self._half), float(self._middle)
        return MeanEstimate(
            float(self._middle + self._half * centre),
            half * error,
            middle + half * min(max(low, -1.0), 1.0),
            middle + half * min(max(high, -1.0), 1.0),
            reports,
            rejected,
            level,
            self.name,
            half * math.sqrt(spread / reports),
        )

    def _variety(self, mean_square: Fraction, centre: Fraction) -> float:
        """How much people's own numbers vary, where the bounds are −1 and 1, as told by the mean square of their reports."""
        rest = Fraction(self.second_moment(Fraction(0)))
        rise = Fraction(self.second_moment(Fraction(1))) - rest
        if rise < Fraction(1, 10**6):
            return 0.0
        squares = min(max((mean_square - rest) / rise, centre**2), Fraction(1))
        return max(float(squares - centre**2), 0.0)

    def interval(self, centre: float, error: float, reports: int, confidence: Fraction) -> tuple[float, float]:
        """Return the interval, where the bounds are −1 and 1: Student's, for reports of many values."""
        from scipy.special import stdtrit

        width = error * float(-stdtrit(max(reports - 1, 1), float(1 - confidence) / 2))
        return centre - width, centre + width

    # ---- errors before any report ------------------------------------------------------------------------------------

    @property
    def _half(self) -> Fraction:
        return (self.upper - self.lower) / 2

    @property
    def _middle(self) -> Fraction:
        return (self.upper + self.lower) / 2

    def variance(self, *, at: Number) -> float:
        """Return the variance of one report's unbiased estimate of a number, the grid's rounding included."""
        number = min(max(rational(at, "at"), self.lower), self.upper)
        place = (number - self._middle) / self._half
        return float(self._half**2 * (Fraction(self.second_moment(place)) - place**2))

    @property
    def worst_variance(self) -> float:
        """No variance is larger, wherever the number lies.

        Claim   But for rounding it is quadratic and even in the number, so largest at a bound or in the middle; what rounding
                adds between two places of the grid is at most `rounding`.
        """
        ends = max(self.variance(at=self.upper), self.variance(at=self._middle))
        return ends + float(self._half**2 * self.rounding)

    def standard_error(self, reports: Number, *, at: Number | None = None) -> float:
        """Return the standard error of the mean from that many reports on a number; at most this where none is given."""
        one = self.worst_variance if at is None else self.variance(at=at)
        return math.sqrt(one / whole(reports, "reports"))


@lru_cache(maxsize=64)
def make_client(kind: Callable[..., One], epsilon: Fraction, lower: Fraction, upper: Fraction, steps: int) -> One:
    """Return a client of a mean; made once, for it has no state."""
    return kind(epsilon=epsilon, lower=lower, upper=upper, steps=steps)


def fraction_variance(position: Fraction) -> Fraction:
    """Return the variance of rounding a position up or down by chance: f(1 − f) for the fraction f."""
    part = position - math.floor(position)
    return part * (1 - part)


def exact_sums(reports: IntArray) -> tuple[int, int]:
    """Return the sum of whole numbers below 2⁴⁶ and that of their squares, exactly.

    Claim   y = 2²³ high + low: 2¹³ products of parts below 2²⁴ stay below 2⁶³; such partial sums are Python's own.
    """
    starts = np.arange(0, len(reports), _CHUNK)

    def total(part: IntArray) -> int:
        return sum(np.add.reduceat(part, starts).tolist())

    first = total(reports)
    if max(-int(reports.min()), int(reports.max())) < 1 << 25:  # one part is enough
        return first, total(reports * reports)
    high, low = reports >> 23, reports & ((1 << 23) - 1)
    return first, (total(high * high) << 46) + (total(high * low) << 24) + total(low * low)
