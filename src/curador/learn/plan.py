"""The noise of a whole fit, decided before any data is seen: parts, each of some releases, and one guarantee over all.

Goal + parts ──► Plan: one noise multiplier a part ──► Releaser (release.py) ──► privacy card
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from curador.errors import InvalidParameter, require, sentence
from curador.privacy.losses import DiscreteGaussianVectorLoss, Pure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.learn.goal import Goal
    from curador.privacy.loss import Loss

STEPS = 1 << 10
"""The least sensitivity in grid steps that a release may have; what is accounted is noise on a grid as coarse as this."""

_DIMENSION = 1 << 40
_DIGITS = 1 << 60


@dataclass(frozen=True, slots=True)
class Part:
    """`count` releases of one kind, one after the other, each free to depend on those before; together `share` of the budget.

    share  of μ² (equally: of ρ) under Gaussian noise, of ε under Laplace noise; the shares of a plan are made to add up to 1
    """

    name: str
    share: float = 1.0
    count: int = 1


@dataclass(frozen=True)
class Plan:
    """The noise multipliers of a fit: scale of the noise over the sensitivity of one release, by the name of the part.

    Claim   Releases with these multipliers, `count` of each part, cost at most the goal, whatever each one depends on.
    Needs   The sensitivity of each release is at least STEPS grid steps, and it is in l2 (Gaussian) or l1 (Laplace).
    Rounds  Multipliers up, to 60 binary places.
    Source  Gaussian noise composes by adding ρ = 1/2z²; the loss is the exact one of discrete Gaussian noise on a grid as
            coarse as STEPS (docs/explanation/accounting.md, theorem 8), whose distance to the ideal law falls as grids get
            finer. Laplace: ε adds.
    """

    goal: Goal
    parts: tuple[Part, ...]
    multipliers: dict[str, Fraction]

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
        return sum((one.count / (2 * self.multipliers[one.name] ** 2) for one in self.parts), Fraction(0))

    @property
    def loss(self) -> Loss:
        """What the fit costs, as a loss."""
        return _loss(self.goal, self.parts, self.multipliers)

    def multiplier(self, name: str) -> Fraction:
        """Return the scale of one release of this part over its sensitivity."""
        return self.multipliers[name]

    def deviation(self, name: str, sensitivity: float) -> float:
        """Return the standard deviation of one number of a release, in units of the sensitivity. To display and to decide."""
        return float(self.multipliers[name]) * sensitivity * (1.0 if self.gaussian else math.sqrt(2.0))


def make_plan(goal: Goal, parts: Sequence[Part]) -> Plan:
    """Return the plan with the least noise, but for a part in 10⁷, that reaches the goal. Reads nothing but its arguments."""
    return _planned(goal, _checked(parts))


@lru_cache(maxsize=256)
def _planned(goal: Goal, parts: tuple[Part, ...]) -> Plan:
    if goal.pure:
        return Plan(goal, parts, {one.name: _up(Fraction(one.count) / (Fraction(one.share) * goal.epsilon)) for one in parts})
    from curador.privacy.gaussian import gaussian_mu

    mu = Fraction(gaussian_mu(epsilon=float(goal.epsilon), delta=float(goal.delta)))
    slack = Fraction(1, 10**7)
    while slack < 1:
        own = mu * (1 - slack)
        plan = Plan(goal, parts, {one.name: _up(Fraction(math.sqrt(one.count / one.share)) / own) for one in parts})
        if plan.loss.epsilon(delta=goal.delta) <= goal.epsilon:
            return plan
        slack *= 4
    given = f"{float(goal.epsilon)} and {float(goal.delta)}"
    raise InvalidParameter(sentence("epsilon and delta", "within reach of Gaussian noise", given))


def concentrated_plan(goal: Goal, rho: Fraction, parts: Sequence[Part]) -> Plan:
    """Return the plan that costs at most rho in zCDP."""
    found = _checked(parts)
    require(rho > 0, "rho", "above 0", rho)
    return Plan(
        goal, found, {one.name: _up(_root_up(Fraction(one.count) / (2 * rho * Fraction(one.share)))) for one in found}
    )


def _checked(parts: Sequence[Part]) -> tuple[Part, ...]:
    total = math.fsum(one.share for one in parts)
    if not parts or total <= 0 or any(one.share <= 0 or one.count < 1 for one in parts):
        message = "a plan needs parts with shares above 0 and at least one release each"
        raise AssertionError(message)
    shares = [Fraction(one.share) / Fraction(math.nextafter(total, math.inf)) for one in parts]
    # down, so that shares add up to at most 1
    floats = [math.nextafter(float(share), 0.0) if len(parts) > 1 else 1.0 for share in shares]
    return tuple(Part(one.name, share, one.count) for one, share in zip(parts, floats, strict=True))


def _loss(goal: Goal, parts: Sequence[Part], multipliers: dict[str, Fraction]) -> Loss:
    if goal.pure:
        return Pure(epsilon=goal.epsilon, relation=goal.adjacency)
    losses = [
        one.count
        * DiscreteGaussianVectorLoss(
            sigma2=(multipliers[one.name] * STEPS) ** 2,
            sensitivity_squared=STEPS**2,
            dimension=_DIMENSION,
            relation=goal.adjacency,
        )
        for one in parts
    ]
    whole = losses[0]
    for loss in losses[1:]:
        whole = whole + loss
    return whole


def _up(value: Fraction) -> Fraction:
    return Fraction(-(-value.numerator * _DIGITS // value.denominator), _DIGITS)


def _root_up(value: Fraction) -> Fraction:
    scaled = -(-value.numerator * _DIGITS**2 // value.denominator)
    root = math.isqrt(scaled)
    return Fraction(root if root * root == scaled else root + 1, _DIGITS)
