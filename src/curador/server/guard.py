"""What every request meets first and every answer last: hosts, sizes, time to send, headers, one line in the log.

Claim   Nothing of a request is kept beyond its limits: a body over them is refused when it is announced, or when it grows
        beyond it, and who does not send a whole one within seconds is gone. Nothing but a problem of ours leaves on an error.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from starlette.datastructures import Headers, MutableHeaders

from curador.errors import CuradorError
from curador.server.logs import write_log
from curador.server.problems import MEDIA, plain_problem, problem_of
from curador.server.service import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from curador.server.metrics import Metrics
    from curador.server.service import Service

MOST_BODY: Final = 64 * 1024
MOST_HEADERS: Final = 16 * 1024
PATIENCE: Final = 10.0
"""Seconds in which a whole request must have come."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURITY: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-frame-options": "DENY",
}
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """hosts: names by which the service may be called, without ports; secure: whether it is reached by TLS."""

    hosts: frozenset[str] = LOOPBACK
    secure: bool = False
    patience: float = PATIENCE


@dataclass(slots=True)
class _Answered:
    """What is known of an answer while it leaves."""

    status: int = 0
    begun: float = field(default_factory=time.monotonic)


class Guard:
    """Stands around the application."""

    def __init__(self, app: ASGIApp, service: Service, metrics: Metrics, settings: GuardSettings) -> None:
        self._app, self._service, self._metrics, self._settings = app, service, metrics, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request
        answered = _Answered()
        sending = self._sending(send, answered, request)
        try:
            refused = self._refusal_of_head(scope)
            body = b"" if refused else await self._body(scope, receive)
            if refused is None and body is None:
                refused = 413, f"a body must have at most {MOST_BODY:,} bytes."
            if refused:
                await _send_problem(sending, plain_problem(*refused), close=True)
            else:
                await self._app(scope, _replay(body or b"", receive), sending)
        except TimeoutError:
            if not answered.status:
                await _send_problem(sending, plain_problem(400, "a request must come whole within seconds."), close=True)
        except Exception as error:  # noqa: BLE001 -- whatever it is, an id leaves and nothing else
            failed = error if isinstance(error, CuradorError) else self._service.failed(error)
            if not answered.status:
                await _send_problem(sending, problem_of(failed))
            write_log("error", "failed", request=request, error=type(error).__name__)
        finally:
            self._write(scope, request, answered)

    # ---- what comes -------------------------------------------------------------------------------------------------

    def _refusal_of_head(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
            return 431, f"headers must have at most {MOST_HEADERS:,} bytes."
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name_of(hosts[0]) not in self._settings.hosts:
            return 421, "the host must be one by which this service is known."
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in {"GET", "HEAD"} and not self._is_ours(origin):
            return 403, "a request must come from a page of this service."
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > MOST_BODY:
            return 413, f"a body must have at most {MOST_BODY:,} bytes."
        return None

    def _is_ours(self, origin: str) -> bool:
        scheme, _, rest = origin.partition("://")
        return scheme in {"http", "https"} and _name_of(rest) in self._settings.hosts

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the whole body; None where it is too long."""
        if scope["method"] in {"GET", "HEAD"} and not Headers(scope=scope).get("content-length"):
            return b""
        parts, size, more = [], 0, True
        async with asyncio.timeout(self._settings.patience):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return b""
                part = message.get("body", b"")
                size += len(part)
                if size > MOST_BODY:
                    return None
                parts.append(part)
                more = message.get("more_body", False)
        return b"".join(parts)

    # ---- what leaves ------------------------------------------------------------------------------------------------

    def _sending(self, send: Send, answered: _Answered, request: str) -> Callable[[Message], Awaitable[None]]:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered.status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
                headers["x-request-id"] = request
                if self._settings.secure:
                    headers["strict-transport-security"] = "max-age=31536000"
            await send(message)

        return sending

    def _write(self, scope: Scope, request: str, answered: _Answered) -> None:
        route = template_of(scope)
        caller: Any = scope.get("state", {}).get("caller")
        said = {"role": caller.role, "token": caller.token_id} if caller is not None else {}
        level = "error" if answered.status >= 500 else "warning" if answered.status >= 400 else "info"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        write_log(level, "request", route=route, method=method, status=answered.status, request=request, **said)
        seconds = time.monotonic() - answered.begun
        self._metrics.count(route, answered.status, seconds, self._service.tick)
        self._metrics.look(self._service)


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def template_of(scope: Scope) -> str:
    """Return the template of a route; one word for whatever has none, since a path is somebody's text."""
    return str(getattr(scope.get("route"), "path", None) or "unmatched")


def _name_of(host: str) -> str:
    """The name in a Host header, without its port; nothing where what follows is no port."""
    found = _HOST.fullmatch(host.lower())
    return "" if found is None else found[1].rstrip(".")


_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@/?#\s]+)(?::[0-9]{1,5})?", re.ASCII)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read already once more; after it, whatever comes: the end of the connection."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _send_problem(send: Callable[[Message], Awaitable[None]], problem: dict[str, Any], *, close: bool = False) -> None:
    content = to_json(problem)
    headers = [(b"content-type", MEDIA.encode()), (b"content-length", str(len(content)).encode())]
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem["status"], "headers": headers})
    await send({"type": "http.response.body", "body": content})
