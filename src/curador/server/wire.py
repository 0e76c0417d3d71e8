"""How connections are held: whoever has not sent a whole request within seconds, or reads no answer, is gone.

uvicorn closes a connection that idles between requests; one that sends a byte a minute it keeps for ever. Here every
connection has so many seconds from its beginning, or from the first byte of its next request, until the request is whole.
An answer that a client does not take is memory of ours: where nothing of what waits to leave has left for a while, nobody
reads it any more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.config import Config

SECONDS: Final = 10.0

UNREAD: Final = 60.0
"""Seconds within which some of an answer must leave: what a system buffers lets a slow reader look still for a while."""


class PunctualProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with an end to patience."""

    seconds = SECONDS
    unread = UNREAD

    def __init__(self, config: Config, *given: Any, **said: Any) -> None:
        super().__init__(config, *given, **said)
        self._ends: asyncio.TimerHandle | None = None
        self._looks: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for the first request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # whatever has not left is waited for
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a request, or no more once it is whole."""
        super().data_received(data)
        if self.conn.their_state in {h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR}:
            self._no_more()
        elif self._ends is None:
            self._wait()

    def on_response_complete(self) -> None:
        """Begin anew where the next request was sent already."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and self._ends is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._no_more()
        self._look_no_more()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Look from now on whether the client reads."""
        super().pause_writing()
        self._look_no_more()
        self._look_later()

    def resume_writing(self) -> None:
        """Look no more: everything has left."""
        self._look_no_more()
        super().resume_writing()

    def _wait(self) -> None:
        self._ends = self.loop.call_later(self.seconds, self._end)

    def _no_more(self) -> None:
        if self._ends is not None:
            self._ends.cancel()
            self._ends = None

    def _end(self) -> None:
        self._ends = None
        self.transport.abort()

    def _look_later(self) -> None:
        self._looks = self.loop.call_later(self.unread, self._look, self.transport.get_write_buffer_size())

    def _look_no_more(self) -> None:
        if self._looks is not None:
            self._looks.cancel()
            self._looks = None

    def _look(self, before: int) -> None:
        """End a connection that has not taken anything since the last look."""
        self._looks = None
        if self.transport.get_write_buffer_size() < before:
            self._look_later()
        else:
            self.transport.abort()
