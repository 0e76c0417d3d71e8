"""Sparse vectors that are not private: six of the mistakes that were published or shipped, after [LSL17].

All ask queries of sensitivity 1 whether they pass a threshold, in many runs at once, and give one score a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.randomness.entropy import entropy
from curador.randomness.noise import laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

UNIT = 1 << 10
"""Grid steps a unit."""

_MISSED = 1 << 40  # the score of a run in which nothing passed


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong sparse vector, the ε it claims, and outputs of two worlds as scores."""

    name: str
    epsilon: float
    sample: Callable[[int, int], NDArray[Any]]


def _noise(scale: Fraction, *shape: int) -> NDArray[np.int64]:
    return laplace(scale * UNIT).draw(int(np.prod(shape)), entropy()).reshape(shape)


def _passed(
    values: tuple[int, ...], threshold: float, size: int, *, threshold_scale: Fraction | None, query_scale: Fraction | None
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which queries pass, were all of them asked, and their noisy values; a scale of None draws no noise."""
    shape = (size, len(values))
    noisy = np.broadcast_to(np.array(values, np.int64) * UNIT, shape)
    if query_scale is not None:
        noisy = noisy + _noise(query_scale, *shape)
    bar = np.full((size, 1), round(threshold * UNIT), np.int64)
    if threshold_scale is not None:
        bar = bar + _noise(threshold_scale, size, 1)
    return noisy >= bar, noisy


def _first(passed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The place of the first query that passed; the number of queries where none did."""
    return np.where(passed.any(axis=1), passed.argmax(axis=1), passed.shape[1]).astype(np.int64)


def _lead(passed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many more of the second half of the queries pass than of the first."""
    half = passed.shape[1] // 2
    return passed[:, half:].sum(axis=1) - passed[:, :half].sum(axis=1)


def _threshold_without_noise(world: int, size: int) -> NDArray[np.int64]:
    """Every query below the threshold costs again."""
    passed, _ = _passed((world,) * 7, 0.5, size, threshold_scale=None, query_scale=Fraction(2))
    return _first(passed)


def _queries_without_noise(world: int, size: int) -> NDArray[np.int64]:
    """The order of two queries shows through one noisy threshold."""
    passed, _ = _passed((1 - world, world), 0.5, size, threshold_scale=Fraction(2), query_scale=None)
    return passed.astype(np.int64) @ np.array([1, 2])


def _no_end(world: int, size: int) -> NDArray[np.int64]:
    """Noise for one query that passes, but the run goes on to its last query."""
    values = (world,) * 10 + (1 - world,) * 10
    passed, _ = _passed(values, 0.5, size, threshold_scale=Fraction(1, 2), query_scale=Fraction(1))
    return _lead(passed)


def _noise_for_one(world: int, size: int) -> NDArray[np.int64]:
    """The run ends after three queries that pass, the noise does not know of three."""
    values = (world,) * 3 + (1 - world,) * 3
    passed, _ = _passed(values, 0.5, size, threshold_scale=Fraction(2), query_scale=Fraction(2, 3))
    return _lead(passed & (passed.cumsum(axis=1) <= 3))


def _value_that_passed(world: int, size: int) -> NDArray[np.int64]:
    """The noisy value that passed is released: the threshold lies below it, and so do all queries before."""
    passed, noisy = _passed((world,) * 3, 0.0, size, threshold_scale=Fraction(8, 3), query_scale=Fraction(8, 9))
    return np.where(_first(passed) == 2, noisy[:, -1], _MISSED)


def _half_the_query_noise(world: int, size: int) -> NDArray[np.int64]:
    """Noise for queries that all move the same way, on queries that do not."""
    values = (world,) * 5 + (1 - world,)
    passed, _ = _passed(values, 0.5, size, threshold_scale=Fraction(1), query_scale=Fraction(1))
    return _first(passed)


SPARSE = (
    Wrong("no noise on the threshold", 2.0, _threshold_without_noise),
    Wrong("no noise on the queries", 1.0, _queries_without_noise),
    Wrong("no end after a query that passes", 4.0, _no_end),
    Wrong("noise for one query that passes, three allowed", 2.0, _noise_for_one),
    Wrong("the noisy value that passed is released", 1.5, _value_that_passed),
    Wrong("query noise for monotone queries", 2.0, _half_the_query_noise),
)
"""What each claims holds for the same noise used rightly, at sensitivity 1."""
