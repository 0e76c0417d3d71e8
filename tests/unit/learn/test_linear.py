"""Least squares from noisy second moments."""

import math

import numpy as np
import pytest

from curador.errors import InvalidParameter
from curador.learn import PrivateLinearRegression
from curador.learn.base import Facts
from curador.learn.plan import PlannedRelease, goal_of, make_plan
from curador.learn.regression import frame, moments
from curador.learn.release import Releaser

PRIVACY = {"epsilon": 1, "delta": 1e-6}
BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-2, 2)}
SLOPES = np.array([0.5, -0.25, 0.0])


def made(count=400, *, noise=0.1, seed=1):
    public = np.random.default_rng(seed)
    rows = np.clip(public.normal(size=(count, 3)) * 0.4, -1, 1)
    return rows, rows @ SLOPES + 0.3 + noise * public.normal(size=count)


@pytest.fixture
def closed(monkeypatch):
    """Nothing may be released."""

    def refuse(*_arguments, **_options):
        raise AssertionError("released")

    monkeypatch.setattr(Releaser, "noisy", refuse)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epsilon": None}, "epsilon must be given"),
        ({"delta": None}, "delta must be given"),
        ({"bounds_X": None}, "bounds_X must be given"),
        ({"bounds_y": None}, "bounds_y must be given"),
        ({"bounds_X": (1, -1)}, "bounds_X must be a pair"),
        ({"bounds_y": (0, math.inf)}, "bounds_y must be a pair"),
        ({"bounds_X": (np.zeros(2), np.ones(2))}, "bounds_X must be a pair"),
        ({"adjacency": "some"}, "adjacency must be"),
        ({"regularisation": "much"}, "regularisation must be"),
        ({"regularisation": -1}, "regularisation must be"),
        ({"row_norm": 0}, "row_norm must be"),
        ({"row_norm": "1"}, "row_norm must be"),
        ({"n_nominal": 0}, "n_nominal must be"),
    ],
)
@pytest.mark.usefixtures("closed")
def test_what_cannot_be_fitted_is_refused_in_one_sentence(changed, words):
    """Before anything is released."""
    with pytest.raises(InvalidParameter, match=words):
        PrivateLinearRegression(**{**PRIVACY, **BOUNDS, **changed}).fit(*made(20))


@pytest.mark.usefixtures("closed")
def test_a_forecast_reads_no_data():
    """From declared numbers; fewer records are not enough, and more are."""
    estimator = PrivateLinearRegression(**PRIVACY, **BOUNDS)
    few, many = estimator.dry_run(100, 3), estimator.dry_run(10**6, 3)

    assert not few.worthwhile
    assert many.worthwhile
    assert few.numbers["records needed"] == many.numbers["records needed"]
    with pytest.raises(InvalidParameter, match="n_records must be given"):
        estimator.dry_run(n_features=3)


def test_a_forecast_says_the_noise_that_a_fit_has():
    """The card's deviation, but for the mean of both triangles."""
    estimator = PrivateLinearRegression(epsilon=1, delta=0.1, **BOUNDS).fit(*made(50))
    (released,) = estimator.privacy_.releases

    assert released.deviation == pytest.approx(estimator.dry_run(50, 3).numbers["noise of a second moment"] * math.sqrt(2))
    assert estimator.privacy_.exact


def test_with_few_features_laplace_noise_is_less_and_spends_no_delta():
    """Chosen from parameters; the card says so."""
    rows, targets = made(50)

    assert PrivateLinearRegression(**PRIVACY, **BOUNDS).fit(rows[:, :1], targets).privacy_.delta == 0
    assert PrivateLinearRegression(**PRIVACY, **BOUNDS).fit(np.tile(rows, 4), targets).privacy_.delta == 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, 0.1])
@pytest.mark.parametrize("way", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("norm", [None, 1.6])
def test_without_noise_to_speak_of_it_is_least_squares(delta, way, norm):
    """Coefficients, intercept and predictions."""
    rows, targets = made(2000)
    rows = rows * 0.5
    estimator = PrivateLinearRegression(epsilon=10**5, delta=delta, adjacency=way, row_norm=norm, **BOUNDS).fit(rows, targets)
    table = np.column_stack([rows, np.ones(len(rows))])
    expected = np.linalg.lstsq(table, targets, rcond=None)[0]

    assert estimator.coef_ == pytest.approx(expected[:3], abs=2e-3)
    assert estimator.intercept_ == pytest.approx(expected[3], abs=2e-3)
    assert estimator.predict(rows) == pytest.approx(table @ expected, abs=5e-3)


def test_without_an_intercept_it_goes_through_zero():
    """And nothing is centred."""
    rows, targets = made(2000)
    estimator = PrivateLinearRegression(epsilon=10**5, delta=0, fit_intercept=False, **BOUNDS).fit(rows, targets - 0.3)

    assert estimator.intercept_ == 0
    assert estimator.coef_ == pytest.approx(SLOPES, abs=0.02)


def test_a_number_is_a_ridge():
    """Large ones leave nothing."""
    rows, targets = made(500)
    estimator = PrivateLinearRegression(epsilon=10**4, delta=0, regularisation=1e9, **BOUNDS).fit(rows, targets)

    assert np.abs(estimator.coef_).max() < 1e-4


def test_values_beyond_bounds_are_clamped():
    """A target of 10⁹ counts as the bound."""
    rows, targets = made(500)
    far = targets.copy()
    far[0] = 1e9
    near = np.where(far > 2, 2.0, far)
    options = {"epsilon": 10**6, "delta": 0, **BOUNDS}

    assert PrivateLinearRegression(**options).fit(rows, far).coef_ == pytest.approx(
        PrivateLinearRegression(**options).fit(rows, near).coef_, abs=1e-3
    )


def test_products_are_the_integers_that_they_are():
    """Against Python's integers, over several blocks."""
    public = np.random.default_rng(2)
    left, right = (np.rint(public.uniform(-1, 1, (300, 2)) * 2**24) for _ in range(2))
    expected = [[sum(int(a) * int(b) for a, b in zip(x, y, strict=True)) for y in right.T] for x in left.T]

    assert moments.products(left, right, 1 << 48).tolist() == expected


def test_a_unit_of_many_rows_counts_as_their_mean():
    """Σ w u u' over its rows, and a count of 1, within the rounding of roots."""
    rows = np.array([[0.5, 0.5, 0.5], [1.0, 0.0, -1.0], [0.2, 0.2, 0.2]])
    place = frame.frame_of(-np.ones(3), np.ones(3), centred=True, row_norm=None, pure=False)
    design = frame.design_of(rows, place, intercept=True, roots=np.sqrt(np.full(3, 1 / 3)))
    found = moments.products(design.values, design.values, frame.TOP**2) / frame.TOP**2
    table = np.column_stack([rows, np.ones(3)])

    assert found == pytest.approx(table.T @ table / 3, abs=1e-3)
    assert found[-1, -1] <= 1


def test_a_declared_number_of_records_steadies_a_noisy_count():
    """A count in its noise follows what was declared; a precise one does not."""

    def moment(count, noise):
        gram = np.eye(2) * count
        return moments.NoisyMoments(gram, np.zeros((2, 1)), 0.0, (noise, noise), pure=False)

    assert moments.count_of(moment(-500.0, 1000.0), 1000) == pytest.approx(1000, rel=0.2)
    assert moments.count_of(moment(700.0, 1.0), 1000) == pytest.approx(700, rel=0.01)
    assert moments.count_of(moment(-500.0, 1000.0), None) == 1000


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_it_learns_from_data(delta):
    """R² on fresh rows, of 10,000 records at ε = 1, where least squares has 0.83. Fails by chance less than once in 10⁶."""
    rows, targets = made(10_000)
    fresh, truth = made(2000, seed=2)
    scores = [
        PrivateLinearRegression(epsilon=1, delta=delta, **BOUNDS).fit(rows, targets).score(fresh, truth) for _ in range(5)
    ]

    assert np.median(scores) > 0.75


@pytest.mark.slow
def test_errors_are_of_the_size_that_is_said():
    """Of 60 fits with three slopes each, z-scores have about the spread 1: between 0.7 and 1.35 but for once in 10⁵."""
    found = []
    for seed in range(60):
        rows, targets = made(4000, noise=0.5, seed=seed)
        estimator = PrivateLinearRegression(epsilon=2, delta=0.1, **BOUNDS).fit(rows, targets)
        found.append((estimator.coef_ - SLOPES) / estimator.coef_error_)

    assert 0.7 < np.std(found) < 1.35
    assert np.std([one * 2 for one in found]) > 1.35  # the test sees errors that are half as large as they are


def test_the_plan_has_one_release():
    """Of the whole budget."""
    plan = PrivateLinearRegression(**PRIVACY, **BOUNDS)._plan(goal_of(1, 0.1, "add_or_remove_one"), Facts(10, 3))  # noqa: SLF001

    assert plan == make_plan(goal_of(1, 0.1, "add_or_remove_one"), [PlannedRelease(moments.NAME)])
