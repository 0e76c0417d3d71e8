"""Noise of scales beyond 2⁵², in Python's integers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.randomness.entropy import U64
from curador.randomness.noise import LawKind, Noise, Strip, exactly_below

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.randomness.entropy import Entropy

_WIDE_BITS = 50


class WideNoise(Noise):
    """Exact noise of a law whose scale is 2⁵² or more, drawn in two parts: the coarse one is a strip's."""

    wide = True
    unbounded = True
    _largest_pool = 1 << 12

    def __init__(self, kind: LawKind, rate: Fraction) -> None:
        self.kind, self.rate = kind, rate
        self._low_bits = math.frexp(kind.scale(rate))[1] - 1 - _WIDE_BITS
        shrink = 1 << (self._low_bits * (2 if kind is LawKind.GAUSSIAN else 1))
        self.coarse = Strip(kind, rate * shrink, mirrored=True)

    def _ahead(self, size: int, source: Entropy) -> NDArray[Any]:
        return self.draw(size, source, level=True)

    def draw(self, size: int, source: Entropy, *, level: bool = False) -> NDArray[Any]:
        """x = high 2^e + low: the coarse part from the mirrored law, the fine part uniform, then one rejection.

        Claim   Exact. The mirrored law dominates: f(x) ≤ f(high 2^e mirrored), and their ratio, the acceptance, is at least
                1 − 2⁻⁴⁰ for |x| ≤ 64 scales: a 64-bit W below that accepts at once, any other goes to exact integers.
        Source  docs/explanation/exact-noise.md, theorem 3.
        """
        bits, out = self._low_bits, np.empty(size, object)
        octets = (bits + 7) // 8
        at_once = (1 << 64) - (1 << 24)
        near = math.floor(64 * self.kind.scale(self.rate) / 2.0**bits)
        todo = list(range(size))
        while todo:
            high = self.coarse.draw(len(todo), source, level=level).tolist()
            low, word = source.fill(octets * len(todo)).tobytes(), source.words(len(todo), U64).tolist()
            again: list[int] = []
            for i, place in enumerate(todo):
                fine = int.from_bytes(low[octets * i : octets * (i + 1)], "little") >> (8 * octets - bits)
                x = (high[i] << bits) | fine
                if word[i] >= at_once or abs(high[i]) > near:
                    coarse = (high[i] if high[i] >= 0 else ~high[i]) << bits
                    gap = self.kind.phi(abs(x), self.rate) - self.kind.phi(coarse, self.rate)
                    if not exactly_below(word[i], 64, Fraction(1), gap, source):
                        again.append(place)
                        continue
                out[place] = x
            todo = again
        return out
