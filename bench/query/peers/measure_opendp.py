"""opendp's Polars front end: `measure_opendp.py FORM ROWS FILE`, times of both questions and the errors of its noise.

The frame is in memory before the clock starts, and so is the context that holds the budget. A call builds the query,
releases it and collects. `floats` sums the values as they are, `integers` thousandths of them, which opendp handles in
less time and with less noise (no allowance for the rounding of float sums); `centred` subtracts the middle of the bounds
by hand first.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import opendp.prelude as dp
import polars as pl

import stopwatch
from query import accuracy, tasks

warnings.simplefilter("ignore")
dp.enable_features("contrib")

VALUE = pl.col("value")
MILLI = 1000
KEYS = pl.DataFrame({"grp": list(range(tasks.GROUPS))}, schema={"grp": pl.Int64})
MIDDLE = (tasks.LOWER + tasks.UPPER) // 2


def summed(form: str) -> pl.Expr:
    """Return the private sum. NULL becomes what adds nothing."""
    if form == "floats":
        return VALUE.fill_null(0.0).dp.sum((float(tasks.LOWER), float(tasks.UPPER)))
    if form == "integers":
        return (VALUE.fill_null(0.0) * MILLI).cast(int).dp.sum((tasks.LOWER * MILLI, tasks.UPPER * MILLI))
    half = (tasks.UPPER - MIDDLE) * MILLI
    return ((VALUE.fill_null(float(MIDDLE)) * MILLI).cast(int) - MIDDLE * MILLI).dp.sum((-half, half))


def context(frame: pl.DataFrame, loss) -> dp.Context:
    """Return a context with the whole budget for one question; the number of rows is public, in its favour."""
    return dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[
            dp.polars.Margin(by=[], max_length=frame.height),
            dp.polars.Margin(by=["grp"], max_length=frame.height // 5, max_groups=tasks.GROUPS),
        ],
    )


def query(ready: dp.Context, form: str, question: str):
    """Return the question: five rows a user, taken at random after the filter."""
    asked = ready.query()
    if question == tasks.FILTERED:
        asked = asked.filter(VALUE.ge(float(tasks.TENTH)))
    kept = asked.truncate_per_group(tasks.CAP).group_by("grp")
    return kept.agg(VALUE.dp.count().alias("n"), summed(form).alias("total")).with_keys(KEYS)


def timed(frame: pl.DataFrame, form: str, question: str) -> dict[str, object]:
    """Return the seconds of a call, its building and its running part."""
    calls: list[tuple[float, float, float]] = []
    while len(calls) < 4 and sum(whole for whole, _, _ in calls) < 45:
        ready = context(frame, dp.loss_of(epsilon=tasks.EPSILON))
        held, building, _ = stopwatch.timed(lambda ready=ready: query(ready, form, question).release())
        _, running, _ = stopwatch.timed(held.collect)
        calls.append((building + running, building, running))
    whole, building, running = (list(part) for part in zip(*calls[1:], strict=True))  # the first is the warm-up
    return {"seconds": whole, "building": min(building), "running": min(running)}


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho that opendp converts into (epsilon, delta)."""

    def converted(rho: float) -> float:
        space = dp.atom_domain(T="f64", nan=False), dp.absolute_distance(T="f64")
        measurement = dp.m.make_gaussian(*space, scale=1 / (2 * rho) ** 0.5)
        return dp.c.make_zCDP_to_approxDP(measurement).map(1.0).epsilon(delta)

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if converted(middle) <= epsilon else (low, middle)
    return low


def redrawn(frame: pl.DataFrame, form: str, budget: str) -> dict[str, object]:
    """Return the errors of its noise, drawn by its own samplers at the scales that it states."""
    loss = dp.loss_of(epsilon=tasks.EPSILON)
    if budget == tasks.CONCENTRATED:
        loss = dp.loss_of(rho=rho_of(tasks.EPSILON, tasks.DELTA))
    stated = query(context(frame, loss), form, tasks.WHOLE).summarize()
    scales = dict(zip(stated["column"], stated["scale"], strict=True))
    kept = frame.filter(pl.int_range(pl.len()).shuffle(seed=1).over("user_id") < tasks.CAP)
    truth = kept.group_by("grp").agg(VALUE.count().alias("n"), VALUE.sum().alias("total")).sort("grp")
    count, total = truth["n"].to_numpy(), truth["total"].to_numpy()
    unit = 1 if form == "floats" else MILLI
    noisy_count = count + noise(scales["n"], budget)
    noisy_total = total + noise(scales["total"], budget) / unit
    if form == "centred":
        noisy_total = noisy_total + MIDDLE * (noisy_count - count)
    found = accuracy.errors(count, total, noisy_count, noisy_total)
    return {"errors": found, "scales": {name: float(scale) for name, scale in scales.items()}}


def noise(scale: float, budget: str):
    """Return integer noise of that scale, one row a redraw."""
    make, distance = (dp.m.make_laplace, dp.l1_distance) if budget == tasks.PURE else (dp.m.make_gaussian, dp.l2_distance)
    measurement = make(dp.vector_domain(dp.atom_domain(T="i64")), distance(T="i64"), scale=scale)
    drawn = measurement([0] * (tasks.REDRAWS * tasks.GROUPS))
    return np.array(drawn, dtype=float).reshape(tasks.REDRAWS, tasks.GROUPS)


def main() -> None:
    """Measure one form on one file and print its lines."""
    form, rows, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    frame = pl.read_parquet(file)
    print(json.dumps({"versions": stopwatch.versions(["opendp", "polars"])}))
    if form != "centred":
        for question in tasks.QUESTIONS:
            line = timed(frame, form, question) | {"peak_mb": stopwatch.peak_mb()}
            print(json.dumps({"case": "time", "question": question, "rows": rows, **line}), flush=True)
    if rows == tasks.SIZES[0]:
        for budget in tasks.BUDGETS:
            print(json.dumps({"case": "error", "budget": budget, **redrawn(frame, form, budget)}), flush=True)


if __name__ == "__main__":
    main()
