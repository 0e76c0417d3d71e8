"""Threads for what waits: each kind of work has a pool of its own, so that none stands in the way of another.

previews   short work, many at a time: beside a full load of questions they still have threads
looks      tables, budgets, the ledger
sandboxes  questions about made-up rows, computed in this process
answers    one thread for each question under way; most of them wait for a tick or for an engine

Most of this waits for a tick of the study's pace, so whoever sends much would hold every thread. So many of one token are in
a pool at a time; what it sends beyond that waits outside, and soon is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeVar

from curador.errors import CuradorError
from curador.server import jobs
from curador.server.limits import Places
from curador.server.logs import write_log
from curador.server.refusals import TooMany

if TYPE_CHECKING:
    from curador.server.jobs import Job
    from curador.server.service import Service
    from curador.server.tokens import Caller

Value = TypeVar("Value")

THREADS: Final = {"preview": 128, "look": 96, "sandbox": 4}
EACH: Final = {"preview": 24, "look": 24, "sandbox": 1}
"""Of one token in a pool."""
MOST_WAITING: Final = 1_000
"""Pieces of work that wait for one pool."""
MOST_WAITING_EACH: Final = 64
"""Of one token."""
STREAMS: Final = 16
"""Streams of events of one token."""
WATCH: Final = 0.5
"""Seconds at most between two looks at whether a token is still in force: what it opened ends within a second."""
POLL: Final = 0.1
FORGET_EVERY: Final = 3600.0
TAKE_OVER_EVERY: Final = 2.0


WHOSE: Final[ContextVar[str]] = ContextVar("whose", default="")
"""The token of which a request is; the gate says it. Nobody's work has no bound but that of all."""


class Turns:
    """Pieces of work of one name: so many at a time, the others in the order in which they came."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._held: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Wait for a turn; refused where too many of the name wait. Called in the loop alone."""
        if not name:
            yield
            return
        turn, users = self._held.get(name, (asyncio.Semaphore(self._each), 0))
        if users >= self._each + MOST_WAITING_EACH:
            raise TooMany("requests under way must be fewer with one token.", hint="wait for those that were sent.")
        self._held[name] = turn, users + 1
        try:
            async with turn:
                yield
        finally:
            turn, users = self._held[name]
            if users == 1:
                del self._held[name]
            else:
                self._held[name] = turn, users - 1


class Desk:
    """The pools of one process."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._pools = {name: ThreadPoolExecutor(number, name) for name, number in THREADS.items()}
        self._turns = {name: Turns(number) for name, number in EACH.items()}
        self.streams = Places(STREAMS, MOST_WAITING, "streams of events")
        self._answers = ThreadPoolExecutor(service.settings.whole + 8, "answer")
        self._waiting = dict.fromkeys(THREADS, 0)
        self._under_way: dict[str, asyncio.Future[None]] = {}

    async def preview(self, work: Callable[[], Value]) -> Value:
        """Return what a preview gives."""
        return await self._queued("preview", work)

    async def look(self, work: Callable[[], Value]) -> Value:
        """Return what a look gives."""
        return await self._queued("look", work)

    async def imagine(self, work: Callable[[], Value]) -> Value:
        """Return what a question gives in a sandbox."""
        return await self._queued("sandbox", work)

    async def _queued(self, name: str, work: Callable[[], Value]) -> Value:
        if self._waiting[name] >= MOST_WAITING:
            raise TooMany("the service must have a place free; too many wait.", hint="ask again.")
        self._waiting[name] += 1
        try:
            async with self._turns[name].of(WHOSE.get()):
                return await asyncio.get_running_loop().run_in_executor(self._pools[name], work)
        finally:
            self._waiting[name] -= 1

    def begin(self, job: Job) -> None:
        """Compute a job that is this process's."""
        future = asyncio.get_running_loop().run_in_executor(self._answers, self._run, job)
        self._under_way[job.id] = future
        future.add_done_callback(lambda _: self._under_way.pop(job.id, None))

    def _run(self, job: Job) -> None:
        try:
            self.service.run(job)
        except Exception as error:  # noqa: BLE001 -- the job stays open, and is taken over
            write_log("error", "job", error=type(error).__name__)

    async def wait(self, caller: Caller, job: str, seconds: float) -> bool:
        """Wait for a job; return whether it is over. Refused when the caller's token ends meanwhile."""
        until = time.monotonic() + seconds
        while True:
            future = self._under_way.get(job)
            left = min(until - time.monotonic(), WATCH)
            if future is None:
                if await self.look(lambda: jobs.read_job(self.service.state, job).state not in jobs.OPEN):
                    return True
                if left > 0:
                    await asyncio.sleep(min(left, POLL))
            elif left > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(future), left)
            if until <= time.monotonic():
                return await self.look(lambda: jobs.read_job(self.service.state, job).state not in jobs.OPEN)
            self.service.still(caller)

    async def mind(self) -> None:
        """Take over what other processes left behind, and forget what is old, until it is cancelled."""
        forgotten = 0.0
        while True:
            with contextlib.suppress(CuradorError):
                for job in await self.look(self.service.take_over):
                    self.begin(job)
                if time.monotonic() - forgotten > FORGET_EVERY:
                    forgotten = time.monotonic()
                    await self.look(lambda: jobs.forget_old(self.service.state))
            await asyncio.sleep(TAKE_OVER_EVERY)

    async def close(self, seconds: float) -> None:
        """Let questions under way end, for so long."""
        self.service.stop()
        left = [*self._under_way.values()]
        if left:
            await asyncio.wait(left, timeout=seconds)
        for pool in (*self._pools.values(), self._answers):
            pool.shutdown(wait=False, cancel_futures=True)
