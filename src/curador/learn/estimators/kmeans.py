"""Private k-means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from curador.errors import require
from curador.learn.base import Facts, PrivateEstimator
from curador.learn.clusters import STEPS, SUMS, Space, clusters_of, count_unit, nearest, parts, sum_length
from curador.learn.dry_run import DryRun
from curador.learn.estimators.arrays import Bounds, Records, bounds_of, read_matrix, read_more, records_of_columns
from curador.learn.plan import Part, make_plan
from curador.learn.regression.forecast import expected
from curador.numerics.exact import whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers
    from curador.numerics.exact import Number

_MOST_CLUSTERS = 4096
"""As many as there are cells to begin with."""


class PrivateKMeans(PrivateEstimator):
    """Centres of clusters by few noisy steps of Lloyd's, from centres that a noisy histogram suggests.

    n_clusters       how many
    epsilon, delta   what the fit may cost; delta=0 is pure privacy
    bounds           (low, high) of features, numbers or one for each; values beyond are clamped. Required
    neighbours       "add_remove" or "replace_one"
    n_nominal        how many records are expected; only forecasts and fits through a curator need it
    Claim   (ε, δ)-private: second moments, a histogram and three rounds of counts and sums, of integers with exact
            noise, each placed by what was released before.
    Needs   Bounds and parameters that were not taken from the data.
    Source  [SCLBJ16] noisy Lloyd's steps and histograms; [DTTZ14] symmetric noise.

    cluster_centers_, counts_ (noisy, of those nearest to the centres of the last step but one), privacy_. Who belongs where
    says `predict`, of rows that it is given: the fit keeps no labels, and no inertia, which nobody bought.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        bounds: Any = None,
        neighbours: str = "add_remove",
        n_nominal: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbours = neighbours
        self.n_nominal = n_nominal

    cluster_centers_: Floats
    counts_: Floats
    n_features_in_: int
    _supervised = False

    def __sklearn_tags__(self) -> Any:
        """Noise makes fits differ."""
        above: Any = super()
        tags: Any = above.__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    # ---- what is public -----------------------------------------------------------------------------------------------

    def _clusters(self) -> int:
        count = whole(self.n_clusters, "n_clusters", least=1)
        require(count <= _MOST_CLUSTERS, "n_clusters", f"at most {_MOST_CLUSTERS}", count)
        return count

    def _space(self, facts: Facts) -> tuple[Space, Bounds, float]:
        bounds = bounds_of(self.bounds, facts, name="bounds")
        widest = float(bounds.half.max())
        return Space(bounds.half / widest), bounds, widest

    def _parts(self, facts: Facts) -> Sequence[Part]:
        self._space(facts)
        self._clusters()
        return parts()

    def dry_run(self, n_features: int, n_records: int | None = None) -> DryRun:
        """Return what can be expected of a fit to so many records (else `n_nominal`) of so many features. Reads no data."""
        records, features = expected(self, n_features, n_records)
        facts, goal, clusters = Facts(records, features), self._goal(), self._clusters()
        plan = make_plan(goal, self._parts(facts))
        counts = plan.deviation(SUMS, sum_length(goal) / count_unit(goal))
        needed = math.ceil(10 * counts * clusters)
        numbers = {
            "noise of a count": counts,
            "records of a cluster": records / clusters,
            "records needed": float(needed),
            "steps": float(STEPS),
        }
        enough = records >= needed
        verdict = (
            f"{records} records are enough: clusters of {records // clusters} stand ten times above their noise."
            if enough
            else f"Noise hides clusters of {records // clusters}: {needed} records, fewer clusters or a larger epsilon."
        )
        return DryRun(enough, verdict, numbers)

    # ---- data ---------------------------------------------------------------------------------------------------------

    def _read_arrays(self, X: Any, y: Any) -> tuple[Records, Facts]:  # noqa: N803 -- as scikit-learn names it
        del y
        return read_matrix(self, X)

    def _read_columns(self, columns: Mapping[str, NDArray[Any]], units: NDArray[Any], facts: Facts, y: str | None) -> Records:
        if y is not None or facts.names is None:
            raise AssertionError(y)  # refused before
        self.n_features_in_ = facts.features
        return records_of_columns(columns, units, facts.names)

    def _learn(self, data: Records, facts: Facts, releaser: Releaser) -> None:
        space, bounds, widest = self._space(facts)
        rows = (np.clip(data.rows, bounds.low, bounds.high) - bounds.centre) / widest
        found = clusters_of(
            releaser,
            np.nan_to_num(rows, nan=0.0),
            space,
            self._clusters(),
            weights=data.weights,
            roots=data.roots,
            records=facts.records,
        )
        self.cluster_centers_ = np.clip(found.centres * widest + bounds.centre, bounds.low, bounds.high)
        self.counts_ = found.counts

    # ---- what a fitted one says ---------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Integers:  # noqa: N803 -- as scikit-learn names it
        """Return the place of the nearest centre of each row."""
        check_is_fitted(self)
        middle = self.cluster_centers_.mean(axis=0)
        return nearest(read_more(self, X) - middle, self.cluster_centers_ - middle)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803 -- as scikit-learn names it
        """Return minus the sum of squared distances of rows to their nearest centres."""
        del y
        labels = self.predict(X)
        return -float(np.square(read_more(self, X) - self.cluster_centers_[labels]).sum())
