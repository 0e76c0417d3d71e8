"""Task U: first answers by defaults, against the best caps and bounds in hindsight; show the table, check the targets."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import environments
from presentation import CONSOLE, Table, machine, page
from subprocesses import lines
from usable import tasks

SCRIPT = Path(__file__).resolve().parent / "ours.py"
DATA = environments.ROOT.parent / "shared" / "data"
LIMIT = 3600  # seconds of one data set
PEERS = {
    "Tumult Analytics": "not measured: there is no adapter for it here yet",
    "Google's library (PipelineDP)": "not measured: there is no adapter for it here yet",
}
PASS, FAIL, UNKNOWN = "PASS", "FAIL", "not measured"


def run(folder: Path) -> int:
    """Measure every data set that is there, show, write `usable.md` and `.json`; return the exit code."""
    found: list[dict[str, Any]] = []
    absent: dict[str, str] = {}
    for data in tasks.SETS:
        if not (DATA / data.folder).is_dir():
            absent[data.name] = "skipped: the data are not here"
            continue
        with (
            tempfile.TemporaryDirectory(prefix="usable-") as place,
            CONSOLE.status(f"{data.name}: surveys and ten questions"),
        ):
            arguments = [str(SCRIPT), data.folder, str(DATA), str(Path(place) / data.folder)]
            some, reason = lines(environments.ours(), arguments, limit=LIMIT)
        found += some
        if reason:
            absent[data.name] = reason
    return show(found, absent, folder)


def show(found: list[dict[str, Any]], absent: dict[str, str], folder: Path) -> int:
    """Print and write what was measured, and check it against the targets."""
    checks = list(_checks(found, absent))
    tables = [
        Table("U. Root mean square error, by defaults and in hindsight", COLUMNS, tuple(map(_cells, found))),
        Table("U. Others that find bounds by themselves", ("who", ""), tuple((absent | PEERS).items())),
        Table("U. Targets", ("target", "found", "worst question", ""), tuple(checks)),
    ]
    for table in tables:
        table.show()
    folder.mkdir(exist_ok=True)
    place = folder / "usable.md"
    place.write_text(page("First answers by defaults", [ABOUT, machine()], tables))
    place.with_suffix(".json").write_text(
        json.dumps({"machine": machine(), "absent": absent, "rows": found}, indent=1) + "\n"
    )
    CONSOLE.print(f"written: {place}")
    return int(any(check[-1] == FAIL for check in checks))


COLUMNS = ("question", "kind", "groups", "truth", "ours", "hindsight", "ratio", "caps found", "caps and bounds in hindsight")
ABOUT = (
    f"ε = {tasks.EPSILON}, δ = {tasks.DELTA}; declared is who one unit is, and the bounds that the survey of columns "
    f"proposed. Each question costs {tasks.SPEND} % of the budget, the surveys {tasks.SURVEYS} % together, of which a "
    "question in hindsight gets its part. Errors are to the truth of the uncapped table; a group that is not shown counts as "
    "0. Where there are groups, truth and errors are root mean squares over them. Caps are rows/groups/rows in a group, - "
    "where none is executed; in hindsight bounds follow them."
)


def ratio(row: dict[str, Any]) -> float:
    """Return how many times the error is that of hindsight."""
    return row["ours"] / row["best"]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    figures = (f"{row['groups']:,}", *(f"{row[name]:,.4g}" for name in ("truth", "ours", "best")), f"{ratio(row):.2f}")
    return (f"{row['set']}: {row['question']}", row["kind"], *figures, ", ".join(row["caps"][:3]), row["best_caps"])


def _checks(found: list[dict[str, Any]], absent: dict[str, str]) -> list[tuple[str, str, str, str]]:
    out: list[tuple[str, str, str, str]] = []
    for kind, most in tasks.MOST.items():
        own = [row for row in found if (row["kind"] == tasks.WHOLE) == (kind == tasks.WHOLE)]
        name = f"{kind}: mean ratio at most {most:g}"
        if not own:
            out.append((name, "", "", UNKNOWN))
            continue
        mean, worst = sum(map(ratio, own)) / len(own), max(own, key=ratio)
        verdict = FAIL if mean > most else UNKNOWN if absent else PASS
        out.append((name, f"{mean:.2f} over {len(own)}", f"{worst['set']}: {worst['question']}, {ratio(worst):.1f}", verdict))
    return out
