"""tmlt.analytics on a local Spark: `measure_tmlt.py FORM ROWS FILE`. Two queries, count and sum, half of the budget each.

Spark is started and the table read and cached before the clock starts. Errors are those of noise at the scales it states.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings

import numpy as np
from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, RhoZCDPBudget, Session

import stopwatch
from query import accuracy, tasks

warnings.simplefilter("ignore")
KEYS = KeySet.from_dict({"grp": list(range(tasks.GROUPS))})


def queries(question: str):
    """Return the two queries."""
    table = QueryBuilder("visits").drop_null_and_nan(["value"])
    if question == tasks.FILTERED:
        table = table.filter(f"value >= {tasks.TENTH}")
    grouped = table.enforce(MaxRowsPerID(tasks.CAP)).groupby(KEYS)
    return {"n": grouped.count(), "total": grouped.sum("value", tasks.LOWER, tasks.UPPER)}


def rho_of(epsilon: float, delta: float) -> float:
    """Return the rho that its own formula, rho + 2 sqrt(rho log(1/delta)), turns into epsilon."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def main() -> None:
    """Measure one file and print the lines."""
    rows = int(sys.argv[2])
    os.environ["PYSPARK_PYTHON"] = sys.executable  # for the processes that Spark starts
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    spark = builder.config("spark.sql.shuffle.partitions", "4").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.read.parquet(sys.argv[3]).cache()
    frame.count()
    print(json.dumps({"versions": stopwatch.versions(["tmlt.analytics", "pyspark"])}))

    def session(budget):
        return Session.from_dataframe(budget, "visits", frame, protected_change=AddRowsWithID("user_id"))

    for name in tasks.QUESTIONS:
        half = PureDPBudget(tasks.EPSILON / 2)
        opened = session(PureDPBudget(tasks.EPSILON))

        def ask(opened=opened, half=half, name=name):
            return [opened.evaluate(one, half).collect() for one in queries(name).values()]

        _, seconds, _ = stopwatch.timed(ask)
        print(json.dumps({"case": "time", "question": name, "rows": rows, "seconds": [seconds]}), flush=True)
    table = frame.toPandas().dropna().sample(frac=1, random_state=1)
    kept = table[table.groupby("user_id").cumcount() < tasks.CAP].groupby("grp").value.agg(["count", "sum"]).sort_index()
    count, total = kept["count"].to_numpy(), kept["sum"].to_numpy()
    budgets = {tasks.PURE: PureDPBudget(tasks.EPSILON), tasks.CONCENTRATED: RhoZCDPBudget(rho_of(tasks.EPSILON, tasks.DELTA))}
    for budget, whole in budgets.items():
        opened = session(whole)
        stated = {name: opened._noise_info(one, whole / 2)[0] for name, one in queries(tasks.WHOLE).items()}  # noqa: SLF001
        drawn = {name: noise(one) for name, one in stated.items()}
        found = accuracy.errors(count, total, count + drawn["n"], total + drawn["total"])
        print(json.dumps({"case": "error", "budget": budget, "errors": found}), flush=True)


def noise(stated):
    """Return noise of the law and scale that it states; a variance for Gaussians."""
    generator, size = np.random.default_rng(), (tasks.REDRAWS, tasks.GROUPS)
    parameter = float(stated["noise_parameter"])
    if "GAUSSIAN" in stated["noise_mechanism"].name:
        return generator.normal(0, math.sqrt(parameter), size)
    return generator.laplace(0, parameter, size)


if __name__ == "__main__":
    main()
