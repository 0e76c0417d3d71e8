"""The question as our own tree: names are resolved, types are known, nothing of the text is left but places for messages.

Expressions are about one row; a `Ref` names a column of the relation below by its place, so aliases, shadowing and letter
case are gone and lineage is by identity. Relations are read bottom up. A `Question` releases one or several blocks, each a
SELECT with aggregates over one relation.

    Question ─ blocks ─ Block ─ relation:  Scan | Filter | Project | Join | UnionAll | UnitGroup | Window | Distinct
             │               ├ keys:      Expression over the relation's columns
             │               └ items:     expressions whose leaves are Aggregate, Key and Literal
             ├ order, limit
             └ above:  what is computed from the released blocks, a tree of relations whose leaves are `ReleasedLeaf`

The names under which trees are stored, in canonical texts and so in the keys of paid answers, are a contract: those texts, at
the end of this module, are for ever. Classes and attributes may be renamed; a new attribute is written only where it is not
what every question before it meant, so that questions keep their keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

from curador.study.values import Type, Value


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the text something stands, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


# ---- expressions over one row --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A value written in the question; None is NULL, of any type."""

    value: Value | None
    type: Type | None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Ref:
    """The column at this place of the relation below."""

    index: int
    type: Type
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of the closed catalogue in `functions.py`, applied to arguments."""

    function: str
    arguments: tuple[Node, ...]
    type: Type
    place: Place | None = field(default=None, compare=False)


Expression: TypeAlias = Literal | Ref | Call
"""What can be computed from one row."""


# ---- aggregates and what is computed from them ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of the closed catalogue in `functions.py`. `filter` is its FILTER (WHERE …). `q` is a quantile's."""

    function: str
    argument: Expression | None
    type: Type
    filter: Expression | None = None
    q: Fraction | None = None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Key:
    """The GROUP BY key at this place, in what is computed after the release."""

    index: int
    type: Type
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Estimated:
    """What a planned aggregate has become: the block's estimate at this place."""

    index: int
    type: Type


Node: TypeAlias = Literal | Ref | Call | Aggregate | Key | Estimated
"""Over rows (leaves Literal, Ref), or over releases (leaves Literal, Key, Aggregate; once planned, Estimated)."""


# ---- relations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Out:
    """One column of a relation.

    source  (table, column) where this is, untouched, that column of a base table: it carries the owner's declaration,
            and it is the unit iff the table says so. Any expression over it has no source.
    unit    it holds, in every row, the unit that owns the row. This is what decides, not the source: the unit column of a
            UNION ALL over two tables or of a FULL JOIN … USING is the unit without being any one base column.
    unit_or_null  it holds the row's unit or NULL: the unit column of the side of an outer join that may be absent. It may
            be filtered on, counted and joined on, as the unit may, but is no key of a per-unit GROUP BY.
    """

    name: str
    type: Type
    nullable: bool
    source: tuple[str, str] | None = None
    unit: bool = False
    unit_or_null: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """A table of the study; its columns are all fields of its schema, in order."""

    table: str
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the predicate is true (not NULL). Columns as below."""

    input: Relation
    predicate: Expression
    place: Place | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Out, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    """Computed columns, one for each expression."""

    input: Relation
    expressions: tuple[Expression, ...]
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


JoinKind: TypeAlias = OneOf["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Join:
    """Left columns, then right columns (semi and anti: left columns only).

    `on` is over left columns followed by right ones, and may be None only if one side is public (a cross join). Where
    both sides are private the engine always adds that the units are equal.
    """

    left: Relation
    right: Relation
    kind: JoinKind
    on: Expression | None
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """Rows of all inputs, which have columns of the same types; a column keeps its source only if all agree."""

    inputs: tuple[Relation, ...]
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class UnitGroup:
    """A subquery that groups by the unit: one row for each unit and combination of the other keys.

    Columns: the keys (the unit among them is a Ref whose Out has the unit's source), then the aggregates, which are exact
    and stay inside the unit. HAVING is a Filter above, the SELECT list a Project above.
    """

    input: Relation
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


WindowName: TypeAlias = OneOf["row_number", "rank", "dense_rank", "count", "sum", "min", "max", "avg", "lag", "lead"]


@dataclass(frozen=True, slots=True)
class WindowCall:
    """One window function. The engine completes the order by the rows' own total order inside the unit.

    partition  expressions besides the unit, which is always part of it
    order      (expression, descending, nulls first)
    whole      aggregates: True over the whole partition, False a running one (rows up to and including this one)
    """

    function: WindowName
    argument: Expression | None
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]
    type: Type
    whole: bool = False
    offset: int = 1
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Window:
    """The input's columns, then one for each call."""

    input: Relation
    calls: tuple[WindowCall, ...]
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Distinct:
    """One of each set of equal rows; the unit is among the columns."""

    input: Relation
    place: Place | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Out, ...]:
        return self.input.columns


Relation: TypeAlias = Scan | Filter | Project | Join | UnionAll | UnitGroup | Window | Distinct


# ---- relations of released rows ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReleasedLeaf:
    """What a block releases: its keys, then its aggregates. Above it stand relations of released rows and nothing else."""

    block: Block
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ReleasedGroup:
    """ReleasedLeaf rows aggregated: the keys, then the aggregates. Without keys there is one row, whatever there was."""

    input: Relation
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


ReleasedWindowName: TypeAlias = OneOf[
    "row_number",
    "rank",
    "dense_rank",
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "lag",
    "lead",
    "first_value",
    "last_value",
]


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows of a partition an aggregate is over, from the row itself: None has no end. `rows`: else peers go along."""

    rows: bool
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class ReleasedCall:
    """One window function over released rows. Rows that are equal in its order stand in the order of the rows below."""

    function: ReleasedWindowName
    argument: Expression | None
    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    type: Type
    frame: Frame | None = None
    offset: int = 1
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ReleasedWindow:
    """The input's columns, then one for each call."""

    input: Relation
    calls: tuple[ReleasedCall, ...]
    columns: tuple[Out, ...]
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Cut:
    """ReleasedLeaf rows in an order, and of them those after `offset`, at most `limit`."""

    input: Relation
    order: tuple[Order, ...]
    limit: int | None = None
    offset: int = 0
    place: Place | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[Out, ...]:
        return self.input.columns


AnyRelation: TypeAlias = Relation | ReleasedLeaf | ReleasedGroup | ReleasedWindow | Cut
"""Rows of tables, or released rows: a leaf says which, and no relation has both."""


def inputs_of(relation: AnyRelation) -> tuple[AnyRelation, ...]:
    """Return the relations that one is made of, in the order of its text."""
    match relation:
        case Scan() | ReleasedLeaf():
            return ()
        case Join():
            return (relation.left, relation.right)
        case UnionAll():
            return relation.inputs
        case _:
            return (relation.input,)


def tables_in(relation: AnyRelation) -> tuple[str, ...]:
    """Return the tables that a relation reads, each as often as it does."""
    if isinstance(relation, Scan):
        return (relation.table,)
    return tuple(name for one in inputs_of(relation) for name in tables_in(one))


def releases_of(relation: AnyRelation) -> tuple[ReleasedLeaf, ...]:
    """Return the released blocks that a relation reads, each as often as it does."""
    if isinstance(relation, ReleasedLeaf):
        return (relation,)
    return tuple(one for below in inputs_of(relation) for one in releases_of(below))


def steps_of(relation: AnyRelation) -> int:
    """Return how many relations stand one above the other."""
    return 1 + max((steps_of(one) for one in inputs_of(relation)), default=0)


# ---- what is released ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """One column of the answer."""

    name: str
    expression: Node
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """One SELECT with aggregates (or with keys only). `having` is evaluated on released values."""

    relation: Relation
    keys: tuple[Expression, ...]
    items: tuple[Item, ...]
    having: Node | None = None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Order:
    """ORDER BY on released values. With several blocks the expression is a `Ref` to the place of an output column."""

    expression: Node
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """What BigQuery's WITH DIFFERENTIAL_PRIVACY OPTIONS(…) asked for; None where it said nothing."""

    epsilon: Fraction | None = None
    rows: int | None = None
    groups: int | None = None
    bounds: tuple[tuple[str, Fraction, Fraction], ...] = ()
    """(output column, lower, upper): narrower bounds of one aggregate's argument, by item name."""
    delta: Fraction | None = None
    """What selecting its keys may cost at most."""


NOTHING_ASKED = Options()


@dataclass(frozen=True, slots=True)
class Question:
    """A whole statement. Several blocks are the branches of a UNION ALL or of GROUPING SETS: rows one after the other."""

    blocks: tuple[Block, ...]
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    options: Options = NOTHING_ASKED
    tables: tuple[str, ...] = ()
    """Every table of the study that is read, sorted."""
    above: AnyRelation | None = None
    """What is computed from the blocks, which are then its `ReleasedLeaf`; None: they are shown as they are."""


# ---- how a tree is stored -----------------------------------------------------------------------------------------


StoredForm = tuple[str, dict[str, object]]
"""The name of a kind, and its fields by theirs. Values are plain ones, or nodes that are written in turn."""


def written_node(value: object) -> StoredForm | None:
    """Return how a node of a question is stored; None for what is none. Places in the text and aliases are not stored."""
    match value:
        case Literal():
            return "Literal", {"value": value.value, "type": value.type}
        case Ref():
            return "Ref", {"index": value.index, "type": value.type}
        case Call():
            return "Call", {"function": value.function, "arguments": value.arguments, "type": value.type}
        case Aggregate():
            return "Aggregate", {
                "function": value.function,
                "argument": value.argument,
                "type": value.type,
                "filter": value.filter,
                "q": value.q,
            }
        case WindowCall():
            return "WindowCall", {
                "function": value.function,
                "argument": value.argument,
                "partition": value.partition,
                "order": value.order,
                "type": value.type,
                "whole": value.whole,
                "offset": value.offset,
            }
        case Out():  # by place and source, not by its alias
            return "Out", {
                "type": value.type,
                "nullable": value.nullable,
                "source": value.source,
                "unit": value.unit,
                "unit_or_null": value.unit_or_null,
            }
        case _:
            return written_relation(value)


def written_relation(value: object) -> StoredForm | None:
    """Return how a relation is stored; None for what is none."""
    match value:
        case Scan():
            return "Scan", {"table": value.table, "columns": value.columns}
        case Filter():
            return "Filter", {"input": value.input, "predicate": value.predicate}
        case Project():
            return "Project", {"input": value.input, "expressions": value.expressions, "columns": value.columns}
        case Join():
            return "Join", {
                "left": value.left,
                "right": value.right,
                "kind": value.kind,
                "on": value.on,
                "columns": value.columns,
            }
        case UnionAll():
            return "UnionAll", {"inputs": value.inputs, "columns": value.columns}
        case UnitGroup():
            return "UnitGroup", {
                "input": value.input,
                "keys": value.keys,
                "aggregates": value.aggregates,
                "columns": value.columns,
            }
        case Window():
            return "Window", {"input": value.input, "calls": value.calls, "columns": value.columns}
        case Distinct():
            return "Distinct", {"input": value.input}
        case _:
            return None
