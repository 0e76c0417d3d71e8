"""What a fit may cost, and the noise of the whole fit, decided before any data is seen.

The goal    what a fit may cost: ε, δ and between which tables they hold.

The plan    the noise of a whole fit, decided before any data is seen: parts, each of some releases, one guarantee over all.

FitGoal + parts ──► FitPlan: one mechanism a part ──► Releaser (release.py) ──► seam ──► privacy card
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

from curador.errors import InvalidParameter, require
from curador.learn.oracles.bingham import BinghamDirection
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.numerics.exact import Number, positive, rational, root_up
from curador.privacy.adjacency import Adjacency, as_adjacency
from curador.privacy.losses import Pure
from curador.privacy.sensitivity import Norm, Sensitivity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.privacy.loss import Loss


# ---- goal ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FitGoal:
    """(ε, δ) for tables that differ by one record. δ = 0: pure."""

    epsilon: Fraction
    delta: Fraction
    adjacency: Adjacency

    @property
    def pure(self) -> bool:
        """Whether no δ may be spent."""
        return self.delta == 0


def goal_of(epsilon: Number | None, delta: Number | None, adjacency: Adjacency | str) -> FitGoal:
    """Return the goal that an estimator's parameters state, or refuse: nothing about privacy has a default."""
    if epsilon is None:
        raise InvalidParameter.must_be("epsilon", "given", "nothing", "how much one record may change what is released")
    if delta is None:
        raise InvalidParameter.must_be(
            "delta", "given", "nothing", "0 for pure privacy, else far below one in the number of records"
        )
    spent = rational(delta, "delta")
    if not 0 <= spent < 1:
        raise InvalidParameter.must_be("delta", "at least 0 and below 1", delta)
    return FitGoal(positive(epsilon, "epsilon"), spent, as_adjacency(adjacency))


# ---- plan ------------------------------------------------------------------------------------------------------------------


Additive: TypeAlias = DiscreteGaussian | DiscreteLaplace
"""What adds noise to exact integers."""

STEPS = 1 << 10
"""The least sensitivity in grid steps that a release may have; what is accounted is noise on a grid as coarse as this."""

MOST_NUMBERS = 1 << 40
"""The most numbers that a release may have; what is accounted is noise on a vector of so many."""

_DIGITS = 1 << 60


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """`count` releases of one kind, one after the other, each free to depend on those before; together `share` of the budget.

    share  of μ² (equally: of ρ) under Gaussian noise, of ε under Laplace noise; the shares of a plan are made to add up to 1
    drawn  whether releases are directions drawn by their score (oracles/bingham.py), and nothing is added; needs a pure goal
    """

    name: str
    share: float = 1.0
    count: int = 1
    drawn: bool = False


@dataclass(frozen=True)
class PlannedMechanism(PlannedRelease):
    """A part with the mechanism that makes each of its releases.

    mechanism  on the coarsest grid and for the most numbers that a release may have; of a direction: for a range of 1
    """

    mechanism: Additive | BinghamDirection = field(kw_only=True)

    @property
    def loss(self) -> Loss:
        """What the part's releases cost together."""
        return self.count * self.mechanism.loss

    @cached_property
    def multiplier(self) -> Fraction:
        """The scale of the noise over the sensitivity; of a direction, one over the range that is paid for."""
        match self.mechanism:
            case DiscreteGaussian(sigma=sigma):
                return sigma / STEPS
            case DiscreteLaplace(scale=scale):
                return scale / STEPS
            case BinghamDirection(span=span):
                return 1 / span


@dataclass(frozen=True)
class FitPlan:
    """The mechanisms of a fit, by the name of the part.

    Claim   Releases by these mechanisms, `count` of each part, cost at most the goal, whatever each one depends on.
    Needs   The sensitivity of each release is at least STEPS grid steps, and it is in l2 (Gaussian) or l1 (Laplace).
    Rounds  Multipliers up, to 60 binary places.
    Source  Gaussian noise composes by adding ρ = 1/2z²; the loss is the exact one of discrete Gaussian noise on a grid as
            coarse as STEPS (docs/explanation/accounting.md, theorem 8), whose distance to the ideal law falls as grids get
            finer. Laplace: ε adds.
    """

    goal: FitGoal
    parts: tuple[PlannedMechanism, ...]

    @property
    def gaussian(self) -> bool:
        """Whether noise is discrete Gaussian; else discrete Laplace."""
        return not self.goal.pure

    @property
    def mu(self) -> float:
        """√Σ count/z²: the fit is about as private as one Gaussian release at this distance. To display and to decide."""
        return math.sqrt(2 * float(self.rho)) if self.gaussian else float(self.goal.epsilon)

    @property
    def rho(self) -> Fraction:
        """What the fit costs in zCDP, exactly."""
        if not self.gaussian:
            return self.goal.epsilon**2 / 2
        return sum((part.count / (2 * part.multiplier**2) for part in self.parts), Fraction(0))

    @property
    def loss(self) -> Loss:
        """What the fit costs, as a loss: that of its mechanisms one after the other; of a pure goal, all of its ε.

        Claim   The ε of a pure plan's mechanisms add up to at most the goal's.
        """
        if self.goal.pure:
            return Pure(epsilon=self.goal.epsilon, adjacency=self.goal.adjacency)
        first, *others = (part.loss for part in self.parts)
        return sum(others, first)

    @cached_property
    def _by_name(self) -> dict[str, PlannedMechanism]:
        return {part.name: part for part in self.parts}

    def part(self, name: str) -> PlannedMechanism | None:
        """Return the part of this name; None where nothing of the kind was planned."""
        return self._by_name.get(name)

    def multiplier(self, name: str) -> Fraction:
        """Return the scale of one release of this part over its sensitivity."""
        return self._by_name[name].multiplier

    def mechanism(self, name: str, *, length: int, numbers: int) -> Additive:
        """Return what makes one release of this part, of so many integers, which one record moves by at most `length`.

        Claim   Its loss is at most that of the part's own mechanism, for which the plan accounts: the ratio of scale and
                sensitivity is the same or larger, the grid as fine or finer, the vector no longer.
        Needs   length ≥ STEPS; at most MOST_NUMBERS.
        Rounds  The scale up to a multiple of 2⁻²⁰: more noise by a part in 2³⁰, and tables with short numbers.
        """
        part = self._by_name[name]
        if isinstance(part.mechanism, BinghamDirection):
            raise InvalidParameter.must_be("noise", "added under a plan of noise", "one of directions")
        return _on_grid(part.mechanism, self.goal.adjacency, length, numbers)

    def direction(self, name: str, extent: float) -> BinghamDirection:
        """Return what draws one direction of this part, of a matrix whose change by one record has the range `extent`."""
        part = self._by_name[name]
        if not isinstance(part.mechanism, BinghamDirection):
            raise InvalidParameter.must_be("a direction", "drawn under a plan of directions", "one of noise")
        return BinghamDirection(span=part.mechanism.span, extent=extent, adjacency=part.mechanism.adjacency)

    def deviation(self, name: str, sensitivity: float) -> float:
        """Return the standard deviation of one number of a release, in units of the sensitivity. To display and to decide."""
        return float(self.multiplier(name)) * sensitivity * (1.0 if self.gaussian else math.sqrt(2.0))


def make_plan(goal: FitGoal, parts: Sequence[PlannedRelease]) -> FitPlan:
    """Return the plan with the least noise, but for a part in 10⁷, that reaches the goal. Reads nothing but its arguments."""
    return _least(goal, tuple(parts))


@lru_cache(maxsize=256)
def _least(goal: FitGoal, wanted: tuple[PlannedRelease, ...]) -> FitPlan:
    parts = _check_parts(goal, wanted)
    if goal.pure:
        scales = (Fraction(part.count) / (Fraction(part.share) * goal.epsilon) for part in parts)
        return FitPlan(goal, tuple(plan_release(goal, part, _up(scale)) for part, scale in zip(parts, scales, strict=True)))
    from curador.privacy.gaussian import gaussian_mu

    mu = Fraction(gaussian_mu(epsilon=float(goal.epsilon), delta=float(goal.delta)))
    slack = Fraction(1, 10**7)
    while slack < 1:
        own = mu * (1 - slack)
        plan = FitPlan(
            goal, tuple(plan_release(goal, part, _up(Fraction(math.sqrt(part.count / part.share)) / own)) for part in parts)
        )
        if plan.loss.epsilon(delta=goal.delta) <= goal.epsilon:
            return plan
        slack *= 4
    given = f"{float(goal.epsilon)} and {float(goal.delta)}"
    raise InvalidParameter.must_be("epsilon and delta", "within reach of Gaussian noise", given)


def concentrated_plan(goal: FitGoal, rho: Fraction, parts: Sequence[PlannedRelease]) -> FitPlan:
    """Return the plan that costs at most rho in zCDP."""
    require(rho > 0, "rho", "above 0", rho)
    found = _check_parts(goal, parts)
    scales = (_up(root_up(Fraction(one.count) / (2 * rho * Fraction(one.share)), _DIGITS)) for one in found)
    return FitPlan(goal, tuple(plan_release(goal, one, scale) for one, scale in zip(found, scales, strict=True)))


def plan_release(goal: FitGoal, part: PlannedRelease, multiplier: Fraction) -> PlannedMechanism:
    """Return the part with its mechanism: noise of `multiplier` sensitivities, or directions that span one over it."""
    return PlannedMechanism(
        part.name, part.share, part.count, part.drawn, mechanism=_mechanism(goal, multiplier, drawn=part.drawn)
    )


def _mechanism(goal: FitGoal, multiplier: Fraction, *, drawn: bool) -> Additive | BinghamDirection:
    if drawn:
        return BinghamDirection(span=1 / multiplier, extent=1.0, adjacency=goal.adjacency)
    scale, square = multiplier * STEPS, STEPS**2
    if goal.pure:
        return DiscreteLaplace(scale=scale, sensitivity=Sensitivity(square, Norm.L1, goal.adjacency))
    moves = Sensitivity(square, Norm.L2, goal.adjacency)
    return DiscreteGaussian(sigma=scale, sensitivity=moves, dimension=MOST_NUMBERS)


@lru_cache(maxsize=1024)
def _on_grid(coarse: Additive, adjacency: Adjacency, length: int, numbers: int) -> Additive:
    """The same mechanism on a finer grid; kept, since most parts make many releases alike."""
    if isinstance(coarse, DiscreteLaplace):
        moves = Sensitivity(length * length, Norm.L1, adjacency)
        return DiscreteLaplace(scale=_round_scale(coarse.scale * length / STEPS), sensitivity=moves)
    moves = Sensitivity(length * length, Norm.L2, adjacency)
    return DiscreteGaussian(sigma=_round_scale(coarse.sigma * length / STEPS), sensitivity=moves, dimension=max(numbers, 1))


def _check_parts(goal: FitGoal, parts: Sequence[PlannedRelease]) -> tuple[PlannedRelease, ...]:
    total = math.fsum(part.share for part in parts)
    if not parts or total <= 0 or any(part.share <= 0 or part.count < 1 for part in parts):
        message = "a plan needs parts with shares above 0 and at least one release each"
        raise AssertionError(message)
    if not goal.pure and any(part.drawn for part in parts):
        raise InvalidParameter.must_be("a direction", "drawn under a plan of directions", "one of Gaussian noise")
    shares = [Fraction(part.share) / Fraction(math.nextafter(total, math.inf)) for part in parts]
    # down, so that shares add up to at most 1
    floats = [math.nextafter(float(share), 0.0) if len(parts) > 1 else 1.0 for share in shares]
    return tuple(PlannedRelease(part.name, share, part.count, part.drawn) for part, share in zip(parts, floats, strict=True))


def _round_scale(scale: Fraction) -> Fraction:
    return Fraction(-(-scale.numerator * (1 << 20) // scale.denominator), 1 << 20)


def _up(value: Fraction) -> Fraction:
    return Fraction(-(-value.numerator * _DIGITS // value.denominator), _DIGITS)
