"""The record of shuffled reports: what it refuses, what it answers, and how it adds up."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from curador.cli.expression import loss_of
from curador.errors import InvalidParameter, NotPrivate, NumericalFailure
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.loss import attempt
from curador.privacy.losses import MOST_REPORTS, GaussianLoss, LaplaceLoss, Pure, Shuffled, loss_from_record
from curador.privacy.rules import to_record
from curador.privacy.shuffle import clones_delta, clones_epsilon, closed_form, shuffled_delta, shuffled_epsilon

ONE = Shuffled(epsilon=1, reports=1000)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"epsilon": -1, "reports": 5}, "epsilon must be"),
        ({"epsilon": 1, "reports": 0}, "reports must be a whole number of at least 1"),
        ({"epsilon": 1, "reports": "2.5"}, "reports must be"),
        ({"epsilon": 1, "reports": MOST_REPORTS + 1}, "reports must be at most"),
        ({"epsilon": 1, "reports": 5, "variation": "1.01"}, "variation must be between 0 and 1"),
        ({"epsilon": 1, "reports": 5, "variation": -1}, "variation must be between 0 and 1"),
        ({"epsilon": 1, "reports": 5, "adjacency": "add_or_remove_one"}, "adjacency must be replace_one"),
        ({"epsilon": 1, "reports": 5, "adjacency": "friends"}, "adjacency must be"),
    ],
)
def test_bad_parameters_are_refused(wrong, told):
    """One sentence, before anything is computed."""
    with pytest.raises(InvalidParameter, match=told):
        Shuffled(**wrong)


@pytest.mark.parametrize("loss", [ONE, Shuffled(epsilon="1/3", reports=7, variation="0.1")])
def test_a_record_comes_back(loss):
    """Exact numbers, the class's name as kind."""
    record = to_record(loss)
    assert record["kind"] == "Shuffled"
    assert loss_from_record(record) == loss
    assert loss_from_record(to_record(3 * loss + Pure(epsilon=1))) == 3 * loss + Pure(epsilon=1)


def test_it_is_about_replacing_one():
    """Its neighbours are typed, and two kinds do not add."""
    assert ONE.adjacency is REPLACE_ONE
    with pytest.raises(InvalidParameter, match="one adjacency"):
        (ONE + LaplaceLoss(epsilon=1, adjacency="add_or_remove_one")).epsilon("1e-6")


@pytest.mark.slow
def test_the_scalars():
    """Pure ε is that of one report; ρ is far below; a group multiplies; a subsample is refused by name."""
    assert ONE.pure_epsilon == 1
    assert 0 < ONE.rho < Fraction(1, 100) < Pure(epsilon=1).rho
    assert (2 * ONE).rho == 2 * ONE.rho
    assert ONE.group(3) == Pure(epsilon=3, adjacency=REPLACE_ONE)
    assert ONE.epsilon(0) == 1
    assert ONE.delta(1) == 0
    for scheme in ("poisson", "without_replacement"):
        with pytest.raises(NotPrivate, match="Shuffled"):
            ONE.subsample(rate="0.1", scheme=scheme, adjacency="replace_one")


def test_one_report_is_the_randomizer():
    """n = 1 costs what any ε-private mechanism may."""
    single = Shuffled(epsilon=1, reports=1)
    for delta in ("0.01", "0.2"):
        assert single.epsilon(delta) == pytest.approx(Pure(epsilon=1).epsilon(delta), rel=1e-9)
    assert single.rho == Pure(epsilon=1).rho
    assert (5 * single).epsilon("1e-3") == pytest.approx((5 * Pure(epsilon=1)).epsilon("1e-3"), rel=1e-6)


@pytest.mark.slow
def test_a_variation_as_large_as_it_can_be_changes_nothing():
    """tanh(ε/2), and everything above, is what None stands for."""
    for variation in (math.tanh(0.5) + 1e-9, 1):
        other = Shuffled(epsilon=1, reports=30, variation=variation)
        assert other.delta("0.2") == pytest.approx(Shuffled(epsilon=1, reports=30).delta("0.2"), rel=1e-9)


@pytest.mark.slow
def test_all_readings_answer_for_a_sum():
    """A shuffle, Gaussian noise and another shuffle: every question has an answer, and they agree with each other."""
    total = ONE + GaussianLoss(mu="0.2") + 2 * Shuffled(epsilon="0.5", reports=300)
    found = total.epsilon_interval("1e-5")
    readings = total.readings("1e-5")
    assert found.upper <= min(readings.values()) * (1 + 1e-9)
    assert found.lower <= found.upper <= found.lower * (1 + 1e-3)
    assert total.delta_interval(found.upper).upper <= 1.0001e-5
    assert total.delta(Fraction(found.upper)) <= 1.0001e-5
    assert 0 < total.renyi(2) < total.renyi(3)
    assert total.renyi(1) <= total.renyi("1.001")
    assert total.pure_epsilon is None
    assert total.rho == ONE.rho + 2 * Shuffled(epsilon="0.5", reports=300).rho + Fraction("0.02")
    assert np.all(np.diff(total.tradeoff(np.array([0.01, 0.1, 0.5]))) < 0)
    assert 0.6 < total.tradeoff("0.1") < 0.9


@pytest.mark.slow
def test_verified_with_fifty_digits():
    """The law's sum passes the check of its round-off."""
    small = Shuffled(epsilon=1, reports=12)
    low, high = (2 * small).delta_interval("0.1", verify=True)
    assert low <= high
    assert small.epsilon_interval("1e-3", verify=True).upper == small.epsilon_interval("1e-3").upper


@pytest.mark.parametrize("epsilon", [20, 37, 60, 800])
def test_a_huge_local_epsilon_degrades_to_itself(epsilon):
    """Nobody hides anybody: ε is about ε₀, never above, with and without a variation."""
    for variation in (None, "0.9"):
        low, high = Shuffled(epsilon=epsilon, reports=50, variation=variation).epsilon_interval("1e-6")
        assert low <= high <= epsilon * (1 + 1e-14)
        assert high > 0.99 * epsilon


@pytest.mark.slow
def test_a_tiny_local_epsilon_stays_finite():
    """No overflow and no underflow to a claim of nothing."""
    low, high = Shuffled(epsilon="1e-20", reports=10**5).epsilon_interval("1e-30")
    assert 0 < low <= high < 1e-20
    assert (2 * Shuffled(epsilon="1e-20", reports=10**5)).epsilon("1e-30") <= 2.1e-20


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1e-100", "1e-200", "1e-320"])
@pytest.mark.parametrize(("reports", "variation"), [(1, None), (2, None), (2, "0.1")])
def test_an_epsilon_whose_square_leaves_the_floats_is_never_nothing(epsilon, reports, variation):
    """No reading underflows to a claim of nothing. The moments are refused; one shuffle's own sum needs none of them."""
    loss = Shuffled(epsilon=epsilon, reports=reports, variation=variation)
    for one in (loss, 2 * loss, loss + Pure(epsilon=1), Pure(epsilon=epsilon)):
        for question in (lambda one: one.renyi(1), lambda one: one.renyi(64)):
            with pytest.raises(NumericalFailure, match="for a certified answer"):
                question(one)
        for question, nothing in ((lambda one: one.delta(0), 0.0), (lambda one: -one.tradeoff("0.1"), -0.9)):
            got = attempt(lambda one=one, question=question: question(one))
            assert got is None or got > nothing
    assert loss.pure_epsilon == Fraction(epsilon)
    assert 0 < loss.rho <= Pure(epsilon=epsilon).rho


def test_a_small_epsilon_is_not_below_its_divergence():
    """Just above what is refused: D_α of ε = 1e-99 and two reports is α/2 times ε²/2, to first order."""
    loss, epsilon = Shuffled(epsilon="1e-99", reports=2), Fraction("1e-99")
    for alpha in (4, 64):
        assert Fraction(loss.renyi(alpha)) >= alpha * epsilon**2 / 4
        assert Fraction(loss.renyi(alpha)) <= alpha * epsilon**2


@pytest.mark.slow
@pytest.mark.parametrize("epsilon0", ["0.2", "1", "4"])
def test_the_profile_falls(epsilon0):
    """δ falls with ε and with the number of reports, and rises with ε₀; the older pair lies above, its closed form too."""
    places = [Fraction(epsilon0) * Fraction(k, 10) for k in range(11)]
    deltas = [shuffled_delta(epsilon0, 500, place) for place in places]
    assert all(first > second for first, second in itertools.pairwise(deltas))
    assert deltas[-1] == 0
    fewer = [shuffled_delta(epsilon0, n, places[1]) for n in (1, 2, 3, 10, 100, 3000)]
    assert all(first >= second * (1 - 1e-12) for first, second in itertools.pairwise(fewer))
    assert shuffled_delta(epsilon0, 500, places[1]) < shuffled_delta(Fraction(epsilon0) * 2, 500, places[1])
    assert shuffled_delta(epsilon0, 500, places[1]) < clones_delta(epsilon0, 500, places[1])


@pytest.mark.slow
def test_epsilon_and_the_published_bounds():
    """shuffled < clones < closed form, and the closed form is refused where it is not proved."""
    ours, older, closed = (f(1, 10**5, "1e-6") for f in (shuffled_epsilon, clones_epsilon, closed_form))
    assert ours < older < closed < 1
    assert shuffled_delta(1, 10**5, Fraction(ours)) <= 1e-6
    with pytest.raises(NotPrivate, match="closed form"):
        closed_form(4, 1000, "1e-6")
    with pytest.raises(InvalidParameter, match="reports must be"):
        shuffled_delta(1, 0, 1)


def test_the_command_line_knows_it():
    """shuffle(epsilon=, reports=) and variation= among the words of expressions."""
    assert loss_of("shuffle(epsilon=1, reports=10000) + gdp(mu=0.05)") == Shuffled(epsilon=1, reports=10000) + GaussianLoss(
        mu="0.05"
    )
    assert loss_of("3*shuffle(epsilon=1/3, reports=10_000, variation=0.1)") == 3 * Shuffled(
        epsilon="1/3", reports=10000, variation="0.1"
    )
    with pytest.raises(InvalidParameter, match="arguments of shuffle"):
        loss_of("shuffle(epsilon=1)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "epsilon", "reports", "variation"), [(1, 8, 10**6, "1e-2"), (2, 5, 1000, "1e-4"), (1, 5, 10**6, "1e-4")]
)
def test_epsilon_is_the_inverse_of_delta_where_far_outcomes_are_rare(count, epsilon, reports, variation):
    """Far outcomes lead no search astray, and rare signs are not put there: 0.1 % less ε is too little."""
    loss = count * Shuffled(epsilon=epsilon, reports=reports, variation=variation) + GaussianLoss(mu="0.1")
    found = loss.epsilon("1e-6")
    assert loss.delta_interval(str(found * 0.999)).lower > 1e-6
    assert loss.delta(str(found * 1.000001)) <= 1e-6
