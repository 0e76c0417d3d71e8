"""PrivateRecommender: fitted in every shape of ratings, asked with a user's own, never reading the table again."""

import gc
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conventions import CONVENTIONS, Case, saved_is_loaded
from scipy import sparse
from sklearn.exceptions import NotFittedError

import curador as cu
from curador import learn
from curador.errors import InvalidParameter, Refused
from curador.learn.estimators.recommender import METHODS, PrivateRecommender
from curador.learn.ratings import Ratings, synthetic_ratings
from curador.learn.recommend import forecast
from curador.learn.release import Releaser

TRAIN, TEST = synthetic_ratings(300, 40, seed=2, per_user=15)
STARS = TRAIN.values  # noqa: PD011 -- no frame
TABLE = np.column_stack([TRAIN.owners, TRAIN.items])
SETTINGS = {"epsilon": 2, "delta": 1e-5, "rating_range": (1, 5), "items": 40, "n_nominal": 300}
OWN = {3: 5.0, 7: 1.0, 11: 4.0}


def made(method="spectral", **changes):
    return learn.PrivateRecommender(method, **{**SETTINGS, **changes})


@pytest.fixture
def sure(monkeypatch):
    """Noise so small that every shape of the same ratings gives nearly the same model."""
    monkeypatch.setattr(forecast, "TASTE", 1.0)
    return {"epsilon": 500, "delta": 0.1}


# ---- shapes of ratings --------------------------------------------------------------------------------------------------


SHAPES = {
    "columns user and item": lambda: (TABLE, STARS),
    "three columns": lambda: (np.column_stack([TABLE, STARS]), None),
    "pandas, in order": lambda: (pd.DataFrame({"who": TRAIN.owners, "film": TRAIN.items, "stars": STARS}), None),
    "pandas, by name": lambda: (
        pd.DataFrame({"rating": STARS, "item": TRAIN.items, "x": 0, "user": TRAIN.owners}),
        None,
    ),
    "polars": lambda: (pl.DataFrame({"who": TRAIN.owners, "film": TRAIN.items}), pl.Series(STARS)),
    "structured": lambda: (
        np.array(list(zip(TRAIN.owners, TRAIN.items, STARS, strict=True)), dtype=[("u", "i8"), ("i", "i4"), ("r", "f8")]),
        None,
    ),
    "csr": lambda: (TRAIN.matrix(STARS), None),
    "coo matrix": lambda: (sparse.coo_matrix((STARS, (TRAIN.owners, TRAIN.items)), shape=(300, 40)), None),
    "users as texts": lambda: (
        pd.DataFrame({"u": [f"user {one}" for one in TRAIN.owners], "i": TRAIN.items, "r": STARS}),
        None,
    ),
    "ratings": lambda: (TRAIN, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_ratings_give_the_same_sums_in_every_shape(shape, monkeypatch):
    """What is released before noise is the same integers."""
    seen = {}

    def noisy(self, name, integers, *, length, step):
        seen.setdefault(name, integers)
        return integers * step

    monkeypatch.setattr(Releaser, "noisy", noisy)
    made("bias").fit(TABLE, STARS)
    first = seen.pop("biases")
    made("bias").fit(*SHAPES[shape]())

    assert np.array_equal(seen["biases"], first)


def test_a_catalogue_of_texts(sure):
    """Rows of the model follow it; items beyond it are dropped."""
    names = np.array([f"film {one}" for one in range(40)])
    table = pd.DataFrame({"user": TRAIN.owners, "item": names[TRAIN.items], "rating": STARS})
    table.loc[len(table)] = [999, "a film nobody declared", 5.0]
    fitted = made("bias", items=names[::-1].copy(), **sure).fit(table)
    plain = made("bias", **sure).fit(TABLE, STARS)

    assert fitted.item_ids_.tolist() == names[::-1].tolist()
    assert fitted.item_bias_[::-1] == pytest.approx(plain.item_bias_, abs=0.2)
    assert fitted.recommend({"film 3": 5.0}, 3).dtype.kind == "U"


# ---- what a user asks ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_everything_is_asked_with_own_ratings_after_the_table_is_gone(method, tmp_path, sure):
    """Joint privacy: only what is of items is kept; a file of it answers as well."""
    users, items, values = TRAIN.owners.copy(), TRAIN.items.copy(), STARS.copy()
    fitted = made(method, **sure).fit(np.column_stack([users, items]), values)
    del users, items, values
    gc.collect()
    fitted.save(tmp_path / "model.json")
    loaded = learn.load(tmp_path / "model.json")

    for model in (fitted, loaded):
        guesses = model.predict(OWN, [1, 2, 3])
        assert guesses.shape == (3,)
        assert np.all((guesses >= 1) & (guesses <= 5))
        assert len(model.recommend(OWN, 5)) == 5
        assert model.fold_in(OWN).shape == (1 + model.n_components_,)
    assert np.array_equal(loaded.predict(OWN, range(40)), fitted.predict(OWN, range(40)))
    assert np.array_equal(loaded.recommend(OWN, 7), fitted.recommend(OWN, 7))
    shapes = {np.shape(value) for name, value in vars(fitted).items() if name.endswith("_") and isinstance(value, np.ndarray)}
    assert all(300 not in shape for shape in shapes), "nothing is kept of users"


@pytest.mark.slow
def test_a_file_of_the_model_says_nothing_of_who_rated(tmp_path):
    """Numbers of items and the card; no list as long as users or ratings."""
    fitted = made().fit(TABLE, STARS)
    fitted.save(tmp_path / "model.json")
    body = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    lengths = {len(value["array"]) for value in body["fitted"].values() if isinstance(value, dict) and "array" in value}

    assert lengths <= {0, 40, *[40 * k for k in range(1, 16)], *range(16)}


@pytest.mark.slow
def test_own_ratings_matter_and_others_do_not(sure):
    """Who rates high is expected to; a pair and a mapping are the same; unknown items and NaN are as if not given."""
    fitted = made(**sure).fit(TABLE, STARS)
    plain = fitted.predict(OWN, [1, 2])

    assert np.all(fitted.predict(dict.fromkeys(range(20), 5), [30]) > fitted.predict(dict.fromkeys(range(20), 1), [30]))
    assert np.array_equal(fitted.predict((np.array([3, 7, 11]), np.array([5.0, 1.0, 4.0])), [1, 2]), plain)
    assert np.array_equal(fitted.predict({**OWN, 12345: 1.0, "film": 2.0, 20: float("nan")}, [1, 2]), plain)
    assert np.array_equal(fitted.predict({3: 50.0, 7: -10.0, 11: 4.0}, [1, 2]), plain), "clipped to the range"


def test_unknown_items_are_expected_as_the_floor_says(sure):
    """The mean, and the user's bias where there is one."""
    fitted = made(**sure).fit(TABLE, STARS)

    assert fitted.predict({}, [999, "x", -1]) == pytest.approx([fitted.mean_] * 3)
    assert fitted.predict(None, [999]) == pytest.approx([fitted.mean_])
    assert fitted.predict({1: 5, 2: 5, 3: 5}, [999])[0] > fitted.mean_


def test_recommended_are_the_best_that_were_not_rated(sure):
    """In the order of what is expected, none twice; no more than there are."""
    fitted = made(**sure).fit(TABLE, STARS)
    found = fitted.recommend(OWN, 100)
    guesses = fitted.predict(OWN, found)

    assert len(found) == 37
    assert not set(found.tolist()) & set(OWN)
    assert np.all(np.diff(guesses) <= 1e-12)


def test_held_out_errors_are_measured(sure):
    """Below the spread of ratings where there is hardly any noise."""
    fitted = made(**sure).fit(TABLE, STARS)

    assert fitted.held_out_error(TRAIN, TEST) < 0.98 * float(np.std(TEST.values))


# ---- what it says of itself ---------------------------------------------------------------------------------------------


def test_the_card_says_joint():
    """Per user, exact, with every release; and that no component stands out."""
    card = made().fit(TABLE, STARS).privacy_

    assert (card.guarantee, card.unit, card.exact, card.records) == ("joint", "user", True, 300)
    assert any("own ratings" in note for note in card.notes)
    assert any("no component" in note for note in card.notes)
    assert sum(one.count for one in card.releases) == 4


def test_declared_ratings_decide_before_data():
    """Where nothing can stand out, one release has everything."""
    card = made(ratings_per_user=15).fit(TABLE, STARS).privacy_

    assert [(one.name, one.count) for one in card.releases] == [("biases", 1)]
    assert not made(ratings_per_user=15).dry_run().worthwhile


def test_a_dry_run_needs_no_data():
    """Declared numbers only: parameters, or those that are given."""
    few, many = made().dry_run(16_500, 10_500, 2), made(epsilon=4).dry_run(10_000, 500, 49)

    assert not few.worthwhile
    assert "No personal components" in few.verdict
    assert few.numbers["users needed"] > 16_500
    assert few.numbers["noise edge"] > few.numbers["largest expected eigenvalue"]
    assert many.worthwhile
    assert many.numbers["noise edge"] < many.numbers["largest expected eigenvalue"]
    assert all(made(method, ratings_per_user=9).dry_run().verdict for method in METHODS)


def test_replacing_a_user_takes_twice_the_noise():
    """And the number of users is then public."""
    add = made("bias").fit(TABLE, STARS).privacy_
    swap = made("bias", adjacency="replace_one", n_nominal=None).fit(TABLE, STARS).privacy_

    assert swap.records == 300
    assert swap.releases[0].deviation == pytest.approx(2 * add.releases[0].deviation, rel=1e-3)


# ---- conventions and refusals -------------------------------------------------------------------------------------------


MORE = (np.vstack([TABLE, [[777, 3]] * 5]), np.append(STARS, [5.0] * 5))
CASE = Case(
    PrivateRecommender,
    {**SETTINGS, "method": "als", "epsilon": 1},
    (TABLE, STARS),
    MORE,
    lambda one: one.predict(OWN, range(40)),
)


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda one: one.__name__)
def test_the_conventions_hold(convention):
    """One promise of estimators: see conventions.py."""
    convention(CASE)


def test_a_saved_recommender_is_the_same(tmp_path):
    """Through JSON, number for number."""
    saved_is_loaded(CASE, tmp_path / "model.json")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "magic"}, "method must be one of spectral, bias, als, frank_wolfe; got 'magic'"),
        ({"delta": 0}, "delta must be above 0 for a recommender"),
        ({"items": None}, "items must be the catalogue"),
        ({"rating_range": None}, "rating_range must be a pair"),
        ({"rating_range": (5, 1)}, "rating_range must be a pair"),
        ({"n_nominal": None}, "n_nominal must be declared"),
        ({"n_nominal": 0}, "n_nominal must be"),
        ({"rank": 0}, "rank must be"),
        ({"rank": 99}, "rank must be 'auto' or at most 15"),
        ({"rank": "many"}, "rank must be"),
        ({"ratings_per_user": -1}, "ratings_per_user must be positive"),
    ],
    ids=str,
)
def test_bad_parameters_get_one_sentence(changes, words):
    """Before anything is released."""
    with pytest.raises(InvalidParameter, match=words) as caught:
        made(**changes).fit(TABLE, STARS)
    assert str(caught.value).splitlines()[0].endswith(".")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((TABLE,), "y must be given where X has no third column"),
        ((TABLE, STARS[:5]), "y must be one rating for each row of X"),
        ((np.arange(5), np.arange(5)), "X must be ratings"),
        ((np.ones((4, 5)),), "X must be ratings"),
        ((TABLE, np.array(["good"] * len(TABLE))), "ratings must be numbers"),
        ((sparse.csr_array(np.ones((3, 7))),), "X must be of one column for each item"),
        ((sparse.csr_array(np.ones((3, 40))), STARS), "y must be left out"),
        ((Ratings(np.array([0, 0]), np.zeros(0, int), np.zeros(0), 7),), "X must be of as many items as declared"),
    ],
    ids=[f"data {place}" for place in range(8)],
)
def test_bad_tables_get_one_sentence(data, words):
    """Shapes, not values: values beyond the range are clipped and no error."""
    with pytest.raises(InvalidParameter, match=words):
        made().fit(*data)


@pytest.mark.parametrize("own", [5, [1, 2], "abc", ([1, 2], [3]), ([1], ["x"])], ids=str)
def test_bad_own_ratings_get_one_sentence(own):
    """A mapping or a pair."""
    with pytest.raises(InvalidParameter, match="ratings_of_user must be a mapping"):
        made("bias").fit(TABLE, STARS).predict(own, [1])


@pytest.mark.parametrize("asked", [5, "film", np.ones((2, 2)), None], ids=str)
def test_bad_items_get_one_sentence(asked):
    """A list of them."""
    with pytest.raises(InvalidParameter, match="items must be a list of items"):
        made("bias").fit(TABLE, STARS).predict(OWN, asked)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "table",
    [
        np.zeros((0, 3)),
        np.array([[1.0, 2.0, np.nan], [2.0, 999.0, 4.0], [np.nan, 1.0, 4.0]]),
        np.array([[1.0, 2.0, 4.0]]),
        sparse.csr_array((0, 40)),
    ],
    ids=["nothing", "nothing usable", "one rating", "no users"],
)
def test_whatever_is_in_a_table_it_can_be_fitted(method, table):
    """An error that depends on values would tell of them."""
    fitted = made(method).fit(table)

    assert np.isfinite(fitted.predict(OWN, range(40))).all()


def test_users_that_cannot_be_told_apart_are_refused():
    """Lists are nobody's name."""
    table = pd.DataFrame({"user": [[1], [2]], "item": [1, 2], "rating": [3, 4]})
    with pytest.raises(InvalidParameter, match="users must be numbers or texts"):
        made().fit(table)


def test_nobody_predicts_before_a_fit():
    """As everywhere."""
    for ask in (lambda one: one.predict({}, [1]), lambda one: one.recommend({}), lambda one: one.fold_in({})):
        with pytest.raises(NotFittedError):
            ask(made())


def test_bad_questions_get_one_sentence():
    """How many, and what a dry run must be told."""
    fitted = made("bias").fit(TABLE, STARS)
    with pytest.raises(InvalidParameter, match="k must be a whole number"):
        fitted.recommend(OWN, 0)
    with pytest.raises(InvalidParameter, match="ratings_per_user must be given"):
        made().dry_run()
    with pytest.raises(InvalidParameter, match="n_users must be given"):
        made(n_nominal=None).dry_run(ratings_per_user=3)


# ---- through a curator --------------------------------------------------------------------------------------------------


def opened(folder, **changes):
    words = ["fine"] * len(STARS)
    table = pa.table({"who": TRAIN.owners, "film": TRAIN.items, "stars": STARS, "words": words})
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "ratings.parquet")
    options = {
        "unit": "who",
        "budget": cu.Budget(epsilon=10, delta="1e-6", delta_keys=0),
        "bounds": {"stars": (1, 5)},
        "engine": {"worker": "inline", "threads": 1},
    }
    return cu.open(folder / "ratings.parquet", **{**options, **changes})


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "stars"])
def test_a_fit_through_a_curator_is_charged_and_keeps_items_only(target, tmp_path):
    """The unit is the user; predictions need no curator; the range is the declared one of the column."""
    with opened(tmp_path) as curator:
        fitted = made("als", rating_range=None, epsilon=1, delta="1e-6").fit(
            curator.rows("ratings", columns=["film", "stars"]), target
        )
        assert curator.budget.spent.rho > 0
    (tmp_path / "ratings.parquet").unlink()

    assert fitted.rating_range_ == (1.0, 5.0)
    assert fitted.privacy_.guarantee == "joint"
    assert fitted.privacy_.entry
    assert fitted.predict(OWN, [1, 2]).shape == (2,)


@pytest.mark.slow
def test_a_share_of_a_budget_is_enough_to_say(tmp_path):
    """ε and δ then follow the study; also what a dry run would decide."""
    with opened(tmp_path) as curator:
        rows = curator.rows("ratings", columns=["film", "stars"], spend="10%")
        fitted = made(epsilon=None, delta=None, ratings_per_user=15).fit(rows)
        assert curator.budget.spent.rho <= curator.budget.limit.rho / 10
        with pytest.raises(Refused, match="columns must be the item and the rating"):
            made().fit(curator.rows("ratings", columns=["film"]))
        with pytest.raises(Refused, match="the column of ratings must be one of numbers"):
            made().fit(curator.rows("ratings", columns=["film", "words"]))
        with pytest.raises(Refused, match="rating_range must be a pair"):
            made(rating_range=None).fit(curator.rows("ratings", columns=["stars", "film"]))
        with pytest.raises(Refused, match="n_nominal must be declared"):
            made(n_nominal=None).fit(rows)

    assert [one.name for one in fitted.privacy_.releases] == ["biases"]
