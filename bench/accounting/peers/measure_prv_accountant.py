"""prv_accountant on the tasks, at two of its error settings; it gives both ends of epsilon.

Its pure-DP random variable has the losses of binary randomized response, so A3 is complete.
"""

from __future__ import annotations

from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
    PureDPMechanism,
)
from scipy import optimize

import stopwatch
from accounting import tasks


def ends(variables, counts: list[int], delta: float, error: float) -> tuple[float, float]:
    accountant = PRVAccountant(prvs=variables, max_self_compositions=counts, eps_error=error, delta_error=delta / 1000)
    lower, _, upper = accountant.compute_epsilon(delta, counts)
    return lower, upper


def a1(error: float) -> tuple[float, float]:
    return ends([GaussianMechanism(tasks.A1_SIGMA)], [tasks.A1_COUNT], tasks.A1_DELTA, error)


def a2(error: float, sigma: float = tasks.A2_SIGMA) -> tuple[float, float]:
    step = PoissonSubsampledGaussianMechanism(sampling_probability=tasks.A2_RATE, noise_multiplier=sigma)
    return ends([step], [tasks.A2_COUNT], tasks.A2_DELTA, error)


def a3(error: float) -> tuple[float, float]:
    variables = [LaplaceMechanism(mu=1 / scale) for scale in tasks.A3_SCALES]
    variables += [GaussianMechanism(sigma) for sigma in tasks.A3_SIGMAS]
    variables += [PureDPMechanism(epsilon) for epsilon in tasks.A3_EPSILONS]
    return ends(variables, [1] * len(variables), tasks.A3_DELTA, error)


def a4(error: float) -> tuple[float, float]:
    return ends([LaplaceMechanism(mu=1 / tasks.A4_SCALE)], [tasks.A4_COUNT], tasks.A4_DELTA, error)


def a5(error: float) -> float:
    return optimize.brentq(lambda sigma: a2(error, sigma)[1] - tasks.A5_EPSILON, *tasks.A5_BRACKET, xtol=1e-6)


def tasks_of(error: float):
    return {
        name: (lambda call=call: call(error)) for name, call in {"A1": a1, "A2": a2, "A3": a3, "A4": a4, "A5": a5}.items()
    }


if __name__ == "__main__":
    stopwatch.main({"0.1": tasks_of(0.1), "0.01": tasks_of(0.01)}, ["prv-accountant"], package="prv_accountant")
