"""What computing with one row costs, in nanoseconds: measured once, rounded up, the same for everybody.

The numbers were taken on DuckDB 2.0, one thread, for the expressions as they are lowered; `make attack` takes them again and
prints them beside these. They need not be those of your machine: what matters is that a logarithm is charged as a logarithm
and a long text as a long text, so that one limit stops every way of making one person's rows expensive.

A cost has two parts: for every row, and for every byte of the texts that are looked at; both stand in the catalogue of
`query/functions.py`. `like` and `replace` look for their pattern at every place: their cost a byte grows with what is looked
for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from curador.query.functions import FUNCTIONS
from curador.query.tree import Call, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.query.tree import Node

TEXT_CHARACTERS = 4_096
"""Texts are cut to so many characters when a version is prepared, and no function makes a longer one."""

TEXT_BYTES = 4 * TEXT_CHARACTERS
UNIT_TEXT_BYTES = 65_536
"""Bytes of one unit's texts in one column, all its rows together: of rows beyond that, the text is not kept."""

NAME_BYTES = 256
"""Bytes of a text that says who somebody is, or leads there. A longer one is nobody."""

_WRITTEN_BYTES = 32
"""A number or a time, written out."""

_LISTED = 3.0
"""Nanoseconds for one value of an IN list."""

_GUARD = 4.0
"""A check that a number is finite. What is guarded stands twice in the text: a filter computes it twice."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A unit's rows at one place of a plan: how many, and how many bytes of text they hold in each column together."""

    rows: int
    bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """What computing an expression on all of a unit's rows takes, and how many bytes of text come out."""

    nanoseconds: float
    bytes: int = 0


def cost(node: Node | None, texts: Texts) -> Cost:
    """Return what an expression takes on a unit's rows.

    Claim   Not below the sum over its calls of the measured cost of each, every call as often as a filter computes it.
    Needs   The measured costs; texts as long as `texts` says at most.
    """
    match node:
        case Ref():
            held = texts.bytes[node.index] if node.type is Type.STRING and node.index < len(texts.bytes) else 0
            return Cost(0.1 * held, held)
        case Literal():
            return Cost(0.0, texts.rows * len(str(node.value).encode()) if node.type is Type.STRING else 0)
        case Call():
            return _call(node, texts)
        case _:
            return Cost(0.0)


def total(nodes: Sequence[Node | None], texts: Texts) -> float:
    """Return what several expressions take together."""
    return sum(cost(one, texts).nanoseconds for one in nodes)


def _call(call: Call, texts: Texts) -> Cost:
    name, function = call.function, FUNCTIONS[call.function]
    parts = [cost(one, texts) for one in call.arguments]
    below = sum(
        part.nanoseconds if not function.guarded or not _computed(one) else 2 * part.nanoseconds + _GUARD * texts.rows
        for one, part in zip(call.arguments, parts, strict=True)
    )
    looked = sum(part.bytes for part in parts)
    if name == "in":
        listed = call.arguments[1:]
        letters = sum(_length(one) for one in listed)
        return Cost(
            below
            + texts.rows * (function.row + _LISTED * len(listed) + function.byte * letters)
            + function.byte * parts[0].bytes
        )
    if name in {"like", "ilike"}:
        own = texts.rows * function.row + parts[0].bytes * (
            _searching(_text(call.arguments[1])) + (10.0 if name == "ilike" else 0)
        )
        return Cost(below + own)
    if name == "replace":
        own = texts.rows * function.row + parts[0].bytes * (16.0 + 0.01 * _length(call.arguments[1]))
        return Cost(below + own, texts.rows * TEXT_BYTES)
    own = texts.rows * function.row + looked * function.byte
    if name == "cast" and looked:
        own += texts.rows * 100.0  # read by patterns
    return Cost(below + own, _bytes(call, texts, looked))


def _computed(node: Node) -> bool:
    """Whether a node is a number that could have become none on the way."""
    return isinstance(node, Call) and FUNCTIONS[node.function].number


def _bytes(call: Call, texts: Texts, looked: int) -> int:
    if call.type is not Type.STRING:
        return 0
    longest = texts.rows * TEXT_BYTES
    match call.function:
        case "cast":
            return looked or texts.rows * _WRITTEN_BYTES
        case "substring":
            return min(looked, texts.rows * 4 * max(_whole(call.arguments[-1]), 0))
        case "lower" | "upper":
            return min(2 * looked, longest)  # a small letter may take more bytes than its capital
        case _:
            return min(looked, longest)


def _searching(pattern: str) -> float:
    """Nanoseconds a byte of looking for a LIKE pattern.

    Without `_` each part between % is looked for as a whole. With it, parts that float are compared at every place, letter
    by letter: their cost a byte is that of the longest one.
    """
    if "_" not in pattern:
        return 0.3 + 0.01 * len(pattern)
    floating = pattern.split("%")[1:]
    return 1.0 + 1.5 * max(map(len, floating), default=0)


def _text(node: Node) -> str:
    return str(node.value) if isinstance(node, Literal) else "_" * TEXT_CHARACTERS


def _length(node: Node) -> int:
    return len(str(node.value).encode()) if isinstance(node, Literal) and isinstance(node.value, str) else 0


def _whole(node: Node) -> int:
    value = node.value if isinstance(node, Literal) else None
    return int(value) if isinstance(value, int) else TEXT_CHARACTERS
