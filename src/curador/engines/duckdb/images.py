"""The tuples of a listing of keys, computed by an engine that holds nothing but the values which are listed."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.engines.calculator import calculate
from curador.engines.lower.listing import lower_listing
from curador.plan.listing import FiniteColumn, listed_values
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.plan.listing import Listing, PublicRows
    from curador.study.values import Value

_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000


def compute_images(
    listing: Listing, most: int, read: Callable[[PublicRows, int], Any]
) -> tuple[tuple[Value | None, ...], ...] | None:
    """Return all tuples of a listing, each once; None where more than `most` rows are to be looked at, or one is infinite.

    read  gives the rows of a public table, each once, with columns c0, c1, …; None if there are more than so many
    """
    tables: dict[str, Any] = {}
    for place, source in enumerate(listing.sources):
        tables[f"s{place}"] = _finite_table(source) if isinstance(source, FiniteColumn) else read(source, most)
    if any(table is None for table in tables.values()):
        return None
    import duckdb

    try:
        rows = calculate(lower_listing(listing, most), tables)
    except duckdb.Error:  # more than memory holds, say: what cannot be listed is not known
        return None
    if sum(row[-1] for row in rows) > most:
        return None
    if any(isinstance(value, float) and math.isinf(value) for row in rows for value in row):
        return None
    return tuple(tuple(_value(value) for value in row[:-1]) for row in rows)


def _value(value: Any) -> Value | None:
    return Fraction(value) if isinstance(value, float) else value


def _finite_table(column: FiniteColumn) -> Any:
    import pyarrow as pa

    types = {
        Type.BOOLEAN: pa.bool_(),
        Type.INTEGER: pa.int64(),
        Type.STRING: pa.string(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }
    kind = types.get(column.type, pa.float64())
    if not isinstance(column.values, range):
        held = [float(value) if isinstance(value, Fraction) else value for value in listed_values(column)]
        return pa.table({"c0": pa.array(held, kind)})
    numbers = np.arange(column.values.start, column.values.stop, dtype=np.int64)
    if column.type is Type.DATE:
        found = pa.array((numbers - _EPOCH).astype(np.int32)).cast(kind)
    elif column.type is Type.TIMESTAMP:
        found = pa.array((numbers - _EPOCH) * _DAY).cast(kind)
    else:
        found = pa.array(numbers, kind)
    nothing = pa.nulls(1 if column.null else 0, kind)
    return pa.table({"c0": pa.chunked_array([found, nothing], kind)})
