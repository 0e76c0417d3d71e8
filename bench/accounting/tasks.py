"""The five accounting tasks, as numbers every tool reads: plain Python, for every environment.

A1  1,000 Gaussians, sigma 20, sensitivity 1: epsilon at delta 1e-6
A2  10,000 Poisson-subsampled Gaussians, rate 0.01, sigma 1.1: epsilon at delta 1e-5
A3  200 Laplace of scales 5 to 50, 100 Gaussians of sigma 20 to 100, 50 binary randomized responses of
    epsilon 0.05 to 0.3, all different, evenly spaced: epsilon at delta 1e-6
A4  100,000 Laplace of scale 100: epsilon at delta 1e-6
A5  the sigma at which A2 spends epsilon 2
"""

from __future__ import annotations

import math

TASKS = ("A1", "A2", "A3", "A4", "A5")

TITLES = {
    "A1": "1,000 Gaussians, sigma 20, delta 1e-6",
    "A2": "10,000 Poisson-subsampled Gaussians, rate 0.01, sigma 1.1, delta 1e-5",
    "A3": "200 Laplace + 100 Gaussians + 50 randomized responses, all different, delta 1e-6",
    "A4": "100,000 Laplace, scale 100, delta 1e-6",
    "A5": "the sigma of A2 at epsilon 2, delta 1e-5",
}


def spaced(start: float, stop: float, count: int) -> list[float]:
    """Return evenly spaced numbers, both ends included."""
    return [start + (stop - start) * index / (count - 1) for index in range(count)]


A1_COUNT, A1_SIGMA, A1_DELTA = 1000, 20.0, 1e-6

A2_COUNT, A2_RATE, A2_SIGMA, A2_DELTA = 10_000, 0.01, 1.1, 1e-5

A3_SCALES = spaced(5, 50, 200)
A3_SIGMAS = spaced(20, 100, 100)
A3_EPSILONS = spaced(0.05, 0.3, 50)
A3_DELTA = 1e-6

A4_COUNT, A4_SCALE, A4_DELTA = 100_000, 100.0, 1e-6

A5_EPSILON = 2.0
A5_BRACKET = (1.0, 4.0)  # where tools that only search by themselves are told to look


def truth_probability(epsilon: float) -> float:
    """Return the probability with which binary randomized response of that epsilon tells the truth."""
    return 1 / (1 + math.exp(-epsilon))


def lie_parameter(epsilon: float) -> float:
    """Return the chance of answering by a fair coin instead, which leads to the same epsilon."""
    return 2 * (1 - truth_probability(epsilon))
