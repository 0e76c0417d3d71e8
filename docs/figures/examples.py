"""Something to draw for figures of one's own values: learners fitted to made-up records, a game against a mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from curador.audit.game import Game
    from curador.learn.nuclear.losses import BilinearProblem

_RECORDS = 4000
_SHAPE = (8, 6)
EPSILONS = (0.05, 0.1, 0.3, 1.0, 3.0)
_RUNS = 5


def problem(records: int = _RECORDS) -> BilinearProblem:
    """Return made-up records of rows in a few directions; the same ones each time, as nobody is in them."""
    from curador.learn.nuclear.losses import bilinear_problem

    return bilinear_problem(records, _SHAPE, 2, seed=0, test=5000)


def fitted_regressor() -> Any:
    """Return a private nuclear regressor fitted to the made-up records by Frank–Wolfe steps."""
    from curador.learn import PrivateNuclearRegressor

    train = problem().train
    made = PrivateNuclearRegressor(epsilon=4, delta="1e-6", solver="frank_wolfe", n_steps=24)
    return made.fit(train.left, train.right, train.targets)


def fitted_components() -> Any:
    """Return private components of the made-up rows: two stand above the noise."""
    from curador.learn import PrivatePCA

    return PrivatePCA(2, epsilon="0.1", delta="1e-6", row_norm=1).fit(problem().train.left)


def lost_variances() -> dict[str, Any]:
    """Return the share of the variance of two directions that private ones lose, by method, in a few runs at each ε."""
    from curador.learn import PrivatePCA

    rows = problem().train.left
    best = float(np.sort(np.linalg.eigvalsh(rows.T @ rows))[-2:].sum())
    found: dict[str, Any] = {}
    for method in ("analyze_gauss", "bingham"):
        runs = np.empty((_RUNS, len(EPSILONS)))
        for place, epsilon in enumerate(EPSILONS):
            for run in range(_RUNS):
                delta = "1e-6" if method == "analyze_gauss" else 0
                fitted = PrivatePCA(2, epsilon=epsilon, delta=delta, row_norm=1, method=method).fit(rows)
                kept = float(np.square(rows @ np.asarray(fitted.components_).T).sum())
                runs[run, place] = max(0.0, 1.0 - kept / best)
        found[method.replace("_", " ")] = runs
    return found


def excesses() -> tuple[dict[str, dict[int, list[float]]], float]:
    """Return the excess risk of a few private fits by solver and number of records, and that of learning nothing."""
    from curador.learn import PrivateNuclearRegressor

    found: dict[str, dict[int, list[float]]] = {"Frank–Wolfe, all records": {}, "correlated noise": {}}
    nothing = 0.0
    for records in (500, 2000):
        made = problem(records)
        nothing = made.excess(np.zeros(_SHAPE))
        for name, solver in zip(found, ("frank_wolfe", "toeplitz"), strict=True):
            fits = [PrivateNuclearRegressor(epsilon=4, delta="1e-6", solver=solver, n_nominal=records) for _ in range(2)]
            data = (made.train.left, made.train.right, made.train.targets)
            found[name][records] = [made.excess(one.fit(*data).coef_) for one in fits]
    return found, nothing


def played_game(samples: int = 20_000) -> Game:
    """Return the game against Laplace noise of scale 1: a count of 42 or of 43."""
    from curador.audit.game import game
    from curador.mechanisms.laplace import Laplace

    return game(Laplace(scale=1, sensitivity=1), 42, 43, samples=samples)
