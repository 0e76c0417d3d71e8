"""Noise on vectors against brute force: theorem 9 in exact rationals, the vector record against 60 digits.

The rational part needs no logarithm: with r = e^(−1/scale) any rational in (0, 1), every probability and every e^(−L) is
rational, and so is δ at a rational e^ε.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import truth

from curador.privacy.losses import DiscreteGaussianVectorLoss, DiscreteLaplaceLoss


def partitions(total, most, largest=None):
    """All ways to write `total` as at most `most` positive integers, the largest first."""
    if total == 0:
        yield ()
    elif most:
        for first in range(min(total, largest or total), 0, -1):
            for rest in partitions(total - first, most - 1, first):
                yield (first, *rest)


# ---- theorem 9, exactly -----------------------------------------------------------------------------------------------

RATIOS = [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)]
MOST = 6
EACH_RATIO = pytest.mark.parametrize("ratio", RATIOS, ids=str)


def moved(ratio, shift):
    """{k: P-mass of the outputs with e^(−L) = r^k} of one integer, place by place; the outer tails are geometric sums."""
    law = defaultdict(Fraction)
    peak = (1 - ratio) / (1 + ratio)
    first, last = min(0, shift) - 2, max(0, shift) + 2
    for place in range(first, last + 1):
        law[abs(place - shift) - abs(place)] += peak * ratio ** abs(place)
    law[shift] += peak * ratio ** (1 - first) / (1 - ratio)
    law[-shift] += peak * ratio ** (last + 1) / (1 - ratio)
    return dict(law)


def vector(ratio, shifts):
    """The same of several integers with noise of their own."""
    law = {0: Fraction(1)}
    for shift in shifts:
        joint = defaultdict(Fraction)
        for (first, mass), (second, other) in itertools.product(law.items(), moved(ratio, shift).items()):
            joint[first + second] += mass * other
        law = dict(joint)
    return law


def dominates(first, second, ratio):
    """Whether the first law has at least the second's δ at every ε.

    δ = Σ P (1 − e^ε r^k)₊ is piecewise linear in e^ε, 1 at e^ε = 0 and 0 in the end: the kinks e^ε = r^(−k) decide.
    """

    def delta(law, growth):
        return sum(mass * max(1 - growth * ratio**power, 0) for power, mass in law.items())

    kinks = {ratio**-power for power in (*first, *second)}
    return all(delta(first, growth) >= delta(second, growth) for growth in kinks)


@EACH_RATIO
def test_the_brute_force_laws_are_laws(ratio):
    """Probabilities add up to 1, and so do those of the other world, E[e^(−L)] = 1."""
    for shifts in ((1,), (4,), (-3,), (2, 1), (1, -2, 3)):
        law = vector(ratio, shifts)
        assert sum(law.values()) == 1
        assert sum(mass * ratio**power for power, mass in law.items()) == 1
        assert law == vector(ratio, [abs(shift) for shift in shifts])


@EACH_RATIO
def test_one_integer_moved_by_the_total_dominates_every_split(ratio):
    """A vector that moves by A in l1 loses no more than one integer that moves by A, at every ε, exactly."""
    for total in range(1, MOST + 1):
        single = moved(ratio, total)
        assert all(dominates(single, vector(ratio, split), ratio) for split in partitions(total, 3))
        assert all(dominates(moved(ratio, total + 1), vector(ratio, split), ratio) for split in partitions(total, 3))


@EACH_RATIO
def test_the_check_catches_wrong_claims(ratio):
    """No split dominates the single move, and the l2 length in place of the l1 length is too short a move."""
    for total in range(2, MOST + 1):
        for split in partitions(total, 3):
            if len(split) > 1:
                assert not dominates(vector(ratio, split), moved(ratio, total), ratio)
                assert not dominates(moved(ratio, total - 1), vector(ratio, split), ratio)
    assert not dominates(moved(ratio, math.isqrt(3**2 + 3**2) + 1), vector(ratio, (3, 3)), ratio)


@EACH_RATIO
def test_the_survival_functions_cross_once(ratio):
    """The table of the proof: P[M ≥ j] of two moves, and its one crossing with that of the single move."""
    for a, b in ((1, 1), (1, 4), (2, 3), (3, 3)):
        law, signs = vector(ratio, (a, b)), []
        for j in range(1, a + b + 1):
            survival = sum(mass for power, mass in law.items() if (a + b - power) // 2 >= j)
            scaled = survival * ratio**-j * (1 + ratio) ** 2
            if j <= a:
                assert scaled == (1 + ratio) + 1 + (j - 1) * (1 - ratio)
            elif j <= b:
                assert scaled == 2 + (a - 1) * (1 - ratio)
            else:
                assert scaled == 1 + (a + b - j) * (1 - ratio)
            signs.append(scaled >= 1 + ratio)
        assert signs[0]
        assert not signs[-1]
        assert signs == sorted(signs, reverse=True)


@pytest.mark.parametrize("scale", ["1/2", "3", "40"])
@pytest.mark.parametrize("split", [(1, 1), (3, 1), (2, 2, 2)], ids=str)
def test_the_laplace_record_covers_vectors(scale, split):
    """What the record proves for an l1 sensitivity is at least the truth of every split, and at ε = 0 less than twice it."""
    scale, total = Fraction(scale), sum(split)
    law = truth.compose_all([(truth.discrete_laplace(scale, shift), 1) for shift in split])
    record = DiscreteLaplaceLoss(scale=scale, sensitivity=total)
    for share in (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)):
        epsilon = share * total / scale
        true = truth.terms_curve(law)(epsilon)
        assert record.delta(epsilon) >= true
        assert truth.terms_curve(truth.discrete_laplace(scale, total))(epsilon) >= true
    assert record.delta(0) <= 2 * truth.terms_curve(law)(0)


# ---- the vector record against brute force ----------------------------------------------------------------------------

SIGMA2 = {"0.3": 1.3, "1": 1.15, "4": 1.12, "30": 1.07}
"""How much larger the certified ε may be than one that is attained, by σ²."""
CASES = [(4, 2), (5, 2), (4, 4), (6, 3), (9, 2)]
EACH_SIGMA2 = pytest.mark.parametrize("sigma2", [*list(SIGMA2)[:-1], pytest.param("30", marks=pytest.mark.slow)])
EXACT = [(1, 5), (2, 2), (3, 2), (3, 3), (7, 1), (9, 1)]
TARGET = Fraction(1, 10**6)


def shifts_within(squared, dimension):
    """All integer vectors with |v|² ≤ `squared`, up to signs and order, but for those with a smaller entry to spare."""
    found = []
    for entries in itertools.combinations_with_replacement(range(math.isqrt(squared), -1, -1), dimension):
        room = squared - sum(entry * entry for entry in entries)
        if room >= 0 and min(2 * entry + 1 for entry in entries) > room:  # no entry can grow: the longer move dominates
            found.append(tuple(entry for entry in entries if entry))
    return found


@cache
def curve(sigma2, shift, count=1):
    """δ of one integer vector, with 60 digits."""
    law = truth.compose_all([(truth.discrete_gaussian(Fraction(sigma2), entry), 1) for entry in shift])
    return truth.terms_curve(truth.power(law, count))


def worst(sigma2, squared, dimension, epsilon, count=1):
    """The largest δ of all the integer vectors."""
    return max(curve(sigma2, shift, count)(epsilon) for shift in shifts_within(squared, dimension))


def test_the_brute_force_sees_all_directions():
    """The worst vectors of squared length at most 5 and 9 are those that one finds by hand."""
    assert shifts_within(5, 2) == [(2, 1)]
    assert shifts_within(4, 4) == [(2,), (1, 1, 1, 1)]
    assert shifts_within(9, 2) == [(3,), (2, 2)]
    assert shifts_within(6, 3) == [(2, 1, 1)]


@EACH_SIGMA2
@pytest.mark.parametrize(("squared", "dimension"), CASES)
def test_the_vector_record_encloses_the_worst_shift(sigma2, squared, dimension):
    """At every ε the certified δ is at least that of every shift, the lower end at most the worst; ε is tight as stated."""
    record = DiscreteGaussianVectorLoss(sigma2=sigma2, sensitivity_squared=squared, dimension=dimension)
    for epsilon in ("0", "0.3", "1.7", "6"):
        lower, upper = record.delta_interval(epsilon)
        truth_here = worst(sigma2, squared, dimension, Fraction(epsilon))
        assert lower <= truth_here <= upper
        assert record.delta(epsilon) >= truth_here
    lower, upper = record.epsilon_interval(TARGET)
    assert worst(sigma2, squared, dimension, upper) <= truth.number(TARGET)
    assert worst(sigma2, squared, dimension, lower) >= truth.number(TARGET) * (1 - 1e-9)
    assert upper <= SIGMA2[sigma2] * lower


@EACH_SIGMA2
@pytest.mark.parametrize(("squared", "dimension"), EXACT)
def test_short_shifts_and_single_entries_are_exact(sigma2, squared, dimension):
    """Where one shift is the worst the interval is as narrow as for one integer, and holds the truth."""
    record = DiscreteGaussianVectorLoss(sigma2=sigma2, sensitivity_squared=squared, dimension=dimension)
    assert len(shifts_within(squared, dimension)) == 1
    for epsilon in ("0", "0.3", "1.7"):
        lower, upper = record.delta_interval(epsilon)
        assert lower * (1 - 1e-12) <= worst(sigma2, squared, dimension, Fraction(epsilon)) <= upper * (1 + 1e-12)
        assert upper - lower <= 1e-9 * upper


@pytest.mark.parametrize("sigma2", ["1", pytest.param("7", marks=pytest.mark.slow)])
def test_several_vectors_together(sigma2):
    """Two releases, moved by the same shift or by different ones, are covered, and the lower end is attained."""
    record = 2 * DiscreteGaussianVectorLoss(sigma2=sigma2, sensitivity_squared=4, dimension=4)
    mixed = [(truth.discrete_gaussian(Fraction(sigma2), 2), 1), (truth.discrete_gaussian(Fraction(sigma2), 1), 4)]
    for epsilon in ("0.5", "3"):
        lower, upper = record.delta_interval(epsilon)
        together = truth.terms_curve(truth.compose_all(mixed))(Fraction(epsilon))
        assert lower <= max(worst(sigma2, 4, 4, Fraction(epsilon), 2), together) <= upper


def test_the_gaussian_of_the_same_length_is_no_bound():
    """Why the law above is a narrower Gaussian: with μ² = S/σ² itself some shift would lose more than was claimed."""
    sigma2, epsilons = "0.3", [Fraction(tenth, 10) for tenth in range(0, 400, 7)]
    mu = truth.MP.sqrt(4 / truth.number(Fraction(sigma2)))
    excess = [worst(sigma2, 4, 4, epsilon) - truth.gaussian_delta(mu, epsilon) for epsilon in epsilons]
    assert max(excess) > 0


# ---- subsampled vectors, on a grid of floats --------------------------------------------------------------------------

LONG = DiscreteGaussianVectorLoss(sigma2=5000, sensitivity_squared=4500, dimension=2)
RATE = 0.2
EPSILONS = (0.0, 0.1, 0.5, 1.2)


def density(*centres):
    """Masses of discrete Gaussian noise of σ² = 5000 on two integers, about each centre, by the plain formula."""
    places = np.arange(-660, 661, dtype=np.float64)  # at least 7 σ beyond every centre
    for x, y in centres:
        rows, columns = (np.exp(-((places - centre) ** 2) / 10_000) for centre in (x, y))
        yield np.outer(rows / rows.sum(), columns / columns.sum())


def hockey_stick(p, q, epsilon):
    """Σ (p − e^ε q)₊."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.slow
def test_poisson_samples_of_vectors_are_covered():
    """A person sampled or not, in either direction: every shift within the length is covered, the longest nearly attained."""
    sampled = LONG.subsample(rate=Fraction(RATE))
    certified = {epsilon: sampled.delta_interval(Fraction(epsilon)) for epsilon in EPSILONS}
    for shift in ((60, 30), (67, 0), (-30, 60)):
        plain, far = density((0, 0), shift)
        mixed = (1 - RATE) * plain + RATE * far
        for epsilon, (lower, upper) in certified.items():
            true = max(hockey_stick(mixed, plain, epsilon), hockey_stick(plain, mixed, epsilon))
            assert true <= upper + 1e-12
            if shift != (67, 0):
                assert lower - 1e-12 <= true
                assert upper <= 1.02 * true + 1e-9


@pytest.mark.slow
def test_replacing_a_person_in_a_poisson_sample_is_covered():
    """Two people's vectors at any angle are covered; only opposite ones attain it."""
    sampled = LONG.subsample(rate=Fraction(RATE), adjacency="replace_one")
    certified = {epsilon: sampled.delta_interval(Fraction(epsilon)) for epsilon in EPSILONS}
    plain, first = density((0, 0), (60, 30))
    for second in ((-60, -30), (-30, 60), (30, 60), (0, 0), (60, -30)):
        (far,) = density(second)
        for epsilon, (lower, upper) in certified.items():
            one, other = ((1 - RATE) * plain + RATE * image for image in (first, far))
            true = max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))
            assert true <= upper + 1e-12
            assert (lower - 1e-12 <= true) == (second == (-60, -30))


@pytest.mark.slow
def test_groups_in_a_poisson_sample_are_covered():
    """Two people whose vectors are at any angle are covered; only parallel ones attain it."""
    sampled = LONG.subsample(rate=Fraction(RATE)).group(2)
    certified = {epsilon: sampled.delta_interval(Fraction(epsilon)) for epsilon in EPSILONS}
    for second in ((60, 30), (-30, 60), (-60, -30), (30, 60)):
        plain, one, other, both = density((0, 0), (60, 30), second, (60 + second[0], 30 + second[1]))
        mixed = (1 - RATE) ** 2 * plain + RATE * (1 - RATE) * (one + other) + RATE**2 * both
        for epsilon, (lower, upper) in certified.items():
            true = max(hockey_stick(mixed, plain, epsilon), hockey_stick(plain, mixed, epsilon))
            assert true <= upper + 1e-12
            assert (lower - 1e-12 <= true) == (second == (60, 30))
