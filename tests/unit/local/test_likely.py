"""Counts seen all together: at least 0 and adding up; that they err less is in tests/statistical."""

import numpy as np
import pytest

import curador as cu
from curador.local.estimate import likely_counts


def test_counts_add_up_and_are_not_negative():
    """A table with large negative estimates, errors of 0 and one value that holds everything."""
    counts = np.array([-500.0, 1200.0, 0.0, -3.0])
    made = likely_counts(counts, np.array([100.0, 100.0, 0.0, 100.0]), 1000.0)

    assert made.min() >= 0
    assert made.sum() == pytest.approx(1000.0)
    assert made.argmax() == 1


def test_without_noise_nothing_changes():
    """Where the errors are far below the counts the estimates stay what they are, to the width of the grid's points."""
    counts = np.array([100.0, 300.0, 600.0])

    assert likely_counts(counts, np.full(3, 1.0), 1000.0) == pytest.approx(counts, abs=3.1)


def test_an_estimate_gives_its_likely_counts():
    """The method is the function."""
    protocol = cu.local.Direct(10, epsilon=1)
    found = protocol.estimate(protocol.privatise([1, 2, 3] * 100))

    assert found.likely() == pytest.approx(likely_counts(found.counts, found.standard_errors, 300))
