"""Reading data: arrays are refused as scikit-learn refuses them, a study's columns never."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from curador.errors import InvalidParameter
from curador.learn.base import Facts
from curador.learn.estimators.arrays import (
    Bounds,
    bounds_of,
    centred,
    floats_of,
    read_matrix,
    read_more,
    records_of_columns,
    scaled,
    weights_of,
)

pytestmark = pytest.mark.slow


class Something(BaseEstimator):
    """An estimator that only has a name."""


def test_an_array_is_read_with_what_is_public_about_it():
    """Rows as floats, their number counted, and what scikit-learn wants to find afterwards."""
    reader = Something()
    records, facts = read_matrix(reader, [[1, 2, 3], [4, 5, 6]])

    assert records.rows.dtype == np.float64
    assert (facts.records, facts.features, facts.names) == (2, 3, None)
    assert (records.targets, records.weights, records.roots) == (None, None, None)
    assert reader.n_features_in_ == 3


def test_targets_are_numbers_or_labels():
    """As the estimator says."""
    table = [[1.0], [2.0]]

    assert read_matrix(Something(), table, [1, 2])[0].targets.dtype == np.float64
    assert read_matrix(Something(), table, ["yes", "no"], numeric=False)[0].targets.tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([[1.0, math.nan]], "NaN"),
        ([[1.0, math.inf]], "infinity"),
        ([[1.0, 2.0], [3.0]], "X must be a table of numbers, all rows of one length"),
        ([1.0, 2.0], "2D"),
        (np.zeros((0, 3)), "0 sample"),
        ([["a", "b"]], "could not convert"),
        (np.array([[1 + 2j]]), "Complex"),
    ],
)
def test_what_scikit_learn_refuses_is_refused_in_one_line(table, words):
    """NaN, infinities, ragged, flat, empty, texts, complex numbers."""
    with pytest.raises(InvalidParameter, match=words) as caught:
        read_matrix(Something(), table)

    assert "\n" not in str(caught.value).partition("\nHint")[0]


def test_more_rows_have_the_columns_of_the_fit():
    """Another width is another table."""
    reader = Something()
    read_matrix(reader, [[1.0, 2.0]])

    assert read_more(reader, [[3, 4]]).tolist() == [[3.0, 4.0]]
    with pytest.raises(InvalidParameter, match="3 features"):
        read_more(reader, [[1, 2, 3]])


ANYTHING = np.array([1, 2.5, None, "x", decimal.Decimal("0.5"), True, 10**400, float("nan"), [1], "inf"], dtype=object)


def test_reading_columns_is_total():
    """Numbers are numbers, everything else is missing, nothing is an error."""
    found = floats_of(ANYTHING)

    assert found[[0, 1, 4, 5]].tolist() == [1.0, 2.5, 0.5, 1.0]
    assert np.isnan(found[[2, 3, 6, 7, 8]]).all()
    assert found[9] == math.inf
    assert np.isnan(floats_of(np.array(["a", "b"]))).all()
    assert np.isnan(floats_of(np.array(["2020-01-01"], dtype="datetime64[D]"))).all()
    assert np.isnan(floats_of(np.ma.array([1, 2], mask=[False, True]))).tolist() == [False, True]
    assert floats_of(np.array([2**63 - 1, -1])).tolist() == [2.0**63, -1.0]


def test_missing_and_infinite_become_the_centre_or_the_ends():
    """Centred, both are the centre; scaled by bounds, infinities are clamped and missing is the middle."""
    rows = np.array([[math.nan, math.inf, -math.inf, 3.0]])

    assert centred(rows, np.array([1.0, 1.0, 1.0, 1.0])).tolist() == [[0.0, 0.0, 0.0, 2.0]]
    assert scaled(rows, Bounds(np.zeros(4), np.full(4, 4.0))).tolist() == [[0.0, 1.0, -1.0, 0.5]]


@pytest.mark.parametrize("bounds", [(0.0, 1e-307), (-1.7e308, 1.7e308), (1e308, 1.7e308), (1e300, 1.0000001e300)])
def test_scaling_stays_within_one_for_any_bounds(bounds):
    """Also where bounds are as near, as far or as large as floats allow."""
    found = bounds_of(bounds, Facts(None, 1))
    rows = np.array([[-math.inf], [bounds[0]], [0.0], [bounds[1]], [math.inf], [math.nan]])
    got = scaled(rows, found)

    assert np.isfinite(got).all()
    assert np.abs(got).max() <= 1.0


@pytest.mark.parametrize("counts", [(1,), (2, 3), (49, 98, 107), (1, 1, 7, 12345)])
def test_a_units_weights_add_up_to_at_most_one(counts):
    """In exact arithmetic, and so do the squares of their roots."""
    units = np.repeat(np.arange(len(counts)), counts)
    records = records_of_columns({"a": np.zeros(len(units))}, units, ("a",))
    for unit, count in enumerate(counts):
        weight = Fraction(float(records.weights[units == unit][0]))
        root = Fraction(float(records.roots[units == unit][0]))

        assert 1 - Fraction(1, 10**12) < count * weight <= 1
        assert 1 - Fraction(1, 10**12) < count * root * root <= 1


def test_a_row_without_target_is_dropped_and_its_unit_counts_the_rest():
    """The weights are those of the rows that stay."""
    columns = {"a": np.arange(4.0), "t": np.array([1.0, math.nan, 3.0, 4.0])}
    records = records_of_columns(columns, np.array([7, 7, 7, 8]), ("a",), "t")

    assert records.targets.tolist() == [1.0, 3.0, 4.0]
    assert records.weights.tolist() == pytest.approx([0.5, 0.5, 1.0])


def test_labels_are_the_positions_of_declared_classes():
    """Equal by value; what is none of them is dropped."""
    columns = {"a": np.arange(5.0), "t": np.array(["no", "yes", "maybe", None, [1]], dtype=object)}
    records = records_of_columns(columns, np.arange(5), ("a",), "t", classes=("no", "yes"))
    numbers = records_of_columns({"a": np.zeros(3), "t": np.array([0, 1, 2])}, np.arange(3), ("a",), "t", classes=(1.0, 0.0))

    assert records.targets.tolist() == [0.0, 1.0]
    assert numbers.targets.tolist() == [1.0, 0.0]


def test_no_rows_are_no_error():
    """A study may be empty."""
    records = records_of_columns({"a": np.zeros(0), "t": np.zeros(0)}, np.zeros(0, np.int64), ("a",), "t")

    assert records.rows.shape == (0, 1)
    assert weights_of(np.zeros(0, np.int64)).shape == (0,)


@pytest.mark.parametrize("wrong", [3, (1,), (1, 0), (0, 0), (0, math.inf), (math.nan, 1), ([0, 0, 0], 1), "ab", (0, 5e-324)])
def test_bounds_that_are_none_are_refused(wrong):
    """One sentence."""
    with pytest.raises(InvalidParameter, match="bounds must be a pair"):
        bounds_of(wrong, Facts(None, 2))


def test_bounds_come_from_the_caller_or_from_the_study():
    """Never from data: without either they are asked for, by the column that lacks them."""
    given = bounds_of((0, [1, 2]), Facts(None, 2))
    study = bounds_of(None, Facts(None, 2, ("a", "b"), ((0.0, 1.0), (-1.0, 3.0))))

    assert (given.low.tolist(), given.high.tolist()) == ([0.0, 0.0], [1.0, 2.0])
    assert (study.centre.tolist(), study.half.tolist()) == ([0.5, 1.0], [0.5, 2.0])
    with pytest.raises(InvalidParameter, match="must not be taken from the data"):
        bounds_of(None, Facts(None, 2))
    with pytest.raises(InvalidParameter, match="'b'"):
        bounds_of(None, Facts(None, 2, ("a", "b"), ((0.0, 1.0), None)))
