"""Task C: the question on every size, curador before and after the peers, show the tables, check the targets."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environments
from presentation import CONSOLE
from query import data, report, roster, targets, tasks
from query.results import OURS, Results
from subprocesses import lines

if TYPE_CHECKING:
    from environments import Environment
    from query.roster import Peer

HERE = Path(__file__).resolve().parent
LIMIT = 1800  # seconds of one script
THREADS = 2
ONCE = ("sort", "prepare", "prepare row", "plain whole", "ask whole", "plain filtered", "ask filtered")


def run(*, everyone: bool, folder: Path) -> int:
    """Measure, show, write `query.md` and `.json`, and return the exit code."""
    results = Results()
    homes = _homes(results, everyone=everyone)
    with tempfile.TemporaryDirectory(dir=environments.HOME, prefix="studies-") as place:
        for rows in (tasks.SMALL, *tasks.SIZES):
            _measure(results, rows, Path(place) / str(rows), homes)
        _pass(results, tasks.SMALL, data.table(tasks.SMALL), Path(place) / str(tasks.SMALL))
    shown = report.tables(results)
    checks = targets.checks(results)
    for table in (*shown, report.table_of_checks(checks)):
        table.show()
    CONSOLE.print(f"written: {report.write(results, shown, checks, folder)}")
    return int(any(check.verdict == targets.FAIL for check in checks))


def _homes(results: Results, *, everyone: bool) -> list[tuple[Peer, Environment]]:
    homes: list[tuple[Peer, Environment]] = []
    for peer in roster.PEERS:
        if everyone or peer.always:
            homes.append((peer, environments.ready(peer.environment)))
        else:
            results.absent[peer.name] = roster.LEFT_OUT
    return homes


def _measure(results: Results, rows: int, folder: Path, homes: list[tuple[Peer, Environment]]) -> None:
    folder.mkdir(parents=True)
    with CONSOLE.status(f"{rows:,} rows: the table"):
        file = data.table(rows)
    large = rows > tasks.SMALL
    for what in ONCE if large else ():
        for line in _ours(results, "once.py", what, rows, file, folder):
            results.once[rows, what] = {name: value for name, value in line.items() if name not in {"case", "rows"}}
    _pass(results, rows, file, folder)
    if not large:
        return
    if rows == tasks.SIZES[0]:
        for line in _ours(results, "redrawn.py", str(rows), str(file), str(folder), named=False):
            results.errors[OURS, line["budget"]] = line["errors"]
            results.coverage[line["budget"]] = line["coverage"]
    for peer, home in homes:
        if peer.name not in results.absent and rows <= peer.most:
            _peer(results, peer, home, rows, file)
    _pass(results, rows, file, folder)


def _pass(results: Results, rows: int, file: Path, folder: Path) -> None:
    for line in _ours(results, "ours.py", str(rows), str(file), str(folder), named=False):
        if "versions" in line:
            results.versions |= {name: number for name, number in line["versions"].items() if name != "python"}
        else:
            results.add_case(line)


def _peer(results: Results, peer: Peer, home: Environment, rows: int, file: Path) -> None:
    with CONSOLE.status(f"{rows:,} rows: {peer.name}"):
        found, reason = lines(home, [str(peer.script), peer.form, str(rows), str(file)], limit=LIMIT, threads=THREADS)
    _load(results)
    if reason:
        results.absent[peer.name] = reason
    for line in found:
        results.add_peer(peer.name, line)


def _ours(results: Results, script: str, *arguments: Any, named: bool = True) -> list[dict[str, Any]]:
    said = " ".join(str(one) for one in arguments[:2]) if named else f"{arguments[0]} rows"
    with CONSOLE.status(f"curador: {script} {said}"):
        found, reason = lines(environments.ours(), [str(HERE / script), *map(str, arguments)], limit=LIMIT, threads=THREADS)
    _load(results)
    if reason:
        CONSOLE.print(f"curador: {script} {said}: {reason}")
    return found


def _load(results: Results) -> None:
    results.loads.append(round(os.getloadavg()[0], 2))
