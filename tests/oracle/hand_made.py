"""Plans and tallies made by hand: no planner, no engine, and truths computed from rows in plain Python."""

from __future__ import annotations

import statistics
from fractions import Fraction

import numpy as np

from curador.engines.base import Cells, Tallied
from curador.plan.aggregates import Linear, Mean, Point, Variance
from curador.plan.model import BlockPlan, Cap, Contribution, Grid, ItemPlan, KeyPlan, Measurement, Plan, Tally
from curador.plan.price import price
from curador.privacy.adjacency import Adjacency
from curador.query.tree import Call, Estimated, Key, Literal, Ref, Scan
from curador.study.values import Type

GRID = Grid(0, 0, 100)
"""Whole numbers from 0 to 100, centre 50."""

COUNT, SUM, MEAN, VARIANCE, SAMPLE, MEDIAN = range(6)
"""Places of the estimates of a hand-made block."""

MIDDLE = 1250
"""What is taken off every square: half of 50²."""


def number(value):
    return Literal(Fraction(value), Type.FLOAT)


def whole(value):
    return Literal(value, Type.INTEGER)


def text(value):
    return Literal(value, Type.STRING)


NULL = Literal(None, None)


def call(function, *arguments, kind=Type.FLOAT):
    return Call(function, arguments, kind)


def truth(function, *arguments):
    return Call(function, arguments, Type.BOOLEAN)


def estimate(place):
    return Estimated(place, Type.INTEGER if place == COUNT else Type.FLOAT)


def item(name, expression, kind=Type.FLOAT, *, released=True):
    return ItemPlan(name, expression, kind, released)


def count_item(name="n"):
    return item(name, estimate(COUNT), Type.INTEGER)


def key(name, values, kind=Type.STRING):
    return KeyPlan(name, Ref(0, kind), kind, None if values is None else tuple(values))


def key_items(keys):
    return tuple(item(one.name, Key(place, one.type), one.type, released=False) for place, one in enumerate(keys))


def block(keys=(), items=(), *, quantile=None, having=None, groups=1):
    """Return a block over whole numbers 0 … 100 of units with one row: count, centred sum, squares, perhaps a histogram."""
    tallies = [Tally("rows"), Tally("steps", grid=GRID), Tally("squares", grid=GRID, centre=50), Tally("units")]
    measurements = [
        Measurement("count", "noise", ((0, 1),), 1, 1),
        Measurement("centred", "noise", ((1, 1), (0, -50)), 50, 2500, grid=GRID),
        Measurement("squares", "noise", ((2, 1), (0, -MIDDLE)), MIDDLE, MIDDLE**2, grid=GRID),
    ]
    bounds = Fraction(0), Fraction(100)
    estimates = [
        Linear(((0, Fraction(1)),), whole=True),
        Linear(((1, Fraction(1)), (0, Fraction(50)))),
        Mean(1, 0, Fraction(1), Fraction(50), *bounds),
        Variance(1, 2, 0, Fraction(1), Fraction(1), MIDDLE, Fraction(2500), sample=False),
        Variance(1, 2, 0, Fraction(1), Fraction(1), MIDDLE, Fraction(2500), sample=True),
    ]
    if quantile is not None:
        tallies.append(Tally("cells", grid=GRID))
        measurements.append(Measurement("median", "quantile", ((4, 1),), 0, 0, Fraction(quantile), GRID))
        estimates.append(Point(3, *bounds))
    private = any(one.values is None for one in keys)
    return BlockPlan(
        relation=Scan("people", ()),
        cap=Cap(1, "none"),
        contribution=Contribution(1, groups, 1, bool(keys)),
        keys=tuple(keys),
        tallies=tuple(tallies),
        measurements=tuple(measurements),
        estimates=tuple(estimates),
        items=(*key_items(keys), *items),
        having=having,
        units=3 if private else None,
    )


def plan(*blocks, order=(), limit=None, offset=0):
    return Plan(tuple(blocks), tuple(order), limit, offset, Adjacency.ADD_OR_REMOVE_ONE, ("people",))


def priced(planned, kind="concentrated", amount="1/10", delta="1e-6"):
    private = any(one.private_keys for one in planned.blocks)
    return price(planned, kind, Fraction(amount), Fraction(delta) if private else Fraction(0))


def tallied(planned, groups):
    """Return the exact tallies of a block for {key tuple: values}; `()` where there are no keys."""
    names, rows = list(groups), [list(values) for values in groups.values()]
    columns = tuple([name[place] for name in names] for place in range(len(planned.keys)))
    tallies = {
        0: np.array([len(values) for values in rows], np.int64),
        1: np.array([sum(values) for values in rows], np.int64),
        2: np.array([sum((value - 50) ** 2 for value in values) for values in rows], np.int64),
        3: np.array([len(values) for values in rows], np.int64),
    }
    cells = {}
    if len(planned.tallies) > 4:
        held = sorted((place, value) for place, values in enumerate(rows) for value in values)
        different = sorted(set(held))
        numbers = [held.count(one) for one in different] if len(held) < 2000 else _counted(held, different)
        places, values = ([one[0] for one in different], [one[1] for one in different])
        cells = {4: Cells(np.array(places, np.int64), np.array(values, np.int64), np.array(numbers, np.int64))}
    private = planned.private_keys
    selection = None
    if private:
        units = {}
        for name, values in zip(names, rows, strict=True):
            chosen = tuple(name[place] for place in private)
            units[chosen] = units.get(chosen, 0) + len(values)
        selection = tuple([one[place] for one in units] for place in range(len(private))), np.array(list(units.values()))
    return Tallied(columns, tallies, cells, selection)


def _counted(held, different):
    found = dict.fromkeys(different, 0)
    for one in held:
        found[one] += 1
    return list(found.values())


def truths(values):
    """Return (count, sum, mean, variance, sample variance, median) of a group's values by the textbook; None for NULL."""
    if not values:
        return 0, 0, None, None, None, None
    ordered = sorted(values)
    return (
        len(values),
        sum(values),
        statistics.fmean(values),
        statistics.pvariance(values),
        statistics.variance(values) if len(values) > 1 else None,
        ordered[(len(ordered) + 1) // 2 - 1],
    )
