"""The door itself: who connects, how many, for how long; TLS, login, cancels, and the end of whoever may not stay.

Whether a token is still in force is looked up by `still` for every connection, several times a second: one that expired or
was revoked has no connection a second later.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from curador.door import messages
from curador.door.asking import Asking
from curador.door.describing import Describer
from curador.door.link import Gone, Link, open_link
from curador.door.login import LONGEST_USER, log_in
from curador.door.messages import Malformed, Message, MessageBody, NotUtf8, read_message, read_start
from curador.door.pools import Pools
from curador.door.problems import UNEXPECTED, SqlProblem
from curador.door.session import DoorSession
from curador.door.settings import DoorSettings, read_options
from curador.door.shadow import Shadows
from curador.errors import CuradorError
from curador.server.logs import write_log

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from curador.door.shadow import Shadow
    from curador.server.service import Service
    from curador.server.tokens import Caller

_FLUSHED = 1 << 16
_LOOK = 0.4
"""Seconds between two looks at whether tokens are in force."""

_LAST_WORD = 0.5
"""Seconds in which whoever is ended may read why; with a look they are less than one."""

_LOOPBACK = ("127.", "::1", "::ffff:127.")


@dataclass(frozen=True)
class DoorLimits:
    """How many may be inside, and how long anything may take.

    most, each, strangers  connections: all, of one token, of those who have not logged in
    start, idle, write     seconds for the login, between two messages, until what was written has left
    statement              seconds of a statement about catalogues
    under_way              questions that are computed at a time
    """

    most: int = 100
    each: int = 20
    strangers: int = 64
    start: float = 30.0
    idle: float = 3_600.0
    write: float = 60.0
    statement: float = 10.0
    under_way: int = 64


@dataclass
class Guest:
    """A connection: its ends, and whoever it turned out to be."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    limits: DoorLimits
    peer: str
    task: asyncio.Task[None] | None = None
    caller: Caller | None = None
    session: DoorSession | None = None
    secret: int = 0
    waits: bool = False
    """Whether nothing of it is under way."""
    waiting: bytearray = field(default_factory=bytearray)

    async def tell(self, sent: bytes) -> None:
        """Write something, soon."""
        self.waiting += sent
        if len(self.waiting) >= _FLUSHED:
            await self.flush()

    async def flush(self) -> None:
        """Write all, and wait while the client is slow, but not for ever."""
        if self.waiting:
            self.writer.write(bytes(self.waiting))
            self.waiting.clear()
            try:
                async with asyncio.timeout(self.limits.write):
                    await self.writer.drain()
            except TimeoutError:
                self.writer.transport.abort()
                raise

    async def read(self) -> Message:
        """Return the next message of a session; all that was told has left then."""
        await self.flush()
        self.waits = True
        try:
            async with asyncio.timeout(self.limits.idle):
                got = await read_message(self.reader)
        except TimeoutError:
            raise SqlProblem("57P05", "the connection was idle for too long.", fatal=True) from None
        self.waits = False
        return got

    async def read_password(self) -> bytes:
        """Return the next message of a login."""
        await self.flush()
        got = await read_message(self.reader, messages.LONGEST_START)
        if got.kind != b"p":
            raise Malformed("a login must be by SCRAM-SHA-256")
        return got.body

    async def end(self, problem: SqlProblem) -> None:
        """Tell why, and leave."""
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self.writer.write(bytes(self.waiting) + messages.error(problem.fields))
            self.waiting.clear()
            async with asyncio.timeout(_LAST_WORD):
                await self.writer.drain()
        with contextlib.suppress(OSError, RuntimeError):
            self.writer.close()


class Door:
    """A listener on one address, for one service."""

    def __init__(
        self,
        service: Service,
        *,
        limits: DoorLimits | None = None,
        tls: ssl.SSLContext | None = None,
        folder: Path | None = None,
        log: Callable[..., None] | None = None,
    ) -> None:
        """Open for a service; with TLS whoever is not on this machine must use it.

        folder  has the shadows' data
        log     is given a level, an event and fields, as `write_log` is
        """
        self.service, self.limits, self.tls = service, limits or DoorLimits(), tls
        self.shadows = Shadows(folder)
        self.guests: dict[int, Guest] = {}
        self._describers: dict[str, Describer] = {}
        self._pools = Pools(self.limits.under_way)
        self._server: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._log = log or write_log
        self._stopping = False

    # ---- open and closed --------------------------------------------------------------------------------------------

    async def open(self, host: str, port: int) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._come, host, port, limit=1 << 16, backlog=128)
        self._watch = asyncio.ensure_future(self._watch_tokens())
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self, grace: float = 0.0) -> None:
        """Let nobody in, end whoever waits, and the others when they are done or the grace is over."""
        self._stopping = True
        if self._server is not None:
            self._server.close()
        until = asyncio.get_running_loop().time() + grace
        stopped = SqlProblem("57P01", "the service is stopping.", "connect again in a moment.", fatal=True)
        while self.guests:
            over = asyncio.get_running_loop().time() >= until
            left = [one for one in self.guests.values() if one.waits or one.caller is None or over]
            await self._end_all(left, stopped)
            await asyncio.sleep(0.02)
        if self._watch is not None:
            self._watch.cancel()
        for describer in self._describers.values():
            describer.close()
        await self.shadows.stop()
        self._pools.close()

    async def _end(self, guest: Guest, problem: SqlProblem) -> None:
        await guest.end(problem)
        if guest.task is not None:
            guest.task.cancel()

    async def _end_all(self, guests: Iterable[Guest], problem: SqlProblem) -> None:
        """End several at a time: who does not read what is told is waited for, and no other is."""
        await asyncio.gather(*(self._end(guest, problem) for guest in guests), return_exceptions=True)

    async def _watch_tokens(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            callers = {guest.caller for guest in self.guests.values() if guest.caller is not None}
            gone = [caller for caller in callers if not await self._is_in_force(caller)]
            ended = SqlProblem("57P01", "the token must be one that is in force.", fatal=True)
            await self._end_all([guest for guest in self.guests.values() if guest.caller in gone], ended)

    async def _is_in_force(self, caller: Caller) -> bool:
        try:
            await self._pools.watch(partial(self.service.still, caller))
        except CuradorError:
            return False
        except Exception as error:  # noqa: BLE001 -- a look that fails is tried again
            self._log("error", "door: watch failed", error=type(error).__name__)
        return True

    # ---- one connection ---------------------------------------------------------------------------------------------

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = writer.get_extra_info("peername")
        guest = Guest(reader, writer, self.limits, str(name[0]) if name else "", asyncio.current_task())
        number = int.from_bytes(secrets.token_bytes(4)) >> 1
        while number in self.guests:
            number = int.from_bytes(secrets.token_bytes(4)) >> 1
        self.guests[number] = guest
        self._make_room()
        try:
            await self._receive(guest, number)
        except SqlProblem as problem:
            self._note_end(guest, problem.state)
            await guest.end(problem)
        except (Malformed, NotUtf8) as broken:
            self._note_end(guest, "08P01")
            await guest.end(SqlProblem("08P01", f"{broken}.", fatal=True))
        except (EOFError, OSError, TimeoutError, Gone):
            pass
        except asyncio.CancelledError:
            pass  # it was ended, and told why
        except Exception as error:  # noqa: BLE001 -- whatever it is, an id of it leaves and nothing else
            incident = secrets.token_hex(8)
            self._log("error", "door: connection failed", error=type(error).__name__, incident=incident)
            await guest.end(SqlProblem("XX000", f"{UNEXPECTED} Incident {incident}.", fatal=True))
        finally:
            self.guests.pop(number, None)
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()
                if writer.transport.get_write_buffer_size():  # closing waits for a client to read what is left
                    asyncio.get_running_loop().call_later(self.limits.write, writer.transport.abort)

    def _note_end(self, guest: Guest, state: str) -> None:
        self._note(guest, "door: login refused" if guest.caller is None else "door: connection ended", state)

    def _note(self, guest: Guest, event: str, state: str) -> None:
        """Write down what was refused: whose token, where one was proved, and the SQLSTATE; no text of anybody's."""
        said = {} if guest.caller is None else {"token": guest.caller.token_id}
        self._log("warning", event, error=state, **said)

    async def _receive(self, guest: Guest, number: int) -> None:
        async with asyncio.timeout(self.limits.start) as patience:
            said = await self._first_word(guest)
            if said is None:
                return
            self._require_room()
            user = said.get("user", "")
            if not user or len(user) > LONGEST_USER:
                raise SqlProblem("28000", "a user must be named: the name and the id of a token.", fatal=True)
            caller = await log_in(self.service, user, guest.peer, guest.read_password, guest.tell)
            self._require_few(caller)
            guest.caller = caller
            await guest.tell(messages.AUTHENTICATED)
            self._require_database(said, user)
            settings = _settings_of(said)
            described = await self._pools.quick(caller.token_id, partial(self.service.describe, caller))
            patience.reschedule(None)  # the first of a kind waits for a shadow to start
            async with self.shadows.of(caller.holder, described, self.service.study.name) as shadow:
                await self._serve(guest, number, settings, shadow, frozenset(one["name"] for one in described["tables"]))

    async def _serve(self, guest: Guest, number: int, settings: DoorSettings, shadow: Shadow, tables: frozenset[str]) -> None:
        if guest.caller is None:
            return
        link = await open_link(shadow)
        try:
            await self._serve_by(guest, number, settings, link, tables)
        finally:
            link.close()

    async def _serve_by(self, guest: Guest, number: int, settings: DoorSettings, link: Link, tables: frozenset[str]) -> None:
        if guest.caller is None:
            return
        shadow = link.shadow
        asking = Asking(self.service, guest.caller, settings, self._pools)
        describer = self._describer_of(shadow)
        settings.values["server_version"] = link.told.get("server_version", "18.0")
        settings.started()
        session = DoorSession(
            asking,
            settings,
            link,
            describer,
            tables,
            read=guest.read,
            tell=guest.tell,
            note=partial(self._note, guest, "door: statement refused"),
            longest=self.limits.statement,
        )
        guest.session, guest.secret = session, int.from_bytes(secrets.token_bytes(4))
        for name, value in settings.reported().items():
            await guest.tell(messages.parameter_status(name, value))
        await guest.tell(messages.backend_key(number, guest.secret))
        await guest.tell(messages.ready(b"I"))
        await session.run()

    def _describer_of(self, shadow: Shadow) -> Describer:
        for home in [home for home, one in self._describers.items() if one.over]:
            self._describers.pop(home).close()
        return self._describers.setdefault(str(shadow.cluster.home), Describer(shadow))

    async def _first_word(self, guest: Guest) -> dict[str, str] | None:
        """Return what a client says of itself at its start; None of one that only cancels."""
        encrypted = False
        for _ in range(4):
            code, body = await read_start(guest.reader)
            if code == messages.CANCEL:
                await self._cancel(body)
                return None
            if code == messages.TLS and self.tls is not None and not encrypted:
                if getattr(guest.reader, "_buffer", b""):
                    raise Malformed("nothing must be sent before TLS is agreed")
                guest.writer.write(b"S")
                await guest.writer.drain()
                await guest.writer.start_tls(self.tls)
                encrypted = True
            elif code in {messages.TLS, messages.GSS}:
                guest.writer.write(b"N")
                await guest.writer.drain()
            elif code >> 16 == 3:
                if self.tls is not None and not encrypted and not guest.peer.startswith(_LOOPBACK):
                    raise SqlProblem("28000", "a connection must be encrypted.", "sslmode=verify-full", fatal=True)
                return await self._said(guest, code, body)
            else:
                raise Malformed("the protocol must be 3.0")
        raise Malformed("a connection must begin")

    async def _said(self, guest: Guest, code: int, body: bytes) -> dict[str, str]:
        read, said = MessageBody(body), dict[str, str]()
        while name := read.text():
            said[name] = read.text()
        read.end()
        unknown = [name for name in said if name.startswith("_pq_.")]
        if unknown or code & 0xFFFF:
            await guest.tell(messages.other_protocol(unknown))
        if said.get("replication", "off").lower() not in {"off", "false", "no", "0"}:
            raise SqlProblem("0A000", "replication is not here.", fatal=True)
        return {name: value for name, value in said.items() if name not in {*unknown, "replication"}}

    async def _cancel(self, body: bytes) -> None:
        """Cancel what a connection does; whoever guesses wrong hears nothing."""
        if len(body) != 8:
            return
        guest = self.guests.get(int.from_bytes(body[:4], "big"))
        if guest is None or guest.session is None:
            return
        if hmac.compare_digest(guest.secret.to_bytes(4, "big"), body[4:]):
            await guest.session.cancel()

    # ---- who finds room ---------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """End those who have waited longest without logging in: whoever connects and says nothing keeps nobody out."""
        strangers = [one for one in self.guests.values() if one.caller is None]
        for guest in strangers[: max(len(strangers) - self.limits.strangers, 0)]:
            guest.writer.transport.abort()
            if guest.task is not None:
                guest.task.cancel()

    def _require_room(self) -> None:
        if self._stopping:
            raise SqlProblem("57P03", "the service is stopping.", fatal=True)

    def _require_few(self, caller: Caller) -> None:
        inside = [one.caller for one in self.guests.values() if one.caller is not None]
        if len(inside) >= self.limits.most:
            raise SqlProblem("53300", "there are too many connections.", "try again in a moment.", fatal=True)
        if sum(one.token_id == caller.token_id for one in inside) >= self.limits.each:
            most = f"a token must have at most {self.limits.each} connections at a time."
            raise SqlProblem("53300", most, "close one, or use another token.", fatal=True)

    def _require_database(self, said: dict[str, str], user: str) -> None:
        name, study = said.setdefault("database", user), self.service.study.name
        if name not in {study, user, user.rpartition(".")[0], "postgres", "curador"}:
            raise SqlProblem("3D000", f"the database must be {study}.", fatal=True)


def _settings_of(said: dict[str, str]) -> DoorSettings:
    """Return the settings with which a connection starts."""
    settings = DoorSettings()
    try:
        for name, value in said.items():
            if name == "options":
                for own, text in read_options(value):
                    settings.set(own, text)
            elif name not in {"user", "database"}:
                settings.set(name, value)
    except SqlProblem as problem:
        raise SqlProblem(problem.state, problem.sentence, problem.hint, fatal=True) from problem
    settings.values["session_authorization"] = said["user"]
    return settings
