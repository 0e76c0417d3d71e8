"""One writer in front of the store: everybody who waits is served by one transaction and one write of the witness.

    do ──► waiting ──► the first of them leads: settlements, then the others, each in its own savepoint
                          └─► one durable commit ──► one durable witness ──► everybody is told

There is no thread of its own. Of those who wait one leads: it takes all that wait, writes them, tells each what became of
it, and lets the next one lead, for whoever came meanwhile. Alone, it costs what a plain write costs.

Claim   Nobody is told anything, neither an outcome nor a refusal, before the transaction that it rests on and the witness are
        on disk. What one act breaks is its own. "Nothing was spent" is said only of what was never taken, or was rolled back.
        Two writers of one store are two who wait for its lock: each judges by what the other one left. Nothing is written to
        a ledger that forgot what its witness had seen, by whomever, when the change began.
Needs   `Store.writing`: all of it is durable when the block is left, or nothing is; `Act.perform`: once, however often tried.
"""

from __future__ import annotations

import contextlib
import copy
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from curador.errors import CuradorError, Failed, InvalidStudy, LedgerBusy
from curador.ledger.acts import CHARGED, Act, Serve
from curador.ledger.store import ChangeUndone, OutcomeUnknown

if TYPE_CHECKING:
    from curador.ledger.entry import Entry
    from curador.ledger.limits import Limits
    from curador.ledger.store import Page, Store
    from curador.ledger.witness import Head, WitnessSlots

Outcome = TypeVar("Outcome")

PATIENCE: Final = 5.0
"""Seconds that an act waits for another writer."""
SETTLING: Final = 30.0
"""Seconds that a settlement waits: its charge stands already, so giving up early would waste it."""
MOST: Final = 512
"""Acts in one transaction."""
MOST_COUNTED: Final = 1_000
"""Lines of answers given again that wait for somebody else's write; the next one writes them."""
LONGEST_COUNTED: Final = 10.0
"""Seconds that they wait, if somebody comes by."""
UNKNOWN: Final = "the ledger did not say what became of the request; the charge may be kept, and nothing was released"
_WRITERS: Final[weakref.WeakSet[Writer]] = weakref.WeakSet()
_NOTHING: Final = "the ledger must be free; another writer held it too long, nothing was spent."


@dataclass(slots=True, eq=False)
class Waiter:
    """An act that waits, and what became of it.

    until   when its patience ends, by the writer's clock
    again   whether it may have been written before
    """

    act: Act[Any]
    until: float
    again: bool = False
    done: bool = False
    outcome: Any = None
    error: Exception | None = None
    told: threading.Event = field(default_factory=threading.Event)

    def end(self, error: Exception | None = None) -> None:
        """Let it be known."""
        if error is not None:
            self.outcome, self.error = None, error
        self.done = True
        self.told.set()

    def result(self) -> Any:
        """Return the outcome, or raise what stood in its way."""
        if self.error is not None:
            raise self.error
        return self.outcome


class Writer:
    """Whoever writes to a store does it here, one process at a time; threads and a forked child may share it."""

    def __init__(self, store: Store, limits: Limits, ledger: str, seen: int, witness: WitnessSlots) -> None:
        """Write to a store.

        seen     the last entry that is known to be in it: a ledger that forgot it is refused
        witness  where the last entry is made durable a second time, and which is asked before anything is written
        """
        self._store, self._limits, self._ledger = store, limits, ledger
        self._mirror, self._look = witness.remember, witness.look
        self._seen = seen
        self._mirrored = -1  # the last entry that this object brought to the witness, or found there
        self._start()
        _WRITERS.add(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Waiter] = deque()
        self._leader: Waiter | None = None
        self._batch: list[Waiter] = []  # what the leader took
        self._counted: dict[tuple[str, str, str], Serve] = {}  # a forked child leaves them to its parent
        self._since = 0.0

    # ---- for askers -------------------------------------------------------------------------------------------------

    def do(self, act: Act[Outcome], *, patience: float = PATIENCE, again: bool = False) -> Outcome:
        """Do one act, together with those of everybody else who waits; return when it is on disk, or raise.

        again   whether it may have been done before: then that outcome is returned
        """
        ticket = Waiter(act, time.monotonic() + patience, again=again)
        try:
            with self._lock:
                self._waiting.append(ticket)
                if self._leader is None:
                    self._leader = ticket
            if self._leader is not ticket:
                self._wait(ticket)
            if not ticket.done:
                self._lead(ticket)
        finally:  # also after an interrupt, wherever it came
            try:
                self._leave(ticket)
            except BaseException:
                self._leave(ticket)
                raise
        return ticket.result()

    def saw(self, sequence: int) -> None:
        """Know that an entry is there: a ledger that forgets it is refused."""
        self._seen = max(self._seen, sequence)

    def count(self, serve: Serve) -> None:
        """Count an answer that was given again: in memory, until somebody writes. A crash can lose the last of them.

        The answer waits for nobody: where the ledger is busy or cannot be written, the lines are written later.
        """
        with self._lock:
            now, held = time.monotonic(), self._counted.get(serve.line)
            self._since = self._since if self._counted else now
            self._counted[serve.line] = serve if held is None else _more(held, serve.number)
            late = (held is None and len(self._counted) % MOST_COUNTED == 0) or now - self._since > LONGEST_COUNTED
            if late:
                self._since = now  # the next try is as far away
        if late:
            with contextlib.suppress(CuradorError):
                self.do(_Nothing(), patience=0.0)

    def flush(self) -> None:
        """Write what was counted, if anything was."""
        if self._counted:
            self.do(_Nothing())

    def close(self) -> None:
        """Nothing is open."""

    def _wait(self, ticket: Waiter) -> None:
        """Wait until it is done or has to lead; who gives up is out of the queue, or does not know what became of it."""
        told = ticket.told.wait(max(ticket.until - time.monotonic(), 0))
        if not told and self._withdraw(ticket):
            ticket.end(_too_late(ticket))
        elif not told and not ticket.told.wait(SETTLING):
            ticket.end(Failed(f"{UNKNOWN}."))

    def _withdraw(self, ticket: Waiter) -> bool:
        """Take it out of the queue; False where somebody took it, or it leads."""
        with self._lock:
            if ticket is self._leader or ticket not in self._waiting:
                return False
            self._waiting.remove(ticket)
            return True

    # ---- for the one who leads ----------------------------------------------------------------------------------------

    def _lead(self, own: Waiter) -> None:
        while not own.done:
            with self._lock:
                batch = self._take()
            self.write(batch)

    def _take(self) -> list[Waiter]:
        """Take those who wait: settlements first, each in the order in which they came.

        An interrupt may come between any two steps: until they are told, those who were taken stand in the batch.
        """
        settling = [one for one in self._waiting if one.act.settles]
        batch = [*settling, *(one for one in self._waiting if not one.act.settles)][:MOST]
        taken = set(map(id, batch))
        left = deque(one for one in self._waiting if id(one) not in taken)
        self._batch = batch
        self._waiting = left
        return batch

    def _leave(self, ticket: Waiter) -> None:
        """Go: out of the queue, and who led lets the next one lead and gives back whom it took and did not tell.

        Claim   Where nobody leads, nobody waits. Whoever leads is in `do`: its own thread calls this, however it is left.
        """
        with self._lock:
            try:
                self._let_go(ticket)
            except BaseException:  # what is done twice is as if it were done once
                self._let_go(ticket)
                raise

    def _let_go(self, ticket: Waiter) -> None:
        if self._leader is ticket:
            self._put_back(one for one in self._batch if one is not ticket and not one.done)
            following = next((one for one in self._waiting if one is not ticket), None)
            if following is not None:
                following.told.set()
            self._leader, self._batch = following, []
        if not ticket.done and ticket in self._waiting:  # nobody took it, and nobody waits for it any more
            self._waiting.remove(ticket)

    def _put_back(self, tickets: Iterable[Waiter]) -> None:
        for ticket in tickets:
            if ticket not in self._waiting:
                ticket.again, ticket.outcome, ticket.error = True, None, None
                self._waiting.appendleft(ticket)

    def write(self, batch: Sequence[Waiter]) -> None:
        """Write the acts of a batch and tell each what became of it, also those who lose patience with a busy store."""
        left = list(batch)
        while left:
            now = time.monotonic()
            try:
                self._write(left, max(min(one.until for one in left) - now, 0.0))
            except LedgerBusy:  # of the store itself: it was never let in
                for ticket in left:
                    if ticket.until <= time.monotonic():
                        ticket.end(_too_late(ticket))
                left = [one for one in left if not one.done]
            except _OneUndone as error:  # the others had no part in it: they are judged anew
                error.ticket.end(_instead(error.told, error.ticket.act))
                left = [one for one in left if not one.done]
            except OutcomeUnknown as error:  # who enters the next change finds what was written, or that it never will be
                for ticket in left:
                    ticket.again = True
                    if ticket.until <= time.monotonic():
                        ticket.end(_instead(error, ticket.act))
                left = [one for one in left if not one.done]
            else:
                return

    def _write(self, batch: Sequence[Waiter], patience: float) -> None:
        with self._lock:
            counted, self._counted = self._counted, {}
        try:
            if counted or any(ticket.act.new_tables for ticket in batch):
                self._store.admit_all_kinds()
            witnessed = self._look()  # before the moment is chosen: others write meanwhile
            with self._store.writing(patience=patience) as page:
                self._refuse_what_forgot(page, witnessed)
                for ticket in batch:
                    self._perform(page, ticket)
                for serve in counted.values():
                    self._perform(page, Waiter(serve, 0.0))
                sequence, hash_ = page.tip()
        except BaseException as error:
            if isinstance(error, OutcomeUnknown) or not isinstance(error, Exception):
                raise  # what was counted may be on disk: a line that is lost is better than one that counts twice
            self._recount(counted)
            if isinstance(error, LedgerBusy) or (isinstance(error, _OneUndone) and error.ticket in batch):
                raise
            error = error.told if isinstance(error, _OneUndone) else error
            for ticket in batch:
                ticket.end(_instead(error, ticket.act))
            return
        self._seen = sequence
        try:
            if (
                sequence > self._mirrored
            ):  # also where nothing is new: what was found may have been left by one who was killed
                self._mirror(sequence, hash_)
                self._mirrored = sequence
        except (OSError, CuradorError) as error:
            for ticket in batch:
                ticket.end(ticket.error or _unwitnessed(error))
            return
        for ticket in batch:
            ticket.end()

    def _perform(self, page: Page, ticket: Waiter) -> None:
        """Do one act; what it breaks is undone and its own."""
        ticket.outcome = ticket.error = None
        try:
            with page.savepoint():
                ticket.outcome = ticket.act.perform(page, page.head(), self._limits, again=ticket.again)
        except CuradorError as error:
            ticket.error = error
        except ChangeUndone as error:
            raise _OneUndone(ticket, self._store.explain(error.cause) or error.cause) from error
        except Exception as error:  # noqa: BLE001 -- a poisoned request is told so, and the others go on
            ticket.error = self._store.explain(error) or error

    def _refuse_what_forgot(self, page: Page, witnessed: Head | None) -> None:
        """Refuse a ledger that forgot what this object has seen, or what its witness has.

        The second matters where somebody else wrote what was forgotten: a server whose disk was set back goes on under its
        old name, and a process that was idle knows of nothing that is missing.
        """
        head = page.head()
        if head.ledger != self._ledger or head.sequence < self._seen:
            raise InvalidStudy.must_be("ledger", f"at entry {self._seen} or later", head.sequence, "it was replaced")
        if witnessed is not None:
            found = head if witnessed.sequence == head.sequence else page.at(witnessed.sequence)
            if found is None or found.hash != witnessed.hash:
                rule = f"the same as its witness up to entry {witnessed.sequence}"
                hint = "it was set back while it was open, and forgot charges; find the right one, and open the study again"
                raise InvalidStudy.must_be("ledger", rule, self._store.name, hint)

    def _recount(self, counted: dict[tuple[str, str, str], Serve]) -> None:
        with self._lock:
            for line, serve in counted.items():
                held = self._counted.get(line)
                self._counted[line] = serve if held is None else _more(serve, held.number)


class _OneUndone(Exception):  # noqa: N818 -- never leaves this file
    """One act by which the database took back the whole change: nothing of it is on disk."""

    def __init__(self, ticket: Waiter, told: Exception) -> None:
        super().__init__(str(told))
        self.ticket, self.told = ticket, told


@dataclass(frozen=True, slots=True)
class _Nothing(Act[None]):
    """Writes nothing of its own: what was counted goes with it."""

    id: str = ""

    def perform(self, page: Page, head: Entry, limits: Limits, *, again: bool) -> None:
        """Do nothing."""


def _more(serve: Serve, number: int) -> Serve:
    return Serve(serve.own, serve.analyst, serve.asked, serve.question, serve.answer_digest, serve.number + number, serve.id)


def _too_late(ticket: Waiter) -> CuradorError:
    if ticket.act.charged is not None:
        return Failed(f"the ledger was busy for too long; {ticket.act.charged}.")
    if ticket.again:  # it may have been done before
        return Failed(f"{UNKNOWN}.")
    return LedgerBusy(_NOTHING, hint="ask again.")


def _instead(error: Exception, act: Act[Any]) -> Exception:
    """What the asker of an act is told when the whole batch could not be written."""
    if isinstance(error, Failed) and act.charged is not None:
        made: Exception = Failed(f"the ledger could not be written; {act.charged}.")
    else:  # one each: threads that raise the same one would write into each other's traceback
        made = copy.copy(error)
        made.__dict__.update(error.__dict__)
    made.__cause__ = error
    return made


def _unwitnessed(cause: Exception) -> Failed:
    made = Failed(f"the ledger's witness could not be written; {CHARGED}.")
    made.__cause__ = cause
    return made


def _start_anew() -> None:
    """In a forked child nobody waits and nobody leads: the threads that did are the parent's."""
    for writer in list(_WRITERS):
        writer._start()  # noqa: SLF001 -- its own


os.register_at_fork(after_in_child=_start_anew)
