"""How curador's time grows: one JSON line a size. Run as a script; `growth/room.py` reads it."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np

import curador as cu
import stopwatch
from accounting import tasks

DELTA = 1e-6
DISTINCT = (50, 100, 200, 400)
MANY = (100, 1_000, 10_000)
DRAW = np.random.default_rng(2)
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


def _draw(low: float, high: float, wider: float = 1.0) -> Fraction:
    return Fraction(DRAW.uniform(low, high) * wider).limit_denominator(100_000)


KINDS = {
    "Laplace": lambda wider: cu.losses.LaplaceLoss(epsilon=1 / _draw(5, 50, wider)),
    "Laplace on its grid": lambda wider: cu.Laplace(scale=_draw(5, 50, wider), sensitivity=1).loss,
    "discrete Laplace": lambda wider: cu.DiscreteLaplace(scale=_draw(5, 50, wider), sensitivity=1).loss,
    "Gaussian": lambda wider: cu.Gaussian(sigma=_draw(10, 100, wider), sensitivity=1).loss,
    "discrete Gaussian": lambda wider: cu.losses.DiscreteGaussianLoss(sigma2=_draw(10, 100, wider) ** 2, sensitivity=1),
    "randomized response": lambda wider: cu.losses.RandomizedResponseLoss(epsilon=1 / _draw(5, 50, wider)),
    "k-ary response": lambda wider: cu.losses.RandomizedResponseLoss(
        epsilon=1 / _draw(5, 50, wider), categories=int(DRAW.integers(3, 10))
    ),
    "staircase": lambda wider: cu.Staircase(epsilon=1 / _draw(5, 50, wider), sensitivity=1).loss,
    "truncated Laplace": lambda wider: cu.losses.Approx(
        epsilon=1 / _draw(5, 50, wider), delta=Fraction(int(DRAW.integers(1, 1000)), 10**14)
    ),
    "bounded range": lambda wider: cu.losses.BoundedRange(epsilon=1 / _draw(5, 50, wider)),
}


def different(kind: str, count: int) -> list[cu.Loss]:
    """Make that many different records of a kind, or of all kinds; their noise widens so that epsilon stays put."""
    names = sorted(KINDS) if kind == "mixed" else [kind]
    return [KINDS[names[DRAW.integers(len(names))]](math.sqrt(count / 100)) for _ in range(count)]


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
    for kind in (*KINDS, "mixed"):
        for count in MANY:
            records = different(kind, count)
            report(f"different records, {kind}", count, lambda records=records: _ends(cu.compose(records)))
