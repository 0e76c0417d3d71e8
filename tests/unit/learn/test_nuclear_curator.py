"""PrivateNuclearRegressor through a curator: planned without data, charged first, all rows of a unit as one record."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador.errors import InvalidParameter
from curador.learn import PrivateNuclearRegressor
from curador.learn.nuclear.losses import BilinearHuber

COLUMNS = ["a0", "a1", "b0", "b1", "y"]


@pytest.fixture
def curator(tmp_path):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(400, 4))
    table = {"who": draw.integers(0, 150, 400), **{name: rows[:, place] for place, name in enumerate(COLUMNS[:4])}}
    table["y"] = np.where(draw.random(400) < 0.05, np.nan, rows[:, 0] * rows[:, 2] / 4)
    pq.write_table(pa.table(table), tmp_path / "people.parquet")
    budget = cu.Budget(epsilon=20, delta="1e-6", delta_keys=0)
    with cu.open(
        tmp_path / "people.parquet",
        unit="who",
        budget=budget,
        bounds=dict.fromkeys(COLUMNS, (-5, 5)),
        engine={"worker": "inline", "threads": 1},
    ) as opened:
        yield opened


def made(**changed):
    settings = {"epsilon": 2, "delta": "1e-6", "n_nominal": 150, "left": ["a0", "a1"], "right": ["b0", "b1"]}
    return PrivateNuclearRegressor(**{**settings, **changed})


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["pgd", "frank_wolfe"])
def test_a_fit_through_a_curator(curator, solver):
    """The study's unit and neighbours, whatever the parameter says; the loss comes back as it was given."""
    loss = BilinearHuber(0.5)
    fitted = made(solver=solver, loss=loss).fit(curator.rows("people", columns=COLUMNS), y="y")

    assert fitted.coef_.shape == (2, 2)
    assert fitted.loss is loss
    assert str(fitted.privacy_.adjacency) == "add_or_remove_one"
    assert fitted.privacy_.entry is not None
    assert fitted.privacy_.records == 150
    assert fitted.predict(np.ones((1, 2)), np.ones((1, 2))).shape == (1,)


@pytest.mark.slow
def test_wrong_columns_are_refused_for_nothing(curator):
    spent = curator.budget.spent
    rows = curator.rows("people", columns=COLUMNS)
    for changed, y in (
        ({"left": ["z"]}, "y"),
        ({"right": None}, "y"),
        ({"left": ["y"]}, "y"),
        ({}, None),
        ({"n_nominal": None}, "y"),
    ):
        with pytest.raises(InvalidParameter):
            made(**changed).fit(rows, y=y)

    assert curator.budget.spent == spent


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["toeplitz", "tree", "stochastic", "thesis"])
def test_one_pass_is_refused(curator, solver):
    """A record's place in a table is the work of other rows."""
    spent = curator.budget.spent
    for ask in (made(solver=solver).fit, made(solver=solver).cost):
        with pytest.raises(InvalidParameter, match="through a curator"):
            ask(curator.rows("people", columns=COLUMNS), y="y")

    assert curator.budget.spent == spent
