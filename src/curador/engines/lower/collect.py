"""From an engine's result to exact tallies. A number that is not an integer is refused by its type, not by its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.engines.base import Cells, Tallied
from curador.engines.lower.aggregates import TALLIES, BesideOthers, results_of
from curador.engines.lower.block import FIRST_TALLY, GROUPS, SELECTION
from curador.errors import Failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from curador.engines.base import Integers, KeyValue
    from curador.plan.model import BlockPlan

Arrow: TypeAlias = Any
"""A table or column of pyarrow, which has no types of its own to show."""


def collect(block: BlockPlan, table: Arrow) -> Tallied:
    """Return a block's tallies from the result of its statement."""
    part = _integers(table.column("part"))
    groups = _rows(table, part == GROUPS)
    keys = tuple(f"k{place}" for place in range(len(block.keys)))
    tallies: dict[int, Integers] = {}
    cells: dict[int, Cells] = {}
    taken = 0
    for place, tally in enumerate(block.tallies):
        made = TALLIES[tally.kind]
        if isinstance(made, BesideOthers):
            tallies[place] = _number(groups, taken, wide=made.wide)
            taken += results_of(tally.kind)
            continue
        rows = _rows(table, part == FIRST_TALLY + place)
        at = _places(rows, groups, keys)
        counts = _integers(rows.column("n0"))
        if made.by_cell:
            cells[place] = Cells(at, _integers(rows.column("cell")), counts)
        else:
            tallies[place] = _spread(at, counts, groups.num_rows)
    return Tallied(
        tuple(_values(groups, name) for name in keys), tallies, cells, _selection(block, table, part, groups, tallies)
    )


def _selection(
    block: BlockPlan, table: Arrow, part: NDArray[np.int64], groups: Arrow, tallies: Mapping[int, Integers]
) -> tuple[tuple[Sequence[KeyValue], ...], Integers] | None:
    private = block.private_keys
    if block.units is None or not private:
        return None
    if len(private) == len(block.keys):
        return tuple(_values(groups, f"k{place}") for place in private), tallies[block.units]
    rows = _rows(table, part == SELECTION)
    return tuple(_values(rows, f"k{place}") for place in private), _integers(rows.column("n0"))


def _rows(table: Arrow, chosen: NDArray[np.bool_]) -> Arrow:
    import pyarrow as pa

    return table if bool(chosen.all()) else table.filter(pa.array(chosen))


def _values(table: Arrow, name: str) -> Sequence[KeyValue]:
    return table.column(name).to_pylist()


def _number(table: Arrow, place: int, *, wide: bool = False) -> Integers:
    first = _integers(table.column(f"n{place}"))
    if not wide:
        return first
    low = _integers(table.column(f"n{place + 1}"))
    if not first.any():
        return low
    return first.astype(np.object_) * (1 << 63) + low.astype(np.object_)


def _integers(column: Arrow) -> NDArray[np.int64]:
    """The column as 64-bit integers; anything else, NULLs included, means that the engine did not do what it was told."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.type == pa.uint64():
        raise Failed("an engine must return exact integers.")
    if column.null_count:
        raise Failed("an engine must return a number for every group.")
    found: Any = column.cast(pa.int64()).to_numpy()
    return np.asarray(found, dtype=np.int64)


def _places(rows: Arrow, groups: Arrow, keys: Sequence[str]) -> NDArray[np.int64]:
    """For each row, the place of the group with its keys; NULL is a key like any other."""
    here, there = np.zeros(rows.num_rows, np.int64), np.zeros(groups.num_rows, np.int64)
    for name in keys:
        ours, theirs = _codes(rows.column(name), groups.column(name))
        width = int(max(theirs.max(initial=0), 0)) + 2
        both = np.concatenate((there * width + theirs, here * width + ours))
        renumbered = np.unique(both, return_inverse=True)[1].astype(np.int64)  # small again, so that nothing can overflow
        there, here = renumbered[: groups.num_rows], renumbered[groups.num_rows :]
    order = np.argsort(there, kind="stable")
    at = np.searchsorted(there[order], here)
    known = at < len(order)
    if not known.all() or not bool((there[order[np.minimum(at, len(order) - 1)]] == here).all()):
        raise Failed("an engine must return no group that has no row.")
    return order[at].astype(np.int64)


def _codes(ours: Arrow, theirs: Arrow) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Small numbers for the values of two columns: equal for equal values, NULLs included; −1 where only ours has it."""
    import pyarrow.compute as pc

    compute: Any = pc  # its functions are made when it is loaded
    values = compute.unique(theirs)
    found = [compute.index_in(column, value_set=values) for column in (ours, theirs)]
    first, second = (np.asarray(one.fill_null(-1).to_numpy(), dtype=np.int64) for one in found)
    return first, second


def _spread(at: NDArray[np.int64], counts: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    spread = np.zeros(groups, np.int64)
    spread[at] = counts
    return spread
