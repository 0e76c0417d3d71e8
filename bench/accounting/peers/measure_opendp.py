"""opendp on A1: a composition of 1,000 zCDP measurements, then its (epsilon, delta) curve."""

from __future__ import annotations

import opendp.prelude as dp

import stopwatch
from accounting import tasks

dp.enable_features("contrib")


def a1() -> float:
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=tasks.A1_SIGMA)
    composed = dp.c.make_composition([gaussian] * tasks.A1_COUNT)
    return dp.c.make_zCDP_to_approxDP(composed).map(1.0).epsilon(tasks.A1_DELTA)


if __name__ == "__main__":
    stopwatch.main({"zcdp": {"A1": a1}}, ["opendp"], package="opendp")
