"""The same code on two neighbouring worlds, with the noise of the first: no statistics, no false alarms.

Whatever is published must be a function of what the mechanisms returned. So with those outputs frozen, two neighbouring
worlds must ask for the same releases in the same order, from inputs within the declared sensitivities, and end in the same
result. What differs is a leak, and the report points at the release.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from curador.mechanisms.seam import Call, Diverged, recording, replaying

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """How a run ended: a result, or an error of which only its class and words count."""

    result: object
    error: tuple[str, str] | None


def replay(function: Callable[[World], object], world: World, neighbour: World) -> Replay:
    """Run the function on a world, then on its neighbour with the same noisy outputs, and compare.

    Claim   No violation is reported if the function releases only through mechanisms whose declared sensitivities hold for
            this pair. The converse is about this pair and this run of noise only.
    Needs   The function returns what it would publish, and has no state that survives a call.
    Source  [CED+26]

    Values are private: the report names releases, mechanisms and what is wrong, never an input.
    """
    with recording() as recorded:
        first = _ending(function, world)
    with replaying(recorded) as seen:
        try:
            second = _ending(function, neighbour)
        except Diverged as finding:
            return Replay(len(recorded), (*_unequal(recorded, seen), f"{finding}: {_FLOW}"))
    found = _unequal(recorded, seen)
    if len(seen) < len(recorded):
        missing = recorded[len(seen)]
        found.append(f"release {len(seen) + 1} ({missing.mechanism}) is missing for the neighbour: {_FLOW}")
    found.extend(_endings(first, second))
    return Replay(len(recorded), tuple(found))


def _ending(function: Callable[[World], object], world: World) -> _Ending:
    try:
        return _Ending(function(world), None)
    except Diverged:
        raise
    except Exception as error:  # noqa: BLE001 -- whatever an analyst would see is part of the output
        return _Ending(None, (type(error).__name__, str(error)))


def _unequal(recorded: list[Call], seen: list[Call]) -> list[str]:
    """What is wrong with the releases that both worlds made."""
    found: list[str] = []
    for place, (before, now) in enumerate(zip(recorded, seen, strict=False), start=1):
        name = f"release {place} ({before.mechanism})"
        if before.mechanism != now.mechanism or before.size != now.size:
            found.append(f"{name} has other public parameters for the neighbour: {now.mechanism}, size {now.size}")
        elif np.shape(before.value) != np.shape(now.value):
            found.append(f"{name} has an input of another shape for the neighbour")
        elif not before.mechanism.within(before.value, now.value):
            found.append(f"{name} has inputs further apart than its declared sensitivity")
    return found


def _endings(first: _Ending, second: _Ending) -> list[str]:
    if (first.error is None) != (second.error is None):
        raised, name = ("first world", first.error) if first.error else ("neighbour", second.error)
        return [f"only the {raised} ends in an error ({(name or ('', ''))[0]}): errors depend on the data"]
    if first.error is not None and first.error != second.error:
        return ["the two worlds end in different errors: errors depend on the data"]
    if not same(first.result, second.result):
        return ["the result differs although every release gave the same output: something else of the data is published"]
    return []


def same(one: object, other: object) -> bool:
    """Whether two results are equal to somebody who sees every bit of them: types, shapes, signs of zero and NaN included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        left, right = cast("Any", one), cast("Any", other)
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return same(left.tolist(), right.tolist()) if left.dtype.hasobject else left.tobytes() == right.tobytes()
    if isinstance(one, float | np.floating):
        return np.asarray(one).tobytes() == np.asarray(other).tobytes()
    if isinstance(one, dict):
        left, right = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
        return same(list(left.items()), list(right.items()))  # the order of keys is published too
    if isinstance(one, list | tuple):
        left, right = cast("list[Any]", one), cast("list[Any]", other)
        return len(left) == len(right) and all(itertools.starmap(same, zip(left, right, strict=True)))
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one))
    return bool(one == other)
