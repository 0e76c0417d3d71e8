"""Private least squares: one noisy release of second moments, and arithmetic on it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from curador.errors import InvalidParameter
from curador.learn.base import Facts, PrivateEstimator
from curador.learn.dry_run import TYPICAL, forecast_moments, records_first, sizes_of_forecast
from curador.learn.estimators.arrays import (
    Records,
    bounds_of,
    facts_of,
    read_matrix,
    read_more,
    records_of_columns,
    width_of,
)
from curador.learn.plan import FitPlan, PlannedRelease, make_plan
from curador.learn.regression.frame import FeatureFrame, design_of, frame_of, sizes_of
from curador.learn.regression.moments import NAME, TargetGrid, grid_of, line_of, noise_of, release_moments
from curador.numerics.exact import at_least_zero
from curador.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from curador.learn.dry_run import DryRun
    from curador.learn.plan import FitGoal
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats
    from curador.numerics.exact import Number


class PrivateLinearRegression(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Least squares from noisy second moments.

    epsilon, delta   what the fit may cost; delta=0 is pure privacy
    bounds_X         (low, high) of features, numbers or one for each, or {column: (low, high)}; values beyond are clamped.
                     Required
    bounds_y         (low, high) of the target. Required
    fit_intercept    whether there is one. Without it features and target are measured from 0, and noise is larger
    adjacency        "add_or_remove_one" or "replace_one"
    n_nominal        how many records are expected; only forecasts and fits through a curator need it
    regularisation   "auto": as much as the noise asks for; a number: a ridge on features scaled to [-1, 1]
    row_norm         None, or what scaled rows are shortened to: their l2 norm, at delta=0 their l1 norm. A feature with a
                     bound at 0 is then scaled from 0 to ±1, others from -1 to 1. Worth it where few features of a row are
                     not 0, as with categories: noise in second moments falls with its square
    Claim   (ε, δ)-private: one release of integers with exact noise; everything else is arithmetic on it.
    Needs   Bounds, norm and parameters that were not taken from the data.
    Source  [ZZXYW12] functional mechanism, [DTTZ14] symmetric noise, [W18] regularisation against the noise.

    coef_, intercept_, coef_error_ (standard errors: of noise and sampling; not what shrinking takes away), privacy_.
    """

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        bounds_X: Any = None,  # noqa: N803 -- as scikit-learn names it
        bounds_y: Any = None,
        fit_intercept: bool = True,
        adjacency: Adjacency | str = "add_or_remove_one",
        n_nominal: int | None = None,
        regularisation: Any = "auto",
        row_norm: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds_X = bounds_X
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.n_nominal = n_nominal
        self.regularisation = regularisation
        self.row_norm = row_norm

    coef_: Floats
    intercept_: float
    coef_error_: Floats
    n_features_in_: int
    _supervised = True

    def __sklearn_tags__(self) -> Any:
        """Noise makes fits differ and scores on few records poor."""
        above: Any = super()
        tags: Any = above.__sklearn_tags__()
        tags.non_deterministic = True
        tags.regressor_tags.poor_score = True
        return tags

    # ---- what is public -----------------------------------------------------------------------------------------------

    def _frame(self, facts: Facts, *, pure: bool) -> FeatureFrame:
        bounds = bounds_of(self.bounds_X, facts, name="bounds_X")
        return frame_of(bounds.low, bounds.high, centred=bool(self.fit_intercept), row_norm=self.row_norm, pure=pure)

    def _target(self, facts: Facts) -> tuple[float, float]:
        """The centre and the scale of the target."""
        given = facts.target_bounds if self.bounds_y is None else self.bounds_y
        if given is None:
            hint = "what the target lies between must not be taken from the data; values beyond are clamped"
            raise InvalidParameter.must_be("bounds_y", "given: (low, high)", "nothing", hint)
        found = bounds_of(given, Facts(None, 1), name="bounds_y")
        if self.fit_intercept:
            return float(found.centre[0]), float(found.half[0])
        return 0.0, float(max(abs(found.low[0]), abs(found.high[0])))

    def _ridge(self) -> float | None:
        if isinstance(self.regularisation, str):
            if self.regularisation != "auto":
                raise InvalidParameter.must_be("regularisation", "'auto' or a number of at least 0", self.regularisation)
            return None
        return float(at_least_zero(self.regularisation, "regularisation"))

    def _parts(self, facts: Facts) -> Sequence[PlannedRelease]:
        self._frame(facts, pure=False)
        self._target(facts)
        self._ridge()
        return [PlannedRelease(NAME)]

    def _plan(self, goal: FitGoal, facts: Facts, rho: Fraction | None = None) -> FitPlan:
        """Gaussian noise; or Laplace noise where that is less, as with one or two features: it spends no δ at all."""
        found = super()._plan(goal, facts, rho)
        if rho is not None or goal.pure or facts.concentrated:
            return found
        pure = make_plan(replace(goal, delta=Fraction(0)), [PlannedRelease(NAME)])
        return pure if self._noise(pure, facts) < self._noise(found, facts) else found

    def _noise(self, plan: FitPlan, facts: Facts) -> tuple[float, float]:
        intercept = bool(self.fit_intercept)
        frame, grid = self._public(facts, plan.goal)
        return noise_of(plan, sizes_of(frame, intercept=intercept), grid, intercept=intercept)

    def _public(self, facts: Facts, goal: FitGoal) -> tuple[FeatureFrame, TargetGrid]:
        frame = self._frame(facts, pure=goal.pure)
        return frame, grid_of(sizes_of(frame, intercept=bool(self.fit_intercept)), pure=goal.pure, squares=True)

    def _columns(self) -> int | None:
        return width_of(self.bounds_X)

    @records_first
    def dry_run(self, n_records: int | None = None, n_features: int | None = None) -> DryRun:
        """Return what can be expected of a fit to so many records of so many features. Reads no data.

        By default as many as `n_nominal` and `bounds_X` say.
        """
        records, features = sizes_of_forecast(self, n_records, n_features)
        facts = facts_of(records, features, self.bounds_X)
        noise = self._noise(self._plan(self._goal(), facts), facts)
        return forecast_moments(records, features, noise, {"error of a coefficient": noise[1] / (records * TYPICAL**2)})

    # ---- data ---------------------------------------------------------------------------------------------------------

    def _read_arrays(self, X: Any, y: Any) -> tuple[Records, Facts]:  # noqa: N803 -- as scikit-learn names it
        if y is None:
            raise InvalidParameter("requires y to be passed, but the target y is None.")
        self._target(Facts(None, 1))
        return read_matrix(self, X, y)

    def _read_columns(self, columns: Mapping[str, NDArray[Any]], units: NDArray[Any], facts: Facts, y: str | None) -> Records:
        if y is None or facts.names is None:
            raise AssertionError(y)  # refused before
        self.n_features_in_ = facts.features
        return records_of_columns(columns, units, facts.names, y)

    def _learn(self, data: Records, facts: Facts, releaser: Releaser) -> None:
        intercept = bool(self.fit_intercept)
        frame, grid = self._public(facts, releaser.plan.goal)
        centre, scale = self._target(facts)
        targets, squares = whole_targets(data, centre, scale, grid)
        moments = release_moments(
            releaser,
            design_of(data.rows, frame, intercept=intercept, roots=data.roots),
            targets,
            squares,
            grid,
            intercept=intercept,
            records=facts.records,
        )
        line = line_of(moments, intercept=intercept, ridge=self._ridge(), records=facts.records)
        self.coef_ = line.slopes * scale / frame.scale
        self.coef_error_ = line.errors * scale / frame.scale
        self.intercept_ = centre + scale * line.height - float(self.coef_ @ frame.centre) if intercept else 0.0

    def predict(self, X: Any) -> Floats:  # noqa: N803 -- as scikit-learn names it
        """Return the line at rows."""
        check_is_fitted(self)
        return read_more(self, X) @ self.coef_ + self.intercept_


def whole_targets(data: Records, centre: float, scale: float, grid: TargetGrid) -> tuple[Floats, Floats]:
    """Return targets as whole numbers, clamped, times roots of weights; and their squares times weights, rounded down.

    Claim  Of a unit: the squares of the first add up to at most grid.target², the second to at most grid.square and never
           below 0. Missing is the centre; infinities are the ends.
    """
    given = np.zeros(len(data.rows)) if data.targets is None else np.asarray(data.targets, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is infinite, and is clamped
        clamped = np.clip(np.nan_to_num((given - centre) / scale, nan=0.0), -1.0, 1.0)
    roots = np.ones(len(given)) if data.roots is None else data.roots
    weights = np.ones(len(given)) if data.weights is None else data.weights
    ends = np.floor(roots * grid.target)
    first = np.clip(np.rint(clamped * roots * grid.target), -ends, ends)
    second = np.minimum(np.floor(np.square(clamped) * weights * grid.square), np.floor(weights * grid.square))
    return first[:, None], second
