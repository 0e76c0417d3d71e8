"""Counts seen all together: at least 0, adding up, and with less error than the estimates one by one."""

import numpy as np
import pytest

import curador as cu
from curador.local import likely
from curador.local.likely import likely_counts

pytestmark = pytest.mark.slow  # as a family

PEOPLE, VALUES = 10_000, 100


def truths():
    zipf = 1 / np.arange(1, VALUES + 1)
    return {"uniform": np.full(VALUES, PEOPLE / VALUES), "zipf": PEOPLE * zipf / zipf.sum()}


def cut_and_scaled(counts):
    kept = np.maximum(counts, 0)
    return PEOPLE * kept / kept.sum()


def nearest(counts, errors):
    made = cu.local.Estimate(range(VALUES), counts, errors, counts, counts, PEOPLE, 0, 0)
    return made.consistent()


@pytest.mark.parametrize("name", ["uniform", "zipf"])
@pytest.mark.parametrize("error", [30.0, 120.0, 400.0])
def test_less_error_than_the_nearest_table_and_than_cutting(name, error):
    """Fixed seeds: the mean squared error over 20 tables is below that of both common ways."""
    truth = truths()[name]
    generator = np.random.default_rng(5)
    found = np.zeros(3)
    for _ in range(20):
        counts = truth + error * generator.standard_normal(VALUES)
        errors = np.full(VALUES, error)
        tables = (likely_counts(counts, errors, PEOPLE), nearest(counts, errors), cut_and_scaled(counts))
        found += [np.mean((table - truth) ** 2) for table in tables]

    assert found[0] < min(found[1:])


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


def test_many_values_are_gathered(monkeypatch):
    """Beyond a few thousand values neighbours are fitted together: nearly the same counts as one by one."""
    generator = np.random.default_rng(7)
    counts = np.append(generator.normal(50, 40, 3000), 9000.0)
    errors = np.full(len(counts), 40.0)
    whole = likely_counts(counts, errors, counts.sum())
    monkeypatch.setattr(likely, "_CELLS", 1000)

    assert likely_counts(counts, errors, counts.sum()) == pytest.approx(whole, abs=12.0)


def test_an_estimate_gives_its_likely_counts():
    """The method is the function."""
    protocol = cu.local.Direct(10, epsilon=1)
    found = protocol.estimate(protocol.privatise([1, 2, 3] * 100))

    assert found.likely() == pytest.approx(likely_counts(found.counts, found.standard_errors, 300))
