"""What the survey of columns proposes: bounds that follow from noisy numbers of units, and lines for the study file."""

import datetime as dt
import functools
import re
import tomllib
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from curador.curator.survey_columns import ColumnProposal, MeasuredColumn, propose, share_between, share_sentence
from curador.curator.survey_columns import _ends as ends_of
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.mechanisms.seam import perform
from curador.privacy.adjacency import Adjacency
from curador.privacy.sensitivity import Norm, Sensitivity
from curador.study.values import Type

NOISE = DiscreteGaussian(sigma=10, sensitivity=Sensitivity(Fraction(1), Norm.L2, Adjacency.ADD_OR_REMOVE_ONE))


def proposed(units, kind=Type.INTEGER, *, nulls=0, spread=1.0, cap=1, other=0):
    """What follows if so many units have a row of each value; other: what noise put into every other step."""
    one = MeasuredColumn("t", "x", kind, ends_of(kind))
    numbers = [other] * (len(one.ends) + 2)
    numbers[0] = nulls
    for value, number in units.items():
        numbers[1 + sum(value > end for end in one.ends)] = number
    return propose(one, SimpleNamespace(numbers=tuple(numbers), noise=NOISE), spread, 1.0, cap)


def test_bounds_hold_what_is_there():
    """Powers of two around nearly all values, and 0 with them."""
    assert proposed({30: 500, 100: 500}).bounds == (0, 128)
    assert proposed({-30: 500, 100: 500}).bounds == (-32, 128)
    assert proposed({-30: 500}).bounds == (-32, 0)
    assert proposed({0.3: 900}, Type.FLOAT).bounds == (0, Fraction(1, 2))


def test_nothing_is_proposed_where_nothing_is_seen():
    """Fewer units than noise hides."""
    found = proposed({30: 20}, nulls=0)
    assert found.bounds is None
    assert "too few" in found.line()


@pytest.mark.parametrize("other", [-30, 0, 30])
def test_noise_alone_moves_no_bound_far(other):
    """Below what is once in ten thousand, numbers far away count for nothing; near ones for a quarter of the step before."""
    low, high = proposed({30: 500}, other=other).bounds
    assert -max(64, high) <= low <= 0  # three deviations in each of seven steps are no noise: together they are values
    assert 32 <= high <= 512


def test_a_tail_that_noise_hides_is_believed_as_far_as_its_numbers_say():
    """Three steps beyond the last sure one; not if their noisy numbers are 0; and not without one before them."""
    tail = {30: 1_000, 60: 36, 120: 20, 250: 9}
    assert proposed(tail, spread=0.1).bounds[1] > 64
    assert proposed({30: 1_000}, spread=0.1).bounds == (0, 32)
    assert proposed({30: 1_000, 250: 36}, spread=0.1).bounds == (0, 32)


def test_few_far_values_are_not_worth_their_noise():
    """With much noise the bound is below the largest step, and what lies outside is said."""
    found = proposed({30: 5_000, 1_000_000: 60}, spread=1_000.0, cap=100)
    assert found.bounds[1] in {32, 64}
    assert found.outside == pytest.approx(60 / 5_060)


def test_shares_of_null_are_told():
    """In the line for the study file, with what the bounds give."""
    found = proposed({30: 300}, nulls=100)
    assert found.nulls == pytest.approx(0.25)
    assert "bounds = [0, 32]" in found.line()
    assert "NULL in about 25 %" in found.line()


def test_few_values_of_the_other_sign_are_seen_together():
    """None of the steps below 0 is surely occupied, all of them are: returned pieces, and a sum's noise stays the same."""
    returns = {-1: 22, -2: 22, -4: 22, -8: 22, -16: 22}
    found, without = proposed({30: 2_000, **returns}), proposed({30: 2_000})
    assert without.bounds == (0, 32)
    assert found.bounds == (-32, 32)
    assert found.gives == without.gives
    assert "should there be" not in found.line()
    assert proposed({-30: 2_000}).bounds == (-32, 0)


def test_noise_alone_brings_no_other_sign():
    """Five deviations in one step are few of seven steps: a sum of them is compared, and not its largest."""
    assert proposed({30: 2_000, -4: 25}).bounds == (0, 32)
    assert proposed({30: 2_000}, other=5).bounds[0] == 0


def test_what_the_other_sign_would_cost_is_told_where_none_was_seen():
    """Who knows that things are returned writes the other end; dates, and bounds with both signs, need no such line."""
    assert (
        proposed({30: 2_000}).line().endswith("should there be values below 0, bounds = [-32, 32] give a SUM the same noise")
    )
    assert (
        proposed({-30: 2_000}).line().endswith("should there be values above 0, bounds = [-32, 32] give a SUM the same noise")
    )
    assert "should there be" not in proposed({-30: 500, 100: 500}).line()
    assert "should there be" not in proposed({dt.date(2011, 5, 1): 500}, Type.DATE).line()
    assert tomllib.loads(proposed({0.3: 900}, Type.FLOAT).line())["x"]["bounds"] == [0, 0.5]


def test_a_share_of_nothing_is_not_known():
    """Where no value was surely seen nothing is claimed of NULLs either."""
    assert proposed({30: 20}).line().endswith("NULL in a share that is not known")


TIMES, LEVEL, ALARM = 1_000, 0.975, 1e-8
FEWEST = int(binom.ppf(ALARM, TIMES, LEVEL))
UNITS = {5: 1_500, 30: 1_500, 120: 60, -4: 40}
NONE = 500
NOISES = {
    "gaussian": NOISE,
    "laplace": DiscreteLaplace(scale=10, sensitivity=Sensitivity(Fraction(1), Norm.L1, Adjacency.ADD_OR_REMOVE_ONE)),
}


def redrawn(said, drawn, monkeypatch):
    """Yield the noisy numbers of 1,000 surveys."""
    monkeypatch.setattr(type(said), "half_width", functools.cache(type(said).half_width))
    ends = ends_of(Type.INTEGER)
    exact = np.zeros(len(ends) + 2, object)
    exact[0] = NONE
    for value, number in UNITS.items():
        exact[1 + sum(value > end for end in ends)] = number
    for numbers in perform(drawn, exact, TIMES):
        yield SimpleNamespace(numbers=tuple(int(one) for one in numbers), noise=said)


def between(text, share):
    """Whether the interval that is printed there holds a share."""
    if text.strip().startswith("a share that is not known"):
        return True
    low, high = re.search(r"about [\d.e-]+ % \(([\d.]+) – ([\d.]+) %\)", text).groups()
    return float(low) - 1e-9 <= 100 * share <= float(high) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_what_is_printed_of_shares_holds(noise, monkeypatch):
    """In 97.5 % of redraws each, of NULL and of values outside of what was proposed: a false alarm in 4e-8 of runs."""
    one, values = MeasuredColumn("t", "x", Type.INTEGER, ends_of(Type.INTEGER)), sum(UNITS.values())
    nulls = outside = 0
    for counts in redrawn(NOISES[noise], NOISES[noise], monkeypatch):
        found = propose(one, counts, 1.0, 1.0, 1)
        low, high = found.bounds
        lost = sum(number for value, number in UNITS.items() if not low <= value <= high) / values
        outside += between(found.line().split("# ")[1], lost)
        nulls += between(found.line().split("NULL in")[1], NONE / (NONE + values))
    assert min(nulls, outside) >= FEWEST


@pytest.mark.slow
def test_twice_the_noise_that_was_said_is_caught(monkeypatch):
    """Power: the interval of NULLs is then missed in one of seven redraws, 947 of 1,000 are wanted."""
    drawn = DiscreteGaussian(sigma=20, sensitivity=NOISE.sensitivity)
    part = [True] + [False] * (len(ends_of(Type.INTEGER)) + 1)
    share = NONE / (NONE + sum(UNITS.values()))
    told = [share_between(one, part, [True] * len(part)) for one in redrawn(NOISE, drawn, monkeypatch)]
    assert sum(between(share_sentence(0, one), share) for one in told) < FEWEST


def test_dates_get_whole_years():
    """From the first to the last year that is surely there."""
    low, high = proposed({dt.date(2011, 5, 1): 500, dt.date(2013, 5, 1): 500}, Type.DATE).bounds
    assert (low, high) == (dt.date(2011, 1, 1), dt.date(2014, 1, 1))


def test_a_proposed_line_is_one_of_a_study_file():
    """Names with blanks are quoted, numbers are numbers: what is printed can be put into the file as it stands."""
    line = ColumnProposal("sales", "Unit Price", Type.DECIMAL, (Fraction(-1, 4), Fraction(32)), 0.0, 0.0, 1.0).line()
    assert tomllib.loads(line) == {"Unit Price": {"type": "decimal", "bounds": [-0.25, 32]}}
