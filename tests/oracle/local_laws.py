"""What the papers say of local estimators, written down anew from ε and the sizes alone; and many runs of one at once.

A report supports its sender's value with probability p and any other with q; an estimated count of m among n has variance
(m p(1 − p) + (n − m) q(1 − q))/(p − q)² = n q(1 − q)/(p − q)² + m (1 − p − q)/(p − q): [WBLJ17], theorem 2.

direct      p = e^ε/(e^ε + k − 1), q = 1/(e^ε + k − 1)                                      [KBR16]; [WBLJ17], 4.1
optimal     p = 1/2, q = 1/(e^ε + 1)                                                        [WBLJ17], 4.3
symmetric   p = e^(ε/2)/(e^(ε/2) + 1), q = 1 − p                                            [EPK14]; [WBLJ17], 4.3
hashing     p = e^ε/(e^ε + g − 1), q = κp + (1 − κ)(1 − p)/(g − 1)                          [WBLJ17], 4.4
subset      p = w e^ε/(w e^ε + k − w), q = (p (w − 1) + (1 − p) w)/(k − 1), w ≈ k/(e^ε + 1) [YB18]
rappor      as optimal, with the ε of one report                                            [EPK14]; [WBLJ17]

κ is the chance that two values share a cell: 1/g for an ideal hash function, and then q = 1/g; for ⌊g((ax + b) mod P)/P⌋ with
a ≠ 0 a little less, by counting pairs. The number of cells g is the one with the least variance, near e^ε + 1.

hadamard    (M (e^ε + 1) + 2(n − M)) (e^ε + 2B − 1)/(e^ε − 1)² − m, where the value's block of B holds M people: [ASZ19]

Means of numbers in [−1, 1], one report on x:

duchi       C² − x², C = (e^ε + 1)/(e^ε − 1)                                                [DJW18]
laplace     8/ε²                                                                            [DMNS06]
piecewise   x²/(s − 1) + (s + 3)/(3(s − 1)²), s = e^(ε/2)                                   [WXY+19], lemma 1
hybrid      α piecewise + (1 − α) duchi, α = 1 − e^(−ε/2)                                   [WXY+19], section III-C
"""

import math
from dataclasses import dataclass

import numpy as np

from curador.local.protocol import Supporting


def chances(method, epsilon, size):
    """p and q."""
    odds = math.exp(epsilon)
    if method == "direct":
        return odds / (odds + size - 1), 1 / (odds + size - 1)
    if method in {"optimal_unary", "rappor"}:
        return 0.5, 1 / (odds + 1)
    if method == "symmetric_unary":
        p = math.sqrt(odds) / (math.sqrt(odds) + 1)
        return p, 1 - p
    if method == "subset":
        weight = max(1, round(size / (odds + 1)))
        p = weight * odds / (weight * odds + size - weight)
        return p, (p * (weight - 1) + (1 - p) * weight) / (size - 1)
    prime = _prime(size)
    return min((_hashing(odds, cells, prime) for cells in range(2, prime + 1)), key=lambda pair: _average(*pair, size))


def _hashing(odds, cells, prime):
    p = odds / (odds + cells - 1)
    sizes = np.bincount(np.arange(prime) * cells // prime)
    together = float((sizes * (sizes - 1)).sum()) / (prime * (prime - 1))
    return p, together * p + (1 - together) * (1 - p) / (cells - 1)


def _prime(least):
    return next(n for n in range(least, 2 * least + 2) if n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1)))


def _average(p, q, size):
    return (p * (1 - p) / size + (1 - 1 / size) * q * (1 - q)) / (p - q) ** 2


def variances(method, epsilon, counts):
    """The published variance of every estimated count."""
    held, people = np.asarray(counts, float), float(np.sum(counts))
    if method == "hadamard":
        return _hadamard(math.exp(epsilon), held, people)
    p, q = chances(method, epsilon, len(held))
    return (held * p * (1 - p) + (people - held) * q * (1 - q)) / (p - q) ** 2


def _hadamard(odds, held, people):
    def spread(here, blocks):
        return (here * (odds + 1) + 2 * (people - here)) * (odds + 2 * blocks - 1) / (odds - 1) ** 2

    blocks = min((1 << power for power in range(len(held).bit_length())), key=lambda one: spread(people / one, one))
    block = np.arange(len(held)) % blocks
    return spread(np.bincount(block, held, minlength=blocks)[block], blocks) - held


def mean_variance(method, epsilon, x):
    """The published variance of one report's estimate of a number in [−1, 1]."""
    odds, root = math.exp(epsilon), math.exp(epsilon / 2)
    duchi = ((odds + 1) / (odds - 1)) ** 2 - x**2
    piecewise = x**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    mixed = (1 - 1 / root) * piecewise + duchi / root
    return {"duchi": duchi, "laplace": 8 / epsilon**2 + 0 * x, "piecewise": piecewise, "hybrid": mixed}[method]


@dataclass(frozen=True)
class Runs:
    """Estimates of one histogram, one row a run."""

    truth: np.ndarray
    counts: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def errors(self):
        return self.counts - self.truth

    def off(self, variance):
        """How far the mean over runs is from the truth, in standard errors of the given variance of one run."""
        return self.errors.mean(axis=0) / np.sqrt(variance / len(self.counts))

    def ratio(self, variance):
        """The mean squared error over all cells and runs, over the given one."""
        return float((self.errors**2).mean() / np.mean(variance))

    @property
    def covered(self):
        """The part of the intervals that hold the truth."""
        return float(((self.low <= self.truth) & (self.truth <= self.high)).mean())


def runs_of(protocol, counts, times, *, estimator=None, at_once=500):
    """Privatise everybody `times` times and estimate every run: by the protocol, or by another that reads its reports.

    Runs are drawn together and tallied one by one; a statistic of supports is estimated for all runs in one call.
    """
    reader = protocol if estimator is None else estimator
    people = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    found = []
    for begin in range(0, times, at_once):
        number = min(at_once, times - begin)
        reports = protocol.privatise(np.tile(people, number))
        found.append(estimated(reader, [reader.tally(part) for part in np.split(reports, number)], len(people)))
    return Runs(np.asarray(counts, float), *(np.concatenate([one[name] for one in found]) for name in PARTS))


PARTS = ("counts", "low", "high")


def estimated(reader, tallies, people):
    """Estimates with one row a run. Where the statistic is the supports themselves, rows of them are estimated at once."""
    if isinstance(reader, Supporting):
        whole = reader.estimated(np.stack(tallies), people, 0, "0.95")
        return {name: getattr(whole, name) for name in PARTS}
    each = [reader.estimated(tally, people, 0, "0.95") for tally in tallies]
    return {name: np.stack([getattr(one, name) for one in each]) for name in PARTS}
