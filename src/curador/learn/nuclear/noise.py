"""One release whose noise is drawn in blocks: for sequences in which each number may depend on those that left before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.learn.release import Releaser
    from curador.learn.sums import Integers

_MOST_NUMBERS = 1 << 40
_BLOCK = 1 << 20


@dataclass(slots=True)
class Sequence:
    """The noise of a sequence y_0, y_1, … of integer vectors that is accounted as one release.

    Claim   y_t = f_t(data, y_0 … y_{t−1}) + noise costs one release of the part, if for every record there are fixed numbers
            l_t with Σ l_t² ≤ length² such that a neighbour moves f_t by at most l_t in l2, whatever y_0 … y_{t−1} were.
    Proof   Up to factors that the plan accounts for, discrete noise is a post-processing of normal noise entry by entry
            (docs/explanation/accounting.md, theorem 8), so each y_t is at distance μ_t = l_t/σ or less given its past; such
            releases, composed one after the other, are at distance √Σ μ_t² ≤ length/σ.
    Needs   At most 2⁴⁰ numbers in all, of integers that are exact. δ > 0: Laplace noise does not add up by squares.

    total   how many numbers there will be
    step    what a grid step stands for, for the card
    """

    releaser: Releaser
    name: str
    length: int
    total: int
    step: float
    _draw: Callable[[int], Integers] | None = None
    _ready: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    _drawn: int = 0

    def noisy(self, exact: Integers) -> Integers:
        """Return the next integers of the sequence with their noise: the one way out."""
        return exact + self._next(exact.size).reshape(exact.shape)

    def _next(self, size: int) -> Integers:
        if len(self._ready) < size:
            self._ready = np.concatenate([self._ready, self._block(max(size, min(_BLOCK, self.total - self._drawn)))])
        out, self._ready = self._ready[:size], self._ready[size:]
        return out

    def _block(self, size: int) -> Integers:
        if not self.releaser.plan.gaussian:
            raise Failed("a sequence must have Gaussian noise")
        self._drawn += size
        if self._drawn > _MOST_NUMBERS:
            raise Failed("a sequence must have at most 2⁴⁰ numbers")
        if self._draw is None:
            self._draw = self.releaser.stream(self.name, length=self.length, step=self.step)
        return self._draw(size)
