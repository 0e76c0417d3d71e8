"""Corners where a bound was once wrong or missing, each with the number that showed it."""

import math
from fractions import Fraction

import pytest

import curador as cu
from curador.errors import InvalidParameter
from curador.privacy.laws.resolve import Direction, sides
from curador.privacy.loss import EPSILON_INTERVAL
from curador.privacy.losses import Approx, DiscreteLaplaceLoss, Finite, GaussianLoss, LaplaceLoss


def test_decay_ends_at_the_horizon_of_a_lattice():
    """A coarse lattice law comes back beyond its horizon: the truth, by exact convolution, is 9.679945e-07."""
    loss = 400 * DiscreteLaplaceLoss(scale=2, sensitivity=3) + LaplaceLoss(epsilon="0.001")
    low, high = loss.delta_interval("400.4")
    assert 9.67e-7 < low <= 9.6799455e-07
    assert 9.6799445e-07 <= high < 9.69e-7


@pytest.mark.parametrize("rate", [1, "0.999999999999"])
def test_a_sample_of_everybody_is_the_loss_itself(rate):
    """At rate 1 the cells keep their digits however large the loss: 1 − e^(−0.05)."""
    low, high = LaplaceLoss(epsilon="36.4").subsample(rate=rate).delta_interval("36.3")
    assert low <= -math.expm1(-0.05) <= high
    assert high - low < 0.01 * high


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_the_share_that_stays_out_keeps_its_digits(adjacency):
    """1 − rate is taken from the rational, not from the float."""
    loss = 2 * GaussianLoss(mu=2).subsample(rate=1 - Fraction(1, 10**12), adjacency=adjacency)
    (law,) = sides(loss, Direction.LEAVES)[0].total()[0].families
    assert law.members[0].above[0] == 1e-12


def test_largest_losses_of_opposite_directions_do_not_add_up():
    """At δ = 0 the pair and its mirror are 1.386 together only in different worlds; the truth is log 3."""
    pair = Finite(p=("1/2", "1/2"), q=("1/4", "3/4"))
    mirror = Finite(p=("1/4", "3/4"), q=("1/2", "1/2"))
    low, high = (pair + mirror).epsilon_interval(0)
    assert low <= math.log(3) <= high


@pytest.mark.parametrize(
    "loss", [GaussianLoss(mu=1) + LaplaceLoss(epsilon=1), GaussianLoss(mu=1).subsample(rate="0.01")], ids=["sum", "sample"]
)
def test_an_underflow_is_not_a_proof_of_zero(loss):
    """δ of an unbounded loss is never 0."""
    assert loss.delta(80) > 0.0


def test_a_delta_below_the_infinite_mass_buys_nothing():
    """The float next to 7.178e-15 lies below it, and then no ε is enough; the decimal itself is exactly enough."""
    loss = Approx(epsilon="0.0002146", delta="7.178e-15")
    assert Fraction(7.178e-15) < Fraction("7.178e-15")
    assert loss.epsilon_interval(Fraction(7.178e-15)).upper == math.inf
    assert loss.epsilon("7.178e-15") == pytest.approx(0.0002146)


def test_renyi_of_a_single_step_on_a_fine_grid():
    """A shift of one step is randomized response of ε = 5e-10, whatever the grid: α ε²/2."""
    assert DiscreteLaplaceLoss(scale=2 * 10**9, sensitivity=1).renyi("1.9") >= 2.375e-19 * (1 - 1e-15)


@pytest.mark.parametrize(
    ("loss", "delta"),
    [
        (GaussianLoss(mu="0.1086").subsample(rate="4.913e-6"), "1.258e-7"),
        (3 * GaussianLoss(mu=20).subsample(rate="0.01"), "1e-3"),
        (20 * GaussianLoss(mu=2).subsample(rate="0.1").group(10), "1e-3"),
    ],
    ids=["tiny rate", "little noise", "group"],
)
@pytest.mark.slow
def test_samples_that_were_once_without_an_answer(loss, delta):
    """Each has a finite ε, one per cent wide at most."""
    low, high = loss.epsilon_interval(delta)
    assert 0.0 < low <= high <= 1.01 * low


# ---- calibration on samples -----------------------------------------------------------------------------------------------


def test_a_delta_above_the_chance_of_being_sampled_is_refused_at_once():
    """No noise at all would reach such a goal: every scale does, and a search would have no end."""
    with pytest.raises(InvalidParameter, match=r"delta must be below count · rate"):
        cu.Gaussian.calibrate(epsilon=1, delta="1e-6", sensitivity=1, rate="1e-18")
    with pytest.raises(InvalidParameter, match=r"published as they are"):
        cu.Gaussian.calibrate(epsilon=1, delta="1e-6", sensitivity=1, rate="1e-9", count=1000)


@pytest.mark.parametrize(
    ("count", "rate", "epsilon"), [(25, "0.001", "0.5"), pytest.param(5, "0.01", "1", marks=pytest.mark.long)]
)
def test_a_few_steps_at_small_rates_are_calibrated_without_the_other_readings(monkeypatch, count, rate, epsilon):
    """The search asks for one direction of the sum alone, about ten times; both, and Rényi's orders, only at its end."""
    asked = []
    whole = EPSILON_INTERVAL.answer
    monkeypatch.setattr(EPSILON_INTERVAL, "answer", lambda *given, **more: asked.append(1) or whole(*given, **more))
    found = cu.Gaussian.calibrate(epsilon=epsilon, delta="1e-6", sensitivity=1, count=count, rate=rate)
    assert len(asked) == 1
    loss = count * found.loss.subsample(rate=rate)
    assert loss.epsilon_interval("1e-6").upper <= float(epsilon)
    less = cu.Gaussian(sigma=found.sigma * Fraction(999, 1000), sensitivity=1).loss
    assert (count * less.subsample(rate=rate)).epsilon_interval("1e-6").upper > float(epsilon)
