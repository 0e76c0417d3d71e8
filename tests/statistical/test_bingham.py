"""Directions drawn by rejection against their exact law, and the same tests against the law that a wrong sign draws.

Every assertion has a false-alarm rate of 1e-9: Kolmogorov's bound on the squared cosine with the spike, whose law is an
integral over one angle, and a normal bound on its mean. Audits bound ε from below by Clopper and Pearson at 1e-9. Power: a
thousand draws of the law with the inverted sign fail in every cell, and so does the audit, but for one run in 10⁶.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import betaincinv

from curador.learn.oracles import bingham
from curador.randomness.entropy import entropy

ALARM = 1e-9
KOLMOGOROV = math.sqrt(-math.log(ALARM / 2) / 2)
NORMAL = 6.2
ANGLES = np.linspace(0.0, math.pi / 2, 200_001)
CELLS = [(size, part) for size in (3, 10, 100, 1000) for part in (0.1, 0.5, 0.6, 1.0, 3.0)]
DRAWN_WRONGLY = [(3, 0.1), (3, 0.5), (3, 3.0), (10, 0.1)]  # elsewhere the wrong rule keeps next to nothing


def angle_law(size, strength):
    """Cumulative masses of the angle to the equator under ∝ exp(strength · sin²) cos^(d−2), at the ends of ANGLES' cells."""
    middle = (ANGLES[1:] + ANGLES[:-1]) / 2
    log = strength * np.sin(middle) ** 2 + (size - 2) * np.log(np.cos(middle))
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    return middle, weights


def spike(size, strength):
    """The law of one spike, in its own basis: coordinate 0 is the spike."""
    values = np.zeros(size)
    values[0] = 1.0
    return bingham.BinghamLaw(np.eye(size), *bingham.spread_of(values, strength))


def drawn(law, at_least):
    kept = []
    while sum(map(len, kept)) < at_least:
        kept.append(bingham.draw_accepted(law, 400_000 // law.size, entropy()))
    return np.concatenate(kept)


def doubts(size, strength, squares):
    """How often √n times the Kolmogorov distance, and the z of the mean, exceed their bounds: 1 is an alarm."""
    middle, weights = angle_law(size, strength)
    angles = np.sort(np.arcsin(np.sqrt(np.clip(squares, 0.0, 1.0))))
    expected = np.interp(angles, ANGLES, np.concatenate([[0.0], np.cumsum(weights)]))
    ranks = np.arange(len(angles) + 1) / len(angles)
    distance = max(np.abs(expected - ranks[1:]).max(), np.abs(expected - ranks[:-1]).max())
    mean = weights @ np.sin(middle) ** 2
    deviation = math.sqrt(weights @ (np.sin(middle) ** 2 - mean) ** 2)
    z = abs(squares.mean() - mean) / deviation * math.sqrt(len(squares))
    return math.sqrt(len(squares)) * distance / KOLMOGOROV, z / NORMAL


def inverted(uses, tuning, size):
    """The wrong sign: the proposal's density is multiplied where it must be divided by. Its own maximum is at u = 0."""
    return -uses - (size / 2.0) * np.log1p(2.0 * uses / tuning)


@pytest.mark.parametrize(
    ("size", "part"), [pytest.param(*one, marks=[pytest.mark.slow] if one[0] > 10 else []) for one in CELLS]
)
def test_directions_have_their_law(size, part):
    """The squared cosine with a spike follows the integral, at every concentration."""
    strength = part * size
    found = drawn(spike(size, strength), 1000)

    assert max(doubts(size, strength, found[:, 0] ** 2)) < 1


@pytest.mark.parametrize(("size", "part"), DRAWN_WRONGLY)
def test_the_inverted_sign_is_caught(size, part, monkeypatch):
    """The same test refuses what a sampler with the inverted ratio draws."""
    monkeypatch.setattr(bingham, "log_acceptance", inverted)
    strength = part * size
    found = drawn(spike(size, strength), 1000)

    assert max(doubts(size, strength, found[:, 0] ** 2)) > 1


@pytest.mark.parametrize(("size", "part"), CELLS)
def test_the_inverted_law_would_be_caught_everywhere(size, part):
    """No more draws than above, of the law that the inverted ratio has, made by its own integral: refused in every cell."""
    strength = part * size
    middle, weights = angle_law(size, strength)
    uses = strength * np.cos(middle) ** 2
    log = np.log(np.maximum(weights, 1e-300)) - size * np.log1p(2 * uses / spike(size, strength).tuning)
    wrong = np.exp(log - log.max())
    angles = np.interp(np.random.default_rng().random(1000 if size > 10 else 10_000), np.cumsum(wrong) / wrong.sum(), middle)

    assert max(doubts(size, strength, np.sin(angles) ** 2)) > 1


def test_a_single_draw_has_the_law_too():
    """What the mechanism draws of a rotated matrix: first of a round, in the coordinates of the matrix."""
    size, strength = 3, 4.0
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    found = bingham.BinghamDirection(span=Fraction(strength), extent=1.0).release_many(np.outer(axis, axis), 2000)

    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)
    assert max(doubts(size, strength, (found @ axis) ** 2)) < 1


def test_three_values_have_their_law():
    """No two eigenvalues alike: second moments against an integral over the sphere."""
    values = np.array([2.0, 0.5, -1.0])
    law = bingham.BinghamLaw(np.eye(3), *bingham.spread_of(values, 1.3))
    found = drawn(law, 40_000) ** 2
    height, around = np.meshgrid(np.linspace(-1, 1, 1001)[:-1] + 1e-3, np.linspace(0, 2 * math.pi, 1001)[:-1], indexing="ij")
    ring = 1 - height**2
    points = np.stack([ring * np.cos(around) ** 2, ring * np.sin(around) ** 2, height**2], axis=-1).reshape(-1, 3)
    weights = np.exp(1.3 * points @ values)
    mean = weights @ points / weights.sum()
    deviation = np.sqrt(weights @ (points - mean) ** 2 / weights.sum())

    assert (np.abs(found.mean(axis=0) - mean) * math.sqrt(len(found)) < NORMAL * deviation).all()


@pytest.mark.parametrize(("size", "strength"), [(3, 30.0), (10, 1e6), (100, 1e7)])
def test_acceptance_is_what_the_closed_form_says(size, strength):
    """At great concentration the share of kept proposals is the closed form, within a normal bound."""
    law = spike(size, strength) if size > 3 else spike(size, 1e6)
    count = 2_000_000 // size
    share = len(bingham.draw_accepted(law, count, entropy())) / count
    expected = bingham.least_acceptance(size)

    assert abs(share - expected) * math.sqrt(count) < NORMAL * math.sqrt(expected * (1 - expected)) + 0.01 * math.sqrt(count)


# ---- ε from below -------------------------------------------------------------------------------------------------------

EPSILON = 1.0
SIZE, RECORDS = 3, 1
DRAWS = 20_000
EDGE = 0.18
"""An event: the squared cosine lies below where this share of the wrong law's draws lies, one record being absent."""


def lower_bound(fewer, more, threshold):
    """ε that draws prove, with confidence 1 − ALARM: log of the least over the greatest probability of the event."""
    first, second = int((fewer < threshold).sum()), int((more < threshold).sum())
    least = betaincinv(first, len(fewer) - first + 1, ALARM / 2)
    most = betaincinv(second + 1, len(more) - second, 1 - ALARM / 2)
    return math.log(least / most)


def worlds():
    """Squared cosines with one and with two equal records on the axis, at the β of ε = 1 (R = 1: a record comes or goes)."""
    return [drawn(spike(SIZE, EPSILON * count), DRAWS)[:, 0] ** 2 for count in (RECORDS, RECORDS + 1)]


def threshold_of(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(bingham, "log_acceptance", inverted)
        return float(np.quantile(worlds()[0], EDGE))


def test_an_audit_does_not_exceed_the_claim(monkeypatch):
    """One record changes no event's probability by more than e^ε, as far as draws can tell."""
    threshold = threshold_of(monkeypatch)
    fewer, more = worlds()

    assert lower_bound(fewer, more, threshold) <= EPSILON
    assert lower_bound(1 - more, 1 - fewer, 1 - threshold) <= EPSILON


def test_the_audit_refuses_the_inverted_sign(monkeypatch):
    """The wrong law costs more than ε = 1, provably, on the same two tables."""
    threshold = threshold_of(monkeypatch)
    monkeypatch.setattr(bingham, "log_acceptance", inverted)
    fewer, more = worlds()

    assert lower_bound(fewer, more, threshold) > EPSILON
