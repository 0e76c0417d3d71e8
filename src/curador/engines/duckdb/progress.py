"""What is being done, told to the owner when it takes long: by the clock, never by rows."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 2.0
"""Seconds before anything is said."""


class Progress:
    """Tells the current step once the work has taken longer than two seconds, and each further step as it begins."""

    def __init__(self, tell: Callable[[str], None] | None) -> None:
        self._tell = tell
        self._began = time.monotonic()
        self._step: str | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self._tell is not None:
            self._timer = threading.Timer(PATIENCE, self._late)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def step(self, text: str) -> None:
        """Begin a step."""
        with self._lock:
            self._step = text
            if self._tell is not None and time.monotonic() - self._began >= PATIENCE:
                self._told(text)

    def _late(self) -> None:
        with self._lock:
            if self._step is not None:
                self._told(self._step)

    def _told(self, text: str) -> None:
        if self._tell is not None:
            self._step = None  # once each
            self._tell(text)
