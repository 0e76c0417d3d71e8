"""Logistic regression from noisy second moments and expected labels."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from curador.errors import InvalidParameter
from curador.learn import PrivateLogisticRegression
from curador.learn.regression import frame, logistic
from curador.learn.release import Releaser

PRIVACY = {"epsilon": 1, "delta": 1e-6}
BOUNDS = {"bounds_X": (-1, 1)}


def made(count=600, *, classes=2, seed=1):
    public = np.random.default_rng(seed)
    rows = np.clip(public.normal(size=(count, 3)) * 0.4, -1, 1)
    scores = rows @ np.array([[3.0, -2.0, 0.0], [0.0, 3.0, -2.0], [-2.0, 0.0, 3.0]])[:, :classes] + [
        0.5,
        *[0.0] * (classes - 1),
    ]
    return rows, (scores + public.gumbel(size=scores.shape)).argmax(axis=1)


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
        ({"bounds_X": (1, -1)}, "bounds_X must be a pair"),
        ({"classes": [1]}, "classes must be"),
        ({"classes": [1, 1]}, "classes must be"),
        ({"classes": 5}, "classes must be"),
        ({"classes": [1, "a"]}, "classes must be"),
        ({"classes": [1, 2]}, "y must be made of the declared classes"),
        ({"row_norm": -1}, "row_norm must be"),
        ({"n_nominal": "many"}, "n_nominal must be"),
    ],
)
@pytest.mark.usefixtures("closed")
def test_what_cannot_be_fitted_is_refused_in_one_sentence(changed, words):
    """Before anything is released."""
    with pytest.raises(InvalidParameter, match=words):
        PrivateLogisticRegression(**{**PRIVACY, **BOUNDS, **changed}).fit(*made(30))


@pytest.mark.usefixtures("closed")
def test_one_class_is_refused():
    """There is nothing to tell apart."""
    with pytest.raises(InvalidParameter, match="at least two classes"):
        PrivateLogisticRegression(**PRIVACY, **BOUNDS).fit(np.zeros((5, 2)), np.ones(5))


@pytest.mark.usefixtures("closed")
def test_a_forecast_reads_no_data():
    """From declared numbers, and with the noise of every release."""
    estimator = PrivateLogisticRegression(**PRIVACY, **BOUNDS, n_nominal=100)

    assert not estimator.dry_run(n_features=3).worthwhile
    assert estimator.dry_run(10**6, 3).worthwhile
    assert estimator.dry_run(n_features=3).numbers["steps"] == 4
    assert PrivateLogisticRegression(epsilon=1, delta=0, **BOUNDS).dry_run(10, 3).numbers["steps"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("way", ["add_or_remove_one", "replace_one"])
def test_without_noise_to_speak_of_it_is_logistic_regression(classes, delta, way):
    """Probabilities within a few hundredths: steps are few."""
    rows, labels = made(3000, classes=classes)
    estimator = PrivateLogisticRegression(epsilon=10**5, delta=delta, adjacency=way, **BOUNDS).fit(rows, labels)
    other = LogisticRegression(C=1e4, max_iter=1000).fit(rows, labels)
    apart = np.abs(estimator.predict_proba(rows) - other.predict_proba(rows))

    assert apart.mean() < 0.02
    assert estimator.score(rows, labels) == pytest.approx(other.score(rows, labels), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_without_an_intercept_there_is_none(classes):
    """Scores of 0 are 0."""
    rows, labels = made(500, classes=classes)
    estimator = PrivateLogisticRegression(epsilon=10**4, delta=1e-6, fit_intercept=False, **BOUNDS).fit(rows, labels)

    assert not estimator.intercept_.any()
    assert estimator.coef_.shape == (1 if classes == 2 else 3, 3)


@pytest.mark.slow
def test_labels_are_those_declared():
    """Texts, in order, whether they occur or not."""
    rows, labels = made(500)
    names = np.array(["no", "yes"])[labels]
    estimator = PrivateLogisticRegression(epsilon=100, delta=1e-6, classes=["yes", "no", "maybe"], **BOUNDS).fit(rows, names)

    assert estimator.classes_.tolist() == ["maybe", "no", "yes"]
    assert estimator.predict_proba(rows).sum(axis=1) == pytest.approx(1)
    assert set(estimator.predict(rows)) <= {"no", "yes", "maybe"}
    assert estimator.score(rows, names) > 0.6


def test_decisions_probabilities_and_labels_agree():
    """The second class is predicted where its probability is above one half."""
    rows, labels = made(300)
    estimator = PrivateLogisticRegression(epsilon=100, delta=0, **BOUNDS).fit(rows, labels)
    scores = estimator.decision_function(rows)

    assert ((scores > 0) == (estimator.predict(rows) == estimator.classes_[1])).all()
    assert estimator.predict_proba(rows)[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))


def test_expected_labels_are_what_scores_say():
    """Tables against tanh and softmax, within the grain of scores."""
    place = frame.frame_of(-np.ones(2), np.ones(2), centred=True, row_norm=None, pure=False)
    design = frame.design_of(np.array([[0.5, -0.25], [1.0, 1.0], [-1.0, 1.0]]), place, intercept=True)
    for columns in (1, 3):
        slopes = logistic.round_coefficients(np.arange(3.0 * columns).reshape(3, columns) - 4.0)
        scores = (design.values / frame.TOP) @ slopes
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected = np.tanh(scores / 2) if columns == 1 else raised / raised.sum(axis=1, keepdims=True)

        assert logistic.expectations(design, slopes) == pytest.approx(expected, abs=3e-4)


def test_the_card_has_every_release():
    """One of second moments, four of expected labels."""
    estimator = PrivateLogisticRegression(**PRIVACY, **BOUNDS).fit(*made(100))

    assert [(one.name, one.count) for one in estimator.privacy_.releases] == [("second moments", 1), ("expected labels", 4)]
    assert estimator.privacy_.exact


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_it_learns_from_data(classes, delta):
    """Accuracy on fresh rows within 0.02 of logistic regression, of 20,000 records at ε = 1. Fails less than once in 10⁶."""
    rows, labels = made(20_000, classes=classes)
    fresh, truth = made(4000, classes=classes, seed=2)
    other = LogisticRegression(max_iter=1000).fit(rows, labels).score(fresh, truth)
    scores = [
        PrivateLogisticRegression(epsilon=1, delta=delta, **BOUNDS).fit(rows, labels).score(fresh, truth) for _ in range(5)
    ]

    assert np.median(scores) > other - 0.02
