"""`make attack`: the attacks and faults of tools/attack_table.py, tried; one table of what was measured, and the bugs killed.

    python tools/attack.py [--long] [--only 9 13 bugs] [--jobs 2]

A row passes when every test of it passes and every measured number is below its bound; a test that was skipped is said to be.
A seeded bug is killed when the test that seeds it passes: that test fails where nothing notices the bug. Ends with 1 if a
row failed or a bug survived.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from attack_table import BUGS, ROWS, Row

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "attack"
LARGEST = ("p99_ms", "restart_s", "reopened")
"""Properties of which the largest counts; the others are added up."""


@dataclass
class Outcome:
    """What became of the tests of one name."""

    passed: int = 0
    failed: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])
    seconds: float = 0.0
    measured: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, case: ET.Element) -> None:
        """Count a test."""
        self.seconds += float(case.get("time", "0"))
        name = case.get("name", "")
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            self.failed.append(name)
        elif skipped is not None:
            self.skipped.append(skipped.get("message", "skipped"))
        else:
            self.passed += 1
        for one in case.iter("property"):
            self.measure(one.get("name", ""), one.get("value", ""))

    def measure(self, name: str, value: str) -> None:
        """Keep a number."""
        if not re.fullmatch(r"[0-9.]+", value):
            return
        number, before = float(value), self.measured.get(name, 0.0)
        self.measured[name] = max(before, number) if name in LARGEST else before + number

    def merge(self, other: Outcome) -> None:
        """Add another one."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.seconds += other.seconds
        for name, value in other.measured.items():
            self.measure(name, str(value))


def run_tests(names: list[str], marks: str, file: str, jobs: int) -> dict[str, Outcome]:
    """Run tests by their names; return what became of each, by file and by file::test, with and without parameters."""
    found: dict[str, Outcome] = defaultdict(Outcome)
    if not names:
        return found
    BUILD.mkdir(parents=True, exist_ok=True)
    report = BUILD / f"{file}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "--tb=short", "-m", marks]
    command += ["-o", "junit_family=xunit1", f"--junitxml={report}", *dict.fromkeys(names)]
    with (BUILD / f"{file}.log").open("wb") as log:
        subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)  # noqa: S603 -- ours
    if not report.exists():
        sys.exit(f"pytest did not run; see {BUILD / file}.log")
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 -- idem
        place, name = case.get("file", ""), case.get("name", "")
        for key in {place, f"{place}::{name}", f"{place}::{name.partition('[')[0]}"}:
            found[key].add(case)
    return found


def judge(row: Row, outcomes: list[Outcome | None]) -> tuple[str, str, str]:
    """Return what was measured, the verdict and why."""
    whole = Outcome()
    for one in outcomes:
        if one is not None:
            whole.merge(one)
    absent = sum(one is None for one in outcomes)
    numbers = ", ".join(f"{name} {value:g}" for name, value in whole.measured.items())
    measured = f"{whole.passed} passed" + (f", {numbers}" if numbers else "")
    over = [name for name, most in row.most.items() if whole.measured.get(name, 0.0) >= most]
    if whole.failed or absent or over or not (whole.passed or whole.skipped):
        why = "; ".join(
            [*whole.failed[:3], *([f"{absent} not found"] * bool(absent)), *(f"{name} too large" for name in over)]
        )
        return measured, "FAILED", why
    if whole.skipped:
        reasons = "; ".join(dict.fromkeys(whole.skipped))
        return measured, "held" if whole.passed else "skipped", f"{len(whole.skipped)} skipped: {reasons}"[:160]
    return measured, "held", ""


def main() -> int:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="also the long sizes of every row")
    parser.add_argument("--only", nargs="*", help="numbers of rows, and `bugs`")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    rows = [row for row in ROWS if given.only is None or row.number in given.only]
    bugs = BUGS if given.only is None or "bugs" in given.only else {}
    begun, load = time.monotonic(), os.getloadavg()[0]
    plain = [name for row in rows for name in row.tests] + list(bugs.values())
    full = [name for row in rows for name in row.full] + [name for name in bugs.values() if "of_noise_is_caught" in name]
    found = run_tests([name for name in plain if name not in full], "not long", "plain", given.jobs)
    found_full = run_tests(full, "long", "full", min(given.jobs, 1))  # races have the machine to themselves
    found_long = run_tests([name for row in rows for name in row.tests], "long", "long", given.jobs) if given.long else {}

    failed = 0
    print(f"load before: {load:.1f}\n\n| # | what | size | measured | verdict |\n|---|---|---|---|---|")
    for row in rows:
        if not row.tests and not row.full:
            print(f"| {row.number} | {row.what} | {row.size} | - | not here: {row.reason} |")
            continue
        held = [found.get(name) for name in row.tests] + [found_full.get(name) for name in row.full]
        held += [found_long[name] for name in row.tests if name in found_long]
        measured, verdict, why = judge(row, held)
        failed += verdict == "FAILED"
        print(f"| {row.number} | {row.what} | {row.size} | {measured} | {verdict}{f' ({why})' if why else ''} |")
    killed = 0
    if bugs:
        print("\n| seeded bug | killed by | verdict |\n|---|---|---|")
    for name, test in bugs.items():
        outcome = found.get(test) or found_full.get(test) or Outcome()
        dead = bool(outcome.passed) and not outcome.failed
        killed += dead
        told = "killed" if dead else f"skipped: {outcome.skipped[0]}" if outcome.skipped else "SURVIVED"
        print(f"| {name} | `{test}` | {told} |")
    minutes = (time.monotonic() - begun) / 60
    if bugs:
        print(f"\n{killed} of {len(bugs)} seeded bugs killed", end="")
    print(f"\n{failed} rows failed; {minutes:.1f} minutes, load {os.getloadavg()[0]:.1f}")
    return int(bool(failed) or killed < len(bugs))


if __name__ == "__main__":
    sys.exit(main())
