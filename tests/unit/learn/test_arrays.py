"""Reading data: arrays are refused as scikit-learn refuses them, a study's columns never."""

import decimal
import inspect
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator

from curador import learn
from curador.errors import InvalidParameter
from curador.learn.base import Facts
from curador.learn.estimators.arrays import (
    Bounds,
    bounds_of,
    centre_rows,
    floats_of,
    read_matrix,
    read_more,
    records_of_columns,
    scale_rows,
    weights_of,
)
from curador.learn.release import Releaser


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
        ([["a", "b"]], "X must be made of numbers; got texts"),
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

    assert centre_rows(rows, np.array([1.0, 1.0, 1.0, 1.0])).tolist() == [[0.0, 0.0, 0.0, 2.0]]
    assert scale_rows(rows, Bounds(np.zeros(4), np.full(4, 4.0))).tolist() == [[0.0, 1.0, -1.0, 0.5]]


@pytest.mark.parametrize("bounds", [(0.0, 1e-307), (-1.7e308, 1.7e308), (1e308, 1.7e308), (1e300, 1.0000001e300)])
def test_scaling_stays_within_one_for_any_bounds(bounds):
    """Also where bounds are as near, as far or as large as floats allow."""
    found = bounds_of(bounds, Facts(None, 1))
    rows = np.array([[-math.inf], [bounds[0]], [0.0], [bounds[1]], [math.inf], [math.nan]])
    got = scale_rows(rows, found)

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


# ---- what is no number --------------------------------------------------------------------------------------------------

NAMED = "Mrs Robinson"
DAYS = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
FRAMES = {
    "pandas, texts": lambda: (pd.DataFrame({"age": [1.0, 2.0], "who": ["a", NAMED]}), "texts in column 'who'"),
    "pandas, objects": lambda: (
        pd.DataFrame({"age": [1.0, 2.0], "who": np.array([1.0, NAMED], object)}),
        "texts in column 'who'",
    ),
    "pandas, categories": lambda: (pd.DataFrame({"who": pd.Categorical(["a", NAMED])}), "texts in column 'who'"),
    "pandas, dates": lambda: (pd.DataFrame({"born": DAYS.astype("M8[ns]")}), "dates in column 'born'"),
    "pandas, durations": lambda: (pd.DataFrame({"late": (DAYS - DAYS[0]).astype("m8[ns]")}), "durations in column 'late'"),
    "polars, texts": lambda: (pl.DataFrame({"age": [1.0, 2.0], "who": ["a", NAMED]}), "texts in column 'who'"),
    "polars, dates": lambda: (pl.DataFrame({"born": DAYS}), "dates in column 'born'"),
    "array of texts": lambda: (np.array([["a", NAMED]]), "got texts"),
    "array of numbers as texts": lambda: (np.array([["1.0", "2.0"]]), "got texts"),
    "array of bytes": lambda: (np.array([[b"a", b"b"]]), "got texts"),
    "array of objects": lambda: (np.array([[1.0, NAMED]], object), "got texts"),
    "array of dates": lambda: (DAYS[:, None], "got dates"),
    "lists": lambda: ([[1.0, NAMED], [2.0, "x"]], "got texts"),
}
ESTIMATORS = {
    "linear": lambda table: learn.PrivateLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), **PRIVACY).fit(table, [0.0, 1.0]),
    "logistic": lambda table: learn.PrivateLogisticRegression(bounds_X=(0, 1), **PRIVACY).fit(table, ["no", "yes"]),
    "kmeans": lambda table: learn.PrivateKMeans(2, bounds=(0, 1), **PRIVACY).fit(table),
    "pca": lambda table: learn.PrivatePCA(**PRIVACY).fit(table),
    "nuclear, left": lambda table: learn.PrivateNuclearRegressor(**PRIVACY).fit(table, np.ones((2, 1)), [0.0, 1.0]),
    "nuclear, right": lambda table: learn.PrivateNuclearRegressor(**PRIVACY).fit(np.ones((2, 1)), table, [0.0, 1.0]),
}
PRIVACY = {"epsilon": 1, "delta": 1e-6}


@pytest.mark.slow
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_what_is_no_number_is_refused_before_anything_is_released(estimator, frame, monkeypatch):
    """In one sentence, which says the column and repeats no value."""
    monkeypatch.setattr(Releaser, "__init__", None)  # nothing can be released
    table, words = FRAMES[frame]()
    with pytest.raises(InvalidParameter, match=r"^(X|A|B) must be made of numbers; got .*\.\nHint: ") as caught:
        ESTIMATORS[estimator](table)
    assert words in str(caught.value)
    assert NAMED not in str(caught.value)


def test_targets_that_are_no_numbers_are_refused():
    """Where they should be numbers; labels may be texts."""
    for y in (["a", NAMED], np.array([1.0, NAMED], object), pd.Series(["a", NAMED])):
        with pytest.raises(InvalidParameter, match="y must be made of numbers; got texts") as caught:
            read_matrix(Something(), [[1.0], [2.0]], y)
        assert NAMED not in str(caught.value)
    with pytest.raises(InvalidParameter, match="ratings must be numbers"):
        learn.PrivateRecommender(rating_range=(1, 5), items=2, n_nominal=2, **PRIVACY).fit([(0, 0, "good"), (1, 1, 5.0)])


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1, 2], "b": [True, False]}),
        pd.DataFrame({"a": pd.array([1, 2], "Int64"), "b": pd.Categorical([3, 4])}),
        pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"]),
        pl.DataFrame({"a": [1, 2], "b": [True, False]}),
        np.array([[1, decimal.Decimal("0.5")], [2, 3.0]], object),
        np.array([[True, False]]),
        [[1, 2], [3, 4.5]],
    ],
    ids=str,
)
def test_numbers_of_any_library_are_numbers(table):
    """Whole, true or false, missing-capable, categories of numbers, two columns of one name."""
    if list(getattr(table, "columns", [])) == ["a", "a"]:
        table.columns = [0, 1]
    assert read_matrix(Something(), table)[0].rows.shape[1] == 2


def test_rows_that_are_asked_about_are_read_alike():
    """The same sentence from `predict`."""
    fitted = learn.PrivateKMeans(2, bounds=(0, 1), **PRIVACY).fit(np.ones((9, 1)))
    with pytest.raises(InvalidParameter, match="X must be made of numbers; got texts"):
        fitted.predict([[NAMED]])


# ---- bounds by column -----------------------------------------------------------------------------------------------------


def found(given, **facts):
    pair = bounds_of(given, Facts(None, 2, **facts))
    return pair.low.tolist(), pair.high.tolist()


def test_bounds_may_be_given_by_column():
    """By name, or by place where columns have no names; a study fills in what is not said."""
    want = ([0.0, 1.0], [5.0, 2.0])
    named = {"names": ("spent", "age")}

    assert found({"spent": (0, 5), "age": (1, 2)}, **named) == want
    assert found({"age": [1, 2], "spent": np.array([0, 5])}, **named) == want
    assert found({0: (0, 5), 1: (1, 2)}) == want
    assert found({1: (1, 2), 0: (0, 5)}, **named) == want
    assert found({"age": (1, 2)}, **named, bounds=((0.0, 5.0), None)) == want
    assert found({"age": (1, 2)}, **named, bounds=((0.0, 5.0), (7.0, 9.0))) == want


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"spent": (0, 5)}, "bounds must be given, or declared in the study for column 'age'"),
        ({"spent": (0, 5), "age": (2, 1)}, "low below high"),
        ({"spent": (0, 5), "age": (1, math.inf)}, "low below high"),
        ({"spent": (0, 5), "age": 3}, "low below high"),
        ({"spent": (0, 5), "age": ("a", "b")}, "low below high"),
        ({"spent": (0, 5), "age": (1, 2), "sex": (0, 1)}, "bounds must be of columns that there are; got 'sex'"),
        ({2: (0, 5)}, "bounds must be of columns that there are; got 2"),
        ({None: (0, 5)}, "bounds must be of columns that there are"),
        (([0, 1, 2], [3, 4, 5]), "bounds must be a pair (low, high) for 2 columns; got 'one for 3'"),
    ],
    ids=str,
)
def test_bounds_by_column_that_cannot_be_are_refused(bounds, words):
    """One sentence each."""
    with pytest.raises(InvalidParameter, match=re.escape(words)):
        found(bounds, names=("spent", "age"))


BY_COLUMN = {
    "linear": lambda bounds: learn.PrivateLinearRegression(bounds_X=bounds, bounds_y=(0, 1), n_nominal=50, **PRIVACY),
    "logistic": lambda bounds: learn.PrivateLogisticRegression(bounds_X=bounds, classes=[0, 1], n_nominal=50, **PRIVACY),
    "kmeans": lambda bounds: learn.PrivateKMeans(2, bounds=bounds, n_nominal=50, **PRIVACY),
}


@pytest.mark.parametrize("name", BY_COLUMN)
def test_bounds_by_column_are_those_of_pairs(name, monkeypatch, tmp_path):
    """The same integers before noise, the same forecast, and a file that is read."""
    draw = np.random.default_rng(3)
    frame = pd.DataFrame({"age": draw.uniform(0, 90, 50), "spent": draw.uniform(0, 500, 50)})
    seen = []

    def noisy(_self, _name, integers, *, length, step):
        seen.append((integers.tolist(), length, step))
        return integers * step

    monkeypatch.setattr(Releaser, "noisy", noisy)
    y = (frame["age"] > 40).to_numpy().astype(float)
    fits = [BY_COLUMN[name](one) for one in (([0, 0], [90, 500]), {"spent": (0, 500), "age": (0, 90)})]
    for one in fits:
        one.fit(frame, y)
    half = len(seen) // 2

    assert seen[:half] == seen[half:]
    assert fits[0].dry_run(1000, 2) == fits[1].dry_run(1000, 2) == fits[1].dry_run(1000)
    assert fits[0].dry_run() == fits[1].dry_run()
    fits[1].save(tmp_path / "model.json")
    assert learn.load(tmp_path / "model.json").get_params() == fits[1].get_params()


# ---- one order of forecasts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BY_COLUMN)
def test_records_come_first_in_every_forecast(name):
    """As in that of components; the orders of before are understood, with a warning."""
    flat, columns = BY_COLUMN[name]((0, 1)), BY_COLUMN[name](([0, 0, 0], [1, 1, 1]))
    want = flat.dry_run(7000, 3)

    assert want == flat.dry_run(n_features=3, n_records=7000) == columns.dry_run(7000) == columns.dry_run(n_records=7000)
    assert flat.dry_run(n_features=3) == flat.dry_run(50, 3) == columns.dry_run()
    assert flat.dry_run(3, n_features=60) == flat.dry_run(n_records=3, n_features=60)
    for old in (lambda: flat.dry_run(3, 7000), lambda: flat.dry_run(3, n_records=7000), lambda: columns.dry_run(3, 7000)):
        with pytest.warns(FutureWarning, match="records come first"):
            assert old() == want
    for one in (flat, columns):
        with pytest.warns(FutureWarning, match="records come first"):
            assert one.dry_run(3) == flat.dry_run(50, 3)


def test_every_estimator_is_asked_in_one_order():
    """Records (users), then features (items, shape)."""
    orders = {
        name: list(inspect.signature(getattr(learn, name).dry_run).parameters)[1:3]
        for name in learn.WHERE
        if name.startswith("Private")
    }

    assert orders.pop("PrivateRecommender") == ["n_users", "n_items"]
    assert orders.pop("PrivateNuclearRegressor") == ["n_records", "shape"]
    assert set(map(tuple, orders.values())) == {("n_records", "n_features")}


def test_a_number_of_records_that_is_called_n_is_understood():
    """With a warning."""
    pca, matrix = learn.PrivatePCA(**PRIVACY), learn.PrivateNuclearRegressor(**PRIVACY)
    with pytest.warns(FutureWarning, match="records come first"):
        assert pca.dry_run(n=500, n_features=4) == pca.dry_run(500, 4)
    with pytest.warns(FutureWarning, match="records come first"):
        assert matrix.dry_run(n=500, shape=(4, 4)) == matrix.dry_run(500, (4, 4))


def test_a_forecast_without_numbers_is_refused():
    """One sentence."""
    with pytest.raises(InvalidParameter, match="n_features must be given"):
        learn.PrivateKMeans(bounds=(0, 1), **PRIVACY).dry_run(100)
    with pytest.raises(InvalidParameter, match="n_records must be given"):
        learn.PrivateKMeans(bounds=([0], [1]), **PRIVACY).dry_run()
    with pytest.raises(InvalidParameter, match="n_records must be given"):
        learn.PrivateNuclearRegressor(**PRIVACY).dry_run(shape=(2, 2))
    with pytest.raises(InvalidParameter, match=r"bounds must be a pair \(low, high\) for 5 columns; got 'one for 3'"):
        learn.PrivateKMeans(bounds=([0, 0, 0], [1, 1, 1]), **PRIVACY).dry_run(24_000, 5)
