"""What a plan costs: noise for every measurement, chosen so that the whole question costs no more than was granted.

A plan with its noise is what is charged, run and stored; under which names it is stored stands at the end.

granted as      measurements                        private keys           cost
pure            discrete Laplace                    refused when planned   Σ ε
concentrated    discrete Gaussian                   Gaussian threshold     (Σ ρ, δ)
laplace         discrete Laplace: pure by itself    Laplace threshold      (Σ ρ of pure noise, δ), in an (ε, δ) study

Order statistics are drawn by the exponential mechanism everywhere; their error bars are tested with noise of the kind that
the others have. Private keys get a quarter of the spend, the rest is divided over the distinct measurements, equally or by
weights. The cost is a function of plan and grant only.

Names in canonical texts, in the keys of paid answers and in receipts are a contract, as those of `query/tree.py`: they are
for ever, and a new attribute is written only where it is not what every plan before it meant.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as OneOf

from curador.errors import InvalidParameter, NotPrivate, require
from curador.mechanisms.bracket import DRAWN_MISS, QuantileNoise
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.grid import round_down, round_up
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys
from curador.mechanisms.laplace import DiscreteLaplace
from curador.mechanisms.quantile import Quantile
from curador.numerics.exact import root_down
from curador.plan.model import Cap, Contribution, Grid, KeyPlan, Measurement, Tally, measurements_of
from curador.plan.parts import most_parts
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import Loss, compose
from curador.privacy.sensitivity import Norm, Sensitivity
from curador.query.tree import written_node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from curador.plan.model import BlockPlan, Plan
    from curador.query.tree import StoredForm

KEYS_SHARE = Fraction(1, 4)
"""What private keys get of a question's spend."""

POINT_SHARES = {"concentrated": Fraction(1, 5), "laplace": Fraction(1, 6), "pure": Fraction(1, 6)}
"""What the point of a quantile gets of the quantile's spend, by itself; its ends share the rest."""

PART_SHARE = Fraction(1, 8)
"""What it gets inside an expression of several parts, whose ends must be surer."""

DRAWN_SHARE = Fraction(1, 4)
"""What drawing an end far out gets of that end's spend; the tests that move it in get the rest."""

TEST_SHARES = {"concentrated": (1, 3, 9), "laplace": (1, 2, 4), "pure": (1, 2, 4)}
"""How the tests of one end share it: each is about twice as sharp as the one before."""

BAR_MISS = Fraction(1, 20)
"""That a quantile's interval misses: 5 %, less where it is a part of an expression of several."""

MOST_WEIGHT = 1000
_MOST_VARIANCE = 1 << 240

GrantKind: TypeAlias = OneOf["pure", "concentrated", "laplace"]


Noise: TypeAlias = DiscreteLaplace | DiscreteGaussian | QuantileNoise
KeyNoise: TypeAlias = GaussianKeys | LaplaceKeys


@dataclass(frozen=True)
class Priced:
    """A plan with its noise: what is charged, run and stored. What follows from its noise is computed once.

    kind        how its cost was granted
    amount      what it may cost: ε (pure, laplace) or ρ (concentrated)
    delta       what it may cost besides, for private keys
    noises      for each block, one for each measurement
    selections  for each block, how private keys are selected; None where all keys are known
    """

    plan: Plan
    kind: GrantKind
    amount: Fraction
    delta: Fraction
    noises: tuple[tuple[Noise, ...], ...]
    selections: tuple[KeyNoise | None, ...]

    @property
    def drawn(self) -> tuple[Noise | KeyNoise, ...]:
        """Every noise, in the order in which it is drawn."""
        keys = [selection for selection in self.selections if selection is not None]
        return (*keys, *(noise for block in self.noises for noise in block))

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Every loss, in the order in which the noise is drawn."""
        return tuple(_loss_of(noise) for noise in self.drawn)

    @cached_property
    def cost(self) -> tuple[Fraction, Fraction]:
        """(ε, 0) of a pure grant, else (ρ, δ): exact or rounded up, never above what was granted."""
        return _cost_of(self.losses, pure=self.kind == "pure")


# What follows from exact parameters alone is kept for the next question with the same ones: dashboards spend alike.
_KEPT = 256


@lru_cache(_KEPT)
def _loss_of(noise: Noise | KeyNoise) -> Loss:
    return noise.loss


@lru_cache(_KEPT)
def _loss_text(noise: Noise | KeyNoise) -> str:
    return json.dumps(_loss_of(noise).to_record())


def loss_record(noise: Noise | KeyNoise) -> dict[str, object]:
    """Return the record of a noise's loss; a new one each time, as a receipt is its reader's."""
    return json.loads(_loss_text(noise))


@lru_cache(_KEPT)
def _cost_of(losses: tuple[Loss, ...], *, pure: bool) -> tuple[Fraction, Fraction]:
    whole = compose(list(losses))
    if pure:
        epsilon = whole.pure_epsilon
        if epsilon is None:
            raise NotPrivate("a pure budget admits pure losses only")
        return epsilon, Fraction(0)
    both = whole.concentrated
    if both is None:
        raise NotPrivate("the question has no known bound of zero-concentrated differential privacy")
    return both


def price(
    plan: Plan,
    kind: GrantKind,
    amount: Fraction,
    delta: Fraction = Fraction(0),
    weights: Mapping[str, Fraction] | None = None,
    *,
    tested: bool = True,
) -> Priced:
    """Return the plan with noise that costs at most the grant: an amount of its kind, and delta for private keys.

    tested   False: quantiles as they were before their ends were tested, for the keys of answers that were paid for then

    Claim   The losses add up to at most the amount (ε, or ρ) and delta.
    Rounds  Scales up, so costs down to below the grant; the cost of what was chosen is exact or rounded up.
    Source  Basic composition of pure losses; [BS16] of ρ; mechanisms' own claims.
    """
    require(amount > 0, "the grant", "above 0", amount)
    selecting = [place for place, block in enumerate(plan.blocks) if block.private_keys]
    if selecting and kind == "pure":
        raise NotPrivate(
            "keys must be known without data under a pure budget: selecting them privately costs delta.",
            hint="declare `values` for the columns of GROUP BY, or give the study a budget with delta.",
        )
    if selecting and delta <= 0:
        raise NotPrivate("keys that are selected privately need a grant of delta; got 0.")
    shares = [measurement_weights(block, weights or {}) for block in plan.blocks]
    total = sum((sum(share, Fraction(0)) for share in shares), Fraction(0))
    everything = amount * (1 - KEYS_SHARE) if selecting and total else amount
    keys = (amount - everything if total else amount) / max(len(selecting), 1)
    noises = tuple(
        tuple(
            _noise(place, block, plan.adjacency, kind, everything * share / total, tested=tested)
            for place, share in enumerate(own)
        )
        for block, own in zip(plan.blocks, shares, strict=True)
    )
    selections = tuple(
        _selection(block.contribution.groups, plan.adjacency, kind, keys, delta / len(selecting))
        if place in selecting
        else None
        for place, block in enumerate(plan.blocks)
    )
    return Priced(plan, kind, amount, delta, noises, selections)


def measurement_weights(block: BlockPlan, weights: Mapping[str, Fraction]) -> list[Fraction]:
    """Return the weight of each measurement: the largest of the items that use it, 1 where nothing is said."""
    found = [Fraction(0)] * len(block.measurements)
    for item in block.items:
        for index in measurements_of(block, item.expression):
            found[index] = max(found[index], weights.get(item.name, Fraction(1)))
    return [weight or Fraction(1) for weight in found]


def check_weights(plan: Plan, weights: Mapping[str, Fraction]) -> None:
    """Refuse weights of columns that the answer does not have, or that are not positive."""
    names = {item.name for block in plan.blocks for item in block.items if item.released}
    for name, weight in weights.items():
        if name not in names:
            raise InvalidParameter.must_be("weights", f"of released columns ({', '.join(sorted(names))})", name)
        require(Fraction(1, MOST_WEIGHT) <= weight <= MOST_WEIGHT, f"weights[{name!r}]", "from 1/1000 to 1000", weight)


def _noise(place: int, block: BlockPlan, adjacency: Adjacency, kind: GrantKind, amount: Fraction, *, tested: bool) -> Noise:
    measurement = block.measurements[place]
    if measurement.kind == "quantile":
        if not tested:
            return _drawn_quantile(measurement, adjacency, kind, amount)
        return _quantile(measurement, block, adjacency, kind, amount, most_parts(block, place))
    if kind == "concentrated":
        return _gaussian(measurement.l2_squared, moved_entries(block, adjacency), adjacency, amount)
    return _laplace(measurement.l1, adjacency, amount)


def _laplace(moved: int, adjacency: Adjacency, epsilon: Fraction) -> DiscreteLaplace:
    scale = max(Fraction(moved) / epsilon, Fraction(1, 1 << 20))
    return DiscreteLaplace(scale=scale, sensitivity=Sensitivity(Fraction(moved) ** 2, Norm.L1, adjacency)).planned()


@lru_cache(_KEPT)
def _gaussian(l2_squared: int, dimension: int, adjacency: Adjacency, rho: Fraction) -> DiscreteGaussian:
    squared = Fraction(l2_squared)
    moves = Sensitivity(squared, Norm.L2, adjacency)
    wanted = squared / (2 * rho)
    require(wanted < _MOST_VARIANCE, "the cost", "enough for noise below 2^120 steps", rho)
    sigma = round_up(Fraction(math.sqrt(wanted)) or Fraction(1, 1 << 20))
    while squared > 2 * rho * sigma * sigma:
        sigma = round_up(sigma * (1 + Fraction(1, 10**11)))
    return DiscreteGaussian(sigma=sigma, sensitivity=moves, dimension=dimension).planned()


def moved_entries(block: BlockPlan, adjacency: Adjacency) -> int:
    """How many groups' numbers neighbours can change: those of one unit, or of the one that goes and the one that comes.

    Entries that do not move lose nothing, so this is the dimension that a vector's loss is recorded with.
    """
    if not block.contribution.keyed:
        return 1
    return max(2, block.contribution.groups * (2 if adjacency is Adjacency.REPLACE_ONE else 1))


def _quantile(
    measurement: Measurement, block: BlockPlan, adjacency: Adjacency, kind: GrantKind, amount: Fraction, parts: int
) -> QuantileNoise:
    """The draws and tests of a quantile, whose interval stands in expressions of at most so many parts.

    Claim   They cost at most the amount. A unit of `unit_weight` rows in all groups moves the scores of all groups together
            by that times `sensitivity`, in l1 and so in l2.
    """
    at = _quantile_maker(measurement, adjacency, kind, amount)
    share = POINT_SHARES[kind] if parts == 1 else PART_SHARE
    point = at(share, Fraction(0))
    q = point.q
    sides = (q > 0) + (q < 1)
    side, miss = (1 - share) / sides, BAR_MISS / parts
    end_share = side * DRAWN_SHARE
    end = at(end_share, Fraction(-1))  # any shift: an end's error does not depend on it
    reach = Fraction(end.interval(1 - miss / sides * DRAWN_MISS).upper)
    low = at(end_share, -reach) if q > 0 else None
    high = at(end_share, reach) if q < 1 else None
    shares, moved = TEST_SHARES[kind], end.sensitivity * measurement.unit_weight
    tests = tuple(
        _gaussian(moved**2, moved_entries(block, adjacency), adjacency, own)
        if kind == "concentrated"
        else _laplace(moved, adjacency, own)
        for own in (amount * side * (1 - DRAWN_SHARE) * part / sum(shares) for part in shares)
    )
    return QuantileNoise(point, low, high, tests, miss)


def _drawn_quantile(measurement: Measurement, adjacency: Adjacency, kind: GrantKind, amount: Fraction) -> QuantileNoise:
    """Three draws: half of the amount for the point, a quarter for each end, which misses with 2.5 %."""
    at = _quantile_maker(measurement, adjacency, kind, amount)
    share = Fraction(1, 4)
    reach = Fraction(at(share, Fraction(-1)).interval(1 - BAR_MISS / 2).upper)
    return QuantileNoise(at(1 - 2 * share, Fraction(0)), at(share, -reach), at(share, reach), (), BAR_MISS)


def _quantile_maker(
    measurement: Measurement, adjacency: Adjacency, kind: GrantKind, amount: Fraction
) -> Callable[[Fraction, Fraction], Quantile]:
    """How a draw is made of a share of the amount and a shift of its target."""
    grid, q = measurement.grid, measurement.q
    if grid is None or q is None:
        raise NotPrivate("a quantile needs a grid")

    def at(share: Fraction, shift: Fraction) -> Quantile:
        epsilon = _root_down(8 * amount * share) if kind == "concentrated" else amount * share
        ends = {"lower": grid.value(0), "upper": grid.value(grid.steps)}
        return Quantile(q=q, epsilon=epsilon, **ends, adjacency=adjacency, cells=grid.steps + 1, shift=shift)

    return at


@lru_cache(_KEPT)
def _selection(touched: int, adjacency: Adjacency, kind: GrantKind, amount: Fraction, delta: Fraction) -> KeyNoise:
    """touched: the groups that one unit can be in."""
    if kind == "concentrated":
        return GaussianKeys.calibrate(rho=amount, keys=touched, delta_keys=delta, adjacency=adjacency)
    return LaplaceKeys.calibrate(epsilon=amount, delta=delta, keys=touched, adjacency=adjacency)


def _root_down(value: Fraction) -> Fraction:
    """A rational of few digits whose square is at most the value."""
    return round_down(root_down(value, 1 << 64))


# ---- names that are stored -----------------------------------------------------------------------------------------


def written_part(value: object) -> StoredForm | None:
    """Return how a part of a priced plan is stored; None for what is none.

    Of a key its values are missing and of a measurement its tallies: both are sorted by who writes the whole.
    """
    match value:
        case Grid():
            return "Grid", {"exponent": value.exponent, "start": value.start, "steps": value.steps}
        case Tally():
            return "Tally", {
                "kind": value.kind,
                "argument": value.argument,
                "filter": value.filter,
                "grid": value.grid,
                "centre": value.centre,
                "shift": value.shift,
                "most": value.most,
            }
        case Cap():
            own = {"by": value.by, "rows": value.rows, "groups": value.groups, "in_group": value.in_group}
            height = {} if value.height is None else {"height": value.height}  # questions that are not cut are older than it
            groups_by = {} if value.groups_by == "hash" else {"groups_by": value.groups_by}  # as every group cap before it
            return "Cap", {**own, **height, **groups_by}
        case Contribution():
            return "Contribution", {
                "rows": value.rows,
                "groups": value.groups,
                "in_group": value.in_group,
                "keyed": value.keyed,
            }
        case KeyPlan():
            return "KeyPlan", {"expression": value.expression, "type": value.type}
        case Measurement():
            return "Measurement", {
                "kind": value.kind,
                "l1": value.l1,
                "l2_squared": value.l2_squared,
                "q": value.q,
                "grid": value.grid,
                "unit_weight": value.unit_weight,
            }
        case _:
            return written_noise(value) or written_node(value)


def written_noise(value: object) -> StoredForm | None:
    """Return the name of a mechanism and its parameters, in the order of a receipt; None for what is none."""
    match value:
        case DiscreteLaplace():
            return "DiscreteLaplace", {"scale": value.scale, "sensitivity": value.sensitivity, "relation": value.adjacency}
        case DiscreteGaussian():
            return "DiscreteGaussian", {
                "sigma": value.sigma,
                "squared": value.squared,
                "relation": value.adjacency,
                "dimension": value.dimension,
            }
        case QuantileNoise():
            tested = {"tests": value.tests, "miss": value.miss} if value.tests else {}  # three draws are older than tests
            return "QuantileNoise", {"point": value.point, "low": value.low, "high": value.high, **tested}
        case Quantile():
            return "Quantile", {
                "q": value.q,
                "epsilon": value.epsilon,
                "lower": value.lower,
                "upper": value.upper,
                "adjacency": value.adjacency,
                "cells": value.cells,
                "shift": value.shift,
            }
        case GaussianKeys():
            return "GaussianKeys", {
                "sigma": value.sigma,
                "threshold": value.threshold,
                "keys": value.keys,
                "relation": value.adjacency,
            }
        case LaplaceKeys():
            return "LaplaceKeys", {
                "epsilon": value.epsilon,
                "threshold": value.threshold,
                "keys": value.keys,
                "relation": value.adjacency,
            }
        case _:
            return None
