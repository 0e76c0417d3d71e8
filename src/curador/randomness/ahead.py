"""Noise of one law, and integers of it drawn ahead: a vector's fixed cost is paid once for thousands of numbers.

Claim   A pool hands out each integer once. What is drawn ahead is drawn in level mode, belongs to this thread and process,
        and is dropped where the operating system's bytes are mixed in. How much is drawn depends on how much was asked for.
Source  docs/explanation/exact-noise.md, theorem 5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.randomness.entropy import Entropy

BOUND = 1 << 62
"""Two 64-bit integers smaller than that can be added."""

_SMALLEST_POOL, _MOST_POOLS = 8, 64
_MOST_LEVEL = 4096
_FEW = 256


class Pool:
    """Integers of one law drawn ahead: vectors take from the end of an array, scalars from a list of some of them.

    What is taken is first taken off, so that whoever interrupts gets others, then copied, and 0 is left where it was.
    """

    __slots__ = ("few", "left", "values")

    def __init__(self, values: NDArray[Any]) -> None:
        self.values, self.left = values, len(values)
        self.few: list[int] = []

    def take(self, size: int) -> NDArray[Any]:
        """Return the last `size` of the array, which must have as many."""
        end = self.left
        start = self.left = end - size
        place = self.values[start:end]
        out = place.copy()
        place.fill(0)
        return out

    def waiting(self) -> list[int]:
        """Return what has not been handed out, the next scalar last."""
        return self.values[: self.left].tolist() + self.few


class Noise(ABC):
    """Exact noise of one law: a `Strip`, or a `WideNoise`. Made by `laplace`, `gaussian` and `geometric`.

    wide       whether its integers are Python's own, beyond 64 bits
    unbounded  whether one of its integers may be 2⁶² or beyond, so that sums must be checked
    """

    wide: ClassVar[bool]
    unbounded: bool
    _largest_pool: ClassVar[int]
    _pool_size = _SMALLEST_POOL

    @abstractmethod
    def draw(self, size: int, source: Entropy, *, level: bool = False) -> NDArray[Any]:
        """Return `size` independent integers: 64-bit ones, or Python's own where the law is wide.

        level: every draw takes the same arithmetic, for whoever can be timed; otherwise most take less. What is left are
        caches, one draw in 2³⁸, how many tail slots a vector met, and the length of Python's integers where the law is wide.
        """

    @abstractmethod
    def _ahead(self, size: int, source: Entropy) -> NDArray[Any]:
        """Return `size` integers in level mode."""

    def one(self, source: Entropy) -> int:
        """Return one integer, from a pool drawn ahead (in level mode) where the source keeps pools."""
        pools = source.pools
        if pools is None:
            return int(self.draw(1, source, level=True)[0])
        pool = pools.get(self)
        if pool is not None and pool.few and source.current():
            return pool.few.pop()
        pool = self._filled(source, 1)
        pool.few = pool.take(min(_FEW, pool.left)).tolist()
        return pool.few.pop()

    def several(self, size: int, source: Entropy) -> NDArray[Any]:
        """Return `size` integers: from the pool, which is many times faster than a vector's fixed cost; very many by `draw`.

        What can be timed draw by draw comes from a pool or from level mode.
        """
        pools = source.pools
        if pools is None or size > _MOST_LEVEL:
            return self.draw(size, source, level=size <= _MOST_LEVEL)
        pool = pools.get(self)
        if pool is not None and pool.left >= size and source.current():
            return pool.take(size)
        return self._filled(source, size).take(size)

    def _filled(self, source: Entropy, wanted: int) -> Pool:
        """The pool with `wanted` integers or more in its array: as it is, or with fresh ones before those left over.

        It grows from 8 to thousands as it is used, so that a scale used once costs little; anew when pools were dropped. A
        vector for which nothing was drawn ahead draws no more than it wants.
        """
        pool = source.pools.get(self) if source.pools is not None and source.current() else None
        if pool is not None and pool.left >= wanted:
            return pool
        if pool is None:
            self._pool_size = _SMALLEST_POOL
        drawn = max(wanted, self._pool_size)
        values = self._ahead(drawn, source)  # after a fork, and after a minute, this drops the old pools
        source.erase()
        pools = source.pools if source.pools is not None else {}
        pool = pools.get(self)
        if pool is None:
            while len(pools) >= _MOST_POOLS:
                pools.pop(next(iter(pools)))
            pool = pools[self] = Pool(values)
        else:
            pool.values = np.concatenate([values, pool.take(pool.left)])
            pool.left = len(pool.values)
        self._pool_size = min(2 * drawn, self._largest_pool)
        return pool
