"""A bar for fits that take longer than two seconds, where somebody looks at a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE = 2.0


def bar(name: str, epsilon: float) -> Callable[[int, int], None]:
    """Return what a Releaser calls after each release: shows the step and the part of the budget that is spent."""
    started = time.monotonic()
    shown: list[Any] = []

    def step(made: int, planned: int) -> None:
        if not shown and (time.monotonic() - started < _PATIENCE or not sys.stderr.isatty()):
            return
        from rich.console import Console

        if not shown:
            shown.append(Console(stderr=True))
        end = "\n" if made == planned else "\r"
        shown[0].print(f"{name}: release {made}/{planned}, {made / planned:.0%} of ε = {epsilon:g}", end=end)

    return step
