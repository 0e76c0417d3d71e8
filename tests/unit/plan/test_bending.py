"""The law of mean slopes: its identity by exact numbers, its turn by noises that are drawn, its critical values by draws."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.plan import moments
from curador.plan.bending import bend_of, bent_value, bent_values, where_bent
from curador.plan.moments import MomentBox, variance_reaches

DRAWS = 400_000
ALARM = 1e-9


def beyond(bend, turning, limit):
    """How many draws of the left side are above a limit."""
    dice = np.random.default_rng(3)
    along = np.abs(dice.normal(size=DRAWS))
    across = np.sqrt(dice.chisquare(turning, size=DRAWS))
    return int((along + np.minimum(bend * np.maximum(np.hypot(along, across), 1), 1) * across > limit).sum())


@pytest.mark.parametrize("miss", [0.05, 0.2])
@pytest.mark.parametrize("turning", [1, 2, 5])
@pytest.mark.parametrize("rung", [1, 58, 95])
def test_critical_values_are_missed_no_more_often_than_they_say(rung, turning, miss):
    """And without the turn they would be, where it is felt."""
    limit = bent_value(rung, turning, miss)
    assert beyond(bend_of(rung), turning, limit) <= binom.isf(ALARM, DRAWS, miss)
    if rung > 1:
        assert beyond(bend_of(rung), turning, bent_value(0, turning, miss)) > binom.isf(ALARM, DRAWS, miss)


def test_bends_are_rounded_up():
    """To the next rung, of which there are few."""
    bends = np.concatenate([np.linspace(0, 1, 3001), 1.1 ** np.arange(-60, 1)])
    found = bent_values(bends, 2, 0.05)
    assert len(np.unique(found)) < 130
    assert np.all(np.diff(found[:3001]) >= 0)
    for bend, one in zip(bends[::100], found[::100], strict=True):
        assert any(one == bent_value(rung, 2, 0.05) and bend_of(rung) >= bend for rung in range(130))


def test_large_bends_have_no_value():
    """Nor have those that are no number."""
    found = bent_values(np.array([0.0, 0.01, 1.5, np.nan, -1.0]), 2, 0.05)
    assert np.isfinite(found).tolist() == [True, True, False, False, False]
    assert found[0] < found[1]


def test_every_count_has_a_law():
    """Around the limit both."""
    bent, boxed = where_bent(np.array([3.0, 20.0, 60.0, np.nan]))
    assert bent.tolist() == [False, True, True, False]
    assert boxed.tolist() == [True, True, False, True]


def test_the_noise_of_a_variance_is_its_form_without_any_rest():
    """ñ (ṽ − v) = q N_squares − (M̃ + M) p N_total + (M M̃ − V) N_count, in exact numbers."""
    dice = np.random.default_rng(4)
    for _ in range(50):
        rows, total, squares, *noise = (Fraction(int(one)) for one in dice.integers(20, 90, 6))
        q, p, centre = Fraction(3), Fraction(2), Fraction(7)
        after = [one + added for one, added in zip((squares, total, rows), noise, strict=True)]
        mean, second = p * total / rows, q * squares / rows
        noisy, noisy_second = p * after[1] / after[2], q * after[0] / after[2]
        off = (noisy_second - noisy**2) - (second - mean**2)
        by_count = mean * noisy - (second + centre - mean**2 - centre)
        assert after[2] * off == q * noise[0] - (noisy + mean) * p * noise[1] + by_count * noise[2]


def coverage(rows, mean, variance, sigma, redraws=20_000, miss=Fraction(1, 5)):
    """How often the reach of a variance is missed whose moments lie where normal intervals say."""
    dice = np.random.default_rng(5)
    noises = [DiscreteGaussian(sigma=sigma * size, sensitivity=1) for size in (900, 30, 1)]
    second = variance + mean**2
    truth = np.rint(np.array([rows * second, rows * mean, rows]))
    sizes = np.array([900, 30, 1]) * sigma
    held = truth[:, None] + np.rint(sizes[:, None] * dice.normal(size=(3, redraws)))
    found, noisy_second = held[1] / held[2], held[0] / held[2]
    far = 3.3 * np.hypot(sizes[1], np.abs(found) * sizes[2]) / held[2], 3.3 * np.hypot(sizes[0], second * sizes[2]) / held[2]
    value = noisy_second - found**2
    true = float(truth[0] / truth[2] - (truth[1] / truth[2]) ** 2)
    box = MomentBox(
        (found, found),
        value,
        ((found - far[0], found + far[0]), (noisy_second - far[1], noisy_second + far[1])),
        (np.zeros(redraws), np.full(redraws, 900.0)),
        0.0,
    )
    less, more = variance_reaches((0, 1, 2), (1.0, 1.0), held[2], box, noises, miss)
    return int(((true < value - less) | (true > value + more)).sum()), binom.isf(ALARM, redraws, float(miss))


@pytest.mark.parametrize(("rows", "mean", "variance"), [(300, 0, 300), (300, 25, 40), (1000, 10, 500), (5000, -20, 100)])
def test_a_variance_is_missed_no_more_often_than_its_reach_says(rows, mean, variance):
    """Means in the middle and far from it, where its own noise is most of all."""
    misses, most = coverage(rows, mean, variance, 10)
    assert misses <= most


def test_a_reach_without_the_noise_of_the_mean_is_caught(monkeypatch):
    """Seeded bug: the form knows of half of the noise of sums."""
    plain = moments.spread
    monkeypatch.setattr(moments, "spread", lambda noise: plain(noise) / (2 if noise.sigma == 300 else 1))
    misses, most = coverage(1000, 25, 40, 10)
    assert misses > most
