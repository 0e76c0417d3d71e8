"""The same code on two neighbouring worlds, with the noise of the first: no statistics, no false alarms.

Whatever is published must be a function of what the mechanisms returned. So with those outputs frozen, two neighbouring
worlds must ask for the same releases in the same order, from inputs within the declared sensitivities, and end in the same
result. What differs is a leak, and the report points at the release.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from curador.audit.faces import Face, Faceless, error_face, face, same
from curador.mechanisms.seam import Call, Diverged, Unseen, recording, replaying
from curador.mechanisms.stretch import Stretch

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Replay", "replay", "same"]

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
    recorded: list[Call] = []
    seen: list[Call] = []
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


def _unequal(recorded: list[Call], seen: list[Call]) -> list[str]:
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
