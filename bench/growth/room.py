"""Task G: curador's time against the number of records, of one kind or mixed, the count of one, and entries of a ledger."""

from __future__ import annotations

import json
import math
from itertools import groupby
from pathlib import Path

import environments
from presentation import CONSOLE, Table, machine, page, seconds
from subprocesses import lines

SCRIPTS = [Path(__file__).resolve().parent / name for name in ("ours.py", "ledger.py")]


def run(folder: Path) -> int:
    """Measure, show, write `growth.md` and `.json`; return the exit code."""
    found: list[dict] = []
    for script in SCRIPTS:
        some, reason = lines(environments.ours(), [str(script)])
        if reason:
            CONSOLE.print(f"growth: curador: {reason}")
            return 1
        found += some
    tables = [_table(series, list(rows)) for series, rows in groupby(found, key=lambda row: row["series"])]
    for table in tables:
        table.show()
    folder.mkdir(exist_ok=True)
    place = folder / "growth.md"
    place.write_text(page("How the time grows", [machine()], tables))
    place.with_suffix(".json").write_text(json.dumps({"machine": machine(), "rows": found}, indent=1) + "\n")
    CONSOLE.print(f"written: {place}")
    return int(any("reason" in row for row in found))


def exponent(sizes: list[float], times: list[float]) -> float | None:
    """Return the least-squares slope of log time against log size."""
    if len(sizes) < 2:
        return None
    across, along = [math.log(size) for size in sizes], [math.log(time) for time in times]
    middle, level = sum(across) / len(across), sum(along) / len(along)
    spread = sum((x - middle) ** 2 for x in across)
    return sum((x - middle) * (y - level) for x, y in zip(across, along, strict=True)) / spread


def _table(series: str, rows: list[dict]) -> Table:
    good = [row for row in rows if "reason" not in row]
    slope = exponent([row["size"] for row in good], [row["best_seconds"] for row in good])
    fitted = "no fit" if slope is None else f"time grows as size^{slope:.2f}"
    if not any("upper" in row for row in good):
        plain = tuple((f"{row['size']:,}", seconds(row["best_seconds"])) for row in rows)
        return Table(f"G. {series}: {fitted}", ("entries", "best CPU s"), plain)
    cells = tuple(_cells(row) for row in rows)
    return Table(f"G. {series}: {fitted}", ("size", "epsilon", "interval width", "best s"), cells)


def _cells(row: dict) -> tuple[str, ...]:
    size = f"{row['size']:,}"
    if "reason" in row:
        return (f"{size}: {row['reason']}", "", "", "")
    width = (row["upper"] - row["lower"]) / row["upper"]
    return (size, f"{row['upper']:.9f}", f"{width:.1e}", seconds(row["best_seconds"]))
