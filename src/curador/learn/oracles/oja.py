"""Oja's iteration with noise, for reproducing the thesis [FM22, Alg. 3]: x ← x + η (A x + σ g), made of length 1 again.

thesis  σ by two nested compositions and η = 1/(T σ √d), as printed. The noise is far more than needed, and so small a step
        hardly leaves the start.
tight   σ for T Gaussian releases composed at once, and η = 1/(σ √(dT)), with which the noise of all steps adds up to length
        1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from curador.errors import InvalidParameter, require
from curador.learn.oracles.analyze_gauss import generic_block
from curador.learn.oracles.power import release_product
from curador.learn.plan import FitPlan, PlannedRelease, concentrated_plan, make_plan, plan_release

if TYPE_CHECKING:
    from curador.learn.oracles.power import Product
    from curador.learn.plan import FitGoal
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats

Accountant: TypeAlias = Literal["thesis", "tight"]


def thesis_sigma(epsilon: float, delta: float, steps: int, sensitivity: float = 1.0) -> float:
    """Return σ as Algorithm 3 prints it: 2 log(1.25/δ) · 2 √(2 T log(1/δ)) · Δ / ε.

    Claim   T steps are (ε, (T+1) δ)-private, with much to spare while δ < 0.75. δ is that of one step.
    Source  [FM22, Alg. 3, line 1]; the root of its Gaussian mechanism is missing, which adds noise
    """
    return 2.0 * math.log(1.25 / delta) * 2.0 * math.sqrt(2.0 * steps * math.log(1.0 / delta)) * sensitivity / epsilon


def restored_sigma(epsilon: float, delta: float, steps: int) -> float:
    """Return the same with the root of the Gaussian mechanism restored: √(2 log(1.25/δ)) · 2 √(2 T log(1/δ)) / ε."""
    return math.sqrt(2.0 * math.log(1.25 / delta)) * 2.0 * math.sqrt(2.0 * steps * math.log(1.0 / delta)) / epsilon


def composed_sigma(epsilon: float, delta: float, steps: int) -> float:
    """Return √T · σ(ε, (T+1) δ) of the exact Gaussian curve: what T steps need for the same guarantee.

    Rounds  Up.
    """
    from curador.privacy.gaussian import gaussian_mu

    return math.sqrt(steps) / gaussian_mu(epsilon=epsilon, delta=(steps + 1) * Fraction(str(delta)))


def thesis_plan(goal: FitGoal, steps: int, *, name: str = "product", rho: Fraction | None = None) -> FitPlan:
    """Return the plan of T products with the thesis's noise, accounted by what it really costs.

    Claim   Its multiplier is the printed one for a step's δ = goal δ/(T+1), and never below the one that the goal needs: the
            guarantee is that of the exact accountant, not of the printed argument. The plan's ρ says how little is spent.
    Needs   δ > 0.
    Rounds  Up.
    """
    _require_delta(goal)
    require(steps >= 1, "steps", "at least 1", steps)
    needed = _plan_products(goal, steps, name, rho)
    printed = thesis_sigma(float(goal.epsilon), float(goal.delta) / (steps + 1), steps)
    multiplier = max(Fraction(printed), needed.multiplier(name))
    return FitPlan(goal, tuple(plan_release(goal, part, multiplier) for part in needed.parts))


def oja_plan(
    goal: FitGoal, steps: int, *, accountant: Accountant, name: str = "product", rho: Fraction | None = None
) -> FitPlan:
    """Return the plan of T products by the accountant's name; `rho`: what they may cost where a ledger counts zCDP."""
    if accountant not in {"thesis", "tight"}:
        raise InvalidParameter.must_be("accountant", "'thesis' or 'tight'", accountant)
    if accountant == "thesis":
        return thesis_plan(goal, steps, name=name, rho=rho)
    _require_delta(goal)
    return _plan_products(goal, steps, name, rho)


@dataclass(frozen=True, slots=True)
class Iterate:
    """Where Oja's iteration ended: a unit vector, and the step η that it took."""

    direction: Floats
    step: float


def oja(
    releaser: Releaser,
    name: str,
    product: Product,
    *,
    size: int,
    steps: int,
    accountant: Accountant,
    shift: float = 0.0,
    start: Floats | None = None,
) -> Iterate:
    """Return the end of T noisy steps; T releases of `name`.

    product  x ↦ A x with a public unit vector, exactly (power.py)
    shift    a public L: A + L I is iterated, as the thesis does for matrices that need not be positive
    start    a public unit vector
    Claim    Costs what the releaser's plan says: one of `oja_plan`.
    """
    place = generic_block(size, 1)[:, 0] if start is None else start / np.linalg.norm(start)
    width = 0.0
    for _ in range(steps):
        exact = product(place[:, None])
        image = release_product(releaser, name, exact).ravel()
        deviation = releaser.deviation(name, length=exact.length, step=exact.step)
        width = step_of(deviation, size, steps, accountant=accountant)
        moved = place + width * (image + shift * place)
        place = moved / max(float(np.linalg.norm(moved)), np.finfo(np.float64).tiny)
    return Iterate(place, width)


def step_of(deviation: float, size: int, steps: int, *, accountant: Accountant) -> float:
    """Return η: 1/(T σ √d) as printed, or 1/(σ √(dT))."""
    return 1.0 / (deviation * math.sqrt(size) * (steps if accountant == "thesis" else math.sqrt(steps)))


def _plan_products(goal: FitGoal, steps: int, name: str, rho: Fraction | None) -> FitPlan:
    parts = [PlannedRelease(name, count=steps)]
    return make_plan(goal, parts) if rho is None else concentrated_plan(goal, rho, parts)


def _require_delta(goal: FitGoal) -> None:
    if goal.pure:
        raise InvalidParameter.must_be("delta", "above 0 for Oja's iteration", 0, "its noise is Gaussian")
