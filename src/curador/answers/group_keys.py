"""Groups by their keys: one Python value for one key value, and an order that no engine decides."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.errors import Failed
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from curador.engines.base import KeyValue
    from curador.plan.model import KeyPlan


KeyRows: TypeAlias = "list[tuple[KeyValue, ...]]"
"""One tuple of keys for each group."""


_PLAIN = {Type.BOOLEAN: bool, Type.INTEGER: int, Type.STRING: str, Type.DATE: dt.date, Type.TIMESTAMP: dt.datetime}
"""Types whose values are keys as they are."""


def normalize_key(value: Any, kind: Type) -> KeyValue:
    """Return the one value that stands for a key: 0.0 for −0.0, NULL for NaN, Python's own types.

    Claim   Two values that an engine's grouping holds apart stay apart: it groups doubles without NaN, and the zeros as one.
    """
    if value is None:
        return None
    match kind:
        case Type.BOOLEAN if isinstance(value, (bool, np.bool_)):
            return bool(value)
        case Type.INTEGER if isinstance(value, (int, np.integer)):
            return int(value)
        case Type.DECIMAL | Type.FLOAT if isinstance(value, (int, float, decimal.Decimal, np.number)):
            number = float(value)
            return None if math.isnan(number) else number + 0.0
        case Type.STRING if isinstance(value, str):
            return str(value)
        case Type.DATE if isinstance(value, dt.date):
            return value.date() if isinstance(value, dt.datetime) else value
        case Type.TIMESTAMP if isinstance(value, dt.date):
            return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
        case _:
            raise Failed("a key is not of its column's type")


def normalize_columns(columns: Sequence[Sequence[Any]], kinds: Sequence[Type]) -> list[list[KeyValue]]:
    """Return columns of keys with one value for each key value."""
    out: list[list[KeyValue]] = []
    for column, kind in zip(columns, kinds, strict=True):
        held: list[Any] = column.tolist() if isinstance(column, np.ndarray) else list(column)
        plain = set(map(type, held)) <= {_PLAIN.get(kind), type(None)}
        out.append(held if plain else [normalize_key(value, kind) for value in held])
    return out


def known_values(key: KeyPlan) -> list[KeyValue]:
    """Return all values of a known key in their declared order, each once.

    Two declared values that are one float would be two rows of the same people, which no sensitivity allows for.
    """
    declared = [float(value) if isinstance(value, Fraction) else value for value in key.values or ()]
    return list(dict.fromkeys(normalize_columns([declared], [key.type])[0]))


def cross_keys(keys: Sequence[KeyPlan], private: KeyRows) -> KeyRows:
    """Return all combinations of private keys, as given, with all values of the known ones, each in its place."""
    known = [known_values(key) for key in keys if key.values is not None]
    places = [place for place, key in enumerate(keys) if key.values is None]
    others = [place for place, key in enumerate(keys) if key.values is not None]
    back = np.argsort([*places, *others]).tolist()
    if not places:
        return list(itertools.product(*known))
    joined = (chosen + rest for chosen, rest in itertools.product(private, list(itertools.product(*known))))
    return [tuple(row[place] for place in back) for row in joined]


def key_columns(rows: KeyRows, count: int) -> tuple[list[KeyValue], ...]:
    """Return one list for each key."""
    return tuple(list(column) for column in zip(*rows, strict=True)) if rows else tuple([] for _ in range(count))


def sort_rows(rows: KeyRows) -> KeyRows:
    """Return the rows by their keys, NULL last."""
    return [rows[place] for place in key_order(key_columns(rows, 0), len(rows)).tolist()] if rows else []


def key_order(columns: Sequence[Sequence[KeyValue]], count: int) -> NDArray[np.int64]:
    """Return the places of rows sorted by their keys, the first key first, NULL last."""
    codes = [ranks(column) for column in columns]
    return np.lexsort(codes[::-1]) if codes else np.arange(count)


def ranks(values: Sequence[Hashable], *, descending: bool = False, nulls_first: bool = False) -> NDArray[np.int64]:
    """Return the rank of each value among the different ones; NULLs last, or first."""
    different: list[Any] = sorted({value for value in values if value is not None}, reverse=descending)  # type: ignore[type-var]
    codes: dict[Any, int] = {value: code for code, value in enumerate(different)}
    codes[None] = -1 if nulls_first else len(different)
    return np.array([codes[value] for value in values], np.int64)
