"""Local hashing, for many people: counted on circles, without hashing every value for every report."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.local.client.chance import WHOLE
from curador.local.client.hashing import HashingClient, collision, support_elsewhere
from curador.local.collector import rows_of_integers
from curador.local.protocol import Supporting
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import Finite
from curador.randomness.choice import below, bernoulli

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.privacy.loss import Loss
    from curador.randomness.entropy import BoolArray, Entropy, IntArray

_BLOCK = 1 << 16
"""Pairs of a report and a value that are hashed together."""

_CIRCLES = 1 << 19
"""Points of the circles that are held together."""

_WHOLE = 1 << 22
"""Points of all circles up to which they are held at once, and reports need no order."""

_CALLS = 2_000
"""What a circle costs besides its points, in points."""


@dataclass(frozen=True, slots=True, init=False)
class Hashing(Supporting):
    """Each person hashes the own value to one of g ≈ e^ε + 1 cells and reports the function and a randomized cell.

    As accurate as optimal unary encoding, with a report of three whole numbers (a, b, z), one a column.

    Claim   ε-private; the probability of the true cell is a whole number over 2⁶⁴, rounded down, and the estimates use that
            number and the exact probability of a collision.
    Source  [WBLJ17]
    """

    columns: ClassVar = (("a", "int64"), ("b", "int64"), ("cell", "int64"))

    def client(self) -> HashingClient:
        """Return the part for a person's device."""
        return HashingClient(epsilon=self.epsilon, size=self.size)

    @property
    def prime(self) -> int:
        """The numbers that are hashed are those below it."""
        return self.client().prime

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.client().cells

    @property
    def loss(self) -> Loss:
        """What a report costs, exactly.

        Claim   Two values share a cell with the same probability κ, whichever they are, and then have one law; else the
                report is in the cell of the first, of the second or in another, given the function. So these classes are the
                whole loss, of every pair; at most that of randomized response on the cells.
        """
        client = self.client()
        apart, p = 1 - collision(client.prime, client.cells), self.p
        own, other = apart * p, apart * (1 - p) / (client.cells - 1)
        same = tuple(mass for mass in (1 - own - other,) if mass)
        return Finite(p=(own, other, *same), q=(other, own, *same), adjacency=REPLACE_ONE)

    @property
    def p(self) -> Fraction:
        return Fraction(self.client().share, WHOLE)

    @property
    def q(self) -> Fraction:
        client = self.client()
        return support_elsewhere(Fraction(client.share, WHOLE), client.prime, client.cells)

    @property
    def report_bits(self) -> int:
        """How many bits a report needs."""
        client = self.client()
        return 2 * (client.prime - 1).bit_length() + (client.cells - 1).bit_length()

    def draw(self, value: IntArray, source: Entropy, size: int | None = None) -> IntArray:
        """Draw a function for each person, and keep or change the cell of the value."""
        shape = value.shape if size is None else (size, *value.shape)
        truth = np.broadcast_to(value, shape).ravel()
        client = self.client()
        out = np.empty((truth.size, 3), np.int64)
        out[:, 0] = below(client.prime - 1, truth.size, source) + 1
        out[:, 1] = below(client.prime, truth.size, source)
        point = (out[:, 0] * truth + out[:, 1]) % client.prime
        cell = point * client.cells // client.prime
        other = below(client.cells - 1, truth.size, source)
        other += other >= cell
        out[:, 2] = np.where(bernoulli(self.p, truth.size, source), cell, other)
        return out.reshape(*shape, 3)

    def accept(self, reports: Any) -> tuple[IntArray, int]:
        """Return the reports that name a function and a cell."""
        client = self.client()
        return rows_of_integers(reports, (1, 0, 0), (client.prime, client.prime, client.cells))

    def speaks_for(self, reports: IntArray, code: int) -> BoolArray:
        """A report speaks for the values that its function puts into the cell it names."""
        client = self.client()
        return (reports[:, 0] * code + reports[:, 1]) % client.prime * client.cells // client.prime == reports[:, 2]

    def zero(self) -> IntArray:
        """No report that supports any value."""
        return np.zeros(self.size, np.int64)

    def tally(self, reports: IntArray) -> IntArray:
        """Count the reports that support each value: over circles where there are many reports, else one by one."""
        client = self.client()
        circles = client.prime * (client.prime + self.size + _CALLS)
        if circles < len(reports) * self.size:
            return supports_on_circles(reports, self.size, client.prime, client.cells)
        return supports_of(reports, np.arange(self.size), prime=client.prime, cells=client.cells)

    def supports(self, statistic: IntArray) -> IntArray:
        """A report supports the values whose cell it names."""
        return statistic

    def supports_of(self, reports: IntArray, codes: IntArray) -> IntArray:
        """Return how many well-formed reports support each of some codes: for domains too large to count whole."""
        client = self.client()
        return supports_of(reports, codes, prime=client.prime, cells=client.cells)


def borders(cell: IntArray, prime: int, cells: int) -> IntArray:
    """Return where each of some cells begins: cell z holds the u with z ≤ u cells/prime < z + 1."""
    return -(-cell * prime // cells)


def supports_of(reports: IntArray, codes: IntArray, *, prime: int, cells: int) -> IntArray:
    """Return how many reports support each code, by hashing every code for every report."""
    a, b = reports[:, :1].astype(np.uint64), reports[:, 1:2].astype(np.uint64)
    begin, end = (borders(reports[:, 2:] + after, prime, cells).astype(np.uint64) for after in (0, 1))
    length = end - begin
    values = codes.astype(np.uint64)
    total = np.zeros(len(codes), np.int64)
    wide = min(len(values), _BLOCK)
    step = max(1, _BLOCK // wide)
    modulus = np.uint64(prime)
    for left in range(0, len(values), wide):
        part = values[left : left + wide]
        for start in range(0, len(reports), step):
            stop = start + step
            point = a[start:stop] * part
            point += b[start:stop]
            point -= point // modulus * modulus
            point -= begin[start:stop]  # below the begin it wraps around to more than any length
            total[left : left + wide] += np.count_nonzero(point < length[start:stop], axis=0)
    return total


def supports_on_circles(reports: IntArray, size: int, prime: int, cells: int) -> IntArray:
    """Return how many reports support each of [0, size).

    Claim   A report (a, b, z) supports x where a x lies in the arc of z turned back by b. All arcs with one a are added up on
            one circle, as a step up where an arc begins and one down where it ends; x then reads the circle at a x mod P.
    """
    rows = prime if prime * prime <= _WHOLE else max(1, _CIRCLES // prime)
    ordered = reports if rows == prime else reports[np.argsort(reports[:, 0], kind="stable")]  # a block's reports together
    a, b, z = ordered[:, 0], ordered[:, 1], ordered[:, 2]
    up, down = (_turn_places(borders(z + after, prime, cells) - b, prime) for after in (0, 1))
    values = np.arange(size)
    total = np.zeros(size, np.int64)
    for first in range(1, prime, rows):
        last = min(first + rows, prime)
        low, high = (0, len(a)) if rows == prime else np.searchsorted(a, (first, last))
        circles = _circles(a[low:high] - first, up[low:high], down[low:high], last - first, prime)
        point = values * first % prime
        for circle in circles:
            total += circle[point]
            point += values
            point -= prime * (point >= prime)
    return total


def _turn_places(place: IntArray, prime: int) -> IntArray:
    """Return the places, from −P to P, on the circle."""
    place += prime * (place < 0)
    place -= prime * (place >= prime)
    return place


def _circles(row: IntArray, up: IntArray, down: IntArray, rows: int, prime: int) -> NDArray[np.int64]:
    """Return how many arcs lie over each point of each circle."""
    steps = np.bincount(row * prime + up, minlength=rows * prime) - np.bincount(row * prime + down, minlength=rows * prime)
    steps = steps.reshape(rows, prime)
    steps[:, 0] += np.bincount(row[down <= up], minlength=rows)  # arcs that go over the end of the circle
    return np.cumsum(steps, axis=1)
