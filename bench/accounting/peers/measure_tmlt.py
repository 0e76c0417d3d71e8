"""tmlt.core on A1: a composition of 1,000 zCDP measurements.

It answers only whether a given (epsilon, delta) is kept, so its rho is converted by the formula that its
own answer rests on: epsilon = rho + 2 sqrt(rho log(1 / delta)).
"""

from __future__ import annotations

import math

from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.measurements.composition import Composition
from tmlt.core.measurements.noise_mechanisms import AddGaussianNoise

import stopwatch
from accounting import tasks


def a1() -> float:
    gaussian = AddGaussianNoise(NumpyFloatDomain(), sigma_squared=int(tasks.A1_SIGMA**2))
    composed = Composition([gaussian] * tasks.A1_COUNT)
    rho = composed.privacy_function(1).to_float(round_up=True)
    return rho + 2 * math.sqrt(rho * math.log(1 / tasks.A1_DELTA))


if __name__ == "__main__":
    stopwatch.main({"zcdp": {"A1": a1}}, ["tmlt.core"], package="tmlt")
