"""The ledger of many askers: `make bench-ledger`; writes `results/ledger.md` and `.json`, ends with 1 if a target was missed.

    python bench/ledger/room.py [--before REVISION] [rates cost many memory growth]

--before   a state of the sources whose ledger is measured in the same run, by turns, with the same tools
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import environments
from presentation import CONSOLE, Table, machine, page
from states.room import check_out

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = HERE.parent / "results"
PARTS = ("rates", "cost", "many", "memory", "growth")
TURNS = 3
MANY = ("16", "64")
TARGETS = {
    "entries a second of 16 askers, of a bare loop": (1.0, None),
    "entries a second of 64 askers, of a bare loop": (1.0, None),
    "entries a second of 64 askers, of the state before": (5.0, None),
    "new questions of 64 askers, share of the cores": (0.9, None),
    "the same question drawn afresh, share of the cores": (0.9, None),
    "whole questions a second of 64 askers, of entries of the state before": (5.0, None),
    "a warm question, ms of processor": (None, 8.0),
    "memory after 10,000 questions, of that after 3,000": (None, 1.05),
    "opening 100,000 entries, s": (None, 2.0),
    "a question on a long ledger, of one on an empty one": (None, 1.1),
}
"""At least, at most."""


def said(script: str, *given: str, sources: Path = ROOT, folder: str) -> list[dict]:
    """Return the lines that a script prints."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(sources / "src"), str(HERE)))}
    command = [sys.executable, str(HERE / script), folder, *given]
    out = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def rates(folder: str, before: str | None) -> dict[str, list[float]]:
    """Return entries a second, by turns."""
    old = None if before is None else check_out(before)
    found: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for one in said("rates.py", "bare", "1", *MANY, folder=folder):
            found.setdefault(one["what"], []).append(one["rate"])
        for one in [] if old is None else said("rates.py", "64", sources=old, folder=folder):
            found.setdefault("before", []).append(one["rate"])
    return found


def main() -> int:
    """Measure, show, write; return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--before")
    arguments.add_argument("parts", nargs="*", default=PARTS)
    given = arguments.parse_args()
    environments.HOME.mkdir(parents=True, exist_ok=True)
    kept = RESULTS / "ledger.json"
    measured = json.loads(kept.read_text())["measured"] if kept.exists() and set(given.parts) != set(PARTS) else {}
    rows = json.loads(kept.read_text())["rows"] if measured else {}
    with tempfile.TemporaryDirectory(dir=environments.HOME) as folder:
        for part in given.parts:
            load = os.getloadavg()[0]
            if part == "rates":
                rows[part] = rates(folder, given.before)
                measured |= of_rates(rows[part])
            else:
                rows[part] = said("asks.py", part, folder=folder)
                measured |= OF[part]({one["what"]: one for one in rows[part]}, rows[part])
            rows[f"{part}, load"] = load
    if "rates" in rows and "many" in rows and "before" in rows["rates"]:
        best = max(one["rate"] for one in rows["many"] if one["what"] in {"new", "fresh"})
        ratio = best / statistics.median(rows["rates"]["before"])
        measured["whole questions a second of 64 askers, of entries of the state before"] = ratio
    return show(measured, rows, kept)


def of_rates(found: dict[str, list[float]]) -> dict[str, float]:
    """Return the ratios."""
    middle = {what: statistics.median(some) for what, some in found.items()}
    ratios = {f"entries a second of {one} askers, of a bare loop": middle[one] / middle["bare"] for one in MANY}
    ratios["entries a second of 1 asker, of a bare loop"] = middle["1"] / middle["bare"]
    if "before" in middle:
        ratios["entries a second of 64 askers, of the state before"] = middle["64"] / middle["before"]
    return ratios


OF = {
    "cost": lambda by, _: {"a warm question, ms of processor": by["cost, both"]["median"]},
    "many": lambda by, _: {
        "new questions of 64 askers, share of the cores": by["new"]["share"],
        "the same question drawn afresh, share of the cores": by["fresh"]["share"],
        "new questions a second": by["new"]["rate"],
        "drawn afresh, a second": by["fresh"]["rate"],
        "given again, a second": by["again"]["rate"],
    },
    "memory": lambda _, lines: {"memory after 10,000 questions, of that after 3,000": _held(lines, 10) / _held(lines, 3)},
    "growth": lambda by, _: {
        "opening 100,000 entries, s": by["opening"]["seconds"],
        "opening them the first time, without a checkpoint, s": by["opening"]["first"],
        "a question on a long ledger, of one on an empty one": by["ask, long"]["cpu"] / by["ask, empty"]["cpu"],
    },
}


def _held(lines: list[dict], thousand: int) -> float:
    return next(one["megabytes"] for one in lines if one["asks"] == 1000 * thousand)


def show(measured: dict[str, float], rows: dict, place: Path) -> int:
    """Print and write the table; return whether a target was missed."""
    lines, missed = [], 0
    for what in [*TARGETS, *(one for one in measured if one not in TARGETS)]:
        least, most = TARGETS.get(what, (None, None))
        value = measured.get(what)
        bad = value is not None and ((least is not None and value < least) or (most is not None and value > most))
        missed += bad
        wanted = "" if least is most is None else f"at least {least}" if most is None else f"at most {most}"
        verdict = "" if not wanted else "not measured" if value is None else "FAIL" if bad else "PASS"
        lines.append((what, "" if value is None else f"{value:.3g}", wanted, verdict))
    table = Table("Many askers at one ledger", ("what", "measured", "wanted", "verdict"), tuple(lines))
    table.show()
    loads = ", ".join(f"{what.partition(',')[0]} {load:.1f}" for what, load in rows.items() if what.endswith("load"))
    words = f"{machine('as many askers as are said')} Load before each part: {loads}."
    place.with_suffix(".md").write_text(page("The ledger of many askers", [words], [table]), encoding="utf-8")
    place.write_text(
        json.dumps({"machine": machine(), "measured": measured, "rows": rows}, indent=1) + "\n", encoding="utf-8"
    )
    CONSOLE.print(f"written: {place.with_suffix('.md')}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
