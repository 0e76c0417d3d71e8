"""What the selections of keys share: numbers of units by key come in, in an order that says nothing, and go out."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import numbers
import uuid
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np

from curador.mechanisms.grid import refused, to_whole, whole_array
from curador.privacy.adjacency import Adjacency
from curador.randomness.entropy import IntArray

Counts: TypeAlias = Mapping[Any, int]
"""Units by key; a key that nobody holds may be there with 0, or not at all: it is never shown."""

_LARGEST = 1 << 62


def as_units(counts: object) -> IntArray:
    """Return the numbers of units as integers, refused unless whole, at least 0 and in one dimension."""
    if isinstance(counts, (list, tuple)) and not counts:
        return np.empty(0, np.int64)
    if isinstance(counts, np.ndarray) and counts.ndim == 1 and counts.size == 0 and counts.dtype.kind in "iu":
        return np.empty(0, np.int64)
    units = whole_array(counts, "counts")
    if units.ndim != 1:
        raise refused("counts", "a mapping or an array of one dimension", f"an array of {units.ndim} dimensions")
    if (units < 0).any():
        raise refused("counts", "at least 0", "a negative number")
    return units


def from_mapping(counts: Counts) -> tuple[list[Any], IntArray]:
    """Return the keys that somebody holds, sorted, and their numbers of units.

    Claim   The order is a function of the set of keys alone, not of the order in which the data brought them.
    """
    held: list[tuple[Any, Any, int]] = []
    for key, count in counts.items():
        units = to_whole(count, "counts")
        if units < 0:
            raise refused("counts", "at least 0", "a negative number")
        if units:
            held.append((_order(key), key, min(units, _LARGEST)))
    held.sort(key=lambda row: row[0])
    return [key for _, key, _ in held], np.array([units for _, _, units in held], np.int64)


def _order(key: Hashable) -> tuple[Any, ...]:
    """Numbers by size, texts by letter, tuples place by place; kinds that do not compare, by the name of their kind."""
    if isinstance(key, enum.Enum):
        return ("Enum", type(key).__qualname__, key.name)
    if isinstance(key, (decimal.Decimal, float, np.floating)):
        plain = float(key)
        if math.isnan(plain):  # compares with nothing
            return ("Real", 1, "")
        return ("Real", 0, Fraction(key) if math.isfinite(plain) and isinstance(key, decimal.Decimal) else key)
    if isinstance(key, numbers.Real):
        return ("Real", 0, key)
    if isinstance(key, (str, bytes)):
        return (type(key).__name__.rstrip("_"), 0, key)
    if isinstance(key, (dt.date, dt.time, np.datetime64, np.timedelta64, uuid.UUID)):
        return (type(key).__name__, 0, str(key))
    if isinstance(key, dt.timedelta):
        return ("timedelta", 0, key)
    if isinstance(key, tuple):
        return ("tuple", 0, tuple(_order(cast("Hashable", one)) for one in cast("tuple[object, ...]", key)))
    if key is None:
        return ("", 0, "")
    raise refused("keys", "texts, numbers, dates or tuples of them", f"a {type(key).__name__}")


def touched(keys: int, relation: Adjacency) -> int:
    """Return how many keys change: those of one person, or those of the person who goes and of the one who comes."""
    return keys if relation is Adjacency.ADD_OR_REMOVE_ONE else 2 * keys


def differ_by_one_unit(one: IntArray, other: IntArray, keys: int, relation: Adjacency) -> bool:
    """Whether the counts can be those of two neighbours: by one each, at most `keys` keys up, or down, or (replaced) both."""
    if one.shape != other.shape:
        return False
    change = one - other
    more, fewer = int((change > 0).sum()), int((change < 0).sum())
    both = relation is Adjacency.REPLACE_ONE or min(more, fewer) == 0
    return both and max(more, fewer) <= keys and bool((np.abs(change) <= 1).all())
