"""One connection to the shadow, message by message: what a client sends goes on as it is, what comes back is read.

After every message that is no Query or Sync a Flush is sent, so each has its answer at once and no two are ever under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING

from curador.door.messages import Message, MessageBody, message, read_fields, read_message, zero_ended
from curador.door.problems import SqlProblem
from curador.door.shadow_schema import ROLE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from curador.door.shadow import Shadow

FLUSH, SYNC = message(b"H"), message(b"S")
_ENDS = {
    b"P": b"1",
    b"B": b"2",
    b"C": b"3",
    b"D": b"Tn",
    b"E": b"CIs",
}
"""With which letters the answer to a message ends; E, an error, ends each."""

_BESIDE = frozenset(b"ASN")

_PATIENCE = 10.0
"""Seconds for which a shadow that does not let in is asked again."""


class Gone(Exception):  # noqa: N818 -- what it means is decided where it is met
    """The shadow ended the connection."""


class Link:
    """A session of the shadow."""

    def __init__(self, shadow: Shadow, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold the two ends; `open_link` makes one."""
        self.shadow = shadow
        self.backend = 0
        self._secret = b""
        self.status = b"I"
        self.told: dict[str, str] = {}
        self._reader, self._writer = reader, writer

    async def exchange(self, sent: Message) -> AsyncIterator[Message]:
        """Send a message and yield what is answered; the last one says how it ended."""
        ends = _ENDS[sent.kind] + b"E"
        await self._write(message(sent.kind, sent.body) + FLUSH)
        while True:
            got = await self._read()
            yield got
            if got.kind in ends:
                if sent.kind == b"D" and got.kind == b"t":
                    continue
                return

    async def query(self, text: str) -> AsyncIterator[Message]:
        """Send a statement by itself and yield what is answered, but for the status at its end, which is kept."""
        await self._write(message(b"Q", zero_ended(text)))
        async for got in self._until_ready():
            yield got

    async def sync(self) -> None:
        """End what was begun since the last time; the status is kept."""
        await self._write(SYNC)
        async for _ in self._until_ready():
            pass

    async def spoil(self, *, extended: bool) -> None:
        """Let a transaction fail as a failed statement in it does."""
        if extended:
            async for _ in self.exchange(Message(b"P", b"\0curador\0\0\0")):
                pass
        else:
            async for _ in self.query("curador"):
                pass

    async def cancel(self) -> None:
        """Ask the session to give up its statement."""
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_unix_connection(str(self.shadow.socket))
            writer.write(struct.pack("!iii", 12 + len(self._secret), 80877102, self.backend) + self._secret)
            await writer.drain()
            writer.close()

    def close(self) -> None:
        """Leave."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(message(b"X"))
            self._writer.close()

    async def start(self) -> None:
        """Log in, by the socket alone."""
        words = ("user", ROLE, "database", self.shadow.database, "application_name", "door", "client_encoding", "UTF8")
        body = struct.pack("!i", 3 << 16) + b"".join(map(zero_ended, words)) + b"\0"
        await self._write(struct.pack("!i", len(body) + 4) + body)
        async for got in self._until_ready():
            if got.kind == b"S":
                read = MessageBody(got.body)
                name = read.text()
                self.told[name] = read.text()
            elif got.kind == b"K":
                self.backend, self._secret = int.from_bytes(got.body[:4], "big"), got.body[4:]
            elif got.kind == b"E":
                raise Gone(read_fields(got.body).get("M", ""))

    async def _until_ready(self) -> AsyncIterator[Message]:
        while True:
            got = await self._read()
            if got.kind == b"Z":
                self.status = got.body
                return
            yield got

    async def _write(self, sent: bytes) -> None:
        try:
            self._writer.write(sent)
            await self._writer.drain()
        except OSError as problem:
            raise Gone from problem

    async def _read(self) -> Message:
        try:
            return await read_message(self._reader, 1 << 30)
        except (OSError, EOFError) as problem:
            raise Gone from problem


async def open_link(shadow: Shadow) -> Link:
    """Return a new session of the shadow; one that starts anew, as it does after a session was killed, is waited for."""
    until = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        try:
            return await _open_now(shadow)
        except (OSError, Gone) as problem:
            if shadow.guard.poll() is not None or asyncio.get_running_loop().time() > until:
                hint = "connect again in a moment."
                raise SqlProblem("57P03", "the catalogues cannot be had at the moment.", hint, fatal=True) from problem
        await asyncio.sleep(0.05)


async def _open_now(shadow: Shadow) -> Link:
    reader, writer = await asyncio.open_unix_connection(str(shadow.socket), limit=1 << 20)
    link = Link(shadow, reader, writer)
    try:
        await link.start()
    except BaseException:
        link.close()
        raise
    return link


def is_beside(got: Message) -> bool:
    """Whether a message is no part of an answer: a notice, the value of a setting."""
    return got.kind[0] in _BESIDE
