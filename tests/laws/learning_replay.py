"""Neighbour replay of a fit: what two neighbouring tables would release, before noise, given the same releases so far.

The first world is fitted with noise, and what came out is kept. The second is fitted to the same outcomes: whatever its own
integers are, each release says what the first one said, so that everything that depends on releases is the same. Then every
release of the second must lie within the declared length of the first one's. No statistics: one violation is a bug.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from curador.learn import base
from curador.learn.oracles import directions
from curador.learn.release import Releaser

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from curador.learn.base import Facts, PrivateEstimator

SLACK = 1e-9
"""Of drawn directions, which are not exact: what floating point may add to a range."""


@dataclass
class Seen:
    """One release before its noise: the integers, the declared length, and what came out."""

    name: str
    integers: list[int]
    length: int
    step: float
    shape: tuple[int, ...]
    out: Any


@dataclass
class Drawn:
    """One drawn direction: the matrix and the concentration of its law, the range that is paid for, and what came out."""

    matrix: Any
    concentration: float
    paid: float
    out: Any


@dataclass
class Script:
    """What the first world released, and how far the second has read it."""

    seen: list[Any] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    read: int | None = None

    def following(self, kind: type) -> Any:
        """Return the next release of the first world; None where there is no such."""
        place = self.read or 0
        self.read = place + 1
        found = self.seen[place] if place < len(self.seen) else None
        if not isinstance(found, kind):
            self.violations.append(f"release {place}: only one of the worlds makes it")
            return None
        return found


def violations(estimator: PrivateEstimator, facts: Facts, one: Any, other: Any) -> list[str]:
    """Return in what the releases of two neighbours differ by more than was declared; empty: as it should be."""
    plan = estimator._plan(estimator._goal(), facts)  # noqa: SLF001 -- a fit without its reading
    script = Script()
    with _watched(script):
        estimator._fitted(one, facts, plan)  # noqa: SLF001 -- idem
    script.read = 0
    with _watched(script):
        estimator._fitted(other, facts, plan)  # noqa: SLF001 -- idem
    if script.read != len(script.seen):
        script.violations.append("one world makes more releases")
    return script.violations


@contextmanager
def _watched(script: Script) -> Generator[None]:
    def watched(plan: Any, progress: Any) -> Releaser:
        return _Watched(plan, progress, script=script)

    with mock.patch.object(base, "Releaser", watched), mock.patch.object(directions, "direction", _direction(script)):
        yield


class _Watched(Releaser):
    """A releaser that writes or follows a script."""

    def __init__(self, plan: Any, progress: Any, *, script: Script) -> None:
        super().__init__(plan, progress)
        self.script = script

    def noisy(self, name: str, integers: Any, *, length: int, step: float) -> Any:
        out = super().noisy(name, integers, length=length, step=step)
        own = Seen(name, [int(one) for one in np.ravel(integers)], length, step, np.shape(integers), out)
        if self.script.read is None:
            self.script.seen.append(own)
            return out
        first = self.script.following(Seen)
        if first is None:
            return out
        self.script.violations.extend(_compared(first, own, gaussian=self.plan.gaussian))
        return first.out.copy()


def _compared(first: Seen, own: Seen, *, gaussian: bool) -> list[str]:
    if (first.name, first.length, first.step, first.shape) != (own.name, own.length, own.step, own.shape):
        return [f"{own.name}: what is public differs"]
    apart = [abs(a - b) for a, b in zip(first.integers, own.integers, strict=True)]
    moved, most = (sum(a * a for a in apart), own.length**2) if gaussian else (sum(apart), own.length)
    return [f"{own.name}: moved by {(moved / most) ** (0.5 if gaussian else 1)} of its length"] if moved > most else []


def _direction(script: Script) -> Callable[..., Any]:
    real = directions.direction

    def drawn(releaser: Any, name: str, matrix: Any, *, extent: float) -> Any:
        beta = directions.concentration(releaser.plan, name, extent)
        out = real(releaser, name, matrix, extent=extent)
        own = Drawn(np.array(matrix), beta, float(1 / releaser.plan.multiplier(name)), out)
        if script.read is None:
            script.seen.append(own)
            return out
        first = script.following(Drawn)
        if first is None:
            return out
        values = np.linalg.eigvalsh(first.matrix - own.matrix)
        if first.concentration != own.concentration:
            script.violations.append(f"{name}: what is public differs")
        if beta * (values[-1] - values[0]) > own.paid * (1 + SLACK):
            script.violations.append(f"{name}: a range of {beta * (values[-1] - values[0]) / own.paid} of what is paid for")
        return first.out.copy()

    return drawn
