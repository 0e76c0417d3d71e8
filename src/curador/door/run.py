"""The door's process, as the supervisor of the service starts it: `python -m curador.door.run`.

Its settings come on standard input; on the command line stand two pipes: one that ends when the supervisor is gone, and one
on which the door says that it is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from curador.door.cluster import MISSING, find_installation
from curador.door.door import Door
from curador.errors import CuradorError, InvalidParameter
from curador.server.logs import quiet_libraries, write_log
from curador.server.process import GONE, say_ready, watch
from curador.server.service import Service
from curador.server.serving import ServeSettings

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = ("-m", "curador.door.run")
"""What the supervisor starts."""


def main() -> None:
    """Be the process."""
    alive, ready = (int(one) for one in sys.argv[1:3])
    settings = ServeSettings.from_json(sys.stdin.read())
    quiet_libraries()
    try:
        run_door(settings, lambda leave: watch(alive, leave), lambda: say_ready(ready))
    except CuradorError as error:
        print(f"curador: {error}", file=sys.stderr, flush=True)  # noqa: T201 -- to the owner, who started it
        raise SystemExit(GONE) from None


def run_door(settings: ServeSettings, watched: Callable[[Callable[[], object]], None], ready: Callable[[], None]) -> None:
    """Open the door of a served study and keep it open until a signal, or what is watched, says to close it.

    watched  is given what to call when the door must close
    ready    is called when it is open
    """
    if find_installation() is None:
        raise InvalidParameter(f"--postgres-port needs PostgreSQL's programs: {MISSING}.", hint="pip install 'curador[door]'")
    service = Service.open(Path(settings.study), settings=settings.service)
    try:
        asyncio.run(_keep_open(service, settings, watched, ready))
    finally:
        service.stop()
        service.close()


async def _keep_open(
    service: Service,
    settings: ServeSettings,
    watched: Callable[[Callable[[], object]], None],
    ready: Callable[[], None],
) -> None:
    loop, leave = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(leave.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave.set)
    watched(stop)
    door = Door(service, tls=tls_of(settings))
    try:
        port = await door.open(settings.host, settings.postgres_port or 0)
    except OSError as problem:
        hint = f"the system says: {os.strerror(problem.errno or 0)}"
        place = f"{settings.host}:{settings.postgres_port}"
        raise InvalidParameter.must_be("--postgres-port", "one that is free on this host", place, hint) from None
    write_log("info", "door open", port=port)
    ready()
    try:
        await leave.wait()
    finally:
        service.stop()
        await door.close(float(service.study.engine.deadline))


def tls_of(settings: ServeSettings) -> ssl.SSLContext | None:
    """Return what TLS is spoken by; None where none is, on loopback: a proxy of HTTP ends no TLS of the door's."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(settings.tls_cert, settings.tls_key)
    return context


if __name__ == "__main__":
    main()
