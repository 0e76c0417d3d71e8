"""Bars of the greatest and least of released numbers, and of shares of them, against truths that are known: by redraws.

A test alarms where more rows are missed than a binomial law allows but for 1e-9; all of them together below 1e-7.
"""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom

from curador.answers import extremes
from curador.answers.bars import Folded, RowRanges, ShareOfExtreme
from curador.answers.forms import Form
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace

MISS = Fraction(1, 5)
REDRAWS = 1000
MOST = int(binom.isf(1e-9, REDRAWS, float(MISS)))
LAWS = {"gaussian": DiscreteGaussian(sigma=10, sensitivity=1), "laplace": DiscreteLaplace(scale=10, sensitivity=1)}


def redrawn(truth, law, redraws=REDRAWS, seed=1, added=0.0):
    """Groups of these numbers, released so often, one after the other; and the greatest or least of each release."""
    dice, size = np.random.default_rng(seed), len(truth) * redraws
    places = np.arange(-400, 401)
    weights = np.exp(-np.abs(places) / 10) if isinstance(law, DiscreteLaplace) else np.exp(-((places / 10) ** 2) / 2)
    noise = dice.choice(places, size, p=weights / weights.sum())
    world = SimpleNamespace(kind_of=np.zeros(size, np.int64), laws=[law], count=size)
    matrix = csr_array((np.ones(size), np.arange(size), np.arange(size + 1)), shape=(size, size))
    form = Form(world, matrix, np.arange(size), np.tile(np.array(truth, float), redraws) + noise + added)
    start, every = np.arange(redraws) * len(truth), np.ones(size, np.bool_)
    return form, lambda name: Folded(name, form, every, every, RowRanges(np.arange(size), start, start + len(truth)))


def misses(where, truth):
    """In how many rows a truth is outside."""
    return int((~((where.low <= truth) & (truth <= where.high))).sum())


TRUTHS = {
    "alone": [50],
    "tied": [60, 60],
    "near": [100, 75],
    "clear": [200, 40, 45],
    "one ahead of many": [160, *([100] * 9)],
    "all tied": [80] * 10,
    "below zero": [-20, -30, -5],
    "both signs": [60, -20, 40],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
def test_extremes_and_shares_of_them_are_covered(kind, truth):
    """Whichever row is extreme, and however many others are near."""
    form, folded = redrawn(truth, LAWS[kind])
    for name, extreme in (("max", max(truth)), ("min", min(truth))):
        among = folded(name)
        assert misses(among.enclose(MISS), extreme) <= MOST, name
        first = form.take(np.arange(REDRAWS) * len(truth) + len(truth) - 1)
        assert misses(ShareOfExtreme(first, among).enclose(MISS), truth[-1] / extreme) <= MOST, name


def test_a_share_of_what_may_be_below_zero_has_no_end():
    """The least is −20: rows above 0 that were released below it say nothing of 40/−20, from neither side."""
    form, folded = redrawn([60, -20, 40], LAWS["gaussian"], 200)
    where = ShareOfExtreme(form.take(np.arange(200) * 3 + 2), folded("min")).enclose(MISS)
    assert misses(where, -2.0) <= int(binom.isf(1e-9, 200, float(MISS)))
    assert np.all(np.isfinite(where.low) == np.isfinite(where.high))


@pytest.mark.slow
def test_counting_the_rows_that_are_near_is_needed(monkeypatch):
    """Where each of twenty tied rows has the whole miss, the lower end is above the truth too often."""
    form, folded = redrawn([80] * 20, LAWS["gaussian"])
    assert form.rows == 20 * REDRAWS
    assert misses(folded("max").enclose(MISS), 80) <= MOST
    monkeypatch.setattr(extremes, "_levels", lambda among: np.zeros(len(among.which), np.int64))
    assert misses(folded("max").enclose(MISS), 80) > MOST


def test_very_many_pairs_are_boxed(monkeypatch):
    """By intervals that hold anyway: wider, and not missed more often than the screening is."""
    truth = [300, 290, 150]
    form, folded = redrawn(truth, LAWS["gaussian"], 300)
    last = form.take(np.arange(300) * 3 + 2)
    plain = ShareOfExtreme(last, folded("max")).enclose(MISS)
    monkeypatch.setattr(extremes, "_MOST_PAIRS", 0)
    boxed = ShareOfExtreme(last, folded("max")).enclose(MISS)
    assert np.isfinite(boxed.low).all()
    assert np.mean(boxed.high - boxed.low) > np.mean(plain.high - plain.low)
    assert misses(boxed, 0.5) <= int(binom.isf(1e-9, 300, float(2 * extremes.SCREENED * MISS)))


def test_a_form_that_is_nearly_another_is_not_taken_for_it():
    """(n + 1e-9)/n is 1 + 1e-9 where n is 1, however large n was released."""
    form, folded = redrawn([1], LAWS["gaussian"], 1)
    form.value[:] = 30_000.0
    more = Form(form.world, form.matrix, form.pick, form.value + 1e-9)
    where = ShareOfExtreme(more, folded("max")).enclose(MISS)
    assert where.high[0] - where.low[0] > 1e-9
    same = ShareOfExtreme(form, folded("max")).enclose(MISS)
    assert same.low[0] <= 1 <= same.high[0] < 1 + 1e-11
