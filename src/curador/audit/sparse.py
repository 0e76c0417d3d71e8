"""Sparse vectors that are not private: six of the mistakes that were published or shipped, after [LSL17].

All ask queries of sensitivity 1 whether they pass a threshold, in many runs at once, and give one score a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from curador.randomness.entropy import entropy
from curador.randomness.noise import laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNIT = 1 << 10
"""Grid steps a unit."""

_MISSED = 1 << 40  # the score of a run in which nothing passed


class Run(Protocol):
    """World (0 or 1) and how many → scores."""

    def __call__(self, world: int, size: int, *, right: bool) -> NDArray[Any]:
        """Return the scores of so many runs."""
        ...


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong sparse vector, the ε it claims, and outputs of two worlds as scores: its own, and those of its right twin."""

    name: str
    epsilon: float
    run: Run

    def sample(self, world: int, size: int) -> NDArray[Any]:
        """Return scores of the wrong one."""
        return self.run(world, size, right=False)

    def twin(self, world: int, size: int) -> NDArray[Any]:
        """Return scores of the same noise used rightly, which has the ε claimed."""
        return self.run(world, size, right=True)


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


def _until(passed: NDArray[np.bool_], hits: int) -> NDArray[np.bool_]:
    """The same, with nothing passing after so many that did."""
    return passed & (passed.cumsum(axis=1) <= hits)


def _lead(passed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many more of the second half of the queries pass than of the first."""
    half = passed.shape[1] // 2
    return passed[:, half:].sum(axis=1) - passed[:, :half].sum(axis=1)


def _threshold_without_noise(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """Every query below the threshold costs again. Right: 1 for the threshold's noise, 2/2 for the queries'."""
    bar = Fraction(1) if right else None
    passed, _ = _passed((world,) * 7, 0.5, size, threshold_scale=bar, query_scale=Fraction(2))
    return _first(passed)


def _queries_without_noise(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """The order of two queries shows through one noisy threshold. Right: 1/2 for the threshold's noise, 2/4 for theirs."""
    own = Fraction(4) if right else None
    passed, _ = _passed((1 - world, world), 0.5, size, threshold_scale=Fraction(2), query_scale=own)
    return _until(passed, 1 if right else 2).astype(np.int64) @ np.array([1, 2])


def _no_end(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """Noise for one query that passes, 2 + 2/1, but the run goes on to its last query. Right: it ends."""
    values = (world,) * 10 + (1 - world,) * 10
    passed, _ = _passed(values, 0.5, size, threshold_scale=Fraction(1, 2), query_scale=Fraction(1))
    return _lead(_until(passed, 1 if right else len(values)))


def _noise_for_one(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """Noise for one query that passes, 1/2 + 2/(2/3), but the run ends after three. Right: after one."""
    values = (world,) * 3 + (1 - world,) * 3
    passed, _ = _passed(values, 0.5, size, threshold_scale=Fraction(2), query_scale=Fraction(2, 3))
    return _lead(_until(passed, 1 if right else 3))


def _value_that_passed(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """The noisy value that passed is released: the threshold lies below it, and so do all queries before.

    Right: its place only, for queries that all move the same way, at 3/8 + 1/(8/9).
    """
    passed, noisy = _passed((world,) * 3, 0.0, size, threshold_scale=Fraction(8, 3), query_scale=Fraction(8, 9))
    return _first(passed) if right else np.where(_first(passed) == 2, noisy[:, -1], _MISSED)


def _half_the_query_noise(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """Noise for queries that all move the same way, 1 + 1/1, on queries that do not. Right: the last one stays."""
    values = (world,) * 5 + (1 if right else 1 - world,)
    passed, _ = _passed(values, 0.5, size, threshold_scale=Fraction(1), query_scale=Fraction(1))
    return _first(passed)


SPARSE = (
    Wrong("no noise on the threshold", 2.0, _threshold_without_noise),
    Wrong("no noise on the queries", 1.0, _queries_without_noise),
    Wrong("no end after a query that passes", 4.0, _no_end),
    Wrong("noise for one query that passes, three allowed", 3.5, _noise_for_one),
    Wrong("the noisy value that passed is released", 1.5, _value_that_passed),
    Wrong("query noise for monotone queries", 2.0, _half_the_query_noise),
)
"""What each claims is true of its right twin: the same noise used rightly, at sensitivity 1."""
