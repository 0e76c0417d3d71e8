"""Error bars: data-free laws against mpmath and brute force, and what estimates make of them."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import hand_made as hand
import mpmath
import numpy as np
import pytest
from scipy.special import gammaincc, ndtr

from curador.answers.enclosures import estimate_values
from curador.answers.release import Ends, ReleasedBlock, release
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.plan.aggregates import Linear, Mean, linear_reach, mean_reach_at, variance_reach_at
from curador.plan.error import lattice_slack, ratio_law, ratio_reach, smooth_reach, sum_reach

LEVEL = Fraction(95, 100)
KINDS = {
    "gaussian": lambda scale: DiscreteGaussian(sigma=scale, sensitivity=1),
    "laplace": lambda scale: DiscreteLaplace(scale=scale, sensitivity=1),
}


def noises(kind, *scales):
    return [KINDS[kind](scale) for scale in scales]


def masses(noise):
    """Places and exact probabilities of an integer noise, but for 1e-15."""
    reach = int(noise.interval(1 - Fraction(1, 10**15)).upper)
    places = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteGaussian):
        weights = np.exp(-0.5 * (places / float(noise.sigma)) ** 2)
    else:
        weights = np.exp(-np.abs(places) / float(noise.scale))
    return places, weights / weights.sum()


def miss_of(terms, reach):
    """P[|Σ c X| > reach] by convolution on the lattice of all sums."""
    below = math.lcm(*(c.denominator for c, _ in terms))
    law = np.ones(1)
    for c, noise in terms:
        places, weights = masses(noise)
        step = abs(int(c * below))
        spaced = np.zeros(step * (len(places) - 1) + 1)
        spaced[::step] = weights
        law = np.convolve(law, spaced)
    sums = np.arange(len(law)) - len(law) // 2
    return float(law[np.abs(sums) > float(Fraction(reach) * below)].sum())


# ---- laws ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", ["0.05", "0.4", "1", "3", "40"])
@pytest.mark.parametrize("coefficient", [Fraction(1), Fraction(-7, 3)])
def test_one_noise_has_its_own_exact_interval(kind, scale, coefficient):
    """A single term is the mechanism's interval, scaled; signs do not matter."""
    (noise,) = noises(kind, scale)
    reach = linear_reach(Linear(((0, coefficient),), Fraction(5)), [noise], LEVEL)

    assert reach == pytest.approx(abs(float(coefficient)) * noise.interval(LEVEL).upper)


def test_coefficients_of_one_measurement_add_up():
    """The same noise twice is not two noises."""
    noise = noises("gaussian", 10)
    twice = linear_reach(Linear(((0, Fraction(1)), (0, Fraction(1)))), noise, LEVEL)

    assert twice == 2 * linear_reach(Linear(((0, Fraction(1)),)), noise, LEVEL)
    assert linear_reach(Linear(((0, Fraction(1)), (0, Fraction(-1)))), noise, LEVEL) == 0.0


PAIRS = [
    ("1", "1", 1, 1),
    ("2", "2", 1, -1),
    ("5", "3", 1, Fraction(3, 2)),
    ("0.3", "2", 4, 1),
    ("12", "1.5", Fraction(1, 8), 1),
    ("0.02", "3", 1, 1),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("level", [Fraction(1, 2), LEVEL, Fraction(999, 1000)])
def test_sums_of_coarse_noises_against_brute_force(kind, pair, level):
    """The reach misses with at most what is allowed, and one lattice step less would miss more."""
    first, second = noises(kind, *pair[:2])
    terms = ((Fraction(pair[2]), first), (Fraction(pair[3]), second))
    reach = sum_reach(terms, level)
    step = math.gcd(*(abs(int(24 * c)) for c, _ in terms)) / 24

    assert miss_of(terms, reach) <= 1 - level
    assert reach == 0 or miss_of(terms, reach - 1.01 * step) > (1 - level) * Fraction(99, 100)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scales", [(400, 400), (2000, 90), (1 << 30, 1 << 29), (3000, 2500, 1000)])
def test_sums_of_fine_noises_are_the_smooth_ones(kind, scales):
    """On a fine lattice the reach is that of the continuous law, within half a per cent."""
    terms = tuple((Fraction(1), noise) for noise in noises(kind, *scales))
    smooth = smooth_quantile(kind, scales, LEVEL)

    assert smooth <= sum_reach(terms, LEVEL) * (1 + 1e-9)
    assert sum_reach(terms, LEVEL) < smooth * 1.005


def smooth_quantile(kind, scales, level):
    """The quantile of |Σ scale · Y| by mpmath: closed for Gaussians, from the characteristic function for Laplaces."""
    with mpmath.workdps(30):
        if kind == "gaussian":
            return float(mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(float(level))) * mpmath.sqrt(sum(s * s for s in scales)))
        size = float(max(scales))
        betas = [mpmath.mpf(s) / size * (1 + mpmath.mpf(place) * mpmath.mpf(10) ** -9) for place, s in enumerate(scales)]

        def tail(t):
            weights = [mpmath.fprod(b**2 / (b**2 - a**2) for a in betas if a != b) for b in betas]
            return mpmath.fsum(w * mpmath.exp(-t / b) for w, b in zip(weights, betas, strict=True))

        return size * float(mpmath.findroot(lambda t: tail(t) - (1 - mpmath.mpf(float(level))), (1, 9), solver="anderson"))


@pytest.mark.parametrize(("count", "wider"), [(1, 1.0001), (2, 1.002), (3, 1.003), (5, 1.06), (8, 1.2), (12, 2.0)])
@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-4])
def test_sums_of_equal_laplaces_err_upward(count, wider, miss):
    """Scales that are equal are raised a little apart: never below the law of equal ones, and not far above it."""
    reach = float(smooth_reach(KINDS["laplace"](1), np.ones((1, count)), miss)[0])

    assert equal_laplaces(count, reach) <= miss
    assert equal_laplaces(count, reach / (wider if miss < 0.5 else 1.6 * wider)) >= miss


def equal_laplaces(count, reach):
    """P[|Σ of `count` Laplace variables of scale 1| > reach], by the half-integer Bessel function that is their density."""
    order = count - 1
    parts = [
        math.comb(order, i)
        * math.factorial(order + i)
        / math.factorial(order)
        / 2**i
        * math.factorial(order - i)
        * gammaincc(order - i + 1, reach)
        for i in range(order + 1)
    ]
    return 2 * sum(parts) / (math.factorial(order) * 2.0**count)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", ["0.01", "0.2", "0.7", "1.5", "6", "300", "1500"])
def test_integer_noise_lies_within_its_slack_of_the_smooth_one(kind, scale):
    """Every probability of a half-line is between those of the smooth law half-lines moved by the slack."""
    (noise,) = noises(kind, scale)
    slack, size = lattice_slack(noise), float(Fraction(scale))
    places, weights = masses(noise)
    above = np.cumsum(weights[::-1])[::-1]

    def smooth(x):
        half = 0.5 * np.exp(-np.abs(x) / size)
        return ndtr(-x / size) if kind == "gaussian" else np.where(x > 0, half, 1 - half)

    assert np.all(above <= smooth(places - slack) + 2e-12)
    assert np.all(above >= smooth(places - 1 + slack) - 2e-12)
    assert slack <= 1.01


def test_a_slack_that_is_too_small_is_caught():
    """Seeded bug: without a slack the lattice sticks out."""
    (noise,) = noises("gaussian", 2)
    places, weights = masses(noise)

    assert not np.all(np.cumsum(weights[::-1])[::-1] <= ndtr(-places / 2.0) + 2e-12)


def test_mixed_noises_and_extreme_confidences_use_the_union_bound():
    """What no law covers is bounded by the exact laws of single noises."""
    mixed = ((Fraction(1), KINDS["gaussian"](3)), (Fraction(2), KINDS["laplace"](2)))
    sure = ((Fraction(1), KINDS["gaussian"](3)), (Fraction(2), KINDS["gaussian"](2)))
    far = 1 - Fraction(1, 10**12)

    assert miss_of(mixed, sum_reach(mixed, LEVEL)) <= 1 - LEVEL
    assert sum_reach(sure, far) == sum(float(c) * noise.interval(1 - (1 - far) / 2).upper for c, noise in sure)


@pytest.mark.parametrize("kind", KINDS)
def test_the_reach_of_a_ratio_is_that_of_what_is_left_of_it(kind):
    """t(θ) is the quantile of |step · Z − θ · Z′|."""
    held = noises(kind, 1 << 20, 700)
    step = Fraction(3, 1 << 10)
    found = ratio_reach(((0, step),), ((1, Fraction(1)),), held, np.array([0.0, -2.0, 7.5]), LEVEL)
    wanted = [smooth_quantile(kind, (float(step) * (1 << 20), abs(t) * 700), LEVEL) for t in (1e-3, -2.0, 7.5)]

    assert np.all(found >= np.array(wanted) * (1 - 1e-6))
    assert np.allclose(found, wanted, rtol=5e-3)


def test_a_ratio_of_the_same_noise_has_no_law():
    """COUNT/COUNT is no ratio of two noisy numbers."""
    assert ratio_law(((0, Fraction(2)),), ((0, Fraction(1)),), noises("gaussian", 5), LEVEL) is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_set_of_ratios_is_what_its_definition_says(kind):
    """The interval ends where |numerator − θ · denominator| meets its reach."""
    held = noises(kind, 1 << 20, 60)
    above, below = ((0, Fraction(1, 1 << 14)),), ((1, Fraction(1)),)
    law = ratio_law(above, below, held, LEVEL)
    numerator, denominator = np.array([500.0, -900.0, 40.0, 0.0]), np.array([900.0, 2000.0, 5000.0, 400.0])
    low, high = law.ends(numerator / denominator, numerator, denominator)
    for ends in (low, high):
        gap = np.abs(numerator - ends * denominator)
        reach = ratio_reach(above, below, held, ends, LEVEL)

        assert np.all(gap >= reach * (1 - 1e-9))
        assert np.all(gap <= reach * 1.03)


def test_a_denominator_near_0_bounds_nothing():
    """Every ratio is possible if the denominator may be 0."""
    law = ratio_law(((0, Fraction(1)),), ((1, Fraction(1)),), noises("gaussian", 50, 60), LEVEL)
    low, high = law.ends(np.array([1.0, 1.0, 1.0]), np.array([50.0, 0.0, 1e6]), np.array([50.0, -3.0, 1e6]))

    assert np.isneginf(low[:2]).all()
    assert np.isposinf(high[:2]).all()
    assert 1 - 1e-3 < low[2] < 1 < high[2] < 1 + 1e-3


# ---- without data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["concentrated", "pure"])
def test_the_error_of_a_mean_falls_with_the_rows(kind):
    """± at 100, 1,000 and 10,000 rows; never more than half of the bounds' distance."""
    question = hand.priced(hand.plan(hand.block()), kind, amount=2 if kind == "pure" else "1/10")
    one, held = question.plan.blocks[0], question.noises[0]
    means = [mean_reach_at(one.estimates[hand.MEAN], held, rows, LEVEL) for rows in (1, 100, 1000, 10_000)]
    spreads = [variance_reach_at(one.estimates[hand.VARIANCE], held, rows, LEVEL) for rows in (1, 100, 1000, 10_000)]

    assert means[0] == 50.0
    assert means[1] / 12 < means[2] < means[1] / 9
    assert means[3] == pytest.approx(means[2] / 10, rel=0.03)
    assert spreads[0] >= spreads[1] > spreads[2] > spreads[3]


def test_a_quantile_has_no_error_before_it_is_drawn():
    """Counts and sums have one ±, means and variances one for a number of rows, quantiles none."""
    question = hand.priced(hand.plan(hand.block(quantile="1/2")))
    one, held = question.plan.blocks[0], question.noises[0]
    found = [estimate.reach_at(held, 1000, LEVEL) for estimate in one.estimates]

    assert found[-1] is None
    assert all(reach > 0 for reach in found[:-1])
    assert found[hand.COUNT] == held[0].interval(LEVEL).upper


# ---- estimates -----------------------------------------------------------------------------------------------------


def bars(values, **others):
    """The estimates of a hand-made block without keys for released integers (count, centred sum, squares)."""
    question = hand.priced(hand.plan(hand.block(**others)))
    columns = [np.asarray(column) for column in zip(*values, strict=True)]
    return question, estimate_values(question.plan.blocks[0], question.noises[0], ReleasedBlock((), tuple(columns)), LEVEL)


def test_the_mean_of_a_constant_column_is_that_constant():
    """Whatever the constant and the number of rows, with noise too small to see."""
    one = hand.block((), [])
    question = hand.priced(hand.plan(one), amount=10**9)
    for constant, rows in itertools.product([0, 1, 50, 73, 100], [1, 7, 1000]):
        (out,) = release(question, [hand.tallied(one, {(): [constant] * rows})])
        mean = estimate_values(one, question.noises[0], out, LEVEL)[hand.MEAN]

        assert mean.value.listed() == pytest.approx([constant])
        assert mean.where.low[0] <= constant <= mean.where.high[0]


def test_a_mean_without_rows_is_null_and_may_be_anything():
    """A released count that is not above 0: NULL, with the interval of its bounds."""
    _, found = bars([(0, 5, 9), (-3, -10, 4), (4000, 0, 0)])
    for place, most in ((hand.MEAN, 100.0), (hand.VARIANCE, 2500.0), (hand.SAMPLE, 5000.0)):
        assert found[place].value.null.tolist() == [True, True, False]
        assert found[place].where.low[:2].tolist() == [0.0, 0.0]
        assert found[place].where.high[:2].tolist() == [most, most]


def test_estimates_are_clamped_to_what_is_possible():
    """Noise may put a mean or a variance outside its bounds; values and intervals stay inside."""
    _, found = bars([(50, 90_000, -50_000), (50, -90_000, 200_000)])

    assert found[hand.MEAN].value.listed() == [100.0, 0.0]
    assert found[hand.VARIANCE].value.listed() == [0.0, 0.0]
    for place in (hand.MEAN, hand.VARIANCE):
        assert np.all(found[place].where.low <= found[place].where.high)


def test_a_sum_is_computed_from_integers():
    """Two numbers that nearly cancel, each beyond what floats hold."""
    wide = ReleasedBlock((), (np.array([-(1 << 70)], object), np.array([50 * (1 << 70) + 3], object), np.array([0])))
    question = hand.priced(hand.plan(hand.block()))
    found = estimate_values(question.plan.blocks[0], question.noises[0], wide, LEVEL)

    assert found[hand.SUM].value.listed() == [3.0]
    assert found[hand.COUNT].whole.tolist() == [-(1 << 70)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coefficients", [(1,), (1, 50), (6, 4)])
def test_bars_of_whole_numbers_are_whole_numbers(kind, coefficients):
    """The ends are values that the number before noise can have, and every such value within the reach is between them."""
    form = Linear(tuple((place, Fraction(c)) for place, c in enumerate(coefficients)), Fraction(7))
    laws = noises(kind, *["5.3"] * len(coefficients))
    reach, apart = linear_reach(form, laws, LEVEL), math.gcd(*coefficients)
    for start in (1000, -3, (1 << 70) + 1):
        where = form.interval(laws, ReleasedBlock((), tuple(np.array([start], object) for _ in coefficients)), LEVEL)
        value = 7 + start * sum(coefficients)
        low, high = int(where.low[0]), int(where.high[0])
        assert (low, high) == (where.low[0], where.high[0])
        if start < 1 << 53:
            assert high - value == value - low == apart * (reach // apart)
        assert low <= value - apart * (reach // apart)
        assert value + apart * (reach // apart) <= high


def test_bars_of_other_numbers_are_not_cut():
    """Half a step is a value, too."""
    form, laws = Linear(((0, Fraction(1, 2)),)), noises("gaussian", 5)
    where = form.interval(laws, ReleasedBlock((), (np.array([9]),)), LEVEL)
    assert where.high[0] >= 4.5 + linear_reach(form, laws, LEVEL)


def test_a_sample_variance_is_n_over_n_minus_1_times_the_other():
    """For a released count of 11, and NULL for one row."""
    _, found = bars([(11, 22, 100), (1, 0, 0)])

    assert found[hand.SAMPLE].value.listed()[0] == pytest.approx(found[hand.VARIANCE].value.listed()[0] * 1.1)
    assert found[hand.SAMPLE].value.listed()[1] is None


def test_a_quantile_has_the_ends_that_were_drawn():
    """Ends that cross are put in order; beyond 95 % only the bounds are sure."""
    question = hand.priced(hand.plan(hand.block(quantile="1/2")))
    one, held = question.plan.blocks[0], question.noises[0]
    zeros = np.zeros(3, np.int64)
    ends = Ends(np.array([40.0, 40.0, 60.0]), np.array([30.0, 45.0, 70.0]), np.array([50.0, 35.0, 80.0]))
    out = ReleasedBlock((), (zeros, zeros, zeros, ends))
    usual = estimate_values(one, held, out, LEVEL)[hand.MEDIAN]
    surer = estimate_values(one, held, out, Fraction(96, 100))[hand.MEDIAN]

    assert (usual.where.low.tolist(), usual.where.high.tolist()) == ([30.0, 35.0, 60.0], [50.0, 45.0, 80.0])
    assert (surer.where.low.tolist(), surer.where.high.tolist()) == ([0.0] * 3, [100.0] * 3)


def test_a_value_on_the_grid_just_outside_the_bounds_is_covered():
    """Bounds that are no grid points: the mean of a constant at a bound is the bound."""
    mean = Mean(1, 0, Fraction(1, 8), Fraction(1, 2), Fraction(1, 10), Fraction(9, 10))
    base = hand.priced(hand.plan(hand.block()))
    one = replace(base.plan.blocks[0], estimates=(mean,))
    out = ReleasedBlock((), (np.array([1000]), np.array([-3500]), np.array([0])))
    (found,) = estimate_values(one, base.noises[0], out, LEVEL)

    assert found.value.listed() == [0.1]
    assert found.where.low[0] == pytest.approx(0.1)
