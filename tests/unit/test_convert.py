"""Conversions between pure, approximate, Rényi, concentrated and Gaussian privacy: values, poles and refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import InvalidParameter, NotPrivate
from curador.privacy.convert import (
    ORDERS,
    ORDERS_MIRONOV,
    bounded_range_to_rho,
    curve_to_delta,
    curve_to_epsilon,
    kl_to_delta,
    laplace_to_rho,
    pure_to_rho,
    renyi_to_delta,
    renyi_to_epsilon,
    rho_for,
    rho_to_delta,
    rho_to_epsilon,
)
from curador.privacy.gaussian import (
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
)

METHODS = ("optimal", "cks", "mironov")


def assert_near(got, value, *, relative=1e-12) -> None:
    """The value to within a relative tolerance."""
    assert abs(float(got) - value) <= relative * abs(value)


def gaussian_curve(rho):
    """The Rényi curve of Gaussian noise."""
    return lambda alpha: rho * alpha


# ---- known values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "alpha", "zeta", "delta", "epsilon"),
    [
        ("mironov", 2, 0.5, 1e-5, 12.012925464970229),
        ("mironov", 10, 0.1, 1e-5, 1.3792139405522477),
        ("mironov", 32, 1.0, 1e-6, 1.4456616309020733),
        ("cks", 2, 0.5, 1e-5, 10.626631103850338),
        ("cks", 32, 1.0, 1e-6, 1.3021150002391149),
    ],
)
def test_one_order_gives_its_known_epsilon(method, alpha, zeta, delta, epsilon):
    """The conversions of one order have their known values, from above."""
    assert_near(renyi_to_epsilon(alpha, zeta, delta=delta, method=method), epsilon)
    assert renyi_to_epsilon(alpha, zeta, delta=delta, method=method) >= epsilon


@pytest.mark.parametrize(
    ("method", "alpha", "zeta", "epsilon", "delta", "relative"),
    [
        ("mironov", 2, 0.5, 3.0, 0.0820849986238988, 1e-12),
        ("mironov", 10, 0.1, 1.0, 0.00030353913807886667, 1e-12),
        ("mironov", 32, 1.0, 1.3, 9.142423147817334e-05, 1e-12),
        ("cks", 4, 0.5, 1.0, 0.02353325907815471, 1e-12),
        ("optimal", 2, 0.5, 3.0, 0.008493770659292726, 1e-12),
        ("optimal", 10, 0.1, 1.0, 6.980922430181439e-06, 1e-9),
        ("optimal", 4, 0.5, 1.0, 0.01950392731281765, 1e-9),
    ],
)
def test_one_order_gives_its_known_delta(method, alpha, zeta, epsilon, delta, relative):
    """The conversions of one order have their known values, solved for delta."""
    assert_near(renyi_to_delta(alpha, zeta, epsilon=epsilon, method=method), delta, relative=relative)


def test_curves_and_concentrated_privacy_have_their_known_values():
    """Gaussian noise of sigma 1 and 5 converts to its known epsilons, on the given grid and between its orders."""
    epsilon, order = curve_to_epsilon(gaussian_curve(0.5), delta=1e-5, orders=ORDERS_MIRONOV)
    assert_near(epsilon, 4.752728336819822)
    assert order == 5
    epsilon, order = curve_to_epsilon(gaussian_curve(0.02), delta=1e-6, orders=ORDERS_MIRONOV)
    assert_near(epsilon, 0.9421150002391148)
    assert order == 32
    epsilon, order = curve_to_epsilon(gaussian_curve(0.5), delta=1e-5)
    assert_near(epsilon, 4.728386984943314, relative=1e-9)
    assert_near(order, 5.431849670270102, relative=1e-4)
    assert_near(rho_to_epsilon(0.5, delta=1e-5), 4.728386984943314)
    assert_near(rho_to_epsilon(2, delta=1e-10), 14.870678006813748)
    assert_near(rho_to_epsilon(2, delta=1e-10, method="bs16"), 15.572280848830223)
    assert_near(rho_to_epsilon(0.5, delta=1e-5, method="bs16"), 5.298525912188081)
    assert_near(kl_to_delta(0.01), 0.0997505200529398)


def test_gaussian_noise_has_its_known_values():
    """The analytic curve, its inverse and its calibration have their known values."""
    for mu, epsilon, delta in (
        (1, 1, 0.12693673750664394),
        (0.5, 1, 0.0068295949831145755),
        (1, 0, 0.3829249225480262),
        (2, 10, 9.940202816118153e-06),
        (2, 1, 0.5098616600546702),
    ):
        lower, upper = gaussian_delta(mu, epsilon=epsilon)
        assert lower <= delta <= upper
        assert_near(upper, delta)
    assert_near(gaussian_epsilon(1, delta=1e-5)[1], 4.3771780956812245)
    assert_near(gaussian_epsilon(0.1, delta=1e-5)[1], 0.3406693646843264)
    for epsilon, delta, sigma in ((2, 1e-8, 2.652926768055825), (10, 1e-5, 0.4998886197090085)):
        assert_near(1 / gaussian_mu(epsilon=epsilon, delta=delta), sigma)
    assert_near(gaussian_log_delta(1, epsilon=30)[1], math.log(4.709e-193), relative=1e-5)


def test_the_classical_scale_is_refused_outside_its_range():
    """The textbook scale has its known value below 1 and is refused from 1 on, where it can fail."""
    assert_near(classical_gaussian_sigma(epsilon=0.1, delta=1e-6), 52.98802526850474)
    assert_near(classical_gaussian_sigma(epsilon=0.5, delta=1e-5, sensitivity=3), 3 * 4.844805262605389 / 0.5)
    for epsilon in (1, 1.5, 10):
        with pytest.raises(NotPrivate, match="below 1"):
            classical_gaussian_sigma(epsilon=epsilon, delta=1e-5)
    careless = math.sqrt(2 * math.log(1.25 / 1e-5)) / 10
    assert_near(gaussian_delta(1 / careless, epsilon=10)[0], 2.265374364793423e-05, relative=1e-9)
    for epsilon in (0.01, 0.5, 0.99):
        for delta in (0.5, 1e-2, 1e-9):
            sigma = classical_gaussian_sigma(epsilon=epsilon, delta=delta)
            assert gaussian_delta(1 / sigma, epsilon=epsilon)[1] <= delta


def test_constants_of_concentrated_privacy():
    """Pure, Laplace and bounded-range mechanisms have their rho: 0.462, 0.368 and 1/8 at epsilon 1."""
    assert_near(pure_to_rho(1), 0.46211715726000974)
    assert_near(laplace_to_rho(1), 0.36787944117144233)
    assert bounded_range_to_rho(1) == Fraction(1, 8)
    assert bounded_range_to_rho("0.1") == Fraction(1, 800)
    for constant in (pure_to_rho, laplace_to_rho, bounded_range_to_rho):
        assert constant(0) == 0
        assert isinstance(constant(2), Fraction)
        assert 0 < constant(1e-9) <= Fraction(1, 2 * 10**18)


# ---- laws ------------------------------------------------------------------------------------------------------

orders = st.floats(1.001, 1e4)
budgets = st.floats(1e-6, 30)
deltas = st.floats(1e-30, 0.5)
laws = settings(deadline=None, max_examples=60)


@laws
@given(orders, budgets, deltas)
def test_better_methods_are_never_worse(alpha, zeta, delta):
    """optimal ≤ cks ≤ mironov at every order, up to the last digits."""
    optimal, cks, mironov = (renyi_to_epsilon(alpha, zeta, delta=delta, method=method) for method in METHODS)
    slack = 1e-9 * (1 + mironov)
    assert 0 <= optimal <= cks + slack
    assert cks <= mironov + slack


@laws
@given(orders, budgets, deltas)
def test_epsilon_and_delta_are_inverse(alpha, zeta, delta):
    """The delta at the epsilon of a delta is that delta, or less where epsilon was clipped at 0."""
    for method in METHODS:
        epsilon = renyi_to_epsilon(alpha, zeta, delta=delta, method=method)
        back = renyi_to_delta(alpha, zeta, epsilon=epsilon, method=method)
        assert back <= delta * (1 + 1e-6 + 1e-12 * alpha * (1 + epsilon))


@laws
@given(st.floats(1e-6, 40), deltas)
def test_gaussian_is_below_its_concentrated_reading(mu, delta):
    """The exact epsilon of Gaussian noise is below that of mu²/2-zCDP, and that is the best of its Rényi curve."""
    rho = mu * mu / 2
    exact = gaussian_epsilon(mu, delta=delta)[1]
    concentrated = rho_to_epsilon(rho, delta=delta)
    assert exact <= concentrated * (1 + 1e-12)
    by_curve = curve_to_epsilon(gaussian_curve(rho), delta=delta)[0]
    assert concentrated <= by_curve * (1 + 1e-12) + 1e-12
    assert by_curve <= concentrated * 1.01 + 1e-6


@laws
@given(st.floats(1e-6, 50), deltas)
def test_the_largest_rho_is_the_largest(epsilon, delta):
    """rho_for is allowed, a dyadic rational, and a millionth more is not allowed."""
    rho = rho_for(epsilon=epsilon, delta=delta)
    assert rho_to_epsilon(rho, delta=delta) <= epsilon * (1 + 1e-13)
    assert rho.denominator & (rho.denominator - 1) == 0
    assert rho_to_epsilon(rho * (1 + Fraction(1, 10**6)), delta=delta) > epsilon
    assert rho_to_delta(rho, epsilon=epsilon) <= delta * (1 + 1e-6)


@laws
@given(st.floats(1e-4, 20), st.floats(0, 20))
def test_curves_agree_with_concentrated_privacy(rho, epsilon):
    """The delta of a line zeta = rho alpha is that of rho-zCDP within 1 %."""
    by_line = curve_to_delta(gaussian_curve(rho), epsilon=epsilon)[0]
    assert rho_to_delta(rho, epsilon=epsilon) <= by_line * (1 + 1e-9)
    assert by_line <= 1.01 * rho_to_delta(rho, epsilon=epsilon) + 1e-300


# ---- poles and doubt -------------------------------------------------------------------------------------------


def test_nothing_lost_costs_nothing():
    """zeta, rho or mu of 0 gives 0; delta of 0 gives infinity for everything that is not pure."""
    assert renyi_to_epsilon(2, 0, delta=0) == 0
    assert renyi_to_delta(2, 0, epsilon=0) == 0
    assert renyi_to_epsilon(2, 0.1, delta=0) == math.inf
    assert rho_to_epsilon(0, delta=0) == 0
    assert rho_to_epsilon(0.1, delta=0) == math.inf
    assert rho_to_delta(0, epsilon=1) == 0
    assert gaussian_delta(0, epsilon=0) == (0, 0)
    assert gaussian_epsilon(0, delta=0) == (0, 0)
    assert gaussian_epsilon(1, delta=0) == (math.inf, math.inf)
    assert gaussian_mu(epsilon=1, delta=0) == 0
    assert gaussian_log_delta(0, epsilon=1) == (-math.inf, -math.inf)


def test_an_infinite_order_is_pure_privacy():
    """At order infinity the textbook forms return zeta, the optimal one the curve of randomised response."""
    for method in METHODS:
        assert renyi_to_epsilon(math.inf, 0.25, delta=0, method=method) == 0.25
        assert renyi_to_delta(math.inf, 0.3, epsilon=0.3, method=method) == 0
    assert renyi_to_epsilon(math.inf, 1, delta=1e-5, method="cks") == 1
    truth = (math.e - math.exp(0.99)) / (1 + math.e)
    assert_near(renyi_to_delta(math.inf, 1, epsilon=0.99), truth)
    assert_near(renyi_to_epsilon(math.inf, 1, delta=truth), 0.99)
    assert renyi_to_epsilon(math.inf, 1, delta=0.47) == 0
    assert curve_to_epsilon(lambda alpha: np.full_like(alpha, 0.25), delta=0) == (0.25, math.inf)


def test_small_divergences_need_no_epsilon():
    """Where the total variation is below delta, epsilon is 0; the order's own formula would give more."""
    zeta = 1e-9
    assert kl_to_delta(zeta) < 1e-4
    assert renyi_to_epsilon(2, zeta, delta=1e-4, method="cks") == 0
    assert renyi_to_epsilon(2, zeta, delta=1e-4, method="mironov") > 9
    assert curve_to_epsilon(gaussian_curve(zeta), delta=1e-4)[0] == 0
    assert curve_to_delta(gaussian_curve(zeta), epsilon=0)[0] <= 1e-4
    assert rho_to_epsilon(zeta, delta=1e-4) == 0


def test_doubt_about_a_curve_is_infinite():
    """NaN and negative divergences count as infinite, so that they are never the best order."""

    def broken(alpha):
        return np.where(alpha < 10, np.nan, np.where(alpha < 20, -1.0, alpha))

    epsilon, order = curve_to_epsilon(broken, delta=1e-5)
    assert order >= 20
    assert epsilon > 19
    assert curve_to_epsilon(lambda alpha: alpha * np.nan, delta=1e-5)[0] == math.inf
    assert curve_to_delta(lambda alpha: alpha * np.nan, epsilon=1)[0] == 1
    with pytest.raises(InvalidParameter, match="curve must be"):
        curve_to_epsilon(lambda alpha: alpha[1:], delta=1e-5)


def test_orders_are_dense_and_include_the_extremes():
    """The default grid is increasing, has the integers 2 to 64, and reaches from 1.01 to 1e6 and infinity."""
    assert list(ORDERS) == sorted(set(ORDERS))
    assert set(range(2, 65)) <= set(ORDERS)
    assert ORDERS[0] == 1.01
    assert ORDERS[-2:] == (1e6, math.inf)
    assert len(ORDERS_MIRONOV) == 13


BAD = (math.nan, math.inf, True, -1, "abc", None)


@pytest.mark.parametrize("bad", [*BAD, 1, 1.5])
def test_bad_deltas_are_refused(bad):
    """A delta that is no probability below 1 is refused in the one sentence form."""
    for call in (
        lambda: renyi_to_epsilon(2, 1, delta=bad),
        lambda: rho_to_epsilon(1, delta=bad),
        lambda: rho_for(epsilon=1, delta=bad),
        lambda: gaussian_epsilon(1, delta=bad),
        lambda: gaussian_mu(epsilon=1, delta=bad),
        lambda: curve_to_epsilon(gaussian_curve(1), delta=bad),
        lambda: classical_gaussian_sigma(epsilon=0.5, delta=bad),
    ):
        with pytest.raises(InvalidParameter, match=r"delta must be .*; got "):
            call()


@pytest.mark.parametrize("bad", BAD)
def test_bad_losses_are_refused(bad):
    """A loss that is no finite number of at least 0 is refused."""
    for call in (
        lambda: renyi_to_epsilon(2, bad, delta=0.1),
        lambda: renyi_to_delta(2, 1, epsilon=bad),
        lambda: rho_to_epsilon(bad, delta=0.1),
        lambda: rho_to_delta(1, epsilon=bad),
        lambda: rho_for(epsilon=bad, delta=0.1),
        lambda: kl_to_delta(bad),
        lambda: pure_to_rho(bad),
        lambda: laplace_to_rho(bad),
        lambda: bounded_range_to_rho(bad),
        lambda: gaussian_delta(bad, epsilon=1),
        lambda: gaussian_delta(1, epsilon=bad),
        lambda: gaussian_epsilon(bad, delta=0.1),
        lambda: gaussian_mu(epsilon=bad, delta=0.1),
        lambda: curve_to_delta(gaussian_curve(1), epsilon=bad),
    ):
        with pytest.raises(InvalidParameter, match=r" must be .*; got "):
            call()


@pytest.mark.parametrize("bad", [1, 0.5, -2, math.nan, "abc", True])
def test_bad_orders_and_methods_are_refused(bad):
    """Orders must be above 1 and methods known."""
    with pytest.raises(InvalidParameter, match="alpha must be"):
        renyi_to_epsilon(bad, 1, delta=0.1)
    with pytest.raises(InvalidParameter, match="orders must be"):
        curve_to_epsilon(gaussian_curve(1), delta=0.1, orders=[0.5, 2])
    for call in (
        lambda: renyi_to_delta(2, 1, epsilon=1, method="best"),  # type: ignore[arg-type] -- a wrong name on purpose
        lambda: rho_to_epsilon(1, delta=0.1, method="best"),  # type: ignore[arg-type] -- a wrong name on purpose
    ):
        with pytest.raises(InvalidParameter, match="method must be"):
            call()


# ---- seeded errors ---------------------------------------------------------------------------------------------


def test_literal_mistakes_would_be_caught():
    """The classical scale without its root, and the order-2 form beyond delta 1/2, break what is tested here."""
    without_root = 2 * math.log(1.25 / 0.9) / 0.5  # too little noise above delta 0.758
    assert gaussian_delta(1 / without_root, epsilon=0.5)[0] < 0.9  # still private at this delta ...
    assert without_root < classical_gaussian_sigma(epsilon=0.5, delta=0.9)  # ... but below the scale it claims to be
    zeta, epsilon = 7.0, 0.0
    closed = (math.sqrt(math.expm1(epsilon) ** 2 + math.expm1(zeta)) - math.expm1(epsilon)) / 2
    assert closed > 1 > renyi_to_delta(2, zeta, epsilon=epsilon)
    assert_near(renyi_to_delta(2, zeta, epsilon=epsilon), 1 - math.exp(-zeta))


@pytest.mark.parametrize("method", ["cks", "mironov"])
def test_an_order_that_overflows_promises_nothing(method):
    """At an order beside 1, or at an epsilon that overflows, the bound of the order is 1, never a number next to 0.

    At 1 + 1e-309 the logarithm of α/(α−1) is infinite and the exponent with it. That used to count as a delta of 3e-323,
    where a pair of points with such a divergence has 0.18.
    """
    beside, divergence = 1 + Fraction(1, 10**309), 1
    p, q = 0.19, 0.19 * math.exp(-6)
    assert p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)) < divergence
    assert 0.18 < p - math.exp(2) * q < renyi_to_delta(beside, divergence, epsilon=2, method=method)
    least = min(1.0, kl_to_delta(divergence)) if method == "cks" else 1.0  # Mironov's conversion knows no other bound
    assert renyi_to_delta(beside, divergence, epsilon=2, method=method) == least
    assert renyi_to_delta(10**10, divergence, epsilon=10**300, method=method) == least
    assert renyi_to_epsilon(beside, divergence, delta="1e-6", method=method) == math.inf
