"""Hadamard response: a place of a table of signs, more often where the true value's row has a plus."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from .base import Client, code_of, size_of
from .chance import WHOLE, below, coin, epsilon_of, share_of_truth


class HadamardClient(Client):
    """A place of one of `blocks` Hadamard matrices of `side` columns: in the plus half of the value's row with probability t.

    Value v has row 1 + v div blocks of block v mod blocks (row 0 is all plus and is not used). A row has side/2 pluses; with
    probability t the report is one of these, else one of all the other places of all blocks, each uniformly. Place y is
    column y mod side of block y div side; the sign of row r in column c is that of (−1)^(number of common bits of r and c).

    Claim   ε-private: a plus of the own row is at most e^ε times as likely as any other place, by `share_of_truth`.
    Source  [ASZ19]
    """

    kind = "hadamard"
    __slots__ = ("blocks", "epsilon", "share", "side", "size")

    def __init__(self, *, epsilon: object, size: object) -> None:
        self.epsilon = epsilon_of(epsilon)
        self.size = size_of(size)
        self.blocks = best_blocks(self.epsilon, self.size)
        self.side = side_of(self.size, self.blocks)
        self.share = share_of_plus(self.epsilon, self.blocks, self.side)

    @property
    def places(self) -> int:
        """How many different reports there are."""
        return self.blocks * self.side

    def report(self, value: int) -> int:
        """Return what to send. A place outside is drawn whether it is needed or not."""
        code = code_of(value, self.size)
        row, start = 1 + code // self.blocks, code % self.blocks * self.side
        half = self.side >> 1
        kept, inside, outside = coin(self.share), below(half), below(self.places - half)
        if kept:
            return start + column(row, inside, 0)
        if outside < half:
            return start + column(row, outside, 1)
        elsewhere = outside - half
        return elsewhere + self.side * (elsewhere >= start)

    def law(self, value: int) -> dict[int, Fraction]:
        """Return the probability of every report, exactly."""
        code = code_of(value, self.size)
        row, block = 1 + code // self.blocks, code % self.blocks
        half = self.side >> 1
        plus, other = Fraction(self.share, WHOLE * half), Fraction(WHOLE - self.share, WHOLE * (self.places - half))
        return {
            place: plus if place // self.side == block and not (place % self.side & row).bit_count() & 1 else other
            for place in range(self.places)
        }

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "size": self.size}


def column(row: int, number: int, sign: int) -> int:
    """Return the `number`-th column in which the row has a plus (sign 0) or a minus (sign 1).

    Claim   One to one from [0, side/2): the number's bits go around the place of the row's lowest 1, and the bit there is
            what makes the number of common bits even or odd.
    """
    lowest = row & -row
    low = number & (lowest - 1)
    spread = ((number ^ low) << 1) | low
    return spread | lowest if ((spread & row).bit_count() & 1) != sign else spread


def side_of(size: int, blocks: int) -> int:
    """Return the columns of a block: the least power of two above the number of values that share it."""
    return 1 << (-(-size // blocks)).bit_length()


def share_of_plus(epsilon: Fraction, blocks: int, side: int) -> int:
    """Return the probability of the own row's pluses, in shares of 2⁻⁶⁴."""
    half = side >> 1
    return share_of_truth(epsilon, truths=half, others=blocks * side - half)


def gain(share: int, blocks: int) -> Fraction:
    """Return how much likelier a report is at a plus than at a minus of its sender's row, t − (1 − t)/(2 blocks − 1)."""
    t = Fraction(share, WHOLE)
    return t - (1 - t) / (2 * blocks - 1)


@lru_cache(maxsize=256)
def best_blocks(epsilon: Fraction, size: int) -> int:
    """Return the power of two, at most the size, with the least variance where all blocks have as many people."""
    best, least = 1, None
    blocks = 1
    while blocks <= size:
        lift = gain(share_of_plus(epsilon, blocks, side_of(size, blocks)), blocks)
        variance = 1 / (blocks * lift**2) if lift > 0 else None
        if variance is not None and (least is None or variance < least):
            best, least = blocks, variance
        blocks <<= 1
    return best
