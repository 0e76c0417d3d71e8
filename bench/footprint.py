"""Task F: what `import curador` costs, against `import numpy`, each in fresh interpreters by turns."""

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
MODULES = ("numpy", "curador")
HEAVY = ("scipy", "rich", "typer", "pandas", "pyarrow", "duckdb", "sklearn", "matplotlib", "mpmath")

_PROGRAM = """
import json, sys, time
start = time.perf_counter()
import {module}
taken = time.perf_counter() - start
heavy = [name for name in {heavy} if name in sys.modules]
print(json.dumps(dict(seconds=taken, modules=len(sys.modules), heavy=heavy)))
"""


def run(folder: Path) -> int:
    """Measure, show, write `footprint.md` and `.json`; return the exit code."""
    found: dict[str, list[dict]] = {module: [] for module in MODULES}
    for _ in range(ROUNDS):
        for module in MODULES:
            program = _PROGRAM.format(module=module, heavy=HEAVY)
            answer, reason = lines(environments.ours(), ["-c", program])
            if reason:
                CONSOLE.print(f"import {module}: {reason}")
                return 1
            found[module] += answer
    best = {module: min(one["seconds"] for one in rounds) for module, rounds in found.items()}
    ratio = best["curador"] / best["numpy"]
    verdict = "PASS" if ratio <= TIMES_NUMPY else "FAIL"
    tables = [_times(found, best), _target(ratio, verdict)]
    for table in tables:
        table.show()
    _write(folder, tables, {"best_seconds": best, "ratio": ratio, "verdict": verdict})
    return int(verdict == "FAIL")


def _times(found: dict[str, list[dict]], best: dict[str, float]) -> Table:
    rows = tuple(
        (
            f"import {module}",
            seconds(best[module]),
            str(found[module][0]["modules"]),
            ", ".join(found[module][0]["heavy"]) or "none",
        )
        for module in MODULES
    )
    title = f"F. Import time, best of {ROUNDS} fresh interpreters each, by turns"
    return Table(title, ("statement", "best s", "modules loaded", "heavy ones besides numpy"), rows)


def _target(ratio: float, verdict: str) -> Table:
    promise = f"`import curador` takes at most {TIMES_NUMPY} times `import numpy`"
    return Table("Targets", ("target", "measured", "verdict"), ((promise, f"{ratio:.2f} times", verdict),))


def _write(folder: Path, tables: list[Table], record: dict) -> None:
    folder.mkdir(exist_ok=True)
    place = folder / "footprint.md"
    place.write_text(page("What importing costs", [machine()], tables))
    place.with_suffix(".json").write_text(json.dumps({"machine": machine(), **record}, indent=1) + "\n")
    CONSOLE.print(f"written: {place}")
