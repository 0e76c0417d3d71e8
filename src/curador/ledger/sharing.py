"""One writer for several processes: a small process at a Unix socket, which puts together what all of them want written.

    asker's process: Reserve, Settle ──► <ledger>.writer (0600) ──► Writer of the process that serves ──► store, witness
                     └── nobody there: its own writer, as before; the store's own lock holds between the two

The socket is the owner's alone: its mode is 0600, and both ends ask the system who the other one is. What is sent is JSON in
frames, an answer's bytes in a frame of their own; nothing is unpickled.

Claim   A request that was handed over has one outcome. Where the connection is lost, the asker does the act itself, by its
        id: it finds the entry that the other process wrote, or writes it, and then the other one cannot.
Needs   `acts.py`; ids of entries are unique in the store, and a reservation is settled once.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import socket
import stat
import struct
import threading
import time
import weakref
from collections.abc import Generator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from curador.errors import (
    BudgetExceeded,
    CuradorError,
    Failed,
    InvalidParameter,
    InvalidStudy,
    LedgerBusy,
    NotAllowed,
    NotPrivate,
)
from curador.ledger.acts import Act, Reserve, Serve, Settle
from curador.ledger.amounts import Amounts
from curador.ledger.entry import AlreadyReserved, Entry, EntryKind, Request, Spent, seal
from curador.ledger.limits import admit
from curador.ledger.writer import PATIENCE, SETTLING, UNKNOWN, Writer
from curador.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from curador.ledger.limits import Limits

Outcome = TypeVar("Outcome")

_LENGTH: Final = struct.Struct(">Q")
_LARGEST: Final = 1 << 31  # bytes of a frame
_LONGEST: Final = 100  # characters of a socket's path, on every system
_PEER: Final = struct.Struct("3i")
_IDLE: Final = 64  # connections that are kept open between uses
_PAUSE: Final = 0.05  # seconds after which it is tried again to let somebody in
_SERVICES: Final[weakref.WeakSet[WriterService]] = weakref.WeakSet()


def socket_of(ledger: Path) -> Path:
    """Return the place of the socket at which a process writes for others."""
    return ledger.with_name(ledger.name + ".writer")


# ---- both ends ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _address(path: Path) -> Generator[str]:
    """A name by which the socket is reached: its path, or a short one through a handle of its folder."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _require_owner(connection: socket.socket) -> None:
    """Refuse a process of somebody else at the other end. ConnectionRefusedError."""
    _, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if user != os.geteuid():
        raise ConnectionRefusedError("the other end belongs to somebody else")


def _send(connection: socket.socket, body: object, content: bytes | None = None) -> None:
    text = json.dumps(body, allow_nan=False).encode("utf-8", "surrogatepass")
    more = b"" if content is None else content
    connection.sendall(_LENGTH.pack(len(text)) + text + _LENGTH.pack(len(more)) + more)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Return the next request or reply, and the bytes that came with it. OSError or ValueError where none comes."""
    text, content = _frame(connection), _frame(connection)
    body = json.loads(text.decode("utf-8", "surrogatepass"))
    if type(body) is not dict:
        raise ValueError("not a request")
    return cast("dict[str, Any]", body), content


def _frame(connection: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size))
    if length > _LARGEST:
        raise ValueError("a frame is too long")
    return _read(connection, length)


def _read(connection: socket.socket, length: int) -> bytes:
    parts: list[bytes] = []
    while length:
        part = connection.recv(min(length, 1 << 20))
        if not part:
            raise ConnectionResetError("the other end is gone")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


# ---- what is said -------------------------------------------------------------------------------------------------------


def _told(act: Reserve | Settle, patience: float, *, again: bool) -> dict[str, Any]:
    """Return an act as plain values."""
    how = {"id": act.id, "patience": patience, "again": again}
    if isinstance(act, Settle):
        own = {"kind": act.kind.value, "own": seal(act.own)[1], "note": act.note, "stores": act.answer is not None}
        return {"act": "settle", **how, **own, "answer_digest": act.answer_digest, "content_digest": act.content_digest}
    asked = act.request
    request = {
        "amounts": asked.amounts.record(),
        "losses": asked.losses,
        "study_digest": asked.study_digest,
        "data_version": asked.data_version,
        "question_key": asked.question_key,
        "question": asked.question,
        "plan_digest": asked.plan_digest,
        "adjacency": asked.adjacency.value,
        "tables": asked.tables,
        "analyst": asked.analyst,
        "share": str(asked.share),
        "asked": asked.asked,
    }
    return {"act": "reserve", **how, "request": request, "once": act.once, "dead": list(act.dead)}


def _understood(body: dict[str, Any], content: bytes, limits: Limits) -> Reserve | Settle:
    """Return the act that was told; KeyError, TypeError, ValueError or a refusal where it is none."""
    if body["act"] == "settle":
        return Settle(
            EntryKind(body["kind"]),
            Entry.from_text(body["own"]),
            content if body["stores"] else None,
            body["answer_digest"],
            body["content_digest"],
            body["note"],
            str(body["id"]),
        )
    if body["act"] != "reserve":
        raise ValueError("no act of this name")
    asked = body["request"]
    request = Request(
        amounts=Amounts.from_record(asked["amounts"]),
        losses=tuple(asked["losses"]),
        study_digest=asked["study_digest"],
        data_version=asked["data_version"],
        question_key=asked["question_key"],
        question=asked["question"],
        plan_digest=asked["plan_digest"],
        adjacency=Adjacency(asked["adjacency"]),
        tables=tuple(asked["tables"]),
        analyst=asked["analyst"],
        share=Fraction(asked["share"]),
        asked=asked["asked"],
    )
    admit(request, limits)
    return Reserve(request, bool(body["once"]), tuple(map(str, body["dead"])), str(body["id"]))


def _patience(told: object) -> float:
    """Return a number of seconds. NaN is judged by no clock, and all who share its batch would be refused with it."""
    if type(told) not in {int, float} or math.isnan(cast("float", told)):
        raise ValueError("no patience")
    return min(max(cast("float", told), 0.0), SETTLING)


def _reply(outcome: Spent | Entry) -> dict[str, Any]:
    if isinstance(outcome, Spent):
        sums = {"limit": outcome.limit.record(), "before": outcome.before.record(), "after": outcome.after.record()}
        return {"entry": seal(outcome.entry)[1], "sums": sums}
    return {"entry": seal(outcome)[1]}


def _outcome(reply: dict[str, Any]) -> Spent | Entry:
    """Return what became of an act, or raise what stood in its way."""
    if "error" in reply:
        raise _error(reply["error"])
    entry = Entry.from_text(reply["entry"])
    if "sums" not in reply:
        return entry
    sums = {name: Amounts.from_record(reply["sums"][name]) for name in ("limit", "before", "after")}
    return Spent(entry=entry, **sums)


_ERRORS: Final = {
    kind.__name__: kind for kind in (BudgetExceeded, InvalidParameter, InvalidStudy, LedgerBusy, NotAllowed, NotPrivate)
}
_FIELDS: Final = ("text", "subject", "rule", "got", "hint")


def _error_told(error: Exception) -> dict[str, Any]:
    """Return an error as plain values; of one that is no sentence of ours nothing but that it happened."""
    if isinstance(error, AlreadyReserved):
        return {"kind": "AlreadyReserved", "entry": seal(error.entry)[1]}
    if isinstance(error, CuradorError):
        return {"kind": type(error).__name__, **{name: getattr(error, name) for name in _FIELDS}}
    return {"kind": "Failed", "text": f"the ledger's writer could not do this: {type(error).__name__}."}


def _error(told: dict[str, Any]) -> CuradorError:
    if told["kind"] == "AlreadyReserved":
        return AlreadyReserved(Entry.from_text(told["entry"]))
    made = _ERRORS.get(str(told["kind"]), Failed)
    return made(**{name: told[name] for name in _FIELDS if told.get(name)})


# ---- the asker's end ----------------------------------------------------------------------------------------------------


class SharedWriter:
    """The writer of a process that lets another one write for it, where one is there; else its own."""

    def __init__(self, own: Writer, place: Path) -> None:
        self._own, self._place = own, place
        self._pid, self._idle = os.getpid(), list[socket.socket]()

    def do(self, act: Act[Outcome], *, patience: float = PATIENCE, again: bool = False) -> Outcome:
        """Do one act; return when it is on disk, or raise."""
        if not isinstance(act, (Reserve, Settle)):
            return self._own.do(act, patience=patience, again=again)
        connection = self._connection()
        if connection is None:
            return cast("Outcome", self._own.do(cast("Act[Any]", act), patience=patience, again=again))
        try:
            connection.settimeout(patience + SETTLING)
            _send(connection, _told(act, patience, again=again), act.answer if isinstance(act, Settle) else None)
            reply, _ = _receive(connection)
        except (OSError, ValueError) as error:  # handed over, and nobody knows
            connection.close()
            alive = isinstance(error, TimeoutError)
            return cast("Outcome", self._find(cast("Act[Any]", act), patience, alive=alive))
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return cast("Outcome", _outcome(reply))

    def count(self, serve: Serve) -> None:
        """Count an answer that was given again, in this process."""
        self._own.count(serve)

    def flush(self) -> None:
        """Write what this process counted."""
        self._own.flush()

    def close(self) -> None:
        """Close the connections."""
        held, self._idle = self._idle, []
        for connection in held if self._pid == os.getpid() else ():
            connection.close()

    def _find(self, act: Act[Any], patience: float, *, alive: bool) -> Any:
        """Do an act that was handed over: whoever writes it first, it is written once.

        alive   the other process may still have it, and write it later: what is refused now may be charged then
        """
        try:
            return self._own.do(act, patience=patience, again=True)
        except AlreadyReserved:
            raise
        except CuradorError as error:
            if not (alive or isinstance(error, LedgerBusy)):
                raise
            unknown = UNKNOWN if act.charged is None else f"the ledger was busy for too long; {act.charged}"
            raise Failed(f"{unknown}.") from None

    def _connection(self) -> socket.socket | None:
        """A connection to the process that writes; None where there is none. Nothing was handed over."""
        if self._pid != os.getpid():  # a fork must not share its parent's connections
            self._pid, self._idle = os.getpid(), []
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        made: socket.socket | None = None
        try:
            found = self._place.lstat()
            if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                return None
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.settimeout(PATIENCE)
            with _address(self._place) as address:
                made.connect(address)
            _require_owner(made)
        except OSError:
            if made is not None:
                made.close()
            return None
        return made

    def _keep(self, connection: socket.socket) -> None:
        if len(self._idle) < _IDLE:
            self._idle.append(connection)
        else:
            connection.close()


# ---- the end that writes ------------------------------------------------------------------------------------------------


class WriterService:
    """Writes for other processes of the same user, until it is stopped. A context manager."""

    def __init__(self, writer: Writer, limits: Limits, ledger: Path) -> None:
        """Listen; refused where another process does already."""
        self._writer, self._limits, self._place = writer, limits, socket_of(ledger)
        self._pid = os.getpid()
        self._threads: set[threading.Thread] = set()
        self._open: set[socket.socket] = set()
        self._lock, self._stopping, self._stopped = threading.Lock(), False, False
        self._alone = os.open(self._place.with_name(self._place.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._alone)
            hint = "it is enough that one process writes for all"
            raise InvalidStudy.must_be("the ledger's writer", "the only one", str(self._place), hint) from None
        self._place.unlink(missing_ok=True)  # of one that was killed
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            with _address(self._place) as address:
                self._socket.bind(address)
        finally:
            os.umask(before)
        self._socket.listen(256)
        _SERVICES.add(self)

    def serve(self) -> None:
        """Serve everybody who connects, each by a thread; returns when `stop` was called."""
        while not self._stopping:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                time.sleep(_PAUSE)  # too many files are open, say
                continue
            with self._lock:
                self._open.add(connection)
                thread = threading.Thread(target=self._answer, args=(connection,), daemon=True)
                self._threads.add(thread)
            thread.start()

    def interrupt(self) -> None:
        """Let `serve` return; safe to be called by a signal."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Take nothing more; what was handed over is written and told first. A forked child has nothing to stop."""
        self._stopped = True
        if self._pid != os.getpid():
            return
        self.interrupt()
        self._socket.close()
        with self._lock:
            waiting, connections = list(self._threads), list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        until = time.monotonic() + SETTLING
        for thread in waiting:
            thread.join(max(until - time.monotonic(), 0))
        with contextlib.suppress(OSError):
            self._place.unlink()
        os.close(self._alone)

    def __enter__(self) -> WriterService:  # noqa: PYI034 -- nobody derives from it
        return self

    def __exit__(self, *_: object) -> None:
        if not self._stopped:
            self.stop()

    def _answer(self, connection: socket.socket) -> None:
        try:
            with connection:
                _require_owner(connection)
                while True:
                    body, content = _receive(connection)
                    _send(connection, self._done(body, content))
        except (OSError, ValueError):  # gone, or not one of ours
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
                self._threads.discard(threading.current_thread())

    def _done(self, body: dict[str, Any], content: bytes) -> dict[str, Any]:
        """Do what is told, and return what became of it: a poisoned request is told so, and harms nobody."""
        try:
            act = _understood(body, content, self._limits)
            patience, again = _patience(body["patience"]), bool(body["again"])
            return _reply(self._writer.do(cast("Act[Any]", act), patience=patience, again=again))
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with it is its asker's
            return {"error": _error_told(error)}


def _leave_to_the_parent() -> None:
    """In a forked child: let go of the lock and of the socket, which last as long as any process holds them."""
    for service in list(_SERVICES):
        with contextlib.suppress(OSError):
            os.close(service._alone)  # noqa: SLF001 -- its own
        service._socket.close()  # noqa: SLF001 -- idem


os.register_at_fork(after_in_child=_leave_to_the_parent)
