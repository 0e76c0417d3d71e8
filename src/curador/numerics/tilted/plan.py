"""Which tilt, which period, how many frequencies.

Nothing here is a claim: the error terms are evaluated for whatever was chosen, so a poor choice widens the interval and
never breaks it. The search may therefore be sloppy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.logspace import log_chernoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import Total

TOLERANCE = 1e-9
"""Aliasing and truncation are pushed below this share of δ."""

MOST_DIGITS = 16.0
"""Logarithm of the factor by which a handier tilt may magnify round-off."""

MOST_NODES = 32_768
MOST_PAIRS = 6_000_000
"""Frequencies in all, and frequencies times distinct records, that one sum may take."""


@dataclass(frozen=True, slots=True)
class Tilts:
    """Upper bounds of log M(θ) + log c(θ) and of log M(θ) on a grid of tilts."""

    theta: FloatArray
    log_moment: FloatArray
    spread: float
    log_chernoff: FloatArray = field(init=False)  # log(c(θ) M(θ)): D(x) ≤ c(θ) M(θ) e^(−θx)

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_chernoff", self.log_moment + log_chernoff(self.theta))  # asked at every ε

    def merged(self, theta: FloatArray, log_moment: FloatArray) -> Tilts:
        """Return the table with more rows."""
        both = np.concatenate([self.theta, theta])
        order = np.argsort(both)
        return Tilts(both[order], np.concatenate([self.log_moment, log_moment])[order], self.spread)


@dataclass(frozen=True, slots=True)
class Aim:
    """A tilt, and about where (ε) and how small (log D) the sum will be."""

    theta: float
    epsilon: float
    log_delta: float
    tolerance: float = TOLERANCE


@dataclass(frozen=True, slots=True)
class FrequencyGrid:
    """Parameters of one sum; `smoothing` is the μ of the Gaussian loss that is mixed in (0 for none)."""

    theta: float
    step: float
    size: int
    smoothing: float


MANY = (0.02, 40.0, 64)
FEWER = (0.05, 40.0, 28)
FEW = (0.25, 16.0, 20)
FEWEST = (0.6, 12.0, 9)
"""Least and largest tilt of a table, in units of 1 / standard deviation of the loss, and how many."""


def tabulate_tilts(total: Total, which: tuple[float, float, int] = MANY) -> Tilts:
    """Return bounds of log M on tilts around 1 / standard deviation of the loss."""
    for probe in (1e-2, 1e-4, 1e-6):
        start, value = total.log_moment(np.array([1e-9, probe]))  # log M(0) is below 0 where losses may be infinite
        value = float(value - start)
        if math.isfinite(value) and value > 0.0:
            spread = math.sqrt(2.0 * value / (probe * (1.0 + probe)))
            least, most, number = which
            theta = np.geomspace(least / spread, most / spread, number)
            return Tilts(theta, total.log_moment(theta), spread)
    raise NumericalFailure("the moment function is not finite near 0")


NEAR = 20
"""Tilts of the table that serves a total that is nearly normal."""


def tilts_at_delta(total: Total, delta: float) -> Tilts:
    """Return a short table around the best tilt at δ where the loss is nearly normal, else a long one."""
    best = math.sqrt(2.0 * max(-math.log(delta), 0.5))  # of a normal law, about, in units of 1 / standard deviation
    table = tabulate_tilts(total, (0.1, 3.0 * best, NEAR))
    return table if _nearly_normal(table, best) else tabulate_tilts(total)


def _nearly_normal(table: Tilts, best: float) -> bool:
    """Whether log M at about the best tilt is a normal loss's: then the sum is short, and a short table serves."""
    at = int(np.searchsorted(table.theta, best / table.spread))
    theta = float(table.theta[at])
    return float(table.log_moment[at]) < 0.75 * table.spread**2 * theta * (theta + 1.0)


def aim_at_delta(total: Total, table: Tilts, log_delta: float, tolerance: float = TOLERANCE) -> tuple[Aim, Tilts]:
    """Choose the tilt whose Chernoff bound gives the smallest ε with D(ε) ≤ δ."""

    def objective(rows: Tilts) -> FloatArray:
        return (rows.log_chernoff - log_delta) / rows.theta

    table = _refine_tilts(total, table, objective)
    best = int(np.argmin(objective(table)))
    theta = float(table.theta[best])
    epsilon = float(objective(table)[best]) - 2.5 / theta  # the sum lies below Chernoff's bound by about this
    aim = Aim(theta, min(epsilon, total.top), log_delta, tolerance)
    return _prefer_handier_tilt(_extend_tilts(total, table, theta), aim, total.top)


def aim_at_epsilon(
    total: Total, table: Tilts, epsilon: float, tolerance: float = TOLERANCE, log_delta: float = math.inf
) -> tuple[Aim, Tilts]:
    """Choose the tilt whose Chernoff bound gives the smallest δ at ε; `log_delta` is what is known of it already."""

    def objective(rows: Tilts) -> FloatArray:
        return rows.log_chernoff - rows.theta * epsilon

    table = _refine_tilts(total, table, objective)
    best = int(np.argmin(objective(table)))
    theta = float(table.theta[best])
    aim = Aim(theta, epsilon, min(float(objective(table)[best]) - 2.5, log_delta), tolerance)
    return _prefer_handier_tilt(_extend_tilts(total, table, theta), aim, total.top)


def _prefer_handier_tilt(table: Tilts, aim: Aim, top: float) -> tuple[Aim, Tilts]:
    """Take a smaller tilt where its period is so much shorter that the digits it costs are worth it.

    With few large losses log M leaps right above the best tilt, and a period there would be very long.
    """
    some = (table.theta <= aim.theta) & (table.theta >= 0.2 * aim.theta)
    theta = table.theta[some]
    size = table.log_chernoff[some] - theta * aim.epsilon
    lost = np.maximum(size - size[-1], 0.0)
    with np.errstate(divide="ignore"):
        score = np.where(lost < MOST_DIGITS, np.log(_periods(table, aim, theta, top)) + 0.04 * lost, np.inf)
    best = int(np.argmin(score))
    handier = score[best] < score[-1] - 0.1
    return (replace(aim, theta=float(theta[best])) if handier else aim), table


def _refine_tilts(total: Total, table: Tilts, objective: Callable[[Tilts], FloatArray]) -> Tilts:
    for _ in range(3):  # the best tilt may lie beyond the table
        best = int(np.argmin(objective(table)))
        if best < len(table.theta) - 1 or table.theta[-1] * table.spread > 4e3:
            break
        more = np.geomspace(table.theta[-1] * 1.2, table.theta[-1] * 12.0, 24)
        table = table.merged(more, total.log_moment(more))
    for _ in range(3):  # or, with a few large losses, below it
        if int(np.argmin(objective(table))) > 2:
            break
        more = np.geomspace(table.theta[0] / 16.0, table.theta[0] / 1.12, 24)
        table = table.merged(more, total.log_moment(more))
    best = int(np.argmin(objective(table)))
    low = table.theta[max(best - 1, 0)]
    high = table.theta[min(best + 1, len(table.theta) - 1)]
    between = np.geomspace(low, high, 9)[1:-1]
    return table.merged(between, total.log_moment(between))


def _extend_tilts(total: Total, table: Tilts, theta: float) -> Tilts:
    """Aliasing needs tilts above the chosen one."""
    if theta < table.theta[-1]:
        return table
    more = theta * np.array([1.3, 2.0, 4.0])
    return table.merged(more, total.log_moment(more))


def period(table: Tilts, aim: Aim, top: float) -> float:
    """Return a period whose aliasing terms are below the aim's tolerance on both sides."""
    length = float(_periods(table, aim, np.array([aim.theta]), top)[0])
    if not math.isfinite(length):
        raise NumericalFailure("no tilt beyond the chosen one has a finite moment")
    return length


def _periods(table: Tilts, aim: Aim, theta: FloatArray, top: float) -> FloatArray:
    """The same for other tilts; +∞ where none is found."""
    wanted = math.log(aim.tolerance) + aim.log_delta - 0.7
    reach = table.log_chernoff - table.theta * aim.epsilon - wanted
    gap = table.theta - theta[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        length = reach / np.abs(gap)
    small = 1e-4 * theta[:, None]
    right = np.min(np.where(gap > small, length, np.inf), axis=1)
    right = np.minimum(right, max(top - aim.epsilon, 0.0) * 1.001 + 1e-12)  # nothing lies beyond the largest loss
    left = np.minimum(np.min(np.where(gap < -small, length, np.inf), axis=1), -wanted / theta)
    return np.maximum(np.maximum(right, left), 1e-12)


def choose_frequencies(
    total: Total, table: Tilts, aim: Aim, *, nodes: int | None = None, smooth: bool | None = None
) -> FrequencyGrid:
    """Return the parameters of the plain sum, or of the smoothed one where the plain one would be too long."""
    length = period(table, aim, total.top)
    step = 2.0 * math.pi / length
    budget = nodes or max(64, min(MOST_NODES, MOST_PAIRS // max(1, total.records)))
    limit = step * budget
    log_scale = float(np.interp(aim.theta, table.theta, table.log_moment)) - aim.theta * aim.epsilon
    wanted = math.log(aim.tolerance) + aim.log_delta
    start = min(0.3 / table.spread, limit)

    horizons = sorted({family.horizon for family in total.families if family.horizon < math.inf})

    def sizes(frequency: FloatArray) -> FloatArray:
        return total.log_decay(aim.theta, frequency) - np.log(frequency)

    def lost(frequency: FloatArray, size: FloatArray, later: FloatArray) -> FloatArray:
        for horizon, piece in zip(horizons, later.tolist(), strict=True):  # beyond a horizon the decay starts anew
            size = np.where(frequency < horizon, np.logaddexp(size, piece), size)
        return log_scale + size - math.log(math.pi)

    coarse = np.geomspace(start, limit, 2 + int(math.log(limit / start) / math.log(1.6)))
    found = sizes(np.concatenate([coarse, horizons]))
    later = found[len(coarse) :]
    decays = lost(coarse, found[: len(coarse)], later)
    enough = np.flatnonzero(decays <= wanted)
    if smooth is not True and (enough.size or smooth is False):
        reach = float(coarse[enough[0]]) if enough.size else limit
        if enough.size and enough[0] > 0:
            fine = np.geomspace(coarse[enough[0] - 1], reach, 9)
            within = lost(fine[:-1], sizes(fine[:-1]), later) <= wanted
            reach = float(fine[int(np.argmax(np.append(within, True)))])
        return FrequencyGrid(aim.theta, step, max(2, math.ceil(reach / step) + 1), 0.0)
    missing = max(0.0, float(decays[-1]) - wanted) + 1.0
    return FrequencyGrid(aim.theta, step, budget, math.sqrt(2.0 * missing) / limit)
