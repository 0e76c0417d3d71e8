"""What a client is told when something is refused or fails: fields of our own errors, with their SQLSTATE.

Nothing else may reach a client: no text of another program that rows could have had a part in. What the shadow says is about
a statement and about empty tables, and of that only the fields that a person needs go on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from curador.errors import (
    BudgetExceeded,
    CuradorError,
    Failed,
    InvalidParameter,
    InvalidQuery,
    InvalidStudy,
    LedgerBusy,
    NotAllowed,
    NotPrivate,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

STATES: tuple[tuple[type[CuradorError], str], ...] = (
    (InvalidParameter, "22023"),
    (InvalidQuery, "42601"),
    (NotPrivate, "42501"),
    (NotAllowed, "42501"),
    (BudgetExceeded, "53400"),
    (LedgerBusy, "55P03"),
    (InvalidStudy, "55000"),
    (Failed, "XX000"),
)
"""The first that fits says what kind of error a program sees."""

UNEXPECTED = "Something on our side went wrong; the operator's log has more."

TOUCHED = "a statement about the study's tables must be a question that the curator can read"
TOUCHED_HINT = "SELECT with aggregates, such as count(*), FROM the table by its plain name; nobody reads rows."


class SqlProblem(Exception):  # noqa: N818 -- it is told to a client, as a refusal or as a failure
    """What goes to the client: a sentence of ours with its SQLSTATE; a hint, and the place in the text, counted from 1."""

    def __init__(
        self, state: str, sentence: str, hint: str | None = None, *, position: int | None = None, fatal: bool = False
    ) -> None:
        """Say what is wrong; a fatal one ends the connection."""
        self.state, self.sentence, self.hint, self.position, self.fatal = state, sentence, hint, position, fatal
        super().__init__(sentence)

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the message, by their letters."""
        severity = "FATAL" if self.fatal else "ERROR"
        fields = {"S": severity, "V": severity, "C": self.state, "M": self.sentence}
        if self.hint:
            fields["H"] = self.hint
        if self.position is not None:
            fields["P"] = str(self.position)
        return fields


def problem_of(error: CuradorError, text: str | None = None) -> SqlProblem:
    """Return what a client is told of one of our errors; `text` is what its place is a place of."""
    state = next((state for kind, state in STATES if isinstance(error, kind)), "XX000")
    return SqlProblem(state, error.sentence, error.hint, position=_position(error.place, text))


def refuse_touching() -> SqlProblem:
    """Return the refusal of a statement that touches a table of the study and is no question."""
    return SqlProblem("42501", f"{TOUCHED}.", TOUCHED_HINT)


def notice_fields(sentence: str, *, hint: str | None = None, state: str = "00000") -> dict[str, str]:
    """Return the fields of a notice."""
    return {"S": "NOTICE", "V": "NOTICE", "C": state, "M": sentence, **({"H": hint} if hint else {})}


_OF_THE_SHADOW = frozenset("SVCMDHP")


def fields_of_shadow(fields: Mapping[str, str]) -> dict[str, str]:
    """Return what a client is told of an error or notice of the shadow: not where in its sources, nor what it did inside.

    That a role may not read a table is how a question shows that was taken for something else.
    """
    if fields.get("C") == "42501" and "permission denied for table" in fields.get("M", ""):
        return refuse_touching().fields
    return {letter: text for letter, text in fields.items() if letter in _OF_THE_SHADOW}


_PLACE = re.compile(r"line ([0-9]{1,6}), column ([0-9]{1,6})")


def _position(place: object, text: str | None) -> int | None:
    """Return the place in the text, counted in letters from 1; an outcome of the service has it in words."""
    found = _PLACE.fullmatch(str(place))
    if found is None or text is None:
        return None
    line, column, lines = int(found[1]), int(found[2]), text.split("\n")
    if not 1 <= line <= len(lines) or column > len(lines[line - 1]) + 1:
        return None
    return sum(len(one) + 1 for one in lines[: line - 1]) + column
