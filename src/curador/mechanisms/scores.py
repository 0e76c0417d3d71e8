"""What the mechanisms that choose share: scores on a grid, deficits, calibration of one ε, and regret.

Those that choose one of k by their scores alone are a `Chooser`: the grid of the scores, the rate, the releases.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, overload

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from curador.errors import InvalidParameter
from curador.mechanisms.calibration import find_largest, read_goal
from curador.mechanisms.grid import (
    array_steps,
    as_array,
    decimal_text,
    floor_log2,
    power_of_two,
    refusal_of_value,
    round_down,
    score_exponent,
    steps_of,
    to_steps,
)
from curador.mechanisms.seam import perform
from curador.numerics.exact import FLAG, POSITIVE, Number, confidence_level, whole
from curador.numerics.rounding import float_down
from curador.privacy.loss import Loss
from curador.randomness.entropy import U64, BoolArray, Entropy, IntArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# ---- scores, deficits, calibration -----------------------------------------------------------------------------------------


CAP = 1 << 62
"""Deficits beyond this many steps count as this many: u' = max(u, best − CAP) moves no more than u does, and the same way."""

REACH = 1 << 60
"""Where noise is added, scores further than this from the best (or from a threshold) count as this far: sums stay small."""

WIDEST = 1 << 50
"""Largest noise scale in grid steps: P[|N| ≥ 2⁶²] < 2⁻⁵⁹⁰⁰, so that noise and REACH fit into a machine integer together."""

CHUNK = 1 << 20
"""Coins or noisy scores that are drawn at a time."""


Steps: TypeAlias = NDArray[Any]
"""Whole numbers of grid steps: 64-bit integers within ±2⁶¹, Python's own where one of them is larger."""


def deficits_of(scores: Steps, cap: int = CAP) -> IntArray:
    """Return best − score, at most `cap` ≤ 2⁶². Claim: exact."""
    if scores.dtype.kind == "O":
        whole_numbers = scores.tolist()
        best = max(whole_numbers)
        return np.array([min(best - score, cap) for score in whole_numbers], np.int64)
    best = int(scores.max())
    return best - np.maximum(scores, best - cap)


def offsets_of(values: Steps, origin: int, reach: int = REACH) -> IntArray:
    """Return value − origin, clamped to ±reach. Claim: exact."""
    if values.dtype.kind == "O" or abs(origin) > 1 << 61:
        return np.array([min(max(value - origin, -reach), reach) for value in values.tolist()], np.int64)
    return np.clip(values, origin - reach, origin + reach) - origin


def are_near(one: Steps, other: Steps, steps: int, *, monotone: bool = False) -> bool:
    """Whether no score moves by more than `steps`, and all the same way if monotone."""
    if one.shape != other.shape:
        return False
    moves = [a - b for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    low, high = min(moves, default=0), max(moves, default=0)
    return max(high, -low) <= steps and not (monotone and low < 0 < high)


def noise_exponent(scale: Fraction, sensitivity: Fraction) -> int:
    """Return e such that scores and noise live on the grid 2^e.

    At least 2³⁰ steps to the larger of scale and sensitivity, 2¹⁰ to the sensitivity where the scale then keeps below 2⁴⁹.
    """
    fine = min(max(floor_log2(scale), floor_log2(sensitivity)) - 30, floor_log2(sensitivity) - 10)
    return max(fine, floor_log2(scale) - 48)


def stack_parts(parts: Sequence[IntArray | None]) -> IntArray | None:
    """Return the parts under one another, or None where there are none."""
    held = [part for part in parts if part is not None]
    return np.concatenate(held) if held else None


def calibrate_epsilon(
    loss: Callable[[Fraction], Loss],
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    count: Number,
) -> Fraction:
    """Return the largest ε of one choice within the privacy goal after `count` choices.

    Needs   loss(ε) is ε-private and grows with ε.
    Rounds  Down; exact for a pure goal.
    """
    aim = read_goal(epsilon=epsilon, delta=delta, rho=rho, count=count)
    if aim.epsilon is not None and aim.delta == 0:
        return aim.epsilon / aim.count
    start = float_down((aim.epsilon or aim.rho or Fraction(1)) / aim.count)
    return round_down(find_largest(lambda trial: aim.reached(loss(round_down(trial))), start=start))


def failure_of(confidence: Number) -> Fraction:
    """Return 1 − confidence."""
    return 1 - confidence_level(confidence)


def steps_for(log_odds: float, rate: Fraction) -> int:
    """Return the least whole T ≥ 1 with rate · T ≥ log_odds."""
    return max(1, math.ceil(Fraction(log_odds) / rate))


def split_size(length: int, size: int) -> list[int]:
    """Return sizes of at most CHUNK/length rows that add up to `size`."""
    rows = max(1, CHUNK // max(length, 1))
    return [min(rows, size - start) for start in range(0, size, rows)]


def choose_evenly(heads: BoolArray, source: Entropy) -> IntArray:
    """Return, for every row, one of its true places, each with the same probability. Needs: a true place in each row."""
    many = heads.sum(axis=1)
    first = np.cumsum(many) - many
    places = np.nonzero(heads)[1].astype(np.int64)
    return places[first + draw_below_each(many, source)]


def draw_below_each(limits: IntArray, source: Entropy) -> IntArray:
    """Return an independent uniform integer in [0, limit) for every limit, 1 ≤ limit ≤ 2⁵³.

    Claim   Exact: as many bits as the limit needs, drawn again where they are not below it (less than half the time).
    """
    bits = np.frexp((limits - 1).astype(np.float64))[1].astype(np.uint64)  # the bit length of limit − 1, exact to 2⁵³
    mask = (np.uint64(1) << bits) - np.uint64(1)
    out, todo = np.empty(len(limits), np.int64), np.arange(len(limits))
    while len(todo):
        drawn = (source.words(len(todo), U64) & mask[todo]).astype(np.int64)
        fits = drawn < limits[todo]
        out[todo[fits]] = drawn[fits]
        todo = todo[~fits]
    return out


def score_steps(scores: ArrayLike, exponent: int, name: str = "scores") -> Steps:
    """Return a list of scores in steps of 2^exponent, each ⌊x/2^exponent + 1/2⌋; refused unless they are finite numbers.

    Claim   Exact and never saturated: where one has more than 2⁶¹ steps all become Python's integers, which takes longer.
    """
    array = as_array(scores, name)
    if array.ndim != 1:
        raise refusal_of_value(name, "a list of numbers", f"an array of {array.ndim} dimensions")
    if array.dtype.kind in "iu" and max(abs(int(array.max())), abs(int(array.min()))) <= 1 << 53:
        array = array.astype(np.float64)  # exact, and fast for all widths
    if array.dtype.kind == "f":
        largest_size = float(np.abs(array).max())
        if largest_size == 0 or math.frexp(largest_size)[1] - exponent <= 61:
            return array_steps(array, exponent, name)
    steps = [to_steps(value, exponent, name) for value in array.tolist()]
    return np.array(steps, np.int64 if max(map(abs, steps)) <= 1 << 61 else object)


def monotone_text(monotone: bool) -> str:  # noqa: FBT001 -- a word of the repr
    """Return what a repr adds for monotone scores."""
    return ", monotone=True" if monotone else ""


# ---- choosing one of k -----------------------------------------------------------------------------------------------------


T = TypeVar("T")


@frozen(kw_only=True, repr=False)
class Chooser(ABC):
    """A choice of one candidate, sharper with a larger ε. Scores are rounded to a grid of about sensitivity/2³⁰."""

    epsilon: Fraction = field(converter=POSITIVE)
    sensitivity: Fraction = field(converter=POSITIVE)
    monotone: bool = field(default=False, converter=FLAG)

    def __repr__(self) -> str:
        numbers = f"epsilon={decimal_text(self.epsilon)}, sensitivity={decimal_text(self.sensitivity)}"
        return f"{type(self).__name__}({numbers}{monotone_text(self.monotone)})"

    @staticmethod
    @abstractmethod
    def _loss_of(epsilon: Fraction) -> Loss: ...

    @abstractmethod
    def draw(self, value: Any, source: Entropy, size: int | None = None) -> IntArray:
        """Return the place chosen for integer scores; `size` independent ones if given."""

    @abstractmethod
    def within(self, one: Any, other: Any) -> bool:
        """Whether no score moves by more than the sensitivity (all the same way, if monotone)."""

    @property
    def loss(self) -> Loss:
        """What one choice costs."""
        return self._loss_of(self.epsilon)

    @property
    def grid(self) -> Fraction:
        """The step of the grid that scores are rounded to."""
        return power_of_two(score_exponent(self.sensitivity))

    @property
    def steps(self) -> int:
        """The sensitivity in grid steps, rounded up."""
        return steps_of(self.sensitivity**2, score_exponent(self.sensitivity))

    @property
    def rate(self) -> Fraction:
        """What one grid step of score is worth in log-probability."""
        return self.epsilon / ((1 if self.monotone else 2) * self.steps)

    @overload
    def release(self, scores: ArrayLike) -> int: ...
    @overload
    def release(self, scores: ArrayLike, candidates: Sequence[T]) -> T: ...
    def release(self, scores: ArrayLike, candidates: Sequence[T] | None = None) -> T | int:
        """Return the index of the candidate chosen, or the candidate itself where the candidates are given."""
        exact = self._on_grid(scores)
        if candidates is not None and len(candidates) != len(exact):
            raise InvalidParameter.must_be("candidates", f"as many as the scores ({len(exact)})", len(candidates))
        place = int(perform(self, exact))
        return place if candidates is None else candidates[place]

    def release_many(self, scores: ArrayLike, size: int) -> IntArray:
        """Return `size` independent choices, as indices. Each is a release and costs `loss`."""
        return perform(self, self._on_grid(scores), whole(size, "size"))

    def _on_grid(self, scores: ArrayLike) -> Steps:
        return score_steps(scores, score_exponent(self.sensitivity))

    @classmethod
    def calibrate(
        cls,
        *,
        sensitivity: Number,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        count: Number = 1,
        monotone: bool = False,
    ) -> Self:
        """Return the sharpest mechanism within the privacy goal after `count` choices."""
        one = calibrate_epsilon(cls._loss_of, epsilon=epsilon, delta=delta, rho=rho, count=count)
        return cls(epsilon=one, sensitivity=sensitivity, monotone=monotone)
