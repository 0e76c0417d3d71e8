"""A second place that remembers how far the ledger had come.

After every durable commit the head (sequence, hash) is mirrored to `<ledger>.head`. A ledger that is behind its witness was
restored from a backup, cut or swapped: it forgot charges, and is refused. A ledger ahead of its witness is the usual trace
of a crash between the two writes. Put the witness on another disk or host and it also notices when both were restored.

The file has two slots of 4,096 bytes, each with a checksum. What is written goes over the older one, in place, and is synced:
whatever a crash tears, the other slot stands.

both slots whole    the newer one is what was seen
one torn            a crash while it was written, after the ledger's own commit: the ledger must be ahead of the other one.
                    Where it is not, it was set back, and the slot that knew it was destroyed
both torn           nobody knows what was seen: refused

Version 1 was one line of JSON that was replaced by renaming; it is read for ever, and replaced at the next write.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import re
import secrets
import time
import weakref
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from curador.canonical import canonical_digest, canonical_text
from curador.errors import InvalidStudy

_STALE = 3600  # seconds after which a temporary file belongs to a process that was killed


class Head(NamedTuple):
    """The last entry of a ledger."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class WitnessedHead:
    """What a witness remembers.

    torn   whether it is all that is left, as the other slot, which was written last, cannot be read
    """

    ledger: str
    head: Head
    torn: bool = False


def witness_of(ledger: Path) -> Path:
    """Return the place of a ledger's witness."""
    return ledger.with_name(ledger.name + ".head")


PATIENCE = 5.0
"""Seconds that a writer waits for another one at the witness."""
_POLL: Final = 0.0005
_AT_ONCE: Final = fcntl.LOCK_NB

SLOT: Final = 4096
"""Bytes of a slot: a block of most disks, so that one is not torn by writing the other."""


class WitnessSlots:
    """A witness that is written to, by one thread at a time; processes may share its file, a forked child opens its own."""

    def __init__(self, path: Path, ledger: str) -> None:
        self.path, self.ledger = path, ledger
        self._handle: tuple[int, tuple[int, int]] | None = None  # what, which file
        self._synced = -2  # the last entry that is known to be on disk there
        _OPEN.add(self)

    def look(self) -> Head | None:
        """Return the last entry that any process brought here, as far as it can be read now; None where nothing can.

        Needs   Who compares a ledger with it chooses the ledger's moment afterwards: what stands here was committed by now.
        """
        try:
            handle = self._open() if _identity_at(self.path) is not None else None
            slots = [] if handle is None else [read_slot(os.pread(handle, SLOT, place * SLOT)) for place in (0, 1)]
        except OSError:  # what cannot be read cannot be written either: then nothing is told
            return None
        heads = [slot.head for slot in slots if slot is not None and slot.ledger == self.ledger and slot.head.sequence >= 0]
        return max(heads, default=None)

    def remember(self, sequence: int, hash_: str) -> None:
        """Mirror the last entry, unless a later one stands there; on disk when this returns. OSError where it cannot be."""
        while not self._remember(self._open(), sequence, hash_):
            self.close()

    def _remember(self, handle: int, sequence: int, hash_: str) -> bool:
        """Write it into the opened file; False where that was replaced meanwhile: what is written there is lost."""
        with _locked(handle):
            if _identity_of(handle) != _identity_at(self.path):
                return False
            slots = [read_slot(os.pread(handle, SLOT, place * SLOT)) for place in (0, 1)]
            seen = [-1 if one is None or one.ledger != self.ledger else one.head.sequence for one in slots]
            if max(seen) != self._synced:  # another process wrote it, and may have been killed before its own sync:
                os.fdatasync(handle)  # what counts as seen is on disk, and a crash never tears both slots
                self._synced = max(seen)
            heads = [slot.head for slot in slots if slot is not None and slot.ledger == self.ledger]
            if any(_contradicts(head, sequence, hash_) for head in heads):
                raise OSError(errno.ESTALE, "the witness saw another entry at this place", str(self.path))
            if max(seen) < sequence:
                _write_all(handle, slot_of(self.ledger, sequence, hash_), seen.index(min(seen)) * SLOT)
                os.fdatasync(handle)
                self._synced = sequence
            return True

    def close(self) -> None:
        """Close the file."""
        held, self._handle, self._synced = self._handle, None, -2
        if held is not None:
            os.close(held[0])

    def close_in_child(self) -> None:
        """Close a file that a fork carried over, if it is still that one."""
        held, self._handle, self._synced = self._handle, None, -2
        with contextlib.suppress(OSError):
            if held is not None and _identity_of(held[0]) == held[1]:
                os.close(held[0])

    def _open(self) -> int:
        """Return the file's handle; a file that is away or of version 1 is made anew first."""
        here = _identity_at(self.path)
        if self._handle is not None and self._handle[1] != here:
            self.close()
        if self._handle is None:
            if here is None:
                make(self.path, self.ledger, -1, "", replace=True)
            elif self.path.stat().st_size != 2 * SLOT:
                self._renew()
            sync_folder(self.path.parent)  # whoever gave it its name may have been killed before that was on disk
            handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            self._handle = handle, _identity_of(handle)
        return self._handle[0]

    def _renew(self) -> None:
        """Put a file of two slots in the place of one of version 1: one process does, and the others find it."""
        old = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            with _locked(old):
                if _identity_of(old) == _identity_at(self.path):
                    seen = recall(self.path)
                    head = seen.head if seen is not None and seen.ledger == self.ledger else Head(-1, "")
                    make(self.path, self.ledger, *head, replace=True)
        finally:
            os.close(old)


_OPEN: Final[weakref.WeakSet[WitnessSlots]] = weakref.WeakSet()


def _close_in_child() -> None:
    """A lock lasts as long as any process holds the handle: a forked child closes it, so that it ends with the parent."""
    for slots in list(_OPEN):
        slots.close_in_child()


os.register_at_fork(after_in_child=_close_in_child)


def make(path: Path, ledger: str, sequence: int, hash_: str, *, replace: bool) -> None:
    """Make a witness whose both slots say the same.

    replace False: FileExistsError where a witness stands already.
    """
    write_private(path, 2 * slot_of(ledger, sequence, hash_), replace=replace)
    sync_folder(path.parent)


def slot_of(ledger: str, sequence: int, hash_: str) -> bytes:
    """Return the bytes of a slot: a line of JSON with its checksum, then blanks."""
    body = {"version": 2, "ledger": ledger, "sequence": sequence, "hash": hash_}
    text = canonical_text({**body, "checksum": canonical_digest(body)}) + "\n"
    return text.encode("ascii").ljust(SLOT, b" ")


@functools.lru_cache(maxsize=16)
def read_slot(content: bytes) -> WitnessedHead | None:
    """Return what a slot says; None where it is torn."""
    try:
        body = json.loads(content)
        sound = body.pop("checksum") == canonical_digest(body)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    match body:
        case {"version": 2, "ledger": str(ledger), "sequence": int(sequence), "hash": str(hash_)} if sound:
            return WitnessedHead(ledger, Head(sequence, hash_))
        case _:
            return None


def recall(path: Path) -> WitnessedHead | None:
    """Return what was seen; None where there is no witness; refused where it cannot be read."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        content = b""
    found = _read(content)
    if found is None:
        hint = "restore the file; without it nobody knows whether the ledger forgot charges"
        raise InvalidStudy.must_be("the ledger's witness", "a readable file", str(path), hint)
    return found


def _read(content: bytes) -> WitnessedHead | None:
    if len(content) == 2 * SLOT:
        slots = [read_slot(content[place : place + SLOT]) for place in (0, SLOT)]
        whole = [one for one in slots if one is not None]
        if len({one.ledger for one in whole}) != 1:  # none, or of two ledgers
            return None
        newest = max(whole, key=lambda one: one.head.sequence)
        return replace(newest, torn=len(whole) == 1)
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    match body:
        case {"version": 1, "ledger": str(ledger), "sequence": int(sequence), "hash": str(hash_)}:
            return WitnessedHead(ledger, Head(sequence, hash_))
        case _:
            return None


def _write_all(handle: int, content: bytes, place: int) -> None:
    while content:
        written = os.pwrite(handle, content, place)
        content, place = content[written:], place + written


def _contradicts(seen: Head, sequence: int, hash_: str) -> bool:
    """Whether what was seen and what is to be seen are of two histories: one of them would be forgotten."""
    return seen.sequence == sequence and seen.hash != hash_


def _identity_of(handle: int) -> tuple[int, int]:
    found = os.fstat(handle)
    return found.st_dev, found.st_ino


def _identity_at(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _locked(handle: int) -> Generator[None]:
    """One process at a time writes a slot. TimeoutError where another one keeps it: it was stopped in the middle."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | _AT_ONCE)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError("another process holds the witness") from None
            time.sleep(_POLL)
        else:
            break
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Put a small file in its place in one step: whole or not at all, 0600 whatever the umask, on disk.

    replace False: FileExistsError where something stands there already.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        try:
            temporary.chmod(0o600)  # the umask may have taken bits away
            os.write(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)
            temporary.unlink(missing_ok=True)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sweep(path: Path) -> None:
    """Remove temporary files that killed processes left beside a file."""
    temporary = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.new(-wal|-shm)?")
    with contextlib.suppress(OSError):
        for other in path.parent.iterdir():
            if temporary.fullmatch(other.name) and _stale(other):
                other.unlink()


def _stale(path: Path) -> bool:
    return abs(time.time() - path.stat().st_mtime) > _STALE
