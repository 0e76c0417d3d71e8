"""The optimisers by their names: what each would release, how it runs, and what can be expected of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from curador.errors import require
from curador.learn.dry_run import DryRun
from curador.learn.nuclear.gradient import (
    BOLD,
    frank_wolfe_schedule,
    gradient_schedule,
    run_frank_wolfe,
    run_gradient,
    run_products,
)
from curador.learn.nuclear.stochastic import run_stochastic, run_thesis, stochastic_schedule, thesis_schedule
from curador.learn.nuclear.task import strength
from curador.learn.nuclear.tree import run_tree, tree_schedule
from curador.learn.plan import PlannedRelease, make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from curador.learn.nuclear.records import Records
    from curador.learn.nuclear.stochastic import Pass, Stochastic
    from curador.learn.nuclear.task import Task
    from curador.learn.plan import FitGoal
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats

_KEPT = {"toeplitz": 0.25, "tree": 2.0}
"""How much of the noise of a gradient, in the operator norm, a model keeps, by trial: many small steps average some of it."""

ONE_PASS = frozenset({"toeplitz", "tree", "stochastic", "thesis"})
"""Solvers in which a record counts at its own place."""

SOLVERS = ("pgd", "frank_wolfe", "toeplitz", "tree", "stochastic", "thesis")


@dataclass(frozen=True, slots=True)
class Settings:
    """What was chosen. limit: the largest |a| |b| of a record in grid steps."""

    solver: str
    steps: int | None
    curvature: float | None
    matrix_free: bool
    limit: int


@dataclass(frozen=True, slots=True)
class SolverPlan:
    """What a fit would release."""

    parts: Sequence[PlannedRelease]


@dataclass(frozen=True, slots=True)
class Solution:
    """The model of a fit, or its factors U, V with X = U V', and what could be watched."""

    model: Floats
    factors: tuple[Floats, Floats] | None
    history: dict[str, Floats]


class StreamedPass(Protocol):
    """A pass over a stream: how far it is, and what waits for a batch or for the head to be full."""

    run: Pass
    head: NDArray[np.int64]
    seen: int
    waiting: list[Records] | None


def distance(goal: FitGoal, rho: Fraction | None) -> float:
    """Return μ of a goal, or of a cost in zCDP; 0 for a pure one."""
    if goal.pure:
        return 0.0
    if rho is not None:
        return math.sqrt(2 * float(rho))
    from curador.privacy.gaussian import gaussian_mu

    return gaussian_mu(epsilon=float(goal.epsilon), delta=float(goal.delta))


def curvature_of_step(step: float) -> float:
    """Return the curvature for which "pgd" takes this step."""
    return BOLD / step


def plan_solver(settings: Settings, task: Task, goal: FitGoal, mu: float) -> SolverPlan:
    """Return what a fit would release. Reads no data."""
    pure_pass = goal.pure and settings.solver in ONE_PASS
    require(not pure_pass, "delta", f"above 0 for solver={settings.solver!r}", 0, "its noise is Gaussian")
    match settings.solver:
        case "pgd":
            schedule = gradient_schedule(
                task, strength(task, goal, mu), steps=settings.steps, curvature=settings.curvature, pure=goal.pure
            )
            return SolverPlan(schedule.parts)
        case "frank_wolfe":
            found = frank_wolfe_schedule(strength(task, goal, mu), steps=settings.steps, matrix_free=settings.matrix_free)
            return SolverPlan(found.parts)
        case "tree":
            return SolverPlan(tree_schedule(task, settings.limit, strength(task, goal, mu), phases=settings.steps).parts)
        case "thesis":
            return SolverPlan(thesis_schedule(task, goal).parts)
        case _:
            return SolverPlan(_pass(settings, task).parts)


def solve(settings: Settings, task: Task, records: Records, releaser: Releaser) -> Solution:
    """Return the model of a fit, by the plan that `planned` led to."""
    plan = releaser.plan
    counts = {part.name: part.count for part in plan.parts}
    match settings.solver:
        case "pgd":
            schedule = gradient_schedule(
                task, 1.0, steps=counts["gradient"], curvature=settings.curvature, pure=plan.goal.pure
            )
            found = run_gradient(task, schedule, records, releaser)
        case "frank_wolfe" if settings.matrix_free:
            products = frank_wolfe_schedule(1.0, matrix_free=True).products
            steps = frank_wolfe_schedule(1.0, steps=counts["product"] // products, matrix_free=True)
            model, tops = run_products(task, steps, records, releaser)
            history = {"step": np.arange(len(tops), dtype=np.float64), "gradient_norm": tops}
            return Solution(np.zeros((0, 0)), (model.left * (model.shares * task.radius), model.right), history)
        case "frank_wolfe":
            found = run_frank_wolfe(task, frank_wolfe_schedule(1.0, steps=counts["gradient"]), records, releaser)
        case "tree":
            schedule = tree_schedule(task, records.limit, strength(task, plan.goal, plan.mu), phases=settings.steps)
            found = run_tree(schedule, records, releaser)
        case "thesis":
            found = run_thesis(thesis_schedule(task, plan.goal), records, releaser)
        case _:
            found = run_stochastic(_pass(settings, task), records, releaser)
    return Solution(found.model, None, found.history)


def stream(going: StreamedPass, records: Records) -> None:
    """Take the next records of a stream: into the head while it is not full, then batch by batch.

    Claim  What a record does is decided by its place in the stream.
    """
    run, place = going.run, 0
    schedule, many = run.schedule, len(records.targets)
    grid = run.grid(records)
    if run.step == 0:
        place = min(many, schedule.head - going.seen)
        going.head = going.head + run.head(records.take(slice(0, place)))
        if going.seen + place == schedule.head:
            run.advance(going.head, grid)
            going.head = np.zeros_like(going.head)
    going.seen += many
    waiting = list(going.waiting or [])
    while place < many:
        wanted = schedule.batch - sum(len(one.targets) for one in waiting)
        waiting.append(records.take(slice(place, place + wanted)))
        place += len(waiting[-1].targets)
        if sum(len(one.targets) for one in waiting) == schedule.batch:
            exact = [run.batch(one) for one in waiting]
            run.advance(np.asarray(np.sum(exact, axis=0), np.int64), grid)
            waiting = []
    going.waiting = waiting


def batch_of(settings: Settings, task: Task) -> int:
    """Return the records of a step of one pass: one, or what a number of steps leaves."""
    if settings.steps is None:
        return 1
    require(2 * settings.steps <= task.count, "n_steps", "at most half the number of records", settings.steps)
    return task.count // (2 * settings.steps)


def _pass(settings: Settings, task: Task) -> Stochastic:
    return stochastic_schedule(task, settings.limit, batch=batch_of(settings, task), correlated=settings.solver == "toeplitz")


def notes(settings: Settings, *, bought: bool) -> Sequence[str]:
    """Return what a reader of the card should know. `bought`: whether second moments were released."""
    if settings.solver == "thesis":
        return ("the noise is the thesis's, far more than this guarantee needs",)
    if bought:
        return ("steps follow the second moments of a and b, which cost 1 % of the budget",)
    return ()


def forecast(settings: Settings, task: Task, goal: FitGoal, *, signal: float) -> DryRun:
    """Say what noise does to a mean gradient in the operator norm, and whether that leaves something to learn.

    What is lost to noise is about radius × that norm (a linear minimiser errs by twice it; averaging and curvature
    help); what X = 0 loses is about half of radius × the mean gradient there.
    """
    mu = distance(goal, None)
    chosen = plan_solver(settings, task, goal, mu)
    x = strength(task, goal, mu)
    sides = (math.sqrt(task.shape[0]) + math.sqrt(task.shape[1])) / math.sqrt(sum(task.shape))
    noise = task.loss.lipschitz * sides / x
    if settings.solver in {"toeplitz", "stochastic"}:
        schedule = _pass(settings, task)
        plan = make_plan(goal, chosen.parts)
        spread = plan.deviation("gradients", schedule.length * schedule.unit) * schedule.ladder.noise_norm(schedule.steps + 1)
        noise = spread * sides * math.sqrt(sum(task.shape))
    elif settings.solver == "thesis":
        noise = thesis_schedule(task, goal).sigma * sides * math.sqrt(sum(task.shape))
    lost, trivial = _KEPT.get(settings.solver, 1.0) * noise * task.radius, signal * task.loss.lipschitz * task.radius / 2
    needed = task.count * lost / trivial
    good = lost < trivial
    verdict = (
        "Worthwhile: noise is expected to cost less than what there is to learn."
        if good
        else f"Not worthwhile: noise hides the signal; about {needed:.2g} records, or as much more of epsilon, would do."
    )
    numbers = {
        "releases": float(sum(part.count for part in chosen.parts)),
        "signal over noise": x,
        "noise of the gradient": noise,
        "excess by noise, about": lost,
        "excess of X = 0, about": trivial,
        "records needed, about": needed,
    }
    return DryRun(good, verdict, numbers)
