"""Threads of the door, and how many of them one token holds at a time: nobody's texts, previews or statements stop others.

reading   texts are parsed, one at a time of a token: long ones take seconds
quick     previews, columns, descriptions
slow      answers
watch     whether tokens are in force: it waits for nobody
relays    statements that the shadow works at; no thread, a turn
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from curador.server.desk import Turns

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

Value = TypeVar("Value")

THREADS: Final = {"reading": 4, "quick": 16, "watch": 1}
EACH: Final = {"reading": 1, "quick": 4, "relays": 4}
"""Of one token."""
SHORT: Final = 500
"""Letters of a text that is parsed at once: it takes milliseconds."""


class Pools:
    """The threads of one door."""

    def __init__(self, under_way: int) -> None:
        """Compute so many questions at a time."""
        threads = {**THREADS, "slow": under_way}
        self._threads = {name: ThreadPoolExecutor(number, f"door-{name}") for name, number in threads.items()}
        self._turns = {name: Turns(number) for name, number in EACH.items()}
        self.slow = self._threads["slow"]

    async def quick(self, token: str, work: Callable[[], Value]) -> Value:
        """Return what short work of a token gives."""
        return await self._do("quick", token, work)

    async def read(self, token: str, length: int, work: Callable[[], Value]) -> Value:
        """Return what is made of a text of so many letters."""
        return work() if length <= SHORT else await self._do("reading", token, work)

    async def watch(self, work: Callable[[], Value]) -> Value:
        """Look whether somebody may stay."""
        return await asyncio.get_running_loop().run_in_executor(self._threads["watch"], work)

    def relay(self, token: str) -> AbstractAsyncContextManager[None]:
        """Return the turn of a statement that goes to the shadow."""
        return self._turns["relays"].of(token)

    def close(self) -> None:
        """Take no more work."""
        for pool in self._threads.values():
            pool.shutdown(wait=False, cancel_futures=True)

    async def _do(self, name: str, token: str, work: Callable[[], Value]) -> Value:
        async with self._turns[name].of(token):
            return await asyncio.get_running_loop().run_in_executor(self._threads[name], work)
