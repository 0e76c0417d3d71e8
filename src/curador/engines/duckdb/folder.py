"""The prepared folder `<ledger>.prepared/`: a second copy of sensitive rows, so the owner's alone (0700, files 0600).

key             32 random bytes of the study: ranks, hashes of units and digests of sources are made with it
manifest.json   which version is prepared, from which sources, for which declarations
v<N>.duckdb     data version N, prepared
frames/         tables given from Python, where nothing is prepared
spill/          what DuckDB moves out of memory while it works
lock            held by the process that prepares
incidents.log   what really happened when a question failed; analysts see an id only
durations.log   how long questions took, by the id in their receipts; analysts see the time at which they asked only

The two logs are the owner's alone: what really happened when a question failed, and how long others took. Each is a line of
JSON; everybody else sees a random id.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import hmac
import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from curador.engines.base import EngineFailed
from curador.errors import InvalidStudy
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Generator

    from curador.study.model import Study


# ---- folder ----------------------------------------------------------------------------------------------------------------


_KEY_BYTES = 32


def prepared_folder(study: Study) -> Path:
    """Return the study's prepared folder: beside its ledger."""
    ledger = study.folder / study.ledger
    return ledger.with_name(f"{ledger.name}.prepared").absolute()


@dataclass(frozen=True, slots=True)
class Folder:
    """The places inside one prepared folder."""

    path: Path

    @property
    def manifest(self) -> Path:
        """What is prepared."""
        return self.path / "manifest.json"

    @property
    def spill(self) -> Path:
        """Where DuckDB spills."""
        return self.path / "spill"

    @property
    def frames(self) -> Path:
        """Tables given from Python, as files."""
        return self.path / "frames"

    @property
    def incidents(self) -> Path:
        """The owner's log of failures."""
        return self.path / "incidents.log"

    @property
    def durations(self) -> Path:
        """The owner's log of how long questions took."""
        return self.path / "durations.log"

    def version(self, number: int) -> Path:
        """Return the file of a prepared version."""
        return self.path / f"v{number}.duckdb"

    def make(self) -> None:
        """Make the folder and its key, or make sure that they are the owner's alone."""
        for folder in (self.path, self.spill):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        with contextlib.suppress(FileExistsError):
            write_private(self.path / "key", secrets.token_bytes(_KEY_BYTES), new=True)

    def key(self, purpose: str) -> bytes:
        """Return the study's key for one purpose: 32 bytes."""
        try:
            stored = (self.path / "key").read_bytes()
        except OSError:
            stored = b""
        if len(stored) != _KEY_BYTES:
            hint = "restore it; or run `curador refresh`: without the key nobody can tell whether the data are still the same"
            raise InvalidStudy.must_be(str(self.path / "key"), f"{_KEY_BYTES} bytes", Plain(f"{len(stored)} bytes"), hint)
        return hmac.digest(stored, purpose.encode(), hashlib.sha256)

    def remove_versions(self, keep: int | None = None) -> None:
        """Remove prepared versions but one and what a broken preparation left; without one also frames and the logs."""
        for file in self.path.glob("v*.duckdb*"):
            if keep is None or file.name != self.version(keep).name:
                file.unlink(missing_ok=True)
        self.sweep()
        if keep is None:
            shutil.rmtree(self.frames, ignore_errors=True)
            self.incidents.unlink(missing_ok=True)
            self.durations.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed processes had moved out of memory: it holds rows."""
        for left in self.spill.glob("*"):
            if not _is_alive(left.name.partition("-")[0]):
                shutil.rmtree(left, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Let one process at a time prepare; others wait."""
        import fcntl

        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def own_spill(self) -> Path:
        """Return this process's place for what is moved out of memory; its connections to one file must agree on it."""
        return self.spill / str(os.getpid())

    def new_spill(self) -> Path:
        """Return a place of its own for what a worker, or a preparation, moves out of memory; it tells whose it is."""
        return self.spill / f"{os.getpid()}-{secrets.token_hex(4)}"

    def appending(self, log: Path) -> IO[bytes]:
        """Open one of the owner's logs to append to it."""
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(handle, "ab", buffering=0)

    def size(self) -> int:
        """Return the bytes that the folder holds."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())


def _is_alive(number: str) -> bool:
    """Whether the process of this number runs: what a killed one left behind holds rows and is removed."""
    try:
        os.kill(int(number), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def write_private(path: Path, content: bytes, *, new: bool = False) -> None:
    """Write a file that only the owner can read, at once: readers see the old content or the new one."""
    if new:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    write_private(beside, content, new=True)
    beside.replace(path)


# ---- incidents -------------------------------------------------------------------------------------------------------------


def log_failure(folder: Folder, version: int, detail: str) -> EngineFailed:
    """Write what happened to the owner's log; return what anybody may know of it."""
    incident = secrets.token_hex(8)
    note_failure(folder, version, incident, detail)
    return EngineFailed(incident)


def note_failure(folder: Folder, version: int, incident: str, detail: str) -> None:
    """Write what happened under an id that was given to it elsewhere."""
    _append(folder, folder.incidents, {"incident": incident, "version": version, "detail": detail})


def note_duration(folder: Folder, version: int, question: str, seconds: float) -> None:
    """Write how long a question took, by the id that its receipt shows."""
    _append(folder, folder.durations, {"question": question, "version": version, "seconds": round(seconds, 3)})


def _append(folder: Folder, log: Path, entry: dict[str, object]) -> None:
    now = dt.datetime.now(dt.UTC).isoformat()
    with folder.appending(log) as file:
        file.write(json.dumps({"time": now, **entry}).encode() + b"\n")
