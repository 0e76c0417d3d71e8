"""Fieller's set of two ratios, the turn of orthogonal parts, and sums of discrete Gaussians, against plain computations.

Redraws alarm where more are missed than a binomial law allows but for 1e-9; all tests together below 1e-7.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from curador.answers import ratio_bars
from curador.answers.ratio_bars import MeasuredRatio, ratio_interval, ratio_sum_interval
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.plan import enclosure as on
from curador.plan.error import ratio_plane
from curador.plan.many import merged_gaussian
from curador.plan.ratio_pairs import NoisyRatio, ratio_pair_ends, where_small
from curador.plan.ratio_sums import turn_of_parts
from curador.plan.smooth import BOX_SHARE

MISS = Fraction(1, 5)
REDRAWS = 600
MOST = int(binom.isf(1e-9, REDRAWS, float(MISS)))
SIGMAS = 60, 10
GAUSSIANS = [DiscreteGaussian(sigma=sigma, sensitivity=1) for sigma in SIGMAS] * 2
LAPLACES = [DiscreteLaplace(scale=scale, sensitivity=1) for scale in SIGMAS] * 2


def difference(groups, noises, seed=1):
    """The interval of the difference of two means of numbers from 0 to 100, in every redraw, and the difference."""
    dice, ratios, truth = np.random.default_rng(seed), [], 0.0
    for place, ((rows, mean), sign) in enumerate(zip(groups, (1, -1), strict=True)):
        total = round((mean - 50) * rows)
        drawn = []
        for scale in SIGMAS:
            smooth = dice.normal(size=REDRAWS) if noises is GAUSSIANS else dice.laplace(size=REDRAWS)
            drawn.append(np.rint(scale * smooth))
        count = rows + drawn[1]
        above = (2 * place, Fraction(sign)), (2 * place + 1, Fraction(50 * sign))
        within = (Fraction(0), Fraction(100)) if sign > 0 else (Fraction(-100), Fraction(0))
        numerator = sign * (total + drawn[0] + 50 * count)
        ratios.append(MeasuredRatio(above, ((2 * place + 1, Fraction(1)),), numerator, count, within))
        truth += sign * (50 + total / rows)
    with np.errstate(all="ignore"):
        held = [ratio_interval(one, noises, 1 - BOX_SHARE * MISS / 2) for one in ratios]
        where = ratio_sum_interval(ratios, (), np.zeros(REDRAWS), noises, MISS, on.add(held[0], held[1]))
    return where, truth


def misses(where, truth):
    """In how many rows a truth is outside."""
    return int((~((where.low <= truth) & (truth <= where.high))).sum())


GROUPS = [
    ((60, 10.0), (60, 90.0)),
    ((25, 3.0), (30, 100.0)),
    ((1, 100.0), (1, 0.0)),
    ((500, 2.0), (500, 98.0)),
    ((15, 0.0), (900, 100.0)),
]


@pytest.mark.slow
@pytest.mark.parametrize("noises", [GAUSSIANS, LAPLACES], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("groups", GROUPS)
def test_differences_of_means_are_covered(groups, noises):
    """However small the groups are, and where which law is used is a matter of chance."""
    assert misses(*difference(groups, noises)) <= MOST


@pytest.mark.slow
def test_a_critical_value_that_is_too_small_is_caught(monkeypatch):
    """Where the set of pairs is made for five times its miss, in groups of thirty deviations."""
    groups = (300, 10.0), (300, 90.0)
    assert misses(*difference(groups, GAUSSIANS)) <= MOST
    monkeypatch.setattr(ratio_bars, "ratio_pair_ends", lambda pair, miss, among: ratio_pair_ends(pair, 5 * miss, among))
    assert misses(*difference(groups, GAUSSIANS)) > MOST


def test_the_set_holds_all_accepted_pairs():
    """Pairs on a lattice that plain formulas accept, at noises without a lattice of their own to speak of."""
    from scipy.special import ndtri

    dice = np.random.default_rng(2)
    noises = [DiscreteGaussian(sigma=sigma * 10**6, sensitivity=1) for sigma in SIGMAS] * 2
    zero, rows = np.zeros(2), 6
    pair, sides = [], []
    for place in range(2):
        divisor = dice.uniform(100, 300, rows) * 1e6
        numerator = divisor * dice.uniform(-30, 30, rows)
        own = np.array([1.0, 7.0]), np.array([0.0, 1.0])
        above, below = (np.concatenate([zero, one] if place else [one, zero]) for one in own)
        middle = numerator / divisor
        half = 3.5 * np.hypot(SIGMAS[0], (7 - middle) * SIGMAS[1]) * 1e6 / divisor
        ends = middle - half, middle + half
        pair.append(NoisyRatio(above, below, noises, numerator, divisor, ends))
        sides.append((numerator, divisor, ends))
    low, high = ratio_pair_ends((pair[0], pair[1]), MISS, np.ones(rows, np.bool_))
    z, grid = -ndtri(float(MISS) / 2), np.linspace(0, 1, 401)
    for row in range(rows):
        parts = []
        for numerator, divisor, ends in sides:
            theta = ends[0][row] + (ends[1][row] - ends[0][row]) * grid
            variance = (SIGMAS[0] ** 2 + ((7 - theta) * SIGMAS[1]) ** 2) * 1e12  # of the noise of a − θb
            shared = (7 - theta) * SIGMAS[1] ** 2 * 1e12  # its covariance with that of b
            off = numerator[row] - theta * divisor[row]
            near = divisor[row] - shared / variance * off  # b̃ without what it has of that noise
            parts.append((theta, off / near, variance / near**2))
        (one, first, own), (other, second, beside) = parts
        accepted = np.abs(first[:, None] + second) <= z * np.sqrt(own[:, None] + beside)
        sums = (one[:, None] + other)[accepted]
        assert low[row] <= sums.min()
        assert sums.max() <= high[row]
        assert high[row] - low[row] <= 2.5 * (sums.max() - sums.min())


def test_both_laws_are_used_near_the_threshold():
    """Within eight deviations of it: beyond, noise does not cross it."""
    sizes = np.array([41.9, 42.1, 57.9, 58.1])
    ratio = NoisyRatio(np.array([1.0, 0.0]), np.array([0.0, 1.0]), GAUSSIANS[:2], sizes, sizes * SIGMAS[1], (sizes, sizes))
    paired, turned = where_small((ratio, ratio))
    assert paired.tolist() == [True, True, True, False]
    assert turned.tolist() == [False, True, True, True]


@pytest.mark.slow
def test_which_law_is_used_is_not_left_to_noise(monkeypatch):
    """Near the threshold the interval holds those of both: of a choice by noise the misses of both would add up."""
    monkeypatch.setattr(ratio_bars, "ratio_pair_ends", lambda *_: None)
    turned = difference(GROUPS[3], GAUSSIANS)[0]
    ends = np.full(REDRAWS, -96.1), np.full(REDRAWS, -95.9)
    monkeypatch.setattr(ratio_bars, "ratio_pair_ends", lambda *_: ends)
    both = difference(GROUPS[3], GAUSSIANS)[0]
    assert np.all((both.low <= turned.low) & (turned.high <= both.high))
    assert np.all((both.low <= ends[0]) & (ends[1] <= both.high))


def test_the_turn_of_parts_is_the_largest_angle():
    """Of vectors whose coordinates are multiplied by numbers within the parts, drawn and at the ends."""
    dice = np.random.default_rng(3)
    parts = [0.3, 0.1, 0.2]
    bound = turn_of_parts([np.array([part]) for part in parts])[0]
    draws = dice.normal(size=(20_000, 3)) ** 3
    ends = np.array([[1 / (1 + way * part) for part in parts] for way in (-1, 1)])
    factors = np.where(dice.random(draws.shape) < 0.5, ends[0], ends[1])
    turned = draws * factors
    cosines = np.sum(draws * turned, 1) / np.linalg.norm(draws, axis=1) / np.linalg.norm(turned, axis=1)
    sines = np.sqrt(np.maximum(1 - cosines**2, 0))
    assert 0.95 * bound < sines.max() <= bound
    assert np.isnan(turn_of_parts([np.array([0.1]), np.array([np.nan])])[0])


@pytest.mark.parametrize("arcs", [4, 128])
def test_the_plane_has_the_largest_coefficients(arcs):
    """Of every noise, along the directions of each arc."""
    above, below, deviations = np.array([1.0, 2.0, 0.0]), np.array([0.0, 1.0, 3.0]), np.array([5.0, 1.0, 2.0])
    plane = ratio_plane(above, below, deviations, arcs)
    across = above - plane.slope * below
    assert abs(np.sum(across * below * deviations**2)) < 1e-9
    for arc in range(arcs):
        angles = np.linspace(-math.pi / 2 + math.pi * arc / arcs, -math.pi / 2 + math.pi * (arc + 1) / arcs, 33)[:, None]
        along = np.abs(np.cos(angles) * across / plane.rest - np.sin(angles) * below / plane.denominator)
        assert np.all(along.max(0) <= plane.worst[arc] * (1 + 1e-12))


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3, 5), Fraction(1)])
@pytest.mark.parametrize("many", [2, 3, 7])
def test_merged_gaussians_bound_every_tail(sigma, many):
    """Against convolutions; a constant of a fifth of it is caught where the noise is narrow."""
    places = np.arange(-60, 61)
    masses = np.exp(-((places / float(sigma)) ** 2) / 2)
    masses /= masses.sum()
    held = masses
    for _ in range(many - 1):
        held = np.convolve(held, masses)
    merged, excess = merged_gaussian(DiscreteGaussian(sigma=sigma, sensitivity=1), many)
    wide = np.arange(len(held)) - len(held) // 2
    own = np.exp(-((wide / float(merged.sigma)) ** 2) / 2)
    own /= own.sum()
    tails = [(held[np.abs(wide) >= t].sum(), own[np.abs(wide) >= t].sum()) for t in range(20)]
    assert all(one <= math.exp(excess) * other * (1 + 1e-12) for one, other in tails if one > 1e-10)
    ratios = [abs(math.log(one / other)) for one, other in zip(held, own, strict=True) if one > 1e-10]
    assert max(ratios) <= excess * (1 + 1e-9) + 1e-9
    if sigma == Fraction(1, 2) and many == 2:
        assert max(ratios) > excess / 5
