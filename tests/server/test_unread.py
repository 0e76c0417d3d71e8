"""Clients that ask for more than a system buffers and never read it: their connections end, and what waited is let go of."""

import contextlib
import socket
import threading
import time

import pytest
import uvicorn

from curador.server.wire import PunctualProtocol

LETTERS = 64 << 20
"""More than sockets of both ends hold."""

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Impatient(PunctualProtocol):
    """Looks five times a second."""

    unread = 0.2


async def _answer(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LETTERS)]})
    await send({"type": "http.response.body", "body": b"a" * LETTERS})


@contextlib.contextmanager
def serving(protocol):
    """A server of long answers, and its address."""
    server = uvicorn.Server(uvicorn.Config(_answer, http=protocol, ws="none", lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield server, listening.getsockname()
        finally:
            server.force_exit = server.should_exit = True
            thread.join(60)


def until(condition):
    """Wait until something is so; tell whether it came to be."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def received(client):
    """How many bytes still come."""
    count = 0
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(1 << 20):
            count += len(part)
    return count


def test_who_does_not_read_is_ended():
    with serving(Impatient) as (server, address), socket.create_connection(address, timeout=60) as client:
        client.sendall(ASK)
        assert client.recv(1) == b"H"  # the answer has begun
        assert until(lambda: not server.server_state.connections)
        assert received(client) < LETTERS


@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_who_reads_has_the_whole_answer(pause):
    with serving(PunctualProtocol) as (_, address), socket.create_connection(address, timeout=60) as client:
        client.sendall(ASK)
        time.sleep(pause)
        assert received(client) > LETTERS
