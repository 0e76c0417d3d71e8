"""curador: `ours.py errors PROTOCOL`, `ours.py speed PROTOCOL`, `ours.py stream`, `ours.py other`."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import environments
import stopwatch
from curador import local as curador_local
from local import data, measure, published, tasks
from local.measure import Case, say

METHODS = {
    tasks.DIRECT: "direct",
    tasks.OPTIMAL: "optimal_unary",
    tasks.SYMMETRIC: "symmetric_unary",
    tasks.HASHING: "hashing",
    tasks.HADAMARD: "hadamard",
    tasks.SUBSET: "subset",
}


def protocol_of(name: str, size: int, epsilon: float) -> Any:
    if name == tasks.RAPPOR:
        return curador_local.Rappor(size, epsilon_forever=tasks.FOREVER * epsilon, epsilon_once=epsilon)
    return curador_local.frequencies(size, epsilon=epsilon, method=METHODS[name])


def errors(name: str) -> None:
    """Estimate every histogram a thousand times: errors, how far the mean is off, how many intervals hold the truth."""
    for epsilon in tasks.EPSILONS:
        protocol = protocol_of(name, tasks.VALUES, epsilon)
        for histogram in tasks.HISTOGRAMS:
            _repeated(protocol, Case(tasks.ERROR, name, tasks.CURADOR, epsilon, histogram))


def _repeated(protocol: Any, case: Case) -> None:
    counts = data.histogram(case.histogram)
    off, squares = np.zeros((2, tasks.VALUES))
    inside = np.zeros(tasks.VALUES, np.int64)
    done = 0

    def once(values: np.ndarray) -> dict[str, np.ndarray]:
        nonlocal off, squares, inside, done
        estimate = protocol.estimate(protocol.privatise(values))
        error = estimate.counts - counts
        off += error
        squares += error**2
        inside += (estimate.low <= counts) & (counts <= estimate.high)
        done += 1
        together = {tasks.LIKELY: estimate.likely()} if done <= tasks.LIKELY_RUNS else {}
        return {tasks.UNBIASED: estimate.counts, tasks.CONSISTENT: estimate.consistent(), **together}

    measure.errors(case, once, tasks.RUNS)
    spread = np.sqrt((squares - off**2 / tasks.RUNS) / (tasks.RUNS - 1) / tasks.RUNS)
    where = (case.protocol, case.tool, case.epsilon, case.histogram)
    say(Case(tasks.BIAS, *where), values=(off / tasks.RUNS / spread).tolist())
    say(Case(tasks.COVER, *where), values=(inside / tasks.RUNS).tolist())
    stated, ideal = (one(case.protocol, case.epsilon, counts) for one in (published.error, published.ideal))
    say(Case(tasks.STATED, *where), values=[stated])
    say(Case(tasks.IDEAL, *where), values=[ideal])


def speed(name: str) -> None:
    """Take a million people from values to estimates."""
    values = data.people(data.histogram(tasks.ZIPF, tasks.MANY_PEOPLE, tasks.MANY_VALUES))
    for epsilon in tasks.SPEED_EPSILONS:
        protocol = protocol_of(name, tasks.MANY_VALUES, epsilon)
        parts: list[float] = []

        def whole(protocol: Any = protocol, parts: list[float] = parts) -> None:
            begun = time.perf_counter()
            reports = protocol.privatise(values)
            parts.append(time.perf_counter() - begun)
            protocol.estimate(reports)

        _, times = stopwatch.measure(whole, "curador")
        case = Case(tasks.SPEED, name, tasks.CURADOR, epsilon)
        say(case, values=[times["best_seconds"]], people=tasks.MANY_PEOPLE, client=min(parts), peak_mb=stopwatch.peak_mb())


def stream() -> None:
    """Read ten million reports from files, a batch at a time."""
    import pyarrow as pa

    protocol = protocol_of(tasks.DIRECT, tasks.MANY_VALUES, tasks.STREAM_EPSILON)
    each = tasks.STREAM_REPORTS // tasks.STREAM_FILES
    values = data.people(data.histogram(tasks.ZIPF, each, tasks.MANY_VALUES))
    folder = Path(tempfile.mkdtemp(prefix="reports-", dir=environments.HOME))
    try:
        for number in range(tasks.STREAM_FILES):
            table = pa.table({"report": protocol.privatise(values)})
            with pa.OSFile(str(folder / f"{number}.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=1 << 16)
        _, times = stopwatch.measure(lambda: protocol.collector().add_files(folder).estimate(), "curador")
    finally:
        shutil.rmtree(folder)
    case = Case(tasks.STREAM, tasks.DIRECT, tasks.CURADOR, tasks.STREAM_EPSILON)
    say(case, values=[times["best_seconds"]], peak_mb=stopwatch.peak_mb())


def other(what: str) -> None:
    """What else takes time: the loss of shuffled reports, and a search for frequent values."""
    {tasks.SHUFFLED: _shuffled, tasks.FOUND: _found}[what]()


def _shuffled() -> None:
    protocol = protocol_of(tasks.DIRECT, 16, tasks.SHUFFLED_EPSILON)

    def once() -> float:
        return curador_local.shuffled(protocol, reports=tasks.SHUFFLED_REPORTS).epsilon(tasks.DELTA)

    epsilon, times = stopwatch.measure(once, "curador")
    what = f"ε at δ = {tasks.DELTA:g} of {tasks.SHUFFLED_REPORTS:,} shuffled reports of ε = {tasks.SHUFFLED_EPSILON:g}"
    case = Case(tasks.OTHER, what, tasks.CURADOR, tasks.SHUFFLED_EPSILON, form=f"{float(epsilon):.4g}")
    say(case, values=[times["best_seconds"]], peak_mb=stopwatch.peak_mb())


def _found() -> None:
    protocol = curador_local.HeavyHitters(epsilon=tasks.FOUND_EPSILON, bits=tasks.FOUND_BITS)
    ranks = data.people(data.histogram(tasks.ZIPF, tasks.FOUND_PEOPLE, tasks.MANY_VALUES))
    names = np.random.default_rng(1).integers(0, 1 << tasks.FOUND_BITS, tasks.MANY_VALUES)
    values = names[ranks]
    found, times = stopwatch.measure(lambda: protocol.estimate(protocol.privatise(values)), "curador")
    right = len(set(found.values) & set(names.tolist()))
    what = f"frequent values of {tasks.FOUND_BITS} bits, {tasks.FOUND_PEOPLE:,} people, ε = {tasks.FOUND_EPSILON:g}"
    case = Case(
        tasks.OTHER, what, tasks.CURADOR, tasks.FOUND_EPSILON, form=f"{len(found.values)} found, {right} of them right"
    )
    say(case, values=[times["best_seconds"]], peak_mb=stopwatch.peak_mb())


if __name__ == "__main__":
    measure.introduce(["curador", "pyarrow"])
    {"errors": errors, "speed": speed, "stream": stream, "other": other}[sys.argv[1]](*sys.argv[2:])
