"""Local hashing: the value goes to one of few cells by a hash function of the person's own; the cell is randomized."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b

from .base import Client, code_of, size_of
from .chance import WHOLE, below, coin, epsilon_of, exp_below, share_of_truth
from .subset import average_variance

OPEN_SIZE = (1 << 31) - 1
"""The size, itself a prime, for values of an open domain: their fingerprints."""


class HashingClient(Client):
    """The cell z of the value under h(x) = ⌊g ((a x + b) mod P)/P⌋, a and b drawn afresh; then randomized response on z.

    P is the least prime from `size` on, `cells` = g; a is uniform in 1 … P − 1, b in 0 … P − 1. The report is (a, b, z).

    Claim   ε-private: a and b do not depend on the value, and given them z is randomized response on g cells, whose odds
            γ (g − 1)/(1 − γ) are at most e^ε by `share_of_truth`.
    Source  [WBLJ17]; [CW79] for the functions.
    """

    kind = "hashing"
    __slots__ = ("cells", "epsilon", "prime", "share", "size")

    def __init__(self, *, epsilon: object, size: object) -> None:
        self.epsilon = epsilon_of(epsilon)
        self.size = size_of(size)
        self.prime = prime_from(self.size)
        self.cells = best_cells(self.epsilon, self.size)
        self.share = share_of_truth(self.epsilon, truths=1, others=self.cells - 1)

    def report(self, value: int) -> tuple[int, int, int]:
        """Return what to send. The other cell is drawn whether it is needed or not."""
        code = code_of(value, self.size)
        a, b = 1 + below(self.prime - 1), below(self.prime)
        kept, other = coin(self.share), below(self.cells - 1)
        cell = self.cell(a, b, code)
        return a, b, cell if kept else other + (other >= cell)

    def cell(self, a: int, b: int, code: int) -> int:
        """Return the cell of a value under the function of a and b."""
        return (a * code + b) % self.prime * self.cells // self.prime

    def law(self, value: int) -> dict[tuple[int, int, int], Fraction]:
        """Return the probability of every report, exactly: P (P − 1) g of them."""
        code = code_of(value, self.size)
        functions = self.prime * (self.prime - 1)
        truth = Fraction(self.share, WHOLE * functions)
        lie = Fraction(WHOLE - self.share, WHOLE * (self.cells - 1) * functions)
        return {
            (a, b, z): truth if z == self.cell(a, b, code) else lie
            for a in range(1, self.prime)
            for b in range(self.prime)
            for z in range(self.cells)
        }

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {"epsilon": str(self.epsilon), "size": self.size}


def fingerprint(item: bytes) -> int:
    """Return the code, below OPEN_SIZE, of an item of an open domain. Two items share one with probability 2⁻³¹."""
    return int.from_bytes(blake2b(item, digest_size=16).digest(), "little") % OPEN_SIZE


def collision(prime: int, cells: int) -> Fraction:
    """Return how likely two different values share a cell.

    Claim   For x ≠ y and a ≠ 0 the pair (a x + b, a y + b) mod P is uniform over the P(P − 1) pairs of different numbers, for
            a and b follow from it; cells hold s numbers each, ⌊P/g⌋ or one more, so that Σ s(s − 1)/(P(P − 1)) is exact.
    """
    small, larger = divmod(prime, cells)
    pairs = larger * (small + 1) * small + (cells - larger) * small * (small - 1)
    return Fraction(pairs, prime * (prime - 1))


def support_elsewhere(p: Fraction, prime: int, cells: int) -> Fraction:
    """Return q, how likely a report's cell is that of a given value which is not the sender's.

    Claim   In the sender's cell with probability κ, `collision`: then it is reported with p; else it is one of the g − 1
            other cells, of which each is reported with (1 − p)/(g − 1).
    """
    together = collision(prime, cells)
    return together * p + (1 - together) * (1 - p) / (cells - 1)


@lru_cache(maxsize=256)
def best_cells(epsilon: Fraction, size: int) -> int:
    """Return the number of cells near e^ε + 1 with the least variance, averaged over values; never more than the prime.

    Weighed are numbers close by, and those that cut the prime into cells of m and hardly any of m ± 1: where a cell holds few
    numbers these are better.
    """
    prime = prime_from(size)
    near = min(int(exp_below(epsilon)) + 1, prime)
    each = prime // near
    even = {prime // m + more for m in range(max(1, each - 2), each + 4) for more in (0, 1)}
    candidates = {*range(2, 9), *range(near - 8, near + 9), *even}
    usable = sorted(cells for cells in candidates if 2 <= cells <= prime)
    return min(usable, key=lambda cells: _variance(epsilon, prime, cells, size))


def _variance(epsilon: Fraction, prime: int, cells: int, size: int) -> Fraction:
    p = Fraction(share_of_truth(epsilon, truths=1, others=cells - 1), WHOLE)
    return average_variance(p, support_elsewhere(p, prime, cells), size)


@lru_cache(maxsize=256)
def prime_from(least: int) -> int:
    """Return the smallest prime that is at least this, up to 2³¹ + 11."""
    number = least
    while not is_prime(number):
        number += 1
    return number


def is_prime(number: int) -> bool:
    """Return whether a number below 3,215,031,751 is prime. Source: [PSW80], that four bases suffice below it."""
    if number < 8 or number % 2 == 0:
        return number in {2, 3, 5, 7}
    twos = ((number - 1) & (1 - number)).bit_length() - 1
    for base in (2, 3, 5, 7):
        power = pow(base, number - 1 >> twos, number)
        passed = power in {1, number - 1}
        for _ in range(twos - 1):
            power = power * power % number
            passed = passed or power == number - 1
        if not passed:
            return False
    return True
