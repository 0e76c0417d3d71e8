"""What recommenders are made of: whole numbers of users, exact sums, and what is made of noisy ones."""

import math

import numpy as np
import pytest

from curador.learn.plan import goal_of, make_plan
from curador.learn.ratings import Ratings, Scale, ratings_of
from curador.learn.recommend import bias, forecast, frank_wolfe, spectral, users
from curador.learn.recommend.fits import (
    COST,
    SAVED,
    ItemModel,
    fold,
    forecast_fit,
    held_out_error,
    is_hopeless,
    learn,
    parts_of,
    predict_ratings,
)
from curador.learn.recommend.forecast import MOST_ITEMS, Prospect, assumed_popularity, prospect
from curador.learn.release import Releaser

SCALE = Scale(1.0, 5.0)


def some_ratings(seed=0, users=30, items=12, share=0.5):
    draw = np.random.default_rng(seed)
    owners, which = np.nonzero(draw.random((users, items)) < share)
    values = draw.uniform(1, 5, len(owners))
    return ratings_of(owners, which, values, n_users=users, catalogue=items, scale=SCALE)


# ---- whole numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", [True, False])
def test_vectors_are_whole_and_short(fill):
    """Within their limit, near what they stand for; with `fill`, of the whole length."""
    ratings = some_ratings()
    numbers = ratings.values - 3
    found = users.whole_vectors(ratings, numbers, norm=2.0, bits=14, fill=fill)
    lengths = np.sqrt(users.per_user(ratings, found.astype(float) ** 2))
    true = np.sqrt(users.per_user(ratings, numbers**2))

    assert found.dtype == np.int64
    assert lengths.max() <= 1 << 14
    if fill:
        assert lengths.min() > 0.999 * (1 << 14)
    else:
        short = true < 2
        assert np.allclose(
            (found * users.grid_step(2.0, 14))[short[ratings.owners]], numbers[short[ratings.owners]], atol=3e-4
        )
        assert np.all(lengths[~short] > 0.999 * (1 << 14))


def test_a_vector_that_would_be_too_long_is_nothing(monkeypatch):
    """The bound is verified in integers, whatever floating point did before."""
    monkeypatch.setattr(users, "INWARD", 1.01)
    ratings = some_ratings()

    assert not users.whole_vectors(ratings, ratings.values, norm=1.0, bits=14).any()
    assert not users.whole_rows_of_users(np.full((3, 2), 9.0), bits=10).any()


@pytest.mark.parametrize("wild", [np.nan, np.inf, 1e300, 1e-300, 0.0])
def test_wild_numbers_do_no_harm(wild):
    """No vector is longer than its limit, and nobody else's changes."""
    ratings = some_ratings()
    numbers = ratings.values - 3
    before = users.whole_vectors(ratings, numbers, norm=1.0, bits=14, fill=True)
    numbers[: ratings.starts[1]] = wild
    with np.errstate(over="ignore"):
        after = users.whole_vectors(ratings, numbers, norm=1.0, bits=14, fill=True)

    assert np.array_equal(before[ratings.starts[1] :], after[ratings.starts[1] :])
    assert np.square(after[: ratings.starts[1]]).sum() <= 1 << 28


def test_pair_sums_are_the_second_moment():
    """Exactly, block by block."""
    ratings = some_ratings(items=300, users=9, share=0.9)
    entries = users.whole_vectors(ratings, ratings.values - 3, norm=1.0, bits=14, fill=True)
    dense = ratings.matrix(entries).toarray()
    moment = dense.T @ dense

    assert np.array_equal(users.pair_sums(ratings, entries), moment[np.triu_indices(300, 1)])
    assert np.array_equal(users.item_sums(ratings, entries), dense.sum(axis=0))
    np.fill_diagonal(moment, 0)
    assert np.array_equal(users.symmetric(moment[np.triu_indices(300, 1)].astype(float), 300), moment)


def test_the_length_of_pairs_is_tight():
    """Half of the square of the whole, in the limit of many ratings."""
    ratings = Ratings(np.array([0, 400]), np.arange(400), np.full(400, 5.0), 400)
    entries = users.whole_vectors(ratings, ratings.values, norm=1.0, bits=14, fill=True)
    length = math.sqrt(sum(int(one) ** 2 for one in users.pair_sums(ratings, entries)))

    assert 0.98 * users.pair_length(14) < length <= users.pair_length(14)
    assert users.pair_length(14) ** 2 * 2 >= 1 << 56


def test_sums_that_do_not_fit_wrap():
    """So that no number of users is an error."""
    ratings = Ratings(np.array([0, 1, 2]), np.array([0, 0]), np.array([5.0, 5.0]), 2)
    assert users.item_sums(ratings, np.array([1 << 62, 1 << 62])).tolist() == [-(1 << 63), 0]


# ---- biases -------------------------------------------------------------------------------------------------------------


def exact_tally(ratings, noise=1e-6):
    weights = 1 / np.sqrt(np.maximum(ratings.counts, 1)[ratings.owners])
    likes = np.bincount(ratings.items, weights * (ratings.values - 3), minlength=ratings.catalogue)
    counts = np.bincount(ratings.items, weights, minlength=ratings.catalogue)
    return bias.BiasTally(likes, counts, noise**2, noise**2)


def test_a_release_without_much_noise_is_the_tally():
    """On its grid, in the right units."""
    ratings = some_ratings(users=400)
    releaser = Releaser(make_plan(goal_of(500, 0.1, "add_or_remove_one"), parts_of("bias", None, components=True)))
    found, true = bias.release_tally(ratings, SCALE, releaser, "biases"), exact_tally(ratings)

    assert np.abs(found.counts - true.counts).max() < 8 * math.sqrt(found.counts_variance) + 0.01
    assert np.abs(found.likes - true.likes).max() < 8 * math.sqrt(found.likes_variance) + 0.01
    assert found.counts_variance < 0.1


def test_biases_are_found_where_there_is_no_noise():
    """Items that are liked more have a higher bias, by about as much."""
    draw = np.random.default_rng(1)
    owners, which = np.nonzero(draw.random((2000, 20)) < 0.5)
    true = np.linspace(-1, 1, 20)
    values = 3.2 + true[which] + draw.normal(scale=0.3, size=len(owners))
    ratings = ratings_of(owners, which, values, n_users=2000, catalogue=20, scale=SCALE)
    model = bias.bias_model(exact_tally(ratings), SCALE, 2000)

    assert model.mean == pytest.approx(3.2, abs=0.05)
    assert model.items == pytest.approx(true, abs=0.1)
    assert model.per_user == pytest.approx(10, rel=0.1)


def test_nothing_is_claimed_of_noise():
    """A tally of noise only has no biases; the mean is the middle of the range."""
    draw = np.random.default_rng(2)
    model = bias.bias_model(bias.BiasTally(draw.normal(size=50), draw.normal(size=50) / 10, 1.0, 1.0), SCALE, 100)

    assert model.mean == 3.0
    assert not model.items.any()


def test_two_tallies_have_less_noise_than_one():
    """Weighted by how noisy they are."""
    one, other = bias.BiasTally(np.zeros(2), np.zeros(2), 4.0, 8.0), bias.BiasTally(np.ones(2), np.ones(2), 1.0, 2.0)
    both = bias.combine_tallies(one, other)

    assert both.likes == pytest.approx(0.8)
    assert both.likes_variance == pytest.approx(0.8)
    assert both.counts_variance == pytest.approx(1.6)
    assert bias.combine_tallies(other, one).likes == pytest.approx(both.likes)


# ---- components ---------------------------------------------------------------------------------------------------------


def flat_model(items=40, popularity=100.0):
    return bias.BiasModel(3.0, np.zeros(items), np.full(items, popularity), 0.1, 25.0)


def test_components_stand_out_or_are_dropped():
    """A strong one is found with its size; noise alone gives none."""
    draw = np.random.default_rng(3)
    direction = draw.choice([-1.0, 1.0], 40)
    noise = np.triu(draw.normal(size=(40, 40)), 1)
    noise += noise.T
    everything = Prospect(np.arange(40), 2.0, 1.0, 0.0, 0.0)
    correlation = 0.3 * np.outer(direction, direction) * (1 - np.eye(40)) * 100.0**2 / 2000
    found = spectral.factors_of(correlation + noise, 1.0, flat_model(), everything, users=2000, rank=5)
    nothing = spectral.factors_of(noise, 1.2, flat_model(), everything, users=2000, rank=5)

    assert found.items.shape == (40, 1)
    assert abs(np.corrcoef(found.items[:, 0], direction)[0, 1]) > 0.95
    assert np.square(found.items).mean() == pytest.approx(0.3, rel=0.25)
    assert nothing.items.shape == (40, 0)


def test_large_matrices_have_the_same_leading_component():
    """By iterations, from a fixed start."""
    draw = np.random.default_rng(4)
    direction = draw.normal(size=700)
    direction /= np.linalg.norm(direction)
    noise = draw.normal(size=(700, 700)) / 30
    value, vector = spectral.leading(50 * np.outer(direction, direction) + noise + noise.T)

    assert value == pytest.approx(50, rel=0.2)
    assert abs(vector @ direction) > 0.99


@pytest.mark.slow
def test_refined_factors_are_those_of_the_data():
    """One round, hardly any noise: items' factors up to a rotation and the shrinkage of doubt."""
    draw = np.random.default_rng(5)
    users, items = draw.normal(size=(1500, 2)), draw.normal(size=(30, 2)) * 0.5
    owners, which = np.nonzero(draw.random((1500, 30)) < 0.5)
    left = np.clip((users[owners] * items[which]).sum(axis=1) + draw.normal(size=len(owners)) * 0.3, -2, 2)
    ratings = ratings_of(owners, which, left + 3, n_users=1500, catalogue=30, scale=SCALE)
    model = bias.bias_model(exact_tally(ratings), SCALE, 1500)
    parts = parts_of("spectral", None, components=True)
    releaser = Releaser(make_plan(goal_of(500, 0.1, "add_or_remove_one"), parts))
    found = spectral.refine_factors(ratings, ratings.values - 3, users, model, SCALE, releaser, "factors", users=1500)
    explained = found @ np.linalg.lstsq(found, items, rcond=None)[0]

    assert np.corrcoef(explained.ravel(), items.ravel())[0, 1] > 0.97


def test_a_path_is_walked_as_it_was_made():
    """A user who walks it again, from own ratings, ends where the fit had that user."""
    ratings = some_ratings(items=6)
    path = frank_wolfe.Path(np.eye(6)[:, :2] * 0.5, np.array([0.3, 0.2]))
    left = ratings.values - 3
    whole = frank_wolfe.walk(ratings, left, path)
    items, values = ratings.of(4)
    alone = Ratings(np.array([0, len(items)]), items, values, 6)

    assert np.array_equal(frank_wolfe.walk(alone, values - 3, path)[0], whole[4])
    assert whole.shape == (30, 2)


# ---- what users do alone ------------------------------------------------------------------------------------------------


def test_ridge_is_ridge():
    """Each user's, as if it were solved alone."""
    ratings = some_ratings(seed=6)
    factors = np.random.default_rng(7).normal(size=(12, 3))
    found = users.ridge(ratings, ratings.values, factors, np.full(3, 0.7))
    for user in (0, 13, 29):
        items, values = ratings.of(user)
        own = factors[items]
        assert found[user] == pytest.approx(np.linalg.solve(own.T @ own + 0.7 * np.eye(3), own.T @ values))


def test_a_user_without_ratings_is_expected_as_the_mean():
    """No bias, no factors."""
    model = ItemModel(SCALE, 3.4, np.array([0.2, -0.1]), np.ones((2, 3)), 1.0)
    nobody = Ratings(np.array([0, 0]), np.zeros(0, np.int64), np.zeros(0), 2)
    folded = fold(model, nobody)

    assert not folded.any()
    assert predict_ratings(model, folded, np.zeros(3, int), np.array([0, 1, -1])) == pytest.approx([3.6, 3.3, 3.4])


def test_own_ratings_count():
    """A user above the mean is expected above it, and of an item like those that were liked, more so."""
    model = ItemModel(SCALE, 3.0, np.zeros(3), np.array([[1.0], [1.0], [-1.0]]), 0.5)
    user = Ratings(np.array([0, 1]), np.array([0]), np.array([5.0]), 3)
    folded = fold(model, user)
    like, unlike, unknown = predict_ratings(model, folded, np.zeros(3, int), np.array([1, 2, -1]))

    assert like > unknown > unlike
    assert unknown > 3.0
    assert held_out_error(model, user, user) < 1.0


# ---- forecasts ----------------------------------------------------------------------------------------------------------


def test_more_users_let_more_components_stand_out():
    """And fewer items are taken where the noise is strong."""
    weak, strong = (prospect(assumed_popularity(500, n, 49), 0.0, users=n, per_user=49, noise=1.0) for n in (200, 20_000))

    assert weak.strength < 1 < strong.strength
    assert len(weak.chosen) < len(strong.chosen) <= 500


def test_no_more_items_than_fit_are_chosen():
    """The most popular ones; those whose popularity may be noise are not."""
    popularity = np.arange(10_000.0)
    found = prospect(popularity, 0.0, users=10_000, per_user=50, noise=1e-9)
    careful = prospect(popularity, 4990.0, users=10_000, per_user=50, noise=1e-9)

    assert found.chosen.tolist() == list(range(10_000 - MOST_ITEMS, 10_000))
    assert careful.chosen.min() == 9981 or careful.strength == 0


def test_assumed_popularity_adds_up():
    """To what users of so many ratings rate."""
    assert assumed_popularity(500, 1000, 25).sum() == pytest.approx(5000, rel=0.01)


# ---- what a split of the budget is worth ----------------------------------------------------------------------------------


def made_audience(many=4000, seed=8):
    """Items whose popularity falls as a power of their rank, and users of 100 ratings, of whom there are 2,000."""
    popularity = 500.0 * (1 + 40 * np.arange(many) / many) ** -1.2
    return forecast.Audience(popularity, 0.0, 100.0, SCALE.half), np.random.default_rng(seed)


@pytest.mark.parametrize("distance", [0.1, 0.3, 1.0, 5.0])
def test_the_error_of_biases_is_forecast(distance):
    """Biases of items that were drawn as a forecast takes them to be: what is left, within a tenth. Seeded."""
    audience, draw = made_audience()
    p = audience.popularity
    likes, counts = np.square(bias.tally_noise(SCALE.half, distance)).tolist()
    true = draw.normal(scale=SCALE.half / 4, size=len(p))
    above = SCALE.half / 4  # the mean, above the centre
    sampled = draw.normal(size=len(p)) * np.sqrt(p * (SCALE.half / 2) ** 2 / 10)
    tally = bias.BiasTally(
        p * (above + true) + sampled + draw.normal(scale=math.sqrt(likes), size=len(p)),
        p + draw.normal(scale=math.sqrt(counts), size=len(p)),
        likes,
        counts,
    )
    found = bias.bias_model(tally, SCALE, int(p.sum() / 10))
    left = np.average(np.square(found.mean + found.items - SCALE.centre - above - true), weights=p)

    assert forecast.bias_error(audience, likes, counts) == pytest.approx(left, rel=0.1)


def test_forecasts_know_what_helps():
    """Less noise, stronger tastes, more ratings, better directions and a larger head: never more error."""
    audience, _ = made_audience()
    head, some = np.arange(400), np.array([0.05, 0.03])
    usual = forecast.taste_saving(audience, head, some, np.array([0.7, 0.5]), [30.0])

    assert forecast.bias_error(audience, 100.0, 100.0) < forecast.bias_error(audience, 400.0, 100.0)
    assert forecast.bias_error(audience, 100.0, 100.0) < forecast.bias_error(audience, 100.0, 400.0)
    assert usual < forecast.taste_saving(audience, head, some, np.array([0.7, 0.5]), [10.0])
    assert usual < forecast.taste_saving(audience, head, some, np.array([0.9, 0.8]), [30.0])
    assert usual < forecast.taste_saving(audience, head, 2 * some, np.array([0.7, 0.5]), [30.0])
    assert usual < forecast.taste_saving(audience, np.arange(900), some, np.array([0.7, 0.5]), [30.0])
    once, twice = (forecast.taste_saving(audience, head, some, np.array([0.7, 0.5]), [5.0] * rounds) for rounds in (1, 2))
    assert once < twice
    assert 0 < usual < 0.08 * 0.8 * (SCALE.half / 2) ** 2
    assert forecast.taste_saving(audience, head, np.zeros(0), np.zeros(0), [30.0]) == 0


def test_items_that_nobody_rated_weigh_nothing():
    """Popularity that is likely to be noise does not make a forecast; none at all makes none."""
    audience, draw = made_audience(many=400)
    nobody = np.abs(draw.normal(scale=3.0, size=400))
    noisy = forecast.Audience(np.append(audience.popularity, nobody), 3.0, 100.0, SCALE.half)

    assert forecast.bias_error(noisy, 100.0, 9.0) == pytest.approx(forecast.bias_error(audience, 100.0, 9.0), rel=0.15)
    assert forecast.bias_error(forecast.Audience(np.zeros(5), 1.0, 1.0, 2.0), 1.0, 1.0) == 0


PATTERNS = {"a million": (6040, 3706, 149), "a hundred thousand": (943, 1682, 100)}


@pytest.mark.parametrize(
    ("pattern", "distance", "pays"),
    [
        ("a million", 0.268, False),  # ε = 1 at δ = 10⁻⁵, where components cost more than they save
        ("a million", 0.925, True),  # ε = 4
        ("a million", 2.0, True),  # ε = 10
        ("a hundred thousand", 0.268, False),
        ("a hundred thousand", 0.925, False),
        ("a hundred thousand", 2.0, True),
    ],
)
def test_components_are_for_where_they_pay(pattern, distance, pays):
    """The patterns of two sets of films, by declared numbers only. By eigenvalues all but one would be worth it."""
    users, items, rated = PATTERNS[pattern]
    found = forecast_fit("spectral", users=users, items=items, per_user=rated, distance=distance, half=2.0, rank=15)

    assert found.worthwhile == pays
    assert (found.numbers[SAVED] > 2 * found.numbers[COST]) == pays
    assert (found.numbers["users needed"] > users) != pays


def test_a_hopeless_forecast_is_far_from_paying():
    """Where it is near, the first release decides."""
    far, near, paying = (
        forecast_fit("spectral", users=943, items=1682, per_user=100, distance=one, half=2.0, rank=15)
        for one in (0.2, 1.2, 5.0)
    )

    assert is_hopeless(far)
    assert not near.worthwhile
    assert not is_hopeless(near)
    assert not is_hopeless(paying)


@pytest.mark.parametrize("method", ["bias", "spectral", "als", "frank_wolfe"])
def test_an_outlook_is_better_with_more_users(method):
    """For every method; the verdict is one sentence."""
    said = {
        n: forecast_fit(method, users=n, items=1000, per_user=30, distance=0.9, half=2.0, rank=6) for n in (50, 10_000_000)
    }

    assert not said[50].worthwhile
    assert said[10_000_000].worthwhile
    assert all(one.verdict.endswith(".") and "\n" not in one.verdict for one in said.values())
    assert all(math.isfinite(value) for one in said.values() for value in one.numbers.values())


def test_what_components_do_not_need_is_for_biases():
    """Where nothing can stand out, all parts are spent on tallies, and the noise is that of the whole budget."""
    ratings = some_ratings(users=60)
    plan = make_plan(goal_of(1, 1e-5, "add_or_remove_one"), parts_of("spectral", None, components=True))
    releaser = Releaser(plan)
    found = learn(ratings, SCALE, 60, releaser, None)

    assert found.model.factors.shape == (12, 0)
    assert [one.count for one in releaser.releases] == [1, 1, 1, 1]
    assert all(one.numbers == 24 for one in releaser.releases)


def test_parts_are_for_biases_alone_where_nothing_is_expected():
    """Decided before any data is read."""
    assert [one.name for one in parts_of("spectral", None, components=False)] == ["biases"]
    assert [one.count for one in parts_of("frank_wolfe", 9, components=True)] == [1, 9]


def test_ridge_of_users_is_the_same_in_any_batch(monkeypatch):
    """Blocks of users are a matter of memory."""
    ratings = some_ratings(seed=8)
    factors = np.random.default_rng(9).normal(size=(12, 3))
    whole = users.ridge(ratings, ratings.values, factors, np.ones(3))
    monkeypatch.setattr(users, "_USERS", 7)

    assert np.array_equal(users.ridge(ratings, ratings.values, factors, np.ones(3)), whole)


def test_models_clip_what_they_expect():
    """Nobody is expected to rate beyond the range."""
    model = ItemModel(SCALE, 4.9, np.array([3.0, -9.0]), np.zeros((2, 0)), 1.0)

    assert predict_ratings(model, np.zeros((1, 1)), np.zeros(2, int), np.array([0, 1])).tolist() == [5.0, 1.0]
