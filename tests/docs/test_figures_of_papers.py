"""What figures of papers show is what formulas say, and the example of a ledger adds up."""

import math

import matplotlib as mpl
import numpy as np
import pytest
from example_ledger import example_log
from laplace_bits import in_floats, reachable_floats
from laplace_laws import laplace_density, laplace_laws
from posteriors import posteriors
from renyi_budgets import renyi_budgets
from scipy import special

import curador as cu
from curador.plots.budget import spending


def lines(axes):
    """The explained lines by their names."""
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_laplace_densities_have_their_peaks_and_areas():
    """1/2b at μ, e times less a scale away, and an area of 1."""
    _, moved, widened = laplace_laws().axes
    for name, line in [*lines(moved).items(), *lines(widened).items()]:
        location = float(name.removeprefix("μ = ").replace("−", "-")) if "μ" in name else 0.0
        scale = float(name.removeprefix("b = ")) if "b" in name else 1.0
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())

        assert abs(x[np.argmax(y)] - location) < 0.03
        assert y.max() == pytest.approx(1 / (2 * scale), rel=0.02)
        assert np.interp(location + scale, x, y) == pytest.approx(math.exp(-1) / (2 * scale), rel=1e-3)

    places = np.linspace(-200, 200, 400_001)
    assert np.trapezoid(laplace_density(places, location=1.5, scale=3), places) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"scale": math.nan}, {"location": math.inf}])
def test_a_law_that_is_none_is_refused(wrong):
    with pytest.raises(cu.InvalidParameter, match="must be"):
        laplace_density(np.zeros(1), **wrong)


@pytest.mark.slow
def test_renyi_budgets_are_the_closed_forms():
    """Of randomized response, Laplace and Gaussian noise, at every order that is drawn."""
    response, laplace, gaussian = renyi_budgets(truths=["0.7"], scales=["2"], deviations=["3"]).axes
    alpha = np.asarray(lines(response)["p = 0.7"].get_xdata())[1:]
    p, t = 0.7, 0.5
    told = np.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (alpha - 1)
    grown = alpha / (2 * alpha - 1) * np.exp((alpha - 1) * t) + (alpha - 1) / (2 * alpha - 1) * np.exp(-alpha * t)

    np.testing.assert_allclose(lines(response)["p = 0.7"].get_ydata()[1:], told, rtol=1e-6)
    np.testing.assert_allclose(lines(laplace)["b = 2"].get_ydata()[1:], np.log(grown) / (alpha - 1), rtol=1e-6)
    np.testing.assert_allclose(lines(gaussian)["σ = 3"].get_ydata()[1:], alpha / 18, rtol=1e-9)
    assert [line.get_ydata()[0] for line in response.get_lines()[1:]] == pytest.approx([math.log(7 / 3)])


def test_beliefs_are_bayes_rule():
    """Odds times e^±ε; under Gaussian noise log odds are N(μ²/2, μ²)."""
    left, right = posteriors(epsilons=["1"], deviations=["2"]).axes
    high, low = (line for line in left.get_lines() if len(line.get_xdata()) > 2)
    prior = np.asarray(high.get_xdata())
    odds = prior / (1 - prior)

    np.testing.assert_allclose(high.get_ydata(), odds * math.e / (1 + odds * math.e), rtol=1e-9)
    np.testing.assert_allclose(low.get_ydata(), odds / math.e / (1 + odds / math.e), rtol=1e-9)
    (line,) = right.get_lines()
    level = np.asarray(line.get_xdata())
    expected = special.ndtr(0.25 - np.log(level / (1 - level)) / 0.5)
    np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-6, atol=1e-9)


def test_noise_in_floats_reaches_other_floats_from_each_answer():
    """Near 0.1 the answers 0 and 1 give 14 and 6 floats, give or take what logarithms differ by; few are the same."""
    zero, one = (in_floats(value, 0.1, 120 * np.spacing(0.1)) for value in (0, 1))

    assert (len(zero), len(one)) == (pytest.approx(14, abs=2), pytest.approx(6, abs=1))
    assert np.isin(zero, one).sum() <= 3
    assert (np.ldexp(one, 53) == np.floor(np.ldexp(one, 53))).all()


def test_the_floats_drawn_are_those_that_numpy_draws():
    """Every output of NumPy's Laplace near a place is one of the floats that the picture would mark there."""
    drawn = np.random.default_rng().laplace(size=200)
    held = [any(abs(output - near) <= np.spacing(abs(output)) for near in in_floats(0, output, 1e-15)) for output in drawn]

    assert all(held)


def test_the_figure_of_floats_marks_both_answers():
    """Two panels, a row for each answer."""
    drawn = reachable_floats()

    assert len(drawn.axes) == 2
    for axes in drawn.axes:
        assert [label.get_text() for label in axes.get_yticklabels()] == ["answer 0", "answer 1"]
        assert len(axes.collections) == 2


def test_the_example_is_a_ledger_that_adds_up():
    """Thirteen charges of which one came back: 66 % of ρ, 36 % of the δ of keys."""
    lines, limit = example_log()
    found = spending(lines)
    totals = {name: sum(row[-1] for row in rows) for name, rows in found.sums.items()}

    assert float(totals["rho"] / limit.rho) == pytest.approx(0.66, abs=1e-9)
    assert float(totals["delta"] / limit.delta) == pytest.approx(0.36, abs=1e-9)
    assert (found.charges, found.returned) == (13, 1)


@pytest.mark.parametrize("draw", [laplace_laws, posteriors, reachable_floats, renyi_budgets])
def test_the_callers_style_comes_back(draw):
    """Drawing changes nothing for the figures of others."""
    before = dict(mpl.rcParams)
    draw()

    assert dict(mpl.rcParams) == before
