"""Refusals of a question: where it stands, which rule it breaks, what to write instead. Nothing in them comes from data."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from sqlglot import exp

from curador.errors import InvalidQuery, NotPrivate, shown
from curador.query.tree import Place
from curador.text.suggest import nearest_names

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_VISITED = 64
"""Nodes looked at for one that knows its place: enough for any expression, little for a whole statement."""

_MOST_LISTED = 12


class Text:
    """The text of a question, to tell places by."""

    __slots__ = ("_starts", "raw", "stars")

    def __init__(self, text: str) -> None:
        self._starts = [0, *(index + 1 for index, letter in enumerate(text) if letter == "\n")]
        self.raw = text
        self.stars: set[int] = set()
        """Where words end that a star follows."""

    def place(self, offset: int) -> Place:
        """Return the line and column of the letter at this offset."""
        line = bisect.bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)

    def of(self, node: exp.Expr) -> Place | None:
        """Return where a node begins: its own token, else the first inside it, else the nearest around it."""
        current: exp.Expr | None = node
        while current is not None:
            start = _first_start(current)
            if start is not None:
                return self.place(start)
            current = current.parent
        return None


def _first_start(node: exp.Expr) -> int | None:
    stack: list[exp.Expr] = [node]
    for _ in range(_MOST_VISITED):
        if not stack:
            return None
        current = stack.pop()
        start = current.meta.get("start")
        if isinstance(start, int):
            return start
        children: list[exp.Expr] = []
        for value in current.args.values():
            if isinstance(value, exp.Expr):
                children.append(value)
            elif isinstance(value, list):
                children.extend(one for one in value if isinstance(one, exp.Expr))
        stack.extend(reversed(children))
    return None


def function_name(node: exp.Expr, text: Text) -> str:
    """Return a function's name as it was written, where that is known."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if isinstance(start, int) and isinstance(end, int):
        written = text.raw[start : end + 1].lower()
        if written.isidentifier():
            return written
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def name_node(node: exp.Expr, text: Text) -> str:
    """Return what a node is called in SQL."""
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return f"{function_name(node, text)}()"
    return _CALLED.get(type(node), node.key.upper())


_CALLED: dict[type[exp.Expr], str] = {
    exp.Bracket: "x[…]",
    exp.Table: "a table",
    exp.Join: "JOIN",
    exp.Command: "a command",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter",
    exp.Dot: "a path of fields",
    exp.Escape: "LIKE … ESCAPE",
    exp.SimilarTo: "SIMILAR TO",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.Tuple: "a row of values",
    exp.Subquery: "a subquery",
    exp.Column: "a column",
}


def invalid(place: Place | None, rule: str, hint: str | None = None) -> InvalidQuery:
    """Return the refusal of what cannot be read or breaks a rule of the language."""
    return InvalidQuery(_sentence(place, rule), hint=hint, place=place)


def not_private(place: Place | None, rule: str, hint: str | None = None) -> NotPrivate:
    """Return the refusal of what no rule of privacy covers."""
    return NotPrivate(_sentence(place, rule), hint=hint, place=place)


def _sentence(place: Place | None, rule: str) -> str:
    return f"{rule}." if place is not None else f"{rule[0].upper()}{rule[1:]}."


def quote_name(name: str) -> str:
    """Return a name as messages show it, cut where it is long."""
    return shown(name).replace("'", '"') if "'" not in name else shown(name)


def suggest_names(name: str, names: Iterable[str], what: str) -> str:
    """Return a hint with the names that look like this one, else with those there are."""
    known = list(dict.fromkeys(names))
    close = nearest_names(name, known, most=3)
    if close:
        return f"did you mean {' or '.join(quote_name(one) for one in close)}?"
    more = ", …" if len(known) > _MOST_LISTED else ""
    listed = ", ".join(quote_name(one) for one in known[:_MOST_LISTED])
    return f"{what}: {listed}{more}." if listed else f"there are no {what}."
