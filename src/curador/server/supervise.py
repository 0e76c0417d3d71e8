"""The supervisor of a service: it listens, starts processes, starts anew what dies, and ends all of them in good order.

    supervisor ── socket ──┬─► http 1 … n     each with its own engines; whoever is free takes the next connection
               └─ pipes    ├─► writer         one durable write for what all of them want written
                           └─► others (the PostgreSQL door)

It opens no study, so there is nothing in it that can break. What dies is started again at once, later if it dies again: jobs
that it was computing are taken over by another process, and their charges are found by their ids.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from curador.errors import Failed, InvalidParameter
from curador.server.logs import write_log
from curador.server.process import GONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.server.serving import ServeSettings

BACKLOG: Final = 2048
GRACE: Final = 15.0
"""Seconds beyond the deadline after which what does not end is killed."""
LONGEST_PAUSE: Final = 5.0
STEADY: Final = 10.0
"""Seconds after which a process that dies is not one that cannot live."""
_BIND: Final = 5.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A process that is wanted.

    command  what follows the interpreter; numbers of pipes and sockets follow it
    settings what it is told on standard input
    listens  whether it is given the socket of HTTP
    late     whether it begins when the first of the others is ready: what it needs is made by then
    """

    name: str
    command: tuple[str, ...]
    settings: str
    listens: bool = False
    late: bool = True


@dataclass(slots=True)
class Child:
    """One that runs, or is to run again."""

    kind: Kind
    process: subprocess.Popen[bytes] | None = None
    ready: int | None = None
    is_ready: bool = False
    begun: float = 0.0
    deaths: int = 0
    again_at: float = 0.0


@dataclass(slots=True)
class Supervisor:
    """Holds the socket and the processes.

    others   further processes beside those of HTTP and the writer
    told     is told once, when the service answers
    """

    settings: ServeSettings
    others: tuple[Kind, ...] = ()
    told: Callable[[str], None] = print
    deadline: float = 60.0
    _children: list[Child] = field(default_factory=list[Child])
    _stopping: bool = False
    _socket: socket.socket | None = None
    _alive: tuple[int, int] = (-1, -1)
    _wake: tuple[int, int] = (-1, -1)
    _numbers: Path | None = None

    def run(self) -> int:
        """Serve until a signal says to end; return the code to end with."""
        _allow_many_files()
        self._socket = listen(self.settings.host, self.settings.port)
        self._alive, self._wake = os.pipe(), os.pipe()
        os.set_blocking(self._wake[1], False)
        self._numbers = Path(tempfile.mkdtemp(prefix="curador-metrics-"))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        try:
            if self.settings.metrics_port is not None:
                _serve_metrics(self.settings.metrics_port, self._numbers, self._count)
            self._children = [Child(kind) for kind in self._kinds()]
            return self._mind()
        finally:
            self._end_all()
            self._socket.close()
            for end in (*self._alive, *self._wake):
                with contextlib.suppress(OSError):
                    os.close(end)
            shutil.rmtree(self._numbers, ignore_errors=True)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return 0 if self._socket is None else self._socket.getsockname()[1]

    def stop(self) -> None:
        """End in good order; safe to be called by a signal."""
        self._stopping = True
        with contextlib.suppress(OSError):
            os.write(self._wake[1], b"!")

    def _kinds(self) -> list[Kind]:
        said = self.settings.to_json()
        module = ("-m", "curador.server.process")
        http = [
            Kind(f"http {number + 1}", (*module, "http"), said, listens=True, late=number > 0)
            for number in range(self.settings.workers)
        ]
        return [http[0], Kind("writer", (*module, "writer"), said), *http[1:], *self.others]

    # ---- minding ----------------------------------------------------------------------------------------------------

    def _mind(self) -> int:
        answered = False
        while not self._stopping:
            for child in self._children:
                if not self._stopping and self._is_due(child, answered=answered):
                    self._begin(child)
            self._wait()
            for child in self._children:
                if child.process is not None and child.process.poll() is not None:
                    died = self._bury(child)
                    if not answered and died == GONE:
                        return 2  # its study cannot be served, and it has said why
            if not answered and any(child.is_ready for child in self._children):
                answered = True
                self.told(self.settings.url if self.settings.port else f"http://{self.settings.host}:{self.port}")
        return 0

    def _is_due(self, child: Child, *, answered: bool) -> bool:
        waits = child.kind.late and not answered and child.deaths == 0
        return child.process is None and not waits and time.monotonic() >= child.again_at

    def _begin(self, child: Child) -> None:
        ready, says = os.pipe()
        handles = [self._alive[0], says]
        if child.kind.listens and self._socket is not None:
            handles.append(self._socket.fileno())
        command = [sys.executable, *child.kind.command, *(str(one) for one in handles)]
        environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(self._numbers)}
        process = subprocess.Popen(  # noqa: S603 -- our own modules, and numbers
            command, stdin=subprocess.PIPE, stdout=sys.stderr, pass_fds=handles, env=environment, start_new_session=True
        )
        os.close(says)
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.write(child.kind.settings.encode())
                process.stdin.close()
        child.process, child.ready, child.is_ready, child.begun = process, ready, False, time.monotonic()

    def _wait(self) -> None:
        """Wait until a process is ready or gone, or a signal comes; at most a moment."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake[0], selectors.EVENT_READ)
            for child in self._children:
                if child.ready is not None:
                    selector.register(child.ready, selectors.EVENT_READ, child)
            for key, _ in selector.select(0.1):
                child = key.data
                if isinstance(child, Child) and child.ready is not None:
                    child.is_ready = os.read(child.ready, 64).startswith(b"ready") or child.is_ready
                    os.close(child.ready)
                    child.ready = None
                    if child.is_ready:
                        write_log("info", f"ready: {child.kind.name}", process=child.process.pid if child.process else 0)
                else:
                    os.read(self._wake[0], 64)

    def _bury(self, child: Child) -> int:
        process = child.process
        code = 0 if process is None else process.returncode
        write_log("error", f"ended: {child.kind.name}", process=0 if process is None else process.pid, number=code)
        if child.ready is not None:
            os.close(child.ready)
            child.ready = None
        _forget_numbers(self._numbers, 0 if process is None else process.pid)
        steady = child.is_ready and time.monotonic() - child.begun > STEADY
        child.deaths = 1 if steady else child.deaths + 1
        pause = 0.0 if child.deaths <= 2 else min(0.1 * 2 ** (child.deaths - 2), LONGEST_PAUSE)
        child.process, child.is_ready, child.again_at = None, False, time.monotonic() + pause
        return code

    def _count(self) -> tuple[int, int]:
        """How many processes are wanted, and how many are ready."""
        return len(self._children), sum(child.is_ready for child in self._children)

    # ---- the end ----------------------------------------------------------------------------------------------------

    def _end_all(self) -> None:
        """Tell those that answer to end first; the writer when they have."""
        writers = [child for child in self._children if child.kind.name == "writer"]
        self._end([child for child in self._children if child not in writers], self.deadline + GRACE)
        self._end(writers, GRACE)

    def _end(self, children: list[Child], seconds: float) -> None:
        running = [child.process for child in children if child.process is not None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + seconds
        for process in running:
            try:
                process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for child in children:
            if child.ready is not None:
                os.close(child.ready)
                child.ready = None


def listen(host: str, port: int) -> socket.socket:
    """Listen, or refuse by a sentence; a service that just ended may take a moment to let go."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    until = time.monotonic() + _BIND
    while True:
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, port))
            made.listen(BACKLOG)
        except OSError as problem:
            made.close()
            if problem.errno == errno.EADDRINUSE and time.monotonic() < until:
                time.sleep(0.05)
                continue
            hint = f"the system says: {problem.strerror}"
            raise InvalidParameter.must_be("--port", "one that is free on this host", f"{host}:{port}", hint) from None
        return made


def _allow_many_files() -> None:
    """Let many connections be open at a time, as many as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _serve_metrics(port: int, folder: Path, count: Callable[[], tuple[int, int]]) -> None:
    """Serve what all processes count, on loopback alone."""
    from prometheus_client import CollectorRegistry, Gauge, start_http_server
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))
    wanted = Gauge("curador_processes_wanted", "Processes of the service.", registry=registry)
    ready = Gauge("curador_processes_ready", "Processes of the service that answer.", registry=registry)
    wanted.set_function(lambda: count()[0])
    ready.set_function(lambda: count()[1])
    try:
        start_http_server(port, "127.0.0.1", registry)
    except OSError as problem:
        raise Failed(f"the metrics port could not be listened on: {problem.strerror}.") from None


def _forget_numbers(folder: Path | None, process: int) -> None:
    """Take what a dead process counted as under way out of the sums."""
    if folder is not None:
        for file in folder.glob(f"gauge_live*_{process}.db"):
            file.unlink(missing_ok=True)
