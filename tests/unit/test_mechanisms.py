from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

import curador as cu
from curador.errors import InvalidParameter, NotPrivate
from curador.mechanisms import calibration
from curador.mechanisms.grid import round_down, round_up, steps_of
from curador.privacy.losses import BoundedRange, DiscreteGaussianLoss, DiscreteLaplaceLoss, RandomizedResponseLoss
from curador.privacy.sensitivity import bounded_sum, histogram

NOISE = {
    "gaussian": (cu.Gaussian, "sigma"),
    "laplace": (cu.Laplace, "scale"),
    "discrete_gaussian": (cu.DiscreteGaussian, "sigma"),
    "discrete_laplace": (cu.DiscreteLaplace, "scale"),
}
EACH = pytest.mark.parametrize("name", NOISE)
LESS = Fraction(999, 1000)

MP = mpmath.mp.clone()
MP.dps = 50


def exact(value):
    return MP.mpf(value.numerator) / value.denominator


def with_noise(mechanism, parameter, factor):
    """The same mechanism with its noise multiplied."""
    whole = getattr(mechanism, "sensitivity", None)
    sensitivity = Fraction(math.sqrt(mechanism.sensitivity_squared)) if whole is None else whole
    return type(mechanism)(**{parameter: getattr(mechanism, parameter) * factor}, sensitivity=sensitivity)


# ---- calibration to privacy -------------------------------------------------------------------------------------------


@pytest.mark.slow
@EACH
@pytest.mark.parametrize(("epsilon", "delta", "count"), [("1", "1e-6", 1), ("0.3", "1e-9", 20), ("8", "1e-5", 3)])
def test_calibrated_noise_meets_its_goal_and_no_more(name, epsilon, delta, count):
    """The goal is met by certified bounds, and missed with 0.1 % less noise."""
    kind, parameter = NOISE[name]
    mechanism = kind.calibrate(sensitivity=2, epsilon=epsilon, delta=delta, count=count)
    assert Fraction((count * mechanism.loss).epsilon_interval(delta).upper) <= Fraction(epsilon)
    assert Fraction((count * mechanism.loss).epsilon(delta)) <= Fraction(epsilon)
    assert (count * with_noise(mechanism, parameter, LESS).loss).epsilon_interval(delta).lower > float(epsilon)


@pytest.mark.parametrize("share", [0.5, 1.0, None])
def test_calibration_asks_both_ways_at_its_end(monkeypatch, share):
    # whatever the search hears of one way (half the truth, the truth, nothing), the goal is met by both, and barely
    plain = calibration.leaving_epsilon
    monkeypatch.setattr(
        calibration, "leaving_epsilon", lambda loss, delta: None if share is None else share * plain(loss, delta)
    )
    mechanism = cu.Gaussian.calibrate(sensitivity=1, epsilon=2, delta="1e-5", count=1000, rate="0.02")
    spent = (1000 * mechanism.loss.subsample(rate="0.02", scheme="poisson")).epsilon_interval("1e-5")
    assert 2 * (1 - 1e-8) < spent.lower <= spent.upper <= 2


@pytest.mark.parametrize("off", [1e-9, 0.7, 1.0, 3.0, 1e9])
def test_calibration_does_not_lean_on_its_start(off):
    """From far away, too, the scale fits as it was certified, and 1e-9 less noise does not."""
    goal = calibration.read_goal(epsilon=1, delta="1e-6", rho=None, count=20)

    def make(scale):
        return cu.DiscreteLaplace(scale=scale, sensitivity=3)

    found = calibration.calibrate(make, goal, 40.0 * off)
    assert Fraction((20 * found.loss).epsilon_interval("1e-6").upper) <= 1
    assert (20 * make(found.scale * (1 - Fraction(1, 10**9))).loss).epsilon_interval("1e-6").upper > 1


def test_a_goal_that_no_scale_reaches_fails():
    """And neither does one that every scale reaches come back as the scale where the search ended."""
    goal = calibration.read_goal(epsilon=1, delta="1e-6", rho=None, count=1)
    with pytest.raises(cu.NumericalFailure, match="no scale"):
        calibration.find_scale(lambda _: cu.Pure(epsilon=2), goal, 1.0)
    with pytest.raises(cu.NumericalFailure, match="every scale"):
        calibration.find_scale(lambda _: cu.Pure(epsilon="0.5"), goal, 1.0)


@EACH
@pytest.mark.parametrize(("rho", "count"), [("0.1", 1), ("1/3", 7), ("2", 100)])
def test_noise_calibrated_to_rho(name, rho, count):
    """ρ is met as an exact rational, and missed with 0.1 % less noise."""
    kind, parameter = NOISE[name]
    mechanism = kind.calibrate(sensitivity=1, rho=rho, count=count)
    assert (count * mechanism.loss).rho <= Fraction(rho)
    assert (count * with_noise(mechanism, parameter, LESS).loss).rho > Fraction(rho)


def test_gaussian_calibration_is_the_analytic_one():
    """σ solves Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ) = δ to nine digits."""
    sigma = exact(cu.Gaussian.calibrate(sensitivity=1, epsilon=1, delta="1e-6").sigma)

    def delta(s):
        return MP.ncdf(1 / (2 * s) - s) - MP.e * MP.ncdf(-1 / (2 * s) - s)

    assert delta(sigma) <= MP.mpf("1e-6")
    assert delta(sigma * (1 - MP.mpf("2e-9"))) > MP.mpf("1e-6")
    textbook = MP.sqrt(2 * MP.log(MP.mpf("1.25e6")))
    assert sigma < MP.mpf("0.8") * textbook


@pytest.mark.parametrize("sensitivity", [1, "0.1", "1/3", 1e-9, 1e9, 7, "22/7"])
@pytest.mark.parametrize(("epsilon", "count"), [("1", 1), ("0.3", 1), ("1/7", 30), ("5", 4)])
def test_pure_laplace_calibration_is_exact(sensitivity, epsilon, count):
    """Laplace noise for a pure ε costs exactly that, as a rational, on whatever grid."""
    mechanism = cu.Laplace.calibrate(sensitivity=sensitivity, epsilon=epsilon, count=count)
    assert (count * mechanism.loss).pure_epsilon == Fraction(epsilon)
    needed = Fraction(str(sensitivity)) * count / Fraction(epsilon)
    assert needed <= mechanism.scale <= needed * (1 + Fraction(2 * count, 2**40) / Fraction(epsilon))


@pytest.mark.parametrize("sensitivity", [1, 3, 10**9])
def test_pure_discrete_laplace_calibration_is_exact(sensitivity):
    """So does discrete Laplace noise, with the textbook scale."""
    mechanism = cu.DiscreteLaplace.calibrate(sensitivity=sensitivity, epsilon="0.7", count=3)
    assert mechanism.scale == Fraction(30, 7) * sensitivity
    assert (3 * mechanism.loss).pure_epsilon == Fraction(7, 10)


@pytest.mark.parametrize("sensitivity", ["1e-9", "1e-3", "1e6", "1e9", "1e13"])
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
@pytest.mark.slow
def test_calibration_scales_with_the_sensitivity(name, sensitivity):
    """The unit in which a value is measured does not matter: noise is proportional to the sensitivity."""
    kind, parameter = NOISE[name]
    unit = getattr(kind.calibrate(sensitivity=1, epsilon=1, delta="1e-6", count=5), parameter)
    scaled = getattr(kind.calibrate(sensitivity=sensitivity, epsilon=1, delta="1e-6", count=5), parameter)
    assert float(scaled / Fraction(sensitivity) / unit) == pytest.approx(1, rel=1e-8)


def test_calibration_on_a_subsample():
    """With a rate the goal is met by the whole training, with much less noise than without."""
    mechanism = cu.Gaussian.calibrate(sensitivity=1, epsilon=2, delta="1e-5", count=200, rate="0.02")
    whole = 200 * mechanism.loss.subsample(rate="0.02")
    assert whole.epsilon_interval("1e-5").upper <= 2
    assert (200 * with_noise(mechanism, "sigma", LESS).loss.subsample(rate="0.02")).epsilon_interval("1e-5").lower > 2
    assert mechanism.sigma < cu.Gaussian.calibrate(sensitivity=1, epsilon=2, delta="1e-5", count=200).sigma / 10


@EACH
def test_noise_without_sensitivity(name):
    """What nobody can move needs no noise to be private: the loss is nothing."""
    kind, _ = NOISE[name]
    mechanism = kind.calibrate(sensitivity=0, epsilon=1, delta="1e-6")
    assert mechanism.loss.pure_epsilon == 0


def test_gaussian_noise_needs_a_delta():
    """No amount of Gaussian noise is pure."""
    with pytest.raises(InvalidParameter, match="delta must be above 0 for Gaussian noise; got 0"):
        cu.Gaussian.calibrate(sensitivity=1, epsilon=1)


@EACH
@pytest.mark.parametrize(
    "goals",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"accuracy": 1, "epsilon": 1},
        {"accuracy": 1, "rho": 1},
        {"rho": 1, "delta": "1e-6"},
        {"accuracy": 1, "rate": "0.1"},
    ],
    ids=lambda goals: "+".join(goals) or "none",
)
def test_exactly_one_goal(name, goals):
    """No goal, two goals, or a goal with what does not belong to it is refused."""
    kind, _ = NOISE[name]
    with pytest.raises(InvalidParameter, match=r"exactly one of|given without"):
        kind.calibrate(sensitivity=1, **goals)


# ---- calibration to accuracy ------------------------------------------------------------------------------------------


def tail(mechanism, reach):
    """P[|noise| > reach] with 50 digits; continuous noise by its continuous law."""
    match mechanism:
        case cu.Gaussian():
            return MP.erfc(exact(reach) / exact(mechanism.sigma) / MP.sqrt(2))
        case cu.Laplace():
            return MP.exp(-exact(reach) / exact(mechanism.scale))
        case cu.DiscreteLaplace():
            ratio = MP.exp(-1 / exact(mechanism.scale))
            return 2 * ratio ** (math.floor(reach) + 1) / (1 + ratio)
        case _:
            s2, first = exact(mechanism.sigma) ** 2, math.floor(reach) + 1
            last = first + math.ceil(16 * float(mechanism.sigma)) + 16
            weights = [MP.exp(-(MP.mpf(k) ** 2) / (2 * s2)) for k in range(last)]
            return 2 * MP.fsum(weights[first:]) / (2 * MP.fsum(weights) - 1)


ACCURACIES = [("10", "0.95"), ("0.5", "0.9"), ("57.3", "0.999999"), ("3", "0.3")]


@EACH
@pytest.mark.parametrize(("accuracy", "confidence"), ACCURACIES)
def test_noise_calibrated_to_accuracy(name, accuracy, confidence):
    """The error stays within the accuracy as often as asked, by exact tails, and not with 1 % more noise."""
    kind, parameter = NOISE[name]
    reach, allowed = Fraction(accuracy), exact(1 - Fraction(confidence))
    mechanism = kind.calibrate(sensitivity=1, accuracy=accuracy, confidence=confidence)
    assert tail(mechanism, reach) <= allowed
    assert tail(with_noise(mechanism, parameter, Fraction(101, 100)), reach) > allowed


@EACH
@pytest.mark.parametrize("confidence", ["0.999999999999", "0.9999999999999999", "0.99999999999999999999"])
def test_accuracy_at_extreme_confidence(name, confidence):
    """A confidence that a float cannot tell from 1 is still kept."""
    kind, _ = NOISE[name]
    mechanism = kind.calibrate(sensitivity=1, accuracy=10, confidence=confidence)
    assert tail(mechanism, Fraction(10)) <= exact(1 - Fraction(confidence))


@pytest.mark.parametrize("name", ["discrete_gaussian", "discrete_laplace"])
def test_accuracy_at_low_confidence(name):
    """Where errors may be frequent the most noise is found, not the end of the search."""
    kind, parameter = NOISE[name]
    mechanism = kind.calibrate(sensitivity=1, accuracy="0.5", confidence="0.05")
    assert tail(mechanism, Fraction(1, 2)) <= MP.mpf("0.95")
    assert tail(with_noise(mechanism, parameter, Fraction(101, 100)), Fraction(1, 2)) > MP.mpf("0.95")


@pytest.mark.parametrize("reach", [0, 1, 5, 40])
@pytest.mark.parametrize("size", ["0.3", "1", "9.5", "30"])
def test_tails_are_upper_bounds(reach, size):
    """The stated tail is above the exact one, and tight."""
    for mechanism in (cu.DiscreteGaussian(sigma=size, sensitivity=1), cu.DiscreteLaplace(scale=size, sensitivity=1)):
        truth = tail(mechanism, Fraction(reach))
        assert truth <= mechanism.tail(reach) <= truth * (1 + MP.mpf(10) ** -10) + MP.mpf(10) ** -299


def test_the_tail_of_a_fine_grid_is_bounded():
    """Millions of grid steps are bounded by the continuous tail."""
    got = cu.DiscreteGaussian(sigma=10**7, sensitivity=1).tail(2 * 10**7)
    truth = MP.erfc(MP.mpf(2) / MP.sqrt(2))
    assert truth * (1 - MP.mpf(10) ** -6) <= got <= truth * (1 + MP.mpf(10) ** -6)


# ---- losses and variances ---------------------------------------------------------------------------------------------


def test_losses_are_those_of_the_noise_that_is_drawn():
    """Real-valued noise is accounted on its grid: the sensitivity in whole steps, rounded up."""
    gaussian, laplace = cu.Gaussian(sigma=3, sensitivity="0.1"), cu.Laplace(scale=3, sensitivity="0.1")
    assert gaussian.grid == laplace.grid == Fraction(2, 2**40)
    steps = math.ceil(Fraction(1, 10) / gaussian.grid)
    assert gaussian.loss == DiscreteGaussianLoss(sigma2=(3 / gaussian.grid) ** 2, sensitivity=steps)
    assert laplace.loss == DiscreteLaplaceLoss(scale=3 / laplace.grid, sensitivity=steps)
    assert Fraction(1, 30) <= laplace.loss.pure_epsilon <= Fraction(1, 30) * (1 + Fraction(1, 2**30))
    assert cu.DiscreteGaussian(sigma="1.5", sensitivity=2).loss == DiscreteGaussianLoss(sigma2="2.25", sensitivity=2)
    assert cu.DiscreteLaplace(scale="1.5", sensitivity=2).loss == DiscreteLaplaceLoss(scale="1.5", sensitivity=2)
    assert cu.DiscreteLaplace(scale=1, sensitivity="1.2").sensitivity == 2
    assert cu.RandomizedResponse(epsilon=1, categories=4).loss == RandomizedResponseLoss(epsilon=1, categories=4)
    assert cu.Exponential(epsilon=1, sensitivity=5).loss == BoundedRange(epsilon=1)


@pytest.mark.parametrize("size", ["1e-6", "0.7", "1", "3", "1023.9", "1024", "1e9"])
def test_the_grid_is_a_power_of_two_next_to_the_scale(size):
    """The grid is 2^−40 to 2^−41 of the scale, a power of two."""
    grid = cu.Laplace(scale=size, sensitivity=size).grid
    assert grid * 2**40 <= Fraction(size) < grid * 2**41
    assert grid.numerator == 1 or grid.denominator == 1
    assert (grid.numerator * grid.denominator).bit_count() == 1


def test_steps_are_rounded_up():
    """A change of k steps and a little becomes k + 1; of exactly k stays k."""
    assert steps_of(Fraction(9), 0) == 3
    assert steps_of(Fraction(10), 0) == 4
    assert steps_of(Fraction(2), -2) == 6
    assert steps_of(Fraction(64), 2) == 2
    assert steps_of(Fraction(0), 5) == 0
    assert steps_of(Fraction(1, 10**30), 0) == 1


@pytest.mark.parametrize("value", [math.pi, 1e-9, 123456789.123456, 1.0, 999999999999.5, 1e300])
def test_decimals_next_to_a_number(value):
    """Parameters are rounded to twelve digits on the stated side."""
    below, above = round_down(value), round_up(value)
    assert below <= Fraction(value) <= above
    assert above - below <= Fraction(value) / 10**11


@pytest.mark.parametrize("sigma", ["0.1", "0.4", "1", "3", "9.9", "10.1", "100"])
def test_variance_of_discrete_gaussian_noise(sigma):
    """At most σ², from above, and equal to the exact sum."""
    s2 = exact(Fraction(sigma)) ** 2
    reach = math.ceil(16 * float(sigma)) + 3
    weights = {k: MP.exp(-(MP.mpf(k) ** 2) / (2 * s2)) for k in range(-reach, reach + 1)}
    truth = MP.fsum(k * k * w for k, w in weights.items()) / MP.fsum(weights.values())
    got = cu.DiscreteGaussian(sigma=sigma, sensitivity=1).variance
    assert truth <= MP.mpf(got) * (1 + MP.mpf(10) ** -30)
    assert got <= truth * (1 + MP.mpf(10) ** -12)


@pytest.mark.parametrize("scale", ["0.01", "0.4", "1", "30", "1e6", "1e12"])
def test_variance_of_discrete_laplace_noise(scale):
    """2r/(1 − r)², from above."""
    ratio = MP.exp(-1 / exact(Fraction(scale)))
    truth = 2 * ratio / (1 - ratio) ** 2
    got = cu.DiscreteLaplace(scale=scale, sensitivity=1).variance
    assert truth <= got <= truth * (1 + MP.mpf(10) ** -12)


def test_variance_of_real_valued_noise():
    """σ² and 2 scale², from above."""
    assert cu.Gaussian(sigma="0.3", sensitivity=1).variance == pytest.approx(0.09, rel=1e-15)
    assert Fraction(cu.Gaussian(sigma="0.3", sensitivity=1).variance) >= Fraction(9, 100)
    assert Fraction(cu.Laplace(scale="0.3", sensitivity=1).variance) >= Fraction(18, 100)
    assert cu.Laplace(scale="0.3", sensitivity=1).variance == pytest.approx(0.18, rel=1e-13)


# ---- sensitivities ----------------------------------------------------------------------------------------------------


@EACH
def test_a_sensitivity_types_the_loss(name):
    """A proved sensitivity brings its neighbours into the loss."""
    kind, parameter = NOISE[name]
    proved = histogram("replace_one", "l1")
    mechanism = kind(**{parameter: 2}, sensitivity=proved)
    assert mechanism.loss.adjacency is cu.REPLACE_ONE
    plain = kind(**{parameter: 2}, sensitivity=2)
    assert plain.loss.adjacency is None
    assert plain.loss.to_record() | {"relation": "replace_one"} == mechanism.loss.to_record()
    calibrated = kind.calibrate(sensitivity=proved, epsilon=1, delta="1e-6")
    assert calibrated.loss.adjacency is cu.REPLACE_ONE
    with pytest.raises(InvalidParameter, match="one adjacency"):
        _ = (mechanism.loss + kind(**{parameter: 2}, sensitivity=histogram("add_or_remove_one", "l1")).loss).rho


def test_laplace_noise_refuses_an_l2_sensitivity():
    """An L2 sensitivity may be smaller than the L1 one by the root of the dimension."""
    for kind in (cu.Laplace, cu.DiscreteLaplace):
        with pytest.raises(NotPrivate, match="l1 sensitivity"):
            kind(scale=1, sensitivity=histogram("replace_one", "l2"))
        with pytest.raises(NotPrivate, match="l1 sensitivity"):
            kind.calibrate(sensitivity=histogram("replace_one", "l2"), epsilon=1)


def test_gaussian_noise_takes_both_norms():
    """√2 in L2 and 2 in L1 are both valid for a histogram; the first is cheaper."""
    l1, l2 = (cu.Gaussian(sigma=1, sensitivity=histogram("replace_one", norm)) for norm in ("l1", "l2"))
    assert l2.loss.rho < l1.loss.rho
    assert Fraction(1) <= l2.loss.rho <= 1 + Fraction(1, 10**10)
    assert l1.loss.rho == 2
    clamped = cu.Gaussian(sigma=1, sensitivity=bounded_sum(-3, 2, adjacency="add_or_remove_one", norm="l2"))
    assert clamped.loss.rho == Fraction(9, 2)


def test_an_irrational_sensitivity_is_rounded_up_on_the_integers():
    """√2 on a grid of whole numbers is 2."""
    assert cu.DiscreteGaussian(sigma=1, sensitivity=histogram("replace_one", "l2")).sensitivity == 2


# ---- randomized response and the exponential mechanism ----------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "categories"), [("0.75", 2), ("0.5", 2), ("0.9", 10), ("0.999999", 3), ("1/3", 3)])
def test_response_by_its_truthfulness(gamma, categories):
    """γ gives ε = log(γ(k − 1)/(1 − γ)), rounded up, and back."""
    mechanism = cu.RandomizedResponse(gamma=gamma, categories=categories)
    truth = exact(Fraction(gamma))
    log_odds = MP.log(truth * (categories - 1) / (1 - truth))
    assert (
        log_odds
        <= exact(mechanism.epsilon) * (1 + MP.mpf(10) ** -30)
        <= log_odds * (1 + MP.mpf(10) ** -12) + MP.mpf(10) ** -14
    )
    assert mechanism.gamma == pytest.approx(float(truth), rel=1e-12)


def test_response_calibration():
    """A pure goal is split exactly; a goal with δ or ρ is met and missed with 0.1 % more ε."""
    assert cu.RandomizedResponse.calibrate(epsilon=1, count=3).epsilon == Fraction(1, 3)
    assert cu.RandomizedResponse.calibrate(confidence="0.75").gamma == pytest.approx(0.75)
    for goals, cost in (
        ({"epsilon": 1, "delta": "1e-6", "count": 50}, lambda loss: (50 * loss).epsilon_interval("1e-6").upper),
        ({"rho": "0.1", "count": 5}, lambda loss: 10 * float((5 * loss).rho)),
    ):
        mechanism = cu.RandomizedResponse.calibrate(**goals)
        assert cost(mechanism.loss) <= 1
        assert cost(cu.RandomizedResponse(epsilon=mechanism.epsilon * Fraction(1001, 1000)).loss) > 1


@pytest.mark.parametrize(
    ("goals", "least"), [({"rho": 100}, 99), ({"epsilon": 1, "delta": "0.1"}, "1.1")], ids=["rho", "delta"]
)
def test_response_calibration_uses_what_it_is_given(goals, least):
    """A large ρ, or a δ that one answer may use, is spent and not left over."""
    assert cu.RandomizedResponse.calibrate(**goals).epsilon >= Fraction(least)


def test_variance_of_a_response():
    """The variance of the unbiased estimate: (1/4)/(2γ − 1)² − … for two answers, from its definition."""
    mechanism = cu.RandomizedResponse(gamma="0.75")
    assert mechanism.variance == pytest.approx(0.75 * 0.25 / 0.5**2, rel=1e-9)
    assert cu.RandomizedResponse(epsilon=0).variance == math.inf


def test_exponential_calibration():
    """A pure goal is split exactly; goals with δ or ρ are met and missed with 0.1 % more ε."""
    assert cu.Exponential.calibrate(sensitivity=2, epsilon=1, count=4).epsilon == Fraction(1, 4)
    for goals, cost in (
        ({"epsilon": 1, "delta": "1e-6", "count": 30}, lambda loss: (30 * loss).epsilon_interval("1e-6").upper),
        ({"rho": "1/2", "count": 2}, lambda loss: 2 * float((2 * loss).rho)),
    ):
        mechanism = cu.Exponential.calibrate(sensitivity=2, **goals)
        assert mechanism.sensitivity == 2
        assert cost(mechanism.loss) <= 1
        assert cost(BoundedRange(epsilon=mechanism.epsilon * Fraction(1001, 1000))) > 1


def test_exponential_beats_pure_accounting():
    """A bounded range allows more ε a choice than pure privacy does."""
    ranged = cu.Exponential.calibrate(sensitivity=1, epsilon=1, delta="1e-6", count=100).epsilon
    pure = cu.RandomizedResponse.calibrate(epsilon=1, delta="1e-6", count=100).epsilon
    assert ranged > pure * Fraction(3, 2)


def test_a_goal_beyond_the_floats_is_a_failure_with_a_sentence():
    """So strict a goal that no μ above 0 reaches it in floats: told as such, not as a division by zero."""
    with pytest.raises(cu.NumericalFailure, match="must be"):
        cu.Gaussian.calibrate(epsilon="1e-100", delta="1e-300", sensitivity=1)
