from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import InvalidParameter
from curador.privacy import odds

SMALL = settings(deadline=None, max_examples=60)
UP, DOWN = +1, -1

GOLDEN = [  # name, value, true value with 20 digits, relative tolerance, side
    ("posterior", lambda: odds.posterior_bounds(0.1)[0], "0.4750208125210600139", 1e-12, DOWN),
    ("posterior", lambda: odds.posterior_bounds(10)[0], "0.000045397868702434394505", 1e-12, DOWN),
    ("posterior", lambda: odds.posterior_bounds(1)[1], "0.73105857863000487925", 1e-12, UP),
    ("posterior", lambda: odds.posterior_bounds(0.1, prior=0.01)[1], "0.011040098208114549054", 1e-12, UP),
    ("posterior", lambda: odds.posterior_bounds(0.1, prior=0.1)[1], "0.1093668703909570311", 1e-12, UP),
    ("posterior", lambda: odds.posterior_bounds(1, prior=0.01)[1], "0.026723630989395224057", 1e-12, UP),
    ("posterior", lambda: odds.posterior_bounds(1, prior=0.1)[1], "0.23196931668407393639", 1e-12, UP),
    ("posterior", lambda: odds.posterior_bounds(10, prior=0.01)[1], "0.99552551792951462953", 1e-12, UP),
    ("posterior", lambda: odds.posterior_bounds(10, prior=0.1)[1], "0.99959156751739184448", 1e-12, UP),
    ("gdp advantage", lambda: odds.gaussian_advantage(1), "0.38292492254802620728", 1e-12, UP),
    ("gdp advantage", lambda: odds.gaussian_advantage(0.5), "0.19741265136584744848", 1e-12, UP),
    ("gdp advantage", lambda: odds.gaussian_advantage(2), "0.68268949213708589717", 1e-12, UP),
    ("gdp tradeoff", lambda: odds.tradeoff_gaussian(0.01, mu=0.5), "0.96610106087715722259", 1e-12, DOWN),
    ("gdp tpr", lambda: odds.gaussian_true_positive(0.01, mu=2), "0.37208058543549431644", 1e-12, UP),
    ("tradeoff", lambda: odds.tradeoff_approximate(0.05, epsilon=1), "0.86408590857704773823", 1e-12, DOWN),
    (
        "tradeoff",
        lambda: odds.tradeoff_approximate(0.05, epsilon=1, delta=0.01),
        "0.85408590857704773823",
        1e-12,
        DOWN,
    ),
    (
        "tradeoff",
        lambda: odds.tradeoff_approximate(0.3, epsilon=0.5, delta=0.001),
        "0.50438361878996155595",
        1e-12,
        DOWN,
    ),
    ("tpr", lambda: odds.true_positive_bound(0.05, epsilon=1), "0.13591409142295226177", 1e-12, UP),
    (
        "tpr",
        lambda: odds.true_positive_bound(0.05, epsilon=1, delta=0.01),
        "0.14591409142295226177",
        1e-12,
        UP,
    ),
    ("advantage", lambda: odds.advantage(1), "0.4621171572600097585", 1e-12, UP),
    ("advantage", lambda: odds.advantage(1, 0.01), "0.46749598568740966092", 1e-12, UP),
    ("advantage", lambda: odds.advantage(0.5, 0.001), "0.24567374374130542015", 1e-12, UP),
    ("accuracy", lambda: odds.accuracy(1, 0.01), "0.73374799284370483046", 1e-12, UP),
    ("accuracy", lambda: odds.accuracy(0.5, 0.001), "0.62283687187065271007", 1e-12, UP),
    (
        "laplace tradeoff",
        lambda: odds.tradeoff_laplace(0.3, epsilon=1),
        "0.30656620097620193466",
        1e-12,
        DOWN,
    ),
    (
        "laplace tradeoff",
        lambda: odds.tradeoff_laplace(0.7, epsilon=1),
        "0.11036383235143269648",
        1e-12,
        DOWN,
    ),
    (
        "odds tail",
        lambda: odds.renyi_odds_tail(alpha=10, zeta=0.1, factor=2),
        "0.0048039123264784173121",
        1e-12,
        UP,
    ),
    (
        "posterior tail",
        lambda: odds.gaussian_posterior_tail(1, threshold=0.9),
        "0.044827105121436236923",
        1e-12,
        UP,
    ),
    (
        "bad outcome",
        lambda: odds.gaussian_renyi_true_positive(0.001, mu=1),
        "0.024951206777158804213",
        1e-10,
        UP,
    ),
    (
        "bad outcome",
        lambda: odds.gaussian_renyi_true_positive(1e-6, mu=0.5),
        "0.000012222284511986461319",
        1e-10,
        UP,
    ),
    ("loss tail", lambda: odds.loss_tail(1e-5, t=0.1), "0.00010508331944775049624", 1e-12, UP),
]


@pytest.mark.parametrize(("name", "value", "true", "tolerance", "side"), GOLDEN)
def test_golden(name, value, true, tolerance, side):
    """Known numbers, met within their tolerance and never from the wrong side."""
    got, exact = Fraction(value()), Fraction(true)
    slack = exact * Fraction(1, 10**18)  # the golden value itself is rounded
    assert abs(got - exact) <= Fraction(tolerance) * exact
    assert side * (got - exact) >= -slack


def test_one_order_of_the_bad_outcome_bound():
    """(e^0.1 q)^0.9: the three printed examples of the order 10."""
    for fpr, true in ((0.5, 0.58635348033), (0.001, 0.00218316471), (1e-6, 4.35598628e-6)):
        got = odds.renyi_true_positive(fpr, orders=[10.0], divergences=[0.1])
        assert got == pytest.approx(true, rel=1e-8)


def test_the_printed_exponent_of_the_odds_tail_is_wrong():
    """e^ζ/b^(1/(α−1)), as once printed, exceeds 1 where Markov's inequality gives half a percent."""
    assert math.exp(0.1) / 2 ** (1 / 9) > 1
    assert odds.renyi_odds_tail(alpha=10, zeta=0.1, factor=2) < 0.005


def test_loss_tail_is_not_delta():
    """Randomized response: δ(0.99) = 0.0073, yet the loss exceeds 0.99 seven times in ten."""
    keep = math.e / (1 + math.e)
    delta = keep - math.exp(0.99) * (1 - keep)
    assert delta == pytest.approx(0.0072741544)
    assert odds.loss_tail(delta, t="0.00999") >= keep > delta
    assert odds.loss_tail(delta, t="1e-400") == 1.0
    assert odds.loss_tail(0, t=1) == 0.0


def test_ends():
    """No false positives: no true ones but δ. Everything accused: nothing missed."""
    assert odds.true_positive_bound(0, epsilon=1, delta="1/8") == 0.125
    assert odds.tradeoff_approximate(0, epsilon=800, delta="1/8") == 0.875
    assert odds.gaussian_true_positive(0, mu=3) == 0.0
    assert odds.tradeoff_gaussian(0, mu=3) == 1.0
    assert odds.tradeoff_laplace(0, epsilon=1000) == 1.0
    assert odds.renyi_true_positive(0, orders=[2.0], divergences=[9.0]) == 0.0
    assert odds.gaussian_renyi_true_positive(0, mu=1) == 0.0
    for missed in (
        odds.tradeoff_approximate(1, epsilon=1),
        odds.tradeoff_gaussian(1, mu=1),
        odds.tradeoff_laplace(1, epsilon=1),
    ):
        assert missed == 0.0
    for caught in (
        odds.true_positive_bound(1, epsilon=0),
        odds.gaussian_true_positive(1, mu=0),
        odds.renyi_true_positive(1, orders=[2.0], divergences=[0.0]),
        odds.gaussian_renyi_true_positive(1, mu=0),
    ):
        assert caught == 1.0


def test_nothing_spent_is_a_coin():
    """ε = 0, μ = 0: the posterior is the prior, the advantage 0, the accuracy one half."""
    lower, upper = odds.posterior_bounds(0, prior="0.3")
    assert lower <= 0.3 <= upper <= 0.3 * (1 + 1e-15)
    assert odds.advantage(0) == odds.gaussian_advantage(0) == 0.0
    assert odds.accuracy(0) == pytest.approx(0.5, rel=1e-15)
    assert odds.advantage(0, "0.25") == pytest.approx(0.25, rel=1e-15)
    assert odds.gaussian_posterior_tail(0, threshold="0.49") == 1.0
    assert odds.gaussian_posterior_tail(0, threshold="0.5") == 0.0


def test_hopeless_parameters_bound_nothing():
    """A parameter beyond every float gives the trivial bound, not an error and not 0."""
    assert odds.posterior_bounds(10**400) == (0.0, 1.0)
    assert odds.advantage(10**400) == odds.accuracy(10**400) == odds.gaussian_advantage(10**400) == 1.0
    assert odds.true_positive_bound(0.1, epsilon=10**400) == 1.0
    assert odds.gaussian_true_positive(0.1, mu=10**400) == 1.0
    assert odds.tradeoff_gaussian(0.1, mu=10**400) == 0.0
    assert odds.tradeoff_laplace(0.1, epsilon=10**400) == 0.0
    assert odds.renyi_true_positive(0.1, orders=[2.0, 3.0], divergences=[math.inf, math.inf]) == 1.0
    assert odds.renyi_odds_tail(alpha=2, zeta=10**400, factor=2) == 1.0


@pytest.mark.slow
@SMALL
@given(st.floats(1e-9, 1 - 1e-9), st.floats(0, 20), st.floats(0, 0.999))
def test_gain_and_loss_are_two_views(fpr, epsilon, delta):
    """True positives and false negatives of one guarantee add up to 1."""
    gain = odds.true_positive_bound(fpr, epsilon=epsilon, delta=delta)
    lose = odds.tradeoff_approximate(fpr, epsilon=epsilon, delta=delta)
    assert gain + lose == pytest.approx(1, abs=1e-14)
    gain = odds.gaussian_true_positive(fpr, mu=epsilon)
    assert gain + odds.tradeoff_gaussian(fpr, mu=epsilon) == pytest.approx(1, abs=1e-13)


@pytest.mark.slow
@SMALL
@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-3, 20))
def test_laplace_noise_is_harder_to_attack_than_its_epsilon(fpr, epsilon):
    """The trade-off of Laplace noise lies above that of the worst ε-private mechanism."""
    worst = odds.tradeoff_approximate(fpr, epsilon=epsilon)
    assert worst * (1 - 1e-12) - 1e-15 <= odds.tradeoff_laplace(fpr, epsilon=epsilon) <= 1 - fpr


@pytest.mark.slow
@SMALL
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 8))
def test_curves_are_monotone(first, second, level):
    """More false positives never mean fewer true ones; more noise never helps the adversary."""
    low, high = sorted((first, second))
    pair = np.array([low, high])
    for bound in (
        odds.true_positive_bound(pair, epsilon=level, delta=1e-6),
        odds.gaussian_true_positive(pair, mu=level),
        odds.gaussian_renyi_true_positive(pair, mu=level),
    ):
        assert bound[0] <= bound[1] * (1 + 1e-12)
    assert odds.gaussian_true_positive(low, mu=level) <= odds.gaussian_true_positive(low, mu=1.01 * level) * (1 + 1e-12)
    assert odds.advantage(level, 1e-6) <= odds.advantage(1.01 * level, 1e-6)


def test_advantage_is_the_widest_gap_of_the_curve():
    """No point of the ROC bound is further above the diagonal than the advantage, and one comes close."""
    for bound, most in (
        (lambda x: odds.true_positive_bound(x, epsilon=1, delta=0.01), odds.advantage(1, 0.01)),
        (lambda x: odds.gaussian_true_positive(x, mu=1), odds.gaussian_advantage(1)),
    ):
        fpr, tpr = odds.roc(bound, 2001)
        assert fpr[0] == 0.0
        assert fpr[-1] == tpr[-1] == 1.0
        assert most - 1e-3 <= np.max(tpr - fpr) <= most + 1e-14


def test_roc_at_given_rates():
    """An array of rates is used as it is."""
    rates = np.array([0.0, 0.25, 1.0])
    fpr, tpr = odds.roc(lambda x: odds.gaussian_true_positive(x, mu=1), rates)
    assert np.array_equal(fpr, rates)
    assert tpr.shape == rates.shape


def test_a_number_is_its_decimal_and_an_array_its_floats():
    """0.3 means 3/10: an adversary with 3/10 is never given less than at the float just below it."""
    below = float(odds.gaussian_true_positive(np.array([0.3]), mu=1)[0])
    assert Fraction(0.3) < Fraction(3, 10)
    assert odds.gaussian_true_positive(0.3, mu=1) >= below
    assert odds.gaussian_true_positive("0.3", mu=1) == odds.gaussian_true_positive(Fraction(3, 10), mu=1)


def test_the_best_order_wins():
    """Of several orders the least bound is returned; an order of which nothing is known costs nothing."""
    orders, divergences = [1.5, 4.0, 32.0, math.inf], [0.75, 2.0, 16.0, math.inf]
    single = [odds.renyi_true_positive(1e-4, orders=[a], divergences=[z]) for a, z in zip(orders, divergences, strict=True)]
    assert odds.renyi_true_positive(1e-4, orders=orders, divergences=divergences) == min(single) < 1
    assert single[-1] == 1.0
    assert odds.renyi_true_positive(0.1, orders=[math.inf], divergences=[1.0]) == pytest.approx(0.1 * math.e)


BAD = ["abc", math.nan, math.inf, -1, True, None]


@pytest.mark.parametrize("bad", [*BAD, "2"])
def test_bad_rates(bad):
    """A rate is a number from 0 to 1."""
    with pytest.raises(InvalidParameter, match="fpr must be"):
        odds.true_positive_bound(bad, epsilon=1)


@pytest.mark.parametrize(
    "bad",
    [
        np.array([0.5, math.nan]),
        np.array([-1e-300]),
        np.array([1.0000001]),
        np.array([True]),
        np.array(["a"]),
        np.array([None]),
    ],
)
def test_bad_arrays(bad):
    """One bad element refuses the array."""
    with pytest.raises(InvalidParameter):
        odds.tradeoff_gaussian(bad, mu=1)


@pytest.mark.parametrize("bad", BAD)
def test_bad_parameters(bad):
    """ε, δ, μ and the rest refuse words, NaN, infinities, booleans and negatives."""
    for call in (
        lambda: odds.posterior_bounds(bad),
        lambda: odds.posterior_bounds(1, prior=bad),
        lambda: odds.advantage(bad),
        lambda: odds.accuracy(1, bad),
        lambda: odds.gaussian_advantage(bad),
        lambda: odds.gaussian_posterior_tail(bad, threshold=0.5),
        lambda: odds.gaussian_posterior_tail(1, threshold=bad),
        lambda: odds.renyi_odds_tail(alpha=bad, zeta=1, factor=1),
        lambda: odds.renyi_odds_tail(alpha=2, zeta=bad, factor=1),
        lambda: odds.renyi_odds_tail(alpha=2, zeta=1, factor=bad),
        lambda: odds.loss_tail(bad, t=1),
        lambda: odds.loss_tail(0.1, t=bad),
        lambda: odds.gaussian_true_positive(0.1, mu=bad),
        lambda: odds.gaussian_renyi_true_positive(0.1, mu=bad),
        lambda: odds.tradeoff_laplace(0.1, epsilon=bad),
        lambda: odds.tradeoff_approximate(0.1, epsilon=1, delta=bad),
        lambda: odds.renyi_true_positive(0.1, orders=[2.0], divergences=[bad if bad != math.inf else -bad]),
        lambda: odds.roc(lambda x: x, bad),
    ):
        with pytest.raises(InvalidParameter):
            call()


@pytest.mark.parametrize(
    ("orders", "divergences"),
    [
        ([], []),
        ([2.0], [1.0, 2.0]),
        ([1.0], [0.1]),
        ([2.0], [-0.1]),
        ([2.0], [math.nan]),
        ([[2.0], [3.0, 4.0]], [1.0]),
    ],
)
def test_bad_curves(orders, divergences):
    """A curve has as many divergences as orders, orders above 1 and no negative divergence."""
    with pytest.raises(InvalidParameter):
        odds.renyi_true_positive(0.1, orders=orders, divergences=divergences)


def test_degenerate_probabilities():
    """A prior, a threshold or δ of 1 is no probability to argue from."""
    for call in (
        lambda: odds.posterior_bounds(1, prior=1),
        lambda: odds.posterior_bounds(1, prior=0),
        lambda: odds.gaussian_posterior_tail(1, threshold=1),
        lambda: odds.advantage(1, 1),
        lambda: odds.renyi_odds_tail(alpha=1, zeta=1, factor=2),
    ):
        with pytest.raises(InvalidParameter):
            call()
