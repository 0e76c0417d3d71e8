"""A column of an answer, and what it is for other programs. Light: whoever only shows answers needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from curador.study.values import Type


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """One column of the answer: Python's own values, None for NULL; with the ends of its intervals if it is released."""

    name: str
    type: Type
    values: list[Any]
    low: list[Any] | None = None
    high: list[Any] | None = None
    unproved: bool = False
    """It is made of released numbers, and no interval of it is proved."""


def arrow_type(kind: Type) -> Any:
    """Return what a column of this type is for other programs: whole numbers int64, other numbers float64."""
    import pyarrow as pa

    match kind:
        case Type.BOOLEAN:
            return pa.bool_()
        case Type.INTEGER:
            return pa.int64()
        case Type.DECIMAL | Type.FLOAT:
            return pa.float64()
        case Type.STRING:
            return pa.string()
        case Type.DATE:
            return pa.date32()
        case Type.TIMESTAMP:
            return pa.timestamp("us")
