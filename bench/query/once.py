"""What is done once in a process of its own, for its time and its peak memory: `once.py WHAT ROWS FILE FOLDER`.

sort      CREATE TABLE AS … ORDER BY user_id by hand: what preparing is held against
prepare   opens the study for the first time; `prepare row`: with unit = row
plain     the plain question on the prepared table; `filtered` with the filter
ask       curador's: peak memory is the worker's, the asker's is beside it; `ask filtered` likewise
never     the same where nothing is prepared: bounding inline, within the study's memory and spill
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import stopwatch


def sort(file: Path, folder: Path) -> dict[str, float]:
    """Make a sorted copy with the limits of a study."""
    import duckdb

    copy = folder / "sorted.duckdb"
    copy.unlink(missing_ok=True)
    connection = duckdb.connect(str(copy), config={"threads": 2, "memory_limit": "4GB"})

    def call() -> None:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_parquet('{file}') ORDER BY user_id").fetchall()
        connection.close()  # writes the last of it

    _, wall, cpu = stopwatch.timed(call)
    size = copy.stat().st_size / 2**20
    copy.unlink()
    return {"seconds": wall, "cpu_seconds": cpu, "disk_mb": size}


def prepare(file: Path, folder: Path, kind: str) -> dict[str, float]:
    """Open the study for the first time, which prepares it."""
    from query import data, studies, tasks

    studies.opened(folder / "imports", data.table(tasks.SMALL), kind).close()  # modules that are loaded are no preparation
    curator, wall, cpu = stopwatch.timed(lambda: studies.opened(folder, file, kind))
    size = studies.prepared(curator).stat().st_size / 2**20
    curator.close()
    return {"seconds": wall, "cpu_seconds": cpu, "disk_mb": size}


def plain(folder: Path, question: str) -> dict[str, float]:
    """Ask without privacy, once; the result is an Arrow table, as the worker's is."""
    import duckdb

    from query import statements, tasks

    (database,) = (folder / "user" / tasks.CONCENTRATED / "visits.ledger.prepared").glob("v*.duckdb")
    connection = duckdb.connect(str(database), read_only=True, config={"threads": 2, "memory_limit": "4GB"})
    where = f"WHERE value >= {tasks.TENTH}" if question == tasks.FILTERED else ""
    rows = "(SELECT c1 AS grp, c2 AS value FROM t0)"
    _, wall, _ = stopwatch.timed(lambda: connection.sql(statements.plain(rows, where)).to_arrow_table())
    return {"seconds": wall}


def ask(file: Path, folder: Path, question: str, *, never: bool = False) -> dict[str, float]:
    """Ask curador, once; the worker is the only child."""
    from query import studies, tasks

    with studies.opened(folder, file, studies.USER_NEVER if never else studies.USER, deadline="1h") as curator:
        _, wall, _ = stopwatch.timed(lambda: curator.ask(tasks.QUESTIONS[question], spend="0.05%", fresh=True))
        children = [child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()]
        peaks = [stopwatch.peak_mb_of(Path(f"/proc/{child}/status")) or 0.0 for child in children]
    return {"seconds": wall, "worker_mb": max(peaks, default=0.0)}


def main() -> None:
    """Do it and print the line."""
    what, rows, file, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    verb, _, rest = what.partition(" ")
    done = {
        "sort": lambda: sort(file, folder),
        "prepare": lambda: prepare(file, folder, rest or "user"),
        "plain": lambda: plain(folder, rest or "whole"),
        "ask": lambda: ask(file, folder, rest or "whole"),
        "never": lambda: ask(file, folder, rest or "whole", never=True),
    }[verb]()
    print(json.dumps({"case": what, "rows": rows, "peak_mb": stopwatch.peak_mb(), **done}))


if __name__ == "__main__":
    main()
