"""Task A: run every tool on every task, show the tables, check the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import environments
from accounting import report, roster, targets
from accounting.results import Results
from presentation import CONSOLE
from subprocesses import Row, row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from accounting.roster import Tool
    from environments import Environment


def run(names: Sequence[str], *, everyone: bool, folder: Path | None) -> int:
    """Measure, show, write unless there is no folder, and return the exit code."""
    peers = [peer for peer in roster.peers(everyone=everyone) if peer.tasks & set(names)]
    homes = {name: environments.ready(name) for name in dict.fromkeys(peer.environment for peer in peers)}
    rows: list[Row] = []
    for task in names:
        rows += _rows_of(task, peers, homes)
        report.table_of(Results(tuple(rows)), task).show()
    results = Results(tuple(rows))
    checks = targets.checks(results)
    report.table_of_checks(checks).show()
    if folder is not None:
        CONSOLE.print(f"written: {report.write(results, checks, folder)}")
    return int(any(check.verdict == targets.FAIL for check in checks))


def _rows_of(task: str, peers: list[Tool], homes: dict[str, Environment]) -> Iterator[Row]:
    yield _measured(roster.CURADOR, environments.ours(), task, " (before)")
    for peer in peers:
        if task in peer.tasks:
            yield _measured(peer, homes[peer.environment], task)
    yield _measured(roster.CURADOR, environments.ours(), task, " (after)")


def _measured(tool: Tool, home: Environment, task: str, when: str = "") -> Row:
    name = tool.name + when
    with CONSOLE.status(f"{task}: {name}"):
        return row(home, tool.script, tool=name, key=tool.key, task=task)
