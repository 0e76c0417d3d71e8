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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.door.shadow import Shadow

_PATIENCE = 2.0


class Describer:
    """One connection to a shadow for the types of parameters; one statement at a time."""

    def __init__(self, shadow: Shadow) -> None:
        """Connect when it is first asked."""
        self._shadow = shadow
        self._link: Link | None = None
        self._turn = asyncio.Lock()

    async def types(self, text: str, declared: Sequence[int]) -> tuple[int, ...]:
        """Return the types of a statement's parameters; none where the shadow cannot read it."""
        async with self._turn:
            try:
                async with asyncio.timeout(_PATIENCE):
                    if self._link is None:
                        self._link = await open_link(self._shadow)
                    return await _types(self._link, text, declared)
            except (Gone, TimeoutError):
                self.close()
                return ()
            except BaseException:
                self.close()
                raise

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
