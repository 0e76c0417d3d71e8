"""What the shadow makes of a question without running it: the types of its parameters.

It is asked on a connection that clients do not share, since what it cannot read would let a transaction of theirs fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING

from curador.door.link import Gone, Link, open_link
from curador.door.messages import Message, MessageBody, zero_ended
from curador.door.problems import SqlProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.door.shadow import Shadow

_PATIENCE = 10.0
"""Seconds for one statement, and for a shadow that starts anew."""


class Describer:
    """One connection to a shadow for the types of parameters; one statement at a time."""

    def __init__(self, shadow: Shadow) -> None:
        """Connect when it is first asked."""
        self._shadow = shadow
        self._link: Link | None = None
        self._turn = asyncio.Lock()

    async def types(self, text: str, declared: Sequence[int]) -> tuple[int, ...]:
        """Return the types of a statement's parameters; none where the shadow cannot read it.

        A shadow that started anew since the last time is asked once more. Where it cannot be asked at all that is said:
        a number that is taken for a text would let the curator refuse a good question.
        """
        async with self._turn:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await self._ask(text, declared)
            except (Gone, TimeoutError, SqlProblem) as problem:
                self.close()
                hint = "prepare the statement again in a moment."
                raise SqlProblem("57P03", "the catalogues cannot be had at the moment.", hint) from problem
            except BaseException:
                self.close()
                raise

    async def _ask(self, text: str, declared: Sequence[int]) -> tuple[int, ...]:
        if self._link is not None:
            try:
                return await _types(self._link, text, declared)
            except Gone:
                self.close()
        self._link = await open_link(self._shadow)
        return await _types(self._link, text, declared)

    @property
    def over(self) -> bool:
        """Whether its shadow has ended."""
        return self._shadow.guard.poll() is not None

    def close(self) -> None:
        """Leave."""
        if self._link is not None:
            self._link.close()
            self._link = None


async def _types(link: Link, text: str, declared: Sequence[int]) -> tuple[int, ...]:
    body = b"\0" + zero_ended(text) + struct.pack(f"!H{len(declared)}I", len(declared), *declared)
    found: tuple[int, ...] = ()
    parsed = False
    async for got in link.exchange(Message(b"P", body)):
        parsed = got.kind == b"1"
    if parsed:
        async for got in link.exchange(Message(b"D", b"S\0")):
            if got.kind == b"t":
                read = MessageBody(got.body)
                found = tuple(read.uint32() for _ in range(read.int16()))
    with contextlib.suppress(StopAsyncIteration):
        await link.sync()
    return found
