"""Private logistic regression: noisy second moments and few noisy gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import multiclass
from sklearn.utils.validation import check_is_fitted

from curador.errors import InvalidParameter, require
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
from curador.learn.plan import FitPlan, PlannedRelease, concentrated_plan, make_plan
from curador.learn.regression.frame import FeatureFrame, frame_of
from curador.learn.regression.logistic import LogisticProblem, coefficients_of, noise_of, parts, probabilities, steps_of
from curador.numerics.exact import whole
from curador.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from curador.learn.dry_run import DryRun
    from curador.learn.plan import FitGoal
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats
    from curador.numerics.exact import Number

_targets: Any = multiclass
_MOST_FEATURES = 1 << 13
"""Scores of so many whole numbers are exact."""


class PrivateLogisticRegression(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Logistic regression of two classes, or multinomial of more.

    epsilon, delta   what the fit may cost; delta=0 is pure privacy
    bounds_X         (low, high) of features, numbers or one for each, or {column: (low, high)}; values beyond are clamped.
                     Required
    classes          the labels there may be. Through a curator: required, and rows with other labels are dropped. For arrays:
                     None takes the labels that occur; that set is then taken as public
    fit_intercept    whether there is one. Without it features are measured from 0
    adjacency        "add_or_remove_one" or "replace_one"
    n_nominal        how many records are expected; only forecasts and fits through a curator need it
    row_norm         None, or what scaled rows are shortened to: their l2 norm, at delta=0 their l1 norm. A feature with a
                     bound at 0 is then scaled from 0 to ±1, others from -1 to 1. Worth it where few features of a row are
                     not 0, as with categories: noise in second moments falls with its square
    Claim   (ε, δ)-private: second moments and then four times (once at δ = 0) sums of expected labels, of integers with
            exact noise, each at coefficients that are arithmetic on what was released before.
    Needs   Bounds, norm, classes and parameters that were not taken from the data.
    Source  [DTTZ14] symmetric noise; [B92] the quadratic bound that makes second moments a preconditioner.

    coef_, intercept_, classes_, privacy_; `decision_function`, `predict_proba`, `predict`.
    """

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        bounds_X: Any = None,  # noqa: N803 -- as scikit-learn names it
        classes: Any = None,
        fit_intercept: bool = True,
        adjacency: Adjacency | str = "add_or_remove_one",
        n_nominal: int | None = None,
        row_norm: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds_X = bounds_X
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.n_nominal = n_nominal
        self.row_norm = row_norm

    coef_: Floats
    intercept_: Floats
    classes_: NDArray[Any]
    n_features_in_: int

    _supervised = True
    _labels = True

    def __sklearn_tags__(self) -> Any:
        """Noise makes fits differ and scores on few records poor."""
        above: Any = super()
        tags: Any = above.__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.poor_score = True
        return tags

    # ---- what is public -----------------------------------------------------------------------------------------------

    def _declared(self) -> NDArray[Any]:
        """The declared labels, in order."""
        rule = "a list of at least two different labels, all numbers or all texts"
        try:
            given = list(self.classes)
            found = np.unique(np.asarray(given))
        except TypeError:
            raise InvalidParameter.must_be("classes", rule, self.classes) from None
        if found.ndim != 1 or len(given) != len(found) or len(found) < 2 or found.dtype.kind not in "biufU":
            raise InvalidParameter.must_be("classes", rule, self.classes)
        if found.dtype.kind == "U" and not all(isinstance(one, str) for one in given):
            raise InvalidParameter.must_be("classes", rule, self.classes)
        return found

    def _frame(self, facts: Facts, *, pure: bool) -> FeatureFrame:
        bounds = bounds_of(self.bounds_X, facts, name="bounds_X")
        return frame_of(bounds.low, bounds.high, centred=bool(self.fit_intercept), row_norm=self.row_norm, pure=pure)

    def _checked(self, facts: Facts) -> None:
        self._frame(facts, pure=False)
        require(facts.features < _MOST_FEATURES, "X", f"of fewer than {_MOST_FEATURES} features", facts.features)
        if self.classes is None and facts.bounds is not None:
            hint = "which labels occur is not public"
            raise InvalidParameter.must_be("classes", "declared for a fit through a curator", "nothing", hint)
        if self.classes is not None:
            self._declared()

    def _parts(self, facts: Facts) -> Sequence[PlannedRelease]:
        self._checked(facts)
        return parts(self._goal())

    def _plan(self, goal: FitGoal, facts: Facts, rho: Fraction | None = None) -> FitPlan:
        self._checked(facts)
        found = parts(goal)
        return make_plan(goal, found) if rho is None or goal.pure else concentrated_plan(goal, rho, found)

    def _columns(self) -> int | None:
        return width_of(self.bounds_X)

    @records_first
    def dry_run(self, n_records: int | None = None, n_features: int | None = None, n_classes: int = 2) -> DryRun:
        """Return what can be expected of a fit to so many records of so many features. Reads no data.

        By default as many as `n_nominal` and `bounds_X` say; `n_classes` only where `classes` are not declared.
        """
        records, features = sizes_of_forecast(self, n_records, n_features)
        facts, goal = facts_of(records, features, self.bounds_X), self._goal()
        classes = whole(n_classes, "n_classes", least=2) if self.classes is None else len(self._declared())
        plan = self._plan(goal, facts)
        noise, steps = noise_of(plan, LogisticProblem(self._frame(facts, pure=goal.pure), classes, bool(self.fit_intercept)))
        more = {
            "noise of a gradient": steps,
            "steps": float(steps_of(goal)[0]),
            "error of a coefficient": steps / (0.125 * records * TYPICAL**2),
        }
        return forecast_moments(records, features, noise, more)

    # ---- data ---------------------------------------------------------------------------------------------------------

    def _read_arrays(self, X: Any, y: Any) -> tuple[Records, Facts]:  # noqa: N803 -- as scikit-learn names it
        if y is None:
            raise InvalidParameter("requires y to be passed, but the target y is None.")
        data, facts = read_matrix(self, X, y, numeric=False)
        labels = np.asarray(data.targets)
        try:
            _targets.check_classification_targets(labels)
        except ValueError as problem:
            raise InvalidParameter(str(problem)) from None
        if self.classes is None:
            known: NDArray[Any] = np.unique(labels)
            if len(known) < 2:
                raise InvalidParameter.must_be("y", "of at least two classes", f"{len(known)} class")
        else:
            known = self._declared()
            if not np.isin(labels, known).all():
                hint = "labels are those that were declared"
                raise InvalidParameter.must_be("y", "made of the declared classes", "another label", hint)
        self.classes_ = known
        return Records(data.rows, np.searchsorted(known, labels).astype(np.float64)), facts

    def _read_columns(self, columns: Mapping[str, NDArray[Any]], units: NDArray[Any], facts: Facts, y: str | None) -> Records:
        if y is None or facts.names is None:
            raise AssertionError(y)  # refused before
        self.classes_ = self._declared()
        self.n_features_in_ = facts.features
        return records_of_columns(columns, units, facts.names, y, classes=self.classes_.tolist())

    def _learn(self, data: Records, facts: Facts, releaser: Releaser) -> None:
        frame = self._frame(facts, pure=releaser.plan.goal.pure)
        problem = LogisticProblem(frame, len(self.classes_), bool(self.fit_intercept))
        found = coefficients_of(
            releaser,
            data.rows,
            np.zeros(len(data.rows)) if data.targets is None else np.asarray(data.targets, np.float64),
            problem,
            weights=data.weights,
            roots=data.roots,
            records=facts.records,
        )
        self.coef_ = (found[: facts.features] / frame.scale[:, None]).T.copy()
        heights = found[-1] if problem.intercept else np.zeros(problem.columns)
        self.intercept_ = heights - self.coef_ @ frame.centre if problem.intercept else heights

    # ---- what a fitted one says ---------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:  # noqa: N803 -- as scikit-learn names it
        """Return scores of rows: of two classes, those of the second; else one of each class."""
        check_is_fitted(self)
        scores = read_more(self, X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803 -- as scikit-learn names it
        """Return the probabilities of the classes for rows."""
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return probabilities(scores)
        chances = probabilities(scores[:, None])
        return np.concatenate([1.0 - chances, chances], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 -- as scikit-learn names it
        """Return the likeliest classes of rows."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[places]
