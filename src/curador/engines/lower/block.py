"""A block of a plan as one statement: the kept rows once, then one SELECT for each kind of tally over the same rows.

    WITH owned, …, kept
    SELECT 0 AS part, keys, NULL AS cell, sums and counts     GROUP BY keys             always
    UNION ALL SELECT 1, private keys, …, units                GROUP BY private keys     where public keys stand beside them
    UNION ALL SELECT 2 + place, keys, …, number of values     GROUP BY keys             for each tally of distinct values
    UNION ALL SELECT 2 + place, keys, cell, rows              GROUP BY keys, cell       for each histogram

All results are 64-bit integers; sums come as two of them (`Dialect.limbs`), so that no width of the data can fail or round.
Nothing is read and nothing can fail for a row's sake until the statement runs: refusals come from here, before any charge.

`lower_rows` gives learners the rows of a private table with their units: what nobody but an estimator of ours sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from curador.engines.lower import terms
from curador.engines.lower.aggregates import TALLIES, BesideOthers, OwnPart, TallyColumn, TallyFrame, results_of
from curador.engines.lower.caps import apply_caps, rank_of
from curador.engines.lower.dialect_duckdb import DUCKDB
from curador.engines.lower.expression import Expressions
from curador.engines.lower.grid import Layers, steps_of
from curador.engines.lower.relation import Relations, is_stored_on_grid
from curador.engines.lower.sql import (
    GeneratedSQL,
    commas,
    mark_generated,
    rows_of,
    select,
    too_deep,
)
from curador.plan.work import is_table
from curador.query.tree import Ref
from curador.study.model import UnitRow
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.engines.lower.dialect import Dialect
    from curador.plan.model import BlockPlan, Tally
    from curador.query.tree import Relation
    from curador.study.schema import Schema


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


def lower_block(block: BlockPlan, schema: Schema, *, stored_grids: bool = True, dialect: Dialect = DUCKDB) -> GeneratedSQL:
    """Return a block's statement. `stored_grids`: whether tables hold the integers of bounded columns, verified to be so."""
    try:
        made = _Block.of(block, schema, stored_grids=stored_grids, dialect=dialect)
        text = made.statement()
    except RecursionError:
        raise too_deep() from None
    return mark_generated(text)


def lower_relation(relation: Relation, schema: Schema, *, dialect: Dialect = DUCKDB) -> GeneratedSQL:
    """Return a relation's rows: c0 …, and of private ones `__u`, `__h`, with the order columns `__o0` and on."""
    try:
        return mark_generated(Relations(schema, dialect).lower(relation).sql)
    except RecursionError:
        raise too_deep() from None


def lower_kept(block: BlockPlan, schema: Schema, *, stored_grids: bool = True, dialect: Dialect = DUCKDB) -> GeneratedSQL:
    """Return the rows that a block counts, one by one: what a test of unit-locality or of caps looks at."""
    made = _Block.of(block, schema, stored_grids=stored_grids, dialect=dialect)
    return mark_generated(f"{made.with_clause(reads=1)} {select(['*'], 'kept')}")


@dataclass(frozen=True, slots=True)
class _Block:
    block: BlockPlan
    kept: tuple[tuple[str, str], ...]
    """The parts of a WITH clause, the last of which is named `kept`."""
    keys: tuple[str, ...]
    columns: tuple[TallyColumn, ...]
    dialect: Dialect

    @classmethod
    def of(cls, block: BlockPlan, schema: Schema, *, stored_grids: bool, dialect: Dialect) -> _Block:
        relations = Relations(schema, dialect, rank_of(block.cap, block.relation, schema))
        found = {
            place: tally.argument.index
            for place, tally in enumerate(block.tallies)
            if stored_grids and isinstance(tally.argument, Ref) and tally.grid is not None
            if is_stored_on_grid(block.relation, tally.argument.index, tally.grid, schema)
        }
        shape = relations.lower(block.relation, frozenset(found.values()))
        if not shape.private:
            message = "a block must be over rows of people"
            raise TypeError(message)
        expressions = Expressions(shape.column_names, dialect)
        layers = Layers(dialect, [*shape.owner_names, *shape.order_names])
        keys = tuple(layers.column(expressions.text(key.expression, key.type)) for key in block.keys)
        columns = _same_rows(
            [_column(tally, found.get(place), expressions, layers) for place, tally in enumerate(block.tallies)]
        )
        numbered = schema.study.engine.prepare != "never"
        grouped = list(dict.fromkeys(keys))
        rows = apply_caps(layers.select(shape.sql), block.cap, block.relation, shape, grouped, dialect, numbered=numbered)
        return cls(block, rows, keys, columns, dialect)

    def with_clause(self, reads: int) -> str:
        """Return WITH …; rows that are read several times are computed once, unless reading them is one scan.

        Once also for work's sake: a plan counts what is computed with a row once.
        """
        several = {name for name, _ in self.kept if name in {"owned", "crowded"} and len(self.kept) > 1}
        scanned = len(self.kept) == 1 and is_table(self.block.relation)
        once = reads > 1 and not scanned
        named = [
            self.dialect.named(name, text, once=True if name in several else once and name == "kept")
            for name, text in self.kept
        ]
        return f"WITH {commas(named)}"

    def statement(self) -> str:
        """Return the whole statement."""
        private = self.block.private_keys
        parts = [self._groups()]
        if self.block.units is not None and 0 < len(private) < len(self.keys):
            parts.append(self._selection(private, self.columns[self.block.units]))
        for place, column in enumerate(self.columns):
            if isinstance(made := TALLIES[column.tally.kind], OwnPart):
                source, counted = made.source(column, self._frame), made.counted(column)
                cell = column.argument if made.by_cell else None
                parts.append(self._part(FIRST_TALLY + place, source, range(len(self.keys)), [counted], cell))
        return f"{self.with_clause(reads=len(parts))} {' UNION ALL '.join(parts)}"

    # ---- parts -------------------------------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return max(1, sum(results_of(one.kind) for one in self.block.tallies))

    @property
    def _frame(self) -> TallyFrame:
        return TallyFrame(self.dialect, tuple(dict.fromkeys(self.keys)), single=self.block.cap.rows == 1)

    def _part(self, number: int, source: str, places: Sequence[int], counts: Sequence[str], cell: str | None = None) -> str:
        """One SELECT of the union: the keys at these places, others NULL; results padded with NULL."""
        whole = self.dialect.type(Type.INTEGER)
        keys = [
            f"{name if place in places else terms.null(self.block.keys[place].type, self.dialect)} AS k{place}"
            for place, name in enumerate(self.keys)
        ]
        padded = [*counts, *["NULL"] * (self._width - len(counts))]
        results = [f"CAST({text} AS {whole}) AS n{place}" for place, text in enumerate(padded)]
        columns = [f"{number:d} AS part", *keys, f"CAST({cell or 'NULL'} AS {whole}) AS cell", *results]
        grouped = [*dict.fromkeys(self.keys[place] for place in places), *([cell] if cell else [])]
        return select(columns, source, by=grouped)

    def _groups(self) -> str:
        counts: list[str] = []
        for column in self.columns:
            if isinstance(made := TALLIES[column.tally.kind], BesideOthers):
                counts += made.results(column, self._frame)
        if not counts and not self.keys:
            counts = ["COUNT(*)"]  # one group, also of nothing: without an aggregate every row would be one
        return self._part(GROUPS, "kept", range(len(self.keys)), counts)

    def _selection(self, private: Sequence[int], column: TallyColumn) -> str:
        source = rows_of(select(["*"], "kept", when=column.conditions))
        units = "COUNT(*)" if self._frame.single else "COUNT(DISTINCT __u)"
        return self._part(SELECTION, source, private, [units])


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


def _column(tally: Tally, found: int | None, expressions: Expressions, layers: Layers) -> TallyColumn:
    chosen = None if tally.filter is None else layers.column(expressions.text(tally.filter, Type.BOOLEAN))
    if tally.argument is None:
        return TallyColumn(tally, None, chosen)
    if tally.grid is None:
        return TallyColumn(tally, layers.column(expressions.text(tally.argument)), chosen)
    if found is not None:
        return TallyColumn(tally, layers.column(f"g{found}"), chosen)
    return TallyColumn(tally, layers.on_grid(expressions.term(tally.argument), steps_of(tally.grid)), chosen)
