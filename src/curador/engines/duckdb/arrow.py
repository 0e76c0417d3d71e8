"""Arrow columns whose every value DuckDB can scan, and tables given from Python as such.

Some of what Arrow and Parquet hold stops DuckDB's scan before a cast sees it. A text that is no UTF-8 becomes NULL. A
timestamp of seconds or milliseconds becomes one of microseconds, the one too far away for that the farthest (cleaning clamps
both to the same day). Everything else stays as it is.

Of a table given from Python, types come from the frame's own dtypes, never from its rows. A pandas column of objects is text,
whatever stands in it: each value is spelled (9.0 as '9', dates as ISO, True as 'true'), missing ones and what has no spelling
are NULL; the declared type reads the text. Columns that Arrow cannot hold are left out.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from curador.study.frames import plain_frame

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path


# ---- total -----------------------------------------------------------------------------------------------------------------


_FAR = 1 << 62
"""Microseconds from 1970 that are farther than any year that is kept, and are not how infinity is written."""

_BATCH = 1 << 16


def make_scannable(column: Any) -> Any:
    """Return an Arrow column (in pieces or in one) in pieces, each value of which can be scanned.

    Claim   A value of the result is a function of that value alone; the type is a function of the type alone.
    """
    import pyarrow as pa

    pieces = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    kind: Any = pieces.type
    if pa.types.is_dictionary(kind):
        plain = [piece.dictionary_decode() for piece in pieces.chunks]
        return make_scannable(pa.chunked_array(plain, type=kind.value_type))
    if pa.types.is_timestamp(kind) and kind.unit in {"s", "ms"}:
        return _microseconds(pieces)
    as_bytes = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}.get(kind)
    if as_bytes is None:
        return pieces
    return pa.chunked_array([piece if _is_text(piece) else _texts(piece, as_bytes) for piece in pieces.chunks], type=kind)


def scannable_batches(files: Sequence[Path], names: Sequence[str]) -> Any:
    """Return these columns of Parquet files as a stream of batches that can be scanned; a file without one has NULLs.

    Raises ArrowException or OSError where the files do not agree in a type, or are not readable at all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = [_open_parquet(pq, file).schema_arrow for file in files]
    empty = pa.unify_schemas([pa.schema([field for field in one if field.name in names]) for one in schemas]).empty_table()
    schema = pa.schema([(name, make_scannable(empty.column(name)).type) for name in names])

    def batches() -> Generator[Any]:
        for file in files:
            opened = _open_parquet(pq, file)
            there = [name for name in names if name in opened.schema_arrow.names]
            for batch in opened.iter_batches(_BATCH, columns=there):
                columns = [
                    make_scannable(batch.column(field.name)) if field.name in there else pa.nulls(batch.num_rows, field.type)
                    for field in schema
                ]
                yield from pa.table(columns, schema=schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def column_with_cut_times(files: Sequence[Path], names: Sequence[str]) -> str | None:
    """Return the first of these columns with a time that microseconds do not reach; None if there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in names:
        for file in files:
            opened = _open_parquet(pq, file)
            field = opened.schema_arrow.field(name) if name in opened.schema_arrow.names else None
            if field is None or not pa.types.is_timestamp(field.type):
                continue
            for batch in opened.iter_batches(_BATCH, columns=[name]):
                column = pa.chunked_array([batch.column(name)])
                if make_scannable(column).cast(column.type) != column:
                    return name
    return None


def _open_parquet(parquet: Any, file: Path) -> Any:
    return parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")


def _microseconds(pieces: Any) -> Any:
    """Times by a factor of whole numbers: what would overflow is cut before."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    factor = 1_000_000 if pieces.type.unit == "s" else 1_000
    numbers = pieces.cast(pa.int64())
    near = compute.min_element_wise(numbers, pa.scalar(_FAR // factor), skip_nulls=False)
    near = compute.max_element_wise(near, pa.scalar(-(_FAR // factor)), skip_nulls=False)
    return compute.multiply(near, pa.scalar(factor)).cast(pa.timestamp("us", pieces.type.tz))


def _is_text(piece: Any) -> bool:
    import pyarrow as pa

    try:
        piece.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _texts(piece: Any, as_bytes: Any) -> Any:
    import pyarrow as pa

    return pa.array([_text(value) for value in piece.cast(as_bytes).to_pylist()], type=piece.type)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


# ---- frames ----------------------------------------------------------------------------------------------------------------


_LONGEST_NUMBER = 400


class SameNamesError(ValueError):
    """Two columns have names that differ in letter case at most."""


def to_arrow(frame: Any) -> Any:
    """Return a data frame as an Arrow table whose types DuckDB reads."""
    import pyarrow as pa

    frame = plain_frame(frame)
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
            return pa.array([spell(value) for value in series], type=pa.string())
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
    return None if nested or _is_bytes(kind) else make_scannable(column)


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def spell(value: object) -> str | None:
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
    return None if type(plain).__module__ == "numpy" else spell(plain)


def _decimal(value: Decimal) -> str | None:
    if value.is_nan():
        return None
    near = value.is_finite() and abs(value.adjusted()) <= _LONGEST_NUMBER
    return _digits(int(value)) if near and value == value.to_integral_value() else str(value)


def _digits(value: int) -> str | None:
    """A number longer than any type holds has no spelling: Python itself refuses to write it."""
    return str(value) if value.bit_length() < 4 * _LONGEST_NUMBER else None
