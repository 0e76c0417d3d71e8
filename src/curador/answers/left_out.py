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
    from collections.abc import Callable

    from numpy.typing import NDArray

    from curador.plan.counting import Steps

CONFIDENCE = Fraction(95, 100)
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a cap took from a relation's rows, of the first `height` rows per unit.

    share, low, high   the share that is missing: about, and between; with the confidence, all of this together
    rows               how many rows are missing at most
    beyond             fewer units than this have more than `height` rows
    open_ended         whether a unit can have more than `height` rows at all
    """

    cap: int
    height: int
    share: float
    low: float
    high: float
    rows: int
    beyond: int
    open_ended: bool = True


def left_out(steps: Steps, cap: int, *, confidence: Fraction = CONFIDENCE) -> LeftOut:
    """Return what is known of the rows that a cap left out.

    Claim   With at least the confidence, over the noise and whatever the data: the share of the first `height` rows per unit
            that lie beyond the cap is in [low, high], their number is at most `rows`, and the number of units with more
            than `height` rows is below `beyond`.
    Needs   The steps count each unit once, in the step of its number of rows; independent noise of the stated law was added.
    Rounds  Outwards: half of what may miss is for each step's own number, all together, half for sums of steps.
    Source  Where all numbers of units lie in their intervals and each unit's rows lie in its step, the share is between the
            least and the largest value of a ratio of sums, found by halving: for a trial λ the sum of n((v − m)⁺ − λv) is
            largest, or least, step by step, as v ↦ (v − m)⁺ − λv is convex. The height is chosen from the released numbers,
            which is allowed as the intervals hold for all heights at once.
    """
    miss = (1 - confidence) / 2
    reach = math.ceil(steps.noise.half_width(1 - miss, together=len(steps.counts)))
    least = [max(count - reach, 0) for count in steps.counts]
    most = [max(count + reach, 0) for count in steps.counts]
    height = _height(steps, cap)
    ends = [(min(low, height), min(high, height)) for low, high in zip(steps.lows, steps.highs, strict=True)]
    parts = np.array([least, most, *zip(*ends, strict=True)], np.float64)
    low, high = (
        _bisect(lambda trial: _least_of(parts, cap, trial) > 0),
        _bisect(lambda trial: _most_of(parts, cap, trial) > 0),
    )
    if all(high_end <= cap for _, high_end in ends):
        low = high = 0.0
    rows = sum(most_units * max(last - cap, 0) for most_units, (_, last) in zip(most, ends, strict=True))
    return LeftOut(
        cap=cap,
        height=height,
        share=min(max(_about(steps, cap, height), low), high),
        low=low,
        high=high,
        rows=rows,
        beyond=_beyond(steps, height, miss, most) + 1,
    )


def _height(steps: Steps, cap: int) -> int:
    """Twice the cap, or the top of the last step that is surely occupied: as far as numbers of units say something."""
    tops = [high for high, there in zip(steps.highs, steps.occupied, strict=True) if there]
    return max([cap, *(min(1 << (top - 1).bit_length(), steps.tops[-1]) for top in (2 * cap, *tops))])


def _beyond(steps: Steps, height: int, miss: Fraction, most: list[int]) -> int:
    """Units with more than the height at most: their numbers added, with the noise of the sum.

    Source  A discrete Gaussian is sub-Gaussian with its σ, and so is a sum of J of them with √J σ.
    """
    places = [place for place, low in enumerate(steps.lows) if low > height or place == len(steps.lows) - 1]
    apart = sum(most[place] for place in places)
    if not isinstance(steps.noise, DiscreteGaussian):
        return apart
    each = float(miss) / len(steps.counts)  # for every height that could have been chosen
    spread = float(steps.noise.sigma) * math.sqrt(2 * len(places) * math.log(1 / each))
    return min(apart, max(math.ceil(sum(steps.counts[place] for place in places) + spread), 0))


def _about(steps: Steps, cap: int, height: int) -> float:
    total = lost = 0.0
    for count, low, high, there in zip(steps.counts, steps.lows, steps.highs, steps.occupied, strict=True):
        if there:
            value = min(math.sqrt(low * high), height)
            total, lost = total + count * value, lost + count * max(value - cap, 0.0)
    return lost / total if total else 0.0


def _most_of(parts: NDArray[np.float64], cap: int, trial: float) -> float:
    least, most, low, high = parts
    gain = np.maximum(*(np.maximum(value - cap, 0) - trial * value for value in (low, high)))
    return float(np.where(gain > 0, most, least) @ gain)


def _least_of(parts: NDArray[np.float64], cap: int, trial: float) -> float:
    least, most, low, high = parts
    value = np.minimum(np.maximum(cap, low), high)
    gain = np.maximum(value - cap, 0) - trial * value
    return float(np.where(gain > 0, least, most) @ gain)


def _bisect(above: Callable[[float], bool]) -> float:
    """The trial, from 0 to 1, up to which it is above."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


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


def _percent(share: float, *, up: bool = False, down: bool = False) -> str:
    part = 100 * share
    digits = 0 if part >= 10 else 1
    scaled = part * 10**digits
    whole = math.ceil(scaled) if up else math.floor(scaled) if down else round(scaled)
    return f"{whole / 10**digits:g}"
