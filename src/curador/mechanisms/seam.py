"""The one place where a mechanism meets randomness; recorders stand here.

Every release ends in `perform(mechanism, value)`, the value being exact integers on the mechanism's grid (of a drawn
direction: a matrix). So do draws that nobody sees, as which record is met when. A recorder sees all of them; a replay gives
recorded outputs back and sees what another world would have asked. Nobody else asks for entropy
(`tests/docs/test_noise_door.py`).
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from curador.randomness.entropy import entropy

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from curador.randomness.entropy import Entropy


class Drawing(Protocol):
    """What a mechanism is at the seam."""

    def draw(self, value: Any, source: Entropy, size: int | None = None) -> Any:
        """Return an exact output for an exact input; with size, that many independent ones along a first axis."""
        ...

    def within(self, one: Any, other: Any) -> bool:
        """Whether two exact inputs differ by no more than the declared sensitivity."""
        ...


@runtime_checkable
class Coupled(Drawing, Protocol):
    """A draw that is never released, as the order of records: another world need not draw the same, but what goes with it."""

    def coupled(self, value: Any, output: Any, other: Any) -> Any:
        """Return the output that a neighbour's input is taken to draw where `value` drew `output`.

        Claim   A coupling: what both inputs draw is drawn as before; what only `other` draws is any one of what it may draw.
        """
        ...


@dataclass(frozen=True, slots=True)
class DrawCall:
    """One release: who drew, from what, and what came out."""

    mechanism: Drawing
    value: Any
    size: int | None
    output: Any


class Diverged(BaseException):
    """A replayed run asked for other releases than the recorded one. No `except Exception` of that run swallows it."""


class Unseen(Diverged):
    """A release while a recorder stood that does not see it, as from another thread."""


@dataclass(slots=True, eq=False)
class _Recorder:
    calls: list[DrawCall]
    script: Sequence[DrawCall] | None = None
    finding: Diverged | None = None

    def perform(self, mechanism: Drawing, value: Any, size: int | None) -> Any:
        script = self.script
        output = _draw(mechanism, value, size) if script is None else self._scripted(script, mechanism, value, size)
        # copies: a function that writes into what it was given must not rewrite the record
        self.calls.append(DrawCall(mechanism, deepcopy(value), size, deepcopy(output)))
        return deepcopy(output)

    def _scripted(self, script: Sequence[DrawCall], mechanism: Drawing, value: Any, size: int | None) -> Any:
        place = len(self.calls)
        if place >= len(script):
            raise self.found(Diverged(f"release {place + 1} was asked for; the recorded run had {len(script)}"))
        before = script[place]
        if before.mechanism != mechanism or before.size != size:
            raise self.found(Diverged(f"release {place + 1} is by {mechanism}; the recorded run had {before.mechanism}"))
        return mechanism.coupled(before.value, before.output, value) if isinstance(mechanism, Coupled) else before.output

    def found(self, finding: Diverged) -> Diverged:
        """Keep the first finding: whoever swallows it meets it again where the block ends."""
        self.finding = self.finding or finding
        return finding


_recorder: ContextVar[_Recorder | None] = ContextVar("recorder", default=None)

_all_standing: set[_Recorder] = set()
"""The recorders of all threads: what one of them does not see must not happen while it stands."""


def perform(mechanism: Drawing, value: Any, size: int | None = None) -> Any:
    """Draw from this thread's entropy and forget the key that made the noise."""
    recorder = _recorder.get()
    if recorder is not None:
        return recorder.perform(mechanism, value, size)
    if _all_standing:
        raise _unseen(mechanism)
    return _draw(mechanism, value, size)


def _unseen(mechanism: Drawing) -> Diverged:
    """A thread begins with no recorder, so whose release this is cannot be known: every recorder that stands is told."""
    finding = Unseen(f"a release by {mechanism} in a thread or context without the recorder cannot be compared")
    for recorder in tuple(_all_standing):
        recorder.found(finding)
    return finding


def _draw(mechanism: Drawing, value: Any, size: int | None) -> Any:
    source = entropy()
    try:
        return mechanism.draw(value, source, size)
    finally:
        source.erase()


def refresh() -> None:
    """Mix the operating system's bytes in and drop what was drawn ahead, in this thread: before a question or a fit."""
    entropy().refresh()


def is_private() -> bool:
    """Whether noise of this thread may protect anybody: a stream that tests inject says no."""
    return entropy().private


@contextmanager
def recording() -> Generator[list[DrawCall]]:
    """Every release inside the block is drawn as always and written to the list.

    Releases elsewhere, in threads that do not inherit the context, are refused as long as the block lasts.
    """
    calls: list[DrawCall] = []
    with _standing(_Recorder(calls)):
        yield calls


@contextmanager
def replaying(script: Sequence[DrawCall]) -> Generator[list[DrawCall]]:
    """Every release inside the block gives the recorded output; the list gets what was asked now.

    Releases elsewhere are refused, as for `recording`.
    """
    calls: list[DrawCall] = []
    with _standing(_Recorder(calls, script)):
        yield calls


@contextmanager
def _standing(recorder: _Recorder) -> Generator[None]:
    if _recorder.get() is not None:  # the inner one would hide releases from the outer
        raise RuntimeError("a recorder already stands here")
    token = _recorder.set(recorder)
    _all_standing.add(recorder)
    try:
        yield
    finally:
        _all_standing.discard(recorder)
        _recorder.reset(token)
    if recorder.finding is not None:
        raise recorder.finding
