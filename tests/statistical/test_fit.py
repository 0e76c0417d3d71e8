"""χ² against exact laws: right samplers pass, a scale off by a twentieth does not, cells are the laws they claim to be."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from curador.audit import fit
from curador.randomness.entropy import entropy
from curador.randomness.noise import gaussian, laplace

SCALES = [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(1000), Fraction(2**40)]
ALARM = 1e-9
SIZE = 200_000


def p_value(cells, outputs):
    return fit.goodness(cells.counts(outputs), cells.probabilities).p


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_noise_has_its_law_and_not_another(scale):
    """The right scale is not rejected, five percent more or less is. False alarms: 1e-9; misses: below 1e-9."""
    cells = fit.laplace_cells(scale)

    assert p_value(cells, laplace(scale).draw(SIZE, entropy())) > ALARM
    assert p_value(cells, laplace(scale * 21 / 20).draw(SIZE, entropy())) < ALARM
    assert p_value(cells, laplace(scale * 19 / 20).draw(SIZE, entropy())) < ALARM


@pytest.mark.parametrize("sigma", SCALES)
def test_gaussian_noise_has_its_law_and_not_another(sigma):
    """The right σ is not rejected, five percent more or less is. False alarms: 1e-9; misses: below 1e-9."""
    cells = fit.gaussian_cells(sigma**2)

    assert p_value(cells, gaussian(sigma**2).draw(SIZE, entropy())) > ALARM
    assert p_value(cells, gaussian((sigma * 21 / 20) ** 2).draw(SIZE, entropy())) < ALARM
    assert p_value(cells, gaussian((sigma * 19 / 20) ** 2).draw(SIZE, entropy())) < ALARM


def test_a_shift_by_a_fifteenth_of_the_scale_is_seen():
    """Noise that is centred a little beside the value is rejected. Misses: 1e-54, by the noncentral χ² with λ = 802."""
    scale, shift = Fraction(1000), 64
    cells = fit.laplace_cells(scale, shift=shift)

    assert p_value(cells, laplace(scale).draw(SIZE, entropy()) + shift) > ALARM
    assert p_value(cells, laplace(scale).draw(SIZE, entropy())) < ALARM


def summed(weight, cells, reach):
    """The cells' probabilities by summing every integer."""
    places = np.arange(-reach, reach + 1)
    masses = np.array([weight(int(k)) for k in places], dtype=float)
    cell = np.searchsorted(cells.edges, places, side="right")
    return np.bincount(cell, weights=masses, minlength=len(cells.probabilities)) / masses.sum()


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(37)])
def test_cells_of_laplace_noise_are_sums_of_its_masses(scale):
    """Closed tails against the sum over all integers that matter, with and without a bound."""
    cells, bounded = fit.laplace_cells(scale), fit.laplace_cells(scale, reach=50)

    def weight(k):
        return math.exp(-abs(k) / scale)

    assert summed(weight, cells, 4000) == pytest.approx(cells.probabilities, abs=1e-12)
    assert summed(lambda k: weight(k) if abs(k) <= 50 else 0.0, bounded, 4000) == pytest.approx(
        bounded.probabilities, abs=1e-12
    )


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(5), Fraction(1200)])
def test_cells_of_gaussian_noise_are_sums_of_its_masses(sigma):
    """By sums below σ = 1000, and by the normal law above, to a few parts in ten million."""
    cells = fit.gaussian_cells(sigma**2)
    exact = summed(lambda k: math.exp(-k * k / (2 * sigma**2)), cells, math.ceil(14 * sigma) + 20)

    assert exact == pytest.approx(cells.probabilities, abs=1e-12 if sigma < 1000 else 1e-8)


def test_cells_of_staircase_noise_are_sums_of_its_masses():
    """Stretches of 12 steps that fall after 5, on both sides, 0 counted once."""
    cells = fit.staircase_cells(Fraction(1), 12, 5)

    def weight(k):
        return math.exp(-(abs(k) // 12 + (abs(k) % 12 >= 5)))

    assert summed(weight, cells, 12 * 60) == pytest.approx(cells.probabilities, abs=1e-12)


def test_goodness_is_the_chi_square_tail():
    """The p-value is the upper tail of χ² with one degree less than cells."""
    counts, probabilities = np.array([480, 520]), np.array([0.5, 0.5])
    found = fit.goodness(counts, probabilities)

    assert found.statistic == pytest.approx(1.6)
    assert found.degrees == 1
    assert found.p == pytest.approx(float(mpmath.gammainc(0.5, 0.8, regularized=True)), rel=1e-12)


def test_cells_that_expect_little_are_pooled():
    """No cell that enters the statistic expects fewer than 20."""
    probabilities = np.array([0.001, 0.001, 0.5, 0.48, 0.018])
    found = fit.goodness(np.array([1, 1, 500, 480, 18]), probabilities)

    assert found.degrees == 1
    assert found.p > 0.9


def test_an_impossible_output_rejects_at_once():
    """A count where the law has no mass is proof, not statistics."""
    assert fit.goodness(np.array([10_000, 1]), np.array([1.0, 0.0])).p == 0.0
