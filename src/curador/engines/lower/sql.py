"""The text an engine is given, and how it is told from any other text.

Nothing of a question's text reaches an engine: identifiers are ours (`t0`, `c3`, `__u`), functions come from a dialect, and
only literals are an analyst's, quoted. A worker runs `GeneratedSQL` and refuses every other string.

names of a relation's columns
c0 …       its columns, in order
__u        the unit: for equality, partitions and grouping
__h        a keyed hash of the original unit: what everything random is drawn from
__o0 …     a total order of a unit's rows; public relations: of all rows
g0 …       column number so on its declared grid, where a plan wants it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.errors import InvalidQuery

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_TEXT = 1_000_000
"""Characters of one statement: guards repeat their operand, so nested ones grow fast."""

MOST_DEPTH = 80
"""Nested calls of one expression."""


class GeneratedSQL(str):
    """SQL that curador wrote. Made in this package only."""

    __slots__ = ()


def mark_generated(text: str) -> GeneratedSQL:
    """Return the text as ours; refuse one that grew too long. Nothing has been read or spent by then."""
    return GeneratedSQL(require_short(text))


def require_short(text: str) -> str:
    """Return the text if an engine can be given it."""
    if len(text) > MOST_TEXT:
        raise too_deep()
    return text


def too_deep() -> InvalidQuery:
    """Return the refusal of an expression that is nested too deeply."""
    return InvalidQuery("an expression must be nested less deeply.", hint="write fewer functions inside one another.")


def commas(names: Iterable[str]) -> str:
    """Return a list as SQL writes it."""
    return ", ".join(names)


def every(conditions: Iterable[str]) -> str:
    """Return the conjunction of conditions; empty where there are none."""
    return " AND ".join(f"({condition})" for condition in conditions)


def select(
    columns: Iterable[str], source: str, *, when: Iterable[str] = (), by: Iterable[str] = (), distinct: bool = False
) -> str:
    """Return a SELECT. The source is a name, a FROM clause, or what `rows_of` gives."""
    conditions, groups = every(when), commas(by)
    text = f"SELECT {'DISTINCT ' if distinct else ''}{commas(columns)} FROM {source}"  # noqa: S608 -- every part is ours
    text += f" WHERE {conditions}" if conditions else ""
    return text + (f" GROUP BY {groups}" if groups else "")


def rows_of(query: str) -> str:
    """Return a query as the source of another."""
    return f"({query}) AS s"
