"""pipeline-dp on its local backend: `measure_pipelinedp.py FORM ROWS FILE`. Rows are tuples before the clock starts.

At most five contributions a user; MEAN brings count and sum along, from two measurements centred in the middle of the
bounds, as ours does. Noise is redrawn on a small table with every value in the middle, where it can be read off.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pipeline_dp as pdp
from pyarrow import parquet

import stopwatch
from query import accuracy, tasks

METRICS = [pdp.Metrics.MEAN, pdp.Metrics.COUNT, pdp.Metrics.SUM]
EXTRACTORS = pdp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)
NOISE = {tasks.PURE: pdp.NoiseKind.LAPLACE, tasks.CONCENTRATED: pdp.NoiseKind.GAUSSIAN}
MIDDLE = (tasks.LOWER + tasks.UPPER) / 2
FEWER = 40  # redraws: each is a run of the whole pipeline
ROWS = 400  # a group, there


def ask(rows, kind: pdp.NoiseKind):
    """Return count, sum and mean of every group."""
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=tasks.EPSILON, total_delta=tasks.DELTA)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    parameters = pdp.AggregateParams(
        metrics=METRICS, noise_kind=kind, max_contributions=tasks.CAP, min_value=tasks.LOWER, max_value=tasks.UPPER
    )
    result = engine.aggregate(rows, parameters, EXTRACTORS, public_partitions=list(range(tasks.GROUPS)))
    accountant.compute_budgets()
    return dict(result)


def redrawn(kind: pdp.NoiseKind):
    """Return the noise of the count and of the centred sum."""
    rows = [(place, place % tasks.GROUPS, MIDDLE) for place in range(tasks.GROUPS * ROWS)]
    runs = [ask(rows, kind) for _ in range(FEWER)]
    count = np.array([[run[group].count for group in range(tasks.GROUPS)] for run in runs])
    total = np.array([[run[group].sum for group in range(tasks.GROUPS)] for run in runs])
    return count - ROWS, total - MIDDLE * count


def truth(user, group, value):
    """Return count and sum of every group in a random sample of five rows a user."""
    order = np.lexsort((np.random.default_rng(1).random(len(user)), user))
    starts = np.flatnonzero(np.diff(user[order], prepend=-1))
    place = np.arange(len(user)) - np.repeat(starts, np.diff(np.append(starts, len(user))))
    kept = order[place < tasks.CAP]
    return (np.bincount(group[kept], weights=weights, minlength=tasks.GROUPS) for weights in (None, value[kept]))


def main() -> None:
    """Measure one file and print the lines."""
    rows = int(sys.argv[2])
    table = parquet.read_table(sys.argv[3]).drop_null()  # it has no word for NULL: what is not counted is left out
    user, group, value = (table[name].to_numpy() for name in ("user_id", "grp", "value"))
    print(json.dumps({"versions": stopwatch.versions(["pipeline-dp"])}))
    for name in tasks.QUESTIONS:
        kept = value >= tasks.TENTH if name == tasks.FILTERED else np.full(len(value), fill_value=True)
        tuples = list(zip(user[kept].tolist(), group[kept].tolist(), value[kept].tolist(), strict=True))
        _, seconds, _ = stopwatch.timed(lambda tuples=tuples: ask(tuples, pdp.NoiseKind.LAPLACE))
        line = {"case": "time", "question": name, "rows": rows, "seconds": [seconds], "peak_mb": stopwatch.peak_mb()}
        print(json.dumps(line), flush=True)
    count, total = truth(user, group, value)
    for budget, kind in NOISE.items():
        more, higher = redrawn(kind)
        found = accuracy.errors(count, total, count + more, total + higher + MIDDLE * more)
        print(json.dumps({"case": "error", "budget": budget, "errors": found}), flush=True)


if __name__ == "__main__":
    main()
