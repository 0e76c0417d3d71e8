"""PrivatePCA: what it finds, what it says of it, what it refuses and what it forecasts."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from curador.errors import InvalidParameter
from curador.learn import PrivatePCA, load
from curador.learn.base import Facts
from curador.learn.estimators.arrays import records_of_columns
from curador.learn.estimators.components import METHODS, find, forecast, parts_of, squares_along
from curador.learn.plan import goal_of, make_plan
from curador.learn.release import Releaser
from curador.learn.sums import whole_rows

PRIVACY = {"epsilon": 1, "delta": 1e-6}
PLENTY = {"epsilon": 1000, "delta": 1e-6}
"""So much that noise is invisible: what is left is the algorithm."""

GENERATOR = np.random.default_rng(11)
SCALES = np.array([0.4, 0.25, 0.1, 0.05, 0.02])
ROTATION = np.linalg.qr(GENERATOR.normal(size=(5, 5)))[0]
TABLE = np.clip(GENERATOR.normal(size=(2000, 5)), -1.5, 1.5) * SCALES @ ROTATION.T


def top(table, many=1):
    """Return the largest eigenvalues of the mean of x x', and their vectors as rows."""
    values, vectors = np.linalg.eigh(table.T @ table / len(table))
    return values[::-1][:many], vectors.T[::-1][:many]


def shortened(table, norm=1.0):
    """Return rows that are at most as long as the norm."""
    return table * np.minimum(1.0, norm / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300))


def of_a_study(model, data):
    """Return the model fitted to what a curator would have read."""
    facts = Facts(model.n_nominal, data.rows.shape[1], ("a", "b"))
    return model._fitted(data, facts, model._plan(model._goal(), facts))  # noqa: SLF001 -- a fit without its ledger


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_with_hardly_any_noise_components_are_those_of_the_table(method):
    """Every method finds the same directions and variances, as far as its iteration goes."""
    fitted = PrivatePCA(method=method, **PLENTY).fit(TABLE)
    values, vectors = top(shortened(TABLE))
    near = 0.15 if method == "oja" else 0.01

    assert fitted.method_ == method
    assert abs(fitted.components_[0] @ vectors[0]) > 1 - near
    assert fitted.explained_variance_[0] == pytest.approx(values[0], rel=near)
    assert fitted.n_significant_ >= 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["analyze_gauss", "power", "lanczos", "bingham"])
def test_several_components_are_orthonormal_and_in_order(method):
    """As many as asked for, the largest first."""
    fitted = PrivatePCA(3, method=method, **PLENTY).fit(TABLE)
    _, vectors = top(shortened(TABLE), 3)

    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(3), atol=1e-9)
    assert (np.diff(fitted.explained_variance_) <= 0).all()
    assert (np.abs(np.sum(fitted.components_ * vectors, axis=1)) > 0.97).all()


def test_transform_and_back():
    """Coordinates along components from the centre; all components together lose nothing."""
    fitted = PrivatePCA(5, center=np.full(5, 0.1), **PRIVACY).fit(TABLE)
    places = fitted.transform(TABLE[:7])

    assert places.shape == (7, 5)
    np.testing.assert_allclose(places, (TABLE[:7] - 0.1) @ fitted.components_.T)
    np.testing.assert_allclose(fitted.inverse_transform(places), TABLE[:7], atol=1e-12)
    np.testing.assert_array_equal(fitted.mean_, fitted.center_)
    assert fitted.get_feature_names_out().tolist() == [f"privatepca{place}" for place in range(5)]
    with pytest.raises(InvalidParameter, match="X must be of 5 columns"):
        fitted.inverse_transform(places[:, :3])
    with pytest.raises(NotFittedError):
        PrivatePCA(**PRIVACY).inverse_transform(places)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_rows_are_shortened_to_the_norm_and_never_refused(scale):
    """Long rows count by their direction only: with a norm far below them all the table may be in any unit."""
    fitted = PrivatePCA(row_norm=1e-3 * scale, **PLENTY).fit(TABLE * scale)
    values, vectors = top(shortened(TABLE, 1e-3))

    assert abs(fitted.components_[0] @ vectors[0]) > 0.999
    assert fitted.explained_variance_[0] == pytest.approx(values[0] * scale**2, rel=1e-3)


def test_a_declared_centre_is_subtracted():
    """Before rows are shortened."""
    fitted = PrivatePCA(center=[3.0] * 5, **PLENTY).fit(TABLE + 3.0)
    _, vectors = top(shortened(TABLE))

    assert abs(fitted.components_[0] @ vectors[0]) > 0.999
    assert fitted.center_.tolist() == [3.0] * 5
    assert fitted.row_norm_ == 1.0


@pytest.mark.slow
def test_a_private_centre_is_the_mean_with_noise():
    """It is bought, and rows are then shortened to what the mean leaves of them."""
    moved = shortened(TABLE * 0.3 + 0.4)
    fitted = PrivatePCA(center="private", **PLENTY).fit(moved)
    _, vectors = top(moved - moved.mean(axis=0))

    np.testing.assert_allclose(fitted.center_, moved.mean(axis=0), atol=1e-3)
    assert fitted.row_norm_ == pytest.approx(math.sqrt(1 - np.sum(moved.mean(axis=0) ** 2)), rel=1e-2)
    assert abs(fitted.components_[0] @ vectors[0]) > 0.99
    assert [one.name for one in fitted.privacy_.releases] == ["count", "centre", "second moment"]
    assert any("centre" in note for note in fitted.privacy_.notes)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_private_centre_drowned_in_noise_does_no_harm(delta):
    """It is no longer than a row can be, and rows keep their length."""
    fitted = PrivatePCA(center="private", epsilon=0.01, delta=delta, n_nominal=50).fit(TABLE[:50])

    assert np.linalg.norm(fitted.center_) <= 1 + 1e-12
    assert fitted.row_norm_ >= 0.1


def test_a_centre_is_saved(tmp_path):
    """Both the parameter and what was bought."""
    for centre in (np.arange(5.0), [0.0] * 5, "private"):
        fitted = PrivatePCA(center=centre, n_nominal=2000, **PRIVACY).fit(TABLE)
        fitted.save(tmp_path / "model.json")
        loaded = load(tmp_path / "model.json")

        np.testing.assert_array_equal(loaded.center, centre)
        np.testing.assert_array_equal(loaded.transform(TABLE), fitted.transform(TABLE))


def test_the_number_of_records_is_declared_counted_or_bought():
    """Declared where it is, public where records are replaced, else bought with a hundredth of the budget."""
    declared = PrivatePCA(n_nominal=1234, **PRIVACY).fit(TABLE)
    replaced = PrivatePCA(adjacency="replace_one", **PRIVACY).fit(TABLE)
    bought = PrivatePCA(**PRIVACY).fit(TABLE)

    assert (declared.n_records_, replaced.n_records_) == (1234, 2000)
    assert bought.n_records_ == pytest.approx(2000, abs=43 * 8)
    assert [one.name for one in declared.privacy_.releases] == ["second moment"]
    assert [one.name for one in bought.privacy_.releases] == ["count", "second moment"]


def test_what_is_missing_in_a_study_is_the_centre():
    """NULL, texts and infinities add nothing along their feature, whatever the centre.

    A variance has noise of deviation .013 at epsilon 1,000, so .0004 here: 2 % of 1 is fifty times that.
    """
    plenty = {**PLENTY, "epsilon": 10**6}
    columns = {"a": np.array([1.0, 5.0, math.nan, math.inf] * 50), "b": np.array([2.0, 2.0, 4.0, 2.0] * 50)}
    data = records_of_columns(columns, np.arange(200), ("a", "b"))
    for centre, along in (([1.0, 2.0], (4.0, 1.0)), (None, (6.5, 7.0))):
        model = of_a_study(PrivatePCA(2, center=centre, row_norm=10, n_nominal=200, **plenty), data)

        if centre is not None:
            assert model.explained_variance_ == pytest.approx(along, rel=2e-2)
        else:
            assert model.explained_variance_.sum() == pytest.approx(sum(along), rel=1e-2)
        assert model.feature_names_in_.tolist() == ["a", "b"]


def test_a_unit_is_the_mean_of_its_rows():
    """Ten rows of one unit weigh as much as one row of another."""
    rows = np.vstack([np.repeat([[1.0, 0.0]], 1000, axis=0), np.repeat([[0.0, 1.0]], 300, axis=0)])
    units = np.array([*np.arange(1000) % 100, *range(100, 400)])
    data = records_of_columns({"a": rows[:, 0], "b": rows[:, 1]}, units, ("a", "b"))
    model = of_a_study(PrivatePCA(2, n_nominal=400, **PLENTY), data)

    assert model.explained_variance_ == pytest.approx([0.75, 0.25], rel=1e-2)


@pytest.mark.slow
def test_noise_alone_is_not_significant():
    """Without signal nothing stands above the edge, but in one fit of a hundred: 8 of 40 happen once in 10⁹."""
    zeros = np.zeros((200, 20))
    found = [PrivatePCA(n_nominal=200, **PRIVACY).fit(zeros) for _ in range(40)]

    assert sum(one.n_significant_ for one in found) < 8
    assert all(one.explained_variance_[0] == 0 or one.spectrum_[0] > 0 for one in found)
    assert {one.noise_edge_ for one in found} == {found[0].noise_edge_}


def test_debiasing_takes_out_what_noise_adds():
    """Corrected variances are below those that came out, which are kept as the spectrum."""
    corrected = PrivatePCA(5, n_nominal=2000, **PRIVACY).fit(TABLE)
    plain = PrivatePCA(5, n_nominal=2000, debias=False, **PRIVACY).fit(TABLE)

    assert (corrected.explained_variance_ <= np.maximum(corrected.spectrum_, 0.0)).all()
    assert corrected.explained_variance_[0] < corrected.spectrum_[0]
    np.testing.assert_allclose(plain.explained_variance_, plain.spectrum_, rtol=1e-9, atol=1e-12)


def test_without_delta_directions_are_drawn_and_said_to_be_inexact():
    """`auto` draws them; the moment with Laplace noise is exact, if it is asked for."""
    drawn = PrivatePCA(epsilon=1, delta=0).fit(TABLE)
    moment = PrivatePCA(epsilon=1, delta=0, method="analyze_gauss").fit(TABLE)

    assert (drawn.method_, drawn.privacy_.exact, drawn.privacy_.delta) == ("bingham", False, 0.0)
    assert (moment.method_, moment.privacy_.exact, moment.privacy_.delta) == ("analyze_gauss", True, 0.0)


def test_drawn_directions_spend_no_delta():
    """What is given of it stays: the card says 0."""
    assert PrivatePCA(method="bingham", **PRIVACY).fit(TABLE).privacy_.delta == 0.0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n_components": 0}, "n_components must be a whole number"),
        ({"n_components": 1.5}, "n_components must be a whole number"),
        ({"n_components": 6}, "n_components must be at most 5"),
        ({"row_norm": 0}, "row_norm must be positive"),
        ({"row_norm": math.nan}, "row_norm must be a finite number"),
        ({"row_norm": 1e200}, "row_norm must be between"),
        ({"method": "magic"}, "method must be 'auto'"),
        ({"method": None}, "method must be 'auto'"),
        ({"center": "mean"}, "center must be None, 'private' or"),
        ({"center": [1.0, 2.0]}, "center must be None, 'private' or"),
        ({"center": [math.nan] * 5}, "center must be None, 'private' or"),
        ({"center": [[1.0]] * 5 + [[2.0]]}, "center must be None, 'private' or"),
        ({"method": "oja", "n_components": 2}, "n_components must be 1 for 'oja'"),
        ({"method": "oja", "delta": 0}, "delta must be above 0 for 'oja'"),
        ({"n_nominal": 0}, "n_nominal must be"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_anything_is_released(changed, words, monkeypatch):
    """In one sentence."""
    monkeypatch.setattr(Releaser, "noisy", None)
    with pytest.raises(InvalidParameter, match=words):
        PrivatePCA(**(PRIVACY | changed)).fit(TABLE)


# ---- forecasts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_forecast_needs_no_data(method):
    """It says how much variance a component needs, and how many records one has to have."""
    model = PrivatePCA(method=method, **PRIVACY)
    few, many = model.dry_run(100, 50, share=0.1), model.dry_run(10**6, 50, share=0.1)

    assert (few.worthwhile, many.worthwhile) == (False, True)
    assert few.numbers["records needed"] == many.numbers["records needed"] > 100
    assert few.numbers["share needed"] > 0.1 > many.numbers["share needed"]
    assert few.numbers["lost variance expected"] > many.numbers["lost variance expected"]
    assert method in few.verdict
    assert "records" in few.verdict
    assert model.dry_run(int(few.numbers["records needed"]) + 1, 50).worthwhile


def test_a_forecast_of_many_features_is_of_products():
    """`auto` releases no matrix of 6000 rows."""
    assert "lanczos" in PrivatePCA(**PRIVACY).dry_run(10**6, 6000).verdict
    assert "bingham" in PrivatePCA(epsilon=1, delta=0).dry_run(10**6, 6000).verdict


@pytest.mark.parametrize("wrong", [{"n_records": 0}, {"n_features": 0}, {"share": 0}, {"n_records": 2.5}])
def test_forecasts_of_nothing_are_refused(wrong):
    """One sentence."""
    with pytest.raises(InvalidParameter, match=f"{next(iter(wrong))} must be"):
        PrivatePCA(**PRIVACY).dry_run(**({"n_records": 10, "n_features": 4} | wrong))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("method", ["analyze_gauss", "power", "lanczos"])
def test_the_forecast_noise_is_that_of_the_fit(method, delta, adjacency):
    """The deviation behind a forecast is the one on the card, but for the grid's rounding."""
    goal = goal_of(1, delta, adjacency)
    plan = make_plan(goal, parts_of(method, share=1.0, size=5, count=2))
    _, deviation = forecast(method, plan, size=5, count=2, norm=1.0)
    releaser = Releaser(plan, None)
    find(method, releaser, whole_rows(TABLE, norm=1.0), count=2, one_row=True)
    halved = math.sqrt(2) if method == "analyze_gauss" and delta else 1.0

    assert deviation == pytest.approx(releaser.releases[0].deviation / halved, rel=2e-3)


@pytest.mark.slow
def test_the_forecast_loss_is_what_is_lost():
    """On a spike in 100 dimensions the mean of 20 fits is within half of it."""
    share, size, many = 0.2, 100, 4000
    signs = GENERATOR.choice([-1.0, 1.0], size=(many, 1))
    rest = GENERATOR.normal(size=(many, size))
    rest[:, 0] = 0
    rest *= math.sqrt(1 - share) / np.linalg.norm(rest, axis=1, keepdims=True)
    table = np.hstack([signs * math.sqrt(share), rest[:, 1:]])
    values, _ = top(table)
    moment = table.T @ table / many
    model = PrivatePCA(n_nominal=many, **PRIVACY)
    lost = [1 - one @ moment @ one / values[0] for one in (model.fit(table).components_[0] for _ in range(20))]

    assert np.mean(lost) == pytest.approx(model.dry_run(many, size, share=share).numbers["lost variance expected"], rel=0.5)


# ---- what variances along directions cost -------------------------------------------------------------------------------


def test_squares_along_directions_are_exact():
    """As rationals say, and a record adds at most the length in sum."""
    rows = whole_rows(GENERATOR.normal(size=(50, 4)), norm=1.0)
    vectors = np.linalg.qr(GENERATOR.normal(size=(4, 4)))[0][:3]
    integers, length = squares_along(rows, vectors)
    grid = [[math.trunc(one * 2**18) for one in vector] for vector in vectors.tolist()]

    def squares(row):
        along = [Fraction(sum(int(a) * b for a, b in zip(row, vector, strict=True)), 2**18) for vector in grid]
        return [math.trunc(one) ** 2 for one in along]

    each = [squares(row) for row in rows.values.tolist()]

    assert integers.tolist() == [sum(one[place] for one in each) for place in range(3)]
    assert max(sum(one) for one in each) <= length <= rows.limit**2 * 1.0001


# ---- digits: 1797 records of 64 pixels, each from 0 to 16, shortened to length 1 ----------------------------------------

DIGITS = load_digits().data


def lost_on_digits(centre, true_centre, runs=50, **more):
    """Return the mean share of variance that the first component loses, with defaults at ε = 1, δ = 10⁻⁶."""
    rows = shortened(DIGITS) if isinstance(centre, str) else DIGITS
    rows = shortened(rows - true_centre)
    moment = rows.T @ rows
    largest = np.linalg.eigvalsh(moment)[-1]
    found = (PrivatePCA(center=centre, **PRIVACY, **more).fit(DIGITS).components_[0] for _ in range(runs))
    return float(np.mean([1 - one @ moment @ one / largest for one in found]))


MIDDLE = 8.0
"""The middle of a pixel's range: the centre that anybody would declare who has seen no digit."""

MEAN = DIGITS.mean(axis=0)
UNIT_MEAN = shortened(DIGITS).mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("centre", "true_centre", "adjacency", "most"),
    [
        (None, 0.0, "add_or_remove_one", 0.001),
        (MIDDLE, MIDDLE, "add_or_remove_one", 0.015),
        (MIDDLE, MIDDLE, "replace_one", 0.03),
        (MEAN, MEAN, "add_or_remove_one", 0.015),
        (MEAN, MEAN, "replace_one", 0.03),
        ("private", UNIT_MEAN, "add_or_remove_one", 0.03),
        ("private", UNIT_MEAN, "replace_one", 0.06),
    ],
    ids=["uncentred", "middle", "middle, replaced", "mean", "mean, replaced", "private", "private, replaced"],
)
def test_the_first_component_of_digits(centre, true_centre, adjacency, most):
    """What is lost is below the target, by so much that chance does not matter."""
    assert lost_on_digits(centre, true_centre, adjacency=adjacency) <= most
