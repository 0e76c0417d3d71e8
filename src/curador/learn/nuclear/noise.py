"""One release that leaves in pieces: for sequences in which each number may depend on those that left before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.learn.release import Releaser
    from curador.learn.sums import Integers


@dataclass(slots=True)
class Sequence:
    """A sequence y_0, y_1, … of integer vectors that is accounted as one release, begun when its first numbers leave.

    Claim   That of `mechanisms/stretch.py`: it costs one release of the part, if a neighbour moves y_t by at most fixed l_t,
            whatever left before, with Σ l_t² ≤ length².
    Needs   Integers that are exact. δ > 0: Laplace noise does not add up by squares.

    total   how many numbers there will be
    step    what a grid step stands for, for the card
    """

    releaser: Releaser
    name: str
    length: int
    total: int
    step: float
    _release: Callable[[Integers], Integers] | None = None

    def noisy(self, exact: Integers) -> Integers:
        """Return the next integers of the sequence with their noise: the one way out."""
        if self._release is None:
            self._release = self.releaser.sequence(self.name, length=self.length, numbers=self.total, step=self.step)
        return self._release(exact)
