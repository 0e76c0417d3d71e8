"""What the survey of columns proposes: bounds that follow from noisy numbers of units, and lines for the study file."""

import tomllib
from fractions import Fraction
from types import SimpleNamespace

import pytest

from curador.curator.survey_columns import ColumnProposal, MeasuredColumn, propose
from curador.curator.survey_columns import _ends as ends_of
from curador.mechanisms.gaussian import DiscreteGaussian
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
    assert -64 <= low <= 0
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


def test_dates_get_whole_years():
    """From the first to the last year that is surely there."""
    import datetime as dt

    low, high = proposed({dt.date(2011, 5, 1): 500, dt.date(2013, 5, 1): 500}, Type.DATE).bounds
    assert (low, high) == (dt.date(2011, 1, 1), dt.date(2014, 1, 1))


def test_a_proposed_line_is_one_of_a_study_file():
    """Names with blanks are quoted, numbers are numbers: what is printed can be put into the file as it stands."""
    line = ColumnProposal("sales", "Unit Price", Type.DECIMAL, (Fraction(-1, 4), Fraction(32)), 0.0, 0.0, 1.0).line()
    assert tomllib.loads(line) == {"Unit Price": {"type": "decimal", "bounds": [-0.25, 32]}}
