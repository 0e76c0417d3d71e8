"""PrivatePCA between neighbours: no record, and no unit, moves a release further than declared."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_replay import violations

from curador.learn import PrivatePCA
from curador.learn.base import Facts
from curador.learn.estimators import components, pca
from curador.learn.estimators.arrays import Records, records_of_columns
from curador.learn.oracles import analyze_gauss
from curador.learn.sums import Whole, whole_rows

NUMBERS = st.one_of(
    st.floats(-3, 3), st.sampled_from([0.0, 1.0, -1.0, 1e-320, 1e300, -1e300, math.nan, math.inf, 0.3 + 1e-16])
)
SHAPES = {
    "moment": {"method": "analyze_gauss"},
    "moment, two": {"method": "analyze_gauss", "n_components": 2},
    "moment, Laplace": {"method": "analyze_gauss", "delta": 0},
    "power": {"method": "power"},
    "power, two": {"method": "power", "n_components": 2},
    "lanczos": {"method": "lanczos", "n_components": 2},
    "oja": {"method": "oja"},
    "drawn": {"method": "bingham", "n_components": 2},
}
CENTRES = (None, "private", [0.5, -0.25, 8.0])


@st.composite
def worlds(draw):
    """Two neighbouring tables of three features: units of one row or more, one of which is gone or is another."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    replaced = draw(st.booleans())
    rows = draw(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=sum(sizes), max_size=sum(sizes)))
    units = np.repeat(np.arange(len(sizes)), sizes)
    gone = draw(st.integers(0, len(sizes) - 1))
    first = np.array(rows, dtype=np.float64).reshape(-1, 3)
    kept = units != gone
    second, others = first[kept], units[kept]
    if replaced:
        fresh = draw(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=3))
        second = np.vstack([second, np.array(fresh, dtype=np.float64)])
        others = np.append(others, np.full(len(fresh), gone))
    return replaced, of_units(first, units), of_units(second, others)


def of_units(rows, units):
    """Return the records of rows of units, as a study's columns give them."""
    return records_of_columns({name: rows[:, place] for place, name in enumerate("abc")}, units, ("a", "b", "c"))


def fitted_by(shape, *, centre=None, replaced=False, **more):
    """Return an estimator of three features."""
    settled = {"epsilon": 1, "delta": 1e-6, "center": centre, "n_nominal": 4}
    return PrivatePCA(**(settled | SHAPES[shape] | {"adjacency": "replace_one" if replaced else "add_or_remove_one"} | more))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60)
@given(pair=worlds(), centre=st.sampled_from(CENTRES), counted=st.booleans())
def test_no_unit_moves_a_release_further_than_declared(shape, pair, centre, counted):
    """Every method, every way of centring, units of several rows, values of every kind."""
    replaced, one, other = pair
    facts = Facts(4, 3, ("a", "b", "c"))

    assert violations(fitted_by(shape, centre=centre, replaced=replaced), facts, one, other) == ()
    if counted and not replaced:  # rows alone, whose number is bought
        one, other = Records(one.rows), Records(one.rows[1:])

        assert violations(fitted_by(shape, centre=centre), Facts(None, 3), one, other) == ()


FULL = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])
LONG = np.vstack([FULL, [[0.0, 0.0, 50.0]]])
ALONE = Facts(4, 3)


def test_the_worst_records_use_up_the_length():
    """Replay is tight: a record of full length moves the moment by its length, replaced by √2 of it."""
    apart = []
    real = pca.find

    def noted(method, releaser, rows, **more):
        apart.append(rows)
        return real(method, releaser, rows, **more)

    with mock.patch.object(pca, "find", noted):
        assert violations(fitted_by("moment"), ALONE, Records(FULL), Records(FULL[1:])) == ()
        assert violations(fitted_by("moment", replaced=True), ALONE, Records(FULL[:1]), Records(FULL[1:2])) == ()
    for pair in (apart[:2], apart[2:]):
        moments = [one.values.T @ one.values for one in pair]
        length = pair[0].limit ** 2 * (1 if pair is apart[:2] or len(pair[0].values) > 1 else math.sqrt(2))

        assert 0.9999 < np.linalg.norm(moments[0] - moments[1]) / length <= 1


def unclipped(rows, *, norm, weights=None, bits=18, clip=True):
    """Return rows as whole numbers that nobody shortened."""
    del clip
    return whole_rows(rows, norm=norm, weights=weights, bits=bits, clip=False)


def unclipped_moment(releaser, name, rows):
    """Release the moment of rows that are longer than they say."""
    return analyze_gauss.noisy_gram(releaser, name, Whole(rows.values * 1.001 // 1, rows.step, rows.limit))


def stolen_centre(short, weights, releaser, *, records, norm):
    """Return the mean of the records as it is: nobody paid for it."""
    del weights, releaser, records
    return short.values.mean(axis=0) * short.step, norm


def as_if_added(length, adjacency, *, positive=False):
    """Return the length of a record that comes or goes, for one that is replaced."""
    del adjacency, positive
    return length


BUGS = {
    "no clipping": (pca, "whole_rows", unclipped, "moment", {}, (LONG, LONG[:3])),
    "no clipping, products": (pca, "whole_rows", unclipped, "power", {}, (LONG, LONG[:3])),
    "no clipping, drawn": (pca, "whole_rows", unclipped, "drawn", {}, (LONG, LONG[:3])),
    "the moment of rows that are not clipped": (components, "noisy_gram", unclipped_moment, "moment", {}, (FULL, FULL[1:])),
    "replaced without √2": (
        analyze_gauss,
        "sensitivity_steps",
        as_if_added,
        "moment",
        {"replaced": True},
        (FULL[:1], FULL[1:2]),
    ),
    "replaced without 2, centre": (
        pca,
        "sensitivity_steps",
        as_if_added,
        "moment",
        {"replaced": True, "centre": "private"},
        (FULL[:1], -FULL[:1]),
    ),
    "a centre without its budget": (pca, "_bought_centre", stolen_centre, "moment", {"centre": "private"}, (LONG, LONG[:3])),
    "variances without 2": (
        components,
        "sensitivity_steps",
        as_if_added,
        "drawn",
        {"replaced": True, "n_components": 3},
        (FULL[:1], FULL[1:2]),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_replay_catches(bug):
    """Each bug moves some release further than declared; without it nothing does."""
    where, name, wrong, shape, more, (one, other) = BUGS[bug]

    assert violations(fitted_by(shape, **more), ALONE, Records(one), Records(other)) == ()
    with mock.patch.object(where, name, wrong):
        assert any(violations(fitted_by(shape, **more), ALONE, Records(one), Records(other)) for _ in range(200))


@pytest.mark.parametrize("shape", ["moment", "power", "drawn"])
def test_replay_catches_rows_of_a_unit_that_are_counted_as_records(shape):
    """Without weights a unit of nine rows adds nine records."""
    rows = np.vstack([FULL, np.repeat([[0.0, 0.0, 1.0]], 9, axis=0)])
    units = np.array([0, 1, 2, *[3] * 9])
    one, other = of_units(rows, units), of_units(rows[:3], units[:3])

    assert violations(fitted_by(shape), ALONE, one, other) == ()
    with mock.patch.object(Records, "roots", None):
        assert violations(fitted_by(shape), ALONE, one, other)


def test_replay_catches_a_fit_that_makes_another_number_of_releases():
    """A world that stops early is told by its length."""

    def sometimes(method, releaser, rows, *, count, one_row):
        if len(rows.values) > 3:
            return components.find(method, releaser, rows, count=count, one_row=one_row)
        eye = np.eye(3)[:1]
        return components.FoundDirections(eye, np.ones(1), np.ones(1), np.ones(1), 0.0)

    with mock.patch.object(pca, "find", sometimes):
        assert violations(fitted_by("moment"), ALONE, Records(LONG), Records(FULL))


@pytest.mark.parametrize("features", [1, 3, 7, 33])
def test_rows_do_not_change_the_whole_numbers_of_others(features):
    """Where a row lies in memory changes nothing: without the first row all others are the same, bit for bit."""
    rows = np.random.default_rng(3).normal(size=(257, features)) * 2
    one, other = whole_rows(rows, norm=1.0), whole_rows(rows[1:].copy(), norm=1.0)

    np.testing.assert_array_equal(one.values[1:], other.values)
