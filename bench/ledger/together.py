"""Many threads that do the same for a while; processor time and memory of a process and of all that it started."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def together(askers: int, act: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Return how often a second so many threads do something, and the share of all cores that it took, workers included."""
    stop, counts = threading.Event(), [0] * askers

    def go(place: int) -> None:
        while not stop.is_set():
            act()
            counts[place] += 1

    threads = [threading.Thread(target=go, args=(place,)) for place in range(askers)]
    begun, cpu = time.perf_counter(), cpu_seconds()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    return sum(counts) / took, (cpu_seconds() - cpu) / took / (os.cpu_count() or 1)


def cpu_seconds() -> float:
    """Return the processor seconds of this process and of those that it started and that run still."""
    return sum(sum(map(int, _fields(one)[11:13])) / TICKS for one in _family())


def resident() -> int:
    """Return the bytes that they hold."""
    return sum(int(Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()[1]) * PAGE for one in _family())


def _family() -> list[int]:
    found = [os.getpid()]
    for one in found:
        for task in list(Path(f"/proc/{one}/task").iterdir()):
            with contextlib.suppress(FileNotFoundError):  # a thread that ended meanwhile
                found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def _fields(process: int) -> list[str]:
    """What follows the name in /proc/<number>/stat, which may hold anything."""
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
