"""Integer noise of any rational scale: tables made once, vectors at NumPy's speed, scalars from a pool."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import require
from curador.randomness.decide import exactly_below
from curador.randomness.entropy import U64
from curador.randomness.laws import Kind, Law
from curador.randomness.strip import Strip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.randomness.entropy import Entropy

_MOST_TABLES = 64
_SMALLEST_POOL, _LARGEST_POOL, _MOST_POOLS = 8, 4096, 64
_MOST_POOLED = 1024
_WIDE_BITS = 50
_SPARE, _LEAST_SPARE = 32, 8
"""One more proposal for every 32, and 8: at most about one in 43 is refused."""


class Noise:
    """Exact noise of one law. Made by `laplace`, `gaussian` and `geometric`, which keep the latest tables."""

    def __init__(self, kind: Kind, parameter: Fraction) -> None:
        rate = 1 / (2 * parameter) if kind is Kind.GAUSSIAN else 1 / parameter
        self.law = Law(kind, rate)
        exponent = math.frexp(self.law.scale)[1] - 1
        self.wide = exponent >= 52
        self._low_bits = exponent - _WIDE_BITS if self.wide else 0
        shrink = 1 << (self._low_bits * (2 if kind is Kind.GAUSSIAN else 1))
        self.strip = Strip(Law(kind, rate * shrink, mirrored=self.wide))
        self._pool_size = _SMALLEST_POOL

    def draw(self, size: int, source: Entropy, *, level: bool = False) -> NDArray[Any]:
        """Return `size` independent integers: 64-bit ones, or Python's own where the law is wide.

        level: every draw takes the same arithmetic, for whoever can be timed. What is left are caches, one draw in 2³⁸, how
        many tail slots a vector met, and the length of Python's integers where the law is wide.
        """
        return self._wide(size, source, level=level) if self.wide else self.strip.draw(size, source, level=level)

    def one(self, source: Entropy) -> int:
        """Return one integer, from a pool drawn ahead (in level mode) where the source keeps pools."""
        pools = source.pools
        if pools is None:
            return int(self.draw(1, source, level=True)[0])
        pool = pools.get(self)
        if pool and source.current():
            return pool.pop()
        return self._refilled(source).pop()

    def several(self, size: int, source: Entropy) -> NDArray[Any]:
        """Return `size` integers: few from the pool, which is many times faster than a vector's fixed cost; many by `draw`.

        Few draws can be timed one by one, so they come from a pool or from level mode.
        """
        if source.pools is None or size > _MOST_POOLED:
            return self.draw(size, source, level=size <= _LARGEST_POOL)
        if size > _SMALLEST_POOL and not self.wide and self not in source.pools:
            return self._first(size, source)
        out: list[int] = []
        while len(out) < size:
            pool = (source.pools or {}).get(self)
            wanted = size - len(out)
            if not pool or not source.current():
                pool = self._refilled(source, wanted)
            out += pool[-wanted:]
            del pool[-wanted:]
        return np.array(out, object if self.wide else np.int64)

    def _refilled(self, source: Entropy, wanted: int = 1) -> list[int]:
        """A pool grows from 8 to 4096 as it is used, so that a scale used once costs little; anew when pools were dropped."""
        if source.pools is None or self not in source.pools:
            self._pool_size = _SMALLEST_POOL
        # after a fork this reseeds and drops the old pools
        values = self._ahead(max(wanted, self._pool_size), source)
        source.erase()
        self._kept(values, source, max(wanted, self._pool_size))
        return values

    def _first(self, size: int, source: Entropy) -> NDArray[Any]:
        """A vector for which nothing was drawn ahead: as many as it wants, which need not pass through a pool."""
        values = self._tried(size, source)
        source.erase()
        self._kept([], source, size)
        return values

    def _kept(self, values: list[int], source: Entropy, drawn: int) -> None:
        """Keep what was drawn ahead; next time twice as many are drawn."""
        self._pool_size = min(2 * drawn, _LARGEST_POOL)
        pools = source.pools if source.pools is not None else {}
        if len(pools) >= _MOST_POOLS:
            pools.pop(next(iter(pools)))
        pools[self] = values

    def _ahead(self, size: int, source: Entropy) -> list[int]:
        return (self.draw(size, source, level=True) if self.wide else self._tried(size, source)).tolist()

    def _tried(self, size: int, source: Entropy) -> NDArray[Any]:
        """Some more are proposed than are wanted: a second round for the few that are refused costs as much as the first."""
        values = self.strip.accepted(size + size // _SPARE + _LEAST_SPARE, source)[:size]
        missing = size - len(values)
        return np.concatenate([values, self.draw(missing, source, level=True)]) if missing else values

    def _wide(self, size: int, source: Entropy, *, level: bool) -> NDArray[Any]:
        """x = high 2^e + low: the coarse part from the mirrored law, the fine part uniform, then one rejection.

        Claim   Exact. The mirrored law dominates: f(x) ≤ f(high 2^e mirrored), and their ratio, the acceptance, is at least
                1 − 2⁻⁴⁰ for |x| ≤ 64 scales: a 64-bit W below that accepts at once, any other goes to exact integers.
        Source  docs/explanation/exact-noise.md, theorem 3.
        """
        bits, law, out = self._low_bits, self.law, np.empty(size, object)
        octets = (bits + 7) // 8
        at_once = (1 << 64) - (1 << 24)
        near = math.floor(64 * self.law.scale / 2.0**bits)
        todo = list(range(size))
        while todo:
            high = self.strip.draw(len(todo), source, level=level).tolist()
            low, word = source.fill(octets * len(todo)).tobytes(), source.words(len(todo), U64).tolist()
            again: list[int] = []
            for i, place in enumerate(todo):
                fine = int.from_bytes(low[octets * i : octets * (i + 1)], "little") >> (8 * octets - bits)
                x = (high[i] << bits) | fine
                if word[i] >= at_once or abs(high[i]) > near:
                    coarse = (high[i] if high[i] >= 0 else ~high[i]) << bits
                    gap = law.phi(x) - (coarse * coarse if law.kind is Kind.GAUSSIAN else coarse) * law.rate
                    if not exactly_below(word[i], 64, Fraction(1), gap, source):
                        again.append(place)
                        continue
                out[place] = x
            todo = again
        return out


_tables: dict[tuple[Kind, int, int], Noise] = {}
_lock = threading.Lock()


def laplace(scale: Fraction) -> Noise:
    """Return noise with P[k] ∝ e^(−|k|/scale)."""
    return _noise(Kind.LAPLACE, scale, "scale")


def gaussian(sigma2: Fraction) -> Noise:
    """Return noise with P[k] ∝ e^(−k²/2σ²)."""
    return _noise(Kind.GAUSSIAN, sigma2, "sigma2")


def geometric(scale: Fraction) -> Noise:
    """Return noise with P[k] ∝ e^(−k/scale), k ≥ 0."""
    return _noise(Kind.GEOMETRIC, scale, "scale")


def _noise(kind: Kind, parameter: Fraction, name: str) -> Noise:
    key = (kind, parameter.numerator, parameter.denominator)  # a rational's own hash is slow
    found = _tables.get(key)
    if found is None:
        small, large = Fraction(1, 10**80), Fraction(10**80)
        shown = float(parameter) if abs(parameter) < 10**300 else math.copysign(math.inf, 1 if parameter > 0 else -1)
        require(small <= parameter <= large, name, "between 1e-80 and 1e80 grid steps", shown)
        found = Noise(kind, parameter)
        with _lock:
            while len(_tables) >= _MOST_TABLES:
                _tables.pop(next(iter(_tables)))
            _tables[key] = found
    return found
