"""Sessions of the console: a cookie that scripts cannot read, and a text that other sites cannot send.

A session is a token that was shown once: it lives no longer than the token, and ends with it within a second, wherever it is
used. The cookie is kept as its digest; what goes in X-Curador-CSRF follows from the cookie by another, and is not kept.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING, Final

from curador.errors import NotAllowed
from curador.server import tokens

if TYPE_CHECKING:
    from curador.server.state import ServiceState
    from curador.server.tokens import Caller

COOKIE: Final = "curador_session"
SECURE_COOKIE: Final = "__Host-curador_session"
HEADER: Final = "X-Curador-CSRF"
LASTS: Final = 12 * 3600
"""Seconds, at most."""
FORGED: Final = "a request of a session must carry the text that the session was opened with."


def open_session(state: ServiceState, caller: Caller) -> str:
    """Begin a session, and return what the cookie holds."""
    text, now = secrets.token_urlsafe(32), int(time.time())
    with state.writing() as connection:
        row = (tokens.digest_of(text), caller.token_id, now, min(now + LASTS, caller.expires))
        connection.execute("INSERT INTO session VALUES (?, ?, ?, ?)", row)
    return text


def find_session(state: ServiceState, text: str) -> str | None:
    """Return the id of the token whose session it is; None of whatever else."""
    row = state.one("SELECT token, expires FROM session WHERE digest = ?", (tokens.digest_of(text),))
    return None if row is None or row[1] <= time.time() else str(row[0])


def close_session(state: ServiceState, text: str) -> None:
    """End a session."""
    with state.writing() as connection:
        connection.execute("DELETE FROM session WHERE digest = ?", (tokens.digest_of(text),))


def csrf_of(text: str) -> str:
    """Return what a page of ours sends beside the cookie."""
    return hashlib.sha256(b"csrf\0" + text.encode()).hexdigest()


def require_csrf(text: str, given: str | None) -> None:
    """Refuse a request that changes something and does not come from a page of ours."""
    if given is None or not hmac.compare_digest(csrf_of(text).encode(), given.encode("utf-8", "replace")):
        raise NotAllowed(FORGED, hint="reload the page.")
