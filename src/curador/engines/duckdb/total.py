"""Arrow columns whose every value DuckDB can scan: some of what Arrow and Parquet hold stops its scan before a cast sees it.

A text that is no UTF-8 becomes NULL. A timestamp of seconds or milliseconds becomes one of microseconds, the one too far away
for that the farthest (cleaning clamps both to the same day). Everything else stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

_FAR = 1 << 62
"""Microseconds from 1970 that are farther than any year that is kept, and are not how infinity is written."""

_BATCH = 1 << 16


def total(column: Any) -> Any:
    """Return an Arrow column (in pieces or in one) in pieces, each value of which can be scanned.

    Claim   A value of the result is a function of that value alone; the type is a function of the type alone.
    """
    import pyarrow as pa

    pieces = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    kind: Any = pieces.type
    if pa.types.is_dictionary(kind):
        plain = [piece.dictionary_decode() for piece in pieces.chunks]
        return total(pa.chunked_array(plain, type=kind.value_type))
    if pa.types.is_timestamp(kind) and kind.unit in {"s", "ms"}:
        return _microseconds(pieces)
    as_bytes = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}.get(kind)
    if as_bytes is None:
        return pieces
    return pa.chunked_array([piece if _is_text(piece) else _texts(piece, as_bytes) for piece in pieces.chunks], type=kind)


def total_batches(files: Sequence[Path], names: Sequence[str]) -> Any:
    """Return these columns of Parquet files as a stream of batches that can be scanned; a file without one has NULLs.

    Raises ArrowException or OSError where the files do not agree in a type, or are not readable at all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = [_opened(pq, file).schema_arrow for file in files]
    empty = pa.unify_schemas([pa.schema([field for field in one if field.name in names]) for one in schemas]).empty_table()
    schema = pa.schema([(name, total(empty.column(name)).type) for name in names])

    def batches() -> Generator[Any]:
        for file in files:
            opened = _opened(pq, file)
            there = [name for name in names if name in opened.schema_arrow.names]
            for batch in opened.iter_batches(_BATCH, columns=there):
                columns = [
                    total(batch.column(field.name)) if field.name in there else pa.nulls(batch.num_rows, field.type)
                    for field in schema
                ]
                yield from pa.table(columns, schema=schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def cut_times(files: Sequence[Path], names: Sequence[str]) -> str | None:
    """Return the first of these columns with a time that microseconds do not reach; None if there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in names:
        for file in files:
            opened = _opened(pq, file)
            field = opened.schema_arrow.field(name) if name in opened.schema_arrow.names else None
            if field is None or not pa.types.is_timestamp(field.type):
                continue
            for batch in opened.iter_batches(_BATCH, columns=[name]):
                column = pa.chunked_array([batch.column(name)])
                if total(column).cast(column.type) != column:
                    return name
    return None


def _opened(parquet: Any, file: Path) -> Any:
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
