"""What reading a question is made of: the study, the names over a relation, and what may stand in a clause.

A scope says which column a name means, by identity and never by spelling alone. Letter case does not matter, quoted or not.
A name stands for a `TypedTerm`: a column of a relation, or a released value of an aggregated subquery, alike.

A reading says how an expression is read at one place of a question: which names, aggregates and windows may stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from sqlglot import exp

from curador.query.messages import invalid, not_private, quote_name, suggest_names
from curador.query.text import name_node, place_of
from curador.query.tree import Out, Question, Ref, ReleasedLeaf, Scan, inputs_of, releases_of, steps_of, tables_in
from curador.query.typed_terms import TypedTerm, column_term, renumber_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from curador.query.text import PrivacyClause
    from curador.query.tree import AnyRelation, Node, Place, Relation, ReleasedCall, WindowCall
    from curador.study.model import Schema, TableSchema


# ---- context ---------------------------------------------------------------------------------------------------------------


MOST_TABLES = 16
"""Tables one question may read, a CTE that is used twice counted twice."""

MOST_COLUMNS = 1_000
"""Columns of an answer over all its blocks."""

WIDEST = 2_000
"""Columns of a table, and of a relation."""

MOST_RELEASES = 64
"""Results that a question reads."""

MOST_STEPS = 100
"""Relations one above the other."""

KeyIdentity: TypeAlias = tuple[str, str]
"""What a declared key is the key of: ("", "") for the unit itself, else (table, column) of the referenced key."""

UNIT: KeyIdentity = ("", "")


@dataclass(frozen=True, slots=True)
class Context:
    """What is the same for the whole question.

    stars       where words of the text end that a star follows
    query       reads a SELECT or UNION ALL that stands in FROM
    expression  reads one expression
    """

    schema: Schema
    text: str
    dialect: str
    marks: PrivacyClause
    stars: Collection[int]
    identities: Mapping[tuple[str, str], KeyIdentity]
    query: Callable[[exp.Expr, Environment, Context], Scope]
    expression: Callable[[exp.Expr | None, Reading], TypedTerm]

    def place(self, node: exp.Expr | None) -> Place | None:
        """Return where a node begins."""
        return None if node is None else place_of(node, self.text)

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

    def is_private(self, relation: Relation) -> bool:
        """Whether rows of a relation are somebody's: a table that it reads is not public."""
        public = {one.table.name for one in self.schema.tables if one.table.public}
        return not public.issuperset(tables_in(relation))


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


def is_released(relation: AnyRelation) -> bool:
    """Whether a relation is of released rows, which is what its leaves are."""
    while not isinstance(relation, Scan | ReleasedLeaf):
        relation = inputs_of(relation)[0]
    return isinstance(relation, ReleasedLeaf)


def check_size(relation: AnyRelation) -> Relation:
    """Return the relation unless it has become too large to be planned."""
    released = releases_of(relation)
    if released and tables_in(relation):
        raise not_private(
            relation.place,
            "a released result must stand beside released results only: rows of a table would need its exact values",
            "group the subquery by the unit to use it with rows; or ask for it, then write the numbers.",
        )
    if len(released) > MOST_RELEASES:
        raise invalid(
            relation.place, f"a question must read at most {MOST_RELEASES} results; one that is used twice counts twice"
        )
    if len(tables_in(relation)) > MOST_TABLES:
        raise invalid(
            relation.place, f"a question must read at most {MOST_TABLES} tables; one that is used twice counts twice"
        )
    if len(relation.columns) > WIDEST:
        raise invalid(relation.place, f"a relation must have at most {WIDEST:,} columns", "name those that are needed.")
    if steps_of(relation) > MOST_STEPS:
        raise invalid(relation.place, f"subqueries must be at most {MOST_STEPS} steps deep")
    return cast("Relation", relation)


def scan_table(name: str, context: Context, place: Place | None) -> Scan:
    """Return a table of the study."""
    found = context.schema.table(name)
    if found is None:
        tables = [one.table.name for one in context.schema.tables]
        raise invalid(place, f"there is no table {quote_name(name)}", suggest_names(name, tables, "the tables are"))
    return whole_table(found, place)


def whole_table(found: TableSchema, place: Place | None = None) -> Scan:
    """Return all rows and columns of a table."""
    table = found.table.name
    unit = found.unit_index
    # a row without unit is dropped before anything else: whoever owns a row is never NULL
    outs = tuple(
        Out(field.name, field.type, field.nullable and index != unit, (table, field.name), unit=index == unit)
        for index, field in enumerate(found.fields)
    )
    return Scan(table, outs, place)


# ---- scope -----------------------------------------------------------------------------------------------------------------


NamedTerms: TypeAlias = tuple[tuple[str, TypedTerm], ...]
"""(name, what it stands for) of columns, in order."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What FROM, a part of it or a whole query gives, and all names over it.

    content  rows; or what is released, and then all that is done to it happens after the release
    shown    the columns that `*` stands for and that a bare name finds
    sources  (alias, columns) of each table, subquery or alias: `table.name` finds also what USING merged into another
    terms    of each block of a release its items
    place    where it stands in the text
    outer    the names of the SELECT around a correlated subquery
    """

    content: Relation | Question
    shown: NamedTerms
    sources: tuple[tuple[str | None, NamedTerms], ...]
    terms: tuple[tuple[TypedTerm, ...], ...] = ()
    place: Place | None = None
    outer: Scope | None = None

    @property
    def rows(self) -> Relation:
        """The rows, where they are to be joined or filtered; what was aggregated has none."""
        if isinstance(self.content, Question):
            raise not_private(
                self.place,
                "an aggregated subquery must not stand beside people's rows: that would need its exact values",
                "group it by the unit to join it; or ask for it, then write the numbers.",
            )
        return self.content

    def find(self, table: str | None, name: str, place: Place | None) -> TypedTerm | None:
        """Return the column of this name, None if there is none; refuse a name that several have."""
        columns = self.shown if table is None else self._columns_of(table)
        if columns is None and self.outer is not None:
            return self.outer.find(table, name, place)
        if columns is None:
            aliases = [alias for alias, _ in self.sources if alias is not None]
            raise invalid(
                place,
                f"there is no table {quote_name(table or '')} in this FROM",
                suggest_names(table or "", aliases, "it has"),
            )
        lowered = name.lower()
        found = [one for one in columns if one[0].lower() == lowered]
        if len(found) > 1:
            found = [one for one in found if one[0] == name] or found
        if len(found) > 1:
            raise invalid(
                place, f"the column {quote_name(name)} must be of one table; several have it", "write table.column."
            )
        if not found and table is None and self.outer is not None:
            return self.outer.find(None, name, place)
        return _place_column(*found[0], place) if found else None

    def _columns_of(self, table: str) -> NamedTerms | None:
        lowered = table.lower()
        return next((columns for alias, columns in self.sources if alias is not None and alias.lower() == lowered), None)

    def unknown(self, name: str, place: Place | None, others: Iterable[str] = ()) -> Exception:
        """Return the refusal of a name that nothing has."""
        if self._columns_of(name) is not None:
            return invalid(
                place,
                f"the table {quote_name(name)} must not stand where a column does",
                "a whole row is no value; name a column.",
            )
        names = [column for _, columns in self.sources for column, _ in columns]
        return invalid(
            place,
            f"there is no column {quote_name(name)}",
            suggest_names(name, [*names, *others], "the columns are"),
            about="column",
        )

    def star(self, table: str | None, place: Place | None) -> NamedTerms:
        """Return all columns that `*` or `table.*` stands for."""
        columns = self.shown if table is None else self._columns_of(table)
        if columns is None:
            raise invalid(place, f"there is no table {quote_name(table or '')} in this FROM")
        return columns

    def over(self, relation: Relation, places: Callable[[int], int]) -> Scope:
        """Return the same names over a finished relation, in which each column has its new place."""

        def finished(term: TypedTerm) -> TypedTerm:
            index = places(term.node.index) if isinstance(term.node, Ref) else 0
            return column_term(index, relation.columns[index])

        return replace(self.change_terms(finished), content=relation)

    def shifted(self, by: int, outer: Scope | None = None) -> Scope:
        """Return the names with every column moved by some places, and those of the SELECT around behind them."""
        return replace(self.change_terms(lambda term: renumber_columns(term, lambda index: index + by)), outer=outer)

    def change_terms(self, term: Callable[[TypedTerm], TypedTerm]) -> Scope:
        """Return the scope with every column changed."""

        def changed(columns: NamedTerms) -> NamedTerms:
            return tuple((name, term(one)) for name, one in columns)

        sources = tuple((alias, changed(columns)) for alias, columns in self.sources)
        return replace(self, shown=changed(self.shown), sources=sources)


Environment: TypeAlias = Mapping[str, Scope]
"""What the names of common table expressions stand for, by lower-case name."""


def scope_of(relation: Relation, alias: str | None = None, place: Place | None = None) -> Scope:
    """Return a relation under one name."""
    columns = name_columns(relation.columns)
    return Scope(relation, columns, ((alias, columns),), place=place)


def name_columns(columns: Sequence[Out], start: int = 0) -> NamedTerms:
    """Return the columns of a relation, of which the first one stands at `start`, under their names."""
    return tuple((out.name, column_term(start + index, out)) for index, out in enumerate(columns))


def scope_of_release(question: Question, terms: Sequence[Sequence[TypedTerm]]) -> Scope:
    """Return what is released under the names of its first block's items."""
    columns = tuple((item.name, term) for item, term in zip(question.blocks[0].items, terms[0], strict=True))
    return Scope(question, columns, ((None, columns),), tuple(tuple(row) for row in terms))


def _place_column(name: str, term: TypedTerm, place: Place | None) -> TypedTerm:
    """Return a column under the name that it has here, at the place where it is used."""
    if term.column is not None and isinstance(term.node, Ref):
        column = term.column if term.column.name == name else replace(term.column, name=name)
        return column_term(term.node.index, column, place or term.place)
    return term if place is None else replace(term, node=replace(term.node, place=place))  # pyrefly: ignore[unexpected-keyword] -- every node has one


# ---- reading ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Windows:
    """Window functions met so far. Each becomes a column after the `width` columns of the relation below.

    released  they are over released rows: no unit has to be among their partitions
    """

    width: int
    calls: list[WindowCall | ReleasedCall] = field(default_factory=list["WindowCall | ReleasedCall"])
    released: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What may stand in an expression.

    clause      the clause, as messages name it
    aggregates  "released" where noise will be added, "unit" exact and inside a unit, "above" over released rows, "done"
                where names are released values already, None where no aggregate may stand
    windows     None where no window function may stand
    aliases     names that the SELECT list gives, if the clause may use them, with what they stand for in the text
    known       such names that were read already; None while one is being read
    first       whether such a name wins over a column of the same name: always, never, or unless the column is a key
    keys        the GROUP BY keys, for `first = "unless key"`
    absent      of a grouping set, the keys that it leaves out: GROUPING(key) is 1 for them
    """

    context: Context
    scope: Scope
    clause: str
    aggregates: Literal["released", "unit", "above", "done"] | None = None
    windows: Windows | None = None
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    known: dict[str, TypedTerm | None] = field(default_factory=dict[str, "TypedTerm | None"])
    first: Literal["always", "never", "unless key"] = "never"
    keys: Mapping[Node, int] = field(default_factory=dict["Node", int])
    absent: Collection[int] = ()

    def of(self, node: exp.Expr | None) -> TypedTerm:
        """Return the expression a node stands for."""
        return self.context.expression(node, self)

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
