"""One process of a service, as the supervisor starts it: `python -m curador.server.process http|writer`.

Its settings come on standard input; the sockets and pipes that it works with are numbers on the command line. It says "ready"
on one pipe, and ends in good order when it is told to, or when the other pipe says that the supervisor is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.errors import CuradorError
from curador.server.logs import quiet_libraries, write_log
from curador.server.serving import ServeSettings

if TYPE_CHECKING:
    from curador.server.service import Service

GONE = 75
"""The code with which a process ends that could not begin, for a reason of its study."""


def main() -> None:
    """Be one process."""
    kind, alive, ready, *sockets = sys.argv[1:]
    settings = ServeSettings.from_json(sys.stdin.read())
    quiet_libraries()
    try:
        {"http": serve_http, "writer": serve_writer}[kind](settings, int(alive), int(ready), [int(one) for one in sockets])
    except CuradorError as error:
        print(f"curador: {error}", file=sys.stderr, flush=True)  # noqa: T201 -- to the owner, who started it
        raise SystemExit(GONE) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def serve_writer(settings: ServeSettings, alive: int, ready: int, _: list[int]) -> None:
    """Write to the ledger for all processes of the service."""
    from curador.curator.opening import existing_ledger
    from curador.study.file import read_study

    with existing_ledger(read_study(Path(settings.study))) as ledger, ledger.write_for_others() as service:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: service.interrupt())
        watch(alive, service.interrupt)
        say_ready(ready)
        service.serve()


def serve_http(settings: ServeSettings, alive: int, ready: int, handles: list[int]) -> None:
    """Answer requests at sockets that the supervisor listens on."""
    import uvicorn

    from curador.server.agents import add_agents
    from curador.server.app import AppSettings, make_app
    from curador.server.service import Service
    from curador.server.wire import PunctualProtocol

    service = Service.open(Path(settings.study), settings=settings.service)
    app = make_app(service, AppSettings(guard=settings.guard, url=settings.public_url, extend=(add_agents,)))
    config = uvicorn.Config(
        app,
        http=PunctualProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=settings.behind_proxy is not None,
        forwarded_allow_ips=settings.behind_proxy or "",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=int(service.study.engine.deadline) + 5,
        h11_max_incomplete_event_size=16 * 1024,
        backlog=2048,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    server = Server(config, service, ready)
    watch(alive, server.leave)
    try:
        server.run(sockets=[socket.socket(fileno=one) for one in handles])
    finally:
        service.close()


class Server:
    """uvicorn's server, which says when it is ready and takes no question once it is told to end."""

    def __init__(self, config: Any, service: Service, ready: int) -> None:
        import uvicorn

        class Own(uvicorn.Server):
            async def startup(own, sockets: list[socket.socket] | None = None) -> None:  # noqa: N805 -- beside the other
                await super().startup(sockets)
                say_ready(ready)

            def handle_exit(own, sig: int, frame: Any) -> None:  # noqa: N805 -- idem
                service.stop()
                super().handle_exit(sig, frame)

        self._server, self._service = Own(config), service

    def run(self, sockets: list[socket.socket]) -> None:
        """Serve until it is told to end."""
        with contextlib.suppress(KeyboardInterrupt):
            self._server.run(sockets=sockets)

    def leave(self) -> None:
        """End in good order."""
        self._service.stop()
        self._server.should_exit = True


def say_ready(ready: int) -> None:
    """Tell the supervisor."""
    with contextlib.suppress(OSError):
        os.write(ready, b"ready\n")
        os.close(ready)


def watch(alive: int, leave: Callable[[], object]) -> None:
    """Leave when the supervisor is gone: the pipe that it holds open ends."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(alive, 1):
                pass
        write_log("warning", "supervisor gone", process=os.getpid())
        leave()

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    main()
