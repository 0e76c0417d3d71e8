"""Task D: run every job, two at a time but for what is timed, show the tables, check the targets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import environments
from local import report, roster, targets, tasks
from local.results import Results
from presentation import CONSOLE
from subprocesses import lines

if TYPE_CHECKING:
    from pathlib import Path

    from environments import Environment
    from local.roster import Job

LIMIT = 1800  # seconds of one job
AT_ONCE = 2


def run(*, folder: Path) -> int:
    """Measure, show, write `local.md` and `.json`, and return the exit code."""
    results = Results()
    homes = {tasks.CURADOR: environments.ours()} | {name: environments.ready(name) for name in tasks.PEERS}
    together = roster.together()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for job, (found, reason) in zip(together, pool.map(lambda job: _lines(job, homes), together), strict=True):
            _keep(results, job, found, reason)
    CONSOLE.print("now times, one job after another")
    for job in roster.alone():
        _keep(results, job, *_lines(job, homes))
    shown = report.tables(results)
    checks = targets.checks(results)
    for table in (*shown, report.table_of_checks(checks)):
        table.show()
    CONSOLE.print(f"written: {report.write(results, shown, checks, folder)}")
    return int(any(check.verdict == targets.FAIL for check in checks))


def _lines(job: Job, homes: dict[str, Environment]) -> tuple[list[dict[str, object]], str]:
    CONSOLE.print(f"{job.said} ...")
    return lines(homes[job.tool], [str(job.script), *job.arguments], limit=LIMIT)


def _keep(results: Results, job: Job, found: list[dict[str, object]], reason: str) -> None:
    if reason:
        CONSOLE.print(f"{job.said}: {reason}")
        results.absent[job.said] = reason
    for line in found:
        if "versions" in line:
            results.versions[job.tool] = line["versions"]  # type: ignore[assignment]
        else:
            results.add(line)
