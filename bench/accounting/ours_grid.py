"""curador on settings of the grid, one [sigma, rate, steps, delta] a line on standard input, with empty caches each time."""

from __future__ import annotations

import json
import sys
import time
from fractions import Fraction

import stopwatch
from curador import CuradorError, losses


def interval(sigma: str, rate: str, steps: int, delta: str):
    return (steps * losses.GaussianLoss(mu=1 / Fraction(sigma)).subsample(rate=rate)).epsilon_interval(delta)


def main() -> None:
    interval("1.1", "0.01", 100, "1e-5")  # imports and first calls are over
    for line in sys.stdin:
        cell = json.loads(line)
        stopwatch.forget("curador")
        began = time.process_time()
        try:
            lower, upper = interval(*cell)
        except CuradorError as error:
            print(json.dumps({"reason": str(error)}), flush=True)
            continue
        print(json.dumps({"lower": lower, "epsilon": upper, "seconds": time.process_time() - began}), flush=True)


if __name__ == "__main__":
    main()
