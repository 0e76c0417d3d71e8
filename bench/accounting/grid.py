"""Task AG: Poisson-subsampled Gaussians on 630 settings, curador and dp_accounting by turns in one run.

Where dp_accounting needs more than a minute or four gigabytes it counts as a minute, and the setting is named.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import track

import environments
from accounting.targets import FAIL, PASS, UNKNOWN, Check
from presentation import CONSOLE, Table, machine, page
from subprocesses import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from environments import Environment

HERE = Path(__file__).resolve().parent
SIGMAS = ("0.5", "1", "2", "4", "8")
RATES = ("1e-5", "1e-4", "1e-3", "1e-2", "0.1", "0.5")
STEPS = (1, 3, 10, 100, 1_000, 10_000, 1_000_000)
DELTAS = ("1e-5", "1e-8", "1e-12")
MOST_SECONDS, MOST_GIGABYTES = 60, 4
SLOWEST, WIDEST, FASTER = 2.0, 1e-3, 10.0
KEPT = HERE.parents[1] / "tests" / "oracle" / "subsampled_grid.json"
"""Values with 34 digits, and how far they may be off."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting, as both answered it."""

    setting: str
    lower: float | None
    epsilon: float | None
    seconds: float | None
    peer_epsilon: float | None
    peer_seconds: float
    peer_reason: str = ""
    kept: str = ""

    @property
    def width(self) -> float:
        """Relative to ε, or to 1e-2 where ε is below."""
        if self.epsilon is None or self.lower is None:
            return float("inf")
        return (self.epsilon - self.lower) / max(self.epsilon, 1e-2)


def run(folder: Path) -> int:
    """Measure, show, write, and return the exit code."""
    home = environments.ready("dpacc")
    load = os.getloadavg()[0]
    cells = list(_measured(home))
    checks = list(_checks(cells))
    named = [cell for cell in cells if cell.peer_reason]
    tables = [_table(cells), _table_of_checks(checks), _table_of_named(named)]
    for table in tables:
        table.show()
    words = [
        machine(),
        f"Load before the run: {load:.2f}. Times are CPU seconds of a call, from bare numbers to ε.",
        _below(cells),
    ]
    (folder / "accounting-grid.md").write_text(page("Subsampled Gaussians on a grid", words, tables), encoding="utf-8")
    (folder / "accounting-grid.json").write_text(json.dumps([asdict(cell) for cell in cells], indent=0) + "\n")
    CONSOLE.print(f"written: {folder / 'accounting-grid.md'}")
    return int(any(check.verdict == FAIL for check in checks))


def _measured(home: Environment) -> Iterator[Cell]:
    kept = json.loads(KEPT.read_text())
    with subprocess.Popen(
        [str(environments.ours().python), str(HERE / "ours_grid.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings(),
    ) as ours:
        assert ours.stdin is not None
        assert ours.stdout is not None
        settings = list(itertools.product(SIGMAS, RATES, STEPS))
        for sigma, rate, steps in track(settings, "settings", console=CONSOLE):
            peer, reason = _peer(home, sigma, rate, steps)
            for delta in DELTAS:
                ours.stdin.write(json.dumps([sigma, rate, steps, delta]) + "\n")
                ours.stdin.flush()
                mine = json.loads(ours.stdout.readline())
                other = peer.get(delta, {})
                setting = f"{sigma} {rate} {steps} {delta}"
                yield Cell(
                    setting,
                    mine.get("lower"),
                    mine.get("epsilon"),
                    mine.get("seconds"),
                    other.get("epsilon"),
                    other.get("seconds", float(MOST_SECONDS)),
                    "" if other else reason,
                    _against(kept.get(setting), mine),
                )


def _peer(home: Environment, sigma: str, rate: str, steps: int) -> tuple[dict[str, Any], str]:
    if home.python is None:
        return {}, f"not installed: {home.reason}"
    command = [str(home.python), str(HERE / "peers" / "grid_dp_accounting.py"), sigma, rate, str(steps), ",".join(DELTAS)]
    try:
        done = subprocess.run(
            [*command, str(MOST_GIGABYTES)],
            capture_output=True,
            text=True,
            check=False,
            env=surroundings(),
            timeout=MOST_SECONDS + 10,
        )
    except subprocess.TimeoutExpired as stopped:
        said = stopped.stdout.decode() if isinstance(stopped.stdout, bytes) else stopped.stdout or ""
        return _read(said), f"over {MOST_SECONDS} s"
    reason = (
        f"over {MOST_GIGABYTES} GB" if "MemoryError" in done.stderr else environments.last_words(done.stderr, "no answer")
    )
    return _read(done.stdout), reason


def _read(said: str) -> dict[str, Any]:
    found = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return {one["delta"]: one for one in found if one["seconds"] <= MOST_SECONDS}


def _against(kept: dict[str, str] | None, mine: dict[str, Any]) -> str:
    """On which side of the kept value the interval lies, if it does not hold it."""
    if kept is None:
        return "no value is kept"
    if "epsilon" not in mine:
        return "refused"
    value = float(kept["epsilon"])
    slack = 4.0 * float(kept["doubt"]) * max(value, 1e-4)
    return "below" if mine["epsilon"] < value - slack else "above" if mine["lower"] > value + slack else "holds it"


def _checks(cells: list[Cell]) -> Iterator[Check]:
    refused = [cell for cell in cells if cell.epsilon is None]
    yield Check("never refused", f"{len(refused)} of {len(cells)}", FAIL if refused else PASS)
    wide = [cell for cell in cells if cell.width > WIDEST]
    most = max(cell.width for cell in cells)
    yield Check(f"width at most {WIDEST:g} of epsilon, 1e-5 below 1e-2", f"{most:.1e} at most", FAIL if wide else PASS)
    known = [cell for cell in cells if cell.kept not in {"no value is kept", "refused"}]
    wrong = [cell for cell in known if cell.kept != "holds it"]
    yield Check(
        "the interval holds the 34-digit value", f"{len(known) - len(wrong)} of {len(known)}", FAIL if wrong else PASS
    )
    times = [cell.seconds for cell in cells if cell.seconds is not None]
    slow = max(times)
    yield Check(f"no setting takes more than {SLOWEST:g} s", f"{slow:.2f} s", PASS if slow <= SLOWEST else FAIL)
    if all(cell.peer_reason.startswith("not installed") for cell in cells):
        yield Check("median time a tenth of dp_accounting's", "", UNKNOWN)
        return
    ratio = statistics.median(cell.peer_seconds for cell in cells) / statistics.median(times)
    yield Check("median time at most a tenth of dp_accounting's", f"1/{ratio:.1f}", PASS if ratio >= FASTER else FAIL)


def _below(cells: list[Cell]) -> str:
    """Say where the peer's bound lies below what is certified: its sums have a floor of round-off, seen at small δ."""
    under = [
        cell for cell in cells if cell.peer_epsilon is not None and (cell.lower or 0.0) > cell.peer_epsilon * 1.0001 + 1e-9
    ]
    held = sum(cell.kept == "holds it" for cell in under)
    smallest = sum(cell.setting.endswith(DELTAS[-1]) for cell in under)
    return (
        f"In {len(under)} settings, {smallest} of them at delta {DELTAS[-1]}, dp_accounting's bound lies below curador's "
        f"certified lower end; in {held} of these the 34-digit value is kept, and lies inside curador's interval."
    )


def _table(cells: list[Cell]) -> Table:
    rows = []
    for steps in STEPS:
        some = [cell for cell in cells if cell.setting.split()[2] == str(steps)]
        mine = sorted(cell.seconds for cell in some if cell.seconds is not None)
        peer = sorted(cell.peer_seconds for cell in some)
        rows.append(
            (
                f"{steps:,} steps",
                f"{statistics.median(mine):.3g}",
                f"{mine[-1]:.3g}",
                f"{statistics.median(peer):.3g}",
                f"{peer[-1]:.3g}",
                f"{statistics.median(cell.width for cell in some):.1e}",
                f"{max(cell.width for cell in some):.1e}",
            )
        )
    columns = ("", "curador, median", "most", "dp_accounting, median", "most", "width, median", "most")
    return Table("Seconds and widths, 90 settings a row", columns, tuple(rows))


def _table_of_checks(checks: list[Check]) -> Table:
    rows = tuple((check.promise, check.measured, check.verdict) for check in checks)
    return Table("Targets", ("promise", "measured", "verdict"), rows)


def _table_of_named(cells: list[Cell]) -> Table:
    rows = tuple((cell.setting, cell.peer_reason) for cell in cells)
    return Table("Where dp_accounting gave no answer in time", ("sigma, rate, steps, delta", "reason"), rows)
