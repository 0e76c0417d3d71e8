"""Task S: several passes over every tool, show the tables, check the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import environments
from presentation import CONSOLE
from sampling import report, roster, targets
from sampling.results import Results, pooled
from subprocesses import lines

if TYPE_CHECKING:
    from pathlib import Path

    from environments import Environment
    from sampling.roster import Tool

PASSES = 5


def run(*, everyone: bool, folder: Path) -> int:
    """Measure, show, write `sampling.md` and `.json`, and return the exit code."""
    results = _measured(everyone=everyone)
    shown = report.tables(results)
    checks = targets.checks(results)
    for table in (*shown, report.table_of_checks(checks)):
        table.show()
    CONSOLE.print(f"written: {report.write(results, shown, checks, folder)}")
    return int(any(check.verdict == targets.FAIL for check in checks))


def _measured(*, everyone: bool) -> Results:
    results = Results()
    homes: list[tuple[Tool, Environment]] = [(roster.CURADOR, environments.ours())]
    for peer in roster.PEERS:
        if everyone or peer.always:
            homes.append((peer, environments.ready(peer.environment)))
        else:
            results.absent[peer.name] = roster.LEFT_OUT
    found: list[dict[str, Any]] = []
    for number in range(1, PASSES + 1):
        for tool, home in homes:
            if tool.name in results.absent:  # it failed once: its reason is its row
                continue
            with CONSOLE.status(f"pass {number} of {PASSES}: {tool.name}"):
                said, reason = lines(home, [str(tool.script)])
            if reason:
                results.absent[tool.name] = reason
            for line in said:
                if "versions" in line:
                    results.versions[tool.name] = line["versions"]
                else:
                    found.append(line)
    results.series = pooled(found)
    return results
