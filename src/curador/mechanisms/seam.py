"""The one place where a mechanism meets randomness; recorders stand here.

Every release ends in `perform(mechanism, value)`, the value being exact integers on the mechanism's grid. A recorder sees all
of them; a replay gives recorded outputs back and sees what another world would have asked.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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


@dataclass(frozen=True, slots=True)
class Call:
    """One release: who drew, from what, and what came out."""

    mechanism: Drawing
    value: Any
    size: int | None
    output: Any


class Diverged(Exception):  # noqa: N818 -- a finding, not an error
    """A replayed run asked for other releases than the recorded one."""


@dataclass(slots=True)
class _Recorder:
    calls: list[Call]
    script: Sequence[Call] | None = None

    def perform(self, mechanism: Drawing, value: Any, size: int | None) -> Any:
        if self.script is None:
            output = _drawn(mechanism, value, size)
        else:
            place = len(self.calls)
            if place >= len(self.script):
                raise Diverged(f"release {place + 1} was asked for; the recorded run had {len(self.script)}")
            before = self.script[place]
            if before.mechanism != mechanism or before.size != size:
                raise Diverged(f"release {place + 1} is by {mechanism}; the recorded run had {before.mechanism}")
            output = before.output
        # copies: a function that writes into what it was given must not rewrite the record
        self.calls.append(Call(mechanism, deepcopy(value), size, deepcopy(output)))
        return deepcopy(output)


_recorder: ContextVar[_Recorder | None] = ContextVar("recorder", default=None)


def perform(mechanism: Drawing, value: Any, size: int | None = None) -> Any:
    """Draw from this thread's entropy and forget the key that made the noise."""
    recorder = _recorder.get()
    if recorder is not None:
        return recorder.perform(mechanism, value, size)
    return _drawn(mechanism, value, size)


def _drawn(mechanism: Drawing, value: Any, size: int | None) -> Any:
    source = entropy()
    try:
        return mechanism.draw(value, source, size)
    finally:
        source.erase()


@contextmanager
def recording() -> Generator[list[Call]]:
    """Every release inside the block is drawn as always and written to the list."""
    calls: list[Call] = []
    with _standing(_Recorder(calls)):
        yield calls


@contextmanager
def replaying(script: Sequence[Call]) -> Generator[list[Call]]:
    """Every release inside the block gives the recorded output; the list gets what was asked now."""
    calls: list[Call] = []
    with _standing(_Recorder(calls, script)):
        yield calls


@contextmanager
def _standing(recorder: _Recorder) -> Generator[None]:
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)
