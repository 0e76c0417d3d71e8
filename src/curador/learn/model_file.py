"""Fitted estimators as JSON files: parameters, fitted numbers, privacy card. Nothing is ever unpickled.

A contract: names of classes, of parameters (those of the public constructors) and of what a fit keeps are for ever. What a
fit keeps is listed here; what is not listed is neither written nor read.
"""

from __future__ import annotations

import json
import math
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter
from curador.learn import WHERE
from curador.learn.card import STORED_ADJACENCY, PrivacyCard, read_adjacency
from curador.privacy.adjacency import as_adjacency

if TYPE_CHECKING:
    from curador.learn.base import PrivateEstimator

_FORMAT = 1
_EXACT = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400})?")

FITTED = {
    "PrivateKMeans": ("cluster_centers_", "scale_", "counts_"),
    "PrivateLinearRegression": ("coef_", "coef_error_", "intercept_"),
    "PrivateLogisticRegression": ("classes_", "coef_", "intercept_"),
    "PrivateNuclearRegressor": ("coef_", "factors_", "history_"),
    "PrivatePCA": (
        *("method_", "components_", "explained_variance_", "spectrum_", "noise_edge_", "n_significant_", "center_"),
        *("row_norm_", "n_records_"),
    ),
    "PrivateRecommender": (
        *("item_ids_", "rating_range_", "mean_", "item_bias_", "item_factors_", "item_popularity_", "ridge_", "gains_"),
        *("eigenvalues_", "noise_edge_", "n_components_"),
    ),
}
"""What a fit of each class keeps."""

COMMON = ("n_features_in_", "feature_names_in_", "privacy_", "receipt_")
"""What a fit of every class may keep besides."""

_KINDS = {"f": "float64", "i": "int64", "b": "bool", "U": "str"}


def to_json(estimator: PrivateEstimator) -> str:
    """Return a fitted estimator as JSON: what was released, and nothing else."""
    name = type(estimator).__name__
    body = {
        "format": _FORMAT,
        "class": name,
        "parameters": write_parameters(estimator),
        "fitted": {name: write_value(value) for name, value in _fitted_values(estimator, _names(name)).items()},
    }
    return json.dumps(body, allow_nan=False)


def write_parameters(estimator: PrivateEstimator) -> dict[str, Any]:
    """Return the parameters of an estimator under the names, and in the order, in which they are stored."""
    given: dict[str, Any] = dict(estimator.get_params(deep=False))
    given["neighbours"] = STORED_ADJACENCY[as_adjacency(given.pop("adjacency"))]
    return {name: write_value(given[name]) for name in sorted(given)}


def _read_parameters(stored: dict[str, Any]) -> dict[str, Any]:
    given = {name: _read_value(value) for name, value in stored.items()}
    if "adjacency" in given:  # no file calls it so
        raise KeyError("adjacency")
    given["adjacency"] = str(read_adjacency(given.pop("neighbours")))
    return given


def _names(kind: str) -> frozenset[str]:
    """Return what a file of a class may hold; nothing of a class that is not listed."""
    return frozenset((*FITTED[kind], *COMMON)) if kind in FITTED else frozenset()


def _fitted_values(estimator: PrivateEstimator, known: frozenset[str]) -> dict[str, Any]:
    """Return what a fit has set, in that order; refused where a file could not say what it is."""
    kept = {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}
    for name in kept:
        if name not in known:
            raise InvalidParameter.must_be(f"what a fit of {type(estimator).__name__} keeps", "listed in FITTED", name)
    return kept


def from_json(text: str | bytes) -> PrivateEstimator:
    """Return the estimator that `to_json` wrote; anything else is refused."""
    try:
        return _make_model(json.loads(text))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError) as problem:
        hint = "models are the JSON files that `save` writes"
        raise InvalidParameter.must_be("a model", "a readable file", type(problem).__name__, hint) from None


def _make_model(body: Any) -> PrivateEstimator:
    if body["format"] != _FORMAT:
        raise KeyError("format")
    name = body["class"]
    if not name.startswith("Private"):
        raise KeyError(name)
    kind = getattr(import_module(WHERE[name]), name)
    made = kind(**_read_parameters(body["parameters"]))
    for attribute, value in body["fitted"].items():
        if attribute not in _names(name):
            raise KeyError(attribute)
        setattr(made, attribute, _read_value(value))
    if not isinstance(made.privacy_, PrivacyCard):
        raise KeyError("privacy_")
    return made


def save(estimator: PrivateEstimator, path: str | Path) -> None:
    """Write a fitted estimator."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    Path(path).write_text(to_json(estimator) + "\n", encoding="utf-8")


def load(path: str | Path) -> Any:
    """Return the estimator that `save` wrote."""
    try:
        return from_json(Path(path).read_bytes())
    except OSError as problem:
        raise InvalidParameter.must_be("path", "a readable file", str(path), problem.strerror) from None


def write_value(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, PrivacyCard):
        return {"card": value.to_record()}
    if isinstance(value, np.ndarray):
        kind = _KINDS.get(value.dtype.kind)
        if kind is None:
            raise InvalidParameter.must_be("a fitted array", "of numbers or texts", str(value.dtype))
        flat = [write_value(one) for one in value.ravel().tolist()] if kind == "float64" else value.ravel().tolist()
        return {"array": flat, "kind": kind, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return write_value(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [write_value(one) for one in value]}
    if isinstance(value, dict):
        return {"pairs": [[write_value(key), write_value(one)] for key, one in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "numerator"):  # an exact number
        return {"exact": str(value)}
    raise InvalidParameter.must_be("what is saved", "numbers, texts and arrays", type(value).__name__)


def _read_value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    match value:
        case {"card": record}:
            return PrivacyCard.from_record(record)
        case {"array": list(flat), "kind": str(kind), "shape": list(shape)} if kind in _KINDS.values():
            return np.array([_read_value(one) for one in flat], dtype=kind).reshape(shape)
        case {"float": text}:
            return float(text)
        case {"tuple": ones}:
            return tuple(_read_value(one) for one in ones)
        case {"list": ones}:
            return [_read_value(one) for one in ones]
        case {"pairs": pairs}:
            return {_read_value(key): _read_value(one) for key, one in pairs}
        case {"exact": str(text)} if _EXACT.fullmatch(text):
            from fractions import Fraction

            return Fraction(text)
        case _:
            raise KeyError("value")
