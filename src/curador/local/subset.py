"""Subset selection, for many people: rows of bits, of which a fixed number is 1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.local.bits import BitReports, fill_bits, row_sums, set_bits
from curador.local.client.chance import WHOLE
from curador.local.client.subset import SubsetClient, support_elsewhere
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import Finite
from curador.randomness.choice import below, bernoulli

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.local.protocol import Domain
    from curador.numerics.exact import Number
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Bytes, Entropy, IntArray

_FEW = 24
"""Sets up to this size are filled one value at a time."""

_BYTES = 1 << 22
"""Of the reports that are drawn together."""


@dataclass(frozen=True, slots=True, init=False)
class Subset(BitReports):
    """Each person reports a set of w ≈ k/(e^ε + 1) values, one that holds the own value with p ≈ e^ε w/(e^ε w + k − w).

    The least variance of all protocols here, for a report of a bit a value.

    Claim   ε-private; p is a whole number over 2⁶⁴, rounded down, and the estimates use that number.
    Source  [YB18]; [WHN+16]
    """

    def __init__(self, domain: int | Sequence[Any] | Domain, *, epsilon: Number) -> None:
        BitReports.__init__(self, domain, epsilon=epsilon)
        self.client()  # refuses what no client can be made for

    def client(self) -> SubsetClient:
        """Return the part for a person's device."""
        return SubsetClient(epsilon=self.epsilon, size=self.size)

    @property
    def weight(self) -> int:
        """How many values a report names."""
        return self.client().weight

    @property
    def loss(self) -> Loss:
        """What a report costs, exactly.

        Claim   For two values all sets with only the first are equally likely, as are those with only the second, with both
                and with none: under either value the four classes are the whole loss, and the same for every pair.
        """
        p, w, rest = self.p, self.weight, self.size - 1
        own, other = p * (rest + 1 - w) / rest, (1 - p) * w / rest
        both, none = p * (w - 1) / rest, (1 - p) * (rest - w) / rest
        same = tuple(mass for mass in (both, none) if mass)
        return Finite(p=(own, other, *same), q=(other, own, *same), adjacency=REPLACE_ONE)

    @property
    def p(self) -> Fraction:
        return Fraction(self.client().share, WHOLE)

    @property
    def q(self) -> Fraction:
        return support_elsewhere(self.p, self.weight, self.size)

    def draw(self, value: IntArray, source: Entropy, size: int | None = None) -> Bytes:
        """Draw a set for every person."""
        shape = value.shape if size is None else (size, *value.shape)
        truth = np.broadcast_to(value, shape).ravel()
        p, weight, width = self.p, self.weight, self.width
        out = np.empty((truth.size, width), np.uint8)
        step = max(1, _BYTES // width)
        for start in range(0, truth.size, step):
            part, rows = truth[start : start + step], out[start : start + step]
            kept = bernoulli(p, part.size, source)
            fill_sets(rows, part, weight - kept.astype(np.int64), self.size, source)
            set_bits(rows, part, kept)
        return out.reshape(*shape, width)

    def accept(self, reports: Any) -> tuple[Bytes, int]:
        """Return the reports that name exactly as many values as they must."""
        rows, bad = BitReports.accept(self, reports)
        return self.kept(rows, row_sums(rows) == self.weight, bad)


def fill_sets(packed: Bytes, left_out: IntArray, weights: IntArray, size: int, source: Entropy) -> None:
    """Fill contiguous rows of bits: row i with a uniform set of weights[i] of the values other than left_out[i].

    Claim   Exact. The other values begin as independent coins of one probability, so their law does not change when the
            values change places. A row with too many (or too few) then looks at a uniform value until it has found one to
            take out (or in), again and again until the number is right; which numbers these steps have of values in and out
            does not depend on which they are, so that no change of places matters still. A law on the sets of one size that
            no change of places alters is the uniform one. It ends with probability 1: there is always one to be found.
    """
    fill_bits(packed, _begin(int(weights.sum()) / len(weights), size - 1), size, source)
    set_bits(packed, left_out, np.zeros(len(left_out), np.bool_))
    bits = packed.reshape(-1)
    excess = row_sums(packed) - weights
    rows = np.flatnonzero(excess)
    missing, too_many, skip, base = np.abs(excess[rows]), excess[rows] > 0, left_out[rows], rows * packed.shape[1]
    while len(base):
        place = below(size - 1, len(base), source)
        place += place >= skip
        at, bit = base + (place >> 3), _BIT[place & 7]
        held = bits[at]
        found = (held & bit != 0) == too_many
        bits[at] = held ^ bit * found
        missing -= found
        still = np.flatnonzero(missing)
        if len(still) < len(base):
            missing, too_many, skip, base = missing[still], too_many[still], skip[still], base[still]


def _begin(weight: float, size: int) -> Fraction:
    """Return the probability of the coins that a row begins with. Any would be right: this one leaves few steps.

    One to take out is found in every size/weight-th step, one to take in sooner where sets are small: so it begins with less.
    """
    mean = weight / size
    if weight <= _FEW < size:  # drawing them one by one is quicker than a coin for every value
        return Fraction(0)
    if not 0 < mean < 1:
        return Fraction(round(mean))
    less = NormalDist().inv_cdf(1 - mean / 8) * (mean * (1 - mean) / size) ** 0.5
    return Fraction(round(4096 * min(max(mean - less, 0.0), 1.0)), 4096)


_BIT = (1 << np.arange(8)).astype(np.uint8)
