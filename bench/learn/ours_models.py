"""curador's regressions and clusters, and scikit-learn's without privacy. `script.py [regression] [logistic] [clusters]`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression

from curador.learn import PrivateKMeans, PrivateLinearRegression, PrivateLogisticRegression
from learn import data, scores, tasks
from learn.repeat import Case, introduce, repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _measured(part: str, name: str, plain: Callable[[], Mapping[str, float]], private: Any, runs: int) -> None:
    repeated(Case(part, name, tasks.PLAIN, 0, 0, ""), plain, 1)
    for delta in tasks.DELTAS:
        for epsilon in tasks.EPSILONS:
            case = Case(part, name, tasks.CURADOR, epsilon, delta, tasks.ADD_REMOVE)
            repeated(case, lambda epsilon=epsilon, delta=delta: private(epsilon=epsilon, delta=delta), runs)


def regression(name: str, split: data.Split) -> None:
    def judged(model: Any) -> dict[str, float]:
        model.fit(split.train, split.train_target)
        return {tasks.R2: split.r_squared(model.predict(split.test))}

    def private(**budget: float) -> dict[str, float]:
        ends = (split.low_target, split.high_target)
        return judged(PrivateLinearRegression(**budget, bounds_X=(split.low, split.high), bounds_y=ends))

    _measured(tasks.REGRESSION, name, lambda: judged(LinearRegression()), private, tasks.MODEL_RUNS)


def logistic(name: str, split: data.Split) -> None:
    def judged(model: Any, train: Any, test: Any) -> dict[str, float]:
        model.fit(train, split.train_target)
        right = float((model.predict(test) == split.test_target).mean())
        return {tasks.ACCURACY: right, tasks.LOG_LOSS: scores.log_loss(split.test_target, model.predict_proba(test)[:, 1])}

    def plain() -> dict[str, float]:
        scaled = (2 * (rows - split.low) / (split.high - split.low) - 1 for rows in (split.train, split.test))
        return judged(LogisticRegression(max_iter=1000), *scaled)

    def private(**budget: float) -> dict[str, float]:
        model = PrivateLogisticRegression(**budget, bounds_X=(split.low, split.high), classes=[0, 1])
        return judged(model, split.train, split.test)

    _measured(tasks.LOGISTIC, name, plain, private, tasks.MODEL_RUNS)


def clusters(name: str, cloud: data.Cloud) -> None:
    count = tasks.CLUSTER_COUNT[name]

    def plain() -> dict[str, float]:
        scaled = cloud.scaled
        model = KMeans(count, n_init=10, random_state=0).fit(scaled.rows)
        return {tasks.INERTIA: scaled.inertia(model.cluster_centers_)}

    def private(**budget: float) -> dict[str, float]:
        model = PrivateKMeans(count, **budget, bounds=(cloud.low, cloud.high)).fit(cloud.rows)
        return {tasks.INERTIA: cloud.inertia(model.cluster_centers_)}

    _measured(tasks.CLUSTERS, name, plain, private, tasks.CLUSTER_RUNS)


KINDS = {
    tasks.REGRESSION: (tasks.REGRESSIONS, data.regression, regression),
    tasks.LOGISTIC: (tasks.CLASSIFICATIONS, data.classification, logistic),
    tasks.CLUSTERS: (tasks.CLUSTERINGS, data.clusters, clusters),
}

if __name__ == "__main__":
    introduce(["curador", "scikit-learn"])
    for names, read, measure in (KINDS[kind] for kind in sys.argv[1:] or KINDS):
        for one in names:
            if (found := read(one)) is not None:
                measure(one, found)
