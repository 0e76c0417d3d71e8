"""Names: which column a name means, by identity and never by spelling alone. Letter case does not matter, quoted or not.

A name stands for a `Term`: a column of a relation, or a released value of an aggregated subquery, alike.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from curador.query.messages import invalid, near, quoted
from curador.query.terms import Term, column, renumbered
from curador.query.tree import Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from curador.query.tree import Out, Place


@dataclass(frozen=True, slots=True)
class Named:
    """A column and its name. A hidden one was merged by USING into another: only `table.name` finds it."""

    name: str
    term: Term
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """What one table, subquery or alias of FROM brings."""

    alias: str | None
    columns: tuple[Named, ...]

    def shown(self, term: Callable[[Term], Term]) -> Source:
        """Return the source with every column's term changed."""
        return Source(self.alias, tuple(replace(one, term=term(one.term)) for one in self.columns))


def source_of(alias: str | None, columns: Sequence[Out], start: int = 0) -> Source:
    """Return the columns of a relation whose first one stands at `start`."""
    return Source(alias, tuple(Named(out.name, column(start + index, out)) for index, out in enumerate(columns)))


class Scope:
    """All names that are visible at one place of the question."""

    __slots__ = ("_names", "outer", "sources")

    def __init__(self, sources: Iterable[Source], outer: Scope | None = None) -> None:
        self.sources = tuple(sources)
        self.outer = outer  # of the SELECT around a correlated subquery
        self._names: dict[str, list[tuple[Source, Named]]] = defaultdict(list)
        for source in self.sources:
            for one in source.columns:
                self._names[one.name.lower()].append((source, one))

    def find(self, table: str | None, name: str, place: Place | None) -> Term | None:
        """Return the column of this name, None if there is none; refuse a name that several have."""
        if self.outer is not None and table is not None and not self._has(table):
            return self.outer.find(table, name, place)
        if table is not None and not self._has(table):
            aliases = [one.alias for one in self.sources if one.alias is not None]
            raise invalid(place, f"there is no table {quoted(table)} in this FROM", near(table, aliases, "it has"))
        found = [
            one
            for source, one in self._names.get(name.lower(), ())
            if (not one.hidden if table is None else source.alias is not None and source.alias.lower() == table.lower())
        ]
        if len(found) > 1:
            found = [one for one in found if one.name == name] or found
        if len(found) > 1:
            raise invalid(place, f"the column {quoted(name)} must be of one table; several have it", "write table.column.")
        if not found and table is None and self.outer is not None:
            return self.outer.find(None, name, place)
        return _found(found[0], place) if found else None

    def _has(self, table: str) -> bool:
        return any(one.alias is not None and one.alias.lower() == table.lower() for one in self.sources)

    def unknown(self, name: str, place: Place | None, others: Iterable[str] = ()) -> Exception:
        """Return the refusal of a name that nothing has."""
        if self._has(name):
            return invalid(
                place,
                f"the table {quoted(name)} must not stand where a column does",
                "a whole row is no value; name a column.",
            )
        names = [one.name for source in self.sources for one in source.columns]
        return invalid(place, f"there is no column {quoted(name)}", near(name, [*names, *others], "the columns are"))

    def star(self, table: str | None, place: Place | None) -> Iterator[Named]:
        """Return all columns that `*` or `table.*` stands for."""
        if table is not None and not self._has(table):
            raise invalid(place, f"there is no table {quoted(table)} in this FROM")
        for source in self.sources:
            meant = table is None or (source.alias is not None and source.alias.lower() == table.lower())
            if meant:
                yield from (one for one in source.columns if table is not None or not one.hidden)

    def over(self, columns: Sequence[Out], places: Callable[[int], int]) -> Scope:
        """Return the same names over a finished relation, in which each column has its new place."""

        def finished(term: Term) -> Term:
            index = places(term.node.index) if isinstance(term.node, Ref) else 0
            return column(index, columns[index])

        return Scope(source.shown(finished) for source in self.sources)

    def shifted(self, by: int, outer: Scope) -> Scope:
        """Return the names with every column moved by some places, and those of the SELECT around behind them."""
        return Scope(
            (source.shown(lambda term: renumbered(term, lambda index: index + by)) for source in self.sources), outer
        )


def _found(one: Named, place: Place | None) -> Term:
    """Return a column under the name that it has here, at the place where it is used."""
    term = one.term
    if term.column is not None and term.column.name != one.name:
        term = replace(term, column=replace(term.column, name=one.name))
    return term if place is None else replace(term, node=replace(term.node, place=place))  # pyrefly: ignore[unexpected-keyword] -- every node has one
