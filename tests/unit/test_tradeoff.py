from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from curador.errors import InvalidParameter
from curador.privacy.losses import (
    Approx,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
)

MP = mpmath.mp.clone()
MP.dps = 40
RATES = ("0.001", "0.05", "0.3", "0.5", "0.9", "0.999")


def number(value):
    fraction = Fraction(value)
    return MP.mpf(fraction.numerator) / fraction.denominator


def gaussian(mu, rate):
    """Φ(Φ⁻¹(1 − x) − μ)."""
    place = MP.sqrt(2) * MP.erfinv(1 - 2 * number(rate))
    return MP.ncdf(place - mu)


def laplace(epsilon, rate):
    """The three pieces of the Laplace trade-off."""
    e, x = number(epsilon), number(rate)
    if x <= MP.exp(-e) / 2:
        return 1 - MP.exp(e) * x
    return MP.exp(-e) / (4 * x) if x <= MP.mpf(1) / 2 else MP.exp(-e) * (1 - x)


def approximate(epsilon, delta, rate):
    """The (ε, δ) trade-off."""
    e, d, x = number(epsilon), number(delta), number(rate)
    return max(0, 1 - d - MP.exp(e) * x, MP.exp(-e) * (1 - d - x))


def neyman_pearson(p, q, rate):
    """The trade-off of a finite pair: outputs by falling ratio until the false positives are used up."""
    left, power = number(rate), MP.mpf(0)
    rows = sorted(zip(p, q, strict=True), key=lambda row: -row[0] / row[1] if row[1] else -MP.inf)
    for above, below in rows:
        share = MP.mpf(1) if below <= left else left / below
        power += share * above
        left -= share * below
        if left <= 0:
            break
    return 1 - power


def check(got, truth, tight=1e-9):
    """From below, and tight."""
    assert got <= truth * (1 + MP.mpf(10) ** -30) + MP.mpf(10) ** -30
    assert got >= truth - MP.mpf(tight)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    ("loss", "mu"), [(GaussianLoss(mu="0.5"), 0.5), (9 * GaussianLoss(mu=1), 3), (GaussianLoss(mu=3) + GaussianLoss(mu=4), 5)]
)
def test_gaussian_tradeoff(loss, mu, rate):
    """Any number of Gaussians is one Gaussian."""
    check(loss.tradeoff(rate), gaussian(MP.mpf(mu), rate), 1e-12)


@pytest.mark.parametrize("rate", RATES)
def test_fine_discrete_gaussian_tradeoff(rate):
    """Noise on a fine grid has the trade-off of the ideal noise."""
    check((4 * DiscreteGaussianLoss(sigma2=2**80, sensitivity=2**39)).tradeoff(rate), gaussian(MP.mpf(1), rate), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("count", [1, 5])
def test_coarse_discrete_gaussian_tradeoff(rate, count):
    """Noise on a coarse grid, by its profile: valid against the exact test, and tight to a thousandth."""
    sigma2, reach = 6 * 6, 200
    weights = {k: MP.exp(-MP.mpf(k * k) / (2 * sigma2 * 1)) for k in range(-reach, reach + 1)}
    total = MP.fsum(weights.values())
    loss = DiscreteGaussianLoss(sigma2=sigma2, sensitivity=4)
    if count == 1:
        p = [weights[k] / total for k in range(-reach + 4, reach - 4)]
        q = [weights[k + 4] / total for k in range(-reach + 4, reach - 4)]
        truth = neyman_pearson(p, q, rate)
    else:  # the sandwich: a Gaussian a little more visible is below, a little less is above
        truth = gaussian(MP.sqrt(count * MP.mpf(16) / sigma2) * (1 - MP.mpf("0.05")), rate)
    got = (count * loss).tradeoff(rate)
    assert got <= truth
    if count == 1:
        assert got >= truth - MP.mpf("1e-3")


@pytest.mark.parametrize("rate", RATES)
def test_laplace_tradeoff(rate):
    """One Laplace release, by its closed form."""
    check(LaplaceLoss(epsilon="1.5").tradeoff(rate), laplace("1.5", rate), 1e-12)


@pytest.mark.parametrize("rate", RATES)
def test_pure_tradeoff(rate):
    """Pure losses have two lines."""
    check(Pure(epsilon=1).tradeoff(rate), approximate(1, 0, rate), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES)
def test_approximate_tradeoff(rate):
    """So have (ε, δ) losses, a little lower, with those of the smaller ε between them."""
    got, line = Approx(epsilon=1, delta="0.01").tradeoff(rate), approximate(1, "0.01", rate)
    assert got >= line - MP.mpf("1e-3")
    assert got <= line + MP.mpf("0.1")


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES)
def test_finite_tradeoff(rate):
    """A finite pair against the test of Neyman and Pearson in the worse direction."""
    p, q = [Fraction(x, 10) for x in (1, 2, 3, 4)], [Fraction(x, 10) for x in (3, 3, 3, 1)]
    truth = min(neyman_pearson([number(x) for x in a], [number(x) for x in b], rate) for a, b in ((p, q), (q, p)))
    check(Finite(p=p, q=q).tradeoff(rate), truth, 2e-2)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 200), ("0.02", 4000)])
@pytest.mark.slow
def test_many_responses_look_gaussian(rate, epsilon, count):
    """A long composition is valid against the exact binomial test and tight to two thousandths."""
    grow = MP.exp(number(epsilon))
    keep = grow / (1 + grow)
    middle, width = float(keep) * count, 12 * math.sqrt(count) / 2
    places = range(max(0, int(count / 2 - width)), min(count, int(middle + width)) + 1)
    logs = [MP.loggamma(count + 1) - MP.loggamma(i + 1) - MP.loggamma(count - i + 1) for i in places]
    p = [MP.exp(c + i * MP.log(keep) + (count - i) * MP.log(1 - keep)) for c, i in zip(logs, places, strict=True)]
    q = [MP.exp(c + i * MP.log(1 - keep) + (count - i) * MP.log(keep)) for c, i in zip(logs, places, strict=True)]
    truth = neyman_pearson(p, q, rate)
    got = (count * RandomizedResponseLoss(epsilon=epsilon)).tradeoff(rate)
    assert got <= truth + MP.mpf(10) ** -12
    assert got >= truth - MP.mpf("2e-3")


LOSSES = {
    "laplaces": 5 * LaplaceLoss(epsilon="0.4"),
    "discrete": DiscreteLaplaceLoss(scale=2, sensitivity=3) + GaussianLoss(mu="0.5"),
    "concentrated": Concentrated(rho="0.1"),
    "approximate": Approx(epsilon="0.2", delta="0.001"),
    "sampled": Pure(epsilon=2).subsample(rate="0.1"),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.slow
def test_a_tradeoff_falls_from_one_to_nothing(name):
    """The bound is between 0 and 1 − x, falls with x, and is convex."""
    rates = np.linspace(0, 1, 41)
    bound = LOSSES[name].tradeoff(rates)
    assert bound.shape == rates.shape
    assert np.all(bound >= 0)
    assert np.all(bound <= 1 - rates + 1e-15)
    assert np.all(np.diff(bound) <= 1e-15)
    assert np.all(np.diff(bound, 2) >= -1e-12)
    assert bound[0] > 0.99
    assert bound[20] > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_a_tradeoff_agrees_with_the_profile(name):
    """Every (ε, δ) that is proved gives a line below the bound, up to the spacing of the profile."""
    loss = LOSSES[name]
    bound = loss.tradeoff(np.array([0.01, 0.2]))
    for epsilon in ("0", "0.3", "1"):
        delta = Fraction(loss.delta_interval(epsilon).upper)
        for rate, got in zip(("0.01", "0.2"), bound, strict=True):
            assert got >= approximate(epsilon, delta, rate) - MP.mpf("2e-3")


@pytest.mark.slow
def test_the_ends():
    """At x = 0 only an infinite loss helps the adversary; at x = 1 nothing is missed."""
    for loss in (GaussianLoss(mu=2), LaplaceLoss(epsilon=2), Pure(epsilon=2), 3 * Pure(epsilon=1)):
        assert loss.tradeoff(0) == pytest.approx(1, abs=1e-9)
        assert loss.tradeoff(1) == 0
    assert Approx(epsilon=1, delta="0.25").tradeoff(0) <= 0.75


@pytest.mark.parametrize("rate", ["1e-300", "1e-330", "1e-400"])
def test_a_tiny_rate_is_not_nothing(rate):
    """A false positive rate below the floats is not rounded to the one at which the adversary is blind."""
    check(GaussianLoss(mu=40).tradeoff(rate), gaussian_tail(40, rate), 1)


def gaussian_tail(mu, rate):
    """Φ(z − μ) with P[N > z] = x, for tiny x."""
    z = MP.findroot(lambda t: MP.log(MP.erfc(t / MP.sqrt(2)) / 2) - MP.log(number(rate)), MP.sqrt(-2 * MP.log(number(rate))))
    return MP.ncdf(z - mu)


@pytest.mark.parametrize("rate", ["-0.1", "1.1", "nan", math.nan, math.inf, None, "abc", True, 1j])
def test_rates_outside_are_refused(rate):
    """A rate is between 0 and 1."""
    with pytest.raises(InvalidParameter, match=r"^fpr must be "):
        GaussianLoss(mu=1).tradeoff(rate)


def test_arrays_of_rates_outside_are_refused():
    """So is every entry of an array."""
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidParameter, match=r"^fpr must be rates between 0 and 1"):
            GaussianLoss(mu=1).tradeoff(np.array([0.5, bad]))
