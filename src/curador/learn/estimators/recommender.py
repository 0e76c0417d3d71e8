"""Recommendations with user-level joint privacy: items' numbers are released, a user's own are computed from own ratings.

Tables of ratings are read in the shapes that people have them in: frames, arrays, sparse matrices, a study's columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import validation

from curador.errors import InvalidParameter, require
from curador.learn.base import Facts, PrivateEstimator
from curador.learn.plan import concentrated_plan, make_plan
from curador.learn.ratings import Catalogue, Ratings, Scale, catalogue_of, number_users, ratings_of, scale_of
from curador.learn.recommend import als, frank_wolfe, spectral
from curador.learn.recommend.fits import (
    ItemModel,
    fold,
    forecast_fit,
    held_out_error,
    is_hopeless,
    learn,
    parts_of,
    predict_ratings,
)
from curador.numerics.exact import Number, positive, whole
from curador.privacy.adjacency import REPLACE_ONE, Adjacency
from curador.privacy.gaussian import gaussian_mu
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from curador.curator.training import TrainingRows
    from curador.learn.dry_run import DryRun
    from curador.learn.plan import FitGoal, FitPlan, PlannedRelease
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats


# ---- reading ---------------------------------------------------------------------------------------------------------------


_RULE = "ratings: columns user, item and rating (or user and item, and the ratings in y), or a sparse matrix users by items"


def read_table(table: Any, y: Any, catalogue: Catalogue, scale: Scale) -> Ratings:
    """Return the ratings of a frame, of an array or of a sparse matrix, whose stored numbers are ratings."""
    from scipy import sparse

    if isinstance(table, Ratings):
        require(table.catalogue == len(catalogue.ids), "X", "of as many items as declared", table.catalogue)
        return ratings_of(
            table.owners, table.items, table.values, n_users=table.users, catalogue=table.catalogue, scale=scale
        )
    if sparse.issparse(table):
        return _of_matrix(table, y, catalogue, scale)
    columns = _columns(table)
    if columns is None or not 2 <= len(columns) <= 3:
        raise InvalidParameter.must_be("X", _RULE, _shape(table))
    if y is None:
        require(len(columns) == 3, "y", "given where X has no third column", "nothing")
    given = columns[2] if y is None else np.asarray(y)
    require(given.ndim == 1 and len(given) == len(columns[0]), "y", "one rating for each row of X", _shape(given))
    require(given.dtype.kind in "biufO" and not _texts(given), "ratings", "numbers", "something else")
    users, many = number_users(columns[0])
    return ratings_of(
        users, catalogue.codes(columns[1]), _floats(given), n_users=many, catalogue=len(catalogue.ids), scale=scale
    )


def read_study(
    columns: Mapping[str, NDArray[Any]], units: NDArray[Any], names: tuple[str, str], catalogue: Catalogue, scale: Scale
) -> Ratings:
    """Return the ratings of a study's columns, (item, rating); the unit of a row is its user. Total: no value is an error."""
    users, many = number_users(np.asarray(units))
    items, given = (columns[name] for name in names)
    return ratings_of(users, catalogue.codes(items), _floats(given), n_users=many, catalogue=len(catalogue.ids), scale=scale)


def read_user(own: Any, catalogue: Catalogue, scale: Scale) -> Ratings:
    """Return the ratings of one user: a mapping from items to ratings, or a pair (items, ratings)."""
    rule = "a mapping from items to ratings, or a pair (items, ratings)"
    if own is None:
        own = {}
    if isinstance(own, Mapping):
        pairs: Any = list(own.keys()), list(own.values())
    elif isinstance(own, tuple) and len(own) == 2:
        pairs = own
    else:
        raise InvalidParameter.must_be("ratings_of_user", rule, type(own).__name__)
    items, values = _ids(pairs[0]), np.asarray(pairs[1])
    fits = items.ndim == 1 and values.shape == items.shape and (values.dtype.kind in "biufO" or not len(values))
    require(fits, "ratings_of_user", rule, f"{_shape(items)} items and {_shape(values)} ratings")
    nobody_else = np.zeros(len(items), np.int64)
    return ratings_of(
        nobody_else, catalogue.codes(items), _floats(values), n_users=1, catalogue=len(catalogue.ids), scale=scale
    )


def read_items(given: Any, catalogue: Catalogue) -> NDArray[np.int64]:
    """Return the places of items that somebody asks about; -1: unknown."""
    rule = "a list of items"
    several: Any = given
    if isinstance(given, (str, bytes)) or not hasattr(several, "__iter__"):
        raise InvalidParameter.must_be("items", rule, several)
    found = _ids(several if hasattr(several, "dtype") else list(several))
    require(found.ndim == 1, "items", rule, _shape(found))
    return catalogue.codes(found)


def _ids(given: Any) -> NDArray[Any]:
    """Items as they were written: a list of numbers and texts stays one of both."""
    found = given if hasattr(given, "dtype") else np.asarray(given, dtype=object)
    return np.asarray(found)


def _of_matrix(table: Any, y: Any, catalogue: Catalogue, scale: Scale) -> Ratings:
    require(y is None, "y", "left out where X is a sparse matrix of ratings", "something")
    require(table.ndim == 2 and table.shape[1] == len(catalogue.ids), "X", "of one column for each item", table.shape)
    stored = table.tocoo()
    rows, columns = np.asarray(stored.coords[0], np.int64), np.asarray(stored.coords[1], np.int64)
    values = _floats(np.asarray(stored.data))
    return ratings_of(rows, columns, values, n_users=int(table.shape[0]), catalogue=len(catalogue.ids), scale=scale)


def _columns(table: Any) -> list[NDArray[Any]] | None:
    """The columns, user, item and rating: by these names where they are there, else in this order."""
    names: Any = getattr(table, "columns", None)
    if names is None:
        names = getattr(getattr(table, "dtype", None), "names", None)
    if names is not None:
        wanted = ["user", "item", "rating"]
        named = [name for name in wanted if name in list(names)]
        chosen = named if named[:2] == wanted[:2] else list(names)
        return [np.asarray(table[name]) for name in chosen]
    found = np.asarray(table, object) if isinstance(table, (list, tuple)) else np.asarray(table)  # ids stay what they are
    return [found[:, place] for place in range(found.shape[1])] if found.ndim == 2 else None


def _floats(column: NDArray[Any]) -> Floats:
    from curador.learn.estimators.arrays import floats_of

    return floats_of(column)


def _texts(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "O" and any(isinstance(one, (str, bytes)) for one in column.tolist())


def _shape(value: Any) -> str:
    found = getattr(value, "shape", None)
    return type(value).__name__ if found is None else " x ".join(str(one) for one in found) or "one number"


# ---- recommender -----------------------------------------------------------------------------------------------------------


_COLUMNS = "the item and the rating, in this order; the unit of a row is its user"
METHODS = ("spectral", "bias", "als", "frank_wolfe")
_MOST_RANK = {"spectral": spectral.MOST_COMPONENTS, "als": 64, "frank_wolfe": 64, "bias": 1}
_checks: Any = validation


class PrivateRecommender(PrivateEstimator):
    """Predicts ratings; what is kept of the table is about items only, with noise that hides each user as a whole.

    method            "spectral": components of a noisy second moment, refined; "bias": items' biases only; "als",
                      "frank_wolfe": alternating least squares and Frank-Wolfe, to compare with
    rating_range      (low, high) of ratings: declared; what lies beyond is clipped
    items             the catalogue: an array of items, or how many there are (0, 1, 2, …); other items are dropped
    n_nominal         about how many users there are: declared, needed unless adjacency="replace_one"
    ratings_per_user  about how many ratings a user has: declared. With it the split of the budget is decided before any
                      data is read; without it by the first release
    rank              "auto", or how many factors at most (frank_wolfe: steps)

    Claim   (ε, δ), jointly: all that is stored, and everything that any other user can see, between tables that differ by one
            user with all of that user's ratings. A user's own predictions depend on that user's own ratings, besides: show
            them to that user.
    Source  [KPRU14] for joint privacy; a user's part is computed from what was released and from own ratings only.
    Needs   `items`, `rating_range`, `n_nominal` and `ratings_per_user` are not taken from the ratings.
    """

    _guarantee = "joint"

    def __init__(
        self,
        method: str = "spectral",
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rating_range: Any = None,
        items: Any = None,
        n_nominal: Number | None = None,
        ratings_per_user: Number | None = None,
        rank: Any = "auto",
        adjacency: Adjacency | str = "add_or_remove_one",
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.rating_range = rating_range
        self.items = items
        self.n_nominal = n_nominal
        self.ratings_per_user = ratings_per_user
        self.rank = rank
        self.adjacency = adjacency

    # ---- what the base asks -------------------------------------------------------------------------------------------

    @property
    def _method(self) -> str:  # type: ignore[override]
        return f"{self.method}, additive"

    def _read_arrays(self, X: Any, y: Any) -> tuple[Any, Facts]:  # noqa: N803 -- as scikit-learn names it
        self._checked()
        catalogue = catalogue_of(self.items)
        data = read_table(X, y, catalogue, scale_of(self.rating_range))
        return data, Facts(data.users, len(catalogue.ids), unit="user")

    def _read_columns(self, columns: Mapping[str, NDArray[Any]], units: NDArray[Any], facts: Facts, y: str | None) -> Any:
        return read_study(columns, units, self._names(facts, y), catalogue_of(self.items), self._scale(facts))

    def _parts(self, facts: Facts) -> Sequence[PlannedRelease]:
        del facts
        return parts_of(self.method, self._rank(), components=True)

    def _plan(self, goal: FitGoal, facts: Facts, rho: Fraction | None = None) -> FitPlan:
        """The parts follow the goal: where no component can be expected, everything is for biases."""
        self._checked()
        require(not goal.pure, "delta", "above 0 for a recommender", 0, "noise is Gaussian: what users add is bounded in l2")
        if facts.records is None:
            hint = "about how many users there are; it must not be counted, for one more would change it"
            raise InvalidParameter.must_be("n_nominal", "declared", "nothing", hint)
        items, scale = len(catalogue_of(self.items).ids), self._scale(facts)
        components = True
        if self.ratings_per_user is not None and self.method == "spectral":
            components = not is_hopeless(self._outlook(goal, rho, facts.records, items, self._per_user(), scale))
        parts = parts_of(self.method, self._rank(), components=components)
        return make_plan(goal, parts) if rho is None else concentrated_plan(goal, rho, parts)

    def _planned_through(self, rows: TrainingRows, y: Any) -> tuple[Facts, FitPlan]:
        require(len(rows.columns) == 2, "columns", _COLUMNS, ", ".join(rows.columns))
        rated = rows.columns[1] if y is None else y
        require(rows.types.get(rated) is not Type.STRING, "the column of ratings", "one of numbers", f"{rated}, of texts")
        return super()._planned_through(rows, y)

    def _numbers(self, rows: TrainingRows, y: str | None) -> Sequence[str]:
        del rows, y  # items may be texts; ratings are looked at above
        return ()

    def _learn(self, data: Any, facts: Facts, releaser: Releaser) -> None:
        catalogue, scale = catalogue_of(self.items), self._scale(facts)
        users = facts.records or 1
        found = learn(data, scale, users, releaser, self._rank())
        self.n_features_in_ = len(catalogue.ids)
        self.item_ids_ = catalogue.ids
        self.rating_range_ = (scale.low, scale.high)
        self.mean_ = found.model.mean
        self.item_bias_ = found.model.biases
        self.item_factors_ = found.model.factors
        self.item_popularity_ = found.popularity
        self.ridge_ = found.model.ridge
        self.gains_ = found.model.gains
        self.eigenvalues_ = found.eigenvalues
        self.noise_edge_ = found.edge
        self.n_components_ = int(found.model.factors.shape[1])

    def _notes(self, facts: Facts) -> Sequence[str]:
        del facts
        notes = ["a user's own predictions use that user's own ratings: they are for that user"]
        if self.method == "spectral" and not self.n_components_:
            notes.append("no component stands out of the noise: predictions are by biases")
        return notes

    # ---- what one user asks, with own ratings ---------------------------------------------------------------------------

    def predict(self, ratings_of_user: Any, items: Any) -> Floats:
        """Return the ratings that a user can be expected to give to items, from that user's own ratings.

        ratings_of_user  a mapping from items to ratings, or a pair (items, ratings); empty: nothing is known
        items            unknown ones are expected as the mean and the user's bias say
        """
        model, catalogue = self._model(), self._catalogue()
        own = read_user(ratings_of_user, catalogue, model.scale)
        asked = read_items(items, catalogue)
        return predict_ratings(model, fold(model, own), np.zeros(len(asked), np.int64), asked)

    def recommend(self, ratings_of_user: Any, k: Number = 10) -> NDArray[Any]:
        """Return the k items, of those that the user did not rate, that this user can be expected to rate best."""
        model, catalogue = self._model(), self._catalogue()
        many = whole(k, "k")
        own = read_user(ratings_of_user, catalogue, model.scale)
        folded = fold(model, own)
        scores = model.biases + model.factors @ folded[0, 1:]
        scores[own.items] = -np.inf
        best = np.argsort(-scores, kind="stable")[: min(many, len(scores) - len(own.items))]
        return catalogue.ids[best]

    def fold_in(self, ratings_of_user: Any) -> Floats:
        """Return a user's own numbers, from own ratings: the bias, then one factor for each component."""
        model = self._model()
        return fold(model, read_user(ratings_of_user, self._catalogue(), model.scale))[0]

    def held_out_error(self, known: Ratings, held_out: Ratings) -> float:
        """Return the root mean square error on held-out ratings of the same users. Not private: for measurements."""
        return held_out_error(self._model(), known, held_out)

    # ---- before anything is spent ---------------------------------------------------------------------------------------

    def dry_run(
        self, n_users: Number | None = None, n_items: Number | None = None, ratings_per_user: Number | None = None
    ) -> DryRun:
        """Return what can be expected, from declared numbers only; by default those of the parameters."""
        self._checked()
        goal = self._goal()
        require(not goal.pure, "delta", "above 0 for a recommender", 0)
        users = whole(_given_or_declared(n_users, self.n_nominal, "n_users"), "n_users")
        items = len(catalogue_of(self.items).ids) if n_items is None else whole(n_items, "n_items", least=2)
        per_user = positive(
            _given_or_declared(ratings_per_user, self.ratings_per_user, "ratings_per_user"), "ratings_per_user"
        )
        return self._outlook(goal, None, users, items, float(per_user), scale_of(self.rating_range))

    def _outlook(self, goal: FitGoal, rho: Fraction | None, users: int, items: int, per_user: float, scale: Scale) -> DryRun:
        rank = self._rank() or {"als": als.RANK, "frank_wolfe": frank_wolfe.STEPS}.get(self.method, spectral.MOST_COMPONENTS)
        if rho is None:
            distance = float(gaussian_mu(epsilon=float(goal.epsilon), delta=float(goal.delta)))
        else:
            distance = math.sqrt(2 * float(rho))
        distance /= 2.0 if goal.adjacency is REPLACE_ONE else 1.0
        return forecast_fit(
            self.method, users=users, items=items, per_user=per_user, distance=distance, half=scale.half, rank=rank
        )

    # ---- parameters -----------------------------------------------------------------------------------------------------

    def _checked(self) -> None:
        require(self.method in METHODS, "method", "one of " + ", ".join(METHODS), self.method)
        self._rank()
        self._per_user()

    def _rank(self) -> int | None:
        if isinstance(self.rank, str) and self.rank == "auto":
            return None
        most = _MOST_RANK[self.method]
        found = whole(self.rank, "rank")
        require(found <= most, "rank", f"'auto' or at most {most} for {self.method}", self.rank)
        return found

    def _per_user(self) -> float:
        return 1.0 if self.ratings_per_user is None else float(positive(self.ratings_per_user, "ratings_per_user"))

    def _scale(self, facts: Facts) -> Scale:
        """As given; else as a study declares the bounds of its column of ratings."""
        declared = facts.target_bounds or (facts.bounds[1] if facts.bounds is not None and len(facts.bounds) == 2 else None)
        return scale_of(declared if self.rating_range is None else self.rating_range)

    def _names(self, facts: Facts, y: str | None) -> tuple[str, str]:
        """The columns of items and of ratings."""
        names = facts.names or ("", "")
        return names[0], names[1] if y is None else y

    def _catalogue(self) -> Catalogue:
        return Catalogue(self.item_ids_)

    def _model(self) -> ItemModel:
        _checks.check_is_fitted(self)
        return ItemModel(
            Scale(*self.rating_range_), self.mean_, self.item_bias_, self.item_factors_, self.ridge_, self.gains_
        )


def _given_or_declared(given: Number | None, declared: Number | None, name: str) -> Number:
    found = declared if given is None else given
    if found is None:
        raise InvalidParameter.must_be(name, "given, or declared as a parameter", "nothing")
    return found
