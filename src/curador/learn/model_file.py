"""Fitted estimators as JSON files: parameters, fitted numbers, privacy card. Nothing is ever unpickled."""

from __future__ import annotations

import json
import math
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter, sentence
from curador.learn import WHERE
from curador.learn.card import PrivacyCard

if TYPE_CHECKING:
    from curador.learn.base import PrivateEstimator

_FORMAT = 1
_EXACT = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400})?")
_KINDS = {"f": "float64", "i": "int64", "b": "bool", "U": "str"}


def to_json(estimator: PrivateEstimator) -> str:
    """Return a fitted estimator as JSON: what was released, and nothing else."""
    fitted = {name: written(value) for name, value in vars(estimator).items() if name.endswith("_") and name[0] != "_"}
    body = {
        "format": _FORMAT,
        "class": type(estimator).__name__,
        "parameters": {name: written(value) for name, value in estimator.get_params(deep=False).items()},
        "fitted": fitted,
    }
    return json.dumps(body, allow_nan=False)


def from_json(text: str | bytes) -> PrivateEstimator:
    """Return the estimator that `to_json` wrote; anything else is refused."""
    try:
        return _made(json.loads(text))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError) as problem:
        hint = "models are the JSON files that `save` writes"
        raise InvalidParameter(sentence("a model", "a readable file", type(problem).__name__, hint)) from None


def _made(body: Any) -> PrivateEstimator:
    if body["format"] != _FORMAT:
        raise KeyError("format")
    name = body["class"]
    if not name.startswith("Private"):
        raise KeyError(name)
    kind = getattr(import_module(WHERE[name]), name)
    made = kind(**{name: _read(value) for name, value in body["parameters"].items()})
    for attribute, value in body["fitted"].items():
        if not attribute.endswith("_") or attribute.startswith("_"):
            raise KeyError(attribute)
        setattr(made, attribute, _read(value))
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
        raise InvalidParameter(sentence("path", "a readable file", str(path), problem.strerror)) from None


def written(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, PrivacyCard):
        return {"card": value.to_record()}
    if isinstance(value, np.ndarray):
        kind = _KINDS.get(value.dtype.kind)
        if kind is None:
            raise InvalidParameter(sentence("a fitted array", "of numbers or texts", str(value.dtype)))
        flat = [written(one) for one in value.ravel().tolist()] if kind == "float64" else value.ravel().tolist()
        return {"array": flat, "kind": kind, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return written(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [written(one) for one in value]}
    if isinstance(value, dict):
        return {"pairs": [[written(key), written(one)] for key, one in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "numerator"):  # an exact number
        return {"exact": str(value)}
    raise InvalidParameter(sentence("what is saved", "numbers, texts and arrays", type(value).__name__))


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    match value:
        case {"card": record}:
            return PrivacyCard.from_record(record)
        case {"array": list(flat), "kind": str(kind), "shape": list(shape)} if kind in _KINDS.values():
            return np.array([_read(one) for one in flat], dtype=kind).reshape(shape)
        case {"float": text}:
            return float(text)
        case {"tuple": ones}:
            return tuple(_read(one) for one in ones)
        case {"list": ones}:
            return [_read(one) for one in ones]
        case {"pairs": pairs}:
            return {_read(key): _read(one) for key, one in pairs}
        case {"exact": str(text)} if _EXACT.fullmatch(text):
            from fractions import Fraction

            return Fraction(text)
        case _:
            raise KeyError("value")
