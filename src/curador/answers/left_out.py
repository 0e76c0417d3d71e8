"""What caps left out, as far as it can be known: intervals from the noisy steps of a survey, and the sentences that say them.

No private number can bound the rows of one unit that has very many. Let two tables differ in one unit, which has M rows in
the one and none in the other, and let an interval for the share of rows beyond a cap m hold 95 % of the time on every table.
On the table with the unit the share tends to 1 as M grows, so the interval must reach 1 − o(1) there 95 % of the time. By
(ε, δ) privacy it then reaches it with a chance of at least (0.95 − δ)e^−ε on the other table as well, where nothing is
missing: it is no use anywhere. So what is said is of the rows up to a public *height* h, a unit with more counting as one
with h; of those beyond it is said how many units there can be, and that their rows are not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.mechanisms.gaussian import DiscreteGaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.plan.counting import Steps

CONFIDENCE = Fraction(95, 100)
_TRIALS = 1_000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a cap took from a relation's rows, of the first `height` rows per unit.

    share, low, high   the share that is missing: about, and between; with the confidence, all of this together
    rows               how many rows are missing at most
    beyond             fewer units than this have more than `height` rows
    """

    cap: int
    height: int
    share: float
    low: float
    high: float
    rows: int
    beyond: int


def left_out(steps: Steps, cap: int, *, confidence: Fraction = CONFIDENCE) -> LeftOut:
    """Return what is known of the rows that a cap left out.

    Claim   With at least the confidence, over the noise and whatever the data: the share of the first `height` rows per unit
            that lie beyond the cap is in [low, high], their number is at most `rows`, and the number of units with more
            than `height` rows is below `beyond`.
    Needs   The steps count each unit once, in the step of its number of rows; independent noise of the stated law was added.
    Rounds  Outwards: half of what may miss is for each step's own number, all together, half for sums of steps.
    Source  Where all numbers of units lie in their intervals and each unit's rows lie in its step, the share is between the
            least and the largest value of a ratio of sums, found by trials: for a trial λ the sum of n((v − m)⁺ − λv) is
            largest, or least, step by step, as v ↦ (v − m)⁺ − λv is convex. The height is chosen from the released numbers,
            which is allowed as the intervals hold for all heights at once. Sums of steps say more: of units beyond a height,
            half of their part over all heights; of a share and of rows, three sums for each cap and height among the tops,
            for the other half. Both intervals hold together, so what lies in both is told.
    """
    miss = (1 - confidence) / 2
    reach = math.ceil(steps.noise.half_width(1 - miss, together=len(steps.counts)))
    least = [max(count - reach, 0) for count in steps.counts]
    most = [max(count + reach, 0) for count in steps.counts]
    height = _height(steps, cap)
    ends = np.minimum([steps.lows, steps.highs], height).astype(np.float64)
    beyond = np.array([low > height or place == len(steps.lows) - 1 for place, low in enumerate(steps.lows)], np.float64)
    low, high = _share_by_steps(np.array([least, most], np.float64), cap, ends)
    lost = np.maximum(ends[1] - cap, 0)
    rows, many = float(lost @ most), float(beyond @ most)
    if isinstance(steps.noise, DiscreteGaussian):
        counts, sigma = np.array(steps.counts, np.float64), float(steps.noise.sigma)
        heights, choices = len(steps.tops), len(steps.tops) * (len(steps.tops) + 1) // 2
        many = min(many, _most_sum(counts, beyond, sigma, float(miss) / 2 / heights))
        if cap in steps.tops:
            chance = float(miss) / 2 / (3 * choices)
            rows = min(rows, _most_sum(counts, lost, sigma, chance))
            least_share, most_share = _share_by_sums(counts, cap, ends, sigma, chance)
            low, high = max(low, least_share), min(high, most_share)
    if not lost.any():
        low = high = 0.0
    return LeftOut(
        cap=cap,
        height=height,
        share=min(max(_about(steps, cap, height), low), high),
        low=low,
        high=high,
        rows=math.floor(rows),
        beyond=math.floor(many) + 1,
    )


def _most_sum(counts: NDArray[np.float64], weights: NDArray[np.float64], sigma: float, chance: float) -> float:
    """Return what a sum of units with these weights is at most, but for a chance.

    Source  A discrete Gaussian is sub-Gaussian with its σ [CKS20], so a sum with weights w exceeds its own value by
            σ‖w‖√(2 ln(1/p)) with chance p at most.
    """
    return max(float(weights @ counts) + _sum_reach(sigma, chance) * float(np.linalg.norm(weights)), 0.0)


def _sum_reach(sigma: float, chance: float) -> float:
    return sigma * math.sqrt(2 * math.log(1 / chance))


def _share_by_sums(
    counts: NDArray[np.float64], cap: int, ends: NDArray[np.float64], sigma: float, chance: float
) -> tuple[float, float]:
    """Return between what the share lies, by tests of whether sums of steps can be 0: each end fails with the chance.

    Source  Let the share s be in [k/K, (k + 1)/K]. Over units the sum of (v − m)⁺ − sv is 0. It falls in s, so at k/K it is 0
            or more, and at (k + 1)/K 0 or less; so are the sums of n times the largest, and the least, value in each step.
            These are two sums known before noise, as k is: a k that fails one of the two tests is not the share's.
    Rounds  Outwards, to 1/K, and by more than floating point can be off.
    """
    smallest, largest = _gains(cap, ends)
    reach = _sum_reach(sigma, chance)
    slack = 1e-9 * (1 + float(np.abs(counts).sum())) * float(ends.max())
    return _between(
        smallest @ counts - reach * np.linalg.norm(smallest, axis=1) - slack,
        largest @ counts + reach * np.linalg.norm(largest, axis=1) + slack,
    )


def _share_by_steps(units: NDArray[np.float64], cap: int, ends: NDArray[np.float64]) -> tuple[float, float]:
    """Return between what the share lies, where the numbers of units in each step do: the least, and the most. As above."""
    smallest, largest = _gains(cap, ends)
    least, most = units
    slack = 1e-9 * (1 + float(most.sum())) * float(ends.max())
    return _between(
        (np.where(smallest > 0, least, most) * smallest).sum(axis=1) - slack,
        (np.where(largest > 0, most, least) * largest).sum(axis=1) + slack,
    )


def _gains(cap: int, ends: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the largest (v − m)⁺ − λv in each step, for every trial λ = k/K: a convex function of v."""
    trials = np.linspace(0, 1, _TRIALS + 1)[:, None]
    middle = np.clip(cap, *ends)
    largest = np.maximum(*(np.maximum(value - cap, 0) - trials * value for value in ends))
    return np.maximum(middle - cap, 0) - trials * middle, largest


def _between(least: NDArray[np.float64], most: NDArray[np.float64]) -> tuple[float, float]:
    """From the first to the last k for which the sum can be 0 or less at (k + 1)/K, and 0 or more at k/K."""
    lows, highs = np.flatnonzero(least[1:] <= 0), np.flatnonzero(most[:-1] >= 0)
    return (lows[0] / _TRIALS if len(lows) else 0.0), ((highs[-1] + 1) / _TRIALS if len(highs) else 1.0)


def _height(steps: Steps, cap: int) -> int:
    """Twice the cap, or the top of the last step that is surely occupied: as far as numbers of units say something."""
    tops = [high for high, there in zip(steps.highs, steps.occupied, strict=True) if there]
    return max([cap, *(min(1 << (top - 1).bit_length(), steps.tops[-1]) for top in (2 * cap, *tops))])


def _about(steps: Steps, cap: int, height: int) -> float:
    total = lost = 0.0
    for count, low, high, there in zip(steps.counts, steps.lows, steps.highs, steps.occupied, strict=True):
        if there:
            value = min(math.sqrt(low * high), height)
            total, lost = total + count * value, lost + count * max(value - cap, 0.0)
    return lost / total if total else 0.0


# ---- in words --------------------------------------------------------------------------------------------------------------


def table_sentence(found: LeftOut, unit: str, where: str) -> str:
    """Say what is missing of the rows that the steps were counted of."""
    beyond = f"fewer than {found.beyond:,} {unit}s have more than {found.height:,}, and how many rows those have is not known"
    if found.height <= found.cap:
        return f"{where}, {beyond}"
    share = f"about {_percent(found.share)} % ({_percent(found.low, down=True)} – {_percent(found.high, up=True)} %)"
    least = f"; of all rows at least {_percent(found.low, down=True)} %" if found.low >= 0.001 else ""
    return f"{where}, of the first {found.height:,} rows per {unit} {share} are missing{least}; {beyond}"


def filtered_sentence(found: LeftOut, unit: str, table: str) -> str:
    """Say how many rows can be missing of some rows of a table of which the whole was measured."""
    beyond = f"fewer than {found.beyond:,} {unit}s have more than {found.height:,} rows in {table}, which can be missing, too"
    if found.height <= found.cap:
        return beyond
    return f"at most {found.rows:,} of the first {found.height:,} rows per {unit} are missing; {beyond}"


def capped_sentence(found: LeftOut, unit: str, things: str) -> str:
    """Say what is missing of something else that units have some of each, such as groups."""
    beyond = f"fewer than {found.beyond:,} {unit}s have more than {found.height:,}"
    if found.height <= found.cap:
        return f"of {things} none beyond {found.cap:,} counts; {beyond}"
    share = f"about {_percent(found.share)} % ({_percent(found.low, down=True)} – {_percent(found.high, up=True)} %)"
    return f"of the first {found.height:,} {things} {share} are missing by that cap alone; {beyond}"


def _percent(share: float, *, up: bool = False, down: bool = False) -> str:
    part = 100 * share
    digits = 0 if part >= 10 else 1
    scaled = part * 10**digits
    whole = math.ceil(scaled) if up else math.floor(scaled) if down else round(scaled)
    return f"{whole / 10**digits:g}"
