"""Tables given from Python as Arrow: types come from the frame's own dtypes, never from its rows.

A pandas column of objects is text, whatever stands in it: each value is spelled (9.0 as '9', dates as ISO, True as 'true'),
missing ones and what has no spelling are NULL; the declared type reads the text. Columns that Arrow cannot hold are left out.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

from curador.engines.duckdb.total import total

_LONGEST_NUMBER = 400


class SameNamesError(ValueError):
    """Two columns have names that differ in letter case at most."""


def to_arrow(frame: Any) -> Any:
    """Return a pandas or Polars frame, or an Arrow table or batch, as an Arrow table whose types DuckDB reads."""
    import pyarrow as pa

    kind = type(frame).__module__.partition(".")[0]
    if kind == "pandas":
        columns = [(str(name), _pandas_column(frame.iloc[:, place])) for place, name in enumerate(frame.columns)]
    else:
        table = _polars_table(frame) if kind == "polars" else frame
        columns = [(name, table.column(place)) for place, name in enumerate(table.schema.names)]
    if len({name.casefold() for name, _ in columns}) < len(columns):
        raise SameNamesError
    simple = [(name, one) for name, column in columns if column is not None and (one := _simple(column)) is not None]
    return pa.table(dict(simple))


def _polars_table(frame: Any) -> Any:
    import polars as pl

    return frame.select([name for name, kind in frame.schema.items() if kind != pl.Object]).to_arrow()


def _pandas_column(series: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.dtype.categories.dtype)
    if series.dtype == object:
        try:
            return pa.array(series, type=pa.string(), from_pandas=True)  # all text: the same as spelling, and fast
        except (pa.ArrowException, ValueError, TypeError):
            return pa.array([spelled(value) for value in series], type=pa.string())
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
        return None  # complex numbers, intervals, periods


def _simple(column: Any) -> Any:
    """Return the column in a type that DuckDB scans; None for what cannot be selected anyway."""
    import pyarrow as pa

    kind: Any = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal256(kind):
        return column.cast(pa.string())
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    nested = pa.types.is_nested(kind) or pa.types.is_union(kind)
    return None if nested or _is_bytes(kind) else total(column)


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def spelled(value: object) -> str | None:
    """Return one spelling for a value of a column of objects, None where it has none; total."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _digits(value)
    if isinstance(value, float):
        return None if math.isnan(value) else _digits(int(value)) if value.is_integer() else repr(float(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat() if value == value else None  # noqa: PLR0124 -- NaT is a datetime that differs from itself
    if isinstance(value, uuid.UUID):
        return str(value)
    if type(value).__module__ == "numpy":  # its scalars
        return _numpy(value)
    return None


def _numpy(value: Any) -> str | None:
    if type(value).__name__ == "datetime64":
        text = str(value)
        return None if text == "NaT" else text
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else None
    return None if type(plain).__module__ == "numpy" else spelled(plain)


def _decimal(value: Decimal) -> str | None:
    if value.is_nan():
        return None
    near = value.is_finite() and abs(value.adjusted()) <= _LONGEST_NUMBER
    return _digits(int(value)) if near and value == value.to_integral_value() else str(value)


def _digits(value: int) -> str | None:
    """A number longer than any type holds has no spelling: Python itself refuses to write it."""
    return str(value) if value.bit_length() < 4 * _LONGEST_NUMBER else None
