"""Intervals of means hold as often as they say.

4,000 collections of 250 people each. The share of intervals that hold the mean of these is between 0.93 and 0.97; for a true
coverage of 0.95 ± 0.003 either end is five standard deviations away: a false alarm in 1e-6 or less.
"""

import numpy as np
import pytest

from curador import local

KINDS = (local.LaplaceMean, local.DuchiMean, local.PiecewiseMean, local.HybridMean)
TIMES, PEOPLE = 4_000, 250


def coverage(kind, spread=1.0):
    people = np.random.default_rng(7).random((TIMES, PEOPLE)) * 10 + 5  # within the bounds 0 … 20, mean 10
    protocol = kind(lower=0, upper=20, epsilon=1)
    reports = protocol.privatise(people.ravel()).reshape(TIMES, PEOPLE, -1)
    if reports.shape[2] == 1:
        reports = reports[:, :, 0]
    holds = 0
    for one, truth in zip(reports, people.mean(axis=1), strict=True):
        found = protocol.estimate(np.ascontiguousarray(one))
        middle = (found.low + found.high) / 2
        holds += abs(truth - middle) <= spread * (found.high - found.low) / 2
    return holds / TIMES


@pytest.mark.parametrize("kind", KINDS)
def test_coverage(kind):
    """Between 93 and 97 % for the 95 % interval."""
    assert 0.93 < coverage(kind) < 0.97


def test_a_narrow_interval_is_caught():
    """Four fifths of the width hold 88 % of the time."""
    assert coverage(local.LaplaceMean, spread=0.8) < 0.93
