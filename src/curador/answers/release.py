"""From exact tallies to released integers: keys aligned, measurements combined, noise drawn at the seam.

tallies ──► rows known before noise ──► exact integers, zeros for empty groups ──► seam ──► ReleasedBlock

Known keys: all combinations, whatever the data hold. Private keys: those whose noisy number of units passes, crossed with
the known ones; nothing is drawn for the others. What comes after is a function of what was released, and of public things.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curador.answers.group_keys import KeyRows, cross_keys, key_columns, normalize_columns, sort_rows
from curador.errors import Failed
from curador.mechanisms.quantile import Ranks
from curador.mechanisms.seam import perform, refresh
from curador.plan.aggregates import Ends
from curador.plan.price import QuantileNoise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.engines.base import Cells, Integers, KeyValue, Tallied
    from curador.plan.model import BlockPlan, Measurement
    from curador.plan.price import KeyNoise, Noise, Priced


Histograms: TypeAlias = dict[int, tuple[NDArray[np.int64], list[int]]]
"""By row: cells and their counts, only what is not empty."""


Noisy: TypeAlias = NDArray[np.int64] | NDArray[np.object_] | Ends


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedBlock:
    """A block's released numbers, one row for each group, in an order that the plan and the released keys determine.

    keys    one list for each key, aligned
    values  by measurement: noisy integers, or the three draws of a quantile
    units   the noisy number of units of the row's private key; None where all keys are known
    """

    keys: tuple[list[KeyValue], ...]
    values: tuple[Noisy, ...]
    units: NDArray[np.float64] | None = None

    @property
    def rows(self) -> int:
        """How many groups there are."""
        if self.keys:
            return len(self.keys[0])
        first = self.values[0] if self.values else ()
        return len(first.point if isinstance(first, Ends) else first) if self.values else 1


def release(priced: Priced, tallied: Sequence[Tallied]) -> list[ReleasedBlock]:
    """Draw every block's noise, from entropy that is fresh for this release.

    Claim   What is released depends on the tallies only through the inputs of the mechanisms in `priced`, each used once:
            keys and their order come from the plan or from the released selection; a measurement's input is the plan's
            integer combination, 0 for a group without rows; inputs are exact Python integers whatever their size.
    Needs   Tallies as `engines/base.py` says; caps and sensitivities are the plan's.
    """
    refresh()
    blocks = zip(priced.plan.blocks, tallied, priced.noises, priced.selections, strict=True)
    return [_block(block, one, noises, selection) for block, one, noises, selection in blocks]


def _block(block: BlockPlan, tallied: Tallied, noises: Sequence[Noise], selection: KeyNoise | None) -> ReleasedBlock:
    rows, units = rows_to_release(block, tallied, selection)
    exact = ExactMeasurements(block, tallied, rows)
    values = tuple(
        _quantiles(noise, measurement, exact.histograms(place), len(rows))
        if isinstance(noise, QuantileNoise)
        else _noisy(noise, exact.integers(place))
        for place, (measurement, noise) in enumerate(zip(block.measurements, noises, strict=True))
    )
    return ReleasedBlock(key_columns(rows, len(block.keys)), values, units)


def rows_to_release(
    block: BlockPlan, tallied: Tallied, selection: KeyNoise | None
) -> tuple[KeyRows, NDArray[np.float64] | None]:
    """Return the rows to be released: known combinations, or selected ones crossed with the known; and their noisy units.

    Claim   The number of units stands at the seam by key, so the order of the data is not seen; a key that nobody holds is
            never shown.
    """
    if selection is None:
        return cross_keys(block.keys, [()]), None
    kept: dict[tuple[KeyValue, ...], float] = selection.release(private_units(block, tallied))
    private = sort_rows(list(kept))
    rows = cross_keys(block.keys, private)
    each = len(rows) // max(len(private), 1)
    return rows, np.repeat(np.array([kept[chosen] for chosen in private], np.float64), each)


def private_units(block: BlockPlan, tallied: Tallied) -> dict[tuple[KeyValue, ...], int]:
    """Return the exact number of units of every combination of private keys."""
    if tallied.selection is None:
        raise Failed("the engine returned no numbers of units for private keys")
    columns, units = tallied.selection
    kinds = [block.keys[place].type for place in block.private_keys]
    groups: KeyRows = list(zip(*normalize_columns(columns, kinds), strict=True))
    _require_different(groups)
    return dict(zip(groups, integers(units), strict=True))


class ExactMeasurements:
    """A block's measurements before noise, aligned to rows. Private.

    Claim   A row's integers are those of the one group that has its keys, 0 where there is none: a measurement moves with one
            unit as far as its tallies do.
    Needs   No two groups have one and the same key (`engines/base.py`: Tallied). Numbers for two such groups could not be put
            together: caps were executed on each. An engine that breaks this has broken what sensitivities rest on, so nothing
            is released.
    """

    def __init__(self, block: BlockPlan, tallied: Tallied, rows: KeyRows) -> None:
        self._block, self._tallied, self._count = block, tallied, len(rows)
        place_of = {row: place for place, row in enumerate(rows)}
        groups: KeyRows = list(zip(*normalize_columns(tallied.keys, [key.type for key in block.keys]), strict=True))
        if not block.keys:
            groups = [()] * min(max((len(tally) for tally in tallied.tallies.values()), default=1), 1)
        _require_different(groups)
        self._rows = np.array([place_of.get(group, -1) for group in groups], np.int64)
        self._shown = np.flatnonzero(self._rows >= 0)

    def integers(self, place: int) -> NDArray[np.object_]:
        """Return a measurement's exact integers: Python's own, so that their size decides nothing."""
        held = np.zeros(len(self._rows), object)
        for tally, coefficient in self._block.measurements[place].combination:
            column = np.empty(len(self._rows), object)
            column[:] = integers(self._tallied.tallies[tally])
            held += column * coefficient
        total = np.zeros(self._count, object)
        total[self._rows[self._shown]] = held[self._shown]
        return total

    def histograms(self, place: int) -> Histograms:
        """Return the cells of each row that has some."""
        (tally, _), *_ = self._block.measurements[place].combination
        return _by_row(self._tallied.cells[tally], self._rows)


def _require_different(groups: KeyRows) -> None:
    if len(set(groups)) < len(groups):
        raise Failed("an engine must return every group once")


def _noisy(noise: Noise, values: NDArray[np.object_]) -> NDArray[Any]:
    """Integers with noise, as 64-bit ones where what was released fits."""
    if not len(values):
        return np.empty(0, np.int64)
    drawn: NDArray[Any] = perform(noise, values)  # type: ignore[arg-type]
    return narrow_to_int64(drawn)


def narrow_to_int64(drawn: NDArray[Any]) -> NDArray[Any]:
    """Return released integers as 64-bit ones if all fit: a question about what was released only."""
    if drawn.dtype == object and drawn.size and max(abs(drawn.max()), abs(drawn.min())) < 1 << 63:
        return drawn.astype(np.int64)
    return drawn


def _quantiles(noise: QuantileNoise, measurement: Measurement, histograms: Histograms, count: int) -> Ends:
    """Three draws a row, whatever the row holds."""
    weight, mechanisms = measurement.unit_weight, (noise.point, noise.low, noise.high)
    drawn = np.empty((count, 3), np.int64)
    for row in range(count):
        counts = dense_histogram(histograms, row, noise.point.cells)
        for end, mechanism in enumerate(mechanisms):
            drawn[row, end] = perform(mechanism, Ranks(mechanism.scores(counts, weight), weight))
    point, low, high = (mechanism.points.astype(np.float64)[drawn[:, end]] for end, mechanism in enumerate(mechanisms))
    return Ends(point, low, high)


def dense_histogram(histograms: Histograms, row: int, cells: int) -> NDArray[np.int64]:
    """Return a row's histogram with its empty cells."""
    counts = np.zeros(cells, np.int64)
    if row in histograms:
        places, numbers = histograms[row]
        np.maximum.at(counts, np.clip(places, 0, cells - 1), np.array(numbers, np.int64))
    return counts


def _by_row(cells: Cells, rows: NDArray[np.int64]) -> Histograms:
    places = rows[cells.groups] if len(rows) else np.empty(0, np.int64)
    order = np.argsort(places, kind="stable")
    numbers = integers(cells.counts)
    starts = np.flatnonzero(np.diff(places[order], prepend=-2))
    out: Histograms = {}
    for start, end in itertools.pairwise([*starts.tolist(), len(order)]):
        chosen = order[start:end]
        row = int(places[chosen[0]])
        if row >= 0:
            out[row] = (cells.cells[chosen], [numbers[one] for one in chosen.tolist()])
    return out


def integers(values: Integers) -> list[int]:
    """Return an engine's integers as Python's own, 0 for nothing. Floats are refused: they have lost what is asked for."""
    array = np.asarray(values)
    held: list[Any] = array.tolist()
    if array.dtype == object:
        held = [0 if one is None else one for one in held]
    if array.ndim != 1 or array.dtype.kind not in "iuO" or set(map(type, held)) - {int}:
        raise Failed("the engine returned tallies that are not integers")
    return held
