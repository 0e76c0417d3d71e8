"""What the selections of keys share: numbers of units by key come in, in an order that says nothing, and go out."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import itertools
import math
import numbers
import uuid
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np

from curador.mechanisms.grid import refusal_of_value, to_whole, unwrap_value, whole_array
from curador.privacy.adjacency import Adjacency
from curador.randomness.entropy import BoolArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

Counts: TypeAlias = Mapping[Any, int]
"""Units by key; a key that nobody holds may be there with 0, or not at all: it is never shown."""

_LARGEST = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Numbers with the keys they belong to: what stands at the seam for a mapping, in and out.

    A key that is not there has 0 units, so two neighbours need not have the same keys; and what comes out names its keys,
    so that it can be shown without knowing what went in.
    """

    keys: tuple[Any, ...]
    numbers: NDArray[Any]

    def chosen(self, places: BoolArray, values: NDArray[Any]) -> Keyed:
        """Return the keys at the true places, each with its value."""
        return Keyed(tuple(itertools.compress(self.keys, places.tolist())), values[places])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy the numbers; the keys stay the same objects, as a key that is equal to itself alone has no equal copy."""
        return type(self)(self.keys, self.numbers.copy())


def as_units(counts: object) -> IntArray:
    """Return the numbers of units as integers, refused unless whole, at least 0 and in one dimension.

    No numbers at all are an answer wherever some would be: an error would tell that nobody is there.
    """
    given = unwrap_value(counts, "counts")
    if isinstance(given, (list, tuple)) and not given:
        return np.empty(0, np.int64)
    if hasattr(given, "__array__"):
        column: NDArray[Any] = np.asarray(given)
        if column.shape == (0,) and column.dtype.kind in "iuO":
            return np.empty(0, np.int64)
        given = column
    units = whole_array(given, "counts")
    if units.ndim != 1:
        raise refusal_of_value("counts", "a mapping or an array of one dimension", f"an array of {units.ndim} dimensions")
    if (units < 0).any():
        raise refusal_of_value("counts", "at least 0", "a negative number")
    return units


def from_mapping(counts: Counts) -> Keyed:
    """Return the keys that somebody holds, sorted, and their numbers of units.

    Claim   The order is a function of the set of keys alone, not of the order in which the data brought them, except
            between keys whose `order` is the same (two NaNs, or objects of one type with the same repr).
    """
    held: list[tuple[Any, Any, int]] = []
    for key, count in counts.items():
        units = to_whole(count, "counts")
        if units < 0:
            raise refusal_of_value("counts", "at least 0", "a negative number")
        if units:
            held.append((sort_key(key), key, min(units, _LARGEST)))
    held.sort(key=lambda row: row[0])
    return Keyed(tuple(key for _, key, _ in held), np.array([units for _, _, units in held], np.int64))


def sort_key(key: Hashable) -> tuple[Any, ...]:
    """Numbers by size, texts by letter, tuples place by place; kinds that do not compare, by the name of their kind.

    Every key has a place, kinds that are not known by type and repr: a refusal would tell that somebody holds such a key.
    """
    if isinstance(key, enum.Enum):
        return ("Enum", 0, type(key).__qualname__, repr(key))
    if isinstance(key, (decimal.Decimal, numbers.Rational, float, np.floating)):
        return _by_size(key)
    if isinstance(key, (str, bytes)):
        return (type(key).__name__.rstrip("_"), 0, key)
    if isinstance(key, (dt.date, dt.time, np.datetime64, np.timedelta64, uuid.UUID)):
        return (type(key).__name__, 0, str(key))
    if isinstance(key, dt.timedelta):
        return ("timedelta", 0, key)
    if isinstance(key, tuple):
        return ("tuple", 0, tuple(sort_key(cast("Hashable", one)) for one in cast("tuple[object, ...]", key)))
    if isinstance(key, frozenset):  # its repr has no order of its own
        return ("frozenset", 0, tuple(sorted(sort_key(one) for one in cast("frozenset[Hashable]", key))))
    if key is None:
        return ("", 0, "")
    return (type(key).__name__, 2, repr(key))


def _by_size(key: decimal.Decimal | numbers.Rational | float | np.floating[Any]) -> tuple[Any, ...]:
    """As a rational: floats of different widths, decimals and fractions do not all compare with each other."""
    if isinstance(key, numbers.Rational):
        return ("Real", 0, Fraction(int(key.numerator), int(key.denominator)))
    near = float(key)
    if math.isnan(near):  # compares with nothing
        return ("Real", 1, "")
    if isinstance(key, decimal.Decimal) and (math.isinf(near) or near == 0):  # as a rational it might fill the memory
        return ("Real", 0, key)
    return ("Real", 0, near if math.isinf(near) else Fraction(*key.as_integer_ratio()))


def count_touched(keys: int, adjacency: Adjacency) -> int:
    """Return how many keys change: those of one person, or those of the person who goes and of the one who comes."""
    return keys if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2 * keys


def differ_by_one_unit(one: IntArray | Keyed, other: IntArray | Keyed, keys: int, adjacency: Adjacency) -> bool:
    """Whether the counts can be those of two neighbours: by one each, at most `keys` keys up, or down, or (replaced) both.

    Arrays place by place; mappings by key, a key that is not there having 0 units.
    """
    if isinstance(one, Keyed) and isinstance(other, Keyed):
        change = _change(one, other)
    elif isinstance(one, Keyed) or isinstance(other, Keyed) or one.shape != other.shape:
        return False
    else:
        change = one - other
    more, fewer = int((change > 0).sum()), int((change < 0).sum())
    both = adjacency is Adjacency.REPLACE_ONE or min(more, fewer) == 0
    return both and max(more, fewer) <= keys and bool((np.abs(change) <= 1).all())


def _change(one: Keyed, other: Keyed) -> IntArray:
    """By how much each key of either differs. NaNs, which cannot be told apart, are matched by their numbers of units."""
    before, after = _by_identity(one), _by_identity(other)
    moves: list[int] = []
    for key in before.keys() | after.keys():
        pairs = itertools.zip_longest(before.get(key, []), after.get(key, []), fillvalue=0)
        moves.extend(a - b for a, b in pairs)
    return np.array(moves, np.int64)


def _by_identity(counts: Keyed) -> dict[Any, list[int]]:
    """Numbers of units, largest first, by what an analyst who sees the key could tell: 1 and 1.0 are not the same."""
    out: dict[Any, list[int]] = {}
    for key, units in zip(counts.keys, counts.numbers.tolist(), strict=True):
        out.setdefault(_identity(key), []).append(units)
    for units in out.values():
        units.sort(reverse=True)
    return out


def _identity(key: Hashable) -> tuple[Any, ...]:
    if isinstance(key, tuple):
        return (type(key), *(_identity(cast("Hashable", one)) for one in cast("tuple[object, ...]", key)))
    told_by_repr = isinstance(key, (numbers.Number, np.generic))  # a NaN does not equal itself
    return (type(key), repr(key) if told_by_repr else key)
