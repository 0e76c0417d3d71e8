from __future__ import annotations

import math
from fractions import Fraction

import attrs
import pytest

import curador as cu
from curador.errors import InvalidParameter
from curador.privacy.loss import Composed, compose, parts_of
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
    loss_from_record,
)

RECORDS = {
    "gaussian": GaussianLoss(mu="0.3"),
    "discrete_gaussian": DiscreteGaussianLoss(sigma2="7.5", sensitivity=2),
    "discrete_gaussian_vector": DiscreteGaussianVectorLoss(sigma2="7.5", sensitivity_squared=5, dimension=3),
    "laplace": LaplaceLoss(epsilon="0.3"),
    "discrete_laplace": DiscreteLaplaceLoss(scale="10/3", sensitivity=1),
    "response": RandomizedResponseLoss(epsilon="0.3", categories=3),
    "bounded_range": BoundedRange(epsilon="0.3"),
    "pure": Pure(epsilon="0.3"),
    "approx": Approx(epsilon="0.3", delta="1e-9"),
    "concentrated": Concentrated(rho="0.3", delta="1e-9"),
    "keys": KeySelection(sigma2=50, keys=2, delta="1e-9"),
    "finite": Finite(p=["0.1", "0.9"], q=["0.2", "0.8"]),
}
EACH = pytest.mark.parametrize("loss", RECORDS.values(), ids=RECORDS.keys())


@EACH
def test_a_record_is_frozen_and_slotted(loss):
    """A record cannot be changed, and a changed copy is another record."""
    field = attrs.fields(type(loss))[0].name
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(loss, field, 1)
    assert not hasattr(loss, "__dict__")
    assert hash(loss) == hash(loss_from_record(loss.to_record()))


@EACH
def test_a_record_may_be_typed_by_its_neighbours(loss):
    """The same record about other neighbours is another record, and keeps its type in storage."""
    record = {**loss.to_record(), "relation": "replace_one"}
    typed = loss_from_record(record)
    assert typed != loss
    assert loss.adjacency is None
    assert typed.adjacency is cu.REPLACE_ONE
    assert typed.to_record() == record
    assert (3 * typed + loss).adjacency is cu.REPLACE_ONE


def test_floats_are_the_decimals_they_show():
    """0.1 is one tenth, so a record means what its maker wrote."""
    assert Pure(epsilon=0.1).epsilon0 == Fraction(1, 10)
    assert Pure(epsilon=0.1) == Pure(epsilon="1/10") == Pure(epsilon="1e-1")
    assert GaussianLoss(mu=1e-9).mu == Fraction(1, 10**9)
    assert Finite(p=[0.1] * 10, q=[0.1] * 10).p[3] == Fraction(1, 10)


def test_sums_are_values():
    """Sums of the same records are equal and hash alike, however they were made."""
    one, other = Pure(epsilon=1), GaussianLoss(mu=1)
    assert one + other + one == compose([other, one, one]) == 2 * one + other
    assert hash(one + other) == hash(other + one)
    assert one + other != one + one
    assert one + other != (one, other)
    assert sum([one, other, one]) == 2 * one + other
    assert one * 3 == 3 * one
    assert 1 * one is one


def test_a_sum_names_its_parts():
    """The text of a sum shows records with their counts; that of nothing is 0."""
    assert repr(2 * Pure(epsilon=1) + GaussianLoss(mu=0)).startswith("2 × Pure(")
    assert repr(0 * Pure(epsilon=1)) == "0"
    assert parts_of(0 * Pure(epsilon=1)) == ()
    assert parts_of(Pure(epsilon=1)) == ((Pure(epsilon=1), 1),)


def test_counts_multiply_through_nested_sums():
    """3 (2 a + b) is 6 a + 3 b, and a count of 0 leaves nothing."""
    a, b = Pure(epsilon=1), Pure(epsilon=2)
    assert dict(parts_of(3 * (2 * a + b) + 0 * b)) == {a: 6, b: 3}
    assert dict(parts_of(10**9 * (10**9 * a))) == {a: 10**18}


def test_a_long_chain_of_additions_is_merged_without_recursion():
    """Ten thousand additions one after another are one record with its count."""
    total = Pure(epsilon="0.001")
    for _ in range(10_000):
        total = total + Pure(epsilon="0.001")
    assert dict(parts_of(total)) == {Pure(epsilon="0.001"): 10_001}
    assert total.pure_epsilon == Fraction(10_001, 1000)


def test_losses_of_two_adjacencies_do_not_add():
    """A loss about coming and going and one about replacing are refused together, with the way out."""
    mixed = Pure(epsilon=1, adjacency="add_or_remove_one") + Pure(epsilon=1, adjacency="replace_one")
    for question in (
        lambda: mixed.epsilon("1e-6"),
        lambda: mixed.delta(1),
        lambda: mixed.adjacency,
        lambda: mixed.rho,
        lambda: mixed.renyi(2),
        lambda: mixed.tradeoff("0.1"),
        lambda: mixed.pure_epsilon,
        lambda: mixed.group(2),
        mixed.to_record,
        lambda: repr(mixed),
    ):
        with pytest.raises(InvalidParameter, match="one adjacency; got add_or_remove_one and replace_one"):
            question()


def test_epsilon_at_delta_zero_is_the_pure_one():
    """At δ = 0 the pure ε answers, rounded up, and infinity where there is none."""
    assert (3 * Pure(epsilon="1/3")).epsilon(0) == 1
    assert Pure(epsilon="0.1").epsilon_interval(0) == (math.nextafter(0.1, 0), 0.1)
    assert GaussianLoss(mu=1).epsilon(0) == math.inf
    assert Approx(epsilon=1, delta="1e-12").epsilon(0) == math.inf
    assert Approx(epsilon=1, delta=0).epsilon(0) == 1
    assert BoundedRange(epsilon=2).epsilon_interval(0) == (0, 2)


def test_delta_is_zero_from_the_pure_epsilon_on():
    """An ε-private mechanism has δ = 0 at ε and something at every smaller ε."""
    loss = 2 * LaplaceLoss(epsilon="0.5")
    assert loss.delta(1) == 0
    assert loss.delta("0.999") > 0


@pytest.mark.parametrize(("epsilon", "delta"), [("0.4", "1e-7"), (0, "1e-3"), (2, 0)])
def test_an_approximate_loss_is_its_own_curve(epsilon, delta):
    """(ε, δ) at its own ε has its own δ, and no ε below δ."""
    loss = Approx(epsilon=epsilon, delta=delta)
    got = loss.delta_interval(epsilon)
    assert got.lower <= float(Fraction(delta)) <= got.upper <= float(Fraction(delta)) * (1 + 1e-6) + 1e-139
    if Fraction(delta) > 0:
        assert loss.epsilon(Fraction(delta) / 2) == math.inf
        assert loss.epsilon(delta) <= float(Fraction(epsilon)) * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "0.1"), ("1e-3", "1e-3"), ("5", "1e-7"), ("1e-3", "0.5")])
def test_an_infinite_loss_does_not_hide_the_finite_one(epsilon, delta):
    """δ at ε = 0 is δ0 + (1 − δ0) tanh(ε0/2): the chance of an infinite loss makes the finite part no cheaper."""
    loss = Approx(epsilon=epsilon, delta=delta)
    share = float(Fraction(delta))
    truth = share + (1 - share) * math.tanh(float(Fraction(epsilon)) / 2)
    assert loss.delta(0) == pytest.approx(truth, rel=1e-9)
    a_little_more = Fraction(delta) * Fraction(10_001, 10_000)
    assert loss.epsilon(a_little_more) >= loss.epsilon_interval(a_little_more).lower > 0


def test_key_selection_is_delta_and_its_keys():
    """Showing keys costs δ plus one discrete Gaussian a key; less than nothing is never promised below."""
    keys = KeySelection(sigma2=50, sensitivity=2, keys=3, delta="1e-9")
    same = 3 * DiscreteGaussianLoss(sigma2=50, sensitivity=2) + Approx(epsilon=0, delta="1e-9")
    assert keys.epsilon("1e-6") == pytest.approx(same.epsilon("1e-6"), rel=1e-9)
    assert keys.concentrated == (Fraction(3 * 4, 100), Fraction(1, 10**9))
    assert keys.epsilon_interval("1e-6").lower == 0
    assert keys.epsilon("1e-10") == math.inf


def test_a_bounded_range_is_cheaper_than_pure_and_dearer_than_half():
    """The interval spans what is proved and what randomized response of ε/2 attains."""
    ranged, pure, half = 20 * BoundedRange(epsilon="0.4"), 20 * Pure(epsilon="0.4"), 20 * Pure(epsilon="0.2")
    interval = ranged.epsilon_interval("1e-6")
    assert half.epsilon_interval("1e-6").lower <= interval.lower * (1 + 1e-9)
    assert interval.upper < pure.epsilon("1e-6")


def test_rho_of_a_bounded_range_is_never_above_that_of_its_pure_epsilon():
    """An ε-bounded range is ε-private, so ρ is at most ε tanh(ε/2) also where ε²/8 is larger."""
    for epsilon in ("0.1", "1", "7", "20", "100"):
        assert BoundedRange(epsilon=epsilon).rho <= Pure(epsilon=epsilon).rho


def test_an_empty_composition_costs_nothing():
    """Nothing spent, nothing lost."""
    nothing = Composed(())
    assert nothing == compose([])
    assert nothing.epsilon("1e-6") == 0
    assert nothing.delta(0) == 0
    assert nothing.adjacency is None
    assert loss_from_record(nothing.to_record()) == nothing


def test_renyi_takes_arrays_of_orders():
    """An array of orders gives an array of the same shape, entry by entry the single answers."""
    import numpy as np

    loss = 2 * LaplaceLoss(epsilon=1)
    orders = np.array([[1.0, 1.5], [2.0, math.inf]])
    got = loss.renyi(orders)
    assert got.shape == orders.shape
    assert got[0, 1] == loss.renyi(1.5)
    assert got[1, 1] == loss.renyi("inf") == 2
    assert got[0, 0] == loss.renyi(1) < got[0, 1] < got[1, 0] < got[1, 1]
