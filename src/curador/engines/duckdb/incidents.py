"""What is the owner's alone: what really happened when a question failed, and how long others took.

A line of JSON in a log of the prepared folder; everybody else sees a random id.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
from typing import TYPE_CHECKING

from curador.engines.base import EngineFailed

if TYPE_CHECKING:
    from pathlib import Path

    from curador.engines.duckdb.folder import Folder


def failure(folder: Folder, version: int, detail: str) -> EngineFailed:
    """Write what happened to the owner's log; return what anybody may know of it."""
    incident = secrets.token_hex(8)
    note_failure(folder, version, incident, detail)
    return EngineFailed(incident)


def note_failure(folder: Folder, version: int, incident: str, detail: str) -> None:
    """Write what happened under an id that was given to it elsewhere."""
    _append(folder, folder.incidents, {"incident": incident, "version": version, "detail": detail})


def note_duration(folder: Folder, version: int, question: str, seconds: float) -> None:
    """Write how long a question took, by the id that its receipt shows."""
    _append(folder, folder.durations, {"question": question, "version": version, "seconds": round(seconds, 3)})


def _append(folder: Folder, log: Path, entry: dict[str, object]) -> None:
    now = dt.datetime.now(dt.UTC).isoformat()
    with folder.appending(log) as file:
        file.write(json.dumps({"time": now, **entry}).encode() + b"\n")
