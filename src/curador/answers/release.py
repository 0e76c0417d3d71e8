"""From exact tallies to released integers: keys aligned, measurements combined, noise drawn at the seam.

tallies ──► rows known before noise ──► exact integers, zeros for empty groups ──► seam ──► ReleasedBlock

Known keys: all combinations, whatever the data hold. Private keys: those whose noisy number of units passes, crossed with
the known ones; nothing is drawn for the others. What comes after is a function of what was released, and of public things.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curador.errors import Failed
from curador.mechanisms.bracket import QuantileNoise, RankedCells, bracket
from curador.mechanisms.quantile import Ranks
from curador.mechanisms.seam import perform, refresh
from curador.plan.aggregates import Ends
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from curador.engines.base import Cells, Integers, KeyValue, Tallied
    from curador.plan.model import BlockPlan, KeyPlan, Measurement
    from curador.plan.price import KeyNoise, Noise, Priced


# ---- release


Histograms: TypeAlias = dict[int, tuple[NDArray[np.int64], list[int]]]
"""By row: cells and their counts, only what is not empty."""


Noisy: TypeAlias = NDArray[np.int64] | NDArray[np.object_] | Ends


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedBlock:
    """A block's released numbers, one row for each group, in an order that the plan and the released keys determine.

    keys    one list for each key, aligned
    values  by measurement: noisy integers, or a quantile with its two ends
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
    places = group_rows(block, tallied, rows)
    values = tuple(
        _quantiles(noise, measurement, measured_histograms(measurement, tallied, places), len(rows))
        if isinstance(noise, QuantileNoise)
        else _noisy(noise, measured_integers(measurement, tallied, places, len(rows)))
        for measurement, noise in zip(block.measurements, noises, strict=True)
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
        return cross_keys(block, [()]), None
    kept: dict[tuple[KeyValue, ...], float] = selection.release(private_units(block, tallied))
    private = sort_rows(list(kept))
    rows = cross_keys(block, private)
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


def group_rows(block: BlockPlan, tallied: Tallied, rows: KeyRows) -> NDArray[np.int64]:
    """Return the row of each group of the tallies, −1 for one that is not released. Private.

    Claim   A row's integers are those of the one group that has its keys, 0 where there is none: a measurement moves with one
            unit as far as its tallies do.
    Needs   No two groups have one and the same key (`engines/base.py`: Tallied). Numbers for two such groups could not be put
            together: caps were executed on each. An engine that breaks this has broken what sensitivities rest on, so nothing
            is released.
    """
    place_of = {row: place for place, row in enumerate(rows)}
    groups: KeyRows = list(zip(*normalize_columns(tallied.keys, [key.type for key in block.keys]), strict=True))
    if not block.keys:
        groups = [()] * min(max((len(tally) for tally in tallied.tallies.values()), default=1), 1)
    _require_different(groups)
    return np.array([place_of.get(group, -1) for group in groups], np.int64)


def measured_integers(measurement: Measurement, tallied: Tallied, rows: NDArray[np.int64], count: int) -> NDArray[np.object_]:
    """Return a measurement before noise, in each of the rows: Python's own integers, so that their size decides nothing."""
    held = np.zeros(len(rows), object)
    for tally, coefficient in measurement.combination:
        column = np.empty(len(rows), object)
        column[:] = integers(tallied.tallies[tally])
        held += column * coefficient
    total = np.zeros(count, object)
    shown = np.flatnonzero(rows >= 0)
    total[rows[shown]] = held[shown]
    return total


def measured_histograms(measurement: Measurement, tallied: Tallied, rows: NDArray[np.int64]) -> Histograms:
    """Return the cells of each row that has some, before noise."""
    (tally, _), *_ = measurement.combination
    return _by_row(tallied.cells[tally], rows)


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
    """As many draws and tests a row, whatever the row holds; a test is one draw for all rows."""
    weight, q = measurement.unit_weight, noise.point.q
    drawn, ranked = np.empty((len(noise.drawn), count), np.int64), list[RankedCells]()
    for row in range(count):
        counts = dense_histogram(histograms, row, noise.point.cells)
        ranked.append(RankedCells.of(counts))
        for place, mechanism in enumerate(noise.drawn):
            drawn[place, row] = perform(mechanism, Ranks(mechanism.scores(counts, weight), weight))

    def scores(cells: NDArray[np.int64]) -> NDArray[np.object_]:
        found = np.empty(count, object)
        found[:] = [held.score(q, cell) for held, cell in zip(ranked, cells.tolist(), strict=True)]
        return found

    return (
        ends_of(noise, drawn[0], *bracket(noise, scores, list(drawn), weight)) if count else ends_of(noise, *([drawn[0]] * 3))
    )


def ends_of(noise: QuantileNoise, *cells: NDArray[np.int64]) -> Ends:
    """Return the values of the cells of a point and its two ends."""
    points = noise.point.points.astype(np.float64)
    return Ends(*(points[one] for one in cells))


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


# ---- keys: one Python value for one key value, and an order that no engine decides


KeyRows: TypeAlias = "list[tuple[KeyValue, ...]]"
"""One tuple of keys for each group."""


_PLAIN = {Type.BOOLEAN: bool, Type.INTEGER: int, Type.STRING: str, Type.DATE: dt.date, Type.TIMESTAMP: dt.datetime}
"""Types whose values are keys as they are."""


def normalize_key(value: Any, kind: Type) -> KeyValue:
    """Return the one value that stands for a key: 0.0 for −0.0, NULL for NaN, Python's own types.

    Claim   Two values that an engine's grouping holds apart stay apart: it groups doubles without NaN, and the zeros as one.
    """
    if value is None:
        return None
    match kind:
        case Type.BOOLEAN if isinstance(value, (bool, np.bool_)):
            return bool(value)
        case Type.INTEGER if isinstance(value, (int, np.integer)):
            return int(value)
        case Type.DECIMAL | Type.FLOAT if isinstance(value, (int, float, decimal.Decimal, np.number)):
            number = float(value)
            return None if math.isnan(number) else number + 0.0
        case Type.STRING if isinstance(value, str):
            return str(value)
        case Type.DATE if isinstance(value, dt.date):
            return value.date() if isinstance(value, dt.datetime) else value
        case Type.TIMESTAMP if isinstance(value, dt.date):
            return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
        case _:
            raise Failed("a key is not of its column's type")


def normalize_columns(columns: Sequence[Sequence[Any]], kinds: Sequence[Type]) -> list[list[KeyValue]]:
    """Return columns of keys with one value for each key value."""
    out: list[list[KeyValue]] = []
    for column, kind in zip(columns, kinds, strict=True):
        held: list[Any] = column.tolist() if isinstance(column, np.ndarray) else list(column)
        plain = set(map(type, held)) <= {_PLAIN.get(kind), type(None)}
        out.append(held if plain else [normalize_key(value, kind) for value in held])
    return out


def known_values(key: KeyPlan) -> list[KeyValue]:
    """Return all values of a known key in their declared order, each once.

    Two declared values that are one float would be two rows of the same people, which no sensitivity allows for.
    """
    declared = [float(value) if isinstance(value, Fraction) else value for value in key.values or ()]
    return list(dict.fromkeys(normalize_columns([declared], [key.type])[0]))


def cross_keys(block: BlockPlan, private: KeyRows) -> KeyRows:
    """Return all combinations of private keys, as given, with those that the known ones can have, each in its place."""
    keys = block.keys
    places = [place for place, key in enumerate(keys) if key.values is None]
    others = [place for place, key in enumerate(keys) if key.values is not None]
    if not others:
        return private
    back = np.argsort([*places, *others]).tolist()
    known = _known_rows(block, others)
    if not places:
        return known
    joined = (chosen + rest for chosen, rest in itertools.product(private, known))
    return [tuple(row[place] for place in back) for row in joined]


def _known_rows(block: BlockPlan, others: list[int]) -> KeyRows:
    """All combinations of known keys, in the order of their values, the first key first."""
    values = {place: known_values(block.keys[place]) for place in others}
    if not block.joint:
        return list(itertools.product(*values.values()))
    ranks = {place: {value: rank for rank, value in enumerate(column)} for place, column in values.items()}
    tied = {place for one in block.joint for place in one.places}
    parts: list[tuple[tuple[int, ...], KeyRows]] = [
        ((place,), [(value,) for value in column]) for place, column in values.items() if place not in tied
    ]
    for tuples in block.joint:
        columns = [list(column) for column in zip(*tuples.rows, strict=True)] or [[] for _ in tuples.places]
        kinds = [block.keys[place].type for place in tuples.places]
        numbers = [[float(value) if isinstance(value, Fraction) else value for value in column] for column in columns]
        parts.append((tuples.places, list(dict.fromkeys(zip(*normalize_columns(numbers, kinds), strict=True)))))
    order = np.argsort([place for places, _ in parts for place in places]).tolist()
    rows = [
        tuple(flat[place] for place in order)
        for chosen in itertools.product(*(rows for _, rows in parts))
        for flat in [[value for part in chosen for value in part]]
    ]
    return sorted(rows, key=lambda row: [ranks[place][value] for place, value in zip(others, row, strict=True)])


def key_columns(rows: KeyRows, count: int) -> tuple[list[KeyValue], ...]:
    """Return one list for each key."""
    if not rows:
        return tuple([] for _ in range(count))
    return tuple([row[place] for row in rows] for place in range(len(rows[0])))  # zip would make an iterator for each row


def sort_rows(rows: KeyRows) -> KeyRows:
    """Return the rows by their keys, NULL last."""
    return [rows[place] for place in key_order(key_columns(rows, 0), len(rows)).tolist()] if rows else []


def key_order(columns: Sequence[Sequence[KeyValue]], count: int) -> NDArray[np.int64]:
    """Return the places of rows sorted by their keys, the first key first, NULL last."""
    codes = [ranks(column) for column in columns]
    return np.lexsort(codes[::-1]) if codes else np.arange(count)


def ranks(values: Sequence[Hashable], *, descending: bool = False, nulls_first: bool = False) -> NDArray[np.int64]:
    """Return the rank of each value among the different ones; NULLs last, or first."""
    different: list[Any] = sorted({value for value in values if value is not None}, reverse=descending)  # type: ignore[type-var]
    codes: dict[Any, int] = {value: code for code, value in enumerate(different)}
    codes[None] = -1 if nulls_first else len(different)
    return np.array([codes[value] for value in values], np.int64)
