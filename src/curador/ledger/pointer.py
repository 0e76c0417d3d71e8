"""Where a ledger is kept: in the file of its name, or on a server, of which that file then says the address.

`<name>.ledger` is a SQLite file, or a line of JSON with the address of a PostgreSQL schema. Everything else of a ledger lies
beside it, on every machine its own: the witness, the checkpoint, the prepared copy. So a machine that knows a ledger has its
file, and whoever looks for the ledger of some rows finds it by a path, wherever it is kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from curador.errors import InvalidStudy
from curador.ledger.entry import DAMAGED
from curador.ledger.sqlite import SQLiteStore, require_regular
from curador.ledger.witness import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from curador.ledger.store import Store

VERSION: Final = 1
_LONGEST: Final = 4096  # bytes
_BEGINS: Final = b'{"address"'


def write_pointer(path: Path, address: str, ledger: str) -> None:
    """Say in a new file where a ledger is kept. FileExistsError."""
    body = {"address": address, "ledger": ledger, "version": VERSION}
    write_private(path, (json.dumps(body) + "\n").encode(), replace=False)


def read_pointer(path: Path) -> str | None:
    """Return the address that a ledger's file names; None where the file is the ledger itself.

    A ledger's own file is told by its size and never opened here: closing any handle of a file drops all locks that this
    process has on it, SQLite's too. Another process would then take itself for the last one, and remove the log.
    """
    require_regular(path)
    if path.stat().st_size >= _LONGEST:
        return None
    with path.open("rb") as file:
        content = file.read(_LONGEST)
    if not content.startswith(_BEGINS):
        return None
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    match body:
        case {"version": 1, "address": str(address), "ledger": str(_)}:
            return address
        case _:
            raise InvalidStudy.must_be("ledger", "a file that says where it is kept", str(path), DAMAGED)


def store_at(path: Path) -> Store:
    """Open the store of a ledger, wherever it is kept."""
    address = read_pointer(path)
    if address is None:
        return SQLiteStore(path)
    from curador.ledger.postgres import PostgresStore

    return PostgresStore(address)
