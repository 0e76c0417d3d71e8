"""Runs the optimisers of the nuclear ball on made-up problems and writes what they reached: the last figure of the tutorial.

python docs/figures/nuclear_runs.py   writes docs/tutorial/nuclear-ball.json (minutes; noise has no seed, so no two are alike)
"""

import json
import sys
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[1] / "tutorial" / "nuclear-ball.json"
EPSILON, DELTA, SHAPE, RANK = 8, 1e-6, (20, 20), 2
RECORDS = (1_000, 3_000, 10_000, 30_000, 100_000)
MOST = {"thesis": 10_000, "stochastic": 30_000}
"""As far as a solver that learns nothing is followed."""

SOLVERS = ("thesis", "stochastic", "toeplitz", "tree", "frank_wolfe", "pgd")
RUNS = 3


def reached(solver, problem):
    """The excess risk of one fit with the defaults."""
    from curador.learn import PrivateNuclearRegressor

    given = problem.train
    model = PrivateNuclearRegressor(solver=solver, epsilon=EPSILON, delta=DELTA)
    return problem.excess(model.fit(given.left, given.right, given.targets).coef_)


def measured():
    """All runs, by solver and number of records."""
    from curador.learn.nuclear.losses import bilinear_problem

    found = {solver: {} for solver in SOLVERS}
    nothing = []
    for records in RECORDS:
        problems = [bilinear_problem(records, SHAPE, RANK, seed=seed) for seed in range(RUNS)]
        nothing += [problem.excess(np.zeros(SHAPE)) for problem in problems]
        for solver in SOLVERS:
            if records <= MOST.get(solver, records):
                found[solver][records] = [reached(solver, problem) for problem in problems]
                print(records, solver, found[solver][records], file=sys.stderr, flush=True)
    given = {"epsilon": EPSILON, "delta": DELTA, "shape": SHAPE, "rank": RANK}
    return {"given": given, "nothing": float(np.mean(nothing)), "excess": found}


def read():
    """What was measured: the excess of a model that learned nothing, and of the runs by solver and number of records."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    runs = {solver: {int(n): values for n, values in found.items()} for solver, found in content["excess"].items()}
    return content["nothing"], runs


def slope(found, first, last):
    """The exponent of n between two numbers of records, of means over runs."""
    return float(np.log(np.mean(found[last]) / np.mean(found[first])) / np.log(last / first))


if __name__ == "__main__":
    FILE.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
