"""How many durable entries a second a ledger writes, beside a bare loop that syncs each entry, on one disk in one run.

    make bench-ledger          prints the table; a quiet machine, a minute

bare        one SQLite file, WAL, synchronous = FULL, one row of 1,500 letters a transaction: what the disk gives one writer
ledger      reserve and commit by so many askers at once, with the witness: everything that a spend writes, no engine
asks        whole questions by so many askers at once: plan, charge, engine, noise, answer, receipt
again       the same question by so many askers: nothing is paid, nothing is waited for
"""

from __future__ import annotations

import hashlib
import itertools
import os
import resource
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import curador as cu
from curador.ledger.amounts import Amounts
from curador.ledger.entry import Request
from curador.ledger.ledger import Ledger
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.losses import Concentrated
from curador.study.model import Budget

SECONDS = 4.0
TURNS = 3
COST = Fraction(1, 10**12)
WHOSE = {"budget": Budget(epsilon=3, delta="1e-6"), "adjacency": ADD_OR_REMOVE_ONE, "unit": "person"}


def digest(text: object) -> str:
    """Return a digest that is nobody else's."""
    return hashlib.sha256(str(text).encode()).hexdigest()


def bare(folder: Path) -> float:
    """Return the entries a second of one writer that syncs each."""
    connection = sqlite3.connect(folder / f"bare{time.monotonic_ns()}.db", isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("CREATE TABLE entry (sequence INTEGER PRIMARY KEY, body TEXT)")
    begun, body, count = time.perf_counter(), "x" * 1500, 0
    while time.perf_counter() - begun < SECONDS:
        count += 1
        connection.execute("INSERT INTO entry VALUES (?, ?)", (count, body))
    connection.close()
    return count / (time.perf_counter() - begun)


def together(askers: int, act: Callable[[], object]) -> tuple[float, float]:
    """Return how often a second so many threads do something, and the share of all cores that this process used."""
    stop = threading.Event()
    counts = [0] * askers

    def go(place: int) -> None:
        while not stop.is_set():
            act()
            counts[place] += 1

    threads = [threading.Thread(target=go, args=(place,)) for place in range(askers)]
    begun, cpu = time.perf_counter(), used()
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    return sum(counts) / seconds, (used() - cpu) / seconds / (os.cpu_count() or 1)


def used() -> float:
    """Processor seconds of this process and of the children that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def ledger_rate(folder: Path, askers: int) -> float:
    """Return the entries a second that askers write: a charge and its answer are two."""
    path = folder / f"a{time.monotonic_ns()}.ledger"
    numbers = itertools.count()
    with Ledger.create(path, study_name="visits", study_digest=digest("study"), max_units=1_000_000, **WHOSE) as ledger:

        def spend() -> None:
            request = Request(
                amounts=Amounts.cost(rho=COST),
                losses=(Concentrated(rho=COST).to_record(),),
                study_digest=digest("study"),
                data_version=1,
                question_key=digest(next(numbers)),
                question="SELECT COUNT(*) AS n FROM visits",
                plan_digest=digest("plan"),
                adjacency=ADD_OR_REMOVE_ONE,
                tables=("visits",),
            )
            ledger.commit(ledger.reserve(request), answer=b"answer" * 20, answer_digest=digest("answer"))

        return 2 * together(askers, spend)[0]


def ask_rates(folder: Path, askers: int) -> tuple[float, float, float]:
    """Return whole asks a second of new questions, the share of cores of the asking process, and answers given again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = folder / f"visits{time.monotonic_ns()}.parquet"
    pq.write_table(pa.table({"user_id": list(range(1000)), "spent": [one % 50 for one in range(1000)]}), source)
    numbers = itertools.count()
    budget = cu.Budget(epsilon=3, delta="1e-6")
    with cu.open(
        source, unit="user_id", budget=budget, bounds={"spent": (0, 50)}, caps={"rows": 1}, least_spend=0
    ) as curator:

        def new() -> None:
            curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE spent < {next(numbers)}", rho="1e-12")

        new()
        rate, share = together(askers, new)
        again = together(askers, lambda: curator.ask("SELECT COUNT(*) AS n FROM visits WHERE spent < 0", rho="1e-12"))[0]
    return rate, share, again


def main() -> None:
    """Print the table: medians of a few turns, each of which measures everything once."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else ".") as name:
        folder = Path(name)
        os.environ["CURADOR_REGISTER"] = str(folder / "register")
        for _ in range(TURNS):
            found.setdefault("bare, entries/s", []).append(bare(folder))
            for askers in (1, 16, 64):
                found.setdefault(f"ledger, {askers} askers, entries/s", []).append(ledger_rate(folder, askers))
        rates = ask_rates(folder, 64)
        for label, one in zip(("asks/s", "share of cores, without workers", "again/s"), rates, strict=True):
            found.setdefault(f"64 askers, {label}", []).append(one)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    base = sorted(found["bare, entries/s"])[TURNS // 2]
    for label, values in found.items():
        middle = sorted(values)[len(values) // 2]
        ratio = f"  {middle / base:5.2f} of bare" if "entries" in label else ""
        print(f"{label:38} {middle:9.2f}{ratio}")


if __name__ == "__main__":
    main()
