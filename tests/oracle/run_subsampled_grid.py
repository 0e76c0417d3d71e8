"""curador on the whole grid of subsampled_grid.py: refusals, widths, sides against the kept values, CPU time.

python tests/oracle/run_subsampled_grid.py [cells]      that many cells, spread over the grid; all of them by default
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from fractions import Fraction
from pathlib import Path

from subsampled_grid import cells

from curador import CuradorError, losses

VALUES = json.loads((Path(__file__).parent / "subsampled_grid.json").read_text())
SLOW = 2.0


def main() -> int:
    """Print every cell that misses its promise, then the statistics; 1 if there is one."""
    every = cells()
    wanted = min(int(sys.argv[1]), len(every)) if len(sys.argv) > 1 else len(every)
    chosen = every[:: len(every) // wanted]
    times: list[float] = []
    widths: list[float] = []
    missed = 0
    for sigma, rate, steps, delta in chosen:
        key = f"{sigma} {rate} {steps} {delta}"
        loss = steps * losses.GaussianLoss(mu=1 / Fraction(sigma)).subsample(rate=rate)
        began = time.process_time()
        try:
            low, high = loss.epsilon_interval(delta)
        except CuradorError as error:
            print(f"{key}: refused: {error}")
            missed += 1
            continue
        times.append(time.process_time() - began)
        widths.append((high - low) / high if high >= 1e-2 else 100.0 * (high - low))
        faults = [f"width {high - low:.1e} at {high:.4g}"] if widths[-1] > 1e-3 else []
        faults += [f"{times[-1]:.1f} s"] if times[-1] > SLOW else []
        if key in VALUES:
            value, slack = float(VALUES[key]["epsilon"]), 4.0 * float(VALUES[key]["doubt"])
            faults += [] if low - slack * max(value, 1e-4) <= value <= high + slack * max(value, 1e-4) else ["WRONG SIDE"]
        if faults:
            print(f"{key}: [{low!r}, {high!r}]: {', '.join(faults)}", flush=True)
        missed += bool(faults)
    known = sum(f"{s} {q} {n} {d}" in VALUES for s, q, n, d in chosen)
    print(f"{len(chosen)} cells, {missed} miss a promise; {known} of them have a kept value")
    print(f"width (relative, or absolute in units of 1e-2): median {statistics.median(widths):.1e}, most {max(widths):.1e}")
    print(f"CPU: median {statistics.median(times) * 1e3:.0f} ms, most {max(times):.2f} s, in all {sum(times):.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
