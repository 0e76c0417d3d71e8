"""The learned adversary: what it looks at, what it finds, and that it finds nothing where there is nothing."""

import numpy as np
import pytest
from numpy.random import default_rng

from curador.audit.attack import first_releases, later_releases
from curador.audit.distinguisher import LEAST, columns_of, logistic, train
from curador.errors import InvalidParameter
from curador.mechanisms.noisy_max import Selection

SIZE = 8000


def advantage(draw, seed=5):
    """Train on releases of both worlds, and return the best TPR − FPR on as many others."""
    generator = default_rng(seed)
    learned = train(draw(0, generator), draw(1, generator))
    one, other = (np.sort(learned.score(draw(world, generator))) for world in (0, 1))
    cuts = np.concatenate([one, other])
    return float(np.max(np.searchsorted(one, cuts) / len(one) - np.searchsorted(other, cuts) / len(other)))


def rare(value):
    """Laplace noise with an event of two per cent in the second world only."""

    def draw(world, generator):
        out = generator.laplace(0, 1, SIZE)
        out[generator.random(SIZE) < 0.02 * world] = value
        return out

    return draw


def correlated(world, generator):
    pair = generator.normal(0, 1, (SIZE, 2))
    pair[:, 1] += world * pair[:, 0]
    return pair


FINDS = {
    "a shift": (lambda w, g: g.normal(w, 1, SIZE), 0.35),
    "a shift of integers": (lambda w, g: np.rint(g.normal(30 * w, 30, SIZE)).astype(int), 0.35),
    "a variance": (lambda w, g: g.normal(0, 1 + w, SIZE), 0.28),
    "a missing bit of integers": (lambda w, g: g.integers(0, 1 << 40, SIZE) // (1 + w) * (1 + w), 0.45),
    "the bits of float noise": (lambda w, g: (w + g.laplace(0, 1, SIZE)) - w, 0.35),
    "a rare value": (rare(0.123), 0.015),
    "a rare far value": (rare(99.0), 0.015),
    "a rare missing value": (rare(np.nan), 0.015),
    "a direction": (lambda w, g: g.normal(w / 4, 1, (SIZE, 16)), 0.35),
    "a correlation": (correlated, 0.25),
    "bits of many": (lambda w, g: g.random((SIZE, 64)) < np.where(np.arange(64) == 7, 0.1 + 0.4 * w, 0.1), 0.35),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FINDS)
def test_what_differs_is_found(name):
    """Seeded, so never a false alarm: each difference is found nearly as well as it can be."""
    draw, least = FINDS[name]

    assert advantage(draw) > least


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw",
    [lambda _, g: g.laplace(0, 1, SIZE), lambda _, g: g.integers(0, 50, SIZE), lambda _, g: g.normal(0, 1, (SIZE, 8))],
    ids=["floats", "integers", "vectors"],
)
def test_where_nothing_differs_nothing_is_found(draw):
    """Seeded: one law in both worlds gives a score that tells nothing but its own noise."""
    assert advantage(draw) < 0.03


def test_views_of_a_float():
    """The value, its distance from the middle, its exponent, the place of its lowest bit, and its last digits."""
    learned = train(np.tile([1.0, 3.0], 50), np.tile([1.0, 3.0], 50))
    one = np.array([0.75, 5.0, 1 + 2.0**-52, 0.0, np.nan])
    value, distance, exponent, lowest, digits = (view.tolist() for view in learned.frame.views([one]))
    missing = value[-1]

    assert value[:4] == one[:4].tolist()
    assert distance == [1.25, 3.0, 1.0 - 2.0**-52, 2.0, missing]
    assert exponent == [0.0, 3.0, 1.0, missing, missing]
    assert lowest == [-2.0, 0.0, -52.0, missing, missing]
    assert digits == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_views_of_an_integer():
    """The value, its distance from the middle, how many zeros its digits end in, and the last three of them."""
    learned = train(np.tile([1, 3], 50), np.tile([1, 3], 50))
    value, distance, zeros, digits = (view.tolist() for view in learned.frame.views([np.array([12, -5, 0])]))

    assert (value, distance) == ([12.0, -5.0, 0.0], [10.0, 7.0, 2.0])
    assert zeros[:2] == [2.0, 0.0]
    assert zeros[2] < -1e9
    assert digits == [4.0, 3.0, 0.0]


def test_what_is_learned_depends_on_the_given_releases_only():
    """The same releases give the same score; others do not change it."""
    generator = default_rng(1)
    one, other, fresh = generator.normal(0, 1, 500), generator.normal(1, 1, 500), generator.normal(0, 1, 9)

    assert train(one, other).score(fresh).tolist() == train(one, other).score(fresh).tolist()


@pytest.mark.parametrize(
    ("outputs", "columns"),
    [
        (np.zeros(3), 1),
        (np.zeros((3, 2, 2), np.int64), 4),
        (np.zeros((3, 2), np.bool_), 2),
        (np.array([[1, None], [2.5, 3], [None, 4]], object), 2),
        (np.zeros(3, [("a", "i8"), ("b", "f8", 2)]), 3),
        (np.zeros(3, "V2"), 16),
        (Selection(np.zeros((3, 1), np.int64), np.zeros((3, 1)), None), 2),
        ((np.zeros(3), np.zeros((3, 2))), 3),
    ],
)
def test_outputs_of_many_kinds_become_columns(outputs, columns):
    """One entry a release."""
    found = columns_of(outputs)

    assert len(found) == columns
    assert {len(column) for column in found} == {3}


def test_releases_are_cut_in_two():
    """Also those that come as several arrays."""
    chosen = Selection(np.arange(6).reshape(3, 2), None, np.zeros(3))

    assert first_releases(np.arange(5), 2).tolist() == [0, 1]
    assert later_releases(np.arange(5), 2).tolist() == [2, 3, 4]
    assert first_releases(chosen, 1)[0].tolist() == [[0, 1]]
    assert first_releases(chosen, 1)[1] is None


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (np.array(["a", "b"]), "outputs must be numbers"),
        (np.array([object(), object()]), "outputs must be numbers"),
        (np.zeros((2, 5000)), "outputs must be of 1 to 4096 numbers"),
        (np.zeros((2, 0)), "outputs must be of 1 to 4096 numbers"),
        (3.0, "outputs must be arrays"),
    ],
)
def test_outputs_that_are_no_numbers_are_refused(outputs, words):
    """With the advice to give a score."""
    with pytest.raises(InvalidParameter, match=words):
        columns_of(outputs)


def test_too_few_releases_are_refused():
    """Nothing can be learned from them."""
    with pytest.raises(InvalidParameter, match="samples must be at least 64"):
        train(np.zeros(LEAST - 1), np.zeros(LEAST - 1))


def test_shapes_that_differ_between_worlds_are_refused():
    """The number of numbers itself would tell the worlds apart: it is no score."""
    with pytest.raises(InvalidParameter, match="outputs must be of one shape in both worlds"):
        train(np.zeros((100, 2)), np.zeros((100, 3)))


def test_the_regression_is_at_its_optimum():
    """The gradient of the penalised likelihood vanishes, also where classes are separated."""
    generator = default_rng(2)
    for shift in (1.0, 50.0):
        truth = np.repeat([0.0, 1.0], 300)
        features = generator.normal(0, 1, (600, 3)) + shift * truth[:, None]
        weights = logistic(features, truth)
        table = np.column_stack([np.ones(600), features])
        penalty = np.array([1e-6, *(4.0 * (features**2).mean(axis=0))])
        gradient = table.T @ (1 / (1 + np.exp(-table @ weights)) - truth) + penalty * weights

        assert np.abs(gradient).max() < 1e-2
