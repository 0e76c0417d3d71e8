"""The application of one process: routes behind the gate, the gate behind the guard, and the console's files.

request ──► Guard: host, sizes, headers, log ──► Gate: token or session, role ──► route ──► Desk: threads ──► Service
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from curador.server.access import ACCESS, PREFIX, access_of
from curador.server.desk import Desk
from curador.server.gate import Gate, problem_response
from curador.server.guard import Guard, GuardSettings
from curador.server.metrics import Metrics
from curador.server.problems import MEDIA, plain_problem
from curador.server.routes import router

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from curador.server.service import Service

CONSOLE: Final = Path(__file__).parent / "console"
"""What `console/` builds: it is shipped with the package."""


@dataclass(frozen=True, slots=True)
class AppSettings:
    """How an application is reached.

    guard   hosts, TLS
    url     by which analysts reach it; None: as each request says
    grace   seconds that questions under way have when the service stops; None: their deadline
    extend  called with the application and its desk before it begins: for what else is served by it
    """

    guard: GuardSettings = field(default_factory=GuardSettings)
    url: str | None = None
    grace: float | None = None
    extend: tuple[Callable[[FastAPI], None], ...] = ()


def make_app(service: Service, settings: AppSettings | None = None, *, metrics: Metrics | None = None) -> ASGIApp:
    """Return the application for an open service."""
    chosen, counted = settings or AppSettings(), metrics or Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        desk = app.state.desk = Desk(service)
        minding = asyncio.create_task(desk.mind())
        async with contextlib.AsyncExitStack() as stack:
            for begin in app.state.begun:
                await stack.enter_async_context(begin())
            yield
        minding.cancel()
        grace = float(service.study.engine.deadline) + 1 if chosen.grace is None else chosen.grace
        await desk.close(grace)

    app = FastAPI(
        title="curador",
        version="1",
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service, app.state.url = service, chosen.url
    app.state.begun = list[Callable[[], Any]]()
    app.state.gate = Gate(service, counted, secure=chosen.guard.secure)
    app.add_exception_handler(HTTPException, _other)
    app.include_router(router)
    for extend in chosen.extend:
        extend(app)
    _serve_console(app)
    _require_table(app)
    app.openapi = lambda: _openapi(app)
    return Guard(app, service, counted, chosen.guard)


def _other(_: Request, error: Exception) -> Response:
    """What the framework itself says: no such path, no such method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    sentences = {404: "there is nothing at this path.", 405: "this path has no such method."}
    kind = 405 if status == 405 else 404
    response = problem_response(plain_problem(kind, sentences[kind], error="NotAllowed"))
    allowed = getattr(error, "headers", None) or {}
    if kind == 405 and "Allow" in allowed:
        response.headers["allow"] = allowed["Allow"]
    return response


def _serve_console(app: FastAPI) -> None:
    """Serve the console's files where they are built."""
    if not (CONSOLE / "index.html").is_file():
        return
    app.mount("/", _ConsoleFiles(directory=CONSOLE, html=True, follow_symlink=False), name="console")


class _ConsoleFiles(StaticFiles):
    """Files whose names carry their digest are kept by browsers; the page that names them is asked for every time."""

    def file_response(self, full_path: Any, *args: Any, **more: Any) -> Response:
        response = super().file_response(full_path, *args, **more)
        named = Path(full_path).parent.name == "assets"
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if named else "no-cache"
        return response


def _require_table(app: FastAPI) -> None:
    """Refuse to serve a route that the table of access does not know, or to lack one that it promises."""
    known = {(access.method, access.whole_path) for access in ACCESS}
    found = {(method, path) for method, path in api_routes(app) if path.startswith(PREFIX)}
    if known != found:
        raise AssertionError(f"routes and the table of access must agree; they differ in {sorted(known ^ found)}")


def api_routes(app: FastAPI) -> list[tuple[str, str]]:
    """Return every route of the interface."""
    return [
        (method, route.path)
        for route in (*app.routes, *router.routes)
        if isinstance(route, APIRoute)
        for method in route.methods or ()
        if method != "HEAD"
    ]


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the description, with the one shape of problems and the two ways to log in."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    made = get_openapi(title=app.title, version=app.version, routes=app.routes, summary="A differential-privacy curator.")
    problem = {"$ref": "#/components/schemas/Problem"}
    made["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": app.state.gate.cookie},
    }
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            responses = operation["responses"]
            responses.pop("422", None)
            for status, response in responses.items():
                if int(status) >= 400:
                    response["content"] = {MEDIA: {"schema": problem}}
            if "anybody" not in access_of(method.upper(), path).roles:
                operation["security"] = [{"token": []}, {"session": []}]
    for name in ("HTTPValidationError", "ValidationError"):
        made["components"]["schemas"].pop(name, None)
    app.openapi_schema = made
    return made
