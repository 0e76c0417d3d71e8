from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, chi2

from curador.errors import InvalidParameter
from curador.mechanisms.grid import in_steps
from curador.mechanisms.laplace import TruncatedLaplace
from curador.mechanisms.staircase import Staircase
from curador.privacy.losses import Approx, Pure
from curador.privacy.sensitivity import bounded_sum

FALSE_ALARM = 1e-9
RUNS = 200_000
MP = mpmath.mp.clone()
MP.dps = 50


def big(value):
    return MP.mpf(value.numerator) / value.denominator


def stairs(epsilon, width, first, k):
    """The weight of k, from the definition."""
    block, offset = divmod(abs(k), width)
    return MP.exp(-MP.mpf(epsilon) * (block + (offset >= first)))


def fits(counts, chances):
    """Whether a chi-square test at 1e-9 lets the counts pass as draws with these chances."""
    expected = np.asarray(chances, float) * counts.sum()
    assert expected.min() > 5
    return chi2.sf(float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1) > FALSE_ALARM


# ---- staircase --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("width", "first"), [(1, 1), (2, 1), (5, 1), (5, 2), (5, 5), (7, 4)])
def test_stairs_are_epsilon_private_on_the_integers(width, first):
    """All shifts up to the sensitivity change no probability by more than e^ε; one step more does, far enough out."""
    weights = {k: stairs("0.7", width, first, k) for k in range(-60, 61)}

    def worst(shift):
        return max(abs(MP.log(weights[k] / weights[k + shift])) for k in range(-40, 41))

    assert max(worst(shift) for shift in range(-width, width + 1)) <= MP.mpf("0.7") + MP.mpf(10) ** -40
    assert worst(width + 1) > MP.mpf("0.7") * MP.mpf("1.5")
    mechanism = Staircase(
        epsilon="0.7", sensitivity=width, gamma=Fraction(first, width) if first < width else "0.999", grid=1
    )
    total = sum(stairs("0.7", width, first, k) for k in range(-900, 901))
    for k in (0, 1, 4, -5, 12, -23):
        assert mechanism.probability(k) == pytest.approx(float(weights[k] / total), rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "4"])
def test_moments_and_reach_on_the_integers(width, epsilon):
    """Variance, E|noise| and the reach agree with sums over the integers."""
    mechanism = Staircase(epsilon=epsilon, sensitivity=width, grid=1)
    first = round(mechanism.gamma * width)
    span = int(width * 130 / float(epsilon)) + width
    weights = [stairs(epsilon, width, first, k) for k in range(span)]
    total = 2 * MP.fsum(weights) - 1
    assert mechanism.variance == pytest.approx(
        float(2 * MP.fsum(k * k * w for k, w in enumerate(weights)) / total), rel=1e-14
    )
    assert mechanism.mean_error == pytest.approx(float(2 * MP.fsum(k * w for k, w in enumerate(weights)) / total), rel=1e-14)
    inside = itertools.accumulate(weights[1:], lambda sum_, w: sum_ + 2 * w, initial=weights[0])
    reach = next(k for k, mass in enumerate(inside) if mass / total >= MP.mpf("0.95"))
    assert mechanism._reach(Fraction(95, 100)) == reach  # noqa: SLF001 -- the error bar adds half a step to it


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3", "10", "30"])
def test_expected_error_is_the_smallest_there_is(epsilon):
    """E|noise| = sensitivity e^(ε/2)/(e^ε − 1), below Laplace's 1/ε, and other shares do worse."""
    e = MP.mpf(epsilon)
    mechanism = Staircase(epsilon=epsilon, sensitivity=3)
    assert mechanism.mean_error == pytest.approx(float(3 * MP.exp(e / 2) / MP.expm1(e)), rel=1e-9 if e < 20 else 1e-4)
    assert mechanism.mean_error < 3 / float(e)
    assert float(mechanism.gamma) == pytest.approx(float(1 / (1 + MP.exp(e / 2))), abs=1e-10)
    assert Staircase(epsilon=epsilon, sensitivity=3, gamma="0.9").mean_error > mechanism.mean_error


def test_the_best_share_on_few_steps_is_found_by_trial():
    """On the integers no other share has a smaller E|noise|."""
    for width, epsilon in itertools.product((2, 3, 7), ("0.5", "2", "6")):
        best = Staircase(epsilon=epsilon, sensitivity=width, grid=1).mean_error
        others = [Staircase(epsilon=epsilon, sensitivity=width, grid=1, gamma=Fraction(i, width)) for i in range(1, width)]
        assert best <= min(other.mean_error for other in others) * (1 + 1e-15)


@pytest.mark.parametrize(("width", "epsilon"), [(1, "1"), (3, "1"), (4, "0.4")])
def test_stairs_are_drawn_as_they_are_defined(width, epsilon):
    """Counts of 200,000 noises on the integers pass a chi-square test at 1e-9."""
    mechanism = Staircase(epsilon=epsilon, sensitivity=width, grid=1)
    noise = (mechanism.release_many(17, RUNS) - 17).astype(int)
    reach = mechanism._reach(Fraction(999, 1000))  # noqa: SLF001
    chances = [mechanism.probability(k) for k in range(-reach, reach + 1)]
    counts = np.array([*(int((noise == k).sum()) for k in range(-reach, reach + 1)), int((np.abs(noise) > reach).sum())])
    assert fits(counts, [*chances, 1 - sum(chances)])
    twice = [2 * chances[reach] if k == 0 else chances[reach + k] for k in range(-reach, reach + 1)]  # −0 not rejected
    mutant = np.array(twice) / (sum(twice) + 1 - sum(chances))
    assert not fits(counts, [*mutant, 1 - mutant.sum()])


def test_stairs_on_the_fine_grid():
    """E|noise| and the error bar are what 200,000 draws show (false alarm 1e-9); Laplace noise of that ε would be seen."""
    mechanism = Staircase(epsilon=3, sensitivity="0.1")
    errors = mechanism.release_many(0.3, RUNS) - 0.3
    deviation = (mechanism.variance / RUNS) ** 0.5
    assert abs(np.abs(errors).mean() - mechanism.mean_error) < 6.2 * deviation
    assert abs(np.abs(errors).mean() - 0.1 / 3) > 6.2 * deviation
    inside = int((np.abs(errors) <= mechanism.interval("0.95").upper).sum())
    assert FALSE_ALARM / 2 < binom.cdf(inside, RUNS, 0.95) < 1 - FALSE_ALARM / 2
    assert isinstance(mechanism.release(2.5), float)


@pytest.mark.slow
def test_staircase_calibration():
    """ε is divided over the releases; accuracy takes the most noise whose error bar still fits."""
    assert Staircase.calibrate(epsilon=1, sensitivity=2, count=4).loss == Pure(epsilon="1/4")
    mechanism = Staircase.calibrate(accuracy=3, sensitivity=2, confidence="0.99")
    assert mechanism.interval("0.99").upper <= 3
    weaker = Staircase(epsilon=mechanism.epsilon * Fraction(999, 1000), sensitivity=2)
    assert weaker.interval("0.99").upper > 3
    bounded = bounded_sum(lower=0, upper=2, adjacency="replace_one", norm="l1")
    assert Staircase(epsilon=1, sensitivity=bounded).loss == Pure(epsilon=1, adjacency="replace_one")


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0, "sensitivity": 1},
        {"epsilon": 1, "sensitivity": 0},
        {"epsilon": 1, "sensitivity": 1, "gamma": 2},
        {"epsilon": 1, "sensitivity": 1, "grid": 3},
        {"epsilon": "1e-20", "sensitivity": 1},
        {"epsilon": 1, "sensitivity": 1, "grid": "1/1267650600228229401496703205376"},
    ],
)
def test_staircase_parameters_are_refused(arguments):
    """No ε, no sensitivity, a share above 1, a grid that is no power of two, noise of too many steps."""
    with pytest.raises(InvalidParameter):
        Staircase(**arguments)


@pytest.mark.parametrize(
    "mechanism", [Staircase(epsilon=1, sensitivity=1), TruncatedLaplace(scale=1, reach=9, sensitivity=1)]
)
@pytest.mark.parametrize("value", [[1.0, 2.0], float("nan"), True, "1", float("inf")])
def test_values_that_are_not_one_number_are_refused(mechanism, value):
    """Arrays have no proof here; NaN, infinities, booleans and texts are no numbers."""
    with pytest.raises(InvalidParameter, match="value must be"):
        mechanism.release(value)


# ---- truncated Laplace ------------------------------------------------------------------------------------------------


def truncated(scale, reach):
    """Probabilities of −reach … reach, from the definition."""
    weights = [MP.exp(-abs(k) / big(scale)) for k in range(-reach, reach + 1)]
    return [w / MP.fsum(weights) for w in weights]


@pytest.mark.parametrize(
    ("epsilon", "delta", "half"), [("1", "1e-6", "13.663689395969983249"), ("0.1", "1e-6", "108.70213932843313075")]
)
def test_the_half_width_of_the_paper(epsilon, delta, half):
    """A = (1/ε) log(1 + (e^ε − 1)/2δ) to 1e-12 on the fine grid, and the loss keeps ε and δ exactly."""
    mechanism = TruncatedLaplace.calibrate(epsilon=epsilon, delta=delta, sensitivity=1)
    assert float(abs(big(mechanism.reach) / MP.mpf(half) - 1)) < 1e-12
    assert mechanism.loss.epsilon0 == Fraction(epsilon)
    assert Fraction(delta) * (1 - Fraction(1, 10**10)) < mechanism.loss.delta0 <= Fraction(delta)


def test_a_delta_far_below_the_floats():
    """At a reach of 1,000 scales δ = 4.36e-435, to 1e-12; the record rounds it up to 1e-300."""
    mechanism = TruncatedLaplace(scale=1, reach=1000, sensitivity=1)
    assert float(abs(big(mechanism.delta) / MP.mpf("4.3609639678321200189e-435") - 1)) < 1e-12
    assert mechanism.loss == Approx(epsilon=1, delta="1e-300")


def test_delta_and_epsilon_by_enumeration():
    """On a coarse grid the divergence of the two laws, point by point, is 0 beyond ε but for what one cannot give: δ."""
    from curador.mechanisms.laplace import _lost

    scale, reach, width = Fraction(5), 23, 3
    chances = truncated(scale, reach)
    outer = MP.fsum(chances[-width:])
    assert big(_lost(scale, reach, width)) == pytest.approx(outer, rel=1e-35)
    assert big(_lost(scale, reach, width)) >= outer * (1 - MP.mpf(10) ** -45)
    factor = MP.exp(width / big(scale))
    for shift in range(1, width + 1):
        moved = [*([MP.mpf(0)] * shift), *chances]
        divergence = MP.fsum(max(q - factor * p, 0) for p, q in zip([*chances, *([0] * shift)], moved, strict=True))
        assert divergence <= outer * (1 + MP.mpf(10) ** -40)
        smaller = MP.exp((width - MP.mpf("0.5")) / big(scale))
        beyond = MP.fsum(max(q - smaller * p, 0) for p, q in zip([*chances, *([0] * shift)], moved, strict=True))
        assert shift < width or beyond > outer * 2


@pytest.mark.parametrize(("scale", "reach"), [("3", "40"), ("3", "4"), ("3", "2"), ("1000", "50")])
def test_truncated_noise_never_passes_its_reach_and_has_its_law(scale, reach):
    """200,000 noises stay inside, and their places pass a chi-square test at 1e-9, near and far reach alike."""
    mechanism = TruncatedLaplace(scale=scale, reach=reach, sensitivity=1)
    noise = mechanism.release_many(0, RUNS)
    assert np.abs(noise).max() <= float(mechanism.reach)
    b, a = float(mechanism.scale), float(mechanism.reach)
    cuts = np.linspace(-a, a, 12)
    inner = np.abs(cuts) < min(a, 9 * b)
    edges = np.array([-a, *cuts[inner], a])
    body = np.sign(edges) * -np.expm1(-np.abs(edges) / b)
    chances = np.diff(body) / (body[-1] - body[0])
    assert fits(np.histogram(noise, edges)[0], chances)
    untruncated = np.diff(np.where(np.abs(edges) == a, np.sign(edges) * 1.0, body)) / 2  # noise clamped to the reach instead
    assert a > 10 * b or not fits(np.histogram(noise, edges)[0], untruncated)


@pytest.mark.parametrize(("scale", "reach"), [(Fraction(5), 23), (Fraction(40), 12)])
def test_truncated_variance_and_reach(scale, reach):
    """On the fine grid the variance is the integral's, and the error bar never exceeds the reach by more than half a step."""
    mechanism = TruncatedLaplace(scale=scale, reach=reach, sensitivity=1)
    b, a = big(scale), MP.mpf(reach)
    truth = MP.quad(lambda x: x * x * MP.exp(-x / b), [0, a]) / MP.quad(lambda x: MP.exp(-x / b), [0, a])
    assert mechanism.variance == pytest.approx(float(truth), rel=1e-11)
    half = -b * MP.log(1 - MP.mpf("0.9") * (1 - MP.exp(-a / b)))
    assert mechanism.interval("0.9").upper == pytest.approx(float(half), rel=1e-11)
    far = mechanism.interval("0.9999999999999").upper
    assert far <= float(mechanism.reach + mechanism.grid / 2)
    assert in_steps(mechanism.reach, mechanism.exponent).denominator == 1


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "0.4"), ("50", "1e-200"), ("0.001", "0.01"), ("1e-9", "1e-9"), ("800", "1e-3")]
)
def test_truncated_calibration_keeps_its_goal(epsilon, delta):
    """ε is met exactly and δ from below, with the shortest reach."""
    mechanism = TruncatedLaplace.calibrate(epsilon=epsilon, delta=delta, sensitivity=Fraction(1, 3))
    assert mechanism.epsilon <= Fraction(epsilon)
    assert mechanism.delta <= Fraction(delta)
    if mechanism.reach - mechanism.grid >= Fraction(1, 3) + mechanism.grid:
        shorter = TruncatedLaplace(scale=mechanism.scale, reach=mechanism.reach - mechanism.grid, sensitivity=Fraction(1, 3))
        assert shorter.delta > Fraction(delta)


def test_truncated_parameters_are_refused():
    """A reach below the sensitivity would lose half of the mass; an ε below 2^-40 has no 64-bit noise."""
    with pytest.raises(InvalidParameter, match="reach must be at least the sensitivity"):
        TruncatedLaplace(scale=1, reach="0.5", sensitivity=1)
    with pytest.raises(InvalidParameter, match=r"2\^-40"):
        TruncatedLaplace.calibrate(epsilon="1e-20", delta="1e-6", sensitivity=1)


def test_neighbours_of_a_number():
    """Values are within each other's reach up to the sensitivity in steps."""
    for mechanism in (Staircase(epsilon=1, sensitivity=2), TruncatedLaplace(scale=1, reach=9, sensitivity=2)):
        steps = int(2 / mechanism.grid)
        assert mechanism.within(5, 5 + steps)
        assert not mechanism.within(5, 6 + steps)
