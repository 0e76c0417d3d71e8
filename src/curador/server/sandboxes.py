"""Sandboxes of those who may ask: one for each asker, opened when it is first wanted, anew when its budget is used up.

Nobody shares one: whether an answer was stored there, and what is left of its budget, would tell of what others try.

Claim   A sandbox is closed when nobody is inside, and not before.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from curador.curator.sandbox import Sandbox, open_sandbox
from curador.server.refusals import TooMany

if TYPE_CHECKING:
    from collections.abc import Generator

    from curador.study.model import Study

MOST: Final = 16
"""Sandboxes that are open at a time, in one process; who was away longest makes room."""


@dataclass(slots=True)
class _Open:
    """One sandbox, how many are inside, and whether nobody comes in any more."""

    sandbox: Sandbox
    inside: int = 0
    over: bool = False


class Sandboxes:
    """The sandboxes of one process; threads share them."""

    def __init__(self, study: Study, units: int) -> None:
        """Open none yet; each has so many units."""
        self._study, self._units = study, units
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._open: dict[str, _Open] = {}

    @contextlib.contextmanager
    def of(self, holder: str) -> Generator[Sandbox]:
        """Be inside the sandbox of an asker."""
        one = self._enter(holder)
        try:
            yield one.sandbox
        finally:
            with self._lock:
                one.inside -= 1
                ends = one.over and not one.inside
            if ends:
                one.sandbox.close()

    def renew(self, holder: str, used: Sandbox) -> None:
        """Let the next who comes have a new one; called from inside of the old one."""
        with self._lock:
            held = self._open.get(holder)
            if held is not None and held.sandbox is used:
                self._open.pop(holder).over = True

    def close(self) -> None:
        """Close those in which nobody is; the others are closed by whoever leaves last."""
        with self._lock:
            held = [*self._open.values()]
            self._open.clear()
            for room in held:
                room.over = True
            idle = [one for one in held if not one.inside]
        for room in idle:
            room.sandbox.close()

    def _enter(self, holder: str) -> _Open:
        with self._lock:
            opening = self._opening.setdefault(holder, threading.Lock())
        with opening:  # whoever comes second waits for the first one's
            with self._lock:
                held = self._open.pop(holder, None)
                if held is not None:
                    held.inside += 1
                    self._open[holder] = held  # at the end: the latest
                    return held
                idle = self._make_room()
            if idle is not None:
                idle.sandbox.close()
            made = _Open(open_sandbox(self._study, units=self._units), inside=1)
            with self._lock:
                self._open[holder] = made
            return made

    def _make_room(self) -> _Open | None:
        if len(self._open) < MOST:
            return None
        name = next((name for name, one in self._open.items() if not one.inside), None)
        if name is None:
            raise TooMany("a sandbox must be free; all are in use.", hint="ask again in a moment.")
        idle = self._open.pop(name)
        idle.over = True
        return idle
