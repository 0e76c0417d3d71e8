"""`make bench-large`: how preparing and asking grow with the table, at 1, 10 and 100 million rows.

Inline bounding, where nothing is prepared, has the study's memory and spill and no more: it answers within them or it
fails, which is a row with the reason.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environments
from growth.room import exponent
from presentation import CONSOLE, Table, machine, page, seconds
from query import data
from query.report import THREADS
from subprocesses import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
SIZES = (1_000_000, 10_000_000, 100_000_000)
LIMIT = 7200  # seconds of one script
ONCE = ("sort", "prepare", "plain whole", "ask whole", "ask filtered", "never whole")
HAND = "by hand, filtered: ROW_NUMBER and QUALIFY, by the stored rank"
TURNS = ("plain, prepared", "ask", "plain, filtered", "ask, filtered", HAND)
CAPPED = ("ask, groups capped", "ask, groups capped, filtered")
COLUMNS = {
    "sort": ("seconds", "peak_mb", "disk_mb"),
    "prepare": ("seconds", "peak_mb", "disk_mb"),
    "plain whole": ("peak_mb",),
    "ask whole": ("worker_mb",),
    "ask filtered": ("worker_mb",),
    "never whole": ("seconds", "worker_mb"),
}
WORDS = {"seconds": "s", "peak_mb": "peak MB", "disk_mb": "MB on disk", "worker_mb": "worker's peak MB"}


def run(sizes: Sequence[int], folder: Path) -> int:
    """Measure, show, write `query-large.md` and `.json`; return 1 if a question on a prepared table found no answer."""
    found: dict[int, dict[str, dict[str, Any]]] = {}
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(dir=environments.HOME, prefix="studies-") as place:
        for rows in sizes:
            found[rows] = _measured(rows, Path(place) / str(rows))
            loads.append(os.getloadavg()[0])
    tables = [_times(found), _capped(found), _once(found)]
    for table in tables:
        table.show()
    folder.mkdir(exist_ok=True)
    page_place = folder / "query-large.md"
    load = f"Load average of the machine while measuring: {min(loads):.1f} to {max(loads):.1f}."
    page_place.write_text(page("Questions on large tables", [machine(THREADS), load], tables))
    record = {"machine": machine(THREADS), "loads": loads, "rows": {str(rows): cases for rows, cases in found.items()}}
    page_place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    CONSOLE.print(f"written: {page_place}")
    return int(any("seconds" not in cases.get(name, {}) for cases in found.values() for name in TURNS))


def _measured(rows: int, folder: Path) -> dict[str, dict[str, Any]]:
    folder.mkdir(parents=True)
    with CONSOLE.status(f"{rows:,} rows: the table"):
        file = data.table(rows)
    found: dict[str, dict[str, Any]] = {}
    for what in ONCE:
        with CONSOLE.status(f"{rows:,} rows: {what}"):
            said, reason = lines(
                environments.ours(), [str(HERE / "once.py"), what, str(rows), str(file), str(folder)], limit=LIMIT, threads=2
            )
        found[what] = {"reason": reason} if reason else said[-1]
    with CONSOLE.status(f"{rows:,} rows: by turns"):
        said, reason = lines(
            environments.ours(),
            [str(HERE / "ours.py"), str(rows), str(file), str(folder), *TURNS, *CAPPED],
            limit=LIMIT,
            threads=2,
        )
    for line in said:
        if "case" in line:
            found[line["case"]] = line
    return found


def _times(found: dict[int, dict[str, dict[str, Any]]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for size, cases in found.items():
        best = [min(cases[name]["seconds"]) if "seconds" in cases.get(name, {}) else None for name in TURNS]
        plain, ask, filtered, ask_filtered, hand = best
        pairs = ((ask, plain), (ask_filtered, filtered))
        ratios = [f"{above / below:.2f}" if above and below else "" for above, below in pairs]
        times = [seconds(one) for one in (plain, ask, filtered, hand, ask_filtered)]
        rows.append((f"{size:,}", *times[:2], ratios[0], *times[2:], ratios[1]))
    columns = ("rows", "plain s", "ask s", "ratio", "filtered: plain s", "bounded by hand s", "ask s", "ratio to plain")
    return Table(f"Best times by turns; {_growth(found)}", columns, tuple(rows))


def _capped(found: dict[int, dict[str, dict[str, Any]]]) -> Table:
    """Units by group, five rows and four groups of each: ratios to plain, by the clock and of the processors."""
    rows: list[tuple[str, ...]] = []
    for size, cases in found.items():
        cells: list[str] = []
        pairs = (("ask", TURNS[0]), ("ask, filtered", TURNS[2]), (CAPPED[0], TURNS[0]), (CAPPED[1], TURNS[2]))
        for above, below in pairs:
            ours, plain = cases.get(above, {}), cases.get(below, {})
            known = "seconds" in ours and "seconds" in plain
            clock = min(ours["seconds"]) / min(plain["seconds"]) if known else None
            cells.append("" if clock is None else f"{clock:.2f} / {ours['cpu_seconds'] / plain['cpu_seconds']:.2f}")
        rows.append((f"{size:,}", *cells))
    return Table("Times plain: by the clock / of processors", ("rows", "ask", "filtered", *CAPPED), tuple(rows))


def _growth(found: dict[int, dict[str, dict[str, Any]]]) -> str:
    """Return how preparing grows."""
    known = [(size, cases["prepare"]["seconds"]) for size, cases in found.items() if "seconds" in cases.get("prepare", {})]
    slope = exponent([float(size) for size, _ in known], [taken for _, taken in known])
    return "no growth fitted" if slope is None else f"preparing grows as rows^{slope:.2f}"


def _once(found: dict[int, dict[str, dict[str, Any]]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for what, names in COLUMNS.items():
        for name in names:
            cells = [_cell(cases.get(what, {}), name, size) for size, cases in found.items()]
            rows.append((f"{what}: {WORDS[name]}", *cells))
    return Table("Once, in a fresh process", ("", *(f"{size:,} rows" for size in found)), tuple(rows))


def _cell(case: dict[str, Any], name: str, size: int) -> str:
    if name not in case:
        return str(case.get("reason", "not run"))
    value = case[name]
    if name == "seconds":
        return f"{seconds(value)} ({1e6 * value / size:.2f} µs a row)"
    return f"{value:,.0f} ({2**20 * value / size:,.0f} bytes a row)"


if __name__ == "__main__":
    sys.exit(run([int(one) for one in sys.argv[1:]] or SIZES, RESULTS))
