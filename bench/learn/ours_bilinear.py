"""curador's matrix regressions on a problem with a known answer, all by defaults.

`script.py solvers` or `script.py slope NUMBER …`. Excess is counted on 200,000 other records; every run has another problem.
"""

from __future__ import annotations

import sys

import numpy as np

from curador.learn import PrivateNuclearRegressor
from curador.learn.nuclear.gradient import frank_wolfe
from curador.learn.nuclear.losses import BilinearHuber, BilinearProblem, bilinear_problem
from learn import tasks
from learn.repeat import Case, introduce, repeated

_MOST = {"thesis": 10_000, "stochastic": 10_000}  # records; more would take minutes and change nothing


def _fitted(problem: BilinearProblem, solver: str, epsilon: float, delta: float) -> dict[str, float]:
    model = PrivateNuclearRegressor("huber", 1.0, epsilon=epsilon, delta=delta, adjacency=tasks.REPLACE_ONE, solver=solver)
    model.fit(problem.train.left, problem.train.right, problem.train.targets)
    return {tasks.EXCESS: problem.excess(model.coef_)}


def solvers() -> None:
    """Every solver at every size and ε; the pure ones beside."""
    for count in tasks.BILINEAR_RECORDS:
        name = f"n={count:,}"
        problems = [bilinear_problem(count, seed=seed) for seed in range(tasks.BILINEAR_RUNS)]
        _each(
            Case(tasks.BILINEAR, name, "X = 0", 0, 0, ""),
            problems,
            lambda one: {tasks.EXCESS: one.excess(np.zeros((20, 20)))},
        )
        plain = Case(tasks.BILINEAR, name, tasks.PLAIN, 0, 0, "")
        _each(plain, problems, lambda one: {tasks.EXCESS: one.excess(frank_wolfe(BilinearHuber(), 1.0, one.train))})
        for solver in tasks.BILINEAR_SOLVERS:
            if count > _MOST.get(solver, count):
                continue
            for delta in tasks.DELTAS if solver in tasks.BILINEAR_PURE else (tasks.DELTA,):
                for epsilon in tasks.EPSILONS:
                    case = Case(tasks.BILINEAR, name, tasks.CURADOR, epsilon, delta, tasks.REPLACE_ONE, solver)
                    some = problems if solver in tasks.BILINEAR_QUICK else problems[: tasks.BILINEAR_FEW]
                    _each(case, some, lambda one, s=solver, e=epsilon, d=delta: _fitted(one, s, e, d))


def slope(count: int) -> None:
    """The one-pass method with correlated noise, at a large ε."""
    problems = (bilinear_problem(count, seed=seed) for seed in range(tasks.SLOPE_RUNS))
    case = Case(tasks.SLOPE, f"n={count:,}", tasks.CURADOR, tasks.SLOPE_EPSILON, tasks.DELTA, tasks.REPLACE_ONE, "toeplitz")
    once = lambda: _fitted(next(problems), "toeplitz", tasks.SLOPE_EPSILON, tasks.DELTA)  # noqa: E731 - one line
    repeated(case, once, tasks.SLOPE_RUNS)


def _each(case: Case, problems: list[BilinearProblem], judge) -> None:
    rounds = iter(problems)
    repeated(case, lambda: judge(next(rounds)), len(problems))


if __name__ == "__main__":
    introduce(["curador", "scikit-learn"])
    if sys.argv[1] == "solvers":
        solvers()
    else:
        for argument in sys.argv[2:]:
            slope(int(argument))
