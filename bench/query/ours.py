"""Times of curador and of DuckDB by hand, by turns in one process: `ours.py ROWS FILE FOLDER [CASE …]`.

Every round times each case once, so that whatever else the machine does falls on all of them alike. The plain question
runs here, on the very file that curador prepared, with as many threads; curador's worker is a process of its own, as in
use. CPU seconds are of both processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import stopwatch
from curador.curator.options import QuestionOptions
from curador.curator.price import price_at
from query import statements, studies, tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import curador as cu

THREADS = 2  # as a study's default
SPEND = "0.05%"
WHERE = f"WHERE value >= {tasks.TENTH}"
OWNED = "(SELECT __u AS user_id, c1 AS grp, c2 AS value, __r FROM t0)"
BARE = "(SELECT c1 AS grp, c2 AS value FROM t0)"
SLOW_SECONDS = 4.0


def by_hand(database: str, statement: str) -> Callable[[], object]:
    """Return a call that runs the statement."""
    connection = duckdb.connect(database, read_only=database != ":memory:", config={"threads": THREADS})
    return lambda: connection.execute(statement).fetchall()


def asked(curator: cu.Curator, question: str) -> Callable[[], object]:
    """Return a call that asks, and pays, anew."""
    return lambda: curator.ask(tasks.QUESTIONS[question], spend=SPEND, fresh=True)


def asked_as(curator: cu.Curator, text: str, caps: dict[str, int] | None = None) -> Callable[[], object]:
    """Return a call that asks this, under these caps, and pays anew."""
    return lambda: curator.ask(text, spend=SPEND, fresh=True, caps=caps)


def tallied(curator: cu.Curator, question: str) -> Callable[[], object]:
    """Return a call that computes the exact integers only: no planning, no ledger, no noise."""
    ready = price_at(curator._session, tasks.QUESTIONS[question], QuestionOptions(spend=SPEND))  # noqa: SLF001 - what ask does first
    engine = curator._session.engine  # noqa: SLF001 - and what it does then
    return lambda: engine.tally(engine.compile(ready.plan.blocks))


def cases(rows: int, file: Path, folder: Path, stack: contextlib.ExitStack) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield everything that is timed by turns."""
    user = stack.enter_context(studies.opened(folder, file, studies.USER))
    database, parquet = str(studies.prepared(user)), f"read_parquet('{file}')"
    yield "plain, prepared", by_hand(database, statements.plain(BARE))
    yield "ask", asked(user, tasks.WHOLE)
    yield "of which the tally", tallied(user, tasks.WHOLE)
    yield "fsync", synced(folder)
    yield "preview", lambda: user.preview(tasks.QUESTION, spend=SPEND)
    if rows == tasks.SMALL:
        return
    yield "plain, filtered", by_hand(database, statements.plain(BARE, WHERE))
    yield "ask, filtered", asked(user, tasks.FILTERED)
    yield "ask, groups capped", asked_as(user, tasks.UNITS, tasks.FEW_GROUPS)
    yield "ask, groups capped, filtered", asked_as(user, tasks.filtered(tasks.UNITS), tasks.FEW_GROUPS)
    for name, statement in statements.bounded(OWNED, WHERE).items():
        yield f"by hand, filtered: {name}", by_hand(database, statement)
    for name, statement in statements.bounded(OWNED, WHERE, "__r").items():
        yield f"by hand, filtered: {name}, by the stored rank", by_hand(database, statement)
    if rows > tasks.SIZES[-1]:
        return
    few = stack.enter_context(studies.opened(folder, file, studies.FEW))
    yield "ask, default caps", asked_as(few, tasks.QUESTION)
    yield "ask, default caps, filtered", asked_as(few, tasks.QUESTIONS[tasks.FILTERED])
    yield "ask, default caps, units", asked_as(few, tasks.UNITS)
    yield "ask, private keys", asked_as(few, tasks.KEYS)
    yield "ask, private keys, filtered", asked_as(few, tasks.filtered(tasks.KEYS))
    yield "plain, Parquet", by_hand(":memory:", statements.plain(parquet))
    row = stack.enter_context(studies.opened(folder, file, studies.ROW))
    yield "plain, prepared by row", by_hand(str(studies.prepared(row)), statements.plain(BARE))
    yield "ask, unit row", asked(row, tasks.WHOLE)
    yield "of which the tally, unit row", tallied(row, tasks.WHOLE)
    never = stack.enter_context(studies.opened(folder, file, studies.ROW_NEVER))
    yield "ask, unit row, never prepared", asked(never, tasks.WHOLE)
    yield "of which the tally, unit row, never prepared", tallied(never, tasks.WHOLE)
    inline = stack.enter_context(studies.opened(folder, file, studies.USER_NEVER))
    yield "ask, never prepared", asked(inline, tasks.WHOLE)
    for name, statement in statements.bounded(parquet).items():
        yield f"by hand, Parquet: {name}", by_hand(":memory:", statement)


def synced(folder: Path) -> Callable[[], object]:
    """Return a call that makes one small write durable."""
    handle = os.open(folder / "synced", os.O_CREAT | os.O_WRONLY)

    def call() -> None:
        os.pwrite(handle, os.urandom(4096), 0)
        os.fsync(handle)

    return call


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children so far."""
    total = time.process_time()
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            for thread in Path(f"/proc/{child}/task").iterdir():
                total += int((thread / "schedstat").read_text().split()[0]) / 1e9
    return total


def by_turns(named: list[tuple[str, Callable[[], object]]], number_of_rounds: int) -> Iterator[dict[str, object]]:
    """Yield one line a case: the seconds of each round, or the reason why there are none."""
    rounds: dict[str, list[tuple[float, float]]] = {}
    failed: dict[str, str] = {}
    slow: set[str] = set()
    for number in range(number_of_rounds + 1):
        for name, call in named:
            if name in failed or (name in slow and number > 2):
                continue
            try:
                before, cpu = time.perf_counter(), cpu_seconds()
                call()
                taken = time.perf_counter() - before, cpu_seconds() - cpu
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
                continue
            if number == 0:  # the first round starts workers and warms caches
                continue
            rounds.setdefault(name, []).append(taken)
            if taken[0] > SLOW_SECONDS:
                slow.add(name)
    for name, _ in named:
        line: dict[str, object] = {"case": name}
        if name in failed:
            yield line | {"reason": failed[name]}
        else:
            walls, cpus = zip(*rounds[name], strict=True)
            yield line | {"seconds": walls, "cpu_seconds": min(cpus)}


def main() -> None:
    """Time one size and print its lines."""
    rows, file, folder = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    print(json.dumps({"versions": stopwatch.versions(["curador", "duckdb", "pyarrow", "sqlglot"])}))
    with contextlib.ExitStack() as stack:
        chosen = [one for one in cases(rows, file, folder, stack) if len(sys.argv) < 5 or one[0] in sys.argv[4:]]
        for line in by_turns(chosen, tasks.SMALL_ROUNDS if rows == tasks.SMALL else tasks.ROUNDS):
            print(json.dumps({"rows": rows, **line}), flush=True)


if __name__ == "__main__":
    main()
