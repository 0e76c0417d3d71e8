"""Errors of curador's answers: the noise is drawn again and again on one exact result: `redrawn.py ROWS FILE FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from curador.answers.release import release
from curador.answers.table import answer_columns
from curador.curator.options import QuestionOptions
from curador.curator.price import price_at
from curador.testing.redraw import redraw
from query import studies, tasks


def errors(curator) -> dict[str, object]:
    """Return the root mean squared error of every column, and the share of 95 % intervals that held the truth."""
    ready = price_at(curator._session, tasks.QUESTION, QuestionOptions(spend="100%"))  # noqa: SLF001 - what ask makes first
    (priced,) = ready.priced
    tallied = curator._session.engine.tally(ready.compiled)  # noqa: SLF001 - exact, and never shown to anybody
    covered = {one.name: one for one in redraw(priced, tallied, tasks.REDRAWS)}
    drawn = [answer_columns(priced, release(priced, tallied), ready.confidence) for _ in range(tasks.REDRAWS)]
    found: dict[str, float] = {}
    for name in tasks.COLUMNS:
        truth = np.array(covered[name].truths, dtype=float)
        noisy = np.array([next(column.values for column in one if column.name == name) for one in drawn], dtype=float)
        found[name] = float(np.sqrt(np.mean(np.square(noisy - truth))))
    held = {name: sum(one.held) / (one.times * len(one.held)) for name, one in covered.items()}
    return {"errors": found, "coverage": held}


def main() -> None:
    """Redraw under both budgets and print the lines."""
    file, folder = Path(sys.argv[2]), Path(sys.argv[3])
    for budget in tasks.BUDGETS:
        with studies.opened(folder, file, studies.USER, budget) as curator:
            line = errors(curator)
        print(json.dumps({"case": "error", "budget": budget, **line}), flush=True)


if __name__ == "__main__":
    main()
