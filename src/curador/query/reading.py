"""How an expression is read at one place of a question: which names, aggregates and windows may stand there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp

from curador.query.messages import invalid, named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from curador.query.context import Context
    from curador.query.scope import Scope
    from curador.query.terms import Term
    from curador.query.tree import Node, Place, WindowCall


@dataclass(slots=True)
class Aliases:
    """The names that the SELECT list gives, for those clauses that may use them."""

    items: Mapping[str, exp.Expr]
    terms: dict[str, Term] = field(default_factory=dict[str, "Term"])
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
    read: Callable[[exp.Expr | None, Reading], Term] = field(kw_only=True)

    def of(self, node: exp.Expr | None) -> Term:
        """Return the expression a node stands for."""
        return self.read(node, self)

    def place(self, node: exp.Expr) -> Place | None:
        """Return where a node begins."""
        return self.context.place(node)

    def inside(self, clause: str) -> Reading:
        """Return the reading of what stands inside an aggregate or window: rows, and no further aggregate."""
        return replace(self, clause=clause, aggregates=None, windows=None, first="never")


def taken(node: exp.Expr, context: Context, *names: str, ignored: Collection[str] = ()) -> list[Any]:
    """Return the arguments of a node by name, None where absent; refuse one that is set and was not named.

    This is the other half of the allow-list: a node of a known class with an unknown part is an unknown node.
    """
    for name, value in node.args.items():
        if value is None or value is False or value == [] or name in names or name in ignored:
            continue
        shown = _SHOWN.get(name, name.rstrip("_").replace("_", " ").upper())
        where = value if isinstance(value, exp.Expr) else node
        what = named(node, context.text)
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
