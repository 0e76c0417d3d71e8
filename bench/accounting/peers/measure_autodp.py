"""autodp on the tasks, by its composition of Rényi curves."""

from __future__ import annotations

from autodp.mechanism_zoo import GaussianMechanism, LaplaceMechanism, RandresponseMechanism
from autodp.transformer_zoo import AmplificationBySampling, Composition
from scipy import optimize

import stopwatch
from accounting import tasks


def composed(mechanisms, counts: list[int], delta: float) -> float:
    return Composition()(mechanisms, counts).get_approxDP(delta)


def a1() -> float:
    return composed([GaussianMechanism(tasks.A1_SIGMA)], [tasks.A1_COUNT], tasks.A1_DELTA)


def a2(sigma: float = tasks.A2_SIGMA) -> float:
    gaussian = GaussianMechanism(sigma)
    gaussian.neighboring = "add_remove"
    # A Gaussian meets the condition of the sharper subsampling bound, which is off by default.
    step = AmplificationBySampling(PoissonSampling=True)(gaussian, tasks.A2_RATE, improved_bound_flag=True)
    return composed([step], [tasks.A2_COUNT], tasks.A2_DELTA)


def a3() -> float:
    mechanisms = [LaplaceMechanism(b=scale) for scale in tasks.A3_SCALES]
    mechanisms += [GaussianMechanism(sigma) for sigma in tasks.A3_SIGMAS]
    mechanisms += [RandresponseMechanism(p=tasks.truth_probability(epsilon)) for epsilon in tasks.A3_EPSILONS]
    return composed(mechanisms, [1] * len(mechanisms), tasks.A3_DELTA)


def a4() -> float:
    return composed([LaplaceMechanism(b=tasks.A4_SCALE)], [tasks.A4_COUNT], tasks.A4_DELTA)


def a5() -> float:
    return optimize.brentq(lambda sigma: a2(sigma) - tasks.A5_EPSILON, *tasks.A5_BRACKET, xtol=1e-6)


if __name__ == "__main__":
    stopwatch.main({"rdp": {"A1": a1, "A2": a2, "A3": a3, "A4": a4, "A5": a5}}, ["autodp"], package="autodp")
