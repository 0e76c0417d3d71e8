"""Shuffled reports: the glue between a protocol and its loss once nobody knows who sent what."""

import math
from fractions import Fraction

import pytest

import curador as cu
from curador import local
from curador.cli.expression import loss_of
from curador.errors import InvalidParameter, NotPrivate

PROTOCOLS = {
    "direct": local.Direct(10, epsilon=2),
    "two values": local.Direct(2, epsilon=2),
    "unary": local.Unary(10, epsilon=2),
    "hashing": local.Hashing(10, epsilon=2),
    "hadamard": local.Hadamard(10, epsilon=2),
    "subset": local.Subset(10, epsilon=2),
    "laplace": local.LaplaceMean(lower=0, upper=1, epsilon=2),
    "duchi": local.DuchiMean(lower=0, upper=1, epsilon=2),
    "piecewise": local.PiecewiseMean(lower=0, upper=1, epsilon=2),
    "hybrid": local.HybridMean(lower=0, upper=1, epsilon=2),
    "hitters": local.HeavyHitters(epsilon=2, bits=24),
}
every_protocol = pytest.mark.parametrize("name", PROTOCOLS)


@every_protocol
def test_the_variation_is_that_of_the_worst_pair(name):
    """At most tanh(ε/2), and exactly δ(0) of one report's loss where that is less."""
    protocol = PROTOCOLS[name]
    loss = local.shuffled(protocol, reports=1000)
    most = math.tanh(1)
    assert (loss.epsilon0, loss.reports) == (2, 1000)
    if name in {"two values", "duchi"}:
        assert loss.variation is None
    else:
        assert float(loss.variation) == pytest.approx(protocol.loss.delta(0), rel=1e-12)
        assert 0 < loss.variation < Fraction(most)


def test_direct_by_hand():
    """Of ten values the total variation is γ − (1 − γ)/9."""
    gamma = math.exp(2) / (math.exp(2) + 9)
    loss = local.shuffled(PROTOCOLS["direct"], reports=1000)
    assert float(loss.variation) == pytest.approx(gamma - (1 - gamma) / 9, rel=1e-12)


@pytest.mark.slow
def test_more_people_hide_one_better():
    """And a smaller variation does, too."""
    small, large = (local.shuffled(PROTOCOLS["direct"], reports=n).epsilon("1e-6") for n in (300, 1_500))
    plain = cu.losses.Shuffled(epsilon=2, reports=1_500).epsilon("1e-6")
    assert large < plain < small < 2


@pytest.mark.slow
def test_losses_add_up():
    """A local report, a shuffled collection and a central release, all replace-one: one loss, with an answer."""
    central = cu.losses.GaussianLoss(mu="0.5", adjacency="replace_one")
    shuffled = local.shuffled(PROTOCOLS["hybrid"], reports=500)
    alone = PROTOCOLS["hybrid"].loss
    together = alone + shuffled + central
    assert str(together.adjacency) == "replace_one"
    parts = [one.epsilon("1e-6") for one in (alone, shuffled, central)]
    found = together.epsilon("1e-6")
    assert max(parts) < found < sum(one.epsilon("3e-7") for one in (alone, shuffled, central))
    with pytest.raises(InvalidParameter, match="one adjacency"):
        (together + cu.losses.GaussianLoss(mu=1, adjacency="add_or_remove_one")).epsilon("1e-6")


def test_a_record_and_back():
    """A shuffled loss is stored as any other."""
    loss = local.shuffled(PROTOCOLS["unary"], reports=1000)
    assert cu.loss_from_record(loss.to_record()) == loss


def test_on_the_command_line():
    """`curador account` knows the same record by its words."""
    loss = local.shuffled(PROTOCOLS["unary"], reports=1000)
    assert loss_of(f'shuffle(epsilon=2, reports=1000, variation="{loss.variation}")') == loss


def test_refusals():
    """Kept bits, one report, something else."""
    with pytest.raises(NotPrivate, match="kept bits"):
        local.shuffled(local.Rappor(3, epsilon_forever=2, epsilon_once=1), reports=10)
    with pytest.raises(InvalidParameter, match="reports must be a whole number of at least 2"):
        local.shuffled(PROTOCOLS["direct"], reports=1)
    with pytest.raises(InvalidParameter, match=r"a protocol of curador\.local"):
        local.shuffled("direct", reports=10)
