"""Shuffled reports of many people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from attrs import field, frozen

from curador.errors import NotPrivate, require
from curador.numerics.exact import AT_LEAST_ZERO, Number, rational, whole
from curador.numerics.rounding import UNIT, FloatArray, Interval, float_up, up
from curador.privacy.adjacency import REPLACE_ONE, Adjacency, as_adjacency
from curador.privacy.convert import pure_to_rho
from curador.privacy.kinds.promises import Pure, basic_of_pure
from curador.privacy.laws.shuffled import MOST_ALONE, MOST_COMPOSED, log_moments, rho_bound, twins
from curador.privacy.laws.side import Direction, Sides
from curador.privacy.loss import Loss, Scheme
from curador.privacy.rules import (
    AddsToCurve,
    AmountPair,
    Curve,
    OwnReading,
    Traits,
    adjacency_word,
    basic_amounts,
    closed_tradeoff,
    cut_bound,
    describe,
    exact_rows,
    gaussian_squares,
    grouped,
    law,
    mean_loss,
    noise_cells,
    own_curve,
    own_reading,
    renyi_stand_in,
    say_nothing,
    single_concentrated,
    single_pure,
    store_as,
    two_faced,
    unsampled,
)
from curador.privacy.shuffle import MOST_REPORTS, delta_bounds, epsilon_bounds, stronger_lottery

MOST_DIRECT = 10**7
"""Reports up to which one shuffle is summed directly; from there on its cells are as narrow, and sooner done."""

MANY = 100
"""Reports from which on one shuffle's own sum is asked alone."""


def _reports(reports: Number) -> int:
    count = whole(reports, "reports")
    require(count <= MOST_REPORTS, "reports", f"at most {MOST_REPORTS}", count)
    return count


def _variation(variation: Number | None) -> Fraction | None:
    if variation is None:
        return None
    exact = rational(variation, "variation")
    require(0 <= exact <= 1, "variation", "between 0 and 1", variation)
    return exact


def _replaced(adjacency: Adjacency | str) -> Adjacency:
    one = as_adjacency(adjacency)
    require(one is REPLACE_ONE, "adjacency", "replace_one: the number of reports is public", one)
    return one


@frozen(kw_only=True)
class Shuffled(Loss):
    """The shuffled reports of n people who use one ε-private local randomizer, one report each.

    Claim   Towards one person, who is replaced, they lose at most what the pair of the source does; it stands for the
            record, so lower ends are those of the pair. `variation`, where it is known, bounds the total variation between
            the randomizer's outputs on any two inputs; it is never above tanh(ε/2), which None stands for.
    Needs   n is public and the same in both worlds; the order is uniformly random and tells nothing.
    Source  docs/explanation/shuffling.md, theorem 1, for every randomizer that all n share. Without a variation the pair is
            that of [FMT22], which by its erratum proves it for a class of randomizers only.
    """

    epsilon0: Fraction = field(alias="epsilon", converter=AT_LEAST_ZERO)
    reports: int = field(converter=_reports)
    variation: Fraction | None = field(default=None, converter=_variation)
    adjacency: Adjacency = field(default=REPLACE_ONE, converter=_replaced)

    @property
    def tells_nothing(self) -> bool:
        """Whether no report depends on its sender's value."""
        return self.epsilon0 == 0 or self.variation == 0


store_as(
    "Shuffled",
    Shuffled,
    write=lambda loss: {
        "epsilon": str(loss.epsilon0),
        "reports": loss.reports,
        "variation": None if loss.variation is None else str(loss.variation),
        "relation": adjacency_word(loss.adjacency),
    },
    read=lambda has: Shuffled(
        epsilon=has.pop("epsilon"),
        reports=has.pop("reports"),
        variation=has.pop("variation", None),
        adjacency=has.pop("relation", REPLACE_ONE),
    ),
)
describe(
    Shuffled,
    Traits(
        directional=False,
        gaussian=False,
        attains_pure=True,
        attains_infinity=True,
        follows_a_line=False,
        long_rho=True,
        reads_itself=True,
    ),
)
two_faced.is_always(True, Shuffled)
say_nothing(
    Shuffled,
    closed_tradeoff,
    cut_bound,
    exact_rows,
    gaussian_squares,
    noise_cells,
    renyi_stand_in,
)


@single_pure.of(Shuffled)
def _(record: Shuffled) -> Fraction | None:
    """Claim: ε, that of one report: shuffling is post-processing. The pair attains it, where every label is +."""
    return Fraction(0) if record.tells_nothing else record.epsilon0


@single_concentrated.of(Shuffled)
def _(record: Shuffled) -> AmountPair | None:
    """Claim: sup over α of D_α/α, from above on a grid of orders, and never more than ε tanh(ε/2). Rounds: up."""
    pure = pure_to_rho(Fraction(0) if record.tells_nothing else record.epsilon0)
    if record.tells_nothing or record.reports == 1:
        return pure, Fraction(0)
    return min(pure, Fraction(rho_bound(record.epsilon0, record.reports, record.variation))), Fraction(0)


basic_amounts.of(Shuffled)(basic_of_pure)


@law.of(Shuffled)
def _(record: Shuffled, count: int, direction: Direction, out: Sides) -> None:
    """Claim: twins of the pair that dominates, which has mirror worlds. Source: docs/explanation/shuffling.md."""
    del direction
    if record.tells_nothing:
        return
    most = MOST_ALONE if count == 1 else MOST_COMPOSED
    both = twins(record.epsilon0, record.reports, record.variation, most)
    out.above.others.append(both.above if count == 1 else replace(both.above, count=count))
    out.above.infinite(Fraction(0), Fraction(both.beyond), count)  # anywhere above all losses; at ε₀ it would drown the sum
    out.below.others.append(both.below if count == 1 else replace(both.below, count=count))


@dataclass(frozen=True, slots=True)
class ShuffledReading:
    """One shuffle by itself: its sum over the number of people who hide the person, with no cells."""

    record: Shuffled

    @property
    def suffices(self) -> bool:
        """Whether the other readings need not be asked: among many people the way by Rényi's orders is longer by far."""
        return self.record.reports >= MANY

    def epsilon(self, delta: float) -> Interval:
        """Return the interval of ε at δ."""
        return epsilon_bounds(stronger_lottery, self.record.epsilon0, self.record.reports, Fraction(delta))

    def delta(self, epsilon: float, last: float | None = None) -> Interval:
        """Return the interval of δ at ε, or of all δ between ε and `last`."""
        ends = [self._delta(point) for point in ({epsilon} if last is None else {epsilon, last})]
        return Interval(min(end.lower for end in ends), max(end.upper for end in ends))

    def _delta(self, epsilon: float) -> Interval:
        return delta_bounds(stronger_lottery, self.record.epsilon0, self.record.reports, Fraction(epsilon))


@own_reading.of(Shuffled)
def _(record: Shuffled) -> OwnReading | None:
    short = record.variation is None and record.reports <= MOST_DIRECT
    return ShuffledReading(record) if short else None


@own_curve.of(Shuffled)
def _(record: Shuffled) -> AddsToCurve | None:
    del record
    return _with_shuffles


def _with_shuffles(rest: Curve, shuffles: list[tuple[Shuffled, int]]) -> Curve:
    """Shuffles by their own moments: their laws cut a tail off, which a curve would count as infinite."""

    def divergence(alpha: FloatArray) -> FloatArray:
        orders = np.asarray(alpha, dtype=np.float64)
        total = rest.divergence(orders)
        finite = np.isfinite(orders) & (orders > 1.0)
        theta = np.where(finite, orders - 1.0, 1.0)
        for record, count in shuffles:
            if not record.tells_nothing:
                top = float_up(record.epsilon0)
                one = log_moments(record.epsilon0, record.reports, record.variation, theta) / theta
                total = total + count * np.where(finite, np.minimum(one, top), top) * (1.0 + 8 * UNIT)
        return total

    return Curve(divergence, rest.infinite)


@mean_loss.of(Shuffled)
def _(record: Shuffled) -> float | None:
    """E_P[L] = E_M[2 V artanh V], a convex function of V: that of the law above is no smaller."""
    if record.tells_nothing:
        return 0.0
    both = twins(record.epsilon0, record.reports, record.variation, MOST_COMPOSED)
    rising = both.above.losses > 0.0
    losses, masses = both.above.losses[rising], both.above.masses[rising]
    inside = float((masses * losses * -np.expm1(-losses)).sum()) * (1.0 + both.above.error + UNIT * len(losses))
    return up(inside + both.beyond * float_up(record.epsilon0), 16)


@grouped.of(Shuffled)
def _(record: Shuffled, size: int) -> Loss:
    """Claim: each report is ε-private whatever becomes of the others."""
    return Pure(epsilon=0 if record.tells_nothing else record.epsilon0 * size, adjacency=record.adjacency)


@unsampled.of(Shuffled)
def _(record: Shuffled, scheme: Scheme) -> NotPrivate | None:
    del record, scheme
    return NotPrivate(
        "no subsampling rule is proved for Shuffled: how many reports there are would depend on the sample.",
        hint="reports = the least number that takes part.",
    )
