"""One of k, with exact integer or exponential weights."""

from __future__ import annotations

import bisect
import itertools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.randomness.bernoulli import CHUNK, bernoulli_scaled_exp
from curador.randomness.decide import LARGEST, exp_negative
from curador.randomness.entropy import U64
from curador.randomness.uniform import below, below_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import Entropy, IntArray

_BITS = 61


class Choice:
    """Place i with probability ∝ multiplicity[i] · e^(−deficits[i] · rate).

    Claim   Exact. With n_i = ⌈A m_i f_i⌉ for an upper bound f_i of e^(−d_i rate), a 61-bit word falls to i with probability
            n_i 2⁻⁶¹ and is accepted with probability A m_i e^(−d_i rate)/n_i ≤ 1: the product has one constant for all i.
            Words that fall to nobody, and those refused (below 2⁻²⁹ for any weight that matters), are drawn again.
    Needs   deficits ≥ 0, 0 ≤ multiplicity < 2⁵³, one of them above 0; rate ≥ 0.
    Source  docs/explanation/exact-noise.md, theorem 4.
    """

    def __init__(self, deficits: IntArray, rate: Fraction, multiplicity: IntArray | None = None) -> None:
        many = np.ones(len(deficits), np.int64) if multiplicity is None else multiplicity
        present = many > 0
        least = int(deficits.min() if multiplicity is None else deficits[present].min())
        # a common factor does not change the law, and the best place that has a weight gets weight 1
        self._deficits = np.where(present, deficits - least, 0) if multiplicity is not None else deficits - least
        self._rate, self._many = rate, many
        weight = self._weights()
        spread = (2.0**_BITS - 2.0**55 - len(many)) / float(weight.sum()) * (1 - 2.0**-20)
        weight *= spread
        self._slots = np.ceil(weight, out=weight).astype(np.int64)
        self._ends = np.cumsum(self._slots)
        if not 0 < int(self._ends[-1]) <= 1 << _BITS:
            raise ArithmeticError("the slots of a choice do not fit its word")
        self._spread = Fraction(spread)
        self._spread_float = spread

    def _weights(self) -> FloatArray:
        """Upper bounds of m_i e^(−d_i rate), by pieces that stay in the cache."""
        rate = self._rate.numerator / self._rate.denominator
        out = np.empty(len(self._deficits), np.float64)
        for start in range(0, len(out), CHUNK):
            phi = self._deficits[start : start + CHUNK] * rate
            np.minimum(phi, LARGEST, out=phi)
            part = exp_negative(phi)
            part *= 1 + 2.0**-30
            part *= self._many[start : start + CHUNK]
            out[start : start + CHUNK] = part
        return out

    def draw(self, size: int, source: Entropy) -> IntArray:
        """Return `size` independent places."""
        out, todo = np.empty(size, np.int64), np.arange(size)
        last = len(self._slots) - 1
        while len(todo):
            word = (source.words(len(todo), U64) >> np.uint64(64 - _BITS)).astype(np.int64)
            found = np.searchsorted(self._ends, word, side="right")
            place = np.minimum(found, last)
            many, slots = self._many[place], self._slots[place]
            factor = self._spread_float * many / np.maximum(slots, 1)
            taken = bernoulli_scaled_exp(
                self._deficits[place],
                self._rate,
                factor,
                lambda i, many=many, slots=slots: self._spread * int(many[i]) / max(int(slots[i]), 1),
                source,
            )
            taken &= found <= last
            out[todo[taken]] = place[taken]
            todo = todo[~taken]
        return out


class Weighted:
    """Place i with probability weights[i] over their sum. Claim: exact, for integers of any size."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._ends = list(itertools.accumulate(weights))
        if not self._ends or self._ends[-1] <= 0 or min(weights) < 0:
            raise ValueError("weights must be at least 0 with one above 0")

    def draw(self, size: int, source: Entropy) -> IntArray:
        """Return `size` independent places."""
        total = self._ends[-1]
        if total <= 1 << 62:
            return np.searchsorted(np.array(self._ends, np.int64), below(total, size, source), side="right").astype(np.int64)
        return np.array([bisect.bisect_right(self._ends, below_one(total, source)) for _ in range(size)], np.int64)
