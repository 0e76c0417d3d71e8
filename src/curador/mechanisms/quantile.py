"""Quantiles: a point of a public grid, by how much weight lies below and above it."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from attrs import field, frozen

from curador.errors import require
from curador.mechanisms.exponential import shares
from curador.mechanisms.grid import decimal_text, refusal_of_value, unwrap_value, whole_array
from curador.mechanisms.scores import CAP, Steps, are_near, calibrate_epsilon, deficits_of, failure_of
from curador.mechanisms.seam import perform
from curador.numerics.exact import POSITIVE, RATIONAL, Number, whole, whole_from
from curador.numerics.rounding import FloatArray, Interval, float_up, log_up
from curador.privacy.adjacency import Adjacency, as_adjacency
from curador.privacy.loss import Loss
from curador.privacy.losses import BoundedRange
from curador.randomness.choice import Choice
from curador.randomness.entropy import Entropy, IntArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

UNIT_WEIGHT = 1 << 16
"""What a unit with several rows weighs at most: each of its rows weighs ⌊2¹⁶/rows⌋."""

_MOST_CELLS = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The integer score of every point, where one unit weighs at most `weight`."""

    scores: Steps
    weight: int


@frozen(kw_only=True)
class Quantile:
    """A point x of a grid between public bounds, with probability ∝ exp(ε score(x)/(2Δ)).

    With q = a/b in lowest terms, score(x) = −max(0, (b − a) L − a (M + R), a R − (b − a)(L + M)), where L, M and R are the
    weights below, at and above x: 0 where x is a true quantile, else how far its rank is off, times b. The grid has `cells`
    equally spaced points, both bounds among them; values are clamped and rounded to it.

    shift  the target is the rank qn + shift, in units. With the rank error t of `interval(1 − β)` a shift of −t gives a lower
           end: x exceeds the true quantile with probability at most β, since then L ≥ qn and the score is −(L − qn + t)b or
           worse, while the best is 0 (the first point is never too high). A shift of t gives an upper end.

    Claim   ε-bounded-range. A unit of weight w adds l, m, r ≥ 0 with l + m + r ≤ w, so it moves (b − a) L − a (M + R) by
            something in [−aw, (b − a)w] and a R − (b − a)(L + M) by something in [−(b − a)w, aw]: both by at most
            w max(a, b − a) when it comes or goes, and by at most wb, the length of the intervals, when it is replaced; a
            maximum moves no more than what it is taken of. Then as for Exponential.
            A shift s moves the target rank from qn to qn + s: a constant is added to both terms, which moves no difference.
            At the first point with s < 0, and the last with s > 0, one of the two terms is left out, which moves less.
            For q = 0 and q = 1 without a shift the score is −L or −R, and the 2 of the exponent may go: the unit's part of L
            rises from 0 to at most w along the grid, so the difference of two such parts, or of one and none, spans at most
            w over all points, and the log-ratio spans what the scores' moves span.
    Needs   Bounds, cells and q are public. A unit's rows are all in one call, under one label.
    Rounds  Values to the grid, as any map of single values may. A NaN or a null is dropped: it weighs nothing.
    Source  [Smi11] for the mechanism; the weights of units and the sensitivities are proved above.
    """

    q: Fraction = field(converter=RATIONAL)
    epsilon: Fraction = field(converter=POSITIVE)
    lower: Fraction = field(converter=RATIONAL)
    upper: Fraction = field(converter=RATIONAL)
    adjacency: Adjacency = field(converter=as_adjacency)
    cells: int = field(default=1 << 16, converter=whole_from(2))
    shift: Fraction = field(default=Fraction(0), converter=RATIONAL)

    def __attrs_post_init__(self) -> None:
        require(0 <= self.q <= 1, "q", "between 0 and 1", self.q)
        low, high = self.lower, self.upper
        require(low < high, "upper", "above lower", high)
        require(max(abs(low), abs(high)) < 10**300, "upper", "below 1e300, as lower above −1e300", high)
        require(float(low) / 2 < float(high) / 2, "upper", "above lower by a float's precision", high)
        require(self.cells <= _MOST_CELLS, "cells", f"at most {_MOST_CELLS}", self.cells)

    def __repr__(self) -> str:
        bounds = f"lower={decimal_text(self.lower)}, upper={decimal_text(self.upper)}"
        numbers = f"q={decimal_text(self.q)}, epsilon={decimal_text(self.epsilon)}, {bounds}"
        moved = f", shift={decimal_text(self.shift)}" if self.shift else ""
        return f"Quantile({numbers}, adjacency={self.adjacency}, cells={self.cells}{moved})"

    @property
    def points(self) -> FloatArray:
        """The grid: every output is one of these."""
        return np.linspace(float(self.lower), float(self.upper), self.cells)

    @property
    def sensitivity(self) -> int:
        """By how much a unit of weight 1 moves a score."""
        a, b = self.q.numerator, self.q.denominator
        return b if self.adjacency is Adjacency.REPLACE_ONE else max(a, b - a)

    @property
    def extreme(self) -> bool:
        """Whether this is a minimum or a maximum, whose scores' moves span no more than one of them."""
        return self.q.denominator == 1 and self.shift == 0

    @property
    def rate(self) -> Fraction:
        """What one unit of score is worth in log-probability, for units of weight 1."""
        return self.epsilon / ((1 if self.extreme else 2) * self.sensitivity)

    @property
    def loss(self) -> Loss:
        """What one quantile costs."""
        return BoundedRange(epsilon=self.epsilon, adjacency=self.adjacency)

    # ---- releases ---------------------------------------------------------------------------------------------------

    def release(self, values: ArrayLike, units: ArrayLike | None = None) -> float:
        """Return the noisy quantile. Without units each value is one; with them, a label for each value."""
        return float(self.points[int(perform(self, self._ranks(values, units)))])

    def release_many(self, values: ArrayLike, size: int, units: ArrayLike | None = None) -> FloatArray:
        """Return `size` independent quantiles. Each is a release and costs `loss`."""
        return self.points[perform(self, self._ranks(values, units), whole(size, "size"))]

    def release_histogram(self, counts: ArrayLike, *, unit_weight: Number = 1) -> float:
        """Return the noisy quantile of data already counted: one whole number ≥ 0 for each point of the grid.

        Needs   One unit adds at most `unit_weight` to all counts together.
        """
        return float(self.points[int(perform(self, self._counted(counts, unit_weight)))])

    def histogram(self, values: ArrayLike, units: ArrayLike | None = None) -> IntArray:
        """Return the weight at each point of the grid: private, the input of `release_histogram`.

        With units, for unit_weight=UNIT_WEIGHT.
        """
        numbers = _numbers(values)
        keep = ~np.isnan(numbers)
        weight: IntArray | None = None
        if units is not None:
            labels, known = _labels(units, len(numbers))
            keep &= known
            rows = np.bincount(labels[keep], minlength=1)
            weight = UNIT_WEIGHT // np.maximum(rows, 1)[labels[keep]]
        lower, upper = float(self.lower), float(self.upper)
        share = (np.clip(numbers[keep], lower, upper) / 2 - lower / 2) / (upper / 2 - lower / 2)  # halves cannot overflow
        places = np.clip(np.rint(share * (self.cells - 1)), 0, self.cells - 1).astype(np.int64)
        return np.bincount(places, weight, self.cells).astype(np.int64)  # floats, exact: fewer than 2⁵³ in all

    def probabilities(self, values: ArrayLike, units: ArrayLike | None = None) -> FloatArray:
        """Return the probability of each point, as floats: for the eye and for tests."""
        ranks = self._ranks(values, units)
        return shares(deficits_of(ranks.scores), self.rate / ranks.weight)

    def scores(self, counts: IntArray, weight: int = 1) -> Steps:
        """Return the score of each point for a histogram where a unit weighs at most `weight`.

        Exact: Python's integers where 64 bits may not do. The shift is rounded away from 0 to a whole score.
        """
        a, b = self.q.numerator, self.q.denominator
        total = sum(counts.tolist()) if int(counts.max()) > CAP // len(counts) else int(counts.sum())
        moved = _away(self.shift * b * weight)
        # also of a histogram of nothing: q itself may not fit, and an empty group must not fail where another would not
        exact: Steps = counts if max(total, 1) * b + abs(moved) < CAP else counts.astype(object)
        below = np.cumsum(exact)
        strictly, above = below - exact, total - below
        too_high = (b - a) * strictly - a * (total - strictly) - moved
        too_low = a * above - (b - a) * below + moved
        if moved < 0:
            too_high[0] = 0
        if moved > 0:
            too_low[-1] = 0
        return -np.maximum(np.maximum(too_high, too_low), 0)

    def _ranks(self, values: ArrayLike, units: ArrayLike | None) -> Ranks:
        weight = 1 if units is None else UNIT_WEIGHT
        return Ranks(self.scores(self.histogram(values, units), weight), weight)

    def _counted(self, counts: ArrayLike, unit_weight: Number) -> Ranks:
        held = whole_array(counts, "counts")
        if held.shape != (self.cells,):
            raise refusal_of_value("counts", f"{self.cells} numbers, one for each point", f"an array of shape {held.shape}")
        if (held < 0).any():
            raise refusal_of_value("counts", "at least 0", "a negative number")
        weight = whole(unit_weight, "unit_weight")
        return Ranks(self.scores(held, weight), weight)

    # ---- the seam ---------------------------------------------------------------------------------------------------

    def draw(self, value: Ranks, source: Entropy, size: int | None = None) -> IntArray:
        """Return the place on the grid; `size` independent ones if given."""
        choice = Choice(deficits_of(value.scores), self.rate / value.weight)
        return choice.draw(size, source) if size is not None else choice.draw(1, source)[0]

    def within(self, one: Ranks, other: Ranks) -> bool:
        """Whether no score moves by more than a unit can move it; of an extreme, whether the moves span no more."""
        if one.weight != other.weight:
            return False
        if self.extreme:
            moves = [int(b) - int(a) for a, b in zip(one.scores.tolist(), other.scores.tolist(), strict=True)]
            return max(moves) - min(moves) <= one.weight
        return are_near(one.scores, other.scores, self.sensitivity * one.weight)

    # ---- error and calibration --------------------------------------------------------------------------------------

    def interval(self, confidence: Number = "0.95") -> Interval:
        """Return [0, t]: with at least this probability the rank of the result is off by at most t units more than the best.

        The rank of x is off by −score/b: by as many units as would have to lie elsewhere for x to be a quantile.

        Claim   As for Exponential with `cells` candidates: log((cells − 1)(1 − β)/β)/(b · rate). Rounds: up.
        """
        beta = failure_of(confidence)
        odds = Fraction(max(log_up((self.cells - 1) * (1 - beta) / beta), 0.0))
        return Interval(0.0, float_up(odds / (self.rate * self.q.denominator)))

    @classmethod
    def calibrate(
        cls,
        *,
        q: Number,
        lower: Number,
        upper: Number,
        adjacency: Adjacency | str,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        count: Number = 1,
        cells: Number = 1 << 16,
    ) -> Self:
        """Return the sharpest mechanism within the privacy goal after `count` quantiles."""
        one = calibrate_epsilon(lambda e: BoundedRange(epsilon=e), epsilon=epsilon, delta=delta, rho=rho, count=count)
        return cls(q=q, epsilon=one, lower=lower, upper=upper, adjacency=adjacency, cells=cells)


def _away(value: Fraction) -> int:
    """The whole number next to the value on the far side of 0."""
    return math.ceil(value) if value > 0 else math.floor(value)


def _numbers(values: object) -> NDArray[np.float64]:
    """The values as floats, what is no number as NaN: refused by type and shape alone, never because of one value."""
    given = unwrap_value(values, "values")
    if isinstance(given, (list, tuple)):
        if any(isinstance(value, (list, tuple, np.ndarray)) for value in cast("Sequence[object]", given)):
            raise refusal_of_value("values", "a list of numbers", "a list of lists")
        return np.array([_number(value) for value in cast("Sequence[object]", given)], np.float64)
    if not hasattr(given, "__array__") or isinstance(given, np.generic):
        raise refusal_of_value("values", "a list of numbers", f"a {type(given).__name__}")
    array = np.asarray(cast("ArrayLike", given))
    if array.ndim != 1 or array.dtype.kind not in "iufO":
        raise refusal_of_value("values", "a list of numbers", f"an array of another type or of {array.ndim} dimensions")
    if array.dtype.kind == "O":
        return np.array([_number(value) for value in array.tolist()], np.float64)
    return array.astype(np.float64)


def _number(value: Any) -> float:
    if not isinstance(value, (numbers.Real, Decimal)) or isinstance(value, (bool, np.bool_)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if cast("int", value) > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def _labels(units: ArrayLike, count: int) -> tuple[IntArray, NDArray[np.bool_]]:
    """A whole number for each unit, and whether the label names one: rows of nobody (null, NaN, NaT) are dropped.

    Claim   Whether two rows are of one unit depends on their two labels alone: left to itself, NumPy would give all labels
            one type, and a single odd label would rename everybody.
    """
    typed = isinstance(units, np.ndarray) and cast("NDArray[Any]", units).dtype.kind in "iufMmUS"
    array = cast("NDArray[Any]", units) if typed else None
    labels: list[Any] = [] if typed else list(cast("Iterable[Any]", units))
    shape = array.shape if array is not None else (len(labels),)
    if shape != (count,):
        raise refusal_of_value("units", "one label for each value", "another number of labels")
    if array is not None:
        _, places = np.unique(array, return_inverse=True)
        nobody = {"f": np.isnan, "M": np.isnat, "m": np.isnat}.get(array.dtype.kind)
        return places.astype(np.int64), np.ones(count, np.bool_) if nobody is None else ~nobody(array)
    numbered: dict[Any, int] = {None: 0}
    try:
        named = [numbered.setdefault(_person(label), len(numbered)) for label in labels]
    except TypeError:
        raise refusal_of_value("units", "labels that can be compared, such as numbers or texts", "another type") from None
    places = np.array(named, np.int64)
    return places, places > 0


def _person(label: Any) -> tuple[str, Any] | None:
    """What tells people apart: numbers by their value, texts by their letters, never one by the other. None names nobody."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or (label == label) is not True:  # noqa: PLR0124 -- NaN, NaT and the nulls of data frames
        return None
    if type(label) is not bool and isinstance(label, (numbers.Real, Decimal)):
        return "number", label
    return type(label).__qualname__, label
