"""Error bars of quantiles: what tests may say, brute force over all small histograms, and how often the ends are wrong.

Redraws: in 6,000 of them at most as many ends are wrong as a miss of 5 % has with probability 1 − 1e-9: over 12 histograms,
four ranks and two kinds of noise a false alarm happens at most once in 1e7 runs.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import hand_made as hand
import numpy as np
import pytest
from scipy.stats import binom

from curador.answers.release import release
from curador.audit.replay import replay
from curador.mechanisms import bracket as brackets
from curador.mechanisms.bracket import QuantileNoise, RankedCells, bracket
from curador.mechanisms.quantile import Ranks
from curador.mechanisms.seam import perform
from curador.plan import price as prices
from curador.plan.price import price
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import compose

TIMES = 6000
KINDS = {"concentrated": "1/10", "pure": "1/2"}


def noise_of(q, kind="concentrated", amount=None, **changes):
    """The noise of a quantile of whole numbers from 0 to 100, one row a person."""
    block = hand.block(quantile=q)
    block = replace(block, measurements=(replace(block.measurements[3], **changes),), estimates=(), items=())
    return price(hand.plan(block), kind, Fraction(amount or KINDS[kind])).noises[0][0]


def score(counts, q, cell):
    """G by its definition."""
    return (q.denominator - q.numerator) * sum(counts[: cell + 1]) - q.numerator * sum(counts[cell + 1 :])


def true_cell(counts, q):
    """The first cell at which the rank is reached; the first that is not empty for the minimum."""
    reached = [c for c in range(len(counts)) if sum(counts[: c + 1]) >= max(q * sum(counts), Fraction(1, 10**9))]
    return reached[0]


def redrawn(noise, counts, times, weight=1):
    counts = np.array(counts)
    drawn = [perform(one, Ranks(one.scores(counts, weight), weight), times) for one in noise.drawn]
    every = np.array([score(counts.tolist(), noise.point.q, cell) for cell in range(len(counts))])
    return drawn[0], *bracket(noise, lambda cells: every[cells], drawn, weight)


def histograms():
    """101 cells: spread out, ties, two heaps, few people, one, and heaps at the bounds."""
    dice = np.random.default_rng(7)
    yield np.bincount(dice.integers(0, 101, 2000), minlength=101)
    yield np.bincount(np.clip(dice.normal(40, 5, 300), 0, 100).astype(int), minlength=101)
    for heaps in ({40: 500}, {10: 50, 90: 50}, {10: 51, 90: 49}, {0: 400, 100: 1}, {0: 1}, {100: 3}, {50: 1, 51: 1}):
        yield np.array([heaps.get(cell, 0) for cell in range(101)])
    yield np.bincount(dice.integers(0, 101, 12), minlength=101)
    yield np.bincount(dice.choice([20, 21, 22, 60], 90), minlength=101)
    yield np.repeat([0, 3], [60, 41])


# ---- what may be wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", ["1/2", "9/10", "0", "1"])
def test_ends_are_wrong_no_more_often_than_they_may(kind, q):
    """Whatever the histogram."""
    noise = noise_of(q, kind)
    for counts in histograms():
        truth = true_cell(counts.tolist(), noise.point.q)
        point, low, high = redrawn(noise, counts, TIMES)
        assert np.all((low <= point) & (point <= high))
        assert np.sum((truth < low) | (high < truth)) <= binom.isf(1e-9, TIMES, float(noise.miss))


@pytest.mark.parametrize("part", [1, 2, 3])
def test_ends_for_several_parts_are_surer(part):
    """The miss is that of one part of the expression."""
    median, mean = hand.estimate(hand.MEDIAN), hand.estimate(hand.MEAN)
    node = [median, hand.call("-", median, mean), hand.call("*", hand.call("-", median, mean), hand.estimate(hand.VARIANCE))]
    block = hand.block((), [hand.item("m", median), hand.item("x", node[part - 1])], quantile="1/2")
    assert hand.priced(hand.plan(block)).noises[0][3].miss == Fraction(1, 20 * part)


def test_tests_that_ask_for_too_little_are_caught(monkeypatch):
    """Seeded bug: a tenth of what noise reaches."""
    noise, counts = noise_of("1/2", "concentrated", "1/2000"), next(histograms())
    honest = QuantileNoise.reaches.fget
    monkeypatch.setattr(QuantileNoise, "reaches", property(lambda self: tuple(r // 10 for r in honest(self))))
    _, low, high = redrawn(noise, counts, TIMES)
    truth = true_cell(counts.tolist(), noise.point.q)
    assert np.sum((truth < low) | (high < truth)) > binom.isf(1e-9, TIMES, float(noise.miss))


# ---- without noise nothing is wrong --------------------------------------------------------------------------------


def all_small(monkeypatch, cells=4):
    """For every histogram of few people, point and right far ends: whether the ends hold the quantile."""
    monkeypatch.setattr(brackets, "perform", lambda _, value: value)
    monkeypatch.setattr(QuantileNoise, "reaches", property(lambda self: (0,) * len(self.tests)))
    for q in (Fraction(1, 2), Fraction(1, 3), Fraction(0), Fraction(1)):
        grid = replace(hand.GRID, steps=cells - 1)
        noise = noise_of(q, grid=grid)
        for counts in itertools.product(range(3), repeat=cells):
            if not sum(counts):
                continue
            truth, ladder = true_cell(counts, q), RankedCells.of(np.array(counts))
            starts = itertools.product(range(cells), range(truth + 1), range(truth, cells))
            drawn = np.array([[p, lo, hi] for p, lo, hi in starts]).T
            kept = [drawn[0], *(drawn[place] for place, one in ((1, noise.low), (2, noise.high)) if one is not None)]

            def scores(at, ladder=ladder, q=q):
                return np.array([ladder.score(q, cell) for cell in at.tolist()])

            low, high = bracket(noise, scores, kept, 1)
            yield bool(np.all((low <= truth) & (truth <= high)))


@pytest.mark.slow
def test_tests_without_noise_are_right(monkeypatch):
    """All histograms of at most two people a cell."""
    assert all(all_small(monkeypatch))


def test_an_end_one_cell_too_far_is_caught(monkeypatch):
    """Seeded bug: "c is below" read as "c + 1 is below"."""
    honest = RankedCells.score
    monkeypatch.setattr(RankedCells, "score", lambda self, q, cell: honest(self, q, cell - 1))
    assert not all(all_small(monkeypatch))


def test_scores_are_exact_whatever_their_size():
    """As by their definition; also beyond 64 bits."""
    for counts in ([0, 2, 0, 5], [0, 0, 0, 0], [1 << 61, 1, 1 << 61, 7]):
        for q, cell in itertools.product((Fraction(1, 2), Fraction(9, 10), Fraction(0)), range(4)):
            assert RankedCells.of(np.array(counts)).score(q, cell) == score(counts, q, cell)


# ---- privacy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("q", ["1/2", "1/3", "0", "1"])
def test_one_person_moves_no_score_further_than_the_noise_is_made_for(adjacency, q):
    """Every histogram of few people and every neighbour, at every cell: in each of two groups, added up."""
    q, weight = Fraction(q), 2
    noise = noise_of(q, unit_weight=weight)
    sensitivity = replace_adjacency(noise.point, adjacency).sensitivity
    if adjacency is Adjacency.ADD_OR_REMOVE_ONE:
        assert noise.tests[0].squared == (sensitivity * weight) ** 2
    rows = list(itertools.product(range(3), repeat=weight))
    held = [tuple(sum(place == cell for place in one) for cell in range(3)) for one in [*rows, *[(p,) for p in range(3)], ()]]
    for before, after in itertools.product(held, held):
        if adjacency is Adjacency.ADD_OR_REMOVE_ONE and any(before) and any(after):
            continue
        for cell in range(3):
            assert abs(score(before, q, cell) - score(after, q, cell)) <= sensitivity * weight


def replace_adjacency(mechanism, adjacency):
    return type(mechanism)(q=mechanism.q, epsilon=1, lower=0, upper=1, adjacency=adjacency, cells=mechanism.cells)


@pytest.mark.parametrize("q", ["1/2", "1/7", "0", "1"])
def test_draws_and_tests_cost_no_more_than_was_granted(q):
    """And nearly all of it is used."""
    rho = noise_of(q).loss.concentrated[0]
    assert Fraction(99, 1000) < rho <= Fraction(1, 10)
    epsilon = noise_of(q, "pure").loss.pure_epsilon
    assert Fraction(49, 100) < epsilon <= Fraction(1, 2)
    noise = noise_of(q)
    assert noise.loss == compose([one.loss for one in (*noise.drawn, *noise.tests * noise.sides)])


def test_a_minimum_spends_nothing_on_an_end_that_is_the_bound():
    """Nothing shows that nobody lies below."""
    low, high = noise_of("0"), noise_of("1")
    assert (low.low, high.high) == (None, None)
    assert low.sides == high.sides == 1


# ---- neighbours, replayed ------------------------------------------------------------------------------------------


def released_from(groups):
    """A release of a median by group of people with two rows at most, in all groups together."""
    block = hand.block([hand.key("group", ["a", "b", "c"])], [hand.count_item()], quantile="1/2", groups=2)
    block = replace(
        block,
        contribution=replace(block.contribution, rows=2),
        measurements=(replace(block.measurements[3], unit_weight=2),),
        estimates=(),
        items=block.items[:1],
    )
    return release(hand.priced(hand.plan(block), amount=1), [hand.tallied(block, groups)])[0].values


def worlds(dice):
    """Three groups of people, and the same with one more person who has two rows, in one group or in two."""
    groups = {(name,): dice.integers(0, 101, dice.integers(0, 40)).tolist() for name in "abc"}
    more = {name: list(values) for name, values in groups.items()}
    for name in dice.choice(["a", "b", "c"], 2):
        more[(name,)].append(int(dice.integers(0, 101)))
    return groups, more


@pytest.mark.slow
def test_replayed_neighbours_stay_within_what_the_noise_is_made_for():
    """The same cells are tested in both worlds, and every input moves by no more than its sensitivity."""
    dice = np.random.default_rng()
    for _ in range(60):
        found = replay(released_from, *worlds(dice))
        assert not found.violations, found.violations


def test_tests_for_half_of_a_persons_rows_are_caught(monkeypatch):
    """Seeded bug: noise for one row where two are allowed."""
    honest = prices._gaussian  # noqa: SLF001 -- the bug is inside
    monkeypatch.setattr(prices, "_gaussian", lambda squared, *others: honest(squared // 4 or 1, *others))
    dice = np.random.default_rng(3)
    assert any(replay(released_from, *worlds(dice)).violations for _ in range(60))
