"""The laws that every loss obeys, whatever its kind."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
import strategies
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curador.errors import Refused
from curador.privacy.loss import Composed, Loss, compose, parts_of
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    Group,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
    Shuffled,
    Subsampled,
    loss_from_record,
)

law = settings(max_examples=25, deadline=None)
thorough = settings(max_examples=80, deadline=None)

WIDTH = 1 + 1e-6
"""Certified intervals are this narrow, or the other readings are asked; upper ends may disagree by as much."""

TRAINING = 60 * GaussianLoss(mu="0.8").subsample(rate="0.05")
GROUPED = 60 * GaussianLoss(mu="0.8").subsample(rate="0.05").group(2)
SAMPLED_LAPLACE = LaplaceLoss(epsilon=1).subsample(rate="0.1")
COSTLY = pytest.mark.parametrize("loss", [TRAINING, GROUPED, SAMPLED_LAPLACE], ids=["training", "group", "laplace"])


def upper_epsilon(loss, delta):
    """The certified upper end alone: a tenth of the price of all readings."""
    return loss.epsilon_interval(delta).upper


# ---- 1 count = repetition ---------------------------------------------------------------------------------------------


@thorough
@given(strategies.every_kind(), strategies.counts)
def test_a_count_is_a_repetition(loss, count):
    """Spending a loss n times at once is spending it n times in a row."""
    repeated = compose([loss] * count)
    assert dict(parts_of(count * loss)) == dict(parts_of(repeated)) == {loss: count}
    assert hash(Composed([(loss, count)])) == hash(repeated)
    assert dict(parts_of(2 * (count * loss) + loss)) == {loss: 2 * count + 1}


@law
@given(strategies.losses(), strategies.counts, strategies.targets)
def test_a_count_costs_what_repetitions_cost(loss, count, delta):
    """n at once and n in a row have the same ε, to the last bit."""
    assert (count * loss).epsilon(delta) == sum([loss] * count).epsilon(delta)


@COSTLY
def test_a_count_costs_what_repetitions_cost_where_it_is_dear(loss):
    """The same for subsampled noise and groups of it."""
    once = parts_of(loss)[0][0]
    count = parts_of(loss)[0][1]
    assert compose([once] * count).epsilon_interval("1e-6") == loss.epsilon_interval("1e-6")


# ---- 2 order is irrelevant --------------------------------------------------------------------------------------------


@law
@given(st.lists(strategies.untyped(), min_size=2, max_size=4), strategies.targets, st.randoms(use_true_random=False))
def test_the_order_of_spends_is_irrelevant(spends, delta, random):
    """Any order of the same spends gives the same ε, to the last bit."""
    other = list(spends)
    random.shuffle(other)
    assert compose(other) == compose(spends)
    assert compose(other).epsilon(delta) == compose(spends).epsilon(delta)


@pytest.mark.slow
def test_the_order_of_three_finite_losses_is_irrelevant():
    """Laws that cannot share an array are summed in an order that does not depend on theirs."""
    spends = [
        5 * Finite(p=["0.2", "0.3", "0.5"], q=["0.1", "0.6", "0.3"]),
        7 * Finite(p=["0.9", "0.1"], q=["0.7", "0.3"]),
        9 * Finite(p=["0.41", "0.59"], q=["0.5", "0.5"]),
    ]
    answers = {compose(order).epsilon("1e-7") for order in itertools.permutations(spends)}
    assert len(answers) == 1


def test_the_order_of_two_very_coarse_gaussians_is_irrelevant():
    """Nor that of laws that are kept atom by atom."""
    spends = [DiscreteGaussianLoss(sigma2="0.3", sensitivity=shift) for shift in (1, 2)]
    assert compose(spends).epsilon("1e-2") == compose(spends[::-1]).epsilon("1e-2")


def test_the_order_of_three_concentrated_losses_is_irrelevant():
    """ρ is added exactly, or at least in an order that does not depend on theirs."""
    spends = [Concentrated(rho=rho) for rho in ("0.1", "0.2", "0.3", "0.7")]
    answers = {compose(order).epsilon("1e-7") for order in itertools.permutations(spends)}
    assert len(answers) == 1


# ---- 3 zero and infinity ----------------------------------------------------------------------------------------------

ZEROS = {
    "nothing": Composed(()),
    "no times": 0 * Pure(epsilon=1),
    "gaussian": GaussianLoss(mu=0),
    "discrete_gaussian": DiscreteGaussianLoss(sigma2=4, sensitivity=0),
    "discrete_gaussian_vector": DiscreteGaussianVectorLoss(sigma2=4, sensitivity_squared=0, dimension=3),
    "laplace": LaplaceLoss(epsilon=0),
    "discrete_laplace": DiscreteLaplaceLoss(scale=4, sensitivity=0),
    "response": RandomizedResponseLoss(epsilon=0, categories=3),
    "bounded_range": BoundedRange(epsilon=0),
    "pure": Pure(epsilon=0),
    "approx": Approx(epsilon=0, delta=0),
    "concentrated": Concentrated(rho=0),
    "keys": KeySelection(sigma2=4, sensitivity=0, keys=3, delta=0),
    "finite": Finite(p=["0.3", "0.7"], q=["0.3", "0.7"]),
    "shuffled": Shuffled(epsilon=0, reports=9),
    "shuffled_alike": Shuffled(epsilon=2, reports=9, variation=0),
}
ZERO = pytest.mark.parametrize("zero", ZEROS.values(), ids=ZEROS.keys())


@ZERO
def test_zero_costs_nothing(zero):
    """A loss of nothing has ε = 0 at every δ, δ = 0 at every ε, and the adversary is left with guessing."""
    assert zero.epsilon("1e-9") == 0
    assert zero.pure_epsilon == 0
    assert zero.rho == 0
    assert zero.delta("0.1") == 0
    assert zero.renyi(3) <= 1e-15
    assert zero.tradeoff("0.25") == pytest.approx(0.75, abs=1e-9)
    if not isinstance(zero, KeySelection):  # has no group rule
        assert zero.group(3).epsilon("1e-9") == 0


@ZERO
@pytest.mark.parametrize("scheme", ["poisson", "without_replacement"])
def test_a_sample_of_zero_costs_nothing(zero, scheme):
    """A subsample of a loss of nothing is a loss of nothing (zCDP, keys and shuffles have no rule, and say so)."""
    if isinstance(zero, (Concentrated, KeySelection, Shuffled)):
        with pytest.raises(Refused):
            zero.subsample(rate="0.1", scheme=scheme)
    else:
        assert zero.subsample(rate="0.1", scheme=scheme).epsilon("1e-9") == 0


@law
@given(strategies.untyped(), st.sampled_from(list(ZEROS.values())), strategies.targets)
def test_zero_is_neutral(loss, zero, delta):
    """Adding a loss of nothing changes nothing."""
    total = (loss + zero).epsilon(delta)
    assert total >= loss.epsilon_interval(delta).lower
    if zero not in (ZEROS["concentrated"], ZEROS["keys"]):  # known by ρ alone, or in two faces: fewer readings speak
        assert total == pytest.approx(loss.epsilon(delta), rel=1e-6, abs=1e-12)
    assert sum([loss]) is loss


@law
@given(strategies.untyped(), strategies.targets)
@pytest.mark.slow
def test_infinity_absorbs(loss, delta):
    """What may reveal everything with probability above δ has no ε at δ, whatever is added."""
    both = Finite(p=[1, 0], q=[0, 1])
    total = loss + both
    assert total.epsilon(delta) == math.inf
    assert total.delta(3) == 1
    assert total.pure_epsilon is None
    assert total.rho == math.inf
    assert total.renyi(2) == math.inf
    assert total.tradeoff("0.1") <= 1e-12


# ---- 4 monotone in the parameters -------------------------------------------------------------------------------------

RISING = {
    "gaussian": (lambda x: GaussianLoss(mu=x), ("0.001", "0.3", "1", "8")),
    "discrete_gaussian_noise": (lambda x: DiscreteGaussianLoss(sigma2=1 / Fraction(x), sensitivity=2), ("0.01", "0.2", "3")),
    "discrete_gaussian_shift": (lambda x: DiscreteGaussianLoss(sigma2=7, sensitivity=x), (1, 2, 5)),
    "discrete_gaussian_vector": (
        lambda x: DiscreteGaussianVectorLoss(sigma2=7, sensitivity_squared=x, dimension=3),
        (1, 2, 3, 9, 20),
    ),
    "laplace": (lambda x: LaplaceLoss(epsilon=x), ("0.001", "0.3", "1", "8")),
    "discrete_laplace_noise": (lambda x: DiscreteLaplaceLoss(scale=1 / Fraction(x), sensitivity=2), ("0.01", "0.2", "3")),
    "discrete_laplace_shift": (lambda x: DiscreteLaplaceLoss(scale=3, sensitivity=x), (1, 2, 9)),
    "response": (lambda x: RandomizedResponseLoss(epsilon=x, categories=4), ("0.001", "0.3", "1", "8")),
    "bounded_range": (lambda x: BoundedRange(epsilon=x), ("0.01", "0.3", "1", "8")),
    "pure": (lambda x: Pure(epsilon=x), ("0.001", "0.3", "1", "8")),
    "approx_epsilon": (lambda x: Approx(epsilon=x, delta="1e-8"), ("0.001", "0.3", "1", "8")),
    "approx_delta": (lambda x: Approx(epsilon="0.5", delta=x), ("0", "1e-12", "1e-8", "1e-7")),
    "concentrated": (lambda x: Concentrated(rho=x), ("1e-4", "0.01", "1")),
    "keys": (lambda x: KeySelection(sigma2=9, keys=x, delta="1e-9"), (1, 2, 5)),
    "rate_poisson": (lambda x: Pure(epsilon=1).subsample(rate=x), ("0.001", "0.1", "1")),
    "rate_gaussian": (lambda x: 100 * GaussianLoss(mu=1).subsample(rate=x), ("0.01", "0.1", "1")),
    "rate_without": (lambda x: Pure(epsilon=1).subsample(rate=x, scheme="without_replacement"), ("0.001", "0.1", "1")),
    "group": (lambda x: Approx(epsilon="0.1", delta="1e-8").group(x), (1, 2, 5)),
    "group_sampled": (lambda x: 100 * GaussianLoss(mu="0.4").subsample(rate="0.1").group(x), (1, 2, 3)),
    "shuffled_epsilon": (lambda x: Shuffled(epsilon=x, reports=200), ("0.01", "0.3", "1", "8")),
    "shuffled_fewer": (lambda x: Shuffled(epsilon=2, reports=x), (10**6, 5000, 40, 3, 1)),
    "shuffled_variation": (lambda x: Shuffled(epsilon=2, reports=30, variation=x), ("0.01", "0.1", "0.5", "0.9")),
    "count": (lambda x: x * DiscreteLaplaceLoss(scale=9, sensitivity=2), (1, 2, 30)),
}


@pytest.mark.parametrize("name", RISING)
@pytest.mark.parametrize("delta", ["1e-2", "1e-6"])
def test_more_noise_never_costs_more(name, delta):
    """Less noise, more sensitivity, a larger sample, group or count never makes ε smaller."""
    make, parameters = RISING[name]
    costs = [upper_epsilon(make(x), delta) for x in parameters]
    for less, more in itertools.pairwise(costs):
        assert less <= more * WIDTH
    assert costs[0] < costs[-1] or costs[-1] == math.inf


@law
@given(st.sampled_from(sorted(set(RISING) - {"rate_gaussian", "group_sampled"})), st.sampled_from(("0", "0.2", "1")))
def test_more_noise_never_loses_more(name, epsilon):
    """Nor δ."""
    make, parameters = RISING[name]
    losses = [make(x).delta_interval(epsilon) for x in parameters]
    for less, more in itertools.pairwise(losses):
        assert less.lower <= more.upper


# ---- 5 post-processing ------------------------------------------------------------------------------------------------


def through(masses, channel):
    """The distribution after the channel, exact."""
    return [
        sum((mass * row[out] for mass, row in zip(masses, channel, strict=True)), Fraction(0))
        for out in range(len(channel[0]))
    ]


@thorough
@given(strategies.finite_pairs(), st.data(), strategies.targets, st.sampled_from((0, "0.1", 1)))
@pytest.mark.slow
def test_post_processing_never_increases(pair, data, delta, epsilon):
    """Whatever is computed from an answer costs no more than the answer."""
    p, q = pair
    channel = data.draw(strategies.channels(len(p)))
    before, after = Finite(p=p, q=q), Finite(p=through(p, channel), q=through(q, channel))
    assert after.delta_interval(epsilon).lower <= before.delta_interval(epsilon).upper
    assert after.epsilon_interval(delta).lower <= before.epsilon(delta)
    assert after.delta(epsilon) <= before.delta(epsilon) * WIDTH + 1e-15
    assert (
        after.pure_epsilon is None
        or before.pure_epsilon is None
        or after.pure_epsilon <= before.pure_epsilon * Fraction(WIDTH)
    )


def test_merging_outputs_that_differ_loses_something():
    """The law above is not satisfied for want of anything to lose."""
    before = Finite(p=["0.5", "0.3", "0.2"], q=["0.2", "0.3", "0.5"])
    after = Finite(p=["0.7", "0.3"], q=["0.7", "0.3"])
    assert before.delta_interval("0.1").lower > 0.2
    assert after.delta_interval("0.1").upper < 1e-12


# ---- 6 round trips ----------------------------------------------------------------------------------------------------


@law
@given(st.one_of(strategies.losses(), strategies.sums()), strategies.targets)
def test_round_trip_is_conservative(loss, delta):
    """δ at the ε that was proved for δ is at most δ."""
    epsilon = loss.epsilon(delta)
    assume(math.isfinite(epsilon))
    back = loss.delta_interval(Fraction(epsilon))
    assert Fraction(back.lower) <= Fraction(delta)
    assert loss.delta(Fraction(epsilon)) <= float(delta) * WIDTH


@law
@given(
    st.one_of(strategies.gaussians, strategies.responses, strategies.pures, strategies.coarse_gaussians), strategies.targets
)
def test_round_trip_is_exact_where_the_law_is(loss, delta):
    """Where no smoothing is needed, to nine digits."""
    assert loss.delta(Fraction(loss.epsilon(delta))) <= float(delta) * (1 + 1e-9)


@law
@given(st.one_of(strategies.losses(), strategies.sums()), st.sampled_from(("0.01", "0.5", "2")))
def test_round_trip_from_epsilon(loss, epsilon):
    """ε at the δ that was proved for ε is not above ε by more than the intervals are wide."""
    delta = loss.delta(epsilon)
    assume(1e-200 < delta < 0.9)  # close to 1 the curve is flat, and ε is not determined
    assume(delta > (1 + 1e-9) * loss.delta(600))  # nor where δ cannot be told from the chance of an infinite loss
    back = loss.epsilon_interval(Fraction(delta))
    assert Fraction(back.lower) <= Fraction(epsilon)
    assert loss.epsilon(Fraction(delta)) <= float(Fraction(epsilon)) * WIDTH + 1e-6


@COSTLY
def test_round_trip_where_it_is_dear(loss):
    """The same for subsampled noise and groups of it, on the certified ends."""
    epsilon = loss.epsilon_interval("1e-6").upper
    back = loss.delta_interval(Fraction(epsilon))
    assert back.lower <= 1e-6
    assert back.upper <= 1e-6 * (1 + 1e-4)


# ---- 7 the readings are ordered ---------------------------------------------------------------------------------------


@law
@given(st.one_of(strategies.losses(), strategies.sums()), strategies.targets)
def test_the_lower_end_is_below_every_reading(loss, delta):
    """No proof can go below what some mechanism attains, and ε is the least of the proofs, or the one that needs no others.

    A shuffle of many reports is asked for its own sum alone, which is as narrow as floats are.
    """
    readings, interval = loss.readings(delta), loss.epsilon_interval(delta)
    assert all(interval.lower <= reading for reading in readings.values())
    least = min(readings.values())
    assert loss.epsilon(delta) == least or least < loss.epsilon(delta) <= min(least * (1 + 1e-9), readings["numerical"])
    assert interval.lower <= interval.upper
    assert not any(math.isnan(value) for value in (*readings.values(), *interval))


@law
@given(st.one_of(strategies.losses(), strategies.sums()), strategies.targets)
def test_the_interval_is_as_good_as_the_readings(loss, delta):
    """The upper end of the certified interval is the least reading, but for the width that makes it not worth asking."""
    assert loss.epsilon_interval(delta).upper <= loss.epsilon(delta) * WIDTH


def test_a_concentrated_loss_has_a_finite_interval():
    """A loss that is known by its ρ alone is bounded by the Rényi reading, also as an interval."""
    loss = Concentrated(rho="0.02")
    assert loss.epsilon("1e-6") < 1
    assert loss.epsilon_interval("1e-6").upper < 1


@law
@given(st.lists(strategies.pure_losses, min_size=1, max_size=4), strategies.targets)
def test_pure_losses_cost_at_most_their_sum(spends, delta):
    """At any δ the exact ε is at most the sum of the ε, and ε at δ = 0 is that sum."""
    total = compose(spends)
    whole = sum((one.pure_epsilon for one in spends), Fraction(0))
    assert total.pure_epsilon == whole
    assert total.epsilon(delta) <= float(whole) * (1 + 1e-14)
    assert Fraction(total.epsilon(0)) >= whole
    assert total.epsilon(0) <= float(whole) * (1 + 1e-15)


@COSTLY
@pytest.mark.slow
def test_readings_are_ordered_where_it_is_dear(loss):
    """The certified interval is narrow and the Rényi reading is above it."""
    interval = loss.epsilon_interval("1e-6")
    assert 0 < interval.lower <= interval.upper <= interval.lower * (1 + 1e-3)
    assert loss.readings("1e-6")["renyi"] >= interval.lower


# ---- 8 the privacy profile --------------------------------------------------------------------------------------------


@law
@given(st.one_of(strategies.losses(), strategies.sums()), st.lists(st.floats(0, 4), min_size=3, max_size=3, unique=True))
def test_the_profile_is_a_hockey_stick(loss, points):
    """δ is within [0, 1], falls with ε and is convex in e^ε, up to the certified width."""
    first, middle, last = sorted(points)
    profile = [loss.delta_interval(Fraction(x)) for x in (first, middle, last)]
    for one in profile:
        assert 0 <= one.lower <= one.upper <= 1
    for before, after in itertools.pairwise(profile):
        assert after.lower <= before.upper
    share = math.expm1(middle - first) / math.expm1(last - first)
    chord = (1 - share) * profile[0].upper + share * profile[2].upper
    assert profile[1].lower <= chord * (1 + 1e-12) + 1e-300


@law
@given(strategies.noises, st.floats(0, 3))
def test_the_profile_is_narrow(loss, epsilon):
    """For noise the two ends of δ agree to a part in ten thousand, where no smoothing is needed to nine digits."""
    low, high = loss.delta_interval(Fraction(epsilon))
    assert high - low <= (1e-4 if isinstance(loss, LaplaceLoss) else 1e-9) * high + 1e-12


# ---- 9 the unknown is refused -----------------------------------------------------------------------------------------


class Stranger(Loss):
    """A loss that no rule knows."""

    __slots__ = ()


QUESTIONS = {
    "epsilon": lambda loss: loss.epsilon("1e-6"),
    "epsilon_at_zero": lambda loss: loss.epsilon(0),
    "epsilon_interval": lambda loss: loss.epsilon_interval("1e-6"),
    "delta": lambda loss: loss.delta(1),
    "delta_interval": lambda loss: loss.delta_interval(1),
    "readings": lambda loss: loss.readings("1e-6"),
    "renyi": lambda loss: loss.renyi(2),
    "renyi_of_orders": lambda loss: loss.renyi(np.array([1.5, 2.0])),
    "renyi_one": lambda loss: loss.renyi(1),
    "renyi_infinite": lambda loss: loss.renyi("inf"),
    "rho": lambda loss: loss.rho,
    "concentrated": lambda loss: loss.concentrated,
    "pure_epsilon": lambda loss: loss.pure_epsilon,
    "tradeoff": lambda loss: loss.tradeoff("0.1"),
    "group": lambda loss: loss.group(2),
    "subsample": lambda loss: loss.subsample(rate="0.1"),
    "subsample_without_replacement": lambda loss: loss.subsample(rate="0.1", scheme="without_replacement"),
    "to_record": lambda loss: loss.to_record(),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("company", [None, GaussianLoss(mu=1), Pure(epsilon=1)], ids=["alone", "gaussian", "pure"])
def test_an_unknown_loss_is_refused(question, company):
    """No accountant answers for a record that it has no rule for, alone or in company."""
    loss = Stranger() if company is None else Stranger() + company
    with pytest.raises(Refused, match="Stranger"):
        QUESTIONS[question](loss)


@pytest.mark.parametrize("question", sorted(set(QUESTIONS) - {"subsample", "subsample_without_replacement"}))
def test_an_unknown_loss_is_refused_inside_others(question):
    """Nor does one for a sample or a group of it."""
    for wrapped in (
        Subsampled(Stranger(), Fraction(1, 10), "poisson", GaussianLoss(mu=1).subsample(rate="0.1").adjacency),
        Group(Stranger(), 2),
    ):
        if question == "group" and isinstance(wrapped, Group):
            continue  # a larger group of the same, which every question above refuses
        with pytest.raises(Refused):
            QUESTIONS[question](wrapped)


# ---- 10 records -------------------------------------------------------------------------------------------------------


@thorough
@given(st.one_of(strategies.every_kind(), strategies.sums()))
def test_a_record_round_trip_keeps_the_loss(loss):
    """A loss written as JSON and read back is the same loss."""
    text = json.dumps(loss.to_record())
    back = loss_from_record(json.loads(text))
    assert back == loss
    assert json.dumps(back.to_record()) == text
    assert back.pure_epsilon == loss.pure_epsilon
    assert back.concentrated == loss.concentrated


@law
@given(st.one_of(strategies.losses(), strategies.sums()), strategies.targets)
def test_a_record_round_trip_keeps_the_curve(loss, delta):
    """And has the same ε, to the last bit."""
    assert loss_from_record(json.loads(json.dumps(loss.to_record()))).epsilon(delta) == loss.epsilon(delta)


@COSTLY
def test_a_record_round_trip_keeps_the_curve_where_it_is_dear(loss):
    """The same for subsampled noise and groups of it."""
    back = loss_from_record(json.loads(json.dumps(loss.to_record())))
    assert back.epsilon_interval("1e-6") == loss.epsilon_interval("1e-6")


# ---- 11 groups --------------------------------------------------------------------------------------------------------


def group_rule(delta, epsilon, size):
    """δ (e^(kε) − 1)/(e^ε − 1) with room for a few ulps."""
    ratio = size if epsilon == 0 else math.expm1(size * epsilon) / math.expm1(epsilon)
    return min(delta * ratio * (1 + 1e-9) + 1e-140 * ratio, 1.0)


@law
@given(
    st.one_of(strategies.noises, strategies.pures, strategies.approximates),
    st.integers(2, 4),
    st.floats(0.01, 1.5),
)
def test_a_group_costs_at_most_the_group_rule(loss, size, epsilon):
    """What k people lose at k ε is at most δ (e^(kε) − 1)/(e^ε − 1) of what one loses at ε."""
    assume(getattr(loss, "categories", 2) == 2)  # of more answers a group keeps no more than its pure ε
    try:
        together = loss.group(size)
    except Refused:
        assume(False)
    got = together.delta_interval(Fraction(size * epsilon))
    assert got.lower <= group_rule(loss.delta(Fraction(epsilon)), epsilon, size)
    assert got.upper <= group_rule(loss.delta(Fraction(epsilon)) * WIDTH + 1e-13, epsilon, size)


@COSTLY
def test_a_group_costs_at_most_the_group_rule_where_it_is_dear(loss):
    """The same for subsampled noise: one step of it, or all of it."""
    once = parts_of(loss)[0][0]
    epsilon = 0.3
    got = once.group(2).delta_interval(Fraction(2 * epsilon))
    assert got.lower <= group_rule(once.delta_interval(Fraction(epsilon)).upper, epsilon, 2)


@law
@given(st.lists(st.tuples(st.one_of(strategies.noises, strategies.pures), strategies.counts), max_size=3), st.integers(1, 5))
def test_a_group_of_a_sum_is_the_sum_of_groups(spends, size):
    """Each release is grouped by itself."""
    together = Composed(spends).group(size)
    assert dict(parts_of(together)) == dict(parts_of(Composed([(one.group(size), count) for one, count in spends])))


@law
@given(st.one_of(strategies.noises, strategies.pures, strategies.groups), st.integers(1, 3), st.integers(1, 3))
def test_groups_of_groups_multiply(loss, first, second):
    """A group of groups is a group of the product."""
    assert loss.group(first).group(second) == loss.group(first * second)


@law
@given(strategies.epsilons, st.integers(1, 6))
def test_group_scalars(epsilon, size):
    """Pure ε grows by k, ρ by k²."""
    assert Pure(epsilon=epsilon).group(size).pure_epsilon == size * Fraction(epsilon)
    assert Concentrated(rho=epsilon).group(size).rho == size**2 * Fraction(epsilon)
    assert GaussianLoss(mu=epsilon).group(size).rho == size**2 * Fraction(epsilon) ** 2 / 2
