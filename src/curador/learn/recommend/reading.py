"""Tables of ratings in the shapes that people have them in: frames, arrays, sparse matrices, a study's columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter, require, sentence
from curador.learn.ratings import Catalogue, Ratings, Scale, numbered, ratings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.learn.sums import Floats

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
        raise InvalidParameter(sentence("X", _RULE, _shape(table)))
    if y is None:
        require(len(columns) == 3, "y", "given where X has no third column", "nothing")
    given = columns[2] if y is None else np.asarray(y)
    require(given.ndim == 1 and len(given) == len(columns[0]), "y", "one rating for each row of X", _shape(given))
    require(given.dtype.kind in "biufO" and not _texts(given), "ratings", "numbers", "something else")
    users, many = numbered(columns[0])
    return ratings_of(
        users, catalogue.codes(columns[1]), _floats(given), n_users=many, catalogue=len(catalogue.ids), scale=scale
    )


def read_study(
    columns: Mapping[str, NDArray[Any]], units: NDArray[Any], names: tuple[str, str], catalogue: Catalogue, scale: Scale
) -> Ratings:
    """Return the ratings of a study's columns, (item, rating); the unit of a row is its user. Total: no value is an error."""
    users, many = numbered(np.asarray(units))
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
        raise InvalidParameter(sentence("ratings_of_user", rule, type(own).__name__))
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
        raise InvalidParameter(sentence("items", rule, several))
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
