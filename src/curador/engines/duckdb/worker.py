"""Where statements run: in worker processes that are killed at the deadline, or in this process, interrupted at it.

Both raise `BrokenError` with the whole truth, which is for the owner's log.

The worker is a process that holds the data version and runs the statements it is sent. It reads frames from standard input.
A frame is eight bytes of length and so many bytes. First comes the specification of the connection, to which the worker
answers when it is ready; then one question a frame: JSON, [whether it is for tables without rows, [[name, statement, …], …]].
The answer to a question is a frame of JSON, {"ok": true, "names": […]}, and one frame of Arrow for each name; or {"ok":
false, "names": [], "detail": "…"}. When standard input ends, so does the worker, whatever it is doing: it does not outlive
its parent. Nothing is unpickled.

Both ends of the pipe stand here. What only one of them needs it imports where it needs it: a worker starts in no time.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import struct
import sys
import threading
import time
import weakref
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

from curador.engines.duckdb.connection import close_doors, connect, private_files, run_in_order
from curador.engines.duckdb.spelling import DISORDER, commas, identifier

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

    import duckdb

    from curador.engines.duckdb.versions import Folder

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from curador.engines.duckdb.worker import main; main()"
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""What the worker sees of the environment."""

_START = 120.0
"""Seconds in which a worker must be ready: no part of a question's deadline, since no question has been asked."""

_MOST_PREPARED = 32
"""Statements that a connection keeps the plans of."""

_LENGTH = struct.Struct(">Q")
_HEADROOM = 8 << 30
"""Bytes of addresses beyond twice DuckDB's own limit: programs, stacks, results."""


# ---- runners -----------------------------------------------------------------------------------------------------------


class BrokenError(Exception):
    """The engine did not answer. The text may hold values of rows."""


Ways: TypeAlias = tuple[str, *tuple[str, ...]]
"""A result's name and its statements: the first that does not stop for the order of rows has the result."""


class Runner(Protocol):
    """Runs the statements of one question in one transaction."""

    def run(self, statements: Sequence[Ways], seconds: float, *, empty: bool = False) -> Mapping[str, Any]:
        """Return the Arrow tables by name, or raise BrokenError. `empty`: of the same tables without rows."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class ProcessPool:
    """Worker processes, each with one question at a time, its own deadline and its own spill folder.

    One that is late, killed or gone is replaced alone; the others go on. Who finds none free waits.

    warm   start all of them before the first question, and a new one in place of a killed one at once: where answers leave on
           a clock, nobody's time goes by while a process starts
    """

    def __init__(self, specification: Mapping[str, Any], folder: Folder, size: int, *, warm: bool = False) -> None:
        self._made = [ProcessRunner(specification, folder) for _ in range(size)]
        self._warm = warm
        self._free = list(reversed(self._made))
        self._given_back = threading.Condition()
        self._owner = os.getpid()

    def run(self, statements: Sequence[Ways], seconds: float, *, empty: bool = False) -> Mapping[str, Any]:
        """Return the Arrow tables by name, computed by the worker that was free last: it is warm."""
        runner = self._take()
        try:
            return runner.run(statements, seconds, empty=empty)
        except BrokenError:
            if self._warm:
                runner.start()
            raise
        finally:
            with self._given_back:
                self._free.append(runner)
                self._given_back.notify()

    def start(self) -> None:
        """Let all workers be ready."""
        starting = [threading.Thread(target=runner.start, daemon=True) for runner in self._made]
        for thread in starting:
            thread.start()
        for thread in starting:
            thread.join()

    def close(self) -> None:
        """End all workers."""
        self._warm = False
        for runner in self._made:
            runner.close()

    def _take(self) -> ProcessRunner:
        if self._owner != os.getpid():  # a fork has no thread that would give back what its parent was using
            self._given_back, self._free, self._owner = threading.Condition(), list(reversed(self._made)), os.getpid()
        with self._given_back:
            while not self._free:
                self._given_back.wait()
            return self._free.pop()


class ProcessRunner:
    """A worker process, started at the first question and replaced after a kill."""

    def __init__(self, specification: Mapping[str, Any], folder: Folder) -> None:
        self._specification = specification
        self._folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[[subprocess.Popen[bytes], str, int], ProcessRunner] | None = None
        self._owner = os.getpid()

    def run(self, statements: Sequence[Ways], seconds: float, *, empty: bool = False) -> Mapping[str, Any]:
        """Return the Arrow tables by name. A worker that is late, or gone, is killed and forgotten."""
        if self._owner != os.getpid():  # a fork must not share its parent's pipes, nor wait for its parent's threads
            self._lock, self._process, self._end, self._owner = threading.Lock(), None, None, os.getpid()
        if seconds <= 0:
            raise BrokenError("The deadline passed before the question began.")
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

    def start(self) -> None:
        """Let the worker be ready, if it can: else the next question tries again."""
        with self._lock, contextlib.suppress(BrokenError, OSError):
            self._started()

    def close(self) -> None:
        """End the worker, also in the middle of a question that nobody waits for any more."""
        process = self._process
        if self._owner != os.getpid():
            return
        if process is not None:
            process.kill()
        with self._lock:
            self._kill()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        import subprocess

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
        self._end = weakref.finalize(self, _end, self._process, spill, os.getpid())
        config = {**self._specification["config"], "temp_directory": spill}
        self._send(self._process, json.dumps({**self._specification, "config": config}).encode())
        _receive(self._process, time.monotonic() + _START)
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], question: bytes, seconds: float) -> tuple[Any, Mapping[str, Any]]:
        import pyarrow as pa

        from curador.engines.base import UNTIL  # not in the worker, which starts in no time

        until = min(time.monotonic() + seconds, UNTIL.get())
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

    def run(self, statements: Sequence[Ways], seconds: float, *, empty: bool = False) -> Mapping[str, Any]:
        """Return the Arrow tables by name."""
        with self._lock, private_files():
            timer: threading.Timer | None = None
            try:
                if self._connections is None:
                    self._connections = Connections(self._specification)
                keeper = self._connections.keeper(empty=empty)
                timer = threading.Timer(seconds, keeper.cursor.interrupt)
                timer.daemon = True
                timer.start()
                return keeper.answer(statements)
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


def _end(process: subprocess.Popen[bytes], spill: str, owner: int) -> None:
    """Kill a worker, also one that nobody closed, and remove what it had moved out of memory: it holds rows."""
    import shutil

    if owner != os.getpid():
        return  # a fork that ends: the worker is its parent's
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    shutil.rmtree(spill, ignore_errors=True)


def _receive(process: subprocess.Popen[bytes], until: float) -> bytes:
    """Return the next frame, read before the deadline."""
    (length,) = _LENGTH.unpack(_read(process, _LENGTH.size, until))
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
    from pathlib import Path

    home = str(Path(__file__).parents[3])
    return [home, *(path for path in sys.path if path and path != home and Path(path).exists())]


# ---- connections -----------------------------------------------------------------------------------------------------


def open_connection(specification: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """Return the connection that questions run on: one version, read only, closed to everything else."""
    database = specification["database"]
    connection = connect(database, specification["config"], read_only=database != ":memory:")
    try:
        for statement in specification["setup"]:
            connection.execute(statement).fetchall()
        run_in_order(connection)
        close_doors(connection, specification["allowed"])
    except BaseException:
        connection.close()
        raise
    return connection


class Connections:
    """The connection that questions run on, and beside it one to the same tables without rows, made when first asked for."""

    def __init__(self, specification: Mapping[str, Any]) -> None:
        self._specification = specification
        self._data = open_connection(specification)
        self._keeper = PlanKeeper(self._data.cursor())
        self._empty: duckdb.DuckDBPyConnection | None = None
        self._without: PlanKeeper | None = None

    def keeper(self, *, empty: bool) -> PlanKeeper:
        """Return what asks one question at a time."""
        if not empty:
            return self._keeper
        if self._without is None:
            self._empty = self._without_rows()
            self._without = PlanKeeper(self._empty.cursor())
        return self._without

    def close(self) -> None:
        """Close what is open."""
        self._data.close()
        if self._empty is not None:
            self._empty.close()

    def _without_rows(self) -> duckdb.DuckDBPyConnection:
        """A database whose tables have the columns and types of the version's, from its catalogue: no row is read."""
        own = "NOT internal AND database_name = current_database()"  # not the files that views read
        named = "SELECT table_name, column_name, data_type FROM duckdb_columns()"
        tables: dict[str, list[str]] = {}
        for table, column, kind in (
            self._data.cursor().execute(f"{named} WHERE {own} ORDER BY table_name, column_index").fetchall()
        ):
            tables.setdefault(table, []).append(f"{identifier(column)} {kind}")
        config = {**self._specification["config"], "threads": 1}
        connection = connect(":memory:", config)
        try:
            for table, held in tables.items():
                connection.execute(f"CREATE TABLE {identifier(table)} ({commas(held)})").fetchall()
            close_doors(connection, [])
        except BaseException:
            connection.close()
            raise
        return connection


class PlanKeeper:
    """A cursor with the statements that it ran last, prepared: a question that is asked again is not planned again.

    Plans follow from statements and the catalogue of a version, which is a file that nobody writes, not from rows: see
    `connection.py`.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self.cursor = cursor
        self._prepared: dict[str, str] = {}
        self._made = 0

    def answer(self, statements: Sequence[Ways]) -> dict[str, Any]:
        """Return the Arrow table of every result: one transaction, so one snapshot."""
        self._begin()
        try:
            return {name: self._result(*ways) for name, *ways in statements}
        finally:
            self.cursor.execute("ROLLBACK")

    def _begin(self) -> None:
        self.cursor.execute("BEGIN TRANSACTION READ ONLY")

    def _result(self, statement: str, *others: str) -> Any:
        """Return the result of a statement, or of the next one where it stopped since the engine met rows out of order.

        What it had found by then nobody sees. A version is a file that nobody writes, so another transaction sees the same.
        """
        import duckdb

        try:
            return self.cursor.sql(f"EXECUTE {self._name_of(statement)}").to_arrow_table()
        except duckdb.InvalidInputException as problem:
            if not others or DISORDER not in str(problem):
                raise
        self.cursor.execute("ROLLBACK")
        self._begin()
        return self._result(*others)

    def _name_of(self, statement: str) -> str:
        """Return the name under which a statement is prepared; the one that was not asked for longest goes."""
        name = self._prepared.pop(statement, None)
        if name is None:
            self._made += 1
            name = f"question{self._made}"
            self.cursor.execute(f"PREPARE {name} AS {statement}")
        self._prepared[statement] = name
        while len(self._prepared) > _MOST_PREPARED:
            self.cursor.execute(f"DEALLOCATE {self._prepared.pop(next(iter(self._prepared)))}")
        return name


# ---- the worker ------------------------------------------------------------------------------------------------------


def main() -> None:
    """Serve the parent until it goes away."""
    os.umask(0o077)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not enter the frames
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, requests), daemon=True).start()
    specification = json.loads(requests.get())
    _limit(specification["memory"])
    connections = Connections(specification)
    write_frame(out, b"ready")
    while True:
        empty, statements = json.loads(requests.get())
        _serve(connections, statements, out, empty=empty)


def _listen(source: IO[bytes], requests: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while (frame := read_frame(source)) is not None:
            requests.put(frame)
    os._exit(0)


def _serve(connections: Connections, statements: list[Ways], out: IO[bytes], *, empty: bool) -> None:
    try:
        tables = {name: _stream(table) for name, table in connections.keeper(empty=empty).answer(statements).items()}
    except Exception as problem:  # noqa: BLE001 -- the parent decides what anybody may know of it
        write_frame(out, json.dumps({"ok": False, "names": [], "detail": f"{type(problem).__name__}: {problem}"}).encode())
        return
    write_frame(out, json.dumps({"ok": True, "names": list(tables)}).encode())
    for content in tables.values():
        write_frame(out, content)


def _stream(table: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def read_frame(source: IO[bytes]) -> bytes | None:
    """Return the next frame; None at the end."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = source.read(length)
    return content if len(content) == length else None


def write_frame(out: IO[bytes], content: bytes) -> None:
    """Write one frame."""
    out.write(_LENGTH.pack(len(content)) + content)
    out.flush()


def _limit(memory: int) -> None:
    """No core dump, which would hold rows; and an end to addresses for what escapes DuckDB's own limit."""
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (2 * memory + _HEADROOM, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
