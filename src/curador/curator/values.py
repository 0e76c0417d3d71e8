"""Expressions over released values and keys, a column at a time: every function of `query/functions.py`, total, with NULLs.

Numbers are doubles. One rule is added to the catalogue: a quotient whose divisor is itself released is NULL where that
divisor is not above 0, since noise alone may have put it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.curator import scalars
from curador.curator.vectors import Vector, constant, dtype_of, numbers, vector_of
from curador.plan.parts import estimates_of
from curador.query.tree import Call, Estimated, Key, Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from curador.query.tree import Node


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What an expression is computed from: the rows' keys and the values of the block's estimates."""

    rows: int
    keys: tuple[Vector, ...]
    estimates: tuple[Vector, ...]


def evaluate(node: Node, frame: Frame) -> Vector:
    """Return the value of an expression in every row."""
    match node:
        case Literal():
            return constant(node.value, node.type, frame.rows)
        case Key():
            return frame.keys[node.index]
        case Estimated():
            return frame.estimates[node.index]
        case Call():
            with np.errstate(all="ignore"):
                return _call(node, frame)
        case _:
            raise TypeError("an expression over released values has no other leaves")


def _call(call: Call, frame: Frame) -> Vector:
    name = call.function
    held = [evaluate(one, frame) for one in call.arguments]
    if name in _NUMERIC:
        null = np.logical_or.reduce([one.null for one in held])
        return numbers(_NUMERIC[name](*(one.of(Type.FLOAT).values for one in held)), null)
    if name in {"/", "//"}:
        above, below = held[0].of(Type.FLOAT), held[1].of(Type.FLOAT)
        none = below.values <= 0 if estimates_of(call.arguments[1]) else below.values == 0
        quotient = above.values / np.where(none, 1.0, below.values)
        return numbers(quotient if name == "/" else np.trunc(quotient), above.null | below.null | none)
    if name in _COMPARED:
        return _compared(name, held[0], held[1])
    if name in _CHOSEN:
        return _CHOSEN[name](call, held)
    if name == "cast":
        return _cast(call, held[0])
    return _each(_SCALAR[name], held, call.type)


# ---- numbers -------------------------------------------------------------------------------------------------------


def rounded(values: NDArray[Any], digits: NDArray[Any]) -> NDArray[Any]:
    """Return values rounded half away from 0 to decimal digits, negative ones before the point."""
    factor = 10.0 ** np.abs(digits)
    scaled = np.where(digits >= 0, values * factor, values / factor)
    whole = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    near = np.where(digits >= 0, whole / factor, whole * factor)
    return np.where(np.abs(scaled) < 2.0**52, near, values)  # larger ones have no digits to round


def _rounded(values: NDArray[Any], digits: NDArray[Any] | float = 0.0) -> NDArray[Any]:
    return rounded(values, np.asarray(digits))


def _remainder(above: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    return np.where(below == 0, np.nan, np.fmod(above, np.where(below == 0, 1.0, below)))


_NUMERIC: dict[str, Callable[..., NDArray[Any]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "%": _remainder,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "round": _rounded,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
    "ln": np.log,
    "log10": np.log10,
    "exp": np.exp,
    "power": np.power,
}


# ---- truths --------------------------------------------------------------------------------------------------------


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _compared(name: str, left: Vector, right: Vector) -> Vector:
    null = left.null | right.null
    if object not in (left.values.dtype, right.values.dtype):
        return Vector(_COMPARED[name](left.values, right.values), null)
    out = np.zeros(len(left), np.bool_)
    compare = _COMPARED[name]
    for place in np.flatnonzero(~null).tolist():
        one, other = left.values[place], right.values[place]
        if type(one) is not type(other):  # a date beside a timestamp
            one, other = scalars.moment(one), scalars.moment(other)
        out[place] = bool(compare(one, other))
    return Vector(out, null)


def both(left: Vector, right: Vector) -> Vector:
    """Return the three-valued AND: false wherever one is."""
    false = (~left.null & ~left.values) | (~right.null & ~right.values)
    return Vector(~false, (left.null | right.null) & ~false)


def negated(truth: Vector) -> Vector:
    """Return the three-valued NOT."""
    return Vector(~truth.values, truth.null)


def _all(_: Call, held: Sequence[Vector]) -> Vector:
    out, *others = (one.of(Type.BOOLEAN) for one in held)
    for one in others:
        out = both(out, one)
    return out


def _any(call: Call, held: Sequence[Vector]) -> Vector:
    return negated(_all(call, [negated(one.of(Type.BOOLEAN)) for one in held]))


def _not(_: Call, held: Sequence[Vector]) -> Vector:
    return negated(held[0].of(Type.BOOLEAN))


def _is_null(_: Call, held: Sequence[Vector]) -> Vector:
    return Vector(held[0].null.copy(), np.zeros(len(held[0]), np.bool_))


def _in(call: Call, held: Sequence[Vector]) -> Vector:
    return _any(call, [_compared("=", held[0], one) for one in held[1:]])


# ---- choices -------------------------------------------------------------------------------------------------------


def _where(condition: NDArray[Any], one: Vector, other: Vector) -> Vector:
    return Vector(np.where(condition, one.values, other.values), np.where(condition, one.null, other.null))


def _case(call: Call, held: Sequence[Vector]) -> Vector:
    arms = [one.of(call.type) for one in held[1::2]]
    last = held[-1].of(call.type) if len(held) % 2 else constant(None, call.type, len(held[0]))
    for condition, arm in zip(held[-2 - len(held) % 2 :: -2], arms[::-1], strict=True):
        truth = condition.of(Type.BOOLEAN)
        last = _where(truth.values & ~truth.null, arm, last)
    return last


def _coalesce(call: Call, held: Sequence[Vector]) -> Vector:
    out, *others = (one.of(call.type) for one in held)
    for one in others:
        out = _where(out.null, one, out)
    return out


def _nullif(_: Call, held: Sequence[Vector]) -> Vector:
    same = _compared("=", held[0], held[1])
    return Vector(held[0].values, held[0].null | (same.values & ~same.null))


def _least(call: Call, held: Sequence[Vector]) -> Vector:
    return _furthest(call, held, "<")


def _greatest(call: Call, held: Sequence[Vector]) -> Vector:
    return _furthest(call, held, ">")


def _furthest(call: Call, held: Sequence[Vector], better: str) -> Vector:
    out, *others = (one.of(call.type) for one in held)
    for one in others:
        wins = _compared(better, one, out)
        out = _where((out.null & ~one.null) | (wins.values & ~wins.null), one, out)
    return out


_CHOSEN: dict[str, Callable[[Call, Sequence[Vector]], Vector]] = {
    "and": _all,
    "or": _any,
    "not": _not,
    "is_null": _is_null,
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "least": _least,
    "greatest": _greatest,
}


# ---- one value at a time -------------------------------------------------------------------------------------------


_SCALAR: dict[str, Callable[..., Any]] = {
    "like": scalars.like,
    "ilike": scalars.ilike,
    "starts_with": str.startswith,
    "lower": str.lower,
    "upper": str.upper,
    "trim": scalars.trim,
    "length": scalars.length,
    "concat": scalars.concat,
    "substring": scalars.substring,
    "replace": scalars.replace,
    "date_trunc": scalars.date_trunc,
    "extract": scalars.extract,
    "date_diff": scalars.date_diff,
    "date_add": scalars.date_add,
}


def _each(function: Callable[..., Any], held: Sequence[Vector], kind: Type) -> Vector:
    null = np.logical_or.reduce([one.null for one in held])
    out = np.zeros(len(null), dtype_of(kind))
    columns = [one.values.tolist() for one in held]
    for place in np.flatnonzero(~null).tolist():
        out[place] = function(*(column[place] for column in columns))
    return Vector(out, null)


def _cast(call: Call, held: Vector) -> Vector:
    kind, source = call.type, call.arguments[0].type
    if held.values.dtype == np.float64 and kind.numeric:
        return numbers(np.rint(held.values), held.null | ~(np.abs(held.values) < 2.0**63)) if kind is Type.INTEGER else held
    values = held.listed()
    if kind is Type.STRING and source is Type.INTEGER:
        values = [None if value is None else int(value) for value in values]
    cast = scalars.cast_to(kind)
    return vector_of([None if value is None else cast(value) for value in values], kind)
