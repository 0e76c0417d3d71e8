"""The law of discrete Gaussian noise on coarse grids, by the dual series, against sums over its atoms with 50 digits."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from truth import MP

import curador.privacy.laws.gaussian as module
from curador.privacy.laws.gaussian import SMALLEST, DiscreteGaussianLaw

DRAW = random.Random(5)
CASES = [
    (SMALLEST, 1, 0.7, 0.31),
    (SMALLEST, 3, 0.1666, 2.5),
    (Fraction(1, 4), 1, 3.5, 0.05),
    (Fraction(399, 100), 1, 8.5, 0.2),
    (Fraction(4), 2, 1.25, 0.4),
    *(
        (Fraction(DRAW.randint(63, 9000), 1000), DRAW.randint(1, 40), 10 ** DRAW.uniform(-3, 1.3), 10 ** DRAW.uniform(-3, 1))
        for _ in range(12)
    ),
]


def moment(sigma2, shift, s):
    """Return log M(s), atom by atom."""
    s2 = MP.mpf(sigma2.numerator) / sigma2.denominator
    middle = -int(MP.nint(MP.re(s) * shift))
    reach = int(40 * MP.sqrt(s2)) + 12
    weight = MP.fsum(MP.exp(-(MP.mpf(k) ** 2) / (2 * s2)) for k in range(-reach, reach + 1))
    terms = [
        MP.exp(-(MP.mpf(k) ** 2) / (2 * s2) + s * (MP.mpf(shift) ** 2 - 2 * k * shift) / (2 * s2))
        for k in range(middle - reach, middle + reach + 1)
    ]
    return MP.fsum(terms) / weight


def faults(sigma2, shift, theta, step, size=14, count=1):
    """Return how many frequencies, and the scale, lie outside their stated errors."""
    law = DiscreteGaussianLaw((sigma2,), (shift,), np.array([float(count)]))
    found = law.transform(theta, step, size)
    whole = moment(sigma2, shift, MP.mpf(theta))
    wrong = abs(MP.mpf(found.log_scale) - MP.log(whole)) > found.log_error
    wrong += float(law.log_moment(np.array([theta]))[0]) < MP.log(whole)
    for k in range(size):
        true = moment(sigma2, shift, MP.mpc(theta, MP.mpf(step) * k)) / whole
        value = MP.exp(MP.mpc(found.value[k]))
        room = MP.exp(MP.mpf(found.bound[k])) - abs(value)
        wrong += abs(value - true) > room + MP.mpf(10) ** -300
    return int(wrong)


@pytest.mark.parametrize(("sigma2", "shift", "theta", "step"), CASES)
def test_transform_and_moment_hold_the_sums_over_atoms(sigma2, shift, theta, step):
    """φ lies within its error at every frequency, log M within its own, and `log_moment` is above."""
    assert faults(sigma2, shift, theta, step) == 0


def test_errors_are_of_the_size_of_round_off():
    """The stated error is below 1e-12 of 1 where nothing is large."""
    law = DiscreteGaussianLaw((Fraction(1, 2),), (1,), np.ones(1))
    found = law.transform(0.5, 0.3, 20)
    assert np.all(np.exp(found.bound) - np.abs(np.exp(found.value)) < 1e-12)
    assert found.log_error < 1e-13


@pytest.mark.parametrize("bug", ["one term beside the nearest is left out", "ϑ(θΔ) is taken for 1"])
def test_a_series_cut_too_short_is_seen(bug, monkeypatch):
    """Seeded bugs: fewer terms, or a denominator of 1."""
    monkeypatch.setattr(module, *(("_FAR", 4.0) if bug.startswith("one term") else ("_FLAT", 0.0)))
    assert faults(Fraction(1, 4), 1, 0.3, 0.7) > 0
