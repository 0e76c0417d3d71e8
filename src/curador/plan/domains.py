"""What an expression can be, known without data: the interval it lies in, all values of a key, whether it is NULL.

Ranges. Which interval an expression lies in, and where that is known from: the owner's bounds, literals, WHERE, arithmetic.
Nothing is assumed of the data: whatever is measured is clamped to its interval, so a wrong value costs accuracy and never
privacy. A range is what the clamp's literals and the noise are computed from.

Keys. Which keys a GROUP BY can have; what is not known is selected privately.

They are the image of their expressions over what columns can be (`plan/listing.py`). Numbers outside of a list that bounds
gave are moved to its ends. Keys hang together, and are listed together, where they are made of one column of people's rows or
of one public table, where conditions tie what they are made of, or where they differ from way to way; others are combined.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from curador.plan import intervals
from curador.plan.aggregates import PLANNED
from curador.plan.functions import RANGES, text_of
from curador.plan.intervals import (
    EVERYTHING,
    last_moment,
    moment_of,
    narrow_range,
    narrow_times,
    number_of,
    truncate_moment,
    written_range,
)
from curador.plan.listing import (
    MOST_LISTED,
    MOST_PUBLIC,
    MOST_TIMES,
    MOST_WHOLE,
    FiniteColumn,
    Lister,
    Listing,
    PublicRows,
    TooManyWays,
    listed_values,
    make_listing,
    sort_values,
)
from curador.plan.model import KeyTuples, Range
from curador.plan.ownership import refs_of
from curador.query.tree import (
    Aggregate,
    Call,
    Distinct,
    Filter,
    Join,
    Literal,
    Project,
    Ref,
    Scan,
    UnionAll,
    UnitGroup,
    Window,
)
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.plan.listing import KeyTuple, RowWay, Source
    from curador.query.tree import Expression, Node, Relation, WindowCall
    from curador.study.model import Schema
    from curador.study.values import Value


# ---- ranges ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ranges:
    """Answers for one study. `rows` is the cap that bounds what a unit's inner aggregates can be."""

    schema: Schema
    rows: int
    known: dict[tuple[int, int], tuple[object, object, Range]] = field(
        default_factory=dict[tuple[int, int], tuple[object, object, Range]], compare=False, repr=False
    )
    """By identity, with the objects themselves so that no other can take their place: each is looked at once."""

    def of(self, expression: Node, relation: Relation) -> Range:
        """Return the range of a numeric expression over a relation's rows."""
        return self._once(expression, relation, lambda: self._of(expression, relation))

    def _once(self, first: object, second: object, find: Callable[[], Range]) -> Range:
        key = (id(first), id(second))
        if key not in self.known:
            self.known[key] = (first, second, intervals.tame(find()))
        return self.known[key][2]

    def _of(self, expression: Node, relation: Relation) -> Range:
        match expression:
            case Literal():
                return written_range(expression)
            case Ref():
                return self.column(relation, expression.index)
            case Call():
                return self._narrowed(expression, relation)
            case _:
                return EVERYTHING

    def _narrowed(self, call: Call, relation: Relation) -> Range:
        """The range of a function where the filters below hold, which may be about the very expression."""
        found = self._call(call, relation)
        while isinstance(relation, Filter) and call.type.numeric and not self.schema.older:
            found, relation = narrow_range(found, call, relation.predicate), relation.input
        return found

    # ---- columns ---------------------------------------------------------------------------------------------------

    def column(self, relation: Relation, index: int) -> Range:
        """Return the range of a relation's column."""
        match relation:
            case Scan():
                return self._declared(relation, index)
            case Filter():
                column = Ref(index, relation.columns[index].type)
                known, older = self.column(relation.input, index), self.schema.older
                return narrow_range(known, column, relation.predicate, strict=not older)
            case Project():
                return self.of(relation.expressions[index], relation.input)
            case Distinct():
                return self.column(relation.input, index)
            case Join():
                width = len(relation.left.columns)
                if index < width:
                    return self.column(relation.left, index)
                return self.column(relation.right, index - width)
            case UnionAll():
                return intervals.hull([self.column(branch, index) for branch in relation.inputs])
            case UnitGroup():
                if index < len(relation.keys):
                    return self.of(relation.keys[index], relation.input)
                return self._inside(relation.aggregates[index - len(relation.keys)], relation.input)
            case Window():
                width = len(relation.input.columns)
                if index < width:
                    return self.column(relation.input, index)
                return self._window(relation.calls[index - width], relation.input)

    def _declared(self, scan: Scan, index: int) -> Range:
        column = scan.columns[index]
        table = self.schema.table(scan.table)
        declared = None if table is None else table.fields[index].declared
        if declared is None or not column.type.numeric:
            return Range(None, None, column.type is Type.INTEGER)
        ends = declared.bounds or (_extremes(declared.values) if declared.values else None)
        if ends is None:
            return Range(None, None, column.type is Type.INTEGER)
        why = f"{scan.table}.{column.name} is declared"
        return Range(number_of(ends[0]), number_of(ends[1]), column.type is Type.INTEGER, why)

    def _inside(self, aggregate: Aggregate, relation: Relation) -> Range:
        """What an exact aggregate inside one unit is clamped to: as if the unit had at most `rows` rows."""
        argument = EVERYTHING if aggregate.argument is None else self.of(aggregate.argument, relation)
        found = PLANNED[aggregate.function].inside
        return EVERYTHING if found is None else found(argument, self.rows)

    def _window(self, call: WindowCall, relation: Relation) -> Range:
        many, zero = Fraction(self.rows), Fraction(0)
        argument = EVERYTHING if call.argument is None else self.of(call.argument, relation)
        match call.function:
            case "row_number" | "rank" | "dense_rank":
                return Range(Fraction(1), many, integer=True, why=f"at most {self.rows} rows a unit")
            case "count":
                return Range(zero, many, integer=True, why=f"at most {self.rows} rows a unit")
            case "sum":
                return self._inside(Aggregate("sum", call.argument, call.type), relation)
            case "avg":
                return replace(argument, integer=False)
            case _:
                return argument

    # ---- functions -------------------------------------------------------------------------------------------------

    def _call(self, call: Call, relation: Relation) -> Range:
        found = RANGES[call.function](call, self, relation)
        if not call.type.numeric:
            return EVERYTHING
        reasons = dict.fromkeys(
            reason for argument in call.arguments for reason in self.of(argument, relation).why.split("; ") if reason
        )
        return replace(found, integer=found.integer or call.type is Type.INTEGER, why=found.why or "; ".join(reasons))

    # ---- times -----------------------------------------------------------------------------------------------------

    def times(self, expression: Node, relation: Relation) -> tuple[dt.datetime, dt.datetime] | None:
        """Return the earliest and latest time a date or timestamp is declared to be; None where nothing is declared."""
        match expression:
            case Literal(value=dt.date() as value):
                moment = moment_of(value)
                return moment, moment
            case Ref():
                return self._column_times(relation, expression.index)
            case Call(function="date_trunc", arguments=(_, inner)):
                below = self.times(inner, relation)
                return None if below is None else (truncate_moment(below[0], text_of(expression.arguments[0])), below[1])
            case Call(function="cast", arguments=(inner,)) if expression.type.temporal:
                return self.times(inner, relation)
            case _:
                return None

    def _column_times(self, relation: Relation, index: int) -> tuple[dt.datetime, dt.datetime] | None:
        match relation:
            case Scan():
                table = self.schema.table(relation.table)
                declared = None if table is None else table.fields[index].declared
                if declared is None or declared.bounds is None or not declared.type.temporal:
                    return None
                lower, upper = declared.bounds
                return (
                    (moment_of(lower), last_moment(upper))
                    if isinstance(lower, dt.date) and isinstance(upper, dt.date)
                    else None
                )
            case Filter():
                daily = relation.columns[index].type is Type.DATE
                known = self._column_times(relation.input, index)
                return narrow_times(known, index, relation.predicate, daily=daily, strict=not self.schema.older)
            case Project():
                return self.times(relation.expressions[index], relation.input)
            case Distinct():
                return self._column_times(relation.input, index)
            case Join():
                width = len(relation.left.columns)
                side, place = (relation.left, index) if index < width else (relation.right, index - width)
                return self._column_times(side, place)
            case Window():
                return self._times_of_window(relation, index)
            case UnitGroup() if index < len(relation.keys):
                return self.times(relation.keys[index], relation.input)
            case UnitGroup():
                return self._times_among(relation.aggregates[index - len(relation.keys)], relation.input)
            case _:
                return None

    def _times_of_window(self, relation: Window, index: int) -> tuple[dt.datetime, dt.datetime] | None:
        width = len(relation.input.columns)
        if index < width:
            return self._column_times(relation.input, index)
        return self._times_among(relation.calls[index - width], relation.input)

    def _times_among(self, one: Aggregate | WindowCall, relation: Relation) -> tuple[dt.datetime, dt.datetime] | None:
        """The first, the last or another of some rows' times lies where each of them does."""
        if one.function not in {"min", "max", "lag", "lead", "first_value", "last_value"} or one.argument is None:
            return None
        return self.times(one.argument, relation)


def _extremes(values: Sequence[Value]) -> tuple[Value, Value] | None:
    numbers = [Fraction(value) for value in values if isinstance(value, (int, Fraction)) and not isinstance(value, bool)]
    return (min(numbers), max(numbers)) if numbers else None


# ---- keys -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyDomain:
    """All values a key can have, NULL among them as None, and where that is known from; `expression` clamps where needed."""

    values: tuple[Value | None, ...]
    why: str
    expression: Expression


def domains_of(
    keys: Sequence[Expression], relation: Relation, ranges: Ranges
) -> tuple[tuple[KeyDomain | None, ...], tuple[KeyTuples, ...]]:
    """Return all values of keys over a relation's rows, None where they are not known, and the combinations there are."""
    lists = list_keys(keys, relation, ranges, _most_values)
    domains = tuple(
        None if found is None else KeyDomain(found.values, found.why, _within(key, found, relation, ranges))
        for key, found in zip(keys, lists.keys, strict=True)
    )
    return domains, tuple(KeyTuples(places, rows) for places, rows in lists.joint)


def image_range(expression: Expression, relation: Relation, ranges: Ranges) -> Range | None:
    """Return the range of numbers that are made of finite columns, such as CAST of declared texts; None of all others."""
    (domain,), _ = domains_of((expression,), relation, ranges)
    numbers = [] if domain is None else [Fraction(value) for value in domain.values if isinstance(value, (int, Fraction))]
    if domain is None or not numbers:
        return None
    return Range(min(numbers), max(numbers), expression.type is Type.INTEGER, domain.why)


def _most_values(key: Expression, promised: bool) -> int:  # noqa: FBT001 -- one of two things that decide
    if key.type is not None and key.type.temporal:
        return MOST_TIMES
    return MOST_WHOLE if promised else MOST_PUBLIC


def _within(key: Expression, found: ListedKey, relation: Relation, ranges: Ranges) -> Expression:
    """The key with numbers outside of its list moved to the ends: bounds are promises. Parts of dates cannot leave theirs.

    Of a text or a fraction that whole numbers were made into, these are moved.
    """
    part = isinstance(key, Call) and key.function == "extract" and text_of(key.arguments[0]) != "year"
    if not found.promised or part or key.type is Type.BOOLEAN:
        return key
    if key.type is Type.INTEGER:
        numbers = [value for value in found.values if isinstance(value, int)]
        return _clamp(key, min(numbers), max(numbers)) if numbers else key
    return _clamp_columns(key, relation, ranges)


def _clamp_columns(key: Expression, relation: Relation, ranges: Ranges) -> Expression:
    match key:
        case Ref(type=Type.INTEGER):
            known = ranges.of(key, relation)
            if known.lower is None or known.upper is None:
                return key
            return _clamp(key, math.ceil(known.lower), math.floor(known.upper))
        case Call():
            held = [_clamp_columns(one, relation, ranges) for one in key.arguments if isinstance(one, (Literal, Ref, Call))]
            return replace(key, arguments=tuple(held))
        case _:
            return key


def _clamp(expression: Expression, lowest: int, highest: int) -> Expression:
    """The expression with values outside moved to the ends; NULL stays NULL."""
    kind = Type.INTEGER
    low, high = Literal(lowest, kind), Literal(highest, kind)
    below, above = Call("<", (expression, low), Type.BOOLEAN), Call(">", (expression, high), Type.BOOLEAN)
    return Call("case", (below, low, above, high, expression), kind)


# ---- lists of keys that hang together -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListedKey:
    """What was found of one key.

    values    all it can be, sorted, None among them for NULL
    why       where that is known from
    promised  whether rows may hold others
    """

    values: tuple[Value | None, ...]
    why: str
    promised: bool


@dataclass(frozen=True, slots=True)
class KeyLists:
    """What keys can be: each by itself (None: not known), and which combinations of some there are.

    joint  (places of keys, their tuples), where these are fewer than all combinations
    """

    keys: tuple[ListedKey | None, ...]
    joint: tuple[tuple[tuple[int, ...], tuple[KeyTuple, ...]], ...] = ()


def list_keys(
    keys: Sequence[Expression], relation: Relation, ranges: Ranges, most: Callable[[Expression, bool], int]
) -> KeyLists:
    """Return what the keys of a relation's rows can be.

    most  how many values of a key are listed at most, by its expression and whether rows may hold others than listed
    """

    def is_short(lists: KeyLists | None, places: Sequence[int]) -> bool:
        """Whether all of these keys are listed, and none has too many values."""
        held = [None if lists is None else lists.keys[place] for place in places]
        return all(
            key is not None and len(key.values) <= most(keys[place], key.promised)
            for place, key in zip(places, held, strict=True)
        )

    everything = list(range(len(keys)))
    together = _list(keys, everything, relation, ranges) if keys else None
    if together is not None and is_short(together, everything):
        return together
    alone = {
        place: found
        for place in everything
        for found in [_list_one(keys, place, relation, ranges)]
        if found is not None and is_short(found, [place])
    }
    together = _list(keys, list(alone), relation, ranges) if len(alone) > 1 else None
    if together is not None and is_short(together, list(alone)):
        return together
    return KeyLists(tuple(alone[place].keys[place] if place in alone else None for place in everything))


def _list_one(keys: Sequence[Expression], place: int, relation: Relation, ranges: Ranges) -> KeyLists | None:
    """Return the list of one key, as exact as can be looked through."""
    for how in ("exact", "opaque", "coarse"):
        found = _list(keys, [place], relation, ranges, how=how)
        if found is not None:
            return found
    return None


def _list(
    keys: Sequence[Expression],
    places: list[int],
    relation: Relation,
    ranges: Ranges,
    *,
    how: OneOf["exact", "opaque", "coarse"] = "exact",
) -> KeyLists | None:
    """Return the lists of these keys; None where too much would have to be looked through.

    how  exact: images; opaque: conditions inside expressions may come to anything; coarse: so may the keys in their ranges
    """
    lister = Lister(ranges, opaque=how != "exact")
    needed = frozenset(index for place in places for index in refs_of(keys[place]))
    try:
        ways = lister.ways(relation, needed)
    except TooManyWays:
        return None
    find = lister.compute if how == "coarse" else lister.over
    over = [{place: find(keys[place], way, relation) for place in places} for way in ways]
    known = [place for place in places if all(one[place] is not None and _is_shown(lister, one[place]) for one in over)]
    found: list[ListedKey | None] = [None] * len(keys)
    if known != places:
        for place in known:
            found[place] = ListedKey((), "", promised=False)
        return KeyLists(tuple(found))
    combined = _Combined(lister, [(way, [one[place] for place in known]) for way, one in zip(ways, over, strict=True)])
    lists = combined.lists()
    if lists is None:
        return None
    joint: list[tuple[tuple[int, ...], tuple[KeyTuple, ...]]] = []
    for group, rows in lists:
        columns = [dict.fromkeys(row[place] for row in rows) for place in range(len(group))]
        ordered: list[tuple[Value | None, ...]] = []
        for place, column in zip(group, columns, strict=True):
            expressions = [one[known[place]] for one in over]
            sources = [lister.sources[source] for source in lister.sources_of(*expressions)]
            arms = [lister.sources[source] for source in lister.sources_of(*(_value_of(one) for one in expressions))]
            why = "; ".join(dict.fromkeys(_why(source) for source in sources)) or "written in the question"
            promised = any(isinstance(source, FiniteColumn) and source.promised for source in arms)
            values = _in_order(column, expressions, lister)
            found[known[place]] = ListedKey(values, why, promised)
            ordered.append(values)
        if len(rows) < math.prod(len(column) for column in columns):
            joint.append((tuple(known[place] for place in group), _sort_rows(rows, ordered)))
    return KeyLists(tuple(found), tuple(joint))


def _is_shown(lister: Lister, expression: Expression | None) -> bool:
    """Whether a key is not a timestamp of which days are all that is known."""
    if not (isinstance(expression, Ref) and expression.type is Type.TIMESTAMP):
        return True
    source = lister.sources[lister.cells[expression.index][0]]
    return isinstance(source, PublicRows) or not isinstance(source.values, range)


def _value_of(expression: Expression | None) -> Expression | None:
    """An expression without the conditions that only choose among its values."""
    if isinstance(expression, Call) and expression.function == "case":
        places = [*range(1, len(expression.arguments) - 1, 2), len(expression.arguments) - 1]
        return replace(expression, arguments=tuple(expression.arguments[place] for place in places))
    return None if isinstance(expression, Call) and expression.type is Type.BOOLEAN else expression


def _why(source: Source) -> str:
    return f"the rows of the public table {source.table}" if isinstance(source, PublicRows) else source.why


def _in_order(
    column: dict[Value | None, None], expressions: list[Expression | None], lister: Lister
) -> tuple[Value | None, ...]:
    """Values of a column in the order of its declaration, all others sorted; NULL last."""
    held = {value: None for value in column if value is not None}
    first = expressions[0] if all(one == expressions[0] for one in expressions) else None
    source = lister.sources[lister.cells[first.index][0]] if isinstance(first, Ref) else None
    if isinstance(source, FiniteColumn) and isinstance(source.values, tuple) and set(held) <= set(source.values):
        ordered = tuple(value for value in dict.fromkeys(source.values) if value in held)
    else:
        ordered = sort_values(held)
    return (*ordered, None) if None in column else ordered


def _sort_rows(rows: Sequence[KeyTuple], ordered: Sequence[tuple[Value | None, ...]]) -> tuple[KeyTuple, ...]:
    """Tuples in the order of their values, the first key's first.

    They come from sets and joins, whose order is another in every process: one question has one plan.
    """
    ranks = [{value: rank for rank, value in enumerate(values)} for values in ordered]
    return tuple(sorted(rows, key=lambda row: [rank[value] for rank, value in zip(ranks, row, strict=True)]))


@dataclass(slots=True)
class _Combined:
    """The lists of keys that hang together, over all ways."""

    lister: Lister
    ways: list[tuple[RowWay, list[Expression | None]]]

    def lists(self) -> list[tuple[tuple[int, ...], list[KeyTuple]]] | None:
        """Return (keys, their tuples), each key in one of them; None where too much would have to be looked through."""
        count = len(self.ways[0][1])
        parts = self._parts(count)
        found: list[tuple[tuple[int, ...], list[frozenset[KeyTuple]]]] = []
        for group in parts:
            rows = [self._rows(way, [keys[place] for place in group]) for way, keys in self.ways]
            if any(one is None for one in rows):
                return None
            found.append((group, [one for one in rows if one is not None]))
        held = [way for way in range(len(self.ways)) if all(rows[way] for _, rows in found)]  # in others there is no row
        if not held:
            return [(group, []) for group, _ in found]
        found = [(group, [rows[way] for way in held]) for group, rows in found]
        same = [(group, rows) for group, rows in found if all(one == rows[0] for one in rows)]
        moved = [(group, rows) for group, rows in found if any(one != rows[0] for one in rows)]
        out = [(group, list(rows[0])) for group, rows in same]
        if len(moved) == 1:
            group, rows = moved[0]
            out.append((group, list(rows[0].union(*rows))))
        elif moved:
            joined = self._across(moved)
            if joined is None:
                return None
            out.append(joined)
        return out

    def _across(
        self, moved: list[tuple[tuple[int, ...], list[frozenset[KeyTuple]]]]
    ) -> tuple[tuple[int, ...], list[KeyTuple]] | None:
        """Keys whose lists differ from way to way are combined in each way by itself."""
        places = [place for group, _ in moved for place in group]
        order = sorted(range(len(places)), key=places.__getitem__)
        rows: dict[KeyTuple, None] = {}
        for way in range(len(moved[0][1])):
            lists = [held[way] for _, held in moved]
            if math.prod(len(one) for one in lists) > MOST_LISTED:
                return None
            for parts in product(*lists):
                flat = [value for part in parts for value in part]
                rows[tuple(flat[place] for place in order)] = None
        return tuple(sorted(places)), list(rows)

    def _parts(self, count: int) -> list[tuple[int, ...]]:
        """Keys that share a source, or whose sources hang together by conditions, in any way."""
        group = list(range(count))
        for way, keys in self.ways:
            owner: dict[int, int] = {}
            for place, key in enumerate(keys):
                for source in self._linked(way, self.lister.sources_of(key), keys):
                    first = owner.setdefault(source, place)
                    old, new = group[place], group[first]
                    group = [new if one == old else one for one in group]
        found: dict[int, list[int]] = defaultdict(list)
        for place, first in enumerate(group):
            found[first].append(place)
        return [tuple(places) for places in found.values()]

    def _conditions(self, way: RowWay, keys: Sequence[Expression | None]) -> list[Expression]:
        """The conditions that are looked at: on public columns, or on columns of people that keys are made of."""
        own = self.lister.sources_of(*keys)
        return [one for one in way.conditions if self._is_looked_at(self.lister.sources_of(one), own)]

    def _is_looked_at(self, sources: set[int], own: set[int]) -> bool:
        return sources <= own or all(isinstance(self.lister.sources[source], PublicRows) for source in sources)

    def _linked(self, way: RowWay, sources: set[int], keys: Sequence[Expression | None]) -> set[int]:
        """Sources and all that conditions tie to them. People's columns are tied only where their combinations are few."""
        links = [self.lister.sources_of(one) for one in self._conditions(way, keys)]
        links = [link for link in links if self._size(way, link) <= MOST_LISTED]
        for match in way.matches:
            links.append(self.lister.sources_of(*match.conditions) - set(match.sources))
        found = set(sources)
        while True:
            more = {source for link in links if link & found for source in link}
            if more <= found:
                return found
            found |= more

    def _size(self, way: RowWay, sources: set[int]) -> int:
        held = dict(way.narrowed)
        columns = [held.get(source, self.lister.sources[source]) for source in sources]
        return math.prod(column.size for column in columns if isinstance(column, FiniteColumn))

    def _rows(self, way: RowWay, keys: list[Expression | None]) -> frozenset[KeyTuple] | None:
        """The tuples of some keys in one way."""
        everything = next(held for one, held in self.ways if one is way)
        linked = self._linked(way, self.lister.sources_of(*keys), everything)
        if self._size(way, linked) > MOST_LISTED:
            return None
        conditions = [one for one in self._conditions(way, everything) if self.lister.sources_of(one) <= linked]
        matches = [one for one in way.matches if self.lister.sources_of(*one.conditions) - set(one.sources) <= linked]
        wanted = [key for key in keys if key is not None]
        listing = make_listing(self.lister, way, linked, conditions, matches, wanted)
        plain = _plain_rows(listing, self.lister.ranges)
        if plain is not None:
            return plain
        found = self.lister.ranges.schema.public.images(listing, MOST_LISTED)
        return None if found is None else frozenset(found)


def _plain_rows(listing: Listing, ranges: Ranges) -> frozenset[KeyTuple] | None:
    """A column as it stands, or what is written: nothing is to be computed."""
    if listing.conditions or listing.matches or len(listing.expressions) != 1:
        return None
    key = listing.expressions[0]
    if isinstance(key, Literal):
        return frozenset({(key.value,)})
    if not isinstance(key, Ref) or len(listing.sources) != 1:
        return None
    source = listing.sources[0]
    if isinstance(source, PublicRows):
        table = ranges.schema.table(source.table)
        name = "" if table is None else table.fields[source.columns[0]].name
        found = ranges.schema.public.distinct(source.table, name, MOST_PUBLIC)
        return None if found is None else frozenset((value,) for value in found)
    return frozenset((value,) for value in listed_values(source))
