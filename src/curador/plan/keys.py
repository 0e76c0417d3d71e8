"""Which tuples the keys of a GROUP BY can be: keys that hang together are listed together, others are combined.

Keys hang together where they are made of one column of people's rows or of one public table, or where conditions tie what
they are made of; and where what they can be differs from way to way (`plan/listing.py`), such as the NULLs of absent sides.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from curador.plan.listing import (
    MOST_LISTED,
    MOST_PUBLIC,
    FiniteColumn,
    Lister,
    Listing,
    PublicMatch,
    PublicRows,
    TooManyWays,
    listed_values,
    sort_values,
)
from curador.plan.ownership import refs_of
from curador.query.tree import Call, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.plan.domains import Ranges
    from curador.plan.listing import KeyTuple, RowWay, Source
    from curador.query.tree import Expression, Relation
    from curador.study.values import Value


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
        for place, column in zip(group, columns, strict=True):
            expressions = [one[known[place]] for one in over]
            sources = [lister.sources[source] for source in lister.sources_of(*expressions)]
            arms = [lister.sources[source] for source in lister.sources_of(*(_value_of(one) for one in expressions))]
            why = "; ".join(dict.fromkeys(_why(source) for source in sources)) or "written in the question"
            promised = any(isinstance(source, FiniteColumn) and source.promised for source in arms)
            values = _in_order(column, expressions, lister)
            found[known[place]] = ListedKey(values, why, promised)
        if len(rows) < math.prod(len(column) for column in columns):
            joint.append((tuple(known[place] for place in group), tuple(rows)))
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
        listing = _listing(self.lister, way, linked, conditions, matches, wanted)
        plain = _plain_rows(listing, self.lister.ranges)
        if plain is not None:
            return plain
        found = self.lister.ranges.schema.public.images(listing, MOST_LISTED)
        return None if found is None else frozenset(found)


def _listing(
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
