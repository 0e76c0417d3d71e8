"""Sums of many equal noises: the law that bars use is never narrower than the convolution itself, and hardly wider."""

import math
from fractions import Fraction

import numpy as np
import pytest

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.plan import many
from curador.plan.many import many_ratio_law, many_reach, merged_gaussian

LEVEL = Fraction(19, 20)


def gaussian(sigma):
    return DiscreteGaussian(sigma=Fraction(sigma), sensitivity=1)


def laplace(scale):
    return DiscreteLaplace(scale=Fraction(scale), sensitivity=1)


def masses(noise, reach):
    """Return P[noise = k] for |k| up to a reach, by the definition."""
    places = np.arange(-reach, reach + 1, dtype=np.float64)
    if isinstance(noise, DiscreteGaussian):
        weights = np.exp(-(places**2) / (2 * float(noise.sigma) ** 2))
    else:
        weights = np.exp(-np.abs(places) / float(noise.scale))
    return weights / weights.sum()


def convolved(noise, count, reach):
    """Return the law of a sum of equal noises, by convolution."""
    found = one = masses(noise, reach)
    for _ in range(count - 1):
        found = np.convolve(found, one)
    return found


def beyond(law, size):
    """Return P[|sum| > size]."""
    middle = len(law) // 2
    return law[: max(middle - size, 0)].sum() + law[middle + size + 1 :].sum()


@pytest.mark.parametrize("sigma", ["7/10", "1", "3/2", "5"])
@pytest.mark.parametrize("count", [2, 7, 40])
def test_a_sum_of_gaussians_has_the_tails_of_one(sigma, count):
    """P[|sum| > t] ≤ e^τ P[|G| > t] for every t, and G is no wider than the digits that it is written with."""
    noise = gaussian(sigma)
    wider, excess = merged_gaussian(noise, count)
    law = convolved(noise, count, math.ceil(9 * float(noise.sigma) + 3))
    own = masses(wider, len(law) // 2)
    assert float(wider.sigma) == pytest.approx(math.sqrt(count) * float(noise.sigma), rel=1e-6)
    for size in range(int(6 * float(wider.sigma))):
        assert beyond(law, size) <= math.exp(min(excess, 50)) * beyond(own, size) * (1 + 1e-9) + 1e-14


def test_a_narrower_sum_would_be_caught():
    """With the width of one noise less the tails are too small."""
    noise = gaussian("3/2")
    law, own = convolved(noise, 7, 20), masses(merged_gaussian(noise, 6)[0], 140)
    assert any(beyond(law, size) > beyond(own, size) * 1.01 for size in range(12))


@pytest.mark.parametrize("noise", [gaussian(2), gaussian(12), laplace(1), laplace(4), laplace(20)], ids=str)
@pytest.mark.parametrize("count", [9, 30, 100])
def test_the_reach_of_many_noises_is_theirs(noise, count):
    """It misses with at most 5 %, and a tenth less would miss with more."""
    reach = many_reach(((1.0, noise, count),), LEVEL)
    spread = float(noise.sigma) if isinstance(noise, DiscreteGaussian) else float(noise.scale)
    law = convolved(noise, count, math.ceil(35 * spread))
    assert beyond(law, math.floor(reach)) <= 0.05
    assert beyond(law, math.floor(0.9 * reach - 1)) > 0.05


def test_coefficients_that_differ_are_summed_too():
    """Σ c · noise of three classes of Laplaces."""
    terms = ((1.0, laplace(3), 8), (0.5, laplace(9), 6), (2.5, laplace(2), 3))
    reach = many_reach(terms, LEVEL)
    law = np.ones(1)
    for c, noise, count in terms:  # in half steps
        each = masses(noise, math.ceil(35 * float(noise.scale)))
        stretched = np.zeros((len(each) - 1) * int(2 * c) + 1)
        stretched[:: int(2 * c)] = each
        for _ in range(count):
            law = np.convolve(law, stretched)
    assert beyond(law, math.floor(2 * reach)) <= 0.05
    assert beyond(law, math.floor(1.9 * reach)) > 0.05


@pytest.mark.parametrize("count", [9, 60])
def test_noises_of_very_many_values_are_smooth(count):
    """A sum in fine steps has the reach of the coarse one, times its steps."""
    fine, coarse = (many_reach(((1.0, laplace(scale), count),), LEVEL) for scale in (10**7, 10**3))
    assert fine == pytest.approx(10**4 * coarse, rel=0.02)


def test_too_many_points_fall_back_to_the_union_bound(monkeypatch):
    """What the lattice cannot hold is still bounded."""
    terms = ((1.0, laplace(5), 20),)
    tight = many_reach(terms, LEVEL)
    monkeypatch.setattr(many, "_MOST_POINTS", 16)
    assert many_reach.__wrapped__(terms, LEVEL) > tight


@pytest.mark.parametrize("count", [5, 12, 60])
def test_a_share_of_many_laplaces_is_covered_and_tight(count):
    """Of 20,000 seeded draws at least 94.5 %, in bars at most 1.15 times as wide as the error that they had."""
    dice, noise, scale = np.random.default_rng(11), laplace(20), 20.0
    true = np.full(count, 3000.0 / count)
    true[0] = 3000.0
    draws = true + np.rint(dice.laplace(0, scale, (20_000, count)))
    law = many_ratio_law(((1.0, 1.0, noise, 1), (0.0, 1.0, noise, count - 1)), LEVEL)
    above, below, share = draws[:, 0], draws.sum(axis=1), true[0] / true.sum()
    low, high = law.ends(above / below, above, below)
    error = np.quantile(np.abs(above / below - share), 0.95)
    assert ((low <= share) & (share <= high)).mean() >= 0.945
    assert ((high - low) / 2).mean() <= 1.15 * error


def test_a_ratio_counts_equal_noises():
    """A share of a total of many groups has the law that the listed noises give."""
    one = many_ratio_law(((1.0, 1.0, gaussian(20), 1), (0.0, 1.0, gaussian(20), 5)), LEVEL)
    listed = many_ratio_law(tuple((float(place == 0), 1.0, gaussian(20), 1) for place in range(6)), LEVEL)
    above, below = np.array([300.0]), np.array([2000.0])
    ends, others = (law.ends(above / below, above, below) for law in (one, listed))
    assert np.allclose(ends, others, rtol=0.02)
    assert many_ratio_law(((1.0, 1.0, gaussian(20), 3),), LEVEL) is None
