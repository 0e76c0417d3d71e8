"""What all estimators share: the order in which a fit happens, and the bar that shows how far it is.

The bar is for fits that take longer than two seconds, where somebody looks at a terminal.

The order of a fit:

    parameters ──► plan (no data) ──► [through a curator: tried out, charged] ──► data ──► exact sums + noise ──► card

An estimator says how its data look (`_read_arrays`, `_read_columns`), what it would release (`_plan`) and how it learns from
releases (`_learn`). What it keeps are attributes that end in `_`; each is a function of releases and of public numbers.
"""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator

from curador.errors import InvalidParameter, require
from curador.learn.card import PrivacyCard, make_card
from curador.learn.plan import FitGoal, FitPlan, PlannedRelease, concentrated_plan, goal_of, make_plan
from curador.learn.release import Releaser
from curador.mechanisms.seam import refresh
from curador.numerics.exact import whole
from curador.privacy.adjacency import REPLACE_ONE
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction
    from pathlib import Path

    from numpy.typing import NDArray

    from curador.curator.training import TrainingRows
    from curador.numerics.exact import Number


# ---- progress --------------------------------------------------------------------------------------------------------------


_PATIENCE = 2.0


def bar(name: str, epsilon: float) -> Callable[[int, int], None]:
    """Return what a Releaser calls after each release: shows the step and the part of the budget that is spent."""
    started = time.monotonic()
    shown: list[Any] = []

    def step(made: int, planned: int) -> None:
        if not shown and (time.monotonic() - started < _PATIENCE or not sys.stderr.isatty()):
            return
        from rich.console import Console

        if not shown:
            shown.append(Console(stderr=True))
        end = "\n" if made == planned else "\r"
        shown[0].print(f"{name}: release {made}/{planned}, {made / planned:.0%} of ε = {epsilon:g}", end=end)

    return step


# ---- base ------------------------------------------------------------------------------------------------------------------


_MOST_RECORDS = 1 << 50


@dataclass(frozen=True, slots=True)
class Facts:
    """What is public about the data of a fit.

    records   how many there are: declared (`n_nominal`), or counted where records are replaced; None: not said
    features  how many numbers a record has
    names     of the columns, where the data have names
    bounds    of the columns, where a study declares them: None for a column without
    unit      whom a record stands for
    """

    records: int | None
    features: int
    names: tuple[str, ...] | None = None
    bounds: tuple[tuple[float, float] | None, ...] | None = None
    unit: str = "record"
    target_bounds: tuple[float, float] | None = None
    """Of the target's column, where a study declares them."""
    concentrated: bool = False
    """Whether a ledger counts the fit in ρ: noise that is pure by itself then costs more than it need."""


def no_numbers(name: str, kind: str, column: object = None) -> InvalidParameter:
    """Return the refusal of a column that holds something else than numbers: it says the column and no value of it."""
    where = "" if column is None else f" in column {column!r}"
    hint = "write a category as columns of 0 and 1, a date as a number, or leave the column out"
    return InvalidParameter(subject=str(name), rule="must be made of numbers", got=f"{kind}{where}", hint=f"{hint}.")


class PrivateEstimator(BaseEstimator):
    """The common part of the estimators. Constructors only store; rules are checked when something is fitted."""

    privacy_: PrivacyCard
    receipt_: dict[str, Any]
    """Of a fit through a curator, as plain JSON values: what it cost, the budget, its place in the ledger."""
    _supervised: bool | None = None
    """Whether a fit needs a target (True), has none (False), or says so itself (None)."""
    _labels = False
    """Whether the target may be a text, as a class is; everything else must be numbers."""
    _method = "additive"
    _guarantee = "central"

    # ---- what an estimator says of itself ---------------------------------------------------------------------------

    @abstractmethod
    def _read_arrays(self, X: Any, y: Any) -> tuple[Any, Facts]:  # noqa: N803 -- as scikit-learn names it
        """Return the data of arrays, checked, and what is public about them; `records` is counted."""

    @abstractmethod
    def _read_columns(self, columns: Mapping[str, NDArray[Any]], units: NDArray[Any], facts: Facts, y: str | None) -> Any:
        """Return the data of a study's columns; `units` numbers the unit of each row. Total: no value is an error."""

    @abstractmethod
    def _parts(self, facts: Facts) -> Sequence[PlannedRelease]:
        """Return what a fit releases. A function of parameters and facts; refuses what cannot be fitted."""

    def _plan(self, goal: FitGoal, facts: Facts, rho: Fraction | None = None) -> FitPlan:
        """Return the noise of a fit for a goal, or for a cost in zCDP; to be overridden where parts follow the goal."""
        parts = self._parts(facts)
        return make_plan(goal, parts) if rho is None or goal.pure else concentrated_plan(goal, rho, parts)

    @abstractmethod
    def _learn(self, data: Any, facts: Facts, releaser: Releaser) -> None:
        """Set what is learned, from releases only."""

    def _notes(self, facts: Facts) -> Sequence[str]:
        """Return what a reader of the card should know."""
        del facts
        return ()

    # ---- fitting ----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803 -- as scikit-learn names it
        """Fit, privately. X: an array, or `curator.rows(…)`, whose ledger is charged first (y is then a column's name)."""
        from curador.curator.training import TrainingRows

        if isinstance(X, TrainingRows):
            return self._fit_through(X, y)
        goal = self._goal()
        data, counted = self._read_arrays(X, y)
        facts = self._facts(counted, goal)
        return self._fitted(data, facts, self._plan(goal, facts))

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator as JSON; `curador.learn.load` reads it."""
        from curador.learn.model_file import save

        save(self, path)

    def _goal(self) -> FitGoal:
        given: Any = self
        return goal_of(given.epsilon, given.delta, given.adjacency)

    def _facts(self, counted: Facts, goal: FitGoal) -> Facts:
        """The number of records is public where records are replaced; elsewhere it is what was declared."""
        declared: Number | None = getattr(self, "n_nominal", None)
        if declared is not None:
            records = whole(declared, "n_nominal", least=1)
            require(records <= _MOST_RECORDS, "n_nominal", "at most 2⁵⁰", declared)
            return replace(counted, records=records)
        return counted if goal.adjacency is REPLACE_ONE else replace(counted, records=None)

    def _fitted(self, data: Any, facts: Facts, plan: FitPlan, *, watched: bool = True) -> Self:
        refresh()  # as for a question: noise of this fit is made of entropy that is fresh
        releaser = Releaser(plan, bar(type(self).__name__, float(plan.goal.epsilon)) if watched else None)
        self._learn(data, facts, releaser)
        self.privacy_ = self._card(plan, releaser, facts)
        if facts.names is not None:
            import numpy as np

            self.feature_names_in_ = np.asarray(facts.names, dtype=object).astype(str)
        return self

    def _card(self, plan: FitPlan, releaser: Releaser, facts: Facts) -> PrivacyCard:
        return make_card(
            plan,
            releaser.releases,
            estimator=type(self).__name__,
            method=self._method,
            unit=facts.unit,
            guarantee=self._guarantee,
            exact=self._exact,
            records=facts.records,
            notes=self._notes(facts),
        )

    @property
    def _exact(self) -> bool:
        """Whether everything is integer noise on exact integers."""
        return True

    # ---- through a curator ------------------------------------------------------------------------------------------

    def cost(self, rows: TrainingRows, y: str | None = None) -> str:
        """Say what a fit on these rows would cost; it reads nothing and spends nothing."""
        facts, plan = self._planned_through(rows, y)
        releases = sum(part.count for part in plan.parts)
        spent = f"ε = {float(plan.goal.epsilon):.6g}" + (f" at δ = {float(plan.goal.delta):.3g}" if plan.goal.delta else "")
        count = f"{releases} release" + ("s" if releases > 1 else "")
        named = f"{type(self).__name__} on {facts.features} column" + ("s" if facts.features > 1 else "")
        return f"{named} would make {count} and cost {spent} (ρ = {float(plan.rho):.3g})"

    def _planned_through(self, rows: TrainingRows, y: Any) -> tuple[Facts, FitPlan]:
        if y is not None and (not isinstance(y, str) or y not in rows.columns):
            raise InvalidParameter.must_be("y", "the name of one of the columns", y, ", ".join(rows.columns))
        if self._supervised is True and y is None:
            raise InvalidParameter.must_be("y", "the name of the target's column", "nothing")
        if self._supervised is False and y is not None:
            raise InvalidParameter.must_be("y", "nothing: this estimator has no target", y)
        if len(rows.columns) == (y is not None):
            raise InvalidParameter.must_be("columns", "at least one besides the target", ", ".join(rows.columns))
        for name in self._numbers(rows, y):
            if rows.types.get(name) is Type.STRING:
                raise no_numbers("columns", "texts", name)
        if getattr(self, "n_nominal", None) is None:
            hint = "how many there really are is not public; step counts and normalisations must not follow it"
            raise InvalidParameter.must_be("n_nominal", "declared for a fit through a curator", None, hint)
        goal = self._goal_through(rows)
        names = tuple(name for name in rows.columns if name != y)
        bounds = tuple(rows.bounds[name] for name in names)
        target = None if y is None else rows.bounds[y]
        facts = self._facts(Facts(None, len(names), names, bounds, rows.unit, target, rows.delta > 0), goal)
        return facts, self._plan(goal, facts, None if rows.granted is None else rows.granted.rho)

    def _numbers(self, rows: TrainingRows, y: str | None) -> Sequence[str]:
        """The columns that must be of numbers."""
        return [name for name in rows.columns if not self._labels or name != y]

    def _fit_through(self, rows: TrainingRows, y: Any) -> Self:
        from curador.curator.training import train
        from curador.learn.model_file import from_json, to_json

        facts, plan = self._planned_through(rows, y)

        def run(columns: Mapping[str, NDArray[Any]], units: NDArray[Any], *, rehearsal: bool) -> bytes:
            other = self._fresh()  # nothing is learned here before it is stored, nor is anything stored that was here before
            data = other._read_columns(columns, units, facts, y)  # noqa: SLF001 -- of the same class
            other._fitted(data, facts, plan, watched=not rehearsal)  # noqa: SLF001 -- idem
            content = to_json(other).encode()
            from_json(content)  # what cannot be read again is not stored
            return content

        content, receipt = train(rows, self._description(y), plan, run, exact=self._exact)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update({name: value for name, value in vars(from_json(content)).items() if name.endswith("_")})
        self.privacy_ = replace(self.privacy_, entry=receipt["id"])
        self.receipt_ = dict(receipt.record)
        return self

    def _fresh(self) -> Self:
        """Return an estimator of the same parameters that has learned nothing."""
        other = type(self)(**self.get_params(deep=False))
        vars(other).update({name: value for name, value in vars(self).items() if name.startswith("_")})
        return other

    def _goal_through(self, rows: TrainingRows) -> FitGoal:
        """What the handle grants, else what the parameters say; between the neighbours of the study's ledger."""
        if rows.granted is None:
            return replace(self._goal(), adjacency=rows.adjacency)
        if rows.granted.epsilon:
            return FitGoal(rows.granted.epsilon, rows.delta, rows.adjacency)
        return FitGoal(rows.epsilon(rows.granted.rho), rows.delta, rows.adjacency)

    def _description(self, y: str | None) -> dict[str, Any]:
        """What makes two fits the same: the class and its parameters."""
        from curador.learn.model_file import write_parameters

        return {"estimator": type(self).__name__, "parameters": write_parameters(self), "target": y}
