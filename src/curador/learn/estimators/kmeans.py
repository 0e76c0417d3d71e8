"""Private k-means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from curador.errors import require
from curador.learn.base import Facts, PrivateEstimator
from curador.learn.clusters import STEPS, clusters_of, expected_noise, nearest, parts
from curador.learn.dry_run import TYPICAL, DryRun, records_first, sizes_of_forecast
from curador.learn.estimators.arrays import (
    Records,
    bounds_of,
    facts_of,
    read_matrix,
    read_more,
    records_of_columns,
    width_of,
)
from curador.learn.plan import PlannedRelease, make_plan
from curador.learn.regression.frame import FeatureFrame, frame_of
from curador.numerics.exact import whole
from curador.privacy.adjacency import Adjacency

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
    bounds           (low, high) of features, numbers or one for each, or {column: (low, high)}; values beyond are clamped.
                     Required. Every feature is scaled by its own, so distances are in half ranges: a feature counts by how
                     far it spreads within its bounds. Features of one unit keep it if their bounds are of one width
    adjacency        "add_or_remove_one" or "replace_one"
    n_nominal        how many records are expected; only forecasts and fits through a curator need it
    Claim   (ε, δ)-private: second moments, a histogram and three rounds of counts and sums, of integers with exact
            noise, each placed by what was released before; all of rows scaled by public numbers, each row by itself.
    Needs   Bounds and parameters that were not taken from the data.
    Rounds  Sensitivities up, to whole steps of a grid in the scaled frame (`clusters_of`).
    Source  [SCLBJ16] noisy Lloyd's steps and histograms; [DTTZ14] symmetric noise.

    cluster_centers_ (in the units of the data), scale_ (half the width of each feature's bounds: what distances are measured
    in), counts_ (noisy, of those nearest to the centres of the last step but one), privacy_. Who belongs where, `predict`
    says of rows that it is given: the fit keeps no labels, and no inertia, which nobody bought.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        bounds: Any = None,
        adjacency: Adjacency | str = "add_or_remove_one",
        n_nominal: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.adjacency = adjacency
        self.n_nominal = n_nominal

    cluster_centers_: Floats
    counts_: Floats
    scale_: Floats
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

    def _frame(self, facts: Facts) -> FeatureFrame:
        bounds = bounds_of(self.bounds, facts, name="bounds")
        return frame_of(bounds.low, bounds.high, centred=True, row_norm=None, pure=False)

    def _parts(self, facts: Facts) -> Sequence[PlannedRelease]:
        self._frame(facts)
        self._clusters()
        return parts()

    def _columns(self) -> int | None:
        return width_of(self.bounds)

    @records_first
    def dry_run(self, n_records: int | None = None, n_features: int | None = None) -> DryRun:
        """Return what can be expected of a fit to so many records of so many features. Reads no data.

        By default as many as `n_nominal` and `bounds` say.
        """
        records, features = sizes_of_forecast(self, n_records, n_features)
        facts, goal, clusters = facts_of(records, features, self.bounds), self._goal(), self._clusters()
        found = expected_noise(make_plan(goal, self._parts(facts)), records, clusters, features)
        numbers = {
            "noise of a count": found.count,
            "records of a cluster": records / clusters,
            "error of a centre": found.centre,
            "spread of a feature": TYPICAL,
            "records needed": float(found.needed),
            "steps": float(STEPS),
        }
        size = records // clusters
        enough = records >= found.needed
        if enough:
            verdict = (
                f"{records} records are enough: clusters of {size} have centres known to ±{found.centre:.2g} of a half range."
            )
        elif found.centre < TYPICAL:
            verdict = f"Noise blurs clusters of {size}: {found.needed} records, fewer clusters or a larger epsilon."
        else:
            verdict = f"Noise hides clusters of {size}: {found.needed} records, fewer clusters or a larger epsilon."
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
        frame = self._frame(facts)
        found = clusters_of(
            releaser,
            data.rows,
            frame,
            self._clusters(),
            weights=data.weights,
            roots=data.roots,
            records=facts.records,
        )
        self.cluster_centers_ = np.clip(found.centres * frame.scale + frame.centre, frame.low, frame.high)
        self.scale_ = frame.scale
        self.counts_ = found.counts

    # ---- what a fitted one says ---------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Integers:  # noqa: N803 -- as scikit-learn names it
        """Return the place of the nearest centre of each row, in half ranges."""
        return self._placed(X)[0]

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803 -- as scikit-learn names it
        """Return minus the sum of squared distances of rows to their nearest centres, in half ranges."""
        del y
        labels, rows, centres = self._placed(X)
        return -float(np.square(rows - centres[labels]).sum())

    def _placed(self, X: Any) -> tuple[Integers, Floats, Floats]:  # noqa: N803 -- idem
        """Where rows belong; rows and centres from the middle of the centres, in the scale of the fit."""
        check_is_fitted(self)
        middle = self.cluster_centers_.mean(axis=0)
        scale = getattr(self, "scale_", 1.0)  # a model from before features were scaled measures them as they come
        rows, centres = (read_more(self, X) - middle) / scale, (self.cluster_centers_ - middle) / scale
        return nearest(rows, centres), rows, centres
