"""Figures of learners show what was released, and only that."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from curador.errors import InvalidParameter
from curador.learn import PrivatePCA
from curador.plots.learning import convergence, history, lost_variance, spectrum

STEPS = np.arange(8.0)
KEPT = {
    "step": STEPS * 5,
    "gradient_norm": np.exp(-STEPS),
    "noise_floor": np.full(8, 0.01),
    "nuclear_norm": 1 - np.exp(-STEPS),
    "rank": np.full(8, 3.0),
}


def test_convergence_has_a_panel_for_each_quantity():
    """The noise floor lies in the panel of what it is noise on; steps are those that were kept."""
    drawn = convergence(SimpleNamespace(history_=KEPT))

    assert isinstance(drawn, Figure)
    assert [axes.get_ylabel() for axes in drawn.axes] == ["gradient norm", "nuclear norm", "rank"]
    lines = drawn.axes[0].get_lines()
    assert len(lines) == 2
    np.testing.assert_array_equal(lines[0].get_xdata(), KEPT["step"])
    np.testing.assert_array_equal(lines[0].get_ydata(), KEPT["gradient_norm"])
    np.testing.assert_array_equal(lines[1].get_ydata(), KEPT["noise_floor"])
    assert drawn.axes[0].get_yscale() == "log"
    assert drawn.axes[1].get_yscale() == "linear"
    assert drawn.axes[2].get_ylim() == (0.0, 6.0)


def test_a_history_may_be_a_list_of_steps():
    """What is no number is left out."""
    kept = ({"loss": 1.0, "word": "a", "broken": float("nan")}, {"loss": 0.5, "word": "b", "broken": 1.0})

    assert {name: values.tolist() for name, values in history(SimpleNamespace(history_=kept)).items()} == {"loss": [1.0, 0.5]}
    assert len(convergence(SimpleNamespace(history_=kept)).axes) == 1


@pytest.mark.parametrize("wrong", [None, (), {}, {"a": "text"}, [1.0, 2.0], {"a": []}])
def test_what_has_no_history_is_refused(wrong):
    """One sentence."""
    with pytest.raises(InvalidParameter, match="estimator must be fitted, with a history"):
        convergence(SimpleNamespace(history_=wrong))


def bars(drawn):
    """Return the heights of the bars, by their places."""
    return [bar.get_height() for bar in sorted(drawn.axes[0].patches, key=lambda one: one.get_x())]


@pytest.mark.parametrize("method", ["analyze_gauss", "lanczos", "bingham"])
def test_a_spectrum_is_drawn_against_its_edge(method):
    """Bars are the released variances, marks the corrected ones, the line the edge."""
    table = np.random.default_rng(2).normal(size=(3000, 6)) * [1.0, 0.5, 0.1, 0.1, 0.1, 0.1]
    fitted = PrivatePCA(2, epsilon=1, delta=1e-6, row_norm=2, method=method).fit(table)
    drawn = spectrum(fitted)
    (axes,) = drawn.axes
    edge, marks, _ = axes.get_lines()

    assert bars(drawn) == pytest.approx(fitted.spectrum_.tolist())
    assert set(edge.get_ydata()) == {fitted.noise_edge_}
    np.testing.assert_array_equal(marks.get_ydata(), fitted.explained_variance_)
    assert axes.get_title(loc="left").startswith(f"{method}, ε = 1")
    assert f"{fitted.n_significant_} component" in axes.get_title(loc="left")


@pytest.mark.slow
def test_bars_below_the_edge_are_grey():
    """Also where all of them are, or none."""
    fields = {"spectrum_": np.array([3.0, 2.0, -1.0]), "explained_variance_": np.array([2.9]), "n_significant_": 0}
    for edge, signal in ((10.0, 0), (2.5, 1), (-2.0, 3)):
        drawn = spectrum(SimpleNamespace(**fields, noise_edge_=edge))
        colours = [bar.get_facecolor() for bar in drawn.axes[0].patches]

        assert sum(colour == mpl.colors.to_rgba("#0072B2") for colour in colours) == signal
        assert f"{signal} component{'' if signal == 1 else 's'} above the noise" in drawn.axes[0].get_title(loc="left")


@pytest.mark.parametrize("wrong", [3, PrivatePCA(epsilon=1, delta=0), SimpleNamespace(spectrum_=[1.0])])
def test_what_has_no_spectrum_is_refused(wrong):
    """One sentence that names the kind of what was given."""
    with pytest.raises(InvalidParameter, match=f"pca must be a fitted PrivatePCA; got '{type(wrong).__name__}'"):
        spectrum(wrong)


def test_lost_variance_is_drawn_with_the_spread_of_runs():
    """One line of means for each name; runs have intervals, single numbers have none."""
    runs = np.array([[0.5, 0.1, 0.02], [0.3, 0.2, 0.01], [0.4, 0.15, 0.0]])
    drawn = lost_variance([0.1, 1, 10], {"runs": runs, "one": [0.9, 0.5, 0.1]}, target=0.05)
    (axes,) = drawn.axes

    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "runs"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "1", "10"]
    assert len(axes.containers) == 1
    np.testing.assert_allclose(axes.containers[0].lines[0].get_ydata(), runs.mean(axis=0), rtol=1e-6)
    assert any("target" in text.get_text() for text in axes.texts)


@pytest.mark.parametrize(
    ("epsilons", "losses", "words"),
    [
        ([], {"a": []}, "epsilons must be positive numbers"),
        ([0.0, 1.0], {"a": [0.1, 0.1]}, "epsilons must be positive numbers"),
        ([1.0, 2.0], {}, "losses must be losses by name"),
        ([1.0, 2.0], {"a": [0.1]}, "must be runs of 2 losses"),
        ([1.0, 2.0], {"a": [0.1, -0.1]}, "must be runs of 2 losses"),
        ([1.0, 2.0], {"a": [0.1, float("nan")]}, "must be runs of 2 losses"),
        ([1.0, 2.0], {"a": "ab"}, "must be runs of 2 losses"),
    ],
)
def test_losses_that_are_none_are_refused(epsilons, losses, words):
    """One sentence."""
    with pytest.raises(InvalidParameter, match=words):
        lost_variance(epsilons, losses)


def test_the_callers_style_comes_back():
    """Drawing changes nothing for the figures of others."""
    before = dict(mpl.rcParams)
    convergence(SimpleNamespace(history_=KEPT))
    lost_variance([1.0], {"a": [0.1]})

    assert dict(mpl.rcParams) == before
