"""A quantile with its error bar: a point, a far end on either side that is almost certain, and tests that move the ends in.

Let G(c) = (b − a) · (weight at or below cell c) − a · (weight above), q = a/b: it never falls along the cells, and the
quantile is the first cell j with G(j) ≥ 0. So a cell c lies below j exactly where G(c) < 0. A test adds noise to G(c) and
says "below" where the noisy number is under −r, "not below" where it is over r; in between it says nothing.

Where to test next is guessed from what came out before, as if G were straight between the cells seen: a bad guess makes the
bar longer, never wrong. A histogram of all cells, or ends that are drawn only, pay for all 2¹⁶ of them: bars are two to three
times longer (docs/decisions/0029-ends-that-are-tested.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.mechanisms.quantile import Quantile
from curador.mechanisms.scores import CAP
from curador.mechanisms.seam import perform
from curador.privacy.loss import Loss, compose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import IntArray

TestNoise: TypeAlias = DiscreteGaussian | DiscreteLaplace

DRAWN_MISS = Fraction(1, 50)
"""What a far end may take of its side's miss."""

EARLY_MISS = Fraction(1, 25)
"""What each test but the last may take of it; the last has what is left."""

AIM = 4 / 3
"""A test is made where |G| is guessed to be so many times what it must pass."""


@dataclass(frozen=True, slots=True)
class QuantileNoise:
    """The draws and tests of one quantile.

    point      the quantile itself
    low, high  far ends; None where the bounds are that end, as nothing shows that nobody lies beyond a minimum or a maximum
    tests      noises of the tests of one side, in their order; the other side's are as many more. None: the ends are as
               drawn, each for its whole miss, as they were before there were tests
    miss       the interval may miss the true quantile with this probability, by 1/sides of it on each side
    """

    point: Quantile
    low: Quantile | None
    high: Quantile | None
    tests: tuple[TestNoise, ...]
    miss: Fraction

    @property
    def drawn(self) -> tuple[Quantile, ...]:
        """The point and the far ends."""
        return tuple(one for one in (self.point, self.low, self.high) if one is not None)

    @property
    def sides(self) -> int:
        """How many ends are not simply the bounds."""
        return len(self.drawn) - 1

    @property
    def loss(self) -> Loss:
        """What all of it costs together."""
        return compose([one.loss for one in (*self.drawn, *self.tests * self.sides)])

    @property
    def reaches(self) -> tuple[int, ...]:
        """What each test must pass: noise alone is beyond it, on the one side that would be wrong, with its miss at most."""
        if not self.tests:
            return ()
        side = self.miss / self.sides
        early = [EARLY_MISS] * (len(self.tests) - 1)
        parts = [*early, 1 - DRAWN_MISS - sum(early)]
        return tuple(
            int(noise.half_width(1 - 2 * side * part)) for noise, part in zip(self.tests, parts, strict=True)
        )  # both tails of a symmetric law have twice the miss of one; integers beyond a reach are beyond its whole part


@dataclass(frozen=True, slots=True, eq=False)
class RankedCells:
    """A histogram as G sees it: the cells that are not empty, and the weight up to each. Private."""

    cells: IntArray
    weights: NDArray[Any]

    @classmethod
    def of(cls, counts: IntArray) -> RankedCells:
        """Return that of a histogram; Python's integers where 64 bits may not do."""
        held = np.flatnonzero(counts)
        wide = int(counts.max()) > CAP // len(counts)
        return cls(held, np.cumsum(counts[held].astype(object) if wide else counts[held]))

    def score(self, q: Fraction, cell: int) -> int:
        """Return G of the cell."""
        total = int(self.weights[-1]) if len(self.weights) else 0
        place = int(np.searchsorted(self.cells, cell, "right"))
        below = int(self.weights[place - 1]) if place else 0
        return q.denominator * below - q.numerator * total


def bracket(
    noise: QuantileNoise,
    scores: Callable[[IntArray], NDArray[Any]],
    drawn: Sequence[IntArray],
    weight: int,
) -> tuple[IntArray, IntArray]:
    """Return the ends of the interval, as cells, in every row; `drawn` are the rows' point and far ends.

    Claim   In each row the quantile j lies between the ends but for `miss`, whatever the data. On one side, of the miss m
            of that side: the far end is wrong with at most m/50 (`Quantile`: a shift of its reach). A test at a cell c,
            however it was chosen from what came before, is wrong only one way: if c ≥ j then G(c) ≥ 0, and "below" needs
            noise under −r; if c < j then G(c) < 0 and "not below" needs noise over r. Either has at most the part of m
            that r was made for, given all that came before; the parts and the far end's add up to m.
    Privacy Everything depends on the data through the far ends' draws and through G(c) + noise at cells that follow from
            outputs: adaptive composition, the loss of `noise`. One unit of total weight w in all rows moves G by at most
            w · `sensitivity` over all rows together, in l1 and so in l2, at any cells: what the tests' noise is made for.
    Needs   `scores` gives G at one cell of each row, of the histograms that `drawn` are of. Units weigh at most `weight`.
    Rounds  Ends outward to cells; never inside the point.
    Source  [BS16] for adaptive composition; the union bound.
    """
    point, most = drawn[0], noise.point.cells - 1
    ends = list(drawn[1:])
    low = ends.pop(0) if noise.low is not None else np.zeros_like(point)
    high = ends.pop(0) if noise.high is not None else np.full_like(point, most)
    if noise.low is not None:
        seen = _Seen(point - low + 1, noise.low, weight)
        for test, reach in zip(noise.tests, noise.reaches, strict=True):
            steps = seen.guess(reach, point - low + 1)
            cells = np.clip(point - steps, 0, most)
            noisy = perform(test, scores(cells))
            low = np.where(noisy < -reach, np.maximum(low, cells + 1), low)
            seen.add(steps, -noisy)
    if noise.high is not None:
        seen = _Seen(high - point + 1, noise.high, weight)
        for test, reach in zip(noise.tests, noise.reaches, strict=True):
            steps = seen.guess(reach, high - point + 1)
            cells = np.clip(point - 1 + steps, 0, most)
            noisy = perform(test, scores(cells))
            high = np.where(noisy > reach, np.minimum(high, cells), high)
            seen.add(steps, noisy)
    return np.minimum(low, point), np.maximum(high, point)


class _Seen:
    """What is known of |G| by steps from the point outward: 0 at the point, what the draw aimed at at the far end."""

    def __init__(self, far: IntArray, end: Quantile, weight: int) -> None:
        aim = float(abs(end.shift) * end.q.denominator * weight)
        self.steps = [np.zeros(len(far)), np.maximum(far, 1).astype(np.float64)]
        self.sizes = [np.zeros(len(far)), np.full(len(far), aim)]

    def add(self, steps: IntArray, sizes: NDArray[Any]) -> None:
        """Add what a test saw."""
        self.steps.append(steps.astype(np.float64))
        self.sizes.append(np.maximum(sizes.astype(np.float64), 0.0))

    def guess(self, reach: int, far: IntArray) -> IntArray:
        """Return how many steps outward the next test is, from 1 to one less than an end that is known."""
        target = AIM * reach
        steps, sizes = np.array(self.steps), np.array(self.sizes)
        order = np.argsort(steps, axis=0, kind="stable")
        steps, sizes = np.take_along_axis(steps, order, 0), np.take_along_axis(sizes, order, 0)
        sizes = np.maximum.accumulate(sizes, axis=0)
        after = np.minimum((sizes < target).sum(axis=0), len(steps) - 1)[None]
        before = np.maximum(after - 1, 0)
        first, last = (np.take_along_axis(steps, place, 0)[0] for place in (before, after))
        low, high = (np.take_along_axis(sizes, place, 0)[0] for place in (before, after))
        at = _between(first, last, low, high, target)
        return np.clip(np.rint(at), 1, np.maximum(far - 1, 1)).astype(np.int64)


def _between(first: FloatArray, last: FloatArray, low: FloatArray, high: FloatArray, target: float) -> FloatArray:
    """Where a straight line from (first, low) to (last, high) meets the target; the far one where it never does."""
    rise = high - low
    share = np.where(rise > 0, (target - low) / np.where(rise > 0, rise, 1.0), 1.0)
    return first + (last - first) * np.clip(share, 0.0, 1.0)
