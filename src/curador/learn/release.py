"""The one door through which anything about data leaves a fit: exact integers, the seam, then floats."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import Failed
from curador.learn.plan import STEPS
from curador.mechanisms.gaussian import DiscreteGaussian, Stretch
from curador.mechanisms.seam import perform

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from curador.learn.plan import Additive, FitPlan
    from curador.learn.sums import Floats, Integers


@dataclass(frozen=True, slots=True)
class ReleaseSummary:
    """One kind of release, for the card: how many there were, of how many numbers, with how much noise."""

    name: str
    count: int
    numbers: int
    sensitivity: float
    deviation: float


@dataclass(slots=True)
class Releaser:
    """Makes the releases of a plan, and no more than it planned.

    progress  called after each release with how many were made and how many are planned
    """

    plan: FitPlan
    progress: Callable[[int, int], None] | None = None
    _made: Counter[str] = field(default_factory=Counter[str])
    _last: dict[str, ReleaseSummary] = field(default_factory=dict[str, ReleaseSummary])

    def noisy(self, name: str, integers: Integers, *, length: int, step: float) -> Floats:
        """Return step · (integers + noise).

        length  by how many grid steps one record moves the integers: in l2 under Gaussian noise, in l1 under Laplace noise
        step    what one grid step stands for; a public number
        Claim   Costs what the plan accounts for one release of this part. Noise is exact (docs/explanation/exact-noise.md).
        Needs   The integers are exact, and `length` holds for every pair of neighbours.
        """
        array = np.asarray(integers)
        self._count(name, length)
        released = _draw_integers(self.plan.mechanism(name, length=length, numbers=array.size), array)
        self._last[name] = ReleaseSummary(name, 0, array.size, length * step, self.plan.deviation(name, length * step))
        self._told()
        return released.astype(np.float64) * step

    def sequence(self, name: str, *, length: int, numbers: int, step: float = 1.0) -> Callable[[Integers], Integers]:
        """Return what makes ONE release stretch by stretch: a sequence whose integers leave one after the other.

        length   by how many grid steps, in l2, one record moves the whole sequence of integers, however long
        numbers  how many there are at most, in all
        Claim    As `noisy`, also where later integers depend on what left before (`mechanisms/gaussian.py`).
        """
        self._count(name, length)
        mechanism = self.plan.mechanism(name, length=length, numbers=numbers)
        if not isinstance(mechanism, DiscreteGaussian):
            raise Failed("a sequence must have Gaussian noise")
        stretch, left = Stretch(mechanism, f"{name} {self._made[name]}"), 0
        sensitivity, deviation = length * step, self.plan.deviation(name, length * step)

        def following(integers: Integers) -> Integers:
            nonlocal left
            left += integers.size
            if left > numbers:
                raise Failed("a sequence must have at most as many numbers as accounted")
            released = _draw_integers(stretch, integers)
            self._last[name] = ReleaseSummary(name, 0, left, sensitivity, deviation)
            if left == numbers:
                self._told()
            return released

        return following

    def direction(self, name: str, matrix: Floats, *, extent: float) -> Floats:
        """Return one direction of a matrix, drawn by its score; who asks answers for the range `extent` of a record's change.

        On the card: how much x'Ax varies, where one direction stands out.
        """
        self._count(name, STEPS)
        mechanism = self.plan.direction(name, extent)
        found = mechanism.release(matrix)
        size = len(matrix)
        self._last[name] = ReleaseSummary(name, 0, size, extent, math.sqrt((size - 1) / 2.0) / mechanism.concentration)
        self._told()
        return found

    def deviation(self, name: str, *, length: int, step: float) -> float:
        """Return the standard deviation of each number of such a release. Public."""
        return self.plan.deviation(name, length * step)

    @property
    def releases(self) -> tuple[ReleaseSummary, ...]:
        """What was released so far."""
        return tuple(
            ReleaseSummary(name, self._made[name], part.numbers, part.sensitivity, part.deviation)
            for name, part in self._last.items()
        )

    def _count(self, name: str, length: int) -> None:
        planned = self.plan.part(name)
        if planned is None or self._made[name] >= planned.count:
            raise Failed("a fit must release what was planned and no more")
        if length < STEPS:
            raise Failed("a release must be on a grid at least as fine as accounted")
        self._made[name] += 1

    def _told(self) -> None:
        if self.progress is not None:
            self.progress(self._made.total(), sum(part.count for part in self.plan.parts))


def _draw_integers(mechanism: Additive | Stretch, integers: Integers) -> Integers:
    """Release integers as 64-bit ones, what does not fit modulo 2⁶⁴.

    Claim   integers + noise modulo 2⁶⁴ is post-processing of the release, so sums and noise of any size are as private, and
            none is an error, which data or a tiny ε could cause after the charge.
    """
    if integers.dtype != np.int64:
        raise Failed("releases must be of 64-bit integers")
    if not integers.size:
        return np.zeros(integers.shape, np.int64)
    released: NDArray[Any] = perform(mechanism, integers)
    if released.dtype == np.int64:
        return released
    half, whole = 1 << 63, 1 << 64
    held = [(int(one) + half) % whole - half for one in released.ravel().tolist()]
    return np.array(held, np.int64).reshape(released.shape)
