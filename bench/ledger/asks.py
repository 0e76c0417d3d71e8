"""Whole questions on a small table: what one costs, how many a second many askers get, and what grows. JSON lines.

    python bench/ledger/asks.py FOLDER cost | many | memory | growth

cost     processor time of one warm question on 1,000 rows, of the asking process and of its worker
many     64 askers at once, with new questions (plan, charge, engine, noise, answer, receipt), with one that is drawn
         afresh, and with one that is given again
memory   10,000 questions, one after the other, by 16 askers: what both processes hold after each thousand
growth   opening a study whose ledger has 100,000 entries, and a question there beside one on an empty ledger
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rates import spend
from together import cpu_seconds, resident, together

import curador as cu

if TYPE_CHECKING:
    from collections.abc import Callable

ASKERS = 64
SECONDS = 10.0
BATCHES, BATCH = 9, 50
THOUSANDS = 10
ENTRIES = 100_000
TURNS = 200
WARM = "SELECT grp, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS m FROM visits GROUP BY grp"


def opened(folder: Path, name: str, **changes: object) -> cu.Curator:
    """Return a study of 1,000 rows of 100 persons, a folder of its own each: equal rows would share a ledger."""
    place = folder / name
    place.mkdir(exist_ok=True)
    os.environ["CURADOR_REGISTER"] = str(place / "register")
    source = place / "visits.parquet"
    if not source.exists():
        draw = np.random.default_rng(1)
        columns = {"user_id": draw.integers(0, 100, 1000), "grp": draw.integers(0, 5, 1000), "value": draw.random(1000) * 100}
        pq.write_table(pa.table(columns), source)
    settings = {
        "unit": "user_id",
        "budget": cu.Budget(epsilon=3, delta="1e-6"),
        "bounds": {"value": (0, 100)},
        "values": {"grp": list(range(5))},
        "caps": {"rows": 5, "groups": 5},
        "least_spend": 0,
    }
    return cu.open(source, ledger=place / "visits.ledger", **{**settings, **changes})


def cost(folder: Path) -> None:
    """Print the milliseconds of a warm question, by batches."""
    with opened(folder, "cost") as curator:
        for _ in range(20):
            curator.ask(WARM, rho="1e-9", fresh=True)
        found = []
        for _ in range(BATCHES):
            before, own, clock = cpu_seconds(), time.process_time(), time.perf_counter()
            for _ in range(BATCH):
                curator.ask(WARM, rho="1e-9", fresh=True)
            found.append((cpu_seconds() - before, time.process_time() - own, time.perf_counter() - clock))
    for name, column in zip(("both", "asking", "clock"), zip(*found, strict=True), strict=True):
        milliseconds = [one / BATCH * 1000 for one in column]
        say(f"cost, {name}", median=statistics.median(milliseconds), least=min(milliseconds))


def many(folder: Path) -> None:
    """Print the rates of 64 askers, in as many processes as there are cores: one of Python alone has one of them."""
    opened(folder, "many").close()
    crowds = os.cpu_count() or 1
    for kind in ("new", "fresh", "again"):
        command = [sys.executable, __file__, str(folder), f"crowd-{kind}"]
        places = [subprocess.Popen([*command, f"{place}/{crowds}"], stdout=subprocess.PIPE) for place in range(crowds)]
        found = [json.loads(one.communicate()[0].splitlines()[-1]) for one in places]
        say(kind, rate=sum(one["rate"] for one in found), share=sum(one["share"] for one in found))


def crowd(folder: Path, kind: str, part: str) -> None:
    """Ask with a part of the askers, and print how often and with how much of the cores."""
    place, crowds = map(int, part.split("/"))
    numbers = itertools.count(place, crowds)
    with opened(folder, "many") as curator:
        ways = {
            "new": lambda: curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE value < {next(numbers)}", rho="1e-12"),
            "fresh": lambda: curator.ask(WARM, rho="1e-12", fresh=True),
            "again": lambda: curator.ask(WARM, rho="1e-11"),
        }
        for way in (ways[kind], ways[kind]):
            way()
        time.sleep(2)  # the others are ready, too
        rate, share = together(ASKERS // crowds, ways[kind], SECONDS)
    say(kind, rate=rate, share=share)


def memory(folder: Path) -> None:
    """Print what is held after each thousand questions."""
    with opened(folder, "memory") as curator, ThreadPoolExecutor(16) as pool:

        def ask(number: int) -> None:
            curator.ask(f"SELECT grp, SUM(value) AS s FROM visits WHERE value < {number} GROUP BY grp", rho="1e-12")

        for thousand in range(1, THOUSANDS + 1):
            list(pool.map(ask, range(1000 * thousand, 1000 * thousand + 1000)))
            gc.collect()
            say("memory", asks=1000 * thousand, megabytes=resident() / 1e6)


def growth(folder: Path) -> None:
    """Print what opening takes, and by turns what a question costs on a long ledger and on an empty one."""
    with opened(folder, "long") as curator, ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda number: spend(curator.ledger, number), range(ENTRIES // 2)))
    first, _ = clocked(lambda: opened(folder, "long").close())
    found = [clocked(lambda: opened(folder, "long").close()) for _ in range(5)]
    say("opening", first=first, seconds=statistics.median(one for one, _ in found))
    with opened(folder, "long") as long, opened(folder, "empty") as empty:
        times: dict[str, list[tuple[float, float]]] = {"long": [], "empty": []}
        for turn in range(TURNS + 10):
            for name, curator in (("long", long), ("empty", empty))[:: 1 if turn % 2 else -1]:
                taken = clocked(lambda curator=curator: curator.ask(WARM, rho="1e-9", fresh=True))
                if turn >= 10:
                    times[name].append(taken)
        for name, taken in times.items():
            clock, cpu = (1000 * statistics.median(column) for column in zip(*taken, strict=True))
            say(f"ask, {name}", clock=clock, cpu=cpu, entries=len(long.log()) if name == "long" else 0)


def clocked(call: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds by the clock, and of this process."""
    clock, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - clock, time.process_time() - cpu


def say(what: str, **numbers: float) -> None:
    """Print one line."""
    print(json.dumps({"what": what, **numbers}), flush=True)


if __name__ == "__main__":
    what, where = sys.argv[2], Path(sys.argv[1])
    if what.startswith("crowd-"):
        crowd(where, what.removeprefix("crowd-"), sys.argv[3])
    else:
        {"cost": cost, "many": many, "memory": memory, "growth": growth}[what](where)
