"""Expressions over released values and keys, by the SQL that the same expressions have over rows: one meaning for both.

A key is what its column is; a count is a whole number; whatever else is released is a double, and so is arithmetic with it.
One rule is added to the catalogue: a quotient whose divisor is itself released is NULL where that divisor is not above 0,
since noise alone may have put it there.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.column import arrow_type
from curador.plan.model import estimates_of
from curador.query.functions import FUNCTIONS
from curador.query.tree import Call, Estimated, Key, Literal, Ref
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from curador.engines.base import KeyValue
    from curador.query.tree import Node
    from curador.randomness.entropy import BoolArray


LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The ends of whole numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """One value a row: 64-bit integers, doubles, booleans, all else as objects; what stands at a NULL means nothing."""

    values: NDArray[Any]
    null: BoolArray

    def __len__(self) -> int:
        return len(self.values)

    def of(self, kind: Type | None) -> Vector:
        """Return this column as one of the type: whole numbers as doubles; else only a column of NULLs can be of another."""
        wanted = _dtype(kind)
        if self.values.dtype == wanted:
            return self
        if self.values.dtype == np.int64 and wanted == np.float64:
            return Vector(self.values.astype(np.float64), self.null)
        return Vector(np.zeros(len(self), wanted), np.ones(len(self), np.bool_))

    def listed(self) -> list[Any]:
        """Return the values as Python's own, None where they are NULL."""
        out: list[Any] = self.values.tolist()
        for place in np.flatnonzero(self.null).tolist():
            out[place] = None
        return out


def numbers(values: NDArray[Any], null: BoolArray) -> Vector:
    """Return doubles, NULL also where they are not finite: functions are total."""
    floats = np.asarray(values, np.float64)
    missing = null | ~np.isfinite(floats)
    return Vector(np.where(missing, 0.0, floats) + 0.0, missing)  # one zero


def wholes(values: NDArray[Any]) -> Vector:
    """Return integers of any size as 64-bit ones, the ends of their range beyond it."""
    if values.dtype == object:
        values = np.array([min(max(value, LEAST), MOST) for value in values.tolist()], np.int64)
    return Vector(values.astype(np.int64), np.zeros(len(values), np.bool_))


def vector_of(values: Sequence[Any], kind: Type | None) -> Vector:
    """Return a column of Python values, None among them for NULL; a whole number outside 64 bits is NULL as well."""
    dtype = _dtype(kind)
    held = [None if value is None or (dtype == np.int64 and not LEAST <= value <= MOST) else value for value in values]
    null = np.array([value is None for value in held], np.bool_)
    out = np.zeros(len(held), dtype)
    if dtype.hasobject:
        out[:] = held
    else:
        out[:] = [0 if value is None else value for value in held]
    return Vector(out, null)


def _dtype(kind: Type | None) -> np.dtype[Any]:
    if kind is Type.INTEGER:
        return np.dtype(np.int64)
    if kind is None or kind.numeric:
        return np.dtype(np.float64)
    return np.dtype(np.bool_) if kind is Type.BOOLEAN else np.dtype(object)


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedFrame:
    """What an expression is computed from: the rows' keys, with their types, and the values of the block's estimates."""

    rows: int
    keys: tuple[Sequence[KeyValue], ...]
    kinds: tuple[Type, ...]
    estimates: tuple[Vector, ...]
    known: dict[tuple[Node, Type], Vector] = field(
        default_factory=dict[tuple["Node", Type], Vector], repr=False, kw_only=True
    )
    """What was computed before."""

    def kind_of(self, estimate: int) -> Type:
        """Return what a released value is: a whole number, or a double."""
        return Type.INTEGER if self.estimates[estimate].values.dtype == np.int64 else Type.FLOAT


def evaluate(node: Node, frame: ReleasedFrame, kind: Type | None = None) -> Vector:
    """Return the value of an expression in every row, in the type given, or in its own."""
    wanted = kind or own_type(node, frame)
    match node:
        case Literal():
            return _constant(node, frame.rows, wanted)
        case Key():
            return vector_of(frame.keys[node.index], frame.kinds[node.index]).of(wanted)
        case Estimated():
            return frame.estimates[node.index].of(wanted)
        case _:
            compute([(node, wanted)], frame)
            return frame.known[node, wanted]


def compute(wanted: Iterable[tuple[Node, Type]], frame: ReleasedFrame) -> None:
    """Compute many expressions at once, each in a type, and keep their values; what is no call needs no computing."""
    from curador.engines.calculator import TABLE, calculate
    from curador.engines.lower.dialect_duckdb import DUCKDB
    from curador.engines.lower.expression import lower_text
    from curador.engines.lower.sql import mark_generated, select

    missing = [one for one in dict.fromkeys(wanted) if isinstance(one[0], Call) and one not in frame.known]
    if not missing:
        return
    columns = _Columns(frame)
    rows = [(columns.over(node), kind) for node, kind in missing]
    names = [f"c{place}" for place in range(len(columns.leaves))]
    lowered = [lower_text(node, names, DUCKDB, kind) for node, kind in rows]
    found = calculate(mark_generated(select(lowered, TABLE)), columns.table())
    values = zip(*found, strict=True) if found else ((),) * len(missing)
    for pair, column in zip(missing, values, strict=True):
        frame.known[pair] = vector_of(column, pair[1])


def own_type(node: Node, frame: ReleasedFrame) -> Type:
    """Return what an expression is over released values; a whole number written with more than 64 bits is a double."""
    if isinstance(node, Literal) and node.type is Type.INTEGER and isinstance(node.value, int):
        return Type.INTEGER if LEAST <= node.value <= MOST else Type.FLOAT
    return settle_types(node, frame).type or Type.FLOAT


def settle_types(node: Node, frame: ReleasedFrame) -> Node:
    """Return the expression with the types that released values have: arithmetic with a double is one."""
    match node:
        case Estimated():
            return Estimated(node.index, frame.kind_of(node.index))
        case Call() if estimates_of(node):
            held = tuple(settle_types(argument, frame) for argument in node.arguments)
            double = any(value.type in {Type.FLOAT, Type.DECIMAL} for value in _values(node.function, held))
            becomes = node.type is Type.INTEGER and double and FUNCTIONS[node.function].follows
            return replace(node, arguments=held, type=Type.FLOAT if becomes else node.type)
        case _:
            return node


def _values(function: str, arguments: tuple[Node, ...]) -> tuple[Node, ...]:
    """The arguments that a result may be: not the conditions of a CASE, nor what NULLIF compares with."""
    match function:
        case "case":
            return *arguments[1:-1:2], arguments[-1]
        case "nullif":
            return arguments[:1]
        case _:
            return arguments


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The released table, as far as expressions look at it."""

    frame: ReleasedFrame
    leaves: dict[Key | Estimated, int] = field(default_factory=dict["Key | Estimated", int])

    def over(self, node: Node) -> Node:
        """Return the expression over the table's columns."""
        return self._over(settle_types(node, self.frame))

    def _over(self, node: Node) -> Node:
        match node:
            case Key():
                kind = self.frame.kinds[node.index]
                return Ref(self.leaves.setdefault(Key(node.index, kind), len(self.leaves)), kind)
            case Estimated():
                return Ref(self.leaves.setdefault(node, len(self.leaves)), node.type)
            case Call():
                held = [self._over(argument) for argument in node.arguments]
                if node.function in {"/", "//"} and estimates_of(node.arguments[1]):
                    held[1] = _above_zero(held[1])
                return replace(node, arguments=tuple(held))
            case _:
                return node

    def table(self) -> Any:
        """Return the columns as an Arrow table, one of zeros where there is none: it has rows, too."""
        import pyarrow as pa

        held = {
            f"c{place}": pa.array(vector.values, arrow_type(leaf.type), mask=vector.null)
            for leaf, place in self.leaves.items()
            for vector in [evaluate(leaf, self.frame, leaf.type)]
        }
        return pa.table(held or {"c": pa.array(np.zeros(self.frame.rows, np.int8))})


def _above_zero(divisor: Node) -> Node:
    """A released divisor, NULL where it is not above 0."""
    positive = Call(">", (divisor, Literal(0, Type.INTEGER)), Type.BOOLEAN)
    return Call("case", (positive, divisor, Literal(None, None)), divisor.type or Type.FLOAT)


def _constant(node: Literal, rows: int, kind: Type) -> Vector:
    """A column of one written value, as its type says."""
    value: Any = node.value
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool) and kind is not Type.INTEGER:
        try:
            value = float(value)
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    if kind is Type.TIMESTAMP and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    one = vector_of([value], kind)
    return Vector(np.repeat(one.values, rows), np.repeat(one.null, rows))
