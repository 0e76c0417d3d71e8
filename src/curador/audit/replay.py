"""Replay: the same code on two neighbouring worlds, with the noise of the first, and results compared in every bit.

Faces are results as somebody sees them who looks at every bit: equal faces cannot be told apart.

Replay needs no statistics and has no false alarms.

Whatever is published must be a function of what the mechanisms returned. So with those outputs frozen, two neighbouring
worlds must ask for the same releases in the same order, from inputs within the declared sensitivities, and end in the same
result. What differs is a leak, and the report points at the release.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import sys
import uuid
import warnings
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from curador.mechanisms.gaussian import Stretch
from curador.mechanisms.seam import Diverged, DrawCall, Unseen, recording, replaying

if TYPE_CHECKING:
    from collections.abc import Callable


# ---- faces -----------------------------------------------------------------------------------------------------------------


Face: TypeAlias = tuple[Any, ...]
"""A type, then texts, bytes and faces: nothing that is equal to something of another type."""

_WORDS = (int, bool, str, bytes, bytearray, range, decimal.Decimal, fractions.Fraction, uuid.UUID, type(None), type(Ellipsis))
_TIMES = (dt.date, dt.time, dt.datetime, dt.timedelta, dt.timezone)
_PLAIN = frozenset({*_WORDS, *_TIMES})
"""Types whose repr shows everything."""

_MAPS = frozenset({dict, OrderedDict, Counter})


class Faceless(TypeError):  # noqa: N818 -- a refusal, as in curador.errors
    """A value of a type that nothing is known about: equality of its own may be lax."""


def face(value: object) -> Face:
    """Return the type and every bit of a value: signs of zero, payloads of NaN, trailing zeros, the order of keys.

    Raises Faceless for types that are not known here. A set shows what it holds, not the order in which it grew.
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind, repr(value)
    if kind is float:
        return kind, np.float64(cast("float", value)).tobytes()
    if kind is complex:
        return kind, np.complex128(cast("complex", value)).tobytes()
    if isinstance(value, type):
        return (type, value)
    if isinstance(value, enum.Enum):
        return kind, value.name
    if isinstance(value, np.generic) or kind is np.ndarray:
        return _array(value)
    held = _faces_within(value)
    if held is None:
        raise Faceless(kind.__name__)
    return kind, *held, *_attributes(value)


def _faces_within(value: object) -> Face | None:
    """The faces of what a container holds; None where it is none that is known."""
    kind = type(value)
    if kind in _MAPS:  # the order of keys is published too
        return tuple((face(key), face(item)) for key, item in cast("dict[Any, Any]", value).items())
    if kind in {set, frozenset}:
        return tuple(sorted((face(item) for item in cast("set[Any]", value)), key=repr))
    if kind in {list, tuple} or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return tuple(face(item) for item in cast("list[Any]", value))
    if dataclasses.is_dataclass(value):
        return tuple((field.name, face(getattr(value, field.name))) for field in dataclasses.fields(value))
    return () if _is_estimator(value) else None  # parameters, and what was learned, are attributes


def _is_estimator(value: object) -> bool:
    """Whether it is one of our own; without their room loaded there is none, and scikit-learn is not needed."""
    room = sys.modules.get("curador.learn.base")
    return room is not None and isinstance(value, room.PrivateEstimator)


def _attributes(value: object) -> Face:
    own: dict[str, object] | None = getattr(value, "__dict__", None)
    return () if not own else tuple((name, face(item)) for name, item in own.items())


def _array(value: object) -> Face:
    array = np.asarray(cast("Any", value))
    head = (type(value), repr(array.dtype), repr(array.shape))
    if array.dtype.hasobject:
        return *head, face(array.ravel().tolist())
    return *head, array.tobytes()


def error_face(error: BaseException | None) -> Face:
    """Return what an analyst sees of an error: class, words, arguments, notes, attributes, and the same of its causes.

    Where in the code it was raised is not part of it.
    """
    if error is None:
        return ()
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return type(error), str(error), face(error.args), _attributes(error), error_face(behind)


def same(one: object, other: object) -> bool:
    """Whether two results are equal to somebody who sees every bit of them: types, shapes, signs of zero and NaN included.

    Raises Faceless (a TypeError) for types that are not known here.
    """
    return face(one) == face(other)


# ---- replay ----------------------------------------------------------------------------------------------------------------


_FLOW = "control flow depends on the data"

World = TypeVar("World")


@dataclass(frozen=True, slots=True)
class Replay:
    """What was found: how many releases the first world made, and a sentence for each violation."""

    releases: int
    violations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.violations

    def __str__(self) -> str:
        return "\n".join(self.violations) or f"{self.releases} releases, no violation"


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a run ended, as faces: a result, or an error by its name; the warnings shown on the way; what has no face."""

    result: Face
    error: str | None
    warned: Face
    faceless: str | None


def replay(function: Callable[[World], object], world: World, neighbour: World) -> Replay:
    """Run the function on a world, then on its neighbour with the same noisy outputs, and compare.

    Claim   No violation is reported if the function releases only through mechanisms whose declared sensitivities hold for
            this pair, and returns types that can be compared bit by bit: numbers, texts, times, arrays, containers and
            dataclasses of such, fitted estimators of `curador.learn`. The converse is about this pair and this run of noise
            only.
    Needs   The function returns what it would publish, and has no state that survives a call: errors and warnings are looked
            at, prints and files are not. Its threads end before it does; its releases stay in this process.
    Source  [CED+26]

    Values are private: the report names releases, mechanisms and what is wrong, never an input. While a replay runs,
    releases in threads of others are refused.
    """
    recorded: list[DrawCall] = []
    seen: list[DrawCall] = []
    try:
        with recording() as recorded:
            first = _ending(function, world)
        with replaying(recorded) as seen:
            second = _ending(function, neighbour)
    except Diverged as finding:
        words = str(finding) if isinstance(finding, Unseen) else f"{finding}: {_FLOW}"
        return Replay(len(recorded), (*_unequal(recorded, seen), words))
    found = _unequal(recorded, seen)
    if len(seen) < len(recorded):
        missing = recorded[len(seen)]
        found.append(f"release {len(seen) + 1} ({missing.mechanism}) is missing for the neighbour: {_FLOW}")
    found.extend(_endings(first, second))
    return Replay(len(recorded), tuple(found))


def _ending(function: Callable[[World], object], world: World) -> _Ending:
    error: BaseException | None = None
    result: object = None
    with warnings.catch_warnings(record=True) as shown:
        try:
            result = function(world)
        except (Exception, SystemExit) as raised:  # noqa: BLE001 -- whatever an analyst would see is part of the output
            error = raised
    warned = tuple((warning.category, str(warning.message)) for warning in shown)
    name = None if error is None else type(error).__name__
    try:
        return _Ending(face(result) if error is None else error_face(error), name, warned, None)
    except Faceless as unknown:
        return _Ending((), name, warned, str(unknown))


def _unequal(recorded: list[DrawCall], seen: list[DrawCall]) -> list[str]:
    """What is wrong with the releases that both worlds made."""
    found: list[str] = []
    sequences: dict[Stretch, tuple[list[Any], list[Any]]] = {}
    for place, (before, now) in enumerate(zip(recorded, seen, strict=False), start=1):
        name = f"release {place} ({before.mechanism})"
        if before.mechanism != now.mechanism or before.size != now.size:
            found.append(f"{name} has other public parameters for the neighbour: {now.mechanism}, size {now.size}")
        elif np.shape(before.value) != np.shape(now.value):
            found.append(f"{name} has an input of another shape for the neighbour")
        elif not before.mechanism.within(before.value, now.value):
            found.append(f"{name} has inputs further apart than its declared sensitivity")
        elif isinstance(before.mechanism, Stretch):
            for whole, part in zip(sequences.setdefault(before.mechanism, ([], [])), (before.value, now.value), strict=True):
                whole.append(np.ravel(part))
    for stretch, (one, other) in sequences.items():
        if not stretch.within(np.concatenate(one), np.concatenate(other)):
            found.append(f"the sequence {stretch} has inputs further apart, all together, than its declared sensitivity")
    return found


def _endings(first: _Ending, second: _Ending) -> list[str]:
    found: list[str] = []
    if first.warned != second.warned:
        found.append("the two worlds show different warnings: warnings depend on the data")
    if (first.error is None) != (second.error is None):
        raised, name = ("first world", first.error) if first.error else ("neighbour", second.error)
        return [*found, f"only the {raised} ends in an error ({name}): errors depend on the data"]
    unknown = first.faceless or second.faceless
    if unknown is not None:
        what = "result" if first.error is None else "error"
        return [*found, f"the {what} holds a {unknown}, which cannot be compared bit by bit: return plain values or arrays"]
    if first.result != second.result:
        if first.error is not None:
            return [*found, "the two worlds end in different errors: errors depend on the data"]
        what = "something else of the data is published"
        found.append(f"the result differs although every release gave the same output: {what}")
    return found
