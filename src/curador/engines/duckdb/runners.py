"""Where statements run: in a worker process that is killed at the deadline, or in this process, interrupted at it.

Both raise `BrokenError` with the whole truth, which is for the owner's log.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from curador.engines.duckdb.connection import private_files
from curador.engines.duckdb.worker import LENGTH, Connections, answer, write_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.engines.duckdb.folder import Folder

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from curador.engines.duckdb.worker import main; main()"
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""What the worker sees of the environment."""

_START = 120.0
"""Seconds in which a worker must be ready: no part of a question's deadline, since no question has been asked."""


class BrokenError(Exception):
    """The engine did not answer. The text may hold values of rows."""


class Runner(Protocol):
    """Runs the statements of one question in one transaction."""

    def run(self, statements: Sequence[tuple[str, str]], seconds: float, *, empty: bool = False) -> Mapping[str, Any]:
        """Return the Arrow tables by name, or raise BrokenError. `empty`: of the same tables without rows."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class ProcessRunner:
    """A worker process, started at the first question and replaced after a kill."""

    def __init__(self, specification: Mapping[str, Any], folder: Folder) -> None:
        self._specification = specification
        self._folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[[subprocess.Popen[bytes], str], ProcessRunner] | None = None
        self._owner = os.getpid()

    def run(self, statements: Sequence[tuple[str, str]], seconds: float, *, empty: bool = False) -> Mapping[str, Any]:
        """Return the Arrow tables by name. A worker that is late, or gone, is killed and forgotten."""
        with self._lock:
            finished = False
            try:
                process = self._started()
                head, tables = self._ask(process, json.dumps([empty, list(statements)]).encode(), seconds)
                finished = True
            finally:
                if not finished:  # late, gone or interrupted: what it does now is unknown
                    self._kill()
        if not head["ok"]:
            raise BrokenError(head["detail"])
        return tables

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            self._kill()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():  # a fork must not share its parent's pipes
            self._process, self._end, self._owner = None, None, os.getpid()
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._kill()
        with self._folder.appending(self._folder.incidents) as log:
            self._process = subprocess.Popen(  # noqa: S603 -- our own program
                [sys.executable, "-I", "-c", _PROGRAM, *_paths()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder.path,
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                start_new_session=True,  # Ctrl-C is for the parent, which then ends the worker
            )
        spill = str(self._folder.new_spill())
        self._end = weakref.finalize(self, _end, self._process, spill)
        config = {**self._specification["config"], "temp_directory": spill}
        self._send(self._process, json.dumps({**self._specification, "config": config}).encode())
        _receive(self._process, time.monotonic() + _START)
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], question: bytes, seconds: float) -> tuple[Any, Mapping[str, Any]]:
        import pyarrow as pa

        until = time.monotonic() + seconds
        self._send(process, question)
        head = json.loads(_receive(process, until))
        return head, {name: pa.ipc.open_stream(_receive(process, until)).read_all() for name in head["names"]}

    def _send(self, process: subprocess.Popen[bytes], content: bytes) -> None:
        try:
            if process.stdin is not None:
                write_frame(process.stdin, content)
        except OSError:
            raise BrokenError("The worker is gone.") from None

    def _kill(self) -> None:
        self._process = None
        if self._end is not None and self._owner == os.getpid():
            self._end()
        self._end = None


class InlineRunner:
    """This process itself, for scripts. The deadline interrupts, which takes effect when DuckDB next looks."""

    def __init__(self, specification: Mapping[str, Any]) -> None:
        self._specification = specification
        self._lock = threading.Lock()
        self._connections: Connections | None = None

    def run(self, statements: Sequence[tuple[str, str]], seconds: float, *, empty: bool = False) -> Mapping[str, Any]:
        """Return the Arrow tables by name."""
        with self._lock, private_files():
            timer: threading.Timer | None = None
            try:
                if self._connections is None:
                    self._connections = Connections(self._specification)
                cursor = self._connections.cursor(empty=empty)
                timer = threading.Timer(seconds, cursor.interrupt)
                timer.daemon = True
                timer.start()
                return answer(cursor, statements)
            except Exception as problem:  # noqa: BLE001 -- the engine decides what anybody may know of it
                raise BrokenError(f"{type(problem).__name__}: {problem}") from None
            finally:
                if timer is not None:
                    timer.cancel()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connections is not None:
                self._connections.close()
                self._connections = None


def _end(process: subprocess.Popen[bytes], spill: str) -> None:
    """Kill a worker, also one that nobody closed, and remove what it had moved out of memory: it holds rows."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    shutil.rmtree(spill, ignore_errors=True)


def _receive(process: subprocess.Popen[bytes], until: float) -> bytes:
    """Return the next frame, read before the deadline."""
    (length,) = LENGTH.unpack(_read(process, LENGTH.size, until))
    return _read(process, length, until)


def _read(process: subprocess.Popen[bytes], length: int, until: float) -> bytes:
    if process.stdout is None:
        raise BrokenError("The worker has no output.")
    handle = process.stdout.fileno()
    parts: list[bytes] = []
    while length:
        left = until - time.monotonic()
        if left <= 0 or not select.select([handle], [], [], left)[0]:
            raise BrokenError("The deadline passed.")
        part = os.read(handle, min(length, 1 << 20))
        if not part:
            raise BrokenError("The worker ended.")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _paths() -> list[str]:
    """Where the worker finds the same packages as this process; never the working folder."""
    home = str(Path(__file__).parents[3])
    return [home, *(path for path in sys.path if path and path != home and Path(path).exists())]
