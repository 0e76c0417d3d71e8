"""How the estimators of tables read their data: arrays with scikit-learn's conventions, a study's columns with none.

arrays   ──► read_matrix         refuses what scikit-learn refuses: NaN, infinities, ragged or sparse input
columns  ──► records_of_columns  total: no value of any row is an error
                   │
                   ▼
               Records ──► scaled to [-1, 1] by public bounds (`bounds_of`, `scaled`), or clipped by their length
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils import validation

from curador.errors import InvalidParameter
from curador.learn.base import Facts, no_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from curador.learn.sums import Floats

_checks: Any = validation


@dataclass(frozen=True, slots=True)
class Records:
    """The data of a fit.

    rows     numbers; NaN: missing, which only a study's columns have
    targets  one of each row; None: there are none
    weights  one over the number of rows of the row's unit, so that a unit is the mean of its rows; None: every row is a unit
    Claim    The weights of the rows of one unit add up to at most 1; so do the squares of their `roots`.
    Rounds   Down.
    """

    rows: Floats
    targets: NDArray[Any] | None = None
    weights: Floats | None = None

    @property
    def roots(self) -> Floats | None:
        """The square roots of the weights: rows that are scaled by them have Σ w·a·a' as their second moment."""
        if self.weights is None:
            return None
        return np.where(self.weights < 1.0, np.nextafter(np.sqrt(self.weights), 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the numbers of each column are clamped to. Public."""

    low: Floats
    high: Floats

    @property
    def centre(self) -> Floats:
        """The middle of each range."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> Floats:
        """Half the width of each range."""
        return self.high / 2 - self.low / 2


# ---- arrays -------------------------------------------------------------------------------------------------------------


def read_matrix(estimator: Any, X: Any, y: Any = None, *, numeric: bool = True) -> tuple[Records, Facts]:  # noqa: N803
    """Return the records of arrays, as a fit reads them, and what there is to say of them; `records` is counted.

    y        None: no targets are wanted
    numeric  whether targets are numbers; else they are labels of any kind
    Sets `n_features_in_` and, where columns have names, `feature_names_in_`.
    """
    require_numbers(X, "X")
    if y is not None and numeric:
        require_numbers(y, "y")
    try:
        if y is None:
            rows: Any = _checks.validate_data(estimator, X, dtype=np.float64)
            targets: Any = None
        else:
            rows, targets = _checks.validate_data(estimator, X, y, dtype=np.float64, y_numeric=numeric)
    except ValueError as problem:
        raise _shorten_refusal(problem) from None
    if targets is not None and numeric:
        targets = np.asarray(targets, np.float64)
    found = getattr(estimator, "feature_names_in_", None)
    names = None if found is None else tuple(str(name) for name in found)
    return Records(np.asarray(rows, np.float64), targets), Facts(len(rows), int(rows.shape[1]), names)


def read_more(estimator: Any, X: Any) -> Floats:  # noqa: N803 -- as scikit-learn names it
    """Return the rows of an array that a fitted estimator is asked about."""
    require_numbers(X, "X")
    try:
        return np.asarray(_checks.validate_data(estimator, X, dtype=np.float64, reset=False), np.float64)
    except ValueError as problem:
        raise _shorten_refusal(problem) from None


def require_numbers(table: Any, name: str) -> None:
    """Refuse texts, dates and whatever else is no number, in one sentence that says the column and no value.

    By the types of columns, before any number is looked at; where a type says nothing, by whether there is a text.
    """
    for column, values in _columns(table):
        kind = _kind_of(values)
        if kind is not None:
            raise no_numbers(name, kind, column)


def _columns(table: Any) -> list[tuple[object, Any]]:
    """The columns of a frame with their names; anything else as a whole, without."""
    names = getattr(table, "columns", None)
    if names is None or not hasattr(table, "__getitem__"):
        return [(None, table)]
    listed = list(names)
    # of several columns of one name a frame gives all at once: those are looked at as a whole
    return [(one, table[one]) for one in listed] if len(set(listed)) == len(listed) else [(None, table)]


def _kind_of(values: Any) -> str | None:
    """What is there in the place of numbers; None: nothing is."""
    kind: Any = getattr(values, "dtype", None)
    if kind is None:
        return _find_text(values) if isinstance(values, (list, tuple)) else None
    if hasattr(kind, "categories") and hasattr(kind.categories, "dtype"):  # pandas: of what categories are
        kind = kind.categories.dtype
    letter = getattr(kind, "kind", None)
    if letter is None and hasattr(kind, "is_temporal"):  # polars
        return "dates" if kind.is_temporal() else None if kind.is_numeric() else _find_text(values)
    if isinstance(letter, str) and letter in _NO_NUMBERS:
        return _NO_NUMBERS[letter]
    return _find_text(values) if letter == "O" else None


_NO_NUMBERS = {"U": "texts", "S": "texts", "T": "texts", "M": "dates", "m": "durations"}


def _find_text(values: Any) -> str | None:
    """Whether there is a text among things of any type."""
    try:
        things = np.asarray(values, dtype=object).ravel().tolist()
    except ValueError:  # rows of several lengths: refused elsewhere
        return None
    return "texts" if any(isinstance(thing, (str, bytes)) for thing in things) else None


def _shorten_refusal(problem: ValueError) -> InvalidParameter:
    """The same in one sentence; scikit-learn's paragraphs of advice are about other estimators."""
    text = str(problem)
    if "inhomogeneous" in text or "setting an array element" in text:
        return InvalidParameter.must_be("X", "a table of numbers, all rows of one length", "rows of several lengths")
    first = text.strip().partition("\n")[0]
    if first.startswith("Expected 2D array"):
        return InvalidParameter(
            first.rstrip(":") + ".", hint="Reshape your data: a row for each record, a column for each feature."
        )
    return InvalidParameter(first)


# ---- a study's columns --------------------------------------------------------------------------------------------------


def records_of_columns(
    columns: Mapping[str, NDArray[Any]],
    units: NDArray[Any],
    names: Sequence[str],
    target: str | None = None,
    *,
    classes: Sequence[Any] | None = None,
) -> Records:
    """Return the records of a study's columns. Total: no value is an error.

    classes  the labels that the target may have; targets are then their positions
    Claim    What becomes of a row depends on the rows of its own unit only. NULL and what is no number is missing, NaN in
             `rows`; `centred` and `scaled` put the centre there. Infinities stay: `scaled` clamps them, `centred` has them
             missing. A row without a target is dropped, as is one whose label is none of the classes; the rest of its unit is
             then what counts.
    """
    rows = np.empty((len(units), len(names)), np.float64)
    for place, name in enumerate(names):
        rows[:, place] = floats_of(columns[name])
    if target is None:
        return Records(rows, None, weights_of(units))
    goals = floats_of(columns[target]) if classes is None else _positions(columns[target], classes)
    kept = ~np.isnan(goals)
    return Records(rows[kept], goals[kept], weights_of(np.asarray(units)[kept]))


def floats_of(column: NDArray[Any]) -> Floats:
    """Return a column as floats; NULL and what is no number is NaN."""
    missing = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
    plain = np.asarray(column)
    if plain.dtype.kind in "biuf":
        found = plain.astype(np.float64)
    elif plain.dtype.kind == "O":
        found = np.fromiter((_float(one) for one in plain), np.float64, len(plain))
    else:
        found = np.full(len(plain), np.nan)
    if missing is not None:
        found[missing] = np.nan
    return found


def weights_of(units: NDArray[Any]) -> Floats:
    """Return one over the number of rows of each row's unit. Rounds down, so that no unit's weights add up to more than 1."""
    _, places, counts = np.unique(np.asarray(units), return_inverse=True, return_counts=True)
    shares = np.where(counts > 1, np.nextafter(1.0 / counts, 0.0), 1.0)
    return shares[places.reshape(-1)]


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _positions(column: NDArray[Any], classes: Sequence[Any]) -> Floats:
    """The places of labels among the classes; NaN where a label is none of them."""
    plain: Any = column.tolist() if isinstance(column, np.ma.MaskedArray) else np.asarray(column).tolist()
    places = {_label(class_): float(place) for place, class_ in enumerate(classes)}
    return np.fromiter((places.get(_label(one), math.nan) for one in plain), np.float64, len(plain))


def _label(value: Any) -> object:
    """A label as a key: numbers are equal by value, and what cannot be a key is nobody's label."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, int, float, bool)) else None if value is None else _NOBODY


_NOBODY = object()


# ---- bounds -------------------------------------------------------------------------------------------------------------


def _for_each(end: Any, features: int) -> Floats:
    """One number for each column; a ValueError where there are others than one or as many."""
    array = np.asarray(end, np.float64)
    if array.ndim > 1:
        raise ValueError(array.ndim)
    return np.full(features, array)


def bounds_of(bounds: Any, facts: Facts, *, name: str = "bounds") -> Bounds:
    """Return the bounds of the columns: as given, else as the study declares them, else refused.

    bounds  a pair (low, high) of numbers, or of one number for each column; or {column: (low, high)}, by names or, where
            columns have none, by places from 0. What is not in the mapping is as the study declares it
    """
    if bounds is None:
        return _declared_bounds(facts, name)
    if isinstance(bounds, Mapping):
        return _declared_bounds(replace(facts, bounds=_by_column(bounds, facts, name)), name)
    rule = "a pair (low, high) of finite numbers, or of one for each column, with low below high"
    try:
        low, high = (_for_each(end, facts.features) for end in bounds)
    except (TypeError, ValueError):
        length = width_of(bounds)
        if length is not None and length != facts.features:
            raise InvalidParameter.must_be(
                name, f"a pair (low, high) for {facts.features} columns", f"one for {length}"
            ) from None
        hint = "or write {column: (low, high)}"
        raise InvalidParameter.must_be(name, rule, bounds, hint) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (high / 2 - low / 2 >= np.finfo(np.float64).tiny).all()):
        raise InvalidParameter.must_be(name, rule, bounds)
    return Bounds(low, high)


def width_of(bounds: Any) -> int | None:
    """Return of how many columns bounds are; None where they are the same for all, or none."""
    if isinstance(bounds, Mapping):
        return len(cast("Mapping[object, object]", bounds))
    try:
        lengths = {np.size(end) for end in bounds if np.ndim(end) == 1}
    except (TypeError, ValueError):
        return None
    return lengths.pop() if len(lengths) == 1 else None


def facts_of(records: int, features: int, bounds: Any) -> Facts:
    """Return what a forecast is for: columns are called as bounds call them."""
    names = tuple(str(bound) for bound in bounds) if isinstance(bounds, Mapping) else None
    return Facts(records, features, names if names is not None and len(names) == features else None)


def _by_column(given: Mapping[Any, Any], facts: Facts, name: str) -> tuple[tuple[float, float] | None, ...]:
    """The bounds of each column, None where the mapping does not know it and no study does."""
    names: Sequence[object] = facts.names or range(facts.features)
    known = {one: place for place, one in enumerate(names)} | {place: place for place in range(facts.features)}
    found = list(facts.bounds or [None] * facts.features)
    rule = "{column: (low, high)}, with finite numbers, low below high"
    for column, pair in given.items():
        place = known.get(column) if isinstance(column, (str, int)) else None
        if place is None:
            hint = ", ".join(str(one) for one in names) if facts.names else f"columns are 0 to {facts.features - 1}"
            raise InvalidParameter.must_be(name, "of columns that there are", column, hint)
        try:
            low, high = (float(end) for end in pair)
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameter.must_be(name, rule, pair) from None
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidParameter.must_be(name, rule, pair)
        found[place] = (low, high)
    return tuple(found)


def _declared_bounds(facts: Facts, name: str) -> Bounds:
    if facts.bounds is None:
        hint = "what columns lie between must not be taken from the data; values beyond are clamped"
        raise InvalidParameter.must_be(name, "given: (low, high)", "nothing", hint)
    for place, pair in enumerate(facts.bounds):
        if pair is None or not pair[0] < pair[1]:
            column = facts.names[place] if facts.names is not None else str(place)
            raise InvalidParameter.must_be(name, f"given, or declared in the study for column {column!r}", pair)
    pairs = [pair for pair in facts.bounds if pair is not None]
    return bounds_of((np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])), facts, name=name)


def scale_rows(rows: Floats, bounds: Bounds) -> Floats:
    """Return rows clamped to the bounds and scaled to [-1, 1]; missing is 0, the middle of its column."""
    clamped = np.clip(rows, bounds.low, bounds.high)
    found = np.clip((clamped - bounds.centre) / bounds.half, -1.0, 1.0)
    return np.nan_to_num(found, copy=False, nan=0.0)


def centre_rows(rows: Floats, centre: Floats | float = 0.0) -> Floats:
    """Return rows less a public centre; what is missing or infinite is 0, as if it were the centre. To be read only."""
    if not np.any(centre) and np.isfinite(rows).all():
        return rows  # no copy of a large table
    with np.errstate(invalid="ignore", over="ignore"):
        found = rows - centre
    return np.nan_to_num(found, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
