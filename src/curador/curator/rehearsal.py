"""A question tried out before it is charged: everything after the engine, on tables without rows and without noise.

Nothing of the data, and nothing of what is drawn later, is in it: values are those of empty groups, a private key has one
made-up value of its type, each mechanism draws once from a stream that is thrown away. What fails for the plan's sake, a
key, a type, a number too long to be written, fails here, where a failure is a refusal that costs nothing.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.release import (
    Ends,
    ReleasedBlock,
    cross_keys,
    dense_histogram,
    group_rows,
    key_columns,
    measured_histograms,
    measured_integers,
    narrow_to_int64,
)
from curador.engines.base import Cells, Tallied
from curador.mechanisms.bracket import QuantileNoise
from curador.mechanisms.quantile import Ranks
from curador.randomness.entropy import Keystream
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from curador.answers.release import Histograms
    from curador.engines.base import KeyValue
    from curador.plan.model import BlockPlan, Measurement
    from curador.plan.price import KeyNoise, Noise, Priced
    from curador.randomness.entropy import Entropy

_SMALL = 1 << 16  # places, and numbers of steps that a person could have written

_MADE_UP: dict[Type, KeyValue] = {
    Type.BOOLEAN: True,
    Type.INTEGER: 1,
    Type.DECIMAL: 0.5,
    Type.FLOAT: 0.5,
    Type.STRING: "a",
    Type.DATE: dt.date(2000, 1, 1),
    Type.TIMESTAMP: dt.datetime(2000, 1, 1),  # noqa: DTZ001 -- keys have no zone
}


def shape_of(priced: Priced) -> Hashable:
    """Return what a priced plan's way from tallies to its table depends on: two of one shape go the same way.

    Neither rows nor the conditions on them are in it; names, types, expressions and known keys are, whole; numbers that
    bounds, grids and noise bring along are by their sign and magnitude, as what fails for their sake fails for their size.
    """
    plan = priced.plan
    blocks = [
        (block.items, block.having, block.keys, block.joint, _shape((block.estimates, block.measurements, noises, selection)))
        for block, noises, selection in zip(plan.blocks, priced.noises, priced.selections, strict=True)
    ]
    return tuple(blocks), plan.order, plan.limit, plan.offset, plan.above


def _shape(value: Any) -> Hashable:
    if isinstance(value, tuple):
        return tuple([_shape(one) for one in value])
    if isinstance(value, Fraction) or (isinstance(value, int) and abs(value) > _SMALL):
        return value > 0, value.numerator.bit_length() - value.denominator.bit_length()
    names = _compared_fields(type(value))
    return value if names is None else (type(value), *[_shape(getattr(value, name)) for name in names])


@cache
def _compared_fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a class that say which one it is; None of what is no data class."""
    return tuple(one.name for one in dataclasses.fields(kind) if one.compare) if dataclasses.is_dataclass(kind) else None


def rehearse(priced: Priced, tallied: Sequence[Tallied]) -> list[ReleasedBlock]:
    """Return what an empty table would give if noise were 0, having drawn each noise once and thrown it away."""
    thrown = Keystream()
    thrown.pools = None  # nothing is drawn ahead
    blocks = zip(priced.plan.blocks, tallied, priced.noises, priced.selections, strict=True)
    return [_block(*block, thrown) for block in blocks]


def tally_without_rows(block: BlockPlan) -> Tallied:
    """Return what an engine gives for a block where no table has a row."""
    nothing, one = np.zeros(0, np.int64), np.zeros(0 if block.keys else 1, np.int64)
    tallies = {place: one for place, tally in enumerate(block.tallies) if tally.kind != "cells"}
    cells = {place: Cells(nothing, nothing, nothing) for place, tally in enumerate(block.tallies) if tally.kind == "cells"}
    selection = (tuple([] for _ in block.private_keys), nothing) if block.private_keys else None
    return Tallied(tuple([] for _ in block.keys), tallies, cells, selection)


def _block(
    block: BlockPlan, tallied: Tallied, noises: Sequence[Noise], selection: KeyNoise | None, thrown: Entropy
) -> ReleasedBlock:
    made_up = tuple(_MADE_UP[block.keys[place].type] for place in block.private_keys)
    rows = cross_keys(block, [made_up])
    places = group_rows(block, tallied, rows)
    values: list[Any] = []
    for measurement, noise in zip(block.measurements, noises, strict=True):
        if isinstance(noise, QuantileNoise):
            histograms = measured_histograms(measurement, tallied, places)
            values.append(_quantile(noise, measurement, histograms, len(rows), thrown))
            continue
        integers = measured_integers(measurement, tallied, places, len(rows))
        if len(integers):
            noise.draw(integers[:1], thrown)
        values.append(narrow_to_int64(integers) if len(integers) else np.empty(0, np.int64))
    units = None if selection is None else np.full(len(rows), float(selection.threshold))
    return ReleasedBlock(key_columns(rows, len(block.keys)), tuple(values), units)


def _quantile(noise: QuantileNoise, measurement: Measurement, histograms: Histograms, count: int, thrown: Entropy) -> Ends:
    weight, drawn = measurement.unit_weight, list[int]()
    for mechanism in noise.drawn:
        scores = mechanism.scores(dense_histogram(histograms, 0, noise.point.cells), weight)
        drawn.append(int(mechanism.draw(Ranks(scores, weight), thrown)))
    for test in noise.tests:
        test.draw(np.zeros(1, object), thrown)
    cells = drawn[0], 0, noise.point.cells - 1  # ends as far out as can be
    return Ends(*(np.full(count, float(noise.point.points[cell])) for cell in cells))
