"""When an answer leaves: at one of a few moments that everybody knows, so that a clock tells which of them and no more.

    its turn comes ── reserve ── engine, noise ── commit ── wait ──► answer or failure
    0                                                           1, 2, 4, 8, 16 … ticks

A wait comes last, after the durable write, and keeps the turn: who is next begins at such a moment too, and nobody reads the
ledger between a settlement and the moment at which it is told. Off (a tick of 0), nothing waits.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from curador.study.model import EngineSettings


@dataclass(frozen=True, slots=True)
class Pace:
    """The tick, in seconds, and what a test puts in the place of a clock."""

    tick: float = 0.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def of(cls, settings: EngineSettings) -> Pace:
        """Return the pace that an owner set."""
        return cls(float(settings.answer_every))

    @contextlib.contextmanager
    def released(self, charged: Callable[[], bool]) -> Generator[None]:
        """Let what happens inside be told at a public moment: its result, and its failure alike, once it was charged.

        charged   whether it was: what comes before, a stored answer or a refusal, waits for nothing

        Claim   The block is left at tick · 2ᵏ after it was entered, for the least whole k ≥ 0 that is not before the end of
                what happens inside; later only by what the system takes to wake.
        Needs   It is entered at a public moment: inside the turn, whose holders all leave it so. An interrupt is the owner's
                own and does not wait.
        """
        begun = self.clock()
        try:
            yield
        except Exception:
            self._wait(begun, charged=charged())
            raise
        self._wait(begun, charged=charged())

    def still(self, turn: AbstractContextManager[object]) -> AbstractContextManager[object]:
        """Return what to hold while the ledger is read for an asker: the turn, so that nothing is under way; else nothing."""
        return turn if self.tick else contextlib.nullcontext()

    def _wait(self, begun: float, *, charged: bool) -> None:
        if not (self.tick and charged):
            return
        moment = begun + moment_after(self.clock() - begun, self.tick)
        while (left := moment - self.clock()) > 0:  # a sleep may be shorter than it was told
            self.sleep(left)


def moment_after(elapsed: float, tick: float) -> float:
    """Return the first of 1, 2, 4, 8 … ticks that is not before. Exact: a float doubles without rounding."""
    moment = tick
    while moment < elapsed:
        moment *= 2
    return moment


def moments(settings: EngineSettings) -> tuple[Fraction, ...]:
    """Return the moments at which an answer may leave, in seconds: up to the first that is a tick beyond the deadline.

    Should settling take longer than that tick, the next is twice the last, and so on.
    """
    tick = settings.answer_every
    found = [tick] if tick else []
    while found and found[-1] < settings.deadline + tick:
        found.append(2 * found[-1])
    return tuple(found)


def pace_text(settings: EngineSettings) -> str:
    """Say when answers leave, and what that tells."""
    found = [f"{float(moment):g}" for moment in moments(settings)]
    if not found:
        return "answers leave when they are ready: how long one takes depends on rows (engine.answer_every)"
    bits = math.ceil(10 * math.log2(len(found))) / 10
    listed = f"{', '.join(found[:-1])} or {found[-1]}"
    most = f"{bits:g} bit{'' if bits == 1 else 's'}"
    return f"answers leave {listed} s after their turn came: time tells at most {most} of one"
