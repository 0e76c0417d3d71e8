"""What a statement of the door's gave: columns and rows, handed out by a portal or a cursor as far as they are wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from curador.door import messages
from curador.door.problems import SqlProblem
from curador.door.values import OIDS, write
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.door.statements import Word


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of what is shown."""

    name: str
    type: Type = Type.STRING


@dataclass
class Rows:
    """A table and how far it was handed out: `at` rows stand before the next one.

    notices  what goes with it, said once
    """

    columns: tuple[ShownColumn, ...]
    rows: Sequence[tuple[Any, ...]]
    at: int = 0
    notices: list[str] = field(default_factory=list[str])

    def take(self, most: int) -> Sequence[tuple[Any, ...]]:
        """Return the next rows; 0: all that are left."""
        end = len(self.rows) if most <= 0 else min(self.at + most, len(self.rows))
        taken, self.at = self.rows[self.at : end], end
        return taken

    @property
    def over(self) -> bool:
        """Whether no row is left."""
        return self.at >= len(self.rows)


def lines_of(name: str, lines: Sequence[str]) -> Rows:
    """Return lines of text as a table of one column."""
    return Rows((ShownColumn(name),), [(line,) for line in lines])


def description(columns: Sequence[ShownColumn], forms: Sequence[int]) -> bytes:
    """Return the message that describes columns."""
    wanted = forms_of(columns, forms)
    return messages.row_description(
        (column.name, *OIDS[column.type], form) for column, form in zip(columns, wanted, strict=True)
    )


def write_rows(columns: Sequence[ShownColumn], rows: Sequence[tuple[Any, ...]], forms: Sequence[int]) -> list[bytes]:
    """Return the messages of rows."""
    wanted = forms_of(columns, forms)
    kinds = [column.type for column in columns]
    return [
        messages.data_row([write(value, kind, form) for value, kind, form in zip(row, kinds, wanted, strict=True)])
        for row in rows
    ]


def forms_of(columns: Sequence[ShownColumn], forms: Sequence[int]) -> Sequence[int]:
    """Return the form of each column: none said is text, one said is that of all."""
    if len(forms) <= 1:
        return [forms[0] if forms else 0] * len(columns)
    if len(forms) != len(columns):
        raise SqlProblem("08P01", f"formats must be as many as columns: {len(columns)}; got {len(forms)}.")
    return forms


# ---- cursors ---------------------------------------------------------------------------------------------------------------


def fetch(rows: Rows, words: Sequence[Word]) -> Sequence[tuple[Any, ...]]:
    """Return the rows that FETCH or MOVE passes, and stand where it ends. `at` counts the rows up to the current one."""
    direction, count = _direction(words)
    total, current = len(rows.rows), rows.at
    if direction == "absolute" or (direction == "relative" and abs(count) != 1):
        target = current + count if direction == "relative" else count if count >= 0 else total + 1 + count
        rows.at = min(max(target, 0), total + 1)
        return rows.rows[rows.at - 1 : rows.at] if 1 <= rows.at <= total else []
    if count < 0:
        rows.at = max(current + count, 0)
        passed = rows.rows[max(rows.at - 1, 0) if rows.at else 0 : max(current - 1, 0)]
        return list(reversed(passed))
    rows.at = min(current + count, total + 1)
    if count == 0:
        return rows.rows[current - 1 : current] if 1 <= current <= total else []
    return rows.rows[current : min(current + count, total)]


_ALL = 1 << 31


def _direction(words: Sequence[Word]) -> tuple[str, int]:
    """Return the direction and how far, of FETCH [direction] [FROM | IN] name."""
    said = list(words[1:-1])
    if said and said[-1].upper in {"FROM", "IN"}:
        said.pop()
    text = " ".join(word.text for word in said).lower().replace("- ", "-")
    heads = text.split()
    match heads:
        case [] | ["next"] | ["forward"]:
            return "by", 1
        case ["prior"] | ["backward"]:
            return "by", -1
        case ["first"]:
            return "absolute", 1
        case ["last"]:
            return "absolute", -1
        case ["all"] | ["forward", "all"]:
            return "by", _ALL
        case ["backward", "all"]:
            return "by", -_ALL
        case ["absolute" | "relative" as how, number]:
            return how, _count(number)
        case ["forward", number] | [number]:
            return "by", _count(number)
        case ["backward", number]:
            return "by", -_count(number)
        case _:
            raise SqlProblem("42601", "FETCH must say how many rows, FROM which cursor.", "FETCH 100 FROM a_cursor")


def _count(number: str) -> int:
    digits = number.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        raise SqlProblem("42601", "FETCH must say a number of rows.", "FETCH 100 FROM a_cursor")
    return int(number)
