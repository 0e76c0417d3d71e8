"""The one door through which anything about data leaves a fit: exact integers, integer noise, then floats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import Failed
from curador.learn.plan import STEPS
from curador.randomness.entropy import entropy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from curador.learn.plan import Plan
    from curador.learn.sums import Floats, Integers


@dataclass(frozen=True, slots=True)
class Released:
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

    plan: Plan
    progress: Callable[[int, int], None] | None = None
    _made: Counter[str] = field(default_factory=Counter[str])
    _last: dict[str, Released] = field(default_factory=dict[str, Released])

    def noisy(self, name: str, integers: Integers, *, length: int, step: float) -> Floats:
        """Return step · (integers + noise).

        length  by how many grid steps one record moves the integers: in l2 under Gaussian noise, in l1 under Laplace noise
        step    what one grid step stands for; a public number
        Claim   Costs what the plan accounts for one release of this part. Noise is exact (docs/explanation/exact-noise.md).
        Needs   The integers are exact, and `length` holds for every pair of neighbours.
        """
        self._count(name, length)
        array = np.asarray(integers)
        if array.dtype != np.int64:
            raise Failed("releases must be of 64-bit integers")
        noisy = array + self._noise(name, array.size, length).reshape(array.shape)
        self._noted(name, array.size, length * step)
        return noisy.astype(np.float64) * step

    def noise(self, name: str, size: int, *, length: int, step: float) -> Floats:
        """Return noise alone, of one release, for sums that are exact on the same grid and to which it is added whole.

        For correlated noise: what leaves is a fixed linear map of (integers + noise), so the sum may be made later.
        """
        self._count(name, length)
        drawn = self._noise(name, size, length)
        self._noted(name, size, length * step)
        return drawn.astype(np.float64) * step

    def integer_noise(self, name: str, size: int, *, length: int, step: float = 1.0) -> Integers:
        """Return the integers of one release's noise; whoever asks adds them to exact integers on the same grid."""
        self._count(name, length)
        drawn = self._noise(name, size, length)
        self._noted(name, size, length * step)
        return drawn

    def stream(self, name: str, *, length: int, step: float = 1.0) -> Callable[[int], Integers]:
        """Return what draws the noise of ONE release block by block: a sequence whose numbers leave one after the other.

        length  by how many grid steps, in l2, one record moves the whole sequence of integers, however long
        Claim   As `noisy`, also where later integers depend on what left before: the noise of each number is fresh.
        Source  Adaptive use of a lower-triangular Gaussian mechanism; docs/explanation/accounting.md, theorem 8.
        """
        self._count(name, length)
        drawn = 0

        def more(size: int) -> Integers:
            nonlocal drawn
            drawn += size
            self._last[name] = Released(name, 0, drawn, length * step, self.plan.deviation(name, length * step))
            return self._noise(name, size, length)

        return more

    def drawn(self, name: str, numbers: int, *, sensitivity: float, deviation: float) -> None:
        """Count a release that is not additive, such as a direction drawn by its score; who draws it answers for its law."""
        self._count(name, STEPS)
        self._last[name] = Released(name, 0, numbers, sensitivity, deviation)
        self._told()

    def deviation(self, name: str, *, length: int, step: float) -> float:
        """Return the standard deviation of each number of such a release. Public."""
        return self.plan.deviation(name, length * step)

    @property
    def releases(self) -> tuple[Released, ...]:
        """What was released so far."""
        return tuple(
            Released(name, self._made[name], one.numbers, one.sensitivity, one.deviation) for name, one in self._last.items()
        )

    def _count(self, name: str, length: int) -> None:
        planned = {one.name: one.count for one in self.plan.parts}
        if name not in planned or self._made[name] >= planned[name]:
            raise Failed("a fit must release what was planned and no more")
        if length < STEPS:
            raise Failed("a release must be on a grid at least as fine as accounted")
        self._made[name] += 1

    def _noise(self, name: str, size: int, length: int) -> Integers:
        from curador.randomness.noise import gaussian, laplace

        scale = self.plan.multiplier(name) * length
        law = gaussian(_rounded(scale) ** 2) if self.plan.gaussian else laplace(_rounded(scale))
        return _wrapped(law.several(size, entropy()))

    def _noted(self, name: str, numbers: int, sensitivity: float) -> None:
        self._last[name] = Released(name, 0, numbers, sensitivity, self.plan.deviation(name, sensitivity))
        self._told()

    def _told(self) -> None:
        if self.progress is not None:
            self.progress(self._made.total(), sum(one.count for one in self.plan.parts))


def _wrapped(drawn: NDArray[Any]) -> Integers:
    """Return the noise as 64-bit integers, what does not fit modulo 2⁶⁴.

    Claim   integers + noise modulo 2⁶⁴ is post-processing of the release, so sums and noise of any size are as private, and
            none is an error, which data or a tiny ε could cause after the charge.
    """
    if drawn.dtype == np.int64:
        return drawn
    half, whole = 1 << 63, 1 << 64
    return np.array([(int(one) + half) % whole - half for one in drawn.tolist()], np.int64)


def _rounded(scale: Fraction) -> Fraction:
    """Round up to a multiple of 2⁻²⁰: more noise by a part in 2³⁰, and tables with short numbers."""
    return Fraction(-(-scale.numerator * (1 << 20) // scale.denominator), 1 << 20)
