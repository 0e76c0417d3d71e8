"""What reading a question is made of: rows of a relation, releases of an aggregated SELECT, the study around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from curador.query.messages import Text, invalid, near, quoted
from curador.query.tree import Block, Item, Order, Out, Relation, Scan

if TYPE_CHECKING:
    from sqlglot import exp

    from curador.query.options import Marks
    from curador.query.terms import Term
    from curador.query.tree import Place
    from curador.study.schema import Schema

MOST_TABLES = 16
"""Tables one question may read, a CTE that is used twice counted twice."""

MOST_COLUMNS = 1_000
"""Columns of an answer over all its blocks."""

WIDEST = 2_000
"""Columns of a table, and of a relation."""

MOST_STEPS = 100
"""Relations one above the other."""

Identity: TypeAlias = tuple[str, str]
"""What a declared key is the key of: ("", "") for the unit itself, else (table, column) of the referenced key."""

UNIT: Identity = ("", "")


@dataclass(frozen=True, slots=True)
class Rows:
    """A relation, and what decides where it may stand. `tables` names every table as often as it is read."""

    relation: Relation
    private: bool
    tables: tuple[str, ...]
    steps: int = 1

    @property
    def columns(self) -> tuple[Out, ...]:
        """The columns, in order."""
        return self.relation.columns

    def under(self, relation: Relation) -> Rows:
        """Return the rows of a relation that was built on top of this one."""
        return grown(replace(self, relation=relation, steps=self.steps + 1), relation.place)


@dataclass(frozen=True, slots=True)
class Released:
    """An aggregated SELECT, or several of one shape. What is done to it from here on happens after the release.

    terms  of each block its items
    order  over the one block's keys and aggregates; with several blocks `Ref`s to output columns
    """

    blocks: tuple[Block, ...]
    terms: tuple[tuple[Term, ...], ...]
    tables: tuple[str, ...]
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def items(self) -> tuple[Item, ...]:
        """The output columns, named by the first block."""
        return self.blocks[0].items


Environment: TypeAlias = Mapping[str, Rows | Released]
"""What the names of common table expressions stand for, by lower-case name."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is the same for the whole question. `query` reads a SELECT or UNION ALL that stands in FROM."""

    schema: Schema
    text: Text
    dialect: str
    marks: Marks
    query: Callable[[exp.Expr, Environment, Context], Rows | Released]
    identities: Mapping[tuple[str, str], Identity] = field(default_factory=dict[tuple[str, str], Identity])

    def place(self, node: exp.Expr | None) -> Place | None:
        """Return where a node begins."""
        return None if node is None else self.text.of(node)

    @property
    def unit(self) -> str:
        """A column that holds the unit, for hints; the owner's word for it where none does."""
        found = (one.fields[index].name for one in self.schema.tables if (index := one.unit_index) is not None)
        return next(found, self.schema.study.unit_name)

    def identity(self, out: Out | None) -> Identity | None:
        """Return what a bare column is the declared key of."""
        if out is None:
            return None
        if out.unit or out.unit_or_null:
            return UNIT
        return None if out.source is None else self.identities.get(out.source)


def identities_of(schema: Schema) -> dict[tuple[str, str], Identity]:
    """Return for each declared key column, on both ends of its path, the one key it is about."""
    units = {(one.table.name, one.fields[index].name) for one in schema.tables if (index := one.unit_index) is not None}
    onward: dict[tuple[str, str], tuple[str, str]] = {}
    for one in schema.tables:
        path = one.path
        if path is not None and path.key is not None:
            onward[one.table.name, path.column] = (path.table, path.key)
    found: dict[tuple[str, str], Identity] = dict.fromkeys(units, UNIT)
    for start in (*onward, *onward.values()):
        end = start
        for _ in schema.tables:  # a path visits a table at most once
            if end in units or end not in onward:
                break
            end = onward[end]
        found.setdefault(start, UNIT if end in units else end)
    return found


def grown(rows: Rows, place: Place | None = None) -> Rows:
    """Return the rows unless the relation has become too large to be planned."""
    if len(rows.tables) > MOST_TABLES:
        raise invalid(place, f"a question must read at most {MOST_TABLES} tables; one that is used twice counts twice")
    if len(rows.columns) > WIDEST:
        raise invalid(place, f"a relation must have at most {WIDEST:,} columns", "name those that are needed.")
    if rows.steps > MOST_STEPS:
        raise invalid(place, f"subqueries must be at most {MOST_STEPS} steps deep")
    return rows


def scanned(name: str, context: Context, place: Place | None) -> Rows:
    """Return a table of the study."""
    found = context.schema.table(name)
    if found is None:
        tables = [one.table.name for one in context.schema.tables]
        raise invalid(place, f"there is no table {quoted(name)}", near(name, tables, "the tables are"))
    table = found.table.name
    unit = found.unit_index
    # a row without unit is dropped before anything else: whoever owns a row is never NULL
    outs = tuple(
        Out(one.name, one.type, one.nullable and index != unit, (table, one.name), unit=index == unit)
        for index, one in enumerate(found.fields)
    )
    return Rows(Scan(table, outs, place), not found.table.public, (table,))
