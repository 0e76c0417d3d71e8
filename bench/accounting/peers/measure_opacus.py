"""opacus on the Gaussian tasks: its Rényi and its PRV accountant."""

from __future__ import annotations

from opacus.accountants import PRVAccountant, RDPAccountant
from opacus.accountants.utils import get_noise_multiplier

import stopwatch
from accounting import tasks


def epsilon(accountant, sigma: float, rate: float, steps: int, delta: float) -> float:
    account = accountant()
    account.history = [(sigma, rate, steps)]
    return account.get_epsilon(delta)


def sigma(name: str) -> float:
    return get_noise_multiplier(
        target_epsilon=tasks.A5_EPSILON,
        target_delta=tasks.A2_DELTA,
        sample_rate=tasks.A2_RATE,
        steps=tasks.A2_COUNT,
        accountant=name,
    )


def tasks_of(accountant, name: str):
    return {
        "A1": lambda: epsilon(accountant, tasks.A1_SIGMA, 1.0, tasks.A1_COUNT, tasks.A1_DELTA),
        "A2": lambda: epsilon(accountant, tasks.A2_SIGMA, tasks.A2_RATE, tasks.A2_COUNT, tasks.A2_DELTA),
        "A5": lambda: sigma(name),
    }


if __name__ == "__main__":
    stopwatch.main(
        {"rdp": tasks_of(RDPAccountant, "rdp"), "prv": tasks_of(PRVAccountant, "prv")},
        ["opacus", "torch"],
        package="opacus",
    )
