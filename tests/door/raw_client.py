"""A client that says just what it is told to, byte by byte; SCRAM is the library's other half."""

import socket
import struct

from scramp import ScramClient


def frame(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


class RawClient:
    """A connection that logs in and then sends messages as they are given."""

    def __init__(self, door, name="ana", *, login=True, **said):
        self.socket = socket.create_connection(("127.0.0.1", door.port), timeout=30)
        self.buffer = b""
        if login:
            self.log_in(*door.user(name), **said)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def log_in(self, user, password, **said):
        words = {"user": user, "database": "clinic", **said}
        body = b"".join(f"{name}\0{value}\0".encode() for name, value in words.items()) + b"\0"
        self.socket.sendall(struct.pack("!ii", len(body) + 8, 3 << 16) + body)
        client = ScramClient(["SCRAM-SHA-256"], user, password)
        assert self.read()[0] == b"R"
        first = client.get_client_first().encode()
        self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
        client.set_server_first(self.read()[1][4:].decode())
        self.send(b"p", client.get_client_final().encode())
        client.set_server_final(self.read()[1][4:].decode())
        self.key = None
        while True:
            kind, body = self.read()
            if kind == b"K":
                self.key = body
            if kind == b"Z":
                return

    def send(self, kind, body=b""):
        self.socket.sendall(frame(kind, body))

    def query(self, text):
        self.send(b"Q", text.encode() + b"\0")
        return self.until_ready()

    def read(self):
        """Return the next message; nothing at the end."""
        head = self._exactly(5)
        if head is None:
            return b"", b""
        return head[:1], self._exactly(struct.unpack("!i", head[1:])[0] - 4) or b""

    def _exactly(self, count):
        while len(self.buffer) < count:
            more = self.socket.recv(1 << 16)
            if not more:
                return None
            self.buffer += more
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def until_ready(self):
        found = []
        while True:
            kind, body = self.read()
            found.append((kind, body))
            if kind in {b"Z", b""}:
                return found

    def kinds_until(self, last):
        kinds = b""
        while not kinds.endswith(last):
            kind, _ = self.read()
            assert kind, kinds
            kinds += kind
        return kinds
