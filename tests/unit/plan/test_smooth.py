"""Slopes and bends of expressions against numbers nearby, and the laws behind bars of sums of ratios against quadrature."""

import math
from fractions import Fraction

import hand_made as hand
import mpmath
import numpy as np
import pytest
from hand_made import call, number, whole

from curador.plan import smooth
from curador.plan.parts import RatioSum, Smooth, is_smooth, jet_of, part_of
from curador.plan.ratio_sums import FINENESS, critical_value

BLOCK = hand.block(quantile="1/2")
N, SUM, MEAN, VARIANCE, SAMPLE, MEDIAN = (hand.estimate(place) for place in range(6))
SHAPES = [
    call("-", MEAN, call("/", N, whole(7))),
    call("*", MEAN, VARIANCE),
    call("/", call("sqrt", VARIANCE), MEAN),
    call("/", call("neg", SUM), call("nullif", call("+", MEAN, SAMPLE), whole(0))),
    call("+", call("*", MEAN, MEAN), call("/", number("3/7"), N)),
    call("sqrt", call("+", SAMPLE, call("cast", N))),
]
ROWS = 40


def boxes(dice, reach=(15.0, 300.0, 9000.0)):
    """Counts, centred sums and squares of some groups, and points within reach of them."""
    count = dice.integers(200, 900, ROWS).astype(float)
    total = np.rint(count * dice.uniform(-20, 20, ROWS))
    squares = np.rint(count * dice.uniform(-500, 500, ROWS))
    centre = dict(enumerate((count, total, squares)))
    made = {index: smooth.variable(index, centre[index], reach[index]) for index in centre}
    inside = {index: centre[index] + dice.uniform(-1, 1, ROWS) * reach[index] for index in centre}
    return made, centre, inside


def value(node, at):
    """The expression at single points, in floats."""
    points = {index: smooth.variable(index, held, 0.0) for index, held in at.items()}
    found = jet_of(node, BLOCK, points, ROWS).value
    return (found.low + found.high) / 2


def wrong_jets(node, dice):
    """In how many rows an enclosure does not hold what differences of values say."""
    made, centre, inside = boxes(dice)
    jet = jet_of(node, BLOCK, made, ROWS)
    here = value(node, inside)
    wrong = ~((jet.value.low <= here) & (here <= jet.value.high))
    middle = value(node, centre)
    wrong |= ~((jet.centre.low <= middle + 1e-9 * abs(middle)) & (middle - 1e-9 * abs(middle) <= jet.centre.high))
    step = {0: 0.01, 1: 1.0, 2: 10.0}

    def moved(*indices):
        return {index: held + step[index] * indices.count(index) for index, held in inside.items()}

    for one in jet.slopes:
        slope = (value(node, moved(one)) - here) / step[one]
        slack = 1e-4 * np.abs(slope) + 1e-9 * np.abs(here) / step[one]
        wrong |= ~((jet.slopes[one].low - slack <= slope) & (slope <= jet.slopes[one].high + slack))
        for other in (index for index in jet.slopes if index >= one):
            bend = value(node, moved(one, other)) - value(node, moved(one)) - value(node, moved(other)) + here
            most = jet.bends.get((one, other), np.zeros(ROWS)) * step[one] * step[other]
            wrong |= np.abs(bend) > 1.01 * most + 1e-10 * np.maximum(np.abs(here), 1)
    return int(wrong.sum())


@pytest.mark.parametrize(
    "node",
    [pytest.param(node, id=str(at), marks=[pytest.mark.slow] * (at in {1, 2, 3, 5})) for at, node in enumerate(SHAPES)],
)
def test_slopes_and_bends_hold_over_the_box(node):
    """At random points of it."""
    assert is_smooth(node, BLOCK)
    for _ in range(5):
        assert wrong_jets(node, np.random.default_rng()) == 0


def test_bends_that_are_too_small_are_caught(monkeypatch):
    """Seeded bug: a product without the product of its slopes."""
    honest = smooth.times

    def flat(one, other):
        found = honest(one, other)
        return smooth.Jet(found.centre, found.value, found.slopes, {pair: 0.0 * bend for pair, bend in found.bends.items()})

    monkeypatch.setattr(smooth, "times", flat)
    assert wrong_jets(call("-", MEAN, call("/", N, whole(7))), np.random.default_rng(1)) > 10


def test_a_divisor_that_may_be_0_leaves_nothing_known():
    """Nothing finite is claimed."""
    count = np.array([3.0, 500.0])
    made = {0: smooth.variable(0, count, 10.0), 1: smooth.variable(1, count, 10.0)}
    with np.errstate(all="ignore"):
        jet = smooth.over(made[1], made[0])
    assert np.isfinite(jet.slopes[1].high).tolist() == [False, True]


def test_which_law_an_expression_has():
    """Sums of ratios by their turn; other smooth ones by slopes; what has a quantile or a step by its parts."""
    assert isinstance(part_of(SHAPES[0], BLOCK), RatioSum)
    assert isinstance(part_of(SHAPES[1], BLOCK), Smooth)
    assert part_of(call("-", MEDIAN, MEAN), BLOCK) is None
    assert part_of(call("abs", SHAPES[0]), BLOCK) is None
    assert part_of(call("sqrt", VARIANCE), BLOCK) is None  # of one part: its own law, and its image


@pytest.mark.parametrize("turning", [1, 2, 3])
@pytest.mark.parametrize("step", [0, 8, 40, 200])
def test_the_turn_has_the_law_that_is_used(step, turning):
    """P[|Z₀| + s ‖Z₁‖ > c] by quadrature: at most the miss, and nearly all of it."""
    miss = 0.045
    c, sine = critical_value(step, turning, miss), mpmath.mpf(step) / FINENESS
    half = mpmath.mpf(turning) / 2

    def density(x):
        return x ** (turning - 1) * mpmath.exp(-x * x / 2) / (2 ** (half - 1) * mpmath.gamma(half))

    missed = mpmath.quad(lambda x: density(x) * min(2 * mpmath.ncdf(sine * x - c), 1), [0, 1, 2, 4, 8, 20])
    assert 0.98 * miss < float(missed) <= miss


def test_a_jet_of_whole_numbers_beyond_a_double_is_not_exact():
    """2⁶⁰ + 1 lies between two doubles."""
    far = smooth.variable(0, np.array([2.0**60]), 0.0)
    assert far.centre.low[0] < 2**60 + 1 < far.centre.high[0]
    assert math.isclose(float(smooth.constant(Fraction(1, 3), 1).value.low[0]), 1 / 3)
