"""diffprivlib: components, least squares, logistic regression and k-means, all of pure ε. Bounds and norms are given to it.

`script.py pca|models|clusters`
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from diffprivlib.models import PCA, KMeans, LinearRegression, LogisticRegression

from learn import data, scores, tasks
from learn.repeat import Case, introduce, repeated

STRENGTHS = (0.01, 1.0, 100.0)  # of its logistic regression's penalty: the table shows the best


def _case(part: str, name: str, epsilon: float, form: str = "") -> Case:
    return Case(part, name, tasks.DIFFPRIVLIB, epsilon, tasks.PURE, tasks.ADD_REMOVE, form)


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
                model = PCA(1, epsilon=epsilon, data_norm=1.0, centered=not own, bounds=(0, 1) if own else None)
                return {tasks.LOST: moment.lost(model.fit(rows.copy()).components_[0])}

            runs = tasks.PCA_RUNS if rows.shape[1] < tasks.PCA_WIDE else tasks.PCA_RUNS_WIDE
            repeated(_case(tasks.PCA, name, epsilon), once, runs, tasks.CASE_SECONDS)


def regression() -> None:
    """Least squares by the functional mechanism."""
    for name in tasks.REGRESSIONS:
        split = data.regression(name)
        if split is None:
            continue
        for epsilon in tasks.EPSILONS:

            def once(split=split, epsilon=epsilon) -> dict[str, float]:
                ends = (split.low_target, split.high_target)
                model = LinearRegression(epsilon=epsilon, bounds_X=(split.low, split.high), bounds_y=ends)
                model.fit(split.train, split.train_target)
                return {tasks.R2: split.r_squared(model.predict(split.test))}

            repeated(_case(tasks.REGRESSION, name, epsilon), once, tasks.MODEL_RUNS, tasks.CASE_SECONDS)


def logistic() -> None:
    """Logistic regression by objective perturbation, on features scaled to [-1, 1]."""
    for name in tasks.CLASSIFICATIONS:
        split = data.classification(name)
        if split is None:
            continue
        train, test = (2 * (rows - split.low) / (split.high - split.low) - 1 for rows in (split.train, split.test))
        norm = float(np.sqrt(train.shape[1]))
        for epsilon in tasks.EPSILONS:
            for strength in STRENGTHS:

                def once(
                    split=split, train=train, test=test, norm=norm, epsilon=epsilon, strength=strength
                ) -> dict[str, float]:
                    model = LogisticRegression(epsilon=epsilon, data_norm=norm, C=strength, max_iter=1000)
                    model.fit(train, split.train_target)
                    chance = model.predict_proba(test)[:, 1]
                    right = float((model.predict(test) == split.test_target).mean())
                    return {tasks.ACCURACY: right, tasks.LOG_LOSS: scores.log_loss(split.test_target, chance)}

                case = _case(tasks.LOGISTIC, name, epsilon, f"C={strength:g}")
                repeated(case, once, tasks.MODEL_RUNS, tasks.CASE_SECONDS)


def clusters() -> None:
    """K-means with noisy sums; of columns of many widths, as they come and scaled by their bounds."""
    for name in tasks.CLUSTERINGS:
        found = data.clusters(name)
        if found is None:
            continue
        forms = {tasks.AS_THEY_COME: found, tasks.SCALED: found.scaled} if name in tasks.WIDE else {"": found}
        for epsilon in tasks.EPSILONS:
            for form, cloud in forms.items():

                def once(cloud=cloud, name=name, epsilon=epsilon) -> dict[str, float]:
                    model = KMeans(tasks.CLUSTER_COUNT[name], epsilon=epsilon, bounds=(cloud.low, cloud.high)).fit(cloud.rows)
                    return {tasks.INERTIA: cloud.inertia(model.cluster_centers_)}

                repeated(_case(tasks.CLUSTERS, name, epsilon, form), once, tasks.CLUSTER_RUNS, tasks.CASE_SECONDS)


KINDS = {"pca": (components,), "models": (regression, logistic, clusters), "clusters": (clusters,)}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    introduce(["diffprivlib", "scikit-learn"])
    for measure in KINDS[sys.argv[1]]:
        measure()
