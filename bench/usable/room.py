"""Task U: first answers by defaults, against the best caps and bounds in hindsight; show the tables, check the targets."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environments
from presentation import CONSOLE, Table, machine, page
from subprocesses import lines
from usable import tasks
from usable.relations import write_relations
from usable.roster import LEFT_OUT, PEERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from usable.roster import Peer
    from usable.tasks import DataSet

SCRIPT = Path(__file__).resolve().parent / "ours.py"
DATA = environments.ROOT.parent / "shared" / "data"
LIMIT = 3600  # seconds of one data set
PASS, FAIL, UNKNOWN = "PASS", "FAIL", "not measured"

Row = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """What one tool said of one data set, or why it said nothing."""

    who: str
    name: str
    rows: list[Row]
    reason: str = ""
    load: float = 0.0


def run(*, everyone: bool, folder: Path) -> int:
    """Measure every data set that is there, show, write `usable.md` and `.json`; return the exit code."""
    found = [measure_ours(data) for data in tasks.SETS]
    for peer in PEERS:
        asked = everyone or peer.always
        found += [measure_peer(peer, data) if asked else Measured(peer.name, data.name, [], LEFT_OUT) for data in tasks.SETS]
    return show(found, folder)


def measure_ours(data: DataSet) -> Measured:
    """Return curador's errors on a data set, and those in hindsight."""
    return _measured(
        environments.OURS,
        data,
        environments.ours(),
        lambda place: [str(SCRIPT), data.folder, str(DATA), str(place / "studies")],
    )


def measure_peer(peer: Peer, data: DataSet) -> Measured:
    """Return a peer's errors on a data set."""

    def arguments(place: Path) -> list[str]:
        return [str(peer.script), str(write_relations(data, DATA / data.folder, place))]

    return _measured(peer.name, data, environments.ready(peer.environment), arguments)


def _measured(
    who: str, data: DataSet, environment: environments.Environment, arguments: Callable[[Path], list[str]]
) -> Measured:
    if not (DATA / data.folder).is_dir():
        return Measured(who, data.name, [], "skipped: the data are not here")
    with tempfile.TemporaryDirectory(prefix="usable-") as place, CONSOLE.status(f"{data.name}: {who}"):
        rows, reason = lines(environment, arguments(Path(place)), limit=LIMIT)
    return Measured(who, data.name, rows, reason, os.getloadavg()[0])


# ---- tables ----------------------------------------------------------------------------------------------------------------


def show(found: Sequence[Measured], folder: Path) -> int:
    """Print and write what was measured, and check it against the targets."""
    own = [row for one in found if one.who == environments.OURS for row in one.rows]
    absent = any(one.reason for one in found if one.who == environments.OURS)
    asked, held = ([row for row in own if row["held"] is is_held] for is_held in (False, True))
    checks = [*_checks(asked, "", absent=absent), *_checks(held, "held out, ", absent=absent)]
    tables = [
        Table("U. Root mean square error, by defaults and in hindsight", COLUMNS, tuple(map(_cells, asked))),
        Table("U. The same for questions by which no rule was chosen", COLUMNS, tuple(map(_cells, held))),
        _beside(found, own),
        _summary(found, own),
        Table("U. What was not measured", ("who", "question", "why"), tuple(_reasons(found))),
        Table("U. Targets", ("target", "found", "worst question", ""), tuple(checks)),
    ]
    for table in tables:
        table.show()
    folder.mkdir(exist_ok=True)
    place = folder / "usable.md"
    loads = [one.load for one in found if one.rows]
    load = f"Load average of the machine while measuring: {min(loads, default=0):.1f} to {max(loads, default=0):.1f}."
    place.write_text(page("First answers by defaults", [ABOUT, ABOUT_PEERS, machine(), load], tables))
    record = {"machine": machine(), "measured": [asdict(one) for one in found]}
    place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
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
ABOUT_PEERS = (
    f"The peers get {tasks.SHARED:g} % of ε and of δ for a question, as hindsight does, and find caps and bounds with a part "
    "of that. Their ratio is to the same hindsight: curador's engine, which caps rows and bounds values. The peers get rows "
    "that are added up within a unit, and bound those sums; where that is the better way, their ratio can be below 1. Where "
    "they find nothing, the answer is 0."
)


def ratio(row: Row) -> float:
    """Return how many times the error is that of hindsight."""
    return row["ours"] / row["best"]


def _cells(row: Row) -> tuple[str, ...]:
    figures = (f"{row['groups']:,}", *(f"{row[name]:,.4g}" for name in ("truth", "ours", "best")), f"{ratio(row):.2f}")
    return (_name(row), row["kind"], *figures, ", ".join(row["caps"][:3]), row["best_caps"])


def _name(row: Row) -> str:
    return f"{row['set']}: {row['question']}"


def _errors(found: Sequence[Measured], who: str) -> dict[str, Row]:
    """Return a peer's rows with an error, by question."""
    return {f"{one.name}: {row['question']}": row for one in found if one.who == who for row in one.rows if "error" in row}


def _beside(found: Sequence[Measured], own: Sequence[Row]) -> Table:
    errors = [_errors(found, peer.name) for peer in PEERS]
    rows: list[tuple[str, ...]] = []
    for row in own:
        name = _name(row)
        if not any(name in one for one in errors):
            continue
        cells = [cell for one in errors for cell in _peer_cells(one.get(name), row["best"])]
        rows.append((name, f"{row['truth']:,.4g}", f"{row['ours']:,.4g}", f"{ratio(row):.2f}", *cells))
    columns = ("question", "truth", "ours", "ratio", *(text for peer in PEERS for text in (peer.name, "ratio", "runs")))
    return Table("U. Others that find bounds by themselves, where they run", columns, tuple(rows))


def _peer_cells(row: Row | None, best: float) -> tuple[str, str, str]:
    if row is None:
        return "", "", ""
    nothing = f", {row['missing']} found nothing" if row["missing"] else ""
    return f"{row['error']:,.4g}", f"{row['error'] / best:.2f}", f"{row['runs']}{nothing}"


def _summary(found: Sequence[Measured], own: Sequence[Row]) -> Table:
    rows: list[tuple[str, ...]] = []
    for peer in PEERS:
        errors = _errors(found, peer.name)
        pairs = [(errors[_name(row)]["error"] / row["best"], ratio(row)) for row in own if _name(row) in errors]
        if not pairs:
            continue
        theirs, ours = zip(*pairs, strict=True)
        lower = sum(one < other for one, other in pairs)
        cells = (f"{statistics.median(theirs):.2f}", f"{statistics.median(ours):.2f}", f"{statistics.fmean(ours):.2f}")
        rows.append((peer.name, f"{len(pairs)} of {len(own)}", *cells, str(lower)))
    columns = ("who", "questions", "median ratio", "median of ours", "mean of ours", "their error is the lower")
    return Table("U. The same questions, ours and theirs", columns, tuple(rows))


def _reasons(found: Sequence[Measured]) -> list[tuple[str, str, str]]:
    out = [(one.who, f"{one.name}: all", one.reason) for one in found if one.reason]
    out += [
        (one.who, f"{one.name}: {row['question']}", row["reason"]) for one in found for row in one.rows if row.get("reason")
    ]
    return out


def _checks(rows: Sequence[Row], which: str, *, absent: bool) -> list[tuple[str, str, str, str]]:
    out: list[tuple[str, str, str, str]] = []
    for kind, most in tasks.MOST.items():
        own = [row for row in rows if (row["kind"] == tasks.WHOLE) == (kind == tasks.WHOLE)]
        name = f"{which}{kind}: mean ratio at most {most:g}"
        if not own:
            out.append((name, "", "", UNKNOWN))
            continue
        mean, worst = sum(map(ratio, own)) / len(own), max(own, key=ratio)
        verdict = FAIL if mean > most else UNKNOWN if absent else PASS
        out.append((name, f"{mean:.2f} over {len(own)}", f"{_name(worst)}, {ratio(worst):.1f}", verdict))
    return out
