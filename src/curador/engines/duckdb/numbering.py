"""Numbers of rows inside their units, from rows that lie unit by unit, in the order in which a unit's rows count.

    __r       the row's number in its unit
    __d<c>    the number of its value of column c among the unit's values, in the order in which they first appear, up to MORE
    __f<c>    whether it is the first row of its unit with this value

    unit      7  7  7  7  8  8
    value     b  a  b  –  a  a        NULL is a value, too
    __d       1  2  1  3  1  1
    __f       y  y  n  y  y  n

Claim   At most g values of a unit have a number up to g < MORE. The number does not depend on how many of the unit's rows are
        looked at: those with `__r` up to m hold the first row of each value that they hold. So of the rows with `__r` ≤ m and
        `__d` ≤ g a unit has at most m, in at most g groups, and exactly one of each group has `__f`; what is kept grows
        with m and with g; and all of it is a function of the unit's own rows and their order.
Source  Values are numbered 1, 2, … by their least `__r`, which no two values share.

Values are compared as codes of a dictionary, so exactly. Where each value of each unit first appears is found by writing the
places of rows backwards into a table of units and values: what stands there last is the first. The table stays small, since
pieces of rows are taken that are cut between units.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

MORE = 255
"""The number of every value from here on: numbers are bytes."""

_PIECE = 1 << 16
"""Rows that are numbered together, more where a unit has more."""

_TABLE = 1 << 22
"""Entries of a table of units and values, at most; for one unit as many as it has values."""

Arrow: TypeAlias = Any
"""A column of pyarrow, which has no types of its own to show."""


def number_rows(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return each row's number in its unit. The first row begins one."""
    starts = np.flatnonzero(begins)
    return np.arange(1, len(begins) + 1) - np.repeat(starts, np.diff(starts, append=len(begins)))


def number_values(begins: NDArray[np.bool_], column: Arrow) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return for each row the number of its value, and whether it is the first with it. The first row begins a unit."""
    numbers, firsts = np.empty(len(begins), np.uint8), np.empty(len(begins), np.bool_)
    for start, end in _pieces(np.flatnonzero(begins), len(begins)):
        encoded = column.slice(start, end - start).dictionary_encode(null_encoding="encode")
        _number_piece(begins[start:end], as_numpy(encoded.indices), numbers[start:end], firsts[start:end])
    return numbers, firsts


def _pieces(starts: NDArray[np.intp], rows: int) -> list[tuple[int, int]]:
    """Where to cut rows into pieces of whole units."""
    cuts = [0]
    while cuts[-1] < rows:
        behind = int(np.searchsorted(starts, cuts[-1] + _PIECE))
        cuts.append(int(starts[behind]) if behind < len(starts) else rows)
    return list(pairwise(cuts))


def _number_piece(
    begins: NDArray[np.bool_], codes: NDArray[np.int32], numbers: NDArray[np.uint8], firsts: NDArray[np.bool_]
) -> None:
    """Write the numbers of a piece of whole units."""
    starts = np.flatnonzero(begins)
    values = int(codes.max(initial=0)) + 1
    if len(starts) > 1 and len(starts) * values > _TABLE:
        middle = int(starts[len(starts) // 2])
        for part in (slice(0, middle), slice(middle, len(begins))):
            fewer = as_arrow({"code": codes[part]}).column(0).chunk(0).dictionary_encode()
            _number_piece(begins[part], as_numpy(fewer.indices), numbers[part], firsts[part])
        return
    unit = np.cumsum(begins, dtype=np.int64) - 1
    key = unit * values + codes
    places = np.arange(len(begins), dtype=np.int64)
    table = np.empty(len(starts) * values, np.int64)
    table[key[::-1]] = places[::-1]
    first = table[key]
    np.equal(first, places, out=firsts)
    so_far = np.cumsum(firsts, dtype=np.int64)
    numbers[:] = np.minimum(so_far[first] - so_far[starts][unit] + 1, MORE)


def as_numpy(column: Arrow) -> NDArray[Any]:
    """Return an Arrow array of integers, none of them NULL, as it lies in memory: without pandas, too."""
    kind = np.dtype(str(column.type))
    return np.frombuffer(column.buffers()[1], kind, len(column), column.offset * kind.itemsize)


def as_arrow(columns: Mapping[str, NDArray[Any]]) -> Arrow:
    """Return integers and booleans as an Arrow table, booleans as bytes: without pandas, which arrays ask for and load."""
    import pyarrow as pa

    bare = {
        name: np.ascontiguousarray(column.view(np.uint8) if column.dtype == np.bool_ else column)
        for name, column in columns.items()
    }
    arrays = [
        pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])
        for column in bare.values()
    ]
    return pa.Table.from_arrays(arrays, names=list(bare))


def columns_to_number(names: Sequence[str]) -> list[str]:
    """Return the definitions of the columns that hold the numbers of these columns' values: c3 gives __d3 and __f3."""
    return [text for name in names for text in (f"__d{name[1:]} UTINYINT", f"__f{name[1:]} BOOLEAN")]
