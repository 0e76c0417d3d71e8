"""Who a request is of, and whether the table of `access.py` lets it in: the one place where a role decides.

Claim   No handler runs for a request that the table does not let in; nothing of a body is read before that.
"""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, NoReturn

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from curador.errors import CuradorError, InvalidParameter, NotAllowed, shown
from curador.server import sessions
from curador.server.access import ANYBODY, Access, access_of
from curador.server.desk import WHOSE
from curador.server.logs import write_log
from curador.server.problems import MEDIA, plain_problem, problem_of
from curador.server.refusals import TooMany
from curador.server.service import is_foreign, no_token, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from curador.server.metrics import Metrics
    from curador.server.service import Service
    from curador.server.tokens import Caller

DEEPEST: Final = 32
MOST_WAITING: Final = 500
"""Failed logins that wait for their answer at a time."""


class Gate:
    """Lets callers in."""

    def __init__(self, service: Service, metrics: Metrics, *, secure: bool) -> None:
        self.service, self._metrics = service, metrics
        self.cookie = sessions.SECURE_COOKIE if secure else sessions.COOKIE
        self.secure = secure
        self._waiting = 0

    async def admit(self, request: Request, access: Access) -> Caller | None:
        """Return who asks, or refuse; None where nobody need be known."""
        if ANYBODY in access.roles:
            return None
        caller = await self._caller(request)
        self.count(caller)
        request.state.caller = caller
        if caller.role not in access.roles:
            raise NotAllowed("this is for another role.", hint=f"it is for {' and '.join(sorted(access.roles))}.")
        return caller

    def count(self, caller: Caller) -> None:
        """Count a request of a token, and say whose the work is that it makes."""
        self.service.rates.admit(caller.token_id)
        WHOSE.set(caller.token_id)

    async def _caller(self, request: Request) -> Caller:
        given = request.headers.get("authorization")
        if given is not None:
            kind, _, token = given.partition(" ")
            return await self.login(token.strip() if kind.lower() == "bearer" else "", request)
        cookie = request.cookies.get(self.cookie)
        token_id = None if cookie is None else sessions.find_session(self.service.state, cookie)
        if cookie is None or token_id is None:
            await self.refuse_login(request)
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise NotAllowed(sessions.FORGED)
        if request.method not in {"GET", "HEAD"}:
            sessions.require_csrf(cookie, request.headers.get(sessions.HEADER))
        return self.service.admit_id(token_id, door="console")

    async def login(self, token: str, request: Request) -> Caller:
        """Return who a token stands for; a wrong one is told slowly."""
        foreign = is_foreign(token)  # its issuer may have to be asked
        caller = await asyncio.to_thread(self.service.find, token) if foreign else self.service.find(token)
        if caller is None:
            await self.refuse_login(request)
        return caller

    async def refuse_login(self, request: Request) -> NoReturn:
        """Count a login that failed, wait, and refuse it."""
        peer = request.client.host if request.client else "unknown"
        self._metrics.count_refused_login()
        if self._waiting >= MOST_WAITING:
            raise TooMany("logins must fail more slowly.", hint="wait a minute.")
        self._waiting += 1
        try:
            wait = await asyncio.to_thread(self.service.fail_login, door="http", peer=peer)
            await asyncio.sleep(wait)
        finally:
            self._waiting -= 1
        raise no_token()


class GuardedRoute(APIRoute):
    """A route that the table of access knows; another cannot be made."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, behind the gate."""
        inner = super().get_route_handler()
        methods = sorted((self.methods or set()) - {"HEAD"})
        access = access_of(methods[0], self.path)
        has_body = self.body_field is not None

        async def handle(request: Request) -> Response:
            gate: Gate = request.app.state.gate
            caller: Caller | None = None
            try:
                caller = await gate.admit(request, access)
                if has_body:
                    request._json = read_body(request.headers, await request.body())  # noqa: SLF001 -- read strictly, once
                return await inner(request)
            except RequestValidationError as error:
                return problem_response(_validation_problem(error))
            except CuradorError as error:
                return problem_response(problem_of(error, owner=caller is not None and caller.role == "owner"))
            except Exception as error:  # noqa: BLE001 -- whatever it is, an id leaves and nothing else
                write_log("error", "failed", request=request.state.request_id, error=type(error).__name__)
                return problem_response(problem_of(gate.service.failed(error)))

        return handle


def problem_response(problem: Mapping[str, Any]) -> Response:
    """Return a problem as it leaves."""
    headers = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}, 503: {"retry-after": "1"}}
    status = int(problem["status"])
    return Response(to_json(problem), status, headers.get(status), MEDIA)


def read_body(headers: Mapping[str, str], content: bytes) -> Any:
    """Return the JSON of a body: of bounded depth, each name once, numbers as they are written."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InvalidParameter.must_be("Content-Type", "application/json", kind)
    depth = deepest = 0
    inside = escaped = False
    for sign in content:
        if inside:
            escaped, inside = sign == 0x5C and not escaped, sign != 0x22 or escaped
        elif sign == 0x22:
            inside = True
        elif sign in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in b"]}":
            depth -= 1
    if deepest > DEEPEST:
        raise InvalidParameter.must_be("the body", f"JSON of at most {DEEPEST} levels", deepest)
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_float=_decimal,
            parse_int=_integer,
            parse_constant=_refuse,
            object_pairs_hook=_each_once,
        )
    except (ValueError, RecursionError, InvalidOperation):
        raise InvalidParameter("the body must be JSON in UTF-8, each name once, without NaN.") from None


def _decimal(text: str) -> Decimal:
    if len(text) > 400:
        raise ValueError(text)
    return Decimal(text)


def _integer(text: str) -> int:
    if len(text) > 400:
        raise ValueError(text)
    return int(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _validation_problem(error: RequestValidationError) -> dict[str, Any]:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    rule = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    subject = shown(place)
    sentence = f"{subject} must be as the interface says: {rule[:1].lower()}{rule[1:]}."
    return plain_problem(400, sentence, error="InvalidParameter") | {"subject": subject}
