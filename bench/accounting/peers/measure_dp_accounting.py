"""dp_accounting on the tasks: its PLD accountant and its RDP accountant, with their own defaults.

A3 has no event form (its randomized response and its Laplace share no neighbouring relation of the same
meaning), so both accountants' own building blocks are composed there. The losses of a pure epsilon are
those of binary randomized response, and come out tighter than its own discretised randomized response.
"""

from __future__ import annotations

import dp_accounting as dp
from dp_accounting import pld, rdp
from dp_accounting.pld import privacy_loss_distribution as losses
from dp_accounting.pld.common import DifferentialPrivacyParameters as PrivacyParameters

import stopwatch
from accounting import tasks


def a1_event() -> dp.DpEvent:
    return dp.SelfComposedDpEvent(dp.GaussianDpEvent(tasks.A1_SIGMA), tasks.A1_COUNT)


def a2_event(sigma: float = tasks.A2_SIGMA) -> dp.DpEvent:
    step = dp.PoissonSampledDpEvent(tasks.A2_RATE, dp.GaussianDpEvent(sigma))
    return dp.SelfComposedDpEvent(step, tasks.A2_COUNT)


def a4_event() -> dp.DpEvent:
    return dp.SelfComposedDpEvent(dp.LaplaceDpEvent(tasks.A4_SCALE), tasks.A4_COUNT)


def epsilon(accountant, event, delta: float):
    return lambda: accountant().compose(event()).get_epsilon(delta)


def sigma(accountant):
    def call() -> float:
        return dp.calibrate_dp_mechanism(
            accountant,
            a2_event,
            tasks.A5_EPSILON,
            tasks.A2_DELTA,
            dp.ExplicitBracketInterval(*tasks.A5_BRACKET),
        )

    return call


def a3_pld() -> float:
    parts = [losses.from_laplace_mechanism(scale) for scale in tasks.A3_SCALES]
    parts += [losses.from_gaussian_mechanism(deviation) for deviation in tasks.A3_SIGMAS]
    parts += [losses.from_privacy_parameters(PrivacyParameters(one, 0)) for one in tasks.A3_EPSILONS]
    # In pairs: half the time of one by one, which is what the accountant would do, and the same epsilon.
    while len(parts) > 1:
        pairs = zip(parts[0::2], parts[1::2], strict=False)
        parts = [left.compose(right) for left, right in pairs] + parts[len(parts) // 2 * 2 :]
    return parts[0].get_epsilon_for_delta(tasks.A3_DELTA)


def a3_rdp() -> float:
    events = [dp.LaplaceDpEvent(scale) for scale in tasks.A3_SCALES]
    events += [dp.GaussianDpEvent(deviation) for deviation in tasks.A3_SIGMAS]
    noise = rdp.RdpAccountant().compose(dp.ComposedDpEvent(events))
    answers = [dp.RandomizedResponseDpEvent(tasks.lie_parameter(one), 2) for one in tasks.A3_EPSILONS]
    replaced = rdp.RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    replaced.compose(dp.ComposedDpEvent(answers))
    curve = noise._rdp + replaced._rdp  # noqa: SLF001 -- the accountant shows its curve nowhere else
    return rdp.compute_epsilon(noise._orders, curve, tasks.A3_DELTA)[0]  # noqa: SLF001


def tasks_of(accountant, a3):
    return {
        "A1": epsilon(accountant, a1_event, tasks.A1_DELTA),
        "A2": epsilon(accountant, a2_event, tasks.A2_DELTA),
        "A3": a3,
        "A4": epsilon(accountant, a4_event, tasks.A4_DELTA),
        "A5": sigma(accountant),
    }


if __name__ == "__main__":
    stopwatch.main(
        {"pld": tasks_of(pld.PLDAccountant, a3_pld), "rdp": tasks_of(rdp.RdpAccountant, a3_rdp)},
        ["dp-accounting"],
        package="dp_accounting",
    )
