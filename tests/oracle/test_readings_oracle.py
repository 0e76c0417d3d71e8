"""Every reading of a loss against closed forms with 50 to 60 digits: a bound on the safe side, and tight.

Rényi curves are sums over atoms or integrals written from the definition; counts of a million are binomial or Gaussian.
"""

from __future__ import annotations

import math
from fractions import Fraction

import closed_forms
import numpy as np
import pytest
import truth
from truth import MP

from curador.privacy import compose
from curador.privacy.account import enclosure
from curador.privacy.convert import pure_to_rho, rho_to_epsilon
from curador.privacy.kinds.laplace import laplace_rho
from curador.privacy.laws.gaussian import sandwich
from curador.privacy.laws.resolve import Direction, sides
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
)

EPSILONS = ("1e-6", "1e-3", "0.1", "1", "5", "50")
ORDERS = ("1.000001", "1.01", "1.5", "2", "3.7", "32", "1000", "10000")
DELTAS = (1e-2, 1e-6, 1e-15, 1e-30)


def log_moment(law, alpha):
    """(α − 1) D_α of a law of terms; the float order is taken at its binary value."""
    return MP.log(truth.term_moment(law, truth.number(alpha) - 1))


def divergence(law, alpha):
    """D_α of a law of terms."""
    with MP.workdps(80):
        return log_moment(law, alpha) / (truth.number(alpha) - 1)


def check(got, exact, *, tight, absolute=0.0):
    """From above, and tight to the factor."""
    assert MP.isfinite(exact)
    assert exact <= truth.number(got) * (1 + MP.mpf(10) ** -30)
    assert truth.number(got) <= exact * (1 + MP.mpf(tight)) + MP.mpf(absolute)


def overflow(epsilon, alpha):
    """What Laplace-like curves give away where e^((α − 1) ε) leaves the floats and D ≤ ε is used instead."""
    theta = float(alpha) - 1
    return math.log(2 * theta + 2) / theta if theta * float(Fraction(epsilon)) > 690 else 0.0


# ---- Rényi curves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", ["1e-6", "0.3", "7"])
@pytest.mark.parametrize("alpha", ["1", *ORDERS])
def test_renyi_gaussian(mu, alpha):
    """Gaussian noise: α μ²/2."""
    exact = truth.number(float(Fraction(alpha))) * truth.number(Fraction(mu)) ** 2 / 2
    check(GaussianLoss(mu=mu).renyi(alpha), exact, tight=1e-13)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("alpha", ORDERS)
def test_renyi_laplace(epsilon, alpha):
    """Laplace noise, from the atoms and the body of its loss."""
    exact = divergence(truth.laplace(Fraction(epsilon)), float(alpha))
    check(LaplaceLoss(epsilon=epsilon).renyi(alpha), exact, tight=1e-10, absolute=overflow(epsilon, alpha))


@pytest.mark.parametrize(("scale", "shift"), [("0.05", 1), ("0.7", 3), ("4", 1), ("25/3", 20), ("1000", 7), ("1000000", 1)])
@pytest.mark.parametrize("alpha", ORDERS)
def test_renyi_discrete_laplace(scale, shift, alpha):
    """Discrete Laplace noise, atom by atom."""
    exact = divergence(truth.discrete_laplace(Fraction(scale), shift), float(alpha))
    loose = overflow(shift / Fraction(scale), alpha)
    check(DiscreteLaplaceLoss(scale=scale, sensitivity=shift).renyi(alpha), exact, tight=1e-10, absolute=loose)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("categories", [2, 3, 1000])
@pytest.mark.parametrize("alpha", ORDERS)
def test_renyi_randomized_response(epsilon, categories, alpha):
    """Randomized response of two, three and a thousand answers."""
    exact = divergence(truth.randomized_response(Fraction(epsilon), categories), float(alpha))
    check(RandomizedResponseLoss(epsilon=epsilon, categories=categories).renyi(alpha), exact, tight=1e-10)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("alpha", ORDERS)
def test_moments_of_the_pair_above_bounded_ranges(epsilon, alpha):
    """The pair that dominates bounded ranges; its cancelling terms cost 1e-15/(α − 1)."""
    order = float(alpha)
    exact = divergence(truth.bounded_range(Fraction(epsilon)), order)
    total, _ = sides(BoundedRange(epsilon=epsilon), Direction.LEAVES)[0].total()
    check(
        min(float(total.log_moment(np.array([order - 1]))[0]) / (order - 1), float(Fraction(epsilon))),
        exact,
        tight=1e-10,
        absolute=3e-15 / (order - 1) + overflow(epsilon, alpha),
    )


def worst_range(epsilon, order):
    """D_α of the worst two-point mechanism whose losses span ε, by thirds: the logarithm is concave in e^(lower loss)."""
    e, theta = truth.number(Fraction(epsilon)), truth.number(order) - 1

    def value(v):
        high = (1 - v) / -MP.expm1(-e)  # probability of the upper loss
        return MP.log(high * MP.exp(theta * (MP.log(v) + e)) + (1 - high) * v**theta)

    low, top = MP.exp(-e), MP.mpf(1)
    for _ in range(220):
        first, second = low + (top - low) / 3, top - (top - low) / 3
        low, top = (first, top) if value(first) < value(second) else (low, second)
    return value(low) / theta


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "1", "5", "50"])
@pytest.mark.parametrize("alpha", ["1.001", "2", "32", "10000"])
def test_renyi_bounded_range(epsilon, alpha):
    """The worst bounded-range mechanism of each order, found by search; small ranges by ε²/8, which is as good there."""
    check(BoundedRange(epsilon=epsilon).renyi(alpha), worst_range(epsilon, float(alpha)), tight=1e-5, absolute=1e-12)


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-3", "0.1", "1", "5", "50"])
def test_a_bounded_range_loses_no_more_than_its_rho(epsilon):
    """D_α ≤ α ρ at every order, and ε at δ is no more than ρ alone converts into."""
    record = BoundedRange(epsilon=epsilon)
    rho = float(record.rho)
    assert record.renyi(1) <= rho * (1 + 1e-14)
    for alpha in (1.001, 2, 7, 100, 10**5):
        assert record.renyi(alpha) <= alpha * rho * (1 + 1e-14)
    for count in (1, 20, 1000):
        for delta in ("1e-2", "1e-6", "1e-15"):
            assert (count * record).epsilon(delta) <= rho_to_epsilon(count * record.rho, delta=delta)


def attacked(epsilon, times, x):
    """δ at x of the best bounded ranges chosen one after the other, each knowing the losses so far, on a grid of ranges."""
    if times == 0:
        return np.maximum(-np.expm1(x), 0.0)
    if times == 1:  # the best of all ranges, in closed form: (1 − e^((x−ε)/2))²/(1 − e^(−ε)) inside of ±ε
        inside = np.expm1((np.clip(x, -epsilon, epsilon) - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
        return np.where(x < -epsilon, -np.expm1(x), inside)
    size = 61 if times == 2 else 31
    best = np.zeros_like(x)
    for start in np.linspace(-epsilon, 0.0, size):
        high = -math.expm1(start) / -math.expm1(-epsilon)
        value = high * attacked(epsilon, times - 1, x - start - epsilon) + (1 - high) * attacked(
            epsilon, times - 1, x - start
        )
        best = np.maximum(best, value)
    return best


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_no_adaptive_choice_of_ranges_beats_the_upper_end(epsilon, times):
    """The attack's choices are mechanisms, so its δ is a lower bound; one alone has a closed form."""
    loss = times * BoundedRange(epsilon=epsilon)
    places = np.linspace(0.0, 0.9, 7) * times * epsilon
    for place, got in zip(places, attacked(epsilon, times, places), strict=True):
        upper = loss.delta(float(place))
        assert got <= upper * (1 + 1e-12)
        assert times > 1 or upper <= got * (1 + 1e-9)


def test_the_mean_loss_of_a_bounded_range():
    """log((1 − e^(−ε))/ε) + ε/(1 − e^(−ε)) − 1: 0.12330 at ε = 1, where the pair that dominates all orders has 0.16395."""
    assert BoundedRange(epsilon=1).renyi(1) == pytest.approx(0.1233015614822, rel=1e-12)
    for epsilon in ("1e-7", "0.02", "3", "40"):
        e = truth.number(Fraction(epsilon))
        share = -MP.expm1(-e)
        check(BoundedRange(epsilon=epsilon).renyi(1), MP.log(share / e) + e / share - 1, tight=1e-10)


def discrete_gaussian_divergence(sigma2, shift, alpha):
    """D_α of discrete Gaussian noise: both sums around their own centres."""
    theta = truth.number(alpha) - 1
    s2 = truth.number(sigma2)

    def series(centre):
        middle = int(MP.nint(centre))
        reach = math.ceil(math.sqrt(2 * float(s2) * 180)) + 3
        return MP.fsum(MP.exp(-((x - centre) ** 2) / (2 * s2)) for x in range(middle - reach, middle + reach + 1))

    value = theta * (theta + 1) * shift * shift / (2 * s2) + MP.log(series(-theta * shift)) - MP.log(series(MP.mpf(0)))
    return value / theta


@pytest.mark.parametrize(("sigma2", "shift"), [("0.1", 1), ("0.7", 2), ("3.9", 1), ("4", 3), ("100/3", 5)])
@pytest.mark.parametrize("alpha", ["1.000001", "1.5", "2", "3.7", "32", "1000"])
def test_renyi_discrete_gaussian(sigma2, shift, alpha):
    """Discrete Gaussian noise: at whole orders exactly α Δ²/2σ², between them at most that."""
    exact = discrete_gaussian_divergence(Fraction(sigma2), shift, float(alpha))
    got = DiscreteGaussianLoss(sigma2=sigma2, sensitivity=shift).renyi(alpha)
    ceiling = Fraction(float(alpha)) * shift * shift / (2 * Fraction(sigma2))
    assert exact <= truth.number(got) * (1 + MP.mpf(10) ** -30)
    assert got <= float(ceiling) * (1 + 1e-9) + 1e-12 / (float(alpha) - 1)


@pytest.mark.parametrize("alpha", ["1.0000001", "1.2", "2", "9", "300"])
def test_renyi_finite(alpha):
    """A finite pair, the worse direction."""
    p, q = [Fraction(x, 100) for x in (20, 30, 49, 1)], [Fraction(x, 100) for x in (10, 60, 1, 29)]
    exact = max(divergence(truth.finite(p, q), float(alpha)), divergence(truth.finite(q, p), float(alpha)))
    check(Finite(p=p, q=q).renyi(alpha), exact, tight=1e-12)


def test_renyi_of_a_pair_that_is_nearly_equal():
    """Masses that differ by 1e-9 have a divergence near 1e-18, not round-off."""
    tiny = Fraction(1, 10**9)
    p, q = [Fraction(1, 2) + tiny, Fraction(1, 2) - tiny], [Fraction(1, 2), Fraction(1, 2)]
    for alpha in (1, 1.5, 2.0, 20.0):
        law = truth.finite(p, q)
        exact = divergence(law, alpha) if alpha > 1 else divergence(law, 1 + 1e-12)
        got = Finite(p=p, q=q).renyi(alpha)
        assert exact * (1 - MP.mpf(10) ** -9) <= got <= exact * (1 + MP.mpf(10) ** -4)


@pytest.mark.parametrize("kind", ["randomized_response", "pure", "laplace", "discrete_laplace", "finite", "gaussian"])
def test_renyi_of_order_one_is_the_mean_loss(kind):
    """At α = 1 the closed forms agree with the limit of the curve, from above."""
    cases = {
        "randomized_response": (
            RandomizedResponseLoss(epsilon="0.7", categories=5),
            truth.randomized_response(Fraction(7, 10), 5),
        ),
        "pure": (Pure(epsilon=3), truth.randomized_response(3)),
        "laplace": (LaplaceLoss(epsilon="0.01"), truth.laplace(Fraction(1, 100))),
        "discrete_laplace": (DiscreteLaplaceLoss(scale="0.6", sensitivity=2), truth.discrete_laplace(Fraction(3, 5), 2)),
        "finite": (
            Finite(p=["0.2", "0.8"], q=["0.5", "0.5"]),
            truth.finite([Fraction(1, 2)] * 2, [Fraction(1, 5), Fraction(4, 5)]),
        ),
        "gaussian": (GaussianLoss(mu=2), None),
    }
    loss, law = cases[kind]
    exact = MP.mpf(2) if law is None else divergence(law, 1 + MP.mpf(10) ** -30)
    assert exact * (1 - MP.mpf(10) ** -25) <= loss.renyi(1) <= exact * (1 + MP.mpf(10) ** -12)


SAMPLED = [("0.5", "0.1"), ("1", "0.01"), ("2", "0.5"), ("0.05", "0.001")]


def pair_divergence(pair, alpha):
    """D_α of a pair of mixtures, by quadrature to 40 digits."""
    theta = truth.number(alpha) - 1
    nodes = truth.pair_nodes(pair, tilt=float(theta) + 1, digits=40)
    return MP.log(MP.fsum(mass * MP.exp(theta * loss) for mass, loss in nodes)) / theta


def one_direction(loss, alpha, direction):
    """The library's D_α in one direction."""
    total, _ = sides(loss, direction)[0].total()
    return float(total.log_moment(np.array([alpha - 1.0]))[0]) / (alpha - 1.0)


@pytest.mark.parametrize(("mu", "rate"), SAMPLED)
@pytest.mark.parametrize("alpha", [1.25, 2.0, 7.5, 32.0])
@pytest.mark.parametrize("direction", list(Direction), ids=str)
def test_renyi_subsampled_gaussian(mu, rate, alpha, direction):
    """A Poisson sample of Gaussian noise, each direction by itself."""
    word = "remove" if direction is Direction.LEAVES else "add"
    exact = pair_divergence(truth.poisson_pair(Fraction(mu), Fraction(rate), word), alpha)
    got = one_direction(GaussianLoss(mu=mu).subsample(rate=rate), alpha, direction)
    check(got, exact, tight=1e-9, absolute=1e-15)


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("direction", list(Direction), ids=str)
def test_renyi_group_of_a_subsample(size, direction):
    """A group enters as a binomial number of shifts."""
    word = "remove" if direction is Direction.LEAVES else "add"
    loss = GaussianLoss(mu="0.5").subsample(rate="0.1").group(size)
    for alpha in (1.5, 4.0, 16.0):
        exact = pair_divergence(truth.poisson_pair(Fraction(1, 2), Fraction(1, 10), word, group=size), alpha)
        check(one_direction(loss, alpha, direction), exact, tight=1e-9)


def test_renyi_composition_adds():
    """Counts multiply and different records add."""
    loss = 10**6 * GaussianLoss(mu="0.001") + 50 * LaplaceLoss(epsilon="0.1") + 3 * Pure(epsilon=2)
    for alpha in (1.5, 2.0, 40.0):
        exact = (
            10**6 * MP.mpf(alpha) * MP.mpf(10) ** -6 / 2
            + 50 * divergence(truth.laplace(Fraction(1, 10)), alpha)
            + 3 * divergence(truth.randomized_response(2), alpha)
        )
        check(loss.renyi(alpha), exact, tight=1e-10)


# ---- zCDP -------------------------------------------------------------------------------------------------------------

MANY_ORDERS = [1 + 10.0**k for k in (-6, -3, -2, -1)] + [1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 100.0, 1e3, 1e4]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_zcdp_of_pure_privacy(epsilon):
    """ρ = ε tanh(ε/2) is the mean loss of randomized response, and no order asks for more."""
    exact = Fraction(epsilon)
    law = truth.randomized_response(exact)
    constant = truth.number(exact) * MP.tanh(truth.number(exact) / 2)
    rho = truth.number(Pure(epsilon=epsilon).rho)
    assert constant <= rho <= constant * (1 + MP.mpf(10) ** -14)
    assert all(divergence(law, alpha) / MP.mpf(alpha) <= rho for alpha in MANY_ORDERS)
    assert divergence(law, 1 + MP.mpf(10) ** -30) >= rho * (1 - MP.mpf(10) ** -13)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_zcdp_of_laplace_noise(epsilon):
    """ρ = ε − 1 + e^−ε."""
    exact = Fraction(epsilon)
    law, e = truth.laplace(exact), truth.number(exact)
    constant = e - 1 + MP.exp(-e)
    rho = truth.number(LaplaceLoss(epsilon=epsilon).rho)
    assert constant <= rho <= constant * (1 + MP.mpf(10) ** -13)
    assert all(divergence(law, alpha) / MP.mpf(alpha) <= rho for alpha in MANY_ORDERS)
    assert divergence(law, 1 + MP.mpf(10) ** -30) >= rho * (1 - MP.mpf(10) ** -12)


@pytest.mark.parametrize(("scale", "shift"), [("0.05", 1), ("0.7", 3), ("1", 1), ("4", 1), ("25/3", 20), ("1000", 7)])
def test_zcdp_of_discrete_laplace_noise(scale, shift):
    """ρ = ε − (1 − e^−ε) x/sinh x with x = 1/scale."""
    law = truth.discrete_laplace(Fraction(scale), shift)
    x = 1 / truth.number(Fraction(scale))
    e = shift * x
    constant = e - (1 - MP.exp(-e)) * x / MP.sinh(x)
    rho = truth.number(DiscreteLaplaceLoss(scale=scale, sensitivity=shift).rho)
    assert constant <= rho <= constant * (1 + MP.mpf(10) ** -12)
    assert all(divergence(law, alpha) / MP.mpf(alpha) <= rho for alpha in MANY_ORDERS)
    assert divergence(law, 1 + MP.mpf(10) ** -30) >= rho * (1 - MP.mpf(10) ** -12)


def test_the_continuous_constant_is_wrong_for_a_grid():
    """On a coarse grid ε − 1 + e^−ε is too small: the grid's own term is needed."""
    law = truth.discrete_laplace(1, 1)
    smooth = truth.number(laplace_rho(Fraction(1), 0.0))
    assert divergence(law, 1 + MP.mpf(10) ** -6) > smooth * MP.mpf("1.05")


def test_half_of_epsilon_squared_is_loose():
    """ε²/2 holds, but is never the least; at ε = 5 it is 2.5 times too large."""
    assert pure_to_rho(Fraction(5)) < Fraction(25, 2) * Fraction(4, 10)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3", "8"])
def test_zcdp_of_a_bounded_range(epsilon):
    """ε²/8 covers every two-point mechanism whose log-ratios span ε, and for small ε nearly needs it all."""
    e, rho = truth.number(Fraction(epsilon)), truth.number(BoundedRange(epsilon=epsilon).rho)
    needed = MP.mpf(0)
    for share in (0.02, 0.1, 0.3, 0.45, 0.5, 0.55, 0.7, 0.9, 0.98):
        high = e * MP.mpf(share)
        q = (1 - MP.exp(high - e)) / (MP.exp(high) - MP.exp(high - e))  # q e^high + (1 − q) e^(high − ε) = 1
        p = q * MP.exp(high)
        for alpha in MANY_ORDERS:
            a = MP.mpf(alpha)
            value = MP.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1) / a
            needed = max(needed, value)
    assert needed <= rho
    if e < 1:
        assert needed > rho * MP.mpf("0.99")


def test_zcdp_scalars_add():
    """ρ and δ of a sum are the sums."""
    loss = (
        3 * GaussianLoss(mu="0.1") + 2 * Concentrated(rho="0.01", delta="1e-9") + KeySelection(sigma2=8, keys=4, delta="1e-8")
    )
    rho, delta = loss.concentrated
    assert rho == Fraction(3, 200) + Fraction(2, 100) + Fraction(4, 16)
    assert delta == Fraction(2, 10**9) + Fraction(1, 10**8)
    assert loss.rho == math.inf
    assert (4 * DiscreteGaussianLoss(sigma2="9/2", sensitivity=3)).rho == 4


# ---- the sandwich -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [5, 8, 13, 40])
@pytest.mark.parametrize("shift", [1, 4])
def test_discrete_gaussian_lies_between_gaussians(sigma, shift):
    """δ of discrete Gaussian noise lies between those of Gaussian noise a little wider and a little narrower."""
    spread = truth.number(sandwich(float(sigma**2), 1, shift / sigma))
    assert 0 < spread < 1
    mu2 = MP.mpf(shift * shift) / sigma**2
    curve = truth.terms_curve(truth.discrete_gaussian(sigma**2, shift))
    less, more = MP.sqrt(mu2 * (1 - spread)), MP.sqrt(mu2 * (1 + spread))
    slip = MP.mpf(10) ** -24
    for epsilon in (0, 0.01, 0.1, 0.5, 0.777, 1.5):
        got = curve(epsilon)
        if got < MP.mpf(10) ** -45:  # the truth itself leaves out 1e-61
            continue
        assert truth.gaussian_delta(less, epsilon + slip) * (1 - slip) <= got
        assert got <= truth.gaussian_delta(more, epsilon - slip) * (1 + slip)


def test_a_tenth_of_the_sandwich_would_be_false_on_a_coarse_grid():
    """The width is needed: on a grid of σ = 1 the discrete curve leaves a band of 3 %."""
    curve = truth.terms_curve(truth.discrete_gaussian(1, 1))
    band = [
        (truth.gaussian_delta(MP.sqrt(MP.mpf("0.97")), e), curve(e), truth.gaussian_delta(MP.sqrt(MP.mpf("1.03")), e))
        for e in (0, 0.25, 0.5, 1, 1.25)
    ]
    assert any(not low <= got <= high for low, got, high in band)


def test_the_sandwich_is_refused_where_the_grid_is_too_coarse():
    """Without room for the rounding there is no claim, and the claim costs more for more releases."""
    assert sandwich(4.0, 1, 1.0) == math.inf
    assert sandwich(900.0, 10**6, 1.0) > sandwich(900.0, 1, 1.0) > 60 / (2 * math.pi**2) / 900


@pytest.mark.parametrize("mu", [1e-60, 1e-24, 1e-6, 1.0, 50.0])
def test_the_shift_of_the_sandwich_is_small_beside_delta(mu):
    """η = 5 e^(−2π²t) of the rounding moves ε; that is 3e-24 of δ at most, down to δ = 1e-300, for any μ.

    |δ'|/δ = e^ε Φ(−b)/δ with b = ε/μ + μ/2 is taken from 60 digits, not from the bound of the page.
    """
    sigma2 = 1e6
    t = sandwich(sigma2, 7, mu) * sigma2 / (1 + sandwich(sigma2, 7, mu))
    with MP.workdps(60):
        eta = 7 * 5 * MP.exp(-2 * MP.pi**2 * MP.mpf(t))
        for a in (-10, 0, 5, 20, 36):
            epsilon = (a + MP.mpf(mu) / 2) * mu
            if epsilon >= 0:
                b = epsilon / mu + MP.mpf(mu) / 2
                with MP.workdps(60 + 4 * max(0, -int(math.log10(mu)))):
                    after = MP.exp(epsilon) * MP.erfc(b / MP.sqrt(2)) / 2
                    delta = MP.erfc(MP.mpf(a) / MP.sqrt(2)) / 2 - after
                    assert 3 * eta * after / delta < 3e-24


@pytest.mark.parametrize("count", [1, 30])
def test_fine_discrete_gaussian_readings(count):
    """A grid of σ = 2²⁰ steps is accounted as a Gaussian, within the doubt of the sandwich."""
    loss = count * DiscreteGaussianLoss(sigma2=2**40, sensitivity=2**19)
    for delta in DELTAS:
        got = loss.epsilon_interval(delta)
        mu = MP.sqrt(count) / 2
        assert (
            truth.gaussian_delta(mu, got.upper) <= truth.number(Fraction(str(delta))) <= truth.gaussian_delta(mu, got.lower)
        )
        assert got.upper - got.lower <= 1e-9 * got.upper


# ---- counts to a million and extremes ---------------------------------------------------------------------------------


def log_delta_of(epsilon0, count, epsilon):
    """log δ of `count` randomized responses, ε taken at its binary value."""
    return closed_forms.composed_log_delta(closed_forms.number(epsilon0), count, closed_forms.binary(epsilon))


@pytest.mark.parametrize(("epsilon0", "count"), [("0.001", 10**6), ("0.01", 10**5), ("0.1", 10**3), ("1", 100), ("5", 20)])
@pytest.mark.parametrize("delta", DELTAS)
def test_randomized_response_counts(epsilon0, count, delta):
    """ε at δ of up to a million responses encloses the exact binomial tail."""
    got = (count * RandomizedResponseLoss(epsilon=epsilon0)).epsilon_interval(delta)
    target = closed_forms.MP.log(closed_forms.number(delta))
    assert log_delta_of(epsilon0, count, got.upper) <= target
    if got.lower > 0:
        assert log_delta_of(epsilon0, count, got.lower) >= target
    assert got.upper - got.lower <= 1e-6 * got.upper


@pytest.mark.parametrize("epsilon", [0, 1, 4, 8])
def test_randomized_response_delta_of_a_million(epsilon):
    """δ at ε agrees with the exact binomial sum, written twice."""
    loss = 10**6 * Pure(epsilon="0.001")
    got = loss.delta_interval(epsilon)
    low, high = compose.optimal_delta("0.001", count=10**6, epsilon=epsilon)
    exact = closed_forms.MP.exp(log_delta_of("0.001", 10**6, float(epsilon)))
    assert low <= exact <= high
    assert got.lower <= exact <= got.upper
    assert got.upper <= float(exact) * (1 + 1e-6)


@pytest.mark.parametrize("epsilon0", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_single_pure_losses_at_the_extremes(epsilon0, delta):
    """One pure loss: ε solves (e^ε0 − e^ε)/(1 + e^ε0) = δ, or is 0."""
    e0, d = truth.number(Fraction(epsilon0)), truth.number(Fraction(str(delta)))
    exact = MP.log(max(MP.exp(e0) - d * (1 + MP.exp(e0)), 1))
    got = Pure(epsilon=epsilon0).epsilon_interval(delta)
    assert got.lower <= exact <= got.upper
    assert got.upper <= exact * (1 + MP.mpf(10) ** -7) + MP.mpf(10) ** -14
    assert Pure(epsilon=epsilon0).epsilon(delta) >= exact


@pytest.mark.parametrize("epsilon0", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_single_laplace_losses_at_the_extremes(epsilon0, delta):
    """One Laplace release: ε = ε0 + 2 log(1 − δ), or 0."""
    e0, d = truth.number(Fraction(epsilon0)), truth.number(Fraction(str(delta)))
    exact = max(e0 + 2 * MP.log(1 - d), 0)
    got = LaplaceLoss(epsilon=epsilon0).epsilon_interval(delta)
    assert got.lower <= exact <= got.upper
    assert LaplaceLoss(epsilon=epsilon0).epsilon(delta) >= exact
    assert got.upper <= exact * (1 + MP.mpf(10) ** -4) + MP.mpf(10) ** -12


@pytest.mark.parametrize(("mu", "count"), [("1e-6", 1), ("0.001", 10**6), ("0.3", 1), ("0.1", 1000), ("5", 1), ("1", 400)])
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_counts(mu, count, delta):
    """A count of Gaussians is one Gaussian of μ√n, to fourteen digits."""
    got = (count * GaussianLoss(mu=mu)).epsilon_interval(delta)
    whole = truth.number(Fraction(mu)) * MP.sqrt(count)
    target = truth.number(Fraction(str(delta)))
    assert truth.gaussian_delta(whole, got.upper) <= target
    if got.lower > 0:
        assert truth.gaussian_delta(whole, got.lower) >= target
    assert got.upper - got.lower <= 1e-12 * got.upper + 1e-300


@pytest.mark.parametrize(("epsilon0", "delta0", "count"), [("0.1", "1e-9", 50), ("1", "1e-12", 8), ("0.001", "1e-13", 10**5)])
def test_approximate_counts(epsilon0, delta0, count):
    """(ε, δ) losses: the exact optimum of homogeneous composition."""
    loss = count * Approx(epsilon=epsilon0, delta=delta0)
    for epsilon in (0.0, 0.4, 2.0):
        kept = (1 - truth.number(Fraction(delta0))) ** count
        exact = 1 - kept * (1 - MP.exp(truth.number(closed_forms.MP.mpf(log_delta_of(epsilon0, count, epsilon)))))
        got = loss.delta_interval(Fraction(epsilon))
        assert got.lower <= exact <= got.upper
        assert got.upper <= exact * (1 + MP.mpf(10) ** -6)


def test_the_renyi_reading_is_above_the_truth():
    """The Rényi reading of Gaussians is valid and costs a few percent more than the exact one."""
    for count in (1, 100, 10**4):
        loss = count * GaussianLoss(mu="0.05")
        for delta in DELTAS[1:]:
            exact, renyi = loss.readings(delta)["numerical"], loss.readings(delta)["renyi"]
            assert exact <= renyi <= 1.25 * exact + 1e-3


@pytest.mark.parametrize("rho", ["1e-6", "0.02", "1", "40"])
def test_concentrated_readings(rho):
    """A loss known by its ρ alone costs what the best order of Canonne, Kamath and Steinke says."""
    for delta in DELTAS:
        exact = max(closed_forms.rho_epsilon(rho, delta), 0)
        got = Concentrated(rho=rho).epsilon(delta)
        assert (
            exact * (1 - closed_forms.MP.mpf(10) ** -9)
            <= got
            <= exact * (1 + closed_forms.MP.mpf(10) ** -4) + closed_forms.MP.mpf(10) ** -12
        )


def test_a_curve_is_asked_in_both_directions():
    """A one-sided pair is charged for its worse direction, whichever way it was written."""
    p, q = ["0.9", "0.1"], ["0.99", "0.01"]
    assert Finite(p=p, q=q).renyi(3) == Finite(p=q, q=p).renyi(3)
    assert enclosure(Finite(p=p, q=q)).delta(0.5) == enclosure(Finite(p=q, q=p)).delta(0.5)
    worse = max(divergence(truth.finite([Fraction(x) for x in a], [Fraction(x) for x in b]), 3) for a, b in ((p, q), (q, p)))
    better = min(divergence(truth.finite([Fraction(x) for x in a], [Fraction(x) for x in b]), 3) for a, b in ((p, q), (q, p)))
    assert better < worse <= Finite(p=p, q=q).renyi(3)
