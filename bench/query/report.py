"""The tables of task C, the page and the JSON beside it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from accounting.report import table_of_checks
from presentation import Table, machine, page, seconds
from query import tasks
from query.results import OURS

if TYPE_CHECKING:
    from pathlib import Path

    from accounting.targets import Check
    from query.results import Results, Times

THREADS = "two threads a tool"
EXPLANATION = (
    "curador and the statements by hand are timed by turns, curador's worker being a process of its own; peers run between "
    "two such passes, in their own environments. Best and median of all rounds, CPU seconds of the best round with the "
    "worker's; *to plain* is best over best. *ask* is everything: parsing, planning, reservation, tally, noise, error bars, "
    "receipt and commit. opendp's frame is in memory and its context made before the clock starts. Errors are root mean "
    "squares over fifty groups and the redraws, against each tool's own result before noise."
)


def tables(results: Results) -> list[Table]:
    """Return all tables."""
    shown = [table for rows in tasks.SIZES for table in (_questions(results, rows), _peers(results, rows))]
    return [*shown, _small(results), _once(results), _errors(results)]


def _questions(results: Results, rows: int) -> Table:
    cells: list[tuple[str, ...]] = []
    plain = results.time(rows, "plain, prepared")
    for (size, name), times in results.ours.items():
        if size == rows:
            cells.append(_row(name if name.startswith(("plain", "by hand", "fsync")) else f"{OURS}: {name}", times, plain))
    columns = ("case", "best s", "median s", "CPU s", "to plain, prepared")
    return Table(f"C. {rows:,} rows: curador and DuckDB by hand", columns, tuple(cells))


def _row(name: str, times: Times, plain: float | None) -> tuple[str, ...]:
    if not times.seconds:
        return (f"{name}: {times.reason}", "", "", "", "")
    ratio = "" if plain is None else f"{times.best / plain:.2f}"
    return (name, seconds(times.best), seconds(times.median), seconds(times.cpu), ratio)


def _peers(results: Results, rows: int) -> Table:
    cells: list[tuple[str, ...]] = []
    for (size, peer, question), times in results.peers.items():
        ours = results.time(rows, "ask" if question == tasks.WHOLE else "ask, filtered")
        if size == rows and times.seconds:
            parts = [seconds(times.more.get(name)) for name in ("building", "running")]
            peak = "" if times.peak_mb is None else f"{times.peak_mb:.0f}"
            ratio = "" if ours is None else f"{times.best / ours:.0f}"
            cells.append((peer, question, seconds(times.best), *parts, ratio, peak))
    cells += [(f"{peer}: {reason}", "", "", "", "", "", "") for peer, reason in results.absent.items()]
    columns = ("tool", "question", "best s", "building s", "running s", "times ours", "peak MB")
    return Table(f"C. {rows:,} rows: the peers", columns, tuple(cells))


def _small(results: Results) -> Table:
    plain = results.time(tasks.SMALL, "plain, prepared")
    cells = [_row(name, times, plain) for (size, name), times in results.ours.items() if size == tasks.SMALL]
    columns = ("case", "best s", "median s", "CPU s", "to plain, prepared")
    return Table(f"C. {tasks.SMALL:,} rows: what a question costs at least", columns, tuple(cells))


def _once(results: Results) -> Table:
    cells: list[tuple[str, ...]] = []
    for (rows, what), found in results.once.items():
        names = ("seconds", "cpu_seconds", "peak_mb", "worker_mb", "disk_mb")
        values = [found.get(name) for name in names]
        times = [seconds(value) for value in values[:2]]
        cells.append((f"{rows:,}: {what}", *times, *("" if value is None else f"{value:.0f}" for value in values[2:])))
    columns = ("rows: what, in a fresh process", "s", "CPU s", "peak MB", "worker's peak MB", "on disk MB")
    return Table("C. Preparation and memory", columns, tuple(cells))


def _errors(results: Results) -> Table:
    cells: list[tuple[str, ...]] = []
    for budget, words in tasks.BUDGETS.items():
        ours = results.errors.get((OURS, budget))
        for (peer, under), found in results.errors.items():
            if under == budget:
                against = "" if ours is None else " / ".join(f"{found[name] / ours[name]:.2f}" for name in tasks.COLUMNS)
                covered = results.coverage.get(budget) if peer == OURS else None
                held = "" if covered is None else " / ".join(f"{covered[name]:.3f}" for name in tasks.COLUMNS)
                cells.append((f"{words}: {peer}", *(f"{found[name]:.4g}" for name in tasks.COLUMNS), against, held))
    columns = ("budget: tool", "count", "sum", "mean", "times ours", "in the 95 % interval")
    return Table(
        f"C. Errors at {tasks.SIZES[0]:,} rows, {tasks.CAP} rows a user, {tasks.REDRAWS} redraws", columns, tuple(cells)
    )


def write(results: Results, shown: list[Table], checks: list[Check], folder: Path) -> Path:
    """Write `query.md` and `query.json`; return the page's place."""
    folder.mkdir(exist_ok=True)
    place = folder / "query.md"
    versions = "Packages: " + ", ".join(f"{name} {number}" for name, number in sorted(results.versions.items())) + "."
    load = f"Load average of the machine while measuring: {min(results.loads):.1f} to {max(results.loads):.1f}."
    paragraphs = [machine(THREADS), load, versions, EXPLANATION]
    place.write_text(page("Questions against the peers", paragraphs, [*shown, table_of_checks(checks)]))
    record = {
        "machine": machine(THREADS),
        "loads": results.loads,
        "versions": results.versions,
        "absent": results.absent,
        "ours": [{"rows": rows, "case": case, **asdict(times)} for (rows, case), times in results.ours.items()],
        "once": [{"rows": rows, "what": what, **found} for (rows, what), found in results.once.items()],
        "peers": [
            {"rows": rows, "tool": peer, "question": question, **asdict(times)}
            for (rows, peer, question), times in results.peers.items()
        ],
        "errors": [{"tool": peer, "budget": budget, **found} for (peer, budget), found in results.errors.items()],
        "coverage": results.coverage,
        "checks": [asdict(check) for check in checks],
    }
    place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    return place
