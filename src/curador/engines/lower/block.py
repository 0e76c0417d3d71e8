"""A block of a plan as one statement: the kept rows once, then one SELECT for each kind of tally over the same rows.

    WITH owned, …, kept
    SELECT 0 AS part, keys, NULL AS cell, sums and counts     GROUP BY keys             always
    UNION ALL SELECT 1, private keys, …, units                GROUP BY private keys     where public keys stand beside them
    UNION ALL SELECT 2 + place, keys, …, number of values     GROUP BY keys             for each tally of distinct values
    UNION ALL SELECT 2 + place, keys, cell, rows              GROUP BY keys, cell       for each histogram

All results are 64-bit integers; sums come as two of them (`Dialect.limbs`), so that no width of the data can fail or round.
Nothing is read and nothing can fail for a row's sake until the statement runs: refusals come from here, before any charge.

`collect` reads the result: a number that is not an integer is refused by its type, not by its value.

`lower_rows` gives learners the rows of a private table with their units: what nobody but an estimator of ours sees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.engines.base import Cells, Tallied
from curador.engines.lower.aggregates import TALLIES, BesideOthers, Layers, TallyColumn, move_to_grid, results_of
from curador.engines.lower.dialect_duckdb import DUCKDB
from curador.engines.lower.expression import null_of
from curador.engines.lower.relation import apply_caps, can_stream, find_stored_grid, lower_shape, rank_of, stored_number
from curador.engines.lower.sql import GeneratedSQL, commas, mark_generated, rows_of, select, too_deep
from curador.errors import Failed
from curador.plan.ownership import Owners
from curador.plan.work import is_table
from curador.query.tree import Ref
from curador.study.model import UnitRow
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from curador.engines.base import Integers, KeyValue
    from curador.engines.lower.sql import Dialect
    from curador.plan.model import BlockPlan, Grid, Tally
    from curador.query.tree import Relation
    from curador.study.model import Schema


# ---- rows ------------------------------------------------------------------------------------------------------------------


def lower_rows(schema: Schema, table: str, columns: Sequence[str]) -> GeneratedSQL:
    """Return the statement that reads columns v0, v1, … and the unit `u` of a table.

    Claim   The rows of one unit depend on its own rows only; those of no unit are left out.
    """
    place = next(number for number, one in enumerate(schema.tables) if one.table.name == table)
    one = schema.tables[place]
    if one.table.public:
        raise AssertionError(table)  # nobody's rows
    named = [f"c{one.index(name)} AS v{number}" for number, name in enumerate(columns)]
    conditions = [] if isinstance(one.table.unit, UnitRow) else ["__u IS NOT NULL"]
    return mark_generated(select([*named, "__u AS u"], f"t{place}", when=conditions))


# ---- block -----------------------------------------------------------------------------------------------------------------


GROUPS, SELECTION, FIRST_TALLY = 0, 1, 2
"""The numbers of parts; a tally with a part of its own has FIRST_TALLY + its place."""

MOST_PARTS = 8
"""Parts in which a table is read at the same time, where rows pass in order."""

WithParts: TypeAlias = tuple[tuple[str, str], ...]
"""The parts of a WITH clause, each with its name; the last one is named `kept`."""


def lower_ways(block: BlockPlan, schema: Schema, *, dialect: Dialect = DUCKDB) -> tuple[GeneratedSQL, ...]:
    """Return a block's statements, of which the first that does not stop has the result; all have the same integers.

    The last one never stops. Where a row cap can be executed while rows pass, one that does so stands before it.
    """
    sure = lower_block(block, schema, dialect=dialect)
    if not can_stream(block.cap, block.relation, schema, dialect):
        return (sure,)
    return lower_block(block, schema, dialect=dialect, streamed=True), sure


def lower_block(
    block: BlockPlan, schema: Schema, *, stored_grids: bool = True, streamed: bool = False, dialect: Dialect = DUCKDB
) -> GeneratedSQL:
    """Return a block's statement.

    stored_grids  whether tables hold the integers of bounded columns, verified to be so
    streamed      whether its row cap is executed while rows pass: see `can_stream`
    """
    try:
        kept, keys, columns = _lower_kept(block, schema, stored_grids=stored_grids, streamed=streamed, dialect=dialect)
        parts = _lower_parts(block, keys, columns, dialect)
        text = f"{_with_clause(block, kept, dialect, reads=len(parts))} {' UNION ALL '.join(parts)}"
    except RecursionError:
        raise too_deep() from None
    return mark_generated(text)


def lower_relation(relation: Relation, schema: Schema, *, dialect: Dialect = DUCKDB) -> GeneratedSQL:
    """Return a relation's rows: c0 …, and of private ones `__u`, `__h`, with the order columns `__o0` and on."""
    try:
        return mark_generated(lower_shape(relation, Owners(schema), dialect).sql)
    except RecursionError:
        raise too_deep() from None


def lower_kept(
    block: BlockPlan, schema: Schema, *, stored_grids: bool = True, streamed: bool = False, dialect: Dialect = DUCKDB
) -> GeneratedSQL:
    """Return the rows that a block counts, one by one: what a test of unit-locality or of caps looks at."""
    kept, _, _ = _lower_kept(block, schema, stored_grids=stored_grids, streamed=streamed, dialect=dialect)
    return mark_generated(f"{_with_clause(block, kept, dialect, reads=1)} {select(['*'], 'kept')}")


def _with_clause(block: BlockPlan, kept: WithParts, dialect: Dialect, *, reads: int) -> str:
    """Return WITH …; rows that are read several times are computed once, unless reading them is one scan.

    Once also for work's sake: a plan counts what is computed with a row once.
    """
    several = {name for name, _ in kept if name in {"owned", "crowded"} and len(kept) > 1}
    scanned = len(kept) == 1 and is_table(block.relation)
    once = reads > 1 and not scanned
    named = [dialect.named(name, text, once=name in several or (once and name == "kept")) for name, text in kept]
    return f"WITH {commas(named)}"


def _lower_kept(
    block: BlockPlan, schema: Schema, *, stored_grids: bool, streamed: bool, dialect: Dialect
) -> tuple[WithParts, tuple[str, ...], tuple[TallyColumn, ...]]:
    """Return the rows that count, the column of each key in them, and those of each tally."""
    owners = Owners(schema, rank_of(block.cap, block.relation, schema))
    found = {
        place: (tally.argument.index, stored)
        for place, tally in enumerate(block.tallies)
        if stored_grids and isinstance(tally.argument, Ref) and tally.grid is not None
        for stored in (find_stored_grid(block.relation, tally.argument.index, tally.grid, schema),)
        if stored is not None
    }
    grids = frozenset(column for column, _ in found.values())
    number, settings = stored_number(block, schema), schema.study.engine.of_worker
    place = dialect.place() if streamed else None
    ways = [None] if place is None else [(place, one) for one in dialect.parts_of_units(min(settings.threads, MOST_PARTS))]
    shapes = [lower_shape(block.relation, owners, dialect, grids, lying=way, number=number) for way in ways]
    shape = shapes[0]
    if not shape.private:
        message = "a block must be over rows of people"
        raise TypeError(message)
    layers = Layers(shape.column_names, [*shape.owner_names, *shape.order_names], dialect)
    keys = tuple(layers.value(key.expression, key.type) for key in block.keys)
    grouped = tuple(dict.fromkeys(keys))
    columns = _same_rows(
        [
            TallyColumn(tally, *_columns_of(tally, found.get(place), layers), grouped, block.cap.rows == 1, shape.first)
            for place, tally in enumerate(block.tallies)
        ]
    )
    rows = apply_caps(
        [layers.select(one.sql) for one in shapes],
        block.cap,
        block.relation,
        shape,
        grouped,
        dialect,
        numbered=settings.prepare != "never",
        streamed=place is not None,
    )
    return rows, keys, columns


def _columns_of(tally: Tally, stored: tuple[int, Grid] | None, layers: Layers) -> tuple[str | None, str | None]:
    """The columns of a tally's argument and filter.

    stored  which column of the relation comes on a grid that holds the tally's
    """
    chosen = None if tally.filter is None else layers.value(tally.filter, Type.BOOLEAN)
    if tally.argument is None:
        return None, chosen
    if tally.grid is None:
        return layers.value(tally.argument), chosen
    if stored is not None:
        column, grid = stored
        return layers.column(move_to_grid(f"g{column}", grid, tally.grid)), chosen
    return layers.on_grid(layers.term(tally.argument), tally.grid), chosen


def _same_rows(columns: list[TallyColumn]) -> tuple[TallyColumn, ...]:
    """Rows that have an argument are those that have it on its grid, where it is put on one.

    Claim   A sum from a middle c is Σ v − c · rows over one and the same rows, so each of them adds between −c and steps − c.
    """
    gridded = {column.tally.argument: column.argument for column in columns if column.tally.grid is not None}
    return tuple(
        replace(column, argument=gridded[column.tally.argument])
        if column.tally.kind == "rows" and column.tally.argument in gridded
        else column
        for column in columns
    )


def _lower_parts(block: BlockPlan, keys: Sequence[str], columns: Sequence[TallyColumn], dialect: Dialect) -> list[str]:
    """Return the SELECTs of the union: of groups, of private keys, and of each tally that has its own."""
    whole = dialect.type(Type.INTEGER)
    width = max(1, sum(results_of(tally.kind) for tally in block.tallies))
    everywhere = range(len(keys))

    def part(number: int, source: str, places: Sequence[int], counts: Sequence[str], cell: str | None = None) -> str:
        """One SELECT of the union: the keys at these places, others NULL; results padded with NULL."""
        named = [
            f"{name if place in places else null_of(block.keys[place].type, dialect)} AS k{place}"
            for place, name in enumerate(keys)
        ]
        padded = [*counts, *["NULL"] * (width - len(counts))]
        results = [f"CAST({text} AS {whole}) AS n{place}" for place, text in enumerate(padded)]
        selected = [f"{number:d} AS part", *named, f"CAST({cell or 'NULL'} AS {whole}) AS cell", *results]
        grouped = [*dict.fromkeys(keys[place] for place in places), *([cell] if cell else [])]
        return select(selected, source, by=grouped)

    counts: list[str] = []
    alone: list[str] = []
    for place, column in enumerate(columns):
        made = TALLIES[column.tally.kind]
        if isinstance(made, BesideOthers):
            counts += made.results(column, dialect)
        else:
            cell = column.argument if made.by_cell else None
            source = made.source(column, dialect)
            alone.append(part(FIRST_TALLY + place, source, everywhere, [made.counted(column)], cell))
    if not counts and not keys:
        counts = ["COUNT(*)"]  # one group, also of nothing: without an aggregate every row would be one
    found = [part(GROUPS, "kept", everywhere, counts)]
    if block.units is not None and 0 < len(block.private_keys) < len(keys):
        rows = rows_of(select(["*"], "kept", when=columns[block.units].conditions))
        units = "COUNT(*)" if columns[block.units].single else "COUNT(DISTINCT __u)"
        found.append(part(SELECTION, rows, block.private_keys, [units]))
    return found + alone


# ---- results ---------------------------------------------------------------------------------------------------------------


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
    return np.asarray(column.to_numpy(), dtype=np.int64)


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
