"""Run one measured script in one environment, and read its line.

Promise: one thread for every tool unless the room says otherwise, a time limit, and a row in every case: what
fails is named, with its reason.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments import last_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from environments import Environment

BENCH = Path(__file__).resolve().parent
SCRIPT_SECONDS = 240
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")


@dataclass(frozen=True, slots=True)
class Row:
    """What one tool answered on one task, and what that took; or why it did not."""

    tool: str
    task: str
    value: float | None = None
    lower: float | None = None
    best_seconds: float | None = None
    median_seconds: float | None = None
    first_seconds: float | None = None
    runs: int = 0
    cpu_seconds: float | None = None
    peak_mb: float | None = None
    spent_lower: float | None = None
    spent_upper: float | None = None
    versions: dict[str, str] = field(default_factory=dict[str, str])
    reason: str = ""

    @property
    def width(self) -> float | None:
        """The relative width of the certified interval, where the tool gives both ends."""
        if self.value is None or self.lower is None:
            return None
        return (self.value - self.lower) / self.value


def surroundings(threads: int = 1) -> dict[str, str]:
    """Return the environment variables of every measured process."""
    return os.environ | dict.fromkeys(_THREADS, str(threads)) | {"PYTHONPATH": str(BENCH), "PYTHONHASHSEED": "0"}


def lines(
    environment: Environment, arguments: Sequence[str], *, limit: int = SCRIPT_SECONDS, threads: int = 1
) -> tuple[list[dict[str, Any]], str]:
    """Return the JSON lines that the program printed, and the reason why there are none, or not all."""
    if environment.python is None:
        return [], f"not installed: {environment.reason}"
    try:
        done = subprocess.run(
            [str(environment.python), *arguments],
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env=surroundings(threads),
        )
    except subprocess.TimeoutExpired:
        return [], f"stopped after {limit} s"
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0 and found:
        return found, ""
    return [], last_words(done.stderr, f"ended with code {done.returncode} and said nothing")


def row(environment: Environment, script: Path, *, tool: str, key: str, task: str) -> Row:
    """Return the row of that tool on that task."""
    found, reason = lines(environment, [str(script), key, task])
    if reason:
        return Row(tool, task, reason=reason)
    known = {one.name for one in fields(Row)}
    return Row(tool=tool, **{name: value for name, value in found[-1].items() if name in known})
