"""How opening a ledger grows with its entries: one JSON line a size, in CPU seconds. `growth/room.py` reads it."""

from __future__ import annotations

import hashlib
import json
import tempfile
from fractions import Fraction
from pathlib import Path

import stopwatch
from curador.ledger.amounts import Amounts
from curador.ledger.checkpoint import checkpoint_of
from curador.ledger.entry import Request
from curador.ledger.ledger import Ledger
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.losses import Concentrated
from curador.study.model import Budget

SIZES = (1_000, 10_000, 100_000)
COST = Fraction(1, 10**12)
WHOSE = {"budget": Budget(epsilon=3, delta="1e-6"), "adjacency": ADD_OR_REMOVE_ONE, "unit": "person"}
MEMORY = Path("/dev/shm")  # noqa: S108 -- only as the parent of a private folder: a disk would be measured otherwise


def digest(text: object) -> str:
    """Return a digest that is nobody else's."""
    return hashlib.sha256(str(text).encode()).hexdigest()


def ask(ledger: Ledger, number: int) -> None:
    """Charge one question and store its answer: two entries."""
    request = Request(
        amounts=Amounts.cost(rho=COST),
        losses=(Concentrated(rho=COST).to_record(),),
        study_digest=digest("study"),
        data_version=1,
        question_key=digest(number),
        question="SELECT COUNT(*) AS n FROM visits",
        plan_digest=digest("plan"),
        adjacency=ADD_OR_REMOVE_ONE,
        tables=("visits",),
    )
    ledger.commit(ledger.reserve(request), answer=b"answer" * 20, answer_digest=digest("answer"))


def opening(path: Path, *, checkpoint: bool) -> float:
    """Return the least CPU seconds of a few openings."""
    times = []
    for _ in range(3):
        if not checkpoint:
            checkpoint_of(path).unlink(missing_ok=True)
        ledger, _, cpu = stopwatch.timed(lambda: Ledger.open(path, checkpoint=checkpoint, **WHOSE))
        ledger.close()
        times.append(cpu)
    return min(times)


def main() -> None:
    """Let one ledger grow, and open it at every size."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder) / "a.ledger"
        Ledger.create(path, study_name="visits", study_digest=digest("study"), max_units=1_000_000, **WHOSE).close()
        done, found = 0, []
        for size in SIZES:
            with Ledger.open(path, checkpoint=True, **WHOSE) as ledger:
                for number in range(done, size // 2):
                    ask(ledger, number)
            done = size // 2
            found.append((size, opening(path, checkpoint=False), opening(path, checkpoint=True)))
        for place, series in ((1, "opening a ledger, read whole"), (2, "opening a ledger, from its checkpoint")):
            for one in found:
                print(json.dumps({"series": series, "size": one[0], "best_seconds": one[place]}))


if __name__ == "__main__":
    main()
