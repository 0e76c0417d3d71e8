"""A second place that remembers how far the ledger had come.

After every durable commit the head (sequence, hash) is mirrored to `<ledger>.head`. A ledger that is behind its witness was
restored from a backup, cut or swapped: it forgot charges, and is refused. A ledger ahead of its witness is the usual trace
of a crash between the two writes. Put the witness on another disk or host and it also notices when both were restored.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from curador.errors import InvalidStudy

_STALE = 3600  # seconds after which a temporary file belongs to a process that was killed


class Head(NamedTuple):
    """The last entry of a ledger."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class WitnessedHead:
    """What a witness remembers."""

    ledger: str
    head: Head


def witness_of(ledger: Path) -> Path:
    """Return the place of a ledger's witness."""
    return ledger.with_name(ledger.name + ".head")


def remember(path: Path, ledger: str, sequence: int, hash_: str, *, anew: bool = False) -> None:
    """Write what was seen, the last entry: on disk before it replaces what stood there, readable by the owner only.

    anew   FileExistsError where a witness stands already
    """
    body = {"version": 1, "ledger": ledger, "sequence": sequence, "hash": hash_}
    write_private(path, (json.dumps(body) + "\n").encode(), replace=not anew)


def recall(path: Path) -> WitnessedHead | None:
    """Return what was seen; None where there is no witness; refused where it cannot be read."""
    try:
        body = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        body = None
    match body:
        case {"version": 1, "ledger": str(ledger), "sequence": int(sequence), "hash": str(hash_)}:
            return WitnessedHead(ledger, Head(sequence, hash_))
        case _:
            hint = "restore the file; without it nobody knows whether the ledger forgot charges"
            raise InvalidStudy.must_be("the ledger's witness", "a readable file", str(path), hint)


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
