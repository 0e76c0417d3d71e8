"""The search for frequent prefixes in a table of counts by level, hash function and cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curador.local.client.hashing import OPEN_SIZE, collision
from curador.local.client.prefix import PrefixClient, function_of
from curador.local.estimate import Estimate, FloatArray, normal_quantile, support_interval
from curador.numerics.exact import Number, open_probability

if TYPE_CHECKING:
    from curador.local.hitters import HeavyHitters
    from curador.randomness.entropy import IntArray

Unsigned = NDArray[np.uint64]

_BLOCK = 1 << 17
_FALSE_PREFIXES = 1.0
"""How many prefixes of a level before the last may go on for nothing, on average: the next level ends them."""


@dataclass(frozen=True, slots=True)
class Level:
    """What happened at one length of prefixes: `threshold` is the estimated number of people from which one went on."""

    bits: int
    reports: int
    candidates: int
    threshold: float
    kept: int


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The frequent values, largest estimate first, and how the search went.

    Estimates are unbiased for a value that one names beforehand; those that are shown because they are large are a little
    too large, the more so the nearer they are to the threshold. Values below the last threshold are not here.
    """

    values: tuple[int | str | None, ...]
    counts: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    reports: int
    rejected: int
    confidence: Any
    levels: tuple[Level, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary a value."""
        return self._estimate().rows

    def top(self, number: int = 10) -> list[dict[str, Any]]:
        """The values with the largest estimates, largest first."""
        return self.rows[:number]

    def _estimate(self) -> Estimate:
        parts = (self.counts, self.standard_errors, self.low, self.high)
        return Estimate(self.values, *parts, self.reports, self.rejected, self.confidence, "HeavyHitters")

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table."""
        return self._estimate().to_arrow()

    def to_pandas(self) -> Any:
        """Return a pandas data frame."""
        return self._estimate().to_pandas()

    def to_polars(self) -> Any:
        """Return a Polars data frame."""
        return self._estimate().to_polars()

    def __str__(self) -> str:
        ended = next((level for level in self.levels if not level.kept), self.levels[-1])
        least = f"a value needs about {ended.threshold:,.0f} people to stand out"
        return (
            f"{self._estimate()}\n  {least}" if self.values else f"HeavyHitters: {self.reports:,} reports; {least}: none does"
        )


def search_prefixes(protocol: HeavyHitters, table: IntArray, reports: int, rejected: int, confidence: Number) -> Found:
    """Return the values whose prefixes stand out at every level.

    Claim   At every level a prefix that nobody holds passes with probability at most (the false ones allowed)/(candidates),
            by the exact tail of the binomial number of reports in its cells. What the prefixes that do stand out add to the
            cells of others is known, for the functions are, and is taken off first; the limit is widened for what is left of
            it, by its estimated variance. So on average at most about `false_values` values of the table are held by nobody.
    Source  [WLJ21]
    """
    level = open_probability(confidence, "confidence")
    client, told = protocol.client(), []
    odds = _Odds(float(protocol.p), float(protocol.q), client.cells, client.hashes)
    prefixes, before = [0], 0
    found = _Passed([], np.zeros(0), np.zeros((0, client.hashes), np.int64), 0, math.inf, 0.0)
    for place, bits in enumerate(client.lengths):
        last = bits == protocol.bits
        grown = [prefix << bits - before | tail for prefix in prefixes for tail in range(1 << bits - before)]
        if last and client.text:
            grown = [code for code in grown if client.value(code) is not None]
        false = float(protocol.false_values) if last else _FALSE_PREFIXES
        found = _pass_level(client, odds, place, grown, table[place], false, protocol.most)
        prefixes, before = found.prefixes, bits
        limit = odds.people(found.limit, found.people) * reports / max(found.people, 1)
        told.append(Level(bits, found.people, len(grown), limit, len(prefixes)))
    return _estimate_found(protocol, odds, found, (reports, rejected, level, tuple(told)))


@dataclass(frozen=True, slots=True)
class _Passed:
    """The prefixes that go on from a level of so many people, with supports and cells, and the limit that they passed.

    `surplus` is the variance of a support that comes from holders of values which are not among them.
    """

    prefixes: list[int]
    supports: FloatArray
    cells: IntArray
    people: int
    limit: float
    surplus: float


def _pass_level(
    client: PrefixClient, odds: _Odds, place: int, grown: list[int], table: IntArray, false: float, most: int
) -> _Passed:
    people = int(table.sum())
    supports = supports_of_prefixes(client, place, grown, table)
    if not people or not grown:
        return _Passed([], supports[:0], np.zeros((0, client.hashes), np.int64), people, math.inf, 0.0)
    least = threshold(people, odds.q, len(grown), false)
    mean = people * odds.q
    order = np.argsort(-supports, kind="stable")
    order = order[: min(4 * most, int(np.count_nonzero(supports >= (least + mean) / 2)))]
    near, cells = supports[order], _cells(client, place, [grown[one] for one in order.tolist()])
    surplus = odds.surplus(table)
    certain = min(int(np.count_nonzero(near >= odds.widened(least, people, surplus))), most)
    held = odds.holders(near[:certain], cells[:certain], people)
    rest = near[certain:] - odds.influence(cells[certain:], cells[:certain]) @ held  # without those who are certain
    surplus = max(surplus - odds.noise_of(float(held @ held)), 0.0)
    limit = odds.widened(least, people, surplus)
    kept = np.concatenate([np.arange(certain), certain + np.flatnonzero(rest >= limit)])[:most]
    while len(kept):  # those who owed it to sharing cells with a larger one
        alone = mean + (odds.p - odds.q) * odds.holders(near[kept], cells[kept], people)
        if (alone >= limit).all():
            break
        kept = kept[alone >= limit]
    return _Passed([grown[one] for one in order[kept].tolist()], near[kept], cells[kept], people, limit, surplus)


@dataclass(frozen=True, slots=True)
class _Odds:
    """A holder's report has the cell of a value with probability p, another's with q; g cells, so many functions."""

    p: float
    q: float
    cells: int
    hashes: int

    def people(self, support: Any, reports: int) -> Any:
        """How many holders a support stands for."""
        return (support - reports * self.q) / (self.p - self.q)

    def noise_of(self, squares: float) -> float:
        """The variance that a value's support has from holders of others who share its cells under more functions than usual.

        κ(1 − κ)/hashes is the variance of the share of the functions under which two values collide.
        """
        kappa = float(collision(OPEN_SIZE, self.cells))
        other = (1.0 - self.p) / (self.cells - 1)
        return kappa * (1.0 - kappa) * (self.p - other) ** 2 * squares / self.hashes

    def surplus(self, table: IntArray) -> float:
        """The same variance, of all holders, from the counts of a level themselves.

        Under a function the cells of N reports differ from N/g by N(1 − 1/g) in squares where nobody stands out; holders of
        one value add the square of their number times (p − r)²(1 − 1/g), and those of two values nothing more on average.
        """
        totals = table.sum(axis=1, keepdims=True)
        squares = float(((table - totals / self.cells) ** 2).sum()) / (1.0 - 1.0 / self.cells)
        kappa = float(collision(OPEN_SIZE, self.cells))
        return max(kappa * (1.0 - kappa) * (squares - float(totals.sum())), 0.0)

    def widened(self, limit: float, reports: int, surplus: float) -> float:
        """The limit, further from the mean where holders of other values add to its cells with this variance."""
        mean = reports * self.q
        return mean + (limit - mean) * math.sqrt(1.0 + surplus / (mean * (1.0 - self.q)))

    def influence(self, cells: IntArray, others: IntArray) -> FloatArray:
        """How much a holder of each other value (columns) adds to the support of each value (rows), beyond q.

        c p + (1 − c) r − q, c the share of the functions under which both share a cell and r = (1 − p)/(g − 1).
        """
        together = np.zeros((len(cells), len(others)))
        for column, row in enumerate(others):
            together[:, column] = (cells == row).mean(axis=1)
        other = (1.0 - self.p) / (self.cells - 1)
        return together * (self.p - other) + other - self.q

    def holders(self, supports: FloatArray, cells: IntArray, reports: int) -> FloatArray:
        """How many people hold each value, all together: those who share cells do not count for each other."""
        if not len(supports):
            return np.zeros(0)
        matrix, more = self.influence(cells, cells), supports - reports * self.q
        try:
            found = np.linalg.solve(matrix, more)
        except np.linalg.LinAlgError:  # two that no function tells apart: half of the holders each
            found = np.linalg.lstsq(matrix, more)[0]
        return found.astype(np.float64)


def threshold(reports: int, q: float, candidates: int, false: float) -> int:
    """Return the least k that a binomial number, of n reports with chance q, reaches at most false/candidates often."""
    from scipy.special import betainc

    goal = min(false / candidates, 0.5)
    low, high = 0, reports + 1  # P[X ≥ low] > goal ≥ P[X ≥ high]
    while high - low > 1:
        middle = (low + high) // 2
        if float(betainc(middle, reports - middle + 1, q)) > goal:
            low = middle
        else:
            high = middle
    return high


def _estimate_found(
    protocol: HeavyHitters, odds: _Odds, last: _Passed, rest: tuple[int, int, Any, tuple[Level, ...]]
) -> Found:
    """Estimate the holders of the values found in the last level, and from its share of the people those of all."""
    reports, rejected, level, told = rest
    if not last.prefixes:
        none = np.zeros(0)
        return Found((), none, none, none, none, reports, rejected, level, told)
    people, spread = last.people, odds.p - odds.q
    held = odds.holders(last.supports, last.cells, people)
    inside = np.clip(held, 0.0, people)
    inner = inside * odds.p * (1 - odds.p) + (people - inside) * odds.q * (1 - odds.q) + last.surplus
    drawn = inside * (1 - inside / people) * (1 - people / reports)  # whose level this is, was chance as well
    scale, z = reports / people, normal_quantile(level)
    errors = scale * np.sqrt(inner / spread**2 + drawn)
    low, high = support_interval(people * odds.q + spread * held, people, protocol.p, protocol.q, z)
    more = z * z * (last.surplus / spread**2 + drawn)
    low = scale * np.maximum(held - np.sqrt((held - low) ** 2 + more), 0.0)
    high = scale * np.minimum(held + np.sqrt((high - held) ** 2 + more), float(people))
    order = np.argsort(-held, kind="stable")
    values = tuple(protocol.client().value(last.prefixes[one]) for one in order.tolist())
    counts = scale * held
    return Found(values, counts[order], errors[order], low[order], high[order], reports, rejected, level, told)


# ---- cells --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def functions(salt: str, level: int, hashes: int) -> tuple[Unsigned, Unsigned]:
    """Return a and b of all hash functions of a level."""
    pairs = np.array([function_of(salt, level, place) for place in range(hashes)], np.uint64)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def cells_of(marks: Unsigned, a: Unsigned, b: Unsigned, cells: int) -> IntArray:
    """Return ⌊g ((a x + b) mod P)/P⌋, by broadcasting. All numbers are below 2³¹, products below 2⁶³."""
    prime = np.uint64(OPEN_SIZE)
    product = marks * a
    product += b
    product -= product // prime * prime
    product *= np.uint64(cells)
    product //= prime
    return product.view(np.int64)


def _cells(client: PrefixClient, level: int, prefixes: list[int]) -> IntArray:
    """The cell of every prefix under every function of a level."""
    marks = np.array(client.marks(level, prefixes), np.uint64)
    a, b = functions(client.salt, level, client.hashes)
    return cells_of(marks[:, None], a, b, client.cells)


def supports_of_prefixes(client: PrefixClient, level: int, prefixes: list[int], table: IntArray) -> FloatArray:
    """Return how many reports of a level have the cell of each prefix."""
    out = np.empty(len(prefixes), np.float64)
    flat, first = table.ravel(), np.arange(client.hashes) * client.cells
    step = max(1, _BLOCK // client.hashes)
    for start in range(0, len(prefixes), step):
        cells = _cells(client, level, prefixes[start : start + step])
        cells += first
        out[start : start + step] = flat[cells].sum(axis=1)
    return out
