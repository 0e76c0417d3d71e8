"""The stopwatch every measured script uses, in every environment: standard library only.

Promise: imports are over before the clock starts; one warm-up call is not counted; fast calls are timed
seven times and slow ones two or three; before each call the tool's own caches are emptied, so that no call
profits from the one before; one process measures one tool on one task, so that its peak memory is that
task's. The answer is one line of JSON.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Answer = float | tuple[float, float]
    Measured = Callable[[], Answer]

FAST_SECONDS = 0.2
SLOW_SECONDS = 10.0


def runs_for(seconds: float) -> int:
    """Return how many timed calls a task of that length gets."""
    if seconds < FAST_SECONDS:
        return 7
    return 3 if seconds < SLOW_SECONDS else 2


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of one call, its wall seconds and its CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def forget(package: str) -> None:
    """Empty every functools cache in the loaded modules of a package."""
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()


def measure(call: Callable[[], Any], package: str) -> tuple[Any, dict[str, float]]:
    """Return the call's result and its times: a warm-up, then as many runs as its length allows."""
    _, first, _ = timed(call)
    forget(package)
    result, wall, cpu = timed(call)  # the warm-up may have loaded modules: its length decides nothing
    walls, cpus = [wall], [cpu]
    while len(walls) < runs_for(wall):
        forget(package)
        result, again, cpu = timed(call)
        walls.append(again)
        cpus.append(cpu)
    times = {
        "best_seconds": min(walls),
        "median_seconds": statistics.median(walls),
        "first_seconds": first,
        "runs": len(walls),
        "cpu_seconds": min(cpus),
    }
    return result, times


def peak_mb() -> float | None:
    """Return the process's largest resident size so far, in MB."""
    found = peak_mb_of(Path("/proc/self/status"))
    if found is not None:  # getrusage would also count what the parent held before it became this program
        return found
    try:
        import resource
    except ImportError:
        return None
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 1024**2 if sys.platform == "darwin" else size / 1024


def peak_mb_of(status: Path) -> float | None:
    """Return the largest resident size so far of the process with that status file, in MB."""
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def versions(distributions: Sequence[str]) -> dict[str, str]:
    """Return the versions of the named distributions that are installed here."""
    found = {"python": platform.python_version()}
    for name in (*distributions, "numpy", "scipy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def main(
    tools: Mapping[str, Mapping[str, Measured]],
    distributions: Sequence[str],
    *,
    package: str,
    afterwards: Mapping[str, Callable[[float], dict[str, float]]] | None = None,
) -> None:
    """Measure `script.py TOOL TASK` and print its line; `afterwards` adds untimed facts about the value."""
    tool, task = sys.argv[1:3]
    answer, times = measure(tools[tool][task], package)
    lower, value = answer if isinstance(answer, tuple) else (None, answer)
    line = {
        "task": task,
        "value": float(value),
        "lower": None if lower is None else float(lower),
        **times,
        "peak_mb": peak_mb(),
        "versions": versions(distributions),
    }
    if afterwards and task in afterwards:
        line |= afterwards[task](value)
    print(json.dumps(line))
