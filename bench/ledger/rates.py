"""How many durable entries a second a ledger writes by so many askers, beside a bare loop: JSON lines; `room.py` reads them.

    python bench/ledger/rates.py FOLDER [bare] [1] [16] [64]

bare      one SQLite file, WAL, synchronous = FULL, one row of 1,500 letters a transaction: what the disk gives one writer
a number  reserve and commit by so many askers at once, with the witness: everything that a spend writes, no engine
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
import sys
import time
from fractions import Fraction
from pathlib import Path

from together import together

from curador.ledger.amounts import Amounts
from curador.ledger.entry import Request
from curador.ledger.ledger import Ledger
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.losses import Concentrated
from curador.study.model import Budget

SECONDS = 4.0
COST = Fraction(1, 10**12)
WHOSE = {"budget": Budget(epsilon=3, delta="1e-6"), "adjacency": ADD_OR_REMOVE_ONE, "unit": "person"}


def digest(text: object) -> str:
    """Return a digest that is nobody else's."""
    return hashlib.sha256(str(text).encode()).hexdigest()


def request(number: object) -> Request:
    """Return a request for a question that is asked once."""
    return Request(
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


def spend(ledger: Ledger, number: object) -> None:
    """Charge one question and store its answer: two entries."""
    ledger.commit(ledger.reserve(request(number)), answer=b"answer" * 20, answer_digest=digest("answer"))


def bare(folder: Path) -> float:
    """Return the entries a second of one writer that syncs each."""
    connection = sqlite3.connect(folder / f"bare{time.monotonic_ns()}.db", isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("CREATE TABLE entry (sequence INTEGER PRIMARY KEY, body TEXT)")
    begun, body, count = time.perf_counter(), "x" * 1500, 0
    while time.perf_counter() - begun < SECONDS:
        count += 1
        connection.execute("INSERT INTO entry VALUES (?, ?)", (count, body))
    connection.close()
    return count / (time.perf_counter() - begun)


def ledger_rate(folder: Path, askers: int) -> tuple[float, float]:
    """Return the entries a second that askers write, a charge and its answer are two; and the share of cores."""
    path = folder / f"a{time.monotonic_ns()}.ledger"
    numbers = itertools.count()
    with Ledger.create(path, study_name="visits", study_digest=digest("study"), max_units=1_000_000, **WHOSE) as ledger:
        rate, share = together(askers, lambda: spend(ledger, next(numbers)), SECONDS)
    return 2 * rate, share


def main() -> None:
    """Measure what is asked for."""
    folder = Path(sys.argv[1])
    for what in sys.argv[2:]:
        rate, share = (bare(folder), None) if what == "bare" else ledger_rate(folder, int(what))
        print(json.dumps({"what": what, "rate": rate, "share": share}), flush=True)


if __name__ == "__main__":
    main()
