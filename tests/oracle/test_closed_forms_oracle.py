"""Conversions and compositions against their definitions with 50 digits: on the safe side, and tight as stated."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import closed_forms as oracle
import pytest

from curador.privacy import compose, convert, gaussian

MP = oracle.MP

EPSILONS = (0, 1e-6, 0.01, 1, 7.3, 50)
DELTAS = (1e-2, 1e-6, 1e-15, 1e-30)
ORDERS = (1.0001, 1.01, 1.5, 2, 3.7, 32, 1000, 10_000)


def assert_above(got: float, true, *, relative: float, absolute: float = 0.0) -> None:
    """The bound is not below the truth, and not far above it."""
    assert oracle.binary(got) >= true
    assert oracle.binary(got) - true <= relative * abs(true) + absolute


def assert_below(got: float, true, *, relative: float, absolute: float = 0.0) -> None:
    """The bound is not above the truth, and not far below it."""
    assert_above(-got, -true, relative=relative, absolute=absolute)


# ---- Gaussian noise --------------------------------------------------------------------------------------------


def gaussian_cases():
    """Every regime: thresholds from −30 to 37 deviations, and plain epsilons."""
    source = random.Random(20)
    for mu in (1e-6, 1e-4, 0.02, 0.0999, 0.1, 0.1001, 0.6, 1, 4, 17, 60):
        for _ in range(12):
            place = source.uniform(-min(mu / 2, 30), 37)
            yield mu, float(max(0.0, mu * (place + mu / 2)))
    yield from itertools.product((1e-6, 0.05, 1, 60), (0, 1e-8, 1e-3))
    yield from ((0.5, 1000), (3, 1000), (60, 1000), (45, 1000))


@pytest.mark.parametrize(("mu", "epsilon"), list(gaussian_cases()))
def test_gaussian_delta_encloses_the_truth(mu, epsilon):
    """The bounds of log delta and delta enclose the exact values within 1e-11, down to 1e-300."""
    true = oracle.gaussian_log_delta(mu, epsilon)
    lower, upper = gaussian.gaussian_log_delta(mu, epsilon=epsilon)
    tight = 1e-11 if true > -700 else float(1e-13 * abs(true))
    assert_above(upper, true, relative=0, absolute=tight)
    assert_below(lower, true, relative=0, absolute=tight)
    low, high = gaussian.gaussian_delta(mu, epsilon=epsilon)
    if true > -690:
        assert_above(high, MP.exp(true), relative=2e-11)
        assert_below(low, MP.exp(true), relative=2e-11)


@pytest.mark.parametrize("delta", [0.3, *DELTAS, 1e-300, "1e-400"])
@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 1, 8.5, 60])
def test_gaussian_epsilon_encloses_the_root(mu, delta):
    """The exact delta at the two ends is on the two sides of the target, and the ends are close."""
    lower, upper = gaussian.gaussian_epsilon(mu, delta=delta)
    goal = MP.log(oracle.number(delta))
    assert oracle.gaussian_log_delta(mu, oracle.binary(upper)) <= goal
    assert lower == 0 or oracle.gaussian_log_delta(mu, oracle.binary(lower)) >= goal
    assert upper - lower <= 1e-11 * upper


@pytest.mark.parametrize("delta", [0.9, 0.3, *DELTAS, 1e-300])
@pytest.mark.parametrize("epsilon", [*EPSILONS, 1000])
def test_gaussian_mu_is_allowed_and_the_next_is_not(epsilon, delta):
    """The exact delta at the calibrated mu is within the target; 1e-11 above it is not."""
    mu = gaussian.gaussian_mu(epsilon=epsilon, delta=delta)
    goal = MP.log(oracle.number(delta))
    if mu == 0:  # below 1e-150 nothing is promised
        assert epsilon == 0
        assert delta == 1e-300
        return
    assert oracle.gaussian_log_delta(oracle.binary(mu), epsilon) <= goal
    assert oracle.gaussian_log_delta(oracle.binary(mu) * (1 + MP.mpf("1e-11")), epsilon) > goal


# ---- one Rényi order -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ORDERS)
def test_formulas_of_one_order_are_rounded_up(alpha):
    """Mironov's and the CKS conversion are above the formula by less than 1e-13 of its terms."""
    for zeta, delta in itertools.product((1e-6, 0.1, 3, 50), DELTAS):
        size = zeta + (math.log(1 / delta) + math.log(alpha)) / (alpha - 1) + 10
        got = convert.renyi_to_epsilon(alpha, zeta, delta=delta, method="mironov")
        assert_above(got, oracle.mironov_epsilon(alpha, zeta, delta), relative=0, absolute=1e-13 * size)
        got = convert.renyi_to_epsilon(alpha, zeta, delta=delta, method="cks")
        true = oracle.cks_epsilon(alpha, zeta, delta)
        assert oracle.binary(got) >= true or got == 0 >= MP.sqrt(1 - MP.exp(-oracle.number(zeta))) - delta
        assert oracle.binary(got) <= max(0, true) + 1e-13 * size


@pytest.mark.parametrize("alpha", ORDERS)
def test_deltas_of_one_order_are_rounded_up(alpha):
    """The CKS delta is above the formula and within 1e-9 of it, or 1, or the total variation bound."""
    for zeta, epsilon in itertools.product((1e-6, 0.1, 3), (0, 1e-6, 0.4, 3.5, 20)):
        true = MP.exp(oracle.cks_log_delta(alpha, zeta, epsilon))
        ceiling = MP.sqrt(1 - MP.exp(-oracle.number(zeta)))
        got = convert.renyi_to_delta(alpha, zeta, epsilon=epsilon, method="cks")
        if true > 1e-290:
            assert_above(got, min(true, ceiling), relative=1e-9)


OPTIMA = [
    (1.0001, 2.7, 0),
    (1.0006, 0.2, 900),
    (1.05, 6.6, 12.5),
    (1.5, 0.004, 1e-6),
    (1.57, 0.0043, 32),
    (2, 0.5, 3),
    (2.15, 6.7, 2.9e-5),
    (3.7, 0.3, 0),
    (4, 0.5, 1),
    (10, 0.1, 1),
    (19, 0.27, 0.0002),
    (53.626827, 0.02789045, 0.0121266),
    (64, 1, 1.4),
    (196.7, 0.0057, 0.129),
    (1600, 1.5e-4, 1e-6),
    (10_000, 0.01, 0.0115),
]


@pytest.mark.parametrize(("alpha", "zeta", "epsilon"), OPTIMA)
def test_optimal_conversion_meets_the_best_binary_pair(alpha, zeta, epsilon):
    """No feasible pair of Bernoulli distributions exceeds the bound, and the best one reaches it within 1e-9."""
    best = oracle.optimal_delta_of_order(alpha, zeta, epsilon)
    bound = convert.renyi_to_delta(alpha, zeta, epsilon=epsilon)
    assert_above(bound, best, relative=1e-9)
    if bound < 1:
        back = convert.renyi_to_epsilon(alpha, zeta, delta=Fraction(bound))
        assert back <= epsilon + 1e-9 * (1 + epsilon)
        assert convert.renyi_to_epsilon(alpha, zeta, delta=Fraction(bound) * Fraction(999, 1000)) > epsilon * (1 - 1e-9)


@pytest.mark.parametrize("zeta", [1e-9, 1e-3, 0.5, 7, 400])
@pytest.mark.parametrize("epsilon", [*EPSILONS, 600])
def test_order_two_has_a_closed_form(zeta, epsilon):
    """At order 2 the optimum is (√((e^eps − 1)² + e^zeta − 1) − (e^eps − 1))/2, and the search finds it too."""
    true = oracle.optimal_delta_of_order_two(zeta, epsilon)
    assert_above(convert.renyi_to_delta(2, zeta, epsilon=epsilon), true, relative=1e-12)
    nearby = convert.renyi_to_delta(Fraction(2) + Fraction(1, 10**12), zeta, epsilon=epsilon)
    assert abs(nearby / true - 1) < 1e-8
    if 1e-290 < true < 0.99:
        back = convert.renyi_to_epsilon(2, zeta, delta=Fraction(str(MP.nstr(true, 40))))
        assert_above(back, oracle.number(epsilon) * (1 - MP.mpf("1e-20")), relative=1e-10, absolute=1e-11)


# ---- concentrated privacy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [1e-12, 1e-6, 0.01, 0.5, 7, 300, 1e6])
def test_concentrated_epsilon_is_the_best_order(rho, delta):
    """The epsilon of zCDP is above the least over all orders by at most 1e-12 of it, and zero only by variation."""
    got = convert.rho_to_epsilon(rho, delta=delta)
    if got == 0:
        assert MP.sqrt(1 - MP.exp(-oracle.number(rho))) <= oracle.number(delta)
        return
    true = oracle.rho_epsilon(rho, delta)
    assert_above(got, max(0, true), relative=1e-12, absolute=1e-13 * math.sqrt(rho))
    largest = convert.rho_for(epsilon=got, delta=delta)
    assert largest.denominator & (largest.denominator - 1) == 0
    assert oracle.rho_epsilon(largest, delta) <= oracle.number(got)
    assert largest >= Fraction(str(rho)) * (1 - Fraction(1, 10**10))
    back = convert.rho_to_delta(rho, epsilon=got)
    assert 0.9 * back <= delta


def test_concentrated_constants_of_pure_mechanisms():
    """eps tanh(eps/2) and eps − 1 + e^−eps are rounded up within 1e-14, and bound D_alpha/alpha of randomised response."""
    for epsilon in (1e-6, 0.01, 0.3, 1, 4, 30, 700):
        e = oracle.number(epsilon)
        assert_above(float(convert.pure_to_rho(epsilon)), e * MP.tanh(e / 2), relative=1e-14)
        with MP.workdps(80):
            assert_above(float(convert.laplace_to_rho(epsilon)), MP.expm1(-e) + e, relative=1e-14)
        for alpha in (1.001, 1.5, 2, 10, 500):
            a = oracle.number(alpha)
            moment = MP.log(MP.cosh((a - MP.mpf(1) / 2) * e) / MP.cosh(e / 2)) / (a - 1)
            assert moment <= a * oracle.binary(float(convert.pure_to_rho(epsilon)))


# ---- composition -----------------------------------------------------------------------------------------------


COMPOSED = [
    (0.1, 100, 4.0),
    (0.5, 20, 0),
    (1e-6, 10**6, 1e-4),
    (0.003, 10**6, 18.0),
    (0.003, 10**6, 1.5),
    (1e-4, 10**5, 0.7),
    (0.7, 1, 0.25),
    (50, 3, 120),
    (8, 40, 310.5),
    (2, 1000, 1500),
    (0.01, 1000, 9.999),
]


@pytest.mark.parametrize(("epsilon0", "count", "epsilon"), COMPOSED)
def test_optimal_composition_encloses_the_binomial_sum(epsilon0, count, epsilon):
    """The certified delta encloses the exact sum, within 1e-9 for a million mechanisms and 1e-11 for a thousand."""
    true = oracle.composed_log_delta(epsilon0, count, epsilon)
    lower, upper = compose.optimal_delta(epsilon0, count=count, epsilon=epsilon)
    tight = 1e-9 if count > 1000 else 1e-11
    if true > -690:
        assert_above(upper, MP.exp(true), relative=tight)
        assert_below(lower, MP.exp(true), relative=tight)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("epsilon0", "count"), [(0.1, 100), (0.5, 20), (3, 7), (1e-6, 10**6), (0.003, 10**6), (20, 2)])
def test_optimal_epsilon_encloses_the_root(epsilon0, count, delta):
    """The exact delta at the two ends is on the two sides of the target, and the ends are close."""
    lower, upper = compose.optimal_epsilon(epsilon0, count=count, delta=delta)
    goal = MP.log(oracle.number(delta))
    whole = oracle.number(epsilon0) * count
    assert oracle.composed_log_delta(epsilon0, count, oracle.binary(upper)) <= goal or oracle.binary(upper) >= whole
    assert lower == 0 or oracle.composed_log_delta(epsilon0, count, oracle.binary(lower)) >= goal
    assert upper - lower <= 1e-9 * upper


@pytest.mark.parametrize("count", [2, 30, 10**6])
def test_every_closed_form_is_above_the_optimum(count):
    """Basic, DRV, KOV and Mironov's bound are all at least the exact optimum, where they do not refuse."""
    for epsilon0, delta in itertools.product((1e-6, 1e-3, 0.1, 1), (1e-2, 1e-10)):
        exact = compose.optimal_epsilon(epsilon0, count=count, delta=delta)[0]
        assert compose.advanced(epsilon0, count=count, delta=0, delta_prime=delta)[0] >= exact
        assert compose.advanced_kov(epsilon0, count=count, delta=0, delta_prime=delta)[0] >= exact
        for form in ("plain", "sharp"):
            assert compose.kov_epsilon(epsilon0, count=count, delta_prime=delta, form=form) >= exact
        if count * epsilon0**2 < math.log(1 / delta):
            assert compose.mironov_corollary(epsilon0, count=count, delta=delta) >= exact


def test_laplace_is_below_the_pure_optimum():
    """k Laplace releases cost no more than k pure mechanisms, and one of them is the closed form."""
    for epsilon0, count, epsilon in ((1, 1, 0.3), (0.5, 4, 0.9), (0.2, 12, 0.8)):
        exact = oracle.laplace_folded_delta(epsilon0, count=count, epsilon=epsilon)
        assert exact <= oracle.binary(compose.optimal_delta(epsilon0, count=count, epsilon=epsilon)[1])
        if count == 1:
            assert_above(compose.laplace_delta(epsilon0, epsilon=epsilon), exact, relative=1e-14)


@pytest.mark.parametrize(
    ("epsilon0", "count", "epsilon", "value"),
    [
        (1.0, 2, 0.5, 0.35049598998110476),
        (0.5, 5, 1.0, 0.1453156127630737),
        (0.1, 10, 0.5, 0.008938294602943774),
        (0.2, 20, 1.0, 0.0826092583619912),
    ],
)
def test_folded_laplace_has_its_known_values(epsilon0, count, epsilon, value):
    """The oracle of many Laplace releases reproduces values that were computed apart from it."""
    assert abs(oracle.laplace_folded_delta(epsilon0, count=count, epsilon=epsilon) / value - 1) < 1e-14


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 29.9, 30.1, 50, 900])
def test_subsampling_and_groups_are_rounded_up(epsilon):
    """log(1 + q (e^eps − 1)) and delta (e^(k eps) − 1)/(e^eps − 1) are above the formula by at most 1e-13 of it."""
    e = oracle.number(epsilon)
    for rate in (1e-9, 0.01, 0.7, 1):
        got = compose.subsample_epsilon_delta(epsilon, 0, rate=rate)[0]
        with MP.workdps(80):
            assert_above(got, MP.log1p(oracle.number(rate) * MP.expm1(e)), relative=1e-13)
    if epsilon < 7:
        _, got = compose.group_epsilon_delta(epsilon, 1e-30, size=9)
        assert_above(got, oracle.number(1e-30) * MP.expm1(9 * e) / MP.expm1(e), relative=1e-13)
