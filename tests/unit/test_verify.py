from __future__ import annotations

import dataclasses

import pytest
from flint import arb

from curador.errors import NumericalFailure
from curador.numerics.tilted.sums import AtomSum, FourierSum, LatticeSum
from curador.privacy import verify
from curador.privacy.account import enclosure
from curador.privacy.laws.finite import FiniteLaw, ThreePointLaw
from curador.privacy.laws.gaussian import DiscreteGaussianLaw, GaussianLaw
from curador.privacy.laws.laplace import LaplaceLaw
from curador.privacy.laws.mixture import CutMixtureLaw
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
)
from curador.privacy.verify import _require, verify_delta, verify_epsilon, verify_sum

TERNARY = Finite(p=["0.2", "0.3", "0.5"], q=["0.25", "0.35", "0.4"])
CASES = {
    "responses": (300 * RandomizedResponseLoss(epsilon="0.1") + 200 * Pure(epsilon="0.03"), LatticeSum, ThreePointLaw),
    "response of three": (60 * RandomizedResponseLoss(epsilon="0.1", categories=3), LatticeSum, ThreePointLaw),
    "laplaces": (20 * LaplaceLoss(epsilon="0.1"), FourierSum, LaplaceLaw),
    "discrete laplaces": (60 * DiscreteLaplaceLoss(scale=7, sensitivity=3), LatticeSum, LaplaceLaw),
    "bounded ranges": (60 * BoundedRange(epsilon="0.1"), FourierSum, LaplaceLaw),
    "discrete gaussians": (10 * DiscreteGaussianLoss(sigma2=50, sensitivity=3), LatticeSum, DiscreteGaussianLaw),
    "gaussian and responses": (GaussianLoss(mu=1) + 50 * Pure(epsilon="0.1"), FourierSum, ThreePointLaw),
    "gaussian and laplaces": (GaussianLoss(mu=1) + 20 * LaplaceLoss(epsilon="0.1"), FourierSum, GaussianLaw),
    "finite": (25 * TERNARY, FourierSum, FiniteLaw),
    "approximate": (300 * Approx(epsilon="0.1", delta="1e-9") + 200 * Pure(epsilon="0.03"), LatticeSum, ThreePointLaw),
    "few atoms": (3 * Pure(epsilon="0.3") + DiscreteLaplaceLoss(scale=2, sensitivity=1), AtomSum, None),
}
SLOW = ("finite", "laplaces", "approximate")
EACH = pytest.mark.parametrize("name", CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in CASES])
def test_right_sums_pass(name):
    """Every node of each kind of sum lies within its stated round-off of its 50-digit value."""
    loss, _, _ = CASES[name]
    assert loss.epsilon_interval("1e-6", verify=True) == loss.epsilon_interval("1e-6")
    assert loss.delta_interval("0.5", verify=True) == loss.delta_interval("0.5")


@EACH
def test_the_cases_take_the_paths_they_are_named_for(name):
    """Each kind of sum is really among the cases."""
    loss, path, law = CASES[name]
    source = enclosure(loss).above[0]
    room = 1e-6 - source.infinite.upper
    assert isinstance(source.sum_at_delta(room)[0], path)
    if law is not None:
        assert any(isinstance(family, law) for family in source.total.families)


SEEDED = [name for name, (_, _, law) in CASES.items() if law is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.parametrize("question", ["epsilon", "delta"])
def test_a_transform_that_is_off_by_a_billionth_is_caught(name, question, monkeypatch):
    """A law whose values are wrong by 1e-9 of the modulus does not pass."""
    loss, _, law = CASES[name]
    right = law.transform

    def wrong(self, theta, step, size):
        found = right(self, theta, step, size)
        return dataclasses.replace(found, value=found.value + 1e-9)

    monkeypatch.setattr(law, "transform", wrong)
    with pytest.raises(NumericalFailure, match="50-digit"):
        _ = loss.epsilon_interval("1e-6", verify=True) if question == "epsilon" else loss.delta_interval("0.5", verify=True)


@pytest.mark.parametrize("name", SEEDED)
def test_a_phase_that_is_off_is_caught(name, monkeypatch):
    """So is a wrong angle: each frequency turned by 1e-9 of itself and a constant."""
    loss, _, law = CASES[name]
    right = law.transform

    def wrong(self, theta, step, size):
        found = right(self, theta, step, size)
        return dataclasses.replace(found, value=found.value * (1 + 1e-9) + 1e-9j)

    monkeypatch.setattr(law, "transform", wrong)
    with pytest.raises(NumericalFailure, match="50-digit"):
        loss.epsilon_interval("1e-6", verify=True)


@pytest.mark.parametrize("name", SEEDED)
def test_a_scale_that_is_off_is_caught(name, monkeypatch):
    """So is the moment function at the tilt itself."""
    loss, _, law = CASES[name]
    right = law.transform

    def wrong(self, theta, step, size):
        found = right(self, theta, step, size)
        return dataclasses.replace(found, log_scale=found.log_scale - 1e-9)

    monkeypatch.setattr(law, "transform", wrong)
    with pytest.raises(NumericalFailure):
        loss.epsilon_interval("1e-6", verify=True)


def test_an_atom_sum_that_forgets_its_error_is_caught():
    """The sum over atoms is judged by the atoms' own 50-digit sum."""
    loss, _, _ = CASES["few atoms"]
    source = enclosure(loss).above[0].sum_at_epsilon(0.5)
    assert isinstance(source, AtomSum)
    total = enclosure(loss).above[0].total
    verify_sum(total, source)

    class Wrong(AtomSum):
        def enclose(self, epsilon):
            low, _ = super().enclose(epsilon)
            return low * (1 - 1e-9), low * (1 - 0.5e-9)

    with pytest.raises(NumericalFailure, match="sum over atoms"):
        verify_sum(total, Wrong(source.law))


@pytest.mark.slow
def test_a_subsampled_gaussian_is_verified(monkeypatch):
    """The quadrature of a mixture is checked against a finer one, and a seeded fault is caught."""
    loss = 200 * GaussianLoss(mu=1).subsample(rate="0.02")
    reading = enclosure(loss)
    verify_epsilon(reading, 1e-5)
    right = CutMixtureLaw.transform

    def wrong(self, theta, step, size):
        found = right(self, theta, step, size)
        return dataclasses.replace(found, value=found.value + 1e-8)

    monkeypatch.setattr(CutMixtureLaw, "transform", wrong)
    with pytest.raises(NumericalFailure):
        verify_epsilon(reading, 1e-5)


@pytest.mark.slow
def test_a_right_sum_over_steep_mixtures_passes(monkeypatch):
    """A sum whose error nobody had bounded missed this integral, and refused a right enclosure."""
    monkeypatch.setattr(verify, "_FEWEST_NODES", 3)
    verify_epsilon(enclosure(50 * GaussianLoss(mu=5).subsample(rate="0.01")), 1e-6)


@pytest.mark.parametrize(("distance", "right"), [("1e-9", True), ("2e-9", False)])
def test_a_ball_that_decides_nothing_is_a_failure(distance, right):
    """Wide balls are asked again; on either side of what is allowed they decide, across it they never pass."""
    wide = arb(distance, "1e-11")
    if right:
        _require(lambda: wide, 1.5e-9, "too far")
    else:
        with pytest.raises(NumericalFailure, match="too far"):
            _require(lambda: wide, 1.5e-9, "too far")
    with pytest.raises(NumericalFailure, match="did not suffice"):
        _require(lambda: wide, float(distance), "too far")


def test_nothing_to_verify():
    """Closed forms and empty sums have no nodes."""
    for loss in (GaussianLoss(mu=1), 0 * Pure(epsilon=1), Approx(epsilon=0, delta="1e-9")):
        reading = enclosure(loss)
        verify_epsilon(reading, 1e-6)
        verify_delta(reading, 0.5)
