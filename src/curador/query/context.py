"""What reading a question is made of: rows of a relation, releases of an aggregated SELECT, the study, names, readings.

A scope says which column a name means, by identity and never by spelling alone. Letter case does not matter, quoted or not.
A name stands for a `TypedTerm`: a column of a relation, or a released value of an aggregated subquery, alike.

A reading says how an expression is read at one place of a question: which names, aggregates and windows may stand there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlglot import exp

from curador.query.messages import Text, invalid, name_node, quote_name, suggest_names
from curador.query.tree import Block, Item, Order, Out, Ref, Relation, Scan
from curador.query.typed_terms import TypedTerm, column_term, renumber_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from curador.query.text import PrivacyClause
    from curador.query.tree import Node, Place, WindowCall
    from curador.study.model import Schema


# ---- context ---------------------------------------------------------------------------------------------------------------


MOST_TABLES = 16
"""Tables one question may read, a CTE that is used twice counted twice."""

MOST_COLUMNS = 1_000
"""Columns of an answer over all its blocks."""

WIDEST = 2_000
"""Columns of a table, and of a relation."""

MOST_STEPS = 100
"""Relations one above the other."""

KeyIdentity: TypeAlias = tuple[str, str]
"""What a declared key is the key of: ("", "") for the unit itself, else (table, column) of the referenced key."""

UNIT: KeyIdentity = ("", "")


@dataclass(frozen=True, slots=True)
class RelationRows:
    """A relation, and what decides where it may stand. `tables` names every table as often as it is read."""

    relation: Relation
    private: bool
    tables: tuple[str, ...]
    steps: int = 1

    @property
    def columns(self) -> tuple[Out, ...]:
        """The columns, in order."""
        return self.relation.columns

    def under(self, relation: Relation) -> RelationRows:
        """Return the rows of a relation that was built on top of this one."""
        return check_size(replace(self, relation=relation, steps=self.steps + 1), relation.place)


@dataclass(frozen=True, slots=True)
class AggregatedSelect:
    """An aggregated SELECT, or several of one shape. What is done to it from here on happens after the release.

    terms  of each block its items
    order  over the one block's keys and aggregates; with several blocks `Ref`s to output columns
    """

    blocks: tuple[Block, ...]
    terms: tuple[tuple[TypedTerm, ...], ...]
    tables: tuple[str, ...]
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def items(self) -> tuple[Item, ...]:
        """The output columns, named by the first block."""
        return self.blocks[0].items


Environment: TypeAlias = Mapping[str, RelationRows | AggregatedSelect]
"""What the names of common table expressions stand for, by lower-case name."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is the same for the whole question. `query` reads a SELECT or UNION ALL that stands in FROM."""

    schema: Schema
    text: Text
    dialect: str
    marks: PrivacyClause
    query: Callable[[exp.Expr, Environment, Context], RelationRows | AggregatedSelect]
    identities: Mapping[tuple[str, str], KeyIdentity] = field(default_factory=dict[tuple[str, str], KeyIdentity])

    def place(self, node: exp.Expr | None) -> Place | None:
        """Return where a node begins."""
        return None if node is None else self.text.of(node)

    @property
    def unit(self) -> str:
        """A column that holds the unit, for hints; the owner's word for it where none does."""
        found = (table.fields[index].name for table in self.schema.tables if (index := table.unit_index) is not None)
        return next(found, self.schema.study.unit_name)

    def identity(self, out: Out | None) -> KeyIdentity | None:
        """Return what a bare column is the declared key of."""
        if out is None:
            return None
        if out.unit or out.unit_or_null:
            return UNIT
        return None if out.source is None else self.identities.get(out.source)


def identities_of(schema: Schema) -> dict[tuple[str, str], KeyIdentity]:
    """Return for each declared key column, on both ends of its path, the one key it is about."""
    units = {
        (table.table.name, table.fields[index].name) for table in schema.tables if (index := table.unit_index) is not None
    }
    onward: dict[tuple[str, str], tuple[str, str]] = {}
    for table in schema.tables:
        path = table.path
        if path is not None and path.key is not None:
            onward[table.table.name, path.column] = (path.table, path.key)
    found: dict[tuple[str, str], KeyIdentity] = dict.fromkeys(units, UNIT)
    for start in (*onward, *onward.values()):
        end = start
        for _ in schema.tables:  # a path visits a table at most once
            if end in units or end not in onward:
                break
            end = onward[end]
        found.setdefault(start, UNIT if end in units else end)
    return found


def check_size(rows: RelationRows, place: Place | None = None) -> RelationRows:
    """Return the rows unless the relation has become too large to be planned."""
    if len(rows.tables) > MOST_TABLES:
        raise invalid(place, f"a question must read at most {MOST_TABLES} tables; one that is used twice counts twice")
    if len(rows.columns) > WIDEST:
        raise invalid(place, f"a relation must have at most {WIDEST:,} columns", "name those that are needed.")
    if rows.steps > MOST_STEPS:
        raise invalid(place, f"subqueries must be at most {MOST_STEPS} steps deep")
    return rows


def scan_table(name: str, context: Context, place: Place | None) -> RelationRows:
    """Return a table of the study."""
    found = context.schema.table(name)
    if found is None:
        tables = [one.table.name for one in context.schema.tables]
        raise invalid(place, f"there is no table {quote_name(name)}", suggest_names(name, tables, "the tables are"))
    table = found.table.name
    unit = found.unit_index
    # a row without unit is dropped before anything else: whoever owns a row is never NULL
    outs = tuple(
        Out(field.name, field.type, field.nullable and index != unit, (table, field.name), unit=index == unit)
        for index, field in enumerate(found.fields)
    )
    return RelationRows(Scan(table, outs, place), not found.table.public, (table,))


# ---- scope -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column and its name. A hidden one was merged by USING into another: only `table.name` finds it."""

    name: str
    term: TypedTerm
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ScopedSource:
    """What one table, subquery or alias of FROM brings."""

    alias: str | None
    columns: tuple[NamedColumn, ...]

    def shown(self, term: Callable[[TypedTerm], TypedTerm]) -> ScopedSource:
        """Return the source with every column's term changed."""
        return ScopedSource(self.alias, tuple(replace(column, term=term(column.term)) for column in self.columns))


def source_of(alias: str | None, columns: Sequence[Out], start: int = 0) -> ScopedSource:
    """Return the columns of a relation whose first one stands at `start`."""
    return ScopedSource(
        alias, tuple(NamedColumn(out.name, column_term(start + index, out)) for index, out in enumerate(columns))
    )


class Scope:
    """All names that are visible at one place of the question."""

    __slots__ = ("_names", "outer", "sources")

    def __init__(self, sources: Iterable[ScopedSource], outer: Scope | None = None) -> None:
        self.sources = tuple(sources)
        self.outer = outer  # of the SELECT around a correlated subquery
        self._names: dict[str, list[tuple[ScopedSource, NamedColumn]]] = defaultdict(list)
        for source in self.sources:
            for column in source.columns:
                self._names[column.name.lower()].append((source, column))

    def find(self, table: str | None, name: str, place: Place | None) -> TypedTerm | None:
        """Return the column of this name, None if there is none; refuse a name that several have."""
        if self.outer is not None and table is not None and not self._has(table):
            return self.outer.find(table, name, place)
        if table is not None and not self._has(table):
            aliases = [source.alias for source in self.sources if source.alias is not None]
            raise invalid(
                place, f"there is no table {quote_name(table)} in this FROM", suggest_names(table, aliases, "it has")
            )
        found = [
            column
            for source, column in self._names.get(name.lower(), ())
            if (not column.hidden if table is None else source.alias is not None and source.alias.lower() == table.lower())
        ]
        if len(found) > 1:
            found = [one for one in found if one.name == name] or found
        if len(found) > 1:
            raise invalid(
                place, f"the column {quote_name(name)} must be of one table; several have it", "write table.column."
            )
        if not found and table is None and self.outer is not None:
            return self.outer.find(None, name, place)
        return _place_column(found[0], place) if found else None

    def _has(self, table: str) -> bool:
        return any(source.alias is not None and source.alias.lower() == table.lower() for source in self.sources)

    def unknown(self, name: str, place: Place | None, others: Iterable[str] = ()) -> Exception:
        """Return the refusal of a name that nothing has."""
        if self._has(name):
            return invalid(
                place,
                f"the table {quote_name(name)} must not stand where a column does",
                "a whole row is no value; name a column.",
            )
        names = [column.name for source in self.sources for column in source.columns]
        return invalid(
            place, f"there is no column {quote_name(name)}", suggest_names(name, [*names, *others], "the columns are")
        )

    def star(self, table: str | None, place: Place | None) -> Iterator[NamedColumn]:
        """Return all columns that `*` or `table.*` stands for."""
        if table is not None and not self._has(table):
            raise invalid(place, f"there is no table {quote_name(table)} in this FROM")
        for source in self.sources:
            meant = table is None or (source.alias is not None and source.alias.lower() == table.lower())
            if meant:
                yield from (column for column in source.columns if table is not None or not column.hidden)

    def over(self, columns: Sequence[Out], places: Callable[[int], int]) -> Scope:
        """Return the same names over a finished relation, in which each column has its new place."""

        def finished(term: TypedTerm) -> TypedTerm:
            index = places(term.node.index) if isinstance(term.node, Ref) else 0
            return column_term(index, columns[index])

        return Scope(source.shown(finished) for source in self.sources)

    def shifted(self, by: int, outer: Scope) -> Scope:
        """Return the names with every column moved by some places, and those of the SELECT around behind them."""
        return Scope(
            (source.shown(lambda term: renumber_columns(term, lambda index: index + by)) for source in self.sources), outer
        )


def _place_column(one: NamedColumn, place: Place | None) -> TypedTerm:
    """Return a column under the name that it has here, at the place where it is used."""
    term = one.term
    if term.column is not None and term.column.name != one.name:
        term = replace(term, column=replace(term.column, name=one.name))
    return term if place is None else replace(term, node=replace(term.node, place=place))  # pyrefly: ignore[unexpected-keyword] -- every node has one


# ---- reading ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Aliases:
    """The names that the SELECT list gives, for those clauses that may use them."""

    items: Mapping[str, exp.Expr]
    terms: dict[str, TypedTerm] = field(default_factory=dict[str, "TypedTerm"])
    busy: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class Windows:
    """Window functions met so far. Each becomes a column after the `width` columns of the relation below."""

    width: int
    calls: list[WindowCall] = field(default_factory=list["WindowCall"])


@dataclass(frozen=True, slots=True)
class Reading:
    """What may stand in an expression.

    clause      the clause, as messages name it
    aggregates  "released" where noise will be added, "unit" exact and inside a unit, "done" where names are released
                values already, None where no aggregate may stand
    windows     None where no window function may stand
    aliases     names of the SELECT list, if the clause may use them
    first       whether such a name wins over a column of the same name: always, never, or unless the column is a key
    keys        the GROUP BY keys, for `first = "unless key"`
    absent      of a grouping set, the keys that it leaves out: GROUPING(key) is 1 for them
    """

    context: Context
    scope: Scope
    clause: str
    aggregates: Literal["released", "unit", "done"] | None = None
    windows: Windows | None = None
    aliases: Aliases | None = None
    first: Literal["always", "never", "unless key"] = "never"
    keys: Mapping[Node, int] = field(default_factory=dict["Node", int])
    absent: Collection[int] = ()
    read: Callable[[exp.Expr | None, Reading], TypedTerm] = field(kw_only=True)

    def of(self, node: exp.Expr | None) -> TypedTerm:
        """Return the expression a node stands for."""
        return self.read(node, self)

    def place(self, node: exp.Expr) -> Place | None:
        """Return where a node begins."""
        return self.context.place(node)

    def inside(self, clause: str) -> Reading:
        """Return the reading of what stands inside an aggregate or window: rows, and no further aggregate."""
        return replace(self, clause=clause, aggregates=None, windows=None, first="never")


def take_arguments(node: exp.Expr, context: Context, *names: str, ignored: Collection[str] = ()) -> list[Any]:
    """Return the arguments of a node by name, None where absent; refuse one that is set and was not named.

    This is the other half of the allow-list: a node of a known class with an unknown part is an unknown node.
    """
    for name, value in node.args.items():
        if value is None or value is False or value == [] or name in names or name in ignored:
            continue
        shown = _SHOWN.get(name, name.rstrip("_").replace("_", " ").upper())
        where = value if isinstance(value, exp.Expr) else node
        what = name_node(node, context.text)
        raise invalid(context.place(where), f"{shown} in {what} is not part of the language", _INSTEAD.get(name))
    return [node.args.get(name) for name in names]


_SHOWN = {
    "sample": "TABLESAMPLE",
    "db": "the name of a schema",
    "catalog": "the name of a catalogue",
    "expressions": "a list",
    "this": "an argument",
    "expression": "a second argument",
    "laterals": "LATERAL",
    "locks": "FOR UPDATE",
    "pivots": "PIVOT",
    "windows": "WINDOW",
}
_INSTEAD = {
    "sample": "noise hides who is in the data; sampling is not needed.",
    "qualify": "put the window function into a subquery in FROM and filter on it with WHERE.",
    "windows": "write the window inside OVER (…).",
    "db": "name the table alone.",
    "catalog": "name the table alone.",
    "laterals": "join with ON.",
    "into": "answers are returned, not stored.",
    "on": "SELECT DISTINCT key, … or GROUP BY.",
}
