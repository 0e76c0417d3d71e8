"""The tutorial on the nuclear ball says what was measured, and its formulas are those of the code."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from nuclear_runs import EPSILON, MOST, RECORDS, RUNS, SOLVERS, read, slope
from thesis import records_needed

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "nuclear-ball.md").read_text(encoding="utf-8")


def means():
    nothing, runs = read()
    return nothing, {solver: {n: float(np.mean(values)) for n, values in found.items()} for solver, found in runs.items()}


def test_the_number_for_oja_composed_at_once():
    """The page's 10^8.8: the same account with √d for √d₁ + √d₂, since σ √(d/T) has no other constant."""
    ratio = math.sqrt(40) / (2 * math.sqrt(20))
    needed = records_needed("composed at once", 0.02 / ratio)

    assert f"10^{math.log10(needed):.1f} by a theorem" in PAGE


def test_everything_was_measured():
    """Every solver at every number of records, as often as said, but for those that learn nothing."""
    _, runs = read()

    assert tuple(runs) == SOLVERS
    for solver, found in runs.items():
        assert list(found) == [n for n in RECORDS if n <= MOST.get(solver, n)]
        assert {len(values) for values in found.values()} == {RUNS}
    assert f"ε = {EPSILON}," in PAGE


def test_the_power_that_the_page_prints_is_that_of_the_runs():
    """The exponent of correlated noise between 10,000 and 100,000 records."""
    _, runs = read()
    said = re.search(r"the power (−0\.\d\d)", " ".join(PAGE.split()))

    assert said is not None
    assert slope(runs["toeplitz"], 10_000, 100_000) == pytest.approx(float(said[1].replace("−", "-")), abs=0.005)


def test_what_the_page_says_about_the_lines_is_so():
    """Two lines learn nothing, correlated noise does, and projected gradient is below all others everywhere."""
    nothing, found = means()

    assert min(found["thesis"].values()) > 0.97 * nothing
    assert min(found["stochastic"].values()) > 0.8 * nothing
    assert found["toeplitz"][100_000] < 0.05 * nothing
    for n in RECORDS:
        assert found["pgd"][n] < min(values[n] for solver, values in found.items() if solver != "pgd" and n in values)
        assert found["frank_wolfe"][n] < min(found[solver][n] for solver in ("toeplitz", "tree"))
