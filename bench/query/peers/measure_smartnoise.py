"""smartnoise-sql over a pandas frame: `measure_smartnoise.py FORM ROWS FILE`.

It spends epsilon on every column, so that count and sum get half each and the mean is their ratio. The frame is loaded
before the clock starts (its reader copies it into SQLite at every question). Noise is redrawn on one exact result.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd
import snsql

import stopwatch
from query import accuracy, tasks

warnings.simplefilter("ignore")

QUESTIONS = {name: text.replace(", AVG(value) AS mean", "") for name, text in tasks.QUESTIONS.items()}
COLUMNS = {
    "user_id": {"type": "int", "private_id": True},
    "grp": {"type": "int"},
    "value": {"type": "float", "lower": tasks.LOWER, "upper": tasks.UPPER},
}
TABLE = {"max_ids": tasks.CAP, "censor_dims": False, "clamp_counts": False, "clamp_columns": True, "use_dpsu": False}


def main() -> None:
    """Measure one file and print the lines."""
    rows = int(sys.argv[2])
    frame = pd.read_parquet(sys.argv[3])
    print(json.dumps({"versions": stopwatch.versions(["smartnoise-sql", "pandas"])}))
    metadata = {"": {"": {"visits": {"rows": rows, **TABLE, **COLUMNS}}}}
    privacy = snsql.Privacy(epsilon=tasks.EPSILON / 2, delta=tasks.DELTA)
    reader = snsql.from_df(frame, privacy=privacy, metadata=metadata)
    for name, text in QUESTIONS.items():
        seconds = [stopwatch.timed(lambda text=text: reader.execute(text))[1] for _ in range(3)]
        line = {"case": "time", "question": name, "rows": rows, "seconds": seconds[1:], "peak_mb": stopwatch.peak_mb()}
        print(json.dumps(line), flush=True)
    question, _ = reader._rewrite(QUESTIONS[tasks.WHOLE])  # noqa: SLF001 - the statement that it sends to the database
    exact = list(reader.reader._execute_ast(question))  # noqa: SLF001 - and what comes back
    truth = _sorted(exact)
    drawn = [_sorted(reader.execute(QUESTIONS[tasks.WHOLE], pre_aggregated=exact)) for _ in range(tasks.REDRAWS)]
    noisy = np.array(drawn)
    found = accuracy.errors(truth[:, 1], truth[:, 2], noisy[:, :, 1], noisy[:, :, 2])
    print(json.dumps({"case": "error", "budget": tasks.PURE, "errors": found, "law": "Laplace"}))


def _sorted(table):
    return np.array(sorted(tuple(row) for row in table[1:]), dtype=float)  # the first row holds the names


if __name__ == "__main__":
    main()
