"""curador on the five tasks: from bare numbers to both certified ends, nothing kept between calls."""

from __future__ import annotations

import curador as cu
import stopwatch
from accounting import tasks


def _ends(loss: cu.Loss, delta: float) -> tuple[float, float]:
    interval = loss.epsilon_interval(delta=delta)
    return interval.lower, interval.upper


def a1() -> tuple[float, float]:
    gaussian = cu.Gaussian(sigma=tasks.A1_SIGMA, sensitivity=1).loss
    return _ends(tasks.A1_COUNT * gaussian, tasks.A1_DELTA)


def _steps(sigma: object) -> cu.Loss:
    step = cu.Gaussian(sigma=sigma, sensitivity=1).loss.subsample(rate=tasks.A2_RATE, scheme="poisson")
    return tasks.A2_COUNT * step


def a2() -> tuple[float, float]:
    return _ends(_steps(tasks.A2_SIGMA), tasks.A2_DELTA)


def a3() -> tuple[float, float]:
    losses = [cu.Laplace(scale=scale, sensitivity=1).loss for scale in tasks.A3_SCALES]
    losses += [cu.Gaussian(sigma=sigma, sensitivity=1).loss for sigma in tasks.A3_SIGMAS]
    losses += [cu.RandomizedResponse(epsilon=epsilon).loss for epsilon in tasks.A3_EPSILONS]
    return _ends(cu.compose(losses), tasks.A3_DELTA)


def a4() -> tuple[float, float]:
    laplace = cu.Laplace(scale=tasks.A4_SCALE, sensitivity=1).loss
    return _ends(tasks.A4_COUNT * laplace, tasks.A4_DELTA)


def _calibrated() -> cu.Gaussian:
    return cu.Gaussian.calibrate(
        epsilon=tasks.A5_EPSILON,
        delta=tasks.A2_DELTA,
        sensitivity=1,
        count=tasks.A2_COUNT,
        rate=tasks.A2_RATE,
        scheme="poisson",
    )


def a5() -> float:
    return _calibrated().sigma


def spent(sigma: object) -> dict[str, float]:
    """Return what the sigma of A5 spends, both ends: the check that calibration kept its promise."""
    lower, upper = _ends(_steps(sigma), tasks.A2_DELTA)
    return {"spent_lower": float(lower), "spent_upper": float(upper)}


if __name__ == "__main__":
    stopwatch.main(
        {"curador": {"A1": a1, "A2": a2, "A3": a3, "A4": a4, "A5": a5}},
        ["curador"],
        package="curador",
        afterwards={"A5": spent},
    )
