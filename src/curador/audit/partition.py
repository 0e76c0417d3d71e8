"""A score cut into cells, the same for both worlds: what a tester learns an event or a likelihood ratio on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit.distinguisher import LEAST, train
from curador.errors import InvalidParameter, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.audit.bounds import IntArray

FEWEST = 64
"""Samples a world that a tester asks for at least: a quarter of them choose, in two halves."""

FEWEST_ROWS = 8 * LEAST
"""Idem where a score has to be learned first."""

_REST = 3  # samples that are tested, for each that the test is chosen on
_TAIL = 32  # samples that the outermost cells of a score of many values hold at least


@dataclass(frozen=True, slots=True)
class Parted:
    """Scores of both worlds in three parts: a test is learned on the first, compared on the second, run on the third."""

    learned: tuple[NDArray[Any], NDArray[Any]]
    compared: tuple[NDArray[Any], NDArray[Any]]
    tested: tuple[NDArray[Any], NDArray[Any]]

    @property
    def chosen(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The first two parts together: everything but what is tested."""
        one, other = (np.concatenate(pair) for pair in zip(self.learned, self.compared, strict=True))
        return one, other


def part_scores(samples0: object, samples1: object) -> Parted:
    """Return samples of two worlds as scores in three parts: an eighth, an eighth and the rest, in the order drawn.

    Samples that are rows of numbers are scored by what a `distinguisher` learns of the first part.
    """
    worlds = (_numbers(samples0, "samples0"), _numbers(samples1, "samples1"))
    widths = [array.shape[1:] for array in worlds]
    require(widths[0] == widths[1], "samples of both worlds", "of one width", f"{widths[0]} and {widths[1]}")
    if worlds[0].ndim == 2:
        known = train(*(array[: _cuts(len(array))[0]] for array in worlds))
        worlds = (known.score(worlds[0]), known.score(worlds[1]))
    parts = [np.split(array, _cuts(len(array))) for array in worlds]
    learned, compared, tested = ((parts[0][place], parts[1][place]) for place in range(3))
    return Parted(learned, compared, tested)


def _cuts(size: int) -> tuple[int, int]:
    quarter = size // (_REST + 1)
    return quarter // 2, quarter


def _numbers(samples: object, name: str) -> NDArray[Any]:
    """Numbers by samples, or by samples and coordinates."""
    try:
        array = np.asarray(samples)
    except ValueError as error:  # rows of different lengths
        raise InvalidParameter.must_be(name, "an array of numbers", type(samples).__name__) from error
    require(array.dtype.kind in "biuf", name, "an array of numbers", array.dtype)
    require(array.ndim in (1, 2), name, "an array of one or two dimensions", array.ndim)
    least = FEWEST if array.ndim == 1 else FEWEST_ROWS
    require(len(array) >= least, name, f"at least {least} samples", len(array))
    require(array.ndim == 1 or array.shape[1] > 0, name, "of at least one number each", array.shape)
    missing = array.ndim == 1 and array.dtype.kind == "f" and bool(np.isnan(array).any())
    require(not missing, name, "free of NaN", "NaN", "give what is no number a place among the numbers, such as −1")
    return array.astype(np.int8) if array.dtype.kind == "b" else array


@dataclass(frozen=True, slots=True)
class Partition:
    """Cell i holds edges[i − 1] ≤ score < edges[i]; the outer cells are open to their side."""

    edges: NDArray[Any]

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.edges) + 1

    def counts(self, scores: NDArray[Any]) -> IntArray:
        """Return how many scores each cell holds."""
        return np.bincount(np.searchsorted(self.edges, scores, side="right"), minlength=self.size).astype(np.int64)

    def words(self, member: NDArray[np.bool_]) -> str:
        """Return a union of cells as a few intervals of the score, or as their number where there are many."""
        if member.all() or not member.any():
            return "everything" if member.any() else "nothing"
        turns = np.flatnonzero(np.diff(np.pad(member.astype(np.int8), 1)))
        pieces = [self._interval(int(first), int(last)) for first, last in zip(turns[::2], turns[1::2] - 1, strict=True)]
        if len(pieces) <= 3:
            return " or ".join(pieces)
        return f"{int(member.sum())} of {self.size} cells of the score"

    def _interval(self, first: int, last: int) -> str:
        below = "" if first == 0 else f"{self.edges[first - 1]:.6g} ≤ "
        above = "" if last == self.size - 1 else f" < {self.edges[last]:.6g}"
        return f"score ≥ {self.edges[first - 1]:.6g}" if below and not above else f"{below}score{above}"


def partition(scores0: NDArray[Any], scores1: NDArray[Any], cells: int) -> Partition:
    """Return about so many cells: one value each where there are few, else equal shares of both worlds and finer tails.

    The tails are halved again and again while 32 samples are left in them: that is where the worlds differ most.
    """
    values, counts = np.unique(np.concatenate([scores0, scores1]), return_counts=True)
    if len(values) <= cells:
        return Partition(values[1:])
    ends = np.cumsum(counts)
    total = float(ends[-1])
    halves = total / cells * 0.5 ** np.arange(1, 64)
    tails = halves[halves >= _TAIL]
    places = np.concatenate([np.linspace(0.0, total, cells + 1)[1:-1], tails, total - tails])
    cuts = np.searchsorted(ends, np.sort(places), side="left")
    return Partition(values[np.unique(np.clip(cuts + 1, 1, len(values) - 1))])
