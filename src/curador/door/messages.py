"""Messages of PostgreSQL's protocol 3.0: what a client sends, read within limits, and what it is told, as bytes.

A message is a letter, the length of what follows with itself, and a body; the first one of a connection has no letter.
Whatever does not have the form that its letter asks for is Malformed, which ends the connection.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Mapping, Sequence

LONGEST_START = 10_000
"""Bytes of a first message, and of each one before somebody has logged in."""

LONGEST = 4_000_000
"""Bytes of a message: a text, or 65,535 parameters of about sixty bytes."""

PROTOCOL, CANCEL, TLS, GSS = 3 << 16, 80877102, 80877103, 80877104
"""What a first message asks for: a session (the major number in the upper half), or something else."""


class Malformed(Exception):  # noqa: N818 -- it is said of bytes
    """Bytes that are no message; the text is ours and safe to show."""


class Message(NamedTuple):
    """A letter and a body."""

    kind: bytes
    body: bytes


async def read_start(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return what the first message of a connection asks for, and the rest of it."""
    size = struct.unpack("!i", await reader.readexactly(4))[0]
    if not 8 <= size <= LONGEST_START:
        raise Malformed("the first message has a length that is not allowed")
    body = await reader.readexactly(size - 4)
    return struct.unpack("!i", body[:4])[0], body[4:]


async def read_message(reader: asyncio.StreamReader, most: int = LONGEST) -> Message:
    """Return the next message."""
    kind = await reader.readexactly(1)
    size = struct.unpack("!i", await reader.readexactly(4))[0]
    if not 4 <= size <= most:
        raise Malformed("a message has a length that is not allowed")
    return Message(kind, await reader.readexactly(size - 4))


class MessageBody:
    """A body that is read from its beginning to its end."""

    def __init__(self, body: bytes) -> None:
        """Begin at its first byte."""
        self._body = body
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return so many bytes."""
        end = self._at + count
        if count < 0 or end > len(self._body):
            raise Malformed("a message ends too early")
        taken, self._at = self._body[self._at : end], end
        return taken

    def bytes_to_zero(self) -> bytes:
        """Return the bytes before the next zero, which is passed over."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise Malformed("a text in a message has no end")
        taken, self._at = self._body[self._at : end], end + 1
        return taken

    def text(self) -> str:
        """Return a text in UTF-8, which is the only encoding here."""
        try:
            return self.bytes_to_zero().decode()
        except UnicodeDecodeError:
            raise NotUtf8 from None

    def int16(self) -> int:
        """Return a number from 0 to 65,535: counts are written so."""
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        """Return a number with its sign."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def uint32(self) -> int:
        """Return a number without sign: the identifier of a type, say."""
        return int.from_bytes(self.take(4), "big")

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return len(self._body) - self._at

    def end(self) -> None:
        """Require that nothing is left."""
        if self.left:
            raise Malformed("a message goes on behind its end")


class NotUtf8(Exception):  # noqa: N818 -- an answerable error of the client's, not one that ends the connection
    """A text is not in UTF-8."""


# ---- what the client is told ----------------------------------------------------------------------------------------------


def message(kind: bytes, *parts: bytes) -> bytes:
    """Return a whole message."""
    body = b"".join(parts)
    return kind + struct.pack("!i", len(body) + 4) + body


def zero_ended(text: str) -> bytes:
    """Return a text as it stands in messages; a zero inside would end it, so it goes."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY, SUSPENDED = message(b"n"), message(b"I"), message(b"s")
AUTHENTICATED = message(b"R", struct.pack("!i", 0))


def ask_sasl(mechanisms: Iterable[str]) -> bytes:
    """Return the list of ways to log in."""
    return message(b"R", struct.pack("!i", 10), *map(zero_ended, mechanisms), b"\0")


def go_on_sasl(text: str) -> bytes:
    """Return the server's first word of SCRAM."""
    return message(b"R", struct.pack("!i", 11), text.encode())


def end_sasl(text: str) -> bytes:
    """Return the server's last word of SCRAM."""
    return message(b"R", struct.pack("!i", 12), text.encode())


def other_protocol(unknown: Sequence[str]) -> bytes:
    """Return that only protocol 3.0 is spoken, and which options were not understood."""
    return message(b"v", struct.pack("!ii", PROTOCOL, len(unknown)), *map(zero_ended, unknown))


def parameter_status(name: str, value: str) -> bytes:
    """Return the value of a setting of which clients are told."""
    return message(b"S", zero_ended(name), zero_ended(value))


def backend_key(number: int, secret: int) -> bytes:
    """Return by what this connection can be cancelled."""
    return message(b"K", struct.pack("!iI", number, secret))


def ready(status: bytes) -> bytes:
    """Return that the next statement may come: I outside of a transaction, T inside, E inside one that failed."""
    return message(b"Z", status)


def parameter_types(oids: Sequence[int]) -> bytes:
    """Return the types of a statement's parameters."""
    return message(b"t", struct.pack("!H", len(oids)), *(struct.pack("!I", oid) for oid in oids))


def row_description(columns: Iterable[tuple[str, int, int, int]]) -> bytes:
    """Return the columns of what comes: name, type, size of the type, format."""
    told = [zero_ended(name) + struct.pack("!IhIhih", 0, 0, oid, size, -1, form) for name, oid, size, form in columns]
    return message(b"T", struct.pack("!H", len(told)), *told)


def data_row(values: Sequence[bytes | None]) -> bytes:
    """Return one row."""
    told = (b"\xff\xff\xff\xff" if one is None else struct.pack("!i", len(one)) + one for one in values)
    return message(b"D", struct.pack("!H", len(values)), *told)


def complete(tag: str) -> bytes:
    """Return that a statement is done."""
    return message(b"C", zero_ended(tag))


def error(fields: Mapping[str, str]) -> bytes:
    """Return an error: its fields by their letters."""
    return _told(b"E", fields)


def notice(fields: Mapping[str, str]) -> bytes:
    """Return a notice: its fields by their letters."""
    return _told(b"N", fields)


def _told(kind: bytes, fields: Mapping[str, str]) -> bytes:
    return message(kind, *(letter.encode() + zero_ended(text) for letter, text in fields.items()), b"\0")


def read_fields(body: bytes) -> dict[str, str]:
    """Return the fields of an error or a notice."""
    fields, read = dict[str, str](), MessageBody(body)
    while (letter := read.take(1)) != b"\0":
        fields[letter.decode("latin-1")] = read.bytes_to_zero().decode("utf-8", "replace")
    return fields
