"""The tables of task A, the page and the JSON beside it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from accounting import tasks
from presentation import Table, machine, page, seconds

if TYPE_CHECKING:
    from pathlib import Path

    from accounting.results import Results
    from accounting.targets import Check
    from subprocesses import Row

COLUMNS = ("tool", "value", "against ours", "interval width", "best s", "ratio to ours", "peak MB")


def table_of(results: Results, task: str) -> Table:
    """Return the table of one task: ours before and after, and every peer."""
    rows = [row for row in results.rows if row.task == task]
    what = "sigma" if task == "A5" else "epsilon"
    columns = tuple(what if column == "value" else column for column in COLUMNS)
    return Table(f"{task}. {tasks.TITLES[task]}", columns, tuple(_cells(results, row) for row in rows))


def _cells(results: Results, row: Row) -> tuple[str, ...]:
    if row.value is None:
        return (f"{row.tool}: {row.reason}", "", "", "", "", "", "")
    ours, ratio = results.ours(row.task), results.ratio(row)
    against = "" if ours is None or not ours.value else f"{100 * (row.value / ours.value - 1):+.5f} %"
    return (
        row.tool,
        f"{row.value:.9f}",
        against,
        "" if row.width is None else f"{row.width:.1e}",
        seconds(row.best_seconds),
        "" if ratio is None else f"{ratio:.3g}",
        "" if row.peak_mb is None else f"{row.peak_mb:.0f}",
    )


def table_of_checks(checks: list[Check]) -> Table:
    """Return the closing section."""
    rows = tuple((check.promise, check.measured, check.verdict) for check in checks)
    return Table("Targets", ("target", "measured", "verdict"), rows)


def versions(results: Results) -> str:
    """Return every package and version that answered, in one sentence."""
    found = {pair for row in results.rows for pair in row.versions.items() if pair[0] != "python"}
    return "Packages: " + ", ".join(f"{name} {number}" for name, number in sorted(found)) + "."


EXPLANATION = (
    "Each number is taken in its own process, imports excluded, after one warm-up call: the best of 7 calls "
    "under 0.2 s, of 3 under 10 s, of 2 above. curador is measured before and after the peers; ratios are to "
    "the slower of the two. *against ours* compares with the upper end of curador's interval; *interval "
    "width* is relative, for tools that give both ends."
)


def write(results: Results, checks: list[Check], folder: Path) -> Path:
    """Write `accounting.md` and `accounting.json`; return the page's place."""
    folder.mkdir(exist_ok=True)
    shown = [table_of(results, task) for task in results.measured]
    text = page(
        "Accounting against the peers",
        [machine(), versions(results), EXPLANATION],
        [*shown, table_of_checks(checks)],
    )
    place = folder / "accounting.md"
    place.write_text(text)
    record = {
        "machine": machine(),
        "rows": [asdict(row) for row in results.rows],
        "checks": [asdict(check) for check in checks],
    }
    place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    return place
