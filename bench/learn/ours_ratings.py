"""curador's recommenders, against ratings that were held out. `script.py ratings|films` or `script.py million NUMBER`."""

from __future__ import annotations

import sys
import time

import numpy as np

import stopwatch
from curador.learn import PrivateRecommender
from curador.learn.ratings import Ratings, Scale, catalogue_of, ratings_of, synthetic_ratings
from learn import data, tasks
from learn.plain import als_error
from learn.repeat import Case, introduce, repeated

_PLAIN = ((6, 8.0), (6, 12.0), (6, 16.0))  # ranks and weights of the one without privacy; the best counts
_PLAIN_TWEETS = ((1, 10.0), (2, 20.0))


def _measured(
    name: str,
    splits: list[tuple[Ratings, Ratings]],
    ends: tuple[float, float],
    users: int,
    per_user: int,
    methods: tuple[str, ...] = tasks.RATINGS_METHODS,
) -> None:
    items = splits[0][0].catalogue
    for method in methods:
        for epsilon in tasks.RATINGS_EPSILONS:
            rounds = iter(splits)

            def once(method=method, epsilon=epsilon, rounds=rounds) -> dict[str, float]:
                train, test = next(rounds)
                model = PrivateRecommender(
                    method,
                    epsilon=epsilon,
                    delta=tasks.DELTA,
                    rating_range=ends,
                    items=items,
                    n_nominal=users,
                    ratings_per_user=per_user,
                ).fit(train)
                return {tasks.RMSE: model.held_out_error(train, test)}

            case = Case(tasks.RATINGS, name, tasks.CURADOR, epsilon, tasks.DELTA, tasks.ADD_REMOVE, method)
            repeated(case, once, len(splits))


def _plain(name: str, splits: list[tuple[Ratings, Ratings]], settings: tuple[tuple[int, float], ...]) -> None:
    """The alternating least squares of the best of a few settings."""
    rounds = iter(splits)

    def once() -> dict[str, float]:
        train, test = next(rounds)
        return {tasks.RMSE: min(als_error(train, test, rank=rank, weight=weight) for rank, weight in settings)}

    repeated(Case(tasks.RATINGS, name, tasks.PLAIN, 0, 0, "", "als"), once, len(splits))


def synthetic() -> None:
    """Made-up ratings, another set each run."""
    splits = [synthetic_ratings(seed=seed) for seed in range(tasks.RATINGS_RUNS)]
    _plain(tasks.SYNTHETIC, splits, _PLAIN)
    _measured(tasks.SYNTHETIC, splits, (1, 5), 10_000, 50)


def films() -> None:
    """Made-up ratings with the popularity of films, in two sizes: another set each run."""
    sizes = {tasks.FILMS: (6040, 3706, 165.6), tasks.FILMS_SMALL: (943, 1682, 106.0)}
    for name, (users, items, per_user) in sizes.items():
        seeds = range(tasks.FILMS_RUNS[name])
        splits = [synthetic_ratings(users, items, seed=seed, per_user=per_user, pattern="films") for seed in seeds]
        _plain(name, splits, _PLAIN)
        _measured(name, splits, (1, 5), users, round(0.9 * per_user), tasks.FILMS_METHODS)


def tweets() -> None:
    """Ratings from tweets, where they are present: another tenth held out each run."""
    place = data.HOME / f"{tasks.TWEETS}.npz"
    if not place.exists():
        return
    found = np.load(place)
    catalogue = catalogue_of(found["catalogue"])
    names, users = np.unique(found["users"], return_inverse=True)
    both = ratings_of(
        users,
        catalogue.codes(found["items"]),
        found["values"].astype(float),
        n_users=len(names),
        catalogue=len(catalogue.ids),
        scale=Scale(0.0, 10.0),
    )
    splits = []
    for seed in range(tasks.RATINGS_RUNS):
        held = np.random.default_rng(seed).random(len(both.values)) < 0.1
        splits.append((both.only(~held), both.only(held)))
    _plain(tasks.TWEETS, splits[:2], _PLAIN_TWEETS)
    _measured(tasks.TWEETS, splits, (0, 10), 16_000, 6)


def million(ratings: int) -> None:
    """The time and the memory of one fit."""
    users = ratings // 50
    train, test = synthetic_ratings(users, 1_000, seed=1, per_user=55.6)

    def once() -> dict[str, float]:
        model = PrivateRecommender(
            "spectral",
            epsilon=4,
            delta=tasks.DELTA,
            rating_range=(1, 5),
            items=1_000,
            n_nominal=users,
            ratings_per_user=50,
        )
        start = time.perf_counter()
        model.fit(train)
        seconds = time.perf_counter() - start
        return {
            tasks.SECONDS: seconds,
            tasks.PEAK: stopwatch.peak_mb() or 0.0,
            tasks.RMSE: model.held_out_error(train, test),
        }

    name = f"synthetic {users:,} × 1,000: {len(train.values):,} ratings"
    repeated(Case(tasks.MILLION, name, tasks.CURADOR, 4.0, tasks.DELTA, tasks.ADD_REMOVE, "spectral"), once, 1)


if __name__ == "__main__":
    introduce(["curador", "scikit-learn"])
    if sys.argv[1] == "ratings":
        synthetic()
        tweets()
    elif sys.argv[1] == "films":
        films()
    else:
        million(int(sys.argv[2]))
