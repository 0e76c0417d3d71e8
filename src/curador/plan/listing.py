"""All tuples that keys can be, known without data: the image of their expressions over the finite domains of columns.

A row of a relation comes about in one of a few *ways*: which branch of a UNION ALL it is of, which side of an outer join is
absent. In each way a column is an expression over *cells*, and a cell is a column of a source:

source           holds                                        is
finite column    declared values, TRUE and FALSE, whole       a column of people's rows, a number or truth computed from
                 numbers or days between bounds; NULL         them of which no more is known
public rows      the rows of a public table                   one reading of that table

Claim   The keys of every row whose columns are as declared are among the tuples that are listed.
Needs   Conditions are executed. Sources are supersets of what rows hold; whatever row is not of them is in no listed group,
        or is moved into one by the key's own expression: then it is counted there, or not at all, under the same caps.
Source  By induction over the relation: a row of a filter, join or projection is made of rows below, for which some way and
        some values of its cells hold; conditions that hold for the row hold for these values. A condition is left out where
        it is about people's columns and public ones together, or about a cell that has no source: fewer conditions, more
        tuples. Columns of people's rows are independent of each other and of public rows: nothing is assumed.

Nothing here reads rows of people. What is listed is a function of the question, the study and the public tables.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections import defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from curador.plan.intervals import can_be_null, unit_starts
from curador.plan.ownership import conjuncts, refs_of
from curador.query.tree import Call, Distinct, Filter, Join, Literal, Project, Ref, Scan, UnionAll, UnitGroup, Window
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from curador.plan.domains import Ranges
    from curador.query.tree import Expression, Node, Relation
    from curador.study.values import Value

MOST_LISTED = 1_000_000
"""Combinations of values that are looked through for one list."""

MOST_WAYS = 32
_TRUTHS = (False, True)
_DAILY = {"year", "quarter", "month", "week", "day", "dayofweek", "isodow", "dayofyear"}
"""Units and parts of time that the day decides."""

_EXACT = 2**53
MOST_WHOLE = 1_000
MOST_TIMES = 10_000
MOST_PUBLIC = 100_000
"""Values of one key that are listed at most: whole numbers between bounds, days and beginnings of units of time, others."""

KeyTuple: TypeAlias = "tuple[Value | None, ...]"


# ---- what is listed -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FiniteColumn:
    """All that a column can be. A range holds whole numbers, or days as ordinals: of a timestamp each stands for its day.

    promised  whether rows may hold others: bounds are declared and not applied
    """

    type: Type
    values: tuple[Value, ...] | range
    null: bool
    why: str
    promised: bool = False

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.values) + self.null


@dataclass(frozen=True, slots=True)
class PublicRows:
    """One reading of a public table; the columns are those that a listing looks at."""

    table: str
    columns: tuple[int, ...] = ()


Source: TypeAlias = FiniteColumn | PublicRows


@dataclass(frozen=True, slots=True)
class PublicMatch:
    """Whether some row of public sources makes all conditions true, or none does."""

    sources: tuple[int, ...]
    conditions: tuple[Expression, ...]
    none: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """Expressions over the product of sources, where conditions hold: which tuples there are.

    cells       by place: (place of the source, place of the column in it); what a Ref of an expression means
    beside      sources that are only looked at by matches
    """

    sources: tuple[Source, ...]
    cells: tuple[tuple[int, int], ...]
    conditions: tuple[Expression, ...]
    matches: tuple[PublicMatch, ...]
    expressions: tuple[Expression, ...]
    beside: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class RowWay:
    """How a row can come about: its columns over cells, None where nothing is known; what then holds."""

    columns: tuple[Expression | None, ...]
    conditions: tuple[Expression, ...] = ()
    matches: tuple[PublicMatch, ...] = ()
    narrowed: tuple[tuple[int, FiniteColumn], ...] = ()
    """Sources of which conditions left less, by their number; the last word counts."""


class TooManyWays(Exception):  # noqa: N818 -- caught where keys are listed
    """More ways than are looked at."""


@dataclass(slots=True)
class Lister:
    """Finds the ways of a relation. `opaque`: conditions inside expressions are taken to be anything."""

    ranges: Ranges
    opaque: bool = False
    sources: list[Source] = field(default_factory=list["Source"])
    cells: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    made: dict[tuple[int, Node, str], Expression | None] = field(
        default_factory=dict[tuple[int, "Node", str], "Expression | None"]
    )

    # ---- sources ---------------------------------------------------------------------------------------------------

    def _cell(self, source: int, column: int, kind: Type) -> Ref:
        self.cells.append((source, column))
        return Ref(len(self.cells) - 1, kind)

    def _finite(self, column: FiniteColumn | None) -> Ref | None:
        if column is None:
            return None
        self.sources.append(column)
        return self._cell(len(self.sources) - 1, 0, column.type)

    def sources_of(self, *expressions: Expression | None) -> set[int]:
        """Return the numbers of the sources that expressions look at."""
        return {self.cells[index][0] for one in expressions if one is not None for index in refs_of(one)}

    def _is_public(self, source: int) -> bool:
        return isinstance(self.sources[source], PublicRows)

    def _alike(self, expression: Expression) -> bool:
        """Whether an expression is about public columns alone, or about people's alone."""
        return len({self._is_public(source) for source in self.sources_of(expression)}) < 2

    # ---- relations -------------------------------------------------------------------------------------------------

    def ways(self, relation: Relation, needed: frozenset[int]) -> list[RowWay]:
        """Return the ways in which rows come about; only the needed columns are looked for."""
        match relation:
            case Scan():
                found = [RowWay(self._scan(relation, needed))]
            case Filter():
                below = self.ways(relation.input, needed | refs_of(relation.predicate))
                found = [self._filter(relation, way) for way in below]
            case Project():
                found = self._computes(relation.input, relation.expressions, needed)
            case Distinct():
                found = self.ways(relation.input, needed)
            case Join():
                found = self._join(relation, needed)
            case UnionAll():
                found = [way for branch in relation.inputs for way in self.ways(branch, needed)]
            case UnitGroup():
                keys = self._computes(relation.input, relation.keys, needed)
                found = [self._with_numbers(way, relation, needed) for way in keys]
            case Window():
                width = len(relation.input.columns)
                below = self.ways(relation.input, frozenset(index for index in needed if index < width))
                found = [self._with_numbers(way, relation, needed) for way in below]
        if len(found) > MOST_WAYS:
            raise TooManyWays
        return found

    def _computes(self, relation: Relation, expressions: Sequence[Expression], needed: frozenset[int]) -> list[RowWay]:
        """The ways of expressions over a relation."""
        wanted = {index: expression for index, expression in enumerate(expressions) if index in needed}
        below = self.ways(relation, frozenset(index for one in wanted.values() for index in refs_of(one)))
        places = range(len(expressions))
        return [
            replace(
                way, columns=tuple(self.over(wanted[place], way, relation) if place in wanted else None for place in places)
            )
            for way in below
        ]

    def _with_numbers(self, way: RowWay, relation: Relation, needed: frozenset[int]) -> RowWay:
        """The columns of a way, and those that a relation computes from a unit's rows: whole numbers in a short range."""
        known = len(way.columns)
        computed = [Ref(known + place, column.type) for place, column in enumerate(relation.columns[known:])]
        found = [self._finite(self._whole(one, relation)) if one.index in needed else None for one in computed]
        return replace(way, columns=(*way.columns, *found))

    def _scan(self, scan: Scan, needed: frozenset[int]) -> tuple[Expression | None, ...]:
        table = self.ranges.schema.table(scan.table)
        if table is None:
            return (None,) * len(scan.columns)
        if table.table.public:
            self.sources.append(PublicRows(table.table.name))
            source = len(self.sources) - 1
            return tuple(
                self._cell(source, index, column.type) if index in needed else None
                for index, column in enumerate(scan.columns)
            )
        return tuple(
            self._finite(self._declared(scan, index)) if index in needed else None for index in range(len(scan.columns))
        )

    def _declared(self, scan: Scan, index: int) -> FiniteColumn | None:
        table = self.ranges.schema.table(scan.table)
        own = None if table is None else table.fields[index]
        if own is None:
            return None
        if own.declared is not None and own.declared.values is not None:
            why = f"{scan.table}.{own.name} has declared values"
            return FiniteColumn(own.type, own.declared.values, own.declared.nullable, why)
        if own.type is Type.BOOLEAN:
            return FiniteColumn(Type.BOOLEAN, _TRUTHS, own.nullable, "a boolean")
        return self._bounded(scan, index)

    def _bounded(self, relation: Relation, index: int) -> FiniteColumn | None:
        """Whole numbers or days between bounds."""
        column = relation.columns[index]
        if column.type is Type.INTEGER:
            return self._whole(Ref(index, column.type), relation, most=MOST_LISTED)
        times = self.ranges.times(Ref(index, column.type), relation) if column.type.temporal else None
        if times is None:
            return None
        days = range(times[0].toordinal(), times[1].toordinal() + 1)
        null = can_be_null(Ref(index, column.type), relation)
        why = "declared bounds of the date, or WHERE"
        return None if len(days) > MOST_LISTED else FiniteColumn(column.type, days, null, why, promised=True)

    def _whole(self, expression: Expression, relation: Relation, *, most: int | None = None) -> FiniteColumn | None:
        """Whole numbers in a range; of what is computed only few."""
        if expression.type is not Type.INTEGER:
            return None
        known = self.ranges.of(expression, relation)
        if known.lower is None or known.upper is None or known.upper - known.lower >= (most or MOST_WHOLE):
            return None
        first = max(math.ceil(known.lower), 1) if _counts_a_group(expression, relation) else math.ceil(known.lower)
        numbers = range(first, math.floor(known.upper) + 1)
        null = self._is_null_with_columns(expression, relation)
        why = f"whole numbers: {known.why or 'its range'}"
        return FiniteColumn(Type.INTEGER, numbers, null, why, promised=True)

    def _is_null_with_columns(self, expression: Expression, relation: Relation) -> bool:
        """Whether a number can be NULL; arithmetic is only where a column is, as no step of it leaves what doubles hold."""
        known = self.ranges.of(expression, relation)
        small = known.lower is not None and known.upper is not None and max(-known.lower, known.upper) <= _EXACT
        if not (small and isinstance(expression, Call)):
            return can_be_null(expression, relation)
        parts = [part for part in expression.arguments if isinstance(part, Literal | Ref | Call)]
        if not all(part.type is not None and part.type.numeric for part in parts):
            return can_be_null(expression, relation)
        match expression.function, parts:
            case "+" | "-" | "*" | "neg" | "floor" | "ceil" | "cast", _:
                return any(self._is_null_with_columns(part, relation) for part in parts)
            case "/", [above, Literal(value=int() | Fraction() as divisor)] if divisor:
                return self._is_null_with_columns(above, relation)
            case _:
                return can_be_null(expression, relation)

    # ---- conditions ------------------------------------------------------------------------------------------------

    def _filter(self, relation: Filter, way: RowWay) -> RowWay:
        columns, narrowed = list(way.columns), list(way.narrowed)
        parts = list(conjuncts(relation.predicate))
        for index in refs_of(relation.predicate):
            cell = columns[index]
            if cell is None:
                columns[index] = self._finite(self._written(relation, index, parts) or self._bounded(relation, index))
            elif isinstance(cell, Ref) and cell.type is Type.TIMESTAMP and not self._is_public(self.cells[cell.index][0]):
                less = self._bounded(relation, index)
                narrowed += [] if less is None else [(self.cells[cell.index][0], less)]
        below = replace(way, columns=tuple(columns), narrowed=tuple(narrowed))
        return replace(below, conditions=(*below.conditions, *self._conditions(parts, below, relation.input)))

    def _conditions(self, parts: Sequence[Node], way: RowWay, relation: Relation) -> Iterator[Expression]:
        for part in parts:
            found = self.over(part, way, relation, certain=True)
            if found is not None and self._alike(found):
                yield found

    def _written(self, relation: Filter, index: int, parts: Sequence[Node]) -> FiniteColumn | None:
        """What `x = literal` or `x IN (literals)` leaves of a column of which nothing else is known."""
        kind = relation.columns[index].type
        found: tuple[Value, ...] | None = None
        for part in parts:
            values = written_values(part, index, kind)
            if values is not None:
                found = values if found is None else tuple(value for value in found if value in values)
        return None if found is None else FiniteColumn(kind, found, null=False, why="WHERE")

    # ---- joins -----------------------------------------------------------------------------------------------------

    def _join(self, join: Join, needed: frozenset[int]) -> list[RowWay]:
        width = len(join.left.columns)
        wanted = needed if join.on is None else needed | refs_of(join.on)
        parts = list(conjuncts(join.on))
        lefts = self.ways(join.left, frozenset(index for index in wanted if index < width))
        if join.kind in {"semi", "anti"}:
            return [self._semi(join, way, parts, wanted) for way in lefts]
        rights = self.ways(join.right, frozenset(index - width for index in wanted if index >= width))
        found: list[RowWay] = []
        for left, right in product(lefts, rights):
            both = _beside(left, right)
            found.append(replace(both, conditions=(*both.conditions, *self._conditions(parts, both, join))))
        if join.kind in {"left", "full"}:
            found += [self._alone(way, join, parts, rights, left=True) for way in lefts]
        if join.kind in {"right", "full"}:
            found += [self._alone(way, join, parts, lefts, left=False) for way in rights]
        return found

    def _alone(self, way: RowWay, join: Join, parts: list[Node], others: list[RowWay], *, left: bool) -> RowWay:
        """A row without a match. Where public rows alone decide whether one has a match, none of them may match."""
        other = join.right if left else join.left
        absent = RowWay(tuple(Literal(None, column.type) for column in other.columns))
        found = _beside(way, absent) if left else _beside(absent, way)
        if len(others) != 1 or not parts:
            return found
        both = _beside(way, others[0]) if left else _beside(others[0], way)
        match = self._match(both, way, others[0], parts, join, none=True)
        return found if match is None else replace(found, matches=(*found.matches, match))

    def _semi(self, join: Join, way: RowWay, parts: list[Node], wanted: frozenset[int]) -> RowWay:
        width = len(join.left.columns)
        others = self.ways(join.right, frozenset(index - width for index in wanted if index >= width))
        if len(others) != 1 or not parts:
            return way
        match = self._match(_beside(way, others[0]), way, others[0], parts, join, none=join.kind == "anti")
        return way if match is None else replace(way, matches=(*way.matches, match))

    def _match(
        self, both: RowWay, way: RowWay, other: RowWay, parts: list[Node], join: Join, *, none: bool
    ) -> PublicMatch | None:
        """The conditions of a join, where they are about public columns alone and all of them are known."""
        conditions = list(self._conditions(parts, both, join))
        own = self.sources_of(*other.columns, *other.conditions)
        looked = self.sources_of(*conditions)
        public = all(self._is_public(source) for source in own | looked)
        own_side = looked & own and looked - own <= self.sources_of(*way.columns)
        if len(conditions) < len(parts) or other.matches or not public or not own_side:
            return None
        return PublicMatch(tuple(sorted(own)), (*other.conditions, *conditions), none)

    # ---- expressions -----------------------------------------------------------------------------------------------

    def over(self, expression: Node, way: RowWay, relation: Relation, *, certain: bool = False) -> Expression | None:
        """Return an expression over cells; None where nothing is known. certain: only of sources that columns are."""
        match expression:
            case Literal():
                return expression
            case Ref():
                return way.columns[expression.index]
            case Call():
                if expression.function == "case" and not certain:
                    return self._case(expression, way, relation)
                if not (self.opaque and expression.type is Type.BOOLEAN and not certain):
                    held = [self.over(one, way, relation, certain=certain) for one in expression.arguments]
                    if all(one is not None and self._is_decided(expression, one) for one in held):
                        return replace(expression, arguments=tuple(one for one in held if one is not None))
                return None if certain else self._computed(expression, relation)
            case _:
                return None

    def compute(self, expression: Node, way: RowWay, relation: Relation) -> Expression | None:
        """Return a key as a source of its own, where it is computed; a column is as in `over`."""
        return self._computed(expression, relation) if isinstance(expression, Call) else self.over(expression, way, relation)

    def _case(self, call: Call, way: RowWay, relation: Relation) -> Expression | None:
        """Where a condition is not known, any arm may be the one."""
        held = [self.over(one, way, relation, certain=place % 2 == 0) for place, one in enumerate(call.arguments[:-1])]
        conditions, arms = held[::2], [*held[1::2], self.over(call.arguments[-1], way, relation)]
        if any(arm is None or not self._is_decided(call, arm) for arm in arms):
            return self._computed(call, relation)
        if self.opaque or any(one is None or not self._is_decided(call, one) for one in conditions):
            which = self._once(
                "arm", call, relation, lambda: FiniteColumn(Type.INTEGER, range(len(arms)), null=False, why="")
            )
            if which is None:
                return None
            conditions = [Call("=", (which, Literal(place, Type.INTEGER)), Type.BOOLEAN) for place in range(len(arms) - 1)]
        pairs = [one for pair in zip(conditions, arms[:-1], strict=True) for one in pair]
        return replace(call, arguments=tuple(one for one in (*pairs, arms[-1]) if one is not None))

    def _is_decided(self, call: Call, argument: Expression) -> bool:
        """Whether a function needs no more of a timestamp than its day, where days stand for timestamps."""
        if not (isinstance(argument, Ref) and argument.type is Type.TIMESTAMP):
            return True
        if self._is_public(self.cells[argument.index][0]):
            return True
        match call.function:
            case "date_trunc" | "extract":
                unit = call.arguments[0]
                return isinstance(unit, Literal) and unit.value in _DAILY
            case "cast":
                return call.type is Type.DATE
            case "is_null":
                return True
            case _:
                return False

    def _computed(self, call: Call, relation: Relation) -> Expression | None:
        """What is computed from columns of which too little is known is a source itself, where it can be few things only."""
        return self._once("value", call, relation, lambda: self._few(call, relation))

    def _once(self, what: str, call: Call, relation: Relation, find: Callable[[], FiniteColumn | None]) -> Expression | None:
        key = id(relation), call, what
        if key not in self.made:
            self.made[key] = self._finite(find())
        return self.made[key]

    def _few(self, call: Call, relation: Relation) -> FiniteColumn | None:
        if call.type is Type.BOOLEAN:
            return FiniteColumn(Type.BOOLEAN, _TRUTHS, can_be_null(call, relation), "a condition")
        if call.function == "date_trunc":
            return self._starts(call, relation)
        return self._whole(call, relation)

    def _starts(self, call: Call, relation: Relation) -> FiniteColumn | None:
        unit, inner = call.arguments
        known = self.ranges.times(inner, relation)
        if known is None or not isinstance(unit, Literal):
            return None
        found = unit_starts(known[0], known[1], str(unit.value), MOST_TIMES)
        if found is None:
            return None
        values: tuple[dt.date, ...] = tuple(moment.date() if call.type is Type.DATE else moment for moment in found)
        null = can_be_null(inner, relation)
        return FiniteColumn(call.type, values, null, "declared bounds of the date, or WHERE")


def _counts_a_group(expression: Expression, relation: Relation) -> bool:
    """Whether it is how many rows a group of a unit has: one at least, or the group were not there."""
    if not isinstance(relation, UnitGroup) or not isinstance(expression, Ref) or expression.index < len(relation.keys):
        return False
    aggregate = relation.aggregates[expression.index - len(relation.keys)]
    return aggregate.function == "count" and aggregate.argument is None and aggregate.filter is None


def _beside(left: RowWay, right: RowWay) -> RowWay:
    return RowWay(
        left.columns + right.columns,
        left.conditions + right.conditions,
        left.matches + right.matches,
        left.narrowed + right.narrowed,
    )


def make_listing(
    lister: Lister,
    way: RowWay,
    linked: set[int],
    conditions: list[Expression],
    matches: list[PublicMatch],
    keys: list[Expression],
) -> Listing:
    """Number sources and cells anew, only those that are looked at: one listing has one form, however it was come by."""
    held = dict(way.narrowed)
    beside = {source for match in matches for source in match.sources}
    order = sorted(linked) + sorted(beside - linked)
    looked = sorted(
        {index for one in (*keys, *conditions, *(c for m in matches for c in m.conditions)) for index in refs_of(one)}
    )
    numbered = {cell: place for place, cell in enumerate(looked)}
    columns: dict[int, list[int]] = defaultdict(list)
    cells: list[tuple[int, int]] = []
    for cell in looked:
        source, column = lister.cells[cell]
        if column not in columns[source]:
            columns[source].append(column)
        cells.append((order.index(source), columns[source].index(column)))
    sources = [
        replace(one, columns=tuple(columns[source]))
        if isinstance(one := lister.sources[source], PublicRows)
        else held.get(source, one)
        for source in order
    ]
    return Listing(
        tuple(sources),
        tuple(cells),
        tuple(_renumber(one, numbered) for one in conditions),
        tuple(
            PublicMatch(
                tuple(order.index(source) for source in match.sources),
                tuple(_renumber(one, numbered) for one in match.conditions),
                match.none,
            )
            for match in matches
        ),
        tuple(_renumber(one, numbered) for one in keys),
        frozenset(order.index(source) for source in beside),
    )


def _renumber(expression: Expression, numbered: dict[int, int]) -> Expression:
    match expression:
        case Ref():
            return replace(expression, index=numbered[expression.index])
        case Call():
            held = [_renumber(one, numbered) for one in expression.arguments if isinstance(one, (Literal, Ref, Call))]
            return replace(expression, arguments=tuple(held))
        case _:
            return expression


def listed_values(column: FiniteColumn) -> Iterator[Value | None]:
    """Yield all that a column can be, NULL last."""
    if isinstance(column.values, range) and column.type.temporal:
        for ordinal in column.values:
            day = dt.date.fromordinal(ordinal)
            yield day if column.type is Type.DATE else dt.datetime(day.year, day.month, day.day)  # noqa: DTZ001
    else:
        yield from column.values
    if column.null:
        yield None


# ---- values --------------------------------------------------------------------------------------------------------


_MOST_INTEGER = 1 << 63
_MOST_DOUBLE = Fraction(sys.float_info.max)


def written_values(part: Node, index: int, kind: Type) -> tuple[Value, ...] | None:
    """Return what `x = literal` or `x IN (literals)` says of a column; None of any other condition."""
    if not (isinstance(part, Call) and part.function in {"=", "in"}):
        return None
    inner, *others = part.arguments
    if not (isinstance(inner, Ref) and inner.index == index):
        return None
    literals = [one for one in others if isinstance(one, Literal)]
    if len(literals) < len(others):
        return None
    read = [_as_value(literal.value, kind) for literal in literals if literal.value is not None]
    return tuple(dict.fromkeys(value for value in read if _can_be(value, kind)))  # others match no row


def _as_value(value: Value | None, kind: Type) -> Value:
    """A literal as a value of the key's type, so that equal keys are equal."""
    if isinstance(value, bool) or value is None:
        return bool(value)
    if kind is Type.INTEGER and isinstance(value, Fraction) and value.denominator == 1:
        return int(value)
    if kind in {Type.FLOAT, Type.DECIMAL} and isinstance(value, int):
        return Fraction(value)
    if kind is Type.TIMESTAMP and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001
    if kind is Type.DATE and isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date()
    return value


def _can_be(value: Value, kind: Type) -> bool:
    """Whether a value of `_as` is one that a column of this type can have."""
    match kind:
        case Type.BOOLEAN:
            return isinstance(value, bool)
        case Type.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool) and -_MOST_INTEGER <= value < _MOST_INTEGER
        case Type.DECIMAL | Type.FLOAT:
            return isinstance(value, Fraction) and abs(value) <= _MOST_DOUBLE
        case Type.STRING:
            return isinstance(value, str)
        case Type.DATE:
            return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        case Type.TIMESTAMP:
            return isinstance(value, dt.datetime)


def sort_values(values: dict[Value, None]) -> tuple[Value, ...]:
    """Return values of one type in their order."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 or kinds <= {int, Fraction}:
        return tuple(sorted(values))  # type: ignore[type-var]
    return tuple(sorted(values, key=str))
