"""What really happened when the engine failed: a line in the owner's log, and for everybody else a random id."""

from __future__ import annotations

import datetime as dt
import json
import secrets
from typing import TYPE_CHECKING

from curador.engines.base import EngineFailed

if TYPE_CHECKING:
    from curador.engines.duckdb.folder import Folder


def failure(folder: Folder, version: int, detail: str) -> EngineFailed:
    """Write what happened to the owner's log; return what anybody may know of it."""
    incident = secrets.token_hex(8)
    now = dt.datetime.now(dt.UTC).isoformat()
    entry = {"incident": incident, "time": now, "version": version, "detail": detail}
    with folder.incidents_file() as log:
        log.write(json.dumps(entry).encode() + b"\n")
    return EngineFailed(incident)
