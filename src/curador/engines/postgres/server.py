"""A PostgreSQL server as an engine: its address, the two roles that come to it, and connections that end in time.

[engine] url = "postgresql://db.example.org/shop"     where it is; no user and no password stand there
CURADOR_POSTGRES_PREPARER = "role" or "role:password"     who reads the tables and makes the prepared schema
CURADOR_POSTGRES_READER = "role" or "role:password"     who asks questions: it can read the prepared schema and nothing else

A role without a password is libpq's matter: ~/.pgpass, a certificate, the socket's owner. What a server says of an error may
hold values of rows: nobody but the owner's log is told. Notices and warnings are dropped here.

Every connection ends by a moment: the driver is given a turn ten times a second, and a server that is silent beyond it is
told to cancel and is left.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from curador.errors import InvalidStudy
from curador.study.rules import broken_rule
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Generator

    import psycopg

    from curador.study.model import Study

PREPARER: Final = "CURADOR_POSTGRES_PREPARER"
READER: Final = "CURADOR_POSTGRES_READER"
OLDEST: Final = 17
"""The first version of PostgreSQL that has a collation of Unicode's letters that no operating system decides."""

PATIENCE: Final = 30.0
"""Seconds for what is no question: connecting, looking at a catalogue."""

_CANCELLING: Final = 2.0
SETTINGS: Final = (
    "SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL IntervalStyle = 'postgres';"
    " SET LOCAL extra_float_digits = 1; SET LOCAL standard_conforming_strings = on; SET LOCAL client_min_messages = 'error';"
    " SET LOCAL row_security = off; SET LOCAL jit = off; SET LOCAL join_collapse_limit = 1;"
    " SET LOCAL from_collapse_limit = 1"
)
"""Of every transaction, as a pooler may hand out backends by transactions: values are written in one way, and joins are run
in the order in which they are written, whatever statistics say. Rows that a policy hides are an error, not fewer rows."""


Cursor: TypeAlias = Any
"""The driver's cursor. It wants statements to be literals of a program, which those that we put together are not."""


class SilentServerError(Exception):
    """The server did not answer in time."""


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """Where a study's server is."""

    url: str

    @classmethod
    def of(cls, study: Study) -> DatabaseServer:
        """Return the server of a study, or refuse a study that names none."""
        url = study.engine.url
        if not url.startswith(("postgresql://", "postgres://")):
            got: object = url or Plain("none")
            raise broken_rule(("engine", "url"), "the address of a PostgreSQL server, postgresql://host/database", got)
        return cls(url)

    def connect(self, role: str, until: float = math.inf) -> psycopg.Connection[Any]:
        """Return a connection as one of the two roles. What the server says where it refuses is for nobody."""
        try:
            import psycopg
        except ImportError:
            hint = "pip install 'curador[postgres]'"
            raise InvalidStudy.must_be(
                "an engine on PostgreSQL", "reached with psycopg", Plain("none installed"), hint
            ) from None
        user, password = login_of(role)
        secret: dict[str, Any] = {} if password is None else {"password": password}
        try:
            connection = _connection_class().connect(
                self.url,
                user=user,
                **secret,
                autocommit=True,
                connect_timeout=max(2, int(min(PATIENCE, until - time.monotonic()))),
                application_name="curador",
                client_encoding="UTF8",
                prepare_threshold=None,
            )
        except psycopg.Error:
            raise unreachable(role) from None
        try:
            _require_known(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def login_of(role: str) -> tuple[str, str | None]:
    """Return user and password of a role, as the environment says; the password is never shown."""
    said = os.environ.get(role, "")
    user, colon, password = said.partition(":")
    if not user:
        hint = f'set {role} to "role", or to "role:password" where ~/.pgpass does not have it'
        raise InvalidStudy.must_be(role, "the name of a role of the server", Plain("nothing"), hint)
    return user, password if colon else None


def has_login(role: str) -> bool:
    """Whether the environment names this role."""
    return bool(os.environ.get(role))


def unreachable(role: str) -> InvalidStudy:
    """Return what is said of a server that cannot be reached, or lets a role not in."""
    hint = f"look at [engine] url, at {role}, and at the server's own log"
    return InvalidStudy("the server of [engine] url must be there and let the role in; it did not.", hint=f"{hint}.")


def _require_known(connection: psycopg.Connection[Any]) -> None:
    version = connection.info.server_version // 10_000
    if version < OLDEST:
        raise broken_rule(("engine", "url"), f"a server of PostgreSQL {OLDEST} or later", Plain(str(version)))
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise broken_rule(("engine", "url"), "a database whose encoding is UTF8", Plain(str(encoding)))


@functools.cache
def _connection_class() -> type[Any]:
    import psycopg

    class TimedConnection(psycopg.Connection[Any]):
        """A connection that gives up a server which does not answer by a moment of the monotonic clock."""

        until = math.inf

        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            """Run what the driver wants of the server, until then."""
            return super().wait(_bounded(gen, self.until), *arguments, **options)

    return TimedConnection


def _bounded(steps: Generator[Any, Any, Any], until: float) -> Generator[Any, Any, Any]:
    """The driver's steps, which are given a turn ten times a second while the server is silent."""
    try:
        wanted = next(steps)
        while True:
            if time.monotonic() > until:
                raise SilentServerError
            wanted = steps.send((yield wanted))
    except StopIteration as end:
        return end.value


@contextlib.contextmanager
def transaction(connection: psycopg.Connection[Any], how: str, until: float = math.inf) -> Generator[Cursor]:
    """One transaction under our settings, which ends by a moment; a connection in any other state afterwards is closed."""
    bounded: Any = connection
    bounded.until = until
    left = until - time.monotonic()
    limit = 0 if math.isinf(left) else max(1, math.ceil(left * 1000))  # 0 would be: for ever
    done = False
    try:
        with connection.cursor() as opened:
            cursor: Cursor = opened
            cursor.execute(f"BEGIN {how}; SET LOCAL statement_timeout = {limit:d}; {SETTINGS}")
            yield cursor
            cursor.execute("COMMIT")
        done = connection.info.transaction_status.name == "IDLE"
    finally:
        bounded.until = math.inf
        if not done:
            leave(connection)


def leave(connection: psycopg.Connection[Any]) -> None:
    """Tell the server to cancel what it does, and close the connection."""
    if not connection.closed and connection.info.transaction_status.name == "ACTIVE":
        with contextlib.suppress(Exception):
            connection.cancel_safe(timeout=_CANCELLING)
    with contextlib.suppress(Exception):
        connection.close()


def identifier(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a literal."""
    return "'" + text.replace("'", "''") + "'"
