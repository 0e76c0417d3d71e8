"""The adversary's game: adapters, attacks, bands, beliefs, and what is refused. Laws of large numbers are in statistical/."""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import curador as cu
from curador.audit import game
from curador.audit.attack import Attack, draw_outputs, likelihood
from curador.audit.bounds import clopper_pearson
from curador.audit.game import THRESHOLDS, Posterior, measure_roc, thresholds_of
from curador.errors import InvalidParameter

ONE = cu.losses.Pure(epsilon=1)


def laplace(epsilon=1):
    return cu.DiscreteLaplace.calibrate(epsilon=epsilon, sensitivity=1)


# ---- likelihood ratios ----------------------------------------------------------------------------------------------


def masses(mechanism, world, outputs):
    """log P[output | world] by the mechanism's own probabilities."""
    step = Fraction(getattr(mechanism, "grid", 1))
    centre = math.floor(Fraction(world) / step + Fraction(1, 2))
    return np.array([math.log(mechanism.probability(int(Fraction(float(one)) / step) - centre)) for one in outputs])


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        cu.DiscreteLaplace(scale="1.7", sensitivity=1),
        cu.Laplace(scale="0.7", sensitivity=1),
        cu.DiscreteGaussian(sigma="1.3", sensitivity=1),
        cu.Gaussian(sigma="0.8", sensitivity=1),
        cu.Staircase(epsilon=1, sensitivity=1),
        cu.TruncatedLaplace.calibrate(epsilon=1, delta="1e-3", sensitivity=1),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("worlds", [(0, 1), (1, 0), (5, 4)])
def test_the_score_of_added_noise_is_its_log_likelihood_ratio(mechanism, worlds):
    """The closed forms agree with the probabilities that the mechanism tells of itself."""
    outputs = np.asarray(mechanism.release_many(worlds[0], 200), np.float64)
    outputs = outputs[np.abs(outputs - worlds[1]) < 3]  # where both worlds reach
    score = likelihood(mechanism, *worlds).scores(outputs, len(outputs))

    assert len(outputs) > 20
    assert score == pytest.approx(masses(mechanism, worlds[1], outputs) - masses(mechanism, worlds[0], outputs), abs=1e-9)


def test_outputs_that_only_one_world_reaches_have_infinite_scores():
    """Truncated noise: beyond the reach of one value the other is certain."""
    mechanism = cu.TruncatedLaplace.calibrate(epsilon=1, delta="0.1", sensitivity=1)
    reach = float(mechanism.reach)
    score = likelihood(mechanism, 0, 1).scores(np.array([-reach, 0.5, reach + 0.5]), 3)

    assert score[0] == -math.inf
    assert score[1] == pytest.approx(0.0, abs=1e-9)
    assert score[2] == math.inf


def test_scores_of_outputs_beyond_both_values_are_the_very_same():
    """Laplace noise: the ratio is ε or −ε exactly, so that no threshold falls between equal outputs."""
    score = likelihood(cu.Laplace(scale=1, sensitivity=1), 0, 1).scores(np.array([-7.1, -0.3, 1.2, 1e9]), 4)

    assert score.tolist() == [-1.0, -1.0, 1.0, 1.0]


@pytest.mark.parametrize("k", [2, 5])
def test_the_score_of_randomized_response(k):
    """ε for the second answer, −ε for the first, nothing for any other."""
    score = likelihood(cu.RandomizedResponse(epsilon=2, categories=k), 0, 1).scores(np.arange(k), k)

    assert score == pytest.approx([-2.0, 2.0, *[0.0] * (k - 2)])


def test_several_numbers_add_up():
    """A vector's ratio is the sum over its numbers, bits of one person included."""
    pair = likelihood(cu.Gaussian(sigma=1, sensitivity=1, dimension=2), [0, 0], [0.6, 0.8])
    bits = likelihood(cu.RandomizedResponse(epsilon=1, answers=3), [0, 0, 0], [1, 1, 1])

    assert pair.scores(np.array([[1.0, 2.0]]), 1) == pytest.approx([0.6 * 0.7 + 0.8 * 1.6])
    assert bits.scores(np.array([[1, 1, 0]]), 1) == pytest.approx([1.0])


@pytest.mark.parametrize(
    "mechanism",
    [
        cu.Exponential.calibrate(epsilon=1, sensitivity=1),
        cu.PermuteAndFlip.calibrate(epsilon=1, sensitivity=1),
        cu.NoisyMax.calibrate(epsilon=1, sensitivity=1),
    ],
    ids=lambda m: type(m).__name__,
)
def test_the_score_of_a_choice(mechanism):
    """By the probabilities of the candidates."""
    worlds = [0.0, 0.0, 1.0], [1.0, -1.0, 1.0]
    one, other = (mechanism.probabilities(world) for world in worlds)

    assert likelihood(mechanism, *worlds).scores(np.arange(3), 3) == pytest.approx(np.log(other / one))


def test_the_score_of_a_quantile():
    """By the probabilities of its points."""
    mechanism = cu.Quantile.calibrate(q="0.5", lower=0, upper=1, epsilon=1, adjacency="add_or_remove_one", cells=5)
    one, other = (mechanism.probabilities(world) for world in ([0.8], [0.8, 0.0]))
    score = likelihood(mechanism, [0.8], [0.8, 0.0]).scores(mechanism.points, 5)

    assert score == pytest.approx(np.log(other / one))


@pytest.mark.parametrize("mechanism", [cu.NoisyMax.calibrate(epsilon=1, sensitivity=1, gap=True), lambda world: world])
def test_unknown_laws_have_no_likelihood(mechanism):
    """What also shows gaps, and any function: to be learned."""
    assert likelihood(mechanism, [0.0, 0.0], [1.0, 1.0]) is None


# ---- what can be attacked -------------------------------------------------------------------------------------------


@dataclass
class Protocol:
    """Reports on people's values."""

    loss: object = ONE

    def privatise(self, values):
        return cu.RandomizedResponse(epsilon=1).release(values)


@pytest.mark.slow
def test_a_protocol_that_privatises_is_attacked():
    """It gets as many people as releases are needed, all with the value of the world."""
    assert draw_outputs(Protocol(), 1, 500).shape == (500,)
    assert game(Protocol(), 0, 1, samples=4000).attack == "learned"


@pytest.mark.slow
def test_a_protocol_that_knows_its_odds_is_attacked_by_them():
    """log_odds of the object itself."""

    class Knowing(Protocol):
        def log_odds(self, outputs, world0, world1):
            return (outputs == world1) * 1.0 - (outputs == world0)

    found = game(Knowing(), 0, 1, samples=4000)

    assert found.attack == "likelihood"
    assert found.posterior.largest == pytest.approx(cu.odds.posterior_bounds(1)[1])


@pytest.mark.slow
def test_a_function_is_attacked():
    """A function of a world, called once a release; its loss is given."""
    calls = []

    def noisy_sum(rows):
        calls.append(rows)
        return laplace().release(sum(rows))

    found = game(noisy_sum, [1, 1], [1, 1, 1], samples=400, loss=ONE)

    assert len(calls) == 800
    assert found.name == "noisy_sum"
    assert found.attack == "learned"
    assert not found.refuted


@pytest.mark.slow
def test_outputs_of_several_arrays_are_attacked():
    """A selection with gaps: indices and gaps are both looked at."""
    found = game(cu.NoisyMax.calibrate(epsilon=1, sensitivity=1, gap=True), [0.0, 0.0], [1.0, -1.0], samples=8000)

    assert found.advantage > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism": lambda _: 1}, "loss must be what is proved of the mechanism; got None"),
        ({"loss": 1.0}, "loss must be what is proved"),
        ({"mechanism": 7, "loss": ONE}, "mechanism must be something that releases; got 7"),
        ({"attack": "guess"}, 'attack must be "auto", "likelihood", "learned" or a score'),
        ({"attack": 3}, 'attack must be "auto", "likelihood", "learned" or a score'),
        ({"attack": "likelihood", "mechanism": lambda _: 1, "loss": ONE}, "attack must be one that is known"),
        ({"attack": lambda _: 1.0}, "attack must be a score that gives 400 numbers"),
        ({"attack": lambda out: out * np.nan}, "attack must be a score without NaN"),
        ({"samples": 399}, "samples must be"),
        ({"confidence": 1}, "confidence must be"),
        ({"prior": 0}, "prior must be"),
        ({"delta": 2}, "delta must be"),
        ({"mechanism": lambda _: np.zeros(np.random.default_rng().integers(1, 9)), "loss": ONE}, "outputs have one shape"),
        ({"mechanism": lambda _: "x", "loss": ONE}, "outputs must be numbers"),
    ],
)
def test_what_cannot_be_played_is_refused(change, words):
    """One sentence each."""
    arguments = {"mechanism": laplace(), "samples": 400, **change}

    with pytest.raises(InvalidParameter, match=words):
        game(arguments.pop("mechanism"), 0, 1, **arguments)


# ---- the curve ------------------------------------------------------------------------------------------------------


def test_thresholds_are_all_values_or_few_quantiles():
    """Falling, and never the smallest value, which is always reached."""
    few = thresholds_of(np.array([0.0, 1.0, 1.0]), np.array([2.0, 0.0]))
    many = thresholds_of(np.arange(5000.0), np.arange(5000.0) + 0.5)

    assert few.tolist() == [2.0, 1.0]
    assert len(many) <= THRESHOLDS
    assert np.all(np.diff(many) < 0)
    assert many[-1] < 5
    assert many[0] > 4990


def test_rates_and_their_band():
    """Counts by hand; the band holds them, its edges are monotone and meet at both ends."""
    roc = measure_roc(np.array([2.0, 1.0]), np.array([0.0, 0, 0, 1]), np.array([1.0, 1, 2, 2]), alpha=0.05)

    assert roc.fpr.tolist() == [0.0, 0.0, 0.25, 1.0]
    assert roc.tpr.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert roc.area == pytest.approx(0.25 * 0.75 + 0.75)
    assert np.all((roc.fpr_low <= roc.fpr) & (roc.fpr <= roc.fpr_high) & (roc.tpr_low <= roc.tpr) & (roc.tpr <= roc.tpr_high))
    grid = np.linspace(0, 1, 101)
    assert np.all(roc.lower(grid) <= roc.upper(grid))
    assert np.all(np.diff(roc.lower(grid)) >= 0)
    assert np.all(np.diff(roc.upper(grid)) >= 0)
    assert (roc.lower(np.array([0.0]))[0], roc.upper(np.array([1.0]))[0]) == (0.0, 1.0)


def test_the_error_is_shared_among_all_bounds():
    """Each of the four bounds of a threshold gets its part: else the band would not hold for all of them at once."""
    scores = np.arange(100.0)
    roc = measure_roc(np.array([75.0, 50.0]), scores, scores, alpha=0.08)
    low, high = clopper_pearson(np.array([25, 50]), 100, 0.01)

    assert roc.fpr_low[1:-1].tolist() == roc.tpr_low[1:-1].tolist() == low.tolist()
    assert roc.fpr_high[1:-1].tolist() == roc.tpr_high[1:-1].tolist() == high.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize("reverse", [False, True])
def test_every_side_of_the_region_is_watched(side, reverse):
    """A rare event that one world never shows is beyond ε = 1, whichever world it is and whichever end of the score."""
    usual, marked = np.zeros(4000), np.where(np.arange(4000) < 400, 1.0 if side == "above" else -1.0, 0.0)
    worlds = (marked, usual) if reverse else (usual, marked)
    roc = measure_roc(np.array([1.0, 0.0]), *worlds, alpha=1e-6)

    assert roc.excess(lambda rates: np.asarray(ONE.tradeoff(rates))).max() > 0.03
    assert roc.excess(lambda rates: np.asarray(cu.losses.Approx(epsilon=1, delta="0.11").tradeoff(rates))).max() <= 0


# ---- beliefs --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_beliefs_stay_within_what_is_proved():
    """Pure ε: every belief lies within the bounds for its prior; with even odds of the worlds they are reached."""
    found = game(laplace(2), 0, 1, samples=2000, prior="0.2").posterior

    assert found.prior == 0.2
    assert found.low == pytest.approx(0.2 / (0.2 + 0.8 * math.exp(2)))
    assert found.least == pytest.approx(found.low, rel=1e-9)
    assert found.largest == pytest.approx(found.high, rel=1e-9)


@pytest.mark.slow
def test_a_loss_with_delta_has_no_bound_of_belief():
    """A rare output may convince of anything."""
    found = game(cu.Gaussian(sigma=1, sensitivity=1), 0, 1, samples=2000).posterior

    assert found.low is None
    assert found.high is None


def test_summaries_of_beliefs():
    """Means, majorities and calibration by hand."""
    belief = Posterior(0.25, np.array([0.1, 0.3]), np.array([0.3, 0.9]), None, None)
    mean, share, count = belief.calibration(2)

    assert belief.mean == pytest.approx(0.75 * 0.8 + 0.25 * 0.6)
    assert belief.right == pytest.approx(0.75 * 1.0 + 0.25 * 0.5)
    assert (belief.least, belief.largest) == (0.1, 0.9)
    assert count.tolist() == [3, 1]
    assert mean == pytest.approx([(0.375 * 0.4 + 0.125 * 0.3) / 0.875, 0.9])
    assert share == pytest.approx([0.125 / 0.875, 1.0])


# ---- the whole ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_game_tells_its_story():
    """Every number that is promised is there, and the text shows it."""
    found = game(laplace(), 0, 1, samples=4000, confidence="0.99")
    text = str(found)

    assert found.samples == 4000
    assert found.tested == 3000
    assert found.confidence == pytest.approx(0.99)
    assert found.proved_advantage == pytest.approx(math.tanh(0.5))
    assert found.proved_epsilon == 1.0
    assert found.delta == 0.0
    assert found.advantage_low < found.advantage < found.advantage_high
    assert found.proved(np.array([0.0, 0.1, 1.0])) == pytest.approx([0.0, 0.1 * math.e, 1.0])
    assert found.proved_area == pytest.approx(0.5 + math.tanh(0.5) / 2, abs=1e-5)
    assert "DiscreteLaplace(scale=1, sensitivity=1): 0 or 1, 4,000 releases each, attack: likelihood" in text
    assert "nothing is beyond the proved bound; false alarms: at most 0.01" in text


@pytest.mark.slow
def test_a_refutation_says_where():
    """The worst point of the curve, in words and numbers. False alarms: 1e-9."""
    found = game(laplace(4), 0, 1, samples=4000, loss=ONE, confidence="0.999999999")
    fpr, tpr = found.crossing

    assert found.crosses
    assert found.refuted
    assert tpr > found.proved(np.array([fpr]))[0]
    assert f"REFUTED: {tpr:.4g} true alarms at {fpr:.4g} false ones" in str(found)


@pytest.mark.slow
def test_a_constant_output_tells_nothing():
    """One output in both worlds: no threshold, no advantage, no ratio."""
    found = game(lambda _: 3.0, 0, 1, samples=400, loss=cu.losses.Pure(epsilon=0), attack=lambda out: out)

    assert (found.advantage, found.ratio, found.area_ratio, found.epsilon_lower) == (0.0, 0.0, 0.0, 0.0)
    assert not found.refuted


@pytest.mark.slow
def test_the_delta_of_the_bound():
    """0 for pure losses, half of the proved advantage for others, or what is given."""
    gaussian = cu.Gaussian(sigma=1, sensitivity=1)

    assert game(laplace(), 0, 1, samples=400).delta == 0.0
    assert game(gaussian, 0, 1, samples=400).delta == pytest.approx(gaussian.loss.delta(0) / 2)
    assert game(gaussian, 0, 1, samples=400, delta="1e-3").delta == 0.001


@pytest.mark.slow
def test_nothing_is_tested_on_what_it_was_chosen_on(monkeypatch):
    """A function numbers its releases: a quarter is learned from, a quarter of the rest chooses, the others are counted."""
    played = sys.modules["curador.audit.game"]
    seen = {}

    def learn(one, other):
        seen["learned"] = (one.tolist(), other.tolist())
        return Attack("spy", np.asarray)

    def choose(one, other):
        seen["chosen"] = (one.tolist(), other.tolist())
        return np.array([250.0])

    def count(thresholds, one, other, *, alpha):
        seen["counted"] = (one.tolist(), other.tolist())
        return measure_roc(thresholds, one, other, alpha=alpha)

    monkeypatch.setattr(played, "learn_attack", learn)
    monkeypatch.setattr(played, "thresholds_of", choose)
    monkeypatch.setattr(played, "measure_roc", count)
    numbers = {0: iter(range(400)), 1: iter(range(400))}
    found = game(lambda world: next(numbers[world]), 0, 1, samples=400, loss=ONE)

    assert seen["learned"] == (list(range(100)),) * 2
    assert seen["chosen"] == (list(range(100, 175)),) * 2
    assert seen["counted"] == (list(range(175, 400)),) * 2
    assert found.tested == 225


@pytest.mark.slow
def test_a_score_turned_round_has_the_same_advantage():
    """The side of the threshold is chosen, too; only the area shows the direction."""
    found = game(laplace(3), 0, 1, samples=4000, attack=lambda out: -out)

    assert found.advantage > 0.8
    assert found.area < 0.1
