"""Private regression with a matrix of bounded nuclear norm: y ≈ a'Xb, or the entries of a matrix of which some are seen."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_consistent_length, validation
from sklearn.utils.validation import check_is_fitted

from curador.errors import InvalidParameter, require
from curador.learn.base import Facts, PrivateEstimator
from curador.learn.dry_run import DryRun, once_called_n
from curador.learn.estimators.arrays import floats_of, require_numbers, weights_of
from curador.learn.nuclear import solvers
from curador.learn.nuclear.losses import LEAST, MOST, ObjectiveLoss, clip_rows, loss_of, loss_text
from curador.learn.nuclear.records import Records, dense_records, entry_records, factor_bits
from curador.learn.nuclear.stochastic import Pass, stochastic_schedule
from curador.learn.nuclear.task import Task
from curador.learn.plan import FitPlan, PlannedRelease, concentrated_plan, make_plan
from curador.learn.release import Releaser
from curador.mechanisms.seam import refresh
from curador.numerics.exact import positive, whole
from curador.privacy.adjacency import REPLACE_ONE, Adjacency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction
    from pathlib import Path

    from numpy.typing import NDArray

    from curador.curator.training import TrainingRows
    from curador.learn.plan import FitGoal
    from curador.learn.sums import Floats
    from curador.numerics.exact import Number

_checks: Any = validation


@dataclass(frozen=True, slots=True)
class MatrixFacts(Facts):
    """What is public about arrays A and B. sides: how many columns each has, or the shape that was declared."""

    sides: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Streaming:
    """A pass that is under way. Private: its sums are the data, so it is never written, copied or pickled."""

    run: Pass
    facts: Facts
    plan: FitPlan
    releaser: Releaser
    head: NDArray[np.int64]
    parameters: dict[str, Any]
    seen: int = 0
    waiting: list[Records] | None = None
    whole: bool = True
    """Whether every call so far came to its end: records of one that did not might be counted twice."""


class PrivateNuclearRegressor(PrivateEstimator):
    """Minimise the mean of loss(a'Xb, y) over matrices X with a nuclear norm of at most `radius`, privately.

    Parameters
    ----------
    loss : a Loss or its name: "huber" (regression), "logistic" (y above 0 or not), "squared" (with `shape`)
        Its norms are what rows of A and B are clipped to, its slope what coefficients are clipped to.
    radius : of the nuclear ball.
    epsilon, delta, adjacency : the guarantee, for one record (one row of A, B and y). delta=0 with "pgd" and "frank_wolfe".
    n_nominal : the number of records, declared; needed where records come and go, through a curator and by partial_fit.
    solver : "pgd" (noisy projected gradient), "frank_wolfe", "toeplitz" (one pass, correlated noise), "tree" (one pass),
        "stochastic" (one pass, noise on every step) or "thesis" (the same with the constants of [FM22]: to compare with).
    n_steps : of "pgd" and "frank_wolfe", of "toeplitz" and "stochastic" after their first half; phases of "tree".
    step : of "pgd", the first; "auto": from `curvature`. Later steps are shorter where noisy gradients show more curvature.
    curvature : of the mean loss, in the Frobenius norm, where it is known; None: a hundredth of the budget estimates it.
    matrix_free : of "frank_wolfe": products with the gradient instead of gradients; the model is `factors_`.
    shape : of X, where records are entries: A and B are then their row and column numbers.
    left, right : through a curator, the columns of a and of b (with `shape`: one each).

    Attributes
    ----------
    coef_ : X; or factors_ : (U, V) with X = U V' where it is matrix-free.
    history_ : of noisy gradients, noise floors, nuclear norms and ranks, by step: functions of releases only.
    privacy_ : the card.

    """

    coef_: Floats
    factors_: tuple[Floats, Floats]
    history_: dict[str, Floats]

    def __init__(
        self,
        loss: ObjectiveLoss | str = "huber",
        radius: float = 1.0,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        adjacency: Adjacency | str = "replace_one",
        n_nominal: Number | None = None,
        solver: str = "pgd",
        n_steps: int | str = "auto",
        step: float | str = "auto",
        curvature: float | None = None,
        matrix_free: bool = False,
        shape: tuple[int, int] | None = None,
        left: Sequence[str] | None = None,
        right: Sequence[str] | None = None,
    ) -> None:
        self.loss = loss
        self.radius = radius
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.n_nominal = n_nominal
        self.solver = solver
        self.n_steps = n_steps
        self.step = step
        self.curvature = curvature
        self.matrix_free = matrix_free
        self.shape = shape
        self.left = left
        self.right = right

    # ---- using ------------------------------------------------------------------------------------------------------

    def fit(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        A: Any,  # noqa: N803 -- matrices
        B: Any = None,  # noqa: N803
        y: Any = None,
    ) -> Self:
        """Fit to rows a of A, rows b of B and targets y; or to A = `curator.rows(…)`, with y the name of a column."""
        from curador.curator.training import TrainingRows

        self._choices()
        self.__dict__.pop("_streaming", None)
        if isinstance(A, TrainingRows):
            require(B is None, "B", "nothing: `left` and `right` name the columns", type(B).__name__)
            return self._fit_through(A, y)
        return super().fit((A, B), y)

    def partial_fit(self, A: Any, B: Any, y: Any) -> Self:  # noqa: N803 -- matrices
        """Go on with one pass over a stream of `n_nominal` records; solver="toeplitz", records replaced.

        All calls together are one release. A record's place in the stream is public; half of the records come before the
        first step. What is kept between calls is the data's and never leaves this object.
        """
        self._choices()
        require(self.solver == "toeplitz", "solver", "'toeplitz' for a stream", self.solver)
        goal = self._goal()
        if goal.adjacency is not REPLACE_ONE:
            hint = "a record less would move all later ones to other places"
            raise InvalidParameter.must_be("adjacency", "'replace_one' for a stream", self.adjacency, hint)
        require(self.n_nominal is not None, "n_nominal", "declared for a stream", None)
        records, counted = self._read_arrays((A, B), y)
        going: Streaming | None = getattr(self, "_streaming", None)
        self._streaming = self._begun(self._facts(counted, goal), goal) if going is None else going
        self._go_on(self._streaming, records)
        return self

    def predict(self, A: Any, B: Any) -> Floats:  # noqa: N803 -- matrices
        """Return what is predicted for rows of A and B, clipped as in the fit: a'Xb, or a probability under "logistic"."""
        check_is_fitted(self, "privacy_")
        loss = loss_of(self.loss)
        factors: tuple[Floats, Floats] | None = getattr(self, "factors_", None)
        left, right = _sides(A, B, self.shape)
        if self.shape is not None:
            rows, columns = left.astype(np.int64), right.astype(np.int64)
            sides = self.shape
            require(
                bool(((rows >= 0) & (rows < sides[0]) & (columns >= 0) & (columns < sides[1])).all()),
                "A and B",
                "in `shape`",
                "others",
            )
            found = self.coef_[rows, columns] if factors is None else (factors[0][rows] * factors[1][columns]).sum(axis=1)
            return loss.mean(found)
        wanted = self.coef_.shape if factors is None else (len(factors[0]), len(factors[1]))
        require(
            left.shape[1] == wanted[0] and right.shape[1] == wanted[1],
            "A and B",
            f"of {wanted} columns",
            (left.shape[1], right.shape[1]),
        )
        left, right = clip_rows(left, loss.left_norm), clip_rows(right, loss.right_norm)
        if factors is None:
            return loss.mean(((left @ self.coef_) * right).sum(axis=1))
        return loss.mean(((left @ factors[0]) * (right @ factors[1])).sum(axis=1))

    @once_called_n
    def dry_run(
        self, n_records: int | None = None, shape: tuple[int, int] | None = None, *, signal: float | None = None
    ) -> DryRun:
        """Say whether a fit to so many records (else `n_nominal`) can be expected to beat X = 0. Reads no data.

        signal  the operator norm of the mean gradient at 0 over its largest possible size, if there is an idea of it; else
                one over the smaller side of X (of entries: over √(d₁d₂)), as for targets that are spread over many directions
        """
        self._choices()
        sides = self.shape if shape is None else shape
        if sides is None:
            raise InvalidParameter.must_be("shape", "given", "nothing", "how many columns A and B have")
        goal = self._goal()
        task = self._task((int(sides[0]), int(sides[1])), self._expected(n_records), goal)
        usual = 1 / min(sides) if self.shape is None else 1 / math.sqrt(sides[0] * sides[1])
        return solvers.forecast(self._settings(task.count), task, goal, signal=usual if signal is None else signal)

    def _expected(self, n_records: object) -> int:
        given = self.n_nominal if n_records is None else n_records
        if given is None:
            raise InvalidParameter.must_be("n_records", "given, here or as n_nominal", "nothing")
        return whole(given, "n_records", least=1)

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator as JSON; `curador.learn.load` reads it. The loss is written by its name."""
        super(PrivateNuclearRegressor, self._named()).save(path)

    # ---- what the base asks -----------------------------------------------------------------------------------------

    def _read_arrays(self, X: Any, y: Any) -> tuple[Records, MatrixFacts]:  # noqa: N803 -- as the base names it
        left, right = _sides(X[0], X[1], self.shape)
        if y is None:
            raise InvalidParameter.must_be("y", "given", "nothing")
        targets: Floats = _check_array(y, "y", sides=1)
        _same_length(left, right, targets)
        loss = loss_of(self.loss)
        if self.shape is not None:
            shape = _shape(self.shape)
            records = entry_records(left.astype(np.int64), right.astype(np.int64), targets, shape)
            return records, MatrixFacts(len(targets), sum(shape), sides=shape)
        sides = (left.shape[1], right.shape[1])
        count = len(targets) if self.n_nominal is None else whole(self.n_nominal, "n_nominal", least=1)
        records = dense_records(left, right, targets, loss, bits=factor_bits(count))
        return records, MatrixFacts(len(targets), sum(sides), sides=sides)

    def _read_columns(self, columns: Mapping[str, NDArray[Any]], units: NDArray[Any], facts: Facts, y: str | None) -> Records:
        """Total: missing numbers make a row of zeros, a missing target a coefficient of 0; a unit is the mean of its rows."""
        bits = factor_bits(self._records_of(facts))
        _, numbers = np.unique(np.asarray(units), return_inverse=True)
        numbered = numbers.reshape(-1).astype(np.int64)
        targets, weights = floats_of(columns[str(y)]), weights_of(units)
        sides = [[floats_of(columns[name]) for name in (names or ())] for names in (self.left, self.right)]
        if self.shape is not None:
            places = [np.nan_to_num(side[0], nan=-1, posinf=-1, neginf=-1) for side in sides]
            rows, others = (np.clip(np.floor(place), -1, 2**40).astype(np.int64) for place in places)
            return entry_records(rows, others, targets, _shape(self.shape), weights=weights, units=numbered)
        left, right = (np.column_stack(side) for side in sides)
        return dense_records(left, right, targets, loss_of(self.loss), weights=weights, units=numbered, bits=bits)

    def _parts(self, facts: Facts) -> Sequence[PlannedRelease]:
        goal = self._goal()
        return self._planned(goal, facts, None).parts

    def _plan(self, goal: FitGoal, facts: Facts, rho: Fraction | None = None) -> FitPlan:
        self._choices()
        chosen = self._planned(goal, facts, rho)
        return make_plan(goal, chosen.parts) if rho is None or goal.pure else concentrated_plan(goal, rho, chosen.parts)

    def _learn(self, data: Records, facts: Facts, releaser: Releaser) -> None:
        task = self._task(self._sides_of(facts), self._records_of(facts), releaser.plan.goal)
        self._bought = any(part.name == "second_moments" for part in releaser.plan.parts)
        found = solvers.solve(self._settings(task.count), task, data, releaser)
        self.__dict__.pop("coef_", None)
        self.__dict__.pop("factors_", None)
        if found.factors is not None:
            self.factors_ = found.factors
        else:
            self.coef_ = found.model
        self.history_ = found.history
        self.n_features_in_ = sum(task.shape)

    def _notes(self, facts: Facts) -> Sequence[str]:
        return solvers.notes(self._settings(self._records_of(facts)), bought=self._bought)

    _bought = False

    @property
    def _method(self) -> str:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        return f"{self.solver} over the nuclear ball of radius {float(self.radius):g}"

    def _planned_through(self, rows: TrainingRows, y: Any) -> tuple[Facts, FitPlan]:
        self._choices()
        if self.solver in solvers.ONE_PASS:
            hint = "in one pass a record counts at its own place, and places in a table depend on other rows"
            raise InvalidParameter.must_be("solver", "'pgd' or 'frank_wolfe' through a curator", self.solver, hint)
        if y is None:
            raise InvalidParameter.must_be("y", "the name of one of the columns", y, ", ".join(rows.columns))
        for name, side in (("left", self.left), ("right", self.right)):
            known = side is not None and not isinstance(side, str) and len(side) > 0 and set(side) <= set(rows.columns) - {y}
            single = self.shape is None or (side is not None and len(side) == 1)
            rule = "a list of columns of the rows" if self.shape is None else "a list of one column of the rows"
            require(known and single, name, rule, side, ", ".join(rows.columns))
        return super()._planned_through(rows, y)

    def _fit_through(self, rows: TrainingRows, y: Any) -> Self:
        named = self._named()
        super(PrivateNuclearRegressor, named)._fit_through(rows, y)
        self.__dict__.update({name: value for name, value in vars(named).items() if name != "loss"})
        return self

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _choices(self) -> None:
        """Refuse wrong parameters before anything is read."""
        loss_of(self.loss)
        self._ordinary(self.radius, "radius")
        require(
            self.solver in solvers.SOLVERS, "solver", "one of " + ", ".join(repr(one) for one in solvers.SOLVERS), self.solver
        )
        if self.n_steps != "auto":
            whole(self.n_steps, "n_steps", least=1)  # type: ignore[arg-type]
            require(self.solver != "thesis", "n_steps", "'auto' for the thesis's constants", self.n_steps)
        for name, value in (("step", None if self.step == "auto" else self.step), ("curvature", self.curvature)):
            if value is not None:
                self._ordinary(value, name)
                require(self.solver == "pgd", name, "left alone but for solver='pgd'", value)
        require(self.matrix_free in {True, False}, "matrix_free", "True or False", self.matrix_free)
        require(not self.matrix_free or self.solver == "frank_wolfe", "matrix_free", "False but for 'frank_wolfe'", True)
        if self.shape is not None:
            _shape(self.shape)

    def _ordinary(self, value: Any, name: str) -> None:
        require(LEAST <= positive(value, name) <= MOST, name, f"between {LEAST:g} and {MOST:g}", value)

    def _settings(self, records: int) -> solvers.Settings:
        curvature = None if self.curvature is None else float(self.curvature)
        return solvers.Settings(
            self.solver,
            None if self.n_steps == "auto" else int(self.n_steps),
            curvature if self.step == "auto" else solvers.curvature_of_step(float(self.step)),
            self.matrix_free,
            1 if self.shape is not None else 1 << (2 * factor_bits(records)),
        )

    def _planned(self, goal: FitGoal, facts: Facts, rho: Fraction | None) -> solvers.SolverPlan:
        task = self._task(self._sides_of(facts), self._records_of(facts), goal)
        return solvers.plan_solver(self._settings(task.count), task, goal, solvers.distance(goal, rho))

    def _task(self, sides: tuple[int, int], records: int, goal: FitGoal) -> Task:
        return Task(loss_of(self.loss), float(self.radius), records, sides, goal.adjacency)

    def _records_of(self, facts: Facts) -> int:
        if facts.records is None:
            hint = "how many records there are is not public where they come and go"
            raise InvalidParameter.must_be("n_nominal", "declared under adjacency='add_or_remove_one'", None, hint)
        return facts.records

    def _sides_of(self, facts: Facts) -> tuple[int, int]:
        if isinstance(facts, MatrixFacts):
            return facts.sides
        return _shape(self.shape) if self.shape is not None else (len(self.left or ()), len(self.right or ()))

    def _named(self) -> Self:
        """A copy whose loss is a text, which files and ledgers can hold."""
        other = copy.copy(self)
        other.loss = loss_text(self.loss)
        return other

    def _begun(self, facts: Facts, goal: FitGoal) -> Streaming:
        plan = self._plan(goal, facts)
        task = self._task(self._sides_of(facts), self._records_of(facts), goal)
        settings = self._settings(task.count)
        schedule = stochastic_schedule(task, settings.limit, batch=solvers.batch_of(settings, task))
        releaser = Releaser(plan)
        run = Pass(schedule, releaser)
        return Streaming(run, facts, plan, releaser, np.zeros(task.shape, np.int64), self.get_params(deep=False))

    def _go_on(self, going: Streaming, records: Records) -> None:
        schedule = going.run.schedule
        total = schedule.task.count
        require(self.get_params(deep=False) == going.parameters, "parameters", "the same for a whole stream", "others")
        require(going.whole, "a stream", "begun anew after a call that failed: `fit` or a clone does", "an interrupted one")
        require(records.shape == schedule.task.shape, "A and B", f"of {schedule.task.shape} columns", records.shape)
        require(
            going.seen + len(records.targets) <= total,
            "the stream",
            f"of {total} records (n_nominal) in all",
            going.seen + len(records.targets),
        )
        going.whole = False
        refresh()
        solvers.stream(going, records)
        going.whole = True
        self.coef_, self.history_ = going.run.model.copy(), going.run.history.arrays()
        self.n_features_in_ = sum(schedule.task.shape)
        self.privacy_ = self._card(going.plan, going.releaser, replace(going.facts, records=total))

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_streaming"}


def _sides(A: Any, B: Any, shape: Any) -> tuple[Floats, Floats]:  # noqa: N803 -- matrices
    if A is None or B is None:
        raise InvalidParameter.must_be("A and B", "given", "nothing")
    return _check_array(A, "A", sides=1 if shape is not None else 2), _check_array(
        B, "B", sides=1 if shape is not None else 2
    )


def _check_array(values: Any, name: str, *, sides: int) -> Floats:
    require_numbers(values, name)
    try:
        found: Any = _checks.check_array(values, dtype=np.float64, ensure_2d=sides == 2, input_name=name)
    except (TypeError, ValueError) as problem:
        raise InvalidParameter(str(problem).strip().partition("\n")[0]) from None
    if found.ndim != sides:
        raise InvalidParameter.must_be(name, f"of {sides} dimension{'s' if sides > 1 else ''}", found.ndim)
    return found


def _same_length(*arrays: Floats) -> None:
    try:
        check_consistent_length(*arrays)
    except ValueError:
        raise InvalidParameter.must_be("A, B and y", "of one length", [len(array) for array in arrays]) from None


def _shape(shape: Any) -> tuple[int, int]:
    good = (
        isinstance(shape, (tuple, list))
        and len(shape) == 2
        and all(isinstance(one, (int, np.integer)) and one > 0 for one in shape)
    )
    require(good, "shape", "a pair of whole numbers above 0", shape)
    return int(shape[0]), int(shape[1])
