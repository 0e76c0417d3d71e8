"""Results as somebody sees them who looks at every bit: equal faces cannot be told apart."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import sys
import uuid
from collections import Counter, OrderedDict
from typing import Any, TypeAlias, cast

import numpy as np

Face: TypeAlias = tuple[Any, ...]
"""A type, then texts, bytes and faces: nothing that is equal to something of another type."""

_WORDS = (int, bool, str, bytes, bytearray, range, decimal.Decimal, fractions.Fraction, uuid.UUID, type(None), type(Ellipsis))
_TIMES = (dt.date, dt.time, dt.datetime, dt.timedelta, dt.timezone)
_PLAIN = frozenset({*_WORDS, *_TIMES})
"""Types whose repr shows everything."""

_MAPS = frozenset({dict, OrderedDict, Counter})


class Faceless(TypeError):  # noqa: N818 -- a refusal, as in curador.errors
    """A value of a type that nothing is known about: equality of its own may be lax."""


def face(value: object) -> Face:
    """Return the type and every bit of a value: signs of zero, payloads of NaN, trailing zeros, the order of keys.

    Raises Faceless for types that are not known here. A set shows what it holds, not the order in which it grew.
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind, repr(value)
    if kind is float:
        return kind, np.float64(cast("float", value)).tobytes()
    if kind is complex:
        return kind, np.complex128(cast("complex", value)).tobytes()
    if isinstance(value, type):
        return (type, value)
    if isinstance(value, enum.Enum):
        return kind, value.name
    if isinstance(value, np.generic) or kind is np.ndarray:
        return _array(value)
    held = _held(value)
    if held is None:
        raise Faceless(kind.__name__)
    return kind, *held, *_attributes(value)


def _held(value: object) -> Face | None:
    """The faces of what a container holds; None where it is none that is known."""
    kind = type(value)
    if kind in _MAPS:  # the order of keys is published too
        return tuple((face(key), face(item)) for key, item in cast("dict[Any, Any]", value).items())
    if kind in {set, frozenset}:
        return tuple(sorted((face(item) for item in cast("set[Any]", value)), key=repr))
    if kind in {list, tuple} or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return tuple(face(item) for item in cast("list[Any]", value))
    if dataclasses.is_dataclass(value):
        return tuple((field.name, face(getattr(value, field.name))) for field in dataclasses.fields(value))
    return () if _is_estimator(value) else None  # parameters, and what was learned, are attributes


def _is_estimator(value: object) -> bool:
    """Whether it is one of our own; without their room loaded there is none, and scikit-learn is not needed."""
    room = sys.modules.get("curador.learn.base")
    return room is not None and isinstance(value, room.PrivateEstimator)


def _attributes(value: object) -> Face:
    own: dict[str, object] | None = getattr(value, "__dict__", None)
    return () if not own else tuple((name, face(item)) for name, item in own.items())


def _array(value: object) -> Face:
    array = np.asarray(cast("Any", value))
    head = (type(value), repr(array.dtype), repr(array.shape))
    if array.dtype.hasobject:
        return *head, face(array.ravel().tolist())
    return *head, array.tobytes()


def error_face(error: BaseException | None) -> Face:
    """Return what an analyst sees of an error: class, words, arguments, notes, attributes, and the same of its causes.

    Where in the code it was raised is not part of it.
    """
    if error is None:
        return ()
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return type(error), str(error), face(error.args), _attributes(error), error_face(behind)


def same(one: object, other: object) -> bool:
    """Whether two results are equal to somebody who sees every bit of them: types, shapes, signs of zero and NaN included.

    Raises Faceless (a TypeError) for types that are not known here.
    """
    return face(one) == face(other)
