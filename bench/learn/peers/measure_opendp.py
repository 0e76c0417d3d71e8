"""opendp: components, and least squares of one feature (Theil-Sen), both of pure ε between tables that differ by one row.

`script.py pca|models`. Where the centre is known, nearly all of ε is given to the direction.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import opendp.prelude as dp

from learn import data, scores, tasks
from learn.repeat import Case, introduce, repeated

dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
DIRECTION_SHARE = 0.99


def _case(part: str, name: str, epsilon: float) -> Case:
    return Case(part, name, tasks.OPENDP, epsilon, tasks.PURE, tasks.ADD_REMOVE)


def _direction(rows: np.ndarray, epsilon: float, *, own_centre: bool) -> np.ndarray:
    count, size = rows.shape
    if own_centre:
        model = dp.sklearn.decomposition.PCA(epsilon=epsilon, row_norm=1.0, n_samples=count, n_features=size, n_components=1)
        return model.fit(rows).components_[0]
    domain = dp.numpy.array2_domain(num_columns=size, size=count, T=float, norm=1.0, p=2, origin=np.zeros(size))
    # it counts a changed row as two differences, and states its parts for two
    parts = dp.sklearn.decomposition.PCAEpsilons(
        eigvals=2 * epsilon * (1 - DIRECTION_SHARE), eigvecs=[2 * epsilon * DIRECTION_SHARE], mean=None
    )
    measurement = dp.sklearn.decomposition.make_private_pca(domain, dp.symmetric_distance(), parts, num_components=1)
    assert measurement.map(1) <= epsilon * (1 + 1e-9)
    return measurement(rows).Vt[0]


def components() -> None:
    """The first component of rows of norm 1 about a known centre; of the digits also about a centre of its own."""
    names = [one.name for one in tasks.SPIKED]
    for name in (tasks.DIGITS, tasks.DIGITS_CENTRED, tasks.DIGITS_OWN_CENTRE, *names, *tasks.PCA_TABLES):
        rows = data.components(name)
        if rows is None:
            continue
        own = name == tasks.DIGITS_OWN_CENTRE
        moment = scores.moment(rows, about_mean=own)
        rows = np.asarray(rows, float)
        for epsilon in tasks.EPSILONS:

            def once(rows=rows, epsilon=epsilon, own=own, moment=moment) -> dict[str, float]:
                return {tasks.LOST: moment.lost(_direction(rows, epsilon, own_centre=own))}

            runs = tasks.PCA_RUNS if rows.shape[1] < tasks.PCA_WIDE else tasks.PCA_RUNS_WIDE
            repeated(_case(tasks.PCA, name, epsilon), once, runs, tasks.CASE_SECONDS)


def regression() -> None:
    """Its regression takes one feature."""
    for name in (one for one in tasks.REGRESSIONS if one.endswith("1 feature")):
        split = data.regression(name)
        if split is None:
            continue
        ends = [(float(split.low[0]), float(split.high[0]))], (split.low_target, split.high_target)
        for epsilon in tasks.EPSILONS:

            def make(scale: float, ends=ends) -> dp.sklearn.linear_model.LinearRegression:
                return dp.sklearn.linear_model.LinearRegression(dp.max_divergence(), *ends, scale=scale)

            scale = dp.binary_search(
                lambda one, make=make, epsilon=epsilon: make(one).measurement.map(1) <= epsilon, (1e-3, 1e4)
            )

            def once(split=split, make=make, scale=scale) -> dict[str, float]:
                model = make(scale).fit(split.train, split.train_target)
                return {tasks.R2: split.r_squared(model.predict(split.test))}

            repeated(_case(tasks.REGRESSION, name, epsilon), once, tasks.MODEL_RUNS, tasks.CASE_SECONDS)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    introduce(["opendp", "scikit-learn"])
    if sys.argv[1] == "pca":
        components()
    else:
        regression()
