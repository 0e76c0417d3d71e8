"""Subset selection: a set of a fixed number of values, more often one that holds the true value."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb

from .base import Client, code_of, size_of
from .chance import WHOLE, coin, epsilon_of, exp_below, share_of_truth, subset
from .refusal import require

LARGEST_SUBSET = 1 << 24
"""The most values: a report has a bit for each."""


class SubsetClient(Client):
    """A set of `weight` of the `size` values; with probability p one that holds the true value, else one that does not.

    All sets that hold it are equally likely, and all that do not. A report is ⌈size/8⌉ bytes: value v is bit v mod 8, from
    the lowest, of byte v div 8; the rest is 0.

    Claim   ε-private: a set with the true value is (p/(1 − p)) (size − weight)/weight ≤ e^ε times as likely as one without,
            for C(size − 1, weight) = C(size − 1, weight − 1) (size − weight)/weight; by `share_of_truth`.
    Source  [YB18]; [WHN+16]
    """

    kind = "subset"
    __slots__ = ("epsilon", "share", "size", "weight")

    def __init__(self, *, epsilon: object, size: object) -> None:
        self.epsilon = epsilon_of(epsilon)
        self.size = size_of(size)
        require(self.size <= LARGEST_SUBSET, "size", "at most 2^24 for a subset client", size)
        self.weight = best_weight(self.epsilon, self.size)
        self.share = share_of_truth(self.epsilon, truths=self.weight, others=self.size - self.weight)

    @property
    def width(self) -> int:
        """How many bytes a report has."""
        return (self.size + 7) // 8

    def report(self, value: int) -> bytes:
        """Return what to send. A set without the value is drawn whether it is needed or not."""
        code = code_of(value, self.size)
        kept, chosen, place = coin(self.share), subset(self.weight, self.size - 1), subset(1, self.weight)[0]
        chosen = [other + (other >= code) for other in chosen]
        if kept:  # in the place of a uniform one of the set: what stays is a uniform set of one less
            chosen[place] = code
        bits = bytearray(self.width)
        for member in chosen:
            bits[member >> 3] |= 1 << (member & 7)
        return bytes(bits)

    def law(self, value: int) -> dict[bytes, Fraction]:
        """Return the probability of every report, exactly."""
        code = code_of(value, self.size)
        truth = Fraction(self.share, WHOLE) / comb(self.size - 1, self.weight - 1)
        lie = Fraction(WHOLE - self.share, WHOLE) / comb(self.size - 1, self.weight)
        return {
            sum(1 << place for place in chosen).to_bytes(self.width, "little"): truth if code in chosen else lie
            for chosen in combinations(range(self.size), self.weight)
        }

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "size": self.size}


@lru_cache(maxsize=256)
def best_weight(epsilon: Fraction, size: int) -> int:
    """Return how many values a report names: the number near size/(e^ε + 1) with the least variance, averaged over values."""
    near = int(size / (exp_below(epsilon) + 1))
    candidates = range(max(1, near - 2), min(size - 1, near + 3) + 1)
    return min(candidates, key=lambda weight: _variance(epsilon, size, weight))


def _variance(epsilon: Fraction, size: int, weight: int) -> Fraction:
    p = Fraction(share_of_truth(epsilon, truths=weight, others=size - weight), WHOLE)
    return average_variance(p, support_elsewhere(p, weight, size), size)


def support_elsewhere(p: Fraction, weight: int, size: int) -> Fraction:
    """Return q, how likely a set holds a given value that is not the true one."""
    return (weight - p) / (size - 1)


def average_variance(p: Fraction, q: Fraction, size: int) -> Fraction:
    """Return the variance of a report that supports its own value with p and any other with q, averaged over the values.

    The shares of the values add up to 1, so that it is the variance at a share of 1/size, whatever the shares are.
    """
    if p <= q:
        return Fraction(1 << 1024)
    return (p * (1 - p) + (size - 1) * q * (1 - q)) / (size * (p - q) ** 2)
