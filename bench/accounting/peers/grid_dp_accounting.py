"""dp_accounting on one setting of the grid: composed once, asked at three deltas; what does not fit into memory says so."""

from __future__ import annotations

import json
import resource
import sys
import time

import dp_accounting as dp
from dp_accounting import pld


def main() -> None:
    sigma, rate, steps = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    deltas, gigabytes = sys.argv[4].split(","), float(sys.argv[5])
    pld.PLDAccountant().compose(dp.GaussianDpEvent(10.0)).get_epsilon(1e-5)  # imports and first calls are over
    resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * 2**30),) * 2)
    step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    began = time.process_time()
    accountant = pld.PLDAccountant().compose(dp.SelfComposedDpEvent(step, steps))
    composed = time.process_time() - began
    for delta in deltas:
        began = time.process_time()
        epsilon = accountant.get_epsilon(float(delta))
        print(json.dumps({"delta": delta, "epsilon": epsilon, "seconds": composed + time.process_time() - began}), flush=True)


if __name__ == "__main__":
    main()
