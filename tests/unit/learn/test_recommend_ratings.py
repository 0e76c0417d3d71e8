"""Ratings as they are read: known items, one rating for each user and item, within the range; and files of them."""

import numpy as np
import pytest

from curador.errors import InvalidParameter
from curador.learn.estimators.recommender import read_table
from curador.learn.ratings import Scale, catalogue_of, number_users, ratings_of, read_movielens, scale_of, synthetic_ratings

SCALE = Scale(1.0, 5.0)


def read(users, items, values, *, n_users=3, catalogue=4):
    return ratings_of(
        np.array(users), np.array(items), np.array(values, float), n_users=n_users, catalogue=catalogue, scale=SCALE
    )


def test_ratings_lie_in_rows_of_users():
    """By user, then by item, whatever order they came in."""
    found = read([2, 0, 0], [1, 3, 0], [5, 4, 3])

    assert found.starts.tolist() == [0, 2, 2, 3]
    assert found.items.tolist() == [0, 3, 1]
    assert found.values.tolist() == [3, 4, 5]
    assert found.counts.tolist() == [2, 0, 1]
    assert found.owners.tolist() == [0, 0, 2]
    assert [part.tolist() for part in found.of(0)] == [[0, 3], [3, 4]]
    assert found.matrix(found.values).toarray().tolist() == [[3, 0, 0, 4], [0, 0, 0, 0], [0, 5, 0, 0]]


def test_several_ratings_of_an_item_are_their_mean_and_then_clipped():
    """1 and 17 are 9 before they are 5; clipped first they would be 3."""
    assert read([0, 0], [2, 2], [1, 17]).values.tolist() == [5.0]
    assert read([0, 0, 0], [2, 2, 2], [1, 2, 3]).values.tolist() == [2.0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_no_rating(value):
    """It is as if it were not there."""
    assert read([0, 0], [2, 2], [value, 4]).values.tolist() == [4.0]


def test_far_values_do_not_overflow():
    """A mean of the largest numbers there are is the end of the scale."""
    assert read([0, 0], [1, 1], [1.7e308, 1.7e308]).values.tolist() == [5.0]
    assert read([0, 0], [1, 1], [-1.7e308, -1.7e308]).values.tolist() == [1.0]


def test_unknown_items_and_nobody_are_dropped():
    """Neither becomes a part of the model."""
    found = read([0, 0, -1, 7], [-1, 4, 1, 1], [3, 3, 3, 3])

    assert found.catalogue == 4
    assert len(found.values) == 0
    assert found.users == 3


def test_only_keeps_all_users():
    """Also those who have nothing left."""
    found = read([0, 0, 2], [0, 3, 1], [3, 4, 5])
    kept = found.only(found.items > 0)

    assert kept.users == 3
    assert kept.items.tolist() == [3, 1]
    assert kept.starts.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("items", "asked", "codes"),
    [
        (3, [0, 2, 3, -1], [0, 2, -1, -1]),
        ([30, 10, 20], [10, 30, 11, 99, 0], [1, 0, -1, -1, -1]),
        ([30, 10, 20], [10.0, 30.5, np.nan, np.inf, 1e300], [1, -1, -1, -1, -1]),
        ([5, 3, 4], [3.0, 4.0, 2.0], [1, 2, -1]),
        ([30, 10, 20], np.array([2**63 + 10, 20], np.uint64), [-1, 2]),
        (["b", "a"], ["a", "b", "", "c"], [1, 0, -1, -1]),
        (["b", "a"], [1.0, 2.0], [-1, -1]),
        ([30, 10], np.array([10, "x", None, [1]], dtype=object), [1, -1, -1, -1]),
        ([30, 10], np.ma.masked_array([10, 30], mask=[False, True]), [1, -1]),
    ],
    ids=str,
)
def test_items_have_the_place_that_the_catalogue_gives_them(items, asked, codes):
    """Whatever is asked: what is not there is -1, never an error."""
    assert catalogue_of(items).codes(np.asarray(asked) if isinstance(asked, list) else asked).tolist() == codes


@pytest.mark.parametrize(
    "items", [None, 1, 0, -3, [1], [1, 1], [[1, 2], [3, 4]], [1.5, 2.5], "films", True, 3.5, {}], ids=str
)
def test_a_catalogue_must_be_declared(items):
    """One sentence for everything else."""
    with pytest.raises(InvalidParameter, match=r"^items must be .*; got .*\."):
        catalogue_of(items)


@pytest.mark.parametrize(
    "given", [None, 5, (5, 1), (1, 1), (1, 2, 3), ("a", 2), (1, float("inf")), (float("nan"), 2), (0, 1e200), (0, 1e-9)]
)
def test_a_range_must_be_declared(given):
    """One sentence for everything else."""
    with pytest.raises(InvalidParameter, match=r"^rating_range must be .*; got .*\."):
        scale_of(given)


def test_a_scale_has_a_middle():
    """And half a width."""
    assert (scale_of((0, "10")).centre, scale_of((1, 5)).half) == (5.0, 2.0)


@pytest.mark.parametrize(
    ("users", "groups"),
    [
        ([7, 3, 7], [1, 0, 1]),
        ([2.0, np.nan, 1.0], [1, -1, 0]),
        (np.array(["b", None, "a", "b"], dtype=object), [0, -1, 1, 0]),
        (np.array(["b", "a", "b"]), [1, 0, 1]),
    ],
    ids=str,
)
def test_users_are_numbered(users, groups):
    """NaN and None are nobody."""
    codes, many = number_users(users)

    assert codes.tolist() == groups
    assert many == max(groups) + 1


MOVIELENS = {
    "u.data": (
        "196\t242\t3\t881250949\n186\t302\t4\t891717742\n",
        "u.item",
        "242|Kolya Å (1996)|…\n302|L.A. Confidential|\n7|X\n",
    ),
    "ratings.dat": (
        "196::242::3.5::1\n186::302::4::2\n",
        "movies.dat",
        "242::Kolya::Comedy\n302::L.A.: Confidential::Crime\n7::X::Y\n",
    ),
    "ratings.csv": (
        "userId,movieId,rating,timestamp\n196,242,3.5,1\n186,302,4.0,2\n",
        "movies.csv",
        'movieId,title,genres\n242,"Kolya, the",x\n302,L,y\n7,X,z\n',
    ),
}


@pytest.mark.parametrize("name", MOVIELENS)
@pytest.mark.parametrize("by_folder", [True, False])
def test_movielens_files_are_read(name, by_folder, tmp_path):
    """All three kinds, by file or folder; the catalogue is the file beside it."""
    ratings, beside, films = MOVIELENS[name]
    (tmp_path / name).write_text(ratings, encoding="utf-8")
    assert read_movielens(tmp_path / name).catalogue is None
    (tmp_path / beside).write_text(films, encoding="utf-8")
    found = read_movielens(tmp_path if by_folder else tmp_path / name)

    assert found.users.tolist() == [196, 186]
    assert found.items.tolist() == [242, 302]
    assert found.ratings[1] == 4.0
    assert found.catalogue is not None
    assert found.catalogue.tolist() == [242, 302, 7]


@pytest.mark.parametrize("content", [None, "a,b\n", "1\t2\n"])
def test_what_is_no_movielens_file_is_refused(content, tmp_path):
    """In one sentence."""
    if content is not None:
        (tmp_path / "u.data").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidParameter, match=r"^path must be a MovieLens folder"):
        read_movielens(tmp_path)
    with pytest.raises(InvalidParameter, match=r"^path must be a MovieLens folder"):
        read_movielens(tmp_path / "else.txt")


def test_made_up_ratings_are_the_same_for_the_same_seed():
    """And others for another; train and test never share a rating."""
    train, test = synthetic_ratings(200, 50, seed=3, per_user=20)
    again, _ = synthetic_ratings(200, 50, seed=3, per_user=20)
    other, _ = synthetic_ratings(200, 50, seed=4, per_user=20)

    assert np.array_equal(train.values, again.values)
    assert not np.array_equal(train.values, other.values)
    assert train.users == test.users == 200
    assert not (set(zip(train.owners, train.items, strict=True)) & set(zip(test.owners, test.items, strict=True)))
    assert 0.05 < len(test.values) / len(train.values) < 0.2
    assert train.values.min() >= 1
    assert train.values.max() <= 5


@pytest.mark.slow
def test_made_up_ratings_are_as_hard_as_they_are_said_to_be():
    """About 49 a user to train with; means explain what means explain of films' ratings."""
    train, test = synthetic_ratings(seed=1)
    mean = train.values.mean()
    of_items = np.bincount(train.items, weights=train.values - mean, minlength=500) / (
        np.bincount(train.items, minlength=500) + 3
    )

    assert 45 < len(train.values) / 10_000 < 53
    assert 1.04 < float(np.std(test.values)) < 1.10
    assert 0.93 < float(np.sqrt(np.mean((test.values - mean - of_items[test.items]) ** 2))) < 1.0


@pytest.mark.slow
def test_made_up_films_are_rated_as_films_are():
    """Popularity falls as a power, nobody rates few, ratings are whole; means explain what they explain of such sets."""
    train, test = synthetic_ratings(943, 1682, seed=1, per_user=106, pattern="films")
    counts = np.sort(np.bincount(train.items, minlength=1682))[::-1]
    mean = train.values.mean()
    of_items = np.bincount(train.items, weights=train.values - mean, minlength=1682) / (
        np.bincount(train.items, minlength=1682) + 3
    )

    assert 95_000 < len(train.values) + len(test.values) < 115_000
    assert counts[:168].sum() > 0.4 * counts.sum()
    assert np.mean(counts < 10) > 0.25
    assert (train.counts + test.counts).min() >= 20
    assert set(train.values.tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert 1.05 < float(np.std(test.values)) < 1.15
    assert 0.95 < float(np.sqrt(np.mean((test.values - mean - of_items[test.items]) ** 2))) < 1.01
    with pytest.raises(InvalidParameter, match="pattern must be 'even' or 'films'"):
        synthetic_ratings(10, 10, pattern="books")


def test_ids_that_floats_cannot_tell_apart_stay_apart():
    """As a list of tuples they stay whole numbers; as floats they are refused."""
    ids = [2**60, 2**60 + 1, 2**60 + 2]
    rows = [(one, 0, 3.0) for one in ids]
    found = read_table(rows, None, catalogue_of(2), scale_of((1, 5)))
    assert found.users == 3
    with pytest.raises(InvalidParameter, match="users must be below"):
        number_users(np.array(ids, float))


def test_missing_users_of_any_library_are_nobody():
    pd = pytest.importorskip("pandas")
    codes, users = number_users(np.array(["a", None, float("nan"), pd.NA, "b", "a"], dtype=object))
    assert (codes.tolist(), users) == ([0, -1, -1, -1, 1, 0], 2)
