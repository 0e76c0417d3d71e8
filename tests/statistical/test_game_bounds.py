"""The adversary's game against what is proved: the curve never crosses the bound, and touches it where the bound is tight.

A game is played at confidence 1 − 1e-9, so each assertion that nothing is refuted has false alarms of 1e-9. A ratio above
0.95 is missed by six standard errors or more: below 1e-9. Seeded bugs are far beyond their bands.
"""

import numpy as np
import pytest

import curador as cu
from curador.audit import game

pytestmark = pytest.mark.slow

SURE = "0.999999999"
SIZES = ((0.15, 600_000), (0.3, 350_000), (1.0, 150_000))
"""Releases by the proved advantage: the smaller, the more are needed for a twentieth of it to be six standard errors."""

TIGHT = {
    **{f"Laplace {e}": cu.Laplace.calibrate(epsilon=e, sensitivity=1) for e in ("0.5", "1", "3")},
    **{f"DiscreteLaplace {e}": cu.DiscreteLaplace.calibrate(epsilon=e, sensitivity=1) for e in ("0.5", "1", "3")},
    **{f"Gaussian {s}": cu.Gaussian(sigma=s, sensitivity=1) for s in ("0.5", "1", "2")},
    **{f"DiscreteGaussian {s}": cu.DiscreteGaussian(sigma=s, sensitivity=1) for s in ("0.5", "1", "2")},
    **{f"RandomizedResponse {e}": cu.RandomizedResponse(epsilon=e) for e in ("0.5", "1", "3")},
    **{f"RandomizedResponse {e}, five answers": cu.RandomizedResponse(epsilon=e, categories=5) for e in ("0.5", "1", "3")},
}


@pytest.mark.parametrize("name", TIGHT)
def test_the_curve_touches_the_proved_bound_and_does_not_cross_it(name):
    """Laplace, Gaussian and randomized response, several ε, discrete and k-ary: nothing is refuted, ratios are above 0.95."""
    size = next(size for most, size in SIZES if TIGHT[name].loss.delta(0) < most)
    found = game(TIGHT[name], 0, 1, samples=size, confidence=SURE)
    grid = np.linspace(0, 1, 201)

    assert not found.refuted, str(found)
    assert np.all(found.roc.lower(grid) <= found.proved(grid) + 1e-12)
    assert found.ratio > 0.95
    assert found.area_ratio > 0.93
    assert found.advantage_low <= found.proved_advantage
    assert found.epsilon_lower <= found.proved_epsilon


@pytest.mark.parametrize(
    ("mechanism", "worlds"),
    [
        (cu.Staircase.calibrate(epsilon=1, sensitivity=1), (0, 1)),
        (cu.TruncatedLaplace.calibrate(epsilon=1, delta="1e-2", sensitivity=1), (0, 1)),
        (cu.Exponential.calibrate(epsilon=1, sensitivity=1), ([0.0, 0.0], [1.0, -1.0])),
        (cu.PermuteAndFlip.calibrate(epsilon=1, sensitivity=1), ([0.0, 0.0], [1.0, -1.0])),
        (cu.NoisyMax.calibrate(epsilon=1, sensitivity=1, gap=True), ([0.0, 0.0], [1.0, -1.0])),
        (cu.AboveThreshold.calibrate(epsilon=1, sensitivity=1, threshold="0.5"), ([0.0, 0.0, 1.0], [1.0, 1.0, 0.0])),
        (cu.Gaussian(sigma=1, sensitivity=1, dimension=3), ([0, 0, 0], [0.6, 0.0, 0.8])),
        (cu.Laplace(scale=1, sensitivity=1, dimension=2), ([0, 0], [0.5, 0.5])),
        (cu.local.Direct(8, epsilon=1), (0, 1)),
        (cu.local.Unary(8, epsilon=1), (0, 1)),
        (cu.local.Subset(8, epsilon=1), (0, 1)),
        (cu.local.Hadamard(8, epsilon=1), (0, 1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_mechanisms_stand(mechanism, worlds):
    """Whatever attack is chosen by itself, likelihood or learned, refutes nothing."""
    found = game(mechanism, *worlds, samples=100_000, confidence=SURE)

    assert not found.refuted, str(found)
    assert found.advantage > 0.05


@pytest.mark.parametrize("kind", ["likelihood", "learned"])
@pytest.mark.parametrize(
    "name", ["Laplace 1", "DiscreteLaplace 1", "Gaussian 1", "DiscreteGaussian 1", "RandomizedResponse 1"]
)
def test_an_adversary_who_believes_the_law_is_calibrated(name, kind):
    """Of releases after which he believes 70 %, 70 % are of the second world; the learned one nearly so. Misses: < 1e-9."""
    found = game(TIGHT[name], 0, 1, samples=200_000, attack=kind, prior="0.3")
    belief, share, count = found.posterior.calibration(10)
    many = count > 3000

    assert many.any()
    assert np.abs(belief - share)[many].max() < (0.06 if kind == "likelihood" else 0.09)


# ---- seeded bugs ----------------------------------------------------------------------------------------------------


class Claims:
    """One mechanism's noise under another's loss."""

    def __init__(self, noise, loss):
        self.release_many, self.loss = noise, loss


HALF = {
    "Laplace": (cu.Laplace(scale="0.5", sensitivity=1), cu.Laplace(scale=1, sensitivity=1)),
    "DiscreteLaplace": (cu.DiscreteLaplace(scale="0.5", sensitivity=1), cu.DiscreteLaplace(scale=1, sensitivity=1)),
    "Gaussian": (cu.Gaussian(sigma="0.5", sensitivity=1), cu.Gaussian(sigma=1, sensitivity=1)),
    "DiscreteGaussian": (cu.DiscreteGaussian(sigma=1, sensitivity=1), cu.DiscreteGaussian(sigma=2, sensitivity=1)),
    "RandomizedResponse": (cu.RandomizedResponse(epsilon=2), cu.RandomizedResponse(epsilon=1)),
}


@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("attack", ["likelihood", "learned"])
def test_half_the_noise_crosses(name, attack):
    """A seeded bug: half the declared noise is beyond the proved bound, by a known law of the noise and by a learned one."""
    noise, declared = HALF[name]
    known = attack == "likelihood"
    found = game(
        noise if known else Claims(noise.release_many, None), 0, 1, samples=50_000, confidence=SURE, loss=declared.loss
    )

    assert found.attack == attack
    assert found.crosses
    assert found.excess > 0.05


def mean_of(rows):
    """A mean of ten people in [0, 1] with a tenth of the noise that ε = 1 needs."""
    return cu.Laplace(scale="0.01", sensitivity=1).release(sum(rows) / len(rows))


def test_a_function_with_a_wrong_claim_crosses():
    """A seeded bug in somebody's own code: 3000 calls a world are enough."""
    found = game(mean_of, [0.5] * 10, [0.5] * 9 + [1.0], samples=3000, loss=cu.losses.Pure(epsilon=1), confidence=SURE)

    assert found.crosses
    assert found.epsilon_lower > 1.0


def fitted(epsilon):
    """A private analysis of components, whose directions and variances are published."""
    from curador.learn import PrivatePCA

    def fit(rows):
        model = PrivatePCA(n_components=2, epsilon=epsilon, delta="1e-6", n_nominal=4).fit(rows)
        return np.append(model.components_, model.explained_variance_)

    return fit


@pytest.mark.parametrize(("epsilon", "refuted"), [(1, False), (60, True)])
def test_an_estimator_is_played_against(epsilon, refuted):
    """400 fits a world, with one record more: the claim ε = 1 stands if it is true, and crosses if noise is for ε = 60."""
    rows = np.array([[0.9, 0.0], [-0.9, 0.0], [0.9, 0.1]])
    claim = cu.losses.Approx(epsilon=1, delta="1e-6")
    found = game(fitted(epsilon), rows, np.vstack([rows, [[0.0, 1.0]]]), samples=400, loss=claim, confidence="0.999999")

    assert found.refuted == refuted
    assert found.crosses == refuted


def textbook(value, size):
    """Laplace noise as a textbook adds it, in floats."""
    return np.random.default_rng().laplace(value, 1.0, size)


def test_float_noise_is_caught_by_its_bits_and_by_nothing_else():
    """A seeded bug: the law is right, so thresholds see nothing, but the learned attack sees the bits: ε is infinite."""
    wrong = Claims(textbook, cu.losses.Pure(epsilon=1))
    by_value = game(wrong, 0, 1, samples=100_000, confidence=SURE, attack=lambda outputs: outputs)
    by_bits = game(wrong, 0, 1, samples=100_000, confidence=SURE)

    assert not by_value.refuted
    assert by_value.ratio > 0.8
    assert by_bits.attack == "learned"
    assert by_bits.crosses
    assert by_bits.epsilon_lower > 3.0


@pytest.mark.parametrize("name", ["Laplace 1", "Gaussian 1", "DiscreteLaplace 1", "DiscreteGaussian 1"])
def test_exact_releases_show_no_more_to_a_learned_attack(name):
    """Bits of exact releases tell nothing: what is learned stays within the bound, and near the likelihood's advantage."""
    found = game(TIGHT[name], 0, 1, samples=200_000, confidence=SURE, attack="learned")

    assert not found.refuted
    assert 0.93 < found.ratio < 1.05


def hidden(world, size):
    """One release in a hundred of the second world shows a mark that the first never shows."""
    out = cu.Laplace(scale=1, sensitivity=1).release_many(0, size)
    out[np.random.default_rng().random(size) < world / 100] = 0.25
    return out


def test_a_rare_event_crosses():
    """A seeded bug without any advantage to speak of: δ = 0 is refuted, δ = 0.02 is not."""
    found = game(Claims(hidden, cu.losses.Pure(epsilon=1)), 0, 1, samples=100_000, confidence=SURE)
    honest = game(Claims(hidden, cu.losses.Approx(epsilon=1, delta="0.02")), 0, 1, samples=100_000, confidence=SURE)

    assert found.advantage < 0.02
    assert found.crosses
    assert not honest.refuted
