"""Task F: what `import curador` costs, against `import numpy`, each in fresh interpreters by turns.

curador loads its names when they are first used, so the import alone would flatter it: the time to the first
certified epsilon is shown beside it, without a target.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import environments
from presentation import CONSOLE, Table, machine, page, seconds
from subprocesses import lines

if TYPE_CHECKING:
    from pathlib import Path

TIMES_NUMPY = 1.5
ROUNDS = 9
STATEMENTS = {
    "import numpy": "import numpy",
    "import curador": "import curador",
    "import curador, first mechanism": "import curador; curador.Gaussian(sigma=20, sensitivity=1).loss",
    "import curador, first epsilon": (
        "import curador; curador.Laplace(scale=20, sensitivity=1).loss.epsilon_interval(delta=1e-6)"
    ),
}
HEAVY = ("scipy", "rich", "typer", "pandas", "pyarrow", "duckdb", "sklearn", "matplotlib", "flint")

_PROGRAM = """
import json, sys, time
start = time.perf_counter()
{statement}
taken = time.perf_counter() - start
heavy = [name for name in {heavy} if name in sys.modules]
print(json.dumps(dict(seconds=taken, modules=len(sys.modules), heavy=heavy)))
"""


def run(folder: Path) -> int:
    """Measure, show, write `footprint.md` and `.json`; return the exit code."""
    found: dict[str, list[dict]] = {name: [] for name in STATEMENTS}
    for _ in range(ROUNDS):
        for name, statement in STATEMENTS.items():
            program = _PROGRAM.format(statement=statement, heavy=HEAVY)
            answer, reason = lines(environments.ours(), ["-c", program])
            if reason:
                CONSOLE.print(f"{name}: {reason}")
                return 1
            found[name] += answer
    best = {name: min(one["seconds"] for one in rounds) for name, rounds in found.items()}
    ratio = best["import curador"] / best["import numpy"]
    verdict = "PASS" if ratio <= TIMES_NUMPY else "FAIL"
    tables = [_times(found, best), _target(ratio, verdict)]
    for table in tables:
        table.show()
    _write(folder, tables, {"best_seconds": best, "ratio": ratio, "verdict": verdict})
    return int(verdict == "FAIL")


def _times(found: dict[str, list[dict]], best: dict[str, float]) -> Table:
    rows = tuple(
        (
            name,
            seconds(best[name]),
            f"{best[name] / best['import numpy']:.2f}",
            str(found[name][0]["modules"]),
            ", ".join(found[name][0]["heavy"]) or "none",
        )
        for name in STATEMENTS
    )
    title = f"F. Import time, best of {ROUNDS} fresh interpreters each, by turns"
    return Table(title, ("statement", "best s", "ratio to numpy", "modules loaded", "heavy ones besides numpy"), rows)


def _target(ratio: float, verdict: str) -> Table:
    promise = f"`import curador` takes at most {TIMES_NUMPY} times `import numpy`"
    return Table("Targets", ("target", "measured", "verdict"), ((promise, f"{ratio:.2f} times", verdict),))


def _write(folder: Path, tables: list[Table], record: dict) -> None:
    folder.mkdir(exist_ok=True)
    place = folder / "footprint.md"
    place.write_text(page("What importing costs", [machine()], tables))
    place.with_suffix(".json").write_text(json.dumps({"machine": machine(), **record}, indent=1) + "\n")
    CONSOLE.print(f"written: {place}")
