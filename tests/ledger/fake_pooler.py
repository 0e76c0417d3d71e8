"""Something between a curator and its server: it hands transactions to one backend after the other, or loses an answer.

It speaks as much of the protocol as it must: messages of the client up to a Query or Sync are one request; what the server
says to it ends with ReadyForQuery, which tells whether a transaction is open.
"""

import contextlib
import os
import shutil
import socket
import struct
import tempfile
import threading
from pathlib import Path

NAME = ".s.PGSQL.5432"
QUERY, SYNC, END, READY, KEY = b"Q", b"S", b"X", b"Z", b"K"


class FakePooler:
    """A socket that clients connect to as if it were the server.

    backends    sessions that each client's transactions are spread over
    own_key     whether it names a process of its own, as poolers do
    lose        of a request, its bytes: "before" it reaches the server, "after" the server has done it; None: it is passed on
    """

    def __init__(self, server, *, backends=1, own_key=False, lose=lambda _: None):
        self.server, self.backends, self.own_key, self.lose = server, backends, own_key, lose
        self.home = Path(tempfile.mkdtemp(prefix="curador-pool-"))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.home / NAME))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, user="writer", **options):
        told = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://{user}@/postgres?host={self.home}{told}"

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, EOFError):
            stack.enter_context(client)
            (length,) = struct.unpack("!I", received(client, 4))
            hello = struct.pack("!I", length) + received(client, length - 4)
            others = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(self.backends)]
            greetings = []
            for other in others:
                other.connect(str(self.server.home / NAME))
                other.sendall(hello)
                greetings.append(answer_of(other))
            client.sendall(b"".join(self.greeting(message) for message in greetings[0]))
            turn, state = 0, b"I"
            while True:
                asked = request_of(client)
                if state == b"I":
                    turn += 1
                other = others[turn % len(others)]
                lost = self.lose(asked)
                if lost == "before":
                    return
                other.sendall(asked)
                if asked[:1] == END:
                    return
                told = answer_of(other)
                if lost == "after":
                    return
                state = told[-1][5:6]
                client.sendall(b"".join(told))

    def greeting(self, message):
        """Return the server's message, or one with a process of our own."""
        if message[:1] == KEY and self.own_key:
            return message[:5] + struct.pack("!I", os.getpid()) + message[9:]
        return message


def received(sock, count):
    made = b""
    while len(made) < count:
        more = sock.recv(count - len(made))
        if not more:
            raise EOFError
        made += more
    return made


def message_of(sock):
    head = received(sock, 5)
    return head + received(sock, struct.unpack("!I", head[1:])[0] - 4)


def request_of(sock):
    """Return the client's messages up to one that is answered."""
    made = b""
    while True:
        message = message_of(sock)
        made += message
        if message[:1] in {QUERY, SYNC, END}:
            return made


def answer_of(sock):
    """Return the server's messages up to ReadyForQuery."""
    made = [message_of(sock)]
    while made[-1][:1] != READY:
        made.append(message_of(sock))
    return made
