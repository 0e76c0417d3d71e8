"""Figures: values in, a figure out, and what it shows is the law."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import curador as cu
from curador.plots.law import laws
from curador.plots.style import style

SCORES, MOVED = [0, 1, 3, 3.5], [1, 0, 2, 4.5]
AGES = [20, 30, 40, 50, 60]
BOUNDS = {"lower": 0, "upper": 100, "adjacency": "add_or_remove_one", "cells": 201}

CASES = {
    "Laplace": (cu.Laplace(scale=1, sensitivity=1), 0, 1),
    "Gaussian": (cu.Gaussian(sigma=2, sensitivity=1), 0, 1),
    "DiscreteLaplace": (cu.DiscreteLaplace(scale=2, sensitivity=1), 5, 6),
    "DiscreteGaussian": (cu.DiscreteGaussian(sigma=2, sensitivity=1), 5, 6),
    "Staircase": (cu.Staircase(epsilon=2, sensitivity=1, grid="0.0625"), 0, 1),
    "TruncatedLaplace": (cu.TruncatedLaplace(scale=1, reach=4, sensitivity=1), 0, 1),
    "RandomizedResponse": (cu.RandomizedResponse(epsilon=1, categories=4), 1, 3),
    "Exponential": (cu.Exponential(epsilon=1, sensitivity=1), SCORES, MOVED),
    "PermuteAndFlip": (cu.PermuteAndFlip(epsilon=1, sensitivity=1), SCORES, MOVED),
    "NoisyMax": (cu.NoisyMax(epsilon=1, sensitivity=1), SCORES, MOVED),
    "AboveThreshold": (cu.AboveThreshold(epsilon=1, sensitivity=1, threshold=3), [1, 2, 3, 4], [2, 3, 2, 3]),
    "Quantile": (cu.Quantile(q="0.5", epsilon=1, **BOUNDS), AGES, [*AGES, 90]),
    "GaussianKeys": (cu.GaussianKeys(sigma=2, threshold=8, keys=1), 7, 8),
    "LaplaceKeys": (cu.LaplaceKeys(epsilon=1, delta="1e-3", keys=1), 7, 8),
    "OptimalKeys": (cu.OptimalKeys(epsilon=1, delta="1e-3"), 6, 7),
}
PURE = [name for name, (mechanism, _, _) in CASES.items() if mechanism.loss.pure_epsilon is not None]
DRAWN_SLACK = 0.1
"""Shares of 200,000 draws, each at least 0.07 here: a log ratio is off by more than 8 of its deviations, below 1e-13."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_every_mechanism_has_a_figure_of_two_panels(name):
    """The laws above, the evidence below, on one axis, under the mechanism's own words."""
    mechanism, one, other = CASES[name]
    drawn = cu.plots.law(mechanism, one, other)

    assert isinstance(drawn, Figure)
    top, bottom = drawn.axes
    assert top.get_title(loc="left") == repr(mechanism)
    assert bottom.get_ylabel() == "log ratio"
    assert top.get_xlim() == bottom.get_xlim()
    assert len(top.get_legend().get_texts()) >= 2


def test_every_public_mechanism_is_drawn():
    """A new mechanism joins the cases above, or this fails."""
    assert set(CASES) == set(cu.mechanisms.__all__) - {"Selection"}


@pytest.mark.slow
@pytest.mark.parametrize("name", PURE)
def test_no_evidence_goes_beyond_the_claim(name):
    """The logarithm of the ratio drawn is within ε wherever both worlds give the output."""
    mechanism, one, other = CASES[name]
    first, second = laws(mechanism, one, other).masses
    both = (first > 0) & (second > 0)
    slack = DRAWN_SLACK if name == "AboveThreshold" else 1e-6

    assert both.all()
    assert np.abs(np.log(first[both] / second[both])).max() <= float(mechanism.loss.pure_epsilon) + slack


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Laplace", "DiscreteLaplace", "Staircase", "RandomizedResponse"])
def test_the_claim_is_reached(name):
    """Where noise spends all of ε the picture shows it: a flattened curve would fail here."""
    mechanism, one, other = CASES[name]
    first, second = laws(mechanism, one, other).masses

    assert np.abs(np.log(first / second)).max() == pytest.approx(float(mechanism.loss.pure_epsilon), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_drawn_is_a_law(name):
    """Bars add up to 1, and so does the area under a curve, but for its tails."""
    mechanism, one, other = CASES[name]
    found = laws(mechanism, one, other)
    for masses in found.masses:
        total = np.trapezoid(masses, found.places) if found.smooth else masses.sum()

        assert total == pytest.approx(1, abs=0.02)


def test_the_log_ratio_drawn_is_that_of_the_masses():
    """The bars of the second panel have the heights of the logarithms."""
    mechanism, one, other = CASES["Exponential"]
    found = laws(mechanism, one, other)
    bars = [bar.get_height() for bar in cu.plots.law(mechanism, one, other).axes[1].patches]

    assert bars == pytest.approx(np.log(found.masses[0] / found.masses[1]).tolist())


@pytest.mark.slow
def test_outputs_of_one_world_are_shaded():
    """Truncated noise has an end in each world that the other does not reach; full noise has none."""
    cut, _, _ = CASES["TruncatedLaplace"]
    whole, _, _ = CASES["Laplace"]

    assert len(cu.plots.law(cut, 0, 1).axes[1].patches) == 2
    assert len(cu.plots.law(whole, 0, 1).axes[1].patches) == 0


def test_labels_name_the_candidates():
    """Words of the caller stand below the bars."""
    drawn = cu.plots.law(cu.RandomizedResponse(gamma="0.75"), 0, 1, labels=["no", "yes"])

    assert [label.get_text() for label in drawn.axes[1].get_xticklabels()] == ["no", "yes"]


@pytest.mark.parametrize("wrong", [3, "Laplace", None, cu.Pure(epsilon=1)])
def test_what_is_no_mechanism_is_refused(wrong):
    """One sentence that names the kind of what was given."""
    with pytest.raises(cu.InvalidParameter, match=f"mechanism must be one of curador's; got '{type(wrong).__name__}'"):
        cu.plots.law(wrong, 0, 1)


@pytest.mark.slow
def test_the_callers_style_comes_back():
    """Drawing changes nothing for the figures of others, also where it fails."""
    before = dict(mpl.rcParams)
    cu.plots.law(cu.Laplace(scale=1, sensitivity=1), 0, 1)
    cu.plots.tradeoffs()
    with pytest.raises(cu.InvalidParameter):
        cu.plots.law(3, 0, 1)
    with style():
        assert dict(mpl.rcParams) != before

    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_no_window_system_is_asked_for():
    """A figure is made without pyplot, which would look for a screen; and importing the room loads no matplotlib."""
    program = (
        "import sys, curador as cu; cu.plots.law; assert 'matplotlib' not in sys.modules\n"
        "cu.plots.law(cu.RandomizedResponse(gamma='0.75'), 0, 1).savefig(__import__('io').BytesIO(), format='svg')\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
