"""What two states of the sources are timed on, by public names that both have: `workloads.py SECONDS` prints a line a task.

A accounting, S sampling, C whole questions on a table, D local privacy, L learning; F is the import. Each task is called once
to warm up and then until its seconds are over, at least three times; the line has the CPU seconds of every call, of
this process and of those that it started (the engine's worker).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

began = time.process_time()
import curador as cu  # noqa: E402 -- its import is measured

IMPORTED = time.process_time() - began

import numpy as np  # noqa: E402 -- after the import that is measured

ROWS, PEOPLE = 1_000_000, 50_000


def accounting() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield compositions from bare numbers to certified ends."""

    def mixed() -> Any:
        losses = [cu.Laplace(scale=5 + place / 4, sensitivity=1).loss for place in range(200)]
        losses += [cu.Gaussian(sigma=20 + place, sensitivity=1).loss for place in range(100)]
        losses += [cu.RandomizedResponse(epsilon=0.05 + place / 200).loss for place in range(50)]
        return cu.compose(losses).epsilon_interval(delta=1e-6)

    def sampled() -> Any:
        step = cu.Gaussian(sigma=1.1, sensitivity=1).loss.subsample(rate=0.01, scheme="poisson")
        return (10_000 * step).epsilon_interval(delta=1e-5)

    yield "A, 350 different records", mixed
    yield "A, 10,000 subsampled Gaussians", sampled
    yield (
        "A, calibrate a Gaussian",
        lambda: cu.Gaussian.calibrate(epsilon=2, delta=1e-5, sensitivity=1, count=10_000, rate=0.01, scheme="poisson"),
    )
    yield "A, 100,000 Laplace", lambda: (100_000 * cu.Laplace(scale=100, sensitivity=1).loss).epsilon_interval(delta=1e-6)


def sampling() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield releases of one number and of many."""
    gaussian, laplace = cu.Gaussian(sigma=20, sensitivity=1), cu.DiscreteLaplace(scale=20, sensitivity=1)
    yield "S, 1,000 single Gaussian releases", lambda: [gaussian.release(0.0) for _ in range(1_000)]
    yield "S, 100,000 Gaussian numbers", lambda: gaussian.release_many(0.0, 100_000)
    yield "S, 100,000 discrete Laplace numbers", lambda: laplace.release_many(0, 100_000)


def questions(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield new questions on a table of a million rows, one asked again, and a preview."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(1)
    table = pa.table(
        {
            "user_id": draw.integers(0, PEOPLE, ROWS),
            "city": draw.choice([f"city {place}" for place in range(40)], ROWS),
            "spent": draw.uniform(0, 500, ROWS),
        }
    )
    pq.write_table(table, folder / "visits.parquet")
    os.environ["CURADOR_REGISTER"] = str(folder / "register")  # made-up rows are nobody's to remember
    curator = cu.open(
        folder / "visits.parquet",
        unit="user_id",
        budget=cu.Budget(epsilon=10_000, delta=1e-6),
        bounds={"spent": (0, 500)},
        caps={"rows": 20, "groups": 4},
        ledger=folder / "visits.ledger",
    )
    number = iter(range(10**9))

    def ask(text: str) -> Any:
        return curator.ask(text.format(next(number) / 1_000), spend="0.01%")

    yield "C, a count", lambda: ask("SELECT COUNT(*) AS n FROM visits WHERE spent > {}")
    yield "C, groups", lambda: ask("SELECT city, COUNT(*) AS n, AVG(spent) AS m FROM visits WHERE spent > {} GROUP BY city")
    yield "C, sums of a clamp", lambda: ask("SELECT SUM(LEAST(spent, 100 + {})) AS s FROM visits")
    again = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    yield "C, an answer again", lambda: curator.ask(again, spend="0.01%")
    yield (
        "C, a preview",
        lambda: curator.preview(f"SELECT COUNT(*) AS n FROM visits WHERE spent > {next(number)}", spend="1%"),
    )


def local_reports() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield estimates from many reports."""
    for method in ("direct", "hashing", "subset"):
        protocol = cu.local.frequencies(100, epsilon=1, method=method)
        values = np.random.default_rng(1).integers(0, 100, 100_000)
        reports = protocol.privatise(values)
        yield f"D, 100,000 reports, {method}", lambda protocol=protocol, reports=reports: protocol.estimate(reports)


def learning() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield fits."""
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(20_000, 10))
    target = rows @ draw.normal(size=10)
    bounds = (-5.0, 5.0)
    yield "L, components", lambda: cu.learn.PrivatePCA(2, epsilon=1, delta=1e-6).fit(rows)
    yield (
        "L, least squares",
        lambda: cu.learn.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds_X=bounds, bounds_y=(-20.0, 20.0)).fit(
            rows, target
        ),
    )
    yield "L, k-means", lambda: cu.learn.PrivateKMeans(4, epsilon=1, delta=1e-6, bounds=bounds).fit(rows)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those below it, also while they run."""
    own = time.process_time()
    below = 0
    for task in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = task.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            below += int(fields[11]) + int(fields[12])
    return own + below / os.sysconf("SC_CLK_TCK")


def time_task(call: Callable[[], Any], seconds: float) -> list[float]:
    """Return the CPU seconds of every call after the first."""
    call()
    end, found = time.monotonic() + seconds, []
    while len(found) < 3 or (time.monotonic() < end and len(found) < 200):
        start = cpu_seconds()
        call()
        found.append(cpu_seconds() - start)
    return found


def main(seconds: float) -> None:
    """Time every task of this state; what this state cannot do is a line with the reason."""
    print(json.dumps({"task": "F, import curador", "seconds": [IMPORTED]}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for make in (accounting, sampling, lambda: questions(Path(folder)), local_reports, learning):
            try:
                for name, call in make():
                    print(json.dumps({"task": name, "seconds": time_task(call, seconds)}), flush=True)
            except Exception as error:
                print(json.dumps({"task": str(error)[:100], "failed": type(error).__name__}), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
