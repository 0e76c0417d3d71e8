"""Two states of the sources, timed by turns in one run: `python bench/run.py --task B --before REVISION`.

Promise: the state before is checked out twice, and timed twice in every round beside the state as it is, so that the
ratio before : before is the control of after : before, with the same noise. The order turns from round to round. A task
passes if its median ratio is at most 1.05, or within the spread of the control.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import environments
from presentation import CONSOLE, Table, machine, page

ROOT = Path(__file__).resolve().parents[2]
STATES = ("before", "again", "after")
ROUNDS, SECONDS = 7, 1.0
MORE = 1.05


def check_out(revision: str) -> Path:
    """Return the sources of a revision, checked out beside the benches' environments."""
    folder = environments.HOME / "state-before"
    if folder.exists():
        subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT, check=False)
    subprocess.run(["git", "worktree", "add", "--detach", "--force", str(folder), revision], cwd=ROOT, check=True)
    return folder


def time_state(sources: Path) -> dict[str, float]:
    """Return the median CPU seconds of every task, in a fresh process on one thread."""
    variables = {**os.environ, "PYTHONPATH": str(sources / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("workloads.py")), str(SECONDS)]
    said = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    found = {}
    for line in map(json.loads, said.splitlines()):
        if "failed" in line:
            CONSOLE.print(f"{sources.name}: {line['failed']}: {line['task']}", markup=False)
        else:
            found[line["task"]] = statistics.median(line["seconds"])
    return found


def run(folder: Path, before: str) -> int:
    """Time both states by turns, print the table, and return whether a task has become slower."""
    old = check_out(before)
    places = {"before": old, "again": old, "after": ROOT}
    rounds: list[dict[str, dict[str, float]]] = []
    for place in range(ROUNDS):
        order = STATES[place % 3 :] + STATES[: place % 3]
        rounds.append({state: time_state(places[state]) for state in order})
        CONSOLE.print(f"round {place + 1} of {ROUNDS}, load {os.getloadavg()[0]:.1f}")
    lines: list[list[str]] = []
    slower = 0
    for task in rounds[0]["after"]:
        if not all(task in found for turn in rounds for found in turn.values()):
            lines.append([task, "", "", "", "", "not measured"])
            continue
        ratios = [turn["after"][task] / turn["before"][task] for turn in rounds]
        control = [turn["again"][task] / turn["before"][task] for turn in rounds]
        ratio = statistics.median(ratios)
        passed = ratio <= max(MORE, *control)
        slower += not passed
        first, last = (1e3 * statistics.median(turn[state][task] for turn in rounds) for state in ("before", "after"))
        spread = f"{min(control):.2f} to {max(control):.2f}"
        lines.append([task, f"{first:.2f}", f"{last:.2f}", f"{ratio:.2f}", spread, "PASS" if passed else "FAIL"])
    columns = ("task", "before, CPU ms", "after, CPU ms", "after : before", "before : before", "verdict")
    table = Table("Median CPU time of a call, by turns", columns, tuple(map(tuple, lines)))
    table.show()
    words = f"{machine()} {ROUNDS} rounds; before is {before}, timed twice in every round: the ratio of both is the control."
    (folder / "states.md").write_text(page("Two states of the sources", [words], [table]), encoding="utf-8")
    return int(slower > 0)
