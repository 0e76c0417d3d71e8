"""What the service writes down of itself: one JSON object a line, on standard error.

Claim   In a line stands what is ours: a time, an event, a route's template, a status, a role, a token's public id, a
        request's id. Never a text that somebody sent, a path, an address, a value, or what an exception says.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from typing import Any, Final

_LOCK = threading.Lock()
_FIELDS: Final = ("route", "method", "status", "role", "token", "request", "process", "number", "port", "incident", "error")


def write_log(level: str, event: str, **said: object) -> None:
    """Write one line; only fields that are known to hold nothing of anybody's."""
    unknown = said.keys() - set(_FIELDS)
    if unknown:
        raise TypeError(f"a log has no field {', '.join(sorted(unknown))}")
    body = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "level": level, "event": event, **said}
    with _LOCK:
        sys.stderr.write(json.dumps(body) + "\n")
        sys.stderr.flush()


class PlainLines(logging.Handler):
    """What other libraries log becomes a line that says which one, and nothing of what it says."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the name of the logger and of the exception's class."""
        kind = record.exc_info[0] if record.exc_info else None
        said: dict[str, Any] = {} if kind is None else {"error": kind.__name__}
        write_log(record.levelname.lower(), f"library {record.name.partition('.')[0]}", **said)


def quiet_libraries() -> None:
    """Let nothing that a library logs leave as it is."""
    root = logging.getLogger()
    root.handlers = [PlainLines()]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "mcp", "fastapi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(logging.ERROR if name != "uvicorn.access" else logging.CRITICAL)
