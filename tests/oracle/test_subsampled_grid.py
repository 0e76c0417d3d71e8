"""Poisson-subsampled Gaussian noise on a grid of noise, rates, steps and δ, against values of 34 digits.

`make accounting-grid` holds the whole grid; here a part of it, chosen for what once failed. No clock: widths and sides only.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from curador import compose, losses

VALUES = json.loads((Path(__file__).parent / "subsampled_grid.json").read_text())


def steps(sigma, rate, count):
    return count * losses.GaussianLoss(mu=1 / Fraction(sigma)).subsample(rate=rate)


def narrow(interval):
    width = interval.upper - interval.lower
    return width <= 1e-3 * interval.upper if interval.upper >= 1e-2 else width <= 1e-5


def holds(interval, kept):
    """The value lies in the interval up to its own doubt, which is relative to δ: at least as large as that of ε."""
    value, slack = Fraction(kept["epsilon"]), 4 * Fraction(kept["doubt"])
    room = slack * max(value, Fraction(1, 10**4))
    return Fraction(interval.lower) - room <= value <= Fraction(interval.upper) + room


@pytest.mark.parametrize("key", sorted(VALUES)[::16])
def test_the_kept_value_lies_in_a_narrow_interval(key):
    sigma, rate, count, delta = key.split()
    found = steps(sigma, rate, int(count)).epsilon_interval(delta)
    assert holds(found, VALUES[key])
    assert narrow(found)


SMALL_RATES = [
    ("2", "1e-4", 10**6, "1e-5", 0.171753878),
    ("2", "1e-5", 10**6, "1e-8", 0.0229209512),
    ("4", "1e-5", 10**6, "1e-8", 0.0105039268),
    ("2", "1e-4", 10**4, "1e-5", 0.0135599447),
    ("3", "1e-3", 100, "1e-6", 0.0112040979),
    ("4", "1e-3", 1000, "1e-5", 0.0215718477),
    ("2", "1e-3", 10, "1e-5", 0.00452943578),
    ("8", "1e-3", 10, "1e-5", 0.000646397065),
    ("1", "1e-4", 100, "1e-5", 0.00347144344),
]


@pytest.mark.parametrize(("sigma", "rate", "count", "delta", "value"), SMALL_RATES)
def test_small_rates_are_neither_refused_nor_wide(sigma, rate, count, delta, value):
    found = steps(sigma, rate, count).epsilon_interval(delta)
    assert found.lower * (1 - 1e-6) <= value <= found.upper * (1 + 1e-6)
    assert found.upper - found.lower <= 1e-4 * found.upper


@pytest.mark.parametrize(
    ("sigma", "rate", "count"), [("1", "0.01", 5), ("2", "0.01", 5), ("4", "0.01", 5), ("1", "0.01", 11)]
)
def test_a_handful_of_steps_is_narrow(sigma, rate, count):
    found = steps(sigma, rate, count).epsilon_interval("1e-6")
    assert narrow(found)
    assert found.lower > 0.0


@pytest.mark.long
def test_delta_of_three_steps_is_narrow():
    low, high = steps("0.5", "0.2", 3).delta_interval(1)
    assert low <= 0.155946 <= high * (1 + 1e-4)
    assert high - low <= 1e-3 * high


def test_a_schedule_counts_the_steps_of_all_its_records():
    """A hundred records of one step each decay like a hundred steps."""
    schedule = compose([losses.GaussianLoss(mu=Fraction(1000 + k, 1000)).subsample(rate="0.01") for k in range(100)])
    low, high = schedule.epsilon_interval("1e-6")
    once, most = (steps(1 / Fraction(mu), "0.01", 100).epsilon_interval("1e-6") for mu in ("1", "1.099"))
    assert once.lower < low < high < most.upper
    assert high - low <= 1e-4 * high


@pytest.mark.parametrize(("adjacency", "count"), [("add_or_remove_one", 7), ("replace_one", 7)])
def test_more_steps_never_cost_less(adjacency, count):
    """A chain that no cut, no tilt and no plan may break: ε grows with the steps and falls with δ."""
    step = losses.GaussianLoss(mu="0.7").subsample(rate="0.02", adjacency=adjacency)
    few, more = ((n * step).epsilon_interval("1e-7") for n in (count, count + 1))
    later = (count * step).epsilon_interval("1e-8")
    assert few.lower <= more.upper
    assert few.lower <= later.upper
    assert few.upper < later.lower
    assert few.upper < more.lower
