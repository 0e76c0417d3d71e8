"""Principal components, privately."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from curador.errors import InvalidParameter, require
from curador.learn.base import Facts, PrivateEstimator
from curador.learn.dry_run import DryRun, once_called_n, sizes_of_forecast
from curador.learn.estimators.arrays import Records, centre_rows, read_matrix, read_more, records_of_columns, width_of
from curador.learn.estimators.components import choose, find, forecast, parts_of
from curador.learn.plan import STEPS, FitGoal, PlannedRelease
from curador.learn.sums import Floats, Whole, sensitivity_steps, total, whole_rows
from curador.numerics.exact import Number, positive, rational, root_down, whole, whole_root_up
from curador.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from numpy.typing import NDArray

    from curador.learn.plan import FitPlan
    from curador.learn.release import Releaser

Method: TypeAlias = Literal["auto", "analyze_gauss", "power", "lanczos", "bingham", "oja"]

_CENTRE_SHARE = 0.1
_COUNT_SHARE = 0.01
_NORMS = (Fraction(1, 10**50), Fraction(10**50))
_LEAST_LEFT = 0.01
"""Of row_norm², what records may keep at least once a bought centre is subtracted."""

_TINY = float(np.finfo(np.float64).tiny)


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Principal components of records, (ε, δ)-private.

    n_components  how many
    epsilon       with delta: what all of the fit may cost; both must be given
    row_norm      what records are shortened to in l2, after centring; a public number, never taken from data
    method        "analyze_gauss": the second moment is released whole, and eigenvectors follow for nothing
                  "power", "lanczos": a few products with public vectors are released; for too many features for a matrix
                  "bingham": directions are drawn from the exponential mechanism; for δ = 0. Floating point: not exact
                  "oja": the gradient steps of [FM22], to reproduce them
                  "auto": "bingham" where δ = 0, else "analyze_gauss" up to 5000 features and "lanczos" beyond; through a
                  curator always a method of exact noise, unless its owner allows others
    adjacency     "add_or_remove_one" or "replace_one"
    center        None: directions through the origin; an array: a public centre; "private": a tenth of the budget buys the
                  mean of the records, each shortened to row_norm; less that mean m, to √(row_norm² − |m|²)
    n_nominal     a declared number of records, by which sums are divided; None: counted where records are replaced, else
                  bought with a hundredth of the budget
    debias        whether variances are corrected for what noise adds to them

    Fitted: `components_` (rows), `explained_variance_`, `spectrum_` (all variances as released), `noise_edge_` (what noise
    alone exceeds in one fit of a hundred), `n_significant_` (how many of the spectrum exceed it), `center_`, `row_norm_`
    (what records were shortened to), `n_records_`, `method_`, `privacy_`.

    Claim   The fit is (ε, δ)-private between neighbours: see the parts of its plan and the Claims of what releases them.
    Needs   Records are rows, or the rows of a unit with weights whose squared roots add up to at most 1.
    Source  [DTTZ14] for the released moment, [KGM18] for the draw of directions, [FM22] for the gradient steps.
    """

    components_: Floats
    explained_variance_: Floats
    spectrum_: Floats
    noise_edge_: float
    n_significant_: int
    center_: Floats
    row_norm_: float
    n_records_: float
    method_: str
    _supervised = False
    _exactly = False
    """Whether only methods of exact noise will do, as through a curator."""

    def __init__(
        self,
        n_components: int = 1,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        row_norm: float = 1.0,
        method: Method = "auto",
        adjacency: Adjacency | str = "add_or_remove_one",
        center: Any = None,
        n_nominal: int | None = None,
        debias: bool = True,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.row_norm = row_norm
        self.method = method
        self.adjacency = adjacency
        self.center = center
        self.n_nominal = n_nominal
        self.debias = debias

    # ---- what it says of itself -------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: two fits differ, because noise does."""
        above: Any = super()
        tags: Any = above.__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    @property
    def mean_(self) -> Floats:
        """What `transform` subtracts: `center_`, by the name that scikit-learn's PCA gives it."""
        return self.center_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def _method(self) -> str:  # type: ignore[override]
        return str(getattr(self, "method_", self.method))

    @property
    def _exact(self) -> bool:
        return self._chosen(1) != "bingham"

    def _notes(self, facts: Facts) -> Sequence[str]:
        notes = []
        if isinstance(self.center, str):
            notes.append("the centre is the mean of the records, released with noise")
        if facts.records is None:
            notes.append("the number of records was released with noise")
        return notes

    def _chosen(self, features: int) -> str:
        """The method, from public numbers."""
        return choose(self.method, pure=self._pure, size=features, exact=self._exactly)

    @property
    def _pure(self) -> bool:
        return self.delta is not None and rational(self.delta, "delta") == 0

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _read_arrays(self, X: Any, y: Any) -> tuple[Records, Facts]:  # noqa: N803 -- as scikit-learn names it
        del y
        return read_matrix(self, X)

    def _read_columns(self, columns: Mapping[str, NDArray[Any]], units: NDArray[Any], facts: Facts, y: str | None) -> Records:
        del y
        return records_of_columns(columns, units, facts.names or ())

    def _goal(self) -> FitGoal:
        """Directions that are drawn need no δ: what is given of it is not spent."""
        goal = super()._goal()
        return replace(goal, delta=Fraction(0)) if self._chosen(1) == "bingham" else goal

    def _goal_through(self, rows: Any) -> FitGoal:
        goal = super()._goal_through(rows)
        if self._chosen(1) != "bingham" or goal.pure:
            return goal
        if rows.granted is not None:  # ε-private is ε²/2 in zCDP
            return FitGoal(root_down(2 * rows.granted.rho, 1 << 60), Fraction(0), goal.adjacency)
        return replace(goal, delta=Fraction(0))

    def _fit_through(self, rows: Any, y: Any) -> Self:
        with self._for(rows):
            return super()._fit_through(rows, y)

    def cost(self, rows: Any, y: Any = None) -> str:
        """Return what a fit to a study's rows would cost, in one sentence; nothing is read or spent."""
        with self._for(rows):
            return super().cost(rows, y)

    @contextmanager
    def _for(self, rows: Any) -> Generator[None]:
        """Through a curator "auto" chooses a method of exact noise, unless the owner allows others."""
        self._exactly = not rows.inexact
        try:
            yield
        finally:
            self.__dict__.pop("_exactly", None)

    # ---- what is released -------------------------------------------------------------------------------------------

    def _parts(self, facts: Facts) -> Sequence[PlannedRelease]:
        """The parts of a fit. Checks every parameter, so that nothing is refused later."""
        norm = positive(self.row_norm, "row_norm")
        require(_NORMS[0] <= norm <= _NORMS[1], "row_norm", "between 1e-50 and 1e50", self.row_norm)
        count = whole(self.n_components, "n_components", least=1)
        if count > facts.features:
            raise InvalidParameter.must_be("n_components", f"at most {facts.features}, the number of features", count)
        self._public_centre(facts)
        chosen = self._chosen(facts.features)
        if chosen == "oja" and count > 1:
            raise InvalidParameter.must_be("n_components", "1 for 'oja', which finds one direction", count)
        if chosen == "oja" and self._pure:
            raise InvalidParameter.must_be("delta", "above 0 for 'oja', whose noise is Gaussian", self.delta)
        parts = [PlannedRelease("centre", _CENTRE_SHARE)] if isinstance(self.center, str) else []
        if facts.records is None:
            parts.append(PlannedRelease("count", _COUNT_SHARE))
        share = 1.0 - sum(part.share for part in parts)
        return [*parts, *parts_of(chosen, share=share, size=facts.features, count=count)]

    def _public_centre(self, facts: Facts) -> Floats | None:
        """The declared centre; None: it is to be bought."""
        if self.center is None:
            return np.zeros(facts.features)
        rule = "None, 'private' or a finite number for each feature"
        if isinstance(self.center, str):
            if self.center != "private":
                raise InvalidParameter.must_be("center", rule, self.center)
            return None
        try:
            centre = np.broadcast_to(np.asarray(self.center, np.float64), (facts.features,)).copy()
        except (TypeError, ValueError):
            raise InvalidParameter.must_be("center", rule, self.center) from None
        if not np.isfinite(centre).all():
            raise InvalidParameter.must_be("center", rule, self.center)
        return centre

    def _learn(self, data: Records, facts: Facts, releaser: Releaser) -> None:
        norm = float(positive(self.row_norm, "row_norm"))
        records = float(facts.records) if facts.records is not None else _bought_count(data, releaser)
        centre = self._public_centre(facts)
        if centre is not None:
            kept = centre_rows(data.rows, centre)
        else:
            short = whole_rows(centre_rows(data.rows), norm=norm)
            centre, norm = _bought_centre(short, data.weights, releaser, records=records, norm=norm)
            kept = np.where(np.isfinite(data.rows), short.values * short.step - centre, 0.0)
        rows = whole_rows(kept, norm=norm, weights=data.roots)
        self.method_ = self._chosen(facts.features)
        found = find(self.method_, releaser, rows, count=int(self.n_components), one_row=data.weights is None)
        self.components_ = found.vectors
        self.explained_variance_ = (found.corrected if self.debias else found.values) / records
        self.spectrum_ = found.seen / records
        self.noise_edge_ = found.edge / records
        self.n_significant_ = int(np.count_nonzero(found.seen > found.edge))
        self.center_ = centre
        self.row_norm_ = norm
        self.n_records_ = records
        self.n_features_in_ = facts.features

    # ---- use --------------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Floats:  # noqa: N803 -- as scikit-learn names it
        """Return the coordinates of rows along the components, from the centre. The caller's rows are not shortened."""
        check_is_fitted(self)
        return (read_more(self, X) - self.center_) @ self.components_.T

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803 -- idem
        """Return the rows that have these coordinates."""
        check_is_fitted(self)
        places = np.asarray(check_array(X), np.float64)
        if places.shape[1] != len(self.components_):
            raise InvalidParameter.must_be("X", f"of {len(self.components_)} columns, one a component", places.shape[1])
        return places @ self.components_ + self.center_

    def _columns(self) -> int | None:
        return None if self.center is None or isinstance(self.center, str) else width_of([self.center])

    @once_called_n
    def dry_run(self, n_records: int | None = None, n_features: int | None = None, *, share: float = 0.1) -> DryRun:
        """Return what a fit to so many records (else `n_nominal`) could show. Reads no data.

        share  of row_norm², how much variance the component has that is looked for
        """
        n, features = sizes_of_forecast(self, n_records, n_features)
        facts = Facts(n, features)
        wanted = float(positive(share, "share"))
        goal = self._goal()
        plan = self._plan(goal, self._facts(facts, goal))
        return _forecast(self._chosen(features), plan, n=n, size=features, share=wanted, estimator=self)


def _bought_count(data: Records, releaser: Releaser) -> float:
    """The number of records, bought; at least 1.

    Claim   One record that comes or goes changes it by 1. Records are never replaced here: their number is public then.
    """
    if data.weights is not None:
        raise AssertionError("rows are not records")  # through a curator their number is declared
    released = releaser.noisy("count", np.array([len(data.rows) * STEPS], np.int64), length=STEPS, step=1.0 / STEPS)
    return max(float(released[0]), 1.0)


def _bought_centre(
    short: Whole, weights: Floats | None, releaser: Releaser, *, records: float, norm: float
) -> tuple[Floats, float]:
    """The mean of records that were shortened, bought; and what they are to be shortened to once it is subtracted.

    Claim   A record adds at most limit to the sum in l2, √d times that in l1: whole rows are shorter than their limit by a
            part in 2³¹, which is more than weighing them rounds up. The rest is arithmetic on what was released: records of
            length r at most are r² − |m|² at most from their mean m in mean square, and are shortened to its root; m is
            taken two deviations of its noise shorter than it came out.
    """
    rows = short if weights is None else Whole(np.trunc(short.values * weights[:, None]), short.step, short.limit)
    length = sensitivity_steps(rows.limit, releaser.plan.goal.adjacency)
    size = rows.values.shape[1]
    if not releaser.plan.gaussian:
        length = whole_root_up(size * length**2)
    mean = releaser.noisy("centre", total(rows), length=length, step=rows.step) / records
    noise = (releaser.deviation("centre", length=length, step=rows.step) / records) ** 2
    square = max(float(mean @ mean) - size * noise, 0.0)
    surely = max(square - 2.0 * math.sqrt(4.0 * square * noise + 2.0 * size * noise**2), 0.0)
    left = max(1.0 - surely / norm**2, _LEAST_LEFT)
    return mean * min(1.0, norm / max(math.sqrt(float(mean @ mean)), _TINY)), norm * math.sqrt(left)


def _forecast(method: str, plan: FitPlan, *, n: int, size: int, share: float, estimator: PrivatePCA) -> DryRun:
    norm = float(positive(estimator.row_norm, "row_norm"))
    least, deviation = forecast(method, plan, size=size, count=int(estimator.n_components), norm=norm)
    there = share * n * norm**2
    lost = size * deviation**2 / there**2 if deviation else least / there
    needed = math.ceil(least / (share * norm**2))
    worthwhile = there > least
    said = f"A component with {share:.3g} of row_norm² "
    said += f"stands above the noise of {method}." if worthwhile else f"needs {needed} records, or a larger ε, with {method}."
    return DryRun(
        worthwhile,
        said,
        {
            "noise edge": least / n,
            "share needed": least / (n * norm**2),
            "lost variance expected": min(lost, 1.0),
            "records needed": float(needed),
        },
    )
