"""Statements that a client prepared and portals that it opened, where the door answers them; the others are the shadow's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from curador.door.messages import MessageBody
from curador.door.parameters import MOST_PARAMETERS, bind_text, numbers_in
from curador.door.problems import SqlProblem
from curador.door.statements import Statement, StatementKind, parse_one
from curador.door.values import KNOWN_TYPES, SAMPLES, TEXT, read_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.door.results import Rows, ShownColumn
    from curador.door.values import Parameter

ASKS = frozenset({StatementKind.QUESTION, StatementKind.EXPLAIN, StatementKind.DECLARE})
"""The kinds that have a question inside."""


@dataclass
class Prepared:
    """A statement that waits for its parameters.

    oids  PostgreSQL's types of the parameters
    """

    statement: Statement
    oids: tuple[int, ...] = ()
    database: str = ""

    @property
    def question(self) -> str:
        """The text of the question inside."""
        return self.statement.asked or self.statement.text

    def bound(self, values: Sequence[Parameter]) -> Statement:
        """Return the statement with its parameters in it."""
        one = self.statement
        if one.kind not in ASKS:
            if values:
                raise SqlProblem("42P02", "only a question may have parameters here.")
            return one
        text = bind_text(self.question, values, self.database)
        if text == self.question:
            return one
        return replace(one, asked=text, at=None) if one.asked else replace(one, text=text, at=None)

    def sample(self) -> Statement:
        """Return the statement with some value of the right type for each parameter: its columns are described by it."""
        return self.bound([SAMPLES.get(oid, "x") for oid in self.oids])


@dataclass
class Portal:
    """A statement with its parameters, and what it gave once it was executed; a cursor is one that DECLARE opened.

    holds    it outlives its transaction
    planned  how intervals were to be told, and the columns that follow, where they were described
    """

    statement: Statement
    forms: Sequence[int] = ()
    rows: Rows | None = None
    tag: str = ""
    done: bool = False
    holds: bool = False
    is_cursor: bool = field(default=False)
    planned: tuple[str, tuple[ShownColumn, ...] | None] | None = None


def count_parameters(statement: Statement) -> int:
    """Return how many parameters the question in a statement has: the largest n of its $n."""
    if statement.kind not in ASKS:
        return 0
    tree = parse_one(statement.asked or statement.text)
    numbers = [] if tree is None else numbers_in(tree)
    if numbers and not 1 <= numbers[0] <= numbers[-1] <= MOST_PARAMETERS:
        raise SqlProblem("42P02", f"a parameter must be $1 to ${MOST_PARAMETERS}.")
    return numbers[-1] if numbers else 0


def settle_types(declared: Sequence[int], found: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the type of each parameter: as the client said, else as the shadow found, else a text."""
    oids = list[int]()
    for place in range(count):
        said = declared[place] if place < len(declared) else 0
        seen = found[place] if place < len(found) else 0
        oid = said if said not in {0, 705} else seen if seen in KNOWN_TYPES and seen != 705 else 0
        oids.append(oid or TEXT)
    return tuple(oids)


@dataclass(frozen=True)
class Bind:
    """The message that opens a portal."""

    portal: str
    statement: str
    forms: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]

    def parameters(self, oids: Sequence[int]) -> list[Parameter]:
        """Return the parameters as values of their types."""
        if len(self.values) != len(oids):
            raise SqlProblem(
                "08P01", f"parameters must be as many as the statement has: {len(oids)}; got {len(self.values)}."
            )
        if len(self.forms) not in {0, 1, len(oids)}:
            raise SqlProblem("08P01", "formats must be none, one, or as many as parameters.")
        forms = self.forms if len(self.forms) == len(oids) else (self.forms or (0,)) * len(oids)
        return [
            read_parameter(number, oid, form, value)
            for number, (oid, form, value) in enumerate(zip(oids, forms, self.values, strict=True), 1)
        ]


def read_bind(sent: bytes) -> Bind:
    """Read the message."""
    body = MessageBody(sent)
    portal, statement = body.text(), body.text()
    forms = tuple(body.int16() for _ in range(body.int16()))
    values = list[bytes | None]()
    for _ in range(body.int16()):
        size = body.int32()
        values.append(None if size == -1 else body.take(size))
    results = tuple(body.int16() for _ in range(body.int16()))
    body.end()
    if not {*forms, *results} <= {0, 1}:
        raise SqlProblem("08P01", "a format must be 0 or 1.")
    return Bind(portal, statement, forms, tuple(values), results)
