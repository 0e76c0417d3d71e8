"""A bridge for agents that start a process and talk to its standard input: a token and an address, and no file of a study.

Everything is said by the service: the tools, what they give and what is refused. The bridge passes it on. A request that
nobody answers is tried again; it cannot be paid twice, since agents never ask afresh and the same question is answered once.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import httpx2
from mcp import types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from curador.client.remote import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import ServerRequestContext

    from curador.client.token import ServiceAddress

PLACE: Final = "/mcp"
READING: Final = 300.0
_PASSING: Final = frozenset({400, 404, 405, 408, 429})
"""What the protocol itself says while two sides find out what they know of each other, or what mends itself."""

Value = TypeVar("Value")


class Bridge:
    """Passes tools on."""

    def __init__(self, address: ServiceAddress, *, patience: float = PATIENCE) -> None:
        """Say where to. patience: seconds in which a request that nobody answers is tried again."""
        self._address, self._patience = address, patience

    def server(self) -> Server[Any]:
        """Return what an agent talks to."""
        return Server("curador", on_list_tools=self._list, on_call_tool=self._call)

    async def run(self) -> None:
        """Serve standard input and output until they end."""
        server = self.server()
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    async def _list(self, _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return await self._passed_on(lambda client: client.list_tools())

    async def _call(self, _: ServerRequestContext[Any], asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return await self._passed_on(lambda client: client.call_tool(asked.name, asked.arguments or {}))
        except ConnectionError as problem:
            body = {"error": "Failed", "sentence": str(problem), "hint": "ask the same again: it is not charged twice."}
            text = types.TextContent(type="text", text=json.dumps(body))
            return types.CallToolResult(content=[text], structured_content=body, is_error=True)

    async def _passed_on(self, verb: Callable[[Client], Awaitable[Value]]) -> Value:
        """Ask the service, by a connection of its own: one that broke does not spoil the next."""
        until, pause = time.monotonic() + self._patience, 0.1
        while True:
            refused: list[int] = []
            try:
                async with self._http(refused) as http:
                    transport = streamable_http_client(f"{self._address.url}{PLACE}", http_client=http)
                    async with Client(transport) as client:
                        return await verb(client)
            except Exception:  # noqa: BLE001 -- of a library; which one, changes nothing
                pause = min(2 * pause, 5.0)
                if refused:
                    said = "by its status" if refused[0] not in {401, 403} else "the token must be an agent's, and in force"
                    raise ConnectionError(
                        f"the service at {self._address.url} refused the agent: {said} ({refused[0]})."
                    ) from None
                if time.monotonic() + pause > until:
                    raise ConnectionError(f"the service at {self._address.url} did not answer.") from None
                await anyio.sleep(pause)

    def _http(self, refused: list[int]) -> httpx2.AsyncClient:
        async def look(response: httpx2.Response) -> None:
            if 300 <= response.status_code < 500 and response.status_code not in _PASSING:
                refused.append(response.status_code)

        return httpx2.AsyncClient(
            event_hooks={"response": [look]},
            headers={"Authorization": f"Bearer {self._address.token}"},
            timeout=httpx2.Timeout(30.0, read=READING),
            follow_redirects=False,
            trust_env=self._address.url.startswith("https://"),
        )
