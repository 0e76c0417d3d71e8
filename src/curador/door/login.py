"""Who comes in: SCRAM-SHA-256 with a token as the password, so that the token itself is never sent.

The user is the analyst's name, a dot and the token's public id: `ana.0123456789abcdef`; that of the owner begins with
`owner`. Whoever is unknown goes through the same exchange with a verifier that fits nothing, and hears the same sentence as
late.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scramp import ScramException, ScramMechanism

from curador.door import messages
from curador.door.messages import Malformed, MessageBody
from curador.door.problems import SqlProblem
from curador.errors import CuradorError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from curador.server.service import Service
    from curador.server.tokens import Caller, ScramVerifier

MECHANISM = "SCRAM-SHA-256"
LONGEST_USER = 200


def refused_login() -> SqlProblem:
    """Return the one refusal of whoever is not let in."""
    hint = "the user is name.id of a token, the password the token: curador token new."
    return SqlProblem("28P01", "the token must be one that is in force.", hint, fatal=True)


async def log_in(
    service: Service,
    user: str,
    peer: str,
    read: Callable[[], Awaitable[bytes]],
    tell: Callable[[bytes], Awaitable[None]],
) -> Caller:
    """Return who proved to hold a token; refuse everybody else by one sentence."""
    name, _, token_id = user.rpartition(".")
    verifier = await asyncio.to_thread(service.verifier, token_id)
    try:
        proved = await _exchange(verifier, read, tell)
        caller = await asyncio.to_thread(service.admit_id, token_id, door="postgres") if proved else None
    except CuradorError:
        caller = None
    if caller is None or name not in {caller.name, caller.role if caller.name is None else caller.name}:
        wait = await asyncio.to_thread(service.fail_login, door="postgres", peer=peer)
        await asyncio.sleep(wait)
        raise refused_login()
    return caller


async def _exchange(
    verifier: ScramVerifier, read: Callable[[], Awaitable[bytes]], tell: Callable[[bytes], Awaitable[None]]
) -> bool:
    def held(_: str) -> tuple[bytes, bytes, bytes, int]:
        return verifier.salt, verifier.stored_key, verifier.server_key, verifier.iterations

    server = ScramMechanism(MECHANISM).make_server(held)
    await tell(messages.ask_sasl([MECHANISM]))
    first = MessageBody(await read())
    chosen, size = first.text(), first.int32()
    if chosen != MECHANISM or size < 0:
        raise Malformed("a login must be by SCRAM-SHA-256")
    try:
        said = _ascii(first.take(size))
        # PostgreSQL's clients name nobody here, as they did so before; the library wants a name, and what is signed has none
        named = said.replace(",,n=,", ",,n=*,", 1)
        server.set_client_first(named)
        if named != said:
            server.client_first_bare = said.partition(",,")[2]
        await tell(messages.go_on_sasl(server.get_server_first()))
        server.set_client_final(_ascii(await read()))
        last = server.get_server_final()
    except ScramException:
        return False
    except Exception:  # noqa: BLE001 -- whatever bytes the library stumbles over, they prove nothing
        return False
    await tell(messages.end_sasl(last))
    return True


def _ascii(sent: bytes) -> str:
    try:
        return sent.decode()
    except UnicodeDecodeError:
        raise Malformed("a login must be in UTF-8") from None
