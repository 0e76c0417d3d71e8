"""Whose turn it is, and when anything leaves: at moments of one public grid, the multiples of the owner's tick.

    place ── reserve ── │ ── engine, noise ──────────────── │ ── commit ── │ answer or failure, and the place is given back
                        begun                               settled        left
                        a tick                              left − margin  begun + class · tick

The class is a function of the question (`plan/cost_class.py`). What is not computed when it must be settled has failed, as at
the deadline. The durable write begins at a public moment, too, whether it says "answered" or "failed": who reads the ledger
meanwhile, from whatever process, sees nothing of how long the run took. The place, and with it a worker, is given back when
the answer leaves, so that who waits begins at a public moment.

What an analyst is told without a charge, stored answers, refusals, previews, budgets, logs, leaves at the next multiple of
the tick: how long such a thing takes tells how busy the machine is with others' rows.

Off (a tick of 0), nothing waits but for a place. Some askers hold one at once, a few for each worker, as charging waits for a
disk and computing for a processor; who is computed gives it back and stores the answer without it. Or one act of the owner's
holds all of them: a refresh, a reopening, closing. Who comes first goes first, whatever is wanted: an owner's act waits for
those before it until they are done, and is not overtaken by those after.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from curador.engines.base import at_most
from curador.plan.cost_class import most_ticks

if TYPE_CHECKING:
    from curador.study.model import EngineSettings

Value = TypeVar("Value")


# ---- turns -----------------------------------------------------------------------------------------------------------------


class Turn:
    """Places in the order of arrival. Who gave its place back and is not done yet is still waited for by who wants all."""

    def __init__(self, places: int = 1) -> None:
        self._places = places
        self._begin()

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[Seat] = deque()
        self._free, self._inside = self._places, 0
        self._owner = os.getpid()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    @contextlib.contextmanager
    def asking(self) -> Generator[Seat]:
        """Hold one place, until it is given back."""
        with self._held(Seat(self, 1)) as place:
            yield place

    @contextlib.contextmanager
    def alone(self) -> Generator[None]:
        """Hold all places, while nobody is inside."""
        with self._held(Seat(self, self._places, alone=True)):
            yield

    @contextlib.contextmanager
    def _held(self, place: Seat) -> Generator[Seat]:
        if self._owner != os.getpid():  # a fork has no thread that would give back what its parent's held
            self._begin()
        try:
            with self._guard:
                self._waiting.append(place)
                self._serve()
            place.served.wait()
            yield place
        finally:
            with self._guard:
                if place.served.is_set():
                    self._free += place.held
                    self._inside -= 1
                elif place in self._waiting:  # interrupted before its turn came
                    self._waiting.remove(place)
                self._serve()

    def give_back(self, place: Seat) -> None:
        """Let others have a place; what is done afterwards takes none."""
        with self._guard:
            self._free, place.held = self._free + place.held, 0
            self._serve()

    def _serve(self) -> None:
        """Hand free places to those who have waited longest."""
        while self._waiting and self._waiting[0].held <= self._free and not (self._waiting[0].alone and self._inside):
            place = self._waiting.popleft()
            self._free -= place.held
            self._inside += 1
            place.served.set()


class Seat:
    """What somebody waits for, holds, and may give back before they are done."""

    __slots__ = ("_turn", "alone", "held", "served")

    def __init__(self, turn: Turn, held: int, *, alone: bool = False) -> None:
        self._turn, self.held, self.alone, self.served = turn, held, alone, threading.Event()

    def give_back(self) -> None:
        """Let somebody else have it."""
        self._turn.give_back(self)


class Underway:
    """Questions that are being answered: who asks the same one waits for its end, and then finds it stored, or goes on."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[Hashable, tuple[threading.Lock, int]] = {}
        self._owner = os.getpid()

    @property
    def waiting(self) -> int:
        """How many wait for somebody else's question."""
        return sum(users - 1 for _, users in [*self._held.values()])

    @contextlib.contextmanager
    def one(self, question: Hashable | None) -> Generator[bool]:
        """Be the only one who answers a question; None: whoever else does. Yield whether somebody else did meanwhile."""
        if question is None:
            yield False
            return
        if self._owner != os.getpid():
            self._begin()
        with self._guard:
            lock, users = self._held.get(question, (threading.Lock(), 0))
            self._held[question] = lock, users + 1
        try:
            with lock:
                yield users > 0
        finally:
            with self._guard:
                lock, users = self._held[question]
                if users == 1:
                    del self._held[question]
                else:
                    self._held[question] = lock, users - 1


# ---- moments ---------------------------------------------------------------------------------------------------------------


MOST_MARGIN = 1.0
"""Seconds that settling gets at most: a durable write takes some milliseconds."""


class LateError(Exception):
    """What was computed was not there when it had to be settled."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The tick, in seconds, and what a test puts in the place of a clock."""

    tick: float = 0.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    wait: Callable[[threading.Event, float], object] = threading.Event.wait

    @classmethod
    def of(cls, settings: EngineSettings) -> Pace:
        """Return the pace that an owner set."""
        return cls(float(settings.answer_every))

    @property
    def margin(self) -> float:
        """Seconds before an answer leaves at which it is settled: a quarter of a tick, at most one second."""
        return min(self.tick / 4, MOST_MARGIN)

    def begin(self, ticks: Callable[[], int]) -> PacedRun:
        """Wait for the next moment of the grid, and begin there what leaves so many ticks later."""
        if not self.tick:
            return AT_ONCE
        moment = self._next()
        self.until(moment)
        missed = math.floor((self.clock() - moment) / self.tick)  # a machine that slept
        return PacedRun(self, moment + missed * self.tick, ticks())

    @contextlib.contextmanager
    def told(self, waits: Callable[[], bool]) -> Generator[None]:
        """Let what happens inside be told at the next moment of the grid: its result, and its refusal alike.

        waits   whether it must; asked when it is done

        Claim   The block is left at a multiple of the tick; later only by what the system takes to wake.
        Needs   An interrupt is the owner's own and does not wait.
        """
        try:
            yield
        except Exception:
            self._tell(waits)
            raise
        self._tell(waits)

    def until(self, moment: float) -> None:
        """Sleep up to a moment."""
        while (left := moment - self.clock()) > 0:  # a sleep may be shorter than it was told
            self.sleep(left)

    def _tell(self, waits: Callable[[], bool]) -> None:
        if self.tick and waits():
            self.until(self._next())

    def _next(self) -> float:
        """The first moment of the grid that is later than now."""
        now = self.clock()
        number = math.floor(now / self.tick)
        while number * self.tick <= now:  # a quotient is rounded
            number += 1
        return number * self.tick


@dataclass(slots=True)
class PacedRun:
    """One charged question or fit between the moment at which it began and that at which it leaves."""

    pace: Pace
    begun: float
    ticks: int
    settled: float = field(init=False)
    leaves: float = field(init=False)

    def __post_init__(self) -> None:
        self.leaves = self.begun + self.ticks * self.pace.tick
        self.settled = self.leaves - self.pace.margin

    def computed(self, work: Callable[[], Value]) -> Value:
        """Return what `work` gives, or raise what it raised, at the moment of settling, whenever it was done.

        Claim   Left at `settled`, by value and by exception alike, whatever `work` does and however long it takes: it runs
                in a thread of its own, and if it is not done then, it goes on for nobody and LateError is raised.
        Needs   Engines that obey `at_most` give their worker back by then.
        """
        pace = self.pace
        if not pace.tick:
            return work()
        done, found, problems, ended = threading.Event(), list[Value](), list[BaseException](), list[float]()

        def perform() -> None:
            try:
                with at_most(self.settled - pace.clock()):
                    found.append(work())
            except BaseException as problem:  # noqa: BLE001 -- raised again below
                problems.append(problem)
            finally:
                ended.append(pace.clock())
                done.set()

        context = contextvars.copy_context()  # who records draws of this thread records those
        threading.Thread(target=context.run, args=(perform,), daemon=True).start()
        pace.wait(done, max(self.settled - pace.clock(), 0.0))
        late = not done.is_set() or ended[0] > self.settled
        if problems and not isinstance(problems[0], Exception):
            raise problems[0]  # an interrupt does not wait
        pace.until(self.settled)
        if late:
            raise LateError("the question was not computed in the ticks of its class")
        if problems:
            raise problems[0]
        return found[0]

    @contextlib.contextmanager
    def left(self) -> Generator[None]:
        """Leave at the moment of the class; where settling took longer than its margin, at the next of the grid.

        What settling writes is what is told at that moment, or that it failed. How long the write takes is a matter of the
        disk and of the size of what is told, not of rows.
        """
        try:
            yield
        except Exception:
            self._leave()
            raise
        self._leave()

    def _leave(self) -> None:
        pace = self.pace
        if not pace.tick:
            return
        over = math.ceil((pace.clock() - self.leaves) / pace.tick)
        pace.until(self.leaves + max(over, 0) * pace.tick)


AT_ONCE = PacedRun(Pace(), 0.0, 0)
"""Where no tick is set: computed here and now, and left when it is done."""


def moments(settings: EngineSettings) -> tuple[Fraction, ...]:
    """Return the moments at which an answer may leave, in seconds after it began: one for each cost class."""
    tick, most = settings.answer_every, most_ticks(settings)
    found = [1] if tick else []
    while found and found[-1] < most:
        found.append(min(2 * found[-1], most))
    return tuple(tick * ticks for ticks in found)


def pace_text(settings: EngineSettings) -> str:
    """Say when answers leave, and what that tells."""
    found = [f"{float(moment):g}" for moment in moments(settings)]
    if not found:
        return "answers leave when they are ready: how long one takes depends on rows (engine.answer_every)"
    listed = f"{', '.join(found[:-1])} or {found[-1]}"
    return f"answers leave {listed} s after they began, by the question's class: time tells nothing but a failure"
