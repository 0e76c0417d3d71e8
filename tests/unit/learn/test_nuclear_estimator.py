"""PrivateNuclearRegressor: conventions, refusals, streams, files, forecasts."""

import pickle

import numpy as np
import pytest
from conventions import CONVENTIONS, Case, saved_is_loaded

from curador.errors import InvalidParameter
from curador.learn import PrivateNuclearRegressor, load
from curador.learn.base import Facts
from curador.learn.nuclear.losses import BilinearHuber, BilinearLogistic, bilinear_problem

PROBLEM = bilinear_problem(600, (5, 4), 2, seed=0, test=5000)
DATA = (PROBLEM.train.left, PROBLEM.train.right, PROBLEM.train.targets)
MORE = tuple(np.concatenate([one, one[:1]]) for one in DATA)
FACTS = Facts(3, 4)
SOLVERS = ["pgd", "frank_wolfe", "toeplitz", "tree", "stochastic"]


def made(**changed):
    return PrivateNuclearRegressor(**{"epsilon": 2, "delta": "1e-6", **changed})


def case(**changed):
    settings = {"epsilon": 2, "delta": "1e-6", "adjacency": "add_or_remove_one", "n_nominal": 600, **changed}
    return Case(PrivateNuclearRegressor, settings, DATA, MORE, lambda fitted: fitted.predict(*DATA[:2]))


@pytest.mark.slow
@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("solver", ["pgd", "toeplitz"])
def test_conventions(convention, solver):
    convention(case(solver=solver))


@pytest.mark.parametrize("changed", [{}, {"solver": "frank_wolfe", "matrix_free": True}, {"loss": BilinearHuber(0.5)}])
def test_files(changed, tmp_path):
    if "loss" not in changed:
        saved_is_loaded(case(**changed), tmp_path / "model.json")
    fitted = made(**changed).fit(*DATA)
    fitted.save(tmp_path / "model.json")
    read = load(tmp_path / "model.json")

    assert np.array_equal(read.predict(*DATA[:2]), fitted.predict(*DATA[:2]))
    assert set(read.history_) == set(fitted.history_)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_or_remove_one"])
def test_every_solver_fits(solver, adjacency):
    fitted = made(solver=solver, adjacency=adjacency, n_nominal=600, epsilon=20).fit(*DATA)

    assert fitted.coef_.shape == (5, 4)
    assert np.linalg.svd(fitted.coef_, compute_uv=False).sum() <= 1 + 1e-9
    assert fitted.privacy_.exact
    assert str(fitted.privacy_.adjacency) == adjacency
    assert set(fitted.history_) == {"step", "gradient_norm", "noise_floor", "nuclear_norm", "rank"}
    assert all(np.isfinite(one).all() for one in fitted.history_.values())


@pytest.mark.slow
def test_more_budget_is_a_better_model():
    """At ε = 200 the model is nearly the best, at ε = 0.01 it is nothing."""
    good = made(epsilon=200).fit(*DATA).coef_

    assert PROBLEM.excess(good) < 3e-3
    assert PROBLEM.excess(made(epsilon=0.01).fit(*DATA).coef_) > 5 * PROBLEM.excess(good)


def test_pure_privacy_has_no_delta():
    for solver in ("pgd", "frank_wolfe"):
        card = made(delta=0, solver=solver, epsilon=50).fit(*DATA).privacy_
        assert card.delta == 0
    for solver in ("toeplitz", "tree", "stochastic", "thesis"):
        for nothing in (0, "0"):
            with pytest.raises(InvalidParameter, match="delta must be above 0"):
                made(delta=nothing, solver=solver).fit(*DATA)


def test_a_step_or_a_curvature_may_be_declared():
    for changed in ({"step": 2.0}, {"curvature": 0.3}):
        assert [one.name for one in made(**changed).fit(*DATA).privacy_.releases] == ["gradient"]
    assert made(n_steps=5).fit(*DATA).privacy_.releases[-1].count == 5


@pytest.mark.slow
def test_probabilities_are_predicted_under_the_logistic_loss():
    targets = np.where(DATA[2] > 0, 1.0, -1.0)
    fitted = made(loss=BilinearLogistic(), radius=20.0, epsilon=50).fit(DATA[0], DATA[1], targets)
    found = fitted.predict(*DATA[:2])

    assert ((found > 0) & (found < 1)).all()
    assert ((found > 0.5) == (targets > 0)).mean() > 0.6


@pytest.mark.slow
def test_entries_of_a_matrix():
    draw = np.random.default_rng(1)
    truth = np.outer(draw.normal(size=6), draw.normal(size=5))
    truth *= 6 / np.linalg.norm(truth)
    rows, columns = draw.integers(0, 6, 4000), draw.integers(0, 5, 4000)
    for changed in ({}, {"solver": "frank_wolfe", "matrix_free": True}, {"solver": "toeplitz"}):
        fitted = made(loss="squared(2.0)", radius=6.0, shape=(6, 5), epsilon=100, **changed)
        fitted.fit(rows, columns, truth[rows, columns])
        found = fitted.predict(np.arange(6).repeat(5), np.tile(np.arange(5), 6)).reshape(6, 5)
        assert np.square(found - truth).mean() < 0.5 * np.square(truth).mean()
    with pytest.raises(InvalidParameter, match="shape"):
        fitted.predict(np.array([6]), np.array([0]))


@pytest.mark.slow
def test_a_stream_in_pieces_is_one_release():
    """Whatever the pieces: the same plan, one release, and a model only after the head is full."""
    streamed = made(solver="toeplitz", n_nominal=600, n_steps=100)
    streamed.partial_fit(*(one[:250] for one in DATA))
    assert not streamed.coef_.any()
    for first, last in ((250, 301), (301, 302), (302, 600)):
        streamed.partial_fit(*(one[first:last] for one in DATA))

    assert streamed.coef_.any()
    assert [(one.count, one.numbers) for one in streamed.privacy_.releases] == [(1, 101 * 20)]
    with pytest.raises(InvalidParameter, match="600 records"):
        streamed.partial_fit(*(one[:1] for one in DATA))


@pytest.mark.slow
def test_a_stream_is_the_same_as_a_fit_without_noise(monkeypatch):
    """With the noise and the order taken out, pieces and whole give the same model."""
    from curador.learn.nuclear import noise, stochastic

    monkeypatch.setattr(noise.ReleaseSequence, "noisy", lambda _, exact: exact)
    monkeypatch.setattr(
        stochastic, "in_slots", lambda some, sizes, _: (np.arange(len(some.targets)), np.cumsum(np.asarray(sizes)))
    )
    settings = {"solver": "toeplitz", "n_nominal": 600, "n_steps": 100}
    streamed = made(**settings)
    for first in range(0, 600, 77):
        streamed.partial_fit(*(one[first : first + 77] for one in DATA))

    assert np.array_equal(streamed.coef_, made(**settings).fit(*DATA).coef_)


def test_a_stream_keeps_its_parameters_and_does_not_count_twice(monkeypatch):
    """Other parameters would have other lengths; records of a call that broke off may be in already."""
    from curador.learn.nuclear import solvers

    streamed = made(solver="toeplitz", n_nominal=600).partial_fit(*(one[:100] for one in DATA))
    with pytest.raises(InvalidParameter, match="parameters"):
        streamed.set_params(n_nominal=500).partial_fit(*(one[:10] for one in DATA))
    streamed.set_params(n_nominal=600).partial_fit(*(one[:10] for one in DATA))

    def broken(going, records):
        raise KeyboardInterrupt

    monkeypatch.setattr(solvers, "stream", broken)
    with pytest.raises(KeyboardInterrupt):
        streamed.partial_fit(*(one[:10] for one in DATA))
    monkeypatch.undo()
    with pytest.raises(InvalidParameter, match="interrupted"):
        streamed.partial_fit(*(one[:10] for one in DATA))


def test_what_a_stream_keeps_is_not_pickled():
    streamed = made(solver="toeplitz", n_nominal=600).partial_fit(*(one[:100] for one in DATA))

    assert "_streaming" in vars(streamed)
    assert "_streaming" not in vars(pickle.loads(pickle.dumps(streamed)))  # noqa: S301 -- our own


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"solver": "magic"}, "solver must be one of"),
        ({"radius": 0}, "radius must be positive"),
        ({"loss": "hubert"}, "loss must be"),
        ({"n_steps": 0}, "n_steps must be"),
        ({"step": -1.0}, "step must be positive"),
        ({"step": 1.0, "solver": "tree"}, "step must be left alone"),
        ({"matrix_free": True}, "matrix_free must be"),
        ({"shape": (3,)}, "shape must be"),
        ({"n_steps": 3, "solver": "thesis"}, "n_steps must be 'auto'"),
        ({"adjacency": "add_or_remove_one"}, "n_nominal must be declared"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"solver": "toeplitz", "n_steps": 400}, "n_steps must be at most half"),
    ],
)
def test_refusals(changed, words):
    with pytest.raises(InvalidParameter, match=words):
        made(**changed).fit(*DATA)


def test_refusals_of_data():
    with pytest.raises(InvalidParameter, match="one length"):
        made().fit(DATA[0][:5], DATA[1], DATA[2])
    with pytest.raises(InvalidParameter, match="NaN"):
        made().fit(np.full((3, 2), np.nan), np.ones((3, 2)), np.ones(3))
    with pytest.raises(InvalidParameter, match="y must be given"):
        made().fit(DATA[0], DATA[1])
    with pytest.raises(InvalidParameter, match="columns"):
        made().fit(*DATA).predict(DATA[1], DATA[0])
    for changed, words in (
        ({}, "toeplitz"),
        ({"solver": "toeplitz"}, "n_nominal"),
        ({"solver": "toeplitz", "adjacency": "add_or_remove_one"}, "replace_one"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            made(**changed).partial_fit(*DATA)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [*SOLVERS, "thesis"])
def test_a_forecast_needs_no_data(solver):
    """More records, better forecast; the thesis's constants never pay."""
    forecasts = [made(solver=solver, epsilon=1).dry_run(count, (20, 20)) for count in (1000, 500_000)]

    assert not forecasts[0].worthwhile
    assert forecasts[1].worthwhile == (solver not in {"thesis", "stochastic"})
    assert forecasts[0].numbers["excess by noise, about"] > forecasts[1].numbers["excess by noise, about"]
    assert "orthwhile" in str(forecasts[0])
    with pytest.raises(InvalidParameter, match="shape"):
        made().dry_run(1000)


def test_units_of_several_rows_weigh_as_one():
    """A study's columns: a unit with a hundred rows adds no more than a unit with one; nothing in a row is an error."""
    estimator = made(left=["p", "q"], right=["r"], n_nominal=3)
    units = np.array([5] * 100 + [7, 9])
    columns = {name: np.linspace(-1, 1, 102) for name in "pqr"}
    columns["y"] = np.ones(102)
    columns["p"][3] = np.nan
    columns["y"][101] = np.nan
    records = estimator._read_columns(columns, units, FACTS, "y")  # noqa: SLF001 -- what a curator calls
    assert records.weights[:100].sum() <= 1
    assert records.units.tolist() == [0] * 100 + [1, 2]
    assert not records.left.values[3].any()

    objects = {"p": np.array([None, "x", 2], object), "q": np.ones(3), "r": np.ones(3), "y": np.array([1, None, "z"], object)}
    assert np.isnan(estimator._read_columns(objects, np.arange(3), FACTS, "y").targets[1:]).all()  # noqa: SLF001
    entries = made(loss="squared", shape=(3, 2), left=["i"], right=["j"])
    places = {"i": np.array([0, np.nan, 1e300, -5]), "j": np.array([1, 1, 1, np.inf]), "y": np.ones(4)}
    assert np.isnan(entries._read_columns(places, np.arange(4), FACTS, "y").targets).tolist() == [False, True, True, True]  # noqa: SLF001
