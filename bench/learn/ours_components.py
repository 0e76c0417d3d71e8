"""curador's first components: what "auto" takes, other methods, both kinds of neighbours. `script.py some|largest`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from curador.learn import PrivatePCA
from learn import data, scores, tasks
from learn.repeat import Case, introduce, repeated

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMALL = 1_000_000  # numbers in the rows; above, fewer runs
_OWN = {tasks.DIGITS_OWN_CENTRE: "private"}


def _runs(rows: Any) -> int:
    return tasks.PCA_RUNS if rows.size <= _SMALL and rows.shape[1] < tasks.PCA_WIDE else tasks.PCA_RUNS_WIDE


def _forms(name: str, rows: Any) -> Iterator[tuple[float, str, str]]:
    """Yield δ, method and neighbours of what is measured on a set."""
    yield tasks.PURE, "auto", tasks.ADD_REMOVE
    yield tasks.DELTA, "auto", tasks.ADD_REMOVE
    yield tasks.DELTA, "auto", tasks.REPLACE_ONE
    if name == tasks.DIGITS_CENTRED or (rows.size <= _SMALL and name not in _OWN):
        yield from ((tasks.DELTA, method, tasks.ADD_REMOVE) for method in tasks.PCA_METHODS)


def _measured(name: str, rows: Any, moment: scores.Moment, epsilons: tuple[float, ...], runs: int, forms: Any) -> None:
    for delta, method, adjacency in forms:
        for epsilon in epsilons:

            def once(epsilon=epsilon, delta=delta, method=method, adjacency=adjacency) -> dict[str, float]:
                model = PrivatePCA(
                    1, epsilon=epsilon, delta=delta, method=method, adjacency=adjacency, center=_OWN.get(name)
                ).fit(rows)
                return {tasks.LOST: moment.lost(model.components_[0])}

            fits = runs if method == "auto" else min(runs, tasks.PCA_RUNS_WIDE)
            repeated(Case(tasks.PCA, name, tasks.CURADOR, epsilon, delta, adjacency, method), once, fits)


def some() -> None:
    """Every set but the largest."""
    names = [one.name for one in tasks.SPIKED]
    for name in (tasks.DIGITS, tasks.DIGITS_CENTRED, tasks.DIGITS_OWN_CENTRE, *names, *tasks.PCA_TABLES):
        rows = data.components(name)
        if rows is None:
            continue
        moment = scores.moment(rows, about_mean=name in _OWN)
        repeated(Case(tasks.PCA, name, tasks.RANDOM, 0, 0, ""), lambda moment=moment: {tasks.LOST: moment.lost_at_random}, 1)
        _measured(name, rows, moment, tasks.EPSILONS, _runs(rows), _forms(name, rows))


def largest() -> None:
    """A hundred thousand rows of a thousand features."""
    name = tasks.LARGEST.name
    rows = data.components(name)
    moment = scores.moment(rows)
    repeated(Case(tasks.PCA, name, tasks.RANDOM, 0, 0, ""), lambda: {tasks.LOST: moment.lost_at_random}, 1)
    for epsilon in tasks.EPSILONS:
        runs = tasks.PCA_RUNS_LARGEST if epsilon == 1 else 2
        _measured(name, rows, moment, (epsilon,), runs, [(tasks.DELTA, "auto", tasks.ADD_REMOVE)])
        if epsilon == 1:
            _measured(name, rows, moment, (epsilon,), 2, [(tasks.PURE, "auto", tasks.ADD_REMOVE)])


if __name__ == "__main__":
    introduce(["curador", "scikit-learn"])
    {"some": some, "largest": largest}[sys.argv[1]]()
