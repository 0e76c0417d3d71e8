"""The mean squared errors that the papers state, from ε and the sizes alone.

A report supports its sender's value with probability p and any other with q; then an estimated count of m among n has the
variance (m p(1 - p) + (n - m) q(1 - q))/(p - q)^2: [WBLJ17], theorem 2. The probabilities:

direct              p = e^ε/(e^ε + k - 1), q = 1/(e^ε + k - 1)                             [WBLJ17], section 4.1
unary, symmetric    p = e^(ε/2)/(e^(ε/2) + 1), q = 1 - p                                   [WBLJ17], section 4.3
unary, optimal      p = 1/2, q = 1/(e^ε + 1)                                               [WBLJ17], section 4.3
hashing             p = e^ε/(e^ε + g - 1), q = c p + (1 - c)(1 - p)/(g - 1), g near e^ε + 1 [WBLJ17], section 4.4
subset              p = d e^ε/(d e^ε + k - d), q = (p (d - 1) + (1 - p) d)/(k - 1)         [YB18], sections III, IV
rappor              as unary, optimal, with the ε of one report                            [EPK14]; [WBLJ17]

c is the chance that two values share a cell of the hash function: 1/g for an ideal one, and then q = 1/g; for the functions
floor(g ((a x + b) mod P)/P), P a prime just above k, a little less, by counting pairs. `ideal` is the error with 1/g.

Hadamard response [ASZ19] with B blocks: a person's report lies in the own block with chance (e^ε + 1)/(e^ε + 2B - 1), in a
given other one with 2/(e^ε + 2B - 1), and is a plus rather than a minus of the own row by (e^ε - 1)/(e^ε + 2B - 1); so an
estimated count of m, in whose block M people are, has variance (M (e^ε + 1) + 2 (n - M)) (e^ε + 2B - 1)/(e^ε - 1)^2 - m.
B is a power of two.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from local import tasks

if TYPE_CHECKING:
    from collections.abc import Sequence


def chances(protocol: str, epsilon: float, values: int) -> tuple[float, float] | None:
    """Return p and q; nothing where the paper gives no such pair."""
    odds = math.exp(epsilon)
    if protocol == tasks.DIRECT:
        return odds / (odds + values - 1), 1 / (odds + values - 1)
    if protocol in (tasks.OPTIMAL, tasks.RAPPOR):
        return 0.5, 1 / (odds + 1)
    if protocol == tasks.SYMMETRIC:
        p = math.sqrt(odds) / (math.sqrt(odds) + 1)
        return p, 1 - p
    if protocol == tasks.HASHING:
        prime = _prime(values)
        every = [_hashing(odds, cells, prime) for cells in range(2, prime + 1)]
        return min(every, key=lambda pair: _spread(*pair, 1 / values))
    if protocol == tasks.SUBSET:
        size = max(1, round(values / (odds + 1)))
        p = size * odds / (size * odds + values - size)
        return p, (p * (size - 1) + (1 - p) * size) / (values - 1)
    return None


def error(protocol: str, epsilon: float, counts: Sequence[int] | np.ndarray) -> float | None:
    """Return the mean squared error over all values of a histogram."""
    held = np.asarray(counts, float)
    pair = chances(protocol, epsilon, len(held))
    if pair is None:
        return _hadamard(epsilon, held) if protocol == tasks.HADAMARD else None
    return float(held.sum() * np.mean(_spread(*pair, held / held.sum())))


def ideal(protocol: str, epsilon: float, counts: Sequence[int] | np.ndarray) -> float | None:
    """Return the mean squared error of hashing by an ideal function; of other protocols what `error` returns."""
    if protocol != tasks.HASHING:
        return error(protocol, epsilon, counts)
    odds, held = math.exp(epsilon), np.asarray(counts, float)
    cells = round(odds) + 1
    return float(held.sum() * np.mean(_spread(odds / (odds + cells - 1), 1 / cells, held / held.sum())))


def _spread(p: float, q: float, share: np.ndarray | float) -> np.ndarray | float:
    """Return the variance of one report's estimate whether its sender holds a value, of which a share of people do."""
    return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2


def _hashing(odds: float, cells: int, prime: int) -> tuple[float, float]:
    p = odds / (odds + cells - 1)
    sizes = np.bincount(np.arange(prime) * cells // prime)
    together = float((sizes * (sizes - 1)).sum()) / (prime * (prime - 1))
    return p, together * p + (1 - together) * (1 - p) / (cells - 1)


def _prime(least: int) -> int:
    return next(n for n in range(max(2, least), 2 * least + 2) if all(n % d for d in range(2, math.isqrt(n) + 1)))


def _hadamard(epsilon: float, held: np.ndarray) -> float:
    """Return the error with as many blocks as are best where all have as many people; value v is in block v mod B."""
    odds, people, size = math.exp(epsilon), float(held.sum()), len(held)

    def spread(here: np.ndarray | float, blocks: int) -> np.ndarray | float:
        return (here * (odds + 1) + 2 * (people - here)) * (odds + 2 * blocks - 1) / (odds - 1) ** 2

    blocks = min((1 << power for power in range(size.bit_length())), key=lambda one: spread(people / one, one))
    block = np.arange(size) % blocks
    here = np.bincount(block, held, minlength=blocks)[block]
    return float(np.mean(spread(here, blocks) - held))
