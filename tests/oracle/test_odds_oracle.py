"""The adversary's game against 60-digit values: ε 1e-6 to 50, μ 1e-3 to 40, rates 1e-12 to 1 − 1e-12."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from curador.privacy import odds

MP = mpmath.mp.clone()
MP.dps = 60

EPSILONS = ("1e-6", "1e-3", "0.1", "0.5", 1, "2.7", 10, 30, 50)
DELTAS = (0, "1e-30", "1e-9", "1e-5", "0.01", "0.9")
MUS = ("1e-3", "0.03", "0.5", 1, 2, "5.5", 12, 40)
RATES = (
    "1e-12", "3e-9", "1e-6", "0.001", "0.05", "0.3", "0.4999999999", "0.5", "0.5000000001",
    "0.7", "0.99", "0.999999", "0.999999999999",
)  # fmt: skip
TIGHT = 1e-12  # relative
DENORMAL = MP.mpf("1e-320")  # the last floats have no digits left
ABSOLUTE = 1e-15  # where 1 − e^ε x cancels


def real(value):
    fraction = Fraction(str(value))
    return MP.mpf(fraction.numerator) / fraction.denominator


def quantile(p):
    """Φ⁻¹(p) by Newton's method on the 60-digit distribution function, from a double start."""
    from scipy.special import ndtri

    near_one = p > 0.5
    small = 1 - p if near_one else p
    x = MP.mpf(float(ndtri(float(small))))
    for _ in range(6):
        x -= (MP.ncdf(x) - small) / MP.npdf(x)
    assert abs(MP.ncdf(x) / small - 1) < MP.mpf("1e-50")
    return -x if near_one else x


def assert_above(got: float, true, *, relative=TIGHT, absolute=0.0) -> None:
    """An upper bound, and a close one."""
    assert true <= got <= true * (1 + MP.mpf(relative)) + MP.mpf(absolute) + DENORMAL, (got, true)


def assert_below(got: float, true, *, relative=TIGHT, absolute=0.0) -> None:
    """A lower bound, and a close one."""
    assert true * (1 - MP.mpf(relative)) - MP.mpf(absolute) - DENORMAL <= got <= true, (got, true)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("prior", ["1e-12", "0.01", "1/2", "0.9", "0.999999999999"])
def test_posterior(epsilon, prior):
    """Bayes' rule at likelihood ratios e^ε and e^−ε."""
    lower, upper = odds.posterior_bounds(epsilon, prior=prior)
    ratio, belief = MP.exp(real(epsilon)), real(prior)
    assert_below(lower, belief / (belief + (1 - belief) * ratio))
    assert_above(upper, belief * ratio / (belief * ratio + 1 - belief))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_advantage_and_accuracy(epsilon, delta):
    """(e^ε − 1 + 2δ)/(e^ε + 1) and (e^ε + δ)/(e^ε + 1)."""
    ratio, failure = MP.exp(real(epsilon)), real(delta)
    assert_above(odds.advantage(epsilon, delta), (ratio - 1 + 2 * failure) / (ratio + 1))
    assert_above(odds.accuracy(epsilon, delta), (ratio + failure) / (ratio + 1))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_approximate(epsilon, delta):
    """Both sides of the (ε, δ) region."""
    ratio, failure = MP.exp(real(epsilon)), real(delta)
    for fpr in RATES:
        x = real(fpr)
        gain = min(1, ratio * x + failure, 1 - (1 - failure - x) / ratio)
        lose = max(0, 1 - failure - ratio * x, (1 - failure - x) / ratio)
        assert_above(odds.true_positive_bound(fpr, epsilon=epsilon, delta=delta), gain)
        assert_below(odds.tradeoff_approximate(fpr, epsilon=epsilon, delta=delta), lose, absolute=ABSOLUTE)


@pytest.mark.parametrize("mu", MUS)
def test_gaussian(mu):
    """Φ(Φ⁻¹(x) + μ) and Φ(Φ⁻¹(1 − x) − μ), relatively accurate down to 1e-300."""
    for fpr in RATES:
        place = quantile(real(fpr))
        assert_above(odds.gaussian_true_positive(fpr, mu=mu), MP.ncdf(place + real(mu)))
        assert_below(odds.tradeoff_gaussian(fpr, mu=mu), MP.ncdf(-place - real(mu)))
    assert_above(odds.gaussian_advantage(mu), MP.erf(real(mu) / MP.sqrt(8)), relative=4e-15)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("threshold", ["1e-12", "0.1", "0.4999999999", "0.5", "0.500001", "0.9", "0.999999999999"])
def test_gaussian_posterior_tail(mu, threshold):
    """Φ(μ/2 − logit(t)/μ); where it is below every float, the smallest one."""
    t = real(threshold)
    true = MP.ncdf(real(mu) / 2 - MP.log(t / (1 - t)) / real(mu))
    assert_above(odds.gaussian_posterior_tail(mu, threshold=threshold), true, relative=2e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace(epsilon):
    """The three pieces, next to the Neyman-Pearson integral they come from."""
    shift = real(epsilon)
    for fpr in RATES:
        # Reject above s: under Lap(0) the mass above s is x, under Lap(shift) the mass below s is missed.
        x = real(fpr)
        s = -MP.log(2 * x) if 2 * x <= 1 else MP.log(2 * (1 - x))
        gap = s - shift
        missed = MP.exp(gap) / 2 if gap <= 0 else 1 - MP.exp(-gap) / 2
        assert_below(odds.tradeoff_laplace(fpr, epsilon=epsilon), missed, absolute=ABSOLUTE)


@pytest.mark.parametrize("mu", MUS)
def test_gaussian_renyi(mu):
    """The closed form is the least of the formula for one order, and above the exact curve."""
    shift = real(mu)
    for fpr in RATES:
        x = real(fpr)
        reach = MP.sqrt(-2 * MP.log(x))
        true = MP.exp(-((reach - shift) ** 2) / 2) if reach > shift else MP.mpf(1)
        got = odds.gaussian_renyi_true_positive(fpr, mu=mu)
        assert_above(got, true)
        if reach > shift:
            best = float(reach / shift)
            divergence = math.nextafter(float(best * shift**2 / 2), math.inf)
            assert_above(odds.renyi_true_positive(fpr, orders=[best], divergences=[divergence]), true, relative=1e-11)
        assert got >= odds.gaussian_true_positive(fpr, mu=mu) * (1 - 1e-12)


@pytest.mark.parametrize("alpha", ["1.0001", "1.5", 2, 10, 512])
@pytest.mark.parametrize("zeta", ["1e-6", "0.1", 3])
def test_renyi(alpha, zeta):
    """One order: (e^ζ x)^(1 − 1/α), and the tail of the odds (e^ζ/b)^(α − 1)."""
    order, bound = real(alpha), real(zeta)
    for fpr in RATES:
        # The curve's floats mean themselves, so the truth is evaluated at them.
        a, z = MP.mpf(float(order)), MP.mpf(float(bound))
        true = min(1, (MP.exp(z) * real(fpr)) ** (1 - 1 / a))
        assert_above(odds.renyi_true_positive(fpr, orders=[float(order)], divergences=[float(bound)]), true)
    for factor in ("0.5", 1, "1.001", 2, 1000, "1e300"):
        true = min(1, (MP.exp(bound) / real(factor)) ** (order - 1))
        assert_above(odds.renyi_odds_tail(alpha=alpha, zeta=zeta, factor=factor), true, relative=1e-11)


@pytest.mark.parametrize("delta", ["1e-300", "1e-12", "1e-5", "0.1"])
@pytest.mark.parametrize("t", ["1e-9", "0.1", 1, 50])
def test_loss_tail(delta, t):
    """δ/(1 − e^−t), cut at 1."""
    assert_above(odds.loss_tail(delta, t=t), min(1, real(delta) / -MP.expm1(-real(t))))


def test_arrays_mean_their_floats():
    """An array gives the bound at the binary floats in it, element by element, near 0 and near 1."""
    rates = np.array([1e-300, 1e-12, 0.1, 0.5, 0.9, 1 - 1e-12, 1 - 2**-53])
    fnr = odds.tradeoff_gaussian(rates, mu=2)
    tpr = odds.gaussian_true_positive(rates, mu=2)
    lines = odds.tradeoff_approximate(rates, epsilon=1, delta="1e-5")
    for place, rate in enumerate(rates):
        x = MP.mpf(float(rate))
        start = quantile(x)
        assert_above(float(tpr[place]), MP.ncdf(start + 2))
        assert_below(float(fnr[place]), MP.ncdf(-start - 2))
        true = max(0, 1 - real("1e-5") - MP.e * x, (1 - real("1e-5") - x) / MP.e)
        assert_below(float(lines[place]), true)


@pytest.mark.parametrize("x", [0.0, 1e-8, 0.3, 1.0, 2.999999, 8.0, 20.5, 37.0])
def test_normal_tails(x):
    """Both sides of P[N > x], next to each other and with the truth between them."""
    for place in (x, -x):
        above = float(odds._tail_up(np.array([place]))[0])  # noqa: SLF001 -- what the quantiles rest on
        below = float(odds._tail_down(np.array([place]))[0])  # noqa: SLF001 -- idem
        true = MP.ncdf(-MP.mpf(place))
        assert below <= true <= above
        assert above - below <= 4e-14 * above


@pytest.mark.parametrize("x", [1e-300, 1e-9, 0.1, 0.49, 0.5, 0.51, 1.0, 1.9, 3.3, 5.0, 6.0, 20.0])
def test_erf_is_within_the_ulps_assumed(x):
    """The C library's erf, held to the same number as the functions that the rounding module lists."""
    from curador.numerics.rounding import LIBM_ULPS

    true = MP.erf(MP.mpf(x))
    assert abs(math.erf(x) - true) <= LIBM_ULPS * math.ulp(math.erf(x))


@pytest.mark.parametrize("fpr", ["1e-12", "0.05", "0.5", "0.95", "0.999999999999"])
@pytest.mark.parametrize("error", [1e-9, -1e-9])
def test_a_wrong_quantile_is_moved_to_the_safe_side(monkeypatch, fpr, error):
    """The quantile is only a guess: with nine digits instead of sixteen the bounds still hold."""
    from scipy import special

    exact = special.ndtri
    monkeypatch.setattr(special, "ndtri", lambda p: exact(p) + error)
    place = quantile_by_bisection(real(fpr))
    assert_above(odds.gaussian_true_positive(fpr, mu=1), MP.ncdf(place + 1), relative=1e-6)
    assert_below(odds.tradeoff_gaussian(fpr, mu=1), MP.ncdf(-place - 1), relative=1e-6)


def quantile_by_bisection(p):
    low, high = MP.mpf(-10), MP.mpf(10)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if MP.ncdf(middle) < p else (low, middle)
    return low


@pytest.mark.parametrize("delta", [0, "1e-9", "0.1"])
def test_what_is_left_of_a_rate_is_rounded_down(delta):
    """1 − x − δ of a number is a float below the exact difference, also where x itself rounds to 1."""
    failure = Fraction(str(delta))
    for numerator in range(1, 97):
        for x in (Fraction(numerator, 97), 1 - Fraction(numerator, 97 * 10**20)):
            rest = 1 - x - failure
            got = Fraction(float(odds._rate(x).rest(failure)[0]))  # noqa: SLF001 -- every bound uses it
            assert rest - abs(rest) * Fraction(1, 2**51) <= got <= rest
