"""Many answers from one engine result: how often the intervals cover the numbers they are about.

Needs the exact tallies, so it is for tests and for owners: what it returns is private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.release import (
    Ends,
    Histograms,
    KeyRows,
    Noisy,
    ReleasedBlock,
    cross_keys,
    dense_histogram,
    ends_of,
    group_rows,
    key_columns,
    measured_histograms,
    measured_integers,
    narrow_to_int64,
    private_units,
    sort_rows,
)
from curador.answers.table import item_column, sight_of
from curador.mechanisms.bracket import QuantileNoise, bracket
from curador.mechanisms.quantile import Quantile, Ranks
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, open_probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.answers.column import AnswerColumn
    from curador.engines.base import Tallied
    from curador.plan.model import BlockPlan, Measurement
    from curador.plan.price import Noise, Priced


@dataclass(frozen=True, slots=True)
class Coverage:
    """A released column of one block: what the numbers were before noise, and how many of `times` intervals held them.

    keys    by group
    truths  by group: after caps, clamps and dropped rows; None for NULL
    held    by group: in how many redraws the interval, of any length, held it; a NULL is held by any
    whole   by group: in how many redraws the interval had both ends
    width   by group: the mean length of those
    off     by group: by how much the redrawn numbers were off, ascending; NaN where there is no number to be off from
    """

    block: int
    name: str
    keys: KeyRows
    truths: list[Any]
    held: list[int]
    whole: list[int]
    width: list[float]
    off: NDArray[np.float64]
    times: int

    @property
    def error(self) -> list[float]:
        """By group: what 95 % of the redrawn numbers were off by at most."""
        return self.off[:, max(math.ceil(0.95 * self.times) - 1, 0)].tolist()

    def most_error(self, alarm: float) -> list[float]:
        """Return by group a number that the error of 95 % of all draws exceeds with probability at most `alarm`."""
        from scipy.stats import binom

        return self.off[:, min(int(binom.isf(alarm, self.times, 0.95)), self.times - 1)].tolist()

    @property
    def excess(self) -> list[float]:
        """Half of the mean length over the error that the redraws really had; infinite where some had no end."""
        with np.errstate(all="ignore"):
            halves = np.where(np.array(self.whole) == self.times, np.array(self.width) / 2, np.inf)
            return (halves / np.array(self.error)).tolist()


def redraw(priced: Priced, tallied: Sequence[Tallied], times: int, confidence: Number = Fraction(19, 20)) -> list[Coverage]:
    """Draw the noise of every group `times` times, whether keys would be selected or not, and count what intervals cover."""
    level = open_probability(confidence, "confidence")
    found: list[Coverage] = []
    for place, (block, tallies, noises) in enumerate(zip(priced.plan.blocks, tallied, priced.noises, strict=True)):
        rows = all_rows(block, tallies)
        truth = ReleasedBlock(key_columns(rows, len(block.keys)), _all(block, noises, tallies, rows, None))
        drawn = ReleasedBlock(key_columns(rows * times, len(block.keys)), _all(block, noises, tallies, rows, times))
        before, after = sight_of(block, noises, truth), sight_of(block, noises, drawn)
        for item in block.items:
            truths, column = item_column(item, before, level).values, item_column(item, after, level)
            if column.low is not None:
                found.append(_count_held(place, column, rows, truths, times))
    return found


def all_rows(block: BlockPlan, tallied: Tallied) -> KeyRows:
    """Return every group that could be released: all private keys there are, crossed with the known ones."""
    return cross_keys(block, sort_rows(list(private_units(block, tallied))) if block.private_keys else [()])


def _all(block: BlockPlan, noises: Sequence[Noise], tallied: Tallied, rows: KeyRows, times: int | None) -> tuple[Noisy, ...]:
    """Every measurement: exact, or redrawn, the redraws one after the other."""
    out: list[Noisy] = []
    places = group_rows(block, tallied, rows)
    for measurement, noise in zip(block.measurements, noises, strict=True):
        if isinstance(noise, QuantileNoise):
            out.append(_points(noise, measurement, measured_histograms(measurement, tallied, places), len(rows), times))
        else:
            values = measured_integers(measurement, tallied, places, len(rows))
            out.append(narrow_to_int64(values if times is None else perform(noise, values, times).reshape(-1)))
    return tuple(out)


def _points(noise: QuantileNoise, measurement: Measurement, held: Histograms, rows: int, times: int | None) -> Ends:
    found = np.empty((3, 1 if times is None else times, rows))
    for row in range(rows):
        counts = dense_histogram(held, row, noise.point.cells)
        if times is None:
            found[:, 0, row] = _true_quantile(noise.point, counts)
        else:
            ends = _draw_quantiles(noise, counts, measurement.unit_weight, times)
            found[:, :, row] = ends.point, ends.low, ends.high
    return Ends(*(one.reshape(-1) for one in found))


def _draw_quantiles(noise: QuantileNoise, counts: NDArray[np.int64], weight: int, times: int) -> Ends:
    drawn = [perform(one, Ranks(one.scores(counts, weight), weight), times) for one in noise.drawn]
    q = noise.point.q
    every = q.denominator * np.cumsum(counts) - q.numerator * int(counts.sum())
    return ends_of(noise, drawn[0], *bracket(noise, lambda cells: every[cells], drawn, weight))


def _true_quantile(mechanism: Quantile, counts: NDArray[np.int64]) -> float:
    """The smallest value whose rank reaches q; NaN where there is none at all."""
    exact = Quantile(
        q=mechanism.q,
        epsilon=1,
        lower=mechanism.lower,
        upper=mechanism.upper,
        adjacency=mechanism.adjacency,
        cells=mechanism.cells,
    )
    found = np.flatnonzero((exact.scores(counts) == 0) & (counts > 0))
    return float(mechanism.points[found[0]]) if len(found) else float("nan")


def _count_held(block: int, column: AnswerColumn, rows: KeyRows, truths: list[Any], times: int) -> Coverage:
    low, high = _ends(column.low, times, -np.inf), _ends(column.high, times, np.inf)
    truth = np.array([np.nan if value is None else float(value) for value in truths])
    held = np.isnan(truth) | ((low <= truth) & (truth <= high))
    whole = np.isfinite(low) & np.isfinite(high)
    width = np.where(whole, high - np.where(whole, low, 0), 0).sum(axis=0) / np.maximum(whole.sum(axis=0), 1)
    off = np.abs(_ends(column.values, times, np.nan) - truth)
    ascending = np.sort(np.where(np.isnan(off), np.inf, off), axis=0)
    return Coverage(
        block,
        column.name,
        rows,
        truths,
        held.sum(axis=0).tolist(),
        whole.sum(axis=0).tolist(),
        width.tolist(),
        np.where(np.isnan(truth), np.nan, ascending).T,
        times,
    )


def _ends(values: list[Any] | None, times: int, absent: float) -> NDArray[np.float64]:
    held = values or []
    return np.array([absent if value is None else float(value) for value in held]).reshape(times, -1)
