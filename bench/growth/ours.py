"""How curador's time grows: one JSON line a size. Run as a script; `growth/room.py` reads it."""

from __future__ import annotations

import json
import math

import curador as cu
import stopwatch
from accounting import tasks

DELTA = 1e-6
DISTINCT = (50, 100, 200, 400)
COUNTS = (100, 1_000, 10_000, 100_000, 1_000_000)


def _ends(loss: cu.Loss) -> tuple[float, float]:
    interval = loss.epsilon_interval(delta=DELTA)
    return interval.lower, interval.upper


def distinct(records: int) -> tuple[float, float]:
    """Compose that many different records, in the proportions of A3 and with the same total noise.

    The noise widens as the square root of the number, so that epsilon stays put and only the number of
    records grows.
    """
    gaussians, answers = 2 * records // 7, records // 7
    wider = math.sqrt(records / 350)
    losses = [
        cu.Laplace(scale=wider * scale, sensitivity=1).loss for scale in tasks.spaced(5, 50, records - gaussians - answers)
    ]
    losses += [cu.Gaussian(sigma=wider * sigma, sensitivity=1).loss for sigma in tasks.spaced(20, 100, gaussians)]
    losses += [cu.RandomizedResponse(epsilon=epsilon / wider).loss for epsilon in tasks.spaced(0.05, 0.3, answers)]
    return _ends(cu.compose(losses))


def repeated(kind: str, count: int) -> tuple[float, float]:
    """Compose one record that many times."""
    record = {
        "Laplace": lambda: cu.Laplace(scale=100, sensitivity=1).loss,
        "Gaussian": lambda: cu.Gaussian(sigma=100, sensitivity=1).loss,
        "randomized response": lambda: cu.RandomizedResponse(epsilon=0.01).loss,
    }[kind]()
    return _ends(count * record)


def report(series: str, size: int, call) -> None:
    """Measure one size and print its line; a failure is a line too."""
    line = {"series": series, "size": size}
    try:
        (lower, upper), times = stopwatch.measure(call, "curador")
    except Exception as error:
        line["reason"] = f"{type(error).__name__}: {error}".splitlines()[0]
    else:
        line |= {"lower": float(lower), "upper": float(upper), **times}
    print(json.dumps(line))


if __name__ == "__main__":
    for records in DISTINCT:
        report("distinct records", records, lambda records=records: distinct(records))
    for kind in ("Laplace", "Gaussian", "randomized response"):
        for count in COUNTS:
            report(f"one {kind}, repeated", count, lambda kind=kind, count=count: repeated(kind, count))
