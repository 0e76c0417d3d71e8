"""A whole claimed profile against what samples prove: δ at several ε, and Rényi divergences of several orders.

An ε alone is one point of a claim. A loss also says δ(ε) everywhere and D_α at every order, and all of that is composed,
converted and charged; so all of it can be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit.hockey_stick import CONFIDENCE, DeltaBound, bounded_epsilon, delta_bound, error_of
from curador.audit.partition import FEWEST, Parted, part_scores
from curador.audit.renyi_tester import RenyiBound, renyi_bound
from curador.errors import InvalidParameter, require
from curador.numerics.exact import Number, whole
from curador.privacy.loss import Loss
from curador.privacy.renyi import order_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

ORDERS: tuple[Number, ...] = (1, "1.5", 2, 4, 8, 16, 32)
"""Orders of Rényi divergences that are looked at, unless asked otherwise."""

POINTS = 9
"""How many ε are looked at, unless asked otherwise: evenly from 0 to where the claimed δ is a hundredth."""

Score = Callable[[Any], Any]
"""Outputs of many releases → one number, or one row of numbers, each."""


@dataclass(frozen=True, slots=True)
class ProfilePoint:
    """One point of a claim, and what the samples prove there: δ at an ε, or a divergence at an order."""

    at: float
    claimed: float
    bound: float
    by: str

    @property
    def ratio(self) -> float:
        """The bound over the claim: at most 1, and near it where worlds and samples suffice; NaN where nothing is claimed."""
        return self.bound / self.claimed if 0.0 < self.claimed < math.inf else math.nan

    @property
    def holds(self) -> bool:
        """Whether the bound leaves the claim standing."""
        return self.bound <= self.claimed


@dataclass(frozen=True, slots=True)
class Divergences:
    """A claimed profile and a claimed Rényi curve against the samples; all of it holds together with `confidence`."""

    name: str
    samples: int
    confidence: float
    deltas: tuple[ProfilePoint, ...]
    renyi: tuple[ProfilePoint, ...]

    @property
    def violations(self) -> tuple[str, ...]:
        """A sentence for every point that is refuted."""
        return (
            *(f"{self.name}: δ ≥ {p.bound:.4g} at ε = {p.at:.4g}, claimed {p.claimed:.4g}, by {p.by}"
              for p in self.deltas if not p.holds),
            *(f"{self.name}: Rényi divergence ≥ {p.bound:.4g} at order {p.at:g}, claimed {p.claimed:.4g}, by {p.by}"
              for p in self.renyi if not p.holds),
        )  # fmt: skip

    @property
    def holds(self) -> bool:
        """Whether every point of the claim stands."""
        return not self.violations

    def __str__(self) -> str:
        """A table of both curves."""
        lines = [f"{self.name}: {self.samples:,} releases a world, confidence {self.confidence:.12g} for all lines together"]
        for head, points in (("ε", self.deltas), ("order", self.renyi)):
            what = "δ" if head == "ε" else "D"
            lines.append(f"{head:>10} {f'{what} claimed':>12} {f'{what} at least':>12} {'ratio':>7}")
            for point in points:
                ratio = "" if math.isnan(point.ratio) else f"{point.ratio:.3f}"
                mark = "" if point.holds else "  REFUTED"
                lines.append(f"{point.at:>10.4g} {point.claimed:>12.4g} {point.bound:>12.4g} {ratio:>7}{mark}")
        return "\n".join(lines)


def divergences(
    mechanism: Any,
    world0: Any,
    world1: Any,
    samples: int = 200_000,
    *,
    score: Score | None = None,
    epsilons: Sequence[Number] | None = None,
    orders: Sequence[Number] = ORDERS,
    confidence: Number = CONFIDENCE,
) -> Divergences:
    """Return the claimed δ(ε) and Rényi curves of a mechanism beside lower bounds from releases in two neighbouring worlds.

    The mechanism has `release_many(world, size=…)` and a `loss`; `score` makes numbers of outputs that are none, and a good
    one (a likelihood ratio) makes the bounds sharp. How sharp they can be also depends on the worlds: the claim is about all.

    Claim   If the loss is true, any point is reported as refuted with probability at most 1 − confidence: each of the points
            is tested with its share of that.
    Needs   world0 and world1 are neighbours, as the loss means them.
    Source  `hockey_stick`, `renyi`.
    """
    size = whole(samples, "samples", least=FEWEST)
    loss: Any = getattr(mechanism, "loss", None)
    release: Any = getattr(mechanism, "release_many", None)
    if not isinstance(loss, Loss) or not callable(release):
        raise InvalidParameter.must_be("mechanism", "one with a loss and release_many", type(mechanism).__name__)
    drawn: list[Any] = [release(world, size=size) for world in (world0, world1)]
    scored = drawn if score is None else [score(outputs) for outputs in drawn]
    name = type(mechanism).__name__
    return compare_divergences(name, loss, *scored, epsilons=epsilons, orders=orders, confidence=confidence)


def compare_divergences(
    name: str,
    loss: Loss,
    samples0: NDArray[Any],
    samples1: NDArray[Any],
    *,
    epsilons: Sequence[Number] | None = None,
    orders: Sequence[Number] = ORDERS,
    confidence: Number = CONFIDENCE,
) -> Divergences:
    """Return what `divergences` does, of samples that are drawn already."""
    error = error_of(confidence)
    places = _places(loss) if epsilons is None else [bounded_epsilon(epsilon) for epsilon in epsilons]
    alphas = [order_of(alpha) for alpha in orders]
    require(len(places) + len(alphas) > 0, "epsilons and orders", "at least one together", "none")
    scores: Parted = part_scores(samples0, samples1)
    share = error / (len(places) + len(alphas))
    deltas = [delta_bound(scores, place, share) for place in places]
    curve = [renyi_bound(scores, alpha, share) for alpha in alphas]
    return Divergences(
        name,
        min(len(samples0), len(samples1)),
        float(1.0 - error),
        tuple(_delta_point(bound, loss) for bound in deltas),
        tuple(_renyi_point(bound, loss) for bound in curve),
    )


def _delta_point(bound: DeltaBound, loss: Loss) -> ProfilePoint:
    return ProfilePoint(bound.epsilon, bound.claimed(loss), bound.delta, bound.event)


def _renyi_point(bound: RenyiBound, loss: Loss) -> ProfilePoint:
    return ProfilePoint(bound.alpha, bound.claimed(loss), bound.divergence, bound.test)


def _places(loss: Loss) -> list[Any]:
    """ε from 0 to where the claimed δ is a hundredth, to four digits: the same decimals for the claim and the test."""
    last = loss.epsilon("1e-2")
    last = last if 0.0 < last < 50.0 else 1.0
    return [bounded_epsilon(f"{float(place):.4g}") for place in np.linspace(0.0, last, POINTS)]
