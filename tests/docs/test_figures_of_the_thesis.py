"""Figures of the nuclear ball: what they show is what quadrature, brute force and the texts give."""

import math

import numpy as np
import pytest
import thesis
from matplotlib.figure import Figure
from scipy.special import hyp1f1

import curador as cu

RESULTS = {"one": {1000: [0.04, 0.05], 100: [0.1, 0.2]}, "other": {100: [0.01], 1000: [0.0]}}


def root_square_by_sum(steps, eta):
    """The same sum, term by term."""
    total, coefficient = 0.0, 1.0
    for place in range(steps):
        total += coefficient**2 * (1 - eta) ** (2 * place)
        coefficient *= (2 * place + 1) / (2 * place + 2)
    return total


@pytest.mark.parametrize(("dimension", "share"), [(10, 0.138104761), (100, 0.018664942), (1000, 0.001984333)])
def test_shares_at_the_ceiling(dimension, share):
    """About 2/d, by the hypergeometric form and to nine digits."""
    found = float(thesis.shares(dimension, [0.25])[0])
    c = (dimension - 2) / 4
    closed = hyp1f1(1.5, dimension / 2 + 1, c) / (dimension * hyp1f1(0.5, dimension / 2, c))

    assert found == pytest.approx(share, abs=1e-9)
    assert found == pytest.approx(float(closed), rel=1e-8)


@pytest.mark.parametrize(("fraction", "share"), [(0.5, 0.021), (0.6, 0.161), (1.0, 0.499), (5.0, 0.8999)])
def test_shares_follow_the_phases(fraction, share):
    """In a thousand dimensions nothing is found below a half, and 1 − 1/(2f) above."""
    assert float(thesis.shares(1000, [fraction])[0]) == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize("steps", [1, 2, 10, 100, 5000])
def test_root_square_is_its_sum(steps):
    """Directly summed."""
    eta = thesis.decay_of(steps)

    assert thesis.root_square(steps, eta) == pytest.approx(root_square_by_sum(steps, eta), rel=1e-9)


@pytest.mark.slow
def test_far_terms_are_an_integral():
    """Beyond a hundred thousand terms the tail is an integral, to six digits."""
    assert thesis.root_square(400_000, 1e-6) == pytest.approx(root_square_by_sum(400_000, 1e-6), rel=1e-6)


@pytest.mark.parametrize(("steps", "square", "alone"), [(100, 1.84, 4.3), (10_000, 3.09, 31.8), (100_000, 3.75, 90.5)])
def test_correlated_noise_grows_like_a_logarithm(steps, square, alone):
    """k² beside 1/√(2η); what is drawn is within 1.5 % of it, and never below."""
    eta = thesis.decay_of(steps)
    found = thesis.root_square(steps, eta)

    assert found == pytest.approx(square, abs=0.005)
    assert 1 / math.sqrt(2 * eta) == pytest.approx(alone, abs=0.05)
    assert found <= thesis.ladder_factor(steps) <= 1.015 * found


@pytest.mark.slow
@pytest.mark.parametrize(("how", "power"), [("as printed", 19.6), ("composed at once", 9.1), ("correlated", 5.8)])
def test_records_needed(how, power):
    """With as many the noise is what was asked for, with one in ten fewer it is not."""
    needed = thesis.records_needed(how, 0.02)

    assert math.log10(needed) == pytest.approx(power, abs=0.05)
    assert thesis.oracle_noise(how, needed) <= 0.02 < thesis.oracle_noise(how, 0.9 * needed)


def test_noise_as_printed_is_that_of_the_algorithm():
    """σ √(d/T) with σ as Algorithm 3 prints it, computed here from its formula."""
    n, size, delta = 10_000.0, 40, 1e-6
    steps = math.sqrt(n / size)
    each = delta / (n * (steps + 1))
    goal = 1 / (2 * math.sqrt(n * math.log(1 / each)))
    moved = 6 * math.log(n) / n
    sigma = math.sqrt(32 * steps * math.log(1 / each)) * math.log(1.25 / each) * moved / goal

    assert thesis.oracle_noise("as printed", n) == pytest.approx(sigma * math.sqrt(size / steps))


def test_no_number_of_records_is_infinite():
    """An error that nothing reaches."""
    assert thesis.records_needed("as printed", 1e-20) == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("name", ["phases", "ceiling", "needs", "factors"])
def test_figures_are_drawn(name):
    """One panel with a title, axes that are named and a legend."""
    drawn = getattr(thesis, name)()
    (axes,) = drawn.axes

    assert isinstance(drawn, Figure)
    assert axes.get_title(loc="left")
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert len(axes.get_legend().get_texts()) >= 3


@pytest.mark.slow
def test_the_figure_of_needs_marks_where_lines_meet_the_error():
    """A point for each way to pay, at its number of records."""
    (axes,) = thesis.needs(0.02).axes
    points = sorted(line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1)

    assert points == sorted(thesis.records_needed(how, 0.02) for how in thesis.NOISES)


@pytest.mark.slow
def test_runs_are_drawn_by_their_means():
    """Numbers of records in order, means of runs, and a level for what learned nothing."""
    (axes,) = thesis.excess(RESULTS, trivial=0.3).axes
    lines = {line.get_label(): line for line in axes.containers}

    assert lines["one"][0].get_xdata().tolist() == [100, 1000]
    assert lines["one"][0].get_ydata() == pytest.approx([0.15, 0.045])
    assert min(lines["other"][0].get_ydata()) > 0
    assert any(np.allclose(line.get_ydata(), 0.3) for line in axes.lines)
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"one", "other", "nothing learned"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: thesis.excess({}), "results must be"),
        (lambda: thesis.excess({"one": {}}), "results\\['one'\\] must be"),
        (lambda: thesis.excess({"one": {10: [math.nan]}}), "results\\['one'\\] must be"),
        (lambda: thesis.shares(2, [0.5]), "dimension must be at least 3"),
        (lambda: thesis.oracle_noise("twice", 100), "how must be"),
        (lambda: thesis.oracle_noise("correlated", 1), "records must be at least 8"),
        (lambda: thesis.records_needed("correlated", 0), "error must be above 0"),
        (lambda: thesis.factors(10), "most must be at least 100"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong, said):
    """One sentence."""
    with pytest.raises(cu.InvalidParameter, match=said):
        wrong()
