"""Directions drawn by bingham.py: what they cost, which concentration a goal allows, and several one after the other.

Between neighbours the log of the densities' ratio is β x'(A − A')x less a constant, so over all x it spans β R at most, R
being the largest difference between the eigenvalues of A − A'. From that alone:

    pure           ε = β R                                               for δ = 0, and for few directions
    bounded range  as the exponential mechanism; zCDP ≤ (β R)²/8         for many directions
    log-Sobolev    zCDP (β R)²/(2 (d − 2 − 2 β s))                       where β s < (d − 2)/2: hardly any signal left

Several directions come one after the other, each drawn in what the earlier ones leave over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from curador.errors import NumericalFailure, require
from curador.learn.plan import FitPlan, PlannedRelease, plan_release
from curador.learn.sums import Floats
from curador.numerics.rounding import down, up
from curador.privacy.adjacency import REPLACE_ONE, Adjacency
from curador.privacy.losses import BoundedRange, Concentrated

if TYPE_CHECKING:
    from curador.learn.plan import FitGoal
    from curador.learn.release import Releaser
    from curador.learn.sums import Whole
    from curador.privacy.loss import Loss


# ---- bingham cost ----------------------------------------------------------------------------------------------------------


Argument: TypeAlias = Literal["pure", "bounded_range", "concentrated", "log_sobolev"]


def range_of(rows: Whole, adjacency: Adjacency) -> float:
    """Return R for A = Σ v v' of rows: the square of their bound, twice that where records are replaced.

    Claim   A record that comes or goes adds a positive matrix with eigenvalues in [0, 1] of that unit; one that is replaced,
            a difference of two, with eigenvalues in [−1, 1].
    Needs   Weights of a record's rows, if any, with squares that add up to at most 1.
    Rounds  Up.
    """
    square = up((rows.limit * rows.step) ** 2, 4)
    return 2.0 * square if adjacency is REPLACE_ONE else square


def bounded_range_rho(extent: float) -> float:
    """Return the least zCDP of all mechanisms whose log-ratio spans `extent`: r − 1 − log r, r = extent/(1 − e^(−extent)).

    Claim   At most extent²/8; equality with the worst two-valued log-ratio was found by a scan (tests/unit/learn). Plans do
            not rest on it: their loss is the record BoundedRange, which the accountant bounds by itself.
    Source  [HM25]
    """
    require(extent >= 0, "the range", "at least 0", extent)
    if extent < 1e-3:  # the series: terms cancel
        return extent**2 / 8.0 * (1.0 - extent**2 / 72.0)
    ratio = extent / -math.expm1(-extent)
    return ratio - 1.0 - math.log(ratio)


def log_sobolev_rho(concentration: float, extent: float, *, size: int, spread: float) -> float:
    """Return the zCDP of one direction by the log-Sobolev inequality on the sphere: (β R)²/(2 (d − 2 − 2 β s)).

    extent  R, the range of a record's matrix;  spread  s, a public bound on max a − min a, for both neighbours
    Claim   The law of x has a log-Sobolev constant of d − 2 − 2 β s at least (the sphere's curvature d − 2, less what the
            density bends), and the log-ratio is β R-Lipschitz: Herbst's argument.
    Needs   β s < (d − 2)/2; s must not be read off the data.
    Rounds  Up.
    Source  [FM22, §3.1] with the sign of its potential, the spread for its eigenvalue and the Lipschitz constant corrected
    """
    curvature = down(size - 2.0 - 2.0 * concentration * spread, 4, of=float(size))
    require(curvature > 0, "concentration", f"below {(size - 2.0) / (2.0 * spread):.6g} for this argument", concentration)
    return up((concentration * extent) ** 2 / (2.0 * curvature), 8)


def thesis_rho(concentration: float, change: float, curvature: float) -> float:
    """Return 2 β² Δ²/ρ: the zCDP of one direction where a record changes A by at most Δ in operator norm."""
    return 2.0 * concentration**2 * change**2 / curvature


def thesis_concentration(epsilon: float, delta: float, *, change: float, curvature: float) -> float:
    """Return the β of the thesis's theorem: √(ρ/2)/4 · ε/(√log(1/δ) Δ).

    Needs   ε ≤ 8 log(1/δ).
    Source  [FM22, Thm. 3.1.2]
    """
    require(0 < epsilon <= -8.0 * math.log(delta), "epsilon", "at most 8 log(1/δ)", epsilon)
    return math.sqrt(curvature / 2.0) / 4.0 * epsilon / (math.sqrt(-math.log(delta)) * change)


@dataclass(frozen=True)
class DirectionPlan(FitPlan):
    """A plan whose releases are directions: a multiplier is 1/(β R).

    Claim   `count` directions at β R = 1/multiplier, each free to depend on those before, cost at most the goal.
    """

    argument: Argument
    one: Loss
    """What one direction costs."""

    @property
    def gaussian(self) -> bool:
        """No noise is added."""
        return False

    @property
    def rho(self) -> Fraction:
        """What the fit costs in zCDP, at most."""
        amounts = self.loss.concentrated
        return self.goal.epsilon**2 / 2 if amounts is None else amounts[0]

    @property
    def loss(self) -> Loss:
        """What the fit costs, as a loss."""
        return self.parts[0].count * self.one


def direction_plan(
    goal: FitGoal,
    name: str,
    *,
    count: int = 1,
    size: int | None = None,
    spread: float | None = None,
    rho: Fraction | None = None,
) -> DirectionPlan:
    """Return the plan of `count` directions with the largest β R among the arguments that hold.

    size    of the sphere, with
    spread  a public bound on (max a − min a)/R: only with both is the log-Sobolev argument tried. Where directions are drawn
            one after the other, the size is the last sphere's. A bound that holds for every table: where any number of
            records may come there is none
    rho     what they may cost in zCDP, where that is what a ledger counts; then no other argument is tried
    Claim   The certified loss of the plan is at most the goal. Without δ directions share ε. With δ they cost what
            directions of a bounded range cost together, or their zCDP if that allows more: from about ten directions on.
    Source  [DDR20] for composition, [CR21] for zCDP
    """
    require(count >= 1, "count", "at least 1", count)
    if goal.pure:
        one = BoundedRange(epsilon=goal.epsilon / count, adjacency=goal.adjacency)
        return _plan(goal, name, count, "pure", goal.epsilon / count, one)
    from curador.privacy.convert import rho_for

    each = (rho_for(epsilon=goal.epsilon, delta=goal.delta) if rho is None else rho) / count
    extent = Fraction(down(math.sqrt(8.0 * float(each)), 8))
    own = Concentrated(rho=extent**2 / 8, adjacency=goal.adjacency)
    made = [_plan(goal, name, count, "concentrated", extent, own)]
    if rho is not None:
        return made[0]
    made.append(_largest_range(goal, name, count))
    if size is not None and spread is not None:
        curved = _largest_curve(float(each), size, spread)
        if curved > 0:
            own = Concentrated(rho=Fraction(log_sobolev_rho(curved, 1.0, size=size, spread=spread)), adjacency=goal.adjacency)
            made.append(_plan(goal, name, count, "log_sobolev", Fraction(curved), own))
    held = [one for one in made if one.loss.epsilon(delta=goal.delta) <= goal.epsilon]
    if not held:
        raise NumericalFailure("a concentration for this goal could not be certified")
    return min(held, key=lambda one: one.multiplier(name))


def _plan(goal: FitGoal, name: str, count: int, argument: Argument, extent: Fraction, one: Loss) -> DirectionPlan:
    return DirectionPlan(goal, (plan_release(goal, PlannedRelease(name, 1.0, count, drawn=True), 1 / extent),), argument, one)


def _largest_range(goal: FitGoal, name: str, count: int) -> DirectionPlan:
    """The largest range that the accountant allows: cost grows almost in proportion, so a few proportional steps find it."""
    kept = tried = goal.epsilon / count
    for _ in range(4):
        cost = (count * BoundedRange(epsilon=tried, adjacency=goal.adjacency)).epsilon(delta=goal.delta)
        kept = max(kept, tried) if cost <= goal.epsilon else kept
        tried = Fraction(down(float(tried * goal.epsilon) / cost * (1.0 - 1e-6), 4))
    return _plan(goal, name, count, "bounded_range", kept, BoundedRange(epsilon=kept, adjacency=goal.adjacency))


def _largest_curve(rho: float, size: int, spread: float) -> float:
    """The root e > 0 of e²/(2 (d − 2 − 2 e s)) = ρ, a part in 10⁹ below: e = β R, s the spread over R."""
    if size <= 2:
        return 0.0
    slope = 2.0 * rho * spread
    return (-slope + math.sqrt(slope**2 + 2.0 * rho * (size - 2.0))) * (1.0 - 1e-9)


def concentration(plan: FitPlan, name: str, extent: float) -> float:
    """Return β for records of range `extent` = R under a plan of directions: 1/(multiplier · R). Rounds: down."""
    return plan.direction(name, extent).concentration


def alignment(size: int, strength: float) -> float:
    """Return E (v·x)² for density ∝ exp(strength · (v·x)²): what one direction of a single spike finds of it, for forecasts.

    1F1(3/2; d/2 + 1; κ)/(d 1F1(1/2; d/2; κ)), by the trapezoidal rule on the angle in logarithms: no term overflows.
    """
    if size == 1:
        return 1.0
    mode = math.acos(math.sqrt(min(1.0, (size - 2.0) / (2.0 * strength)))) if strength > 0 else 0.0
    width = 60.0 / math.sqrt(max(strength, size)) + 8.0 / size**0.25
    angles = np.linspace(max(0.0, mode - width), min(math.pi / 2.0, mode + width), 20_001)
    with np.errstate(divide="ignore"):
        log = strength * np.sin(angles) ** 2 + ((size - 2.0) * np.log(np.cos(angles)) if size > 2 else 0.0)
    weights = np.exp(log - log.max())
    weights[[0, -1]] /= 2.0
    return float((weights * np.sin(angles) ** 2).sum() / weights.sum())


# ---- directions ------------------------------------------------------------------------------------------------------------


def direction(releaser: Releaser, name: str, matrix: Floats, *, extent: float) -> Floats:
    """Draw one direction of a symmetric matrix; one release of `name`.

    extent  R: how far apart the eigenvalues of one record's change of the matrix are at most (`range_of`)
    Claim   Costs one direction of the releaser's plan: its log-ratio spans at most β R = 1/multiplier. In real arithmetic.
    Needs   A plan of directions: `direction_plan`, or `make_plan` of a goal without δ with a part that is `drawn`.
    """
    return releaser.direction(name, matrix, extent=extent)


def directions(releaser: Releaser, name: str, matrix: Floats, *, extent: float, count: int) -> Floats:
    """Draw `count` orthonormal directions, as rows; `count` releases of `name`.

    Claim   Each is a direction of Q'AQ, Q a public basis of what is orthogonal to the earlier ones: eigenvalues of Q'(A −
            A')Q lie between those of A − A', so R is the same.
    """
    size = len(matrix)
    found = np.empty((min(count, size), size))
    rest = np.eye(size)  # columns span what is left
    for index in range(len(found)):
        left = rest.shape[1]
        if left == 1:  # no choice is left; the sphere has two points, and the sign is free
            found[index] = rest[:, 0]
            break
        inner = direction(releaser, name, rest.T @ matrix @ rest, extent=extent)
        found[index] = rest @ inner
        complete = np.linalg.qr(np.column_stack([inner, np.eye(left)]))[0]
        rest = rest @ complete[:, 1:left]
    return found
