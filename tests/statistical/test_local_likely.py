"""Counts seen all together have less error than estimates one by one, and many values are gathered without losing that."""

import numpy as np
import pytest

import curador as cu
from curador.local import estimate
from curador.local.estimate import likely_counts

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


def test_many_values_are_gathered(monkeypatch):
    """Beyond a few thousand values neighbours are fitted together: nearly the same counts as one by one."""
    generator = np.random.default_rng(7)
    counts = np.append(generator.normal(50, 40, 3000), 9000.0)
    errors = np.full(len(counts), 40.0)
    whole = likely_counts(counts, errors, counts.sum())
    monkeypatch.setattr(estimate, "_CELLS", 1000)

    assert likely_counts(counts, errors, counts.sum()) == pytest.approx(whole, abs=12.0)
